/* SPDX-License-Identifier: MIT */
/*
 * sim_fixture: a machine, a job and a system from text, run whole or opened as a world that a test
 * steps through and looks into. Functions fail the running cmocka test.
 */
#ifndef NB_SIM_SIM_FIXTURE_H
#define NB_SIM_SIM_FIXTURE_H

#include "world.h"

/* A machine on which nothing happens but the job: for the end of a machine file. */
#define SIM_QUIET "[scheduler]\nwander_per_min = 0\nsteal_per_s = 0\n"
#define SIM_FOUR  "[machine]\ntopology = 4 nodes x 1 cpu x 256M\n" SIM_QUIET

enum { SIM_MB2 = 2 << 20 };

#define assert_ns(a, b) assert_true(fabs((a) - (b)) < 1e-3)

struct sim_try {
	struct sim_model model;
	struct sim_load load;
	struct nb_config config;
	struct sim_options options;
	struct nb_result result; /* of try_run or try_open */
	struct sim_world w;	 /* of try_open */
	bool opened, ran;
	char why[SIM_TEXT];
};

/*
 * machine: text of a machine file where it has lines, else whatever sim_model_load takes.
 * job: text of a job file where it has lines, else whatever sim_job_load takes.
 */
void try_make(struct sim_try *t, const char *machine, const char *job, const char *system);
/* "name=value" of a mechanism or tunable. */
void try_set(struct sim_try *t, const char *assignment);
/* sim_run with everything checked each simulated second; its error. */
int try_run(struct sim_try *t);
/* try_run that must succeed. */
void try_run_well(struct sim_try *t);
void try_free(struct sim_try *t);

/* A world before its first tick. */
void try_open(struct sim_try *t);
void try_tick(struct sim_try *t);
/* Tick until `seconds` of simulated time have passed, or all processes are done. */
void try_until(struct sim_try *t, double seconds);
/* Every checker of the world. */
void try_check(struct sim_try *t);

/* The whole in one: make, run, compare nothing; the caller frees t. */
void try_job(struct sim_try *t, const char *machine, const char *job, const char *system);

/*
 * Four nodes of 256M and a process with one thread on each, which leaves memory alone: the test
 * touches for it. `area`: size=... of its area; `set`: as try_set, or NULL. One tick has passed.
 */
void try_open_nodes(struct sim_try *t, const char *area, const char *system, const char *set);
/* The thread touches [offset, end) of the first area, inside one block; ns of kernel work. */
double try_touch(struct sim_try *t, int thread, uint64_t offset, uint64_t end);
/* mbind(MPOL_MF_LAZY | MPOL_NOOP) by the first process: arms that part of its first area and
 * changes nothing else; ns of kernel work. */
double try_arm(struct sim_try *t, uint64_t start, uint64_t end);
/* Of a page of the first area: its node, -1 = absent. */
int try_node_of(const struct sim_try *t, uint64_t offset);
bool try_is_armed(const struct sim_try *t, uint64_t offset);
const struct nb_counters *try_counters(const struct sim_try *t);

/* Pages that areas have, as counted entry by entry. */
uint64_t try_pages(const struct sim_try *t);

#endif
