/* SPDX-License-Identifier: MIT */
/*
 * pages: the page tables of the simulated machine. A block is 2 MiB of an area. While its pages are
 * alike it is 12 bytes; where they differ it has 512 entries of 2 bytes in a chunk, and goes back
 * as soon as they are alike again.
 */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sim_area_init(struct sim_world *w, struct sim_area_state *a, const struct sim_area *load,
	uint64_t *next_va)
{
	memset(a, 0, sizeof(*a));
	a->load = load;
	a->bytes = load->bytes;
	a->va = *next_va + load->offset;
	a->nr_blocks = (uint32_t)((a->va + a->bytes - 1) / NB_HUGE_SIZE - a->va / NB_HUGE_SIZE + 1);
	*next_va = (a->va + a->bytes + 2 * (uint64_t)NB_HUGE_SIZE) & ~(uint64_t)(NB_HUGE_SIZE - 1);
	a->blocks = calloc(a->nr_blocks, sizeof(*a->blocks));
	a->node_pages = calloc(w->nr_nodes, sizeof(*a->node_pages));
	return a->blocks && a->node_pages ? 0 : -ENOMEM;
}

void sim_area_free(struct sim_world *w, struct sim_area_state *a)
{
	(void)w;
	for (uint32_t i = 0; i < a->nr_regions; i++)
		sim_region_free(a->regions[i]);
	free(a->regions);
	free(a->blocks);
	free(a->node_pages);
	memset(a, 0, sizeof(*a));
}

bool sim_block_whole(const struct sim_area_state *a, uint32_t b)
{
	return sim_block_pages(a, b) == NB_HUGE_PAGES;
}

/* ---- chunks of entries ---- */

/* A free chunk holds the number of the next one in its first two entries. */
static uint32_t chunk_link(const uint16_t *chunk)
{
	return (uint32_t)chunk[0] << 16 | chunk[1];
}

static int chunk_get(struct sim_world *w, uint32_t *out)
{
	if (w->free_chunk) {
		*out = w->free_chunk;
		w->free_chunk = chunk_link(w->chunks[*out]);
		return 0;
	}
	if (w->nr_chunks + 1 >= w->max_chunks) {
		const uint32_t more = w->max_chunks ? w->max_chunks + w->max_chunks / 2 : 64;
		void *p = realloc(w->chunks, more * sizeof(*w->chunks));

		if (!p)
			return -ENOMEM;
		w->chunks = p;
		w->max_chunks = more;
	}
	*out = ++w->nr_chunks;
	return 0;
}

static void chunk_put(struct sim_world *w, uint32_t c)
{
	w->chunks[c][0] = (uint16_t)(w->free_chunk >> 16);
	w->chunks[c][1] = (uint16_t)w->free_chunk;
	w->free_chunk = c;
}

static uint16_t uniform_pte(const struct sim_block *b)
{
	if (!(b->flags & SIM_B_PRESENT))
		return 0;
	return (uint16_t)(SIM_PTE_PRESENT | (b->flags & SIM_B_ARMED ? SIM_PTE_ARMED : 0) | b->node);
}

int sim_block_expand(struct sim_world *w, struct sim_area_state *a, uint32_t b)
{
	struct sim_block *block = &a->blocks[b];
	const uint16_t pte = uniform_pte(block);
	uint64_t start, end;
	uint32_t chunk, first;
	int err;

	if (block->flags & SIM_B_PTES)
		return 0;
	err = chunk_get(w, &chunk);
	if (err)
		return err;
	sim_block_range(a, b, &start, &end);
	first = sim_pte_index(a, start);
	memset(w->chunks[chunk], 0, sizeof(*w->chunks));
	for (uint32_t i = 0; i < (end - start) >> NB_PAGE_SHIFT; i++)
		w->chunks[chunk][first + i] = pte;
	block->ptes = chunk;
	block->flags = (uint16_t)(SIM_B_PTES | (block->flags & SIM_B_BUSY));
	return 0;
}

void sim_block_contract(struct sim_world *w, struct sim_area_state *a, uint32_t b)
{
	struct sim_block *block = &a->blocks[b];
	const uint32_t pages = sim_block_pages(a, b);
	uint64_t start, end;
	const uint16_t *pte;

	if (!(block->flags & SIM_B_PTES))
		return;
	if ((block->present && block->present != pages) || (block->armed && block->armed != pages))
		return;
	sim_block_range(a, b, &start, &end);
	pte = &w->chunks[block->ptes][sim_pte_index(a, start)];
	for (uint32_t i = 1; i < pages; i++)
		if (pte[i] != pte[0])
			return;
	block->flags = (uint16_t)((block->flags & SIM_B_BUSY) |
				  (pte[0] & SIM_PTE_PRESENT ? SIM_B_PRESENT : 0) |
				  (pte[0] & SIM_PTE_ARMED ? SIM_B_ARMED : 0));
	block->node = pte[0] & SIM_PTE_NODE;
	chunk_put(w, block->ptes);
	block->ptes = 0;
}

/* ---- entries ---- */

uint16_t sim_pte_get(const struct sim_world *w, const struct sim_area_state *a, uint64_t offset)
{
	const struct sim_block *block = &a->blocks[sim_block_of(a, offset)];

	if (block->flags & SIM_B_PTES)
		return w->chunks[block->ptes][sim_pte_index(a, offset)];
	return uniform_pte(block);
}

void sim_node_account(struct sim_world *w, int node, int64_t pages)
{
	bool low;
	const double floor = w->model->watermark_high * (double)w->node_capacity[node];

	/* Nothing is nearly full that holds nothing. */
	if (!w->node_capacity[node])
		return;
	w->node_used[node] = (uint64_t)((int64_t)w->node_used[node] + pages);
	assert(w->node_used[node] <= w->node_capacity[node]);
	low = (double)(w->node_capacity[node] - w->node_used[node]) <= floor;
	if (low == w->node_low[node])
		return;
	w->node_low[node] = low;
	nb_node_watermark(w->engine, node, low, (uint64_t)w->now_ns);
}

static void account(
	struct sim_world *w, struct sim_area_state *a, uint16_t from, uint16_t to, int64_t pages)
{
	if (from & SIM_PTE_PRESENT) {
		a->node_pages[from & SIM_PTE_NODE] -= (uint64_t)pages;
		sim_node_account(w, from & SIM_PTE_NODE, -pages);
	}
	if (to & SIM_PTE_PRESENT) {
		a->node_pages[to & SIM_PTE_NODE] += (uint64_t)pages;
		sim_node_account(w, to & SIM_PTE_NODE, pages);
	}
}

int sim_pte_set(struct sim_world *w, struct sim_area_state *a, uint64_t offset, uint16_t pte)
{
	const uint32_t b = sim_block_of(a, offset);
	struct sim_block *block = &a->blocks[b];
	uint16_t *slot;
	uint16_t old;
	int err = sim_block_expand(w, a, b);

	if (err)
		return err;
	slot = &w->chunks[block->ptes][sim_pte_index(a, offset)];
	old = *slot;
	*slot = pte;
	block->present =
		(uint16_t)(block->present + !!(pte & SIM_PTE_PRESENT) - !!(old & SIM_PTE_PRESENT));
	block->armed = (uint16_t)(block->armed + !!(pte & SIM_PTE_ARMED) - !!(old & SIM_PTE_ARMED));
	if ((old ^ pte) & (SIM_PTE_PRESENT | SIM_PTE_NODE))
		account(w, a, old, pte, 1);
	a->gen++;
	if (a->nr_regions)
		sim_regions_page_changed(w, a, offset, old, pte);
	return 0;
}

/* Take the pages of a block away from the nodes they are on. */
static void unaccount_block(struct sim_world *w, struct sim_area_state *a, uint32_t b)
{
	struct sim_block *block = &a->blocks[b];

	if (!block->present)
		return;
	if (!(block->flags & SIM_B_PTES)) {
		account(w, a, uniform_pte(block), 0, block->present);
		return;
	}
	for (uint32_t i = 0; i < NB_HUGE_PAGES; i++)
		if (w->chunks[block->ptes][i] & SIM_PTE_PRESENT)
			account(w, a, w->chunks[block->ptes][i], 0, 1);
}

void sim_block_set(
	struct sim_world *w, struct sim_area_state *a, uint32_t b, int node, uint16_t flags)
{
	struct sim_block *block = &a->blocks[b];
	const uint32_t pages = sim_block_pages(a, b);

	if (a->nr_regions)
		sim_regions_block(w, a, b, -1);
	if (node < 0 || block->flags & SIM_B_PTES || !(block->flags & SIM_B_PRESENT) ||
		block->node != node) {
		unaccount_block(w, a, b);
		if (node >= 0)
			account(w, a, 0, (uint16_t)(SIM_PTE_PRESENT | node), pages);
	}
	if (block->flags & SIM_B_PTES)
		chunk_put(w, block->ptes);
	*block = (struct sim_block){.flags = (uint16_t)(block->flags & SIM_B_BUSY)};
	if (node >= 0) {
		block->node = (uint16_t)node;
		block->flags |= (uint16_t)(SIM_B_PRESENT | flags);
		block->present = (uint16_t)pages;
		block->armed = (uint16_t)(flags & SIM_B_ARMED ? pages : 0);
	}
	a->gen++;
	if (a->nr_regions)
		sim_regions_block(w, a, b, 1);
}

void sim_block_split(struct sim_world *w, struct sim_area_state *a, uint32_t b, bool keep_armed)
{
	sim_block_set(w, a, b, a->blocks[b].node,
		keep_armed && a->blocks[b].flags & SIM_B_ARMED ? SIM_B_ARMED : 0);
}

void sim_pages_drop(struct sim_world *w, struct sim_area_state *a)
{
	for (uint32_t b = 0; b < a->nr_blocks; b++)
		if (a->blocks[b].present)
			sim_block_set(w, a, b, -1, 0);
}

/* ---- questions ---- */

/* False: more nodes than a mix holds. */
static bool mix_add(struct sim_mix *mix, int node, float share)
{
	for (unsigned int k = 0; k < mix->nr; k++)
		if (mix->node[k] == node) {
			mix->share[k] += share;
			return true;
		}
	if (mix->nr == SIM_MAX_MIX)
		return false;
	mix->node[mix->nr] = (uint16_t)node;
	mix->share[mix->nr++] = share;
	return true;
}

/* Entries of [first, last], run by run, for neighbours are mostly on one node; the share that found
 * no room in the mix. */
static float mix_entries(const uint16_t *pte, uint32_t first, uint32_t last, float each,
	int absent_node, struct sim_mix *mix)
{
	float lost = 0;

	for (uint32_t i = first, run; i <= last; i += run) {
		const uint16_t key = pte[i] & (SIM_PTE_PRESENT | SIM_PTE_NODE);

		run = 1;
		while (i + run <= last && (pte[i + run] & (SIM_PTE_PRESENT | SIM_PTE_NODE)) == key)
			run++;
		if (!mix_add(mix, key & SIM_PTE_PRESENT ? key & SIM_PTE_NODE : absent_node,
			    each * (float)run))
			lost += each * (float)run;
	}
	return lost;
}

static void mix_block(const struct sim_world *w, const struct sim_area_state *a, uint64_t start,
	uint64_t end, int absent_node, struct sim_mix *mix)
{
	const uint16_t *pte = w->chunks[a->blocks[sim_block_of(a, start)].ptes];
	const uint32_t first = sim_pte_index(a, start), last = sim_pte_index(a, end - 1);
	const float each = 1 / (float)(last - first + 1);
	/* Where not all nodes fit in, each node's threads begin at another page, and those that do
	 * stand for the rest. */
	const uint32_t from = w->nr_nodes > SIM_MAX_MIX
				      ? first + (uint32_t)absent_node * 37 % (last - first + 1)
				      : first;
	float lost = mix_entries(pte, from, last, each, absent_node, mix);

	if (from > first)
		lost += mix_entries(pte, first, from - 1, each, absent_node, mix);
	for (unsigned int k = 0; lost > 0 && k < mix->nr; k++)
		mix->share[k] /= 1 - lost;
}

/* Whole blocks are asked for over and over while nothing changes: where their answer is kept. */
static struct sim_mix_memo *memo_of(
	const struct sim_world *w, const struct sim_area_state *a, uint32_t b)
{
	const uint64_t where = (a->va >> NB_HUGE_SHIFT) + b;

	return &w->memo[where % SIM_MIX_MEMOS];
}

void sim_block_mix(const struct sim_world *w, const struct sim_area_state *a, uint64_t start,
	uint64_t end, int absent_node, struct sim_mix *mix)
{
	const uint32_t b = sim_block_of(a, start);
	const struct sim_block *block = &a->blocks[b];
	const int node = sim_block_node(a, b, absent_node);
	struct sim_mix_memo *memo;
	uint64_t block_start, block_end;

	mix->nr = 0;
	if (node >= 0) {
		mix_add(mix, node, 1);
		return;
	}
	sim_block_range(a, b, &block_start, &block_end);
	if (start != block_start || end != block_end) {
		mix_block(w, a, start, end, absent_node, mix);
		return;
	}
	/* Where no page is absent, and all nodes fit in, it is the same for everybody. */
	if (block->present == sim_block_pages(a, b) && w->nr_nodes <= SIM_MAX_MIX)
		absent_node = -1;
	memo = memo_of(w, a, b);
	if (memo->area != a || memo->block != b || memo->gen != a->gen ||
		memo->absent_node != absent_node) {
		*memo = (struct sim_mix_memo){
			.area = a, .block = b, .gen = a->gen, .absent_node = absent_node};
		mix_block(w, a, start, end, absent_node, &memo->mix);
	}
	*mix = memo->mix;
}

static uint64_t node_free(const struct sim_world *w, unsigned int node)
{
	return w->node_capacity[node] - w->node_used[node];
}

int sim_alloc_node(const struct sim_world *w, int wanted, uint64_t pages)
{
	int best = -1;

	if (node_free(w, (unsigned int)wanted) >= pages && !w->node_low[wanted])
		return wanted;
	/* As a zonelist: nearest first, those above their watermark before those below. */
	for (int pass = 0; pass < 2 && best < 0; pass++) {
		for (unsigned int n = 0; n < w->nr_nodes; n++) {
			if (node_free(w, n) < pages || (pass == 0 && w->node_low[n]))
				continue;
			if (best < 0 || nb_distance(&w->model->topo, (unsigned int)wanted, n) <
						nb_distance(&w->model->topo, (unsigned int)wanted,
							(unsigned int)best))
				best = (int)n;
		}
	}
	return best;
}

/* The node of the slowest tier that has room, the emptiest among several; -1 when memory is out. */
static int slowest_node(const struct sim_world *w, uint64_t pages)
{
	const struct nb_node *nodes = w->model->topo.nodes;
	int best = -1;

	for (unsigned int n = 0; n < w->nr_nodes; n++) {
		if (node_free(w, n) < pages)
			continue;
		if (best < 0 || nodes[n].tier > nodes[best].tier ||
			(nodes[n].tier == nodes[best].tier &&
				node_free(w, n) > node_free(w, (unsigned int)best)))
			best = (int)n;
	}
	return best;
}

static bool has_lower_tier(const struct sim_world *w)
{
	for (unsigned int n = 0; n < w->nr_nodes; n++)
		if (w->model->topo.nodes[n].tier > 0 && w->node_capacity[n])
			return true;
	return false;
}

int sim_area_preload(struct sim_world *w, struct sim_area_state *a)
{
	for (uint32_t b = 0; has_lower_tier(w) && b < a->nr_blocks; b++) {
		const bool huge = a->load->thp == SIM_THP_ALWAYS && sim_block_whole(a, b);
		const int node = slowest_node(w, sim_block_pages(a, b));

		if (node < 0)
			return -ENOSPC;
		sim_block_set(w, a, b, node, huge ? SIM_B_HUGE : 0);
	}
	return 0;
}

static const char *check_alike(const struct sim_area_state *a, uint32_t b)
{
	const struct sim_block *block = &a->blocks[b];
	const bool present = block->flags & SIM_B_PRESENT, armed = block->flags & SIM_B_ARMED;
	const uint32_t pages = sim_block_pages(a, b);

	if (block->present != (present ? pages : 0))
		return "a block's present pages disagree with its flags";
	if (block->armed != (armed ? pages : 0) || (armed && !present))
		return "a block's armed pages disagree with its flags";
	if (block->flags & SIM_B_HUGE && (!present || pages != NB_HUGE_PAGES))
		return "a huge page that is not whole";
	return NULL;
}

static const char *check_entries(
	const struct sim_world *w, const struct sim_block *block, uint64_t *node_pages)
{
	uint32_t present = 0, armed = 0;

	if (block->flags & SIM_B_HUGE)
		return "a huge page whose entries differ";
	for (uint32_t i = 0; i < NB_HUGE_PAGES; i++) {
		const uint16_t pte = w->chunks[block->ptes][i];

		if (pte & SIM_PTE_ARMED && !(pte & SIM_PTE_PRESENT))
			return "an absent page is armed";
		present += !!(pte & SIM_PTE_PRESENT);
		armed += !!(pte & SIM_PTE_ARMED);
		if (pte & SIM_PTE_PRESENT)
			node_pages[pte & SIM_PTE_NODE]++;
	}
	if (present != block->present || armed != block->armed)
		return "a block's counts disagree with its entries";
	return NULL;
}

/* Adds the area's pages to all[]. own[]: scratch. */
static const char *check_area(
	const struct sim_world *w, const struct sim_area_state *a, uint64_t *own, uint64_t *all)
{
	const char *wrong = NULL;

	memset(own, 0, w->nr_nodes * sizeof(*own));
	for (uint32_t b = 0; b < a->nr_blocks && !wrong; b++) {
		const struct sim_block *block = &a->blocks[b];

		if (block->flags & SIM_B_PTES) {
			wrong = check_entries(w, block, own);
			continue;
		}
		wrong = check_alike(a, b);
		own[block->node] += block->present;
	}
	for (unsigned int n = 0; n < w->nr_nodes && !wrong; n++) {
		if (own[n] != a->node_pages[n])
			wrong = "an area's pages disagree with its account";
		all[n] += own[n];
	}
	return wrong;
}

const char *sim_pages_check(const struct sim_world *w)
{
	uint64_t *pages = calloc(2 * (size_t)w->nr_nodes, sizeof(*pages));
	uint64_t *own = pages + w->nr_nodes;
	const char *wrong = pages ? NULL : "no memory to check with";

	for (uint32_t i = 0; !wrong && i < w->nr_areas; i++)
		wrong = check_area(w, &w->areas[i], own, pages);
	for (unsigned int n = 0; !wrong && n < w->nr_nodes; n++) {
		if (pages[n] + w->node_fill[n] != w->node_used[n] ||
			w->node_used[n] > w->node_capacity[n])
			wrong = "a node's pages disagree with its account";
		if (pages[n] && !w->model->topo.nodes[n].mem_bytes)
			wrong = "pages on a node without memory";
	}
	free(pages);
	return wrong;
}
