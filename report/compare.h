/* SPDX-License-Identifier: MIT */
/* compare: figures of one job under one system, over the iterations. Internal to report/. */
#ifndef NB_REPORT_COMPARE_H
#define NB_REPORT_COMPARE_H

#include <stdbool.h>
#include "run.h"
#include "stats.h"

/* In each: `scratch` has room for set->nr_runs values. */

/* Whether any run of the job has this metric. */
bool report_job_has(
	const struct report_set *set, const char *job, enum report_metric metric, double *scratch);

/* What a job is judged by: throughput where it has one, else elapsed time. */
enum report_metric report_main_metric(
	const struct report_set *set, const char *job, double *scratch);

/* Arithmetic mean of times, harmonic mean of rates. */
double report_mean_of(const struct report_stats *s, enum report_metric metric);
double report_mean(const struct report_set *set, const char *job, const char *system,
	enum report_metric metric, double *scratch);

/* The system whose runs of this job are the best placement, or NULL. */
const char *report_best_system(const struct report_set *set, const char *job);

/* Share of the gain that `system` gets, from the job's mean under `first` to its mean under `best`.
 */
double report_gain(const struct report_set *set, const char *job, const char *first,
	const char *system, const char *best, double *scratch);

#endif
