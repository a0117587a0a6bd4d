/* SPDX-License-Identifier: MIT */
/*
 * What balancing costs: scans by their kind of page, hint faults by what follows them.
 *
 * The kernel arms pages only from the task's own run time, so each trial makes memory, runs until
 * the whole of it was scanned (guest/probe.h tells), then touches every page once and times it. The
 * touches that trapped are the longest; how many there were is the difference of numa_hint_faults.
 * A program of one thread gets no armed entries on its own node, so a second one sleeps.
 */
#include "calibrate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest/probe.h"
#include "timing.h"

enum {
	REGION = 64 << 20,
	REGION_PAGES = REGION / PAGE,
	TRIALS = 4,
	HUGE_TRIALS = 6,
	MAX_SCANS = 64
};
#define KNOBS "/sys/kernel/debug/sched/numa_balancing/"

/* What a scan met. */
enum scan_kind { LEFT_ALONE, UPDATED_4K, UPDATED_2M, NR_SCAN_KINDS };
static const char *const scan_names[] = {"4K_left_alone", "4K_updated", "2M_updated"};

struct trial {
	const char *name;  /* of the fault; NULL: nothing is touched */
	bool huge, remote; /* remote: the memory lies on the other node, so the fault moves it */
	bool alone;	   /* no second thread: nothing on the own node is armed */
};

static const struct trial trials[] = {
	{.alone = true},
	{.name = "4K_local_2threads"},
	{.name = "4K_remote_migrated_2threads", .remote = true},
	{.name = "2M_local_2threads", .huge = true},
	{.name = "2M_remote_migrated_2threads", .huge = true, .remote = true},
};

/* Scans of the memory that the trials are about. */
struct scans {
	const struct trial *trial;
	bool armed;			   /* most of the region, since this was last cleared */
	struct timing page[NR_SCAN_KINDS]; /* ps in change_prot_numa for a page of 4 KiB */
	uint64_t ps[NR_SCAN_KINDS][MAX_SCANS];
};

static uint64_t samples[TRIALS * REGION_PAGES];

static enum scan_kind kind_of(const struct trial *trial, bool updated)
{
	return !updated ? LEFT_ALONE : trial->huge ? UPDATED_2M : UPDATED_4K;
}

static void on_scan(void *arg, const struct probe_scan *scan)
{
	struct scans *s = arg;
	const bool updated = scan->updated > REGION_PAGES * 9 / 10;

	if (scan->pages < REGION_PAGES)
		return;
	s->armed |= updated;
	/* A window that covers much else says nothing of the region, nor one that met armed
	 * entries. */
	if (scan->pages < REGION_PAGES * 5 / 4 && updated != s->trial->alone)
		timing_add(&s->page[kind_of(s->trial, updated)],
			(uint64_t)(scan->in_calls_us * 1e6 / (double)scan->pages));
}

/* Run until a scan armed the region, or long enough that none will. */
static void run_until_armed(struct probe *p, struct scans *s, double seconds)
{
	const uint64_t end = timing_now_ns() + (uint64_t)(seconds * 1e9);

	s->armed = false;
	while (!s->armed && timing_now_ns() < end) {
		for (volatile int i = 0; i < 2000000; i++)
			;
		probe_take(p);
	}
}

static void touch_all(struct timing *t, char *at, size_t step)
{
	for (size_t o = 0; o < REGION; o += step) {
		const uint64_t began = timing_now_ns();

		++*(volatile char *)(at + o);
		timing_add(t, timing_now_ns() - began);
	}
}

/* One round: the times of the touches that trapped are added to `all`. */
static void run_trial(const struct calibration *c, const struct trial *trial, struct probe *p,
	struct scans *s, struct timing *all)
{
	char *at = machine_map(REGION, trial->huge);
	struct timing t = {.ns = all->ns + all->nr, .size = all->size - all->nr};
	uint64_t faults;

	machine_fill(at, REGION, trial->remote ? c->machine.away : c->machine.home);
	run_until_armed(p, s, trial->alone ? 1 : 20);
	faults = machine_counter("numa_hint_faults");
	if (trial->name)
		touch_all(&t, at, trial->huge ? HUGE_PAGE : PAGE);
	faults = machine_counter("numa_hint_faults") - faults;
	timing_keep_longest(&t, faults);
	all->nr += t.nr;
	machine_unmap(at, REGION);
}

static void scan_rows(const struct calibration *c, struct scans *s)
{
	char what[96];

	for (int kind = 0; kind < NR_SCAN_KINDS; kind++) {
		snprintf(what, sizeof(what), "%s_per_4K_page%s", scan_names[kind],
			c->busy ? "_busy" : "");
		timing_row(&s->page[kind], "scan", what, 1e3); /* ps -> us */
	}
}

static void fault_row(
	const struct calibration *c, const struct trial *trial, struct timing *t, uint64_t migrated)
{
	char what[96];

	if (!trial->name)
		return;
	snprintf(what, sizeof(what), "%s%s", trial->name, c->busy ? "_busy" : "");
	timing_row(t, "numa_hint_fault", what, 1);
	printf("# %s: migrated=%llu\n", what, (unsigned long long)migrated);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void run_trials(
	const struct calibration *c, const struct trial *trial, struct probe *p, struct scans *s)
{
	const uint64_t migrated = machine_counter("numa_pages_migrated");
	struct timing t = {.ns = samples, .size = TRIALS * REGION_PAGES};
	const int rounds = trial->huge ? HUGE_TRIALS : TRIALS;

	s->trial = trial;
	for (int i = 0; i < rounds; i++)
		run_trial(c, trial, p, s, &t);
	fault_row(c, trial, &t, machine_counter("numa_pages_migrated") - migrated);
}

/* Scans as often as they can be had; the windows stay as large as they are. */
static void hurry(void)
{
	machine_set(KNOBS "scan_delay_ms", "10");
	machine_set(KNOBS "scan_period_min_ms", "50");
	machine_set(KNOBS "scan_period_max_ms", "50");
}

static void measure(const struct calibration *c)
{
	static struct scans s;
	char why[256] = "";
	struct probe *p = probe_open(on_scan, &s, why, sizeof(why));
	bool alone = true;
	pthread_t id;

	if (!p) {
		printf("# no hint faults and scans: %s\n", why);
		return;
	}
	for (int kind = 0; kind < NR_SCAN_KINDS; kind++)
		s.page[kind] = (struct timing){.ns = s.ps[kind], .size = MAX_SCANS};
	probe_task(p, gettid());
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		if (alone && !trials[i].alone)
			alone = pthread_create(&id, NULL, sleep_for_ever, NULL) != 0;
		if (!trials[i].remote || c->machine.away >= 0)
			run_trials(c, &trials[i], p, &s);
	}
	scan_rows(c, &s);
	probe_close(p);
}

/* In a new process: a task keeps the scan period and the delay that held when it began. */
void calibrate_hints(const struct calibration *c)
{
	pid_t pid;

	hurry();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		measure(c);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}
