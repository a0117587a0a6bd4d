/* SPDX-License-Identifier: MIT */
/* First touches, hint faults, moves and splits: where pages end up, what is counted, what it costs.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim_fixture.h"

/* ---- arming ---- */

static void test_only_present_pages_are_armed(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=16M thp=never", "balancenuma-v8", NULL);
	try_touch(&t, 0, 4096 * 10, 4096 * 20);
	try_touch(&t, 0, 3 * SIM_MB2, 4 * SIM_MB2);
	try_arm(&t, 0, 16 << 20);
	assert_int_equal(try_counters(&t)->numa_pte_updates, 10 + 512);
	assert_int_equal(t.w.areas[0].blocks[0].armed, 10);
	/* What was armed is not armed again. */
	try_arm(&t, 0, 16 << 20);
	assert_int_equal(try_counters(&t)->numa_pte_updates, 10 + 512);
	/* A part of a block that is alike. */
	try_touch(&t, 0, 3 * SIM_MB2, 4 * SIM_MB2);
	try_arm(&t, 3 * SIM_MB2 + 4096, 3 * SIM_MB2 + 4096 * 5);
	assert_int_equal(try_counters(&t)->numa_pte_updates, 10 + 512 + 4);
	for (uint64_t k = 0; k < 6; k++)
		assert_int_equal(try_is_armed(&t, 3 * SIM_MB2 + 4096 * k), k >= 1 && k < 5);
	try_check(&t);
	try_free(&t);
}

static void test_pages_that_others_map_too_are_passed_over(void **state)
{
	(void)state;
	for (int single = 0; single < 2; single++) {
		struct sim_try t;

		try_make(&t, SIM_FOUR,
			"[p]\ninstances = 2\narea = a size=4M shared\nphase = sweep area=a\n"
			"phase = compute time=10\n",
			"balancenuma-v8");
		try_set(&t, single ? "single_mapped=on" : "single_mapped=off");
		try_open(&t);
		try_until(&t, 0.2);
		assert_int_equal(t.w.areas[0].mappings, 2);
		assert_int_equal(t.w.nr_areas, 1);
		assert_int_equal(try_pages(&t), 1024);
		try_arm(&t, 0, 4 << 20);
		assert_int_equal(try_counters(&t)->numa_pte_updates, single ? 0 : 1024);
		try_free(&t);
	}
}

struct scans {
	uint64_t next, armed;
	uint32_t requests;
	bool gap, too_much;
};

static void note_scan(void *ctx, const struct nb_event *e)
{
	struct scans *s = ctx;

	if (e->type != NB_EVENT_SCAN_ARM)
		return;
	/* Round and round. */
	s->gap = s->gap || (s->requests && e->addr != s->next && e->addr > s->next);
	s->too_much = s->too_much || e->arg > 512;
	s->next = e->addr + SIM_MB2;
	s->armed += e->pages;
	s->requests++;
}

/* A window of present pages ends at the huge-page boundary where it is full, and the next one
 * begins there. */
static void test_a_scan_window_ends_where_it_is_full(void **state)
{
	struct scans seen = {0};
	struct sim_try t;

	(void)state;
	try_make(&t, SIM_FOUR,
		"[p]\nthreads = 2\ncpus = node:thread\narea = a size=32M thp=never\n"
		"phase = main sweep area=a\nphase = compute time=8\n",
		"balancenuma-v8");
	try_set(&t, "scan_size_mb=2");
	t.options.trace = note_scan;
	t.options.trace_ctx = &seen;
	try_run_well(&t);
	assert_true(seen.requests >= 16);
	assert_false(seen.gap);
	assert_false(seen.too_much);
	/* All of it once; nobody touches it again. */
	assert_int_equal(seen.armed, 8192);
	try_free(&t);
}

/* ---- what TLB rules save ---- */

static void test_arming_costs_its_entries_and_one_flush(void **state)
{
	struct sim_try t;
	double flush;

	(void)state;
	try_open_nodes(&t, "size=8M thp=never", "balancenuma-v8", NULL);
	flush = t.model.tlb_flush_local + 3 * t.model.tlb_flush_remote;
	try_touch(&t, 0, 0, SIM_MB2);
	assert_ns(try_arm(&t, 0, 8 << 20), 512 * t.model.pte_update + flush);
	/* Nothing changes: nothing is flushed. */
	assert_ns(try_arm(&t, 0, 8 << 20), 512 * t.model.scan_page);
	try_free(&t);

	try_open_nodes(&t, "size=8M", "balancenuma-v8", NULL);
	try_touch(&t, 0, 0, SIM_MB2);
	assert_ns(try_arm(&t, 0, 8 << 20), t.model.pte_update + flush); /* a PMD */
	assert_ns(try_arm(&t, 0, 8 << 20), t.model.scan_page);
	try_free(&t);
}

static void test_tlb_skip_unchanged_saves_a_flush(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=8M thp=never", "balancenuma-v8", "tlb_skip_unchanged=off");
	try_touch(&t, 0, 0, SIM_MB2);
	try_arm(&t, 0, 8 << 20);
	assert_ns(try_arm(&t, 0, 8 << 20),
		512 * t.model.scan_page + t.model.tlb_flush_local + 3 * t.model.tlb_flush_remote);
	try_free(&t);
}

/* What one fault that moves its page costs more without each of the rules. */
static void test_tlb_rules_save_a_flush_for_each_fault_and_each_move(void **state)
{
	static const char *const areas[] = {"size=2M", "size=2M thp=never"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		double ns[4];
		double flush = 0;

		for (int off = 0; off < 4; off++) {
			struct sim_try t;

			try_open_nodes(&t, areas[k], "balancenuma-v8", "two_stage_filter=off");
			if (off & 1)
				nb_switch(&t.w.config, NB_MECH_TLB_LOCAL_FLUSH, false);
			if (off & 2)
				nb_switch(&t.w.config, NB_MECH_TLB_SKIP_INACCESSIBLE, false);
			try_touch(&t, 0, 0, SIM_MB2);
			try_tick(&t);
			try_arm(&t, 0, 4096 * (k ? 1 : 512));
			ns[off] = sim_touch_page(&t.w, &t.w.threads[1], 0, NB_FAULT_WRITE);
			assert_int_equal(try_node_of(&t, 0), 1);
			flush = t.model.tlb_flush_local + 3 * t.model.tlb_flush_remote;
			try_free(&t);
		}
		assert_ns(ns[1] - ns[0], flush);
		assert_ns(ns[2] - ns[0], flush);
		assert_ns(ns[3] - ns[0], 2 * flush);
	}
}

/* Threads that sweep a block together when one of them repairs its entry: with the rule the others
 * take a spurious fault, without it they are interrupted. */
static void test_a_flush_saved_is_a_spurious_fault(void **state)
{
	const char job[] = "[p]\nthreads = 4\ncpus = node:thread\narea = a size=64M\n"
			   "phase = sweep area=a time=20\n";
	struct nb_result with, without;
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR, job, "balancenuma-v8");
	with = t.result;
	assert_true(with.counters.numa_hint_faults > 50);
	assert_true(with.counters.numa_spurious_faults > 0);
	try_set(&t, "tlb_local_flush=off");
	t.ran = false;
	try_run_well(&t);
	without = t.result;
	assert_int_equal(without.counters.numa_spurious_faults, 0);
	nb_result_free(&with);
	try_free(&t);
}

/* Who computes by now holds no entry of the block it swept before. */
static void test_only_sweeps_take_spurious_faults(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=2M", "balancenuma-v8", NULL);
	try_touch(&t, 0, 0, SIM_MB2);
	try_tick(&t);
	try_arm(&t, 0, SIM_MB2);
	try_touch(&t, 0, 0, SIM_MB2); /* in place: repaired, not moved */
	assert_int_equal(try_counters(&t)->numa_hint_faults, 1);
	assert_int_equal(try_counters(&t)->numa_spurious_faults, 0);
	for (int i = 1; i < 4; i++)
		assert_true(t.w.threads[i].debt_ns == 0);
	try_free(&t);
}

/* Share of a CPU, with scans that do not slow down. */
static double system_time(const char *job, const char *set)
{
	struct sim_try t;
	double s;

	try_make(&t, SIM_FOUR, job, "balancenuma-v8");
	try_set(&t, "scan_period_max_ms=100");
	if (set)
		try_set(&t, set);
	try_run_well(&t);
	s = t.result.system_s / t.result.elapsed_s;
	try_free(&t);
	return s;
}

static void test_whole_jobs_spend_more_system_time_without_each_rule(void **state)
{
	/* Slices move to their threads at first, then every scan arms all of it anew. */
	const char job[] = "[p]\nthreads = 4\ncpus = node:thread\narea = a size=128M thp=never\n"
			   "phase = main sweep area=a\nphase = sweep area=a slice=own time=20\n";
	/* Nobody touches most of it: scans find armed what they armed before. */
	const char idle[] = "[p]\nthreads = 4\ncpus = node:thread\narea = a size=128M thp=never\n"
			    "phase = main sweep area=a\nphase = compute time=20\n";
	const double all = system_time(job, NULL), all_idle = system_time(idle, NULL);

	(void)state;
	assert_true(system_time(job, "tlb_local_flush=off") > all * 1.01);
	assert_true(system_time(job, "tlb_skip_inaccessible=off") > all * 1.01);
	assert_true(system_time(idle, "tlb_skip_unchanged=off") > all_idle * 1.001);
	assert_true(system_time(job, "pmd_batch=off") > all * 1.01);
}

/* ---- the kernel's accesses, and lookups ---- */

static const char kernel_job[] =
	"[p]\nthreads = 4\ncpus = node:thread\narea = a size=32M thp=%s\n"
	"phase = main sweep area=a\nphase = %s area=a slice=own time=5 %s\n";

static void run_accesses(
	struct sim_try *t, const char *thp, const char *kind, const char *word, const char *set)
{
	char job[256];

	snprintf(job, sizeof(job), kernel_job, thp, kind, word);
	try_make(t, SIM_FOUR, job, "balancenuma-v8");
	if (set)
		try_set(t, set);
	try_run_well(t);
}

static void test_the_kernels_accesses_take_hint_faults_only_by_gup_hint_faults(void **state)
{
	static const char *const thp[] = {"always", "never"};
	static const char *const kinds[] = {"sweep", "uniform"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct sim_try t;

		run_accesses(&t, thp[k & 1], kinds[k >> 1], "kernel", NULL);
		assert_true(t.result.counters.numa_hint_faults > 0);
		assert_true(t.result.counters.numa_pages_migrated > 0);
		try_free(&t);
		run_accesses(&t, thp[k & 1], kinds[k >> 1], "kernel", "gup_hint_faults=off");
		assert_true(t.result.counters.numa_pte_updates > 0);
		assert_int_equal(t.result.counters.numa_hint_faults, 0);
		assert_int_equal(t.result.counters.numa_pages_migrated, 0);
		try_free(&t);
		/* The program's own accesses do not care. */
		run_accesses(&t, thp[k & 1], kinds[k >> 1], "", "gup_hint_faults=off");
		assert_true(t.result.counters.numa_hint_faults > 0);
		try_free(&t);
	}
}

static void test_lookups_never_disturb(void **state)
{
	static const char *const thp[] = {"always", "never"};
	static const char *const kinds[] = {"sweep", "uniform"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct sim_try t;
		uint64_t pages = 0;

		run_accesses(&t, thp[k & 1], kinds[k >> 1], "lookup", NULL);
		assert_true(t.result.bytes > 1e9); /* it did look */
		/* Every page was armed once, and stayed so. */
		assert_int_equal(t.result.counters.numa_hint_faults, 0);
		assert_int_equal(t.result.counters.numa_pages_migrated, 0);
		assert_true(t.result.counters.numa_pte_updates >= 8192);
		for (int n = 1; n < 4; n++)
			pages += t.result.final_pages[n];
		assert_int_equal(pages, 0);
		try_free(&t);
	}
}

static void test_an_entry_that_was_looked_up_stays_armed(void **state)
{
	static const uint32_t flags[] = {NB_FAULT_LOOKUP, NB_FAULT_KERNEL};
	static const char *const areas[] = {"size=2M", "size=2M thp=never"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct sim_try t;
		struct nb_counters before;

		try_open_nodes(&t, areas[k & 1], "balancenuma-v8", "gup_hint_faults=off");
		try_touch(&t, 0, 0, SIM_MB2);
		try_tick(&t);
		try_arm(&t, 0, SIM_MB2);
		before = *try_counters(&t);
		assert_ns(sim_touch_page(&t.w, &t.w.threads[1], 4096, flags[k >> 1]), 0);
		assert_ns(sim_touch_block(&t.w, &t.w.threads[1], 0, SIM_MB2, flags[k >> 1]), 0);
		assert_memory_equal(&before, try_counters(&t), sizeof(before));
		assert_int_equal(t.w.areas[0].blocks[0].armed, 512);
		/* Then somebody who means it. */
		sim_touch_page(&t.w, &t.w.threads[1], 4096, NB_FAULT_WRITE);
		assert_true(try_counters(&t)->numa_hint_faults > 0);
		try_free(&t);
	}
}

/* Random accesses that pass armed entries by must cost no event each. */
static void test_looking_at_armed_memory_is_not_simulated_access_by_access(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=4M", "balancenuma-v8", NULL);
	for (int lookup = 0; lookup < 2; lookup++) {
		const struct sim_phase phase = {.kind = SIM_PHASE_UNIFORM, .lookup = lookup};
		const struct sim_region *r =
			sim_region_get(&t.w, &t.w.areas[0], 0, 2 * SIM_MB2, &phase);

		try_touch(&t, 0, 0, SIM_MB2);
		try_touch(&t, 0, SIM_MB2, 2 * SIM_MB2);
		try_arm(&t, 0, 2 * SIM_MB2);
		assert_true(fabs(r->wants - (lookup ? 0 : 1)) < 1e-9);
	}
	try_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_present_pages_are_armed),
		cmocka_unit_test(test_pages_that_others_map_too_are_passed_over),
		cmocka_unit_test(test_a_scan_window_ends_where_it_is_full),
		cmocka_unit_test(test_arming_costs_its_entries_and_one_flush),
		cmocka_unit_test(test_tlb_skip_unchanged_saves_a_flush),
		cmocka_unit_test(test_tlb_rules_save_a_flush_for_each_fault_and_each_move),
		cmocka_unit_test(test_a_flush_saved_is_a_spurious_fault),
		cmocka_unit_test(test_only_sweeps_take_spurious_faults),
		cmocka_unit_test(test_whole_jobs_spend_more_system_time_without_each_rule),
		cmocka_unit_test(
			test_the_kernels_accesses_take_hint_faults_only_by_gup_hint_faults),
		cmocka_unit_test(test_lookups_never_disturb),
		cmocka_unit_test(test_an_entry_that_was_looked_up_stays_armed),
		cmocka_unit_test(test_looking_at_armed_memory_is_not_simulated_access_by_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
