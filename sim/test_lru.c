/* SPDX-License-Identifier: MIT */
/* Pages that were made or moved last, and that no move can isolate. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim_fixture.h"

/* How many of the pages [first, end) are in a batch. */
static uint64_t held(const struct sim_try *t, uint64_t first, uint64_t end)
{
	uint64_t nr = 0;

	for (uint64_t page = first; page < end; page++)
		nr += sim_lru_holds(&t->w, page << NB_PAGE_SHIFT);
	return nr;
}

static void test_a_full_batch_is_emptied(void **state)
{
	static const struct {
		const char *system;
		uint64_t size;
	} cases[] = {{"linux-6.8", 15}, {"linux-6.12", 31}};

	(void)state;
	for (int k = 0; k < 2; k++) {
		const uint64_t size = cases[k].size;
		struct sim_try t;

		try_open_nodes(&t, "size=4K thp=never", cases[k].system, NULL);
		for (uint64_t page = 1000; page < 1000 + size - 1; page++)
			sim_lru_add(&t.w, 0, page << NB_PAGE_SHIFT, 1);
		assert_int_equal(held(&t, 1000, 1100), size - 1);
		/* Another CPU's is another batch. */
		sim_lru_add(&t.w, 1, UINT64_C(2000) << NB_PAGE_SHIFT, 1);
		assert_int_equal(held(&t, 1000, 1100), size - 1);
		sim_lru_add(&t.w, 0, UINT64_C(1099) << NB_PAGE_SHIFT, 1);
		assert_int_equal(held(&t, 1000, 1100), 0);
		assert_int_equal(held(&t, 2000, 2001), 1);
		try_free(&t);
	}
}

/* 512 pages in one go: 16 full batches of 31, and the last 16 pages. */
static void test_of_many_pages_the_last_are_left(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=4K thp=never", "linux-6.12", NULL);
	sim_lru_add(&t.w, 2, UINT64_C(512) << NB_PAGE_SHIFT, 512);
	assert_int_equal(held(&t, 512, 1024), 16);
	assert_int_equal(held(&t, 1008, 1024), 16);
	sim_lru_add(&t.w, 2, UINT64_C(4096) << NB_PAGE_SHIFT, 14);
	assert_int_equal(held(&t, 512, 1024) + held(&t, 4096, 4110), 16 + 14);
	sim_lru_add(&t.w, 2, UINT64_C(8192) << NB_PAGE_SHIFT, 3);
	assert_int_equal(held(&t, 512, 1024) + held(&t, 4096, 4110), 0);
	assert_int_equal(held(&t, 8192, 8195), 2);
	try_free(&t);
}

static void test_other_systems_have_none(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=4K thp=never", "balancenuma-v8", NULL);
	sim_lru_add(&t.w, 0, UINT64_C(512) << NB_PAGE_SHIFT, 5);
	assert_int_equal(held(&t, 512, 517), 0);
	try_free(&t);
}

/* Thread 0 makes 16 pages; thread 1's hint fault can't move the first of them until 15 more are
 * there. */
static void test_pages_in_a_batch_stay_where_they_are(void **state)
{
	struct sim_try t;

	(void)state;
	try_open_nodes(&t, "size=256K thp=never", "linux-6.12", NULL);
	try_touch(&t, 0, 0, 16 * 4096);
	try_arm(&t, 0, 16 * 4096);
	try_touch(&t, 1, 0, 4096);
	assert_int_equal(try_node_of(&t, 0), 0);
	assert_false(try_is_armed(&t, 0));
	assert_int_equal(try_counters(&t)->numa_hint_faults, 1);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 0);
	assert_int_equal(try_counters(&t)->pgmigrate_fail, 0);
	try_touch(&t, 0, 16 * 4096, 31 * 4096);
	try_arm(&t, 0, 4096);
	try_touch(&t, 1, 0, 4096);
	assert_int_equal(try_node_of(&t, 0), 1);
	assert_int_equal(try_counters(&t)->numa_pages_migrated, 1);
	/* Where it was moved it is the first of another batch. */
	assert_true(sim_lru_holds(&t.w, t.w.areas[0].va));
	try_check(&t);
	try_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_full_batch_is_emptied),
		cmocka_unit_test(test_of_many_pages_the_last_are_left),
		cmocka_unit_test(test_other_systems_have_none),
		cmocka_unit_test(test_pages_in_a_batch_stay_where_they_are),
	};

	return cmocka_run_group_tests_name("lru", tests, NULL, NULL);
}
