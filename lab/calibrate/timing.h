/* SPDX-License-Identifier: MIT */
/* timing: durations of single operations, and what is told of many of them. */
#ifndef NB_LAB_TIMING_H
#define NB_LAB_TIMING_H

#include <stdint.h>
#include <stddef.h>

/* CLOCK_MONOTONIC, nanoseconds. */
uint64_t timing_now_ns(void);

/* Durations in ns. `ns` is the caller's, of `size`. */
struct timing {
	uint64_t *ns;
	size_t nr, size;
};

static inline void timing_add(struct timing *t, uint64_t ns)
{
	if (t->nr < t->size)
		t->ns[t->nr++] = ns;
}

/* Keep the `nr` longest: of many touches those that trapped, when it is known how many did. Sorts.
 */
void timing_keep_longest(struct timing *t, size_t nr);

/* A row "name,case,n,p10_us,p50_us,p90_us,mean_us" on stdout, each duration divided by `per`.
 * Sorts. */
void timing_row(struct timing *t, const char *name, const char *what, double per);

/* A row with one value in place of p50 and the mean. */
void timing_value(const char *name, const char *what, size_t n, double value);

#endif
