/* SPDX-License-Identifier: MIT */
/* Whole runs: what a result says, and that the same run gives the same result. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sim_fixture.h"

/* As busy as a machine gets: tasks wander, moments are stolen. */
static const char busy[] =
	"[machine]\ntopology = 4 nodes x 2 cpus x 512M\n[memory]\nbandwidth_mib_s = 3000\n"
	"[scheduler]\nwander_per_min = 10\nsteal_ms = 5\n";

static const char mixed_job[] =
	"[p]\nthreads = 8\narea = a size=256M\narea = b size=64M thp=never\n"
	"phase = main sweep area=a\nphase = main sweep area=b\n"
	"phase = again: sweep area=a slice=own loops=20\nphase = zipf area=b bytes=200M\n"
	"phase = goto target=again loops=3\n";

static uint64_t total(const uint64_t *pages, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += pages[i];
	return sum;
}

/* ---- the same again ---- */

static void assert_same(const struct nb_result *a, const struct nb_result *b)
{
	assert_true(a->elapsed_s == b->elapsed_s && a->user_s == b->user_s);
	assert_true(a->system_s == b->system_s && a->bytes == b->bytes);
	assert_true(a->local_share == b->local_share);
	assert_memory_equal(&a->counters, &b->counters, sizeof(a->counters));
	assert_int_equal(a->nr_nodes, b->nr_nodes);
	assert_int_equal(a->nr_samples, b->nr_samples);
	assert_memory_equal(a->final_pages, b->final_pages, a->nr_nodes * sizeof(*a->final_pages));
	assert_memory_equal(a->samples, b->samples, a->nr_samples * sizeof(*a->samples));
	assert_memory_equal(a->node_pages, b->node_pages,
		(size_t)a->nr_samples * a->nr_nodes * sizeof(*a->node_pages));
}

static void test_the_same_seed_gives_the_same_result(void **state)
{
	(void)state;
	for (size_t s = 0; nb_system_at(s); s++) {
		struct sim_try a, b;

		try_make(&a, busy, mixed_job, nb_system_name(nb_system_at(s)));
		try_make(&b, busy, mixed_job, nb_system_name(nb_system_at(s)));
		a.options.seed = b.options.seed = 42 + s;
		b.options.check = false; /* looking changes nothing */
		try_run_well(&a);
		try_run_well(&b);
		assert_same(&a.result, &b.result);
		b.options.seed++;
		try_run_well(&b);
		assert_true(a.result.elapsed_s != b.result.elapsed_s);
		try_free(&a);
		try_free(&b);
	}
}

static void ignore_event(void *ctx, const struct nb_event *e)
{
	(void)e;
	++*(uint64_t *)ctx;
}

static int ignore_progress(void *ctx, double simulated_s)
{
	(void)ctx;
	(void)simulated_s;
	return 0;
}

static void test_who_watches_changes_nothing(void **state)
{
	struct sim_try a, b;
	uint64_t events = 0;

	(void)state;
	try_job(&a, busy, mixed_job, "balancenuma-v8");
	try_make(&b, busy, mixed_job, "balancenuma-v8");
	b.options.trace = ignore_event;
	b.options.trace_ctx = &events;
	b.options.progress = ignore_progress;
	try_run_well(&b);
	assert_true(events > 1000);
	assert_same(&a.result, &b.result);
	try_free(&a);
	try_free(&b);
}

/* ---- ends ---- */

static void test_a_time_limit_ends_a_run(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR,
		"[global]\ntime_limit = 2.5\n[p]\nthreads = 4\nphase = compute time=1000\n",
		"none");
	assert_true(t.result.timed_out);
	assert_true(t.result.elapsed_s == 2.5);
	assert_true(fabs(t.result.user_s + t.result.system_s - 10) < 0.02);
	try_free(&t);
	/* A job that ends before is not touched by it. */
	try_job(&t, SIM_FOUR,
		"[global]\ntime_limit = 2.5\n[p]\nthreads = 4\nphase = compute time=1\n", "none");
	assert_false(t.result.timed_out);
	assert_true(t.result.elapsed_s < 1.01);
	try_free(&t);
}

static int stop_at_once(void *ctx, double simulated_s)
{
	*(double *)ctx = simulated_s;
	return 1;
}

static void test_progress_can_stop_a_run(void **state)
{
	struct sim_try t;
	double at = -1;

	(void)state;
	try_make(&t, SIM_FOUR, "[p]\nphase = compute time=100000\n", "none");
	t.options.progress = stop_at_once;
	t.options.progress_ctx = &at;
	assert_int_equal(try_run(&t), -EINTR);
	assert_true(at >= 0 && at < 10);
	assert_non_null(strstr(t.why, "interrupted"));
	assert_null(strchr(t.why, '\n'));
	try_free(&t);
}

static int stop_at_the_second(void *ctx, double simulated_s)
{
	double *at = ctx;

	at[1] = simulated_s;
	return at[0]++ > 0;
}

/* Phases of a nanosecond: a tick of this machine is some 60 million of them. */
static void test_a_long_tick_can_be_stopped(void **state)
{
	struct sim_try t;
	double at[2] = {0, -1};

	(void)state;
	try_make(&t, "[machine]\ntopology = 2 nodes x 8 cpus x 256M\n" SIM_QUIET,
		"[global]\ntime_limit = 10\n[p]\nthreads = 16\nphase = again: compute time=1ns\n"
		"phase = goto target=again\n",
		"none");
	t.options.progress = stop_at_the_second;
	t.options.progress_ctx = at;
	assert_int_equal(try_run(&t), -EINTR);
	assert_true(at[0] == 2 && at[1] == 0);
	try_free(&t);
}

/* ---- samples ---- */

static void check_samples(const struct nb_result *r, double interval)
{
	double local = 0, before = 0;

	assert_true(r->samples[0].time_s == 0);
	for (uint32_t i = 0; i < r->nr_samples; i++) {
		const struct nb_sample *s = &r->samples[i];

		/* At the first tick from then on, and at the end. */
		if (i + 1 < r->nr_samples)
			assert_true(s->time_s >= i * interval - 1e-9);
		assert_true(s->time_s < i * interval + 0.0041 * (i + 1));
		assert_true(isnan(s->local_share) ||
			    (s->local_share > -1e-9 && s->local_share < 1 + 1e-9));
		assert_true(s->bytes >= before);
		if (s->bytes > before)
			local += (s->bytes - before) * s->local_share;
		before = s->bytes;
	}
	/* What the samples say of local accesses adds up to what the run says. */
	assert_true(before == r->bytes);
	assert_true(fabs(local - r->local_share * r->bytes) <= 1e-6 * r->bytes);
	assert_true(r->samples[r->nr_samples - 1].time_s == r->elapsed_s);
}

static void test_samples_are_even_and_at_most_a_thousand(void **state)
{
	static const double limits[] = {0.5, 9.99, 10.5, 19.9, 25, 83};

	(void)state;
	for (int k = 0; k < 6; k++) {
		char job[256];
		struct sim_try t;
		double interval = 0.012; /* three ticks */

		/* By turns all of it is local, and a quarter, for about as long as a sample is. */
		snprintf(job, sizeof(job),
			"[global]\ntime_limit = %g\n[p]\nthreads = 4\ncpus = node:thread\n"
			"area = a size=64M\nphase = sweep area=a slice=own\nphase = barrier\n"
			"phase = again: sweep area=a slice=own time=0.012\n"
			"phase = sweep area=a time=0.012\nphase = goto target=again\n",
			limits[k]);
		try_make(&t, SIM_FOUR, job, "balancenuma-v8");
		t.options.sample_interval_s = interval;
		try_run_well(&t);
		while (limits[k] / interval > 1000)
			interval *= 2;
		assert_in_range(
			t.result.nr_samples, limits[k] / interval - 2, limits[k] / interval + 2);
		check_samples(&t.result, interval);
		try_free(&t);
	}
}

static void test_a_sample_a_second_by_default(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR, "[global]\ntime_limit = 30.5\n[p]\nphase = compute time=100\n",
		"none");
	assert_int_equal(t.result.nr_samples, 32);
	assert_true(t.result.samples[30].time_s == 30);
	assert_true(t.result.samples[31].time_s == 30.5);
	try_free(&t);
}

/* The last one is of the last moment at which everything is there, and there is one of each moment.
 */
static void test_the_last_sample_is_the_end(void **state)
{
	static const struct {
		const char *job;
		uint64_t mib; /* of those who are there at the end */
	} cases[] = {
		{"[p]\nthreads = 4\narea = a size=64M\nphase = sweep area=a slice=own loops=1\n",
			64},
		{"[p]\ninstances = 2\narea = a size=64M\nphase = sweep area=a\n"
		 "phase = compute time=1+proc\n",
			64},
		{"[p]\ninstances = 2\nconcurrency = 1\narea = a size=64M\nphase = sweep area=a\n"
		 "phase = sleep time=2\n",
			64},
		{"[global]\ntime_limit = 2\n[p]\narea = a size=64M\nphase = sweep area=a\n"
		 "phase = compute time=9\n",
			64},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct sim_try t;
		const struct nb_result *r = &t.result;
		const struct nb_sample *last;

		try_job(&t, SIM_FOUR, cases[k].job, "balancenuma-v8");
		last = &r->samples[r->nr_samples - 1];
		assert_true(last->time_s == r->elapsed_s);
		assert_true(last->bytes == r->bytes);
		assert_int_equal(last->hint_faults, r->counters.numa_hint_faults);
		assert_true(last->scan_period_ms > 0);
		assert_int_equal(total(&r->node_pages[(r->nr_samples - 1) * r->nr_nodes], 4),
			cases[k].mib * 256);
		for (uint32_t i = 1; i < r->nr_samples; i++)
			assert_true(r->samples[i].time_s > r->samples[i - 1].time_s);
		try_free(&t);
	}
}

static void test_samples_count_pages_by_node(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR,
		"[p]\nthreads = 4\ncpus = node:thread\narea = a size=64M\n"
		"phase = sweep area=a slice=own loops=1\nphase = compute time=3\n",
		"none");
	assert_int_equal(t.result.nr_nodes, 4);
	assert_int_equal(total(&t.result.node_pages[0], 4), 0);
	for (uint32_t i = 1; i < t.result.nr_samples; i++)
		for (int n = 0; n < 4; n++)
			assert_int_equal(t.result.node_pages[i * 4 + n], 16 * 256);
	for (int n = 0; n < 4; n++) {
		assert_int_equal(t.result.node_ids[n], n);
		assert_int_equal(t.result.final_pages[n], 16 * 256);
	}
	try_free(&t);
}

/* Where pages ended up is asked when all processes have started and the first of them ends. */
static void test_final_pages_are_those_before_the_end(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR,
		"[p]\ninstances = 3\narea = a size=16M\nphase = sweep area=a\n"
		"phase = compute time=1+proc\n",
		"none");
	assert_int_equal(total(t.result.final_pages, 4), 3 * 16 * 256);
	try_free(&t);
	/* One after the other: those of the last. */
	try_job(&t, SIM_FOUR,
		"[p]\ninstances = 3\nconcurrency = 1\narea = a size=16M\nphase = sweep area=a\n"
		"phase = compute time=1\n",
		"none");
	assert_int_equal(total(t.result.final_pages, 4), 16 * 256);
	try_free(&t);
}

/* ---- what is there from the start ---- */

static void test_background_fill_leaves_the_rest(void **state)
{
	struct sim_try t;

	(void)state;
	/* A node has 64225 usable pages; 60 % of them are held, 25690 are left less 1 %. */
	try_job(&t, SIM_FOUR,
		"[global]\nbackground_fill = 0.6\n[p]\ncpus = node:1\narea = a size=256M "
		"thp=never\nphase = sweep area=a\nphase = compute time=1\n",
		"none");
	assert_int_equal(total(t.result.final_pages, 4), 65536);
	assert_in_range(t.result.final_pages[1], 25690 - 643 - 512, 25690);
	try_free(&t);
}

static void test_background_fill_holds_the_top_tier_alone(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t,
		"[machine]\ntopology = 1 node x 2 cpus x 256M + 1 node x 256M at 40\n" SIM_QUIET,
		"[global]\nbackground_fill = 0.99\n[p]\narea = a size=200M thp=never\n"
		"phase = sweep area=a\nphase = compute time=1\n",
		"none");
	assert_true(t.result.final_pages[0] < 700);
	assert_int_equal(total(t.result.final_pages, 2), 51200);
	try_free(&t);
}

static void test_preload_starts_on_the_slowest_tier(void **state)
{
	static const char *const thp[] = {"always", "never"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[global]\npreload = lower_tier\n[p]\narea = a size=64M offset=64K thp=%s\n"
			"phase = sweep area=a loops=20\n",
			thp[k]);
		try_make(&t,
			"[machine]\ntopology = 1 node x 2 cpus x 256M + 2 nodes x 256M at "
			"40\n" SIM_QUIET,
			job, "none");
		try_run_well(&t);
		assert_int_equal(t.result.final_pages[0], 0);
		/* Two nodes of that tier share them. */
		assert_int_equal(total(t.result.final_pages, 3), 16384);
		assert_in_range(t.result.final_pages[1], 8192 - 512, 8192 + 512);
		assert_true(t.result.local_share == 0);
		assert_int_equal(t.result.counters.pgfault, 0);
		try_free(&t);
	}
}

static void test_preload_overflows_to_the_next_tier(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, "[machine]\ntopology = 1 node x 2 cpus x 256M + 1 node x 64M at 40\n" SIM_QUIET,
		"[global]\npreload = lower_tier\n[p]\narea = a size=128M thp=never\n"
		"phase = compute time=1\n",
		"none");
	/* 64 MiB less 2 %, in whole blocks. */
	assert_in_range(t.result.final_pages[1], 16056 - 511, 16056);
	assert_int_equal(total(t.result.final_pages, 2), 32768);
	try_free(&t);
}

static void test_preload_means_nothing_on_one_tier(void **state)
{
	struct sim_try t;

	(void)state;
	try_job(&t, SIM_FOUR,
		"[global]\npreload = lower_tier\n[p]\ncpus = node:2\narea = a size=64M\n"
		"phase = sweep area=a\n",
		"none");
	assert_int_equal(t.result.final_pages[2], 16384);
	try_free(&t);
}

/* ---- processes ---- */

static void test_a_pool_runs_so_many_at_a_time(void **state)
{
	struct sim_try t;
	uint32_t most = 0;

	(void)state;
	try_make(&t, SIM_FOUR,
		"[p]\ninstances = 20\nconcurrency = 3\nphase = compute time=0.1\n"
		"[q]\ninstances = 2\nstart = 0.5\nphase = sleep time=0.2\n",
		"none");
	try_open(&t);
	while (t.w.live_processes || t.w.waiting_processes) {
		uint32_t p = 0, q = 0;

		try_tick(&t);
		for (int i = 0; i < 20; i++)
			p += t.w.processes[i].state == SIM_PROC_RUNNING;
		for (int i = 20; i < 22; i++)
			q += t.w.processes[i].state == SIM_PROC_RUNNING;
		assert_true(p <= 3);
		most = p > most ? p : most;
		if (t.w.now_ns < 0.5e9)
			assert_int_equal(q, 0);
	}
	assert_int_equal(most, 3);
	/* Seven rounds; the next one starts at a tick. */
	assert_true(t.w.end_ns > 0.7e9 && t.w.end_ns < 0.7e9 + 7 * 5e6);
	try_free(&t);
}

static void test_an_area_can_be_shared_between_processes(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, SIM_FOUR,
		"[p]\ninstances = 3\ncpus = node:proc\narea = own size=16M\n"
		"area = common size=32M shared\nphase = sweep area=common\nphase = sweep area=own\n"
		"phase = compute time=1+proc\n",
		"balancenuma-v8");
	try_open(&t);
	try_until(&t, 0.9);
	assert_int_equal(t.w.nr_areas, 4);
	assert_int_equal(try_pages(&t), (3 * 16 + 32) * 256);
	try_until(&t, 2.5); /* two of them are gone */
	assert_int_equal(t.w.live_processes, 1);
	assert_int_equal(try_pages(&t), (16 + 32) * 256);
	try_until(&t, 10);
	assert_int_equal(try_pages(&t), 0);
	assert_int_equal(total(t.w.node_used, 4), 0);
	try_free(&t);
}

/* ---- machines ---- */

static void test_odd_machines_run(void **state)
{
	static const char *const machines[] = {
		"1 node x 1 cpu x 256M",
		"1 node x 4 cpus + 1 node x 256M",
		"1 node x 256M + 1 node x 4 cpus + 1 node x 2 cpus x 64M",
		"2 nodes x 3 cpus x 128M + 2 nodes x 2 cpus + 2 nodes x 64M at 40",
		"64 nodes x 1 cpu x 16M",
		"8 nodes x 1 cpu x 1G at 254",
	};

	(void)state;
	for (int k = 0; k < 6; k++)
		for (size_t s = 0; nb_system_at(s); s++) {
			struct sim_try t;

			try_job(&t, machines[k],
				"[global]\ntime_limit = 20\n[p]\nthreads = cpus\n"
				"area = a size=96M offset=64K\narea = b size=32M thp=never\n"
				"phase = main sweep area=a\n"
				"phase = sweep area=a slice=own time=3\n"
				"phase = uniform area=b bytes=64M\n",
				nb_system_name(nb_system_at(s)));
			assert_true(isfinite(t.result.elapsed_s) && t.result.elapsed_s > 3);
			assert_int_equal(total(t.result.final_pages, t.result.nr_nodes) / 256, 128);
			for (unsigned int n = 0; n < t.result.nr_nodes; n++)
				if (!t.model.topo.nodes[n].mem_bytes)
					assert_int_equal(t.result.final_pages[n], 0);
			try_free(&t);
		}
}

static void test_ids_may_have_holes(void **state)
{
	static const char text[] = "available: 3 nodes (0,8,250)\n"
				   "node 0 cpus: 0 1\nnode 0 size: 128 MB\n"
				   "node 8 cpus: 4 5\nnode 8 size: 128 MB\n"
				   "node 250 cpus:\nnode 250 size: 64 MB\n"
				   "node distances:\nnode   0   8 250\n  0:  10  20  40\n"
				   "  8:  20  10  40\n250:  40  40  10\n";
	char path[] = "/tmp/numabal-test-run-XXXXXX";
	const int fd = mkstemp(path);
	struct sim_try t;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	try_job(&t, path,
		"[p]\nthreads = 2\ncpus = node:thread\narea = a size=32M\n"
		"area = b size=8M policy=bind:2\nphase = sweep area=a slice=own\n"
		"phase = main sweep area=b\nphase = compute time=1\n",
		"balancenuma-v8");
	unlink(path);
	assert_int_equal(t.result.node_ids[0], 0);
	assert_int_equal(t.result.node_ids[1], 8);
	assert_int_equal(t.result.node_ids[2], 250);
	assert_int_equal(t.result.final_pages[0], 4096);
	assert_int_equal(t.result.final_pages[1], 4096);
	assert_int_equal(t.result.final_pages[2], 2048);
	try_free(&t);
}

/* Every topology people sent in that can run something does, holes in its numbering and all. */
static void test_recorded_topologies_run(void **state)
{
	const char *shared = getenv("NUMABAL_SHARED");
	char path[512];
	struct dirent *d;
	DIR *dir;
	int ran = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/cases", shared ? shared : "../shared");
	dir = opendir(path);
	if (!dir)
		skip();
	while ((d = readdir(dir))) {
		struct sim_try t = {0};
		struct sim_model m;

		if (strncmp(d->d_name, "numactl", 7) && strncmp(d->d_name, "sysfs", 5) &&
			strncmp(d->d_name, "hwloc", 5))
			continue;
		snprintf(path, sizeof(path), "%s/cases/%s", shared ? shared : "../shared",
			d->d_name);
		/* What is refused, and why, the tests of topo/ say. */
		if (sim_model_load(&m, path, t.why, sizeof(t.why)))
			continue;
		sim_model_free(&m);
		print_message("%s\n", d->d_name);
		try_job(&t, path,
			"[p]\nthreads = min(cpus, 16)\narea = a size=16M\n"
			"phase = main sweep area=a\nphase = sweep area=a slice=own time=2\n",
			"balancenuma-v8");
		assert_int_equal(total(t.result.final_pages, t.result.nr_nodes), 4096);
		for (unsigned int n = 0; n < t.result.nr_nodes; n++)
			assert_int_equal(t.result.node_ids[n], t.model.topo.nodes[n].id);
		try_free(&t);
		ran++;
	}
	closedir(dir);
	assert_true(ran >= 8);
}

/* From CPUs of node 0 to memory of node 1 it is farther than back. */
static void test_directions_can_cost_differently(void **state)
{
	double rate[2];

	(void)state;
	for (int cpu = 0; cpu < 2; cpu++) {
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\ncpus = node:%d\narea = a size=32M policy=bind:%d\n"
			"phase = sweep area=a\nphase = chase area=a bytes=16M\n",
			cpu, 1 - cpu);
		try_job(&t,
			"[machine]\ntopology = 2 nodes x 2 cpus x 256M\n[latency]\n0 = 100 400\n1 "
			"= 200 "
			"100\n" SIM_QUIET,
			job, "none");
		rate[cpu] = t.result.bytes / t.result.user_s;
		try_free(&t);
	}
	assert_true(fabs(rate[1] / rate[0] - 2) < 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_seed_gives_the_same_result),
		cmocka_unit_test(test_who_watches_changes_nothing),
		cmocka_unit_test(test_a_time_limit_ends_a_run),
		cmocka_unit_test(test_progress_can_stop_a_run),
		cmocka_unit_test(test_a_long_tick_can_be_stopped),
		cmocka_unit_test(test_samples_are_even_and_at_most_a_thousand),
		cmocka_unit_test(test_a_sample_a_second_by_default),
		cmocka_unit_test(test_the_last_sample_is_the_end),
		cmocka_unit_test(test_samples_count_pages_by_node),
		cmocka_unit_test(test_final_pages_are_those_before_the_end),
		cmocka_unit_test(test_background_fill_leaves_the_rest),
		cmocka_unit_test(test_background_fill_holds_the_top_tier_alone),
		cmocka_unit_test(test_preload_starts_on_the_slowest_tier),
		cmocka_unit_test(test_preload_overflows_to_the_next_tier),
		cmocka_unit_test(test_preload_means_nothing_on_one_tier),
		cmocka_unit_test(test_a_pool_runs_so_many_at_a_time),
		cmocka_unit_test(test_an_area_can_be_shared_between_processes),
		cmocka_unit_test(test_odd_machines_run),
		cmocka_unit_test(test_ids_may_have_holes),
		cmocka_unit_test(test_recorded_topologies_run),
		cmocka_unit_test(test_directions_can_cost_differently),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
