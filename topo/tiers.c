/* SPDX-License-Identifier: MIT */
/*
 * tiers: which memory is faster, as far as the source lets us know. Tier 0 is the fastest. In this
 * order:
 *
 * 1. The source says so: the kernel's own memory tiers, or "tier T" in a line.
 * 2. Every node with memory has a latency or a bandwidth (HMAT, hwloc's memattrs). Then the
 * kernel's rule: an abstract distance in proportion to latency and against bandwidth, 576 for
 * ordinary DRAM (here the first node with CPUs that has figures), and one tier for each 128 of it.
 * 3. Distances: memory without CPUs that is farther from every CPU node than that node's own memory
 * is one tier below. That cannot be told when several nodes have CPUs and all of them are as far
 * from each other as from the memory, when no CPUs are known, or when no node has both.
 */
#include "build.h"

#include <assert.h>

/* drivers/acpi and mm call these the abstract distance of DRAM and the chunk of a tier. */
enum { DRAM_DISTANCE = 576, TIER_CHUNK = 128 };

enum { UNRANKED = -1, MAX_RANK = 1 << 30 };

static bool has_cpus(const struct topo_build *b, unsigned int node)
{
	return topo_slot_of_node(b, node)->described > 0;
}

/* From ranks (smaller is faster) to tiers without gaps. Nodes that have no rank come last, or first
 * with CPUs. */
static unsigned int number_tiers(struct topo_build *b, const int *rank)
{
	struct nb_topology *t = &b->out->topo;
	unsigned int tiers = 0;
	int below = UNRANKED;

	for (;;) {
		int next = MAX_RANK;

		for (unsigned int i = 0; i < t->nr_nodes; i++)
			if (rank[i] > below && rank[i] < next)
				next = rank[i];
		if (next == MAX_RANK)
			break;
		for (unsigned int i = 0; i < t->nr_nodes; i++)
			if (rank[i] == next)
				t->nodes[i].tier = (int)tiers;
		below = next;
		tiers++;
	}
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (rank[i] == UNRANKED)
			t->nodes[i].tier = has_cpus(b, i) || !tiers ? 0 : (int)tiers - 1;
	return tiers;
}

static bool tiers_said(struct topo_build *b)
{
	struct nb_topology *t = &b->out->topo;
	int rank[NB_MAX_NODES] = {0};
	bool any = false;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const struct topo_slot *s = topo_slot_of_node(b, i);

		rank[i] = s->has_tier ? s->node.tier : UNRANKED;
		any |= s->has_tier;
		if (s->node.mem_bytes && !s->has_tier)
			return false;
	}
	if (any)
		number_tiers(b, rank);
	return any;
}

/* What every node with memory has: figures of this kind. */
struct figures {
	bool latency, bandwidth;
	const struct nb_node *dram; /* the node that counts as ordinary */
};

static struct figures find_figures(const struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;
	struct figures f = {.latency = true, .bandwidth = true};

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const struct nb_node *n = &t->nodes[i];

		if (!n->mem_bytes)
			continue;
		f.latency &= n->latency_ns > 0;
		f.bandwidth &= n->bandwidth_mib_s > 0;
		if (!f.dram || (has_cpus(b, i) && !has_cpus(b, (unsigned int)(f.dram - t->nodes))))
			f.dram = n;
	}
	if (!f.dram)
		f.latency = f.bandwidth = false;
	return f;
}

static int abstract_tier(const struct nb_node *n, const struct figures *f)
{
	double distance = DRAM_DISTANCE;

	if (f->latency)
		distance *= (double)n->latency_ns / f->dram->latency_ns;
	if (f->bandwidth)
		distance *= (double)f->dram->bandwidth_mib_s / n->bandwidth_mib_s;
	return distance < MAX_RANK ? (int)distance / TIER_CHUNK : MAX_RANK / TIER_CHUNK;
}

static bool tiers_from_figures(struct topo_build *b)
{
	struct nb_topology *t = &b->out->topo;
	struct figures f = find_figures(b);
	int rank[NB_MAX_NODES] = {0};
	unsigned int tiers;

	if (!f.latency && !f.bandwidth)
		return false;
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		rank[i] = t->nodes[i].mem_bytes ? abstract_tier(&t->nodes[i], &f) : UNRANKED;
	tiers = number_tiers(b, rank);
	topo_note(b->out, "%u tier%s from %s%s%s of the nodes, node %d standing for ordinary DRAM",
		tiers, tiers == 1 ? "" : "s", f.latency ? "latency" : "",
		f.latency && f.bandwidth ? " and " : "", f.bandwidth ? "bandwidth" : "",
		f.dram->id);
	return true;
}

/* All nodes as far from each other as from anything else. */
static bool flat(const struct nb_topology *t)
{
	unsigned int first = t->nr_nodes > 1 ? nb_distance(t, 0, 1) : 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		for (unsigned int j = 0; j < t->nr_nodes; j++)
			if (i != j && nb_distance(t, i, j) != first)
				return false;
	return true;
}

/* Why distances say nothing about tiers; NULL when they do. */
static const char *distances_silent(const struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;
	unsigned int cpu_nodes = 0, both = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		cpu_nodes += has_cpus(b, i);
		both += has_cpus(b, i) && t->nodes[i].mem_bytes;
	}
	if (!cpu_nodes)
		return "no CPUs are known";
	if (!both)
		return "no node has both CPUs and memory";
	if (!t->has_distances || b->distances_assumed)
		return "there are none";
	if (cpu_nodes > 1 && flat(t))
		return "they are all the same";
	return NULL;
}

/* Farther from every CPU node than that node is from itself. */
static bool is_far(const struct topo_build *b, unsigned int node)
{
	const struct nb_topology *t = &b->out->topo;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (has_cpus(b, i) && nb_distance(t, i, node) <= nb_distance(t, i, i))
			return false;
	return true;
}

static void lower_tier(struct topo_build *b)
{
	struct nb_topology *t = &b->out->topo;
	struct topo_set far = {0};
	char list[120];

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (has_cpus(b, i) || !is_far(b, i))
			continue;
		t->nodes[i].tier = 1;
		topo_set_add(&far, (unsigned int)t->nodes[i].id);
	}
	topo_set_format(&far, list, sizeof(list));
	if (list[0])
		topo_note(b->out,
			"tier 1 is %s: no CPUs, and farther from all CPUs than their own memory",
			list);
}

static bool memory_without_cpus(const struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (!has_cpus(b, i) &&
			(t->nodes[i].mem_bytes || !topo_slot_of_node(b, i)->has_memory))
			return true;
	return false;
}

/* Every node says tier 0 when this is reached. */
static bool tiers_from_distances(struct topo_build *b)
{
	const char *silent = distances_silent(b);

	if (silent && memory_without_cpus(b)) {
		topo_note(b->out, "tiers not derivable from distances: %s; every node says tier 0",
			silent);
		return false;
	}
	if (!silent)
		lower_tier(b);
	return true;
}

void topo_tiers(struct topo_build *b)
{
	struct nb_topology *t = &b->out->topo;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		t->nodes[i].tier = 0;
	t->tiers_known = tiers_said(b) || tiers_from_figures(b) || tiers_from_distances(b);
}
