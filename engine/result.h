/* SPDX-License-Identifier: MIT */
/*
 * result: what a run amounted to, on whatever machine. Plain data; filled by a machine, read by
 * report/.
 */
#ifndef NB_ENGINE_RESULT_H
#define NB_ENGINE_RESULT_H

#include <stdbool.h>
#include "counters.h"

/* One point of the time series, for all processes together. The last one is of the end. */
struct nb_sample {
	double time_s;
	double local_share;    /* bytes accessed locally / bytes accessed, since the sample before;
				  NaN: none accessed */
	double bytes;	       /* accessed since the start */
	double scan_period_ms; /* mean over live tasks */
	uint64_t hint_faults, hint_faults_local, pte_updates, pages_migrated; /* since the start */
};

struct nb_result {
	double elapsed_s, user_s, system_s;
	double bytes;	    /* accessed by the program's threads */
	double local_share; /* over the whole run */
	double operations;  /* bytes / size of one operation, or 0 where time is the result */
	bool timed_out;	    /* a time limit came first */
	struct nb_counters counters;
	unsigned int nr_nodes;
	int *node_ids;	       /* [nr_nodes] */
	uint64_t *final_pages; /* [nr_nodes] 4 KiB pages, at the last sample before the first
				  process ended */
	uint32_t nr_samples;
	struct nb_sample *samples; /* [nr_samples] */
	uint64_t *node_pages;	   /* [nr_samples * nr_nodes] */
};

#endif
