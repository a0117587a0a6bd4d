/* SPDX-License-Identifier: MIT */
/* fixture: what the tests of machine and job files share. Functions fail the running cmocka test.
 */
#ifndef NB_SIM_FIXTURE_H
#define NB_SIM_FIXTURE_H

#include "job.h"

extern char why[512];	      /* what was refused last */
extern struct sim_model four; /* 4 nodes x 4 cpus x 4G */
extern struct sim_model odd;  /* node 0: CPUs alone; 1: CPUs and 16G; 2: 8G alone */

/* Group set-up and tear-down: the two machines above, no NUMABAL_DATA, an empty directory. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* A path inside the test's directory; the result of the fourth call from now overwrites this one's.
 */
const char *in_dir(const char *name);
const char *test_dir(void);
void put_file(const char *name, const char *text);

/* A file of the source tree (env NUMABAL_SOURCE), in a buffer that the next call reuses. */
char *read_doc(const char *name);
/* The first ```ini block of a document in that buffer. */
char *read_example(const char *name);

void make_model(struct sim_model *m, const char *topology);

/* As a job of file dir/j.ini: parse and resolve. */
int resolve(
	struct sim_load *load, const char *text, const char *overrides, const struct sim_model *m);
/* On `four`. */
void assert_resolves(struct sim_load *load, const char *text);
void assert_job_refused(const char *text, int err, const char *line);

#endif
