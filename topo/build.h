/* SPDX-License-Identifier: MIT */
/*
 * build: what every reader has in common on the way to a struct nb_topology.
 *
 * A reader names nodes in any order with the kernel's ids, gives each its CPUs, memory and
 * distances as it meets them, and finishes. Finishing sorts by id, fills in what was not said,
 * derives the tiers, and notes what is odd. Until then a node is known by its *slot*: the order in
 * which it was named.
 *
 * Not thread-safe; one builder, one reader. Large (about 30 KiB): allocate it.
 */
#ifndef NB_TOPO_BUILD_H
#define NB_TOPO_BUILD_H

#include "set.h"
#include "topo.h"

/* Larger than any physical address (52 bits on x86-64 and arm64), and 1,024 of them still fit in 64
 * bits. */
#define TOPO_MAX_NODE_BYTES (UINT64_C(1) << 52)

struct topo_slot {
	struct nb_node node;	/* nr_cpus and tier are filled in at the end */
	unsigned int described; /* CPUs the source puts on it, usable or not */
	bool has_memory;	/* its size was said */
	bool has_free;		/* its free memory was said */
	bool has_tier;		/* its tier was said */
	bool cpus_cut;		/* some of its CPUs may not be used */
};

struct topo_build {
	struct topo_info *out;
	const char *name; /* of the source, for messages */
	char *why;
	size_t why_len;

	unsigned int nr_slots;
	struct topo_slot slot[NB_MAX_NODES];
	int16_t slot_of_id[NB_MAX_NODES];
	int16_t slot_of_cpu[NB_MAX_CPUS]; /* also of CPUs that may not be used */
	struct topo_set usable;		  /* CPUs that may be used */
	uint16_t *distance; /* [nr_slots * nr_slots] by slot, 0 = not said; NULL = none said */

	/* The first CPU that was found on two nodes, and how often that happened. */
	unsigned int twice;
	unsigned int twice_cpu;
	int twice_id[2];
	unsigned int twice_line;

	bool cpus_said;		/* the source says which CPUs there are */
	bool distances_assumed; /* they were not said, but made from something else */
};

/* Start: *out becomes empty. `name` must outlive the builder. 0 or -ENOMEM. End it with
 * topo_build_end. */
int topo_build_begin(
	struct topo_build **b, struct topo_info *out, const char *name, char *why, size_t why_len);
void topo_build_end(struct topo_build *b);

/* Refuse the source: "NAME:LINE: ..." in `why` (no line when it is 0). Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int topo_refuse(
	const struct topo_build *b, unsigned int line, const char *format, ...);

/* Name a node. Its slot, or -EINVAL when it was named before or the matrix is there. `id` must be
 * below NB_MAX_NODES. */
int topo_build_node(struct topo_build *b, unsigned int id, unsigned int line);

/* The slot of an id, or -1. */
int topo_build_slot(const struct topo_build *b, unsigned int id);

/* Put CPUs on a node; only those also in `usable` (NULL: all) can be used. Remembers CPUs seen on
 * two nodes. */
void topo_build_cpus(struct topo_build *b, unsigned int slot, const struct topo_set *cpus,
	const struct topo_set *usable, unsigned int line);

/* Sizes in bytes. 0, or -EINVAL when larger than TOPO_MAX_NODE_BYTES. */
int topo_build_memory(struct topo_build *b, unsigned int slot, uint64_t bytes, unsigned int line);
int topo_build_free(struct topo_build *b, unsigned int slot, uint64_t bytes, unsigned int line);

/* Make room for distances, once all nodes are named. 0 or -ENOMEM. */
int topo_build_matrix(struct topo_build *b);

/* One distance, row to column. 0, or -EINVAL when it is not in 10..255. Needs the matrix. */
int topo_build_distance(struct topo_build *b, unsigned int from, unsigned int to, uint64_t value,
	unsigned int line);

/* Fill *out from what was said. 0, -EINVAL, -ENOMEM; *out is empty after a failure. */
int topo_build_finish(struct topo_build *b);

/* Add a note; when there is no room the last one says how many were left out. */
__attribute__((format(printf, 2, 3))) void topo_note(
	struct topo_info *out, const char *format, ...);

/* What finishing does after the numbers are in place; each in a file of its own. */
void topo_tiers(struct topo_build *b);
void topo_notes(struct topo_build *b);

/* The slot behind a node of the finished topology. */
const struct topo_slot *topo_slot_of_node(const struct topo_build *b, unsigned int node);

#endif
