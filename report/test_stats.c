/* SPDX-License-Identifier: MIT */
/* Statistics against published values: tables of Student's t, and two data sets every statistics
 * package ships. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "stats.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
}

/* Critical values of t, two-sided, as printed in textbooks (three decimals). */
static void test_critical_values(void **state)
{
	static const struct {
		double df, alpha, t;
	} rows[] = {
		{1, .10, 6.314},
		{5, .10, 2.015},
		{10, .10, 1.812},
		{30, .10, 1.697},
		{1, .05, 12.706},
		{2, .05, 4.303},
		{3, .05, 3.182},
		{4, .05, 2.776},
		{5, .05, 2.571},
		{8, .05, 2.306},
		{10, .05, 2.228},
		{20, .05, 2.086},
		{30, .05, 2.042},
		{60, .05, 2.000},
		{120, .05, 1.980},
		{1, .01, 63.657},
		{5, .01, 4.032},
		{10, .01, 3.169},
		{30, .01, 2.750},
		{1e9, .05, 1.960},
		{1e9, .01, 2.576},
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		assert_true(report_student_p(rows[i].t + 0.0006, rows[i].df) < rows[i].alpha);
		assert_true(report_student_p(rows[i].t - 0.0006, rows[i].df) > rows[i].alpha);
		assert_true(report_student_p(-rows[i].t - 0.0006, rows[i].df) < rows[i].alpha);
	}
}

/* With one and two degrees of freedom the distribution has a closed form. */
static void test_closed_forms(void **state)
{
	static const double ts[] = {1e-9, 0.01, 0.5, 1, 2, 5, 30, 1e4};

	(void)state;
	for (size_t i = 0; i < LEN(ts); i++) {
		const double t = ts[i];

		assert_near(report_student_p(t, 1), 2 * atan2(1, t) / M_PI, 1e-12);
		assert_near(report_student_p(t, 2), 1 - t / sqrt(2 + t * t), 1e-12);
	}
}

static void test_edges(void **state)
{
	(void)state;
	assert_near(report_student_p(0, 5), 1, 0);
	assert_near(report_student_p(INFINITY, 5), 0, 0);
	assert_near(report_student_p(1e200, 5), 0, 0);
	assert_true(isnan(report_student_p(NAN, 5)));
	assert_true(isnan(report_student_p(1, 0)));
	assert_true(isnan(report_student_p(1, NAN)));
}

/* Student's own data of 1908 (hours of sleep gained): t = -1.8608, df = 17.776, p = 0.07939. */
static void test_welch_sleep(void **state)
{
	static const double a[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
	static const double b[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
	const struct report_stats sa = report_stats_of(a, LEN(a)), sb = report_stats_of(b, LEN(b));
	const struct report_welch w = report_welch(&sa, &sb);

	(void)state;
	assert_near(w.t, -1.8608, 0.00005);
	assert_near(w.df, 17.776, 0.0005);
	assert_near(w.p, 0.07939, 0.000005);
	assert_false(report_significant(&sa, &sb));
}

/* Motor Trend 1974, miles per gallon by transmission: t = -3.7671, df = 18.332, p = 0.001374. */
static void test_welch_cars(void **state)
{
	static const double a[] = {21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2,
		10.4, 10.4, 14.7, 21.5, 15.5, 15.2, 13.3, 19.2};
	static const double b[] = {
		21.0, 21.0, 22.8, 32.4, 30.4, 33.9, 27.3, 26.0, 30.4, 15.8, 19.7, 15.0, 21.4};
	const struct report_stats sa = report_stats_of(a, LEN(a)), sb = report_stats_of(b, LEN(b));
	const struct report_welch w = report_welch(&sa, &sb);

	(void)state;
	assert_near(sa.amean, 17.14737, 0.000005);
	assert_near(sb.amean, 24.39231, 0.000005);
	assert_near(w.t, -3.7671, 0.00005);
	assert_near(w.df, 18.332, 0.0005);
	assert_near(w.p, 0.001374, 0.0000005);
	assert_true(report_significant(&sa, &sb));
}

static void test_welch_degenerate(void **state)
{
	static const double same[] = {2, 2, 2}, other[] = {3, 3, 3};
	const struct report_stats none = report_stats_of(same, 0), one = report_stats_of(same, 1);
	const struct report_stats a = report_stats_of(same, 3), b = report_stats_of(other, 3);

	(void)state;
	assert_false(report_significant(&none, &a));
	assert_false(report_significant(&one, &b)); /* one value says nothing about spread */
	assert_false(report_significant(&a, &a));
	assert_true(report_significant(&a, &b));
	assert_true(isnan(none.amean) && isnan(none.min));
	assert_near(one.stddev, 0, 0);
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, so the sample deviation is sqrt(32/7). */
static void test_summary(void **state)
{
	double v[] = {9, 4, 4, 7, 5, 5, 4, 2};
	const struct report_stats s = report_stats_of(v, LEN(v));

	(void)state;
	assert_near(s.amean, 5, 0);
	assert_near(s.stddev, sqrt(32.0 / 7), 1e-15);
	assert_near(s.coeffvar, 20 * sqrt(32.0 / 7), 1e-13);
	assert_near(s.min, 2, 0);
	assert_near(s.max, 9, 0);
	assert_near(report_best_mean(v, LEN(v), 50, false, false), (2 + 4 + 4 + 4) / 4.0, 0);
	assert_near(report_best_mean(v, LEN(v), 95, false, false),
		(2 + 4 + 4 + 4 + 5 + 5 + 7) / 7.0, 1e-15);
	assert_near(report_best_mean(v, LEN(v), 50, true, false), (9 + 7 + 5 + 5) / 4.0, 0);
	assert_near(report_best_mean(v, 1, 50, false, false), v[0], 0);
	assert_true(isnan(report_best_mean(v, 0, 50, false, false)));
}

/* There at 40 km/h, back at 60: 48 on average. */
static void test_harmonic(void **state)
{
	double v[] = {40, 60}, with_zero[] = {40, 0};

	(void)state;
	assert_near(report_stats_of(v, 2).hmean, 48, 1e-12);
	assert_near(report_best_mean(v, 2, 50, true, true), 60, 1e-12);
	assert_true(isnan(report_stats_of(with_zero, 2).hmean));
}

static void test_percent(void **state)
{
	(void)state;
	assert_near(report_percent(200, 100, false), 50, 0);  /* half the time */
	assert_near(report_percent(200, 300, false), -50, 0); /* more time is worse */
	assert_near(report_percent(200, 300, true), 50, 0);   /* more throughput is better */
	assert_near(report_percent(0, 0, false), 0, 0);
	assert_true(isnan(report_percent(0, 1, false)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_critical_values),
		cmocka_unit_test(test_closed_forms),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_welch_sleep),
		cmocka_unit_test(test_welch_cars),
		cmocka_unit_test(test_welch_degenerate),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_harmonic),
		cmocka_unit_test(test_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
