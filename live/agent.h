/* SPDX-License-Identifier: MIT */
/*
 * agent: what the agent's thread has to itself, and its rooms. Only this thread calls these
 * functions, but for those marked.
 *
 * The rounds: wait for faults, requests or the next tick; serve faults; serve requests; once a
 * tick, let the engine look at each thread that ran (it may ask to arm); then background work in
 * slices: moves, memory taken back after forks, files emptied, huge pages restored. Between slices
 * faults are looked for again.
 */
#ifndef NB_LIVE_AGENT_H
#define NB_LIVE_AGENT_H

#include "guest.h"

enum {
	NB_MAX_THREADS = 4096,
	NB_MAX_MOVES = 1024,
	NB_MAX_SEEN = NB_MAX_REGIONS,
	NB_HUGE_MASK = NB_HUGE_SIZE - 1,
	NB_LAST_SAMPLES = 128, /* the window of what is local now */
};

struct nb_thread {
	uint32_t tid;
	int stat_fd; /* /proc/self/task/TID/stat, kept open; -1 = opened each time */
	struct nb_task *task;
	uint64_t runtime_ns;
	uint64_t scan_ns;		/* the run time that the engine was told of */
	uint64_t told_ns, told_wait_ns; /* what the diary has of its run and waiting time */
	uint32_t since, seen; /* the first and last look at /proc/self/task that found it */
	int16_t node;	      /* where it ran last */
	bool runs;	      /* it did since the last tick */
	bool homeless;	      /* it is not known yet where it belongs */
	int16_t home;	      /* when it was looked at last; NB_NO_NODE = not known */
};

/* A range of whole blocks that the engine knows as a VMA. */
struct nb_span {
	uint64_t start, end;
};

enum {
	NB_MAX_REACH = 3 * NB_HUGE_PAGES, /* pages of a block and the odd ends of its region */
	NB_BATCH_MOVES = 4,
	NB_BATCH_PAGES = (NB_BATCH_MOVES - 1) * NB_HUGE_PAGES + NB_MAX_REACH,
};

/* How fast pages move, as far as the last calls say. Zeroed: nothing is known. */
struct nb_pace {
	uint32_t pages;	  /* that the next call takes: whole blocks */
	uint64_t page_ns; /* of a page */
};

/* Some moves together, and their pages for move_pages. */
struct nb_batch {
	struct {
		struct nb_move_request request;
		uint32_t first, end; /* its pages */
		uint32_t moved;
		long err;
	} move[NB_BATCH_MOVES];
	uint32_t nr_moves, nr;
	struct nb_pace pace; /* of this batch and those before it */
	void *page[NB_BATCH_PAGES];
	int node[NB_BATCH_PAGES], status[NB_BATCH_PAGES];
};

enum nb_carrier_state {
	NB_CARRIER_IDLE,
	NB_CARRIER_WORK, /* the batch is the carrier's */
	NB_CARRIER_DONE, /* and the agent's again */
};

/* A helper that moves pages. */
struct nb_carrier {
	struct nb_helper_stack stack;
	struct nb_guest *guest;
	uint32_t number;
	_Atomic uint32_t state;	 /* enum nb_carrier_state; waited for */
	_Atomic uint64_t cpu_ns; /* CPU time it has used */
	long rc;		 /* of the call */
	struct nb_batch batch;
};

/* Pages to be armed. */
enum {
	NB_MAX_ARMS = 4096,
};

struct nb_armer {
	uint64_t page[NB_MAX_ARMS];
	uint32_t head, nr;
	uint32_t urgent;     /* of them, at the head: of blocks of which nothing is known yet */
	uint64_t next_ns;    /* when the next slice of the others may come */
	uint64_t retry_ns;   /* when one of any may, as the regions' lock was not to be had */
	uint64_t since_ns;   /* when the first of the round was chosen */
	uint64_t start, end; /* of what the engine asked for in this round */
	bool all;	     /* each block is to be asked, whatever is known of it */
};

/* Faults that were resolved, and that the engine has not heard of. */
enum {
	NB_MAX_SIGHTS = 1024,
};

struct nb_sight {
	uint64_t addr;
	uint32_t tid;
	bool write;
};

struct nb_sights {
	struct nb_sight sight[NB_MAX_SIGHTS];
	uint32_t head, nr;
};

struct nb_mover {
	struct nb_batch batch; /* where there is no carrier */
	struct nb_move_request queue[NB_MAX_MOVES];
	uint32_t head, nr;
	bool began;
};

/* See diary.c. */
struct nb_diary {
	unsigned char *told; /* a bit for each block; NULL = not kept */
	uint64_t next_ns, next_runs_ns;
};

struct nb_agent {
	struct nb_guest *guest;
	struct nb_heap heap;
	struct nb_topology topo; /* borrowed from the session */
	bool is_virtual;
	bool has_homes;		      /* tasks belong to nodes in this row */
	bool observe_only;	      /* move_pages was refused */
	bool has_wp;		      /* userfaultfd can write-protect shared memory */
	bool maps_full;		      /* vm.max_map_count is near */
	bool thp_always, thp_madvise; /* what anonymous memory gets */
	int signal_fd, pagemap_fd, task_fd;
	uint64_t random;

	struct nb_engine *engine;
	struct nb_mm *mm;
	uint32_t seen_version; /* of the regions, when the engine was told last */
	uint32_t nr_spans;
	struct nb_span *spans;	/* [NB_MAX_SEEN] what the engine knows */
	struct nb_span *wanted; /* [NB_MAX_SEEN] scratch */

	uint32_t nr_threads, look;
	struct nb_thread *threads; /* [NB_MAX_THREADS] */
	uint64_t next_tick_ns, next_look_ns, next_canary_ns, next_publish_ns, next_maps_ns;
	uint64_t max_maps; /* vm.max_map_count; 0 = not known */
	/* Threads that ran between the last two ticks, and those of them that are new: it is not
	 * known yet where they belong. */
	uint32_t nr_running, nr_homeless;
	uint32_t *residents;	 /* [nr_nodes] scratch: tasks that belong to each node */
	uint64_t *full_until_ns; /* [nr_nodes] move.c: it had no memory; 0 = it may have some */

	struct nb_armer armer;
	struct nb_sights sights;
	struct nb_mover mover;
	struct nb_diary diary;
	uint64_t next_survey_ns;
	struct nb_carrier *carrier[NB_MAX_CARRIERS];
	uint32_t nr_carriers;
	uint64_t placed_nodes; /* bits: threads were moved there, since look placed_look */
	uint32_t placed_look;
	bool taking_back;	 /* the children are gone: private memory comes back */
	bool sweep;		 /* backings without users may be there */
	uint32_t direct_looks;	 /* direct.c: blocks taken back since the last look */
	uint64_t next_direct_ns; /* and when to look again */
	uint64_t collapse_at;	 /* where to look for settled blocks next */
	uint64_t next_collapse_ns;
	bool more_to_collapse;
	/* Where to look for those that can be inferred by now; at >= end: nowhere. */
	uint64_t infer_at, infer_end;
	uint64_t first_move_ns;
};

static inline uint64_t nb_agent_random(struct nb_agent *a)
{
	/* splitmix64 */
	uint64_t z = (a->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* ---- userfaultfd.c ---- */

/* Open it by whatever way works, with the features needed: a descriptor or -errno. */
long nb_uffd_open(bool *has_wp);
enum { NB_UFFD_MINOR = 4, NB_UFFD_WP = 2 }; /* UFFDIO_REGISTER_MODE_* */
long nb_uffd_register(int uffd, uint64_t start, uint64_t end, uint64_t mode);
long nb_uffd_unregister(int uffd, uint64_t start, uint64_t end);
long nb_uffd_protect(int uffd, uint64_t start, uint64_t end, bool on);
long nb_uffd_wake(int uffd, uint64_t start, uint64_t end);
/* Map what the page cache holds. 0, -EEXIST: it is mapped, -ENOENT: not ours, -EFAULT: a hole. */
long nb_uffd_continue(int uffd, uint64_t start, uint64_t end);
/* The same; *at is how far it came. */
long nb_uffd_continue_from(int uffd, uint64_t *at, uint64_t end);

/* ---- backing.c, private.c, eject.c, direct.c: what maps what ---- */

int nb_backing_adopt(struct nb_agent *a, const struct nb_wish *w);
/* Everything becomes private; with_canary: one is mapped. May be called by the watchdog. */
int nb_backing_pre_fork(struct nb_guest *g, bool with_canary);
int nb_backing_eject(struct nb_agent *a, uint64_t start, uint64_t end);
/* One slice of work; true when there is more to do. */
bool nb_backing_take_back(struct nb_agent *a);
bool nb_backing_sweep(struct nb_agent *a);
/* A device may write into the program's memory at any time; asked for now and then, and noted. */
bool nb_direct_io(struct nb_agent *a);
/* Ask whether the children of the last forks are gone. */
void nb_backing_look_at_canary(struct nb_agent *a);
/* Put what a mapping loses when it is mapped anew back: advice. The lock is held. */
void nb_backing_advise(const struct nb_region *r, uint64_t start, uint64_t end);
/* Data of [start, end) that is in anonymous copies: bit per page of at most a block, set in `bits`.
 * 0 or -errno. */
enum { NB_BLOCK_BITS = NB_HUGE_PAGES / 64 };
int nb_backing_copies(
	struct nb_agent *a, uint64_t start, uint64_t end, uint64_t bits[NB_BLOCK_BITS]);
/* The next extent with data in [*at, end) of the file: false when there is none. */
bool nb_backing_extent(int fd, uint64_t *at, uint64_t end, uint64_t *extent_end);
/* The block state at addr, or NULL. The regions' lock is held. */
struct nb_block *nb_block_at(struct nb_regions *t, uint64_t addr);

/*
 * Map what the page cache holds of a block and what is not mapped, so that nobody faults on it.
 * Armed pages too. The lock is held.
 */
void nb_backing_map_block(struct nb_agent *a, uint64_t start, uint64_t end);

/* ---- fault.c ---- */

/* Let all go that wait. May be called at any time, also while the engine asks for something. */
void nb_faults_resolve(struct nb_agent *a);
/* The same, and tell the engine of all that were let go. */
void nb_faults_serve(struct nb_agent *a);
/* Tell the engine of what can be inferred by now; true when there is more. */
bool nb_faults_infer(struct nb_agent *a);

/* ---- judge.c: what touches say of blocks ---- */

enum { NB_MAX_INFERRED = 16 };

/*
 * A block of which a page is at `node` was touched by who belongs to `home`. What to tell the
 * engine besides: NB_FAULT_DOUBT, NB_FAULT_SURE or nothing.
 */
uint32_t nb_judge_touch(struct nb_agent *a, uint64_t block, int node, int home);
/*
 * After the engine was told; waits: it found that too little to move the block. The blocks around
 * that are likely wanted at `home` as well, and of which nothing else is known: how many.
 */
uint32_t nb_judge_others(
	struct nb_agent *a, uint64_t block, int home, bool waits, uint64_t found[NB_MAX_INFERRED]);
/* What is in [start, end) may be inferred by now. */
void nb_judge_again(struct nb_agent *a, uint64_t start, uint64_t end);
/* A slice of that: blocks that can be, and where they are wanted. */
uint32_t nb_judge_sweep(
	struct nb_agent *a, uint64_t found[NB_MAX_INFERRED], int home[NB_MAX_INFERRED]);
/*
 * An inferred block was found at `node`. False: it is neither where it is wanted nor where those
 * around it came from, so somebody has put it there: it is not inferred, but asked.
 */
bool nb_judge_guess(struct nb_agent *a, uint64_t block, int home, int node);
/* What was inferred of it leads to nothing: it is unknown again. */
void nb_judge_forget(struct nb_agent *a, uint64_t block);
/* Who belonged to that node belongs elsewhere: the owners of its blocks are unknown again. False:
 * try again. */
bool nb_judge_left(struct nb_agent *a, int home);
/* Not every block needs to be asked there. The lock is held. */
bool nb_judge_may_infer(struct nb_agent *a, uint64_t block);
/* It can be inferred by now, and will be. The lock is held. */
bool nb_judge_infers(struct nb_agent *a, uint64_t block);

/* ---- sample.c ---- */

/* The engine's request to arm, answered by choosing one page in each block. */
int nb_sample_arm(void *ctx, const struct nb_arm_request *r, struct nb_arm_result *out);
/* Another page of the block, without being asked by the engine. The lock is held. */
void nb_sample_again(struct nb_agent *a, uint64_t block);
/* Arm a slice of what was chosen, when its time has come. */
void nb_sample_work(struct nb_agent *a);
/* When that is; UINT64_MAX: there is nothing to arm. */
uint64_t nb_sample_next_ns(const struct nb_agent *a, uint64_t now);

/* ---- move.c ---- */

int nb_move_ask(void *ctx, const struct nb_move_request *r);
bool nb_move_work(struct nb_agent *a);
/* Are nodes that had no memory to be tried again? */
void nb_move_look(struct nb_agent *a, uint64_t now);
/* The node a page is on, as a topology index; NB_NO_NODE when it can't be told. */
int nb_page_node(struct nb_agent *a, uint64_t addr);
/* Where memory for a node's CPUs is: itself, or the nearest one with memory. */
int nb_near_node(const struct nb_agent *a, int node);
/* The node of some page of the block that is elsewhere than on `home`; `home` when all that were
 * asked for are there. */
int nb_block_stray(struct nb_agent *a, uint64_t block, int home);
/* The whole blocks in a region; empty (start >= end) when there is none. */
struct nb_span nb_whole_blocks(const struct nb_region *r);
/* The addresses that go with a block: itself, and the odd ends of its region. */
struct nb_span nb_block_reach(const struct nb_region *r, uint64_t block);

/* ---- threads.c ---- */

/* NULL: not in the table; find tells the engine of it then, so only known may be asked from one of
 * its requests. */
struct nb_thread *nb_thread_known(struct nb_agent *a, uint32_t tid);
struct nb_thread *nb_thread_find(struct nb_agent *a, uint32_t tid);
/* Its file of that name ("/stat") in /proc: a descriptor, or -errno. */
long nb_thread_open(struct nb_agent *a, uint32_t tid, const char *name);
/* The node a thread runs on now. */
int nb_thread_node(struct nb_agent *a, struct nb_thread *t);
void nb_threads_look(struct nb_agent *a);
/* Has any of those found by the last look a memory policy? Also true when it can't be told. */
bool nb_threads_have_policy(struct nb_agent *a);
void nb_threads_tick(struct nb_agent *a);

/* ---- carrier.c ---- */

/* Move what is in a batch, here and now: 0 or -errno. */
long nb_batch_carry(struct nb_guest *g, struct nb_batch *b);
/* A call for so many pages took so long: how many the next one takes to stay below the goal. Whole
 * blocks, one at least, and at most twice as many as before. */
uint32_t nb_pace_step(struct nb_pace *p, uint32_t pages, uint64_t took_ns, uint64_t goal_ns);
/* As many as this topology wants, or as can be had: a->carrier, a->nr_carriers. */
void nb_carriers_start(struct nb_agent *a);
/* Its batch is filled. */
void nb_carrier_send(struct nb_carrier *c);
/* Let them see that they are to end. */
void nb_carriers_end(struct nb_agent *a);
uint64_t nb_carriers_cpu_ns(const struct nb_agent *a);

/* ---- place.c: threads change nodes ---- */

/* As run_on and swap of engine/machine.h. */
int nb_place_run_on(void *ctx, uint32_t task, int node);
int nb_place_swap(void *ctx, uint32_t task, uint32_t other);
/* After the engine was told of something: who was made by a thread while it was moved is freed. */
void nb_place_settle(struct nb_agent *a);

/* ---- door.c: the engine's machine ---- */

int nb_door_open(struct nb_agent *a);
/* Tell the engine what changed in the table of regions. */
void nb_door_sync(struct nb_agent *a);
/* LAZY and POLICY: 0, -ENOENT when nothing in the range is balanced, -EINVAL. */
int nb_door_policy(struct nb_agent *a, const struct nb_wish *w);
void nb_door_publish(struct nb_agent *a);

/* ---- diary.c ---- */

/* Whether a diary is kept at all. */
void nb_diary_open(struct nb_agent *a);
/* What is in [start, end) from now on is new. */
void nb_diary_forget(struct nb_agent *a, uint64_t start, uint64_t end);
/* When diary.next_ns has come. */
void nb_diary_work(struct nb_agent *a);

/* ---- survey.c ---- */

/* Where memory is, for those who watch; nothing while nobody does. */
void nb_survey(struct nb_agent *a);

/* ---- huge.c ---- */

void nb_huge_init(struct nb_agent *a);
/* Give a settled block its huge page back, when it is time for that. */
void nb_huge_work(struct nb_agent *a);
/* A block all of which was unmapped, where only one page was to be armed, is mapped again. The lock
 * is held. */
void nb_huge_map(struct nb_agent *a, uint64_t block, struct nb_block *b);

/* ---- request.c ---- */

typedef int (*nb_serve_fn)(void *ctx, const struct nb_wish *w);
/* Serve what is pending for at least `age_ns`. May be called by the watchdog. Returns how many. */
int nb_requests_serve(struct nb_guest *g, uint64_t age_ns, nb_serve_fn serve, void *ctx);

/* ---- watchdog.c ---- */

void nb_watchdog_main(void *guest);

/* What the watchdog sees of the agent, a few times in the time that a fault may wait. */
struct nb_watch_look {
	uint64_t now_ns;
	uint64_t held;	   /* since when it has had a fault in its hands; 0 = it has none */
	uint64_t progress; /* it changes while the agent does something */
	bool waits;	   /* a fault that it has not taken */
};

struct nb_watch {
	uint64_t now_ns, held, progress; /* of the last look */
	uint64_t waited_ns;		 /* the same fault, as far as is known */
	uint64_t quiet_ns;		 /* no progress for so long */
};

/* True: it has waited for `limit_ns`. */
bool nb_watch_step(struct nb_watch *w, const struct nb_watch_look *look, uint64_t limit_ns);
/* Unregister everything, close the descriptor, and count it. Any helper. */
void nb_guest_close(struct nb_guest *g, int note);

/* ---- procfs.c ---- */

/* Write a number in decimal, ended by a 0: where that is. */
char *nb_procfs_number(char *p, uint32_t n);
/* Call fn for each name in the open directory that is a number: 0 or -errno. */
typedef void (*nb_procfs_fn)(void *ctx, uint32_t number);
long nb_procfs_each(long dir, nb_procfs_fn fn, void *ctx);

/* ---- maps.c ---- */

struct nb_map {
	uint64_t start, end, offset;
	uint64_t device, inode;
	uint32_t prot;
	bool shared;
};
/* Call fn for each mapping of this process: 0, or -errno, or what fn returned when not 0. */
typedef int (*nb_map_fn)(void *ctx, const struct nb_map *m);
int nb_maps_each(int proc_fd, nb_map_fn fn, void *ctx);

/* /proc/self/pagemap: an entry for each page from addr on. False: not all could be read. */
bool nb_pagemap_read(struct nb_agent *a, uint64_t addr, uint64_t pages, uint64_t *entry);

static inline bool nb_pagemap_present(uint64_t entry)
{
	return entry >> 63;
}

/*
 * Bit 63 present, 62 swapped, 61 a file's or shared. Present and not a file's: a copy. A swapped
 * one may be a copy, or the mark that write-protection leaves where nothing was mapped.
 */
static inline bool nb_pagemap_copy(uint64_t entry)
{
	return (entry >> 62) != 0 && !(entry >> 61 & 1);
}

#endif
