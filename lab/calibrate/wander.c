/* SPDX-License-Identifier: MIT */
/*
 * How often the scheduler moves tasks that give it no reason: a thread for each CPU, none of them
 * bound, that computes and asks where it is. They use no memory and balancing is off, so nothing of
 * NUMA moves them.
 *
 * "watched": a task with nice -20 takes 40 ms of some CPU once a second, as lab-work's watcher
 * does.
 */
#include "calibrate.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "timing.h"
#include "wander.h"

enum { SECONDS = 60, WATCHER_MS = 40, LOOK_EVERY = 2000 };
#define BALANCING "/proc/sys/kernel/numa_balancing"

struct wanderer {
	_Alignas(128) struct wander seen;
	_Atomic bool *stop;
};

static void *wander(void *arg)
{
	struct wanderer *w = arg;
	struct wander seen = {0};

	machine_unpin();
	while (!atomic_load_explicit(w->stop, memory_order_relaxed)) {
		unsigned int cpu = 0, node = 0;

		for (volatile int n = 0; n < LOOK_EVERY; n++)
			;
		getcpu(&cpu, &node);
		wander_seen(&seen, cpu, node);
	}
	w->seen = seen;
	return NULL;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Let a minute pass; the watcher comes before everything else. How long it was, in minutes. */
static double wait_for_them(bool watched)
{
	const uint64_t began = timing_now_ns();

	if (watched)
		setpriority(PRIO_PROCESS, 0, -20);
	for (uint64_t s = 1; s <= SECONDS; s++) {
		uint64_t until;

		sleep_until(began + s * 1000000000);
		until = timing_now_ns() + WATCHER_MS * UINT64_C(1000000);
		while (watched && timing_now_ns() < until)
			;
	}
	setpriority(PRIO_PROCESS, 0, 0);
	return (double)(timing_now_ns() - began) / 60e9;
}

static void rows(const struct wanderer *w, unsigned int nr, bool watched, double minutes)
{
	uint64_t cpus = 0, nodes = 0;
	char what[64];

	for (unsigned int i = 0; i < nr; i++) {
		cpus += w[i].seen.cpu_changes;
		nodes += w[i].seen.node_changes;
	}
	snprintf(what, sizeof(what), "%u_threads%s_cpu", nr, watched ? "_watched" : "");
	timing_value("changes_per_min", what, nr, (double)cpus / (nr * minutes));
	snprintf(what, sizeof(what), "%u_threads%s_node", nr, watched ? "_watched" : "");
	timing_value("changes_per_min", what, nr, (double)nodes / (nr * minutes));
}

static void watch(const struct calibration *c, bool watched)
{
	static struct wanderer w[MAX_CPUS];
	const unsigned int nr = c->machine.nr_cpus < MAX_CPUS ? c->machine.nr_cpus : MAX_CPUS;
	pthread_t threads[MAX_CPUS];
	_Atomic bool stop = false;
	double minutes;

	for (unsigned int i = 0; i < nr; i++) {
		w[i] = (struct wanderer){.stop = &stop};
		if (pthread_create(&threads[i], NULL, wander, &w[i]))
			exit(1);
	}
	minutes = wait_for_them(watched);
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	rows(w, nr, watched, minutes);
}

/* What the kernel's balancing was is in `before`; false where it can't be switched. */
static bool balancing_off(char *before, size_t len)
{
	const int fd = open(BALANCING, O_RDWR | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, before, len - 1);

	before[n > 0 ? n : 0] = '\0';
	if (n > 0)
		n = pwrite(fd, "0", 1, 0);
	if (fd >= 0)
		close(fd);
	return n > 0;
}

void calibrate_wandering(const struct calibration *c)
{
	char before[16];
	bool off;

	if (c->busy)
		return; /* its threads are the busy ones */
	off = balancing_off(before, sizeof(before));
	if (!off)
		printf("# %s can't be switched off: what it moves is counted, too\n", BALANCING);
	machine_unpin();
	watch(c, false);
	watch(c, true);
	machine_pin(0);
	if (off)
		machine_set(BALANCING, before);
}
