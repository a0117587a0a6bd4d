/* SPDX-License-Identifier: MIT */
#include "progress.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	MOST = 64,
	LOOKS = 10, /* a second */
	SECONDS = 60,
	ENDED = -1,
};

static atomic_long steps[MOST];
static int nr, limit;

static void stuck(int i)
{
	char line[96];
	const int n =
		snprintf(line, sizeof(line), "no progress: thread %d for %d s\n", i, limit / LOOKS);

	if (write(2, line, (size_t)n) == n)
		raise(SIGALRM);
	_exit(128 + SIGALRM);
}

static void *watch(void *unused)
{
	long last[MOST] = {0};
	int still[MOST] = {0};

	for (;;) {
		usleep(1000000 / LOOKS);
		for (int i = 0; i < nr; i++) {
			const long now = atomic_load(&steps[i]);

			still[i] = now != ENDED && now == last[i] ? still[i] + 1 : 0;
			last[i] = now;
			if (still[i] > limit)
				stuck(i);
		}
	}
	return unused;
}

void progress_watch(int n)
{
	const char *text = getenv("PROGRESS_SECONDS");
	pthread_t t;

	nr = n < MOST ? n : MOST;
	limit = (text != NULL ? atoi(text) : SECONDS) * LOOKS;
	signal(SIGALRM, SIG_DFL);
	if (pthread_create(&t, NULL, watch, NULL) != 0)
		exit(2);
	pthread_detach(t);
}

void progress_step(int i)
{
	atomic_fetch_add_explicit(&steps[i], 1, memory_order_relaxed);
}

void progress_end(int i)
{
	atomic_store(&steps[i], ENDED);
}
