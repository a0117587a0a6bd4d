/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "expr.h"

static char why[512];

static int eval(const char *text, double *value)
{
	const struct sim_var vars[] = {
		{.name = "cpus", .value = 48}, {.name = "threads", .value = 10},
		{.name = "thp", .value = 1, .word = "never"}, {.name = "proc", .value = NAN},
		{.name = "cpus", .value = -1}, /* the first of a name counts */
	};

	why[0] = '\0';
	return sim_expr_eval(value, text, vars, 5, why, sizeof(why));
}

static void assert_value(const char *text, double expected)
{
	double value = -1;

	if (eval(text, &value))
		fail_msg("%s", why);
	if (value != expected)
		fail_msg("%s is %.17g, expected %.17g", text, value, expected);
}

static void assert_refused(const char *text, int err, const char *line)
{
	double value;

	assert_int_equal(eval(text, &value), err);
	assert_string_equal(why, line);
}

static void numbers_and_units(void **state)
{
	(void)state;
	assert_value("0", 0);
	assert_value(" 12 ", 12);
	assert_value(".5", 0.5);
	assert_value("2.5e3", 2500);
	assert_value("3G", 3221225472.0);
	assert_value("4K", 4096);
	assert_value("4KiB", 4096);
	assert_value("4KB", 4096);
	assert_value("1.5M", 1572864);
	assert_value("2T", 2199023255552.0);
	assert_value("30s", 30);
	assert_value("250ms", 0.25);
	assert_value("8us", 8e-6);
	assert_value("5ns", 5e-9);
}

static void operators_bind_as_in_c(void **state)
{
	(void)state;
	assert_value("1+2*3", 7);
	assert_value("(1+2)*3", 9);
	assert_value("7-2-1", 4);
	assert_value("64/4/2", 8);
	assert_value("2*3%4", 2);
	assert_value("-2+5", 3);
	assert_value("--2", 2);
	assert_value("2*-3", -6);
	assert_value("3 - -3", 6);
	assert_value("1/4", 0.25); /* real numbers: whoever needs a whole one rounds down */
}

static void modulo_has_the_sign_of_its_right_side(void **state)
{
	(void)state;
	assert_value("7%4", 3);
	assert_value("-1%4", 3);
	assert_value("1%-4", -3);
	assert_value("-8%4", 0);
	assert_value("5.5%2", 1.5);
}

static void functions_and_variables(void **state)
{
	(void)state;
	assert_value("min(3,2)", 2);
	assert_value("max( 3 , 2 )", 3);
	assert_value("floor(7/2)", 3);
	assert_value("ceil(7/2)", 4);
	assert_value("floor(-0.5)", -1);
	assert_value("3G/(cpus/2)", 134217728);
	assert_value("min(max(1,cpus),threads)", 10);
}

static void what_is_no_expression(void **state)
{
	(void)state;
	assert_refused("", -EINVAL, "'': ends where a number or a name was expected");
	assert_refused("1+", -EINVAL, "'1+': ends where a number or a name was expected");
	assert_refused("(1", -EINVAL, "'(1': expected )");
	assert_refused("1)", -EINVAL, "'1)': ')' after the end of the expression");
	assert_refused("1 2", -EINVAL, "'1 2': '2' after the end of the expression");
	assert_refused("*2", -EINVAL, "'*2': '*2', expected a number or a name");
	assert_refused("0x10", -EINVAL, "'0x10': hexadecimal, expected a decimal number");
	assert_refused("3Q", -EINVAL, "'3Q': unit 'Q', expected K M G T ns us ms or s");
	assert_refused("3Gx", -EINVAL, "'3Gx': unit 'Gx', expected K M G T ns us ms or s");
	assert_refused("min(1)", -EINVAL, "'min(1)': expected min(a,b)");
	assert_refused("min 1", -EINVAL, "'min 1': expected min(a,b)");
	assert_refused(
		"floor(1,2)", -EINVAL, "'floor(1,2)': expected ) after the arguments of floor");
	assert_refused("inf", -EINVAL, "'inf': no variable 'inf'");
	assert_refused("nan", -EINVAL, "'nan': no variable 'nan'");
}

static void names_that_are_unknown(void **state)
{
	(void)state;
	assert_refused("cpu", -EINVAL, "'cpu': no variable 'cpu'; did you mean 'cpus'?");
	assert_refused("1+zebra", -EINVAL, "'1+zebra': no variable 'zebra'");
	assert_refused("flor(1)", -EINVAL, "'flor(1)': no variable 'flor'; did you mean 'floor'?");
	assert_refused(
		"thp+1", -EINVAL, "'thp+1': variable 'thp' is the word 'never', not a number");
	assert_refused("proc", -EAGAIN, "'proc': variable 'proc' has no value here");
}

static void numbers_out_of_range(void **state)
{
	(void)state;
	assert_refused("1/0", -EINVAL, "'1/0': division by zero");
	assert_refused("1%(cpus-48)", -EINVAL, "'1%(cpus-48)': division by zero");
	assert_refused("1e999", -ERANGE, "'1e999': too large a number");
	assert_refused("1e308*10", -ERANGE, "'1e308*10': too large a number");
	assert_refused("1e308/1e-10", -ERANGE, "'1e308/1e-10': too large a number");
	assert_refused("-1e308-1e308", -ERANGE, "'-1e308-1e308': too large a number");
	assert_refused("1e308T", -ERANGE, "'1e308T': too large a number");
}

/* Recursion ends before the stack does. */
static void nesting_is_limited(void **state)
{
	char text[20000];
	double value;

	(void)state;
	memset(text, '(', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(eval(text, &value), -EINVAL);
	assert_non_null(strstr(why, "nested deeper than 64"));
	memset(text, '-', sizeof(text) - 1);
	assert_int_equal(eval(text, &value), -EINVAL);
	for (size_t i = 0; i + 4 < sizeof(text); i += 4)
		memcpy(text + i, "min(", 4);
	assert_int_equal(eval(text, &value), -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	assert_int_equal(eval(text, &value), -EINVAL);
}

static void names(void **state)
{
	(void)state;
	assert_true(sim_expr_is_name("a_1"));
	assert_true(sim_expr_is_name("_"));
	assert_false(sim_expr_is_name(""));
	assert_false(sim_expr_is_name("1a"));
	assert_false(sim_expr_is_name("a-b"));
	assert_true(sim_expr_is_reserved("min"));
	assert_false(sim_expr_is_reserved("cpus"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_units),
		cmocka_unit_test(operators_bind_as_in_c),
		cmocka_unit_test(modulo_has_the_sign_of_its_right_side),
		cmocka_unit_test(functions_and_variables),
		cmocka_unit_test(what_is_no_expression),
		cmocka_unit_test(names_that_are_unknown),
		cmocka_unit_test(numbers_out_of_range),
		cmocka_unit_test(nesting_is_limited),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
