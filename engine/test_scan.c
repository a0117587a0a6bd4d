/* SPDX-License-Identifier: MIT */
/* Ticks, periods, windows: when a scan runs, and what it arms. HZ is 250: a jiffy is 4 ms. */
#include "mm.h"
#include "task.h"
#include "test_world.h"
#include <errno.h>
#include "engine_private.h"
#include <string.h>

static uint64_t scans(const struct world *w)
{
	return tm_counters(w->m)->numa_scans;
}

static uint64_t updates(const struct world *w)
{
	return tm_counters(w->m)->numa_pte_updates;
}

/* A tick at this time with much run time, by a task of node 0. True when it scanned. */
static bool tick_at(struct world *w, struct nb_task *t, uint64_t now_ns, int node)
{
	const uint64_t before = scans(w);

	w->m->now_ns = now_ns;
	w_tick(w, t, 1000000 * MS + 1000 * now_ns, node);
	return scans(w) > before;
}

static const struct nb_event *last_event(const struct world *w, enum nb_event_type type)
{
	for (unsigned int i = w->m->nr_events; i-- > 0;)
		if (w->m->events[i].type == type)
			return &w->m->events[i];
	fail_msg("no event %s", nb_event_names[type].name);
	return NULL;
}

/* ---- when ---- */

static void the_delay_is_run_time_and_strict(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	assert_int_equal(nb_task_scan_period_ms(w.t), 1000);
	w.m->now_ns = 1000000 * MS; /* real time does not count */
	w_tick(&w, w.t, 1000 * MS, 0);
	assert_int_equal(scans(&w), 0);
	assert_true(nb_task_tick_idle(w.t, 1000 * MS, w.m->now_ns));
	assert_false(nb_task_tick_idle(w.t, 1000 * MS + 1, w.m->now_ns));
	w_tick(&w, w.t, 1000 * MS + 1, 0);
	assert_int_equal(scans(&w), 1);
	assert_int_equal(nb_task_scan_period_ms(w.t), 100);
	w_tick(&w, w.t, 1100 * MS + 1, 0);
	assert_int_equal(nb_task_scan_period_ms(w.t), 100);
	w_end(&w);
}

static void a_delay_of_zero_scans_at_once(void **state)
{
	struct world w = w_new("moron", 2);

	(void)state;
	w_set(&w, "scan_delay_ms=0");
	w_start(&w);
	w_tick(&w, w.t, 0, 0);
	assert_int_equal(scans(&w), 0);
	w_tick(&w, w.t, 1, 0);
	assert_int_equal(scans(&w), 1);
	w_end(&w);
}

static void run_time_that_falls_is_no_reason_to_scan(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_tick(&w, w.t, 2000 * MS, 0);
	w.m->now_ns = 60000 * MS;
	w_tick(&w, w.t, 10 * MS, 0);
	assert_true(nb_task_tick_idle(w.t, 10 * MS, w.m->now_ns));
	assert_int_equal(scans(&w), 1);
	w_end(&w);
}

/* A scan at jiffy 250 puts the next one of any task at jiffy 250 + 25, and not before. */
static void the_next_scan_is_a_period_away(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 2);
	struct nb_task *other = nb_task_new(w.m->e, w.mm, 2, 0);

	(void)state;
	assert_true(tick_at(&w, w.t, 1000 * MS, 0));
	assert_false(tick_at(&w, other, 1099 * MS, 0));
	assert_true(tick_at(&w, other, 1100 * MS, 0));
	assert_false(tick_at(&w, w.t, 1199 * MS, 0));
	assert_true(tick_at(&w, w.t, 1200 * MS, 0));
	w_end(&w);
}

/* 250 Hz: 101 ms are 26 jiffies. */
static void periods_are_rounded_up_to_jiffies(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_period_min_ms=101");
	w_start(&w);
	assert_true(tick_at(&w, w.t, 1000 * MS, 0));
	assert_false(tick_at(&w, w.t, 1103 * MS, 0));
	assert_true(tick_at(&w, w.t, 1104 * MS, 0));
	w_end(&w);
}

/* Made at 10 s: next_reset is then; the first scan is after it and sets the next one 60 s on,
 * strictly. */
static void the_period_is_reset_every_minute(void **state)
{
	struct world w = w_new("adaptscan-v5", 2);

	(void)state;
	w.m->now_ns = 10000 * MS;
	w_start(&w);
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_true(tick_at(&w, w.t, 10004 * MS, 0));
	for (int i = 0; i < 3; i++)
		w_fault(&w, W_BASE, 0);
	assert_int_equal(nb_task_scan_period_ms(w.t), 220);
	assert_true(tick_at(&w, w.t, 70007 * MS, 0));
	assert_int_equal(nb_task_scan_period_ms(w.t), 220);
	assert_false(tick_at(&w, w.t, 70008 * MS, 0)); /* next_scan is at 70224 */
	assert_true(tick_at(&w, w.t, 70224 * MS, 0));
	assert_int_equal(nb_task_scan_period_ms(w.t), 100);
	assert_true(tick_at(&w, w.t, 70324 * MS, 0));
	w_fault(&w, W_BASE, 0);
	assert_true(tick_at(&w, w.t, 130224 * MS, 0)); /* the very jiffy: not yet */
	assert_int_equal(nb_task_scan_period_ms(w.t), 140);
	assert_true(tick_at(&w, w.t, 130364 * MS, 0));
	assert_int_equal(nb_task_scan_period_ms(w.t), 100);
	w_end(&w);
}

static void a_second_node_starts_the_scans_for_good(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);
	struct nb_task *other = nb_task_new(w.m->e, w.mm, 2, 0);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	for (int i = 1; i < 20; i++)
		assert_false(tick_at(&w, i % 2 ? w.t : other, (uint64_t)i * 1000 * MS, 2));
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_FIRST_NODE), 19);
	assert_true(tick_at(&w, other, 30000 * MS, 3));
	assert_true(tick_at(&w, w.t, 31000 * MS, 2));
	assert_true(tick_at(&w, other, 32000 * MS, 2));
	w_end(&w);
}

static void nothing_is_scanned_while_off_and_said_once(void **state)
{
	struct world w = w_begin("none", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_false(nb_task_tick_idle(w.t, 1, 1));
	for (int i = 0; i < 5; i++)
		assert_int_equal(w_scan(&w, i % 2), 0);
	assert_true(nb_task_tick_idle(w.t, 5000000 * MS, w.m->now_ns));
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_DISABLED), 1);
	w_set(&w, "balancing=on");
	assert_int_equal(w_scan(&w, 0), 1);
	w_set(&w, "balancing=off");
	w_scan(&w, 0);
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_DISABLED), 2);
	w_end(&w);
}

/*
 * A window used up at jiffy 500 closes at jiffy 525; scans pause up to a second after, to jiffy
 * 775, and the skipped scan puts the next one a period away.
 */
static void scans_pause_while_the_node_is_limited(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "ratelimit_mb=1");
	w_start(&w);
	w_fill(&w, W_BASE, 2 * W_HUGE, false);
	w.m->now_ns = 2000 * MS;
	for (uint64_t i = 0; i < 256; i++) {
		w_fault(&w, W_BASE + i * W_PAGE, 1);
		w_fault(&w, W_BASE + i * W_PAGE, 1);
	}
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_false(tick_at(&w, w.t, 2000 * MS, 1));
	assert_int_equal(tm_counters(w.m)->numa_scan_skipped_ratelimit, 1);
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_RATELIMITED), 1);
	assert_int_equal(nb_task_scan_period_ms(w.t), 100);
	assert_true(tick_at(&w, w.t, 2100 * MS, 0)); /* node 0 is not limited */
	assert_false(tick_at(&w, w.t, 3100 * MS, 1));
	assert_false(
		tick_at(&w, w.t, 3104 * MS, 1)); /* the skip counts as a scan: a period later */
	assert_true(tick_at(&w, w.t, 3200 * MS, 1));
	w_end(&w);
}

/* ---- what ---- */

static void a_window_is_scan_size_of_present_pages(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_size_mb=8");
	w_start(&w);
	w_fill(&w, W_BASE, 40 * MIB, false);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(w_scan(&w, 0), 1);
		assert_int_equal(last_event(&w, NB_EVENT_SCAN_START)->addr,
			i == 0 ? 0 : W_BASE + i * 8 * MIB);
		assert_int_equal(
			last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + (i + 1) * 8 * MIB);
		assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->pages, 2048);
		assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->arg, 0);
	}
	assert_int_equal(updates(&w), 10240);
	assert_int_equal(w.m->nr_arms, 5);
	w_end(&w);
}

/* The offset lies at the end of all VMAs: the pass is over, and the next one begins at once. */
static void a_scan_starts_over_at_the_end(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_size_mb=8");
	w_start(&w);
	w_fill(&w, W_BASE, 8 * MIB, false);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->arg, 0);
	for (uint64_t a = W_BASE; a < W_BASE + 8 * MIB; a += W_PAGE)
		tm_touch(w.m, w.t, w.mm, W_MM, a, 0);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->arg, 1);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 8 * MIB);
	assert_int_equal(updates(&w), 4096);
	w_end(&w);
}

/* 100 pages into a block: 8 MiB on is inside a block, so the window ends at that block's end. */
static void a_window_ends_at_a_huge_page_boundary(void **state)
{
	const uint64_t start = W_BASE + 100 * W_PAGE;
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_size_mb=8");
	w_start(&w);
	w_fill(&w, start, 40 * MIB, false);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 5 * W_HUGE);
	assert_int_equal(updates(&w), 5 * 512 - 100);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 9 * W_HUGE);
	w_end(&w);
}

/*
 * The series' own loop, written again from its rule: arm up to start + remaining rounded up to 2
 * MiB, subtract what was armed, go on. present[] is by page. Returns where it stops.
 */
static uint64_t reference_end(const uint8_t *present, const uint8_t *armed, uint64_t pages,
	uint64_t start, int64_t window)
{
	while (start < pages && window > 0) {
		uint64_t end = (start + (uint64_t)window + 511) / 512 * 512;

		end = end < pages ? end : pages;
		for (; start < end; start++)
			window -= present[start] && !armed[start];
	}
	return start;
}

/* Sparse, dense, half armed: a request that counts present pages ends where the series' loop ends.
 */
static void windows_end_where_the_series_ends_them(void **state)
{
	enum { PAGES = 24 * 512 };
	static uint8_t present[PAGES], armed[PAGES];

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w = w_new("thpmigrate-v5", 2);
		uint64_t x = seed, end;
		const uint64_t density = next_random(&x) % 100 + 1, done = next_random(&x) % 100;

		w_set(&w, "scan_size_mb=5");
		w_start(&w);
		w_map(&w, W_BASE, PAGES * W_PAGE);
		for (uint64_t p = 0; p < PAGES; p++) {
			present[p] = next_random(&x) % 100 < density;
			armed[p] = present[p] && next_random(&x) % 100 < done;
			if (present[p])
				tm_populate(w.m, W_MM, W_BASE + p * W_PAGE,
					W_BASE + (p + 1) * W_PAGE, 0, false);
			if (armed[p])
				tm_page(w.m, W_MM, W_BASE + p * W_PAGE)->armed = true;
		}
		end = reference_end(present, armed, PAGES, 0, 5 * 256);
		w_scan(&w, 0);
		for (uint64_t p = 0; p < PAGES; p++)
			if (present[p] && !armed[p] &&
				tm_page(w.m, W_MM, W_BASE + p * W_PAGE)->armed != (p < end))
				fail_msg("seed %llu: page %llu, end %llu", (unsigned long long)seed,
					(unsigned long long)p, (unsigned long long)end);
		assert_true(w.m->nr_arms <= 24);
		w_end(&w);
	}
}

static void a_window_of_addresses_ends_at_addresses(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_size_mb=8");
	w_set(&w, "scan_present=off");
	w_start(&w);
	w_map(&w, W_BASE + 3 * W_PAGE, 40 * MIB);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 5 * W_HUGE);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 9 * W_HUGE);
	w_end(&w);
}

static void without_windows_a_scan_is_a_pass(void **state)
{
	struct world w = w_new("moron", 2);

	(void)state;
	w_set(&w, "scan_window=off");
	w_start(&w);
	w_fill(&w, W_BASE, 40 * MIB, false);
	w_fill(&w, W_BASE + 64 * MIB, 4 * MIB, false);
	for (unsigned int i = 1; i < 4; i++) {
		w_scan(&w, 0);
		assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->arg, i);
		assert_int_equal(updates(&w), 44 * 256);
	}
	w_end(&w);
}

static void vmas_not_worth_it_are_skipped_with_a_reason(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE - W_PAGE, false);
	tm_map(w.m, w.mm, W_MM, W_BASE + 4 * W_HUGE, W_HUGE, NB_VMA_READ | NB_VMA_UNMIGRATABLE);
	tm_populate(w.m, W_MM, W_BASE + 4 * W_HUGE, W_BASE + 5 * W_HUGE, 0, false);
	w_fill(&w, W_BASE + 8 * W_HUGE, W_HUGE, false);
	w_scan(&w, 0);
	assert_int_equal(updates(&w), 512);
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_SMALL), 1);
	assert_int_equal(tm_count(w.m, NB_EVENT_SCAN_SKIP, NB_SKIP_UNSUITABLE), 1);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_SKIP)->addr, W_BASE + 4 * W_HUGE);
	w_end(&w);
}

static void windows_cross_vmas(void **state)
{
	struct world w = w_new("thpmigrate-v5", 2);

	(void)state;
	w_set(&w, "scan_size_mb=8");
	w_start(&w);
	for (uint64_t i = 0; i < 4; i++)
		w_fill(&w, W_BASE + i * 16 * MIB, 6 * MIB, false);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 16 * MIB + 2 * MIB);
	w_scan(&w, 0);
	assert_int_equal(last_event(&w, NB_EVENT_SCAN_END)->addr, W_BASE + 32 * MIB + 4 * MIB);
	w_end(&w);
}

static void empty_address_spaces_end_their_scans(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		w_scan(&w, 0);
	assert_int_equal(scans(&w), 3);
	assert_int_equal(w.m->nr_arms, 0);
	w_set(&w, "scan_window=off");
	assert_int_equal(w_scan(&w, 0), 1);
	w_end(&w);
}

/* ---- machines that err ---- */

static void an_unwilling_machine_does_not_hold_the_scan(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, 64 * MIB, false);
	w_fill(&w, W_BASE + GIB, 64 * MIB, false);
	w.m->refuse_arm = EPERM;
	assert_int_equal(w_scan(&w, 0), 1);
	assert_int_equal(w.m->nr_arms, 2);
	assert_int_equal(updates(&w), 0);
	w.m->refuse_arm = 0;
	w.m->bad_arm_end = true;
	w.m->nr_arms = 0;
	assert_int_equal(w_scan(&w, 0), 1);
	assert_int_equal(w.m->nr_arms, 2);
	w_end(&w);
}

static void nodes_that_do_not_exist_scan_nothing(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	assert_int_equal(w_scan(&w, -1), 0);
	assert_int_equal(w_scan(&w, 2), 0);
	assert_int_equal(w_scan(&w, 1000), 0);
	w_end(&w);
}

/* ---- counting ---- */

static void huge_pages_count_512_each_time_they_are_passed(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, 4 * W_HUGE, true);
	w_scan(&w, 0);
	assert_int_equal(updates(&w), 4 * 512);
	assert_int_equal(tm_counters(w.m)->numa_huge_pte_updates, 4);
	tm_page(w.m, W_MM, W_BASE)->armed = false;
	w_scan(&w, 0);
	assert_int_equal(updates(&w), 8 * 512);
	assert_int_equal(tm_counters(w.m)->numa_huge_pte_updates, 5);
	assert_int_equal(tm_counters(w.m)->numa_scan_pages, 8 * 512);
	w_set(&w, "scan_counts_huge=off");
	w_scan(&w, 0);
	assert_int_equal(updates(&w), 8 * 512);
	w_end(&w);
}

/* ---- numabal ---- */

/* 20 faults by a task of node 1 on pages of node 0 that were not touched before. */
static void twenty_far(struct world *w, uint64_t which)
{
	for (uint64_t i = 0; i < 20; i++)
		w_fault(w, W_BASE + (which * 20 + i) * W_PAGE, 1);
}

/* What the faults so far make of the scan period: the first one of the next sequence decides. */
static uint32_t period_after_sequence(struct world *w)
{
	w_scan(w, 1);
	w_fault(w, W_BASE + 500 * W_PAGE, 1);
	return nb_task_scan_period_ms(w->t);
}

/* A machine that moves nothing, then one that does. Each time the longest was 1000 ms. */
static void what_may_not_move_is_looked_for_again_once(void **state)
{
	struct world w = w_begin("numabal", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	period_after_sequence(&w);
	w.m->refuse_move = ENOMEM;
	nb_task_set_period(w.m->e, w.t, 1000, w.m->now_ns);
	twenty_far(&w, 0);
	assert_int_equal(period_after_sequence(&w), 250);
	nb_task_set_period(w.m->e, w.t, 1000, w.m->now_ns);
	for (uint64_t i = 1; i < 3; i++) {
		twenty_far(&w, i);
		assert_int_equal(period_after_sequence(&w), 1000U << i);
	}
	w.m->refuse_move = 0;
	twenty_far(&w, 3);
	assert_int_equal(period_after_sequence(&w), 250);
	w_end(&w);
}

static void run_both(struct world *w, struct nb_task *b, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 4) {
		w->m->now_ns += 4 * MS;
		w_tick(w, w->t, w->m->now_ns, 0);
		if (b != NULL)
			w_tick(w, b, w->m->now_ns, 0);
	}
}

/* A program that begins maps a lot: the scan delay, 500 ms, holds all the same. */
static void new_vmas_do_not_cut_the_scan_delay(void **state)
{
	struct world w = w_begin("numabal", 2);
	struct nb_task *b = nb_task_new(w.m->e, w.mm, 2, 0);

	(void)state;
	assert_non_null(b);
	for (uint64_t i = 0; i < 8; i++) {
		w_fill(&w, W_BASE + i * W_HUGE, W_HUGE, false);
		run_both(&w, b, 60);
	}
	assert_int_equal(tm_counters(w.m)->numa_scans, 0);
	run_both(&w, b, 100);
	assert_true(tm_counters(w.m)->numa_scans > 0);
	w_end(&w);
}

static bool scanned(const struct world *w, uint64_t addr)
{
	for (unsigned int i = 0; i < w->m->nr_arms; i++)
		if (w->m->arms[i].start <= addr && addr < w->m->arms[i].end)
			return true;
	return false;
}

/* The second one comes a second after the first, when scans may not be hurried again before the
 * longest period, 10 s, is over. The task itself would scan in 100 s. */
static void new_vmas_wait_for_their_turn(void **state)
{
	struct world w = w_begin("numabal", 2);
	const uint64_t first = W_BASE + 8 * W_HUGE, then = W_BASE + 16 * W_HUGE;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	run_both(&w, NULL, 2000);
	nb_task_set_period(w.m->e, w.t, 100000, w.m->now_ns);
	run_both(&w, NULL, 2000);
	w_fill(&w, first, W_HUGE, false);
	run_both(&w, NULL, 1000);
	assert_true(scanned(&w, first));
	nb_task_set_period(w.m->e, w.t, 100000, w.m->now_ns);
	w_fill(&w, then, W_HUGE, false);
	run_both(&w, NULL, 8000);
	assert_false(scanned(&w, then));
	run_both(&w, NULL, 2000);
	assert_true(scanned(&w, then));
	w_end(&w);
}

/* Whoever runs next looks at what somebody else mapped, once. */
static void one_mapping_is_one_hurry_for_each_task(void **state)
{
	struct world w = w_begin("numabal", 2);
	struct nb_task *b = nb_task_new(w.m->e, w.mm, 2, 0);

	(void)state;
	assert_non_null(b);
	w_fill(&w, W_BASE, W_HUGE, false);
	run_both(&w, b, 2000);
	w_fill(&w, W_BASE + 8 * W_HUGE, W_HUGE, false);
	for (int i = 0; i < 3; i++) {
		nb_task_set_period(w.m->e, w.t, 10000, w.m->now_ns);
		nb_task_set_period(w.m->e, b, 10000, w.m->now_ns);
		run_both(&w, b, 4);
		assert_int_equal(nb_task_scan_period_ms(w.t), i == 0 ? 250 : 10000);
		assert_int_equal(nb_task_scan_period_ms(b), i == 0 ? 250 : 10000);
	}
	w.m->now_ns += 20000 * MS;
	nb_task_set_period(w.m->e, b, 9000, w.m->now_ns);
	w_tick(&w, b, w.m->now_ns, 0);
	assert_int_equal(nb_task_scan_period_ms(b), 9000);
	w_end(&w);
}

/*
 * A failed move doubles the period of that sequence alone: in the next one 20 local private faults
 * lengthen it by 3 of 10 slots, as if nothing had failed.
 */
static void a_failed_move_counts_once(void **state)
{
	struct world w = w_begin("linux-6.12", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_scan(&w, 0);
	w_fault(&w, W_BASE, 0);
	w_fault(&w, W_BASE + W_PAGE, 1);
	assert_int_equal(tm_finish_moves(w.m, NB_MOVE_NOT_ON_LRU), 1);
	nb_task_set_period(w.m->e, w.t, 1000, w.m->now_ns);
	w_scan(&w, 0);
	w_fault(&w, W_BASE, 0);
	assert_int_equal(nb_task_scan_period_ms(w.t), 2000);
	for (uint64_t i = 0; i < 20; i++)
		w_fault(&w, W_BASE + i * W_PAGE, 0);
	w_scan(&w, 0);
	w_fault(&w, W_BASE, 0);
	assert_int_equal(nb_task_scan_period_ms(w.t), 2600);
	w_end(&w);
}

/* Moves that leave the scan period as it is: to where the task belongs, or from where it did not.
 */
static void only_who_is_taken_from_home_begins_again(void **state)
{
	static const struct {
		int preferred, from, to;
		uint32_t period_ms;
	} cases[] = {
		{1, 0, 1, 5000},  /* goes where it belongs */
		{2, 0, 1, 5000},  /* was not there before either */
		{0, 0, 1, 1000},  /* taken away */
		{0, 1, 1, 5000},  /* no move */
		{0, 0, 99, 5000}, /* nowhere */
		{NB_NO_NODE, 0, 1, 1000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = w_begin("linux-6.12", 3);

		w_fill(&w, W_BASE, W_HUGE, false);
		w_scan(&w, 0);
		nb_task_set_period(w.m->e, w.t, 5000, 0);
		/* Nothing is known of a task that took no fault yet. */
		nb_task_moved(w.m->e, w.t, 0, 1, w.m->now_ns);
		assert_int_equal(nb_task_scan_period_ms(w.t), 5000);
		w_scan(&w, 0);
		w_fault(&w, W_BASE, 0);
		nb_task_set_period(w.m->e, w.t, 5000, 0);
		w.t->preferred = (int16_t)cases[i].preferred;
		nb_task_moved(w.m->e, w.t, cases[i].from, cases[i].to, w.m->now_ns);
		assert_int_equal(nb_task_scan_period_ms(w.t), cases[i].period_ms);
		w_end(&w);
	}
}

/*
 * The second task of an address space takes its scan sequence back to 0: what was scanned by the
 * first alone is passed over as completed, once. The third changes nothing.
 */
static void a_second_task_begins_the_sequences_again(void **state)
{
	struct world w = w_begin("linux-6.12", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_scan(&w, 1);
	assert_int_equal(w.mm->scan_seq, 1);
	assert_int_equal(w.m->nr_arms, 1);
	assert_non_null(nb_task_new(w.m->e, w.mm, 2, w.m->now_ns));
	assert_int_equal(w.mm->scan_seq, 0);
	w_scan(&w, 1);
	assert_int_equal(w.m->nr_arms, 1);
	assert_int_equal(tm_counters(w.m)->numa_skip_seq_completed, 1);
	assert_int_equal(w.mm->scan_seq, 1);
	assert_non_null(nb_task_new(w.m->e, w.mm, 3, w.m->now_ns));
	assert_int_equal(w.mm->scan_seq, 1);
	w_scan(&w, 1);
	assert_int_equal(w.m->nr_arms, 2);
	w_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_delay_is_run_time_and_strict),
		cmocka_unit_test(a_delay_of_zero_scans_at_once),
		cmocka_unit_test(run_time_that_falls_is_no_reason_to_scan),
		cmocka_unit_test(the_next_scan_is_a_period_away),
		cmocka_unit_test(periods_are_rounded_up_to_jiffies),
		cmocka_unit_test(the_period_is_reset_every_minute),
		cmocka_unit_test(a_second_node_starts_the_scans_for_good),
		cmocka_unit_test(nothing_is_scanned_while_off_and_said_once),
		cmocka_unit_test(scans_pause_while_the_node_is_limited),
		cmocka_unit_test(a_window_is_scan_size_of_present_pages),
		cmocka_unit_test(a_scan_starts_over_at_the_end),
		cmocka_unit_test(a_window_ends_at_a_huge_page_boundary),
		cmocka_unit_test(windows_end_where_the_series_ends_them),
		cmocka_unit_test(a_window_of_addresses_ends_at_addresses),
		cmocka_unit_test(without_windows_a_scan_is_a_pass),
		cmocka_unit_test(vmas_not_worth_it_are_skipped_with_a_reason),
		cmocka_unit_test(windows_cross_vmas),
		cmocka_unit_test(empty_address_spaces_end_their_scans),
		cmocka_unit_test(an_unwilling_machine_does_not_hold_the_scan),
		cmocka_unit_test(nodes_that_do_not_exist_scan_nothing),
		cmocka_unit_test(huge_pages_count_512_each_time_they_are_passed),
		cmocka_unit_test(what_may_not_move_is_looked_for_again_once),
		cmocka_unit_test(new_vmas_do_not_cut_the_scan_delay),
		cmocka_unit_test(new_vmas_wait_for_their_turn),
		cmocka_unit_test(one_mapping_is_one_hurry_for_each_task),
		cmocka_unit_test(a_failed_move_counts_once),
		cmocka_unit_test(only_who_is_taken_from_home_begins_again),
		cmocka_unit_test(a_second_task_begins_the_sequences_again),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
