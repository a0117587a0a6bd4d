/* SPDX-License-Identifier: MIT */
#include "counters.h"

const struct nb_counter_info nb_counter_table[NB_NR_COUNTERS] = {
#define X(name, unit, text) {#name, unit, text},
	NB_COUNTERS(X)
#undef X
};

/*
 * Units of the model are words (u = sizeof(void *)): Ca = sizeof(struct page) / u = 7, Cnumahint =
 * 5000, Ci = Ca + Wi = 7 + 12 = 19, Cpagerw = Ca + PAGE_SIZE / u = 519. A million of them is one
 * unit of cost.
 */
static const double CPTE = 7, CNUMAHINT = 5000, CI = 19, CPAGERW = 519, WNUMA = 1.2, UNIT = 1e6;

double nb_cost_autonuma_mmtests(uint64_t pte_updates, uint64_t hint_faults, uint64_t pages_migrated)
{
	return (CPTE * (double)pte_updates + CNUMAHINT * (double)hint_faults +
		       CI * (double)pages_migrated) /
	       UNIT;
}

double nb_cost_autonuma_full(uint64_t pte_updates, uint64_t hint_faults, uint64_t pages_migrated)
{
	const double copy = CPAGERW + CPAGERW * WNUMA + CI + CI * WNUMA;

	return nb_cost_autonuma_mmtests(pte_updates, hint_faults, pages_migrated) +
	       copy * (double)pages_migrated / UNIT;
}

double nb_cost_compaction(uint64_t pgmigrate_success)
{
	return 1038 * (double)pgmigrate_success / UNIT;
}
