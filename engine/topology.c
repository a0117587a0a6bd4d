/* SPDX-License-Identifier: MIT */
#include "topology.h"

static bool usable_memory(const struct nb_node *n)
{
	return n->mem_bytes > 0 && !(n->flags & NB_NODE_DISALLOWED);
}

int nb_topology_index(const struct nb_topology *t, int node_id)
{
	unsigned int lo = 0, hi = t->nr_nodes;

	while (lo < hi) {
		const unsigned int mid = lo + (hi - lo) / 2;

		if (t->nodes[mid].id < node_id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->nr_nodes && t->nodes[lo].id == node_id ? (int)lo : NB_NO_NODE;
}

int nb_topology_nearest_memory(const struct nb_topology *t, unsigned int from)
{
	int best = NB_NO_NODE;

	if (usable_memory(&t->nodes[from]))
		return (int)from;
	for (unsigned int n = 0; n < t->nr_nodes; n++) {
		if (!usable_memory(&t->nodes[n]))
			continue;
		if (best < 0 || nb_distance(t, from, n) < nb_distance(t, from, (unsigned int)best))
			best = (int)n;
	}
	return best;
}

unsigned int nb_topology_memory_nodes(const struct nb_topology *t)
{
	unsigned int nr = 0;

	for (unsigned int n = 0; n < t->nr_nodes; n++)
		nr += usable_memory(&t->nodes[n]);
	return nr;
}

/* The tier with memory that comes next after `tier`: the lowest above it (step 1), or the highest
 * below (-1); -1: none. */
static int next_tier(const struct nb_topology *t, int tier, int step)
{
	int best = -1;

	for (unsigned int n = 0; n < t->nr_nodes; n++) {
		const int other = t->nodes[n].tier;

		if (!usable_memory(&t->nodes[n]) || (other - tier) * step <= 0)
			continue;
		if (best < 0 || (best - other) * step > 0)
			best = other;
	}
	return best;
}

/* Distance as the CPUs see it: those of the faster side. */
static unsigned int tier_distance(
	const struct nb_topology *t, unsigned int node, unsigned int other, int step)
{
	return step > 0 ? nb_distance(t, node, other) : nb_distance(t, other, node);
}

static int nearest_in_tier(const struct nb_topology *t, unsigned int node, int tier, int step)
{
	int best = NB_NO_NODE;

	for (unsigned int n = 0; n < t->nr_nodes; n++) {
		if (!usable_memory(&t->nodes[n]) || t->nodes[n].tier != tier)
			continue;
		if (best < 0 || tier_distance(t, node, n, step) <
					tier_distance(t, node, (unsigned int)best, step))
			best = (int)n;
	}
	return best;
}

int nb_topology_demotion_target(const struct nb_topology *t, unsigned int node)
{
	return nearest_in_tier(t, node, next_tier(t, t->nodes[node].tier, 1), 1);
}

int nb_topology_promotion_target(const struct nb_topology *t, unsigned int node)
{
	return nearest_in_tier(t, node, next_tier(t, t->nodes[node].tier, -1), -1);
}

static const char *check_sizes(const struct nb_topology *t)
{
	if (t->nr_nodes == 0)
		return "no node";
	if (t->nr_nodes > NB_MAX_NODES)
		return "more than 1024 nodes";
	if (t->cpu_ids > NB_MAX_CPUS)
		return "a CPU id of 8192 or more";
	if (t->nodes == NULL || t->distance == NULL || (t->cpu_ids > 0 && t->cpu_node == NULL))
		return "an array is missing";
	return NULL;
}

static const char *check_nodes(const struct nb_topology *t)
{
	for (unsigned int n = 0; n < t->nr_nodes; n++) {
		const struct nb_node *node = &t->nodes[n];

		if (node->id < 0)
			return "a negative node id";
		if (n > 0 && node->id <= t->nodes[n - 1].id)
			return "node ids not ascending";
		if (node->tier < 0 || node->tier >= NB_MAX_NODES)
			return "a tier out of range";
		if (!t->tiers_known && node->tier != 0)
			return "a tier is given although tiers are unknown";
	}
	return NULL;
}

static const char *check_cpus(const struct nb_topology *t)
{
	unsigned int count[NB_MAX_NODES] = {0}, total = 0;

	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++) {
		const int node = t->cpu_node[cpu];

		if (node == NB_NO_NODE)
			continue;
		if (node < 0 || (unsigned int)node >= t->nr_nodes)
			return "a CPU is on a node that does not exist";
		count[node]++;
		total++;
	}
	if (total != t->nr_cpus)
		return "nr_cpus is not the number of usable CPUs";
	for (unsigned int n = 0; n < t->nr_nodes; n++)
		if (count[n] != t->nodes[n].nr_cpus)
			return "a node's nr_cpus is not the number of its CPUs";
	return NULL;
}

static const char *check_distances(const struct nb_topology *t)
{
	for (size_t i = 0; i < (size_t)t->nr_nodes * t->nr_nodes; i++) {
		const bool self = i % (t->nr_nodes + 1) == 0;
		const unsigned int assumed = self ? NB_DISTANCE_LOCAL : NB_DISTANCE_REMOTE;

		if (t->distance[i] == 0)
			return "a distance of 0";
		if (!t->has_distances && t->distance[i] != assumed)
			return "a distance is given although distances are unknown";
	}
	return NULL;
}

const char *nb_topology_check(const struct nb_topology *t)
{
	static const char *(*const checks[])(const struct nb_topology *) = {
		check_sizes, check_nodes, check_cpus, check_distances};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		const char *wrong = checks[i](t);

		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}
