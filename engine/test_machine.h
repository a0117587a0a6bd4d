/* SPDX-License-Identifier: MIT */
/*
 * test_machine: a small machine for the engine's tests and fuzzers: page tables of a few areas,
 * moves that are done when the test says so, memory that can run out, and a log of requests and
 * events.
 *
 * It checks the rules of the door by itself: no allocation during a hint fault, every block of
 * memory given back with its size, requests in range. A broken rule is noted in `broken`, which
 * tests look at.
 */
#ifndef NB_ENGINE_TEST_MACHINE_H
#define NB_ENGINE_TEST_MACHINE_H

#include "counters.h"
#include "machine.h"

enum {
	TM_MAX_NODES = 16,
	TM_CPUS_PER_NODE = 4,
	TM_MAX_AREAS = 64,
	TM_MAX_MOVES = 65536,
	TM_MAX_ARMS = 4096,
	TM_MAX_EVENTS = 65536,
};

struct tm_page {
	int16_t node;
	bool present, armed, shared;
	bool huge;    /* part of a huge page; its first page holds the state */
	bool batched; /* armed as part of a PMD */
};

struct tm_area {
	uint32_t mm;
	uint64_t start, end;
	struct tm_page *pages;
};

struct tm {
	struct nb_topology topo;
	struct nb_node nodes[TM_MAX_NODES];
	int16_t cpu_node[TM_MAX_NODES * TM_CPUS_PER_NODE];
	uint16_t distance[TM_MAX_NODES * TM_MAX_NODES];
	struct nb_config config;
	struct nb_machine machine;
	struct nb_engine *e;
	uint64_t now_ns;

	struct tm_area areas[TM_MAX_AREAS];
	unsigned int nr_areas;
	uint64_t node_pages[TM_MAX_NODES];

	/* what happened */
	const char *broken; /* a rule of the door that the engine broke, or NULL */
	struct nb_arm_request arms[TM_MAX_ARMS];
	unsigned int nr_arms;
	struct nb_move_request moves[TM_MAX_MOVES]; /* accepted, not yet done */
	unsigned int nr_moves;
	unsigned int nr_splits;
	bool last_split_kept_armed;
	unsigned int nr_run_ons, nr_swaps, nr_prefers;
	unsigned int asked_run_ons, asked_swaps; /* refused ones, too */
	int last_node;				 /* of run_on and prefer */
	struct nb_event events[TM_MAX_EVENTS];
	unsigned int nr_events;

	/* what is to go wrong */
	int refuse_arm, refuse_move, refuse_split, refuse_run_on, refuse_swap; /* an errno, or 0 */
	bool no_memory;							       /* alloc fails */
	bool bad_arm_end;     /* arm answers nonsense */
	uint64_t arm_cost_ns; /* what arm says it took */
	int64_t allocs_left;  /* alloc fails after so many; negative = never */

	bool in_fault;
	int64_t live_bytes;
};

/* `nr` nodes of 1 GiB and 4 CPUs, distances 10 and 20. Change m->topo and m->config, then tm_start.
 */
void tm_init(struct tm *m, const char *system, unsigned int nr);
/* Recomputes CPUs, makes the engine. False when the engine refuses. */
bool tm_start(struct tm *m);
/* Frees all; returns what was broken or leaked, or NULL. */
const char *tm_stop(struct tm *m);

/* "name=value" on config (before tm_start) or on the running engine; true when taken. */
bool tm_set(struct tm *m, const char *assignment);

const struct nb_counters *tm_counters(const struct tm *m);

/* Page tables for a range, all absent; for ranges that are mapped and unmapped in parts. Dropped
 * with their pages. */
void tm_add_area(struct tm *m, uint32_t mm_id, uint64_t start, uint64_t bytes);
void tm_drop_areas(struct tm *m, uint32_t mm_id);

/* Map a range, with an area of its own where there is none. NULL where the engine refuses. */
struct nb_vma *tm_map(struct tm *m, struct nb_mm *mm, uint32_t mm_id, uint64_t start,
	uint64_t bytes, unsigned int flags);
/* The test machine's side of an unmap, then the engine's. */
int tm_unmap(struct tm *m, struct nb_mm *mm, uint32_t mm_id, uint64_t start, uint64_t end);
/* Pages that are absent become present on the node; huge: whole blocks as huge pages. */
void tm_populate(struct tm *m, uint32_t mm_id, uint64_t start, uint64_t end, int node, bool huge);

/* The page at addr (of a huge page, its first), or NULL. */
struct tm_page *tm_page(struct tm *m, uint32_t mm_id, uint64_t addr);

/* A hint fault as it is, whether or not the entry is armed; HUGE is added for huge pages. */
struct nb_verdict tm_fault(struct tm *m, struct nb_task *t, struct nb_mm *mm, uint32_t mm_id,
	uint64_t addr, int cpu_node, uint32_t flags);
/* A touch: armed entries are repaired and faulted (a batched PMD all at once). Returns the number
 * of faults. */
unsigned int tm_touch(struct tm *m, struct nb_task *t, struct nb_mm *mm, uint32_t mm_id,
	uint64_t addr, int cpu_node);

/* Every move asked for is done, or fails with this status; then told. Returns how many. */
unsigned int tm_finish_moves(struct tm *m, enum nb_move_status status);
/* Huge pages whose split was asked for are told about. */
void tm_tell_split(struct tm *m, struct nb_mm *mm, uint64_t addr);

/* How many events of this type (and reason, where it is not negative) were traced. */
unsigned int tm_count(const struct tm *m, enum nb_event_type type, int reason);

#endif
