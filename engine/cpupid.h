/* SPDX-License-Identifier: MIT */
/*
 * cpupid: whether a page should follow the task that touched it, from who touched it before and
 * what is known of the task's group (in a kernel: should_numa_migrate_memory; in 3.13
 * mpol_misplaced).
 */
#ifndef NB_ENGINE_CPUPID_H
#define NB_ENGINE_CPUPID_H

#include "machine.h"
#include "pool.h"

/* `last`: who touched the page before this fault, a cpupid. May use up some of the task's
 * deferral. */
bool nb_should_numa_migrate(struct nb_engine *e, const struct nb_fault *f, nb_history last);

#endif
