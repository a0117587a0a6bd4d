/* SPDX-License-Identifier: MIT */
/*
 * topology: the nodes, CPUs and distances a decision is made for.
 *
 * A topology is a value: built once by a reader (topo/), checked, then only read. Node and CPU
 * *ids* are the kernel's numbers and may have holes; everything inside numabal uses the *index* of
 * a node (0 .. nr_nodes-1, in ascending order of id). Never use one for the other.
 */
#ifndef NB_ENGINE_TOPOLOGY_H
#define NB_ENGINE_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NB_MAX_NODES = 1024,	 /* as MAX_NUMNODES with CONFIG_NODES_SHIFT=10 */
	NB_MAX_CPUS = 8192,	 /* as CONFIG_NR_CPUS of the large distributions' kernels */
	NB_DISTANCE_LOCAL = 10,	 /* ACPI SLIT: a node to itself */
	NB_DISTANCE_REMOTE = 20, /* what the kernel assumes when nothing is said */
	NB_DISTANCE_UNREACHABLE = 255,
	NB_NO_NODE = -1,
};

/* What is known of a node, beyond its numbers. */
enum nb_node_flags {
	NB_NODE_MOVABLE_ONLY = 1 << 0, /* no normal memory: GPU or hotplug memory */
	NB_NODE_DISALLOWED = 1 << 1,   /* exists, but this process may not use it (cgroup) */
};

struct nb_node {
	int id;		      /* the kernel's number */
	int tier;	      /* 0 is the fastest; memory tiers of the kernel, renumbered from 0 */
	unsigned int flags;   /* enum nb_node_flags */
	unsigned int nr_cpus; /* usable CPUs on it; 0 for a memory-only node */
	uint64_t mem_bytes;   /* size; 0 for a node without memory */
	uint64_t free_bytes;  /* as reported, or mem_bytes where nothing was said */
	uint32_t latency_ns;  /* from HMAT for its own initiators; 0 = not said */
	uint32_t bandwidth_mib_s; /* likewise, MiB/s, read; 0 = not said */
};

struct nb_topology {
	unsigned int nr_nodes;
	unsigned int nr_cpus;  /* usable CPUs in all */
	unsigned int cpu_ids;  /* highest CPU id + 1: the length of cpu_node */
	struct nb_node *nodes; /* [nr_nodes], ascending id */
	int16_t *cpu_node;     /* [cpu_ids] CPU id -> node index, NB_NO_NODE when not usable */
	uint16_t *distance; /* [nr_nodes * nr_nodes], slot from * nr_nodes + to (row = CPU side) */
	bool has_distances; /* false: the source gave none, defaults stand in */
	bool tiers_known;   /* false: could not be derived; every node says tier 0 */
};

/* Index of the node with this id, or NB_NO_NODE. */
int nb_topology_index(const struct nb_topology *t, int node_id);

static inline unsigned int nb_distance(
	const struct nb_topology *t, unsigned int from, unsigned int to)
{
	return t->distance[(size_t)from * t->nr_nodes + to];
}

/*
 * The node with memory (and allowed) that is nearest to `from`, `from` itself where it has some;
 * the lowest index among equals. NB_NO_NODE when no node has memory.
 */
int nb_topology_nearest_memory(const struct nb_topology *t, unsigned int from);

/* Nodes with memory that may be used. Fewer than two: nothing to balance. */
unsigned int nb_topology_memory_nodes(const struct nb_topology *t);

/* Where `node` would demote to / promote to (next slower / faster tier, nearest), or NB_NO_NODE. */
int nb_topology_demotion_target(const struct nb_topology *t, unsigned int node);
int nb_topology_promotion_target(const struct nb_topology *t, unsigned int node);

/* Checks every invariant named above; NULL when sound, else a sentence saying what is wrong. */
const char *nb_topology_check(const struct nb_topology *t);

#endif
