/* SPDX-License-Identifier: MIT */
/*
 * task: what is kept of a task: its policy, and how often it scans.
 *
 * The scan period is run time. It starts as the scan delay, becomes the minimum when that is over,
 * grows with hint faults (scan_grow, scan_grow_settled) and returns to the minimum now and then
 * (scan_reset).
 */
#ifndef NB_ENGINE_TASK_H
#define NB_ENGINE_TASK_H

#include "machine.h"
#include "stats.h"

struct nb_task {
	struct nb_mm *mm;	/* NULL once the address space is gone */
	uint64_t node_stamp_ns; /* run time when the period was last over; 0 = never yet */
	uint32_t scan_period_ms;
	uint32_t id;
	struct nb_policy policy; /* set_mempolicy; NB_POLICY_DEFAULT = none */
	/* fault statistics; faults is NULL in rows without */
	uint64_t *faults;      /* [NB_NR_STATS][nr_nodes][2]: nb_stat_slot */
	uint64_t total_faults; /* of NB_STAT_MEM */
	uint64_t locality[NB_NR_LOCALITIES];
	struct nb_group *group; /* NULL = none yet */
	uint64_t retry_j;	/* jiffies: not placed again before */
	uint32_t scan_seq;	/* of the address space, when its faults were last entered */
	uint32_t period_max_ms;
	uint32_t deferred;	/* shared faults that are to move nothing */
	int16_t preferred;	/* node, or NB_NO_NODE */
	int16_t cpu_node;	/* where it was last seen, or NB_NO_NODE */
	int16_t home;		/* where it belongs, or NB_NO_NODE */
	bool resident;		/* counted among those of its home; it ran lately */
	bool hurried_in_vain;	/* scan_double: faults far from home that may not move */
	uint32_t next_intruder; /* id of the next one on the node it runs on, 0 = none */
	uint32_t hurries;	/* of the address space, when its scan period was last set back */
	bool faulted;		/* it took a hint fault that was entered */
	uint64_t first_seen_ns;
	uint64_t seen_ns;      /* running, last; 0 = it sleeps */
	uint64_t home_look_ns; /* not looked at before */
	uint64_t away_ns;      /* away from home since; 0 = at home */
	uint64_t returns_ns;   /* since when `returns` are counted */
	uint64_t return_ns;    /* the last that was */
	uint32_t returns;      /* so often it was brought home, those close together once */
};

/* What is kept of it. */
void nb_task_free(struct nb_engine *e, struct nb_task *t);

/* The task with this id, or NULL. */
struct nb_task *nb_task_by_id(const struct nb_engine *e, uint32_t id);

/* Traces the change, if it is one. */
void nb_task_set_period(
	struct nb_engine *e, struct nb_task *t, uint32_t period_ms, uint64_t now_ns);

/* A fault of this task was dealt with: its page moved or not. Lengthens the scan period as the row
 * has it. */
void nb_task_fault_done(
	struct nb_engine *e, struct nb_task *t, bool huge, bool moved, uint64_t now_ns);

#endif
