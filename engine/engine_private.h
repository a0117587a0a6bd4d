/* SPDX-License-Identifier: MIT */
/*
 * engine_private: the engine itself, for its own rooms. Nothing outside engine/ includes this.
 */
#ifndef NB_ENGINE_PRIVATE_H
#define NB_ENGINE_PRIVATE_H

#include "counters.h"
#include "group.h"
#include "idmap.h"
#include "jiffies.h"
#include "machine.h"
#include "mm.h"
#include "page.h"
#include "policy.h"
#include "pool.h"
#include "ratelimit.h"
#include "scan.h"
#include "task.h"

struct nb_node_state {
	struct nb_window window; /* of moves to it */
	int16_t near;		 /* itself where it has memory, else the nearest node that has */
	bool low;		 /* at its watermark */
	/* home.c: when homes were last counted, and since */
	bool full; /* no CPU of it was idle at full_ns */
	uint64_t full_ns;
	uint32_t residents; /* tasks that belong here and need a CPU */
	uint32_t others;    /* and those of other engines */
	uint32_t intruder;  /* first of the tasks that run here and belong elsewhere; 0 = none */
};

struct nb_engine {
	struct nb_machine machine;
	struct nb_config config;
	struct nb_rules rules;	     /* config in jiffies and pages */
	struct nb_topology topo;     /* a copy */
	struct nb_node_state *nodes; /* [topo.nr_nodes] */
	struct nb_counters counters;
	struct nb_idmap mms, tasks;
	struct nb_pool pool;
	struct nb_groups groups;
	uint64_t homes_ns;		  /* when homes were counted */
	uint64_t round_ns, last_round_ns; /* when homes were last looked after, and before that */
	bool homes_counted;
	uint32_t cut_periods; /* scan periods that became shorter */
	/* by the last bits of the id: the task of the last fault, or NULL */
	struct nb_task *recent[NB_CPUPID_PIDS];
	uint64_t block_bytes;	/* of all nb_pages */
	uint64_t tracked_pages; /* 4 KiB pages of all VMAs */
};

static inline void *nb_alloc(struct nb_engine *e, size_t bytes)
{
	return e->machine.alloc(e->machine.ctx, bytes);
}

static inline void nb_free(struct nb_engine *e, void *p, size_t bytes)
{
	if (p != NULL)
		e->machine.free(e->machine.ctx, p, bytes);
}

static inline void nb_trace(struct nb_engine *e, const struct nb_event *event)
{
	if (e->machine.trace != NULL)
		e->machine.trace(e->machine.ctx, event);
}

static inline bool nb_node_exists(const struct nb_engine *e, int node)
{
	return node >= 0 && (unsigned int)node < e->topo.nr_nodes;
}

/* A whole number of pages, at least one. */
static inline bool nb_is_range(uint64_t start, uint64_t end)
{
	return start < end && (start | end) % NB_PAGE_SIZE == 0;
}

#endif
