/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct report_metric_info report_metric_table[REPORT_NR_METRICS] = {
#define X(NAME, name, unit, more) {name, unit, more},
	REPORT_METRICS(X)
#undef X
};

static void add_name(const char **names, size_t *nr, const char *name)
{
	for (size_t i = 0; i < *nr; i++)
		if (!strcmp(names[i], name))
			return;
	names[(*nr)++] = name;
}

int report_axes_init(struct report_axes *axes, const struct report_set *set)
{
	*axes = (struct report_axes){
		.jobs = calloc(set->nr_runs + 1, sizeof(*axes->jobs)),
		.systems = calloc(set->nr_runs + 1, sizeof(*axes->systems)),
	};
	if (!axes->jobs || !axes->systems) {
		report_axes_free(axes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < set->nr_runs; i++) {
		add_name(axes->jobs, &axes->nr_jobs, set->runs[i].job);
		add_name(axes->systems, &axes->nr_systems, set->runs[i].system);
	}
	return 0;
}

void report_axes_free(struct report_axes *axes)
{
	free(axes->jobs);
	free(axes->systems);
	*axes = (struct report_axes){0};
}

static double throughput(const struct nb_result *r)
{
	return r->operations > 0 && r->elapsed_s > 0 ? r->operations / r->elapsed_s : NAN;
}

double report_metric_of(const struct nb_result *result, enum report_metric metric)
{
	switch (metric) {
	case REPORT_USER:
		return result->user_s;
	case REPORT_SYSTEM:
		return result->system_s;
	case REPORT_ELAPSED:
		return result->elapsed_s;
	case REPORT_THROUGHPUT:
		return throughput(result);
	case REPORT_NR_METRICS:
		break;
	}
	return NAN;
}

size_t report_collect(double *values, const struct report_set *set, const char *job,
	const char *system, enum report_metric metric)
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr_runs; i++) {
		const struct report_run *run = &set->runs[i];
		double value;

		if (strcmp(run->job, job) || strcmp(run->system, system))
			continue;
		value = report_metric_of(run->result, metric);
		if (!isnan(value))
			values[nr++] = value;
	}
	return nr;
}

double report_share_of_gain(double first, double value, double best)
{
	return first == best ? NAN : (first - value) / (first - best);
}

const uint64_t *report_counters(const struct nb_result *result)
{
	return (const uint64_t *)&result->counters;
}
