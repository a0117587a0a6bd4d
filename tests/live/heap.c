/* SPDX-License-Identifier: MIT */
/*
 * heap: malloc and its kin as programs use them, whichever allocator there is: what is written is
 * found again, what calloc gives is zero, and what is freed goes back to the system where the
 * allocator is asked for that. usage: heap
 *
 * On stderr: KiB that files behind the heap hold before that and after, where there are any. Status
 * 1 when something was wrong.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "files.h"
#include "progress.h"

/* Each is there with its allocator alone. */
__attribute__((weak)) void mi_collect(int force);
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory(void);
__attribute__((weak)) int mallctl(
	const char *name, void *old, size_t *old_len, void *value, size_t len);

enum {
	THREADS = 4,
	ROUNDS = 3,
	LARGE = 4,
	MIDDLE = 100,
	SMALL = 2000,
	ALL = LARGE + MIDDLE + SMALL,
	ARENAS_ALL = 4096, /* jemalloc's MALLCTL_ARENAS_ALL */
};

struct worker {
	pthread_t thread;
	int number;
	long wrong;
	unsigned char *block[ALL];
	size_t bytes[ALL];
};

static size_t size_of(int i, int round)
{
	if (i < LARGE)
		return ((size_t)9 << 20) + (size_t)(i * 3 + round) * 1000003;
	if (i < LARGE + MIDDLE)
		return 70000 + (size_t)(i * 997 + round * 31) % 200000;
	return 1 + (size_t)(i * 37 + round) % 700;
}

static void mark(struct worker *w, int i, int round)
{
	memset(w->block[i], (i * 7 + round + w->number) & 255, w->bytes[i]);
}

static void check(struct worker *w, int i, int round)
{
	const unsigned char value = (unsigned char)((i * 7 + round + w->number) & 255);

	for (size_t k = 0; k < w->bytes[i]; k += 509)
		w->wrong += w->block[i][k] != value;
	w->wrong += w->block[i][w->bytes[i] - 1] != value;
}

/* Each second one is to be zero as it comes. */
static void take(struct worker *w, int i, int round)
{
	w->bytes[i] = size_of(i, round);
	w->block[i] = i % 2 ? calloc(1, w->bytes[i]) : malloc(w->bytes[i]);
	if (w->block[i] == NULL)
		abort();
	for (size_t k = 0; i % 2 && k < w->bytes[i]; k++)
		w->wrong += w->block[i][k] != 0;
	mark(w, i, round);
}

static void resize(struct worker *w, int i)
{
	unsigned char *p = realloc(w->block[i], w->bytes[i] + w->bytes[i] / 2);

	if (p == NULL)
		abort();
	w->block[i] = p;
}

static void *work(void *worker)
{
	struct worker *w = worker;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < ALL; i++)
			take(w, i, round);
		for (int i = 0; i < ALL; i += 3)
			resize(w, i);
		for (int i = 0; i < ALL; i++)
			check(w, i, round);
		for (int i = 0; i < ALL && round < ROUNDS - 1; i++)
			free(w->block[i]);
		progress_step(w->number);
	}
	progress_end(w->number);
	return NULL;
}

static void give_back(void)
{
	char name[32];

	malloc_trim(0);
	if (mi_collect != NULL)
		mi_collect(1);
	if (MallocExtension_ReleaseFreeMemory != NULL)
		MallocExtension_ReleaseFreeMemory();
	snprintf(name, sizeof(name), "arena.%d.purge", ARENAS_ALL);
	if (mallctl != NULL)
		mallctl(name, NULL, NULL, NULL, 0);
}

int main(void)
{
	static struct worker w[THREADS];
	long wrong = 0, before;

	progress_watch(THREADS);
	for (int i = 0; i < THREADS; i++) {
		w[i].number = i;
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	before = files_kib();
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < ALL; k++) {
			check(&w[i], k, ROUNDS - 1);
			free(w[i].block[k]);
		}
	give_back();
	/* All of it anew: nothing may be left of what was there. */
	for (int k = 1; k < LARGE; k += 2) {
		take(&w[0], k, 0);
		check(&w[0], k, 0);
		free(w[0].block[k]);
	}
	give_back();
	for (int i = 0; i < THREADS; i++)
		wrong += w[i].wrong;
	printf("wrong %ld\n", wrong);
	fprintf(stderr, "held %ld KiB, then %ld KiB\n", before, files_kib());
	return wrong != 0;
}
