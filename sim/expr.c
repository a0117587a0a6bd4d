/* SPDX-License-Identifier: MIT */
/* Recursive descent: sum = product {+- product}, product = factor {* / % factor}, factor = -factor
 * | atom. */
#include "expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"
#include "nearest.h"

struct reader {
	const char *text, *at;
	const struct sim_var *vars;
	size_t nr_vars;
	int depth;
	int err; /* the first error stays */
	char *why;
	size_t why_len;
};

enum { NAME_LEN = 64 };

struct function {
	const char *name;
	int nr_args;
	double (*apply)(double a, double b);
};

static double apply_min(double a, double b)
{
	return a < b ? a : b;
}

static double apply_max(double a, double b)
{
	return a > b ? a : b;
}

static double apply_floor(double a, double b)
{
	(void)b;
	return floor(a);
}

static double apply_ceil(double a, double b)
{
	(void)b;
	return ceil(a);
}

static const struct function functions[] = {
	{"min", 2, apply_min},
	{"max", 2, apply_max},
	{"floor", 1, apply_floor},
	{"ceil", 1, apply_ceil},
};
enum { NR_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

struct unit {
	const char *suffix;
	double factor;
};

/* Longest first where one begins another. */
static const struct unit units[] = {
	{"KiB", 0x1p10},
	{"KB", 0x1p10},
	{"K", 0x1p10},
	{"MiB", 0x1p20},
	{"MB", 0x1p20},
	{"M", 0x1p20},
	{"GiB", 0x1p30},
	{"GB", 0x1p30},
	{"G", 0x1p30},
	{"TiB", 0x1p40},
	{"TB", 0x1p40},
	{"T", 0x1p40},
	{"ns", 1e-9},
	{"us", 1e-6},
	{"ms", 1e-3},
	{"s", 1},
};
enum { NR_UNITS = sizeof(units) / sizeof(units[0]) };

static double sum(struct reader *r);

__attribute__((format(printf, 3, 4))) static double fail(
	struct reader *r, int err, const char *format, ...)
{
	char what[192];
	va_list args;

	if (r->err)
		return 0;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	r->err = nb_why(r->why, r->why_len, err, "'%.80s': %s", r->text, what);
	return 0;
}

static void skip_blanks(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

static bool accept(struct reader *r, char c)
{
	skip_blanks(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

int sim_expr_is_name(const char *text)
{
	size_t n = 0;

	if (!name_start(text[0]))
		return 0;
	while (name_char(text[n]))
		n++;
	return !text[n] && n < NAME_LEN;
}

static const struct function *find_function(const char *name)
{
	for (size_t i = 0; i < NR_FUNCTIONS; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}

int sim_expr_is_reserved(const char *name)
{
	return find_function(name) != NULL;
}

static double bounded(struct reader *r, double value)
{
	return isfinite(value) ? value : fail(r, -ERANGE, "too large a number");
}

static double unit_factor(struct reader *r)
{
	for (size_t i = 0; i < NR_UNITS; i++) {
		const size_t n = strlen(units[i].suffix);

		if (strncmp(r->at, units[i].suffix, n) || name_char(r->at[n]))
			continue;
		r->at += n;
		return units[i].factor;
	}
	if (name_start(*r->at))
		return fail(r, -EINVAL, "unit '%.16s', expected K M G T ns us ms or s", r->at);
	return 1;
}

static double number(struct reader *r)
{
	char *end;
	double value;

	/* strtod would take hexadecimal too. */
	if (r->at[0] == '0' && (r->at[1] == 'x' || r->at[1] == 'X'))
		return fail(r, -EINVAL, "hexadecimal, expected a decimal number");
	value = strtod(r->at, &end);
	r->at = end;
	return bounded(r, value * unit_factor(r));
}

static double call(struct reader *r, const struct function *f)
{
	double a, b = 0;

	if (!accept(r, '('))
		return fail(r, -EINVAL, "expected %s(%s)", f->name, f->nr_args == 2 ? "a,b" : "a");
	a = sum(r);
	if (f->nr_args == 2 && !r->err) {
		if (!accept(r, ','))
			return fail(r, -EINVAL, "expected %s(a,b)", f->name);
		b = sum(r);
	}
	if (!r->err && !accept(r, ')'))
		return fail(r, -EINVAL, "expected ) after the arguments of %s", f->name);
	return f->apply(a, b);
}

static double unknown(struct reader *r, const char *name)
{
	struct sim_nearest near = {.name = name};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; i < r->nr_vars; i++)
		sim_nearest_try(&near, r->vars[i].name);
	for (size_t i = 0; i < NR_FUNCTIONS; i++)
		sim_nearest_try(&near, functions[i].name);
	return fail(r, -EINVAL, "no variable '%s'%s", name, sim_nearest_hint(&near, hint));
}

static double variable(struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->nr_vars; i++) {
		if (strcmp(r->vars[i].name, name))
			continue;
		if (r->vars[i].word)
			return fail(r, -EINVAL, "variable '%s' is the word '%.32s', not a number",
				name, r->vars[i].word);
		if (isnan(r->vars[i].value))
			return fail(r, -EAGAIN, "variable '%s' has no value here", name);
		return r->vars[i].value;
	}
	return unknown(r, name);
}

static double named(struct reader *r)
{
	char name[NAME_LEN];
	const struct function *f;
	size_t n = 0;

	while (name_char(r->at[n]))
		n++;
	if (n >= sizeof(name))
		return fail(
			r, -EINVAL, "a name of %zu bytes, expected at most %d", n, NAME_LEN - 1);
	memcpy(name, r->at, n);
	name[n] = '\0';
	r->at += n;
	f = find_function(name);
	return f ? call(r, f) : variable(r, name);
}

static double atom(struct reader *r)
{
	skip_blanks(r);
	if (accept(r, '(')) {
		const double value = sum(r);

		if (!r->err && !accept(r, ')'))
			return fail(r, -EINVAL, "expected )");
		return value;
	}
	if (name_start(*r->at))
		return named(r);
	if (isdigit((unsigned char)r->at[0]) ||
		(r->at[0] == '.' && isdigit((unsigned char)r->at[1])))
		return number(r);
	if (!*r->at)
		return fail(r, -EINVAL, "ends where a number or a name was expected");
	return fail(r, -EINVAL, "'%.16s', expected a number or a name", r->at);
}

static double factor(struct reader *r)
{
	double value;

	if (r->depth >= SIM_EXPR_MAX_DEPTH)
		return fail(r, -EINVAL, "nested deeper than %d", SIM_EXPR_MAX_DEPTH);
	r->depth++;
	value = accept(r, '-') ? -factor(r) : atom(r);
	r->depth--;
	return value;
}

static double modulo(double a, double b)
{
	const double rest = fmod(a, b);

	return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double divide(struct reader *r, char op, double a, double b)
{
	if (b == 0)
		return fail(r, -EINVAL, "division by zero");
	return bounded(r, op == '/' ? a / b : modulo(a, b));
}

static double product(struct reader *r)
{
	double value = factor(r);

	while (!r->err) {
		if (accept(r, '*'))
			value = bounded(r, value * factor(r));
		else if (accept(r, '/'))
			value = divide(r, '/', value, factor(r));
		else if (accept(r, '%'))
			value = divide(r, '%', value, factor(r));
		else
			break;
	}
	return value;
}

static double sum(struct reader *r)
{
	double value = product(r);

	while (!r->err) {
		if (accept(r, '+'))
			value = bounded(r, value + product(r));
		else if (accept(r, '-'))
			value = bounded(r, value - product(r));
		else
			break;
	}
	return value;
}

int sim_expr_eval(double *value, const char *text, const struct sim_var *vars, size_t nr_vars,
	char *why, size_t why_len)
{
	struct reader r = {.text = text,
		.at = text,
		.vars = vars,
		.nr_vars = nr_vars,
		.why = why,
		.why_len = why_len};

	*value = sum(&r);
	skip_blanks(&r);
	if (!r.err && *r.at)
		fail(&r, -EINVAL, "'%.16s' after the end of the expression", r.at);
	return r.err;
}
