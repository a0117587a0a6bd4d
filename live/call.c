/* SPDX-License-Identifier: MIT */
#include "call.h"
#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum {
	PAGE_MASK = NB_PAGE_SIZE - 1,
	END_TIMES = 5, /* the watchdog's time that a helper has to end */
};

/* ---- what is concerned ---- */

static uint64_t whole(uint64_t bytes)
{
	return (bytes + PAGE_MASK) & ~(uint64_t)PAGE_MASK;
}

/* False for what the kernel will refuse or do nothing about, and for ranges without managed memory.
 */
static bool concerns(struct nb_guest *g, uint64_t addr, uint64_t bytes)
{
	const uint64_t end = addr + whole(bytes);

	if (g->regions.nr == 0 || (addr & PAGE_MASK) != 0 || bytes == 0 || whole(bytes) == 0 ||
		end < addr)
		return false;
	return nb_regions_touch(&g->regions, addr, end);
}

/* What a fork or a step back left behind is not counted as managed. */
static void uncount(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	struct nb_guest *g = ctx;
	struct nb_live_stats *s = nb_guest_stats(g);

	if (g->regions.backing[r->backing].fd < 0)
		return;
	nb_stat_sub(&s->managed_bytes, end - start);
	if (r->flags & NB_REGION_PRIVATE)
		nb_stat_sub(&s->private_bytes, end - start);
}

void nb_call_forget(struct nb_guest *g, uint64_t start, uint64_t end)
{
	nb_regions_each(&g->regions, start, end, uncount, g);
	nb_regions_forget(&g->regions, start, end);
}

/* ---- back to ordinary memory ---- */

/*
 * Without an agent (after a fork, after it stepped back) private memory is copied here. Nothing
 * holds other threads off meanwhile; but who calls mremap on memory that others write to at that
 * moment has lost it anyway.
 */
static long copy_out(const struct nb_run *r)
{
	const uint64_t start = r->start, bytes = r->end - start;
	const long fresh = nb_os_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	long rc = nb_os_failed(fresh) ? fresh : 0;

	if (rc == 0 && !(r->prot & PROT_READ))
		rc = NB_OS_3(mprotect, start, bytes, PROT_READ);
	if (rc == 0) {
		memcpy((void *)fresh, (const void *)start, bytes);
		rc = NB_OS_3(mprotect, fresh, bytes, r->prot);
	}
	if (rc == 0)
		rc = NB_OS_5(mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start);
	return nb_os_failed(rc) ? rc : 0;
}

static int eject_here(struct nb_guest *g, uint64_t start, uint64_t end)
{
	struct nb_run run;
	struct nb_hold h;
	long rc = 0;

	nb_guest_hold(g, &h);
	while (rc == 0 && nb_regions_run(&g->regions, start, end, &run)) {
		rc = run.is_private ? copy_out(&run) : -ENOMEM;
		if (rc == 0)
			nb_call_forget(g, run.start, run.end);
		start = run.end;
	}
	nb_guest_release(g, &h);
	return (int)rc;
}

int nb_call_eject(struct nb_guest *g, uint64_t addr, uint64_t bytes)
{
	const uint64_t start = addr & ~(uint64_t)PAGE_MASK;
	const uint64_t end = whole(addr + bytes);
	int rc;

	if (g->regions.nr == 0 || end <= start || !nb_regions_touch(&g->regions, start, end))
		return 0;
	rc = nb_ask(g, &(struct nb_wish){.kind = NB_REQUEST_EJECT, .start = start, .end = end});
	if (rc == 0)
		return 0;
	rc = eject_here(g, start, end);
	if (rc == 0 || nb_ask(g, &(struct nb_wish){.kind = NB_REQUEST_PRIVATE}) != 0)
		return rc;
	return eject_here(g, start, end);
}

/* The table must have room for the cuts at both ends. */
static int make_room(struct nb_guest *g, uint64_t addr, uint64_t bytes)
{
	return nb_regions_can_cut(&g->regions) ? 0 : nb_call_eject(g, addr, bytes);
}

/* ---- munmap, and mmap over something ---- */

long nb_call_munmap(struct nb_guest *g, uint64_t addr, uint64_t bytes)
{
	struct nb_hold h;
	long rc;

	if (!concerns(g, addr, bytes))
		return NB_OS_2(munmap, addr, bytes);
	rc = make_room(g, addr, bytes);
	if (rc != 0)
		return -ENOMEM;
	nb_guest_hold(g, &h);
	rc = NB_OS_2(munmap, addr, bytes);
	if (rc == 0)
		nb_call_forget(g, addr, addr + whole(bytes));
	nb_guest_release(g, &h);
	nb_nudge(g);
	return rc;
}

static long mmap_over(struct nb_guest *g, uint64_t addr, uint64_t bytes, int prot, int flags,
	int fd, int64_t offset)
{
	struct nb_hold h;
	long rc;

	if (make_room(g, addr, bytes) != 0)
		return -ENOMEM;
	nb_guest_hold(g, &h);
	rc = NB_OS_6(mmap, addr, bytes, prot, flags, fd, offset);
	if (!nb_os_failed(rc))
		nb_call_forget(g, addr, addr + whole(bytes));
	nb_guest_release(g, &h);
	return rc;
}

/* ---- mmap ---- */

/* Large, private, anonymous, for data, and without any wish that shared memory could not fulfil. */
static bool is_large_anonymous(const struct nb_guest *g, uint64_t bytes, int flags)
{
	const int kind = MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS;

	return g->session != NULL && bytes >= g->session->min_size &&
	       (flags & kind) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static bool is_suited(const struct nb_guest *g, int prot, int flags)
{
	const int known = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE | MAP_FIXED |
			  MAP_FIXED_NOREPLACE | MAP_NONBLOCK;

	return prot == (PROT_READ | PROT_WRITE) && (flags & ~known) == 0 && !g->no_more &&
	       !(g->session->flags & NB_SESSION_KEEP_THP);
}

static void count_unsuited(struct nb_guest *g, uint64_t bytes)
{
	nb_stat_add(&nb_guest_stats(g)->unsuited, 1);
	nb_stat_add(&nb_guest_stats(g)->unsuited_bytes, bytes);
}

static int this_cpu(void)
{
	unsigned int cpu = 0;

	return NB_OS_3(getcpu, &cpu, NULL, NULL) == 0 ? (int)cpu : -1;
}

/* What the calling thread has, not others: it decides where memory is that it touches. */
static bool has_policy(struct nb_guest *g)
{
	int mode = MPOL_DEFAULT;

	return atomic_load(&g->policy) != NB_POLICY_NONE &&
	       (NB_OS_5(get_mempolicy, &mode, NULL, 0UL, NULL, 0) != 0 || mode != MPOL_DEFAULT);
}

/* The kernel has chosen and given the memory; now it becomes managed, or it stays what it is. */
static int adopt(struct nb_guest *g, uint64_t addr, uint64_t bytes, int prot)
{
	const struct nb_wish wish = {
		.kind = NB_REQUEST_ADOPT,
		.prot = (uint32_t)prot,
		.start = addr,
		.end = addr + whole(bytes),
		.cpu = this_cpu(),
		.policy = has_policy(g),
	};

	if (atomic_load(&g->forks) != 0 || !nb_agent_ensure(g))
		return -EAGAIN;
	return nb_ask(g, &wish);
}

static long map_first(struct nb_guest *g, const struct nb_mmap *m, int flags)
{
	if ((flags & MAP_FIXED) && concerns(g, m->addr, m->bytes))
		return mmap_over(g, m->addr, m->bytes, m->prot, flags, m->fd, m->offset);
	return NB_OS_6(mmap, m->addr, m->bytes, m->prot, flags, m->fd, m->offset);
}

/* An agent that was stopped while it mapped over the memory may go on some day: that memory is
 * given up, and the program gets other. */
static long map_and_adopt(struct nb_guest *g, const struct nb_mmap *m, int flags)
{
	const long rc = map_first(g, m, flags);

	if (nb_os_failed(rc) || adopt(g, (uint64_t)rc, m->bytes, m->prot) != -ETIMEDOUT ||
		(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
		return rc;
	return map_first(g, m, flags);
}

long nb_call_mmap(struct nb_guest *g, const struct nb_mmap *m)
{
	long rc;

	if (!is_large_anonymous(g, m->bytes, m->flags))
		return map_first(g, m, m->flags);
	if (!is_suited(g, m->prot, m->flags) || atomic_load(&g->state) == NB_GUEST_OFF) {
		count_unsuited(g, m->bytes);
		return map_first(g, m, m->flags);
	}
	/* Pages that are made now would only be thrown away. */
	rc = map_and_adopt(g, m, m->flags & ~MAP_POPULATE);
	if (!nb_os_failed(rc) && (m->flags & MAP_POPULATE))
		NB_OS_3(madvise, rc, whole(m->bytes), MADV_POPULATE_WRITE);
	return rc;
}

/* ---- mprotect ---- */

static void set_prot(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	const int *prot = ctx;

	(void)start;
	(void)end;
	r->prot = (uint8_t)*prot;
}

long nb_call_mprotect(struct nb_guest *g, uint64_t addr, uint64_t bytes, int prot)
{
	const uint64_t end = addr + whole(bytes);
	struct nb_hold h;
	long rc;

	if (!concerns(g, addr, bytes))
		return NB_OS_3(mprotect, addr, bytes, prot);
	if (!nb_regions_can_cut(&g->regions)) {
		if (nb_call_eject(g, addr, bytes) != 0)
			return -ENOMEM;
		return NB_OS_3(mprotect, addr, bytes, prot);
	}
	nb_guest_hold(g, &h);
	rc = NB_OS_3(mprotect, addr, bytes, prot);
	if (rc == 0) {
		nb_regions_cut(&g->regions, addr);
		nb_regions_cut(&g->regions, end);
		nb_regions_each(&g->regions, addr, end, set_prot, &prot);
		nb_regions_merge(&g->regions, addr, end);
	}
	nb_guest_release(g, &h);
	return rc;
}

/* ---- mremap ---- */

/* Only making a mapping smaller where it is keeps it managed. */
static bool only_shrinks(
	struct nb_guest *g, uint64_t old, uint64_t old_bytes, uint64_t bytes, int flags)
{
	const uint32_t i = nb_regions_index(&g->regions, old);
	const struct nb_region *r = i < g->regions.nr ? &g->regions.region[i] : NULL;

	return (flags & ~MREMAP_MAYMOVE) == 0 && bytes > 0 && bytes <= old_bytes && r != NULL &&
	       r->start <= old && old + old_bytes <= r->end && nb_regions_can_cut(&g->regions);
}

static long shrink(struct nb_guest *g, uint64_t old, uint64_t old_bytes, uint64_t bytes, int flags)
{
	struct nb_hold h;
	long rc;

	nb_guest_hold(g, &h);
	rc = NB_OS_5(mremap, old, old_bytes, bytes, flags, 0);
	if (!nb_os_failed(rc) && bytes < old_bytes)
		nb_call_forget(g, old + bytes, old + old_bytes);
	nb_guest_release(g, &h);
	nb_nudge(g);
	return rc;
}

static void forget_target(struct nb_guest *g, uint64_t to, uint64_t bytes)
{
	struct nb_hold h;

	nb_guest_hold(g, &h);
	nb_call_forget(g, to, to + whole(bytes));
	nb_guest_release(g, &h);
}

long nb_call_mremap(struct nb_guest *g, uint64_t old, uint64_t old_bytes, uint64_t bytes, int flags,
	uint64_t to)
{
	const bool fixed = (flags & MREMAP_FIXED) && concerns(g, to, bytes);
	const bool from = concerns(g, old, old_bytes ? old_bytes : 1);
	long rc;

	/* The kernel duplicates shared memory here, which private memory never does. */
	if (from && old_bytes == 0)
		return -EINVAL;
	if (from && only_shrinks(g, old, whole(old_bytes), whole(bytes), flags))
		return shrink(g, old, whole(old_bytes), whole(bytes), flags);
	if (from && nb_call_eject(g, old, old_bytes) != 0)
		return -ENOMEM;
	if (fixed && make_room(g, to, bytes) != 0)
		return -ENOMEM;
	rc = NB_OS_5(mremap, old, old_bytes, bytes, flags, to);
	if (fixed && !nb_os_failed(rc))
		forget_target(g, to, bytes);
	return rc;
}

/* ---- policies ---- */

static void set_flag(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	const unsigned int *flag = ctx;

	(void)start;
	(void)end;
	r->flags |= (uint8_t)*flag;
}

/* Mark what is managed in the range; a region that cannot be cut is marked whole. */
static void mark(struct nb_guest *g, uint64_t addr, uint64_t end, unsigned int flag)
{
	struct nb_hold h;

	nb_guest_hold(g, &h);
	nb_regions_cut(&g->regions, addr);
	nb_regions_cut(&g->regions, end);
	nb_regions_each(&g->regions, addr, end, set_flag, &flag);
	atomic_fetch_add(&g->regions.version, 2);
	nb_guest_release(g, &h);
}

long nb_call_mbind(struct nb_guest *g, uint64_t addr, uint64_t bytes, int mode,
	const unsigned long *nodes, unsigned long max_node, unsigned int flags)
{
	const long rc = NB_OS_6(mbind, addr, bytes, mode, nodes, max_node, flags);

	if (rc == 0 && mode != MPOL_DEFAULT && concerns(g, addr, bytes))
		mark(g, addr, addr + whole(bytes), NB_REGION_POLICY);
	return rc;
}

long nb_call_set_mempolicy(
	struct nb_guest *g, int mode, const unsigned long *nodes, unsigned long max_node)
{
	const long rc = NB_OS_3(set_mempolicy, mode, nodes, max_node);

	uint32_t set = NB_POLICY_SET;

	if (rc != 0)
		return rc;
	if (mode != MPOL_DEFAULT) {
		atomic_store(&g->policy, NB_POLICY_SET);
		nb_guest_note(g, NB_NOTE_POLICY);
	} else {
		atomic_compare_exchange_strong(&g->policy, &set, NB_POLICY_UNSURE);
	}
	return 0;
}

/* ---- stepping back ---- */

/* False when the helper is stopped and can't end: the program goes on all the same. */
static bool await_end(struct nb_guest *g, _Atomic uint32_t *tid)
{
	const uint64_t until =
		nb_os_now_ns() + END_TIMES * g->session->watchdog_ms * UINT64_C(1000000);

	for (uint32_t is; (is = atomic_load(tid)) != 0;) {
		if (nb_os_now_ns() > until)
			return false;
		nb_futex_wait(tid, is, 1000000);
	}
	return true;
}

void nb_call_stop(struct nb_guest *g, int note, bool for_good)
{
	bool ended;

	if (note >= 0)
		nb_guest_note(g, (enum nb_note)note);
	if (atomic_load(&g->agent_tid) != 0)
		nb_ask(g, &(struct nb_wish){.kind = NB_REQUEST_STOP});
	ended = await_end(g, &g->agent_tid) && await_end(g, &g->watchdog_tid);
	for (int i = 0; i < NB_MAX_CARRIERS; i++)
		ended &= await_end(g, &g->carrier_tid[i]);
	if (!ended)
		atomic_store(&g->revoked, 1);
	atomic_store(&g->stop, ended ? 0 : 1);
	atomic_store(&g->watch_word, ended ? 0 : 1);
	if (for_good || !ended)
		atomic_store(&g->state, NB_GUEST_OFF);
	else if (g->session != NULL)
		atomic_store(&g->state, NB_GUEST_READY);
}

void nb_call_sandbox(struct nb_guest *g)
{
	if (g->session == NULL || atomic_load(&g->sandboxed))
		return;
	nb_call_stop(g, NB_NOTE_SECCOMP, true);
	atomic_store(&g->sandboxed, 1);
}
