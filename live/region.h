/* SPDX-License-Identifier: MIT */
/*
 * region: the table of managed memory: which addresses are backed by which memfd, and how.
 *
 * A region is a range of addresses that maps one memfd (a backing) with one set of rights. An mmap
 * makes a backing and a region; munmap, mprotect and mremap cut regions, so a backing may carry
 * several. Where an address lies in the file follows from the region: offset + (addr - start); and
 * offset and start agree modulo 2 MiB, so that huge pages fit.
 *
 * States: SHARED: the file is mapped MAP_SHARED and registered with userfaultfd: it may be armed
 * and moved. PRIVATE: mapped MAP_PRIVATE for a fork; the file is a snapshot that a child may be
 * reading and must not change, and newer data is in anonymous copies.
 *
 * Thread rules: the table is read and changed under its lock (table->lock), but for
 * nb_regions_touch, which any thread may ask at any time without it: it answers for what has been
 * there since before the question, which is enough for the program's own calls on its own memory.
 */
#ifndef NB_LIVE_REGION_H
#define NB_LIVE_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "../engine/topology.h"
#include "lock.h"

enum {
	NB_MAX_REGIONS = 2048,	/* and so many VMAs at most, in all states */
	NB_MAX_BACKINGS = 1024, /* made by the program's mmaps */
	NB_NO_BACKING = UINT16_MAX,
	NB_FD_FREE = -1,
	NB_FD_ELSEWHERE = -2,
};

enum nb_region_flags {
	NB_REGION_PRIVATE = 1 << 0, /* see above; else shared */
	NB_REGION_POLICY = 1 << 1,  /* the program said where it belongs (mbind): never move it */
	NB_REGION_LOCKED = 1 << 2,  /* mlock: not armed */
	NB_REGION_HUGE = 1 << 3,    /* MADV_HUGEPAGE */
	NB_REGION_NO_HUGE = 1 << 4, /* MADV_NOHUGEPAGE */
	NB_REGION_NO_FORK = 1 << 5, /* the program's own MADV_DONTFORK */
	NB_REGION_NO_DUMP = 1 << 6, /* MADV_DONTDUMP */
};

struct nb_region {
	uint64_t start, end; /* addresses, page aligned */
	uint64_t offset;     /* of start in the backing */
	uint16_t backing;    /* index */
	uint8_t prot;	     /* PROT_* */
	uint8_t flags;	     /* enum nb_region_flags */
};

/* What is known of a block (2 MiB of a backing). */
struct nb_block {
	int16_t node;	 /* index of the node where it was found last; NB_NO_NODE = not known */
	uint8_t armed;	 /* pages armed that nobody touched yet */
	uint8_t settled; /* faults in a row that found it in place */
	uint8_t trust;	 /* faults of the same owner, less those of others; 0 to 4 */
	bool moving;	 /* asked to move, and not yet done */
	bool split;	 /* no huge page maps it, as far as we know */
	bool whole;	 /* with the armed page all of it was unmapped, as a huge page mapped it */
	bool away;	 /* it was found elsewhere than on its toucher's node last */
	uint8_t chosen;	 /* its trust when it was chosen to be asked */
	bool waits;	 /* for the engine to hear more: not where it is wanted, or a lazy move */
	int16_t wanted;	 /* the owner's node; NB_NO_NODE = not known */
};

/* Trust never is more; one scan in 2^trust asks a block. */
enum { NB_MOST_TRUST = 4 };

/* Their contents were dropped: who touches them next says who owns them. The lock is held. */
struct nb_regions;
void nb_blocks_discarded(struct nb_regions *t, uint64_t start, uint64_t end);

/* Its owner is not known any more. asked: who touches it next decides, not those around it. */
static inline void nb_block_forget(struct nb_block *b, bool asked)
{
	b->wanted = NB_NO_NODE;
	b->trust = 0;
	b->waits |= asked;
}

struct nb_backing {
	int fd; /* in the agent's own table of descriptors; -1 = free, -2 = another process has it
		 */
	uint32_t users;		/* regions */
	uint64_t device, inode; /* as /proc/self/maps shows them */
	bool trimmed;		/* parts of it may have no region any more */
	/* What blocks between others would say was foretold so often, and so often rightly: judge.c
	 */
	uint8_t guesses, right_guesses;
	bool proven; /* mostly rightly */
	uint32_t nr_blocks;
	struct nb_block *blocks; /* [nr_blocks], by offset >> 21; may be NULL */
};

struct nb_regions {
	struct nb_lock lock;
	_Atomic uint32_t version; /* odd while a change is being made */
	uint32_t nr;
	struct nb_region region[NB_MAX_REGIONS]; /* by address, not overlapping */
	struct nb_backing backing[NB_MAX_BACKINGS];
};

void nb_regions_init(struct nb_regions *t);

/* True when [start, end) meets a region. Any thread, no lock. */
bool nb_regions_touch(const struct nb_regions *t, uint64_t start, uint64_t end);

/* Index of the first region that ends after addr; t->nr when there is none. */
uint32_t nb_regions_index(const struct nb_regions *t, uint64_t addr);
/* The region that holds addr, or NULL. The pointer is good until the next change. */
struct nb_region *nb_region_at(struct nb_regions *t, uint64_t addr);

/* A free backing's index, or NB_NO_BACKING. It is taken once a region uses it. */
uint16_t nb_backing_free(const struct nb_regions *t);

/* 0; -ENOSPC: the table is full; -EEXIST: it overlaps a region. The backing gets one more user. */
int nb_region_add(struct nb_regions *t, const struct nb_region *r);

/* No region crosses `at` afterwards. 0 or -ENOSPC. */
int nb_regions_cut(struct nb_regions *t, uint64_t at);

/* True when there is room for the two cuts that a call on a range may need. */
bool nb_regions_can_cut(const struct nb_regions *t);

/* Make one region of those that meet in [start, end], where they are alike and their files go on.
 */
void nb_regions_merge(struct nb_regions *t, uint64_t start, uint64_t end);

/*
 * Forget [start, end), cutting regions at its ends (a region that cannot be cut, because the table
 * is full, loses its larger part too: forgotten memory works on, it is only not managed). Backings
 * without users are left to the agent, which frees them (nb_backings_sweep).
 */
void nb_regions_forget(struct nb_regions *t, uint64_t start, uint64_t end);

/* Managed memory that becomes one mapping again: regions that touch and have the same rights. */
struct nb_run {
	uint64_t start, end;
	uint8_t prot;
	bool is_private; /* all of it */
};

/* The first run in [start, end), cut to it: false when there is none. */
bool nb_regions_run(const struct nb_regions *t, uint64_t start, uint64_t end, struct nb_run *run);

/* Call fn for each region that meets [start, end), with the part that does. fn may change flags and
 * rights. */
typedef void (*nb_region_fn)(void *ctx, struct nb_region *r, uint64_t start, uint64_t end);
void nb_regions_each(
	struct nb_regions *t, uint64_t start, uint64_t end, nb_region_fn fn, void *ctx);

/* NULL when sound, else what is wrong. */
const char *nb_regions_check(const struct nb_regions *t);

#endif
