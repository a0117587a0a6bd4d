/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <string.h>

bool report_job_has(
	const struct report_set *set, const char *job, enum report_metric metric, double *scratch)
{
	for (size_t i = 0; i < set->nr_runs; i++)
		if (!strcmp(set->runs[i].job, job) &&
			report_collect(scratch, set, job, set->runs[i].system, metric))
			return true;
	return false;
}

enum report_metric report_main_metric(
	const struct report_set *set, const char *job, double *scratch)
{
	return report_job_has(set, job, REPORT_THROUGHPUT, scratch) ? REPORT_THROUGHPUT
								    : REPORT_ELAPSED;
}

double report_mean_of(const struct report_stats *s, enum report_metric metric)
{
	return report_metric_table[metric].more_is_better ? s->hmean : s->amean;
}

double report_mean(const struct report_set *set, const char *job, const char *system,
	enum report_metric metric, double *scratch)
{
	const size_t nr = report_collect(scratch, set, job, system, metric);
	const struct report_stats s = report_stats_of(scratch, nr);

	return report_mean_of(&s, metric);
}

const char *report_best_system(const struct report_set *set, const char *job)
{
	for (size_t i = 0; i < set->nr_runs; i++)
		if (set->runs[i].is_best && !strcmp(set->runs[i].job, job))
			return set->runs[i].system;
	return NULL;
}

double report_gain(const struct report_set *set, const char *job, const char *first,
	const char *system, const char *best, double *scratch)
{
	const enum report_metric metric = report_main_metric(set, job, scratch);

	return report_share_of_gain(report_mean(set, job, first, metric, scratch),
		report_mean(set, job, system, metric, scratch),
		report_mean(set, job, best, metric, scratch));
}
