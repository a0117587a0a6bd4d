/* SPDX-License-Identifier: MIT */
/*
 * many: usage: many mappings N MIB | many late SECONDS | many crowd | many stuck
 * mappings: N mappings of MIB each stay, half of them are unmapped again; prints a checksum, and to
 * stderr how many mappings the process has. late: an area made after so many seconds, used for
 * three more. crowd: areas made before, near, and after the kernel's bound on mappings. stuck: one
 * of two threads does nothing, which must be found.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "common.h"
#include "progress.h"

enum {
	PAGE = 4096,
};

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
		p[i] = fresh_area(bytes);
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

/* ---- near the kernel's bound on mappings ---- */

static long most_maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	long n = 0;

	if (f == NULL || fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Each page with rights is a mapping, and so is each gap. */
static long make_gaps(char *p, long from, long to)
{
	for (long i = from; i < to; i++)
		if (mprotect(p + (size_t)i * 2 * PAGE, PAGE, PROT_READ | PROT_WRITE) != 0)
			return i;
	return to;
}

static int crowd(void)
{
	const struct timespec look = {1, 500000000};
	const long half = most_maps() / 2, near = half * 92 / 100, more = half * 97 / 100;
	char *first = fresh_area(32 << 20), *gaps, *second, *third;
	long sum = 0;

	gaps = mmap(NULL, (size_t)more * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (gaps == MAP_FAILED)
		return 3;
	printf("gaps %d\n", make_gaps(gaps, 0, near) == near);
	nanosleep(&look, NULL);
	second = fresh_area(32 << 20);
	/* What is left is the program's. */
	printf("more gaps %d\n", make_gaps(gaps, near, more) == more);
	munmap(gaps, (size_t)more * 2 * PAGE);
	nanosleep(&look, NULL);
	third = fresh_area(32 << 20);
	for (size_t i = 0; i < 32 << 20; i += PAGE)
		sum += ++first[i] + ++second[i] + ++third[i];
	printf("sum %ld\n", sum);
	return 0;
}

/* ---- a thread that does nothing ---- */

static void *stand(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int stuck(void)
{
	pthread_t t;

	progress_watch(2);
	pthread_create(&t, NULL, stand, NULL);
	for (int i = 0; i < 100; i++) {
		progress_step(0);
		usleep(100000);
	}
	return 0;
}

/* ---- late ---- */

static int late(unsigned int seconds)
{
	const time_t end = time(NULL) + (time_t)seconds + 3;
	char *early = fresh_area(16 << 20), *p = NULL;
	unsigned long sum = 0;

	while (time(NULL) < end) {
		if (p == NULL && time(NULL) >= end - 3)
			p = fresh_area(32 << 20);
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
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4 && strcmp(argv[1], "mappings") == 0)
		return mappings(atoi(argv[2]), (size_t)atol(argv[3]) << 20);
	if (argc == 3 && strcmp(argv[1], "late") == 0)
		return late((unsigned int)atol(argv[2]));
	if (argc == 2 && strcmp(argv[1], "crowd") == 0)
		return crowd();
	if (argc == 2 && strcmp(argv[1], "stuck") == 0)
		return stuck();
	return 2;
}
