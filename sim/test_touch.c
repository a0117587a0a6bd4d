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

/* ---- first touch ---- */

static void test_a_page_appears_where_it_is_touched(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=8M thp=never", "none", NULL);
	for (int i = 0; i < 4; i++) {
		const double ns = sim_touch_page(
			&t.w, &t.w.threads[i], (uint64_t)i * SIM_MB2 + 4096 * 7, NB_FAULT_WRITE);

		assert_ns(ns, t.model.page_fault + 4096 * 1e9 / t.model.clear_rate);
		assert_int_equal(try_node_of(&t, (uint64_t)i * SIM_MB2 + 4096 * 7), i);
	}
	assert_int_equal(try_pages(&t), 4);
	assert_int_equal(try_counters(&t)->pgfault, 4);
	assert_int_equal(try_counters(&t)->thp_fault_alloc, 0);
	/* There already: nothing happens, and it stays. */
	assert_ns(sim_touch_page(&t.w, &t.w.threads[3], 4096 * 7, NB_FAULT_WRITE), 0);
	assert_int_equal(try_node_of(&t, 4096 * 7), 0);
	/* The rest of a block, all at once or a page at a time: the same faults. */
	try_touch(&t, 2, 0, SIM_MB2);
	try_touch(&t, 1, 3 * SIM_MB2, 3 * SIM_MB2 + 8192);
	assert_int_equal(try_counters(&t)->pgfault, 4 + 511 + 2);
	assert_int_equal(t.w.areas[0].node_pages[2], 1 + 511);
	try_check(&t);
	try_free(&t);
}

static void test_an_empty_block_of_small_pages_costs_a_fault_each(void **state)
{
	struct sim_try t;
	double whole, single = 0;

	(void)state;
	try_open_nodes(&t, "size=4M thp=never", "none", NULL);
	whole = try_touch(&t, 0, 0, SIM_MB2);
	for (uint64_t o = SIM_MB2; o < 2 * SIM_MB2; o += 4096)
		single += sim_touch_page(&t.w, &t.w.threads[0], o, NB_FAULT_WRITE);
	assert_true(fabs(whole / single - 1) < 1e-9);
	assert_int_equal(try_counters(&t)->pgfault, 1024);
	try_free(&t);
}

static void test_a_huge_page_appears_where_it_fits(void **state)
{
	struct sim_try t;
	double ns;

	(void)state;
	try_open_nodes(&t, "size=6M offset=64K", "none", NULL);
	/* The first block is 64 KiB short. */
	try_touch(&t, 1, 0, 4096);
	assert_int_equal(try_pages(&t), 1);
	ns = try_touch(&t, 2, SIM_MB2, SIM_MB2 + 4096);
	assert_ns(ns, t.model.page_fault + SIM_MB2 * 1e9 / t.model.clear_rate);
	assert_int_equal(t.w.areas[0].node_pages[2], 512);
	assert_int_equal(try_counters(&t)->thp_fault_alloc, 1);
	assert_int_equal(try_counters(&t)->pgfault, 2);
	try_check(&t);
	try_free(&t);
}

/* While one thread clears a huge page, whoever else wants it waits for that. */
static void test_others_wait_for_a_huge_page_that_is_being_cleared(void **state)
{
	struct sim_try t;
	double ns;

	(void)state;
	try_open_nodes(&t, "size=2M", "none", NULL);
	ns = try_touch(&t, 0, 0, SIM_MB2);
	try_touch(&t, 1, 4096, SIM_MB2);
	assert_ns(t.w.threads[1].wait_until_ns, t.w.now_ns + ns);
	assert_true(t.w.threads[0].wait_until_ns <= t.w.now_ns);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 0);
	try_tick(&t);
	assert_int_equal(t.w.nr_moves, 0); /* 0.5 ms later it is there */
	try_free(&t);
}

static void test_policies_decide_where_pages_appear(void **state)
{
	static const struct {
		const char *area;
		int node[4]; /* of the first four blocks, touched by thread 1 */
	} cases[] = {
		{"size=8M thp=never policy=bind:2..3", {2, 2, 2, 2}},
		{"size=8M thp=never policy=preferred:3", {3, 3, 3, 3}},
		{"size=8M thp=never policy=local", {1, 1, 1, 1}},
		{"size=8M policy=bind:0,2", {0, 0, 0, 0}},
		{"size=8M policy=interleave:0,2,3", {0, 2, 3, 0}},
	};

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct sim_try t;

		try_open_nodes(&t, cases[k].area, "balancenuma-v8", NULL);
		for (uint64_t b = 0; b < 4; b++)
			try_touch(&t, 1, b * SIM_MB2, (b + 1) * SIM_MB2);
		for (uint64_t o = 0; o < 8 << 20; o += 4096)
			assert_int_equal(try_node_of(&t, o), cases[k].node[o / SIM_MB2]);
		try_free(&t);
	}
}

static void test_small_pages_are_interleaved_one_by_one(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=2M thp=never policy=interleave:1,3", "none", NULL);
	try_touch(&t, 0, 0, SIM_MB2);
	for (uint64_t i = 0; i < 512; i++)
		assert_int_equal(try_node_of(&t, i << 12), i % 2 ? 3 : 1);
	assert_int_equal(try_counters(&t)->pgfault, 512);
	try_free(&t);
}

static void test_a_node_without_memory_uses_the_nearest(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 1 node x 1 cpu + 1 node x 1 cpu x 64M at 40 + 1 node x 64M "
		"at "
		"20\n" SIM_QUIET,
		"[p]\ncpus = node:0\narea = a size=4M\nphase = compute time=1\n", "none");
	try_open(&t);
	try_tick(&t);
	t.w.threads[0].area = &t.w.areas[0];
	try_touch(&t, 0, 0, SIM_MB2);
	assert_int_equal(try_node_of(&t, 0), 2);
	try_free(&t);
}

/* ---- full nodes ---- */

static void take_all_but(struct sim_try *t, int node, uint64_t pages)
{
	const int64_t all = (int64_t)(t->w.node_capacity[node] - t->w.node_used[node]);

	sim_node_account(&t->w, node, all - (int64_t)pages);
}

static void test_a_full_node_sends_pages_to_the_next(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=8M", "none", NULL);
	take_all_but(&t, 1, 100); /* below its watermark */
	try_touch(&t, 1, 0, SIM_MB2);
	assert_int_equal(try_node_of(&t, 0), 0); /* all equally far: the first */
	for (int n = 0; n < 4; n++)
		take_all_but(&t, n, n == 3 ? 200 : 100);
	/* No room for a huge page anywhere: small ones, of the toucher's node first. 12 of 512 do
	 * not fit. */
	assert_true(
		sim_touch_block(&t.w, &t.w.threads[1], SIM_MB2, 2 * SIM_MB2, NB_FAULT_WRITE) < 0);
	assert_int_equal(t.w.areas[0].node_pages[1], 100);
	assert_int_equal(t.w.areas[0].node_pages[0], 512 + 100);
	assert_int_equal(t.w.areas[0].node_pages[2], 100);
	assert_int_equal(t.w.areas[0].node_pages[3], 200);
	assert_int_equal(try_pages(&t), 512 + 500);
	assert_int_equal(t.w.error, -ENOSPC);
	try_free(&t);
}

static void test_out_of_memory_is_one_line(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=8M thp=never", "none", NULL);
	for (int n = 0; n < 4; n++)
		take_all_but(&t, n, 0);
	assert_true(sim_touch_block(&t.w, &t.w.threads[0], 0, SIM_MB2, NB_FAULT_WRITE) < 0);
	assert_int_equal(t.w.error, -ENOSPC);
	assert_string_equal(t.why, "j on m: at 0.000 s: the simulated machine is out of memory");
	try_free(&t);

	/* And from the outside. */
	try_make(&t, SIM_FOUR, "[p]\narea = a size=64M\nphase = sweep area=a\n", "none");
	t.load.processes[0].areas[0].bytes = UINT64_C(2) << 30;
	assert_int_equal(try_run(&t), -ENOSPC);
	assert_non_null(strstr(t.why, "the simulated machine is out of memory"));
	assert_null(strchr(t.why, '\n'));
	try_free(&t);
}

/* ---- hint faults ---- */

static void test_a_hint_fault_moves_a_small_page(void **state)
{
	struct sim_try t;
	double ns;

	(void)state;
	try_open_nodes(&t, "size=4M thp=never", "moron", NULL);
	try_touch(&t, 0, 0, 2 * SIM_MB2);
	try_arm(&t, 0, SIM_MB2);
	assert_int_equal(try_counters(&t)->numa_pte_updates, 512);
	ns = sim_touch_page(&t.w, &t.w.threads[3], 4096 * 9, NB_FAULT_WRITE);
	assert_ns(ns, t.model.hint_fault + t.model.move_fixed + t.model.isolate_page +
			      4096 * 1e9 / t.model.copy_rate);
	assert_int_equal(try_node_of(&t, 4096 * 9), 3);
	assert_false(try_is_armed(&t, 4096 * 9));
	assert_true(try_is_armed(&t, 4096 * 10));
	assert_int_equal(try_counters(&t)->numa_hint_faults, 1);
	assert_int_equal(try_counters(&t)->numa_hint_faults_local, 0);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 1);
	assert_true(t.w.copied[0 * 4 + 3] == 4096);
	/* The owner finds the rest in place, and takes a fault for each. */
	ns = try_touch(&t, 0, 4096 * 10, 4096 * 14);
	assert_ns(ns, 4 * t.model.hint_fault);
	assert_int_equal(try_counters(&t)->numa_hint_faults_local, 4);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 1);
	assert_int_equal(try_pages(&t), 1024);
	try_check(&t);
	try_free(&t);
}

static void test_a_hint_fault_moves_a_huge_page_whole(void **state)
{
	struct sim_try t;
	double ns;

	(void)state;
	try_open_nodes(&t, "size=4M", "balancenuma-v8", "two_stage_filter=off");
	try_touch(&t, 0, 0, SIM_MB2);
	try_tick(&t);
	try_arm(&t, 0, SIM_MB2);
	assert_int_equal(try_counters(&t)->numa_pte_updates, 512);
	assert_int_equal(try_counters(&t)->numa_huge_pte_updates, 1);
	ns = try_touch(&t, 2, 4096 * 3, SIM_MB2);
	assert_ns(ns, t.model.hint_fault + t.model.move_fixed + t.model.isolate_page +
			      SIM_MB2 * 1e9 / t.model.copy_rate);
	for (uint64_t o = 0; o < SIM_MB2; o += 4096) {
		assert_int_equal(try_node_of(&t, o), 2);
		assert_false(try_is_armed(&t, o));
	}
	assert_true(t.w.areas[0].blocks[0].flags & SIM_B_HUGE);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 1);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 512);
	assert_true(t.w.copied[0 * 4 + 2] == SIM_MB2);
	try_check(&t);
	try_free(&t);
}

/* Somebody else's copy is no failed move: who comes meanwhile faults once, waits, and finds it
 * moved. */
static void test_a_block_on_its_way_makes_others_wait(void **state)
{
	struct sim_try t;
	double ns, copy;

	(void)state;
	try_open_nodes(&t, "size=2M", "balancenuma-v8", "two_stage_filter=off");
	try_touch(&t, 0, 0, SIM_MB2);
	try_tick(&t);
	try_arm(&t, 0, SIM_MB2);
	copy = try_touch(&t, 1, 0, SIM_MB2);
	ns = try_touch(&t, 3, 0, SIM_MB2);
	assert_ns(ns, t.model.hint_fault);
	assert_ns(t.w.threads[3].wait_until_ns, t.w.now_ns + copy);
	assert_int_equal(try_node_of(&t, 0), 1);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 2);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 512);
	assert_int_equal(try_counters(&t)->pgmigrate_fail, 0);
	/* The one who moves it does not wait for himself, a look does not wait at all. */
	assert_ns(try_touch(&t, 1, 0, SIM_MB2), 0);
	assert_ns(sim_touch_page(&t.w, &t.w.threads[2], 0, NB_FAULT_LOOKUP), 0);
	assert_true(t.w.threads[2].wait_until_ns <= t.w.now_ns);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 2);
	try_tick(&t);
	assert_int_equal(t.w.nr_moves, 0);
	assert_ns(try_touch(&t, 3, 0, SIM_MB2), 0);
	try_free(&t);
}

/* Where the entry says that the page is on its way, nobody takes a hint fault to learn it. */
static void test_waiting_for_a_block_takes_no_hint_fault(void **state)
{
	struct sim_try t;
	double ns, copy;

	(void)state;
	try_open_nodes(&t, "size=2M", "linux-3.13", NULL);
	try_touch(&t, 0, 0, SIM_MB2);
	try_tick(&t);
	try_arm(&t, 0, SIM_MB2);
	copy = try_touch(&t, 1, 0, SIM_MB2);
	ns = try_touch(&t, 3, 0, SIM_MB2);
	assert_ns(ns, t.model.page_fault);
	assert_ns(t.w.threads[3].wait_until_ns, t.w.now_ns + copy);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 1);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 512);
	try_free(&t);
}

static void test_a_move_to_a_full_node_fails_before_the_copy(void **state)
{
	(void)state;
	for (int huge = 0; huge < 2; huge++) {
		struct sim_try t;
		double ns;

		try_open_nodes(&t, huge ? "size=2M" : "size=2M thp=never", "balancenuma-v8",
			"two_stage_filter=off");
		nb_engine_set(t.w.engine, "target_watermark=off", t.why, sizeof(t.why));
		try_touch(&t, 0, 0, SIM_MB2);
		try_tick(&t);
		try_arm(&t, 0, SIM_MB2);
		take_all_but(&t, 1, 0);
		ns = sim_touch_page(&t.w, &t.w.threads[1], 0, NB_FAULT_WRITE);
		assert_true(ns <= t.model.hint_fault + t.model.move_fixed +
					  512 * t.model.pte_update +
					  (huge ? 0 : 512 * t.model.move_fixed));
		assert_int_equal(try_node_of(&t, 0), 0);
		assert_true(t.w.copied[0 * 4 + 1] == 0);
		assert_int_equal(try_counters(&t)->numa_pages_migrated, 0);
		assert_int_equal(try_counters(&t)->pgmigrate_fail, 512);
		assert_int_equal(t.w.nr_moves, 0);
		try_free(&t);
	}
}

/* ---- one PMD for small pages ---- */

/* Faults of thread 0, on the pages' node, of the 512 that a block's sweep takes; thread 1 comes
 * `behind` bytes behind it at 1 byte/ns. */
static uint64_t faults_of_the_first(double behind)
{
	const uint64_t at = 30 * (uint64_t)SIM_MB2; /* where nobody has come yet */
	struct sim_try t;
	uint64_t local;

	try_make(&t, SIM_FOUR "[cpu]\nllc_mib = 0\n[costs]\nhint_fault_ns = 2000\n",
		"[p]\nthreads = 2\ncpus = node:thread\narea = a size=64M thp=never\n"
		"phase = sweep area=a loops=9\n",
		"linux-6.12");
	try_open(&t);
	try_tick(&t);
	try_touch(&t, 0, at, at + SIM_MB2);
	assert_int_equal(try_node_of(&t, at), 0);
	try_arm(&t, at, at + SIM_MB2);
	for (int i = 0; i < 2; i++) {
		t.w.threads[i].pos = (double)at - (i ? behind : 0);
		t.w.threads[i].rate = 1;
	}
	try_touch(&t, 0, at, at + SIM_MB2);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 512);
	local = try_counters(&t)->numa_hint_faults_local;
	try_free(&t);
	return local;
}

/* 512 faults of 2 us last while the other gets on by 1,024,000 bytes: from there it catches up and
 * takes as many of them, page by page. From further away it does not, nor does who is ahead. */
static void test_a_sweep_that_catches_up_takes_its_part_of_the_faults(void **state)
{
	(void)state;
	assert_in_range(faults_of_the_first(0), 200, 312);
	assert_in_range(faults_of_the_first(1020000), 200, 312);
	assert_int_equal(faults_of_the_first(-65536), 512);
	assert_int_equal(faults_of_the_first(1030000), 512);
}

static void test_pages_armed_as_one_pmd_take_one_trap(void **state)
{
	struct sim_try t;
	double batch, single;

	(void)state;
	try_open_nodes(&t, "size=2M thp=never", "balancenuma-v8", NULL);
	try_touch(&t, 0, 0, SIM_MB2);
	try_arm(&t, 0, SIM_MB2);
	assert_true(t.w.areas[0].blocks[0].flags & SIM_B_PMD);
	batch = sim_touch_page(&t.w, &t.w.threads[0], 4096, NB_FAULT_WRITE);
	assert_ns(batch, t.model.hint_fault + 512 * t.model.pte_update);
	assert_int_equal(try_counters(&t)->pgfault, 512 + 1);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 512);
	for (uint64_t o = 0; o < SIM_MB2; o += 4096)
		assert_false(try_is_armed(&t, o));
	try_check(&t);
	try_free(&t);

	try_open_nodes(&t, "size=2M thp=never", "balancenuma-v8", "pmd_batch=off");
	try_touch(&t, 0, 0, SIM_MB2);
	try_arm(&t, 0, SIM_MB2);
	assert_false(t.w.areas[0].blocks[0].flags & SIM_B_PMD);
	single = try_touch(&t, 0, 0, SIM_MB2);
	assert_ns(single, 512 * t.model.hint_fault);
	assert_int_equal(try_counters(&t)->pgfault, 512 + 512);
	assert_int_equal(try_counters(&t)->numa_hint_faults, 512);
	try_free(&t);
}

static void test_pages_on_several_nodes_are_not_armed_as_one(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=2M thp=never", "balancenuma-v8", NULL);
	try_touch(&t, 0, 0, SIM_MB2 / 2);
	try_touch(&t, 1, SIM_MB2 / 2, SIM_MB2);
	try_arm(&t, 0, SIM_MB2);
	assert_false(t.w.areas[0].blocks[0].flags & SIM_B_PMD);
	assert_int_equal(t.w.areas[0].blocks[0].armed, 512);
	try_free(&t);
}

/* The page that was not there when its PMD was armed appears with the fault. */
static void test_a_first_touch_under_an_armed_pmd(void **state)
{
	(void)state;
	for (int by_page = 0; by_page < 2; by_page++) {
		struct sim_try t;

		try_open_nodes(&t, "size=2M thp=never", "balancenuma-v8", NULL);
		try_touch(&t, 0, 0, 4096 * 100);
		try_arm(&t, 0, SIM_MB2);
		assert_int_equal(try_counters(&t)->numa_pte_updates, 100);
		assert_true(t.w.areas[0].blocks[0].flags & SIM_B_PMD);
		if (by_page)
			sim_touch_page(&t.w, &t.w.threads[0], 4096 * 200, NB_FAULT_WRITE);
		else
			try_touch(&t, 0, 4096 * 200, 4096 * 210);
		assert_int_equal(try_pages(&t), by_page ? 101 : 110);
		assert_int_equal(try_counters(&t)->numa_hint_faults, 100);
		try_check(&t);
		try_free(&t);
	}
}

/* ---- splits ---- */

static void test_a_split_hands_the_arming_down(void **state)
{
	(void)state;
	for (int transfers = 0; transfers < 2; transfers++) {
		struct sim_try t;

		try_open_nodes(
			&t, "size=2M", "moron", transfers ? NULL : "split_transfers_arm=off");
		try_touch(&t, 0, 0, SIM_MB2);
		try_tick(&t);
		try_arm(&t, 0, SIM_MB2);
		try_touch(&t, 1, 0, 4096 * 16);
		assert_int_equal(try_counters(&t)->thp_split_page, 1);
		assert_false(t.w.areas[0].blocks[0].flags & SIM_B_HUGE);
		/* Armed parts fault in their turn and move; without the transfer they are lost. */
		assert_int_equal(try_counters(&t)->numa_pages_migrated, transfers ? 16 : 0);
		assert_int_equal(try_counters(&t)->numa_hint_faults, transfers ? 17 : 1);
		assert_int_equal(t.w.areas[0].blocks[0].armed, transfers ? 512 - 16 : 0);
		assert_int_equal(try_pages(&t), 512);
		try_check(&t);
		try_free(&t);
	}
}

static void test_huge_pages_are_split_where_they_do_not_move_whole(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=2M", "balancenuma-v8", "two_stage_filter=off");
	nb_engine_set(t.w.engine, "thp_migration=off", t.why, sizeof(t.why));
	try_touch(&t, 0, 0, SIM_MB2);
	try_tick(&t);
	try_arm(&t, 0, SIM_MB2);
	try_touch(&t, 1, 0, SIM_MB2);
	assert_int_equal(try_counters(&t)->thp_split_page, 1);
	assert_int_equal(t.w.areas[0].node_pages[1], 512);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 512);
	try_check(&t);
	try_free(&t);
}

/* A VMA that ends inside 2 MiB holds no huge page there. */
static void test_an_mbind_of_part_of_a_huge_page_splits_it(void **state)
{
	struct sim_try t;
	const char job[] = "[p]\nthreads = 2\narea = a size=6M\n"
			   "phase = sweep area=a\nphase = barrier\n"
			   "phase = mbind area=a slice=own policy=bind:thread\n"
			   "phase = compute time=1\n";

	(void)state;
	try_make(&t, SIM_FOUR, job, "balancenuma-v8");
	try_open(&t);
	try_until(&t, 0.5);
	assert_int_equal(nb_engine_counters(t.w.engine)->thp_split_page, 1);
	assert_true(t.w.areas[0].blocks[0].flags & SIM_B_HUGE);
	assert_false(t.w.areas[0].blocks[1].flags & SIM_B_HUGE);
	assert_true(t.w.areas[0].blocks[2].flags & SIM_B_HUGE);
	try_check(&t);
	try_free(&t);
}

static void test_no_huge_page_appears_across_the_end_of_a_vma(void **state)
{
	static const char *const thp[] = {"always", "never"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct sim_try t;
		char job[256];

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\narea = a size=6M thp=%s\n"
			"phase = mbind area=a slice=own policy=bind:thread+2\nphase = barrier\n"
			"phase = main sweep area=a\nphase = compute time=1\n",
			thp[k]);
		try_make(&t, SIM_FOUR, job, "balancenuma-v8");
		try_open(&t);
		try_until(&t, 0.5);
		/* Thread 0 touched all of it; each half is where its own policy says. */
		for (uint64_t o = 0; o < 6 << 20; o += 4096)
			assert_int_equal(try_node_of(&t, o), o < 3 << 20 ? 2 : 3);
		assert_int_equal(nb_engine_counters(t.w.engine)->thp_fault_alloc, k == 0 ? 2 : 0);
		try_check(&t);
		try_free(&t);
	}
}

/* ---- memory that went ---- */

static void test_touching_what_another_unmapped_is_one_line(void **state)
{
	static const char *const kinds[] = {"sweep", "uniform"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct sim_try t;
		char job[256];

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\narea = a size=64M\nphase = %s area=a time=1 if=thread\n"
			"phase = compute time=0.5 if=1-thread\nphase = unmap area=a if=1-thread\n",
			kinds[k]);
		try_make(&t, SIM_FOUR, job, "none");
		assert_int_equal(try_run(&t), -EFAULT);
		assert_non_null(strstr(t.why, "a thread touches memory that another has unmapped"));
		try_free(&t);
	}
}

/* ---- any sequence ---- */

static void any_touch(struct sim_try *t, struct sim_rng *rng, uint8_t *touched)
{
	struct sim_area_state *a = &t->w.areas[0];
	struct sim_thread *thread = &t->w.threads[sim_rng_below(rng, 4)];
	const uint64_t page = sim_rng_below(rng, a->bytes >> 12);
	const uint32_t flags = (uint32_t)sim_rng_below(rng, 2) * NB_FAULT_WRITE +
			       (sim_rng_below(rng, 10) ? 0 : NB_FAULT_LOOKUP);
	uint64_t start, end;

	if (sim_rng_below(rng, 3)) {
		assert_true(sim_touch_page(&t->w, thread, page << 12, flags) >= 0);
		touched[page] = 1;
		return;
	}
	sim_block_range(a, sim_block_of(a, page << 12), &start, &end);
	assert_true(sim_touch_block(&t->w, thread, page << 12, end, flags) >= 0);
	for (uint64_t o = page; o < end >> 12; o++)
		touched[o] = 1;
}

static void check_touched(const struct sim_try *t, const uint8_t *touched, bool exact)
{
	const struct sim_area_state *a = &t->w.areas[0];

	for (uint64_t o = 0; o < a->bytes; o += 4096) {
		const bool present = sim_pte_get(&t->w, a, o) & SIM_PTE_PRESENT;

		/* A huge page brings its neighbours along. */
		if (touched[o >> 12] ? !present : exact && present)
			fail_msg("page %d is %s", (int)(o >> 12), present ? "there" : "lost");
	}
}

static void test_any_sequence_of_touches_keeps_every_page(void **state)
{
	static const char *const areas[] = {"size=7M offset=64K thp=never", "size=7M offset=64K"};
	int seed = 0;

	(void)state;
	for (size_t s = 0; nb_system_at(s); s++)
		for (int k = 0; k < 4; k++) {
			struct sim_try t;
			struct sim_rng rng;
			uint8_t touched[7 << 8] = {0};

			print_message("%s, seed %d\n", nb_system_name(nb_system_at(s)), ++seed);
			sim_rng_seed(&rng, (uint64_t)seed);
			try_open_nodes(&t, areas[k & 1], nb_system_name(nb_system_at(s)),
				k & 2 ? "two_stage_filter=off" : NULL);
			for (int i = 0; i < 600; i++) {
				any_touch(&t, &rng, touched);
				if (i % 40 == 0 && nb_has(&t.config, NB_MECH_MPOL_LAZY))
					try_arm(&t, 0, t.w.areas[0].bytes);
				if (i % 20 == 0)
					try_tick(&t);
				if (i % 100 == 0)
					try_check(&t);
			}
			check_touched(&t, touched, !(k & 1));
			try_check(&t);
			try_free(&t);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_page_appears_where_it_is_touched),
		cmocka_unit_test(test_an_empty_block_of_small_pages_costs_a_fault_each),
		cmocka_unit_test(test_a_huge_page_appears_where_it_fits),
		cmocka_unit_test(test_others_wait_for_a_huge_page_that_is_being_cleared),
		cmocka_unit_test(test_policies_decide_where_pages_appear),
		cmocka_unit_test(test_small_pages_are_interleaved_one_by_one),
		cmocka_unit_test(test_a_node_without_memory_uses_the_nearest),
		cmocka_unit_test(test_a_full_node_sends_pages_to_the_next),
		cmocka_unit_test(test_out_of_memory_is_one_line),
		cmocka_unit_test(test_a_hint_fault_moves_a_small_page),
		cmocka_unit_test(test_a_hint_fault_moves_a_huge_page_whole),
		cmocka_unit_test(test_a_block_on_its_way_makes_others_wait),
		cmocka_unit_test(test_waiting_for_a_block_takes_no_hint_fault),
		cmocka_unit_test(test_a_move_to_a_full_node_fails_before_the_copy),
		cmocka_unit_test(test_a_sweep_that_catches_up_takes_its_part_of_the_faults),
		cmocka_unit_test(test_pages_armed_as_one_pmd_take_one_trap),
		cmocka_unit_test(test_pages_on_several_nodes_are_not_armed_as_one),
		cmocka_unit_test(test_a_first_touch_under_an_armed_pmd),
		cmocka_unit_test(test_a_split_hands_the_arming_down),
		cmocka_unit_test(test_huge_pages_are_split_where_they_do_not_move_whole),
		cmocka_unit_test(test_an_mbind_of_part_of_a_huge_page_splits_it),
		cmocka_unit_test(test_no_huge_page_appears_across_the_end_of_a_vma),
		cmocka_unit_test(test_touching_what_another_unmapped_is_one_line),
		cmocka_unit_test(test_any_sequence_of_touches_keeps_every_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
