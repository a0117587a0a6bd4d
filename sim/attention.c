/* SPDX-License-Identifier: MIT */
/*
 * attention: random access patterns without simulating accesses. A region knows the popularity of
 * its pages, how much of it is on each node, and a sum tree over the blocks whose pages need
 * attention at their next touch: the armed and the absent ones. The next such touch comes after an
 * exponentially distributed number of accesses and picks its page by popularity. All other accesses
 * need only the shares by node.
 */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPE_PAGES = 16 << 20 }; /* 64 MiB of floats for a 64 GiB region */

void sim_region_free(struct sim_region *r)
{
	if (!r)
		return;
	free(r->shape);
	free(r->node_share);
	free(r->block_wants);
	free(r->tree);
	free(r);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/* A multiplier prime to n that scatters neighbours far apart: near the golden section. */
static uint64_t scatter(uint64_t n)
{
	uint64_t s = (uint64_t)((double)n * 0.6180339887498949) | 1;

	while (s > 1 && gcd(s, n) != 1)
		s += 2;
	return s % n ? s % n : 1;
}

/* Popularity by shape of page number i, before scaling. */
static double shape_of(const struct sim_region *r, uint64_t i)
{
	const uint64_t rank = (uint64_t)((unsigned __int128)i * r->stride % r->nr_pages);

	if (r->kind == SIM_PHASE_ZIPF)
		return pow((double)rank + 1, -r->theta);
	if (r->kind == SIM_PHASE_HOTSET) {
		const double hot = ceil(r->hot_ratio * (double)r->nr_pages);

		if ((double)rank < hot)
			return r->hot_share / hot;
		return (1 - r->hot_share) / ((double)r->nr_pages - hot);
	}
	return 1;
}

/* The part of block b that lies in the region. */
static void block_part(const struct sim_region *r, uint32_t b, uint64_t *start, uint64_t *end)
{
	sim_block_range(r->area, b, start, end);
	if (*start < r->start)
		*start = r->start;
	if (*end > r->end)
		*end = r->end;
}

/* Of each page of the block that holds the offset, before scaling. */
static double block_shape(const struct sim_region *r, uint64_t offset)
{
	const uint32_t b = sim_block_of(r->area, offset);
	uint64_t start, end;

	block_part(r, b, &start, &end);
	return (double)r->weights[b - r->first_block] / (double)((end - start) >> NB_PAGE_SHIFT);
}

static double popularity(const struct sim_region *r, uint64_t offset)
{
	const uint64_t i = (offset - r->start) >> NB_PAGE_SHIFT;

	if (r->weights)
		return r->scale * block_shape(r, offset);
	return r->scale * (r->shape ? (double)r->shape[i]
				  : r->kind == SIM_PHASE_ZIPF || r->kind == SIM_PHASE_HOTSET
					  ? shape_of(r, i)
					  : 1);
}

static int fill_shape(struct sim_region *r)
{
	double sum = 0;
	const bool flat = r->kind != SIM_PHASE_ZIPF && r->kind != SIM_PHASE_HOTSET;

	for (uint32_t i = 0; r->weights && i < r->nr_blocks; i++)
		sum += (double)r->weights[i];
	if (flat) {
		r->scale = r->weights ? 1 / sum : 1 / (double)r->nr_pages;
		return 0;
	}
	if (r->nr_pages <= MAX_SHAPE_PAGES) {
		r->shape = malloc(r->nr_pages * sizeof(*r->shape));
		if (!r->shape)
			return -ENOMEM;
	}
	for (uint64_t i = 0; i < r->nr_pages; i++) {
		const double s = shape_of(r, i);

		if (r->shape)
			r->shape[i] = (float)s;
		sum += s;
	}
	r->scale = 1 / sum;
	return 0;
}

static void tree_add(struct sim_region *r, uint32_t i, double delta)
{
	r->block_wants[i] += delta;
	if (r->block_wants[i] < 1e-15) {
		delta -= r->block_wants[i];
		r->block_wants[i] = 0;
	}
	for (uint32_t k = i + 1; k <= r->nr_blocks; k += k & -k)
		r->tree[k] += delta;
	r->wants += delta;
	if (r->wants < 1e-12)
		r->wants = 0;
}

static bool wants_attention(const struct sim_region *r, uint16_t pte)
{
	return !(pte & SIM_PTE_PRESENT) || (pte & SIM_PTE_ARMED && !r->passes_armed);
}

/* Popularity of the region's pages in [start, end), of one block. */
static double sum_popularity(const struct sim_region *r, uint64_t start, uint64_t end)
{
	double sum = 0;

	if (r->kind != SIM_PHASE_ZIPF && r->kind != SIM_PHASE_HOTSET)
		return (double)((end - start) >> NB_PAGE_SHIFT) *
		       (r->weights ? popularity(r, start) : r->scale);
	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE)
		sum += popularity(r, o);
	return sum;
}

/* Enter (sign = 1) or withdraw (-1) the block as it is now. */
static void enter_block(const struct sim_world *w, struct sim_region *r, uint32_t b, double sign)
{
	const struct sim_block *block = &r->area->blocks[b];
	const bool alike = !(block->flags & SIM_B_PTES);
	double wants = 0;
	uint64_t start, end;

	block_part(r, b, &start, &end);
	if (alike) {
		const double p = sum_popularity(r, start, end);

		if (block->flags & SIM_B_PRESENT)
			r->node_share[block->node] += sign * p;
		if (!(block->flags & SIM_B_PRESENT) ||
			(block->flags & SIM_B_ARMED && !r->passes_armed))
			wants = p;
	}
	for (uint64_t o = start; !alike && o < end; o += NB_PAGE_SIZE) {
		const uint16_t pte = sim_pte_get(w, r->area, o);
		const double p = popularity(r, o);

		if (pte & SIM_PTE_PRESENT)
			r->node_share[pte & SIM_PTE_NODE] += sign * p;
		if (wants_attention(r, pte))
			wants += p;
	}
	tree_add(r, b - r->first_block, sign * wants);
	r->version++;
}

static bool same_region(const struct sim_world *w, const struct sim_region *r, uint64_t start,
	uint64_t end, const struct sim_phase *p)
{
	const bool shaped = p->kind == SIM_PHASE_ZIPF || p->kind == SIM_PHASE_HOTSET;

	if (r->start != start || r->end != end || r->weights != p->weights ||
		r->passes_armed != sim_passes_armed(w, p->kernel, p->lookup))
		return false;
	if (!shaped)
		return r->kind != SIM_PHASE_ZIPF && r->kind != SIM_PHASE_HOTSET;
	return r->kind == p->kind && r->theta == p->theta && r->hot_ratio == p->hot_ratio &&
	       r->hot_share == p->hot_share;
}

static struct sim_region *region_new(struct sim_world *w, struct sim_area_state *a, uint64_t start,
	uint64_t end, const struct sim_phase *p)
{
	struct sim_region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct sim_region){.area = a,
		.start = start,
		.end = end,
		.kind = p->kind,
		.passes_armed = sim_passes_armed(w, p->kernel, p->lookup),
		.theta = p->theta,
		.hot_ratio = p->hot_ratio,
		.hot_share = p->hot_share,
		.weights = p->weights,
		.nr_pages = (end - start) >> NB_PAGE_SHIFT,
		.first_block = sim_block_of(a, start)};
	r->nr_blocks = sim_block_of(a, end - 1) - r->first_block + 1;
	r->stride = scatter(r->nr_pages);
	r->node_share = calloc(w->nr_nodes, sizeof(double));
	r->block_wants = calloc(r->nr_blocks, sizeof(double));
	r->tree = calloc(r->nr_blocks + 1, sizeof(double));
	if (!r->node_share || !r->block_wants || !r->tree || fill_shape(r)) {
		sim_region_free(r);
		return NULL;
	}
	for (uint32_t i = 0; i < r->nr_blocks; i++)
		enter_block(w, r, r->first_block + i, 1);
	return r;
}

struct sim_region *sim_region_get(struct sim_world *w, struct sim_area_state *a, uint64_t start,
	uint64_t end, const struct sim_phase *phase)
{
	struct sim_region **more;

	for (uint32_t i = 0; i < a->nr_regions; i++)
		if (same_region(w, a->regions[i], start, end, phase))
			return a->regions[i];
	more = realloc(a->regions, (a->nr_regions + 1) * sizeof(*more));
	if (!more)
		return NULL;
	a->regions = more;
	more[a->nr_regions] = region_new(w, a, start, end, phase);
	return more[a->nr_regions] ? more[a->nr_regions++] : NULL;
}

void sim_region_leave(struct sim_region *r)
{
	struct sim_area_state *a = r ? r->area : NULL;

	for (uint32_t i = 0; a && r->weights && i < a->nr_regions; i++)
		if (a->regions[i] == r) {
			a->regions[i] = a->regions[--a->nr_regions];
			sim_region_free(r);
			return;
		}
}

void sim_regions_block(struct sim_world *w, struct sim_area_state *a, uint32_t b, double sign)
{
	for (uint32_t i = 0; i < a->nr_regions; i++) {
		struct sim_region *r = a->regions[i];

		if (b >= r->first_block && b < r->first_block + r->nr_blocks)
			enter_block(w, r, b, sign);
	}
}

void sim_regions_page_changed(
	struct sim_world *w, struct sim_area_state *a, uint64_t offset, uint16_t from, uint16_t to)
{
	const uint32_t b = sim_block_of(a, offset);

	(void)w;
	for (uint32_t i = 0; i < a->nr_regions; i++) {
		struct sim_region *r = a->regions[i];
		double p;

		if (offset < r->start || offset >= r->end)
			continue;
		p = popularity(r, offset);
		if (from & SIM_PTE_PRESENT)
			r->node_share[from & SIM_PTE_NODE] -= p;
		if (to & SIM_PTE_PRESENT)
			r->node_share[to & SIM_PTE_NODE] += p;
		if (wants_attention(r, from) != wants_attention(r, to))
			tree_add(r, b - r->first_block, wants_attention(r, to) ? p : -p);
		r->version++;
	}
}

/* The block in which the running sum passes `target`. */
static uint32_t tree_find(const struct sim_region *r, double target)
{
	uint32_t pos = 0, step = 1;

	while (step * 2 <= r->nr_blocks)
		step *= 2;
	for (; step; step /= 2)
		if (pos + step <= r->nr_blocks && r->tree[pos + step] <= target) {
			pos += step;
			target -= r->tree[pos];
		}
	return pos < r->nr_blocks ? pos : r->nr_blocks - 1;
}

/* Rounding can leave the search at a block where nothing is wanted: the next one that does. */
static uint32_t next_wanted(const struct sim_region *r, uint32_t i)
{
	for (uint32_t k = 0; k < r->nr_blocks; k++)
		if (r->block_wants[(i + k) % r->nr_blocks] > 0)
			return (i + k) % r->nr_blocks;
	return UINT32_MAX;
}

/* Where all pages are alike, a few draws mostly find one that wants attention; each such page is as
 * likely. */
static uint64_t draw_flat(
	struct sim_world *w, const struct sim_region *r, uint64_t start, uint64_t end)
{
	for (int tries = 0; tries < 16; tries++) {
		const uint64_t offset =
			start +
			sim_rng_below(&w->rng, (end - start) >> NB_PAGE_SHIFT) * NB_PAGE_SIZE;

		if (wants_attention(r, sim_pte_get(w, r->area, offset)))
			return offset;
	}
	return UINT64_MAX;
}

static bool is_flat(const struct sim_region *r)
{
	return r->kind != SIM_PHASE_ZIPF && r->kind != SIM_PHASE_HOTSET;
}

uint64_t sim_region_pick(struct sim_world *w, const struct sim_region *r)
{
	const uint32_t i = next_wanted(r, tree_find(r, sim_rng_unit(&w->rng) * r->wants));
	double target;
	uint64_t start, end, last = UINT64_MAX;

	if (i == UINT32_MAX)
		return UINT64_MAX;
	block_part(r, r->first_block + i, &start, &end);
	if (is_flat(r)) {
		last = draw_flat(w, r, start, end);
		if (last != UINT64_MAX)
			return last;
	}
	target = sim_rng_unit(&w->rng) * r->block_wants[i];
	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE) {
		if (!wants_attention(r, sim_pte_get(w, r->area, o)))
			continue;
		last = o;
		target -= popularity(r, o);
		if (target <= 0)
			break;
	}
	return last;
}

/* ---- the checker ---- */

static const double TOLERANCE = 1e-6;

static const char *check_block(
	const struct sim_world *w, const struct sim_region *r, uint32_t i, double *node_share)
{
	uint64_t start, end;
	double wants = 0;

	block_part(r, r->first_block + i, &start, &end);
	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE) {
		const uint16_t pte = sim_pte_get(w, r->area, o);
		const double p = popularity(r, o);

		if (pte & SIM_PTE_PRESENT)
			node_share[pte & SIM_PTE_NODE] += p;
		if (wants_attention(r, pte))
			wants += p;
	}
	return fabs(wants - r->block_wants[i]) <= TOLERANCE
		       ? NULL
		       : "a region's wish for attention disagrees with its pages";
}

static const char *check_region(const struct sim_world *w, const struct sim_region *r)
{
	double *share = calloc(w->nr_nodes, sizeof(*share));
	const char *wrong = share ? NULL : "no memory to check with";
	double wants = 0;

	for (uint32_t i = 0; i < r->nr_blocks && !wrong; i++) {
		wrong = check_block(w, r, i, share);
		wants += r->block_wants[i];
	}
	if (!wrong && fabs(wants - r->wants) > TOLERANCE)
		wrong = "a region's wish for attention is not the sum of its blocks'";
	for (unsigned int n = 0; n < w->nr_nodes && !wrong; n++)
		if (fabs(share[n] - r->node_share[n]) > TOLERANCE)
			wrong = "a region's share of a node disagrees with its pages";
	free(share);
	return wrong;
}

const char *sim_regions_check(const struct sim_world *w)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < w->nr_areas; i++)
		for (uint32_t k = 0; k < w->areas[i].nr_regions && !wrong; k++)
			wrong = check_region(w, w->areas[i].regions[k]);
	return wrong;
}
