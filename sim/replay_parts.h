/* SPDX-License-Identifier: MIT */
/*
 * replay_parts: what a replay holds; private to sim/replay*.c. Rooms: replay.c takes events in,
 * replay_use.c makes intervals of them, replay_load.c a load for a machine.
 */
#ifndef NB_SIM_REPLAY_PARTS_H
#define NB_SIM_REPLAY_PARTS_H

#include "replay.h"

enum {
	RP_MAX_BLOCKS = 4 << 20, /* of 2 MiB: 8 TiB, and room for them in 100 MiB */
	RP_MAX_SAMPLES = 16 << 20,
	RP_MAX_RUNS = 16 << 20,
	RP_MAX_AREAS = 60000, /* of a process */
	RP_MAX_INTERVALS = 64,
	RP_TID_BUCKETS = 1 << 12,
};

#define RP_NONE	 UINT32_MAX
#define RP_NEVER UINT64_MAX

/* An armed page that is touched within this time says nothing of how often: arming takes its time
 * too, and is not told of page by page. */
#define RP_PROMPT_S 0.1

struct rp_process {
	uint32_t mm;
	uint64_t start_ns, end_ns; /* of what is recorded of it */
	bool gone;
	uint32_t nr_threads, nr_areas; /* set by sim_replay_use */
	uint32_t nr_intervals;
	double interval_s;
	bool touches[RP_MAX_INTERVALS]; /* memory is touched first in that interval */
};

struct rp_thread {
	uint32_t tid, process;
	uint32_t next; /* of its bucket, RP_NONE = none */
	uint64_t start_ns, end_ns;
	uint64_t told_ns; /* up to when its run time is known */
	bool waits;	  /* it was told how long it waited for a CPU */
	uint64_t samples, writes;
	uint32_t number; /* in its process; set by sim_replay_use */
};

/* A VMA. Its blocks are those at multiples of 2 MiB; the first and the last may be partial. */
struct rp_vma {
	uint32_t process;
	uint64_t start, end, map_ns, unmap_ns;
	uint64_t left; /* bytes still mapped */
	uint32_t first_block, nr_blocks;
	bool used;
	/* set by sim_replay_use */
	uint32_t number; /* in its process, of those used */
	uint32_t users;	 /* threads */
	uint32_t mark;	 /* the last one counted + 1 */
};

struct rp_block {
	uint64_t armed_ns;   /* since when an armed page waits; RP_NEVER = none does */
	uint64_t present_ns; /* RP_NEVER: not said */
	uint32_t vma;
	uint32_t first_user; /* the thread of its first sample, RP_NONE = none */
	/* set by sim_replay_use */
	uint32_t owner;	  /* the thread that uses it most */
	uint32_t toucher; /* that touched it first */
	bool goes_on;	  /* as it did the block before */
};

struct rp_sample {
	uint64_t ns;
	uint32_t block, thread;
	float weight;
};

struct rp_run {
	uint64_t from_ns, to_ns;
	uint32_t thread;
	int16_t node;
	double run_s, wait_s;
};

/* Blocks that were found present, and the runs known by then. */
struct rp_present {
	uint64_t ns;
	uint32_t first_block, nr_blocks;
	size_t nr_runs;
	int16_t node;
};

/* What a thread uses in an interval, of one VMA: blocks first .. first + nr of the VMA's. */
struct rp_use {
	uint32_t thread, interval, vma, first, nr;
	size_t weights; /* of each, in sim_replay.weights */
	double share;	/* of the thread's accesses in the interval */
};

/* First touches. */
struct rp_touch {
	uint32_t thread, interval, vma, first, nr;
};

/* Of a thread in an interval. */
struct rp_time {
	double run_s, wait_s;
};

#define RP_LIST(type, name)                                                                        \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t nr, room;                                                                   \
	} name

struct sim_replay {
	char name[SIM_TEXT];
	uint64_t nr_events;
	double memory; /* share of run time that waits for memory */
	uint8_t thp;
	RP_LIST(struct rp_process, processes);
	RP_LIST(struct rp_thread, threads);
	RP_LIST(struct rp_vma, vmas);
	RP_LIST(struct rp_block, blocks);
	RP_LIST(struct rp_sample, samples);
	RP_LIST(struct rp_run, runs);
	RP_LIST(struct rp_present, presents);
	uint32_t bucket[RP_TID_BUCKETS]; /* threads by tid: the newest, RP_NONE = none */
	uint32_t last_vma;		 /* the one found last */
	/* made by sim_replay_use */
	RP_LIST(struct rp_use, uses);	   /* by thread, interval, VMA */
	RP_LIST(struct rp_touch, touches); /* by thread, interval */
	RP_LIST(float, weights);
	RP_LIST(uint32_t, owners);	/* by block: the number of the thread in its process */
	RP_LIST(struct rp_time, times); /* [threads * RP_MAX_INTERVALS] */
};

/* One more element, zeroed, or NULL. `list` is the address of an RP_LIST. */
#define RP_ADD(list)                                                                               \
	(rp_grow((void **)&(list)->at, &(list)->nr, &(list)->room, sizeof(*(list)->at))            \
			? NULL                                                                     \
			: &(list)->at[(list)->nr - 1])
/* Behind its last element. */
#define RP_END(list) ((list).nr ? (list).at + (list).nr : (list).at)
int rp_grow(void **at, size_t *nr, size_t *room, size_t size);

/* Everything after the last event. 0, -ENOMEM, -E2BIG. */
int sim_replay_use(struct sim_replay *r);

/* In which interval of its process; the last one for what is at its end. */
uint32_t rp_interval(const struct rp_process *p, uint64_t ns);

#endif
