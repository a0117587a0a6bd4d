/* SPDX-License-Identifier: MIT */
/*
 * Requests and the lock, with threads of libc's in the helpers' places, so that ThreadSanitizer
 * sees what both sides do: it can't follow the real helpers, which are unknown to libc.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent.h"

enum {
	ASKERS = 6,
	ROUNDS = 400,
	LOCKERS = 6,
	TURNS = 20000,
};

struct place {
	struct nb_guest guest;
	struct nb_session session;
	_Atomic uint64_t served;
	uint64_t counted; /* under the regions' lock */
};

/* Too large for a stack. */
static struct place *new_place(void)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	nb_guest_init(&p->guest);
	p->session.watchdog_ms = 1000;
	p->guest.session = &p->session;
	return p;
}

/* ---- requests ---- */

static int answer(void *ctx, const struct nb_wish *w)
{
	struct place *p = ctx;

	atomic_fetch_add(&p->served, 1);
	return -(int)(w->start % 1000);
}

static void *serve(void *ctx)
{
	struct place *p = ctx;
	struct nb_guest *g = &p->guest;

	atomic_store(&g->agent_tid, (uint32_t)gettid());
	while (!atomic_load(&g->stop)) {
		atomic_fetch_add(&g->progress, 1);
		if (nb_requests_serve(g, 0, answer, p) == 0)
			sched_yield();
	}
	atomic_store(&g->agent_tid, 0);
	return NULL;
}

struct asker {
	pthread_t thread;
	struct place *place;
	uint64_t number;
	unsigned int wrong;
};

static void *ask(void *ctx)
{
	struct asker *a = ctx;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		const struct nb_wish w = {
			.kind = NB_REQUEST_EJECT, .start = a->number * ROUNDS + i, .end = 0};

		a->wrong += nb_ask(&a->place->guest, &w) != -(int)(w.start % 1000);
	}
	return NULL;
}

/* The nudge is a signal to the agent, which has it blocked; libc lets nobody say what it does. */
static void ignore_nudges(void)
{
	const struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} ignore = {.handler = SIG_IGN};

	syscall(SYS_rt_sigaction, NB_NUDGE, &ignore, NULL, sizeof(ignore.mask));
}

static void every_request_gets_its_answer(void **state)
{
	struct place *p = new_place();
	struct asker asker[ASKERS];
	pthread_t server;

	(void)state;
	ignore_nudges();
	assert_int_equal(pthread_create(&server, NULL, serve, p), 0);
	while (atomic_load(&p->guest.agent_tid) == 0)
		sched_yield();
	for (uint64_t i = 0; i < ASKERS; i++) {
		asker[i] = (struct asker){.place = p, .number = i};
		assert_int_equal(pthread_create(&asker[i].thread, NULL, ask, &asker[i]), 0);
	}
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(asker[i].thread, NULL);
		assert_int_equal(asker[i].wrong, 0);
	}
	atomic_store(&p->guest.stop, 1);
	pthread_join(server, NULL);
	assert_int_equal(atomic_load(&p->served), ASKERS * ROUNDS);
	free(p);
}

static void without_helpers_nobody_waits(void **state)
{
	struct place *p = new_place();
	const struct nb_wish w = {.kind = NB_REQUEST_PRE_FORK};

	(void)state;
	assert_int_equal(nb_ask(&p->guest, &w), -EAGAIN);
	free(p);
}

/* ---- the lock ---- */

static void *count(void *ctx)
{
	struct place *p = ctx;

	for (int i = 0; i < TURNS; i++) {
		struct nb_signals signals;

		if (i % 3 == 0 && !nb_lock_try(&p->guest.regions.lock, &signals))
			continue;
		if (i % 3 != 0)
			nb_lock(&p->guest.regions.lock, &signals);
		p->counted++;
		nb_unlock(&p->guest.regions.lock, &signals);
	}
	return NULL;
}

static void one_thread_at_a_time_has_the_lock(void **state)
{
	struct place *p = new_place();
	pthread_t thread[LOCKERS];

	(void)state;
	for (int i = 0; i < LOCKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count, p), 0);
	for (int i = 0; i < LOCKERS; i++)
		pthread_join(thread[i], NULL);
	/* Two turns of three always come; the third when nobody had the lock. */
	assert_in_range(p->counted, LOCKERS * (TURNS * 2 / 3), LOCKERS * TURNS);
	free(p);
}

/* A helper that is stopped with the lock holds nobody up, and from then on changes nothing. */
static void *stop_with_the_lock(void *ctx)
{
	struct place *p = ctx;
	struct nb_signals signals;

	nb_lock(&p->guest.regions.lock, &signals);
	atomic_store(&p->guest.agent_tid, (uint32_t)gettid());
	while (!atomic_load(&p->guest.stop))
		usleep(1000);
	nb_unlock(&p->guest.regions.lock, &signals);
	return NULL;
}

static void a_stopped_helper_is_robbed(void **state)
{
	struct place *p = new_place();
	struct nb_hold h;
	pthread_t helper;

	(void)state;
	p->session.watchdog_ms = 50;
	assert_int_equal(pthread_create(&helper, NULL, stop_with_the_lock, p), 0);
	while (atomic_load(&p->guest.agent_tid) == 0)
		sched_yield();
	nb_guest_hold(&p->guest, &h);
	assert_int_equal(atomic_load(&p->guest.revoked), 1);
	/* Going on at last it finds the lock another's, and leaves it. */
	atomic_store(&p->guest.stop, 1);
	pthread_join(helper, NULL);
	assert_int_not_equal(atomic_load(&p->guest.regions.lock.owner), 0);
	nb_guest_release(&p->guest, &h);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_gets_its_answer),
		cmocka_unit_test(without_helpers_nobody_waits),
		cmocka_unit_test(one_thread_at_a_time_has_the_lock),
		cmocka_unit_test(a_stopped_helper_is_robbed),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
