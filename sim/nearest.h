/* SPDX-License-Identifier: MIT */
/*
 * nearest: which known name was probably meant by an unknown one. The distance is Levenshtein's
 * (1966), the habit of suggesting is from git and Clang.
 */
#ifndef NB_SIM_NEAREST_H
#define NB_SIM_NEAREST_H

#include <stddef.h>

enum { SIM_HINT_LEN = 112 };

/* Start with { .name = unknown }, try every candidate, ask for the hint. Strings are borrowed. */
struct sim_nearest {
	const char *name;
	const char *best; /* NULL until some candidate was near enough */
	size_t distance;  /* of best */
};

/* Candidates are shorter than 64 bytes; longer ones (and longer names) are never near. */
void sim_nearest_try(struct sim_nearest *n, const char *candidate);

/* "; did you mean 'X'?" or "", written to hint[SIM_HINT_LEN], which is returned. */
const char *sim_nearest_hint(const struct sim_nearest *n, char *hint);

#endif
