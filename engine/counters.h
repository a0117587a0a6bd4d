/* SPDX-License-Identifier: MIT */
/*
 * counters: one X-macro, from which the struct, the text, the JSON and the OpenMetrics names come.
 * Names are /proc/vmstat's. Units: pages of 4 KiB, or events.
 */
#ifndef NB_ENGINE_COUNTERS_H
#define NB_ENGINE_COUNTERS_H

#include <stdint.h>

/* X(name, unit, one sentence) */
#define NB_COUNTERS(X)                                                                             \
	X(numa_pte_updates, "pages", "PTEs armed to trap; a huge page counts 512")                 \
	X(numa_huge_pte_updates, "events", "PMDs of huge pages armed")                             \
	X(numa_hint_faults, "events", "hint faults taken; a huge page counts 1")                   \
	X(numa_hint_faults_local, "events", "hint faults whose page was on the toucher's node")    \
	X(numa_pages_migrated, "pages", "pages moved because a hint fault asked; huge = 512")      \
	X(pgmigrate_success, "pages", "pages moved, whatever the reason")                          \
	X(pgmigrate_fail, "pages", "pages whose move was tried and failed")                        \
	X(pgpromote_success, "pages", "pages moved to a faster tier")                              \
	X(pgpromote_candidate, "pages", "pages found hot enough to promote")                       \
	X(pgdemote_kswapd, "pages", "pages moved to a slower tier in the background")              \
	X(pgdemote_direct, "pages", "pages moved to a slower tier by an allocation")               \
	X(thp_fault_alloc, "events", "huge pages allocated by a first touch")                      \
	X(thp_split_page, "events", "huge pages split")                                            \
	X(thp_collapse_alloc, "events", "huge pages put together again")                           \
	X(pgfault, "events", "page faults of any kind")                                            \
	X(numa_scans, "events", "scan windows run")                                                \
	X(numa_scan_pages, "pages", "present pages looked at by scans")                            \
	X(numa_spurious_faults, "events", "faults whose entry was already repaired")               \
	X(numa_filter_refused, "pages", "moves refused by the two-stage filter")                   \
	X(numa_ratelimited, "pages", "moves refused by the migration window")                      \
	X(numa_target_full, "pages", "moves refused because the target was at its watermark")      \
	X(numa_shared_refused, "pages", "moves refused because several processes map the page")    \
	X(numa_policy_refused, "pages", "moves refused by a memory policy")                        \
	X(numa_scan_skipped_ratelimit, "events", "scans skipped while the node was rate-limited")  \
	X(numa_skip_unsuitable, "events", "VMAs skipped: not migratable, or by policy")            \
	X(numa_skip_shared_ro, "events", "VMAs skipped: read-only file mappings")                  \
	X(numa_skip_inaccessible, "events", "VMAs skipped: no rights at all")                      \
	X(numa_skip_scan_delay, "events", "VMAs skipped: younger than scan_delay_ms")              \
	X(numa_skip_pid_inactive, "events", "VMAs skipped: this task did not touch them lately")   \
	X(numa_skip_ignore_pid, "events", "inactive VMAs scanned: a scan of them was begun")       \
	X(numa_skip_seq_completed, "events", "VMAs skipped: done in this scan sequence")           \
	X(numa_task_moves, "events", "tasks moved to another node")                                \
	X(numa_task_swaps, "events", "pairs of tasks that changed places")                         \
	X(numa_page_state_missed, "events", "faults decided without page history: no memory for it")

struct nb_counters {
#define X(name, unit, text) uint64_t name;
	NB_COUNTERS(X)
#undef X
};

enum {
	NB_NR_COUNTERS = sizeof(struct nb_counters) / sizeof(uint64_t),
};

struct nb_counter_info {
	const char *name;
	const char *unit;
	const char *text;
};

/* [NB_NR_COUNTERS], in the order of the struct; struct nb_counters may be read as uint64_t[]. */
extern const struct nb_counter_info nb_counter_table[NB_NR_COUNTERS];

/*
 * Cost figures of the field.
 * autonuma_mmtests: MMTests' "AutoNUMA cost" = (7 pte_updates + 5000 hint_faults + 19
 * pages_migrated) / 1e6, which leaves the copy out. autonuma_full: the model of balancenuma's
 * statistics patch, copy included, with the same constants: Cpte 7, Cnumahint 5000, Ci 19, Cpagerw
 * = Ca + PAGE_SIZE/u = 519, Wnuma 1.2. compaction: 1038 x pgmigrate_success / 1e6.
 */
double nb_cost_autonuma_mmtests(
	uint64_t pte_updates, uint64_t hint_faults, uint64_t pages_migrated);
double nb_cost_autonuma_full(uint64_t pte_updates, uint64_t hint_faults, uint64_t pages_migrated);
double nb_cost_compaction(uint64_t pgmigrate_success);

#endif
