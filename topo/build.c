/* SPDX-License-Identifier: MIT */
#include "build.h"

#include "../engine/why.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topo_build_begin(struct topo_build **out, struct topo_info *info, const char *name, char *why,
	size_t why_len)
{
	struct topo_build *b = calloc(1, sizeof(*b));

	memset(info, 0, sizeof(*info));
	*out = b;
	if (!b)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	b->out = info;
	b->name = name;
	b->why = why;
	b->why_len = why_len;
	memset(b->slot_of_id, 0xff, sizeof(b->slot_of_id));
	memset(b->slot_of_cpu, 0xff, sizeof(b->slot_of_cpu));
	return 0;
}

void topo_build_end(struct topo_build *b)
{
	if (!b)
		return;
	free(b->distance);
	free(b);
}

int topo_refuse(const struct topo_build *b, unsigned int line, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (line)
		return nb_why(b->why, b->why_len, -EINVAL, "%s:%u: %s", b->name, line, text);
	return nb_why(b->why, b->why_len, -EINVAL, "%s: %s", b->name, text);
}

void topo_note(struct topo_info *out, const char *format, ...)
{
	va_list args;

	out->nr_notes++;
	if (out->nr_notes > TOPO_MAX_NOTES) {
		out->nr_notes = TOPO_MAX_NOTES;
		snprintf(out->notes[TOPO_MAX_NOTES - 1], TOPO_NOTE_LEN,
			"more notes than can be kept");
		return;
	}
	va_start(args, format);
	vsnprintf(out->notes[out->nr_notes - 1], TOPO_NOTE_LEN, format, args);
	va_end(args);
}

int topo_build_slot(const struct topo_build *b, unsigned int id)
{
	return id < NB_MAX_NODES ? b->slot_of_id[id] : -1;
}

int topo_build_node(struct topo_build *b, unsigned int id, unsigned int line)
{
	assert(id < NB_MAX_NODES);
	if (b->slot_of_id[id] >= 0)
		return topo_refuse(
			b, line, "node %u is described twice; expected each id once", id);
	/* The matrix has a place for each node named before it. */
	if (b->distance)
		return topo_refuse(
			b, line, "node %u after the distances; expected all nodes before", id);
	b->slot_of_id[id] = (int16_t)b->nr_slots;
	b->slot[b->nr_slots].node.id = (int)id;
	return (int)b->nr_slots++;
}

/* The CPU was put on another node before. Judged at the end: see check_cpus. */
static void remember_twice(
	struct topo_build *b, unsigned int slot, unsigned int cpu, unsigned int line)
{
	if (b->twice++)
		return;
	b->twice_cpu = cpu;
	b->twice_id[0] = b->slot[b->slot_of_cpu[cpu]].node.id;
	b->twice_id[1] = b->slot[slot].node.id;
	b->twice_line = line;
}

void topo_build_cpus(struct topo_build *b, unsigned int slot, const struct topo_set *cpus,
	const struct topo_set *usable, unsigned int line)
{
	b->cpus_said = true;
	for (int cpu = topo_set_next(cpus, 0); cpu >= 0; cpu = topo_set_next(cpus, cpu + 1)) {
		b->slot[slot].described++;
		if (b->slot_of_cpu[cpu] >= 0) {
			remember_twice(b, slot, (unsigned int)cpu, line);
			continue;
		}
		b->slot_of_cpu[cpu] = (int16_t)slot;
		if (!usable || topo_set_has(usable, (unsigned int)cpu))
			topo_set_add(&b->usable, (unsigned int)cpu);
		else
			b->slot[slot].cpus_cut = true;
	}
}

static int check_bytes(struct topo_build *b, const char *what, unsigned int slot, uint64_t bytes,
	unsigned int line)
{
	if (bytes <= TOPO_MAX_NODE_BYTES)
		return 0;
	return topo_refuse(b, line,
		"node %d: %s memory beyond any machine; expected at most 4096 TiB",
		b->slot[slot].node.id, what);
}

int topo_build_memory(struct topo_build *b, unsigned int slot, uint64_t bytes, unsigned int line)
{
	b->slot[slot].node.mem_bytes = bytes;
	b->slot[slot].has_memory = true;
	return check_bytes(b, "total", slot, bytes, line);
}

int topo_build_free(struct topo_build *b, unsigned int slot, uint64_t bytes, unsigned int line)
{
	b->slot[slot].node.free_bytes = bytes;
	b->slot[slot].has_free = true;
	return check_bytes(b, "free", slot, bytes, line);
}

int topo_build_matrix(struct topo_build *b)
{
	assert(!b->distance && b->nr_slots);
	b->distance = calloc((size_t)b->nr_slots * b->nr_slots, sizeof(*b->distance));
	if (!b->distance)
		return nb_why(b->why, b->why_len, -ENOMEM, "%s: out of memory", b->name);
	return 0;
}

int topo_build_distance(
	struct topo_build *b, unsigned int from, unsigned int to, uint64_t value, unsigned int line)
{
	if (value < NB_DISTANCE_LOCAL || value > NB_DISTANCE_UNREACHABLE)
		return topo_refuse(b, line,
			"distance %llu from node %d to node %d; expected 10..255",
			(unsigned long long)value, b->slot[from].node.id, b->slot[to].node.id);
	b->distance[(size_t)from * b->nr_slots + to] = (uint16_t)value;
	return 0;
}

/* How many nodes have CPUs, when each of them has all the CPUs there are; else 0. */
static unsigned int nodes_with_all_cpus(const struct topo_build *b)
{
	unsigned int all = 0, nodes = 0;

	for (unsigned int cpu = 0; cpu < NB_MAX_CPUS; cpu++)
		all += b->slot_of_cpu[cpu] >= 0;
	for (unsigned int i = 0; i < b->nr_slots; i++) {
		if (!b->slot[i].described)
			continue;
		if (b->slot[i].described != all)
			return 0;
		nodes++;
	}
	return nodes;
}

/*
 * A CPU is on one node. Firmware that puts every CPU on every node is known, and says in effect
 * that there is one node; anything in between is an error in the text.
 */
static int check_cpus(struct topo_build *b)
{
	unsigned int nodes;

	if (!b->twice)
		return 0;
	nodes = nodes_with_all_cpus(b);
	if (!nodes)
		return topo_refuse(b, b->twice_line,
			"cpu %u is on node %d and on node %d; expected one node", b->twice_cpu,
			b->twice_id[0], b->twice_id[1]);
	topo_note(b->out,
		"firmware error: each of %u nodes claims all %u CPUs; they are counted once, on "
		"node %d",
		nodes, b->slot[b->slot_of_cpu[b->twice_cpu]].described, b->twice_id[0]);
	b->out->balance_refused = true;
	return 0;
}

static void fill_nodes(struct topo_build *b)
{
	unsigned int n = 0;

	for (unsigned int id = 0; id < NB_MAX_NODES; id++) {
		const struct topo_slot *s;

		if (b->slot_of_id[id] < 0)
			continue;
		s = &b->slot[b->slot_of_id[id]];
		b->out->topo.nodes[n] = s->node;
		if (!s->has_free)
			b->out->topo.nodes[n].free_bytes = s->node.mem_bytes;
		n++;
	}
	assert(n == b->nr_slots);
}

/* Slot -> index in the finished topology. */
static void index_slots(const struct topo_build *b, int16_t *index)
{
	int16_t n = 0;

	for (unsigned int id = 0; id < NB_MAX_NODES; id++)
		if (b->slot_of_id[id] >= 0)
			index[b->slot_of_id[id]] = n++;
}

static void fill_cpus(struct topo_build *b, const int16_t *index)
{
	struct nb_topology *t = &b->out->topo;

	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++) {
		if (!topo_set_has(&b->usable, cpu))
			continue;
		t->cpu_node[cpu] = index[b->slot_of_cpu[cpu]];
		t->nodes[t->cpu_node[cpu]].nr_cpus++;
		t->nr_cpus++;
	}
}

static void fill_distances(struct topo_build *b, const int16_t *index)
{
	struct nb_topology *t = &b->out->topo;
	size_t n = t->nr_nodes;

	t->has_distances = b->distance != NULL;
	for (size_t i = 0; b->distance && i < n * n; i++)
		if (b->distance[i])
			t->distance[(size_t)index[i / n] * n + (size_t)index[i % n]] =
				b->distance[i];
}

static unsigned int usable_cpu_ids(const struct topo_build *b)
{
	unsigned int ids = 0;

	for (int cpu = topo_set_next(&b->usable, 0); cpu >= 0;
		cpu = topo_set_next(&b->usable, cpu + 1))
		ids = (unsigned int)cpu + 1;
	return ids;
}

const struct topo_slot *topo_slot_of_node(const struct topo_build *b, unsigned int node)
{
	return &b->slot[b->slot_of_id[b->out->topo.nodes[node].id]];
}

static int fill(struct topo_build *b)
{
	int16_t index[NB_MAX_NODES];
	int err = check_cpus(b);

	if (err)
		return err;
	err = topo_alloc(&b->out->topo, b->nr_slots, usable_cpu_ids(b));
	if (err)
		return nb_why(b->why, b->why_len, err, "%s: out of memory", b->name);
	index_slots(b, index);
	fill_nodes(b);
	fill_cpus(b, index);
	fill_distances(b, index);
	return 0;
}

int topo_build_finish(struct topo_build *b)
{
	int err;

	if (!b->nr_slots)
		return topo_refuse(b, 0, "0 nodes; expected at least one");
	err = fill(b);
	if (err) {
		topo_info_free(b->out);
		return err;
	}
	topo_tiers(b);
	topo_notes(b);
	assert(!nb_topology_check(&b->out->topo));
	return 0;
}
