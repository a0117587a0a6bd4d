/* SPDX-License-Identifier: MIT */
/*
 * plan: which runs `numabal sim` is to make: jobs x systems x iterations on one machine, and what
 * came of each.
 *
 * Everything a run needs is resolved here before the first one starts, so that a mistake in the
 * last job is refused at once. The order of runs is job, system, iteration; so is the order in
 * every report.
 */
#ifndef NB_CLI_PLAN_H
#define NB_CLI_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "../report/run.h"
#include "../sim/sim.h"

struct plan_system {
	char name[SIM_NAME];
	bool best; /* no row, but the best static placement that a search finds */
	struct nb_config config;
};

struct plan_job {
	char name[SIM_TEXT]; /* as in the reports: the job's name, with the variables it was given
			      */
	struct sim_job *job;
	struct sim_load load;
};

struct plan {
	struct sim_model model;
	bool has_model;
	size_t nr_systems, nr_jobs;
	struct plan_system *systems;
	struct plan_job *jobs;
	unsigned int iterations;
	uint64_t seed;
	/* One per run, made by plan_runs. */
	size_t nr_runs;
	struct report_run *runs;
	struct nb_result *results;
	char (*chosen)[SIM_TEXT]; /* what `best` chose */
};

/* All return 0 or -errno with one line in `why`. Lists are names separated by commas. */
int plan_set_machine(struct plan *p, const char *source, char *why, size_t why_len);
int plan_add_systems(struct plan *p, const char *list, char *why, size_t why_len);
/* One "name=value" for every system that has a configuration. */
int plan_set(struct plan *p, const char *assignment, char *why, size_t why_len);
/* After plan_set_machine. A comma before "name=" goes on with the variables of the job before it.
 */
int plan_add_jobs(struct plan *p, const char *list, char *why, size_t why_len);
/* Lay out the runs; then runs[i] may be run by plan_run. */
int plan_runs(struct plan *p, unsigned int iterations, uint64_t seed);

struct plan_at {
	size_t job, system;
	unsigned int iteration; /* from 0 */
};
struct plan_at plan_at(const struct plan *p, size_t i);

/* Do run i. Different i may be done at the same time. `options`: seed is filled in here. */
int plan_run(struct plan *p, size_t i, struct sim_options options, char *why, size_t why_len);

/*
 * The seed of a run: of the seed given, the job's name and the iteration, never of the system, so
 * that every system meets the same random stream. Below 2^53: JSON readers keep it whole.
 */
uint64_t plan_seed(uint64_t seed, const char *job, unsigned int iteration);

void plan_free(struct plan *p);

#endif
