/* SPDX-License-Identifier: MIT */
#include "page.h"
#include <errno.h>
#include <string.h>
#include "engine_private.h"

/* The pages of one block that belong to a range: [from, to), 0 to 512. */
struct span {
	unsigned int from, to;
};

static uint64_t block_number(uint64_t addr)
{
	return addr >> NB_HUGE_SHIFT;
}

static uint64_t blocks_of(uint64_t start, uint64_t end)
{
	return block_number(end - 1) - block_number(start) + 1;
}

static struct nb_block *block_at(const struct nb_pages *p, uint64_t addr)
{
	return &p->blocks[block_number(addr) - block_number(p->start)];
}

static unsigned int page_in_block(uint64_t addr)
{
	return (unsigned int)(addr >> NB_PAGE_SHIFT) % NB_HUGE_PAGES;
}

static uint64_t block_end(uint64_t addr)
{
	return (block_number(addr) + 1) << NB_HUGE_SHIFT;
}

/* The part of [start, end) in the block of `start`. At the top of the address space block_end wraps
 * to 0. */
static struct span span_of(uint64_t start, uint64_t end)
{
	const uint64_t room = block_end(start) - start;
	const uint64_t bytes = end - start < room ? end - start : room;
	const unsigned int from = page_in_block(start);

	return (struct span){from, from + (unsigned int)(bytes >> NB_PAGE_SHIFT)};
}

/* The pages of the block of addr that are the VMA's. */
static struct span own_span(const struct nb_pages *p, uint64_t addr)
{
	const uint64_t base = block_number(addr) << NB_HUGE_SHIFT;

	return span_of(base > p->start ? base : p->start, p->end);
}

static bool same_span(struct span a, struct span b)
{
	return a.from == b.from && a.to == b.to;
}

static void block_alike(struct nb_engine *e, struct nb_block *b, nb_history value)
{
	if (b->expansion != 0)
		nb_pool_give(&e->pool, b->expansion);
	*b = (struct nb_block){.alike = value};
}

static void fill_expansion(struct nb_expansion *x, nb_history value)
{
	for (int i = 0; i < NB_EXPANSION_PAGES; i++)
		x->page[i] = value;
}

static bool expand(struct nb_engine *e, struct nb_block *b)
{
	if (b->expansion == 0) {
		b->expansion = nb_pool_take(&e->pool);
		if (b->expansion == 0)
			return false;
		fill_expansion(nb_pool_at(&e->pool, b->expansion), b->alike);
	}
	return true;
}

int nb_pages_init(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end)
{
	const uint64_t nr = blocks_of(start, end);
	struct nb_block *blocks = nb_alloc(e, nr * sizeof(*blocks));

	if (blocks == NULL)
		return -ENOMEM;
	*p = (struct nb_pages){start, end, blocks, nr, blocks, nr};
	e->block_bytes += nr * sizeof(*blocks);
	e->tracked_pages += (end - start) >> NB_PAGE_SHIFT;
	return 0;
}

static void free_memory(struct nb_engine *e, struct nb_block *memory, uint64_t nr)
{
	e->block_bytes -= nr * sizeof(*memory);
	nb_free(e, memory, nr * sizeof(*memory));
}

static void forget(struct nb_engine *e, struct nb_block *from, const struct nb_block *to)
{
	for (; from < to; from++)
		block_alike(e, from, NB_HISTORY_NONE);
}

void nb_pages_free(struct nb_engine *e, struct nb_pages *p)
{
	forget(e, p->blocks, p->blocks + p->nr);
	free_memory(e, p->memory, p->memory_nr);
	e->tracked_pages -= (p->end - p->start) >> NB_PAGE_SHIFT;
	*p = (struct nb_pages){0};
}

/* Give back what a trim left unused, where that is at least half. */
static void shrink(struct nb_engine *e, struct nb_pages *p)
{
	struct nb_block *smaller;

	if (p->nr > p->memory_nr / 2)
		return;
	smaller = nb_alloc(e, p->nr * sizeof(*smaller));
	if (smaller == NULL)
		return;
	memcpy(smaller, p->blocks, p->nr * sizeof(*smaller));
	free_memory(e, p->memory, p->memory_nr);
	e->block_bytes += p->nr * sizeof(*smaller);
	p->blocks = p->memory = smaller;
	p->memory_nr = p->nr;
}

void nb_pages_trim(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end)
{
	const uint64_t skipped = block_number(start) - block_number(p->start);
	const uint64_t nr = blocks_of(start, end);

	forget(e, p->blocks, p->blocks + skipped);
	forget(e, p->blocks + skipped + nr, p->blocks + p->nr);
	e->tracked_pages -= (p->end - p->start - (end - start)) >> NB_PAGE_SHIFT;
	p->blocks += skipped;
	p->nr = nr;
	p->start = start;
	p->end = end;
	shrink(e, p);
}

/* A block whose pages belong to two VMAs from now on: each has its own copy. */
static void copy_block(struct nb_engine *e, struct nb_block *to, const struct nb_block *from)
{
	*to = (struct nb_block){.alike = from->alike};
	if (from->expansion == 0)
		return;
	if (e->pool.nr_free == 0)
		nb_pool_refill(e, &e->pool);
	if (!expand(e, to)) {
		to->alike = NB_HISTORY_NONE;
		return;
	}
	*nb_pool_at(&e->pool, to->expansion) = *nb_pool_at(&e->pool, from->expansion);
}

static void move_block(struct nb_block *to, struct nb_block *from)
{
	*to = *from;
	*from = (struct nb_block){0};
}

int nb_pages_split(struct nb_engine *e, struct nb_pages *p, uint64_t at, struct nb_pages *tail)
{
	struct nb_block *from = block_at(p, at);
	uint64_t i = 0;

	if (nb_pages_init(e, tail, at, p->end) != 0)
		return -ENOMEM;
	if (at % NB_HUGE_SIZE != 0)
		copy_block(e, &tail->blocks[i++], from++);
	for (; i < tail->nr; i++)
		move_block(&tail->blocks[i], from++);
	nb_pages_trim(e, p, p->start, at);
	return 0;
}

static nb_history exchange_block(struct nb_engine *e, struct nb_block *b, nb_history value)
{
	nb_history old = b->alike;

	if (b->expansion != 0)
		old = nb_pool_at(&e->pool, b->expansion)->page[0];
	block_alike(e, b, value);
	return old;
}

nb_history nb_pages_exchange(struct nb_engine *e, struct nb_pages *p, uint64_t addr, bool huge,
	nb_history value, bool *missed)
{
	struct nb_block *b = block_at(p, addr);
	nb_history *page, old;

	*missed = false;
	if (huge)
		return exchange_block(e, b, value);
	if (b->expansion == 0 && b->alike == value)
		return value;
	if (!expand(e, b)) {
		*missed = true;
		return b->alike;
	}
	page = &nb_pool_at(&e->pool, b->expansion)->page[page_in_block(addr)];
	old = *page;
	*page = value;
	return old;
}

nb_history nb_pages_peek(
	const struct nb_engine *e, const struct nb_pages *p, uint64_t addr, bool huge)
{
	const struct nb_block *b = block_at(p, addr);

	if (b->expansion == 0)
		return b->alike;
	return nb_pool_at(&e->pool, b->expansion)->page[huge ? 0 : page_in_block(addr)];
}

/* Part of a block. Returns pages that could not be told. */
static unsigned int fill_part(
	struct nb_engine *e, struct nb_block *b, struct span s, nb_history value)
{
	struct nb_expansion *x;

	if (b->expansion == 0 && b->alike == value)
		return 0;
	if (b->expansion == 0 && e->pool.nr_free == 0)
		nb_pool_refill(e, &e->pool);
	if (!expand(e, b))
		return s.to - s.from;
	x = nb_pool_at(&e->pool, b->expansion);
	for (unsigned int i = s.from; i < s.to; i++)
		x->page[i] = value;
	return 0;
}

uint64_t nb_pages_fill(
	struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end, nb_history value)
{
	uint64_t missed = 0;

	while (start < end) {
		const struct span s = span_of(start, end);
		struct nb_block *b = block_at(p, start);

		if (same_span(s, own_span(p, start)))
			block_alike(e, b, value);
		else
			missed += fill_part(e, b, s, value);
		start += (uint64_t)(s.to - s.from) << NB_PAGE_SHIFT;
	}
	return missed;
}

static bool all_alike(const struct nb_expansion *x, struct span s)
{
	const size_t pages = s.to - s.from;

	return memcmp(&x->page[s.from], &x->page[s.from + 1], (pages - 1) * sizeof(x->page[0])) ==
	       0;
}

static void settle_block(struct nb_engine *e, struct nb_block *b, struct span own)
{
	const struct nb_expansion *x = nb_pool_at(&e->pool, b->expansion);

	if (all_alike(x, own))
		block_alike(e, b, x->page[own.from]);
}

void nb_pages_settle(struct nb_engine *e, struct nb_pages *p, uint64_t start, uint64_t end)
{
	struct nb_block *b = block_at(p, start);
	const uint64_t nr = blocks_of(start, end);

	for (uint64_t i = 0; i < nr; i++)
		if (b[i].expansion != 0)
			settle_block(e, &b[i], own_span(p, start + (i << NB_HUGE_SHIFT)));
}

const char *nb_pages_check(const struct nb_engine *e, const struct nb_pages *p)
{
	if (p->start >= p->end || (p->start | p->end) % NB_PAGE_SIZE != 0)
		return "pages: not a range of pages";
	if (p->nr != blocks_of(p->start, p->end))
		return "pages: wrong number of blocks";
	if (p->blocks < p->memory || p->blocks + p->nr > p->memory + p->memory_nr)
		return "pages: blocks outside their memory";
	for (uint64_t i = 0; i < p->nr; i++) {
		const uint32_t x = p->blocks[i].expansion;

		if (x == 0)
			continue;
		if ((x - 1) / NB_CHUNK_EXPANSIONS >= e->pool.capacity ||
			e->pool.chunks[(x - 1) / NB_CHUNK_EXPANSIONS] == NULL)
			return "pages: an expansion that does not exist";
	}
	return NULL;
}
