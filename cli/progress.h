/* SPDX-License-Identifier: MIT */
/*
 * progress: one line on stderr that says how far the runs are, where stderr is a terminal and the
 * runs take over a second. progress_note may be called from any thread, the rest from one.
 */
#ifndef NB_CLI_PROGRESS_H
#define NB_CLI_PROGRESS_H

#include <stddef.h>

struct plan;
struct progress;

/* NULL on no memory. Borrows the plan. */
struct progress *progress_new(const struct plan *plan);
/* Run i has come to that many simulated seconds. */
void progress_note(struct progress *p, size_t i, double simulated_s);
/* Show the line if it is time to. */
void progress_show(struct progress *p, size_t done);
/* Wipe the line and free. NULL is allowed. */
void progress_end(struct progress *p);

#endif
