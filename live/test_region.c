/* SPDX-License-Identifier: MIT */
/* The table of regions against a model: an array that says for each page what it belongs to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "region.h"

enum {
	PAGE = 4096,
	HUGE = 2 << 20,
	MODEL = 4096, /* pages */
};

static struct nb_regions table;

static uint64_t addr_of(unsigned int page)
{
	return (uint64_t)HUGE * 100 + (uint64_t)page * PAGE;
}

static struct nb_region region(unsigned int start, unsigned int end, uint16_t backing)
{
	return (struct nb_region){
		.start = addr_of(start),
		.end = addr_of(end),
		.offset = addr_of(start) % HUGE,
		.backing = backing,
		.prot = 3,
	};
}

static int begin(void **state)
{
	(void)state;
	nb_regions_init(&table);
	for (int i = 0; i < 16; i++)
		table.backing[i].fd = 100 + i;
	return 0;
}

static void test_empty(void **state)
{
	(void)state;
	assert_false(nb_regions_touch(&table, 0, UINT64_MAX));
	assert_null(nb_region_at(&table, addr_of(0)));
	assert_int_equal(nb_backing_free(&table), 16);
	nb_regions_forget(&table, 0, UINT64_MAX);
	assert_null(nb_regions_check(&table));
}

static void test_overlap_is_refused(void **state)
{
	const struct nb_region a = region(10, 20, 0), b = region(19, 30, 1), c = region(20, 30, 1);

	(void)state;
	assert_int_equal(nb_region_add(&table, &a), 0);
	assert_int_equal(nb_region_add(&table, &b), -EEXIST);
	assert_int_equal(nb_region_add(&table, &c), 0);
	assert_null(nb_regions_check(&table));
	assert_int_equal(table.backing[0].users, 1);
}

static void test_cut_keeps_offsets(void **state)
{
	const struct nb_region a = region(10, 600, 3);
	const struct nb_region *r;

	(void)state;
	nb_region_add(&table, &a);
	assert_int_equal(nb_regions_cut(&table, addr_of(50)), 0);
	assert_int_equal(nb_regions_cut(&table, addr_of(50)), 0);
	assert_int_equal(table.nr, 2);
	r = nb_region_at(&table, addr_of(50));
	assert_int_equal(r->offset, a.offset + 40 * PAGE);
	assert_int_equal(table.backing[3].users, 2);
	nb_regions_merge(&table, addr_of(10), addr_of(600));
	assert_int_equal(table.nr, 1);
	assert_int_equal(table.region[0].end, a.end);
	assert_false(table.backing[3].trimmed);
}

static void test_different_are_not_merged(void **state)
{
	const struct nb_region a = region(10, 600, 3);

	(void)state;
	nb_region_add(&table, &a);
	nb_regions_cut(&table, addr_of(50));
	nb_regions_cut(&table, addr_of(60));
	nb_region_at(&table, addr_of(55))->prot = 1;
	nb_regions_merge(&table, addr_of(0), addr_of(700));
	assert_int_equal(table.nr, 3);
	nb_region_at(&table, addr_of(55))->prot = 3;
	nb_regions_merge(&table, addr_of(50), addr_of(60));
	assert_int_equal(table.nr, 1);
}

static void test_forget_marks_the_backing(void **state)
{
	const struct nb_region a = region(0, 100, 2);

	(void)state;
	nb_region_add(&table, &a);
	nb_regions_forget(&table, addr_of(40), addr_of(50));
	assert_int_equal(table.nr, 2);
	assert_true(table.backing[2].trimmed);
	nb_regions_forget(&table, 0, UINT64_MAX);
	assert_int_equal(table.nr, 0);
	assert_int_equal(table.backing[2].users, 0);
}

static void test_runs(void **state)
{
	struct nb_region a = region(0, 100, 0), b = region(100, 200, 1), c = region(200, 300, 2);
	struct nb_run run;

	(void)state;
	c.prot = 1;
	nb_region_add(&table, &a);
	nb_region_add(&table, &b);
	nb_region_add(&table, &c);
	assert_true(nb_regions_run(&table, addr_of(50), addr_of(250), &run));
	assert_int_equal(run.start, addr_of(50));
	assert_int_equal(run.end, addr_of(200));
	assert_true(nb_regions_run(&table, run.end, addr_of(250), &run));
	assert_int_equal(run.end, addr_of(250));
	assert_int_equal(run.prot, 1);
	assert_false(nb_regions_run(&table, addr_of(300), addr_of(400), &run));
}

static void test_full_table(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < NB_MAX_REGIONS; i++) {
		const struct nb_region r = region(2 * i, 2 * i + 1, 1);

		assert_int_equal(nb_region_add(&table, &r), 0);
	}
	assert_int_equal(
		nb_region_add(&table, &(struct nb_region){.start = 0, .end = PAGE}), -ENOSPC);
	assert_false(nb_regions_can_cut(&table));
	nb_regions_forget(&table, addr_of(10), addr_of(20));
	assert_null(nb_regions_check(&table));
	assert_true(nb_regions_can_cut(&table));
	assert_int_equal(table.nr, NB_MAX_REGIONS - 5);
}

/* ---- against a model ---- */

static unsigned char model[MODEL]; /* backing + 1, or 0 */

static void compare(void)
{
	assert_null(nb_regions_check(&table));
	for (unsigned int i = 0; i < MODEL; i++) {
		const struct nb_region *r = nb_region_at(&table, addr_of(i));

		assert_int_equal(r != NULL ? r->backing + 1 : 0, model[i]);
		assert_true(nb_regions_touch(&table, addr_of(i), addr_of(i + 1)) == (r != NULL));
		if (r != NULL)
			assert_int_equal(
				(addr_of(i) - r->start + r->offset) % HUGE, addr_of(i) % HUGE);
	}
}

static void test_against_a_model(void **state)
{
	(void)state;
	srand(1);
	for (int step = 0; step < 2000; step++) {
		const unsigned int start = (unsigned int)rand() % MODEL;
		unsigned int end = start + 1 + (unsigned int)rand() % 200, busy = 0;
		const uint16_t backing = (uint16_t)(rand() % 16);
		const struct nb_region r = region(start, end > MODEL ? MODEL : end, backing);

		end = end > MODEL ? MODEL : end;
		for (unsigned int i = start; i < end; i++)
			busy += model[i] != 0;
		if (step % 3 != 0) {
			assert_int_equal(nb_region_add(&table, &r), busy ? -EEXIST : 0);
			for (unsigned int i = start; i < end && !busy; i++)
				model[i] = (unsigned char)(backing + 1);
		} else {
			nb_regions_forget(&table, addr_of(start), addr_of(end));
			for (unsigned int i = start; i < end; i++)
				model[i] = 0;
		}
		if (step % 7 == 0)
			nb_regions_cut(&table, addr_of(start));
		if (step % 11 == 0)
			nb_regions_merge(&table, addr_of(0), addr_of(MODEL));
		if (step % 50 == 0)
			compare();
	}
	compare();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_empty, begin),
		cmocka_unit_test_setup(test_overlap_is_refused, begin),
		cmocka_unit_test_setup(test_cut_keeps_offsets, begin),
		cmocka_unit_test_setup(test_different_are_not_merged, begin),
		cmocka_unit_test_setup(test_forget_marks_the_backing, begin),
		cmocka_unit_test_setup(test_runs, begin),
		cmocka_unit_test_setup(test_full_table, begin),
		cmocka_unit_test_setup(test_against_a_model, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
