/* SPDX-License-Identifier: MIT */
/*
 * fixture: made-up runs for the tests of report/, and ways to look at what a writer wrote. The
 * figures are chosen, not measured.
 */
#ifndef NB_REPORT_FIXTURE_H
#define NB_REPORT_FIXTURE_H

#include <stdio.h>
#include "run.h"

enum { FIXTURE_MAX_RUNS = 64 };

struct fixture {
	struct report_run runs[FIXTURE_MAX_RUNS];
	struct nb_result results[FIXTURE_MAX_RUNS];
	struct report_set set;
};

void fixture_free(struct fixture *x);

/* Add a run of `elapsed` seconds with nothing else in it; returns its result, to be filled further.
 */
struct nb_result *fixture_add(
	struct fixture *x, const char *job, const char *system, double elapsed);

/* Give a result nodes (ids 0, 2, 4 ... : with holes) and samples whose fields are simple functions
 * of their number. */
void fixture_series(struct nb_result *r, unsigned int nr_nodes, uint32_t nr_samples);

/* What `write` writes for the set, as text; fails the test when it returns an error. free() it. */
char *fixture_text(const struct fixture *x, int (*write)(FILE *f, const struct report_set *set));

/* A file of the shared cases, tables or seeds, as text, or NULL where they are absent. free() it.
 */
char *fixture_shared(const char *name);

/* Whether `text` holds a line that is exactly this. */
int fixture_has_line(const char *text, const char *line);

#endif
