/* SPDX-License-Identifier: MIT */
/*
 * move: what the engine asked for, done in the background by carriers (carrier.c). What counts is
 * where the pages are afterwards.
 */
#include <errno.h>
#include "agent.h"

enum {
	ASKED = 16, /* pages of a block */
	STRIDE = NB_HUGE_PAGES / ASKED,
	FULL_NS = 1000000000, /* a node without memory is left alone for so long */
};

struct nb_span nb_block_reach(const struct nb_region *r, uint64_t block)
{
	struct nb_span s = {block, block + NB_HUGE_SIZE};

	if (s.start - r->start < NB_HUGE_SIZE)
		s.start = r->start;
	if (r->end - s.end < NB_HUGE_SIZE)
		s.end = r->end;
	return s;
}

struct nb_span nb_whole_blocks(const struct nb_region *r)
{
	return (struct nb_span){(r->start + NB_HUGE_MASK) & ~(uint64_t)NB_HUGE_MASK,
		r->end & ~(uint64_t)NB_HUGE_MASK};
}

/* ---- where pages are ---- */

static int virtual_node(struct nb_agent *a, uint64_t addr)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	const struct nb_block *b;
	int node = NB_NO_NODE;

	nb_lock(&t->lock, &signals);
	b = nb_block_at(t, addr);
	if (b != NULL)
		node = b->node;
	nb_unlock(&t->lock, &signals);
	return node;
}

static long query(uint64_t addr)
{
	void *page = (void *)addr;
	int status = -ENOENT;
	const long rc = NB_OS_6(move_pages, 0, 1UL, &page, NULL, &status, 0);

	return rc != 0 ? rc : status;
}

int nb_page_node(struct nb_agent *a, uint64_t addr)
{
	long id;

	if (a->is_virtual)
		return virtual_node(a, addr);
	id = query(addr & ~(uint64_t)(NB_PAGE_SIZE - 1));
	if (id == -EPERM || id == -ENOSYS) {
		a->observe_only = true;
		nb_guest_note(a->guest, NB_NOTE_NO_MOVE_PAGES);
	}
	return id < 0 ? NB_NO_NODE : nb_topology_index(&a->topo, (int)id);
}

int nb_near_node(const struct nb_agent *a, int node)
{
	return nb_topology_nearest_memory(&a->topo, (unsigned int)node);
}

/* Every so many pages are asked for, from one chosen at random on. */
int nb_block_stray(struct nb_agent *a, uint64_t block, int home)
{
	const uint64_t from = nb_agent_random(a) % STRIDE;
	void *page[ASKED];
	int status[ASKED];

	if (a->is_virtual)
		return virtual_node(a, block);
	for (uint64_t i = 0; i < ASKED; i++)
		page[i] = (void *)(block + ((from + i * STRIDE) << NB_PAGE_SHIFT));
	if (NB_OS_6(move_pages, 0, (unsigned long)ASKED, page, NULL, status, 0) != 0)
		return home;
	for (int i = 0; i < ASKED; i++) {
		const int node =
			status[i] < 0 ? NB_NO_NODE : nb_topology_index(&a->topo, status[i]);

		if (node != NB_NO_NODE && node != home)
			return node;
	}
	return home;
}

/* ---- moving ---- */

int nb_move_ask(void *ctx, const struct nb_move_request *r)
{
	struct nb_agent *a = ctx;
	struct nb_mover *m = &a->mover;

	if (a->observe_only || atomic_load(&a->guest->policy))
		return -EPERM;
	if (m->nr == NB_MAX_MOVES)
		return -EAGAIN;
	m->queue[(m->head + m->nr) % NB_MAX_MOVES] = *r;
	m->nr++;
	return 0;
}

static enum nb_move_status status_of(long err)
{
	switch (-err) {
	case EBUSY:
	case EAGAIN:
		return NB_MOVE_BUSY;
	case ENOMEM:
		return NB_MOVE_NO_MEMORY;
	case ENOENT:
	case EFAULT:
	case ESRCH:
		return NB_MOVE_GONE;
	default:
		return NB_MOVE_REFUSED;
	}
}

/* The move begins: the part of its region that moves with a block; empty when it is not to be moved
 * any more. Moves between virtual nodes are done with that. */
static struct nb_span begin_move(struct nb_agent *a, uint64_t block, int node)
{
	struct nb_regions *t = &a->guest->regions;
	const unsigned int never = NB_REGION_PRIVATE | NB_REGION_POLICY;
	struct nb_span reach = {0, 0};
	struct nb_signals signals;
	const struct nb_region *r;
	struct nb_block *b;

	nb_lock(&t->lock, &signals);
	r = nb_region_at(t, block);
	if (r != NULL && !(r->flags & never))
		reach = nb_block_reach(r, block);
	b = nb_block_at(t, block);
	/* Armed pages are mapped, to be moved. */
	if (b != NULL) {
		b->armed = 0;
		if (b->whole)
			nb_backing_map_block(a, block, block + NB_HUGE_SIZE);
		b->whole = false;
	}
	if (b != NULL && a->is_virtual)
		b->node = (int16_t)node;
	else if (b != NULL)
		b->moving = true;
	nb_unlock(&t->lock, &signals);
	return reach;
}

/* Pages of a span that are mapped, and not on `target`. Armed ones are mapped first: only then can
 * they move. */
static long collect(struct nb_agent *a, struct nb_batch *b, const struct nb_span *s, int target)
{
	uint32_t n = b->nr, kept = b->nr;
	long rc;

	for (uint64_t addr = s->start; addr < s->end && n - b->nr < NB_MAX_REACH;
		addr += NB_PAGE_SIZE)
		b->page[n++] = (void *)addr;
	rc = NB_OS_6(move_pages, 0, (unsigned long)(n - b->nr), &b->page[b->nr], NULL,
		&b->status[b->nr], 0);
	if (rc < 0)
		return rc;
	for (uint32_t i = b->nr; i < n; i++) {
		const uint64_t addr = (uint64_t)b->page[i];

		if (b->status[i] == target)
			continue;
		if (b->status[i] < 0 && nb_uffd_continue(atomic_load(&a->guest->uffd), addr,
						addr + NB_PAGE_SIZE) != 0)
			continue;
		b->page[kept] = b->page[i];
		b->node[kept++] = target;
	}
	b->nr = kept;
	return 0;
}

/* Where they are now: of each move how many are on the target, and what the last of the others
 * said. */
static void count_moved(struct nb_batch *b)
{
	const long rc = b->nr == 0 ? 0
				   : NB_OS_6(move_pages, 0, (unsigned long)b->nr, b->page, NULL,
					     b->status, 0);

	for (uint32_t k = 0; k < b->nr_moves; k++) {
		if (rc < 0)
			b->move[k].err = rc;
		for (uint32_t i = b->move[k].first; rc >= 0 && i < b->move[k].end; i++) {
			if (b->status[i] == b->node[i])
				b->move[k].moved++;
			else
				b->move[k].err = b->status[i] < 0 ? b->status[i] : -EBUSY;
		}
	}
}

/* Also of what is asked for until it is tried again: a request that fails costs as much as one that
 * does not. */
static void note_full(struct nb_agent *a, int node)
{
	const uint64_t now = nb_os_now_ns();

	if (a->full_until_ns[node] == 0)
		nb_node_watermark(a->engine, node, true, now);
	a->full_until_ns[node] = now + FULL_NS;
}

void nb_move_look(struct nb_agent *a, uint64_t now)
{
	for (int n = 0; n < (int)a->topo.nr_nodes; n++) {
		if (a->full_until_ns[n] == 0 || now < a->full_until_ns[n])
			continue;
		a->full_until_ns[n] = 0;
		nb_node_watermark(a->engine, n, false, now);
	}
}

static void refused(struct nb_agent *a, long rc)
{
	if (rc != -EPERM && rc != -ENOSYS)
		return;
	a->observe_only = true;
	nb_guest_note(a->guest, NB_NOTE_NO_MOVE_PAGES);
}

static void finish(struct nb_agent *a, const struct nb_move_request *r, uint32_t moved,
	uint32_t tried, long err)
{
	struct nb_live_stats *s = nb_guest_stats(a->guest);
	struct nb_move_request done = *r;

	nb_stat_add(&s->moves, moved > 0);
	nb_stat_add(&s->moved, moved);
	nb_stat_add(&s->move_failed, tried - moved);
	if (a->first_move_ns == 0)
		a->first_move_ns = nb_os_now_ns();
	done.pages = tried;
	nb_move_done(a->engine, &done, moved, status_of(err), nb_os_now_ns());
}

static struct nb_move_request pop(struct nb_mover *m)
{
	const struct nb_move_request r = m->queue[m->head];

	m->head = (m->head + 1) % NB_MAX_MOVES;
	m->nr--;
	return r;
}

static void move_virtual(struct nb_agent *a)
{
	const struct nb_move_request r = pop(&a->mover);
	const struct nb_span reach = begin_move(a, r.addr, r.node_to);
	const uint32_t pages = (uint32_t)((reach.end - reach.start) >> NB_PAGE_SHIFT);

	finish(a, &r, pages, pages, -ENOENT);
}

/* What did not come is as if nobody had touched it: who does next is asked soon, and not when its
 * owner would be. */
static void end_move(struct nb_agent *a, uint64_t block, bool failed)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	struct nb_block *b;

	nb_lock(&t->lock, &signals);
	b = nb_block_at(t, block);
	if (b != NULL) {
		b->moving = false;
		if (failed)
			nb_block_forget(b, false);
	}
	nb_unlock(&t->lock, &signals);
}

static void add_move(struct nb_agent *a, struct nb_batch *b, const struct nb_move_request *r)
{
	const struct nb_span reach = begin_move(a, r->addr, r->node_to);
	const uint32_t first = b->nr;
	long err = -ENOENT;

	if (reach.end > reach.start)
		err = collect(a, b, &reach, a->topo.nodes[r->node_to].id);
	refused(a, err);
	b->move[b->nr_moves].request = *r;
	b->move[b->nr_moves].first = first;
	b->move[b->nr_moves].end = b->nr;
	b->move[b->nr_moves].moved = 0;
	b->move[b->nr_moves++].err = err;
}

static void gather(struct nb_agent *a, struct nb_batch *b)
{
	b->nr_moves = 0;
	b->nr = 0;
	while (a->mover.nr > 0 && b->nr_moves < NB_BATCH_MOVES &&
		b->nr + NB_MAX_REACH <= NB_BATCH_PAGES) {
		const struct nb_move_request r = pop(&a->mover);

		add_move(a, b, &r);
		nb_faults_resolve(a);
	}
}

/* All go to one node: it is that one which has no memory. */
static bool has_one_target(const struct nb_batch *b)
{
	for (uint32_t k = 1; k < b->nr_moves; k++)
		if (b->move[k].request.node_to != b->move[0].request.node_to)
			return false;
	return b->nr_moves > 0;
}

static void done(struct nb_agent *a, struct nb_batch *b, long rc)
{
	if (rc == -ENOMEM && has_one_target(b))
		note_full(a, b->move[0].request.node_to);
	if (rc >= 0)
		count_moved(b);
	else
		refused(a, rc);
	for (uint32_t k = 0; k < b->nr_moves; k++) {
		end_move(a, b->move[k].request.addr,
			b->move[k].moved == 0 && b->move[k].end > b->move[k].first);
		finish(a, &b->move[k].request, b->move[k].moved, b->move[k].end - b->move[k].first,
			rc < 0 ? rc : b->move[k].err);
	}
}

static void move_here(struct nb_agent *a)
{
	struct nb_batch *b = &a->mover.batch;

	gather(a, b);
	done(a, b, nb_batch_carry(a->guest, b));
}

static void use_carrier(struct nb_agent *a, struct nb_carrier *c)
{
	if (atomic_load(&c->state) == NB_CARRIER_DONE) {
		done(a, &c->batch, c->rc);
		atomic_store(&c->state, NB_CARRIER_IDLE);
	}
	if (atomic_load(&c->state) != NB_CARRIER_IDLE || a->mover.nr == 0)
		return;
	gather(a, &c->batch);
	nb_carrier_send(c);
}

/* True when there is more that this thread can do at once. */
bool nb_move_work(struct nb_agent *a)
{
	for (uint32_t i = 0; i < a->nr_carriers; i++)
		use_carrier(a, a->carrier[i]);
	if (a->mover.nr == 0)
		return false;
	if (a->is_virtual) {
		move_virtual(a);
		return a->mover.nr > 0;
	}
	if (!a->mover.began) {
		a->mover.began = true;
		nb_carriers_start(a);
		return true;
	}
	if (a->nr_carriers > 0)
		return false;
	move_here(a);
	return a->mover.nr > 0;
}
