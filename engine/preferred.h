/* SPDX-License-Identifier: MIT */
/*
 * preferred: where a task should run: on the node of most of its faults (of its group's, where it
 * is in one), and how it gets there: to an idle CPU, or in exchange for a task that loses less than
 * is won.
 *
 * Where the idea is from: task_numa_placement, numa_migrate_preferred and task_numa_migrate of
 * Linux. Left out: the search among nodes at several hops (node distances count for nothing here).
 */
#ifndef NB_ENGINE_PREFERRED_H
#define NB_ENGINE_PREFERRED_H

#include "machine.h"

/*
 * Once in a scan sequence: enter the task's faults, choose its preferred node, adapt its scan
 * period. Each time: where it does not run there, try to move it. Sets the time of the next try: a
 * 16th of the scan period, at most a second.
 */
void nb_task_place(struct nb_engine *e, struct nb_task *t, uint64_t now_ns);

#endif
