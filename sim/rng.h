/* SPDX-License-Identifier: MIT */
/*
 * rng: xoshiro256** seeded by splitmix64 (Blackman and Vigna, public domain algorithms), the same
 * stream on every compiler. Not for secrets. One instance per run.
 */
#ifndef NB_SIM_RNG_H
#define NB_SIM_RNG_H

#include <math.h>
#include <stdint.h>

struct sim_rng {
	uint64_t s[4];
};

static inline uint64_t sim_splitmix(uint64_t *x)
{
	uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline void sim_rng_seed(struct sim_rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = sim_splitmix(&seed);
}

static inline uint64_t sim_rng_next(struct sim_rng *r)
{
	uint64_t *s = r->s;
	const uint64_t m = s[1] * 5;
	const uint64_t result = ((m << 7) | (m >> 57)) * 9;
	const uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

/* [0, 1) */
static inline double sim_rng_unit(struct sim_rng *r)
{
	return (double)(sim_rng_next(r) >> 11) * 0x1p-53;
}

/* 0 .. n-1, n > 0 */
static inline uint64_t sim_rng_below(struct sim_rng *r, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)sim_rng_next(r) * n) >> 64);
}

/* Exponential with this mean. */
static inline double sim_rng_exponential(struct sim_rng *r, double mean)
{
	return -mean * log1p(-sim_rng_unit(r));
}

#endif
