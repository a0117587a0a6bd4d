/* SPDX-License-Identifier: MIT */
/* zipf: random numbers, and ranks 0 .. nr-1 of which rank r is drawn in proportion to 1 / (r +
 * 1)^exponent. */
#ifndef NB_LAB_ZIPF_H
#define NB_LAB_ZIPF_H

#include <stdint.h>

/* Drawn from in constant time (Walker's alias method, 1977). Only read once made: threads may share
 * it. */
struct zipf {
	uint32_t nr;
	struct zipf_slot {
		float keep;	/* chance to stay in the slot that was hit */
		uint32_t other; /* else this one */
	} * slots;
};

/* 0 or -ENOMEM. nr > 0, exponent >= 0. Owned by the caller: zipf_free. */
int zipf_init(struct zipf *z, uint32_t nr, double exponent);
void zipf_free(struct zipf *z);
/* A rank, from 64 random bits. */
uint32_t zipf_draw(const struct zipf *z, uint64_t random);

/* splitmix64 (Steele, Lea, Flood 2014). Any state will do. */
uint64_t random_next(uint64_t *state);

/* 32 random bits -> 0 .. limit-1; limit far below 2^32, or some come more often. */
static inline uint32_t random_below(uint32_t random, uint32_t limit)
{
	return (uint32_t)((uint64_t)random * limit >> 32);
}

#endif
