/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static const double SIGNIFICANT_P = 0.05;

static double sample_stddev(const double *values, size_t nr, double mean)
{
	double squares = 0;

	if (nr < 2)
		return 0;
	for (size_t i = 0; i < nr; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return sqrt(squares / (double)(nr - 1));
}

static double arithmetic_mean(const double *values, size_t nr)
{
	double sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += values[i];
	return sum / (double)nr;
}

static double harmonic_mean(const double *values, size_t nr)
{
	double sum = 0;

	for (size_t i = 0; i < nr; i++) {
		if (values[i] <= 0)
			return NAN;
		sum += 1 / values[i];
	}
	return (double)nr / sum;
}

struct report_stats report_stats_of(const double *values, size_t nr)
{
	struct report_stats s = {
		.nr = nr,
		.min = NAN,
		.max = NAN,
		.amean = NAN,
		.hmean = NAN,
		.stddev = NAN,
		.coeffvar = NAN,
	};

	if (!nr)
		return s;
	s.min = s.max = values[0];
	for (size_t i = 1; i < nr; i++) {
		s.min = fmin(s.min, values[i]);
		s.max = fmax(s.max, values[i]);
	}
	s.amean = arithmetic_mean(values, nr);
	s.hmean = harmonic_mean(values, nr);
	s.stddev = sample_stddev(values, nr, s.amean);
	s.coeffvar = s.stddev == 0 ? 0 : 100 * s.stddev / s.amean;
	return s;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int descending(const void *a, const void *b)
{
	return ascending(b, a);
}

double report_best_mean(
	double *values, size_t nr, unsigned int percent, bool more_is_better, bool rates)
{
	size_t best = nr * percent / 100;

	if (!nr)
		return NAN;
	if (!best)
		best = 1;
	qsort(values, nr, sizeof(*values), more_is_better ? descending : ascending);
	return rates ? harmonic_mean(values, best) : arithmetic_mean(values, best);
}

double report_percent(double base, double value, bool more_is_better)
{
	if (base == value)
		return 0;
	if (base == 0)
		return NAN;
	return 100 * (more_is_better ? value - base : base - value) / base;
}

/*
 * Continued fraction of the incomplete beta function, evaluated from the front (modified Lentz). It
 * converges in some tens of steps for x < (a + 1) / (a + b + 2); the caller sees to that.
 */
static double beta_fraction(double a, double b, double x)
{
	enum { MAX_STEPS = 10000 };
	const double tiny = 1e-300, accuracy = 1e-15;
	double c = 1, d = 1 - (a + b) * x / (a + 1), fraction;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	fraction = d;
	for (int i = 1; i < MAX_STEPS; i++) {
		const double m = i;
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		const double steps[] = {even, odd};
		double change = 1;

		for (int k = 0; k < 2; k++) {
			d = 1 + steps[k] * d;
			c = 1 + steps[k] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			change = c * d;
			fraction *= change;
		}
		if (fabs(change - 1) < accuracy)
			break;
	}
	return fraction;
}

/* Regularised incomplete beta function I_x(a, b) for 0 < x < 1; `rest` = 1 - x, given where it is
 * known exactly. */
static double incomplete_beta(double a, double b, double x, double rest)
{
	const double front =
		exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest));

	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, rest) / b;
}

double report_student_p(double t, double df)
{
	const double square = t * t;

	if (isnan(t) || !(df > 0))
		return NAN;
	if (square == 0)
		return 1;
	if (isinf(square))
		return 0;
	return incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square));
}

/* No spread at all (a deterministic machine): equal means are equal, unequal ones differ for
 * certain. */
static struct report_welch without_spread(double difference)
{
	return (struct report_welch){
		.t = difference == 0 ? 0 : copysign(INFINITY, difference),
		.df = NAN,
		.p = difference == 0 ? 1 : 0,
	};
}

struct report_welch report_welch(const struct report_stats *a, const struct report_stats *b)
{
	struct report_welch w = {NAN, NAN, NAN};
	double va, vb;

	if (a->nr < 2 || b->nr < 2)
		return w;
	va = a->stddev * a->stddev / (double)a->nr;
	vb = b->stddev * b->stddev / (double)b->nr;
	if (va + vb == 0)
		return without_spread(a->amean - b->amean);
	w.t = (a->amean - b->amean) / sqrt(va + vb);
	w.df = (va + vb) * (va + vb) /
	       (va * va / (double)(a->nr - 1) + vb * vb / (double)(b->nr - 1));
	w.p = report_student_p(w.t, w.df);
	return w;
}

bool report_significant(const struct report_stats *a, const struct report_stats *b)
{
	return report_welch(a, b).p < SIGNIFICANT_P;
}
