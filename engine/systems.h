/* SPDX-License-Identifier: MIT */
/*
 * systems: what a system is made of.
 *
 * A mechanism is a thing that is there or not (on/off by name); a tunable is a number with the
 * kernel's name and unit. A system is a row of engine/systems.c: mechanisms and tunables. No other
 * code knows which system it serves: it asks nb_config for mechanisms and tunables.
 */
#ifndef NB_ENGINE_SYSTEMS_H
#define NB_ENGINE_SYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, name, one sentence). Order: the order of the series. */
#define NB_MECHANISMS(X)                                                                           \
	X(TLB_LOCAL_FLUSH, tlb_local_flush,                                                        \
		"a PTE that only gained rights is not flushed elsewhere: remote CPUs take a "      \
		"spurious fault")                                                                  \
	X(TLB_SKIP_INACCESSIBLE, tlb_skip_inaccessible,                                            \
		"no flush when the cleared entry could not have been cached (an armed one)")       \
	X(TLB_SKIP_UNCHANGED, tlb_skip_unchanged,                                                  \
		"no flush when a protection change changed nothing")                               \
	X(MIGRATE_STATS, migrate_stats, "pgmigrate_success and pgmigrate_fail count every move")   \
	X(GUP_HINT_FAULTS, gup_hint_faults,                                                        \
		"get_user_pages on an armed page takes the hint fault; mere lookups do not")       \
	X(SPLIT_TRANSFERS_ARM, split_transfers_arm, "splitting an armed huge page arms its PTEs")  \
	X(MPOL_LOCAL, mpol_local, "MPOL_LOCAL is a policy of its own")                             \
	X(MPOL_NOOP, mpol_noop, "MPOL_NOOP: mbind that leaves the policy as it is")                \
	X(MPOL_LAZY, mpol_lazy,                                                                    \
		"MPOL_MF_LAZY: mbind arms the range; pages move at their next touch")              \
	X(MIGRATE_ON_FAULT, migrate_on_fault, "a hint fault may move its page")                    \
	X(BALANCING, balancing, "the scanner runs: kernel.numa_balancing")                         \
	X(FORCE, force, "scan even where only one node is used")                                   \
	X(SCAN_WINDOW, scan_window,                                                                \
		"scan scan_size_mb at a time from a rotating offset; off: all at once")            \
	X(SCAN_PRESENT, scan_present, "the window counts present pages, not addresses")            \
	X(SCAN_SKIP_SMALL, scan_skip_small, "VMAs smaller than a huge page are not scanned")       \
	X(SCAN_COUNTS_HUGE, scan_counts_huge,                                                      \
		"a huge page that a scan passes counts 512 PTE updates even when it was armed "    \
		"already")                                                                         \
	X(SCAN_DELAY, scan_delay, "the first scan waits for scan_delay_ms of run time")            \
	X(SCAN_HALF_RATE, scan_half_rate, "the next scan is two scan periods away, not one")       \
	X(MIGRATE_ON_REFERENCE, migrate_on_reference,                                              \
		"MORON: the default policy moves a page to the node that touched it")              \
	X(PMD_BATCH, pmd_batch,                                                                    \
		"PTEs of a PMD whose pages share a node are armed and faulted as one")             \
	X(SINGLE_MAPPED, single_mapped,                                                            \
		"pages mapped by several processes are neither armed nor moved")                   \
	X(TARGET_WATERMARK, target_watermark, "no move to a node that is nearly full")             \
	X(MIGRATE_RATELIMIT, migrate_ratelimit,                                                    \
		"moves to a node are limited to ratelimit_mb in migrate_interval_ms")              \
	X(SCAN_RATELIMIT, scan_ratelimit, "no scan by a task whose node is rate-limited")          \
	X(SCAN_GROW, scan_grow,                                                                    \
		"each hint fault lengthens the toucher's scan period; of huge pages, those that "  \
		"moved")                                                                           \
	X(TWO_STAGE_FILTER, two_stage_filter,                                                      \
		"a page moves only if two faults in a row came from the same node")                \
	X(THP_MIGRATION, thp_migration,                                                            \
		"huge pages move whole; off: split, and moved by their PTEs")                      \
	X(SCAN_GROW_SETTLED, scan_grow_settled,                                                    \
		"only faults that did not move a page lengthen the scan period")                   \
	X(SCAN_RESET, scan_reset,                                                                  \
		"the scan period returns to its minimum every scan_period_reset_ms")               \
	X(SECOND_NODE, second_node, "no scan until the address space has run on a second node")    \
	X(THP_STATS, thp_stats, "moves of huge pages are counted, 512 each")                       \
	X(THP_LOCAL_STATS, thp_local_stats, "local hint faults on huge pages are counted")         \
	X(THP_KEEPS_LAST_NID, thp_keeps_last_nid, "last_nid goes along when a huge page moves")    \
	X(SPLIT_KEEPS_LAST_NID, split_keeps_last_nid,                                              \
		"last_nid goes to every part when a huge page splits")                             \
	X(THP_ALLOC_FAIL_STATS, thp_alloc_fail_stats,                                              \
		"no huge page on the target counts as a failed move")                              \
	X(THP_RATELIMIT, thp_ratelimit, "a huge page uses 512 of the migration window, not 1")     \
	X(THP_WAITS, thp_waits,                                                                    \
		"who touches a huge page that is being moved waits, and takes no hint fault")      \
	X(CPUPID, cpupid,                                                                          \
		"the filter remembers node and pid of the last toucher: private faults pass it")   \
	X(KEEPS_CPUPID, keeps_cpupid, "what is remembered of a page goes along when it moves")     \
	X(LOCAL_KEEPS_CPUPID, local_keeps_cpupid,                                                  \
		"a fault on a page of the toucher's own node is not remembered")                   \
	X(WRITE_FORGETS_CPUPID, write_forgets_cpupid,                                              \
		"of a small page that a write moved nothing is remembered")                        \
	X(FAULT_STATS, fault_stats,                                                                \
		"private and shared faults are counted per task and node; each scan sequence "     \
		"halves what was before")                                                          \
	X(NUMA_GROUP, numa_group, "tasks that fault on each other's pages form a numa group")      \
	X(PREFERRED_NODE, preferred_node,                                                          \
		"a task prefers the node with the most faults, of its group where it has one")     \
	X(PREFERRED_INHERITED, preferred_inherited,                                                \
		"a new task prefers the node that the task of its address space prefers which "    \
		"made it")                                                                         \
	X(TASK_NUMA_MIGRATE, task_numa_migrate,                                                    \
		"a task is moved to its preferred node, and tried again while it is not there")    \
	X(TASK_SWAP, task_swap, "where no CPU is idle, tasks of two nodes change places")          \
	X(DEFER_MIGRATE, defer_migrate,                                                            \
		"after a shared page was filtered, migrate_deferred shared ones stay as well")     \
	X(EARLY_MIGRATE, early_migrate,                                                            \
		"first and private faults of a task without a preferred node, or in its first "    \
		"four sequences, pass the filter")                                                 \
	X(GROUP_SPREAD, group_spread,                                                              \
		"shared pages move where the group's CPUs outweigh its memory: 3 to 1, or 4/3 of " \
		"the ratio")                                                                       \
	X(SCAN_ADAPT, scan_adapt,                                                                  \
		"the scan period follows the shares of local and of private faults")               \
	X(SCAN_ADAPT_PRIVATE, scan_adapt_private,                                                  \
		"a high share of private faults, or of local ones, lengthens the scan period")     \
	X(SCAN_RSS, scan_rss, "scan periods are divided by the windows that the memory fills")     \
	X(SCAN_GROUP, scan_group,                                                                  \
		"first and longest scan period grow with a group's tasks and its shared faults")   \
	X(SCAN_STAGGER, scan_stagger,                                                              \
		"the time of a task's next scan moves on by periods, and by two ticks after a "    \
		"scan, so that others have their turn; the first scan of an address space waits "  \
		"for scan_delay_ms")                                                               \
	X(SCAN_EXTENT, scan_extent,                                                                \
		"a window is used up by the extent of what was scanned, once an entry changed")    \
	X(SCAN_VIRTPAGES, scan_virtpages,                                                          \
		"extents without a change use nothing, but a scan passes 8 windows at most")       \
	X(SCAN_MOF_ONLY, scan_mof_only,                                                            \
		"VMAs whose policy does not move pages on faults are not scanned")                 \
	X(SCAN_SKIP_SHARED_RO, scan_skip_shared_ro, "read-only file mappings are not scanned")     \
	X(SCAN_SKIP_INACCESSIBLE, scan_skip_inaccessible,                                          \
		"VMAs without any rights are not scanned")                                         \
	X(SCAN_SINGLE_LOCAL, scan_single_local,                                                    \
		"of an address space with one task, pages on the task's node are not armed")       \
	X(SCAN_COST, scan_cost,                                                                    \
		"a task does not scan again until it has run 32 times as long as its scan took")   \
	X(SCAN_MOVE_RESET, scan_move_reset,                                                        \
		"a task that is taken off its preferred node begins with its first period again")  \
	X(VMA_SCAN_DELAY, vma_scan_delay,                                                          \
		"once the first sequence is over, a new VMA is not scanned for scan_delay_ms")     \
	X(VMA_PIDS, vma_pids,                                                                      \
		"from the third sequence on a task scans only VMAs it faulted in lately")          \
	X(VMA_PIDS_RESET, vma_pids_reset,                                                          \
		"who faulted in a VMA is forgotten in time whether or not it is scanned")          \
	X(VMA_PREV_SEQ, vma_prev_seq, "a VMA is scanned once in a sequence: prev_scan_seq")        \
	X(VMA_PARTIAL, vma_partial, "a VMA whose scan was begun is completed by whoever scans")    \
	X(VMA_FORCE, vma_force,                                                                    \
		"where all that is left is inactive, one VMA is scanned all the same")             \
	X(VMA_STARVING, vma_starving,                                                              \
		"a VMA not scanned for more sequences than there are threads is scanned")          \
	X(VMA_START_SEQ, vma_start_seq,                                                            \
		"the two sequences without conditions begin with the VMA, not the address space")  \
	X(HOME_NODE, home_node,                                                                    \
		"each task has a home node, from early in its life: its faults count for that "    \
		"node, and it is sent back there")                                                 \
	X(SCAN_NEW_VMA, scan_new_vma, "a new VMA sets the scan periods back to their start")       \
	X(SCAN_DOUBLE, scan_double,                                                                \
		"the scan period doubles while a task's faults find their pages in place (four "   \
		"times where all do, a quarter longer where more than 1 in 10 do not), and "       \
		"is the shortest again when 3 in 10 do not, unless less than that moves")

enum nb_mechanism {
#define X(NAME, name, text) NB_MECH_##NAME,
	NB_MECHANISMS(X)
#undef X
		NB_NR_MECHANISMS
};
enum {
	NB_MECHANISM_WORDS = (NB_NR_MECHANISMS + 63) / 64,
};

/* X(NAME, name, unit, default, min, max, one sentence) */
#define NB_TUNABLES(X)                                                                             \
	X(SCAN_DELAY_MS, scan_delay_ms, "ms", 1000, 0, 3600000,                                    \
		"run time before a task's first scan")                                             \
	X(SCAN_PERIOD_MIN_MS, scan_period_min_ms, "ms", 100, 1, 3600000,                           \
		"shortest scan period, of run time")                                               \
	X(SCAN_PERIOD_MAX_MS, scan_period_max_ms, "ms", 5000, 1, 3600000, "longest scan period")   \
	X(SCAN_PERIOD_RESET_MS, scan_period_reset_ms, "ms", 60000, 1, 86400000,                    \
		"time between resets of the scan period")                                          \
	X(SCAN_SIZE_MB, scan_size_mb, "MiB", 256, 1, 1048576, "one scan window")                   \
	X(SCAN_GROW_JIFFIES, scan_grow_jiffies, "jiffies", 10, 0, 100000,                          \
		"what a fault adds to the scan period")                                            \
	X(RATELIMIT_MB, ratelimit_mb, "MiB", 128, 1, 1048576, "migration window: amount per node") \
	X(MIGRATE_INTERVAL_MS, migrate_interval_ms, "ms", 100, 1, 3600000,                         \
		"migration window: length")                                                        \
	X(PTEUPDATE_INTERVAL_MS, pteupdate_interval_ms, "ms", 1000, 0, 3600000,                    \
		"scans go on this long after a limited window closed")                             \
	X(MIGRATE_DEFERRED, migrate_deferred, "faults", 16, 0, 1000000,                            \
		"shared faults that move nothing after one was filtered")                          \
	X(MAX_SCAN_WINDOW_MB_S, max_scan_window_mb_s, "MiB/s", 2560, 1, 1048576,                   \
		"scan periods are never so short that more would be scanned")                      \
	X(LRU_BATCH, lru_batch, "pages", 0, 0, 31,                                                 \
		"the last pages that a CPU made or moved, up to so many, can't be isolated for a " \
		"move until more follow; 0 = all can")                                             \
	X(HOME_PATIENCE_MS, home_patience_ms, "ms", 10000, 1, 3600000,                             \
		"away from its home node for so long, a task's home is where it is")

enum nb_tunable {
#define X(NAME, name, unit, def, min, max, text) NB_TUNE_##NAME,
	NB_TUNABLES(X)
#undef X
		NB_NR_TUNABLES
};

/* Everything a decision depends on besides events. Plain data; copy freely. */
struct nb_config {
	uint64_t mechanisms[NB_MECHANISM_WORDS]; /* bit = enum nb_mechanism */
	int64_t tunables[NB_NR_TUNABLES];
	uint32_t hz; /* the kernel's tick rate: jiffies in the rules are 1/hz s; from the machine */
};

static inline bool nb_has(const struct nb_config *c, enum nb_mechanism m)
{
	return (c->mechanisms[m / 64] >> (m % 64)) & 1;
}

static inline void nb_switch(struct nb_config *c, enum nb_mechanism m, bool on)
{
	c->mechanisms[m / 64] &= ~(UINT64_C(1) << (m % 64));
	c->mechanisms[m / 64] |= (uint64_t)on << (m % 64);
}

static inline int64_t nb_tune(const struct nb_config *c, enum nb_tunable t)
{
	return c->tunables[t];
}

struct nb_mechanism_info {
	const char *name;
	const char *text;
};
struct nb_tunable_info {
	const char *name;
	const char *unit;
	int64_t def, min, max;
	const char *text;
};
extern const struct nb_mechanism_info nb_mechanism_table[NB_NR_MECHANISMS];
extern const struct nb_tunable_info nb_tunable_table[NB_NR_TUNABLES];

struct nb_system; /* a row; opaque outside systems.c */

/* NULL past the end / when no row has this name. */
const struct nb_system *nb_system_at(size_t i);
const struct nb_system *nb_system_find(const char *name);
const char *nb_system_name(const struct nb_system *s);
const char *nb_system_from(
	const struct nb_system *s); /* where it is from: series, version, commit */
const char *nb_system_summary(const struct nb_system *s); /* one sentence */

/* The row's mechanisms and tunables (defaults where the row says nothing); hz = 250 until set. */
void nb_config_from_system(struct nb_config *c, const struct nb_system *s);

/*
 * Apply one "name=value": a mechanism (on/off/1/0/true/false/yes/no) or a tunable (a decimal
 * integer in its range). Returns 0; -ENOENT no such name; -EINVAL not a value of that kind; -ERANGE
 * out of range. On error *c is unchanged and, where `why` is not NULL, why[why_len] gets one
 * sentence naming what was expected.
 */
int nb_config_set(struct nb_config *c, const char *assignment, char *why, size_t why_len);

#endif
