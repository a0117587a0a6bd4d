/* SPDX-License-Identifier: MIT */
/*
 * notes: what is odd about a finished topology, and whether there is anything to balance on it.
 * docs/topologies.md says what each note means.
 */
#include "build.h"

#include <stdio.h>

enum { LIST_LEN = 120, MAX_HOMES = 8 };

/* Ids of the nodes for which `is` holds, as a list; the number of them. */
static unsigned int list_nodes(const struct topo_build *b,
	bool (*is)(const struct topo_build *, unsigned int), char list[LIST_LEN])
{
	const struct nb_topology *t = &b->out->topo;
	struct topo_set ids = {0};

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (is(b, i))
			topo_set_add(&ids, (unsigned int)t->nodes[i].id);
	topo_set_format(&ids, list, LIST_LEN);
	return topo_set_count(&ids);
}

static bool size_unknown(const struct topo_build *b, unsigned int node)
{
	return !topo_slot_of_node(b, node)->has_memory;
}

static bool is_empty(const struct topo_build *b, unsigned int node)
{
	const struct topo_slot *s = topo_slot_of_node(b, node);

	return b->cpus_said && !s->described && s->has_memory && !s->node.mem_bytes;
}

static bool is_memory_only(const struct topo_build *b, unsigned int node)
{
	return b->cpus_said && !topo_slot_of_node(b, node)->described &&
	       b->out->topo.nodes[node].mem_bytes;
}

static bool is_movable_only(const struct topo_build *b, unsigned int node)
{
	return b->out->topo.nodes[node].flags & NB_NODE_MOVABLE_ONLY;
}

static bool is_disallowed(const struct topo_build *b, unsigned int node)
{
	return b->out->topo.nodes[node].flags & NB_NODE_DISALLOWED;
}

static bool is_cut(const struct topo_build *b, unsigned int node)
{
	return topo_slot_of_node(b, node)->cpus_cut;
}

static bool not_local(const struct topo_build *b, unsigned int node)
{
	return nb_distance(&b->out->topo, node, node) != NB_DISTANCE_LOCAL;
}

static bool free_beyond_size(const struct topo_build *b, unsigned int node)
{
	const struct topo_slot *s = topo_slot_of_node(b, node);

	return s->has_free && s->node.free_bytes > s->node.mem_bytes;
}

/* One row for each note that names the nodes it is about. */
static const struct {
	bool (*is)(const struct topo_build *, unsigned int);
	const char *text;
} node_notes[] = {
	{size_unknown, "memory size not said, taken as 0"},
	{free_beyond_size, "more memory free than there is; all of it taken as free"},
	{is_empty, "neither CPUs nor memory: never a target, kept because memory may come"},
	{is_memory_only, "memory without CPUs"},
	{is_movable_only, "memory for movable pages only (GPU or hotplug)"},
	{is_disallowed, "not allowed to this process (cgroup)"},
	{is_cut, "some CPUs are offline or not allowed, and left out"},
	{not_local, "distance to itself is not 10"},
};

static void note_nodes(struct topo_build *b)
{
	char list[LIST_LEN];

	for (size_t i = 0; i < sizeof(node_notes) / sizeof(node_notes[0]); i++) {
		unsigned int n = list_nodes(b, node_notes[i].is, list);

		if (n)
			topo_note(b->out, "node%s %s: %s", n == 1 ? "" : "s", list,
				node_notes[i].text);
	}
}

static void clamp_free(struct topo_build *b)
{
	struct nb_topology *t = &b->out->topo;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i].free_bytes > t->nodes[i].mem_bytes)
			t->nodes[i].free_bytes = t->nodes[i].mem_bytes;
}

static void note_asymmetry(struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;
	unsigned int pairs = 0, a = 0, z = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		for (unsigned int j = i + 1; j < t->nr_nodes; j++) {
			if (nb_distance(t, i, j) == nb_distance(t, j, i))
				continue;
			if (!pairs++) {
				a = i;
				z = j;
			}
		}
	}
	if (pairs)
		topo_note(b->out,
			"%u asymmetric pair%s of nodes, first %d and %d: %u there, %u back; kept "
			"as they are",
			pairs, pairs == 1 ? "" : "s", t->nodes[a].id, t->nodes[z].id,
			nb_distance(t, a, z), nb_distance(t, z, a));
}

static void note_unreachable(struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;
	unsigned int pairs = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		for (unsigned int j = i + 1; j < t->nr_nodes; j++)
			pairs += nb_distance(t, i, j) == NB_DISTANCE_UNREACHABLE ||
				 nb_distance(t, j, i) == NB_DISTANCE_UNREACHABLE;
	if (pairs)
		topo_note(b->out,
			"%u pair%s of nodes at distance 255: unreachable or unspecified, no "
			"latency",
			pairs, pairs == 1 ? "" : "s");
}

static bool may_hold(const struct nb_topology *t, unsigned int node)
{
	return t->nodes[node].mem_bytes && !(t->nodes[node].flags & NB_NODE_DISALLOWED);
}

/* The nodes that hold memory and are nearest to `from`. */
static struct topo_set nearest(
	const struct nb_topology *t, unsigned int from, unsigned int *distance)
{
	struct topo_set ids = {0};

	*distance = NB_DISTANCE_UNREACHABLE + 1;
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		unsigned int d = nb_distance(t, from, i);

		if (!may_hold(t, i) || d > *distance)
			continue;
		if (d < *distance)
			ids = (struct topo_set){0};
		*distance = d;
		topo_set_add(&ids, (unsigned int)t->nodes[i].id);
	}
	return ids;
}

static void note_home(struct topo_build *b, unsigned int node)
{
	const struct nb_topology *t = &b->out->topo;
	unsigned int distance;
	struct topo_set homes = nearest(t, node, &distance);
	char list[LIST_LEN];

	topo_set_format(&homes, list, sizeof(list));
	if (!list[0])
		topo_note(b->out, "node %d has CPUs but no memory, nor has any other",
			t->nodes[node].id);
	else if (topo_set_count(&homes) > 1)
		topo_note(b->out,
			"node %d has CPUs but no memory: home is node %d (tie at distance %u of "
			"%s)",
			t->nodes[node].id, topo_set_next(&homes, 0), distance, list);
	else
		topo_note(b->out, "node %d has CPUs but no memory: home is node %s at distance %u",
			t->nodes[node].id, list, distance);
}

static void note_homes(struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;
	unsigned int memless = 0, local = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		if (!t->nodes[i].nr_cpus)
			continue;
		local += may_hold(t, i);
		if (t->nodes[i].mem_bytes || !topo_slot_of_node(b, i)->has_memory)
			continue;
		if (memless++ < MAX_HOMES)
			note_home(b, i);
	}
	if (memless > MAX_HOMES)
		topo_note(b->out, "%u more nodes have CPUs but no memory", memless - MAX_HOMES);
	if (memless && !local)
		topo_note(b->out, "no local memory possible: no node has both CPUs and memory");
}

static unsigned int memory_nodes(const struct nb_topology *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		n += may_hold(t, i);
	return n;
}

/* Whether each CPU finds all memory at one distance. */
static bool equidistant(const struct nb_topology *t)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		unsigned int first = 0;

		for (unsigned int j = 0; t->nodes[i].nr_cpus && j < t->nr_nodes; j++) {
			if (!may_hold(t, j))
				continue;
			if (first && nb_distance(t, i, j) != first)
				return false;
			first = nb_distance(t, i, j);
		}
	}
	return true;
}

/* Why there is nothing to balance; NULL when there is. */
static const char *nothing_to_balance(const struct nb_topology *t)
{
	if (t->nr_nodes == 1)
		return "there is one node";
	if (!memory_nodes(t))
		return "no node is known to have memory";
	if (memory_nodes(t) == 1)
		return "one node alone has memory that may be used";
	if (!t->nr_cpus)
		return "no CPU is known that may be used";
	if (equidistant(t))
		return "all memory is equally far from each CPU";
	return NULL;
}

static void note_balance(struct topo_build *b)
{
	const char *nothing = nothing_to_balance(&b->out->topo);

	if (!nothing)
		return;
	b->out->balance_refused = true;
	topo_note(b->out, "nothing to balance: %s", nothing);
}

void topo_notes(struct topo_build *b)
{
	const struct nb_topology *t = &b->out->topo;

	if (!b->cpus_said)
		topo_note(b->out, "the source does not say which CPUs there are");
	if (!t->has_distances && t->nr_nodes > 1)
		topo_note(b->out, "no distances said: 10 to itself and 20 to others stand in");
	note_nodes(b);
	clamp_free(b);
	note_asymmetry(b);
	note_unreachable(b);
	note_homes(b);
	note_balance(b);
}
