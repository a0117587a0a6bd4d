/* SPDX-License-Identifier: MIT */
/* How many pages a call of move_pages takes: by the clock, with calls that cost what is said here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "agent.h"

enum {
	BLOCK = NB_HUGE_PAGES,
	GOAL_MS = 20,
};

static const uint64_t ms = 1000000;

/* ---- the step alone ---- */

static uint32_t after(struct nb_pace *p, int calls, uint64_t page_ns)
{
	for (int i = 0; i < calls; i++)
		nb_pace_step(p, p->pages, p->pages * page_ns, GOAL_MS * ms);
	return p->pages;
}

static void what_is_fast_grows_to_a_whole_batch(void **state)
{
	struct nb_pace p = {.pages = BLOCK};

	(void)state;
	/* Twice as many at most each time, so that a call of which nothing is known is short. */
	assert_int_equal(after(&p, 1, 100), 2 * BLOCK);
	assert_int_equal(after(&p, 1, 100), 4 * BLOCK);
	assert_int_equal(after(&p, 5, 100), NB_BATCH_PAGES);
}

/* 1024 pages of 16 us take 16.4 ms; 1536 would take 24.6. */
static void it_settles_below_the_goal(void **state)
{
	struct nb_pace p = {.pages = BLOCK};

	(void)state;
	assert_int_equal(after(&p, 20, 16000), 2 * BLOCK);
	assert_int_equal(after(&p, 20, 5000), NB_BATCH_PAGES);
	assert_int_equal(after(&p, 1, 16000), 2 * BLOCK);
}

static void never_less_than_a_block(void **state)
{
	struct nb_pace p = {.pages = BLOCK};

	(void)state;
	assert_int_equal(after(&p, 20, 1 * ms), BLOCK);
	assert_int_equal(nb_pace_step(&p, 1, UINT64_MAX, 1), BLOCK);
}

/* What a call costs by itself is not taken for what a page costs. */
static void a_call_for_a_page_says_little(void **state)
{
	struct nb_pace p = {.pages = BLOCK};

	(void)state;
	for (int i = 0; i < 10; i++)
		nb_pace_step(&p, 1, 2 * ms, GOAL_MS * ms);
	/* 2 ms for a block: ten of those fit. */
	assert_true(p.pages >= 5 * BLOCK);
}

static void a_slow_call_is_forgotten(void **state)
{
	struct nb_pace p = {.pages = BLOCK};

	(void)state;
	after(&p, 10, 100);
	assert_int_equal(after(&p, 1, 100000), BLOCK);
	assert_int_equal(after(&p, 1, 100), BLOCK);
	assert_int_equal(after(&p, 40, 100), NB_BATCH_PAGES);
}

/* ---- with calls ---- */

static struct {
	uint64_t now_ns, page_ns, longest_ns;
	uint32_t calls, largest, pages;
	uint32_t fails_at; /* 0 = never */
} kernel;

static long fake_move(enum nb_os_call call, const struct nb_os_args *args)
{
	const uint32_t n = (uint32_t)args->a[1];
	const uint64_t took = n * kernel.page_ns;

	(void)call;
	/* Each page once, and in order. */
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(((void **)args->a[2])[i], (kernel.pages + i) << 12);
	kernel.pages += n;
	kernel.now_ns += took;
	kernel.calls++;
	if (took > kernel.longest_ns)
		kernel.longest_ns = took;
	if (n > kernel.largest)
		kernel.largest = n;
	return kernel.calls == kernel.fails_at ? -ENOMEM : 0;
}

static long fake_clock(enum nb_os_call call, const struct nb_os_args *args)
{
	struct timespec *t = (struct timespec *)args->a[1];

	(void)call;
	t->tv_sec = (time_t)(kernel.now_ns / 1000000000);
	t->tv_nsec = (long)(kernel.now_ns % 1000000000);
	return 0;
}

static struct {
	struct nb_guest guest;
	struct nb_session session;
	struct nb_slot slot;
	struct nb_batch batch;
} room;

static void begin(uint64_t page_ns, uint32_t move_ms)
{
	memset(&room, 0, sizeof(room));
	memset(&kernel, 0, sizeof(kernel));
	kernel.page_ns = page_ns;
	room.session.move_ms = move_ms;
	room.guest.session = &room.session;
	atomic_store(&room.guest.slot, &room.slot);
	nb_os_table[NB_OS_move_pages].current = fake_move;
	nb_os_table[NB_OS_clock_gettime].current = fake_clock;
}

static long carry_full(void)
{
	room.batch.nr = NB_BATCH_PAGES;
	for (uint32_t i = 0; i < NB_BATCH_PAGES; i++)
		room.batch.page[i] = (void *)((uint64_t)i << 12);
	kernel.pages = 0;
	return nb_batch_carry(&room.guest, &room.batch);
}

static int end(void **state)
{
	(void)state;
	nb_os_reset();
	return 0;
}

static void no_call_is_longer_than_it_may_be(void **state)
{
	(void)state;
	/* What a page takes on a fast machine, and on one that is busy. */
	for (uint64_t page_ns = 500; page_ns < 39000; page_ns += 500) {
		begin(page_ns, GOAL_MS);
		for (int i = 0; i < 10; i++) {
			assert_int_equal(carry_full(), 0);
			assert_int_equal(kernel.pages, NB_BATCH_PAGES);
		}
		assert_true(kernel.longest_ns <= GOAL_MS * ms);
		assert_int_equal(atomic_load(&room.slot.stats.move_max_ns), kernel.longest_ns);
		assert_int_equal(atomic_load(&room.slot.stats.move_calls), kernel.calls);
	}
}

static void the_goal_can_be_chosen(void **state)
{
	(void)state;
	begin(10000, GOAL_MS);
	for (int i = 0; i < 10; i++)
		carry_full();
	assert_int_equal(kernel.largest, 3 * BLOCK); /* 15.4 ms */
	begin(10000, 200);
	for (int i = 0; i < 10; i++)
		carry_full();
	assert_int_equal(kernel.largest, NB_BATCH_PAGES);
}

static void how_long_calls_took_is_counted(void **state)
{
	uint64_t counted = 0;

	(void)state;
	begin(1000, GOAL_MS);
	carry_full();
	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		counted += atomic_load(&room.slot.move_histogram[i]);
	assert_int_equal(counted, kernel.calls);
	/* The first call is a block: 512 us, which lies between 2^18 and 2^19 ns. */
	assert_int_equal(atomic_load(&room.slot.move_histogram[18]), 1);
}

/* As when it was one call: what comes after it is not tried. */
static void a_call_that_fails_is_the_last(void **state)
{
	(void)state;
	begin(39000, GOAL_MS);
	kernel.fails_at = 2;
	assert_int_equal(carry_full(), -ENOMEM);
	assert_int_equal(kernel.calls, 2);
}

static void nothing_to_move(void **state)
{
	(void)state;
	begin(1000, GOAL_MS);
	assert_int_equal(nb_batch_carry(&room.guest, &room.batch), 0);
	assert_int_equal(kernel.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_fast_grows_to_a_whole_batch),
		cmocka_unit_test(it_settles_below_the_goal),
		cmocka_unit_test(never_less_than_a_block),
		cmocka_unit_test(a_call_for_a_page_says_little),
		cmocka_unit_test(a_slow_call_is_forgotten),
		cmocka_unit_test_teardown(no_call_is_longer_than_it_may_be, end),
		cmocka_unit_test_teardown(the_goal_can_be_chosen, end),
		cmocka_unit_test_teardown(how_long_calls_took_is_counted, end),
		cmocka_unit_test_teardown(a_call_that_fails_is_the_last, end),
		cmocka_unit_test_teardown(nothing_to_move, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
