/* SPDX-License-Identifier: MIT */
/*
 * lru: pages that no move can isolate. A kernel puts new small pages into a batch of the CPU that
 * made or moved them, and on the lists of its memory when the batch is full; until then they can't
 * be taken off those lists. So the last pages that a CPU touched first stay where they are for as
 * long as nothing follows them there. How many a batch holds is the system's (lru_batch). Huge
 * pages empty the batch at once, and khugepaged empties all each time it wakes.
 *
 * A page is known by its address, which is unique among areas and stacks. Nearly all pages are in
 * no batch: a count by hash answers for them.
 */
#include "world.h"

#include <errno.h>
#include <stdlib.h>

enum { BUCKETS = 1 << 14, MAX_BATCH = 31 };

static const double KHUGEPAGED_NS = 10e9; /* scan_sleep_millisecs: it empties all batches first */

struct sim_batch {
	uint32_t nr;
	uint64_t page[MAX_BATCH];
};

struct sim_lru {
	uint32_t size; /* pages of a batch; 0 = there are none */
	double next_drain_ns;
	uint16_t known[BUCKETS];
	struct sim_batch cpu[]; /* [cpu_ids] */
};

static uint16_t *bucket_of(struct sim_lru *lru, uint64_t page)
{
	return &lru->known[(page * UINT64_C(0x9e3779b97f4a7c15)) >> 50];
}

int sim_lru_init(struct sim_world *w)
{
	w->lru = calloc(1, sizeof(*w->lru) + w->model->topo.cpu_ids * sizeof(w->lru->cpu[0]));
	if (!w->lru)
		return -ENOMEM;
	w->lru->size = (uint32_t)nb_tune(&w->config, NB_TUNE_LRU_BATCH);
	return 0;
}

void sim_lru_free(struct sim_world *w)
{
	free(w->lru);
}

static void empty(struct sim_lru *lru, struct sim_batch *batch)
{
	while (batch->nr)
		--*bucket_of(lru, batch->page[--batch->nr]);
}

void sim_lru_add(struct sim_world *w, int32_t cpu, uint64_t va, uint64_t pages)
{
	struct sim_lru *lru = w->lru;
	const uint64_t end = (va >> NB_PAGE_SHIFT) + pages;
	struct sim_batch *batch;
	uint64_t left;

	if (!lru->size || cpu < 0)
		return;
	batch = &lru->cpu[cpu];
	left = (batch->nr + pages) % lru->size;
	if (batch->nr + pages >= lru->size)
		empty(lru, batch);
	while (batch->nr < left) {
		const uint64_t page = end - left + batch->nr;

		batch->page[batch->nr++] = page;
		++*bucket_of(lru, page);
	}
}

void sim_lru_drain(struct sim_world *w, int32_t cpu)
{
	if (cpu >= 0)
		empty(w->lru, &w->lru->cpu[cpu]);
}

static bool has_huge_pages(const struct sim_world *w)
{
	for (uint32_t a = 0; a < w->nr_areas; a++)
		if (w->areas[a].load->thp == SIM_THP_ALWAYS)
			return true;
	return false;
}

void sim_lru_tick(struct sim_world *w)
{
	if (!w->lru->size || w->now_ns < w->lru->next_drain_ns)
		return;
	w->lru->next_drain_ns = w->now_ns + KHUGEPAGED_NS;
	for (uint32_t c = 0; has_huge_pages(w) && c < w->model->topo.cpu_ids; c++)
		sim_lru_drain(w, (int32_t)c);
}

bool sim_lru_holds(const struct sim_world *w, uint64_t va)
{
	const uint64_t page = va >> NB_PAGE_SHIFT;

	if (!*bucket_of(w->lru, page))
		return false;
	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		for (uint32_t i = 0; i < w->lru->cpu[c].nr; i++)
			if (w->lru->cpu[c].page[i] == page)
				return true;
	return false;
}
