/* SPDX-License-Identifier: MIT */
#include "pool.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "engine_private.h"

enum {
	FIRST_CAPACITY = 16,
	FIRST_RESERVE = NB_CHUNK_EXPANSIONS,
	MAX_RESERVE = 1 << 13, /* 16 MiB kept ready at most */
};

void nb_pool_init(struct nb_pool *p)
{
	*p = (struct nb_pool){.reserve = FIRST_RESERVE};
}

void nb_pool_free(struct nb_engine *e, struct nb_pool *p)
{
	for (uint32_t c = 0; c < p->capacity; c++)
		nb_free(e, p->chunks[c], sizeof(*p->chunks[c]));
	nb_free(e, p->chunks, p->capacity * sizeof(p->chunks[0]));
	nb_pool_init(p);
}

static struct nb_chunk *chunk_at(const struct nb_pool *p, uint32_t chunk)
{
	return p->chunks[chunk - 1];
}

static void link_partial(struct nb_pool *p, uint32_t chunk)
{
	struct nb_chunk *c = chunk_at(p, chunk);

	c->previous = 0;
	c->next = p->partial;
	if (c->next != 0)
		chunk_at(p, c->next)->previous = chunk;
	p->partial = chunk;
}

static void unlink_partial(struct nb_pool *p, uint32_t chunk)
{
	const struct nb_chunk *c = chunk_at(p, chunk);

	if (c->previous != 0)
		chunk_at(p, c->previous)->next = c->next;
	else
		p->partial = c->next;
	if (c->next != 0)
		chunk_at(p, c->next)->previous = c->previous;
}

static int widen(struct nb_engine *e, struct nb_pool *p)
{
	const uint32_t capacity = p->capacity ? p->capacity * 2 : FIRST_CAPACITY;
	struct nb_chunk **wider;

	if (p->nr_chunks < p->capacity)
		return 0;
	wider = nb_alloc(e, capacity * sizeof(wider[0]));
	if (wider == NULL)
		return -ENOMEM;
	if (p->capacity > 0)
		memcpy(wider, p->chunks, p->capacity * sizeof(wider[0]));
	nb_free(e, p->chunks, p->capacity * sizeof(wider[0]));
	p->chunks = wider;
	p->capacity = capacity;
	return 0;
}

/* Chunks are filled from the front and freed at random: the first hole is found from the count on.
 */
static uint32_t free_index(const struct nb_pool *p)
{
	uint32_t i = p->nr_chunks < p->capacity ? p->nr_chunks : 0;

	while (p->chunks[i] != NULL)
		i = i + 1 < p->capacity ? i + 1 : 0;
	return i;
}

static void thread_free_slots(struct nb_chunk *c)
{
	for (uint16_t slot = 0; slot < NB_CHUNK_EXPANSIONS; slot++)
		c->expansion[slot].page[0] =
			slot + 1 < NB_CHUNK_EXPANSIONS ? (uint16_t)(slot + 2) : 0;
	c->first_free = 1;
	c->nr_free = NB_CHUNK_EXPANSIONS;
}

static int add_chunk(struct nb_engine *e, struct nb_pool *p)
{
	struct nb_chunk *c;
	uint32_t i;

	if (widen(e, p) != 0)
		return -ENOMEM;
	c = nb_alloc(e, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	thread_free_slots(c);
	i = free_index(p);
	p->chunks[i] = c;
	p->nr_chunks++;
	p->nr_empty++;
	p->nr_free += NB_CHUNK_EXPANSIONS;
	link_partial(p, i + 1);
	return 0;
}

static void drop_chunk(struct nb_engine *e, struct nb_pool *p, uint32_t i)
{
	unlink_partial(p, i + 1);
	nb_free(e, p->chunks[i], sizeof(*p->chunks[i]));
	p->chunks[i] = NULL;
	p->nr_chunks--;
	p->nr_empty--;
	p->nr_free -= NB_CHUNK_EXPANSIONS;
}

/* Give back empty chunks beyond twice what is wanted, so that taking and giving do not allocate all
 * the time. */
static void trim(struct nb_engine *e, struct nb_pool *p, uint64_t wanted)
{
	const uint64_t keep = 2 * wanted + NB_CHUNK_EXPANSIONS;

	for (uint32_t i = 0; i < p->capacity && p->nr_empty > 0 && p->nr_free > keep; i++)
		if (p->chunks[i] != NULL && p->chunks[i]->nr_free == NB_CHUNK_EXPANSIONS)
			drop_chunk(e, p, i);
}

int nb_pool_refill(struct nb_engine *e, struct nb_pool *p)
{
	if (p->ran_out && p->reserve < MAX_RESERVE)
		p->reserve *= 2;
	p->ran_out = false;
	while (p->nr_free < p->need || p->nr_free < p->reserve)
		if (add_chunk(e, p) != 0)
			return -ENOMEM;
	return 0;
}

int nb_pool_prepare(struct nb_engine *e, struct nb_pool *p, uint64_t need)
{
	const uint64_t blocks = e->tracked_pages / NB_EXPANSION_PAGES + NB_CHUNK_EXPANSIONS;
	const uint64_t sum = p->need - p->need / 8 + need;
	int err;

	/* Faults on what was armed before may still be to come; each block needs one at most. */
	p->need = sum < blocks ? sum : blocks > need ? blocks : need;
	err = nb_pool_refill(e, p);
	trim(e, p, p->need > p->reserve ? p->need : p->reserve);
	return err;
}

uint32_t nb_pool_take(struct nb_pool *p)
{
	const uint32_t chunk = p->partial;
	struct nb_chunk *c;
	uint16_t slot;

	if (chunk == 0) {
		p->ran_out = true;
		return 0;
	}
	c = chunk_at(p, chunk);
	slot = (uint16_t)(c->first_free - 1);
	c->first_free = (uint16_t)c->expansion[slot].page[0];
	p->nr_empty -= c->nr_free == NB_CHUNK_EXPANSIONS;
	if (--c->nr_free == 0)
		unlink_partial(p, chunk);
	p->nr_free--;
	p->nr_used++;
	return (chunk - 1) * NB_CHUNK_EXPANSIONS + slot + 1;
}

void nb_pool_give(struct nb_pool *p, uint32_t number)
{
	const uint32_t chunk = (number - 1) / NB_CHUNK_EXPANSIONS + 1;
	const uint16_t slot = (uint16_t)((number - 1) % NB_CHUNK_EXPANSIONS);
	struct nb_chunk *c = chunk_at(p, chunk);

	assert(c != NULL && c->nr_free < NB_CHUNK_EXPANSIONS);
	c->expansion[slot].page[0] = c->first_free;
	c->first_free = (uint16_t)(slot + 1);
	if (c->nr_free++ == 0)
		link_partial(p, chunk);
	p->nr_empty += c->nr_free == NB_CHUNK_EXPANSIONS;
	p->nr_free++;
	p->nr_used--;
}

uint64_t nb_pool_bytes(const struct nb_pool *p)
{
	return p->nr_chunks * (uint64_t)sizeof(struct nb_chunk) +
	       p->capacity * (uint64_t)sizeof(p->chunks[0]);
}

static const char *check_chunk(const struct nb_chunk *c)
{
	uint16_t nr = 0;

	for (uint16_t s = c->first_free; s != 0; s = (uint16_t)c->expansion[s - 1].page[0]) {
		if (s > NB_CHUNK_EXPANSIONS)
			return "pool: a free slot out of range";
		if (++nr > c->nr_free)
			return "pool: more free slots than counted";
	}
	return nr == c->nr_free ? NULL : "pool: fewer free slots than counted";
}

/* The list of chunks with free slots: its length, or UINT32_MAX when it is broken. */
static uint32_t partial_length(const struct nb_pool *p)
{
	uint32_t nr = 0, previous = 0;

	for (uint32_t c = p->partial; c != 0; c = chunk_at(p, c)->next) {
		if (c > p->capacity || chunk_at(p, c) == NULL || nr > p->nr_chunks ||
			chunk_at(p, c)->previous != previous || chunk_at(p, c)->nr_free == 0)
			return UINT32_MAX;
		previous = c;
		nr++;
	}
	return nr;
}

const char *nb_pool_check(const struct nb_pool *p)
{
	uint32_t chunks = 0, empty = 0, partial = 0;
	uint64_t nr_free = 0;

	for (uint32_t i = 0; i < p->capacity; i++) {
		const struct nb_chunk *c = p->chunks[i];
		const char *wrong = c != NULL ? check_chunk(c) : NULL;

		if (wrong != NULL)
			return wrong;
		if (c == NULL)
			continue;
		chunks++;
		partial += c->nr_free > 0;
		empty += c->nr_free == NB_CHUNK_EXPANSIONS;
		nr_free += c->nr_free;
	}
	if (chunks != p->nr_chunks || empty != p->nr_empty || nr_free != p->nr_free)
		return "pool: wrong counts";
	if (nr_free + p->nr_used != (uint64_t)chunks * NB_CHUNK_EXPANSIONS)
		return "pool: expansions lost";
	return partial_length(p) == partial ? NULL : "pool: broken list of partial chunks";
}
