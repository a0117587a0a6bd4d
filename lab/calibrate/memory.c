/* SPDX-License-Identifier: MIT */
/* What memory and pages cost: clearing, first touch, moves. See calibrate.h. */
#include "calibrate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { SWEEP = 64 << 20, REGION = 64 << 20, BATCH = 512, MAX_SAMPLES = REGION / PAGE, WINDOWS = 6 };

static uint64_t samples[MAX_SAMPLES];

static struct timing fresh(void)
{
	return (struct timing){.ns = samples, .size = MAX_SAMPLES};
}

static const char *with_load(const struct calibration *c, const char *what)
{
	static char text[96];

	snprintf(text, sizeof(text), "%s%s", what, c->busy ? "_busy" : "");
	return text;
}

/* ---- clearing memory ---- */

/* MiB/s of one CPU over memory that is there already, for about `seconds`. */
static double sweep_rate(char *at, size_t len, double seconds)
{
	const uint64_t began = timing_now_ns();
	uint64_t took, bytes = 0;

	do {
		memset(at, 0, len);
		bytes += len;
		took = timing_now_ns() - began;
	} while ((double)took < seconds * 1e9);
	return (double)bytes / (1 << 20) / ((double)took / 1e9);
}

/* The best of some windows: what else the real machine does only takes away. */
static void clear_on(const struct calibration *c, const char *what, int node)
{
	char *at = machine_map(SWEEP, false);
	double best = 0;

	machine_fill(at, SWEEP, node);
	for (int i = 0; i < WINDOWS; i++) {
		const double rate = sweep_rate(at, SWEEP, 0.3);

		best = rate > best ? rate : best;
	}
	timing_value("memset_MiBps", with_load(c, what), WINDOWS, best);
	machine_unmap(at, SWEEP);
}

struct sweeper {
	unsigned int cpu;
	pthread_barrier_t *barrier;
	double rate[WINDOWS];
};

static void *sweep(void *arg)
{
	struct sweeper *s = arg;
	char *at;

	machine_pin(s->cpu);
	at = machine_map(SWEEP, false);
	memset(at, 0, SWEEP);
	for (int i = 0; i < WINDOWS; i++) {
		pthread_barrier_wait(s->barrier);
		s->rate[i] = sweep_rate(at, SWEEP, 0.5);
	}
	machine_unmap(at, SWEEP);
	return NULL;
}

static double best_window(const struct sweeper *s, unsigned int nr)
{
	double best = 0;

	for (int window = 0; window < WINDOWS; window++) {
		double sum = 0;

		for (unsigned int i = 0; i < nr; i++)
			sum += s[i].rate[window];
		best = sum > best ? sum : best;
	}
	return best / nr;
}

/* Each CPU its own memory, all at once: what a thread gets in a workload with a thread a CPU. */
static void clear_on_all(const struct calibration *c)
{
	struct sweeper sweepers[MAX_CPUS];
	pthread_t threads[MAX_CPUS];
	pthread_barrier_t barrier;
	const unsigned int nr = c->machine.nr_cpus < MAX_CPUS ? c->machine.nr_cpus : MAX_CPUS;
	char what[64];

	pthread_barrier_init(&barrier, NULL, nr);
	for (unsigned int i = 0; i < nr; i++) {
		sweepers[i] = (struct sweeper){.cpu = i, .barrier = &barrier};
		if (pthread_create(&threads[i], NULL, sweep, &sweepers[i]))
			exit(1);
	}
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	snprintf(what, sizeof(what), "all_%u_cpus_per_cpu", nr);
	timing_value("memset_MiBps", what, WINDOWS, best_window(sweepers, nr));
}

void calibrate_clearing(const struct calibration *c)
{
	clear_on(c, "1thread_local", c->machine.home);
	if (c->machine.away >= 0)
		clear_on(c, "1thread_remote", c->machine.away);
	if (!c->busy)
		clear_on_all(c);
}

/* ---- touching ---- */

static void touch_all(struct timing *t, char *at, size_t len, size_t step)
{
	for (size_t o = 0; o < len; o += step) {
		const uint64_t began = timing_now_ns();

		*(volatile char *)(at + o) = 1;
		timing_add(t, timing_now_ns() - began);
	}
}

/* Emulated memory is itself made at its first touch: have it touched before. */
static void warm_up(size_t len, int node)
{
	char *at = machine_map(len, false);

	machine_fill(at, len, node);
	machine_unmap(at, len);
}

static void touch_first(const struct calibration *c, const char *what, bool huge)
{
	char *at;
	struct timing t = fresh();

	warm_up(3 * REGION, c->machine.home);
	at = machine_map(REGION, huge);
	touch_all(&t, at, REGION, huge ? HUGE_PAGE : PAGE);
	timing_row(&t, "first_touch", with_load(c, what), 1);
	if (!huge) {
		t = fresh();
		touch_all(&t, at, REGION, PAGE);
		timing_row(&t, "touch_mapped_page", with_load(c, what), 1);
	}
	machine_unmap(at, REGION);
}

/*
 * An emulator makes its memory when it is first touched, and a program that clears memory soon
 * after the start meets that. What was used and given back comes first, so most of it is taken
 * untimed.
 */
void calibrate_cold(const struct calibration *c)
{
	char *taken = machine_map(3 * REGION, false);
	char *small = machine_map(REGION, false), *huge = machine_map(REGION, true);
	struct timing t = fresh();

	machine_fill(taken, 3 * REGION, c->machine.home);
	touch_all(&t, small, REGION, PAGE);
	timing_row(&t, "first_touch", "4K_cold", 1);
	t = fresh();
	touch_all(&t, huge, REGION, HUGE_PAGE);
	timing_row(&t, "first_touch", "2M_cold", 1);
	machine_unmap(taken, 3 * REGION);
	machine_unmap(small, REGION);
	machine_unmap(huge, REGION);
}

void calibrate_touching(const struct calibration *c)
{
	touch_first(c, "4K", false);
	touch_first(c, "2M", true);
}

/* ---- moving ---- */

/* `nr` pages of `step` bytes a call, from the home node to the other; time per page. */
static void move_by(
	const struct calibration *c, const char *what, size_t step, size_t nr, size_t calls)
{
	const size_t len = step * nr * calls;
	char *at = machine_map(len, step == HUGE_PAGE);
	struct timing t = fresh();
	size_t elsewhere = 0;

	warm_up(3 * REGION, c->machine.away);
	machine_fill(at, len, c->machine.home);
	for (size_t i = 0; i < calls; i++) {
		const uint64_t began = timing_now_ns();

		elsewhere += machine_move(at + i * step * nr, step * nr, step, c->machine.away);
		timing_add(&t, timing_now_ns() - began);
	}
	timing_row(&t, "move_pages", with_load(c, what), (double)nr);
	if (elsewhere)
		printf("# %s: %zu of %zu pages did not move\n", what, elsewhere, nr * calls);
	machine_unmap(at, len);
}

void calibrate_moving(const struct calibration *c)
{
	if (c->machine.away < 0)
		return;
	move_by(c, "4K_1_per_call", PAGE, 1, 512);
	move_by(c, "4K_512_per_call_per_page", PAGE, BATCH, 30);
	move_by(c, "2M_1_per_call", HUGE_PAGE, 1, 16);
	move_by(c, "2M_16_per_call_per_thp", HUGE_PAGE, 16, 1);
}
