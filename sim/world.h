/* SPDX-License-Identifier: MIT */
/*
 * world: the state of one simulation; private to sim/. Rooms:
 *
 * - pages.c: page tables, 2 MiB blocks with 4 KiB entries where pages differ
 * - attention.c: which armed or absent page a random access pattern meets next
 * - lru.c: pages that no move can isolate
 * - touch.c: first touches, hint faults and moves, with their costs
 * - door.c: the machine side of engine/machine.h
 * - memory.c, demand.c, convoy.c: who gets how much of which memory
 * - sched.c: CPUs, run queues, placement, balancing
 * - phases.c: how a thread gets from phase to phase
 * - work.c: what a thread does with a tick, access patterns
 * - backdrop.c: program, stacks and libraries
 * - placed.c, best.c: static placements, and the search for the best
 * - run.c: the clock
 *
 * Addresses in an area are offsets in bytes from its start. Times are ns. Nodes are indexes.
 */
#ifndef NB_SIM_WORLD_H
#define NB_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "../engine/counters.h"
#include "../engine/machine.h"
#include "../engine/result.h"
#include "job.h"
#include "memory.h"
#include "model.h"
#include "rng.h"
#include "sim.h"

/* Patterns that are followed by regions (attention.c), not block by block. */
static inline bool sim_is_random(uint8_t kind)
{
	return kind == SIM_PHASE_UNIFORM || kind == SIM_PHASE_ZIPF || kind == SIM_PHASE_CHASE ||
	       kind == SIM_PHASE_HOTSET;
}

/* ---- page tables ---- */

enum sim_block_flags {
	SIM_B_PRESENT = 1 << 0, /* alike: every page present, on `node` */
	SIM_B_ARMED = 1 << 1,	/* alike: every page armed (a huge page: its PMD) */
	SIM_B_HUGE = 1 << 2,	/* one huge page */
	SIM_B_PMD = 1 << 3,	/* small pages, armed as one PMD */
	SIM_B_BUSY = 1 << 4,	/* being moved until `busy_until` of the move in sim_world.moves */
	SIM_B_PTES = 1 << 5,	/* pages differ: see `ptes` */
};

/* 2 MiB of an area (its first and last may hold less). 12 bytes. */
struct sim_block {
	uint32_t ptes; /* with SIM_B_PTES: chunk in sim_world.chunks */
	uint16_t node;
	uint16_t flags;
	uint16_t present; /* pages */
	uint16_t armed;	  /* pages */
};

enum sim_pte_bits { SIM_PTE_PRESENT = 0x8000, SIM_PTE_ARMED = 0x4000, SIM_PTE_NODE = 0x03ff };

/* Random access patterns see a region: part of an area, with a popularity per page. */
struct sim_region {
	struct sim_area_state *area;
	uint64_t start, end; /* offsets, page aligned */
	uint8_t kind;	     /* enum sim_phase_kind */
	bool passes_armed;   /* only absent pages need attention: sim_passes_armed */
	double theta, hot_ratio, hot_share;
	const float *weights; /* by block, or NULL: see struct sim_phase */
	double scale;	      /* popularity of one page = scale x shape */
	uint64_t nr_pages,
		stride; /* ranks are scattered by multiplication with a stride prime to nr_pages */
	float *shape;	/* [nr_pages] where that is small enough; NULL = computed */
	double *node_share;  /* [nr_nodes] popularity of the pages on that node */
	double *block_wants; /* [nr_blocks] popularity of pages that need attention: armed or absent
			      */
	double *tree;	     /* [nr_blocks + 1] Fenwick sums over block_wants */
	uint32_t first_block, nr_blocks;
	double wants;	  /* their sum */
	uint32_t version; /* changes when node_share does */
};

struct sim_area_state {
	const struct sim_area *load;
	uint64_t va; /* of its first byte; unique among all areas */
	uint64_t bytes;
	uint32_t nr_blocks;
	uint32_t gen;	   /* changes with every change of an entry: cached runs end */
	uint32_t mappings; /* processes that map it now */
	struct sim_block *blocks;
	uint64_t *node_pages; /* [nr_nodes] */
	uint32_t nr_regions;
	struct sim_region **regions;
};

/* ---- processes and threads ---- */

struct sim_mapping {
	struct sim_area_state *area;
	bool mapped;
	uint32_t left; /* threads that have passed its unmap */
};

/* A page of a process's that all its threads touch all the time; see backdrop.c. */
struct sim_common {
	int16_t node; /* -1 = not there yet */
	bool armed;
};

enum sim_common_page { SIM_COMMON_DATA, SIM_COMMON_BSS, SIM_COMMON_STACK, SIM_NR_COMMON };

enum sim_process_state { SIM_PROC_WAITING, SIM_PROC_RUNNING, SIM_PROC_DONE };

struct sim_process {
	const struct sim_process_load *load;
	uint32_t id; /* mm id: index + 1 */
	uint8_t state;
	struct nb_mm *mm;
	struct nb_task *waiting; /* backdrop.c: the thread that waits for the others */
	struct sim_common common[SIM_NR_COMMON];
	bool begun;		 /* those of its threads that begin at once are there */
	struct sim_mapping *map; /* [load->nr_areas] */
	uint32_t live_threads, at_barrier;
	uint32_t main_done; /* main-only phases that thread 0 has passed */
};

enum sim_thread_state {
	SIM_T_NEW,
	SIM_T_RUNNABLE, /* on a CPU or in its queue */
	SIM_T_SLEEPING, /* until wake_ns */
	SIM_T_BARRIER,
	SIM_T_MAIN, /* waits for a main-only phase */
	SIM_T_DONE
};

enum { SIM_MAX_MIX = 16 };

/* Where accesses of the moment go: shares of bytes by node. */
struct sim_mix {
	uint8_t nr;
	uint16_t node[SIM_MAX_MIX];
	float share[SIM_MAX_MIX];
};

/* All from one node, as nearly every block of a sweep is. */
static inline bool sim_mix_is_pure(const struct sim_mix *mix)
{
	return mix->nr == 1 && mix->share[0] == 1;
}

/* How far a random pattern gets before something happens to it; see work.c. */
struct sim_plan {
	bool pending, hit; /* hit: it ends at a page that wants attention */
	double n, each;	   /* accesses; ns for each */
	double wants;	   /* popularity of what wanted attention when the plan was made */
};

/* What a byte of one node's memory costs a thread, while nothing that enters it changes. */
struct sim_pace {
	uint32_t epoch; /* sim_world.epoch that it was reckoned at; 0 = not known */
	uint16_t node;
	double ns;   /* for a byte, all lines in flight */
	double rate; /* bytes/ns of a sweep that has everything from there */
};

enum { SIM_MIX_MEMOS = 4096, SIM_PACES = 4 };

/* The mix of a block, as long as its area's gen is this one. */
struct sim_mix_memo {
	const struct sim_area_state *area;
	uint32_t block, gen;
	int absent_node;
	struct sim_mix mix;
};

struct sim_thread {
	/* hot: looked at every tick */
	const struct sim_phase *phase; /* that it is in */
	double pos;		       /* sweep: offset in the area */
	double clean_end;	       /* sweep: nothing needs attention from pos up to here */
	double rate;		       /* bytes/ns in the present mix, 0 = not known */
	double debt_ns; /* kernel work done on its behalf, still to be paid with its time */
	double left;	/* of this tick, ns */
	struct sim_plan plan;
	double wait_until_ns; /* blocked in a fault until then */
	uint32_t clean_gen;   /* area->gen that clean_end was found at */
	int32_t cpu;	      /* CPU id it runs on or queues at, -1 */
	int16_t node;	      /* of that CPU */
	uint16_t in_phase;    /* phase number */
	uint8_t state;
	bool current;			 /* running, not queued */
	bool in_convoy;			 /* in sim_world.convoy */
	uint32_t rate_epoch;		 /* sim_world.epoch that rate was reckoned at */
	uint32_t want_epoch;		 /* and that want was reckoned at */
	struct sim_mix mix;		 /* bytes by node, from pos on */
	struct sim_mix want;		 /* CPU time by node, this tick: its demand on memory */
	struct sim_pace pace[SIM_PACES]; /* by node; see sim_pace_forget */
	uint64_t quiet_ns; /* nb_task_quiet_ns, when sim_world.cut_periods was quiet_cut */
	uint32_t quiet_cut;
	double pulled_rate; /* its pull makes it no faster than that at epoch pulled_epoch; see
			       convoy.c */
	uint32_t pulled_epoch;
	/* warm */
	struct nb_task *task;
	struct sim_process *proc;
	const struct sim_thread_load *load;
	struct sim_area_state *area; /* of the phase */
	uint64_t slice_start, slice_end;
	struct sim_region *own, *all; /* random patterns */
	uint32_t own_version, all_version;
	double done_bytes, done_ns; /* in this phase */
	double loops_left;
	uint64_t *goto_left; /* [nr_phases] */
	double runtime_ns, user_ns, system_ns, wake_ns;
	double slice_left_ns; /* of the CPU timeslice */
	double core_factor;   /* speed on this core now: 1, or less with busy siblings */
	double pull; /* speed-up of a sweep that follows another through the caches; see convoy.c */
	double cached, cache_rate; /* share of its sweep that a cache serves, and bytes/s of that;
				      see convoy.c */
	int32_t pinned_node;	   /* placement: kept on this node; -1 = free */
	int16_t preferred;	   /* node that the system would have it on; -1 = none said */
	int16_t told_node;	   /* node that the engine last heard of; -1 = none */
	int16_t stack_node;	   /* backdrop.c: of its stack's pages */
	bool stack_armed;
	uint32_t id;	     /* task id: index + 1 */
	uint32_t main_seen;  /* main-only phases it need not wait for any more */
	uint32_t queue_next; /* run queue link: index + 1, 0 = end */
};

static inline bool sim_sweeps(const struct sim_thread *t)
{
	return t->phase->kind == SIM_PHASE_SWEEP;
}

/* Do they work on the same memory, from the same start to the same end? */
static inline bool sim_same_slice(const struct sim_thread *a, const struct sim_thread *b)
{
	return a->area == b->area && a->slice_start == b->slice_start &&
	       a->slice_end == b->slice_end;
}

/* A time or an offset, >= 0: a signed conversion is one instruction, an unsigned one is several. */
static inline uint64_t sim_whole(double x)
{
	return (uint64_t)(int64_t)x;
}

/* After each change of the thread's node, phase, core_factor, pull or cached. */
static inline void sim_pace_forget(struct sim_thread *t)
{
	for (int i = 0; i < SIM_PACES; i++)
		t->pace[i].epoch = 0;
}

struct sim_cpu {
	int16_t node;
	bool usable;
	int32_t core;
	uint32_t current;     /* thread index + 1, 0 = idle */
	uint32_t queue, tail; /* waiting threads: index + 1 */
	uint32_t nr_running;
};

/* A huge page on its way. */
struct sim_move {
	struct sim_area_state *area;
	uint32_t block;
	uint32_t by;  /* the task that moves it, and pays for that with its own time */
	int16_t from; /* node it leaves; NB_NO_NODE: it is not moved but appears, by a first touch
		       */
	double until_ns;
};

struct sim_world {
	const struct sim_model *model;
	const struct sim_load *load;
	const struct sim_options *options;
	struct nb_config config;
	struct nb_engine *engine;
	const uint32_t *cut_periods; /* its nb_engine_cut_periods */
	struct sim_memory memory;
	struct sim_rng rng;
	double now_ns, tick_ns;
	unsigned int nr_nodes;
	uint32_t nr_areas;
	struct sim_area_state *areas;
	struct sim_process *processes;
	struct sim_thread *threads;
	struct sim_cpu *cpus; /* [cpu_ids] */
	struct sim_lru *lru;
	uint32_t *core_busy;	      /* [cores] running threads */
	struct sim_thread **run_list; /* running threads, in order of their numbers */
	uint32_t nr_run;
	bool run_list_stale, demand_stale;
	bool convoy_stale;   /* somebody began or ended to run or to sweep */
	bool has_besides;    /* a phase of the load has `with` */
	uint32_t epoch;	     /* counts solutions of memory */
	double next_wake_ns; /* earliest sleeper */
	double used_ns;	     /* how much of the tick the thread at work has used */
	double end_ns;	     /* when the last process ended */
	uint32_t *slow_list; /* scratch: threads that need care this tick */
	double *slow_key;
	uint32_t *convoy; /* [nr_threads] sweeping threads by address */
	uint32_t nr_convoy;
	uint64_t ticks;
	uint32_t nr_waiting; /* runnable but not running */
	uint32_t live_processes, waiting_processes;
	uint32_t common_armed;	/* pages of all processes */
	uint32_t *pool_running; /* [nr_processes] running processes of each pool */
	double next_balance_ns, next_steal_ns;
	/* memory */
	uint64_t *node_capacity; /* [nr_nodes] pages */
	uint64_t *node_used;
	uint64_t *node_fill; /* [nr_nodes] of node_used: what cold memory holds from the start */
	bool *node_low;
	double *copied; /* [nr_nodes^2] bytes since the last tick */
	bool copies;	/* some of the capacity is taken by copies this tick */
	uint16_t (*chunks)[NB_HUGE_PAGES];
	struct sim_mix_memo *memo;		    /* [SIM_MIX_MEMOS] by address */
	uint32_t nr_chunks, max_chunks, free_chunk; /* free list through the first two entries */
	uint32_t nr_moves, max_moves;
	struct sim_move *moves;
	int error; /* first failure inside a callback */
	char *why;
	size_t why_len;
	/* the request that came out of the hint fault being handled */
	bool move_wanted, was_split;
	bool refuse_moves; /* the page is on its way already */
	double kernel_ns;  /* kernel work done in a callback, for the caller to charge */
	struct nb_move_request move;
	/* totals */
	double bytes, local_bytes, sample_bytes, sample_local;
	struct nb_result *out;
	double next_sample_ns, sample_ns;
	uint32_t max_samples;
	bool final_taken;
	uint64_t steps; /* of all threads that needed care, so far */
	uint64_t next_progress_ms;
};

/* pages.c */
int sim_area_init(struct sim_world *w, struct sim_area_state *a, const struct sim_area *load,
	uint64_t *next_va);
void sim_area_free(struct sim_world *w, struct sim_area_state *a);
static inline uint32_t sim_block_of(const struct sim_area_state *a, uint64_t offset)
{
	return (uint32_t)(((a->va + offset) >> NB_HUGE_SHIFT) - (a->va >> NB_HUGE_SHIFT));
}
/* Offsets of the pages of block b: [*start, *end). */
static inline void sim_block_range(
	const struct sim_area_state *a, uint32_t b, uint64_t *start, uint64_t *end)
{
	const uint64_t first = ((a->va >> NB_HUGE_SHIFT) + b) << NB_HUGE_SHIFT;

	*start = first > a->va ? first - a->va : 0;
	*end = first + NB_HUGE_SIZE - a->va;
	if (*end > a->bytes)
		*end = a->bytes;
}
static inline uint32_t sim_block_pages(const struct sim_area_state *a, uint32_t b)
{
	uint64_t start, end;

	sim_block_range(a, b, &start, &end);
	return (uint32_t)((end - start) >> NB_PAGE_SHIFT);
}
bool sim_block_whole(const struct sim_area_state *a, uint32_t b);
/* PTE number, in its block, of the page at offset. */
static inline uint32_t sim_pte_index(const struct sim_area_state *a, uint64_t offset)
{
	return (uint32_t)((a->va + offset) >> NB_PAGE_SHIFT) & (NB_HUGE_PAGES - 1);
}
int sim_block_expand(struct sim_world *w, struct sim_area_state *a, uint32_t b);
void sim_block_contract(struct sim_world *w, struct sim_area_state *a, uint32_t b);
uint16_t sim_pte_get(const struct sim_world *w, const struct sim_area_state *a, uint64_t offset);
int sim_pte_set(struct sim_world *w, struct sim_area_state *a, uint64_t offset, uint16_t pte);
/* Every page of the block at once. node < 0: absent. */
void sim_block_set(
	struct sim_world *w, struct sim_area_state *a, uint32_t b, int node, uint16_t flags);
/* A huge page becomes small ones. */
void sim_block_split(struct sim_world *w, struct sim_area_state *a, uint32_t b, bool keep_armed);
/* Put every page on the slowest tier; nothing on a machine with one tier. -ENOSPC. */
int sim_area_preload(struct sim_world *w, struct sim_area_state *a);
void sim_pages_drop(struct sim_world *w, struct sim_area_state *a);
/* The node that all of block b counts for, absent pages for `absent_node`; -1: its pages differ. */
static inline int sim_block_node(const struct sim_area_state *a, uint32_t b, int absent_node)
{
	const struct sim_block *block = &a->blocks[b];

	if (block->flags & SIM_B_PTES)
		return -1;
	return block->flags & SIM_B_PRESENT ? block->node : absent_node;
}
/* Shares by node of the pages in [start, end) of one block; absent pages count for `absent_node`.
 */
void sim_block_mix(const struct sim_world *w, const struct sim_area_state *a, uint64_t start,
	uint64_t end, int absent_node, struct sim_mix *mix);
/* A node with a free page: `wanted`, else the nearest; -1 when memory is out. */
int sim_alloc_node(const struct sim_world *w, int wanted, uint64_t pages);
void sim_node_account(struct sim_world *w, int node, int64_t pages);
const char *sim_pages_check(const struct sim_world *w);

/* attention.c */
struct sim_region *sim_region_get(struct sim_world *w, struct sim_area_state *a, uint64_t start,
	uint64_t end, const struct sim_phase *phase);
void sim_region_free(struct sim_region *r);
/* One with weights belongs to a single phase of a single thread: it is left. NULL is allowed. */
void sim_region_leave(struct sim_region *r);
/* A block is about to change as a whole (sign = -1), or just did (1). */
void sim_regions_block(struct sim_world *w, struct sim_area_state *a, uint32_t b, double sign);
/* One page changed from pte `from` to `to`. */
void sim_regions_page_changed(
	struct sim_world *w, struct sim_area_state *a, uint64_t offset, uint16_t from, uint16_t to);
/* A page that needs attention, by popularity; UINT64_MAX when none does. */
uint64_t sim_region_pick(struct sim_world *w, const struct sim_region *r);
const char *sim_regions_check(const struct sim_world *w);

/* touch.c: make the pages of [offset, end) (one block) usable for t; returns ns of kernel work, or
 * < 0 on error. */
double sim_touch_block(
	struct sim_world *w, struct sim_thread *t, uint64_t offset, uint64_t end, uint32_t flags);
double sim_touch_page(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint32_t flags);
/* enum nb_fault_flags of the phase's next touch: whether it writes is drawn. */
uint32_t sim_touch_flags(struct sim_world *w, const struct sim_phase *p);
/* Do such accesses leave an armed entry as it is? Lookups do, and those that the kernel makes on
 * the program's behalf where get_user_pages takes no hint faults. */
bool sim_passes_armed(const struct sim_world *w, bool kernel, bool lookup);
/* An mbind that begins or ends inside a huge page splits it, as the VMA is split there. */
void sim_split_at(struct sim_world *w, struct sim_thread *t, uint64_t offset);
/* The move the block is in, or NULL. */
const struct sim_move *sim_move_of(
	const struct sim_world *w, const struct sim_area_state *a, uint32_t b);
/* What a flush of this process's range costs: this CPU and an interrupt to each other one that runs
 * it. */
double sim_flush_cost(const struct sim_world *w, const struct sim_process *p);
void sim_moves_finish(struct sim_world *w);

/* lru.c */
int sim_lru_init(struct sim_world *w);
void sim_lru_free(struct sim_world *w);
/* `pages` small pages from va on appeared on, or were moved by, this CPU; -1 = none that we know.
 */
void sim_lru_add(struct sim_world *w, int32_t cpu, uint64_t va, uint64_t pages);
/* The CPU's batch goes on its way; every CPU's, now and then, where khugepaged runs. */
void sim_lru_drain(struct sim_world *w, int32_t cpu);
void sim_lru_tick(struct sim_world *w);
/* Is the page in a batch, so that it can't be moved? */
bool sim_lru_holds(const struct sim_world *w, uint64_t va);

/* placed.c: static placements. The node of a page under the placement in force; only when there is
 * one. */
int sim_placed_node(const struct sim_world *w, const struct sim_thread *t, uint64_t offset);

/* backdrop.c: program, libraries and stacks */
void sim_backdrop_map(struct sim_world *w, struct sim_process *p);
/* The process ends. */
void sim_backdrop_leave(struct sim_world *w, struct sim_process *p);
/* A range outside all areas; -EFAULT where nothing is. */
int sim_backdrop_arm(
	struct sim_world *w, const struct nb_arm_request *r, struct nb_arm_result *out);
/* A thread begins, gets a CPU for the first time. */
void sim_backdrop_begin(struct sim_world *w, struct sim_thread *t);
void sim_backdrop_settle(struct sim_world *w, struct sim_thread *t);
/* Its armed stack's pages fault; the armed pages that all threads of a process touch. */
void sim_backdrop_touch(struct sim_world *w, struct sim_thread *t);
void sim_backdrop_touch_common(struct sim_world *w);

/* door.c */
struct nb_engine *sim_door_open(struct sim_world *w);
struct sim_area_state *sim_area_at(struct sim_world *w, uint64_t va);

/* sched.c */
int sim_sched_init(struct sim_world *w);
void sim_sched_free(struct sim_world *w);
void sim_sched_wake(struct sim_world *w, struct sim_thread *t);
void sim_sched_sleep(struct sim_world *w, struct sim_thread *t);
void sim_sched_tick(struct sim_world *w);
int sim_sched_run_on(struct sim_world *w, struct sim_thread *t, int node);
/* As machine.h's run_on and swap. */
int sim_sched_move(struct sim_world *w, struct sim_thread *t, int node);
int sim_sched_swap(struct sim_world *w, struct sim_thread *t, struct sim_thread *other);
void sim_sched_refresh(struct sim_world *w);
const char *sim_sched_check(const struct sim_world *w);

/* phases.c: the first phase; those whose sleep is over */
void sim_phase_start(struct sim_world *w, struct sim_thread *t);
void sim_phase_wake(struct sim_world *w);
/* Its phase is over: on to the next one that takes time, or to being blocked or done. */
void sim_phase_over(struct sim_world *w, struct sim_thread *t);

/* work.c */
void sim_work_tick(struct sim_world *w);
const char *sim_work_check(const struct sim_world *w);
/* demand.c: what threads ask of memory this tick, and the rates that come out */
void sim_demand(struct sim_world *w);
double sim_rate_of(
	const struct sim_world *w, const struct sim_thread *t, const struct sim_mix *mix);
/* Known, and all its bytes are from that node: what a sweep's pace is now. NULL: not so. */
static inline const struct sim_pace *sim_pace_known(
	const struct sim_world *w, const struct sim_thread *t)
{
	const struct sim_pace *pace = &t->pace[t->mix.node[0] % SIM_PACES];

	return sim_mix_is_pure(&t->mix) && pace->epoch == w->epoch && pace->node == t->mix.node[0]
		       ? pace
		       : NULL;
}
/* Sets rate to that of the thread's mix, and rate_epoch. */
void sim_rate_renew(const struct sim_world *w, struct sim_thread *t);
static inline double sim_rate_now(const struct sim_world *w, struct sim_thread *t)
{
	if (t->rate_epoch != w->epoch)
		sim_rate_renew(w, t);
	return t->rate;
}
/* Is every pace that counts as known what would be reckoned now? */
const char *sim_paces_check(const struct sim_world *w);
/* Does nobody go faster than the bound that is known of it? Bounds hold from sim_convoy_update to
 * sim_demand. */
const char *sim_pulls_check(const struct sim_world *w);
/* convoy.c: who follows whom */
void sim_convoy_update(struct sim_world *w);
/* Which blocks a sweep may pass without care, from pos on; sets mix, clean_end, clean_gen. False on
 * error. */
bool sim_sweep_establish(struct sim_world *w, struct sim_thread *t);

/* run.c */
/* What sim_run does, step by step, for tests that look inside: the pointers from model to why_len
 * are set by the caller; tick k begins at now_ns = k * tick_ns. close is needed after a failed open
 * too.
 */
int sim_world_open(struct sim_world *w);
void sim_world_tick(struct sim_world *w);
void sim_world_close(struct sim_world *w);
/* Tell how far it is and fail if told to stop, about every 100 ms: to be called more often. */
void sim_look_up(struct sim_world *w);
void sim_fail(struct sim_world *w, int err, const char *text);
void sim_thread_begin(struct sim_world *w, struct sim_thread *t);
/* It is about to: with the last one all that a series shows is gone. */
void sim_thread_ends(struct sim_world *w, const struct sim_thread *t);
void sim_process_exit(struct sim_world *w, struct sim_process *p);
void sim_process_map(struct sim_world *w, struct sim_process *p, uint32_t area);
void sim_process_unmap(struct sim_world *w, struct sim_process *p, uint32_t area);

#endif
