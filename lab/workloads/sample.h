/* SPDX-License-Identifier: MIT */
/* sample: watch processes that work, a row of CSV a second: see docs/lab.md for the columns. */
#ifndef NB_LAB_SAMPLE_H
#define NB_LAB_SAMPLE_H

#include <stdio.h>
#include <sys/types.h>

#include "../guest/probe.h"
#include "work.h"

struct sampler;

/* NULL when there is no memory. Counters count from here. Keeps the pointers; `pids` are the
 * processes', `probe` may be NULL.
 */
struct sampler *sampler_new(const struct work_options *opt, struct work_shared *shared,
	const pid_t *pids, unsigned int nr_nodes, struct probe *probe, FILE *out);
void sampler_head(struct sampler *s);
/* A row for now, `t_s` seconds from the start. */
void sampler_row(struct sampler *s, double t_s);
void sampler_free(struct sampler *s);

#endif
