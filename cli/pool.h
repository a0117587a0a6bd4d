/* SPDX-License-Identifier: MIT */
/*
 * pool: do n independent pieces of work on several threads, with a word now and then to whoever
 * waits, and an orderly end on SIGINT, SIGTERM and SIGHUP.
 *
 * Which thread does what never shows: pieces are numbered, and the failure reported is that of the
 * lowest number.
 */
#ifndef NB_CLI_POOL_H
#define NB_CLI_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool_job {
	size_t nr;	      /* pieces */
	unsigned int threads; /* at most this many at a time; at least 1 */
	void *ctx;
	/* Do piece i; called from several threads, once for each i. 0 or -errno. */
	int (*work)(void *ctx, size_t i);
	/* Called by the waiting thread about five times a second; may be NULL. */
	void (*tick)(void *ctx, size_t done);
};

struct pool;

/*
 * Run it all. 0; or the error of the lowest-numbered piece that failed, its number in *failed; or
 * -EINTR when a signal came (work sees pool_stopped and should return -EINTR soon). -EAGAIN,
 * -ENOMEM: no thread could be made. Signals that arrive while it runs are consumed.
 */
int pool_run(const struct pool_job *job, struct pool **pool, size_t *failed);

/* Whether piece i need not be finished: a signal came, or a piece before it failed. Thread-safe. */
bool pool_stopped(const struct pool *pool, size_t i);

#endif
