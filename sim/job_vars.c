/* SPDX-License-Identifier: MIT */
/* Variables of a job file: `var NAME = value` in [global], set by the caller or not, and "$NAME" in
 * other values. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expr.h"
#include "jobfile.h"
#include "nearest.h"

enum { MAX_TEXT = SIM_INI_MAX_VALUE + 1 }; /* of a value after substitution */

const char *sim_job_builtin(size_t i)
{
	static const char *const names[] = {"cpus", "nodes", "cpunodes", "mem", "node_cpus", "proc",
		"procs", "thread", "threads"};

	return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

static bool is_builtin(const char *name)
{
	for (size_t i = 0; sim_job_builtin(i); i++)
		if (!strcmp(sim_job_builtin(i), name))
			return true;
	return sim_expr_is_reserved(name);
}

static struct sim_job_var *find_var(struct sim_job *job, const char *name, size_t len)
{
	for (uint32_t i = 0; i < job->nr_vars; i++)
		if (!strncmp(job->vars[i].name, name, len) && !job->vars[i].name[len])
			return &job->vars[i];
	return NULL;
}

static int check_var_name(struct sim_job_reader *r, const struct sim_ini_entry *e, const char *name)
{
	if (!sim_expr_is_name(name))
		return sim_job_refuse(r, e->line, -EINVAL,
			"'%.48s': expected var NAME = value, NAME of letters, digits and '_'",
			e->key);
	if (is_builtin(name))
		return sim_job_refuse(
			r, e->line, -EINVAL, "'%s' can't be defined, it is there", name);
	if (find_var(r->job, name, strlen(name)))
		return sim_job_refuse(r, e->line, -EINVAL, "variable '%s' again", name);
	if (r->job->nr_vars >= SIM_JOB_MAX_VARS)
		return sim_job_refuse(
			r, e->line, -E2BIG, "more than %d variables", SIM_JOB_MAX_VARS);
	return 0;
}

/* One word or an expression; "$" would have to be replaced before the caller's values are known. */
static int check_var_value(
	struct sim_job_reader *r, uint32_t line, const char *name, const char *value)
{
	if (!value[0])
		return sim_job_refuse(r, line, -EINVAL, "variable '%s' lacks a value", name);
	if (strchr(value, '$'))
		return sim_job_refuse(r, line, -EINVAL,
			"variable '%s': '$' in a variable's value, expected a word or an "
			"expression",
			name);
	return 0;
}

static int add_var(struct sim_job_reader *r, const struct sim_ini_entry *e)
{
	const char *name = e->key + 4 + strspn(e->key + 4, " \t");
	int err = check_var_name(r, e, name);
	struct sim_job_var *v = &r->job->vars[r->job->nr_vars];

	if (!err)
		err = check_var_value(r, e->line, name, e->value);
	if (err)
		return err;
	*v = (struct sim_job_var){.value = {.text = strdup(e->value), .line = e->line}};
	if (!v->value.text)
		return sim_job_refuse(r, e->line, -ENOMEM, "out of memory");
	memcpy(v->name, name, strlen(name) + 1);
	r->job->nr_vars++;
	return 0;
}

static bool is_var_key(const char *key)
{
	return !strncmp(key, "var", 3) && isspace((unsigned char)key[3]);
}

static int unknown_var(struct sim_job_reader *r, uint32_t line, const char *name)
{
	struct sim_nearest near = {.name = name};
	char hint[SIM_HINT_LEN];

	for (uint32_t i = 0; i < r->job->nr_vars; i++)
		sim_nearest_try(&near, r->job->vars[i].name);
	return sim_job_refuse(r, line, -EINVAL, "this job has no variable '%.48s'%s", name,
		sim_nearest_hint(&near, hint));
}

static int override(struct sim_job_reader *r, char *assignment)
{
	char *value = strchr(assignment, '=');
	struct sim_job_var *v;

	int err;

	if (!value || value == assignment)
		return sim_job_refuse(
			r, 0, -EINVAL, "'%.48s': expected variable=value", assignment);
	*value++ = '\0';
	v = find_var(r->job, assignment, strlen(assignment));
	if (!v)
		return unknown_var(r, 0, assignment);
	err = check_var_value(r, 0, v->name, value);
	if (err)
		return err;
	if (v->overridden)
		return sim_job_refuse(r, 0, -EINVAL, "variable '%s' is set twice", v->name);
	free(v->value.text);
	v->value.text = strdup(value);
	v->overridden = true;
	return v->value.text ? 0 : sim_job_refuse(r, 0, -ENOMEM, "out of memory");
}

char *sim_cut_at_comma(char *text)
{
	int depth = 0;

	for (char *c = text; *c; c++) {
		depth += (*c == '(') - (*c == ')');
		if (*c != ',' || depth > 0)
			continue;
		*c = '\0';
		return c + 1;
	}
	return NULL;
}

static int apply_overrides(struct sim_job_reader *r, const char *overrides)
{
	char *copy = strdup(overrides), *next;
	int err = copy ? 0 : sim_job_refuse(r, 0, -ENOMEM, "out of memory");

	for (char *at = copy; at && !err; at = next) {
		next = sim_cut_at_comma(at);
		err = override(r, at);
	}
	free(copy);
	return err;
}

int sim_job_read_vars(
	struct sim_job_reader *r, const struct sim_ini_section *global, const char *overrides)
{
	int err = 0;

	for (uint32_t i = 0; global && i < global->nr_entries && !err; i++)
		if (is_var_key(global->entries[i].key))
			err = add_var(r, &global->entries[i]);
	if (!err && overrides)
		err = apply_overrides(r, overrides);
	return err;
}

/* ---- $NAME ---- */

struct text {
	char bytes[MAX_TEXT];
	size_t len;
};

static bool append(struct text *t, const char *more, size_t len)
{
	if (len >= sizeof(t->bytes) - t->len)
		return false;
	memcpy(t->bytes + t->len, more, len);
	t->len += len;
	t->bytes[t->len] = '\0';
	return true;
}

static int append_var(struct sim_job_reader *r, struct text *t, const char **at, uint32_t line)
{
	const char *name = *at + 1;
	size_t n = 0;
	char shown[SIM_NAME];
	const struct sim_job_var *v;

	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
	if (!n || n >= sizeof(shown))
		return sim_job_refuse(r, line, -EINVAL, "'$' without the name of a variable");
	memcpy(shown, name, n);
	shown[n] = '\0';
	v = find_var(r->job, name, n);
	if (!v)
		return unknown_var(r, line, shown);
	*at = name + n;
	if (!append(t, v->value.text, strlen(v->value.text)))
		return sim_job_refuse(r, line, -E2BIG, "more than %d bytes", MAX_TEXT - 1);
	return 0;
}

int sim_job_substitute(struct sim_job_reader *r, char **out, const char *text, uint32_t line)
{
	struct text t = {.len = 0};
	int err = 0;

	t.bytes[0] = '\0';
	for (const char *at = text; *at && !err;) {
		const size_t n = strcspn(at, "$");

		if (!append(&t, at, n))
			err = sim_job_refuse(r, line, -E2BIG, "more than %d bytes", MAX_TEXT - 1);
		at += n;
		if (!err && *at == '$')
			err = append_var(r, &t, &at, line);
	}
	if (err)
		return err;
	*out = strdup(t.bytes);
	return *out ? 0 : sim_job_refuse(r, line, -ENOMEM, "out of memory");
}
