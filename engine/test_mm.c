/* SPDX-License-Identifier: MIT */
/* Address spaces, VMAs and tasks: coming, going, splitting, and memory that runs out meanwhile. */
#include "test_world.h"
#include <errno.h>

static bool mapped(const struct world *w, uint64_t addr)
{
	return nb_vma_find(w->mm, addr) != NULL;
}

static void vmas_are_found_by_address(void **state)
{
	struct world w = w_begin("none", 2);

	(void)state;
	for (uint64_t i = 0; i < 50; i++) /* odd places first: the order of mapping is free */
		w_map(&w, W_BASE + (i * 27 % 50) * 4 * W_PAGE, 2 * W_PAGE);
	assert_null(nb_engine_check(w.m->e));
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(mapped(&w, W_BASE + i * W_PAGE + 7), i % 4 < 2);
	assert_false(mapped(&w, W_BASE - 1));
	assert_false(mapped(&w, UINT64_MAX));
	w_end(&w);
}

static void bad_ranges_are_refused(void **state)
{
	struct world w = w_begin("none", 2);
	struct nb_engine *e = w.m->e;

	(void)state;
	w_map(&w, W_BASE, 4 * W_PAGE);
	assert_null(nb_vma_map(e, w.mm, W_BASE, W_BASE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, W_BASE + W_PAGE, W_BASE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, 1, W_PAGE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, 0, W_PAGE + 1, 0, 0));
	assert_null(nb_vma_map(e, w.mm, W_BASE + 3 * W_PAGE, W_BASE + 5 * W_PAGE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, W_BASE - W_PAGE, W_BASE + W_PAGE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, W_BASE - W_PAGE, W_BASE + 5 * W_PAGE, 0, 0));
	assert_null(nb_vma_map(e, w.mm, W_BASE + W_PAGE, W_BASE + 2 * W_PAGE, 0, 0));
	assert_int_equal(nb_vma_unmap(e, w.mm, W_BASE, W_BASE, 0), -EINVAL);
	assert_int_equal(nb_vma_unmap(e, w.mm, W_BASE + 1, W_BASE + W_PAGE, 0), -EINVAL);
	assert_int_equal(nb_vma_protect(e, w.mm, W_BASE, W_BASE + 1, 0, 0), -EINVAL);
	w_end(&w);
}

static void absurd_sizes_are_refused_and_the_top_is_mapped(void **state)
{
	struct world w = w_begin("none", 2);
	const uint64_t top = UINT64_MAX - W_PAGE + 1;

	(void)state;
	assert_null(nb_vma_map(w.m->e, w.mm, 0, top, 0, 0));
	assert_non_null(nb_vma_map(w.m->e, w.mm, top - 3 * W_HUGE, top, 0, 0));
	nb_pages_dropped(w.m->e, w.mm, top - 2 * W_HUGE, top);
	assert_null(nb_engine_check(w.m->e));
	assert_int_equal(nb_vma_unmap(w.m->e, w.mm, top - 2 * W_HUGE, top - W_HUGE, 0), 0);
	assert_true(mapped(&w, top - 1));
	w_end(&w);
}

/* All ways a range can lie over [10, 20) and [30, 40) pages. */
static void unmapping_leaves_exactly_the_rest(void **state)
{
	(void)state;
	for (uint64_t from = 8; from < 42; from++)
		for (uint64_t to = from + 1; to < 43; to++) {
			struct world w = w_begin("none", 2);

			w_map(&w, W_BASE + 10 * W_PAGE, 10 * W_PAGE);
			w_map(&w, W_BASE + 30 * W_PAGE, 10 * W_PAGE);
			assert_int_equal(tm_unmap(w.m, w.mm, W_MM, W_BASE + from * W_PAGE,
						 W_BASE + to * W_PAGE),
				0);
			assert_null(nb_engine_check(w.m->e));
			for (uint64_t i = 8; i < 43; i++) {
				const bool was = (i >= 10 && i < 20) || (i >= 30 && i < 40);

				assert_int_equal(mapped(&w, W_BASE + i * W_PAGE),
					was && (i < from || i >= to));
			}
			w_end(&w);
		}
}

/* The parts keep their histories, blocks that both have included. */
static void parts_remember_their_pages(void **state)
{
	static const uint64_t holes[][2] = {
		{0, 3}, {700, 703}, {500, 600}, {512, 1024}, {1000, 2048}, {300, 301}, {1, 2047}};

	(void)state;
	for (size_t h = 0; h < sizeof(holes) / sizeof(holes[0]); h++) {
		struct world w = w_begin("balancenuma-v8", 4);

		w_fill(&w, W_BASE, 4 * W_HUGE, false);
		for (uint64_t i = 0; i < 2048; i++)
			w_fault(&w, W_BASE + i * W_PAGE, (int)(i % 3) + 1);
		tm_unmap(w.m, w.mm, W_MM, W_BASE + holes[h][0] * W_PAGE,
			W_BASE + holes[h][1] * W_PAGE);
		assert_null(nb_engine_check(w.m->e));
		for (uint64_t i = 0; i < 2048; i++)
			if (i < holes[h][0] || i >= holes[h][1])
				assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, (int)(i % 3) + 1),
					NB_WHY_MOVE);
		w_end(&w);
	}
}

static void a_hole_without_memory_loses_the_second_part(void **state)
{
	struct world w = w_begin("none", 2);

	(void)state;
	w_map(&w, W_BASE, 8 * W_HUGE);
	w.m->no_memory = true;
	assert_int_equal(
		nb_vma_unmap(w.m->e, w.mm, W_BASE + W_HUGE, W_BASE + 2 * W_HUGE, 0), -ENOMEM);
	assert_true(mapped(&w, W_BASE));
	assert_false(mapped(&w, W_BASE + W_HUGE));
	assert_false(mapped(&w, W_BASE + 4 * W_HUGE));
	assert_null(nb_engine_check(w.m->e));
	assert_int_equal(nb_vma_unmap(w.m->e, w.mm, W_BASE, W_BASE + W_PAGE, 0), 0);
	w_end(&w);
}

static void unmapping_gives_memory_back(void **state)
{
	struct world w = w_begin("none", 2);
	uint64_t bytes, pages, less;

	(void)state;
	w_map(&w, W_BASE, 64 * MIB);
	nb_engine_page_state(w.m->e, &bytes, &pages);
	assert_int_equal(pages, 64 * 256);
	nb_vma_unmap(w.m->e, w.mm, W_BASE, W_BASE + 62 * MIB, 0);
	nb_engine_page_state(w.m->e, &less, &pages);
	assert_int_equal(pages, 512);
	assert_int_equal(bytes - less, 31 * 8);
	w_end(&w);
}

static void protect_changes_whole_vmas(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, 2 * W_HUGE, false);
	w_fill(&w, W_BASE + 4 * W_HUGE, W_HUGE, false);
	assert_int_equal(nb_vma_protect(w.m->e, w.mm, W_BASE + W_HUGE, W_BASE + 8 * W_HUGE,
				 NB_VMA_UNMIGRATABLE, 0),
		0);
	w_scan(&w, 0);
	assert_int_equal(tm_counters(w.m)->numa_pte_updates, 1024);
	w_end(&w);
}

/* A pointer to a VMA that a policy split is good for the first part, and does no harm for the
 * second. */
static void split_vmas_serve_old_pointers(void **state)
{
	struct world w = w_begin("moron", 4);
	struct nb_vma *vma = w_fill(&w, W_BASE, 2 * W_HUGE, false);
	const struct nb_policy p = {
		.mode = NB_POLICY_PREFERRED, .migrate_on_fault = true, .nodes = {8}};
	struct nb_fault f = {.task = w.t, .vma = vma, .cpu_node = 1, .page_node = 0};

	(void)state;
	assert_int_equal(
		nb_vma_policy(w.m->e, w.mm, W_BASE + W_HUGE, W_BASE + 2 * W_HUGE, &p, false, 0), 0);
	f.addr = W_BASE;
	assert_int_equal(nb_hint_fault(w.m->e, &f).node, 1);
	f.addr = W_BASE + W_HUGE;
	assert_int_equal(nb_hint_fault(w.m->e, &f).node, 3);
	f.vma = NULL;
	assert_int_equal(nb_hint_fault(w.m->e, &f).node, 3);
	w_end(&w);
}

/* The parts are as migratable as the whole was. */
static void split_vmas_keep_their_flags(void **state)
{
	struct world w = w_begin("moron", 2);
	const struct nb_policy p = {.mode = NB_POLICY_BIND, .nodes = {1}};

	(void)state;
	tm_map(w.m, w.mm, W_MM, W_BASE, 2 * W_HUGE, NB_VMA_UNMIGRATABLE);
	tm_populate(w.m, W_MM, W_BASE, W_BASE + 2 * W_HUGE, 0, false);
	assert_int_equal(
		nb_vma_policy(w.m->e, w.mm, W_BASE + W_HUGE, W_BASE + 2 * W_HUGE, &p, false, 0), 0);
	w_scan(&w, 0);
	assert_int_equal(tm_counters(w.m)->numa_pte_updates, 0);
	w_end(&w);
}

static void ids_are_unique_while_alive(void **state)
{
	struct world w = w_begin("none", 2);
	struct nb_mm *mm;

	(void)state;
	assert_null(nb_mm_new(w.m->e, 0, 0));
	assert_null(nb_mm_new(w.m->e, W_MM, 0));
	assert_null(nb_task_new(w.m->e, w.mm, 0, 0));
	assert_null(nb_task_new(w.m->e, w.mm, 1, 0));
	assert_null(nb_task_new(w.m->e, NULL, 2, 0));
	mm = nb_mm_new(w.m->e, UINT32_MAX, 0);
	assert_non_null(mm);
	nb_mm_gone(w.m->e, mm, 0);
	mm = nb_mm_new(w.m->e, UINT32_MAX, 0);
	assert_non_null(mm);
	w_end(&w);
}

static void many_tasks_come_and_go(void **state)
{
	enum { TASKS = 3000 };
	struct world w = w_begin("none", 2);
	static struct nb_task *tasks[TASKS];

	(void)state;
	for (uint32_t i = 0; i < TASKS; i++)
		assert_non_null(tasks[i] = nb_task_new(w.m->e, w.mm, i * 7919 + 2, 0));
	assert_null(nb_engine_check(w.m->e));
	for (uint32_t i = 0; i < TASKS; i += 3)
		nb_task_gone(w.m->e, tasks[i], 0);
	assert_null(nb_engine_check(w.m->e));
	for (uint32_t i = 0; i < TASKS; i += 3)
		assert_non_null(tasks[i] = nb_task_new(w.m->e, w.mm, i * 7919 + 2, 0));
	for (uint32_t i = 0; i < TASKS; i++)
		nb_task_gone(w.m->e, tasks[i], 0);
	assert_null(nb_engine_check(w.m->e));
	w_end(&w);
}

/* The address space goes first: its tasks scan nothing and fault on nothing from then on. */
static void tasks_may_outlive_their_address_space(void **state)
{
	struct world w = w_begin("moron", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	nb_mm_gone(w.m->e, w.mm, 0);
	assert_null(nb_engine_check(w.m->e));
	assert_true(nb_task_tick_idle(w.t, 1000000 * MS, 0));
	w_tick(&w, w.t, 1000000 * MS, 0);
	assert_int_equal(tm_counters(w.m)->numa_scans, 0);
	w_end(&w);
}

/* Everything that allocates, with each of its allocations failing in turn. */
static void memory_may_run_out_anywhere(void **state)
{
	(void)state;
	for (int64_t allocs = 0; allocs < 40; allocs++) {
		struct world w = w_begin("balancenuma-v8", 2);
		struct nb_mm *mm;

		w_fill(&w, W_BASE, 4 * W_HUGE, false);
		w.m->allocs_left = allocs;
		for (uint32_t i = 2; i < 40; i++) {
			mm = nb_mm_new(w.m->e, i, 0);
			if (mm != NULL && nb_task_new(w.m->e, mm, i, 0) != NULL)
				nb_vma_map(w.m->e, mm, W_BASE, W_BASE + W_HUGE, 0, 0);
		}
		for (uint64_t i = 1; i < 40; i++)
			nb_vma_map(w.m->e, w.mm, W_BASE + i * 8 * W_HUGE,
				W_BASE + (i * 8 + 1) * W_HUGE, 0, 0);
		w_scan(&w, 0);
		w_scan(&w, 1);
		nb_vma_unmap(w.m->e, w.mm, W_BASE + 5 * W_PAGE, W_BASE + 6 * W_PAGE, 0);
		assert_null(nb_engine_check(w.m->e));
		w_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmas_are_found_by_address),
		cmocka_unit_test(bad_ranges_are_refused),
		cmocka_unit_test(absurd_sizes_are_refused_and_the_top_is_mapped),
		cmocka_unit_test(unmapping_leaves_exactly_the_rest),
		cmocka_unit_test(parts_remember_their_pages),
		cmocka_unit_test(a_hole_without_memory_loses_the_second_part),
		cmocka_unit_test(unmapping_gives_memory_back),
		cmocka_unit_test(protect_changes_whole_vmas),
		cmocka_unit_test(split_vmas_serve_old_pointers),
		cmocka_unit_test(split_vmas_keep_their_flags),
		cmocka_unit_test(ids_are_unique_while_alive),
		cmocka_unit_test(many_tasks_come_and_go),
		cmocka_unit_test(tasks_may_outlive_their_address_space),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests_name("mm", tests, NULL, NULL);
}
