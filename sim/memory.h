/* SPDX-License-Identifier: MIT */
/*
 * memory: how fast a CPU of one node gets at the memory of another, given everybody who wants to.
 *
 * A flow (i, j) is all the traffic from CPUs of node i to memory of node j. A CPU keeps
 * lines_in_flight cache lines outstanding, so it moves lines x 64 bytes per round trip. A round
 * trip is the idle latency (i, j) plus the time spent in queues: one in front of the memory of node
 * j and one in front of each link on the route. A queue is as long as it must be for what passes to
 * equal what the resource can do, and empty where it can do more: closed loops around FIFO servers,
 * as in any introduction to queueing. On an idle machine near memory is faster in proportion to
 * latency; in front of a node that is hopelessly full everybody waits in the same queue, and
 * distance hardly matters.
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
	double line_bytes;		     /* bytes in flight per CPU */
	double *capacity; /* [nr_resources] bytes/s left for the job: what copies use is taken off
			   */
	double *demand;	  /* [nr_nodes^2] CPUs' worth of demand; set by the caller before a solve */
	double *wait_ns; /* [nr_resources] result: time in the queue; kept as the next solve's first
			    guess */
	double *round_ns; /* [nr_nodes^2] result: round trip */
	double *used;	  /* [nr_resources] result: bytes/s */
};

int sim_memory_init(struct sim_memory *s, const struct sim_model *model);
void sim_memory_free(struct sim_memory *s);

/* Take `bytes_per_s` of copying from node `from` to node `to` off the capacities; reset starts from
 * the model's. */
void sim_memory_reset_capacity(struct sim_memory *s);
void sim_memory_take_copy(
	struct sim_memory *s, unsigned int from, unsigned int to, double bytes_per_s);

/* Fill wait_ns[], round_ns[] and used[] from demand[] and capacity[]. Within 0.1 % of the exact
 * solution. */
void sim_memory_solve(struct sim_memory *s);

/* bytes/s of one CPU of node i on memory of node j with all its lines in flight. */
static inline double sim_memory_rate(const struct sim_memory *s, unsigned int i, unsigned int j)
{
	return s->line_bytes * 1e9 / s->round_ns[i * s->nr_nodes + j];
}

/* How full node j's memory is, 0..1. */
static inline double sim_memory_utilisation(const struct sim_memory *s, unsigned int j)
{
	return s->used[j] / s->model->node_bandwidth[j];
}

#endif
