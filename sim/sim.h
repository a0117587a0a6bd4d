/* SPDX-License-Identifier: MIT */
/*
 * sim: run one job on one machine under one configuration, and say what came of it.
 */
#ifndef NB_SIM_SIM_H
#define NB_SIM_SIM_H

#include "../engine/counters.h"
#include "../engine/machine.h"
#include "../engine/result.h"
#include "job.h"
#include "model.h"

/* Where pages are put by hand instead of by the system. */
enum sim_pages {
	SIM_PAGES_FIRST_TOUCH, /* as without a placement */
	SIM_PAGES_OWNER, /* with the thread whose slice they are in; what is shared is interleaved
			    as below */
	SIM_PAGES_INTERLEAVE, /* all of them interleaved */
};

/* A static placement: what `best` searches over. */
struct sim_placement {
	int16_t *thread_node; /* [nr_threads] node a thread is kept on; NULL = the scheduler decides
			       */
	enum sim_pages pages;
	bool by_page;	   /* interleave by 4 KiB; else by 2 MiB */
	bool over_all;	   /* interleave over all nodes with memory in the top tier; else over the
			      process's nodes */
	bool by_bandwidth; /* weighted by the nodes' bandwidth; else in turn */
};

struct sim_options {
	uint64_t seed;
	double sample_interval_s; /* 0 = 1 s, doubled as often as needed to keep at most 1,000
				     samples */
	const struct sim_placement *placement;		    /* NULL = the system decides */
	void (*trace)(void *ctx, const struct nb_event *e); /* NULL = none */
	void *trace_ctx;
	/* Called about every 100 ms of real time with simulated seconds; non-zero return = stop
	 * (-EINTR). NULL = none */
	int (*progress)(void *ctx, double simulated_s);
	void *progress_ctx;
	bool check; /* run the deep checkers every simulated second */
};

/* 0 or -errno (-ENOMEM: the host's; -ENOSPC: the simulated machine is out of memory; -EINTR). `why`
 * as elsewhere. */
int sim_run(struct nb_result *out, const struct sim_model *m, const struct sim_load *load,
	const struct nb_config *config, const struct sim_options *options, char *why,
	size_t why_len);
void nb_result_free(struct nb_result *r);

/*
 * The best static placement found: runs candidates, returns the fastest's result and description
 * (in `chosen`, SIM_TEXT bytes). An upper bound on any policy as far as the search went;
 * deterministic by seed.
 */
int sim_best(struct nb_result *out, char *chosen, const struct sim_model *m,
	const struct sim_load *load, const struct sim_options *options, char *why, size_t why_len);

#endif
