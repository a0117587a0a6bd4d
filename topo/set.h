/* SPDX-License-Identifier: MIT */
/*
 * set: a set of CPU or node ids, read from and written as the kernel's list format ("0-3,8,10-11").
 *
 * Big enough for every CPU id numabal accepts; a value of 1 KiB, owned by whoever declares it.
 */
#ifndef NB_TOPO_SET_H
#define NB_TOPO_SET_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOPO_SET_BITS = 8192 };

struct topo_set {
	uint64_t word[TOPO_SET_BITS / 64];
};

static inline bool topo_set_has(const struct topo_set *s, unsigned int id)
{
	return id < TOPO_SET_BITS && (s->word[id / 64] >> (id % 64) & 1);
}

/* `id` must be below TOPO_SET_BITS. */
static inline void topo_set_add(struct topo_set *s, unsigned int id)
{
	s->word[id / 64] |= UINT64_C(1) << (id % 64);
}

/* How many ids are in it. */
unsigned int topo_set_count(const struct topo_set *s);

/* Whether every id of `a` is in `b` too. */
bool topo_set_within(const struct topo_set *a, const struct topo_set *b);

/* The ids of `a` that are not in `b`. */
struct topo_set topo_set_minus(const struct topo_set *a, const struct topo_set *b);

/* The first id at or above `from`, or -1: for (int i = topo_set_next(s, 0); i >= 0; i =
 * topo_set_next(s, i + 1)). */
int topo_set_next(const struct topo_set *s, int from);

/*
 * Read a list as the kernel writes it: ids and ranges between commas or blanks, a range with an
 * optional stride
 * ("0-31:2/4": the first 2 of each 4). Nothing at all is the empty set. Ids must be below `limit`.
 * 0, -EINVAL for text that is no list, -ERANGE for an id out of bounds or a range that runs
 * backwards.
 */
int topo_set_parse(struct topo_set *out, struct topo_slice list, unsigned int limit);

/*
 * Write as a list. Always terminated; where `size` is too small the text ends in "..." after a
 * whole item. Returns the length written.
 */
size_t topo_set_format(const struct topo_set *s, char *text, size_t size);

#endif
