/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64, MAX_ROUNDS = 64, NEWTON_STEPS = 8 };

/* Copies never take everything: the program's own accesses are in the same queues. */
static const double LEAST_SHARE = 0.1;

/* The solution is good enough when no queue changes by more than this share of a round trip. */
static const double PRECISION = 2e-4;

void sim_memory_free(struct sim_memory *s)
{
	free(s->flow);
	free(s->capacity);
	free(s->demand);
	free(s->wait_ns);
	free(s->round_ns);
	free(s->used);
	memset(s, 0, sizeof(*s));
}

static void make_flows(struct sim_memory *s)
{
	const unsigned int n = s->nr_nodes;

	for (unsigned int f = 0; f < n * n; f++) {
		const struct sim_route *route = &s->model->route[f];

		s->flow[f].resource[s->flow[f].nr++] = (uint16_t)(f % n);
		for (unsigned int k = 0; k < route->nr; k++)
			s->flow[f].resource[s->flow[f].nr++] = (uint16_t)(n + route->link[k]);
	}
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
	s->line_bytes = model->lines_in_flight * LINE_BYTES;
	s->flow = calloc(flows, sizeof(*s->flow));
	s->capacity = calloc(resources, sizeof(double));
	s->demand = calloc(flows, sizeof(double));
	s->wait_ns = calloc(resources, sizeof(double));
	s->round_ns = calloc(flows, sizeof(double));
	s->used = calloc(resources, sizeof(double));
	if (!s->flow || !s->capacity || !s->demand || !s->wait_ns || !s->round_ns || !s->used) {
		sim_memory_free(s);
		return -ENOMEM;
	}
	make_flows(s);
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
	const struct sim_flow *flow = &s->flow[from * s->nr_nodes + to];

	take(s, from, bytes_per_s);
	for (unsigned int k = 0; k < flow->nr; k++)
		take(s, flow->resource[k], bytes_per_s);
}

static bool uses(const struct sim_flow *flow, unsigned int resource)
{
	for (unsigned int k = 0; k < flow->nr; k++)
		if (flow->resource[k] == resource)
			return true;
	return false;
}

static double round_trip(const struct sim_memory *s, size_t f)
{
	double ns = s->model->latency_ns[f];

	for (unsigned int k = 0; k < s->flow[f].nr; k++)
		ns += s->wait_ns[s->flow[f].resource[k]];
	return ns;
}

/* What passes through resource r in bytes/s, and how that falls with each ns of its queue. */
static double passing(
	const struct sim_memory *s, unsigned int r, double *slope, double *shortest_ns)
{
	const size_t flows = (size_t)s->nr_nodes * s->nr_nodes;
	/* A memory is used by the flows that end at it: a column; a link by whoever's route says
	 * so. */
	const size_t first = r < s->nr_nodes ? r : 0;
	const size_t step = r < s->nr_nodes ? s->nr_nodes : 1;
	double sum = 0;

	*slope = 0;
	*shortest_ns = INFINITY;
	for (size_t f = first; f < flows; f += step) {
		double ns, rate;

		if (s->demand[f] <= 0 || (r >= s->nr_nodes && !uses(&s->flow[f], r)))
			continue;
		ns = round_trip(s, f);
		rate = s->demand[f] * s->line_bytes * 1e9 / ns;
		sum += rate;
		*slope += rate / ns;
		if (ns < *shortest_ns)
			*shortest_ns = ns;
	}
	return sum;
}

/* Lengthen or shorten one queue until what passes is what the resource can do; returns the relative
 * change. */
static double settle_queue(struct sim_memory *s, unsigned int r)
{
	const double before = s->wait_ns[r];
	double shortest = INFINITY;

	for (int k = 0; k < NEWTON_STEPS; k++) {
		double slope, step;
		const double sum = passing(s, r, &slope, &shortest);

		if (slope <= 0) {
			s->wait_ns[r] = 0;
			return 0;
		}
		/* In the reciprocal the curve is nearly straight: Newton on 1 / sum. */
		step = (sum / s->capacity[r] - 1) * sum / slope;
		if (s->wait_ns[r] + step < 0)
			step = -s->wait_ns[r];
		s->wait_ns[r] += step;
		if (fabs(step) < 0.1 * PRECISION * shortest)
			break;
	}
	return fabs(s->wait_ns[r] - before) / shortest;
}

static void fill_results(struct sim_memory *s)
{
	const size_t flows = (size_t)s->nr_nodes * s->nr_nodes;

	for (size_t f = 0; f < flows; f++)
		s->round_ns[f] = round_trip(s, f);
	for (unsigned int r = 0; r < s->nr_resources; r++) {
		double slope, shortest;

		s->used[r] = passing(s, r, &slope, &shortest);
	}
}

void sim_memory_solve(struct sim_memory *s)
{
	for (int round = 0; round < MAX_ROUNDS; round++) {
		double change = 0;

		for (unsigned int r = 0; r < s->nr_resources; r++)
			change = fmax(change, settle_queue(s, r));
		/* Without links each queue stands for itself: one round settles all. */
		if (change < PRECISION || s->nr_resources == s->nr_nodes)
			break;
	}
	fill_results(s);
}
