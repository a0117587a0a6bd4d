/* SPDX-License-Identifier: MIT */
/* When a fault has waited for too long: agents that hang, and stopped programs that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "agent.h"

enum {
	MS = 1000000,
	LIMIT_MS = 1000,
	PAUSE_MS = 250,
	NEVER = 1000,
};

/* What is seen at each look; progress_every: looks between signs of life, 0 = none. */
struct scene {
	bool waits, holds;
	int progress_every;
	bool others; /* it is another fault each time */
};

/* Looks until it was found to have waited too long, with that many ms between them. */
static int looks(const struct scene *s, unsigned int pause_ms)
{
	struct nb_watch w = {0};

	for (int i = 1; i < NEVER; i++) {
		const uint64_t now = (uint64_t)i * pause_ms * MS;
		const struct nb_watch_look look = {
			.now_ns = now,
			.held = !s->holds   ? 0
				: s->others ? now
					    : 1,
			.progress = s->progress_every > 0 ? (uint64_t)(i / s->progress_every) : 0,
			.waits = s->waits,
		};

		if (nb_watch_step(&w, &look, (uint64_t)LIMIT_MS * MS))
			return i;
	}
	return NEVER;
}

static void who_hangs_is_found(void **state)
{
	(void)state;
	/* Four pauses after the look that found it. */
	assert_int_equal(looks(&(struct scene){.waits = true}, PAUSE_MS), 4);
	assert_int_equal(looks(&(struct scene){.holds = true}, PAUSE_MS), 5);
	assert_int_equal(looks(&(struct scene){.holds = true, .progress_every = 1}, PAUSE_MS), 5);
}

static void who_works_is_not(void **state)
{
	(void)state;
	assert_int_equal(looks(&(struct scene){0}, PAUSE_MS), NEVER);
	assert_int_equal(
		looks(&(struct scene){.waits = true, .progress_every = 1}, PAUSE_MS), NEVER);
	assert_int_equal(
		looks(&(struct scene){.waits = true, .progress_every = 3}, PAUSE_MS), NEVER);
	assert_int_equal(looks(&(struct scene){.holds = true, .others = true}, PAUSE_MS), NEVER);
}

/* Stopped by a signal, or a machine that slept: hours between two looks are one pause too long. */
static void a_stopped_program_does_not_hang(void **state)
{
	struct nb_watch w = {0};
	struct nb_watch_look look = {.now_ns = 1, .held = 1};
	const uint64_t limit = (uint64_t)LIMIT_MS * MS;

	(void)state;
	assert_false(nb_watch_step(&w, &look, limit));
	look.now_ns += (uint64_t)3600 * 1000 * MS;
	assert_false(nb_watch_step(&w, &look, limit));
	look.now_ns += (uint64_t)PAUSE_MS * MS;
	look.held = 0;
	assert_false(nb_watch_step(&w, &look, limit));
	assert_int_equal(w.waited_ns, 0);
}

/* Requests that are old are served by the watchdog when the agent did nothing meanwhile. */
static void quiet_is_counted_in_steps_too(void **state)
{
	struct nb_watch w = {0};
	struct nb_watch_look look = {.now_ns = 1, .progress = 7};
	const uint64_t limit = (uint64_t)LIMIT_MS * MS;

	(void)state;
	nb_watch_step(&w, &look, limit);
	assert_int_equal(w.quiet_ns, 0);
	look.now_ns += (uint64_t)3600 * 1000 * MS;
	nb_watch_step(&w, &look, limit);
	assert_in_range(w.quiet_ns, 1, limit - 1);
	look.progress++;
	look.now_ns += (uint64_t)PAUSE_MS * MS;
	nb_watch_step(&w, &look, limit);
	assert_int_equal(w.quiet_ns, 0);
	for (int i = 0; i < LIMIT_MS / PAUSE_MS; i++) {
		look.now_ns += (uint64_t)PAUSE_MS * MS;
		nb_watch_step(&w, &look, limit);
	}
	assert_int_equal(w.quiet_ns, limit);
}

/* But one that is always late finds it, in the end. */
static void a_slow_watchdog_finds_it_too(void **state)
{
	(void)state;
	assert_in_range(looks(&(struct scene){.holds = true}, 10 * PAUSE_MS), 2, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_hangs_is_found),
		cmocka_unit_test(who_works_is_not),
		cmocka_unit_test(a_stopped_program_does_not_hang),
		cmocka_unit_test(quiet_is_counted_in_steps_too),
		cmocka_unit_test(a_slow_watchdog_finds_it_too),
	};

	return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
