/* SPDX-License-Identifier: MIT */
/*
 * discard: memory that is dropped reads as zeroes, is taken again, and is given back to the system.
 * usage: discard loop N | discard blocks
 *
 * loop: eight threads drop and touch, N times together; what they find is checked, and in the end
 * every page is there and no more. blocks: for each way to drop memory, how much of it the files
 * behind it lose. Status 1 when something was wrong.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common.h"
#include "files.h"
#include "progress.h"

enum {
	PAGE = 4096,
	MIB = 1 << 20,
	THREADS = 8,
	OWN = 4 * MIB, /* of a thread */
	AREA = 64 * MIB,
};

/* ---- loop ---- */

struct worker {
	pthread_t thread;
	int number;
	long rounds, wrong;
	char *own;
};

/* One page somewhere and the last byte; another number each time. */
static void *loop(void *worker)
{
	struct worker *w = worker;

	for (long i = 0; i < w->rounds; i++) {
		volatile char *one = w->own + PAGE * (i % 255), *last = w->own + MIB - 1;
		const char value = (char)(1 + i % 100);

		*one = value;
		*last = (char)-value;
		w->wrong += *one != value || *last != -value;
		w->wrong += madvise(w->own, MIB, MADV_DONTNEED) != 0;
		w->wrong += *one != 0 || *last != 0;
		progress_step(w->number);
	}
	progress_end(w->number);
	return NULL;
}

/* A number in each page, and all of them again. */
static long lost_pages(char *p, size_t bytes)
{
	long lost = 0;

	for (size_t at = 0; at < bytes; at += PAGE)
		memcpy(p + at, &at, sizeof(at));
	for (size_t at = 0; at < bytes; at += PAGE)
		lost += memcmp(p + at, &at, sizeof(at)) != 0;
	return lost;
}

static int loops(long rounds)
{
	static struct worker w[THREADS];
	char *p = fresh_area(THREADS * OWN);
	long wrong = 0, lost, kib;

	progress_watch(THREADS);
	for (int i = 0; i < THREADS; i++) {
		w[i].number = i;
		w[i].rounds = rounds / THREADS;
		w[i].own = p + (size_t)i * OWN;
		pthread_create(&w[i].thread, NULL, loop, &w[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		wrong += w[i].wrong;
	}
	lost = lost_pages(p, THREADS * OWN);
	kib = files_kib();
	printf("%ld MiB dropped, wrong %ld, lost %ld\n", rounds / THREADS * THREADS, wrong, lost);
	if (kib >= 0 && kib != THREADS * OWN / 1024) {
		printf("%ld KiB held of %d\n", kib, THREADS * OWN / 1024);
		return 1;
	}
	return wrong != 0 || lost != 0;
}

/* ---- blocks ---- */

static int bad;

/* Soon: helpers do some of it a moment later. */
static void expect(const char *what, long before, long kib)
{
	long fell = before - files_kib();

	for (int i = 0; i < 100 && fell != kib; i++) {
		usleep(50000);
		fell = before - files_kib();
	}
	printf("%s: %ld KiB\n", what, fell);
	if (fell != kib) {
		printf("  expected %ld\n", kib);
		bad = 1;
	}
}

static void drop(const char *what, char *p, size_t bytes, int advice, long kib)
{
	const long before = files_kib();

	if (madvise(p, bytes, advice) != 0) {
		printf("%s: refused\n", what);
		bad = 1;
	}
	expect(what, before, kib);
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != 0) {
			printf("  and not zero at %zu\n", i);
			bad = 1;
			break;
		}
	/* Reading took nothing of what a hole is. */
	memset(p, 7, bytes);
}

static int blocks(void)
{
	char *all = mmap(NULL, AREA + MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	long before;

	/* A large mapping, and right behind it one that is too small. */
	char *p = mmap(all, AREA, PROT_READ | PROT_WRITE, fixed, -1, 0);
	char *small = mmap(all + AREA, MIB, PROT_READ | PROT_WRITE, fixed, -1, 0);

	if (p == MAP_FAILED || small == MAP_FAILED)
		return 3;
	if (files_kib() < 0) {
		puts("nothing is backed");
		return 3;
	}
	memset(p, 7, AREA + MIB);
	expect("filled", 0, -AREA / 1024);
	drop("a page", p + 100 * PAGE, PAGE, MADV_DONTNEED, 4);
	drop("an odd length", p + 200 * PAGE, 2 * PAGE + 1, MADV_DONTNEED, 12);
	drop("two MiB and a bit", p + 5 * MIB - PAGE, 2 * MIB + 2 * PAGE, MADV_DONTNEED, 2056);
	drop("MADV_FREE", p + 10 * MIB, MIB, MADV_FREE, 1024);
	drop("into a small neighbour", p + AREA - MIB, MIB + 16 * PAGE, MADV_DONTNEED, 1024);
	drop("half", p, AREA / 2, MADV_DONTNEED, AREA / 2048);
	before = files_kib();
	munmap(p + 20 * MIB, 3 * MIB);
	expect("munmap", before, 3 * 1024);
	return bad;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && strcmp(argv[1], "loop") == 0)
		return loops(atol(argv[2]));
	if (argc == 2 && strcmp(argv[1], "blocks") == 0)
		return blocks();
	return 2;
}
