/* SPDX-License-Identifier: MIT */
/*
 * placed: static placements, as a person with numactl and patience would make them.
 */
#include "world.h"

#include <math.h>

static bool is_candidate(const struct sim_world *w, unsigned int node)
{
	const struct nb_node *n = &w->model->topo.nodes[node];

	return w->node_capacity[node] > 0 && n->tier == 0;
}

static bool process_uses(const struct sim_world *w, const struct sim_process_load *p, int node)
{
	for (uint32_t i = 0; i < p->nr_threads; i++)
		if (w->threads[p->first_thread + i].pinned_node == node)
			return true;
	return false;
}

/* A node without memory stands for the nearest that has some. */
static int with_memory(const struct sim_world *w, int node)
{
	return w->node_capacity[node] > 0
		       ? node
		       : nb_topology_nearest_memory(&w->model->topo, (unsigned int)node);
}

static bool takes_part(
	const struct sim_world *w, const struct sim_process_load *p, unsigned int node)
{
	const struct sim_placement *placement = w->options->placement;

	if (placement->over_all || !placement->thread_node)
		return is_candidate(w, node);
	return w->node_capacity[node] > 0 && process_uses(w, p, (int)node);
}

static double weight_of(const struct sim_world *w, unsigned int node)
{
	return w->options->placement->by_bandwidth ? w->model->node_bandwidth[node] : 1;
}

/*
 * The n-th piece of an interleaved area. Equal weights: in turn. Unequal ones: the golden-section
 * sequence over the cumulated weights, which puts neighbours on different nodes and is as even as
 * it gets.
 */
static int interleaved(const struct sim_world *w, const struct sim_process_load *p, uint64_t n)
{
	double total = 0, at;
	int last = -1;
	uint64_t members = 0;

	for (unsigned int k = 0; k < w->nr_nodes; k++)
		if (takes_part(w, p, k)) {
			total += weight_of(w, k);
			members++;
		}
	if (!members)
		return -1;
	at = w->options->placement->by_bandwidth ? fmod((double)n * 0.6180339887498949, 1) * total
						 : (double)(n % members) + 0.5;
	for (unsigned int k = 0; k < w->nr_nodes; k++) {
		if (!takes_part(w, p, k))
			continue;
		last = (int)k;
		at -= weight_of(w, k);
		if (at < 0)
			break;
	}
	return last;
}

/* The thread whose own slice holds the page, or who is said to use it most; -1: nobody. */
static int64_t owner_of(const struct sim_world *w, const struct sim_process_load *p,
	const struct sim_area_state *a, uint64_t offset)
{
	if (a->load->owners) {
		const uint32_t owner = a->load->owners[sim_block_of(a, offset)];

		return owner < p->nr_threads ? (int64_t)p->first_thread + owner : -1;
	}
	for (uint32_t i = 0; i < p->nr_threads; i++) {
		const struct sim_thread_load *t = w->threads[p->first_thread + i].load;

		for (uint32_t k = 0; k < t->nr_phases; k++) {
			const struct sim_phase *phase = &t->phases[k];
			const bool touches = phase->kind <= SIM_PHASE_HOTSET;

			if (!touches || phase->main_only || &p->areas[phase->area] != a->load)
				continue;
			if (phase->slice == SIM_SLICE_PART && offset >= phase->from &&
				offset < phase->to)
				return p->first_thread + i;
			if (phase->slice == SIM_SLICE_OWN)
				return p->first_thread +
				       (uint32_t)((offset >> NB_PAGE_SHIFT) * p->nr_threads /
						  (a->bytes >> NB_PAGE_SHIFT));
		}
	}
	return -1;
}

int sim_placed_node(const struct sim_world *w, const struct sim_thread *t, uint64_t offset)
{
	const struct sim_placement *placement = w->options->placement;
	const struct sim_process_load *p = t->proc->load;
	const uint64_t va = t->area->va + offset;
	int node;

	if (placement->pages == SIM_PAGES_OWNER && placement->thread_node) {
		const int64_t owner = owner_of(w, p, t->area, offset);

		if (owner >= 0)
			return with_memory(w, w->threads[owner].pinned_node);
	}
	node = interleaved(w, p, placement->by_page ? va >> NB_PAGE_SHIFT : va >> NB_HUGE_SHIFT);
	return node >= 0 ? node : with_memory(w, t->node);
}
