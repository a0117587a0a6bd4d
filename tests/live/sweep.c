/* SPDX-License-Identifier: MIT */
/*
 * sweep: threads that sweep their own slice of one area, as autonumabench's numa02 does, and check
 * what they find. usage: sweep [MIB] [THREADS] [SECONDS] [own|all] [PIN] [LATE]
 *
 * The main thread touches the area first. Each word counts how often it was written, so lost or
 * doubled pages show. PIN 1: thread n stays on CPU n. LATE: make the area after so many seconds.
 * Prints the writes a second and, where move_pages answers, how many pages are on which node.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

enum {
	MAX_THREADS = 256,
	PAGE = 4096,
	WORDS = PAGE / 8,
};

struct worker {
	pthread_t thread;
	uint64_t *from, *to;
	uint64_t sweeps, wrong;
	int cpu; /* -1 = anywhere */
};

static atomic_int stop;

/* Every word of a sweep holds the same count. */
static void *work(void *p)
{
	struct worker *w = p;

	pin_to(w->cpu);
	for (; !atomic_load(&stop); w->sweeps++)
		for (uint64_t *word = w->from; word < w->to; word++) {
			w->wrong += *word != w->sweeps;
			*word = w->sweeps + 1;
		}
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_nodes(char *area, size_t bytes)
{
	size_t on[64] = {0}, missing = 0;

	for (size_t at = 0; at < bytes; at += PAGE) {
		void *page = area + at;
		int node = -1;

		if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0) != 0 || node < 0 ||
			node >= 64)
			missing++;
		else
			on[node]++;
	}
	printf("pages:");
	for (int i = 0; i < 64; i++)
		if (on[i] > 0)
			printf(" N%d=%zu", i, on[i]);
	printf(" unknown=%zu\n", missing);
}

/* How many pages of each slice are on the node of its thread's CPU; only with PIN. */
static void print_local(const struct worker *w, int threads)
{
	size_t local = 0, all = 0;

	for (int i = 0; i < threads; i++) {
		unsigned int cpu, home;

		pin_to(w[i].cpu);
		getcpu(&cpu, &home);
		for (char *at = (char *)w[i].from; at < (char *)w[i].to; at += PAGE) {
			void *page = at;
			int node = -1;

			syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0);
			all++;
			local += node == (int)home;
		}
	}
	printf("local: %.2f %%\n", 100.0 * (double)local / (double)all);
}

static long number(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? atol(argv[i]) : otherwise;
}

int main(int argc, char **argv)
{
	const size_t bytes = (size_t)number(argc, argv, 1, 256) << 20;
	const int threads = (int)number(argc, argv, 2, 2);
	const double seconds = (double)number(argc, argv, 3, 3);
	const int pinned = (int)number(argc, argv, 5, 0);
	const size_t words = bytes / 8 / (size_t)threads / WORDS * WORDS;
	struct worker w[MAX_THREADS] = {0};
	uint64_t sweeps = 0, wrong = 0;
	double since;
	char *area;

	sleep((unsigned int)number(argc, argv, 6, 0));
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || threads > MAX_THREADS)
		return 2;
	memset(area, 0, bytes);
	since = now();
	for (int i = 0; i < threads; i++) {
		w[i].from = (uint64_t *)(void *)area + (size_t)i * words;
		w[i].to = w[i].from + words;
		w[i].cpu = pinned ? i % (int)sysconf(_SC_NPROCESSORS_ONLN) : -1;
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	while (now() - since < seconds)
		usleep(10000);
	atomic_store(&stop, 1);
	for (int i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		sweeps += w[i].sweeps;
		wrong += w[i].wrong;
	}
	printf("%.0f MiB/s, wrong %lu\n",
		(double)sweeps * (double)words * 8 / 1048576 / (now() - since),
		(unsigned long)wrong);
	print_nodes(area, bytes);
	if (pinned)
		print_local(w, threads);
	return wrong ? 1 : 0;
}
