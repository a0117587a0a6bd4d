/* SPDX-License-Identifier: MIT */
/*
 * move: what the engine asked for, done in the background by move_pages(2), a part of a block at a
 * time, so that no call takes long: the batch halves when a call took more than half its bound, and
 * grows again when it took less than an eighth. What counts is where the pages are afterwards.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include "agent.h"

enum {
	MAX_BATCH = NB_HUGE_PAGES,
	MIN_BATCH = 128, /* each call flushes the TLBs of all CPUs of the program */
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

/* The part of its region that moves with a block; empty when it is not to be moved any more. */
static struct nb_span reach_of(struct nb_agent *a, uint64_t block, bool set_node, int node)
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
	if (b != NULL && set_node)
		b->node = (int16_t)node;
	nb_unlock(&t->lock, &signals);
	return reach;
}

/* Pages of [start, end) that are mapped, and not on `target`. Armed ones are mapped first: only
 * then can they move. */
static long collect(struct nb_agent *a, struct nb_batch *b, const struct nb_span *s, int target)
{
	uint32_t n = 0, kept = 0;
	long rc;

	for (uint64_t addr = s->start; addr < s->end && n < NB_MAX_REACH; addr += NB_PAGE_SIZE)
		b->page[n++] = (void *)addr;
	rc = NB_OS_6(move_pages, 0, (unsigned long)n, b->page, NULL, b->status, 0);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = (uint64_t)b->page[i];

		if (b->status[i] == target)
			continue;
		if (b->status[i] < 0 && nb_uffd_continue(atomic_load(&a->guest->uffd), addr,
						addr + NB_PAGE_SIZE) != 0)
			continue;
		b->page[kept++] = b->page[i];
	}
	b->nr = kept;
	return 0;
}

static void adapt(struct nb_agent *a, uint64_t took_ns)
{
	const uint64_t bound_ns = (uint64_t)a->guest->session->move_bound_us * 1000;
	struct nb_mover *m = &a->mover;

	nb_stat_max(&nb_guest_stats(a->guest)->move_max_ns, took_ns);
	if (took_ns > bound_ns / 2 && m->batch > MIN_BATCH)
		m->batch /= 2;
	else if (took_ns < bound_ns / 8 && m->batch < MAX_BATCH)
		m->batch *= 2;
}

/* Faults are served between calls. Returns the first error of a whole call, or 0. */
static long move_batch(struct nb_agent *a, struct nb_batch *b, int target)
{
	for (uint32_t i = 0; i < b->nr; i++)
		b->node[i] = target;
	for (uint32_t i = 0; i < b->nr;) {
		const uint32_t left = b->nr - i;
		const uint32_t n = left < a->mover.batch ? left : a->mover.batch;
		const uint64_t since = nb_os_now_ns();
		const long rc = NB_OS_6(move_pages, 0, (unsigned long)n, &b->page[i], &b->node[i],
			&b->status[i], MPOL_MF_MOVE);

		adapt(a, nb_os_now_ns() - since);
		if (rc < 0)
			return rc;
		nb_faults_resolve(a);
		i += n;
	}
	return 0;
}

/* Where they are now: how many of them on the target; *err is what the last of the others said. */
static uint32_t count_moved(struct nb_batch *b, int target, long *err)
{
	uint32_t moved = 0;
	const long rc = NB_OS_6(move_pages, 0, (unsigned long)b->nr, b->page, NULL, b->status, 0);

	if (rc < 0) {
		*err = rc;
		return 0;
	}
	for (uint32_t i = 0; i < b->nr; i++) {
		if (b->status[i] == target)
			moved++;
		else
			*err = b->status[i] < 0 ? b->status[i] : -EBUSY;
	}
	return moved;
}

static void refused(struct nb_agent *a, long rc)
{
	if (rc != -EPERM && rc != -ENOSYS)
		return;
	a->observe_only = true;
	nb_guest_note(a->guest, NB_NOTE_NO_MOVE_PAGES);
}

static uint32_t move_real(struct nb_agent *a, const struct nb_move_request *r,
	const struct nb_span *reach, uint32_t *tried, long *err)
{
	const int target = a->topo.nodes[r->node_to].id;
	struct nb_batch *b = &a->mover.pages;
	uint32_t moved;

	*err = collect(a, b, reach, target);
	if (*err == 0)
		*err = move_batch(a, b, target);
	*tried = b->nr;
	if (*err != 0) {
		refused(a, *err);
		return 0;
	}
	moved = b->nr > 0 ? count_moved(b, target, err) : 0;
	return moved;
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

bool nb_move_work(struct nb_agent *a)
{
	struct nb_mover *m = &a->mover;
	struct nb_move_request r;
	struct nb_span reach;
	uint32_t moved = 0, tried = 0;
	long err = -ENOENT;

	if (m->nr == 0)
		return false;
	r = m->queue[m->head];
	m->head = (m->head + 1) % NB_MAX_MOVES;
	m->nr--;
	reach = reach_of(a, r.addr, a->is_virtual, r.node_to);
	tried = (uint32_t)((reach.end - reach.start) >> NB_PAGE_SHIFT);
	if (a->is_virtual)
		moved = tried;
	else if (tried > 0)
		moved = move_real(a, &r, &reach, &tried, &err);
	finish(a, &r, moved, tried, err);
	return m->nr > 0;
}
