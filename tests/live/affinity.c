/* SPDX-License-Identifier: MIT */
/*
 * affinity: threads that work on memory of their own while the main thread looks at their
 * affinities, which must be what they always were, however often threads are sent home.
 * usage: affinity [SECONDS [own]]; own: each thread sets an affinity first, and keeps it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_THREADS = 64,
	AREA = 32 << 20,
};

struct worker {
	pthread_t thread;
	char *area;
	cpu_set_t mask; /* what it must have */
	_Atomic pid_t tid;
};

static atomic_int stop;
static cpu_set_t all;
static int own;

static void choose(struct worker *w, int i)
{
	int nth = i % CPU_COUNT(&all);

	w->mask = all;
	if (!own)
		return;
	CPU_ZERO(&w->mask);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth-- == 0)
			CPU_SET(cpu, &w->mask);
}

static void *work(void *p)
{
	struct worker *w = p;

	if (own && sched_setaffinity(0, sizeof(w->mask), &w->mask) != 0)
		exit(2);
	atomic_store(&w->tid, gettid());
	for (int round = 0; !atomic_load(&stop); round++)
		memset(w->area, round, AREA);
	return NULL;
}

static int differs(struct worker *w)
{
	cpu_set_t by_tid, by_thread;
	const pid_t tid = atomic_load(&w->tid);

	if (tid == 0)
		return 0;
	CPU_ZERO(&by_tid);
	CPU_ZERO(&by_thread);
	if (sched_getaffinity(tid, sizeof(by_tid), &by_tid) != 0 ||
		pthread_getaffinity_np(w->thread, sizeof(by_thread), &by_thread) != 0)
		return 1;
	return !CPU_EQUAL(&by_tid, &w->mask) || !CPU_EQUAL(&by_thread, &w->mask);
}

/* What the kernel has, past any hook. */
static int list_differs(const struct worker *w, const struct worker *first)
{
	char path[64], line[256], of_first[256] = "", of_this[256] = "";
	const pid_t tids[2] = {atomic_load(&first->tid), atomic_load(&w->tid)};
	char *to[2] = {of_first, of_this};

	for (int i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tids[i]);
		f = fopen(path, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			if (strncmp(line, "Cpus_allowed:", 13) == 0)
				strcpy(to[i], line);
		if (f != NULL)
			fclose(f);
	}
	return !own && strcmp(of_first, of_this) != 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static struct worker w[MAX_THREADS];
	const double until = seconds() + (argc > 1 ? atof(argv[1]) : 2);
	unsigned long looks = 0, wrong = 0;
	int n;

	own = argc > 2;
	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return 2;
	n = CPU_COUNT(&all) < MAX_THREADS ? CPU_COUNT(&all) : MAX_THREADS;
	for (int i = 0; i < n; i++) {
		choose(&w[i], i);
		w[i].area = mmap(
			NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (w[i].area == MAP_FAILED || pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
			return 2;
	}
	while (seconds() < until) {
		for (int i = 0; i < n; i++) {
			looks++;
			wrong += (unsigned long)differs(&w[i]);
		}
		usleep(500);
	}
	for (int i = 0; i < n; i++)
		wrong += (unsigned long)list_differs(&w[i], &w[0]);
	atomic_store(&stop, 1);
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	printf("%d threads, %lu wrong\n", n, wrong);
	return wrong != 0 || looks == 0;
}
