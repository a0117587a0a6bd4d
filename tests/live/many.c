/* SPDX-License-Identifier: MIT */
/*
 * many: usage: many mappings N MIB | many discard N | many late SECONDS
 * mappings: N mappings of MIB each stay, half of them are unmapped again; prints a checksum, and to
 * stderr how many mappings the process has. discard: N times discard and touch again, from four
 * threads; prints what it found. late: an area made after so many seconds, used for three more.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	BLOCK = 1 << 20,
};

static char *area(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		puts("no memory");
		exit(3);
	}
	return p;
}

static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int n = 0, c;

	while (f != NULL && (c = getc(f)) != EOF)
		n += c == '\n';
	return n;
}

static int mappings(int n, size_t bytes)
{
	char **p = calloc((size_t)n, sizeof(*p));
	unsigned long sum = 0;

	for (int i = 0; i < n; i++) {
		p[i] = area(bytes);
		p[i][0] = (char)i;
		p[i][bytes - 1] = (char)(i * 3);
	}
	fprintf(stderr, "maps %d\n", count_maps());
	for (int i = 0; i < n; i += 2)
		munmap(p[i], bytes);
	for (int i = 1; i < n; i += 2)
		sum = sum * 31 + (unsigned char)p[i][0] + (unsigned char)p[i][bytes - 1];
	printf("%lu\n", sum);
	return 0;
}

static long rounds;

static void *discards(void *p)
{
	char *own = p;
	long wrong = 0;

	for (long i = 0; i < rounds; i++) {
		own[PAGE * (i % 64)] = 1;
		own[BLOCK - 1] = 2;
		wrong += madvise(own, BLOCK, MADV_DONTNEED) != 0;
		wrong += own[PAGE * (i % 64)] != 0 || own[BLOCK - 1] != 0;
	}
	return (void *)wrong;
}

static int discard(void)
{
	char *p = area(16 << 20);
	pthread_t t[4];
	long wrong = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, discards, p + (size_t)i * (4 << 20));
	for (int i = 0; i < 4; i++) {
		void *one;

		pthread_join(t[i], &one);
		wrong += (long)one;
	}
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}

static int late(unsigned int seconds)
{
	const time_t end = time(NULL) + (time_t)seconds + 3;
	char *early = area(16 << 20), *p = NULL;
	unsigned long sum = 0;

	while (time(NULL) < end) {
		if (p == NULL && time(NULL) >= end - 3)
			p = area(32 << 20);
		for (size_t i = 0; i < 16 << 20; i += PAGE)
			sum += (unsigned char)++early[i];
		for (size_t i = 0; p != NULL && i < 32 << 20; i += PAGE)
			sum += (unsigned char)++p[i];
	}
	printf("%d\n", sum != 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "mappings") == 0)
		return mappings(atoi(argv[2]), (size_t)atol(argv[3]) << 20);
	if (argc != 3)
		return 2;
	rounds = atol(argv[2]);
	if (strcmp(argv[1], "discard") == 0)
		return discard();
	return late((unsigned int)rounds);
}
