/* SPDX-License-Identifier: MIT */
/*
 * pool: expansions, the page states of one 2 MiB block whose pages differ. A hint fault may need
 * one and must not allocate, so they are made ready outside faults (nb_pool_refill) and only taken
 * inside.
 *
 * Expansions live in chunks and are named by a number that never changes: chunk * 32 + slot + 1; 0
 * is none.
 */
#ifndef NB_ENGINE_POOL_H
#define NB_ENGINE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nb_engine;

enum {
	NB_EXPANSION_PAGES = 512,
	NB_CHUNK_EXPANSIONS = 32,
};

/*
 * What is kept of a page: who touched it last; 0 = nobody (page.h says how). 4 bytes a page; rows
 * that need more (when, how hot) have 8 to use.
 */
typedef uint32_t nb_history;

struct nb_expansion {
	nb_history page[NB_EXPANSION_PAGES];
};

struct nb_chunk {
	uint32_t next, previous; /* chunks with a free slot, as chunk number + 1; 0 = end */
	uint16_t nr_free;
	uint16_t first_free; /* slot + 1; a free expansion's page[0] holds the next; 0 = end */
	struct nb_expansion expansion[NB_CHUNK_EXPANSIONS];
};

struct nb_pool {
	struct nb_chunk **chunks; /* [capacity]; NULL where there is none */
	uint32_t capacity;
	uint32_t nr_chunks;
	uint32_t nr_empty; /* chunks all of whose slots are free */
	uint32_t partial;  /* first chunk with a free slot, chunk number + 1 */
	uint64_t nr_free;  /* expansions ready */
	uint64_t nr_used;
	uint64_t need;	  /* what the last ranges armed could use; fades */
	uint32_t reserve; /* how many to keep ready at least; doubles when they ran out */
	bool ran_out;	  /* since the last refill */
};

void nb_pool_init(struct nb_pool *p);
void nb_pool_free(struct nb_engine *e, struct nb_pool *p);

/*
 * A range was armed whose faults may need so many: make them ready, and the reserve; give back
 * chunks far beyond what was needed lately. Outside faults only. 0 or -ENOMEM.
 */
int nb_pool_prepare(struct nb_engine *e, struct nb_pool *p, uint64_t need);
/* Make ready again what was used up. Outside faults only; cheap when there is nothing to do. 0 or
 * -ENOMEM. */
int nb_pool_refill(struct nb_engine *e, struct nb_pool *p);

/* A number, or 0 when none is ready. Contents undefined. */
uint32_t nb_pool_take(struct nb_pool *p);
void nb_pool_give(struct nb_pool *p, uint32_t number);

/* Bytes held, in use and ready. */
uint64_t nb_pool_bytes(const struct nb_pool *p);
const char *nb_pool_check(const struct nb_pool *p);

static inline struct nb_expansion *nb_pool_at(const struct nb_pool *p, uint32_t number)
{
	const uint32_t i = number - 1;

	return &p->chunks[i / NB_CHUNK_EXPANSIONS]->expansion[i % NB_CHUNK_EXPANSIONS];
}

#endif
