/* SPDX-License-Identifier: MIT */
/*
 * Signals are not handled but waited for: they are blocked in every thread, and the waiting thread
 * takes them with sigtimedwait, which is also its clock. The last worker wakes it with SIGUSR1.
 */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct pool {
	const struct pool_job *job;
	pthread_t waiter;
	atomic_size_t next;   /* first piece that nobody took */
	atomic_size_t done;   /* pieces finished, well or not */
	atomic_size_t failed; /* lowest piece that failed, SIZE_MAX for none */
	atomic_uint running;  /* workers alive */
	atomic_bool interrupted;
	pthread_mutex_t lock; /* failed and error go together */
	int error;
};

bool pool_stopped(const struct pool *pool, size_t i)
{
	return atomic_load(&pool->interrupted) || atomic_load(&pool->failed) < i;
}

static void note_failure(struct pool *pool, size_t i, int error)
{
	pthread_mutex_lock(&pool->lock);
	if (i < atomic_load(&pool->failed)) {
		atomic_store(&pool->failed, i);
		pool->error = error;
	}
	pthread_mutex_unlock(&pool->lock);
}

static void *worker(void *arg)
{
	struct pool *pool = arg;
	size_t i;

	while ((i = atomic_fetch_add(&pool->next, 1)) < pool->job->nr) {
		const int error =
			pool_stopped(pool, i) ? -EINTR : pool->job->work(pool->job->ctx, i);

		/* A piece that was told to stop did not fail by itself. */
		if (error && !pool_stopped(pool, i))
			note_failure(pool, i, error);
		atomic_fetch_add(&pool->done, 1);
	}
	if (atomic_fetch_sub(&pool->running, 1) == 1)
		pthread_kill(pool->waiter, SIGUSR1);
	return NULL;
}

static void watched_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

static void wait_for_workers(struct pool *pool, const sigset_t *signals)
{
	const struct timespec fifth = {.tv_nsec = 200 * 1000 * 1000};

	while (atomic_load(&pool->running)) {
		const int signal = sigtimedwait(signals, NULL, &fifth);

		if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)
			atomic_store(&pool->interrupted, true);
		if (pool->job->tick)
			pool->job->tick(pool->job->ctx, atomic_load(&pool->done));
	}
}

/* The wake-up of the last worker must not outlive the pool. */
static void drain_wakeup(void)
{
	const struct timespec now = {0};
	sigset_t wakeup;

	sigemptyset(&wakeup);
	sigaddset(&wakeup, SIGUSR1);
	while (sigtimedwait(&wakeup, NULL, &now) == SIGUSR1)
		;
}

static unsigned int start_workers(struct pool *pool, pthread_t *threads, unsigned int wanted)
{
	unsigned int n;

	for (n = 0; n < wanted; n++) {
		atomic_fetch_add(&pool->running, 1);
		if (pthread_create(&threads[n], NULL, worker, pool)) {
			atomic_fetch_sub(&pool->running, 1);
			break;
		}
	}
	return n;
}

static int result_of(const struct pool *pool, size_t *failed)
{
	if (atomic_load(&pool->interrupted))
		return -EINTR;
	*failed = atomic_load(&pool->failed);
	return *failed == SIZE_MAX ? 0 : pool->error;
}

int pool_run(const struct pool_job *job, struct pool **handle, size_t *failed)
{
	struct pool pool = {
		.job = job, .waiter = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER};
	const unsigned int wanted = job->threads < job->nr ? job->threads : (unsigned int)job->nr;
	pthread_t *threads = calloc(wanted ? wanted : 1, sizeof(*threads));
	sigset_t signals, old;
	unsigned int started;

	if (!threads)
		return -ENOMEM;
	atomic_store(&pool.failed, SIZE_MAX);
	*handle = &pool;
	watched_signals(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	started = start_workers(&pool, threads, wanted);
	wait_for_workers(&pool, &signals);
	for (unsigned int n = 0; n < started; n++)
		pthread_join(threads[n], NULL);
	drain_wakeup();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	*handle = NULL;
	free(threads);
	if (!started && wanted)
		return -EAGAIN;
	return result_of(&pool, failed);
}
