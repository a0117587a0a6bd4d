/* SPDX-License-Identifier: MIT */
/* Ticks that a machine may leave out: nb_task_tick_idle and nb_task_quiet_ns. */
#include "task.h"
#include "test_world.h"

static uint64_t scans(const struct world *w)
{
	return tm_counters(w->m)->numa_scans;
}

/* nb_task_tick_idle is true exactly when a tick changes nothing that can be seen. */
static void idle_ticks_do_nothing(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	uint64_t x = 7, runtime = 0, idle = 0;

	(void)state;
	w_fill(&w, W_BASE, 4 * MIB, false);
	for (int i = 0; i < 20000; i++) {
		const unsigned int events = w.m->nr_events;
		const uint64_t scanned = scans(&w);

		runtime += next_random(&x) % (20 * MS);
		w.m->now_ns += 10 * MS;
		if (!nb_task_tick_idle(w.t, runtime, w.m->now_ns)) {
			w_tick(&w, w.t, runtime, (int)(next_random(&x) % 2));
			assert_true(nb_task_tick_idle(w.t, runtime, w.m->now_ns));
			continue;
		}
		idle++;
		w_tick(&w, w.t, runtime, (int)(next_random(&x) % 2));
		assert_int_equal(w.m->nr_events, events);
		assert_int_equal(scans(&w), scanned);
	}
	assert_true(idle > 15000 && scans(&w) > 100);
	w_end(&w);
}

/* Up to the run time that a task is said to be quiet for it is idle at any time, whatever faults
 * come, until a scan period is cut. Rows that look after more than the period never say so. */
static void quiet_tasks_are_idle(void **state)
{
	static const struct {
		const char *row;
		bool says;
	} rows[] = {{"balancenuma-v8", true}, {"moron", true}, {"none", true}, {"linux-6.12", true},
		{"numabal", false}};

	(void)state;
	for (unsigned int r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct world w = w_begin(rows[r].row, 2);
		const uint32_t *cut = nb_engine_cut_periods(w.m->e);
		uint64_t x = 7, runtime = 0, quiet = 0, kept = 0;
		uint32_t seen = *cut;

		w_fill(&w, W_BASE, 4 * MIB, false);
		for (int i = 0; i < 20000; i++) {
			runtime += next_random(&x) % (20 * MS);
			w.m->now_ns += 10 * MS;
			w_fault(&w, W_BASE + next_random(&x) % 1024 * W_PAGE,
				(int)(next_random(&x) % 2));
			if (runtime <= quiet && *cut == seen) {
				kept++;
				assert_true(nb_task_tick_idle(w.t, runtime, w.m->now_ns));
				continue;
			}
			w_tick(&w, w.t, runtime, (int)(next_random(&x) % 2));
			quiet = nb_task_quiet_ns(w.t);
			seen = *cut;
		}
		assert_true(rows[r].says ? kept > 1000 : kept == 0);
		w_end(&w);
	}
}

/* A task that is told to scan sooner while its quiet lasts is not quiet any more: the count says
 * so, of periods that become longer it says nothing. */
static void a_cut_period_ends_the_quiet(void **state)
{
	struct world w = w_begin("linux-6.12", 2);
	const uint32_t *cut = nb_engine_cut_periods(w.m->e);
	const uint64_t runtime = 5000 * MS;
	uint64_t quiet;
	uint32_t seen;

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, false);
	w_tick(&w, w.t, runtime, 0);
	seen = *cut;
	nb_task_set_period(w.m->e, w.t, 60000, w.m->now_ns);
	assert_int_equal(*cut, seen);
	quiet = nb_task_quiet_ns(w.t);
	assert_true(quiet > runtime + 5000 * MS);
	assert_true(nb_task_tick_idle(w.t, runtime + 5000 * MS, w.m->now_ns));
	nb_task_set_period(w.m->e, w.t, 1000, w.m->now_ns);
	assert_false(nb_task_tick_idle(w.t, runtime + 5000 * MS, w.m->now_ns));
	assert_int_not_equal(*cut, seen);
	w_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_ticks_do_nothing),
		cmocka_unit_test(quiet_tasks_are_idle),
		cmocka_unit_test(a_cut_period_ends_the_quiet),
	};

	return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
