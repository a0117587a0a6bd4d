/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "pool.h"

enum { PIECES = 200 };

struct state {
	struct pool *pool;
	atomic_int times[PIECES];
	size_t fails[2]; /* pieces that fail; SIZE_MAX = none */
	size_t kills;	 /* the piece that sends SIGINT */
	atomic_int running, most;
};

static void note_running(struct state *s)
{
	const int running = atomic_fetch_add(&s->running, 1) + 1;
	int most = atomic_load(&s->most);

	while (running > most && !atomic_compare_exchange_weak(&s->most, &most, running))
		;
}

static int work(void *ctx, size_t i)
{
	const struct timespec moment = {.tv_nsec = 20000};
	struct state *s = ctx;

	note_running(s);
	atomic_fetch_add(&s->times[i], 1);
	if (i == s->kills)
		kill(getpid(), SIGINT);
	nanosleep(&moment, NULL);
	/* After the signal nothing ends well until it was noticed. */
	while (s->kills != SIZE_MAX && i >= s->kills && !pool_stopped(s->pool, i))
		nanosleep(&moment, NULL);
	atomic_fetch_sub(&s->running, 1);
	return i == s->fails[0] || i == s->fails[1] ? -(int)(1000 + i) : 0;
}

static int run(struct state *s, unsigned int threads, size_t nr, size_t *failed)
{
	const struct pool_job job = {.nr = nr, .threads = threads, .ctx = s, .work = work};

	return pool_run(&job, &s->pool, failed);
}

static void init(struct state *s)
{
	*s = (struct state){.fails = {SIZE_MAX, SIZE_MAX}, .kills = SIZE_MAX};
}

static void test_each_piece_once(void **state)
{
	static const unsigned int threads[] = {1, 2, 7, 64, 1000};
	struct state s;
	size_t failed;

	(void)state;
	for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
		init(&s);
		assert_int_equal(run(&s, threads[t], PIECES, &failed), 0);
		for (size_t i = 0; i < PIECES; i++)
			assert_int_equal(s.times[i], 1);
		assert_true(s.most <= (int)threads[t]);
	}
}

static void test_nothing_to_do(void **state)
{
	struct state s;
	size_t failed;

	(void)state;
	init(&s);
	assert_int_equal(run(&s, 4, 0, &failed), 0);
}

/* Whoever fails first in time, the lowest number is reported, and everything before it was done. */
static void test_lowest_failure(void **state)
{
	struct state s;
	size_t failed;

	(void)state;
	for (unsigned int threads = 1; threads <= 16; threads *= 2) {
		init(&s);
		s.fails[0] = 90;
		s.fails[1] = 11;
		assert_int_equal(run(&s, threads, PIECES, &failed), -1011);
		assert_int_equal(failed, 11);
		for (size_t i = 0; i <= 11; i++)
			assert_int_equal(s.times[i], 1);
		assert_int_equal(s.times[PIECES - 1], 0);
	}
}

static void test_signal(void **state)
{
	struct state s;
	size_t failed;
	sigset_t pending;

	(void)state;
	init(&s);
	s.kills = 5;
	assert_int_equal(run(&s, 3, PIECES, &failed), -EINTR);
	assert_int_equal(s.times[PIECES - 1], 0);
	assert_int_equal(sigpending(&pending), 0);
	assert_false(sigismember(&pending, SIGINT));
	/* The next run knows nothing of it. */
	init(&s);
	assert_int_equal(run(&s, 3, PIECES, &failed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_piece_once),
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_lowest_failure),
		cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
