/* SPDX-License-Identifier: MIT */
/*
 * private: what forks need. Before a fork, every managed mapping becomes a private one of the same
 * file: the file is then a snapshot that nobody writes, and the kernel's own copy-on-write gives
 * both sides what fork promises. When no process that came of the fork is left, the copies that
 * were made since are written back into the file, block by block, and the memory is shared and
 * managed again.
 *
 * Who is left is asked of a canary: a small memfd that is mapped shared and writable while a fork
 * is made, so that every process that comes of it has that mapping for as long as it has the
 * snapshot (no descriptor is needed, and closing them all changes nothing). The parent unmaps its
 * own. A memfd can be sealed against writing only when nobody has it mapped so: once sealing works,
 * all are gone.
 *
 * Taking a block back: write-protect it (writers wait), write the pages that are copies into the
 * file at their place, map the file shared over it, register, map what the page cache has, wake the
 * writers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS  1033
#define F_SEAL_WRITE 8
#endif

enum {
	TRIES = 8,
};

/* ---- before a fork ---- */

static const struct nb_backing *backing_of(const struct nb_regions *t, const struct nb_map *m)
{
	for (int i = 0; i < NB_MAX_BACKINGS; i++)
		if (t->backing[i].fd >= 0 && t->backing[i].inode == m->inode &&
			t->backing[i].device == m->device)
			return &t->backing[i];
	return NULL;
}

static void advise_each(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	(void)ctx;
	nb_backing_advise(r, start, end);
}

/* What is really mapped counts, not what the table says: this maps over it. */
static int make_private(void *ctx, const struct nb_map *m)
{
	struct nb_guest *g = ctx;
	const struct nb_backing *b = m->inode != 0 ? backing_of(&g->regions, m) : NULL;
	const uint64_t bytes = m->end - m->start;
	long rc;

	if (b == NULL)
		return 0;
	if (m->shared) {
		rc = -ENOMEM;
		/* A fork depends on it. */
		for (int i = 0; i < TRIES && rc == -ENOMEM; i++)
			rc = NB_OS_6(mmap, m->start, bytes, m->prot,
				MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, b->fd, m->offset);
		if (nb_os_failed(rc))
			return (int)rc;
	} else {
		NB_OS_3(madvise, m->start, bytes, MADV_DOFORK);
	}
	nb_regions_each(&g->regions, m->start, m->end, advise_each, NULL);
	return 0;
}

/* Where /proc can't be read the table must do: it has seen every call that libc made. */
static int make_private_by_table(struct nb_guest *g)
{
	for (uint32_t i = 0; i < g->regions.nr; i++) {
		const struct nb_region *r = &g->regions.region[i];
		const struct nb_backing *b = &g->regions.backing[r->backing];
		const struct nb_map m = {
			.start = r->start,
			.end = r->end,
			.offset = r->offset,
			.device = b->device,
			.inode = b->inode,
			.prot = r->prot,
			.shared = !(r->flags & NB_REGION_PRIVATE),
		};
		const int rc = b->fd >= 0 ? make_private(g, &m) : 0;

		if (rc != 0)
			return rc;
	}
	return 0;
}

static void mark_private(struct nb_guest *g)
{
	for (uint32_t i = 0; i < g->regions.nr; i++) {
		struct nb_region *r = &g->regions.region[i];

		if (!(r->flags & NB_REGION_PRIVATE))
			nb_stat_add(&nb_guest_stats(g)->private_bytes, r->end - r->start);
		r->flags |= NB_REGION_PRIVATE;
	}
	atomic_fetch_add(&g->regions.version, 2);
}

static int map_canary(struct nb_canary *c)
{
	long addr;

	if (c->fd == NB_FD_ELSEWHERE)
		return -EBADF;
	if (c->fd < 0) {
		c->fd = (int)NB_OS_2(
			memfd_create, "numabal-canary", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (c->fd < 0)
			return c->fd;
		NB_OS_2(ftruncate, c->fd, NB_PAGE_SIZE);
	}
	if (atomic_load(&c->addr) != 0)
		return 0;
	addr = nb_os_map(NB_PAGE_SIZE, MAP_SHARED, c->fd);
	if (nb_os_failed(addr))
		return (int)addr;
	atomic_store(&c->addr, (uint64_t)addr);
	return 0;
}

/* Without a canary nobody could tell when the children are gone: then the memory stays private. */
int nb_backing_pre_fork(struct nb_guest *g, bool with_canary)
{
	struct nb_hold h;
	int rc;

	nb_guest_hold(g, &h);
	if (with_canary && map_canary(&g->canary) != 0)
		g->canary.fd = NB_FD_ELSEWHERE;
	rc = nb_maps_each(g->proc_fd, make_private, g);
	if (rc != 0)
		rc = make_private_by_table(g);
	mark_private(g);
	nb_guest_release(g, &h);
	return rc;
}

/* ---- after it ---- */

/* Another fork may be missed by the hooks: what it would need is not mapped any more. */
static void no_unseen_forks(struct nb_guest *g)
{
	const struct nb_regions *t = &g->regions;

	for (uint32_t i = 0; i < t->nr; i++)
		if (t->backing[t->region[i].backing].fd >= 0)
			NB_OS_3(madvise, t->region[i].start, t->region[i].end - t->region[i].start,
				MADV_DONTFORK);
}

/* When the agent was stopped at it the watchdog does it again. */
static int ask_pre_fork(struct nb_guest *g)
{
	const struct nb_wish wish = {.kind = NB_REQUEST_PRE_FORK};
	const int rc = nb_ask(g, &wish);

	return rc == -ETIMEDOUT ? nb_ask(g, &wish) : rc;
}

/* The lock is held over the fork, so that the child's copy of the table is whole. */
void nb_before_fork(struct nb_guest *g)
{
	struct nb_hold h;

	nb_guest_hold(g, &h);
	atomic_fetch_add(&g->forks, 1);
	nb_guest_release(g, &h);
	if (g->regions.nr > 0 && ask_pre_fork(g) == 0)
		nb_stat_add(&nb_guest_stats(g)->forks, 1);
	nb_guest_hold(g, &h);
	g->fork_hold = h;
	if (!atomic_load(&g->sandboxed))
		atomic_store(&g->fork_tid, (uint32_t)NB_OS_0(gettid));
}

void nb_after_fork_parent(struct nb_guest *g)
{
	const struct nb_hold h = g->fork_hold;
	uint64_t canary = 0;

	atomic_store(&g->fork_tid, 0);
	if (atomic_fetch_sub(&g->forks, 1) == 1)
		canary = atomic_exchange(&g->canary.addr, 0);
	if (canary != 0) {
		no_unseen_forks(g);
		NB_OS_2(munmap, canary, NB_PAGE_SIZE);
	}
	nb_guest_release(g, &h);
}

/* No thread but this one, no descriptor of ours, and private memory that is what a fork gives. */
void nb_after_fork_child(struct nb_guest *g)
{
	struct nb_regions *t = &g->regions;
	const struct nb_hold h = g->fork_hold;

	uint32_t set = NB_POLICY_SET;

	/* Of all threads only one is left. */
	atomic_compare_exchange_strong(&g->policy, &set, NB_POLICY_UNSURE);
	g->counted = false;
	atomic_store(&t->version, 0);
	atomic_store(&g->fork_tid, 0);
	atomic_store(&g->forks, 0);
	atomic_store(&g->agent_tid, 0);
	atomic_store(&g->watchdog_tid, 0);
	for (int i = 0; i < NB_MAX_CARRIERS; i++)
		atomic_store(&g->carrier_tid[i], 0);
	atomic_store(&g->uffd, -1);
	atomic_store(&g->holding_ns, 0);
	atomic_store(&g->stop, 0);
	atomic_store(&g->canary.addr, 0);
	g->canary.fd = -1;
	atomic_store(&g->slot, NULL);
	g->agent = NULL;
	g->stacks = NULL;
	if (!atomic_load(&g->sandboxed))
		g->pid = (uint32_t)NB_OS_0(getpid);
	for (int i = 0; i < NB_MAX_REQUESTS; i++)
		atomic_store(&g->request[i].state, NB_REQUEST_FREE);
	for (int i = 0; i < NB_MAX_BACKINGS; i++) {
		t->backing[i].blocks = NULL;
		t->backing[i].fd = t->backing[i].users > 0 ? NB_FD_ELSEWHERE : NB_FD_FREE;
	}
	if (atomic_load(&g->state) != NB_GUEST_OFF)
		atomic_store(&g->state, NB_GUEST_READY);
	nb_lock_init(&t->lock);
	if (!atomic_load(&g->sandboxed))
		nb_signals_restore(&h.signals);
}

/* ---- when the children are gone ---- */

static bool any_private(const struct nb_regions *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		if ((t->region[i].flags & NB_REGION_PRIVATE) &&
			t->backing[t->region[i].backing].fd >= 0)
			return true;
	return false;
}

void nb_backing_look_at_canary(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;
	const bool was = a->taking_back;
	struct nb_signals signals;

	nb_lock(&g->regions.lock, &signals);
	if (g->canary.fd >= 0 && atomic_load(&g->forks) == 0 &&
		NB_OS_3(fcntl, g->canary.fd, F_ADD_SEALS, F_SEAL_WRITE) == 0) {
		NB_OS_1(close, g->canary.fd);
		g->canary.fd = -1;
	}
	a->taking_back =
		g->canary.fd == -1 && atomic_load(&g->forks) == 0 && any_private(&g->regions);
	nb_unlock(&g->regions.lock, &signals);
	if (!was)
		a->direct_looks = 0;
}

/* Also swapped ones, which may be no copies: reading the page gives what belongs there. */
int nb_backing_copies(
	struct nb_agent *a, uint64_t start, uint64_t end, uint64_t bits[NB_BLOCK_BITS])
{
	uint64_t entry[NB_HUGE_PAGES];
	const uint64_t pages = (end - start) >> NB_PAGE_SHIFT;

	memset(bits, 0, NB_BLOCK_BITS * sizeof(bits[0]));
	if (!nb_pagemap_read(a, start, pages, entry))
		return -EIO;
	for (uint64_t i = 0; i < pages; i++)
		if (nb_pagemap_copy(entry[i]))
			bits[i / 64] |= UINT64_C(1) << (i % 64);
	return 0;
}

static int write_back(
	struct nb_agent *a, const struct nb_region *r, int fd, uint64_t start, uint64_t end)
{
	uint64_t bits[NB_BLOCK_BITS];
	const int rc = nb_backing_copies(a, start, end, bits);

	if (rc != 0)
		return rc;
	for (uint64_t addr = start; addr < end; addr += NB_PAGE_SIZE) {
		const uint64_t i = (addr - start) >> NB_PAGE_SHIFT;

		if (!(bits[i / 64] >> (i % 64) & 1))
			continue;
		if (NB_OS_4(pwrite64, fd, addr, NB_PAGE_SIZE, r->offset + (addr - r->start)) !=
			NB_PAGE_SIZE)
			return -EIO;
	}
	return 0;
}

/*
 * What the page cache holds is mapped at once: else each page would be a fault. To ask where a hole
 * begins takes as long as what is behind it is large, so only its end is asked for.
 */
static void map_present(int uffd, const struct nb_region *r, int fd, uint64_t start, uint64_t end)
{
	uint64_t at = start;

	while (at < end) {
		const long rc = nb_uffd_continue_from(uffd, &at, end);
		long data;

		if (rc == 0)
			break;
		if (rc == -EEXIST) {
			at += NB_PAGE_SIZE;
			continue;
		}
		data = rc == -EFAULT ? NB_OS_3(lseek, fd, r->offset + (at - r->start), SEEK_DATA)
				     : -1;
		if (data < 0 || r->start + ((uint64_t)data - r->offset) <= at)
			break;
		at = r->start + ((uint64_t)data - r->offset);
	}
}

static int share(int uffd, const struct nb_region *r, int fd, uint64_t start, uint64_t end)
{
	const long rc = NB_OS_6(mmap, start, end - start, r->prot,
		MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, r->offset + (start - r->start));

	if (nb_os_failed(rc))
		return (int)rc;
	NB_OS_3(madvise, start, end - start, MADV_DONTFORK);
	nb_backing_advise(r, start, end);
	if (nb_uffd_register(uffd, start, end, NB_UFFD_MINOR) == 0)
		map_present(uffd, r, fd, start, end);
	return 0;
}

void nb_backing_map_block(struct nb_agent *a, uint64_t start, uint64_t end)
{
	const int uffd = atomic_load(&a->guest->uffd);
	uint64_t entry[NB_HUGE_PAGES];
	const uint64_t pages = (end - start) >> NB_PAGE_SHIFT;

	if (pages > NB_HUGE_PAGES || !nb_pagemap_read(a, start, pages, entry))
		return;
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t last = i;

		while (last < pages && !nb_pagemap_present(entry[last]))
			last++;
		/* A hole of the file ends a call; what lies behind it waits for its first touch. */
		if (last > i)
			nb_uffd_continue(uffd, start + (i << NB_PAGE_SHIFT),
				start + (last << NB_PAGE_SHIFT));
		i = last;
	}
}

/* The lock is held, so nothing of the program changes this mapping meanwhile. */
static int take_block(struct nb_agent *a, const struct nb_region *r, uint64_t start, uint64_t end)
{
	const int uffd = atomic_load(&a->guest->uffd);
	const int fd = a->guest->regions.backing[r->backing].fd;
	long rc = nb_uffd_register(uffd, start, end, NB_UFFD_WP);

	if (rc != 0)
		return (int)rc;
	rc = nb_uffd_protect(uffd, start, end, true);
	if (rc == 0)
		rc = write_back(a, r, fd, start, end);
	if (atomic_load(&a->guest->revoked))
		rc = -EPERM;
	if (rc == 0)
		rc = share(uffd, r, fd, start, end);
	if (rc != 0) {
		nb_uffd_protect(uffd, start, end, false);
		nb_uffd_unregister(uffd, start, end);
	}
	nb_uffd_wake(uffd, start, end);
	return (int)rc;
}

static void now_shared(struct nb_regions *t, uint64_t start, uint64_t end)
{
	struct nb_region *r;

	nb_regions_cut(t, start);
	nb_regions_cut(t, end);
	r = nb_region_at(t, start);
	r->flags &= (uint8_t)~NB_REGION_PRIVATE;
	atomic_fetch_add(&t->version, 2);
	nb_regions_merge(t, start, end);
}

/* Readable memory whose file is ours. */
static struct nb_region *next_private(struct nb_regions *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		if ((t->region[i].flags & NB_REGION_PRIVATE) &&
			t->backing[t->region[i].backing].fd >= 0 && (t->region[i].prot & PROT_READ))
			return &t->region[i];
	return NULL;
}

/* All of it is mapped, in small entries. */
static void note_taken(struct nb_guest *g, uint64_t start)
{
	struct nb_block *b = nb_block_at(&g->regions, start);

	if (b == NULL)
		return;
	b->armed = 0;
	b->split = true;
	b->whole = false;
}

static bool take_one(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;
	const struct nb_region *r = next_private(&g->regions);
	uint64_t start, end;

	if (r == NULL || !nb_regions_can_cut(&g->regions))
		return false;
	start = r->start;
	end = (start & ~(uint64_t)NB_HUGE_MASK) + NB_HUGE_SIZE;
	end = end < r->end ? end : r->end;
	if (take_block(a, r, start, end) != 0)
		return false;
	now_shared(&g->regions, start, end);
	note_taken(g, start);
	nb_stat_add(&nb_guest_stats(g)->taken_back, end - start);
	nb_stat_sub(&nb_guest_stats(g)->private_bytes, end - start);
	return true;
}

/* A fork that came since, or its child, ends it. */
bool nb_backing_take_back(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;
	struct nb_signals signals;

	if (!a->taking_back)
		return false;
	if (!a->has_wp) {
		nb_guest_note(g, NB_NOTE_NO_WP);
		a->taking_back = false;
		return false;
	}
	if (nb_direct_io(a)) {
		a->taking_back = false;
		return false;
	}
	nb_lock(&g->regions.lock, &signals);
	a->taking_back = atomic_load(&g->forks) == 0 && g->canary.fd == -1 &&
			 atomic_load(&g->uffd) >= 0 && take_one(a);
	nb_unlock(&g->regions.lock, &signals);
	return a->taking_back;
}
