/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64 };

/* Copies never take everything: the program's own accesses are in the same queues. */
static const double LEAST_SHARE = 0.1;

void sim_memory_free(struct sim_memory *s)
{
	free(s->flow);
	free(s->capacity);
	free(s->weight);
	free(s->demand);
	free(s->level);
	free(s->used);
	free(s->load);
	free(s->left);
	free(s->frozen);
	memset(s, 0, sizeof(*s));
}

int sim_memory_init(struct sim_memory *s, const struct sim_model *model)
{
	const unsigned int n = model->topo.nr_nodes;
	const size_t flows = (size_t)n * n;
	const size_t resources = n + model->nr_links;

	memset(s, 0, sizeof(*s));
	s->model = model;
	s->nr_nodes = n;
	s->nr_resources = (unsigned int)resources;
	s->flow = calloc(flows, sizeof(struct sim_flow));
	s->capacity = calloc(resources, sizeof(double));
	s->used = calloc(resources, sizeof(double));
	s->load = calloc(resources, sizeof(double));
	s->left = calloc(resources, sizeof(double));
	s->weight = calloc(flows, sizeof(double));
	s->demand = calloc(flows, sizeof(double));
	s->level = calloc(flows, sizeof(double));
	s->frozen = calloc(flows, 1);
	if (!s->flow || !s->capacity || !s->used || !s->load || !s->left || !s->weight ||
		!s->demand || !s->level || !s->frozen) {
		sim_memory_free(s);
		return -ENOMEM;
	}
	for (size_t f = 0; f < flows; f++) {
		const struct sim_route *route = &model->route[f];

		s->weight[f] = model->lines_in_flight * LINE_BYTES * 1e9 / model->latency_ns[f];
		s->flow[f].resource[s->flow[f].nr++] = (uint16_t)(f % n);
		for (unsigned int k = 0; k < route->nr; k++)
			s->flow[f].resource[s->flow[f].nr++] = (uint16_t)(n + route->link[k]);
	}
	sim_memory_reset_capacity(s);
	sim_memory_solve(s);
	return 0;
}

static double full_capacity(const struct sim_memory *s, unsigned int resource)
{
	return resource < s->nr_nodes ? s->model->node_bandwidth[resource]
				      : s->model->links[resource - s->nr_nodes].bandwidth;
}

void sim_memory_reset_capacity(struct sim_memory *s)
{
	for (unsigned int r = 0; r < s->nr_resources; r++)
		s->capacity[r] = full_capacity(s, r);
}

static void take(struct sim_memory *s, unsigned int resource, double bytes_per_s)
{
	const double floor = LEAST_SHARE * full_capacity(s, resource);

	s->capacity[resource] -= bytes_per_s;
	if (s->capacity[resource] < floor)
		s->capacity[resource] = floor;
}

void sim_memory_take_copy(
	struct sim_memory *s, unsigned int from, unsigned int to, double bytes_per_s)
{
	const struct sim_route *route = &s->model->route[from * s->nr_nodes + to];

	take(s, from, bytes_per_s);
	take(s, to, bytes_per_s);
	for (unsigned int k = 0; k < route->nr; k++)
		take(s, s->nr_nodes + route->link[k], bytes_per_s);
}

/* The level at which the tightest resource is full, and which one; more than 1 when none is. */
static double tightest(const struct sim_memory *s, unsigned int *which)
{
	double best = 2;

	for (unsigned int r = 0; r < s->nr_resources; r++) {
		const double level = s->load[r] > 0 ? s->left[r] / s->load[r] : 2;

		if (level < best) {
			best = level;
			*which = r;
		}
	}
	return best;
}

static bool flow_uses(const struct sim_memory *s, size_t f, unsigned int resource)
{
	for (unsigned int k = 0; k < s->flow[f].nr; k++)
		if (s->flow[f].resource[k] == resource)
			return true;
	return false;
}

static void freeze(struct sim_memory *s, size_t f, double level)
{
	const double wanted = s->demand[f] * s->weight[f];

	s->frozen[f] = 1;
	s->level[f] = level;
	for (unsigned int k = 0; k < s->flow[f].nr; k++) {
		const unsigned int r = s->flow[f].resource[k];

		s->load[r] -= wanted;
		s->left[r] -= wanted * level;
		s->used[r] += wanted * level;
		/* Rounding must not leave a sliver of load on a resource with nobody left. */
		if (s->load[r] < 1)
			s->load[r] = 0;
		if (s->left[r] < 0)
			s->left[r] = 0;
	}
}

static void start_filling(struct sim_memory *s, size_t flows)
{
	memcpy(s->left, s->capacity, s->nr_resources * sizeof(double));
	memset(s->load, 0, s->nr_resources * sizeof(double));
	memset(s->used, 0, s->nr_resources * sizeof(double));
	for (size_t f = 0; f < flows; f++) {
		s->frozen[f] = s->demand[f] <= 0;
		s->level[f] = 1;
		if (s->frozen[f])
			continue;
		for (unsigned int k = 0; k < s->flow[f].nr; k++)
			s->load[s->flow[f].resource[k]] += s->demand[f] * s->weight[f];
	}
}

/*
 * A flow that nobody uses now still needs a rate, for whoever comes next: what a newcomer would get
 * if those who are there gave way no further than its own weight demands.
 */
static void price_idle_flows(struct sim_memory *s, size_t flows)
{
	for (size_t f = 0; f < flows; f++) {
		double level = 1;

		if (s->demand[f] > 0)
			continue;
		for (unsigned int k = 0; k < s->flow[f].nr; k++) {
			const unsigned int r = s->flow[f].resource[k];
			const double wanted = s->used[r] + s->weight[f];
			const double share = s->capacity[r] / wanted;

			if (share < level)
				level = share;
		}
		s->level[f] = level;
	}
}

void sim_memory_solve(struct sim_memory *s)
{
	const size_t flows = (size_t)s->nr_nodes * s->nr_nodes;

	start_filling(s, flows);
	for (;;) {
		unsigned int resource = 0;
		const double level = tightest(s, &resource);

		if (level >= 1)
			break;
		for (size_t f = 0; f < flows; f++)
			if (!s->frozen[f] && flow_uses(s, f, resource))
				freeze(s, f, level);
		s->load[resource] = 0;
	}
	for (size_t f = 0; f < flows; f++)
		if (!s->frozen[f])
			freeze(s, f, 1);
	price_idle_flows(s, flows);
}
