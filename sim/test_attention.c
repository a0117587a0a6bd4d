/* SPDX-License-Identifier: MIT */
/* Random access patterns: what a region knows against a tally of its pages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim_fixture.h"

static const char machine[] = "[machine]\ntopology = 4 nodes x 1 cpu x 256M\n" SIM_QUIET;

static const struct sim_phase patterns[] = {
	{.kind = SIM_PHASE_UNIFORM},
	{.kind = SIM_PHASE_CHASE},
	{.kind = SIM_PHASE_ZIPF, .theta = 0.99},
	{.kind = SIM_PHASE_ZIPF, .theta = 0.5},
	{.kind = SIM_PHASE_HOTSET, .hot_ratio = 0.1, .hot_share = 0.9},
	{.kind = SIM_PHASE_HOTSET, .hot_ratio = 1, .hot_share = 1},
	{.kind = SIM_PHASE_UNIFORM, .lookup = true},
};

enum { NR_PATTERNS = sizeof(patterns) / sizeof(patterns[0]), NR_NODES = 4 };

static struct sim_area_state *open_area(struct sim_try *t, const char *area)
{
	char job[256];

	snprintf(job, sizeof(job), "[p]\narea = a %s\nphase = uniform area=a bytes=4K\n", area);
	try_make(t, machine, job, "balancenuma-v8");
	try_open(t);
	return &t->w.areas[0];
}

/* Every page present on node 0. */
static void fill(struct sim_try *t, struct sim_area_state *a, uint16_t flags)
{
	for (uint32_t b = 0; b < a->nr_blocks; b++)
		sim_block_set(&t->w, a, b, 0, flags);
}

/* The popularity of each page of the region: what the region wants when that page alone is absent.
 */
static double *popularities(struct sim_try *t, const struct sim_region *r)
{
	const uint64_t pages = (r->end - r->start) >> 12;
	double *p = calloc(pages, sizeof(*p));

	assert_non_null(p);
	fill(t, r->area, 0);
	for (uint64_t i = 0; i < pages; i++) {
		sim_pte_set(&t->w, r->area, r->start + (i << 12), 0);
		p[i] = r->wants;
		sim_pte_set(&t->w, r->area, r->start + (i << 12), SIM_PTE_PRESENT);
	}
	return p;
}

/* ---- who is how popular ---- */

static int descending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Popularity by rank, as docs/jobs.md defines the kinds. */
static double by_rank(const struct sim_phase *p, uint64_t pages, uint64_t rank)
{
	double sum = 0, hot;

	if (p->kind == SIM_PHASE_ZIPF) {
		for (uint64_t i = 1; i <= pages; i++)
			sum += pow((double)i, -p->theta);
		return pow((double)rank + 1, -p->theta) / sum;
	}
	if (p->kind != SIM_PHASE_HOTSET)
		return 1 / (double)pages;
	hot = ceil(p->hot_ratio * (double)pages);
	return (double)rank < hot ? p->hot_share / hot : (1 - p->hot_share) / ((double)pages - hot);
}

static void test_popularity_is_what_the_job_says(void **state)
{
	(void)state;
	for (int k = 0; k < NR_PATTERNS; k++) {
		struct sim_try t;
		struct sim_area_state *a = open_area(&t, "size=3M offset=64K");
		struct sim_region *r = sim_region_get(&t.w, a, 4096 * 5, 4096 * 705, &patterns[k]);
		double *p = popularities(&t, r);

		qsort(p, 700, sizeof(*p), descending);
		for (uint64_t i = 0; i < 700; i += 23)
			assert_true(fabs(p[i] / by_rank(&patterns[k], 700, i) - 1) < 1e-5);
		free(p);
		try_free(&t);
	}
}

/* Popular pages are no neighbours: a huge page holds its share of them. */
static void test_popular_pages_are_scattered(void **state)
{
	(void)state;
	for (int k = 2; k < 5; k++) {
		struct sim_try t;
		struct sim_area_state *a = open_area(&t, "size=32M");
		struct sim_region *r = sim_region_get(&t.w, a, 0, 32 << 20, &patterns[k]);
		double *p = popularities(&t, r);
		const double limit = by_rank(&patterns[k], 8192, 800);
		uint32_t hot[16] = {0};

		for (uint64_t i = 0; i < 8192; i++)
			hot[i / 512] += p[i] > limit;
		for (int b = 0; b < 16; b++)
			assert_in_range(hot[b], 40, 60); /* 50 of the 800 in each */
		free(p);
		try_free(&t);
	}
}

static void test_one_region_serves_all_that_see_it_alike(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=4M");
	struct sim_region *first = sim_region_get(&t.w, a, 0, 4 << 20, &patterns[0]);

	(void)state;
	assert_ptr_equal(sim_region_get(&t.w, a, 0, 4 << 20, &patterns[0]), first);
	assert_ptr_equal(sim_region_get(&t.w, a, 0, 4 << 20, &patterns[1]), first);
	for (int k = 2; k < NR_PATTERNS; k++) {
		struct sim_region *r = sim_region_get(&t.w, a, 0, 4 << 20, &patterns[k]);

		assert_ptr_not_equal(r, first);
		assert_ptr_equal(sim_region_get(&t.w, a, 0, 4 << 20, &patterns[k]), r);
	}
	assert_ptr_not_equal(sim_region_get(&t.w, a, 0, 4096, &patterns[0]), first);
	try_free(&t);
}

/* ---- what is where, and what needs attention ---- */

static void tally(const struct sim_try *t, const struct sim_region *r, const double *p,
	bool armed_too, double *share, double *wants)
{
	*wants = 0;
	for (int n = 0; n < NR_NODES; n++)
		share[n] = 0;
	for (uint64_t o = r->start; o < r->end; o += 4096) {
		const uint16_t pte = sim_pte_get(&t->w, r->area, o);
		const double one = p[(o - r->start) >> 12];

		if (pte & SIM_PTE_PRESENT)
			share[pte & SIM_PTE_NODE] += one;
		if (!(pte & SIM_PTE_PRESENT) || (armed_too && pte & SIM_PTE_ARMED))
			*wants += one;
	}
}

static void change(struct sim_try *t, struct sim_rng *rng)
{
	struct sim_area_state *a = &t->w.areas[0];
	const uint32_t b = (uint32_t)sim_rng_below(rng, a->nr_blocks);
	const uint16_t armed = sim_rng_below(rng, 2) ? SIM_B_ARMED : 0;
	const int node = (int)sim_rng_below(rng, NR_NODES + 1) - 1;
	const uint64_t o = sim_rng_below(rng, a->bytes >> 12) << 12;

	switch (sim_rng_below(rng, 6)) {
	case 0:
		sim_block_set(&t->w, a, b, node, node < 0 ? 0 : armed);
		break;
	case 1:
		sim_block_set(&t->w, a, b, node,
			(uint16_t)(node < 0		   ? 0
				   : sim_block_whole(a, b) ? SIM_B_HUGE | armed
							   : armed));
		break;
	case 2:
		sim_block_contract(&t->w, a, b);
		break;
	default:
		sim_pte_set(&t->w, a, o,
			(uint16_t)(node < 0
					   ? 0
					   : SIM_PTE_PRESENT | node | (armed ? SIM_PTE_ARMED : 0)));
	}
}

static void compare(const struct sim_try *t, const struct sim_region *r, const double *p,
	const struct sim_phase *phase)
{
	double share[NR_NODES], wants;

	tally(t, r, p, !phase->lookup, share, &wants);
	assert_true(fabs(wants - r->wants) < 1e-6);
	for (int n = 0; n < NR_NODES; n++)
		assert_true(fabs(share[n] - r->node_share[n]) < 1e-6);
}

/* Two regions of each pattern, over parts of one area that overlap and end anywhere. */
static void test_regions_know_what_a_tally_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2 * NR_PATTERNS; seed++) {
		const struct sim_phase *phase = &patterns[seed % NR_PATTERNS];
		struct sim_try t;
		struct sim_area_state *a = open_area(&t, "size=9M offset=64K");
		struct sim_rng rng;
		struct sim_region *r[2];
		double *p[2];

		print_message("seed %d\n", (int)seed);
		sim_rng_seed(&rng, seed);
		r[0] = sim_region_get(&t.w, a, 0, a->bytes, phase);
		r[1] = sim_region_get(&t.w, a, 4096 * sim_rng_below(&rng, 800),
			a->bytes - 4096 * sim_rng_below(&rng, 800), phase);
		for (int i = 0; i < 2; i++)
			p[i] = popularities(&t, r[i]);
		for (int i = 0; i < 2000; i++) {
			const uint32_t version = r[0]->version;
			const double node0 = r[0]->node_share[0];

			change(&t, &rng);
			if (r[0]->node_share[0] != node0)
				assert_int_not_equal(r[0]->version, version);
			if (i % 100 == 99) {
				compare(&t, r[0], p[0], phase);
				compare(&t, r[1], p[1], phase);
				assert_null(sim_regions_check(&t.w));
			}
		}
		fill(&t, a, 0);
		for (int i = 0; i < 2; i++) {
			assert_true(r[i]->wants < 1e-9);
			free(p[i]);
		}
		try_free(&t);
	}
}

static void test_the_checker_sees_what_is_wrong(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=4M");
	struct sim_region *r = sim_region_get(&t.w, a, 0, 4 << 20, &patterns[0]);

	(void)state;
	sim_block_set(&t.w, a, 0, 1, 0);
	assert_null(sim_regions_check(&t.w));
	r->node_share[1] += 0.01;
	assert_non_null(sim_regions_check(&t.w));
	r->node_share[1] -= 0.01;
	r->wants += 0.01;
	assert_non_null(sim_regions_check(&t.w));
	r->wants -= 0.01;
	a->blocks[0].flags |= SIM_B_ARMED; /* behind the region's back */
	assert_non_null(sim_regions_check(&t.w));
	a->blocks[0].flags &= (uint16_t)~SIM_B_ARMED;
	assert_null(sim_regions_check(&t.w));
	try_free(&t);
}

/* ---- picking ---- */

static bool wanted(const struct sim_try *t, const struct sim_area_state *a, uint64_t o)
{
	const uint16_t pte = sim_pte_get(&t->w, a, o);

	return !(pte & SIM_PTE_PRESENT) || pte & SIM_PTE_ARMED;
}

static void test_a_pick_always_wants_attention(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=9M offset=64K");
	struct sim_rng rng;

	(void)state;
	sim_rng_seed(&rng, 3);
	for (int k = 0; k < 5; k++)
		assert_non_null(
			sim_region_get(&t.w, a, 4096 * 700, a->bytes - 4096 * 500, &patterns[k]));
	for (int i = 0; i < 4000; i++) {
		const struct sim_region *r = a->regions[i % (int)a->nr_regions];
		uint64_t o;

		/* Mostly nothing to find: few pages, in few blocks. */
		if (i % 50 == 0)
			fill(&t, a, 0);
		change(&t, &rng);
		if (r->wants < 1e-9)
			continue;
		o = sim_region_pick(&t.w, r);
		assert_true(o >= r->start && o < r->end && o % 4096 == 0);
		assert_true(wanted(&t, a, o));
	}
	fill(&t, a, 0);
	assert_true(sim_region_pick(&t.w, a->regions[0]) == UINT64_MAX);
	try_free(&t);
}

/* Chi-square of picks against popularity; pages of few expected picks are taken together. */
static double chi_square(const uint32_t *seen, const double *expected, int pages, int *freedom)
{
	double chi = 0, small = 0, small_seen = 0;

	*freedom = -1;
	for (int i = 0; i < pages; i++) {
		if (expected[i] < 8) {
			small += expected[i];
			small_seen += seen[i];
			continue;
		}
		chi += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
		++*freedom;
	}
	if (small > 0) {
		chi += (small_seen - small) * (small_seen - small) / small;
		++*freedom;
	}
	return chi;
}

static void test_picks_follow_popularity(void **state)
{
	enum { PAGES = 1500, PICKS = 60000 };

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct sim_try t;
		struct sim_area_state *a = open_area(&t, "size=6M offset=64K");
		const struct sim_region *r =
			sim_region_get(&t.w, a, 4096, 4096 * (PAGES + 1), &patterns[k]);
		double *p = popularities(&t, r), total = 0, chi;
		uint32_t *seen = calloc(PAGES, sizeof(*seen));
		int freedom;

		/* A block armed whole, one whose pages are partly armed, and absent ones. */
		sim_block_set(&t.w, a, 1, 2, SIM_B_ARMED);
		for (uint64_t i = 1100; i < PAGES; i++)
			sim_pte_set(&t.w, a, i << 12,
				i % 3 == 0   ? 0
				: i % 3 == 1 ? SIM_PTE_PRESENT | SIM_PTE_ARMED
					     : SIM_PTE_PRESENT);
		for (int i = 0; i < PAGES; i++) {
			p[i] = wanted(&t, a, (uint64_t)(i + 1) << 12) ? p[i] : 0;
			total += p[i];
		}
		for (int i = 0; i < PAGES; i++)
			p[i] *= PICKS / total;
		for (int i = 0; i < PICKS; i++)
			seen[(sim_region_pick(&t.w, r) >> 12) - 1]++;
		for (int i = 0; i < PAGES; i++)
			if (p[i] == 0)
				assert_int_equal(seen[i], 0);
		chi = chi_square(seen, p, PAGES, &freedom);
		print_message("pattern %d: chi-square %.0f at %d degrees\n", k, chi, freedom);
		/* Four standard deviations of it. */
		assert_true(chi < freedom + 4 * sqrt(2. * freedom));
		free(seen);
		free(p);
		try_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_popularity_is_what_the_job_says),
		cmocka_unit_test(test_popular_pages_are_scattered),
		cmocka_unit_test(test_one_region_serves_all_that_see_it_alike),
		cmocka_unit_test(test_regions_know_what_a_tally_says),
		cmocka_unit_test(test_the_checker_sees_what_is_wrong),
		cmocka_unit_test(test_a_pick_always_wants_attention),
		cmocka_unit_test(test_picks_follow_popularity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
