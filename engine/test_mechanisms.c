/* SPDX-License-Identifier: MIT */
/*
 * Each mechanism that lives in the engine has a scenario here: what is seen with it on, and with it
 * off. A mechanism that is removed, or can't be switched off, fails the test of its name.
 */
#include "test_counting.h"
#include "test_world.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "engine_private.h"
#include "scanperiod.h"

typedef uint64_t (*scenario)(struct world *w);

struct mechanism_test {
	enum nb_mechanism mechanism;
	scenario run;
	uint64_t on, off; /* what the scenario answers */
	const char *system;
	const char *also; /* another setting the scenario needs, or NULL */
	uint64_t nodes;
};

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

/* ---- mainline: pages ---- */

/* A write's fault moved the page; what is remembered of it is still there, or not. */
static uint64_t keeps_cpupid(struct world *w)
{
	struct nb_vma *vma = w_fill(w, W_BASE, W_HUGE, false);

	w_fault_by(w, w->t, W_BASE, 1, NB_FAULT_WRITE);
	tm_finish_moves(w->m, NB_MOVE_OK);
	return nb_pages_peek(w->m->e, &vma->pages, W_BASE, false) != NB_HISTORY_NONE;
}

static struct nb_task *another(struct world *w, uint32_t id)
{
	struct nb_task *t = nb_task_new(w->m->e, w->mm, id, w->m->now_ns);

	assert_non_null(t);
	return t;
}

/* Another task asks for a page twice, and its owner touches it in between. */
static uint64_t owner_in_between(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w_fill(w, W_BASE, W_HUGE, false);
	w_fault_by(w, b, W_BASE, 1, 0); /* its move is not done yet */
	w_fault(w, W_BASE, 0);
	return w_fault_by(w, b, W_BASE, 1, 0).why;
}

/* Both tasks touch the first pages, in turn, until they know each other. */
static void share(struct world *w, struct nb_task *a, int node_a, struct nb_task *b, int node_b)
{
	for (uint64_t i = 0; i < 4; i++) {
		w_fault_by(w, a, W_BASE + (100 + i) * W_PAGE, node_a, 0);
		w_fault_by(w, b, W_BASE + (100 + i) * W_PAGE, node_b, 0);
		w_fault_by(w, a, W_BASE + (100 + i) * W_PAGE, node_a, 0);
	}
}

static uint64_t numa_group(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w_fill(w, W_BASE, W_HUGE, false);
	share(w, w->t, 1, b, 1);
	return w->t->group != NULL && w->t->group == b->group;
}

/* A shared page whose other toucher is of the same node and group. */
static uint64_t group_spread(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w_fill(w, W_BASE, W_HUGE, false);
	share(w, w->t, 1, b, 1);
	w_fault_by(w, b, W_BASE, 1, 0);
	return (uint64_t)w_fault(w, W_BASE, 1);
}

/* Private, but last touched from another node. */
static uint64_t early_migrate(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_fault(w, W_BASE, 1);
	return (uint64_t)w_fault(w, W_BASE, 2);
}

/* After one shared page was filtered, another one that two tasks of node 1 touch. */
static uint64_t defer_migrate(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w_fill(w, W_BASE, W_HUGE, false);
	w_fault_by(w, b, W_BASE, 0, 0);
	w_fault(w, W_BASE, 1);
	w_fault_by(w, b, W_BASE + W_PAGE, 1, 0);
	return (uint64_t)w_fault(w, W_BASE + W_PAGE, 1);
}

/* ---- mainline: tasks ---- */

/* The task runs on node 1 and faults on pages of node 0 alone, over two scan sequences. */
static void fault_far(struct world *w)
{
	w->m->refuse_move = ENOMEM;
	w_fill(w, W_BASE, W_HUGE, false);
	for (uint64_t seq = 0; seq < 3; seq++) {
		w_scan(w, 1);
		for (uint64_t i = 0; i < 20; i++)
			w_fault(w, W_BASE + i * W_PAGE, 1);
	}
}

static uint64_t preferred_node(struct world *w)
{
	fault_far(w);
	return (uint64_t)(w->t->preferred + 10);
}

static uint64_t moved_to_it(struct world *w)
{
	fault_far(w);
	return (w->m->nr_run_ons > 0) * 10 + (uint64_t)w->m->last_node;
}

/* Node 0 is full of tasks; one of them faults on pages of node 1 alone. */
static uint64_t task_swap(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w->m->refuse_run_on = EBUSY;
	w->m->refuse_move = ENOMEM;
	w_map(w, W_BASE + W_HUGE, W_HUGE);
	tm_populate(w->m, W_MM, W_BASE + W_HUGE, W_BASE + 2 * W_HUGE, 1, false);
	for (uint64_t seq = 0; seq < 3; seq++) {
		w_scan(w, 1);
		for (uint64_t i = 0; i < 20; i++)
			w_fault_by(w, b, W_BASE + W_HUGE + i * W_PAGE, 0, 0);
	}
	fault_far(w);
	return w->m->nr_swaps > 0;
}

/* The scan period after two sequences whose faults are all private and local: 3 slots longer each
 * time. */
static uint64_t period_of_settled(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	for (uint64_t seq = 0; seq < 2; seq++) {
		for (uint64_t i = 0; i < 20; i++)
			w_fault(w, W_BASE + i * W_PAGE, 0);
		w_scan(w, 0);
	}
	w_fault(w, W_BASE, 0);
	return nb_task_scan_period_ms(w->t);
}

/*
 * All private, and all but one remote: 3 slots of 500 ms longer by the private share, 7 shorter by
 * the local one. Set to 5 s first, so that it can go both ways.
 */
static uint64_t period_of_misplaced(struct world *w)
{
	w->m->refuse_move = EAGAIN;
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 1);
	w_fault(w, W_BASE, 1);
	nb_task_set_period(w->m->e, w->t, 5000, w->m->now_ns);
	for (uint64_t i = 1; i < 20; i++)
		w_fault(w, W_BASE + i * W_PAGE, 1);
	w_fault(w, W_BASE + 20 * W_PAGE, 0);
	w_scan(w, 1);
	w_fault(w, W_BASE, 1);
	return nb_task_scan_period_ms(w->t);
}

/* 4 windows of memory are present. */
static uint64_t first_period(struct world *w)
{
	w_fill(w, W_BASE, 2 * W_HUGE, false);
	w_scan(w, 0);
	return nb_task_scan_period_ms(w->t);
}

static uint64_t longest_of_group(struct world *w)
{
	numa_group(w);
	return nb_scan_max_ms(w->m->e, w->t);
}

/* Run time up to which the task does not look at its scan period again, after one scan at 2 s. */
static uint64_t scan_stagger(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w->m->now_ns = 2000 * MS;
	w_tick(w, w->t, 2000 * MS, 0);
	return w->t->node_stamp_ns / MS;
}

/* The same where the scan took 10 ms. */
static uint64_t scan_cost(struct world *w)
{
	w->m->arm_cost_ns = 10 * MS;
	return scan_stagger(w);
}

/* A task that faulted and waits 5 s between scans is taken to another node before it prefers one.
 */
static uint64_t moved_before_it_prefers(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	w_fault(w, W_BASE, 0);
	nb_task_set_period(w->m->e, w->t, 5000, w->m->now_ns);
	w->t->preferred = NB_NO_NODE;
	nb_task_moved(w->m->e, w->t, 0, 1, w->m->now_ns);
	return nb_task_scan_period_ms(w->t);
}

/* ---- mainline: what is scanned ---- */

/* Pages beyond a hole of 10 windows of 2 MiB each. */
static uint64_t beyond_10_windows(struct world *w)
{
	w_map(w, W_BASE, 11 * W_HUGE);
	tm_populate(w->m, W_MM, W_BASE + 10 * W_HUGE, W_BASE + 11 * W_HUGE, 0, false);
	w_scan(w, 1);
	return tm_counters(w->m)->numa_pte_updates;
}

static uint64_t beyond_a_window(struct world *w)
{
	w_map(w, W_BASE, 2 * W_HUGE);
	tm_populate(w->m, W_MM, W_BASE + W_HUGE, W_BASE + 2 * W_HUGE, 0, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

static uint64_t scan_mof_only(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	set_policy(w, NB_POLICY_BIND, 1, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates * 10 + tm_counters(w->m)->numa_skip_unsuitable;
}

static uint64_t scan_with_flags(struct world *w, unsigned int flags)
{
	assert_non_null(tm_map(w->m, w->mm, W_MM, W_BASE, W_HUGE, flags));
	tm_populate(w->m, W_MM, W_BASE, W_BASE + W_HUGE, 0, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

static uint64_t library(struct world *w)
{
	return scan_with_flags(w, NB_VMA_READ | NB_VMA_FILE) * 10 +
	       tm_counters(w->m)->numa_skip_shared_ro;
}

static uint64_t guard(struct world *w)
{
	return scan_with_flags(w, 0) * 10 + tm_counters(w->m)->numa_skip_inaccessible;
}

/* One task on node 0, where all the pages are. */
static uint64_t lone_task(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	return tm_counters(w->m)->numa_pte_updates;
}

static const uint64_t second = 8 * W_HUGE;

/* Scans that armed something, or looked at it, in the VMA at `addr`. */
static uint64_t scans_of(const struct world *w, uint64_t addr, uint64_t bytes)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < w->m->nr_arms; i++)
		n += w->m->arms[i].start >= addr && w->m->arms[i].start < addr + bytes;
	return n;
}

/* Some sequences over one VMA, then another one is mapped. */
static void late_vma(struct world *w, uint64_t seqs)
{
	w_fill(w, W_BASE, W_HUGE, false);
	for (uint64_t i = 0; i < seqs; i++)
		w_scan(w, 0);
	w_fill(w, W_BASE + second, W_HUGE, false);
}

static uint64_t new_vma_at_once(struct world *w)
{
	late_vma(w, 1);
	w_scan(w, 0);
	return scans_of(w, W_BASE + second, W_HUGE) * 10 + tm_counters(w->m)->numa_skip_scan_delay;
}

/* Four scans by a task that never touched the VMA. */
static uint64_t untouched_vma(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	for (int i = 0; i < 4; i++)
		w_scan(w, 0);
	return w->m->nr_arms;
}

/* Touched once, then 6 scans at long intervals. */
static uint64_t touched_once(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	w_scan(w, 0);
	w_fault(w, W_BASE, 0);
	for (int i = 0; i < 6; i++)
		w_scan(w, 0);
	return tm_counters(w->m)->numa_skip_pid_inactive;
}

/* The first VMA is touched, the second is not: how often each is scanned from then on. */
static uint64_t active_and_inactive(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_fill(w, W_BASE + second, W_HUGE, false);
	for (int i = 0; i < 6; i++) {
		w_scan(w, 0);
		w_fault(w, W_BASE, 0);
	}
	return scans_of(w, W_BASE, W_HUGE) * 10 + scans_of(w, W_BASE + second, W_HUGE);
}

/* Of a VMA of 3 windows a task that touched it scans the first, one that did not goes on. */
static uint64_t vma_partial(struct world *w)
{
	struct nb_task *b = another(w, 2);

	w_fill(w, W_BASE, 3 * W_HUGE, false);
	for (int i = 0; i < 6; i++)
		w_scan(w, 0);
	for (uint64_t i = 0; i < 3; i++)
		tm_touch(w->m, w->t, w->mm, W_MM, W_BASE + i * W_HUGE, 0);
	w_scan(w, 0);
	w->m->nr_arms = 0;
	w->m->now_ns += 3600000 * MS;
	w_tick(w, b, w->m->now_ns, 0);
	return w->m->nr_arms * 10 + tm_counters(w->m)->numa_skip_ignore_pid;
}

static uint64_t late_and_untouched(struct world *w)
{
	late_vma(w, 5);
	for (int i = 0; i < 4; i++)
		w_scan(w, 0);
	return scans_of(w, W_BASE + second, W_HUGE);
}

/* ---- numabal ---- */

/* Long on node 1, and for once on node 0, it touches a page there. */
static uint64_t away_from_home(struct world *w)
{
	w_scan(w, 1);
	w_fill(w, W_BASE, W_HUGE, false);
	return (uint64_t)w_fault(w, W_BASE, 0);
}

static void run_on_node_0(struct world *w, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 4) {
		w->m->now_ns += 4 * MS;
		w_tick(w, w->t, w->m->now_ns, 0);
	}
}

/* Half of a scan period of 10 s is over when another VMA is mapped: whether a second later it was
 * scanned. */
static uint64_t vma_in_a_long_period(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	run_on_node_0(w, 3000);
	nb_task_set_period(w->m->e, w->t, 10000, w->m->now_ns);
	run_on_node_0(w, 5000);
	w_fill(w, W_BASE + second, W_HUGE, false);
	run_on_node_0(w, 1000);
	return scans_of(w, W_BASE + second, W_HUGE) > 0;
}

/*
 * The scan period, 250 ms at first, after a sequence without faults, which doubles it in any case,
 * and one whose faults are all private and local: twice that, or 3 slots of 50 ms longer.
 */
static uint64_t period_after_local_faults(struct world *w)
{
	w_fill(w, W_BASE, W_HUGE, false);
	w_scan(w, 0);
	for (uint64_t i = 0; i < 20; i++)
		w_fault(w, W_BASE + i * W_PAGE, 0);
	w_scan(w, 0);
	w_fault(w, W_BASE, 0);
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
	T(CPUPID, one_fault, NB_WHY_MOVE, NB_WHY_FILTERED, "linux-3.13", NULL, 2),
	T(KEEPS_CPUPID, keeps_cpupid, 1, 0, "linux-3.13", NULL, 2),
	T(LOCAL_KEEPS_CPUPID, owner_in_between, NB_WHY_MOVE, NB_WHY_FILTERED, "linux-6.4", NULL, 2),
	T(WRITE_FORGETS_CPUPID, keeps_cpupid, 0, 1, "linux-6.12", NULL, 2),
	T(FAULT_STATS, preferred_node, 10, 9, "linux-3.13", NULL, 2),
	T(NUMA_GROUP, numa_group, 1, 0, "linux-3.13", NULL, 2),
	T(PREFERRED_NODE, preferred_node, 10, 9, "linux-3.13", NULL, 2),
	T(TASK_NUMA_MIGRATE, moved_to_it, 10, 0, "linux-3.13", NULL, 2),
	T(TASK_SWAP, task_swap, 1, 0, "linux-3.13", NULL, 2),
	T(DEFER_MIGRATE, defer_migrate, NB_WHY_FILTERED, NB_WHY_MOVE, "linux-3.13", NULL, 2),
	T(EARLY_MIGRATE, early_migrate, NB_WHY_MOVE, NB_WHY_FILTERED, "linux-6.4", NULL, 3),
	T(GROUP_SPREAD, group_spread, NB_WHY_FILTERED, NB_WHY_MOVE, "linux-6.4", NULL, 2),
	T(SCAN_ADAPT, period_of_settled, 1690, 1000, "linux-3.13", NULL, 2),
	T(SCAN_ADAPT_PRIVATE, period_of_misplaced, 6500, 1500, "linux-6.4", NULL, 2),
	T(SCAN_RSS, first_period, 250, 1000, "linux-3.13", "scan_size_mb=1", 2),
	T(SCAN_GROUP, longest_of_group, 120000, 60000, "linux-6.4", NULL, 2),
	T(SCAN_STAGGER, scan_stagger, 1008, 2000, "linux-3.13", NULL, 2),
	T(SCAN_EXTENT, beyond_a_window, 512, 0, "linux-3.13", "scan_size_mb=2", 2),
	T(SCAN_VIRTPAGES, beyond_10_windows, 0, 512, "linux-6.4", "scan_size_mb=2", 2),
	T(SCAN_MOF_ONLY, scan_mof_only, 1, 5120, "linux-3.13", NULL, 2),
	T(SCAN_SKIP_SHARED_RO, library, 1, 5120, "linux-3.13", NULL, 2),
	T(SCAN_SKIP_INACCESSIBLE, guard, 1, 5120, "linux-3.13", NULL, 2),
	T(SCAN_SINGLE_LOCAL, lone_task, 0, 512, "linux-6.4", NULL, 2),
	T(SCAN_COST, scan_cost, 1008 + 320, 1008, "linux-6.4", NULL, 2),
	T(SCAN_MOVE_RESET, moved_before_it_prefers, 1000, 5000, "linux-6.4", NULL, 2),
	T(VMA_SCAN_DELAY, new_vma_at_once, 1, 10, "linux-6.4", NULL, 2),
	T(VMA_PIDS, untouched_vma, 2, 4, "linux-6.4", NULL, 2),
	T(VMA_PIDS_RESET, touched_once, 5, 4, "linux-6.7", "vma_force=off", 2),
	T(VMA_PREV_SEQ, active_and_inactive, 66, 64, "linux-6.7", NULL, 2),
	T(VMA_PARTIAL, vma_partial, 11, 10, "linux-6.7", "scan_size_mb=2", 2),
	T(VMA_FORCE, untouched_vma, 4, 2, "linux-6.7", NULL, 2),
	T(VMA_STARVING, untouched_vma, 3, 2, "linux-6.12", "vma_force=off", 2),
	T(VMA_START_SEQ, late_and_untouched, 1, 0, "linux-6.8", "vma_force=off", 2),
	T(HOME_NODE, away_from_home, NB_WHY_MOVE, NB_WHY_IN_PLACE, "numabal", NULL, 2),
	T(SCAN_NEW_VMA, vma_in_a_long_period, 1, 0, "numabal", NULL, 2),
	T(SCAN_DOUBLE, period_after_local_faults, 1000, 650, "numabal", NULL, 2),
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
	bool tested[NB_NR_MECHANISMS] = {[NB_MECH_TLB_LOCAL_FLUSH] = true,
		[NB_MECH_TLB_SKIP_INACCESSIBLE] = true,
		[NB_MECH_TLB_SKIP_UNCHANGED] = true,
		[NB_MECH_THP_WAITS] = true,
		[NB_MECH_PREFERRED_INHERITED] = true}; /* test_shared.c */

	(void)state;
	for (int i = 0; i < NR_TESTS; i++)
		tested[tests[i].mechanism] = true;
	for (int m = 0; m < NB_NR_MECHANISMS; m++)
		if (!tested[m])
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
