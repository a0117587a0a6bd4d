/* SPDX-License-Identifier: MIT */
/* Convoys: who sweeps the same memory stays together, and so loads one node at a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim_fixture.h"

static const double MIB = 1 << 20;

/* Threads with nobody within reach ahead of them: the heads of convoys. The area is a ring. */
static int heads(const struct sim_try *t, double reach)
{
	const double bytes = (double)t->w.areas[0].bytes;
	int n = 0;

	for (uint32_t i = 0; i < t->load.nr_threads; i++) {
		double next = bytes;

		for (uint32_t k = 0; k < t->load.nr_threads; k++)
			if (k != i)
				next = fmin(next,
					fmod(t->w.threads[k].pos - t->w.threads[i].pos + bytes,
						bytes));
		n += next > reach;
	}
	return n;
}

/* 16 threads, disturbed by moments stolen, sweep 1 GiB of one node: convoys, on
 * average over the second half of two minutes. */
static double mean_convoys(const char *gain)
{
	char machine[256];
	struct sim_try t;
	double sum = 0;

	snprintf(machine, sizeof(machine),
		"[machine]\ntopology = 4 nodes x 4 cpus x 2G\n[memory]\nbandwidth_mib_s = 4000\n"
		"[scheduler]\nwander_per_min = 0\nsteal_ms = 5\n[cpu]\nllc_mib = 8\n"
		"follower_gain = %s\n",
		gain);
	try_make(&t, machine,
		"[p]\nthreads = 16\narea = a size=1G policy=bind:0\n"
		"phase = sweep area=a loops=1000\n",
		"none");
	try_open(&t);
	for (int second = 61; second <= 120; second++) {
		try_until(&t, second);
		sum += heads(&t, 8 * MIB);
	}
	try_free(&t);
	print_message("follower_gain %s: %.1f convoys\n", gain, sum / 60);
	return sum / 60;
}

/* Where nothing pulls, 16 threads at random places of 1 GiB have 14.1 gaps of more than 8 MiB; they
 * begin together and drift apart. */
static void test_sweeps_over_the_same_memory_stay_within_reach(void **state)
{
	(void)state;
	assert_true(mean_convoys("0.3") < 2);
	assert_true(mean_convoys("0") > 5);
}

static void test_own_slices_are_never_pulled(void **state)
{
	struct sim_try t;

	(void)state;
	/* Neighbouring slices begin within reach of each other. */
	try_make(&t, "[machine]\ntopology = 2 nodes x 4 cpus x 1G\n" SIM_QUIET,
		"[p]\nthreads = 8\narea = a size=32M\nphase = sweep area=a slice=own time=5\n",
		"none");
	try_open(&t);
	for (int i = 0; i < 1000; i++) {
		try_tick(&t);
		for (int k = 0; k < 8; k++)
			assert_true(t.w.threads[k].pull == 1);
	}
	try_free(&t);
}

/* Neither is anybody in the memory of another process. */
static void test_processes_do_not_pull_each_other(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, "[machine]\ntopology = 2 nodes x 4 cpus x 1G\n" SIM_QUIET,
		"[p]\ninstances = 8\narea = a size=32M\nphase = sweep area=a time=5\n", "none");
	try_open(&t);
	for (int i = 0; i < 1000; i++) {
		try_tick(&t);
		for (int k = 0; k < 8; k++)
			assert_true(t.w.threads[k].pull == 1);
	}
	try_free(&t);
}

/* A pull is that of the sweep: whatever a thread does next is done at its own speed. */
static void test_a_pull_ends_with_its_sweep(void **state)
{
	static const char *const next[] = {"uniform area=a time=1", "compute time=1",
		"sweep area=a slice=own time=1", "sleep time=1"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		char job[256];
		struct sim_try t;
		struct sim_thread *follower;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\narea = a size=64M\nphase = sweep area=a loops=400\n"
			"phase = %s\n",
			next[k]);
		try_make(&t, "[machine]\ntopology = 1 node x 2 cpus x 1G\n" SIM_QUIET, job, "none");
		try_open(&t);
		try_until(&t, 1);
		follower = &t.w.threads[1];
		t.w.threads[0].pos = 40 * MIB;
		follower->pos = 32 * MIB;
		while (t.w.ticks % 4)
			t.w.ticks++;
		sim_convoy_update(&t.w);
		assert_true(follower->pull > 1);
		/* Its last pass is over. */
		follower->loops_left = 0.1;
		while (follower->in_phase == 0) {
			follower->pull = 1.1;
			try_tick(&t);
		}
		for (int i = 0; i < 4; i++)
			try_tick(&t);
		assert_true(follower->pull == 1);
		try_free(&t);
	}
}

/* Nobody is pulled beyond what an idle machine gives, and the foremost is not pulled at all. */
static void test_a_pull_is_in_proportion_to_the_lead(void **state)
{
	struct sim_try t;
	uint32_t pulled = 0;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 1 node x 4 cpus x 1G\n[memory]\nlatency_ns = 100\n"
		"bandwidth_mib_s = 100000\n[cpu]\nllc_mib = 8\nfollower_gain = 0.4\n" SIM_QUIET,
		"[p]\nthreads = 4\narea = a size=512M\nphase = sweep area=a loops=1000\n", "none");
	try_open(&t);
	try_until(&t, 3); /* all of it is there */
	for (int i = 0; i < 4; i++) {
		/* 2, 4 and 6 MiB behind the first; the last is out of reach of everybody. */
		static const double at[] = {100, 98, 94, 80};

		t.w.threads[i].pos = at[i] * (1 << 20);
		t.w.threads[i].clean_end = 0;
	}
	while (t.w.ticks % 4)
		t.w.ticks++;
	sim_convoy_update(&t.w);
	assert_true(fabs(t.w.threads[0].pull - 1) < 1e-9);
	assert_true(fabs(t.w.threads[1].pull - (1 + 0.4 * 2 / 8)) < 1e-9);
	assert_true(fabs(t.w.threads[2].pull - (1 + 0.4 * 6 / 8)) < 1e-9);
	assert_true(fabs(t.w.threads[3].pull - 1) < 1e-9);
	for (int i = 0; i < 4; i++) {
		const struct sim_thread *th = &t.w.threads[i];

		pulled += th->pull > 1;
		/* Ten lines of 64 bytes in 100 ns: there is nothing faster. */
		assert_true(fabs(sim_rate_of(&t.w, th, &th->mix) - 6.4) < 1e-6);
	}
	assert_int_equal(pulled, 2);
	try_free(&t);
}

/* What is said ahead of the rate of who is pulled is no less than the rate: each tick is checked,
 * and it is said often. */
static void test_no_pull_is_faster_than_its_bound(void **state)
{
	struct sim_try t;
	uint32_t said = 0;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 2 nodes x 8 cpus x 2G\n[memory]\nbandwidth_mib_s = 4000\n"
		"[scheduler]\nwander_per_min = 20\nsteal_ms = 5\n[cpu]\nllc_mib = 8\n"
		"follower_gain = 0.3\n",
		"[p]\nthreads = 16\narea = a size=1G policy=interleave:all\n"
		"phase = sweep area=a loops=1000\n",
		"none");
	try_open(&t);
	assert_true(t.options.check);
	for (int i = 0; i < 4000; i++) {
		const uint32_t epoch = t.w.epoch;

		try_tick(&t);
		for (uint32_t k = 0; k < t.load.nr_threads; k++)
			said += t.w.threads[k].pulled_epoch == epoch && t.w.threads[k].pull > 1;
	}
	assert_true(said > 1000);
	try_free(&t);
}

static double bytes_per_s(const char *job)
{
	struct sim_try t;
	double rate;

	try_job(&t, "2012-8node-64cpu", job, "none");
	rate = t.result.bytes / t.result.elapsed_s;
	print_message("%s: %.1f GB/s\n", job, rate / 1e9);
	try_free(&t);
	return rate;
}

/* Two processes on half of eight nodes each get about two nodes' worth together, though every node
 * has a share of the memory; threads with slices of their own on all of them get about eight. */
static void test_a_convoy_loads_one_node_at_a_time(void **state)
{
	const double node = 4050. * (1 << 20);

	(void)state;
	/* Published: 10.2 GB/s. The two larger nodes are 1.4 times as fast. */
	assert_in_range(bytes_per_s("numa01_hard_bind:passes=20") / node * 100, 170, 290);
	/* Published: 32.8 GB/s. */
	assert_in_range(bytes_per_s("numa02_hard_bind:passes=200") / node * 100, 700, 850);
}

/* ---- many nodes ---- */

/* A random pattern over the memory of more nodes than a thread's mix holds takes no less time for
 * that, and loads all of them alike. */
static void test_mixes_of_many_nodes_are_whole(void **state)
{
	static const char *const jobs[] = {
		"[p]\nthreads = 64\narea = a size=256M policy=interleave:all\n"
		"phase = uniform area=a time=3\n",
		"[p]\nthreads = 64\narea = a size=256M thp=never policy=interleave:all\n"
		"phase = sweep area=a slice=own time=3\n"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct sim_try t;
		double used[64] = {0}, sum = 0;

		try_make(&t, "[machine]\ntopology = 64 nodes x 1 cpu x 64M\n" SIM_QUIET, jobs[k],
			"none");
		try_open(&t);
		try_until(&t, 2);
		for (int i = 0; i < 64; i++) {
			const struct sim_thread *th = &t.w.threads[i];
			double mix = 0, want = 0;

			for (int m = 0; m < th->mix.nr; m++)
				mix += (double)th->mix.share[m];
			for (int m = 0; m < th->want.nr; m++)
				want += (double)th->want.share[m];
			assert_true(fabs(mix - 1) < 1e-4);
			assert_true(fabs(want - 1) < 1e-4);
		}
		for (unsigned int n = 0; n < 64; n++) {
			used[n] = t.w.memory.used[n];
			sum += used[n];
		}
		for (int n = 0; n < 64; n++)
			assert_true(used[n] / (sum / 64) > 0.5);
		try_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweeps_over_the_same_memory_stay_within_reach),
		cmocka_unit_test(test_own_slices_are_never_pulled),
		cmocka_unit_test(test_processes_do_not_pull_each_other),
		cmocka_unit_test(test_a_pull_ends_with_its_sweep),
		cmocka_unit_test(test_a_pull_is_in_proportion_to_the_lead),
		cmocka_unit_test(test_no_pull_is_faster_than_its_bound),
		cmocka_unit_test(test_a_convoy_loads_one_node_at_a_time),
		cmocka_unit_test(test_mixes_of_many_nodes_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
