/* SPDX-License-Identifier: MIT */
/* test_counting: what moves count, with each mechanism that decides it: a part of
 * test_mechanisms.c. */
#ifndef NB_ENGINE_TEST_COUNTING_H
#define NB_ENGINE_TEST_COUNTING_H

#include "test_world.h"

static uint64_t migrate_stats(struct world *w)
{
	w_fill(w, W_BASE, 2 * W_HUGE, false);
	w_fault(w, W_BASE, 1);
	tm_finish_moves(w->m, NB_MOVE_OK);
	w_fault(w, W_BASE + W_PAGE, 1);
	tm_finish_moves(w->m, NB_MOVE_BUSY);
	return tm_counters(w->m)->pgmigrate_success * 10 + tm_counters(w->m)->pgmigrate_fail;
}

static uint64_t thp_stats(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	w_fault(w, W_BASE, 1);
	tm_finish_moves(w->m, NB_MOVE_OK);
	return tm_counters(w->m)->numa_pages_migrated + tm_counters(w->m)->pgmigrate_success;
}

static uint64_t thp_local_stats(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 0);
	return tm_counters(w->m)->numa_hint_faults_local;
}

static uint64_t thp_alloc_fail_stats(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	w_fault(w, W_BASE, 1);
	tm_finish_moves(w->m, NB_MOVE_NO_MEMORY);
	return tm_counters(w->m)->pgmigrate_fail;
}

#endif
