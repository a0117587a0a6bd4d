/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "plan.h"

struct progress {
	const struct plan *plan;
	bool wanted, shown;
	double started_s;
	atomic_size_t run;	    /* the run that reported last */
	_Atomic double simulated_s; /* how far it was */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct progress *progress_new(const struct plan *plan)
{
	struct progress *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->plan = plan;
	p->wanted = isatty(STDERR_FILENO);
	p->started_s = now_s();
	return p;
}

void progress_note(struct progress *p, size_t i, double simulated_s)
{
	atomic_store(&p->run, i);
	atomic_store(&p->simulated_s, simulated_s);
}

void progress_show(struct progress *p, size_t done)
{
	const double elapsed = now_s() - p->started_s;
	const struct report_run *run = &p->plan->runs[atomic_load(&p->run)];

	if (!p->wanted || elapsed < 1)
		return;
	fprintf(stderr,
		"\r\033[K%zu of %zu runs done, %.0f s; %s on %s is at %.0f simulated seconds", done,
		p->plan->nr_runs, elapsed, run->job, run->system, atomic_load(&p->simulated_s));
	fflush(stderr);
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (p && p->shown)
		fprintf(stderr, "\r\033[K");
	free(p);
}
