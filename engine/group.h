/* SPDX-License-Identifier: MIT */
/*
 * group: numa groups, tasks that fault on each other's pages and are placed together (in a kernel:
 * struct numa_group). A task has a group from its first shared fault on: its own, until it joins a
 * larger one.
 *
 * Groups are taken from a reserve that holds as many as there are tasks, so that a fault needs no
 * memory. A group lives as long as tasks are in it.
 */
#ifndef NB_ENGINE_GROUP_H
#define NB_ENGINE_GROUP_H

#include "machine.h"
#include "stats.h"

struct nb_group {
	struct nb_group *next; /* in the reserve */
	uint64_t number;       /* order of creation; the older of two equals is joined */
	uint32_t gid;	       /* id of the task that began it */
	uint32_t nr_tasks;
	uint32_t active_nodes; /* with at least a third of the CPU faults of the busiest one */
	uint64_t max_cpu;      /* CPU faults of that one */
	uint64_t total_faults; /* memory faults of all its tasks */
	uint64_t faults[];     /* [NB_NR_GROUP_STATS][nr_nodes][2]: sums over its tasks */
};

struct nb_groups {
	struct nb_group *reserve;
	uint32_t nr;   /* groups there are, in use and in reserve */
	uint64_t made; /* groups that were ever begun */
};

enum {
	/* A node is active with more than this part of the busiest node's CPU faults. */
	NB_ACTIVE_NODE_FRACTION = 3,
};

/* A task more is coming / went: as many groups as tasks. 0 or -ENOMEM. Not inside a fault. */
int nb_groups_grow(struct nb_engine *e);
void nb_groups_shrink(struct nb_engine *e);
void nb_groups_free(struct nb_engine *e);

/*
 * A page was touched by this task after `last` did. The task begins a group where it has none, and
 * may join that of the other one, if it is known still: always within one address space, else
 * where several processes map the page (`shared`). Returns whether the fault counts as private:
 * where the two should have joined and did not, because of a likeness of pids alone, it does.
 */
bool nb_group_meet(struct nb_engine *e, struct nb_task *t, nb_history last, bool shared);
void nb_group_leave(struct nb_engine *e, struct nb_task *t);

/* Count its active nodes anew. */
void nb_group_count_active(const struct nb_engine *e, struct nb_group *g);
bool nb_group_active(const struct nb_engine *e, const struct nb_group *g, int node);

const char *nb_groups_check(const struct nb_engine *e);

#endif
