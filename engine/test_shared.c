/* SPDX-License-Identifier: MIT */
/* Pages that tasks share: what is remembered of them, what their faults count for, and where tasks
 * of a group settle. Figures by hand from kernel/sched/fair.c and mm/mempolicy.c of Linux 6.12. */
#include "test_world.h"
#include <errno.h>
#include "cpupid.h"
#include "engine_private.h"
#include "group.h"
#include "scanperiod.h"

static struct nb_task *another(struct world *w, uint32_t id)
{
	struct nb_task *t = nb_task_new(w->m->e, w->mm, id, w->m->now_ns);

	assert_non_null(t);
	return t;
}

/* Tasks 1 on node_a and `b` on node_b touch the same pages, of node 0, until they are one group. */
static void join(struct world *w, int node_a, struct nb_task *b, int node_b)
{
	w->m->refuse_move = EAGAIN;
	for (uint64_t page = 100; page < 104; page++)
		for (int i = 0; i < 4; i++) {
			w_fault_by(w, w->t, W_BASE + page * W_PAGE, node_a, 0);
			w_fault_by(w, b, W_BASE + page * W_PAGE, node_b, 0);
		}
	w->m->refuse_move = 0;
	assert_non_null(w->t->group);
	assert_ptr_equal(w->t->group, b->group);
}

/* ---- what is remembered ---- */

/* Node 1 asks for a page of node 0 twice; what its owner does there in between changes nothing. */
static void a_local_fault_is_not_remembered(void **state)
{
	struct world w = w_begin("linux-6.12", 2);
	struct nb_task *b = another(&w, 2);
	struct nb_vma *vma = w_fill(&w, W_BASE, W_HUGE, false);
	nb_history last;

	(void)state;
	w.m->refuse_move = EAGAIN;
	assert_int_equal(w_fault_by(&w, b, W_BASE, 1, 0).why, NB_WHY_REFUSED);
	w.m->refuse_move = 0;
	last = nb_pages_peek(w.m->e, &vma->pages, W_BASE, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(w_fault(&w, W_BASE, 0), NB_WHY_IN_PLACE);
	assert_int_equal(nb_pages_peek(w.m->e, &vma->pages, W_BASE, false), last);
	assert_true(nb_cpupid_is_of(last, 2) && nb_cpupid_node(last) == 1);
	assert_int_equal(w_fault_by(&w, b, W_BASE, 1, 0).why, NB_WHY_MOVE);
	w_end(&w);
}

/* Two nodes write a page in turn: each takes it at once, while a reader, a huge page, or one that
 * could not be moved leaves word of who was there. */
static void who_moved_a_page_by_writing_is_forgotten(void **state)
{
	static const struct {
		uint32_t flags;
		bool huge;
		enum nb_move_status status;
		enum nb_why then;
	} cases[] = {
		{NB_FAULT_WRITE, false, NB_MOVE_OK, NB_WHY_MOVE},
		{0, false, NB_MOVE_OK, NB_WHY_FILTERED},
		{NB_FAULT_WRITE, true, NB_MOVE_OK, NB_WHY_FILTERED},
		{NB_FAULT_WRITE, false, NB_MOVE_NO_MEMORY, NB_WHY_FILTERED},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct world w = w_begin("linux-6.12", 3);
		struct nb_task *b = another(&w, 2);

		w_fill(&w, W_BASE, W_HUGE, cases[k].huge);
		assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, cases[k].flags).why, NB_WHY_MOVE);
		tm_finish_moves(w.m, cases[k].status);
		assert_int_equal(w_fault_by(&w, b, W_BASE, 2, cases[k].flags).why, cases[k].then);
		w_end(&w);
	}
}

/* Untouched from elsewhere, a page is private to whoever comes. */
static void pages_that_never_left_are_private(void **state)
{
	struct world w = w_begin("linux-6.12", 2);
	struct nb_task *b = another(&w, 2);
	const unsigned int nr = w.m->e->topo.nr_nodes;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	for (uint64_t page = 0; page < 10; page++) {
		w_fault_by(&w, w.t, W_BASE + page * W_PAGE, 0, 0);
		w_fault_by(&w, b, W_BASE + page * W_PAGE, 0, 0);
	}
	assert_int_equal(b->faults[nb_stat_slot(nr, NB_STAT_MEM_BUFFER, 0, 1)], 10);
	assert_int_equal(b->faults[nb_stat_slot(nr, NB_STAT_MEM_BUFFER, 0, 0)], 0);
	assert_null(b->group);
	w_end(&w);
}

/* ---- what counts as local ---- */

/* A shared page that came from a node where the group hardly runs to one where it does. */
static void a_shared_page_is_local_where_it_went(void **state)
{
	static const struct {
		enum nb_why why;
		int local, remote;
	} cases[] = {{NB_WHY_MOVE, 1, 0}, {NB_WHY_FILTERED, 0, 1}};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct world w = w_begin("linux-6.12", 3);
		struct nb_task *b = another(&w, 2);
		struct nb_vma *vma = w_fill(&w, W_BASE, W_HUGE, false);
		const struct nb_fault f = {.task = w.t,
			.vma = vma,
			.addr = W_BASE,
			.now_ns = w.m->now_ns,
			.cpu_node = 1,
			.page_node = 2};
		const struct nb_verdict v = {
			cases[k].why == NB_WHY_MOVE ? 1 : NB_NO_NODE, (uint8_t)cases[k].why};
		uint64_t *locality = w.t->locality;

		join(&w, 1, b, 2);
		for (int n = 0; n < 2; n++)
			w.t->group->faults[nb_stat_slot(3, NB_STAT_CPU, n, 0)] += 1000;
		nb_group_count_active(w.m->e, w.t->group);
		assert_int_equal(w.t->group->active_nodes, 2);
		w.t->retry_j = UINT64_MAX;
		locality[NB_LOCAL] = locality[NB_REMOTE] = 0;
		nb_numa_fault(w.m->e, &f, nb_cpupid(1, 2), v);
		assert_int_equal(locality[NB_LOCAL], cases[k].local);
		assert_int_equal(locality[NB_REMOTE], cases[k].remote);
		w.t->group->faults[nb_stat_slot(3, NB_STAT_CPU, 0, 0)] -= 1000;
		w.t->group->faults[nb_stat_slot(3, NB_STAT_CPU, 1, 0)] -= 1000;
		w_end(&w);
	}
}

/* ---- where tasks settle ---- */

/* Runs on node 1, nearly all faults on pages of node 0, where there is no room. */
static int settles_on(bool grouped, uint64_t pages)
{
	struct world w = w_begin("linux-6.12", 2);
	struct nb_task *b = another(&w, 2);
	int preferred;

	w_fill(&w, W_BASE, W_HUGE, false);
	if (grouped)
		join(&w, 1, b, 1);
	w.m->refuse_move = EAGAIN;
	w.m->refuse_run_on = EBUSY;
	w.m->refuse_swap = EINVAL;
	for (int seq = 0; seq < 3; seq++) {
		w_scan(&w, 1);
		for (uint64_t i = 0; i < pages; i++)
			w_fault(&w, W_BASE + i * W_PAGE, 1);
	}
	preferred = w.t->preferred;
	w_end(&w);
	return preferred;
}

static void who_finds_no_room_settles_where_its_group_is(void **state)
{
	(void)state;
	assert_int_equal(settles_on(false, 20), 0);
	assert_int_equal(settles_on(true, 20), 1);
}

/* ---- scans ---- */

/* Its longest scan period, all faults shared: 60 s for each task of the group. */
static void scan_periods_grow_with_the_tasks_of_a_group(void **state)
{
	struct world w = w_begin("linux-6.12", 2);
	struct nb_task *b = another(&w, 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(nb_scan_max_ms(w.m->e, w.t), 60000);
	join(&w, 1, b, 1);
	assert_int_equal(nb_scan_max_ms(w.m->e, w.t), 120000);
	assert_int_equal(nb_scan_start_ms(w.m->e, w.t), 2000);
	w_end(&w);
}

/* Who touched a VMA is not forgotten before the address space was scanned once. */
static void nobody_is_forgotten_in_the_first_sequence(void **state)
{
	struct world w = w_begin("linux-6.12", 2);
	struct nb_vma *vma = w_map(&w, W_BASE, W_HUGE);
	bool partial;

	(void)state;
	assert_int_equal(nb_vma_skip(w.m->e, vma, w.t, false, 1000, &partial), NB_NR_SKIPS);
	nb_vma_touched(&vma->scan, w.t->id);
	nb_vma_skip(w.m->e, vma, w.t, false, 100000, &partial);
	assert_int_equal(vma->scan.pids_active[1], nb_pid_bit(w.t->id));
	w.mm->scan_seq = 1;
	nb_vma_skip(w.m->e, vma, w.t, false, 100000, &partial);
	assert_int_equal(vma->scan.pids_active[1], 0);
	assert_int_equal(vma->scan.pids_active[0], nb_pid_bit(w.t->id));
	w_end(&w);
}

/* A new task prefers what the one prefers that made it, where the system says so. */
static void what_a_task_prefers_is_inherited(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		struct world w = w_new("linux-6.12", 2);
		struct nb_task *made;

		w_set(&w, on ? "preferred_inherited=on" : "preferred_inherited=off");
		w_start(&w);
		w.t->preferred = 1;
		made = another(&w, 2);
		assert_int_equal(made->preferred, NB_NO_NODE);
		nb_task_made_by(w.m->e, made, w.t, w.m->now_ns);
		assert_int_equal(made->preferred, on ? 1 : NB_NO_NODE);
		w_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_task_prefers_is_inherited),
		cmocka_unit_test(a_local_fault_is_not_remembered),
		cmocka_unit_test(who_moved_a_page_by_writing_is_forgotten),
		cmocka_unit_test(pages_that_never_left_are_private),
		cmocka_unit_test(a_shared_page_is_local_where_it_went),
		cmocka_unit_test(who_finds_no_room_settles_where_its_group_is),
		cmocka_unit_test(scan_periods_grow_with_the_tasks_of_a_group),
		cmocka_unit_test(nobody_is_forgotten_in_the_first_sequence),
	};

	return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
