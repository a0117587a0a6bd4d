/* SPDX-License-Identifier: MIT */
/* Who runs where: spreading, waking, time slices, balancing, and that nobody runs where it may not.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim_fixture.h"

static const char four[] = "[machine]\ntopology = 4 nodes x 4 cpus x 1G\n" SIM_QUIET;
static const char smt[] =
	"[machine]\ntopology = 4 nodes x 8 cpus x 1G\n[cpu]\nthreads_per_core = 2\n" SIM_QUIET;

/* n threads of one process that compute. */
static void open_threads(struct sim_try *t, const char *machine, int n, const char *more)
{
	char job[256];

	snprintf(job, sizeof(job), "[p]\nthreads = %d\n%sphase = compute time=1000\n", n, more);
	try_make(t, machine, job, "none");
	try_open(t);
}

static void wake_all(struct sim_try *t)
{
	for (uint32_t i = 0; i < t->load.nr_threads; i++)
		sim_sched_wake(&t->w, &t->w.threads[i]);
	sim_sched_refresh(&t->w);
	assert_null(sim_sched_check(&t->w));
}

static uint32_t running_on(const struct sim_try *t, int node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->load.nr_threads; i++)
		n += t->w.threads[i].current && t->w.threads[i].node == node;
	return n;
}

static void go_to_sleep(struct sim_try *t, struct sim_thread *thread)
{
	sim_sched_sleep(&t->w, thread);
	thread->state = SIM_T_SLEEPING;
}

static void sched_tick(struct sim_try *t)
{
	t->w.now_ns = (double)t->w.ticks++ * t->w.tick_ns;
	sim_sched_tick(&t->w);
	if (sim_sched_check(&t->w))
		fail_msg("tick %d: %s", (int)t->w.ticks, sim_sched_check(&t->w));
}

/* ---- placing ---- */

static void test_new_tasks_spread_over_nodes(void **state)
{
	(void)state;
	for (int n = 1; n <= 16; n++) {
		struct sim_try t;

		open_threads(&t, four, n, "");
		wake_all(&t);
		for (int node = 0; node < 4; node++)
			assert_in_range(running_on(&t, node), n / 4, (n + 3) / 4);
		try_free(&t);
	}
}

static void test_nodes_get_tasks_in_proportion_to_their_cpus(void **state)
{
	struct sim_try t;

	(void)state;
	open_threads(&t,
		"[machine]\ntopology = 1 node x 12 cpus x 1G + 1 node x 4 cpus x 1G + 1 node x "
		"1G\n" SIM_QUIET,
		8, "");
	wake_all(&t);
	assert_int_equal(running_on(&t, 0), 6);
	assert_int_equal(running_on(&t, 1), 2);
	assert_int_equal(running_on(&t, 2), 0);
	try_free(&t);
}

static void test_cores_are_filled_before_siblings(void **state)
{
	(void)state;
	for (int n = 1; n <= 32; n++) {
		struct sim_try t;
		uint32_t cores[16] = {0};
		uint32_t most = 0;

		open_threads(&t, smt, n, "");
		wake_all(&t);
		for (int i = 0; i < n; i++) {
			const uint32_t core = (uint32_t)t.model.cpu_core[t.w.threads[i].cpu];

			assert_in_range(core, 0, 15);
			if (++cores[core] > most)
				most = cores[core];
			assert_true(t.w.threads[i].current);
		}
		assert_int_equal(most, n <= 16 ? 1 : 2);
		for (int i = 0; i < n; i++) {
			const uint32_t core = (uint32_t)t.model.cpu_core[t.w.threads[i].cpu];

			/* A core with both threads busy does 1.25 times as much as with one. */
			assert_true(
				t.w.threads[i].core_factor == (cores[core] == 2 ? 1.25 / 2 : 1));
		}
		try_free(&t);
	}
}

/* The first CPU is idle, but its core is busy with the sibling. */
static void test_an_idle_core_is_better_than_an_idle_sibling(void **state)
{
	struct sim_try t;
	uint64_t *only;

	(void)state;
	open_threads(&t,
		"[machine]\ntopology = 1 node x 8 cpus x 1G\n[cpu]\nthreads_per_core = "
		"2\n" SIM_QUIET,
		4, "cpus = all\n");
	assert_int_equal(t.model.cpu_core[0], t.model.cpu_core[4]);
	only = calloc(1, sizeof(*only));
	assert_non_null(only);
	*only = 1 << 4;
	free(t.load.threads[0].cpus);
	t.load.threads[0].cpus = only;
	wake_all(&t);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(t.model.cpu_core[t.w.threads[i].cpu],
				t.model.cpu_core[t.w.threads[k].cpu]);
	try_free(&t);
}

static void test_more_tasks_than_cpus_queue_evenly(void **state)
{
	struct sim_try t;

	(void)state;
	open_threads(&t, four, 48, "");
	wake_all(&t);
	for (int c = 0; c < 16; c++)
		assert_int_equal(t.w.cpus[c].nr_running, 3);
	assert_int_equal(t.w.nr_run, 16);
	assert_int_equal(t.w.nr_waiting, 32);
	try_free(&t);
}

/* ---- waking ---- */

static void test_a_task_wakes_where_it_was(void **state)
{
	struct sim_try t;

	(void)state;
	open_threads(&t, four, 16, "");
	wake_all(&t);
	for (uint32_t i = 0; i < 16; i++) {
		const int32_t cpu = t.w.threads[i].cpu;

		go_to_sleep(&t, &t.w.threads[i]);
		sim_sched_wake(&t.w, &t.w.threads[i]);
		assert_int_equal(t.w.threads[i].cpu, cpu);
		assert_true(t.w.threads[i].debt_ns == 0);
	}
	try_free(&t);
}

static void test_a_task_whose_cpu_is_taken_stays_on_its_node_if_it_can(void **state)
{
	struct sim_try t;
	struct sim_thread *a, *b;

	(void)state;
	open_threads(&t, four, 16, "");
	wake_all(&t);
	a = &t.w.threads[0];
	b = &t.w.threads[1];
	/* b takes the CPU of a; another of that node is free. */
	for (uint32_t i = 2; i < 16; i++)
		if (t.w.threads[i].node == a->node) {
			go_to_sleep(&t, &t.w.threads[i]);
			break;
		}
	go_to_sleep(&t, a);
	assert_int_equal(sim_sched_run_on(&t.w, b, a->node), 0);
	while (b->cpu != a->cpu) {
		assert_int_equal(b->node, a->node);
		/* b has the other free one: change them round. */
		go_to_sleep(&t, b);
		b->cpu = a->cpu;
		b->node = a->node;
		sim_sched_wake(&t.w, b);
	}
	sim_sched_wake(&t.w, a);
	assert_int_equal(a->node, b->node);
	assert_int_not_equal(a->cpu, b->cpu);
	assert_true(a->current);
	/* A move to another CPU costs warm caches. */
	assert_true(a->debt_ns == t.model.task_migrate);
	try_free(&t);
}

static void test_a_task_leaves_a_full_node(void **state)
{
	struct sim_try t;
	struct sim_thread *a;

	(void)state;
	open_threads(&t, four, 17, "");
	wake_all(&t);
	a = &t.w.threads[0];
	go_to_sleep(&t, a); /* its CPU goes to the 17th, if that queued there */
	for (uint32_t i = 1; i < 17; i++)
		if (t.w.threads[i].node != a->node) {
			go_to_sleep(&t, &t.w.threads[i]);
			break;
		}
	sched_tick(&t); /* whoever waits gets going */
	assert_int_equal(t.w.nr_waiting, 0);
	sim_sched_wake(&t.w, a);
	assert_true(a->current);
	assert_null(sim_sched_check(&t.w));
	try_free(&t);
}

/* ---- time slices ---- */

static void test_a_queue_is_served_fairly(void **state)
{
	static const int threads[] = {4, 8, 20};

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct sim_try t;
		double least = INFINITY, most = 0;

		open_threads(&t, "[machine]\ntopology = 2 nodes x 2 cpus x 1G\n" SIM_QUIET,
			threads[k], "");
		try_until(&t, 10);
		for (int i = 0; i < threads[k]; i++) {
			const double ns = t.w.threads[i].user_ns + t.w.threads[i].system_ns;

			least = fmin(least, ns);
			most = fmax(most, ns);
		}
		/* Four CPUs for ten seconds, all of it used. */
		assert_true(fabs((least + most) / 2 * threads[k] / 40e9 - 1) < 0.01);
		assert_true(most - least <= 2 * t.model.timeslice);
		try_free(&t);
	}
}

/* ---- balancing ---- */

static void test_an_idle_cpu_takes_a_waiting_task(void **state)
{
	struct sim_try t;

	(void)state;
	open_threads(&t, four, 20, "");
	wake_all(&t);
	assert_int_equal(t.w.nr_waiting, 4);
	for (uint32_t i = 0, slept = 0; i < 20 && slept < 4; i++) {
		struct sim_thread *s = &t.w.threads[i];

		/* Those that run alone: their CPUs become idle. */
		if (!s->current || t.w.cpus[s->cpu].nr_running > 1)
			continue;
		go_to_sleep(&t, s);
		slept++;
	}
	assert_int_equal(t.w.nr_waiting, 4);
	sched_tick(&t);
	assert_int_equal(t.w.nr_waiting, 0);
	for (int c = 0; c < 16; c++)
		assert_int_equal(t.w.cpus[c].nr_running, 1);
	try_free(&t);
}

static void test_nodes_are_balanced_while_they_run(void **state)
{
	struct sim_try t;

	(void)state;
	open_threads(&t, four, 4, "cpus = node:0\n");
	wake_all(&t);
	assert_int_equal(running_on(&t, 0), 4);
	for (int i = 0; i < 50; i++)
		sched_tick(&t);
	assert_int_equal(running_on(&t, 0), 4); /* where they must */
	for (int i = 0; i < 4; i++) {
		free(t.load.threads[i].cpus);
		t.load.threads[i].cpus = NULL;
	}
	/* At most one task a node and interval. */
	for (double ns = 0; ns < 2 * t.model.balance_interval; ns += t.w.tick_ns)
		sched_tick(&t);
	for (int n = 0; n < 4; n++)
		assert_int_equal(running_on(&t, n), 1);
	try_free(&t);
}

/* Where nothing is gained by it nobody is moved: neither at one task's difference, nor between
 * nodes that are as full for their sizes, nor within what imbalance_pct allows. */
static void test_balanced_nodes_are_left_alone(void **state)
{
	static const struct {
		const char *machine;
		int threads;
	} cases[] = {
		{"[machine]\ntopology = 4 nodes x 4 cpus x 1G\n" SIM_QUIET, 6},
		{"[machine]\ntopology = 4 nodes x 4 cpus x 1G\n" SIM_QUIET, 9},
		{"[machine]\ntopology = 1 node x 16 cpus x 1G + 1 node x 4 cpus x 1G\n" SIM_QUIET,
			10},
		{"[machine]\ntopology = 1 node x 4 cpus x 1G + 1 node x 16 cpus x 1G\n" SIM_QUIET,
			10},
	};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct sim_try t;
		int32_t cpu[16];

		open_threads(&t, cases[k].machine, cases[k].threads, "");
		wake_all(&t);
		for (int i = 0; i < cases[k].threads; i++)
			cpu[i] = t.w.threads[i].cpu;
		for (int i = 0; i < 500; i++)
			sched_tick(&t);
		for (int i = 0; i < cases[k].threads; i++)
			assert_int_equal(t.w.threads[i].cpu, cpu[i]);
		try_free(&t);
	}
}

static void test_an_imbalance_within_imbalance_pct_is_left(void **state)
{
	/* Twelve tasks against ten: 1.2 times as full. */
	static const char *const machine[] = {
		"[machine]\ntopology = 2 nodes x 12 cpus x 1G\n" SIM_QUIET "imbalance_pct = 125\n",
		"[machine]\ntopology = 2 nodes x 12 cpus x 1G\n" SIM_QUIET "imbalance_pct = 110\n"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct sim_try t;

		open_threads(&t, machine[k], 24, "");
		wake_all(&t);
		for (uint32_t i = 0, n = 0; n < 2; i++)
			if (t.w.threads[i].node == 1) {
				go_to_sleep(&t, &t.w.threads[i]);
				n++;
			}
		for (int i = 0; i < 200; i++)
			sched_tick(&t);
		assert_int_equal(running_on(&t, 0), k == 0 ? 12 : 11);
		try_free(&t);
	}
}

static void test_run_on_moves_a_task_where_it_may_go(void **state)
{
	struct sim_try t;
	struct sim_thread *a;

	(void)state;
	open_threads(&t, four, 16, "cpus = nodes:0,2,3\n");
	wake_all(&t);
	a = &t.w.threads[0];
	assert_int_equal(sim_sched_run_on(&t.w, a, 1), -EINVAL);
	assert_int_equal(sim_sched_run_on(&t.w, a, 2), 0);
	assert_int_equal(a->node, 2);
	assert_null(sim_sched_check(&t.w));
	go_to_sleep(&t, a);
	assert_int_equal(sim_sched_run_on(&t.w, a, 0), -EINVAL);
	assert_null(sim_sched_check(&t.w));
	try_free(&t);
}

/* ---- what else runs ---- */

static void test_moments_stolen_add_up_to_their_rate(void **state)
{
	struct sim_try t;

	(void)state;
	/* 5 a second of 10 ms: a twentieth of each CPU. */
	try_job(&t,
		"[machine]\ntopology = 2 nodes x 4 cpus x 1G\n[scheduler]\nsteal_per_s = 5\n"
		"steal_ms = 10\nwander_per_min = 0\n",
		"[global]\ntime_limit = 100\n[p]\nthreads = 8\nphase = compute time=1000\n",
		"none");
	/* 800 CPU seconds, 4000 moments: three standard deviations are 2 ms x 190 = 1.9 s. */
	assert_true(fabs(t.result.user_s + t.result.system_s - 800 * 0.95) < 3);
	try_free(&t);
}

static void test_tasks_wander_at_their_rate(void **state)
{
	struct sim_try t;
	int moves = 0;
	int32_t cpu[8];

	(void)state;
	open_threads(&t,
		"[machine]\ntopology = 1 node x 16 cpus x 1G\n[scheduler]\nsteal_per_s = 0\n"
		"wander_per_min = 6\n",
		8, "");
	try_tick(&t);
	for (int i = 0; i < 8; i++)
		cpu[i] = t.w.threads[i].cpu;
	for (int tick = 0; tick < 250 * 1000; tick++) {
		try_tick(&t);
		for (int i = 0; i < 8; i++) {
			moves += t.w.threads[i].cpu != cpu[i];
			cpu[i] = t.w.threads[i].cpu;
		}
	}
	/* 8 tasks x 1000 s / 10 s, the chance of 15 in 16 to be sent elsewhere, and 7 in 16 to
	 * change places with another, which moves both: 1075. */
	assert_in_range(moves, 950, 1250);
	try_free(&t);
}

/* ---- any stream ---- */

static void set_affinity(struct sim_try *t, struct sim_thread *thread, struct sim_rng *rng)
{
	struct sim_thread_load *load = &t->load.threads[thread - t->w.threads];
	const uint64_t mask = sim_rng_next(rng) & sim_rng_next(rng) & 0xffff;

	if (!load->cpus) {
		load->cpus = calloc(1, sizeof(*load->cpus));
		assert_non_null(load->cpus);
	}
	*load->cpus = mask ? mask : 1;
}

static void any_event(struct sim_try *t, struct sim_rng *rng)
{
	struct sim_thread *a = &t->w.threads[sim_rng_below(rng, t->load.nr_threads)];
	const uint64_t kind = sim_rng_below(rng, 8);

	if (a->state == SIM_T_RUNNABLE && kind < 3)
		go_to_sleep(t, a);
	else if (a->state == SIM_T_RUNNABLE && kind == 3)
		sim_sched_run_on(&t->w, a, (int)sim_rng_below(rng, 4));
	else if (a->state == SIM_T_RUNNABLE && kind == 4)
		sim_sched_move(&t->w, a, (int)sim_rng_below(rng, 4));
	else if (a->state == SIM_T_RUNNABLE && kind == 5)
		sim_sched_swap(&t->w, a, &t->w.threads[sim_rng_below(rng, t->load.nr_threads)]);
	else if (a->state != SIM_T_RUNNABLE && kind < 2) {
		/* Off the CPU, so nothing is violated by a new affinity. */
		set_affinity(t, a, rng);
		a->pinned_node =
			sim_rng_below(rng, 3)
				? -1
				: __builtin_ctzll(*t->load.threads[a - t->w.threads].cpus) / 4;
	} else if (a->state != SIM_T_RUNNABLE) {
		sim_sched_wake(&t->w, a);
	}
}

static void test_any_stream_of_events_keeps_everybody_where_they_may_be(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct sim_try t;
		struct sim_rng rng;

		print_message("seed %d\n", (int)seed);
		sim_rng_seed(&rng, seed);
		/* No quiet machine: tasks wander, CPUs are stolen. */
		open_threads(&t,
			"[machine]\ntopology = 4 nodes x 4 cpus x 1G\n[cpu]\nthreads_per_core = 2\n"
			"[scheduler]\nwander_per_min = 6000\nsteal_per_s = 100\n"
			"balance_interval_ms = 8\n",
			4 + (int)sim_rng_below(&rng, 40), "");
		for (int tick = 0; tick < 2000; tick++) {
			for (uint64_t k = sim_rng_below(&rng, 4); k; k--)
				any_event(&t, &rng);
			sched_tick(&t);
		}
		try_free(&t);
	}
}

static void test_the_checker_sees_what_is_wrong(void **state)
{
	struct sim_try t;
	struct sim_thread *a;

	(void)state;
	open_threads(&t, four, 20, "cpus = nodes:0..3\n");
	wake_all(&t);
	a = &t.w.threads[0];
	a->node = (int16_t)(a->node ^ 1);
	assert_non_null(sim_sched_check(&t.w));
	a->node = (int16_t)(a->node ^ 1);
	t.load.threads[0].cpus[0] &= ~(UINT64_C(1) << a->cpu);
	assert_non_null(sim_sched_check(&t.w));
	t.load.threads[0].cpus[0] |= UINT64_C(1) << a->cpu;
	t.w.nr_waiting++;
	assert_non_null(sim_sched_check(&t.w));
	t.w.nr_waiting--;
	t.w.core_busy[3]++;
	assert_non_null(sim_sched_check(&t.w));
	t.w.core_busy[3]--;
	a->state = SIM_T_SLEEPING;
	assert_non_null(sim_sched_check(&t.w));
	a->state = SIM_T_RUNNABLE;
	t.w.cpus[a->cpu].nr_running++;
	assert_non_null(sim_sched_check(&t.w));
	t.w.cpus[a->cpu].nr_running--;
	assert_null(sim_sched_check(&t.w));
	try_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_tasks_spread_over_nodes),
		cmocka_unit_test(test_nodes_get_tasks_in_proportion_to_their_cpus),
		cmocka_unit_test(test_cores_are_filled_before_siblings),
		cmocka_unit_test(test_an_idle_core_is_better_than_an_idle_sibling),
		cmocka_unit_test(test_more_tasks_than_cpus_queue_evenly),
		cmocka_unit_test(test_a_task_wakes_where_it_was),
		cmocka_unit_test(test_a_task_whose_cpu_is_taken_stays_on_its_node_if_it_can),
		cmocka_unit_test(test_a_task_leaves_a_full_node),
		cmocka_unit_test(test_a_queue_is_served_fairly),
		cmocka_unit_test(test_an_idle_cpu_takes_a_waiting_task),
		cmocka_unit_test(test_nodes_are_balanced_while_they_run),
		cmocka_unit_test(test_balanced_nodes_are_left_alone),
		cmocka_unit_test(test_an_imbalance_within_imbalance_pct_is_left),
		cmocka_unit_test(test_run_on_moves_a_task_where_it_may_go),
		cmocka_unit_test(test_moments_stolen_add_up_to_their_rate),
		cmocka_unit_test(test_tasks_wander_at_their_rate),
		cmocka_unit_test(test_any_stream_of_events_keeps_everybody_where_they_may_be),
		cmocka_unit_test(test_the_checker_sees_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
