/* SPDX-License-Identifier: MIT */
/* Hint faults: what is counted, what moves, what stands in the way, and what they do to the scan
 * period. */
#include "test_world.h"
#include <errno.h>

static const struct nb_counters *count(const struct world *w)
{
	return tm_counters(w->m);
}

/* ---- counting ---- */

static void local_and_remote_faults_are_counted(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, 2 * W_HUGE, false);
	w_fault(&w, W_BASE, 0);
	w_fault(&w, W_BASE, 1);
	assert_int_equal(count(&w)->numa_hint_faults, 2);
	assert_int_equal(count(&w)->numa_hint_faults_local, 1);
	w_end(&w);
}

/* A huge page is one fault and 512 pages. */
static void a_huge_fault_counts_once(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, true);
	w_fault(&w, W_BASE + 5 * W_PAGE, 1);
	w_fault(&w, W_BASE + 7 * W_PAGE, 1);
	assert_int_equal(count(&w)->numa_hint_faults, 2);
	assert_int_equal(w.m->nr_moves, 1);
	assert_int_equal(w.m->moves[0].addr, W_BASE);
	assert_int_equal(w.m->moves[0].pages, 512);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(count(&w)->numa_pages_migrated, 512);
	assert_int_equal(count(&w)->pgmigrate_success, 512);
	w_end(&w);
}

static void lookups_disturb_nothing(void **state)
{
	static const uint32_t flags[] = {NB_FAULT_LOOKUP, NB_FAULT_LOOKUP | NB_FAULT_SPURIOUS,
		NB_FAULT_LOOKUP | NB_FAULT_KERNEL, NB_FAULT_LOOKUP | NB_FAULT_WRITE};
	struct world w = w_begin("balancenuma-v8", 2);
	struct nb_counters before;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	before = *count(&w);
	w.m->nr_events = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(w_fault_by(&w, w.t, W_BASE, 0, flags[i]).node, NB_NO_NODE);
	assert_memory_equal(count(&w), &before, sizeof(before));
	assert_int_equal(w.m->nr_events, 0);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE); /* node 0 left no trace */
	w_end(&w);
}

static void spurious_faults_are_counted_as_such_only(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	struct nb_counters expected;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	expected = *count(&w);
	expected.numa_spurious_faults++;
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 0, NB_FAULT_SPURIOUS).why, NB_WHY_SPURIOUS);
	assert_memory_equal(count(&w), &expected, sizeof(expected));
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE);
	w_end(&w);
}

static void kernel_faults_are_hint_faults(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, NB_FAULT_KERNEL).why, NB_WHY_MOVE);
	w_end(&w);
}

/* ---- the filter ---- */

static void two_faults_in_a_row_from_one_node_move_a_page(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 0), NB_WHY_IN_PLACE); /* is remembered as well */
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE);
	assert_int_equal(w.m->moves[0].node_from, 0);
	assert_int_equal(w.m->moves[0].node_to, 1);
	assert_int_equal(count(&w)->numa_filter_refused, 4);
	w_end(&w);
}

static void pages_have_histories_of_their_own(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	for (uint64_t i = 0; i < 512; i++)
		assert_int_equal(
			w_fault(&w, W_BASE + i * W_PAGE, (int)(i % 3) + 1), NB_WHY_FILTERED);
	for (uint64_t i = 0; i < 512; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 2),
			i % 3 == 1 ? NB_WHY_MOVE : NB_WHY_FILTERED);
	w_end(&w);
}

/* In this series a small page is a new page after its move. */
static void a_moved_page_has_no_history(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	w_fault(&w, W_BASE, 1);
	w_fault(&w, W_BASE, 2);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_MOVE);
	tm_finish_moves(w.m, NB_MOVE_BUSY);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_MOVE); /* did not move: is remembered */
	w_end(&w);
}

static void dropped_pages_are_forgotten(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, 2 * W_HUGE, false);
	for (uint64_t i = 0; i < 1024; i++)
		w_fault(&w, W_BASE + i * W_PAGE, 1);
	nb_pages_dropped(w.m->e, w.mm, W_BASE + 510 * W_PAGE, W_BASE + 514 * W_PAGE);
	nb_pages_dropped(w.m->e, w.mm, W_BASE + 5, W_BASE + 7); /* not pages: ignored */
	for (uint64_t i = 0; i < 1024; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 1),
			i >= 510 && i < 514 ? NB_WHY_FILTERED : NB_WHY_MOVE);
	w_end(&w);
}

static void collapsed_pages_are_forgotten(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	nb_huge_collapsed(w.m->e, w.mm, W_BASE, 0);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(count(&w)->thp_collapse_alloc, 1);
	w_end(&w);
}

/* ---- the migration window ---- */

/* 1 MiB is 256 pages; the comparison comes first, so 257 small pages fit, and a huge page more than
 * that. */
static void a_window_takes_one_request_more_than_its_size(void **state)
{
	struct world w = w_new("balancenuma-v8", 2);
	uint64_t moved = 0;

	(void)state;
	w_set(&w, "ratelimit_mb=1");
	w_set(&w, "two_stage_filter=off");
	w_start(&w);
	w_fill(&w, W_BASE, 4 * W_HUGE, false);
	w_fill(&w, W_BASE + 64 * W_HUGE, 4 * W_HUGE, true);
	for (uint64_t i = 0; i < 1000; i++)
		moved += w_fault(&w, W_BASE + i * W_PAGE, 1) == NB_WHY_MOVE;
	assert_int_equal(moved, 257);
	assert_int_equal(count(&w)->numa_ratelimited, 743);
	w.m->now_ns = 1000 * MS;
	assert_int_equal(w_fault(&w, W_BASE + 64 * W_HUGE, 1), NB_WHY_MOVE);
	assert_int_equal(w_fault(&w, W_BASE + 65 * W_HUGE, 1), NB_WHY_RATELIMITED);
	assert_int_equal(count(&w)->numa_ratelimited, 743 + 512);
	w_end(&w);
}

/* Opened at jiffy 250, 25 jiffies long: over after jiffy 275. */
static void a_window_closes_after_its_last_jiffy(void **state)
{
	struct world w = w_new("thpmigrate-v5", 3);

	(void)state;
	w_set(&w, "ratelimit_mb=1");
	w_set(&w, "two_stage_filter=off");
	w_start(&w);
	w_fill(&w, W_BASE, 4 * W_HUGE, false);
	w.m->now_ns = 1000 * MS;
	for (uint64_t i = 0; i < 257; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 1), NB_WHY_MOVE);
	assert_int_equal(w_fault(&w, W_BASE + 300 * W_PAGE, 2), NB_WHY_MOVE); /* its own window */
	w.m->now_ns = 1104 * MS - 1;
	assert_int_equal(w_fault(&w, W_BASE + 301 * W_PAGE, 1), NB_WHY_RATELIMITED);
	w.m->now_ns = 1104 * MS;
	for (uint64_t i = 0; i < 257; i++)
		assert_int_equal(w_fault(&w, W_BASE + (302 + i) * W_PAGE, 1), NB_WHY_MOVE);
	assert_int_equal(w_fault(&w, W_BASE + 700 * W_PAGE, 1), NB_WHY_RATELIMITED);
	w_end(&w);
}

/* The window is used by moves that then fail at the watermark; a shared page does not get that far.
 */
static void obstacles_come_in_the_order_of_the_series(void **state)
{
	struct world w = w_new("balancenuma-v8", 2);

	(void)state;
	w_set(&w, "ratelimit_mb=1");
	w_set(&w, "two_stage_filter=off");
	w_start(&w);
	w_fill(&w, W_BASE, 4 * W_HUGE, false);
	nb_node_watermark(w.m->e, 1, true, 0);
	tm_page(w.m, W_MM, W_BASE)->shared = true;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_SHARED);
	for (uint64_t i = 1; i <= 257; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 1), NB_WHY_TARGET_FULL);
	assert_int_equal(w_fault(&w, W_BASE + 300 * W_PAGE, 1), NB_WHY_RATELIMITED);
	assert_int_equal(count(&w)->numa_shared_refused, 1000);
	assert_int_equal(count(&w)->numa_target_full, 257);
	w.m->now_ns = 1000 * MS;
	nb_node_watermark(w.m->e, 1, false, 0);
	assert_int_equal(w_fault(&w, W_BASE + 300 * W_PAGE, 1), NB_WHY_MOVE);
	w_end(&w);
}

/* ---- huge pages without native migration ---- */

static void huge_pages_split_and_their_parts_move(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, true);
	w_scan(&w, 0);
	assert_int_equal(tm_touch(w.m, w.t, w.mm, W_MM, W_BASE + 3 * W_PAGE, 1), 2);
	assert_int_equal(w.m->nr_splits, 1);
	assert_int_equal(count(&w)->thp_split_page, 1);
	assert_int_equal(w.m->nr_moves, 1);
	assert_int_equal(w.m->moves[0].pages, 1);
	assert_int_equal(w.m->moves[0].addr, W_BASE + 3 * W_PAGE);
	assert_int_equal(tm_touch(w.m, w.t, w.mm, W_MM, W_BASE, 1), 1); /* stayed armed */
	w_end(&w);
}

static void a_refused_split_is_no_move(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, true);
	w.m->refuse_split = EBUSY;
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_REFUSED);
	assert_int_equal(w_fault(&w, W_BASE, 0), NB_WHY_IN_PLACE);
	w_end(&w);
}

/* ---- what became of moves ---- */

struct outcome {
	const char *system;
	bool huge;
	enum nb_move_status status;
	uint64_t success, fail, migrated;
};

static void outcomes_are_counted_as_the_row_has_it(void **state)
{
	static const struct outcome cases[] = {
		{"thpmigrate-v5", false, NB_MOVE_OK, 1, 0, 1},
		{"thpmigrate-v5", false, NB_MOVE_BUSY, 0, 1, 0},
		{"thpmigrate-v5", false, NB_MOVE_NO_MEMORY, 0, 1, 0},
		{"thpmigrate-v5", false, NB_MOVE_NOT_ON_LRU, 0, 0, 0},
		{"thpmigrate-v5", true, NB_MOVE_OK, 0, 0, 0},
		{"thpmigrate-v5", true, NB_MOVE_NO_MEMORY, 0, 0, 0},
		{"thpmigrate-v5", true, NB_MOVE_CHANGED, 0, 0, 0},
		{"balancenuma-v8", false, NB_MOVE_OK, 1, 0, 1},
		{"balancenuma-v8", false, NB_MOVE_GONE, 0, 1, 0},
		{"balancenuma-v8", true, NB_MOVE_OK, 512, 0, 512},
		{"balancenuma-v8", true, NB_MOVE_NO_MEMORY, 0, 512, 0},
		{"balancenuma-v8", true, NB_MOVE_CHANGED, 0, 512, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = w_begin(cases[i].system, 2);

		w_fill(&w, W_BASE, W_HUGE, cases[i].huge);
		w_fault(&w, W_BASE, 1);
		w_fault(&w, W_BASE, 1);
		assert_int_equal(tm_finish_moves(w.m, cases[i].status), 1);
		assert_int_equal(count(&w)->pgmigrate_success, cases[i].success);
		assert_int_equal(count(&w)->pgmigrate_fail, cases[i].fail);
		assert_int_equal(count(&w)->numa_pages_migrated, cases[i].migrated);
		assert_int_equal(
			tm_count(w.m, NB_EVENT_MOVE_DONE, -1), cases[i].status == NB_MOVE_OK);
		assert_int_equal(tm_count(w.m, NB_EVENT_MOVE_FAILED, cases[i].status),
			cases[i].status != NB_MOVE_OK);
		w_end(&w);
	}
}

static void a_machine_may_refuse_a_move(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	struct nb_verdict v;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fault(&w, W_BASE, 1);
	w.m->refuse_move = EPERM;
	v = w_fault_by(&w, w.t, W_BASE, 1, 0);
	assert_int_equal(v.why, NB_WHY_REFUSED);
	assert_int_equal(v.node, NB_NO_NODE);
	assert_int_equal(count(&w)->pgmigrate_fail, 1);
	assert_int_equal(tm_count(w.m, NB_EVENT_MOVE_FAILED, NB_MOVE_REFUSED), 1);
	w_end(&w);
}

/* A page that is on its way by another's request did not fail to move; it did not move for this
 * fault either. */
static void a_page_on_its_way_is_no_failure(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_scan(&w, 0);
	w_scan(&w, 1);
	w_fault(&w, W_BASE, 1);
	w.m->refuse_move = EAGAIN;
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_REFUSED);
	assert_int_equal(count(&w)->pgmigrate_fail, 0);
	assert_int_equal(nb_task_scan_period_ms(w.t), 180);
	w_end(&w);
}

/* Answers for what is gone, or that claim too much, change nothing else. */
static void late_answers_are_harmless(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	struct nb_move_request r;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, true);
	w_fault(&w, W_BASE, 1);
	w_fault(&w, W_BASE, 1);
	r = w.m->moves[0];
	nb_move_done(w.m->e, &r, 100000, NB_MOVE_OK, 0);
	assert_int_equal(count(&w)->pgmigrate_success, 512);
	assert_int_equal(tm_unmap(w.m, w.mm, W_MM, W_BASE, W_BASE + W_HUGE), 0);
	nb_move_done(w.m->e, &r, 512, NB_MOVE_OK, 0);
	nb_task_gone(w.m->e, w.t, 0);
	nb_move_done(w.m->e, &r, 0, NB_MOVE_GONE, 0);
	nb_mm_gone(w.m->e, w.mm, 0);
	nb_move_done(w.m->e, &r, 512, NB_MOVE_OK, 0);
	w_end(&w);
}

/* The huge page was cut while it moved: what the answer tells is not all there any more. */
static void answers_for_cut_pages_are_harmless(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	struct nb_move_request r;

	(void)state;
	w_set(&w, "thp_keeps_last_nid=off");
	w_fill(&w, W_BASE, W_HUGE, true);
	w_fault(&w, W_BASE, 1);
	w_fault(&w, W_BASE, 1);
	r = w.m->moves[0];
	assert_int_equal(tm_unmap(w.m, w.mm, W_MM, W_BASE + 7 * W_PAGE, W_BASE + W_HUGE), 0);
	w_map(&w, W_BASE + W_HUGE, W_HUGE); /* what lies behind is not its */
	nb_move_done(w.m->e, &r, 512, NB_MOVE_OK, 0);
	assert_null(nb_engine_check(w.m->e));
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE); /* the old history */
	w_end(&w);
}

/* ---- the scan period ---- */

static uint32_t period(const struct world *w)
{
	return nb_task_scan_period_ms(w->t);
}

static void settled_faults_lengthen_the_period(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, 2 * W_HUGE, false);
	w_scan(&w, 0);
	w_scan(&w, 1);
	assert_int_equal(period(&w), 100);
	w_fault(&w, W_BASE, 0); /* in place */
	assert_int_equal(period(&w), 140);
	w_fault(&w, W_BASE + W_PAGE, 1); /* filtered */
	assert_int_equal(period(&w), 180);
	w_fault(&w, W_BASE + W_PAGE, 1); /* asked to move: not known yet */
	assert_int_equal(period(&w), 180);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(period(&w), 180);
	w_fault(&w, W_BASE + 2 * W_PAGE, 1);
	w_fault(&w, W_BASE + 2 * W_PAGE, 1);
	assert_int_equal(period(&w), 220);
	tm_finish_moves(w.m, NB_MOVE_BUSY);
	assert_int_equal(period(&w), 260);
	for (int i = 0; i < 1000; i++)
		w_fault(&w, W_BASE, 0);
	assert_int_equal(period(&w), 5000);
	w_end(&w);
}

/* thpmigrate-v5: 2 jiffies for each fault, up to 1600 ms; huge pages only when they move (patch
 * 37). */
static void every_fault_lengthens_the_period(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_fill(&w, W_BASE + 4 * W_HUGE, W_HUGE, true);
	w_scan(&w, 0);
	w_fault(&w, W_BASE, 0);
	assert_int_equal(period(&w), 108);
	w_fault(&w, W_BASE, 1);
	w_fault(&w, W_BASE, 1);
	assert_int_equal(period(&w), 124);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(period(&w), 124);
	w_fault(&w, W_BASE + 4 * W_HUGE, 0);
	w_fault(&w, W_BASE + 4 * W_HUGE, 1);
	w_fault(&w, W_BASE + 4 * W_HUGE, 1);
	assert_int_equal(period(&w), 124);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(period(&w), 132);
	for (int i = 0; i < 1000; i++)
		w_fault(&w, W_BASE, 0);
	assert_int_equal(period(&w), 1600);
	w_end(&w);
}

static void jiffies_follow_hz(void **state)
{
	static const struct {
		uint32_t hz, grown;
	} cases[] = {{100, 200}, {250, 140}, {300, 133}, {1000, 110}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = w_new("adaptscan-v5", 2);

		w.m->config.hz = cases[i].hz;
		w_start(&w);
		w_fill(&w, W_BASE, W_HUGE, false);
		w_scan(&w, 0);
		w_fault(&w, W_BASE, 0);
		assert_int_equal(period(&w), cases[i].grown);
		w_end(&w);
	}
}

/* Pages of a PMD faulted as one: in place they are not accounted; shared ones are not even counted.
 */
static void batched_faults_in_place_are_not_accounted(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_scan(&w, 0);
	w_scan(&w, 1);
	assert_int_equal(tm_touch(w.m, w.t, w.mm, W_MM, W_BASE + W_PAGE, 0), 512);
	assert_int_equal(count(&w)->numa_hint_faults, 512);
	assert_int_equal(period(&w), 100);
	w_fault_by(&w, w.t, W_BASE, 1, NB_FAULT_BATCHED);
	w.m->refuse_move = EBUSY;
	w_fault_by(&w, w.t, W_BASE, 1, NB_FAULT_BATCHED);
	assert_int_equal(period(&w), 140); /* was to move, and did not */
	tm_page(w.m, W_MM, W_BASE)->shared = true;
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, NB_FAULT_BATCHED).why, NB_WHY_SHARED);
	assert_int_equal(count(&w)->numa_hint_faults, 514);
	w_end(&w);
}

static void the_period_stays_while_balancing_is_off(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_set(&w, "balancing=off");
	w_fault(&w, W_BASE, 0);
	assert_int_equal(period(&w), 1000);
	assert_int_equal(count(&w)->numa_hint_faults, 1);
	w_end(&w);
}

/* ---- odd nodes ---- */

/* Node 1 has CPUs and no memory; 2 is nearest to it, 0 and 3 are as far as each other. */
static void nodes_without_memory_have_a_stand_in(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	w.m->nodes[1].mem_bytes = 0;
	w.m->distance[1 * 4 + 2] = 12;
	w_start(&w);
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, 0).node, 2);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_IN_PLACE);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 3, 0).node, 3);
	w_end(&w);
}

/* All CPUs on node 1, memory on the others, all equally far: nothing is better than what is. */
static void equally_far_nodes_are_not_better(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	w.m->nodes[1].mem_bytes = 0;
	w_start(&w);
	w_map(&w, W_BASE, W_HUGE);
	tm_populate(w.m, W_MM, W_BASE, W_BASE + W_HUGE, 3, false);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_NO_MEMORY_NODE);
	assert_int_equal(w.m->nr_moves, 0);
	w_end(&w);
}

/* Firmware that says 10 for every pair: moving is no gain. */
static void flat_distances_move_nothing(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	for (int i = 0; i < 16; i++)
		w.m->distance[i] = 10;
	w_start(&w);
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_IN_PLACE);
	w_end(&w);
}

static void impossible_faults_decide_nothing(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(w_fault(&w, W_BASE, -1), NB_WHY_NO_POLICY);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_NO_POLICY);
	assert_int_equal(w_fault(&w, W_BASE + W_HUGE, 1), NB_WHY_NO_POLICY);
	assert_int_equal(w_fault(&w, 0, 1), NB_WHY_NO_POLICY);
	assert_int_equal(
		w_fault_by(&w, w.t, W_BASE - W_PAGE, 1, NB_FAULT_HUGE).why, NB_WHY_NO_POLICY);
	assert_int_equal(count(&w)->numa_hint_faults, 0);
	w_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_and_remote_faults_are_counted),
		cmocka_unit_test(a_huge_fault_counts_once),
		cmocka_unit_test(lookups_disturb_nothing),
		cmocka_unit_test(spurious_faults_are_counted_as_such_only),
		cmocka_unit_test(kernel_faults_are_hint_faults),
		cmocka_unit_test(two_faults_in_a_row_from_one_node_move_a_page),
		cmocka_unit_test(pages_have_histories_of_their_own),
		cmocka_unit_test(a_moved_page_has_no_history),
		cmocka_unit_test(dropped_pages_are_forgotten),
		cmocka_unit_test(collapsed_pages_are_forgotten),
		cmocka_unit_test(a_window_takes_one_request_more_than_its_size),
		cmocka_unit_test(a_window_closes_after_its_last_jiffy),
		cmocka_unit_test(obstacles_come_in_the_order_of_the_series),
		cmocka_unit_test(huge_pages_split_and_their_parts_move),
		cmocka_unit_test(a_refused_split_is_no_move),
		cmocka_unit_test(outcomes_are_counted_as_the_row_has_it),
		cmocka_unit_test(a_machine_may_refuse_a_move),
		cmocka_unit_test(a_page_on_its_way_is_no_failure),
		cmocka_unit_test(late_answers_are_harmless),
		cmocka_unit_test(answers_for_cut_pages_are_harmless),
		cmocka_unit_test(settled_faults_lengthen_the_period),
		cmocka_unit_test(every_fault_lengthens_the_period),
		cmocka_unit_test(jiffies_follow_hz),
		cmocka_unit_test(batched_faults_in_place_are_not_accounted),
		cmocka_unit_test(the_period_stays_while_balancing_is_off),
		cmocka_unit_test(nodes_without_memory_have_a_stand_in),
		cmocka_unit_test(equally_far_nodes_are_not_better),
		cmocka_unit_test(flat_distances_move_nothing),
		cmocka_unit_test(impossible_faults_decide_nothing),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
