/* SPDX-License-Identifier: MIT */
/*
 * bytes: a lot of memory. usage: bytes pattern MIB | bytes grow MIB
 *
 * pattern: two threads write numbers into all of it and find them again, three times over, each in
 * the other's half the second time; prints a checksum. grow: touches all of it, page by page, and
 * says so: for those who allow it less.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "progress.h"

enum {
	PAGE = 4096,
	ROUNDS = 3,
	CHUNK = 1 << 20,
};

struct half {
	pthread_t thread;
	int number;
	uint64_t *word;
	size_t nr;
	uint64_t wrong, sum;
	unsigned int round;
};

static uint64_t number_at(size_t i, unsigned int round)
{
	return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + round;
}

/* What the round before wrote is looked at, and overwritten. */
static void *go_through(void *half)
{
	struct half *h = half;

	for (size_t i = 0; i < h->nr; i++) {
		const uint64_t expected = h->round > 0 ? number_at(i, h->round - 1) : 0;

		h->wrong += h->word[i] != expected;
		h->sum = (h->sum ^ h->word[i]) * UINT64_C(0x100000001b3);
		h->word[i] = number_at(i, h->round);
		if (i % CHUNK == 0)
			progress_step(h->number);
	}
	progress_end(h->number);
	return NULL;
}

static int pattern(size_t bytes)
{
	uint64_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const size_t nr = bytes / sizeof(*p) / 2;
	uint64_t wrong = 0, sum = 0;

	if (p == MAP_FAILED)
		return 3;
	/* For shmem_enabled=advise; half of it, so that both kinds are there. */
	madvise(p, bytes / 2, MADV_HUGEPAGE);
	for (unsigned int round = 0; round <= ROUNDS; round++) {
		struct half h[2] = {
			{.number = 0, .word = p + (round % 2) * nr, .nr = nr, .round = round},
			{.number = 1, .word = p + !(round % 2) * nr, .nr = nr, .round = round},
		};

		if (round == 0)
			progress_watch(2);
		for (int i = 0; i < 2; i++) {
			progress_step(i);
			pthread_create(&h[i].thread, NULL, go_through, &h[i]);
		}
		for (int i = 0; i < 2; i++) {
			pthread_join(h[i].thread, NULL);
			wrong += h[i].wrong;
			sum ^= h[i].sum;
		}
	}
	printf("wrong %lu, sum %016lx\n", (unsigned long)wrong, (unsigned long)sum);
	return wrong != 0;
}

static int grow(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		puts("refused");
		return 3;
	}
	for (size_t i = 0; i < bytes; i += PAGE)
		p[i] = 1;
	puts("all of it");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "pattern") == 0)
		return pattern((size_t)atol(argv[2]) << 20);
	if (argc == 3 && strcmp(argv[1], "grow") == 0)
		return grow((size_t)atol(argv[2]) << 20);
	return 2;
}
