/* SPDX-License-Identifier: MIT */
#include "session.h"
#include <string.h>

static const char magic[8] = "nblive1";

enum {
	SHARED_SLOT = NB_SESSION_SLOTS - 1, /* by those that find no other */
};

/* An agent that has not told for so long is gone, or has been stopped with its program. */
static const uint64_t good_for_ns = 2000000000;

const struct nb_live_stat_info nb_live_stat_table[NB_NR_LIVE_STATS] = {
#define X(name, unit, text) {#name, unit, text},
	NB_LIVE_STATS(X)
#undef X
};

const char *const nb_note_texts[NB_NR_NOTES] = {
#define X(NAME, text) text,
	NB_NOTES(X)
#undef X
};

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static size_t distance_bytes(const struct nb_topology *t)
{
	return (size_t)t->nr_nodes * t->nr_nodes * sizeof(t->distance[0]);
}

static size_t node_bytes(const struct nb_topology *t)
{
	return (size_t)NB_SESSION_SLOTS * t->nr_nodes * sizeof(uint64_t);
}

/* Agents write them twenty times a second: each has a cache line of its own. */
static size_t residents_bytes(const struct nb_topology *t)
{
	return aligned(sizeof(struct nb_residents) + t->nr_nodes * sizeof(uint32_t));
}

size_t nb_session_bytes(const struct nb_topology *t, uint64_t ring_slots)
{
	return aligned(sizeof(struct nb_session)) + aligned(t->nr_nodes * sizeof(t->nodes[0])) +
	       aligned(t->cpu_ids * sizeof(t->cpu_node[0])) + aligned(distance_bytes(t)) +
	       aligned(node_bytes(t)) + NB_SESSION_SLOTS * residents_bytes(t) +
	       (ring_slots > 0 ? nb_ring_bytes(ring_slots) : 0);
}

/* Sizes stand for the layout: both sides are built from one source. */
static uint64_t build_id(void)
{
	return sizeof(struct nb_session) * UINT64_C(1000003) + sizeof(struct nb_config) * 101 +
	       NB_NR_COUNTERS * 11 + NB_NR_LIVE_STATS;
}

void nb_session_init(struct nb_session *s, const struct nb_topology *t, const struct nb_config *c,
	uint64_t ring_slots)
{
	memcpy(s->magic, magic, sizeof(magic));
	s->build = build_id();
	s->bytes = nb_session_bytes(t, ring_slots);
	s->config = *c;
	s->nr_nodes = t->nr_nodes;
	s->nr_cpus = t->nr_cpus;
	s->cpu_ids = t->cpu_ids;
	s->topo_flags = (uint32_t)t->has_distances | (uint32_t)t->tiers_known << 1;
	s->nodes_at = aligned(sizeof(*s));
	s->cpu_node_at = s->nodes_at + aligned(t->nr_nodes * sizeof(t->nodes[0]));
	s->distance_at = s->cpu_node_at + aligned(t->cpu_ids * sizeof(t->cpu_node[0]));
	memcpy((char *)s + s->nodes_at, t->nodes, t->nr_nodes * sizeof(t->nodes[0]));
	memcpy((char *)s + s->cpu_node_at, t->cpu_node, t->cpu_ids * sizeof(t->cpu_node[0]));
	memcpy((char *)s + s->distance_at, t->distance, distance_bytes(t));
	s->node_bytes_at = s->distance_at + aligned(distance_bytes(t));
	s->residents_at = s->node_bytes_at + aligned(node_bytes(t));
	s->residents_bytes = residents_bytes(t);
	if (ring_slots == 0)
		return;
	s->ring_at = s->residents_at + NB_SESSION_SLOTS * residents_bytes(t);
	nb_session_ring(s)->size = ring_slots;
}

struct nb_ring *nb_session_ring(struct nb_session *s)
{
	return s->ring_at != 0 ? (struct nb_ring *)(void *)((char *)s + s->ring_at) : NULL;
}

bool nb_session_valid(const struct nb_session *s, size_t bytes)
{
	return bytes >= sizeof(*s) && memcmp(s->magic, magic, sizeof(magic)) == 0 &&
	       s->build == build_id() && s->bytes <= bytes;
}

struct nb_topology nb_session_topology(struct nb_session *s)
{
	return (struct nb_topology){
		.nr_nodes = s->nr_nodes,
		.nr_cpus = s->nr_cpus,
		.cpu_ids = s->cpu_ids,
		.nodes = (struct nb_node *)((char *)s + s->nodes_at),
		.cpu_node = (int16_t *)((char *)s + s->cpu_node_at),
		.distance = (uint16_t *)((char *)s + s->distance_at),
		.has_distances = s->topo_flags & 1,
		.tiers_known = (s->topo_flags & 2) != 0,
	};
}

uint64_t *nb_session_node_bytes(const struct nb_session *s, const struct nb_slot *slot)
{
	uint64_t *all = (uint64_t *)(void *)((uintptr_t)s + s->node_bytes_at);

	return all + (size_t)(slot - s->slot) * s->nr_nodes;
}

static struct nb_residents *residents_of(const struct nb_session *s, size_t slot)
{
	return (struct nb_residents *)((uintptr_t)s + s->residents_at + slot * s->residents_bytes);
}

void nb_session_tell_residents(const struct nb_session *s, const struct nb_slot *slot,
	const uint32_t *tasks, uint64_t now_ns)
{
	struct nb_residents *r = residents_of(s, (size_t)(slot - s->slot));

	for (uint32_t n = 0; n < s->nr_nodes; n++)
		atomic_store_explicit(&r->tasks[n], tasks[n], memory_order_relaxed);
	atomic_store_explicit(&r->told_ns, now_ns, memory_order_release);
}

void nb_session_other_residents(
	const struct nb_session *s, const struct nb_slot *slot, uint32_t *tasks, uint64_t now_ns)
{
	memset(tasks, 0, s->nr_nodes * sizeof(tasks[0]));
	/* Slots are taken in order, and none is given back. */
	for (size_t i = 0; i < SHARED_SLOT && atomic_load(&s->slot[i].pid) != 0; i++) {
		const struct nb_residents *r = residents_of(s, i);
		const uint64_t told = atomic_load_explicit(&r->told_ns, memory_order_acquire);

		if (&s->slot[i] == slot || told == 0 || told + good_for_ns < now_ns)
			continue;
		for (uint32_t n = 0; n < s->nr_nodes; n++)
			tasks[n] += atomic_load_explicit(&r->tasks[n], memory_order_relaxed);
	}
}

struct nb_slot *nb_session_slot(struct nb_session *s, uint32_t pid)
{
	for (int i = 0; i < SHARED_SLOT; i++) {
		uint32_t free = 0;

		if (atomic_compare_exchange_strong(&s->slot[i].pid, &free, pid))
			return &s->slot[i];
	}
	nb_stat_add(&s->slots_lost, 1);
	atomic_store(&s->slot[SHARED_SLOT].pid, pid);
	return &s->slot[SHARED_SLOT];
}
