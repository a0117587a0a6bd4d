/* SPDX-License-Identifier: MIT */
/*
 * stats: what faults say about a task: how many pages it faulted on, by node of the memory and node
 * of the CPU, private or shared (in a kernel: p->numa_faults). A fault is private when the same
 * task touched the page last, as far as 8 bits of its pid tell, or nobody did.
 *
 * Faults are collected in buffers. When the address space has begun another scan sequence they are
 * entered: what was there is halved, and the buffer added. A task's numbers are part of its
 * group's.
 *
 * Where the idea is from: task_numa_fault and task_numa_placement, Linux 3.13. One thing is left
 * out: CPU faults are weighed there by the share of time that a task ran.
 */
#ifndef NB_ENGINE_STATS_H
#define NB_ENGINE_STATS_H

#include "machine.h"
#include "pool.h"

/* Kinds of counts; the first two are what groups have. */
enum nb_stat {
	NB_STAT_MEM, /* by node of the memory */
	NB_STAT_CPU, /* by node of the CPU; weighed, 65536 a task and sequence */
	NB_NR_GROUP_STATS,
	NB_STAT_MEM_BUFFER = NB_NR_GROUP_STATS,
	NB_STAT_CPU_BUFFER,
	NB_NR_STATS
};

/* In struct nb_task.locality, pages since the scan period was last adapted. */
enum nb_locality { NB_REMOTE, NB_LOCAL, NB_MOVED, NB_FAILED, NB_NR_LOCALITIES };

/* Slot of a count; priv is 0 or 1. */
static inline size_t nb_stat_slot(unsigned int nr_nodes, enum nb_stat kind, int node, int priv)
{
	return ((size_t)kind * nr_nodes + (size_t)node) * 2 + (size_t)priv;
}

/* Private and shared ones of a node. */
static inline uint64_t nb_stat_node(
	const uint64_t *faults, unsigned int nr_nodes, enum nb_stat kind, int node)
{
	const size_t slot = nb_stat_slot(nr_nodes, kind, node, 0);

	return faults[slot] + faults[slot + 1];
}

/* Room for a task's counts; 0 or -ENOMEM. Not inside a fault. */
int nb_stats_init(struct nb_engine *e, struct nb_task *t);
void nb_stats_free(struct nb_engine *e, struct nb_task *t);

/*
 * A fault of a task with statistics was dealt with: `last` is who touched the page before it, `v`
 * what was decided. Enters it, and from time to time (at most once in a 16th of the scan period)
 * has the task placed.
 */
void nb_numa_fault(
	struct nb_engine *e, const struct nb_fault *f, nb_history last, struct nb_verdict v);

/* Pages that a fault of this task asked to move did not. */
void nb_numa_move_failed(struct nb_task *t, uint32_t pages);

/*
 * Enter what was collected into the task's and its group's counts. Fills shared[2]: shared ([0])
 * and private ([1]) faults since the last time. Returns the node with the most faults, of the group
 * where there is one; NB_NO_NODE when there were none.
 */
int nb_stats_decay(struct nb_engine *e, struct nb_task *t, uint64_t by_kind[2]);

#endif
