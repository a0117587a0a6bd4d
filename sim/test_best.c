/* SPDX-License-Identifier: MIT */
/* The search for the best static placement. */
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

static const char small[] =
	"[machine]\ntopology = 4 nodes x 4 cpus x 2G\n[memory]\nbandwidth_mib_s = 4000\n" SIM_QUIET;

struct found {
	struct nb_result result;
	char chosen[SIM_TEXT];
};

static int search(struct sim_try *t, struct found *f)
{
	return sim_best(
		&f->result, f->chosen, &t->model, &t->load, &t->options, t->why, sizeof(t->why));
}

static void search_well(struct sim_try *t, struct found *f)
{
	if (search(t, f))
		fail_msg("best: %s", t->why);
	print_message("%s: %.2f s, %s\n", t->load.name, f->result.elapsed_s, f->chosen);
}

static void test_best_is_no_slower_than_none(void **state)
{
	static const char *const jobs[] = {"numa01:size=96M,passes=3",
		"numa01_hard_bind:size=96M,passes=3", "numa01_inverse_bind:size=96M,passes=3",
		"numa01_threadlocal:size=96M,passes=8",
		"numa01_threadlocal_hard_bind:size=96M,passes=8",
		"numa01_threadlocal_inverse_bind:size=96M,passes=8", "numa02:size=64M,passes=20",
		"numa02_hard_bind:size=64M,passes=20", "numa02_inverse_bind:size=64M,passes=20",
		"numa02_smt:size=64M,passes=20", "numa02_smt_hard_bind:size=64M,passes=20",
		"numa02_smt_inverse_bind:size=64M,passes=20"};
	static const char *const machines[] = {small, "2012-8node-64cpu"};

	(void)state;
	for (int m = 0; m < 2; m++)
		for (int k = 0; k < 12; k++) {
			struct found best;
			struct sim_try t;

			try_job(&t, machines[m], jobs[k], "none");
			t.options.check = false;
			search_well(&t, &best);
			assert_true(best.result.elapsed_s <= t.result.elapsed_s);
			assert_true(fabs(best.result.bytes / t.result.bytes - 1) < 1e-9);
			nb_result_free(&best.result);
			try_free(&t);
		}
}

/* numa02 wants each slice on its thread's node: then every node gives what it has. */
static void test_best_of_numa02_uses_every_node(void **state)
{
	struct found best;
	struct sim_try t;

	(void)state;
	try_make(&t, small, "numa02:size=256M,passes=200", "none");
	search_well(&t, &best);
	assert_true(fabs(best.result.elapsed_s / (200 * 256. / (4 * 4000)) - 1) < 0.1);
	assert_true(best.result.local_share > 0.98);
	nb_result_free(&best.result);
	try_free(&t);
}

static void test_the_same_seed_finds_the_same(void **state)
{
	struct found a, b;
	struct sim_try t;

	(void)state;
	try_make(&t, "2012-4node-48cpu", "numa01:size=96M,passes=3", "none");
	search_well(&t, &a);
	search_well(&t, &b);
	assert_string_equal(a.chosen, b.chosen);
	assert_true(a.result.elapsed_s == b.result.elapsed_s);
	assert_memory_equal(&a.result.counters, &b.result.counters, sizeof(a.result.counters));
	nb_result_free(&a.result);
	nb_result_free(&b.result);
	try_free(&t);
}

/* options.check has the scheduler's checker see that nobody runs where he may not. */
static void test_affinities_are_respected(void **state)
{
	static const char *const cpus[] = {"node:3", "nodes:1..2", "node:thread%4"};

	(void)state;
	for (int k = 0; k < 3; k++) {
		char job[256];
		struct found best;
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 4\ncpus = %s\narea = a size=128M\n"
			"phase = sweep area=a slice=own loops=300\n",
			cpus[k]);
		try_make(&t, small, job, "none");
		assert_true(t.options.check);
		search_well(&t, &best);
		nb_result_free(&best.result);
		try_free(&t);
	}
	/* A thread that may use one CPU of a node alone is not kept on the node at large. */
	for (int k = 0; k < 2; k++) {
		struct found best;
		struct sim_try t;

		try_make(&t, small,
			"[p]\nthreads = 4\ncpus = all\narea = a size=16M\nphase = compute time=2\n",
			"none");
		for (int i = 0; k && i < 4; i++) {
			uint64_t *mask = calloc(1, sizeof(*mask));

			assert_non_null(mask);
			*mask = 1 << 4 * i;
			t.load.threads[i].cpus = mask;
		}
		search_well(&t, &best);
		nb_result_free(&best.result);
		try_free(&t);
	}
}

/* Everybody uses everything, and one node has three times what the other has: a quarter of the
 * pages there loads both fully. */
static void test_pages_are_interleaved_by_bandwidth(void **state)
{
	struct found best;
	struct sim_try t;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 2 nodes x 8 cpus x 1G\n[memory]\nbandwidth_mib_s = 3000\n"
		"[node 1]\nbandwidth_mib_s = 1000\n" SIM_QUIET,
		"[p]\nthreads = 16\narea = a size=256M\nphase = uniform area=a bytes=1G\n", "none");
	search_well(&t, &best);
	assert_non_null(strstr(best.chosen, "by bandwidth"));
	assert_in_range(best.result.final_pages[1], 65536 * 0.22, 65536 * 0.28);
	assert_true(fabs(best.result.elapsed_s / (16 * 1024 / 4000.) - 1) < 0.1);
	nb_result_free(&best.result);
	try_free(&t);
}

/* Where time is fixed, more work done is better. */
static void test_limited_runs_are_compared_by_what_they_did(void **state)
{
	struct found best;
	struct sim_try t;

	(void)state;
	try_job(&t, small,
		"[global]\ntime_limit = 3\n[p]\nthreads = 16\narea = a size=128M\n"
		"phase = main sweep area=a\nphase = uniform area=a slice=own\n",
		"none");
	search_well(&t, &best);
	assert_true(t.result.timed_out && best.result.timed_out);
	assert_true(best.result.elapsed_s == 3);
	/* All on one node, or each with its own. */
	assert_true(best.result.bytes > 3 * t.result.bytes);
	nb_result_free(&best.result);
	try_free(&t);
}

static void test_what_does_not_fit_is_no_candidate(void **state)
{
	struct found best;
	struct sim_try t;

	(void)state;
	try_make(&t, SIM_FOUR, "[p]\narea = a size=64M\nphase = sweep area=a\n", "none");
	t.load.processes[0].areas[0].bytes = UINT64_C(2) << 30;
	assert_int_equal(search(&t, &best), -ENOSPC);
	assert_string_equal(t.why, "j on m: no placement fits into memory");
	try_free(&t);
}

static int stop_at_once(void *ctx, double simulated_s)
{
	(void)ctx;
	(void)simulated_s;
	return 1;
}

static void test_a_search_can_be_stopped(void **state)
{
	struct found best;
	struct sim_try t;

	(void)state;
	try_make(&t, SIM_FOUR, "[p]\nthreads = 4\nphase = compute time=1000\n", "none");
	t.options.progress = stop_at_once;
	assert_int_equal(search(&t, &best), -EINTR);
	try_free(&t);
}

/* ---- placements by hand ---- */

static void run_placed(
	struct sim_try *t, const char *machine, const char *job, const struct sim_placement *p)
{
	try_make(t, machine, job, "none");
	t->options.placement = p;
	try_run_well(t);
}

static void test_pages_follow_their_owners(void **state)
{
	int16_t node[4] = {3, 2, 1, 0};
	const struct sim_placement p = {.thread_node = node, .pages = SIM_PAGES_OWNER};
	struct sim_try t;

	(void)state;
	run_placed(&t, SIM_FOUR,
		"[p]\nthreads = 4\narea = a size=64M\nphase = main sweep area=a\n"
		"phase = sweep area=a slice=own loops=20\n",
		&p);
	for (int n = 0; n < 4; n++)
		assert_int_equal(t.result.final_pages[n], 4096);
	/* Main's pass is three quarters remote, the twenty after it are local. */
	assert_true(fabs(t.result.local_share - 20.25 / 21) < 0.01);
	try_free(&t);
}

/* Slices that begin inside a huge page: it goes with the thread that has most of it. */
static void test_a_huge_page_follows_whoever_has_most_of_it(void **state)
{
	int16_t node[4] = {0, 1, 2, 3};
	const struct sim_placement p = {.thread_node = node, .pages = SIM_PAGES_OWNER};
	struct sim_try t;

	(void)state;
	run_placed(&t, SIM_FOUR,
		"[p]\nthreads = 4\narea = a size=16M offset=64K\nphase = main sweep area=a\n"
		"phase = sweep area=a slice=own loops=200\n",
		&p);
	/* 16 pages of each slice but the last are in the next one's first huge page. */
	assert_int_equal(t.result.final_pages[0], 1024 - 16);
	assert_int_equal(t.result.final_pages[1], 1024);
	assert_int_equal(t.result.final_pages[3], 1024 + 16);
	assert_true(t.result.local_share > 0.98);
	try_free(&t);
}

static void test_pages_are_interleaved_in_turn(void **state)
{
	static const struct sim_placement by_huge = {
		.pages = SIM_PAGES_INTERLEAVE, .over_all = true};
	static const struct sim_placement by_page = {
		.pages = SIM_PAGES_INTERLEAVE, .over_all = true, .by_page = true};
	static const struct sim_placement *const p[] = {&by_huge, &by_page};

	(void)state;
	for (int k = 0; k < 4; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\narea = a size=64M thp=%s\nphase = sweep area=a\n"
			"phase = compute time=1\n",
			k & 2 ? "always" : "never");
		/* The slower tier and the node without memory take no part. */
		run_placed(&t,
			"[machine]\ntopology = 2 nodes x 2 cpus x 256M + 1 node x 2 cpus + 1 node "
			"x "
			"256M at 60\n" SIM_QUIET,
			job, p[k & 1]);
		assert_int_equal(t.result.final_pages[0], 8192);
		assert_int_equal(t.result.final_pages[1], 8192);
		assert_int_equal(t.result.final_pages[3], 0);
		assert_int_equal(t.result.counters.thp_fault_alloc, k == 2 ? 32 : 0);
		try_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_best_is_no_slower_than_none),
		cmocka_unit_test(test_best_of_numa02_uses_every_node),
		cmocka_unit_test(test_the_same_seed_finds_the_same),
		cmocka_unit_test(test_affinities_are_respected),
		cmocka_unit_test(test_pages_are_interleaved_by_bandwidth),
		cmocka_unit_test(test_limited_runs_are_compared_by_what_they_did),
		cmocka_unit_test(test_what_does_not_fit_is_no_candidate),
		cmocka_unit_test(test_a_search_can_be_stopped),
		cmocka_unit_test(test_pages_follow_their_owners),
		cmocka_unit_test(test_a_huge_page_follows_whoever_has_most_of_it),
		cmocka_unit_test(test_pages_are_interleaved_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
