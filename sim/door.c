/* SPDX-License-Identifier: MIT */
/*
 * door: the simulated machine's side of engine/machine.h.
 */
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *door_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return calloc(1, bytes);
}

static void door_free(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(p);
}

static uint64_t door_random(void *ctx)
{
	struct sim_world *w = ctx;

	return sim_rng_next(&w->rng);
}

struct sim_area_state *sim_area_at(struct sim_world *w, uint64_t va)
{
	uint32_t low = 0, high = w->nr_areas;

	/* Areas are laid out in ascending order of address. */
	while (low < high) {
		const uint32_t mid = (low + high) / 2;

		if (w->areas[mid].va + w->areas[mid].bytes <= va)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->nr_areas && w->areas[low].va <= va ? &w->areas[low] : NULL;
}

/* ---- arming ---- */

/* Where all present pages of the block are, or -1 when they are on several nodes or absent. */
static int common_node(const struct sim_world *w, const struct sim_area_state *a, uint32_t b)
{
	const struct sim_block *block = &a->blocks[b];
	int node = -1;

	if (!(block->flags & SIM_B_PTES))
		return block->flags & SIM_B_PRESENT ? block->node : -1;
	for (uint32_t i = 0; i < NB_HUGE_PAGES; i++) {
		const uint16_t pte = w->chunks[block->ptes][i];

		if (!(pte & SIM_PTE_PRESENT))
			continue;
		if (node >= 0 && node != (pte & SIM_PTE_NODE))
			return -1;
		node = pte & SIM_PTE_NODE;
	}
	return node;
}

static uint32_t arm_ptes(struct sim_world *w, struct sim_area_state *a, uint32_t b, uint64_t start,
	uint64_t end, int spare_node)
{
	uint32_t armed = 0;

	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE) {
		const uint16_t pte = sim_pte_get(w, a, o);

		if (!(pte & SIM_PTE_PRESENT) || pte & SIM_PTE_ARMED ||
			(pte & SIM_PTE_NODE) == spare_node)
			continue;
		if (sim_pte_set(w, a, o, (uint16_t)(pte | SIM_PTE_ARMED))) {
			sim_fail(w, -ENOMEM, "no memory for page tables");
			break;
		}
		armed++;
	}
	sim_block_contract(w, a, b);
	return armed;
}

/* Arm what is present of the block within [start, end). */
static void arm_block(struct sim_world *w, struct sim_area_state *a, uint32_t b, uint64_t start,
	uint64_t end, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	struct sim_block *block = &a->blocks[b];
	uint64_t block_start, block_end;
	const bool alike = !(block->flags & SIM_B_PTES);
	bool all;

	if (!block->present)
		return;
	sim_block_range(a, b, &block_start, &block_end);
	all = start == block_start && end == block_end;
	if (block->flags & SIM_B_HUGE) {
		out->present += NB_HUGE_PAGES;
		out->huge_present++;
		if (block->flags & SIM_B_ARMED)
			return;
		out->updated += NB_HUGE_PAGES;
		out->huge_updated++;
		sim_block_set(w, a, b, block->node, SIM_B_HUGE | SIM_B_ARMED);
		return;
	}
	if (alike && all) {
		out->present += block->present;
		if (block->flags & SIM_B_ARMED || block->node == r->spare_node)
			return;
		out->updated += block->present;
		sim_block_set(w, a, b, block->node, SIM_B_ARMED);
	} else {
		for (uint64_t o = start; o < end; o += NB_PAGE_SIZE)
			out->present += !!(sim_pte_get(w, a, o) & SIM_PTE_PRESENT);
		out->updated += arm_ptes(w, a, b, start, end, r->spare_node);
	}
	if (r->pmd_batch && all && common_node(w, a, b) >= 0)
		block->flags |= SIM_B_PMD;
}

static double arm_cost(const struct sim_world *w, uint32_t mm, const struct nb_arm_result *r)
{
	const double entries = (double)(r->updated - r->huge_updated * (NB_HUGE_PAGES - 1));
	const double left = (double)(r->present - r->updated -
				     (r->huge_present - r->huge_updated) * (NB_HUGE_PAGES - 1));
	double cost = entries * w->model->pte_update + left * w->model->scan_page;

	if (r->updated || !nb_has(&w->config, NB_MECH_TLB_SKIP_UNCHANGED))
		cost += sim_flush_cost(w, &w->processes[mm - 1]);
	return cost;
}

static int door_arm(void *ctx, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	struct sim_world *w = ctx;
	struct sim_area_state *a = sim_area_at(w, r->start);
	uint64_t at, end;
	double cost;

	memset(out, 0, sizeof(*out));
	out->end = r->end;
	if (!a)
		return sim_backdrop_arm(w, r, out);
	if (r->single_mapped && a->mappings > 1)
		return 0;
	at = r->start - a->va;
	end = r->end - a->va < a->bytes ? r->end - a->va : a->bytes;
	while (at < end) {
		const uint32_t b = sim_block_of(a, at);
		uint64_t block_start, block_end;

		sim_block_range(a, b, &block_start, &block_end);
		if (block_end > end)
			block_end = end;
		arm_block(w, a, b, at, block_end, r, out);
		at = block_end;
		if (r->max_present && out->present >= r->max_present)
			break;
	}
	out->end = a->va + at;
	cost = arm_cost(w, r->mm, out);
	out->cost_ns = (uint64_t)cost;
	w->kernel_ns += cost;
	return 0;
}

/* ---- moving, splitting ---- */

static int door_move(void *ctx, const struct nb_move_request *r)
{
	struct sim_world *w = ctx;

	if (w->refuse_moves)
		return -EAGAIN;
	/* Executed by the fault that asked, once the decision is made. */
	w->move = *r;
	w->move_wanted = true;
	return 0;
}

static int door_split(void *ctx, uint32_t mm, uint64_t addr, bool keep_armed)
{
	struct sim_world *w = ctx;
	struct sim_area_state *a = sim_area_at(w, addr);
	uint32_t b;

	(void)mm;
	if (!a)
		return -EFAULT;
	b = sim_block_of(a, addr - a->va);
	if (!(a->blocks[b].flags & SIM_B_HUGE))
		return -EINVAL;
	sim_block_split(w, a, b, keep_armed);
	w->was_split = true;
	return 0;
}

static int door_run_on(void *ctx, uint32_t task, int node)
{
	struct sim_world *w = ctx;

	return sim_sched_move(w, &w->threads[task - 1], node);
}

static int door_swap(void *ctx, uint32_t task, uint32_t other)
{
	struct sim_world *w = ctx;

	return sim_sched_swap(w, &w->threads[task - 1], &w->threads[other - 1]);
}

static void door_prefer(void *ctx, uint32_t task, int node)
{
	struct sim_world *w = ctx;

	w->threads[task - 1].preferred = (int16_t)node;
}

static uint64_t door_rss(void *ctx, uint32_t mm)
{
	struct sim_world *w = ctx;
	const struct sim_process *p = &w->processes[mm - 1];
	uint64_t pages = 0;

	for (uint32_t i = 0; i < p->load->nr_areas; i++)
		for (unsigned int n = 0; p->map[i].mapped && n < w->nr_nodes; n++)
			pages += p->map[i].area->node_pages[n];
	return pages;
}

static void door_trace(void *ctx, const struct nb_event *e)
{
	struct sim_world *w = ctx;

	w->options->trace(w->options->trace_ctx, e);
}

struct nb_engine *sim_door_open(struct sim_world *w)
{
	const struct nb_machine machine = {
		.ctx = w,
		.alloc = door_alloc,
		.free = door_free,
		.random = door_random,
		.arm = door_arm,
		.move = door_move,
		.split = door_split,
		.run_on = door_run_on,
		.swap = door_swap,
		.prefer = door_prefer,
		.rss = door_rss,
		.trace = w->options->trace ? door_trace : NULL,
	};

	return nb_engine_new(&machine, &w->model->topo, &w->config);
}
