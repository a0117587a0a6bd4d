/* SPDX-License-Identifier: MIT */
/* Where tasks belong, how they get there, and what their faults count for. */
#include "test_world.h"
#include <errno.h>
#include "engine_private.h"
#include "scanperiod.h"

enum {
	MANY = 16,
};

/* Seen on that node `ms` later, having run all the time. */
static void seen(struct world *w, struct nb_task *t, uint64_t ms, int node)
{
	w->m->now_ns += ms * MS;
	w_tick(w, t, w->m->now_ns, node);
}

static struct nb_task *another(struct world *w, uint32_t id)
{
	struct nb_task *t = nb_task_new(w->m->e, w->mm, id, w->m->now_ns);

	assert_non_null(t);
	return t;
}

/* It has been there since it began, and long enough. */
static struct nb_task *settled(struct world *w, uint32_t id, int node)
{
	struct nb_task *t = id == 1 ? w->t : another(w, id);

	if (w->m->now_ns < 1000 * MS)
		w->m->now_ns = 1000 * MS;
	seen(w, t, 0, node);
	return t;
}

/* The first task belongs to node 0. */
static struct world home_on_0(unsigned int nodes)
{
	struct world w = w_begin("numabal", nodes);

	settled(&w, 1, 0);
	assert_int_equal(w.t->home, 0);
	return w;
}

static unsigned int at_home(const struct world *w, int node)
{
	return w->m->e->nodes[node].residents;
}

/* ---- choosing ---- */

static void a_young_task_has_no_home(void **state)
{
	struct world w = w_begin("numabal", 2);

	(void)state;
	for (int i = 0; i < 20; i++)
		seen(&w, w.t, 4, 1);
	assert_int_equal(w.t->home, NB_NO_NODE);
	seen(&w, w.t, 1000, 1);
	assert_int_equal(w.t->home, 1);
	assert_int_equal(w.m->asked_run_ons, 0);
	w_end(&w);
}

static void the_first_choice_respects_cpus(void **state)
{
	struct world w = w_begin("numabal", 3);

	(void)state;
	for (uint32_t id = 1; id <= TM_CPUS_PER_NODE; id++)
		assert_int_equal(settled(&w, id, 0)->home, 0);
	assert_int_equal(w.m->nr_run_ons, 0);
	assert_int_equal(settled(&w, TM_CPUS_PER_NODE + 1, 0)->home, 1);
	assert_int_equal(w.m->nr_run_ons, 1);
	assert_int_equal(w.m->last_node, 1);
	w_end(&w);
}

/* All begin on the small node: two tasks for each CPU everywhere is what comes of it. */
static void crowds_are_dealt_out_by_cpus(void **state)
{
	struct world w = w_new("numabal", 2);

	(void)state;
	w.m->nodes[0].nr_cpus = 2;
	w.m->nodes[1].nr_cpus = 6;
	w_start(&w);
	for (uint32_t id = 1; id <= MANY; id++)
		settled(&w, id, 0);
	assert_int_equal(at_home(&w, 0), 2 * 2);
	assert_int_equal(at_home(&w, 1), 2 * 6);
	w_end(&w);
}

/* Two for each CPU: to be elsewhere would be no better, and their memory is here. */
static void an_even_crowd_stays_where_it_is(void **state)
{
	struct world w = w_begin("numabal", 2);

	(void)state;
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(settled(&w, id, id % 2)->home, id % 2);
	/* Nor where it is a little better, at 9 tasks and not 10. */
	assert_int_equal(settled(&w, 20, 0)->home, 0);
	assert_int_equal(settled(&w, 21, 0)->home, 0);
	assert_int_equal(w.m->asked_run_ons, 0);
	w_end(&w);
}

static void nodes_without_cpus_are_nobodys_home(void **state)
{
	struct world w = w_new("numabal", 3);

	(void)state;
	w.m->nodes[1].nr_cpus = 0;
	w_start(&w);
	settled(&w, 1, 1);
	assert_int_equal(w.t->home, NB_NO_NODE);
	for (uint32_t id = 2; id <= MANY; id++)
		settled(&w, id, 0);
	assert_int_equal(at_home(&w, 1), 0);
	assert_int_equal(at_home(&w, 0) + at_home(&w, 2), MANY - 1);
	w_end(&w);
}

static void who_leaves_makes_room(void **state)
{
	struct world w = w_begin("numabal", 2);
	struct nb_task *t = NULL;

	(void)state;
	for (uint32_t id = 1; id <= TM_CPUS_PER_NODE; id++)
		t = settled(&w, id, 0);
	nb_task_gone(w.m->e, t, w.m->now_ns);
	assert_int_equal(at_home(&w, 0), TM_CPUS_PER_NODE - 1);
	assert_int_equal(settled(&w, 20, 0)->home, 0);
	assert_int_equal(settled(&w, 21, 0)->home, 1);
	w_end(&w);
}

/* Who has slept for some time, while others ran, or is known to sleep, needs no CPU. */
static void who_sleeps_makes_room(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	for (uint32_t id = 2; id <= TM_CPUS_PER_NODE; id++)
		settled(&w, id, 0);
	for (int i = 0; i < 15; i++)
		seen(&w, w.t, 100, 0);
	assert_int_equal(settled(&w, 20, 0)->home, 0);
	w_end(&w);
}

static void who_is_said_to_sleep_makes_room(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	for (uint32_t id = 2; id <= TM_CPUS_PER_NODE; id++)
		settled(&w, id, 0);
	nb_task_sleeps(w.t);
	assert_int_equal(settled(&w, 20, 0)->home, 0);
	assert_int_equal(settled(&w, 21, 0)->home, 1);
	w_end(&w);
}

/* The machine looked at nobody for long: that says nothing of the tasks. */
static void a_late_machine_takes_nobody_for_asleep(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	for (uint32_t id = 2; id <= TM_CPUS_PER_NODE; id++)
		settled(&w, id, 0);
	w.m->now_ns += 5000 * MS;
	assert_int_equal(settled(&w, 20, 0)->home, 1);
	w_end(&w);
}

/* ---- going home ---- */

static void at_home_nothing_is_asked_or_counted(void **state)
{
	struct world w = home_on_0(2);
	const uint64_t counted_ns = w.m->e->homes_ns;

	(void)state;
	for (int i = 0; i < 1000; i++)
		seen(&w, w.t, 4, 0);
	assert_int_equal(w.m->asked_run_ons, 0);
	assert_int_equal(w.m->e->homes_ns, counted_ns);
	w_end(&w);
}

static void who_is_elsewhere_is_sent_home(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	seen(&w, w.t, 300, 1);
	assert_int_equal(w.m->nr_run_ons, 1);
	assert_int_equal(w.m->last_node, 0);
	assert_int_equal(w.t->home, 0);
	assert_int_equal(w.t->cpu_node, 0);
	assert_int_equal(tm_counters(w.m)->numa_task_moves, 1);
	assert_int_equal(tm_count(w.m, NB_EVENT_TASK_MOVE, -1), 1);
	w_end(&w);
}

/* Two others run where it belongs; one of them belongs where it runs. */
static void who_finds_no_room_changes_places(void **state)
{
	struct world w = home_on_0(3);
	struct nb_task *third = settled(&w, 3, 2), *second = settled(&w, 2, 1);
	struct nb_task *fourth = settled(&w, 4, 2);

	(void)state;
	w.m->refuse_run_on = EAGAIN;
	w.m->refuse_swap = EINVAL;
	seen(&w, third, 300, 0);
	seen(&w, second, 0, 0);
	seen(&w, fourth, 0, 0);
	w.m->refuse_swap = 0;
	seen(&w, w.t, 100, 1);
	assert_int_equal(w.m->nr_swaps, 1);
	assert_int_equal(w.t->cpu_node, 0);
	assert_int_equal(second->cpu_node, 1);
	assert_int_equal(third->cpu_node, 0);
	assert_int_equal(fourth->cpu_node, 0);
	assert_int_equal(tm_counters(w.m)->numa_task_swaps, 1);
	w_end(&w);
}

static void who_is_at_home_is_not_pushed_out(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	settled(&w, 2, 0);
	w.m->refuse_run_on = EBUSY;
	seen(&w, w.t, 300, 1);
	seen(&w, w.t, 100, 1);
	assert_int_equal(w.m->nr_swaps, 0);
	assert_int_equal(w.t->home, 0);
	w_end(&w);
}

static void an_intruder_may_leave_meanwhile(void **state)
{
	struct world w = home_on_0(2);
	struct nb_task *second = settled(&w, 2, 1), *third = settled(&w, 3, 1);

	(void)state;
	w.m->refuse_run_on = EBUSY;
	w.m->refuse_swap = EINVAL;
	seen(&w, second, 300, 0);
	seen(&w, third, 0, 0);
	seen(&w, w.t, 30, 1); /* counts */
	w.m->refuse_swap = 0;
	nb_task_gone(w.m->e, second, w.m->now_ns);
	nb_task_gone(w.m->e, third, w.m->now_ns);
	seen(&w, w.t, 20, 1);
	seen(&w, w.t, 20, 1);
	assert_int_equal(w.m->nr_swaps, 0);
	w_end(&w);
}

/* An affinity of the other one keeps nobody from home. */
static void a_refused_exchange_changes_no_home(void **state)
{
	struct world w = home_on_0(2);
	struct nb_task *second = settled(&w, 2, 1);

	(void)state;
	w.m->refuse_run_on = EBUSY;
	w.m->refuse_swap = EINVAL;
	seen(&w, second, 300, 0);
	for (int i = 0; i < 10; i++)
		seen(&w, w.t, 20, 1);
	assert_int_equal(w.t->home, 0);
	assert_int_equal(second->home, 1);
	w_end(&w);
}

/* Two want the place of one that may not go. */
static void an_intruder_is_asked_for_once(void **state)
{
	struct world w = home_on_0(2);
	struct nb_task *second = settled(&w, 2, 0), *third = settled(&w, 3, 1);

	(void)state;
	w.m->refuse_run_on = EAGAIN;
	w.m->refuse_swap = EINVAL;
	seen(&w, third, 300, 0);
	seen(&w, w.t, 30, 1);
	seen(&w, second, 0, 1);
	assert_int_equal(w.m->asked_swaps, 1);
	w_end(&w);
}

/* Three of them come at the same time, and no CPU is idle there. */
static void a_full_node_is_asked_for_once(void **state)
{
	struct world w = home_on_0(2);
	struct nb_task *second = settled(&w, 2, 0), *third = settled(&w, 3, 0);

	(void)state;
	w.m->refuse_run_on = EBUSY;
	seen(&w, w.t, 300, 1);
	seen(&w, second, 0, 1);
	seen(&w, third, 0, 1);
	assert_int_equal(w.m->asked_run_ons, 1);
	w.m->refuse_run_on = 0;
	seen(&w, w.t, 20, 1);
	seen(&w, second, 0, 1);
	seen(&w, third, 0, 1);
	assert_int_equal(w.m->nr_run_ons, 3);
	w_end(&w);
}

/* ---- another home ---- */

static void wait_away(struct world *w, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 20)
		seen(w, w->t, 20, 1);
}

static void patience_ends(const char *setting, uint64_t ms)
{
	struct world w = home_on_0(2);

	if (setting != NULL)
		w_set(&w, setting);
	w.m->refuse_run_on = EBUSY;
	seen(&w, w.t, 300, 1);
	wait_away(&w, ms - 20);
	assert_int_equal(w.t->home, 0);
	wait_away(&w, 60);
	assert_int_equal(w.t->home, 1);
	w_end(&w);
}

static void who_is_kept_away_for_long_belongs_there(void **state)
{
	(void)state;
	patience_ends(NULL, 10000);
	patience_ends("home_patience_ms=500", 500);
}

static void where_there_is_no_room_nobody_comes_to_belong(void **state)
{
	struct world w = home_on_0(2);
	struct nb_task *theirs[TM_CPUS_PER_NODE];

	(void)state;
	for (uint32_t i = 0; i < TM_CPUS_PER_NODE; i++)
		theirs[i] = settled(&w, 2 + i, 1);
	w.m->refuse_run_on = EBUSY;
	seen(&w, w.t, 300, 1);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < TM_CPUS_PER_NODE; i++)
			seen(&w, theirs[i], 0, 1);
		wait_away(&w, 100);
	}
	assert_int_equal(w.t->home, 0);
	wait_away(&w, 1000); /* the others sleep */
	assert_int_equal(w.t->home, 1);
	w_end(&w);
}

/* Sent home each time, and each time load balancing takes it away again. Once it belongs where it
 * is taken, it must not be sent off at that very moment. */
static void who_is_taken_away_again_and_again_may_stay(void **state)
{
	struct world w = home_on_0(2);
	unsigned int before = 0;

	(void)state;
	w.m->now_ns += 300 * MS;
	for (int i = 0; i < 600 && w.t->home == 0; i++) {
		before = w.m->nr_run_ons;
		seen(&w, w.t, 20, 1);
	}
	assert_true(before > 100);
	assert_int_equal(w.t->home, 1);
	assert_int_equal(w.t->cpu_node, 1);
	assert_int_equal(w.m->nr_run_ons, before);
	w_end(&w);
}

/* Brought home again and again, and as often taken from there: every `ms` milliseconds. Half of
 * that time it is at home. */
static int home_after_returns(uint64_t ms, int times)
{
	struct world w = home_on_0(2);
	int home;

	for (int i = 0; i < times; i++) {
		seen(&w, w.t, ms / 2, 0);
		seen(&w, w.t, ms / 2, 1);
	}
	home = w.t->home;
	w_end(&w);
	return home;
}

static void who_is_pushed_out_all_the_time_belongs_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(home_after_returns(500, 16), 0);
	assert_int_equal(home_after_returns(500, 17), 1);
	/* Now and then: that is life. */
	assert_int_equal(home_after_returns(1000, 100), 0);
}

/* Full of other engines' tasks: the first choice is another. */
static void the_first_choice_respects_others(void **state)
{
	struct world w = w_begin("numabal", 3);
	const uint32_t others[] = {TM_CPUS_PER_NODE, TM_CPUS_PER_NODE - 1, 0};

	(void)state;
	nb_engine_others(w.m->e, others);
	assert_int_equal(settled(&w, 1, 0)->home, 2);
	assert_int_equal(nb_engine_residents(w.m->e, 2), 1);
	assert_int_equal(nb_engine_residents(w.m->e, 0), 0);
	assert_int_equal(settled(&w, 2, 1)->home, 1);
	w_end(&w);
}

/* Taken from home every 500 ms, by `theirs` of others there and `elsewhere` where it is taken.
 * After how many times it belongs elsewhere; 9: not by then. */
static int returns_until_it_stays(uint32_t theirs, uint32_t elsewhere)
{
	struct world w = home_on_0(2);
	const uint32_t others[] = {theirs, elsewhere};
	int times = 0;

	nb_engine_others(w.m->e, others);
	while (w.t->home == 0 && times < 9) {
		seen(&w, w.t, 250, 0);
		seen(&w, w.t, 250, 1);
		times++;
	}
	w_end(&w);
	return times;
}

static void where_too_many_belong_who_is_taken_away_stays_away(void **state)
{
	(void)state;
	assert_int_equal(returns_until_it_stays(TM_CPUS_PER_NODE, 0), 3);
	assert_int_equal(returns_until_it_stays(TM_CPUS_PER_NODE, TM_CPUS_PER_NODE - 1), 3);
	/* One more is no better there. */
	assert_int_equal(returns_until_it_stays(TM_CPUS_PER_NODE, TM_CPUS_PER_NODE), 9);
	/* As many as it has CPUs, with this one. */
	assert_int_equal(returns_until_it_stays(TM_CPUS_PER_NODE - 1, 0), 9);
}

/* What it uses is on the node that it left. */
static void with_a_new_home_scans_begin_afresh(void **state)
{
	struct world w = home_on_0(2);
	const uint32_t others[] = {TM_CPUS_PER_NODE, 0};

	(void)state;
	nb_engine_others(w.m->e, others);
	nb_task_set_period(w.m->e, w.t, 30000, w.m->now_ns);
	w.mm->next_scan_j = nb_jiffies(&w.m->e->rules, w.m->now_ns + 60000 * MS);
	for (int i = 0; i < 9 && w.t->home == 0; i++) {
		assert_int_equal(w.t->scan_period_ms, 30000);
		seen(&w, w.t, 250, 0);
		seen(&w, w.t, 250, 1);
	}
	assert_int_equal(w.t->home, 1);
	assert_int_equal(w.t->scan_period_ms, nb_scan_min_ms(w.m->e, w.t));
	assert_true(w.mm->next_scan_j < nb_jiffies(&w.m->e->rules, w.m->now_ns + 30000 * MS));
	w_end(&w);
}

static void nobody_is_kept_away_in_his_sleep(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	w.m->refuse_run_on = EBUSY;
	seen(&w, w.t, 300, 1);
	w.m->now_ns += 10000 * MS;
	w_tick(&w, w.t, 2000 * MS, 1);
	assert_int_equal(w.t->home, 0);
	w.m->refuse_run_on = 0;
	w.m->now_ns += 20 * MS;
	w_tick(&w, w.t, 2020 * MS, 1);
	assert_int_equal(w.t->cpu_node, 0);
	w_end(&w);
}

/* An affinity, or a machine that moves no tasks. */
static void who_may_not_go_home_belongs_where_it_is(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	w.m->refuse_run_on = EINVAL;
	seen(&w, w.t, 300, 1);
	assert_int_equal(w.t->home, 1);
	seen(&w, w.t, 300, 0);
	assert_int_equal(w.t->home, 0);
	w_end(&w);
}

static void machines_need_not_move_tasks(void **state)
{
	struct world w = w_new("numabal", 2);

	(void)state;
	w.m->machine.run_on = NULL;
	w.m->machine.swap = NULL;
	w_start(&w);
	settled(&w, 1, 0);
	seen(&w, w.t, 300, 1);
	assert_int_equal(w.t->home, 1);
	/* A crowd stays where it is, too. */
	for (uint32_t id = 2; id <= MANY; id++)
		assert_int_equal(settled(&w, id, 0)->home, 0);
	w_end(&w);
}

static void machines_need_not_exchange_tasks(void **state)
{
	struct world w = w_new("numabal", 2);

	(void)state;
	w.m->machine.swap = NULL;
	w_start(&w);
	settled(&w, 1, 0);
	w.m->refuse_run_on = EBUSY;
	seen(&w, settled(&w, 2, 1), 300, 0);
	seen(&w, w.t, 0, 1);
	assert_int_equal(w.t->home, 0);
	w_end(&w);
}

/* ---- faults ---- */

static void without_a_home_nothing_moves(void **state)
{
	struct world w = w_begin("numabal", 2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_FILTERED);
	assert_int_equal(w.m->nr_moves, 0);
	assert_int_equal(tm_counters(w.m)->numa_hint_faults, 2);
	settled(&w, 1, 1);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE);
	w_end(&w);
}

static void pages_go_to_the_home_of_who_touched_them(void **state)
{
	struct world w = w_begin("numabal", 3);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false); /* on node 0 */
	settled(&w, 1, 1);
	assert_int_equal(w_fault(&w, W_BASE, 0), NB_WHY_MOVE);
	assert_int_equal(w.m->moves[0].node_to, 1);
	assert_int_equal(w_fault(&w, W_BASE + W_PAGE, 2), NB_WHY_MOVE);
	assert_int_equal(w.m->moves[1].node_to, 1);
	/* A fault tells where it runs, which is not where it belongs. */
	assert_int_equal(w.t->cpu_node, 2);
	assert_int_equal(w.t->home, 1);
	w_end(&w);
}

static void pages_at_home_stay_whoever_runs_elsewhere(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	for (int i = 0; i < 4; i++)
		assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_IN_PLACE);
	w_end(&w);
}

/* Of an address space with one task, what is on its home is not armed, wherever it runs. */
static void a_lone_tasks_home_is_left_alone(void **state)
{
	struct world w = home_on_0(2);

	(void)state;
	w.m->refuse_run_on = EBUSY;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_scan(&w, 1);
	assert_int_equal(w.t->home, 0);
	assert_int_equal(w.m->nr_arms, 1);
	assert_int_equal(w.m->arms[0].spare_node, 0);
	w_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_young_task_has_no_home),
		cmocka_unit_test(the_first_choice_respects_cpus),
		cmocka_unit_test(crowds_are_dealt_out_by_cpus),
		cmocka_unit_test(an_even_crowd_stays_where_it_is),
		cmocka_unit_test(nodes_without_cpus_are_nobodys_home),
		cmocka_unit_test(who_leaves_makes_room),
		cmocka_unit_test(who_sleeps_makes_room),
		cmocka_unit_test(who_is_said_to_sleep_makes_room),
		cmocka_unit_test(a_late_machine_takes_nobody_for_asleep),
		cmocka_unit_test(at_home_nothing_is_asked_or_counted),
		cmocka_unit_test(who_is_elsewhere_is_sent_home),
		cmocka_unit_test(who_finds_no_room_changes_places),
		cmocka_unit_test(who_is_at_home_is_not_pushed_out),
		cmocka_unit_test(an_intruder_may_leave_meanwhile),
		cmocka_unit_test(a_refused_exchange_changes_no_home),
		cmocka_unit_test(an_intruder_is_asked_for_once),
		cmocka_unit_test(a_full_node_is_asked_for_once),
		cmocka_unit_test(who_is_kept_away_for_long_belongs_there),
		cmocka_unit_test(where_there_is_no_room_nobody_comes_to_belong),
		cmocka_unit_test(who_is_taken_away_again_and_again_may_stay),
		cmocka_unit_test(who_is_pushed_out_all_the_time_belongs_elsewhere),
		cmocka_unit_test(the_first_choice_respects_others),
		cmocka_unit_test(where_too_many_belong_who_is_taken_away_stays_away),
		cmocka_unit_test(with_a_new_home_scans_begin_afresh),
		cmocka_unit_test(nobody_is_kept_away_in_his_sleep),
		cmocka_unit_test(who_may_not_go_home_belongs_where_it_is),
		cmocka_unit_test(machines_need_not_move_tasks),
		cmocka_unit_test(machines_need_not_exchange_tasks),
		cmocka_unit_test(without_a_home_nothing_moves),
		cmocka_unit_test(pages_go_to_the_home_of_who_touched_them),
		cmocka_unit_test(pages_at_home_stay_whoever_runs_elsewhere),
		cmocka_unit_test(a_lone_tasks_home_is_left_alone),
	};

	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}
