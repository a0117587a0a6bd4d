/* SPDX-License-Identifier: MIT */
/* See timing.h. */
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t timing_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort(struct timing *t)
{
	qsort(t->ns, t->nr, sizeof(*t->ns), compare);
}

void timing_keep_longest(struct timing *t, size_t nr)
{
	if (nr >= t->nr)
		return;
	sort(t);
	memmove(t->ns, t->ns + (t->nr - nr), nr * sizeof(*t->ns));
	t->nr = nr;
}

static double percentile_us(const struct timing *t, double share, double per)
{
	const size_t i = (size_t)(share * (double)(t->nr - 1) + 0.5);

	return (double)t->ns[i] / 1e3 / per;
}

void timing_row(struct timing *t, const char *name, const char *what, double per)
{
	double sum = 0;

	if (!t->nr) {
		printf("%s,%s,0,,,,\n", name, what);
		return;
	}
	sort(t);
	for (size_t i = 0; i < t->nr; i++)
		sum += (double)t->ns[i];
	printf("%s,%s,%zu,%.3f,%.3f,%.3f,%.3f\n", name, what, t->nr, percentile_us(t, 0.1, per),
		percentile_us(t, 0.5, per), percentile_us(t, 0.9, per),
		sum / (double)t->nr / 1e3 / per);
	fflush(stdout);
}

void timing_value(const char *name, const char *what, size_t n, double value)
{
	printf("%s,%s,%zu,,%.3f,,%.3f\n", name, what, n, value, value);
	fflush(stdout);
}
