/* SPDX-License-Identifier: MIT */
/*
 * advise: madvise(2). A range may hold managed and other memory: it is gone through piece by piece,
 * and the answers are put together as the kernel does: a hole makes it -ENOMEM in the end, anything
 * else stops.
 */
#include <errno.h>
#include <sys/mman.h>
#include "call.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum {
	PAGE_MASK = NB_PAGE_SIZE - 1,
};

struct piece {
	struct nb_region region; /* a copy; the piece lies in it when `managed` */
	uint64_t start, end;
	bool managed;
};

static bool discards(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED;
}

/*
 * Private: the file is a snapshot which a child may be reading: fresh anonymous memory goes over
 * it, and is managed no longer.
 */
static long discard_private(struct nb_guest *g, const struct piece *p)
{
	const uint64_t bytes = p->end - p->start;
	const long rc = NB_OS_6(mmap, p->start, bytes, p->region.prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	struct nb_live_stats *s = nb_guest_stats(g);

	if (nb_os_failed(rc))
		return rc;
	if (p->region.flags & NB_REGION_HUGE)
		NB_OS_3(madvise, p->start, bytes, MADV_HUGEPAGE);
	nb_stat_add(&s->discarded, bytes);
	nb_call_forget(g, p->start, p->end);
	return 0;
}

/*
 * Shared: the pages leave the file. Where the kernel refuses, the mapping is not what the table
 * says: a helper was stopped while it made all private for a fork. Fresh memory is right for either
 * kind.
 */
static long discard_shared(struct nb_guest *g, const struct piece *p)
{
	const uint64_t bytes = p->end - p->start;

	if (NB_OS_3(madvise, p->start, bytes, MADV_REMOVE) != 0)
		return discard_private(g, p);
	nb_blocks_discarded(&g->regions, p->start, p->end);
	nb_stat_add(&nb_guest_stats(g)->discarded, bytes);
	return 0;
}

/* Advice that a mapping made anew must get again. */
static unsigned int flag_set_by(int advice)
{
	switch (advice) {
	case MADV_HUGEPAGE:
		return NB_REGION_HUGE;
	case MADV_NOHUGEPAGE:
		return NB_REGION_NO_HUGE;
	case MADV_DONTFORK:
		return NB_REGION_NO_FORK;
	case MADV_DONTDUMP:
		return NB_REGION_NO_DUMP;
	default:
		return 0;
	}
}

static unsigned int flag_cleared_by(int advice)
{
	switch (advice) {
	case MADV_HUGEPAGE:
		return NB_REGION_NO_HUGE;
	case MADV_NOHUGEPAGE:
		return NB_REGION_HUGE;
	case MADV_DOFORK:
		return NB_REGION_NO_FORK;
	case MADV_DODUMP:
		return NB_REGION_NO_DUMP;
	default:
		return 0;
	}
}

struct change {
	unsigned int set, clear;
};

static void change_flags(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	const struct change *c = ctx;

	(void)start;
	(void)end;
	r->flags = (uint8_t)((r->flags & ~c->clear) | c->set);
}

static long note_advice(struct nb_guest *g, const struct piece *p, int advice)
{
	const bool lost = advice == MADV_HUGEPAGE && g->session != NULL &&
			  (g->session->flags & NB_SESSION_LOSE_ADVISED);
	struct change c = {flag_set_by(advice), flag_cleared_by(advice)};
	long rc = 0;

	/* Managed memory is never copied by a fork that we do not see: the kernel is not asked. */
	if (advice != MADV_DONTFORK && advice != MADV_DOFORK)
		rc = NB_OS_3(madvise, p->start, p->end - p->start, advice);
	if (rc != 0 || (c.set | c.clear) == 0)
		return rc;
	if (lost)
		nb_guest_note(g, NB_NOTE_THP_ADVISED);
	nb_regions_cut(&g->regions, p->start);
	nb_regions_cut(&g->regions, p->end);
	nb_regions_each(&g->regions, p->start, p->end, change_flags, &c);
	return 0;
}

/* The lock is held. */
static long advise_managed(struct nb_guest *g, const struct piece *p, int advice)
{
	if (!discards(advice))
		return note_advice(g, p, advice);
	return p->region.flags & NB_REGION_PRIVATE ? discard_private(g, p) : discard_shared(g, p);
}

/* The next piece from `at` on. The lock is held. */
static struct piece next_piece(struct nb_guest *g, uint64_t at, uint64_t end)
{
	const struct nb_regions *t = &g->regions;
	const uint32_t i = nb_regions_index(t, at);
	struct piece p = {.start = at, .end = end};

	if (i >= t->nr || t->region[i].start >= end)
		return p;
	if (t->region[i].start > at) {
		p.end = t->region[i].start;
		return p;
	}
	p.region = t->region[i];
	p.managed = true;
	p.end = p.region.end < end ? p.region.end : end;
	return p;
}

static long advise_piece(struct nb_guest *g, uint64_t at, uint64_t end, int advice, uint64_t *next)
{
	struct nb_hold h;
	struct piece p;
	long rc;

	nb_guest_hold(g, &h);
	p = next_piece(g, at, end);
	rc = p.managed ? advise_managed(g, &p, advice) : 0;
	nb_guest_release(g, &h);
	if (!p.managed)
		rc = NB_OS_3(madvise, p.start, p.end - p.start, advice);
	*next = p.end;
	return rc;
}

static long advise_pieces(struct nb_guest *g, uint64_t start, uint64_t end, int advice)
{
	long answer = 0;

	for (uint64_t at = start; at < end;) {
		const long rc = advise_piece(g, at, end, advice, &at);

		if (rc == -ENOMEM)
			answer = rc;
		else if (rc != 0)
			return rc;
	}
	return answer;
}

/* What shared memory cannot do and anonymous memory can. */
static bool needs_anonymous(const struct nb_guest *g, int advice)
{
	if (advice == MADV_HUGEPAGE)
		return g->session != NULL && (g->session->flags & NB_SESSION_KEEP_ADVISED);
	return advice == MADV_WIPEONFORK;
}

long nb_call_madvise(struct nb_guest *g, uint64_t addr, uint64_t bytes, int advice)
{
	const uint64_t end = addr + ((bytes + PAGE_MASK) & ~(uint64_t)PAGE_MASK);

	if (g->regions.nr == 0 || (addr & PAGE_MASK) != 0 || bytes == 0 || end <= addr ||
		!nb_regions_touch(&g->regions, addr, end))
		return NB_OS_3(madvise, addr, bytes, advice);
	if (needs_anonymous(g, advice) || !nb_regions_can_cut(&g->regions)) {
		if (nb_call_eject(g, addr, bytes) != 0)
			return -ENOMEM;
		return NB_OS_3(madvise, addr, bytes, advice);
	}
	/* On anonymous memory this is for shared files alone, and refused. */
	if (advice == MADV_REMOVE)
		return -EINVAL;
	return advise_pieces(g, addr, end, advice);
}
