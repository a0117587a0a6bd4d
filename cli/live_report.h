/* SPDX-License-Identifier: MIT */
/* live_report: what a session counted, for people and for programs. */
#ifndef NB_CLI_LIVE_REPORT_H
#define NB_CLI_LIVE_REPORT_H

#include <jansson.h>
#include <stdio.h>
#include "../live/session.h"

/* "12.3 MiB" in `text`, which is returned. */
const char *live_size_text(uint64_t bytes, char *text, size_t len);

/* All processes of a session together. */
struct live_total {
	uint64_t stat[NB_NR_LIVE_STATS];  /* in the order of struct nb_live_stats */
	uint64_t counter[NB_NR_COUNTERS]; /* in the order of struct nb_counters */
	uint64_t histogram[NB_SESSION_HISTOGRAM];
	uint64_t move_histogram[NB_SESSION_HISTOGRAM];
	uint32_t notes;
	unsigned int processes, balanced;
};

void live_total(struct live_total *t, const struct nb_session *s);

/* So many of a thousand took less than this, ns: a power of two. 0: there were none. */
uint64_t live_below_ns(const uint64_t histogram[NB_SESSION_HISTOGRAM], unsigned int permille);

/* A few lines. resident_bytes: the most the program had in memory; 0 = not known. */
void live_report_text(
	FILE *out, const struct nb_session *s, double elapsed_s, uint64_t resident_bytes);
/* One object, schema 1; NULL: no memory. The caller owns it. */
json_t *live_report_object(const struct nb_session *s, double elapsed_s);
/* The same in a file. 0 or -errno with a line in `why`. */
int live_report_json(
	const struct nb_session *s, double elapsed_s, const char *path, char *why, size_t why_len);

#endif
