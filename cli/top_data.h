/* SPDX-License-Identifier: MIT */
/*
 * top_data: what `numabal top` shows: the processes that manage memory, in one session or in all of
 * them, with what they did since the last look. Times are seconds, sizes bytes.
 */
#ifndef NB_CLI_TOP_DATA_H
#define NB_CLI_TOP_DATA_H

#include <stdbool.h>
#include "../live/session.h"

enum {
	TOP_HISTORY = 512,  /* looks that are remembered */
	TOP_NO_SHARE = 255, /* in the history: nothing was sampled */
};

/* A process that manages memory. */
struct top_process {
	const struct nb_session *session;
	const struct nb_slot *slot;
	uint32_t pid;
	char name[17]; /* printable */
	bool ended;
	uint32_t notes;
	uint64_t managed, regions_made;
	/* Since the look before; NaN at the first. Local: of the latest samples, NaN without any.
	 */
	double local, faults_s, moved_s, agent_share;
	uint64_t faults, moved, agent_ns; /* at this look */
	unsigned char *history;		  /* [TOP_HISTORY] ring: local share in percent */
	unsigned int nr_history;	  /* looks so far */
	/* Where its memory is; survey.version 0: not known (yet). */
	struct nb_survey survey;
	uint64_t *node_bytes; /* [session->nr_nodes] */
	bool seen;	      /* by the look at hand */
};

struct top_data;

/* pid 0: all sessions there are; else the one of that process. 0 or -errno with a line in `why`. */
int top_open(struct top_data **out, uint32_t pid, char *why, size_t why_len);
void top_close(struct top_data *d);
/* Look again. 0 or -ENOMEM. */
int top_look(struct top_data *d);

size_t top_nr(const struct top_data *d);
const struct top_process *top_at(const struct top_data *d, size_t i);
/* The process of that number, or NULL. */
const struct top_process *top_find(const struct top_data *d, uint32_t pid);
/* Seconds from the first look to the last one. */
double top_watched_s(const struct top_data *d);
/* Seconds between the last two looks; 0 at the first. */
double top_interval_s(const struct top_data *d);
/* The session of one process was asked for, and all of its processes have ended. */
bool top_over(const struct top_data *d);

#endif
