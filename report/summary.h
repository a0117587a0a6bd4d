/* SPDX-License-Identifier: MIT */
/* summary: what the events about one target add up to. Internal to report/. */
#ifndef NB_REPORT_SUMMARY_H
#define NB_REPORT_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "../engine/events.h"

/* How often, when first and when last. */
struct report_times {
	uint64_t nr, first_ns, last_ns;
};

struct report_summary {
	unsigned int nr_nodes;
	const int *node_ids; /* [nr_nodes], borrowed */
	struct report_times armed, skipped[NB_NR_SKIPS], lazy, faults, split;
	uint64_t armed_pages;
	uint64_t faults_local;
	uint64_t *faults_by_node; /* [nr_nodes] by the toucher's node */
	uint64_t verdicts[NB_NR_WHYS];
	uint64_t asked_pages, moved_pages;
	uint64_t *moved; /* [nr_nodes * nr_nodes] pages, from * nr_nodes + to */
	uint64_t not_moved[NB_NR_MOVE_STATUSES];
	/* The last thing a scan did to it. */
	bool last_was_skip;
	uint8_t last_skip;     /* enum nb_skip */
	uint64_t last_skip_ns; /* since when it has been this reason without a break */
};

/* 0 or -ENOMEM. */
int report_summary_init(struct report_summary *s, unsigned int nr_nodes, const int *node_ids);
void report_summary_free(struct report_summary *s);

void report_summary_add(struct report_summary *s, const struct nb_event *e);
void report_summary_print(const struct report_summary *s, FILE *f);
/* NULL on no memory. */
json_t *report_summary_json(const struct report_summary *s);

#endif
