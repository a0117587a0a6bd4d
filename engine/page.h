/* SPDX-License-Identifier: MIT */
/*
 * page: what is remembered of the pages of a VMA (in a kernel: page->_last_nid).
 *
 * 8 bytes for each 2 MiB block the VMA touches. While all pages of a block are alike the block
 * holds their history itself; when they differ it names an expansion of 4 bytes a page (pool.h).
 * Blocks become alike again when nb_pages_settle finds them so, which is done when their range is
 * armed, outside faults.
 *
 * Ranges are bytes, page aligned, inside the VMA. A VMA that begins or ends inside a block has an
 * entry for that block; only its own pages count there.
 */
#ifndef NB_ENGINE_PAGE_H
#define NB_ENGINE_PAGE_H

#include "pool.h"

#define NB_HISTORY_NONE ((nb_history)0)	 /* nobody touched it since it is there */
#define NB_HISTORY_LAZY (~(nb_history)0) /* a lazy move was asked for: the next touch moves it */

/* last_nid: a node alone. */
static inline nb_history nb_history_node(int node)
{
	return (nb_history)(node + 1);
}

/* cpupid: a node, and the last 8 bits of a pid, as kernels keep (LAST__PID_MASK). */
enum {
	NB_CPUPID_PID_BITS = 8,
	NB_CPUPID_PIDS = 1 << NB_CPUPID_PID_BITS,
};

static inline nb_history nb_cpupid(int node, uint32_t pid)
{
	return (nb_history)(node + 1) << NB_CPUPID_PID_BITS | pid % NB_CPUPID_PIDS;
}

/* False for pages that nobody touched, as far as is known. */
static inline bool nb_cpupid_known(nb_history h)
{
	return h != NB_HISTORY_NONE && h != NB_HISTORY_LAZY;
}

static inline int nb_cpupid_node(nb_history h)
{
	return (int)(h >> NB_CPUPID_PID_BITS) - 1;
}

static inline bool nb_cpupid_is_of(nb_history h, uint32_t pid)
{
	return h % NB_CPUPID_PIDS == pid % NB_CPUPID_PIDS;
}

struct nb_block {
	uint32_t expansion; /* number in the pool; 0 = the pages are alike */
	nb_history alike;   /* history of each page while there is no expansion */
};

struct nb_pages {
	uint64_t start, end;	 /* bytes: the VMA's range */
	struct nb_block *blocks; /* [nr], entry 0 describes the block that holds `start` */
	uint64_t nr;
	struct nb_block *memory; /* as allocated: `blocks` may begin inside after a trim */
	uint64_t memory_nr;
};

/* 0, -ENOMEM. */
int nb_pages_init(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end);
void nb_pages_free(struct nb_engine *e, struct nb_pages *p);

/* Keep [start, end) only. Cannot fail. */
void nb_pages_trim(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end);
/* Move [at, end) to `tail`, which is uninitialised. 0, or -ENOMEM and nothing changed. */
int nb_pages_split(struct nb_engine *e, struct nb_pages *p, uint64_t at, struct nb_pages *tail);

/*
 * What was remembered of the page (of the huge page) at addr; `value` takes its place. Allocates
 * nothing: when no expansion is ready, nothing is changed and *missed is set.
 */
nb_history nb_pages_exchange(struct nb_engine *e, struct nb_pages *p, uint64_t addr, bool huge,
	nb_history value, bool *missed);
nb_history nb_pages_peek(
	const struct nb_engine *e, const struct nb_pages *p, uint64_t addr, bool huge);

/* Give every page of the range this history. Outside faults. Returns pages that could not be told
 * (no memory). */
uint64_t nb_pages_fill(
	struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end, nb_history value);

/* Drop the expansions of blocks in the range whose pages are alike. */
void nb_pages_settle(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end);

const char *nb_pages_check(const struct nb_engine *e, const struct nb_pages *p);

#endif
