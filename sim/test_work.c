/* SPDX-License-Identifier: MIT */
/* What threads do with their time: phases, their limits, and how they wait for each other. */
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

/* 10 lines of 64 bytes in 100 ns: 6.4 GB/s for a CPU, well below what a node gives. No work of the
 * kernel takes time. */
static const char two[] =
	"[machine]\ntopology = 2 nodes x 4 cpus x 1G\n[memory]\n"
	"latency_ns = 100\nbandwidth_mib_s = 100000\n[latency]\n"
	"0 = 100 200\n1 = 200 100\n[costs]\npage_fault_ns = 0\n"
	"clear_mib_s = 1000000000\ntick_ns = 0\ncontext_switch_ns = 0\n"
	"task_migrate_ns = 0\nthread_start_ns = 0\nprocess_start_ns = 0\n" SIM_QUIET;

#define assert_about(a, b, share) assert_true(fabs((a) / (b)-1) <= (share))

static void run(struct sim_try *t, const char *job)
{
	try_job(t, two, job, "none");
}

static double elapsed(const char *job)
{
	struct sim_try t;
	double s;

	run(&t, job);
	s = t.result.elapsed_s;
	try_free(&t);
	return s;
}

static uint64_t final_pages(const struct sim_try *t)
{
	uint64_t pages = 0;

	for (unsigned int n = 0; n < t->result.nr_nodes; n++)
		pages += t->result.final_pages[n];
	return pages;
}

/* ---- sweeps ---- */

static void test_a_sweep_touches_its_slice_so_many_times(void **state)
{
	static const struct {
		const char *loops, *slice;
		double bytes, pages; /* MiB, of an area of 64 MiB and two threads */
	} cases[] = {
		{"1", "all", 2 * 64, 64},
		{"3", "all", 2 * 3 * 64, 64},
		{"2.5", "all", 2 * 2.5 * 64, 64},
		{"0.25", "all", 2 * 0.25 * 64, 0.25 * 64},
		{"7", "own", 7 * 64, 64},
		{"0.125", "own", 0.125 * 64, 0.125 * 64},
	};

	(void)state;
	for (int k = 0; k < 6; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\ncpus = node:0\narea = a size=64M\nphase = sweep area=a "
			"slice=%s "
			"loops=%s\n",
			cases[k].slice, cases[k].loops);
		run(&t, job);
		assert_about(t.result.bytes, cases[k].bytes * (1 << 20), 1e-9);
		assert_true((double)final_pages(&t) == cases[k].pages * 256);
		assert_about(t.result.elapsed_s, cases[k].bytes / 2 * (1 << 20) / 6.4e9, 0.02);
		assert_about(t.result.user_s, cases[k].bytes * (1 << 20) / 6.4e9, 0.02);
		try_free(&t);
	}
}

/* Each pass goes through all the nodes that have pages, the second like the first. */
static void test_every_pass_meets_the_pages_where_they_are(void **state)
{
	static const char *const thp[] = {"always", "never"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\ncpus = node:0\narea = a size=64M thp=%s policy=interleave:all\n"
			"phase = sweep area=a loops=21\n",
			thp[k]);
		run(&t, job);
		assert_about(t.result.local_share, 0.5, 1e-6);
		/* Half of it takes twice as long. */
		assert_about(t.result.elapsed_s, 21 * 1.5 * (64 << 20) / 6.4e9, 0.01);
		try_free(&t);
	}
}

static void test_a_time_limit_is_met(void **state)
{
	static const char *const kinds[] = {"sweep", "uniform", "zipf", "chase", "compute"};

	(void)state;
	for (int k = 0; k < 5; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 2\ncpus = node:0\narea = a size=64M\n"
			"phase = sweep area=a loops=2\nphase = barrier\nphase = %s%s time=0.5057\n",
			kinds[k], k < 4 ? " area=a" : "");
		run(&t, job);
		/* 2 x 64 MiB take 21 ms. */
		assert_true(fabs(t.result.elapsed_s - 0.5057 - 2 * (64 << 20) / 6.4e9) < 0.0085);
		assert_true(fabs(t.result.user_s / 2 - 0.5057 - 2 * (64 << 20) / 6.4e9) < 0.001);
		try_free(&t);
	}
}

/* ---- random patterns ---- */

static void test_random_patterns_touch_so_many_bytes(void **state)
{
	static const char *const kinds[] = {"uniform", "zipf", "hotset hot=0.1 share=0.9", "chase"};

	(void)state;
	for (int k = 0; k < 4; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\ncpus = node:0\narea = a size=16M\nphase = %s area=a bytes=333M\n",
			kinds[k]);
		run(&t, job);
		assert_about(t.result.bytes, 333. * (1 << 20), 1e-6);
		/* One line at a time, or ten. */
		assert_about(
			t.result.elapsed_s, 333. * (1 << 20) / (k == 3 ? 0.64e9 : 6.4e9), 0.02);
		try_free(&t);
	}
}

/* A full node is felt by who waits for each line before it is full: latency_rise. */
/* 1M accesses at 100 ns and ten lines in flight: a chase waits once for each, and then for its
 * other lines together; an access of 8 bytes takes a line like one of 64. */
static void test_an_access_takes_whole_lines(void **state)
{
	static const struct {
		const char *kind;
		unsigned int access;
		double seconds;
	} cases[] = {
		{"chase", 8, 0.1},
		{"chase", 64, 0.1},
		{"chase", 4096, 0.1 + 0.63},
		{"uniform", 8, 0.01},
		{"uniform", 64, 0.01},
		{"uniform", 4096, 0.64},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\ncpus = node:0\narea = a size=16M\nphase = sweep area=a\n"
			"phase = %s area=a access=%u bytes=1e6*%u\n",
			cases[k].kind, cases[k].access, cases[k].access);
		run(&t, job);
		assert_true(fabs(t.result.elapsed_s - (16 << 20) / 6.4e9 - cases[k].seconds) <
			    0.02 * cases[k].seconds + 0.001);
		try_free(&t);
	}
}

static void test_a_chase_feels_a_busy_node(void **state)
{
	double s[2];

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		char machine[1024];
		struct sim_try t;

		/* Three CPUs at 6.4 GB/s on 25.6 GB/s: three quarters full. */
		snprintf(machine, sizeof(machine),
			"[machine]\ntopology = 1 node x 4 cpus x 1G\n[memory]\nlatency_ns = 100\n"
			"latency_rise = 1\nbandwidth_mib_s = 24414\n" SIM_QUIET);
		try_job(&t, machine,
			busy ? "[global]\ntime_limit = 4\n[a]\narea = a size=16M\nphase = chase "
			       "area=a\n[b]\nthreads = 3\narea = a size=64M\nphase = uniform "
			       "area=a\n"
			     : "[global]\ntime_limit = 4\n[a]\narea = a size=16M\nphase = chase "
			       "area=a\n",
			"none");
		s[busy] = t.result.bytes;
		if (busy)
			s[busy] -= 3 * 6.4e9 * 4;
		try_free(&t);
	}
	/* 1 + 0.77^2 = 1.59; the others' first touches take a little of their time. */
	assert_true(s[0] / s[1] > 1.4 && s[0] / s[1] < 1.9);
}

static void test_compute_time_comes_on_top_of_memory(void **state)
{
	const double bytes = 64. * (1 << 20);
	static const char *const kinds[] = {"uniform area=a bytes=64M", "sweep area=a loops=1"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		char job[256];

		snprintf(job, sizeof(job),
			"[p]\ncpus = node:0\narea = a size=64M\nphase = %s compute=100ns\n",
			kinds[k]);
		assert_about(elapsed(job), bytes / 6.4e9 + bytes / 64 * 100e-9, 0.01);
		snprintf(job, sizeof(job),
			"[p]\ncpus = node:0\narea = a size=64M\nphase = %s compute=100ns "
			"access=1024\n",
			kinds[k]);
		assert_about(elapsed(job), bytes / 6.4e9 + bytes / 1024 * 100e-9, 0.01);
	}
}

/* Popularity by rank: zipf's of theta 1 over 4096 pages. */
static double zipf_touched(double accesses)
{
	double sum = 0, touched = 0;

	for (int i = 1; i <= 4096; i++)
		sum += 1. / i;
	for (int i = 1; i <= 4096; i++)
		touched += 1 - exp(-accesses / i / sum);
	return touched;
}

static void test_random_patterns_touch_as_many_pages_as_chance_would(void **state)
{
	static const double accesses[] = {100, 1000, 4096, 20000};

	(void)state;
	for (int k = 0; k < 4; k++) {
		const double n = accesses[k];
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\narea = a size=16M thp=never\nphase = uniform area=a bytes=%.0f\n",
			n * 64);
		run(&t, job);
		/* Coupons: the standard deviation is below the root of the pages touched. */
		assert_true(fabs((double)final_pages(&t) - 4096 * (1 - exp(-n / 4096))) < 130);
		try_free(&t);
		snprintf(job, sizeof(job),
			"[p]\narea = a size=16M thp=never\nphase = zipf area=a theta=1 "
			"bytes=%.0f\n",
			n * 64);
		run(&t, job);
		assert_true(fabs((double)final_pages(&t) - zipf_touched(n)) < 100);
		try_free(&t);
		snprintf(job, sizeof(job),
			"[p]\narea = a size=16M thp=never\nphase = hotset area=a hot=0.125 share=1 "
			"bytes=%.0f\n",
			n * 64);
		run(&t, job);
		assert_true(fabs((double)final_pages(&t) - 512 * (1 - exp(-n / 512))) < 60);
		try_free(&t);
	}
}

static void test_shared_accesses_go_to_everybodys_pages(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 2\ncpus = node:thread\narea = a size=64M\n"
		"phase = sweep area=a slice=own\nphase = barrier\n"
		"phase = uniform area=a slice=own shared=0.25 bytes=4G\n");
	/* Half of a quarter is the other's; the sweeps are 64 MiB of 8 GiB. */
	assert_about(t.result.local_share, 0.875, 0.002);
	try_free(&t);
}

/* ---- time without memory ---- */

static void test_sleep_takes_time_and_no_cpu(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 3\nphase = again: sleep time=0.1\nphase = goto target=again "
		"loops=9\n");
	/* Asleep at any time, awake at ticks: 4 ms each. */
	assert_true(t.result.elapsed_s >= 1 - 1e-9 && t.result.elapsed_s < 1.045);
	assert_true(t.result.user_s == 0);
	try_free(&t);
}

static void test_siblings_share_a_core(void **state)
{
	static const char machine[] =
		"[machine]\ntopology = 1 node x 4 cpus x 1G\n[cpu]\nthreads_per_core = 2\n"
		"smt_speedup = 1.25\n[costs]\ntick_ns = 0\n" SIM_QUIET;

	(void)state;
	for (int n = 1; n <= 4; n++) {
		char job[128];
		struct sim_try t;

		snprintf(job, sizeof(job), "[p]\nthreads = %d\nphase = compute time=1\n", n);
		try_job(&t, machine, job, "none");
		/* Two cores; with both threads busy a core does 1.25 times as much. */
		assert_about(t.result.elapsed_s, n <= 2 ? 1 : 2 / 1.25, n == 3 ? 0.3 : 0.01);
		try_free(&t);
	}
}

static void test_the_timer_takes_its_part(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t,
		"[machine]\ntopology = 1 node x 1 cpu x 1G\nhz = 1000\n[costs]\ntick_ns = "
		"50000\nprocess_start_ns = 0\n" SIM_QUIET,
		"[p]\nphase = compute time=9.5\n", "none");
	/* 50 us of each ms. */
	assert_about(t.result.elapsed_s, 10, 1e-3);
	assert_about(t.result.system_s, 0.5, 1e-3);
	try_free(&t);
}

/* ---- waiting for each other ---- */

static void test_others_wait_for_main(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 4\nphase = main compute time=1\nphase = compute time=0.5\n");
	assert_about(t.result.elapsed_s, 1.5, 0.01);
	assert_about(t.result.user_s, 1 + 4 * 0.5, 0.001);
	try_free(&t);
	/* Main comes late. */
	run(&t, "[p]\nthreads = 4\nphase = compute time=1 if=1-min(thread,1)\n"
		"phase = main compute time=0.1\nphase = compute time=0.5\n");
	assert_about(t.result.elapsed_s, 1.6, 0.01);
	try_free(&t);
	/* Main comes first: nobody waits for what is done. */
	run(&t, "[p]\nthreads = 4\nphase = compute time=1 if=min(thread,1)\n"
		"phase = main compute time=0.1\nphase = compute time=0.5\n");
	assert_about(t.result.elapsed_s, 1.5, 0.01);
	try_free(&t);
}

static void test_others_wait_for_main_each_time(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 3\nphase = again: main compute time=1\nphase = compute time=0.1\n"
		"phase = goto target=again loops=3\nphase = compute time=5 if=min(thread,1)\n");
	/* They come to their last share when main is through with its part for the fourth time. */
	assert_about(t.result.elapsed_s, 4 * 1 + 3 * 0.1 + 0.1 + 5, 0.01);
	assert_about(t.result.user_s, 4 * (1 + 3 * 0.1) + 2 * 5, 0.002);
	try_free(&t);
}

static void test_a_barrier_holds_all(void **state)
{
	/* The slowest of each round: 0.4, and back to front 0.4. */
	const double s = elapsed("[p]\nthreads = 4\nphase = compute time=0.1*(thread+1)\n"
				 "phase = barrier\nphase = compute time=0.1*(4-thread)\n"
				 "phase = barrier\nphase = compute time=0.2\n");

	(void)state;
	assert_about(s, 1, 0.02);
}

static void test_a_barrier_does_not_wait_for_the_dead(void **state)
{
	(void)state;
	/* Two of four end before the barrier, the last of them long after the others got there. */
	assert_about(elapsed("[p]\nthreads = 4\nphase = compute time=0.1*(thread+1)\n"
			     "phase = barrier if=1-floor(thread/2)\n"
			     "phase = compute time=1 if=1-floor(thread/2)\n"),
		1.4, 0.01);
	/* All but one die. */
	assert_about(elapsed("[p]\nthreads = 4\nphase = compute time=0.1*(thread+1)\n"
			     "phase = barrier if=1-min(thread,1)\n"
			     "phase = compute time=1 if=1-min(thread,1)\n"),
		1.4, 0.01);
}

static void test_many_rounds_of_barriers(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 8\nphase = again: compute time=0.01+0.001*thread\n"
		"phase = barrier\nphase = goto target=again loops=99\n");
	assert_about(t.result.user_s, 100 * (8 * 0.01 + 0.028), 1e-3);
	/* 17 ms the slowest; who is let go in a tick starts with the next. */
	assert_true(t.result.elapsed_s >= 1.7 && t.result.elapsed_s < 1.7 + 100 * 0.0041);
	try_free(&t);
}

static void test_threads_that_wait_for_each_other_are_one_line(void **state)
{
	/* A main phase that the main thread itself leaves out. */
	const char job[] = "[p]\nthreads = 3\nphase = compute time=0.1\n"
			   "phase = main compute time=1 if=min(thread,1)\n";
	struct sim_try t;

	(void)state;
	try_make(&t, two, job, "none");
	assert_int_equal(try_run(&t), -EDEADLK);
	assert_non_null(strstr(t.why, "every thread waits for another"));
	assert_null(strchr(t.why, '\n'));
	try_free(&t);
}

static void test_phases_that_take_no_time_end(void **state)
{
	struct sim_try t;

	(void)state;
	run(&t, "[p]\nthreads = 3\nphase = policy policy=preferred:1\n");
	assert_true(t.result.elapsed_s == 0);
	try_free(&t);
	/* Round and round without taking any: no job file says so, a load might. */
	try_make(&t, two,
		"[p]\nphase = again: sleep time=1\nphase = goto target=again loops=1000000\n",
		"none");
	t.load.threads[0].phases[0].kind = SIM_PHASE_BARRIER;
	assert_int_equal(try_run(&t), -ELOOP);
	assert_null(strchr(t.why, '\n'));
	try_free(&t);
}

static void test_goto_jumps_so_often(void **state)
{
	static const int loops[] = {1, 2, 10};

	(void)state;
	for (int k = 0; k < 3; k++) {
		char job[256];
		struct sim_try t;

		/* Nested, so that the inner one starts afresh each time. */
		snprintf(job, sizeof(job),
			"[p]\nphase = outer: compute time=0.01\nphase = inner: compute time=0.001\n"
			"phase = goto target=inner loops=%d\nphase = goto target=outer loops=4\n",
			loops[k]);
		run(&t, job);
		assert_about(t.result.user_s, 5 * (0.01 + 0.001 * (loops[k] + 1)), 1e-6);
		try_free(&t);
	}
}

/* ---- memory that comes and goes ---- */

static void test_areas_come_and_go(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, two,
		"[p]\ncpus = node:0\narea = a size=16M\narea = b size=32M late\n"
		"phase = sweep area=a\nphase = compute time=1\n"
		"phase = map area=b\nphase = sweep area=b\nphase = compute time=1\n"
		"phase = unmap area=b\nphase = compute time=1\n"
		"phase = map area=b\nphase = sweep area=b\nphase = unmap area=a\n"
		"phase = compute time=1\n",
		"none");
	try_open(&t);
	try_until(&t, 0.5);
	assert_int_equal(try_pages(&t), 16 * 256);
	try_until(&t, 1.5);
	assert_int_equal(try_pages(&t), 48 * 256);
	try_until(&t, 2.5);
	assert_int_equal(try_pages(&t), 16 * 256);
	assert_int_equal(t.w.node_used[0], 16 * 256);
	try_until(&t, 3.5);
	assert_int_equal(try_pages(&t), 32 * 256);
	assert_int_equal(t.w.areas[0].node_pages[0], 0);
	assert_int_equal(nb_engine_counters(t.w.engine)->thp_fault_alloc, 8 + 16 + 16);
	try_check(&t);
	try_until(&t, 10);
	assert_int_equal(t.w.live_processes, 0);
	assert_int_equal(try_pages(&t), 0);
	assert_int_equal(t.w.node_used[0], 0);
	try_free(&t);
}

static void test_using_what_is_not_mapped_is_one_line(void **state)
{
	static const char *const phases[] = {"phase = sweep area=b\nphase = map area=b\n",
		"phase = map area=b\nphase = unmap area=b\nphase = uniform area=b bytes=1M\n"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job), "[p]\narea = b size=16M late\n%s", phases[k]);
		try_make(&t, two, job, "none");
		assert_int_equal(try_run(&t), -EINVAL);
		assert_non_null(strstr(t.why, "a phase uses an area that is not mapped"));
		assert_null(strchr(t.why, '\n'));
		try_free(&t);
	}
}

/* ---- accounts ---- */

/* A CPU is in user mode, in the kernel, or idle: no time is used twice. */
static void test_nobody_uses_more_time_than_there_is(void **state)
{
	(void)state;
	for (size_t s = 0; nb_system_at(s); s++) {
		struct sim_try t;

		try_make(&t, SIM_FOUR,
			"[p]\nthreads = 9\narea = a size=96M thp=never\n"
			"phase = main sweep area=a\nphase = sweep area=a slice=own time=5\n"
			"phase = zipf area=a bytes=2G shared=0\n",
			nb_system_name(nb_system_at(s)));
		try_run_well(&t);
		assert_true(
			t.result.user_s + t.result.system_s <= 4 * t.result.elapsed_s + 9 * 0.004);
		assert_true(t.result.user_s + t.result.system_s > 2 * t.result.elapsed_s);
		try_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sweep_touches_its_slice_so_many_times),
		cmocka_unit_test(test_every_pass_meets_the_pages_where_they_are),
		cmocka_unit_test(test_a_time_limit_is_met),
		cmocka_unit_test(test_random_patterns_touch_so_many_bytes),
		cmocka_unit_test(test_an_access_takes_whole_lines),
		cmocka_unit_test(test_a_chase_feels_a_busy_node),
		cmocka_unit_test(test_compute_time_comes_on_top_of_memory),
		cmocka_unit_test(test_random_patterns_touch_as_many_pages_as_chance_would),
		cmocka_unit_test(test_shared_accesses_go_to_everybodys_pages),
		cmocka_unit_test(test_sleep_takes_time_and_no_cpu),
		cmocka_unit_test(test_siblings_share_a_core),
		cmocka_unit_test(test_the_timer_takes_its_part),
		cmocka_unit_test(test_others_wait_for_main),
		cmocka_unit_test(test_others_wait_for_main_each_time),
		cmocka_unit_test(test_a_barrier_holds_all),
		cmocka_unit_test(test_a_barrier_does_not_wait_for_the_dead),
		cmocka_unit_test(test_many_rounds_of_barriers),
		cmocka_unit_test(test_threads_that_wait_for_each_other_are_one_line),
		cmocka_unit_test(test_phases_that_take_no_time_end),
		cmocka_unit_test(test_goto_jumps_so_often),
		cmocka_unit_test(test_areas_come_and_go),
		cmocka_unit_test(test_using_what_is_not_mapped_is_one_line),
		cmocka_unit_test(test_nobody_uses_more_time_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
