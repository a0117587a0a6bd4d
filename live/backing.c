/* SPDX-License-Identifier: MIT */
/* backing: fresh anonymous memory becomes a shared memfd, and files without users are emptied. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "agent.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum {
	PUNCH_AT_ONCE = 8 << 20, /* a fraction of a millisecond */
};

struct nb_block *nb_block_at(struct nb_regions *t, uint64_t addr)
{
	const struct nb_region *r = nb_region_at(t, addr);
	const struct nb_backing *b = r != NULL ? &t->backing[r->backing] : NULL;
	uint64_t i;

	if (b == NULL || b->blocks == NULL)
		return NULL;
	i = (r->offset + (addr - r->start)) >> NB_HUGE_SHIFT;
	return i < b->nr_blocks ? &b->blocks[i] : NULL;
}

void nb_blocks_discarded(struct nb_regions *t, uint64_t start, uint64_t end)
{
	for (uint64_t at = start & ~(uint64_t)NB_HUGE_MASK; at < end; at += NB_HUGE_SIZE) {
		struct nb_block *b = nb_block_at(t, at < start ? start : at);

		if (b == NULL)
			continue;
		b->armed = 0;
		b->whole = false;
		if (at < start || at + NB_HUGE_SIZE > end)
			continue;
		nb_block_forget(b, false);
		b->settled = 0;
		b->away = b->waits = false;
		/* What comes next comes in small entries. */
		b->split = true;
	}
}

void nb_backing_advise(const struct nb_region *r, uint64_t start, uint64_t end)
{
	static const struct {
		unsigned int flag;
		int advice;
	} rows[] = {
		{NB_REGION_HUGE, MADV_HUGEPAGE},
		{NB_REGION_NO_HUGE, MADV_NOHUGEPAGE},
		{NB_REGION_NO_DUMP, MADV_DONTDUMP},
		{NB_REGION_NO_FORK, MADV_DONTFORK},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (r->flags & rows[i].flag)
			NB_OS_3(madvise, start, end - start, rows[i].advice);
}

bool nb_backing_extent(int fd, uint64_t *at, uint64_t end, uint64_t *extent_end)
{
	const long data = NB_OS_3(lseek, fd, *at, SEEK_DATA);
	long hole;

	if (data < 0 || (uint64_t)data >= end)
		return false;
	hole = NB_OS_3(lseek, fd, data, SEEK_HOLE);
	*at = (uint64_t)data;
	*extent_end = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
	return *extent_end > *at;
}

/* ---- adopting ---- */

/* Executable memfds need not be: some systems refuse those. */
static long new_file(unsigned int flags)
{
	const long fd =
		NB_OS_2(memfd_create, NB_BACKING_NAME, flags | MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd == -EINVAL ? NB_OS_2(memfd_create, NB_BACKING_NAME, flags | MFD_CLOEXEC) : fd;
}

/* Beyond RLIMIT_FSIZE ftruncate would raise a signal. */
static bool file_may_be(uint64_t bytes)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	return NB_OS_4(prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

static long open_file(struct nb_backing *b, uint64_t bytes)
{
	struct stat st;
	const long fd = file_may_be(bytes) ? new_file(0) : -EFBIG;
	long rc;

	if (fd < 0)
		return fd;
	rc = NB_OS_2(ftruncate, fd, bytes);
	if (rc == 0)
		rc = NB_OS_2(fstat, fd, &st);
	if (rc != 0) {
		NB_OS_1(close, fd);
		return rc;
	}
	*b = (struct nb_backing){
		.fd = (int)fd,
		.device = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev),
		.inode = st.st_ino,
		.nr_blocks = (uint32_t)(bytes >> NB_HUGE_SHIFT),
	};
	return 0;
}

static void make_blocks(struct nb_agent *a, struct nb_backing *b, int node)
{
	b->blocks = nb_heap_alloc(&a->heap, b->nr_blocks * sizeof(b->blocks[0]));
	for (uint32_t i = 0; b->blocks != NULL && i < b->nr_blocks; i++)
		b->blocks[i] = (struct nb_block){
			.node = (int16_t)node, .wanted = NB_NO_NODE, .split = true};
}

static void drop_file(struct nb_agent *a, struct nb_backing *b)
{
	NB_OS_1(close, b->fd);
	nb_heap_free(&a->heap, b->blocks, b->nr_blocks * sizeof(b->blocks[0]));
	*b = (struct nb_backing){.fd = NB_FD_FREE};
}

/* As it was: fresh anonymous memory. Nobody has used it yet, so nothing is lost. */
static void put_back(uint64_t start, uint64_t end, uint32_t prot)
{
	NB_OS_6(mmap, start, end - start, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static long map_file(struct nb_agent *a, const struct nb_region *r, int fd)
{
	const uint64_t bytes = r->end - r->start;
	long rc;

	if (atomic_load(&a->guest->revoked))
		return -EPERM;
	rc = NB_OS_6(mmap, r->start, bytes, r->prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		r->offset);

	if (nb_os_failed(rc))
		return rc;
	rc = NB_OS_3(madvise, r->start, bytes, MADV_DONTFORK);
	if (rc == 0)
		rc = nb_uffd_register(
			atomic_load(&a->guest->uffd), r->start, r->end, NB_UFFD_MINOR);
	if (rc != 0)
		put_back(r->start, r->end, r->prot);
	return rc;
}

static void count_region(struct nb_guest *g, uint64_t bytes)
{
	struct nb_live_stats *s = nb_guest_stats(g);

	nb_stat_add(&s->regions, 1);
	nb_stat_add(&s->managed_bytes, bytes);
	nb_stat_max(&s->managed_peak, atomic_load(&s->managed_bytes));
}

static int adopt(struct nb_agent *a, struct nb_region *r, int node)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_backing *b = &t->backing[r->backing];
	struct nb_signals signals;
	long rc = open_file(
		b, (r->offset + (r->end - r->start) + NB_HUGE_MASK) & ~(uint64_t)NB_HUGE_MASK);

	if (rc != 0)
		return (int)rc;
	make_blocks(a, b, node);
	rc = map_file(a, r, b->fd);
	if (rc == 0) {
		nb_lock(&t->lock, &signals);
		rc = nb_region_add(t, r);
		nb_unlock(&t->lock, &signals);
		if (rc != 0)
			put_back(r->start, r->end, r->prot);
	}
	if (rc != 0)
		drop_file(a, b);
	else
		count_region(a->guest, r->end - r->start);
	return (int)rc;
}

/* Half the table is for pieces that calls of the program cut off. */
static bool bound_reached(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;

	if (a->maps_full)
		nb_guest_note(g, NB_NOTE_MAX_MAPS);
	else if (g->regions.nr >= g->session->max_regions || g->regions.nr >= NB_MAX_REGIONS / 2)
		nb_guest_note(g, NB_NOTE_MAX_REGIONS);
	else
		return false;
	return true;
}

/* Nodes that are only virtual: memory begins on the node of the thread that asked for it. */
static int virtual_home(const struct nb_agent *a, int cpu)
{
	if (!a->is_virtual || cpu < 0 || (unsigned int)cpu >= a->topo.cpu_ids)
		return NB_NO_NODE;
	return a->topo.cpu_node[cpu];
}

int nb_backing_adopt(struct nb_agent *a, const struct nb_wish *w)
{
	struct nb_guest *g = a->guest;
	struct nb_region r = {
		.start = w->start,
		.end = w->end,
		.offset = w->start & NB_HUGE_MASK,
		.prot = (uint8_t)w->prot,
		.backing = nb_backing_free(&g->regions),
		.flags = w->policy ? NB_REGION_POLICY : 0,
	};
	int rc = -EAGAIN;

	if (atomic_load(&g->forks) == 0 && atomic_load(&g->uffd) >= 0 && !bound_reached(a) &&
		r.backing != NB_NO_BACKING)
		rc = adopt(a, &r, virtual_home(a, w->cpu));
	if (rc == 0)
		return 0;
	if (rc == -EPERM || rc == -ENOSYS)
		nb_guest_note(g, NB_NOTE_NO_MEMFD);
	nb_stat_add(&nb_guest_stats(g)->regions_skipped, 1);
	nb_stat_add(&nb_guest_stats(g)->skipped_bytes, w->end - w->start);
	return rc;
}

/* ---- emptying ---- */

/* The region that maps this offset, or the next one of the file; NULL: none. */
static const struct nb_region *region_of(
	const struct nb_regions *t, uint16_t backing, uint64_t offset)
{
	const struct nb_region *next = NULL;

	for (uint32_t i = 0; i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];

		if (r->backing != backing || r->offset + (r->end - r->start) <= offset)
			continue;
		if (next == NULL || r->offset < next->offset)
			next = r;
	}
	return next;
}

/* The first part with data that no region maps: false when there is none. */
static bool find_garbage(struct nb_regions *t, uint16_t backing, uint64_t *start, uint64_t *end)
{
	const uint64_t size = (uint64_t)t->backing[backing].nr_blocks << NB_HUGE_SHIFT;

	for (*start = 0; nb_backing_extent(t->backing[backing].fd, start, size, end);) {
		const struct nb_region *r = region_of(t, backing, *start);

		if (r == NULL)
			return true;
		if (r->offset > *start) {
			*end = r->offset < *end ? r->offset : *end;
			return true;
		}
		*start = r->offset + (r->end - r->start);
	}
	return false;
}

/* True when a slice was emptied. Offsets without a region never get one again, so no lock is needed
 * to empty them. */
static bool empty_slice(struct nb_agent *a, uint16_t i)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	uint64_t start, end;
	bool found;

	nb_lock(&t->lock, &signals);
	found = find_garbage(t, i, &start, &end);
	nb_unlock(&t->lock, &signals);
	if (!found)
		return false;
	if (end - start > PUNCH_AT_ONCE)
		end = start + PUNCH_AT_ONCE;
	return NB_OS_4(fallocate, t->backing[i].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       start, end - start) == 0;
}

/* A file that a child may still read is not emptied; who unmaps it last frees it. */
static bool snapshots_out(struct nb_guest *g)
{
	return g->canary.fd != -1 || atomic_load(&g->forks) > 0;
}

static bool sweep_one(struct nb_agent *a, uint16_t i)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_backing *b = &t->backing[i];
	struct nb_signals signals;

	if (!snapshots_out(a->guest) && empty_slice(a, i))
		return true;
	nb_lock(&t->lock, &signals);
	if (b->users == 0)
		drop_file(a, b);
	else
		b->trimmed = snapshots_out(a->guest);
	nb_unlock(&t->lock, &signals);
	return false;
}

bool nb_backing_sweep(struct nb_agent *a)
{
	struct nb_regions *t = &a->guest->regions;

	for (uint16_t i = 0; i < NB_MAX_BACKINGS; i++)
		if (t->backing[i].fd >= 0 && (t->backing[i].trimmed || t->backing[i].users == 0) &&
			sweep_one(a, i))
			return true;
	return false;
}
