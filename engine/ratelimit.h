/* SPDX-License-Identifier: MIT */
/*
 * ratelimit: the migration window of each node: how much may move to it in migrate_interval_ms.
 *
 * As in the series: a window is opened by the first move asked for after the last one closed; pages
 * count when their move is asked for, whatever comes of it; and the comparison comes before the
 * addition, so that a window takes up to one request more than its size. Time is compared in
 * jiffies, "after" strictly.
 */
#ifndef NB_ENGINE_RATELIMIT_H
#define NB_ENGINE_RATELIMIT_H

#include "machine.h"

struct nb_window {
	uint64_t end_j; /* jiffies: the window is over after this one */
	uint64_t pages; /* asked to move in it */
};

/* A move of so many pages to `node` is wanted: true = not now, else they are counted. */
bool nb_ratelimit_move(struct nb_engine *e, int node, uint64_t pages, uint64_t now_ns);

/* Whether scans by tasks of this node should pause: its window is used up, and did not close long
 * ago. */
bool nb_ratelimit_scan(const struct nb_engine *e, int node, uint64_t now_ns);

#endif
