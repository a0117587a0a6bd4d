/* SPDX-License-Identifier: MIT */
/*
 * plan: from a machine (sim/model.h) to a virtual machine of the same shape that QEMU can emulate
 * on few CPUs.
 *
 * Kept as they are: the nodes and their ids, which of them have CPUs and which have memory, every
 * distance, and, where tiers depend on them, latencies and bandwidths. Scaled down, with a note:
 * CPUs per node, memory (all nodes by one factor). Not there at all: SMT, caches, and any effect of
 * distance on speed.
 */
#ifndef NB_LAB_PLAN_H
#define NB_LAB_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "../sim/model.h"

enum {
	LAB_MAX_NODES = 64, /* QEMU knows 128; each pair is two words of its command line */
	LAB_MAX_CPUS = 255, /* without an interrupt remapping unit */
	LAB_CPUS = 8,	    /* what more CPUs than these are cut down to, where a node keeps one */
	LAB_GRAIN_MIB =
		128, /* scaled memory comes in such pieces: a section of the kernel's memory map */
	LAB_LEAST_MIB = 384,   /* with less the kernel and the image do not fit */
	LAB_MEMORY_MIB = 4096, /* what more memory than this is scaled down to */
	LAB_NOTE_LEN = 160,
	LAB_MAX_NOTES = 8,
};

struct lab_options {
	unsigned int
		cpus; /* CPUs of a node at most; 0 = cut so that the machine has about LAB_CPUS */
	double scale_mem; /* factor for every node's memory; 0 = so that the machine has
			     LAB_MEMORY_MIB at most */
	bool hmat; /* give latencies and bandwidths even where every node with memory has CPUs */
};

struct lab_node {
	int source_id; /* the machine's id */
	unsigned int nr_cpus;
	uint64_t mem_mib;
	unsigned int initiator; /* the node whose CPUs are nearest; itself where it has some */
};

struct lab_plan {
	unsigned int nr_nodes;
	unsigned int nr_cpus;
	int guest[LAB_MAX_NODES]; /* index in the machine's topology -> id in the guest; -1 = not
				     there */
	unsigned int cores;	  /* CPUs of a socket: no socket reaches over two nodes */
	uint64_t mem_mib;
	bool hmat;
	struct lab_node nodes[LAB_MAX_NODES];		   /* [nr_nodes] by id in the guest */
	uint8_t cpu_node[LAB_MAX_CPUS];			   /* [nr_cpus] guest id */
	uint8_t distance[LAB_MAX_NODES][LAB_MAX_NODES];	   /* from, to */
	uint32_t latency_ns[LAB_MAX_NODES][LAB_MAX_NODES]; /* from (CPUs), to (memory); with hmat */
	uint32_t bandwidth_mib_s[LAB_MAX_NODES][LAB_MAX_NODES]; /* likewise */
	unsigned int nr_notes;
	char notes[LAB_MAX_NOTES][LAB_NOTE_LEN]; /* what was changed, a line each */
};

/* 0, or -EINVAL with one line in `why`: the machine can't be emulated. Owns nothing. */
int lab_plan_make(struct lab_plan *p, const struct sim_model *m, const struct lab_options *opt,
	char *why, size_t why_len);

/* QEMU's arguments, one a line. */
void lab_plan_print(const struct lab_plan *p, FILE *out);

#endif
