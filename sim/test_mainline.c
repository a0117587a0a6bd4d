/* SPDX-License-Identifier: MIT */
/* The mainline rows on the simulated machine: what they scan, and where tasks end up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include "sim_fixture.h"

#define TWO_NODES                                                                                  \
	"[machine]\ntopology = 2 nodes x 4 cpus x 4G\nstack_mib = 8\n" SIM_QUIET                   \
	"[memory]\nbandwidth_mib_s = 11000\n"

/* ---- the late VMA ---- */

/* What happened to the VMA that was mapped last. */
struct late {
	uint64_t start, end;
	double mapped_s, first_arm_s; /* first_arm_s: negative = never */
	uint64_t armed, moved;
	uint64_t skips[NB_NR_SKIPS];
	uint64_t inactive_before; /* pid_inactive skips before the first arming */
};

static bool in_late(const struct late *l, const struct nb_event *e)
{
	return e->addr >= l->start && e->addr < l->end;
}

static void see_skip(struct late *l, const struct nb_event *e)
{
	l->skips[e->reason]++;
	if (e->reason == NB_SKIP_PID_INACTIVE && l->first_arm_s < 0)
		l->inactive_before++;
}

static void watch(void *ctx, const struct nb_event *e)
{
	struct late *l = ctx;
	const double now_s = (double)e->time_ns / 1e9;

	if (e->type == NB_EVENT_VMA_MAP && e->addr >> 40 == 1) {
		*l = (struct late){.start = e->addr,
			.end = e->addr + (uint64_t)e->pages * NB_PAGE_SIZE,
			.mapped_s = now_s,
			.first_arm_s = -1};
		return;
	}
	if (!in_late(l, e))
		return;
	if (e->type == NB_EVENT_SCAN_SKIP)
		see_skip(l, e);
	if (e->type == NB_EVENT_MOVE_DONE)
		l->moved += e->pages;
	if (e->type != NB_EVENT_SCAN_ARM)
		return;
	l->armed += e->pages;
	if (l->first_arm_s < 0)
		l->first_arm_s = now_s;
}

static struct late run_late(const char *system, uint64_t seed)
{
	struct late l = {.first_arm_s = -1};
	struct sim_try t;

	try_make(&t, TWO_NODES, "late-vma:size=256M,passes=6000", system);
	t.options.seed = seed;
	t.options.trace = watch;
	t.options.trace_ctx = &l;
	try_run_well(&t);
	try_free(&t);
	assert_true(l.mapped_s > 25);
	return l;
}

static void test_a_late_vma_is_never_scanned_by_6_4(void **state)
{
	const struct late l = run_late("linux-6.4", 1);

	(void)state;
	assert_int_equal(l.armed, 0);
	assert_int_equal(l.moved, 0);
	assert_true(l.skips[NB_SKIP_PID_INACTIVE] > 3);
}

static void test_a_late_vma_is_scanned_late_by_6_7_and_at_once_by_6_8(void **state)
{
	uint64_t inactive = 0;
	double earlier_s = 0;

	(void)state;
	/* When scans come by at all differs from run to run. */
	for (uint64_t seed = 1; seed <= 12; seed++) {
		const struct late forced = run_late("linux-6.7", seed);
		const struct late own = run_late("linux-6.8", seed);

		/* 6.7 passes it over until nothing else is left, one VMA at a time. */
		inactive += forced.inactive_before;
		assert_true(forced.armed > 0);
		/* 6.8 scans it whenever it comes by, but for the delay that every new VMA has. */
		assert_int_equal(own.inactive_before, 0);
		assert_true(own.moved > 0);
		assert_true(forced.skips[NB_SKIP_SCAN_DELAY] > 0);
		assert_true(own.skips[NB_SKIP_SCAN_DELAY] > 0);
		assert_true(own.first_arm_s <= forced.first_arm_s);
		earlier_s += forced.first_arm_s - own.first_arm_s;
	}
	assert_true(inactive >= 12);
	assert_true(earlier_s > 20);
}

/* ---- tasks ---- */

static const char *const two_processes = "[p]\ninstances = 2\nthreads = 4\n"
					 "area = data size=64M thp=never\n"
					 "phase = sweep area=data slice=all loops=100000\n";

/* How many of a process's 4 threads run on node 0. */
static int on_node_0(const struct sim_try *t, uint32_t process)
{
	int n = 0;

	for (uint32_t i = 0; i < 4; i++)
		n += t->w.threads[process * 4 + i].node == 0;
	return n;
}

static void test_processes_come_together_on_a_node_each(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES, two_processes, "linux-6.8");
	try_open(&t);
	try_until(&t, 120);
	try_check(&t);
	assert_int_equal(on_node_0(&t, 0) + on_node_0(&t, 1), 4);
	assert_true(on_node_0(&t, 0) % 4 == 0);
	assert_true(try_counters(&t)->numa_task_swaps > 0);
	try_free(&t);
}

static void test_without_swaps_they_stay_where_they_are(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES, two_processes, "linux-6.8");
	try_set(&t, "task_swap=off");
	try_open(&t);
	try_until(&t, 30);
	assert_int_equal(on_node_0(&t, 0), 2);
	assert_int_equal(try_counters(&t)->numa_task_moves + try_counters(&t)->numa_task_swaps, 0);
	try_free(&t);
}

static const char *const bound = "[p]\nthreads = 2\narea = data size=4M\n"
				 "phase = compute time=1000\n"
				 "[q]\nthreads = 1\ncpus = node:0\narea = data size=4M\n"
				 "phase = compute time=1000\n";

static void test_moves_and_swaps_keep_affinity_and_balance(void **state)
{
	struct sim_thread *free_one, *q;
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES, bound, "none");
	try_open(&t);
	try_until(&t, 0.5);
	free_one = t.w.threads[0].node == 1 ? &t.w.threads[0] : &t.w.threads[1];
	q = &t.w.threads[2];
	assert_int_equal(free_one->node, 1);
	assert_int_equal(q->node, 0);
	assert_int_equal(sim_sched_move(&t.w, q, 1), -EINVAL);
	assert_int_equal(sim_sched_swap(&t.w, q, free_one), -EINVAL);
	assert_int_equal(sim_sched_swap(&t.w, free_one, q), -EINVAL);
	/* One task leaves for a node with two: three there and none here. */
	assert_int_equal(sim_sched_move(&t.w, free_one, 0), -EAGAIN);
	assert_int_equal(free_one->node, 1);
	assert_null(sim_sched_check(&t.w));
	try_free(&t);
}

static void test_a_full_node_takes_no_task(void **state)
{
	struct sim_thread *a, *b;
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES, two_processes, "none");
	try_open(&t);
	try_until(&t, 0.5);
	a = &t.w.threads[0];
	for (b = a + 1; b->node == a->node;)
		b++;
	assert_int_equal(sim_sched_move(&t.w, a, b->node), -EBUSY);
	{
		const int32_t here = a->cpu, there = b->cpu;

		assert_int_equal(sim_sched_swap(&t.w, a, b), 0);
		assert_int_equal(a->cpu, there);
		assert_int_equal(b->cpu, here);
	}
	try_check(&t);
	try_free(&t);
}

/* ---- the backdrop, and lone tasks ---- */

static const char *const one_thread = "[p]\nthreads = 1\narea = data size=64M thp=never\n"
				      "phase = sweep area=data loops=400\n";
static const char *const two_threads = "[p]\nthreads = 2\narea = data size=64M thp=never\n"
				       "phase = sweep area=data loops=400\n";

/* Two guards, and the read-only parts of a program and three libraries, in each scan that passes
 * all. */
static void test_stacks_and_libraries_are_passed_by_scans(void **state)
{
	const struct nb_counters *c;
	struct sim_try with, without;

	(void)state;
	try_job(&with, TWO_NODES, two_threads, "linux-6.4");
	c = &with.result.counters;
	assert_true(c->numa_skip_inaccessible > 0);
	assert_int_equal(2 * c->numa_skip_shared_ro, (4 + 3 * 3) * c->numa_skip_inaccessible);
	try_job(&without, "[machine]\ntopology = 2 nodes x 4 cpus x 4G\n" SIM_QUIET, two_threads,
		"linux-6.4");
	assert_int_equal(without.result.counters.numa_skip_inaccessible, 0);
	try_free(&with);
	try_free(&without);
}

/* A section that says it has none, and whose one thread is the first of its process: no guard. */
static void test_a_static_program_of_one_thread_maps_less(void **state)
{
	const struct nb_counters *c;
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES,
		"[p]\nlibraries = 0\narea = data size=64M thp=never\n"
		"phase = sweep area=data loops=400\n",
		"linux-6.4");
	try_run_well(&t);
	c = &t.result.counters;
	assert_int_equal(c->numa_skip_inaccessible, 0);
	assert_true(c->numa_skip_shared_ro > 0);
	assert_int_equal(c->numa_skip_shared_ro, 4 * c->numa_scans);
	try_free(&t);
}

/* VMAs of one address space that were mapped before and after the workers began. */
struct births {
	double first_task_s, last_task_s, last_stack_s;
	unsigned int tasks;
};

static void see_births(void *ctx, const struct nb_event *e)
{
	struct births *b = ctx;
	const double now_s = (double)e->time_ns / 1e9;

	if (e->type == NB_EVENT_TASK_NEW) {
		b->first_task_s = b->tasks ? b->first_task_s : now_s;
		b->last_task_s = now_s;
		b->tasks++;
	}
	if (e->type == NB_EVENT_VMA_MAP && e->pages == 2048)
		b->last_stack_s = now_s;
}

/* Threads that begin by waiting are made when their waiting ends, and their stacks with them. */
static void test_threads_that_wait_for_main_are_made_by_it(void **state)
{
	struct births b = {0};
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES,
		"[main]\narea = data size=64M thp=never\nphase = compute time=2\nphase = barrier\n"
		"[workers]\nprocess = main\nthreads = 2\nphase = barrier\n"
		"phase = sweep area=data slice=group loops=10\n",
		"linux-6.8");
	t.options.trace = see_births;
	t.options.trace_ctx = &b;
	try_run_well(&t);
	assert_int_equal(b.tasks, 3);
	assert_true(b.first_task_s < 0.1);
	assert_true(b.last_task_s > 1.9 && b.last_task_s < 2.1);
	assert_true(b.last_stack_s > 1.9);
	try_free(&t);
}

static void test_a_lone_task_at_home_takes_no_hint_faults(void **state)
{
	struct sim_try spared, armed;

	(void)state;
	try_job(&spared, TWO_NODES, one_thread, "linux-6.8");
	assert_int_equal(spared.result.counters.numa_pte_updates, 0);
	try_make(&armed, TWO_NODES, one_thread, "linux-6.8");
	try_set(&armed, "scan_single_local=off");
	try_run_well(&armed);
	assert_true(armed.result.counters.numa_hint_faults > 16384);
	assert_int_equal(armed.result.counters.numa_hint_faults_local,
		armed.result.counters.numa_hint_faults);
	try_free(&spared);
	try_free(&armed);
}

/* The area of 3 pages, and the hint faults on it. */
struct told {
	uint64_t at;
	unsigned int faults, by_first;
};

static void see_told(void *ctx, const struct nb_event *e)
{
	struct told *t = ctx;

	if (e->type == NB_EVENT_VMA_MAP && e->pages == 3 && e->addr >> 40 == 1)
		t->at = e->addr;
	if (e->type != NB_EVENT_HINT_FAULT || !t->at || e->addr != t->at)
		return;
	t->faults++;
	t->by_first += e->task == 1;
}

/* All threads touch the first page of a second area besides: it is there, and any of them may
 * fault. */
static void test_a_page_that_is_touched_besides_takes_hint_faults(void **state)
{
	struct told told = {0};
	struct sim_try t;
	uint64_t pages = 0;

	(void)state;
	try_make(&t, TWO_NODES,
		"[p]\nthreads = 4\narea = data size=4M thp=never\narea = told size=12K thp=never\n"
		"phase = sweep area=data loops=100000 with=told\n",
		"linux-6.8");
	t.options.trace = see_told;
	t.options.trace_ctx = &told;
	try_run_well(&t);
	for (unsigned int n = 0; n < t.result.nr_nodes; n++)
		pages += t.result.final_pages[n];
	assert_int_equal(pages, 1024 + 1);
	assert_true(told.faults >= 2);
	assert_true(told.by_first < told.faults);
	try_free(&t);
}

/* ---- caches ---- */

#define ONE_NODE                                                                                   \
	"[machine]\ntopology = 1 node x 4 cpus x 4G\n" SIM_QUIET                                   \
	"[memory]\nbandwidth_mib_s = 2000\n[costs]\ntick_ns = 0\nclear_mib_s = 100000\n"

static double elapsed(const char *machine, const char *job)
{
	struct sim_try t;
	double s;

	try_job(&t, machine, job, "none");
	s = t.result.elapsed_s;
	try_free(&t);
	return s;
}

/* Four threads in a convoy: one loads memory in full, three with half of their lines. */
static void test_followers_find_lines_in_the_cache_they_share(void **state)
{
	static const char job[] = "[p]\nthreads = 4\narea = data size=256M\n"
				  "phase = sweep area=data slice=all loops=60\n";
	const double alone = elapsed(ONE_NODE "[cpu]\nllc_mib = 64\n", job);
	const double shared = elapsed(ONE_NODE "[cpu]\nllc_mib = 64\nllc_sharing = 0.5\n", job);

	(void)state;
	assert_true(shared / alone > 0.55 && shared / alone < 0.75);
	/* Taking lines over takes its time, too, for all but the foremost. */
	assert_true(elapsed(ONE_NODE "[cpu]\nllc_mib = 64\nllc_sharing = 0.5\n"
				     "llc_transfer_mib_s = 100\n",
			    job) > 1.2 * shared);
}

/* Slices of 64 MiB in all, and a cache that keeps half of them. */
static void test_slices_are_found_again_as_far_as_they_fit(void **state)
{
	static const char job[] = "[p]\nthreads = 4\narea = data size=64M\n"
				  "phase = sweep area=data slice=own loops=400\n";
	const double lost = elapsed(ONE_NODE "[cpu]\nllc_mib = 32\n", job);
	const double kept = elapsed(ONE_NODE "[cpu]\nllc_mib = 32\nllc_retention = 1\n", job);

	(void)state;
	assert_true(kept / lost > 0.45 && kept / lost < 0.6);
}

/* Faults in areas, by the node of the CPU that took them. */
static void count_by_node(void *ctx, const struct nb_event *e)
{
	uint64_t *faults = ctx;

	if (e->type == NB_EVENT_HINT_FAULT && e->addr >> 40 == 1)
		faults[e->node_to]++;
}

/* All memory is on node 0, whose threads are ahead: those of node 1 meet armed pages all the same.
 */
static void test_a_convoys_faults_are_taken_by_all_of_it(void **state)
{
	static const char job[] = "[p]\nthreads = 8\narea = data size=256M thp=never\n"
				  "phase = policy policy=bind:0\n"
				  "phase = sweep area=data slice=all loops=1\n"
				  "phase = policy policy=default\n"
				  "phase = sweep area=data slice=all loops=60\n";
	uint64_t faults[2] = {0, 0};
	struct sim_try t;

	(void)state;
	try_make(&t, TWO_NODES "[cpu]\nllc_mib = 256\n", job, "linux-6.8");
	try_set(&t, "migrate_on_fault=off");
	t.options.trace = count_by_node;
	t.options.trace_ctx = faults;
	try_run_well(&t);
	assert_true(faults[0] + faults[1] > 10000);
	assert_true(faults[1] * 4 > faults[0]);
	try_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_vma_is_never_scanned_by_6_4),
		cmocka_unit_test(test_a_late_vma_is_scanned_late_by_6_7_and_at_once_by_6_8),
		cmocka_unit_test(test_processes_come_together_on_a_node_each),
		cmocka_unit_test(test_without_swaps_they_stay_where_they_are),
		cmocka_unit_test(test_moves_and_swaps_keep_affinity_and_balance),
		cmocka_unit_test(test_a_full_node_takes_no_task),
		cmocka_unit_test(test_stacks_and_libraries_are_passed_by_scans),
		cmocka_unit_test(test_a_static_program_of_one_thread_maps_less),
		cmocka_unit_test(test_a_page_that_is_touched_besides_takes_hint_faults),
		cmocka_unit_test(test_threads_that_wait_for_main_are_made_by_it),
		cmocka_unit_test(test_a_lone_task_at_home_takes_no_hint_faults),
		cmocka_unit_test(test_followers_find_lines_in_the_cache_they_share),
		cmocka_unit_test(test_slices_are_found_again_as_far_as_they_fit),
		cmocka_unit_test(test_a_convoys_faults_are_taken_by_all_of_it),
	};

	return cmocka_run_group_tests_name("mainline", tests, NULL, NULL);
}
