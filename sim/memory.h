/* SPDX-License-Identifier: MIT */
/*
 * memory: how fast a CPU of one node gets at the memory of another, given everybody who wants to.
 *
 * A flow (i, j) is all the traffic from CPUs of node i to memory of node j. A CPU keeps
 * lines_in_flight cache lines outstanding, so alone it moves lines x 64 bytes per latency(i, j).
 * Together, flows share what saturates: the memory of node j, or a link on the route. Sharing is
 * max-min fair, weighted by 1 / latency: closed loops with the same number of lines in flight share
 * a queue in inverse proportion to their round trip. So a near CPU gets more of a busy node than a
 * far one, which is what machines do.
 *
 * Units: bytes/s, ns. Not thread-safe; one instance belongs to one run.
 */
#ifndef NB_SIM_MEMORY_H
#define NB_SIM_MEMORY_H

#include "model.h"

/* What a flow passes through: the memory it ends at, then links. */
struct sim_flow {
	uint8_t nr;
	uint16_t resource[1 + SIM_MAX_ROUTE];
};

struct sim_memory {
	const struct sim_model *model;
	struct sim_flow *flow;		     /* [nr_nodes^2] */
	unsigned int nr_nodes, nr_resources; /* resource: node memories first, then links */
	double *capacity; /* [nr_resources] bytes/s left for the job: what copies use is taken off
			   */
	double *weight;	 /* [nr_nodes^2] bytes/s of one CPU at full speed, idle machine: the share's
			    weight */
	double *demand;	 /* [nr_nodes^2] CPUs' worth of demand; set by the caller before a solve */
	double *level;	 /* [nr_nodes^2] result: share of `weight` that each CPU gets, 0..1 */
	double *used;	 /* [nr_resources] result: bytes/s */
	double *load;	 /* scratch */
	double *left;	 /* scratch */
	uint8_t *frozen; /* scratch */
};

int sim_memory_init(struct sim_memory *s, const struct sim_model *model);
void sim_memory_free(struct sim_memory *s);

/* Take `bytes_per_s` of copying from node `from` to node `to` off the capacities; reset starts from
 * the model's. */
void sim_memory_reset_capacity(struct sim_memory *s);
void sim_memory_take_copy(
	struct sim_memory *s, unsigned int from, unsigned int to, double bytes_per_s);

/* Fill level[] and used[] from demand[] and capacity[]. Cost: resources x flows. */
void sim_memory_solve(struct sim_memory *s);

/* bytes/s of one CPU of node i on memory of node j, with `lines` in flight relative to the model's
 * (1 = all). */
static inline double sim_memory_rate(const struct sim_memory *s, unsigned int i, unsigned int j)
{
	return s->weight[i * s->nr_nodes + j] * s->level[i * s->nr_nodes + j];
}

/* How full node j's memory is, 0..1: what loaded latency is reckoned from. */
static inline double sim_memory_utilisation(const struct sim_memory *s, unsigned int j)
{
	return s->used[j] / s->model->node_bandwidth[j];
}

#endif
