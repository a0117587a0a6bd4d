/* SPDX-License-Identifier: MIT */
/* See zipf.h. */
#include "zipf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Give each slot that is not full the rest from one that is more than full. */
static void fill_slots(struct zipf *z, double *weight, uint32_t *small, uint32_t *large)
{
	uint32_t nr_small = 0, nr_large = 0;

	for (uint32_t i = 0; i < z->nr; i++) {
		if (weight[i] < 1)
			small[nr_small++] = i;
		else
			large[nr_large++] = i;
	}
	while (nr_small && nr_large) {
		const uint32_t s = small[--nr_small], l = large[nr_large - 1];

		z->slots[s] = (struct zipf_slot){.keep = (float)weight[s], .other = l};
		weight[l] -= 1 - weight[s];
		if (weight[l] < 1) {
			nr_large--;
			small[nr_small++] = l;
		}
	}
	while (nr_large)
		z->slots[large[--nr_large]].keep = 1;
	while (nr_small)
		z->slots[small[--nr_small]].keep = 1; /* left by rounding */
}

static void set_weights(double *weight, uint32_t nr, double exponent)
{
	double sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += weight[i] = 1 / pow(i + 1.0, exponent);
	for (uint32_t i = 0; i < nr; i++)
		weight[i] *= nr / sum;
}

int zipf_init(struct zipf *z, uint32_t nr, double exponent)
{
	double *weight = calloc(nr, sizeof(*weight));
	uint32_t *lists = calloc(2 * (size_t)nr, sizeof(*lists));

	*z = (struct zipf){.nr = nr, .slots = calloc(nr, sizeof(*z->slots))};
	if (weight && lists && z->slots) {
		set_weights(weight, nr, exponent);
		fill_slots(z, weight, lists, lists + nr);
	} else {
		zipf_free(z);
	}
	free(weight);
	free(lists);
	return z->slots ? 0 : -ENOMEM;
}

void zipf_free(struct zipf *z)
{
	free(z->slots);
	*z = (struct zipf){0};
}

uint32_t zipf_draw(const struct zipf *z, uint64_t random)
{
	const uint32_t slot = random_below((uint32_t)random, z->nr);
	const float chance = (float)(random >> 40) * 0x1p-24f;

	return chance < z->slots[slot].keep ? slot : z->slots[slot].other;
}

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
