/* SPDX-License-Identifier: MIT */
/*
 * stats: the statistics of MMTests' comparison: means, spread, best-N means, percent against a
 * baseline, and Welch's t-test. Pure functions; thread-safe.
 */
#ifndef NB_REPORT_STATS_H
#define NB_REPORT_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Sample summary. NaN in every field that the number of values does not allow. */
struct report_stats {
	size_t nr;
	double min, max;
	double amean;
	double hmean;	 /* harmonic mean, for rates; NaN unless all values are positive */
	double stddev;	 /* sample standard deviation (n - 1); 0 for one value */
	double coeffvar; /* 100 * stddev / amean, percent; 0 for one value */
};

struct report_stats report_stats_of(const double *values, size_t nr);

/*
 * Mean (harmonic where `rates`) of the best `percent` of the values: the lowest, or the highest
 * where more is better; at least one value. Reorders `values`. NaN for none.
 */
double report_best_mean(
	double *values, size_t nr, unsigned int percent, bool more_is_better, bool rates);

/* Percent by which `value` is better than `base` (positive = better). NaN against 0, except 0
 * against 0: 0. */
double report_percent(double base, double value, bool more_is_better);

/* Two-sided p-value of Student's t with `df` degrees of freedom (any positive real). */
double report_student_p(double t, double df);

/* Welch's test on two samples by their summaries: t, its degrees of freedom, and p. */
struct report_welch {
	double t, df,
		p; /* NaN for fewer than two values on a side; p = 0 or 1 without any spread */
};
struct report_welch report_welch(const struct report_stats *a, const struct report_stats *b);

/* The difference of the means is significant at 95 %. */
bool report_significant(const struct report_stats *a, const struct report_stats *b);

#endif
