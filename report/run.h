/* SPDX-License-Identifier: MIT */
/*
 * run: what a report is made from: runs, each with its labels and its result. Plain data, borrowed
 * by every writer for the length of the call; nothing here owns anything.
 */
#ifndef NB_REPORT_RUN_H
#define NB_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../engine/result.h"

/* Version of the JSON, CSV and OpenMetrics shapes (docs/formats.md). Grows when a reader could
 * break. */
enum { REPORT_SCHEMA = 1 };

struct report_run {
	const char *job, *system,
		*machine;	/* names; any bytes, each format escapes them its own way */
	unsigned int iteration; /* from 1 */
	uint64_t seed;
	const struct nb_result *result; /* never NULL */
	bool is_best; /* the best static placement found: the upper bound that "share of the gain"
			 refers to */
	char *best_text; /* how that placement looks, or NULL */
};

/* Jobs x systems x iterations, in the order in which they are to be shown. Absent combinations are
 * allowed. */
struct report_set {
	size_t nr_runs;
	const struct report_run *runs; /* [nr_runs] */
};

/*
 * The distinct jobs and systems of a set, in order of first appearance, so that every format shows
 * the same rows and columns. Names are borrowed from the set.
 */
struct report_axes {
	size_t nr_jobs, nr_systems;
	const char **jobs;    /* [nr_jobs] */
	const char **systems; /* [nr_systems] */
};

/* 0 or -ENOMEM. */
int report_axes_init(struct report_axes *axes, const struct report_set *set);
void report_axes_free(struct report_axes *axes);

/* What is measured per run and compared between systems. X(NAME, short name of MMTests, unit, more
 * is better) */
#define REPORT_METRICS(X)                                                                          \
	X(USER, "user", "s", false)                                                                \
	X(SYSTEM, "syst", "s", false)                                                              \
	X(ELAPSED, "elsp", "s", false)                                                             \
	X(THROUGHPUT, "tput", "operations/s", true)

enum report_metric {
#define X(NAME, name, unit, more) REPORT_##NAME,
	REPORT_METRICS(X)
#undef X
		REPORT_NR_METRICS
};

struct report_metric_info {
	const char *name;
	const char *unit;
	bool more_is_better;
};
extern const struct report_metric_info report_metric_table[REPORT_NR_METRICS];

/* The metric of one run; NaN where the run has none (no operations, no time). */
double report_metric_of(const struct nb_result *result, enum report_metric metric);

/*
 * The metric of every run of that job and system, in order, without the NaNs. `values` has room for
 * set->nr_runs. Returns how many there are.
 */
size_t report_collect(double *values, const struct report_set *set, const char *job,
	const char *system, enum report_metric metric);

/*
 * Share of the possible gain: how far `value` lies on the way from `first` to `best`. NaN where
 * there is no way (first equals best). 1 = as good as the best.
 */
double report_share_of_gain(double first, double value, double best);

/* A result's counters as an array in the order of nb_counter_table. */
const uint64_t *report_counters(const struct nb_result *result);

#endif
