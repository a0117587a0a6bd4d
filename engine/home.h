/* SPDX-License-Identifier: MIT */
/*
 * home: each task has a node where it belongs, once it has run long enough for load balancing to
 * have found it a CPU: the one it runs on then, unless that has more tasks than CPUs already.
 * Faults count as its home's, wherever the task happens to run, so that memory does not follow a
 * task that load balancing sends to and fro; and a task that is found elsewhere is sent home. When
 * it is kept away for long, where it is becomes its home.
 *
 * Ticks of a task that is at home cost nothing. For the others all tasks are counted now and then,
 * whatever their number.
 *
 * Only a few samples are needed for that, none to begin with: it suits machines that arm samples.
 *
 * Where the idea is from: the home nodes of Peter Zijlstra's sched/numa series (2012), without its
 * memory statistics.
 */
#ifndef NB_ENGINE_HOME_H
#define NB_ENGINE_HOME_H

#include "machine.h"

/* True when nb_home_tick need not look at this task yet. */
bool nb_home_idle(const struct nb_task *t, uint64_t now_ns);
/* The task was found on this node, with so much run time in all. Returns where it is afterwards. */
int nb_home_tick(
	struct nb_engine *e, struct nb_task *t, uint64_t runtime_ns, int cpu_node, uint64_t now_ns);
/* The task leaves. */
void nb_home_gone(struct nb_engine *e, struct nb_task *t);
/* NULL when sound, else what is wrong. */
const char *nb_home_check(const struct nb_engine *e);
#endif
