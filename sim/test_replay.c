/* SPDX-License-Identifier: MIT */
/* Recordings played again: what events say of a program, and what becomes of it on a machine. */
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

#include "jobfile.h"
#include "replay.h"
#include "sim_fixture.h"

/* 10 lines of 64 bytes in 100 ns: a CPU alone gets 6.4 bytes/ns from near memory. */
#define COSTS                                                                                      \
	"[memory]\nlatency_ns = 100\nbandwidth_mib_s = 100000\n[cpu]\nlines_in_flight = "          \
	"10\n" SIM_QUIET
static const char two[] = "[machine]\ntopology = 2 nodes x 2 cpus x 1G\n" COSTS;
static const char four[] = "[machine]\ntopology = 4 nodes x 1 cpu x 1G\n" COSTS;
/* All memory is near. */
static const char one[] = "[machine]\ntopology = 1 node x 2 cpus x 1G\n" COSTS;
static const double RATE = 6.4;

enum { MM = 7, MAIN = 7, BLOCKS = 32, MB2_PAGES = 512 };
static const uint64_t BASE = UINT64_C(0x7f0000000000);

/* ---- events ---- */

struct tape {
	struct sim_replay *replay;
	struct sim_job *job; /* once it is played */
	uint64_t now_ns;
	uint32_t mm;
};

static void start(struct tape *t)
{
	*t = (struct tape){.replay = sim_replay_new("dir/tape.nbrec"), .mm = MM};
	assert_non_null(t->replay);
}

static void say(struct tape *t, struct nb_event e)
{
	char why[SIM_TEXT];

	e.time_ns = t->now_ns;
	e.mm = t->mm;
	assert_int_equal(sim_replay_event(t->replay, &e, why, sizeof(why)), 0);
}

static void at(struct tape *t, double s)
{
	t->now_ns = (uint64_t)(s * 1e9);
}

static void plain(struct tape *t, uint8_t type, uint32_t task)
{
	say(t, (struct nb_event){.type = type, .task = task, .node_from = -1, .node_to = -1});
}

static void range(struct tape *t, uint8_t type, uint32_t block, uint32_t blocks, int node)
{
	say(t, (struct nb_event){.type = type,
		       .addr = BASE + (uint64_t)block * SIM_MB2,
		       .pages = blocks * MB2_PAGES,
		       .node_from = -1,
		       .node_to = (int16_t)node});
}

static void ran(struct tape *t, uint32_t task, double s, int node)
{
	say(t, (struct nb_event){.type = NB_EVENT_TASK_RUN,
		       .task = task,
		       .arg = (uint32_t)(s * 1e6),
		       .node_from = -1,
		       .node_to = (int16_t)node});
}

static void waited(struct tape *t, uint32_t task, double s)
{
	say(t, (struct nb_event){.type = NB_EVENT_TASK_WAIT,
		       .task = task,
		       .arg = (uint32_t)(s * 1e6),
		       .node_from = -1,
		       .node_to = -1});
}

static void fault(struct tape *t, uint32_t task, uint32_t block)
{
	say(t, (struct nb_event){.type = NB_EVENT_HINT_FAULT,
		       .task = task,
		       .addr = BASE + (uint64_t)block * SIM_MB2,
		       .pages = MB2_PAGES,
		       .huge = 1});
}

/* A process with one thread and `blocks` mapped, at 0 s. */
static void begin(struct tape *t, uint32_t blocks)
{
	start(t);
	plain(t, NB_EVENT_MM_NEW, 0);
	range(t, NB_EVENT_VMA_MAP, 0, blocks, -1);
	plain(t, NB_EVENT_TASK_NEW, MAIN);
}

/* ---- what comes of them ---- */

/* As try_make, of a tape. */
static void play(struct sim_try *try, struct tape *t, const char *machine, const char *variables)
{
	const char *const trivial = "[p]\nphase = compute time=1\n";

	try_make(try, machine, trivial, "none");
	sim_load_free(&try->load);
	assert_int_equal(
		sim_replay_job(&t->job, t->replay, variables, try->why, sizeof(try->why)), 0);
	assert_int_equal(
		sim_load_resolve(&try->load, t->job, &try->model, try->why, sizeof(try->why)), 0);
}

static void done(struct sim_try *try, struct tape *t)
{
	try_free(try);
	sim_job_free(t->job);
}

static int refusal(struct tape *t, const char *variables, const char *says)
{
	struct sim_job *job = NULL;
	char why[SIM_TEXT] = "";
	const int err = sim_replay_job(&job, t->replay, variables, why, sizeof(why));

	assert_non_null(strstr(why, says));
	assert_non_null(strstr(why, "dir/tape.nbrec"));
	return err;
}

static double bytes_of(const struct sim_try *try, uint32_t thread)
{
	const struct sim_thread_load *t = &try->load.threads[thread];
	double bytes = 0;

	for (uint32_t i = 0; i < t->nr_phases; i++)
		if (t->phases[i].kind == SIM_PHASE_UNIFORM)
			bytes += t->phases[i].bytes;
	return bytes;
}

static double time_of(const struct sim_try *try, uint32_t thread, uint8_t kind)
{
	const struct sim_thread_load *t = &try->load.threads[thread];
	double s = 0;

	for (uint32_t i = 0; i < t->nr_phases; i++)
		if (t->phases[i].kind == kind)
			s += t->phases[i].time_s;
	return s;
}

/* The thread's accesses to a block of the first area, over all. */
static double bytes_on(const struct sim_try *try, uint32_t thread, uint32_t block)
{
	const struct sim_thread_load *t = &try->load.threads[thread];
	double bytes = 0;

	for (uint32_t i = 0; i < t->nr_phases; i++) {
		const struct sim_phase *p = &t->phases[i];
		const uint64_t offset = (uint64_t)block * SIM_MB2;
		double sum = 0;

		if (p->kind != SIM_PHASE_UNIFORM || p->area || offset < p->from || offset >= p->to)
			continue;
		for (uint64_t k = 0; k < (p->to - p->from) / SIM_MB2; k++)
			sum += (double)p->weights[k];
		bytes += p->bytes * (double)p->weights[(offset - p->from) / SIM_MB2] / sum;
	}
	return bytes;
}

#define assert_about(a, b) assert_true(fabs((a) / (b)-1) < 1e-3)

/* ---- autonumabench's numa02 in small ---- */

/* The main thread clears everything on node 0; then each of four workers has a slice of its own. */
static void numa02(struct tape *t)
{
	begin(t, BLOCKS);
	at(t, 0.05);
	ran(t, MAIN, 0.05, 0);
	range(t, NB_EVENT_PRESENT, 0, BLOCKS, 0);
	for (int i = 1; i <= 4; i++)
		plain(t, NB_EVENT_TASK_NEW, MAIN + (uint32_t)i);
	for (double s = 0.3; s < 6; s += 0.25) {
		at(t, s);
		for (int i = 1; i <= 4; i++)
			ran(t, MAIN + (uint32_t)i, 0.25, i % 2);
		range(t, NB_EVENT_SCAN_ARM, 0, BLOCKS, -1);
		for (uint32_t b = 0; b < BLOCKS; b++)
			fault(t, MAIN + 1 + b / (BLOCKS / 4), b);
	}
}

static uint64_t pages_on(const struct sim_try *try, unsigned int node)
{
	return try->result.final_pages[node];
}

static void test_without_balancing_pages_stay_where_main_touched_them(void **state)
{
	const char *const machines[] = {two, four};

	(void)state;
	for (int m = 0; m < 2; m++) {
		struct sim_try try;
		struct tape t;
		uint64_t most = 0;

		numa02(&t);
		play(&try, &t, machines[m], NULL);
		try_run_well(&try);
		for (unsigned int n = 0; n < try.result.nr_nodes; n++)
			most = pages_on(&try, n) > most ? pages_on(&try, n) : most;
		assert_int_equal(most, BLOCKS * MB2_PAGES);
		done(&try, &t);
	}
}

static void test_balancing_brings_each_slice_to_its_thread(void **state)
{
	const char *const systems[] = {"balancenuma-v8", "linux-6.8"};

	(void)state;
	for (int s = 0; s < 2; s++) {
		struct sim_try try;
		struct tape t;

		numa02(&t);
		play(&try, &t, four, NULL);
		nb_config_from_system(&try.config, nb_system_find(systems[s]));
		try_run_well(&try);
		/* A thread to a CPU, a CPU to a node. */
		for (unsigned int n = 0; n < 4; n++)
			assert_int_equal(pages_on(&try, n), BLOCKS * MB2_PAGES / 4);
		done(&try, &t);
		numa02(&t);
		play(&try, &t, two, NULL);
		nb_config_from_system(&try.config, nb_system_find(systems[s]));
		try_run_well(&try);
		assert_int_equal(pages_on(&try, 0), BLOCKS * MB2_PAGES / 2);
		assert_int_equal(pages_on(&try, 1), BLOCKS * MB2_PAGES / 2);
		done(&try, &t);
	}
}

static void test_the_same_seed_gives_the_same_run(void **state)
{
	struct nb_result first;
	struct sim_try try;
	struct tape t;

	(void)state;
	for (int k = 0; k < 2; k++) {
		numa02(&t);
		play(&try, &t, two, NULL);
		nb_config_from_system(&try.config, nb_system_find("linux-6.8"));
		try_run_well(&try);
		if (k) {
			assert_true(first.elapsed_s == try.result.elapsed_s);
			assert_true(first.bytes == try.result.bytes);
			assert_memory_equal(
				&first.counters, &try.result.counters, sizeof(first.counters));
		}
		first = try.result;
		done(&try, &t);
	}
}

/* ---- who used what ---- */

/* So long a run at the near rate, and no access to what a thread did not use. */
static void test_accesses_follow_run_time(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 4);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	for (int k = 1; k <= 8; k++) {
		at(&t, k * 0.25);
		ran(&t, MAIN, 0.2, 0);
		ran(&t, 8, 0.1, 0);
		fault(&t, MAIN, 0);
		fault(&t, 8, 3);
	}
	play(&try, &t, two, NULL);
	assert_int_equal(try.load.nr_processes, 1);
	assert_int_equal(try.load.nr_threads, 2);
	assert_about(bytes_of(&try, 0), 8 * 0.2e9 * RATE);
	assert_about(bytes_of(&try, 1), 8 * 0.1e9 * RATE);
	assert_about(bytes_on(&try, 0, 0), bytes_of(&try, 0));
	assert_about(bytes_on(&try, 1, 3), bytes_of(&try, 1));
	/* What they did not run, they slept. */
	assert_about(time_of(&try, 0, SIM_PHASE_SLEEP), 8 * 0.05);
	assert_about(time_of(&try, 1, SIM_PHASE_SLEEP), 8 * 0.15);
	done(&try, &t);
}

/* On a machine with more CPUs nobody would wait for one. */
static void test_waiting_for_a_cpu_is_not_played(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 1);
	for (int k = 1; k <= 8; k++) {
		at(&t, k * 0.25);
		ran(&t, MAIN, 0.1, 0);
		waited(&t, MAIN, 0.1);
		fault(&t, MAIN, 0);
	}
	play(&try, &t, two, NULL);
	assert_about(time_of(&try, 0, SIM_PHASE_SLEEP), 8 * 0.05);
	done(&try, &t);
}

static void test_memory_is_the_share_that_waits_for_it(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 1);
	at(&t, 0.25);
	ran(&t, MAIN, 0.25, 0);
	fault(&t, MAIN, 0);
	play(&try, &t, two, "memory=0.25,thp=never");
	assert_about(bytes_of(&try, 0), 0.25 * 0.25e9 * RATE);
	assert_int_equal(try.load.processes[0].areas[0].thp, SIM_THP_NEVER);
	for (uint32_t i = 0; i < try.load.threads[0].nr_phases; i++)
		if (try.load.threads[0].phases[i].kind == SIM_PHASE_UNIFORM)
			/* A line in 10 ns is a quarter of 40. */
			assert_about(try.load.threads[0].phases[i].compute_ns, 30);
	done(&try, &t);
}

/* Two threads on a node that gives 6.4 bytes/ns in all: half of it each, and the recorded time. */
static void test_no_more_is_asked_of_memory_than_it_gives(void **state)
{
	static const char narrow[] =
		"[machine]\ntopology = 1 node x 2 cpus x 1G\n[memory]\nlatency_ns = 100\n"
		"bandwidth_mib_s = 6103.515625\n[cpu]\nlines_in_flight = 10\n" SIM_QUIET;
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 2);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	for (int k = 1; k <= 8; k++) {
		at(&t, k * 0.25);
		ran(&t, MAIN, 0.25, 0);
		ran(&t, 8, 0.25, 0);
		fault(&t, MAIN, 0);
		fault(&t, 8, 1);
	}
	play(&try, &t, narrow, NULL);
	assert_about(bytes_of(&try, 0), 2e9 * RATE / 2);
	assert_about(bytes_of(&try, 1), 2e9 * RATE / 2);
	try_run_well(&try);
	assert_true(fabs(try.result.elapsed_s / 2 - 1) < 0.05);
	done(&try, &t);
}

/* Samples in turn: each has the block half of the time. */
static void test_a_shared_block_is_shared(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 3);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	for (int k = 1; k <= 40; k++) {
		at(&t, k * 0.1);
		ran(&t, MAIN, 0.1, 0);
		ran(&t, 8, 0.1, 1);
		fault(&t, MAIN, 0);
		fault(&t, 8, 2);
		fault(&t, k % 2 ? MAIN : 8, 1);
	}
	play(&try, &t, two, NULL);
	/* One block all of the time and one for half: a third of the accesses, but for the ends. */
	assert_true(fabs(bytes_on(&try, 0, 1) / bytes_of(&try, 0) - 1.0 / 3) < 0.03);
	assert_true(fabs(bytes_on(&try, 1, 1) / bytes_of(&try, 1) - 1.0 / 3) < 0.03);
	done(&try, &t);
}

/* A block that was sampled once long ago is used as much as one that is sampled all the time. */
static void test_a_settled_block_is_used_still(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 2);
	fault(&t, MAIN, 0);
	fault(&t, MAIN, 1);
	for (int k = 1; k <= 16; k++) {
		at(&t, k * 0.25);
		ran(&t, MAIN, 0.25, 0);
		fault(&t, MAIN, 0);
	}
	play(&try, &t, two, NULL);
	assert_about(bytes_on(&try, 0, 0), bytes_on(&try, 0, 1));
	done(&try, &t);
}

/* Armed pages that wait a second for a touch instead of a tenth: a tenth of the accesses. */
static void test_a_block_that_is_touched_late_is_used_less(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 2);
	for (int k = 0; k < 10; k++) {
		at(&t, k);
		ran(&t, MAIN, k ? 1 : 0, 0);
		if (k)
			fault(&t, MAIN, 1);
		range(&t, NB_EVENT_SCAN_ARM, 0, 2, -1);
		at(&t, k + 0.1);
		fault(&t, MAIN, 0);
	}
	at(&t, 10);
	fault(&t, MAIN, 1);
	play(&try, &t, two, NULL);
	assert_true(fabs(bytes_on(&try, 0, 0) / bytes_on(&try, 0, 1) / 10 - 1) < 0.02);
	done(&try, &t);
}

/* ---- who touched it first ---- */

static uint32_t first_toucher(const struct sim_try *try, uint32_t block)
{
	for (uint32_t n = 0; n < try->load.nr_threads; n++)
		for (uint32_t i = 0; i < try->load.threads[n].nr_phases; i++) {
			const struct sim_phase *p = &try->load.threads[n].phases[i];

			if (p->kind == SIM_PHASE_SWEEP && (uint64_t)block * SIM_MB2 >= p->from &&
				(uint64_t)block * SIM_MB2 < p->to)
				return n;
		}
	return UINT32_MAX;
}

static void test_first_touch_is_by_who_ran(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 10);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	at(&t, 0.05);
	/* Both ran all the time: each its own, as its samples say; but none on another node. */
	ran(&t, MAIN, 0.05, 0);
	ran(&t, 8, 0.05, 1);
	range(&t, NB_EVENT_PRESENT, 0, 1, 0);
	range(&t, NB_EVENT_PRESENT, 2, 1, 1);
	at(&t, 0.1);
	ran(&t, MAIN, 0.05, 0);
	ran(&t, 8, 0.01, 0);
	/* One ran for a moment only: it was the other, whoever uses it later. */
	range(&t, NB_EVENT_PRESENT, 4, 1, 0);
	at(&t, 0.15);
	/* It has moved since. */
	ran(&t, MAIN, 0.05, 1);
	ran(&t, 8, 0.01, 0);
	range(&t, NB_EVENT_PRESENT, 6, 1, 0);
	at(&t, 0.3);
	for (uint32_t b = 0; b < 8; b += 2)
		fault(&t, 8, b);
	play(&try, &t, two, NULL);
	assert_int_equal(first_toucher(&try, 0), 0);
	assert_int_equal(first_toucher(&try, 2), 1);
	assert_int_equal(first_toucher(&try, 4), 0);
	assert_int_equal(first_toucher(&try, 6), 0);
	assert_int_equal(first_toucher(&try, 8), UINT32_MAX);
	done(&try, &t);
}

static void test_threads_that_clear_their_own(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 4);
	for (uint32_t i = 8; i < 11; i++)
		plain(&t, NB_EVENT_TASK_NEW, i);
	at(&t, 0.05);
	for (uint32_t i = MAIN; i < 11; i++)
		ran(&t, i, 0.05, 0);
	range(&t, NB_EVENT_PRESENT, 0, 4, 0);
	at(&t, 0.3);
	for (uint32_t i = MAIN; i < 11; i++)
		fault(&t, i, i - MAIN);
	play(&try, &t, two, NULL);
	for (uint32_t b = 0; b < 4; b++)
		assert_int_equal(first_toucher(&try, b), b);
	done(&try, &t);
}

/* The main thread was nearly through when the last of it was found, and its workers ran already. */
static void test_who_fills_memory_goes_on(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 8);
	at(&t, 0.05);
	ran(&t, MAIN, 0.05, 0);
	range(&t, NB_EVENT_PRESENT, 0, 5, 0);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	at(&t, 0.1);
	ran(&t, MAIN, 0.005, 0);
	ran(&t, 8, 0.045, 0);
	range(&t, NB_EVENT_PRESENT, 5, 2, 0);
	at(&t, 0.15);
	ran(&t, 8, 0.05, 0);
	range(&t, NB_EVENT_PRESENT, 7, 1, 0);
	at(&t, 0.3);
	for (uint32_t b = 0; b < 8; b++)
		fault(&t, 8, b);
	play(&try, &t, two, NULL);
	for (uint32_t b = 0; b < 7; b++)
		assert_int_equal(first_toucher(&try, b), 0);
	/* It did not run any more. */
	assert_int_equal(first_toucher(&try, 7), 1);
	done(&try, &t);
}

/* ---- memory and processes that come and go ---- */

/* An area made late is not there before, and goes when its last user is through with it. */
static void test_late_memory_comes_and_goes(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 1);
	plain(&t, NB_EVENT_TASK_NEW, 8);
	for (int k = 1; k <= 16; k++) {
		at(&t, k * 0.25);
		if (k == 5)
			range(&t, NB_EVENT_VMA_MAP, 8, 4, -1);
		ran(&t, MAIN, 0.25, 0);
		ran(&t, 8, 0.25, 0);
		fault(&t, MAIN, 0);
		fault(&t, 8, 0);
		if (k == 5)
			range(&t, NB_EVENT_PRESENT, 8, 4, 0);
		for (uint32_t b = 8; k > 5 && k < 9 && b < 12; b++)
			fault(&t, b % 2 ? MAIN : 8, b);
		if (k == 9)
			range(&t, NB_EVENT_VMA_UNMAP, 8, 4, -1);
	}
	play(&try, &t, one, NULL);
	assert_int_equal(try.load.processes[0].nr_areas, 2);
	assert_false(try.load.processes[0].areas[0].late);
	assert_true(try.load.processes[0].areas[1].late);
	try_open(&try);
	try_until(&try, 0.5);
	assert_int_equal(try_pages(&try), MB2_PAGES);
	try_until(&try, 2);
	assert_int_equal(try_pages(&try), 5 * MB2_PAGES);
	try_until(&try, 3.5);
	assert_int_equal(try_pages(&try), MB2_PAGES);
	done(&try, &t);
}

/* exec: the number is the same, the program another, and what it had is gone. */
static void test_a_new_program_is_another_process(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 2);
	at(&t, 1);
	ran(&t, MAIN, 1, 0);
	fault(&t, MAIN, 0);
	plain(&t, NB_EVENT_MM_NEW, 0);
	range(&t, NB_EVENT_VMA_MAP, 0, 8, -1);
	at(&t, 3);
	ran(&t, MAIN, 0.5, 0);
	fault(&t, MAIN, 5);
	play(&try, &t, two, NULL);
	assert_int_equal(try.load.nr_processes, 2);
	assert_int_equal(try.load.processes[0].areas[0].bytes, 2 * SIM_MB2);
	assert_int_equal(try.load.processes[1].areas[0].bytes, 8 * SIM_MB2);
	assert_about(try.load.processes[1].start_s, 1);
	assert_about(bytes_of(&try, 1), 0.5e9 * RATE);
	try_run_well(&try);
	done(&try, &t);
}

/* What ran before the first memory worth managing is not part of it. */
static void test_no_more_run_time_than_there_was(void **state)
{
	struct sim_try try;
	struct tape t;

	(void)state;
	begin(&t, 1);
	at(&t, 0.25);
	ran(&t, MAIN, 1000, 0);
	fault(&t, MAIN, 0);
	play(&try, &t, two, NULL);
	assert_about(bytes_of(&try, 0), 0.25e9 * RATE);
	done(&try, &t);
}

/* The owner of a page, for placements by hand, is who uses it most. */
static void test_the_best_placement_knows_owners(void **state)
{
	char chosen[SIM_TEXT];
	struct nb_result best;
	struct sim_try try;
	struct tape t;

	(void)state;
	numa02(&t);
	play(&try, &t, four, NULL);
	assert_int_equal(sim_best(&best, chosen, &try.model, &try.load, &try.options, try.why,
				 sizeof(try.why)),
		0);
	assert_true(best.local_share > 0.99);
	nb_result_free(&best);
	done(&try, &t);
}

/* ---- what is refused ---- */

static void test_refusals(void **state)
{
	struct sim_model m;
	struct sim_load load;
	struct sim_job *job;
	struct tape t;
	char why[SIM_TEXT];

	(void)state;
	begin(&t, 1);
	fault(&t, MAIN, 0);
	assert_int_equal(refusal(&t, NULL, "no task_run"), -EINVAL);
	begin(&t, 1);
	at(&t, 1);
	ran(&t, MAIN, 1, 0);
	assert_int_equal(refusal(&t, NULL, "what memory was used"), -EINVAL);
	for (int k = 0; k < 6; k++) {
		static const char *const wrong[] = {
			"memory=0", "memory=1.1", "memory=", "thp=maybe", "threads=4", "memory"};

		begin(&t, 1);
		at(&t, 1);
		ran(&t, MAIN, 1, 0);
		fault(&t, MAIN, 0);
		assert_int_equal(refusal(&t, wrong[k], wrong[k]), -EINVAL);
	}
	begin(&t, 2048);
	at(&t, 1);
	ran(&t, MAIN, 1, 0);
	range(&t, NB_EVENT_PRESENT, 0, 2048, 0);
	assert_int_equal(sim_replay_job(&job, t.replay, NULL, why, sizeof(why)), 0);
	assert_int_equal(sim_model_load(&m, "2 nodes x 2 cpus x 1G", why, sizeof(why)), 0);
	assert_int_equal(sim_load_resolve(&load, job, &m, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "4.000 GiB"));
	sim_model_free(&m);
	sim_job_free(job);
}

/* More mapped than is kept: one line, and nothing is lost of what was taken. */
static void test_too_much_is_refused(void **state)
{
	struct tape t;
	char why[SIM_TEXT] = "";
	int err = 0;

	(void)state;
	start(&t);
	for (uint64_t i = 0; i < 4 && !err; i++) {
		const struct nb_event e = {.type = NB_EVENT_VMA_MAP,
			.mm = MM,
			.addr = i << 43,
			.pages = 1U << 30,
			.node_from = -1,
			.node_to = -1};

		err = sim_replay_event(t.replay, &e, why, sizeof(why));
	}
	assert_int_equal(err, -E2BIG);
	assert_non_null(strstr(why, "event 3: too much"));
	sim_replay_free(t.replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_balancing_pages_stay_where_main_touched_them),
		cmocka_unit_test(test_balancing_brings_each_slice_to_its_thread),
		cmocka_unit_test(test_the_same_seed_gives_the_same_run),
		cmocka_unit_test(test_accesses_follow_run_time),
		cmocka_unit_test(test_waiting_for_a_cpu_is_not_played),
		cmocka_unit_test(test_memory_is_the_share_that_waits_for_it),
		cmocka_unit_test(test_no_more_is_asked_of_memory_than_it_gives),
		cmocka_unit_test(test_a_shared_block_is_shared),
		cmocka_unit_test(test_a_settled_block_is_used_still),
		cmocka_unit_test(test_a_block_that_is_touched_late_is_used_less),
		cmocka_unit_test(test_first_touch_is_by_who_ran),
		cmocka_unit_test(test_threads_that_clear_their_own),
		cmocka_unit_test(test_who_fills_memory_goes_on),
		cmocka_unit_test(test_late_memory_comes_and_goes),
		cmocka_unit_test(test_a_new_program_is_another_process),
		cmocka_unit_test(test_no_more_run_time_than_there_was),
		cmocka_unit_test(test_the_best_placement_knows_owners),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
