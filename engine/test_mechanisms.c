/* SPDX-License-Identifier: MIT */
/*
 * Each mechanism that lives in the engine has a scenario here: what is seen with it on, and with it
 * off. A mechanism that is removed, or can't be switched off, fails the test of its name.
 */
#include "test_world.h"
#include <stdio.h>
#include <string.h>

typedef uint64_t (*scenario)(struct world *w);

struct mechanism_test {
	enum nb_mechanism mechanism;
	scenario run;
	uint64_t on, off; /* what the scenario answers */
	const char *system;
	const char *also; /* another setting the scenario needs, or NULL */
	uint64_t nodes;
};

/* ---- counting moves ---- */

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

/* ---- faults ---- */

static uint64_t gup_hint_faults(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_fault_by(w, w->t, W_BASE, 1, NB_FAULT_KERNEL);
	return tm_counters(w->m)->numa_hint_faults;
}

static uint64_t split_transfers_arm(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	return w->m->nr_splits * 10 + w->m->last_split_kept_armed;
}

static uint64_t one_fault(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	return (uint64_t)w_fault(w, W_BASE, 1);
}

static uint64_t second_huge_fault(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	return (uint64_t)w_fault(w, W_BASE, 1);
}

static uint64_t shared_page(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	tm_page(w->m, W_MM, W_BASE)->shared = true;
	w_scan(w, 1);
	w_fault(w, W_BASE, 1);
	return (uint64_t)w_fault(w, W_BASE, 1) * 10 + tm_page(w->m, W_MM, W_BASE)->armed;
}

static uint64_t full_target(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	nb_node_watermark(w->m->e, 1, true, 0);
	w_fault(w, W_BASE, 1);
	return (uint64_t)w_fault(w, W_BASE, 1);
}

/* How many of 600 pages may move at once, with a window of 1 MiB = 256 pages. */
static uint64_t migrate_ratelimit(struct world *w)
{
	uint64_t moves = 0;

	w_fill(w, W_BASE, 2 * W_HUGE, false);
	for (uint64_t i = 0; i < 600; i++) {
		w_fault(w, W_BASE + i * W_PAGE, 1);
		moves += w_fault(w, W_BASE + i * W_PAGE, 1) == NB_WHY_MOVE;
	}
	return moves;
}

/* How many of 8 huge pages may move at once, with a window of 2 MiB. */
static uint64_t thp_ratelimit(struct world *w)
{
	uint64_t moves = 0;

	w_fill(w, W_BASE, 8 * W_HUGE, true);
	for (uint64_t i = 0; i < 8; i++) {
		w_fault(w, W_BASE + i * W_HUGE, 1);
		moves += w_fault(w, W_BASE + i * W_HUGE, 1) == NB_WHY_MOVE;
	}
	return moves;
}

/* While a huge page moves from node 0 to 1 a task of node 2 touches it, and touches it again when
 * it has moved. */
static uint64_t thp_keeps_last_nid(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	w_fault(w, W_BASE, 1);
	w_fault(w, W_BASE, 2);
	tm_finish_moves(w->m, NB_MOVE_OK);
	return (uint64_t)w_fault(w, W_BASE, 2);
}

static uint64_t split_keeps_last_nid(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_fault(w, W_BASE, 1);
	w->m->machine.split(w->m, W_MM, W_BASE, true);
	tm_tell_split(w->m, w->mm, W_BASE);
	return (uint64_t)w_fault(w, W_BASE + 7 * W_PAGE, 1);
}

/* ---- policies ---- */

static int set_policy(struct world *w, int mode, uint64_t nodes, bool lazy)
{
	const struct nb_policy p = {.mode = (uint8_t)mode, .nodes = {nodes}};

	return nb_vma_policy(w->m->e, w->mm, W_BASE, W_BASE + W_HUGE, &p, lazy, 0);
}

static uint64_t mpol_local(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	return (uint64_t)-set_policy(w, NB_POLICY_LOCAL, 0, false);
}

static uint64_t mpol_noop(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	return (uint64_t)-set_policy(w, NB_POLICY_NOOP, 0, true);
}

static uint64_t mpol_lazy(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	if (set_policy(w, NB_POLICY_BIND, 2, true) != 0)
		return 0;
	return tm_counters(w->m)->numa_pte_updates;
}

/* ---- scanning ---- */

static uint64_t pages_armed(struct world *w)
{
	w_fill(w, W_BASE, 2 * W_HUGE, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

static uint64_t pages_armed_at_two_nodes(struct world *w)
{
	w_fill(w, W_BASE, 2 * W_HUGE, false);
	w_scan(w, 0);
	w_scan(w, 0);
	const uint64_t on_one = tm_counters(w->m)->numa_pte_updates;

	w_scan(w, 1);
	return on_one * 10 + (tm_counters(w->m)->numa_pte_updates > 0);
}

static uint64_t one_window_of_4_mib(struct world *w)
{
	w_fill(w, W_BASE, 8 * W_HUGE, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

/* The first half is absent: a window of addresses finds less. */
static uint64_t half_absent(struct world *w)
{
	w_map(w, W_BASE, 4 * W_HUGE);
	tm_populate(w->m, W_MM, W_BASE + W_HUGE, W_BASE + 4 * W_HUGE, 0, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

static uint64_t small_vma(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE - W_PAGE, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

/* Windows over one huge page that nobody touches: the second one finds it armed. */
static uint64_t scan_counts_huge(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, true);
	w_scan(w, 0);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

/* The first millisecond of run time at which a scan runs. */
static uint64_t scan_delay(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	for (uint64_t ms = 1; ms < 5000; ms++) {
		w->m->now_ns = ms * MS;
		w_tick(w, w->t, ms * MS, 0);
		if (tm_counters(w->m)->numa_scans > 0)
			return ms;
	}
	return 0;
}

/* Milliseconds from the first scan to the second one. */
static uint64_t scan_half_rate(struct world *w)
{
	uint64_t first = 0;

	w_fill(w, W_BASE, W_HUGE, false);
	for (uint64_t ms = 4; ms < 5000; ms += 4) {
		const uint64_t before = tm_counters(w->m)->numa_scans;

		w->m->now_ns = ms * MS;
		w_tick(w, w->t, 100 * ms * MS, 0); /* run time is no obstacle */
		if (tm_counters(w->m)->numa_scans == before)
			continue;
		if (first != 0)
			return ms - first;
		first = ms;
	}
	return 0;
}

static uint64_t batch_asked_for(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	return w->m->nr_arms * 10 + w->m->arms[0].pmd_batch;
}

/* A scan by a task of node 1, whose window is used up by 600 pages. */
static uint64_t scan_ratelimit(struct world *w)
{
	w->m->now_ns = 2000 * MS;
	migrate_ratelimit(w);
	w_tick(w, w->t, 2000 * MS, 1);
	return tm_counters(w->m)->numa_scans * 10 + tm_counters(w->m)->numa_scan_skipped_ratelimit;
}

/* The scan period after a fault whose page stayed, and one whose page moved. */
static uint64_t period_after_faults(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	w_fault(w, W_BASE, 1); /* filtered */
	w_fault(w, W_BASE, 1);
	tm_finish_moves(w->m, NB_MOVE_OK);
	return nb_task_scan_period_ms(w->t);
}

static uint64_t scan_reset(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	for (int i = 0; i < 10; i++)
		w_fault(w, W_BASE, 0);
	w_scan(w, 0);
	return nb_task_scan_period_ms(w->t);
}

/* ---- the table ---- */

#define T(NAME, run, on, off, ...)                                                                 \
	{                                                                                          \
		NB_MECH_##NAME, run, on, off, __VA_ARGS__                                          \
	}

static const struct mechanism_test tests[] = {
	T(MIGRATE_STATS, migrate_stats, 11, 0, "moron", NULL, 2),
	T(GUP_HINT_FAULTS, gup_hint_faults, 1, 0, "moron", NULL, 2),
	T(SPLIT_TRANSFERS_ARM, split_transfers_arm, 11, 10, "moron", NULL, 2),
	T(MPOL_LOCAL, mpol_local, 0, 95 /* EOPNOTSUPP */, "moron", NULL, 2),
	T(MPOL_NOOP, mpol_noop, 0, 95, "moron", NULL, 2),
	T(MPOL_LAZY, mpol_lazy, 512, 0, "moron", NULL, 2),
	T(MIGRATE_ON_FAULT, one_fault, NB_WHY_MOVE, NB_WHY_DISABLED, "moron", NULL, 2),
	T(BALANCING, pages_armed, 1024, 0, "moron", NULL, 2),
	T(FORCE, pages_armed, 1024, 0, "balancenuma-v8", NULL, 2),
	T(SCAN_WINDOW, one_window_of_4_mib, 1024, 4096, "moron", "scan_size_mb=4", 2),
	T(SCAN_PRESENT, half_absent, 1024, 512, "moron", "scan_size_mb=4", 2),
	T(SCAN_SKIP_SMALL, small_vma, 0, 511, "moron", NULL, 2),
	T(SCAN_COUNTS_HUGE, scan_counts_huge, 1024, 512, "moron", NULL, 2),
	T(SCAN_DELAY, scan_delay, 1001, 101, "moron", NULL, 2),
	T(SCAN_HALF_RATE, scan_half_rate, 200, 100, "moron", NULL, 2),
	T(MIGRATE_ON_REFERENCE, one_fault, NB_WHY_MOVE, NB_WHY_NO_POLICY, "moron", NULL, 2),
	T(PMD_BATCH, batch_asked_for, 11, 10, "thpmigrate-v5", NULL, 2),
	T(SINGLE_MAPPED, shared_page, NB_WHY_SHARED * 10, NB_WHY_MOVE * 10 + 1, "thpmigrate-v5",
		NULL, 2),
	T(TARGET_WATERMARK, full_target, NB_WHY_TARGET_FULL, NB_WHY_MOVE, "thpmigrate-v5", NULL, 2),
	T(MIGRATE_RATELIMIT, migrate_ratelimit, 257, 600, "thpmigrate-v5", "ratelimit_mb=1", 2),
	T(SCAN_RATELIMIT, scan_ratelimit, 1, 10, "thpmigrate-v5", "ratelimit_mb=1", 2),
	T(SCAN_GROW, period_after_faults, 100 + 8 + 8, 100, "thpmigrate-v5", NULL, 2),
	T(TWO_STAGE_FILTER, one_fault, NB_WHY_FILTERED, NB_WHY_MOVE, "thpmigrate-v5", NULL, 2),
	T(THP_MIGRATION, second_huge_fault, NB_WHY_MOVE, NB_WHY_SPLIT, "thpmigrate-v5", NULL, 2),
	T(SCAN_GROW_SETTLED, period_after_faults, 100 + 40, 100, "adaptscan-v5", NULL, 2),
	T(SCAN_RESET, scan_reset, 100, 500, "adaptscan-v5", NULL, 2),
	T(SECOND_NODE, pages_armed_at_two_nodes, 1, 10241, "delaystart-v5", NULL, 2),
	T(THP_STATS, thp_stats, 1024, 0, "balancenuma-v8", NULL, 2),
	T(THP_LOCAL_STATS, thp_local_stats, 1, 0, "balancenuma-v8", NULL, 2),
	T(THP_KEEPS_LAST_NID, thp_keeps_last_nid, NB_WHY_MOVE, NB_WHY_FILTERED, "balancenuma-v8",
		NULL, 3),
	T(SPLIT_KEEPS_LAST_NID, split_keeps_last_nid, NB_WHY_MOVE, NB_WHY_FILTERED,
		"balancenuma-v8", NULL, 2),
	T(THP_ALLOC_FAIL_STATS, thp_alloc_fail_stats, 512, 0, "balancenuma-v8", NULL, 2),
	T(THP_RATELIMIT, thp_ratelimit, 2, 8, "balancenuma-v8", "ratelimit_mb=2", 2),
};

enum {
	NR_TESTS = sizeof(tests) / sizeof(tests[0]),
};

static uint64_t answer(const struct mechanism_test *t, bool on)
{
	struct world w = w_new(t->system, (unsigned int)t->nodes);
	char setting[96];
	uint64_t got;

	snprintf(setting, sizeof(setting), "%s=%s", nb_mechanism_table[t->mechanism].name,
		on ? "on" : "off");
	w_set(&w, setting);
	if (t->also != NULL)
		w_set(&w, t->also);
	w_start(&w);
	got = t->run(&w);
	w_end(&w);
	return got;
}

static void mechanism(void **state)
{
	const struct mechanism_test *t = *state;

	assert_int_equal(answer(t, true), t->on);
	assert_int_equal(answer(t, false), t->off);
	assert_int_not_equal(t->on, t->off);
}

/* TLB rules are the machine's to keep; it reads them from the configuration. Everything else is
 * tested here. */
static void every_mechanism_is_tested(void **state)
{
	uint64_t tested = NB_BIT(NB_MECH_TLB_LOCAL_FLUSH) | NB_BIT(NB_MECH_TLB_SKIP_INACCESSIBLE) |
			  NB_BIT(NB_MECH_TLB_SKIP_UNCHANGED);

	(void)state;
	for (int i = 0; i < NR_TESTS; i++)
		tested |= NB_BIT(tests[i].mechanism);
	for (int m = 0; m < NB_NR_MECHANISMS; m++)
		if (!(tested & NB_BIT(m)))
			fail_msg("%s has no test", nb_mechanism_table[m].name);
}

int main(void)
{
	struct CMUnitTest all[NR_TESTS + 1] = {cmocka_unit_test(every_mechanism_is_tested)};

	for (int i = 0; i < NR_TESTS; i++)
		all[i + 1] = (struct CMUnitTest){
			.name = nb_mechanism_table[tests[i].mechanism].name,
			.test_func = mechanism,
			.initial_state = (void *)&tests[i],
		};
	return cmocka_run_group_tests_name("mechanisms", all, NULL, NULL);
}
