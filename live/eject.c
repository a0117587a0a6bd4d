/* SPDX-License-Identifier: MIT */
/*
 * eject: managed memory becomes ordinary anonymous memory again, for calls that only that can serve
 * (mlock, most of mremap, MADV_WIPEONFORK ...). Block by block: write-protect it (writers wait,
 * readers go on), copy it to fresh memory, move that over it in one step, wake the writers.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "agent.h"

static long copy_file(int fd, const struct nb_region *r, uint64_t start, uint64_t end, char *to)
{
	uint64_t at = r->offset + (start - r->start), extent_end;
	const uint64_t first = at, last = r->offset + (end - r->start);

	for (; nb_backing_extent(fd, &at, last, &extent_end); at = extent_end) {
		const long bytes = (long)(extent_end - at);

		if (NB_OS_4(pread64, fd, to + (at - first), bytes, at) != bytes)
			return -EIO;
	}
	return 0;
}

/* A private mapping's own pages are read where they are: write-protected memory can be read. */
static long copy_own(struct nb_agent *a, uint64_t start, uint64_t end, char *to)
{
	uint64_t bits[NB_BLOCK_BITS];
	const int rc = nb_backing_copies(a, start, end, bits);

	for (uint64_t i = 0; rc == 0 && i < (end - start) >> NB_PAGE_SHIFT; i++)
		if (bits[i / 64] >> (i % 64) & 1)
			memcpy(to + (i << NB_PAGE_SHIFT), (char *)start + (i << NB_PAGE_SHIFT),
				NB_PAGE_SIZE);
	return rc;
}

static long fill(
	struct nb_agent *a, const struct nb_region *r, uint64_t start, uint64_t end, char *to)
{
	const struct nb_backing *b = &a->guest->regions.backing[r->backing];
	long rc = b->fd >= 0 ? copy_file(b->fd, r, start, end, to) : -EBADF;

	if (rc != 0 || !(r->flags & NB_REGION_PRIVATE))
		return rc;
	return r->prot & PROT_READ ? copy_own(a, start, end, to) : -EACCES;
}

static long swap_in(const struct nb_region *r, uint64_t start, uint64_t end, char *fresh)
{
	const uint64_t bytes = end - start;
	long rc = NB_OS_3(mprotect, fresh, bytes, r->prot);

	if (rc == 0)
		rc = NB_OS_5(mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start);
	return nb_os_failed(rc) ? rc : 0;
}

static long replace(struct nb_agent *a, const struct nb_region *r, uint64_t start, uint64_t end)
{
	const long fresh = NB_OS_6(mmap, 0, end - start, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long rc;

	if (nb_os_failed(fresh))
		return fresh;
	rc = fill(a, r, start, end, (char *)fresh);
	if (rc == 0)
		rc = swap_in(r, start, end, (char *)fresh);
	if (rc != 0)
		NB_OS_2(munmap, fresh, end - start);
	else
		nb_backing_advise(r, start, end);
	return rc;
}

/* The lock is held. */
static long eject_block(struct nb_agent *a, const struct nb_region *r, uint64_t start, uint64_t end)
{
	const int uffd = atomic_load(&a->guest->uffd);
	const bool is_private = r->flags & NB_REGION_PRIVATE;
	long rc = nb_uffd_register(
		uffd, start, end, is_private ? NB_UFFD_WP : NB_UFFD_MINOR | NB_UFFD_WP);

	if (rc != 0)
		return rc;
	rc = nb_uffd_protect(uffd, start, end, true);
	if (rc == 0)
		rc = replace(a, r, start, end);
	if (rc != 0) {
		nb_uffd_protect(uffd, start, end, false);
		nb_uffd_unregister(uffd, start, end);
		if (!is_private)
			nb_uffd_register(uffd, start, end, NB_UFFD_MINOR);
	}
	nb_uffd_wake(uffd, start, end);
	return rc;
}

static void forget(struct nb_agent *a, const struct nb_region *r, uint64_t start, uint64_t end)
{
	struct nb_live_stats *s = nb_guest_stats(a->guest);

	nb_stat_add(&s->ejected, end - start);
	nb_stat_sub(&s->managed_bytes, end - start);
	if (r->flags & NB_REGION_PRIVATE)
		nb_stat_sub(&s->private_bytes, end - start);
	nb_regions_forget(&a->guest->regions, start, end);
	a->sweep = true;
}

/* The first block of [*start, end) that is managed: 1 when there was one, 0 none, or -errno. */
static long eject_next(struct nb_agent *a, uint64_t *start, uint64_t end)
{
	struct nb_regions *t = &a->guest->regions;
	const uint32_t i = nb_regions_index(t, *start);
	struct nb_region r;
	uint64_t last;
	long rc;

	if (i >= t->nr || t->region[i].start >= end)
		return 0;
	r = t->region[i];
	*start = r.start > *start ? r.start : *start;
	last = (*start & ~(uint64_t)NB_HUGE_MASK) + NB_HUGE_SIZE;
	last = last < r.end ? last : r.end;
	last = last < end ? last : end;
	rc = eject_block(a, &r, *start, last);
	if (rc != 0)
		return rc;
	forget(a, &r, *start, last);
	*start = last;
	return 1;
}

/* Without room in the table for cuts, whole regions are ejected. */
static void widen(const struct nb_regions *t, uint64_t *start, uint64_t *end)
{
	uint32_t i = nb_regions_index(t, *start);

	if (nb_regions_can_cut(t))
		return;
	if (i < t->nr && t->region[i].start < *start)
		*start = t->region[i].start;
	while (i < t->nr && t->region[i].start < *end) {
		*end = t->region[i].end > *end ? t->region[i].end : *end;
		i++;
	}
}

int nb_backing_eject(struct nb_agent *a, uint64_t start, uint64_t end)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	long rc;

	if (!a->has_wp || atomic_load(&a->guest->uffd) < 0)
		return -ENOMEM;
	nb_lock(&t->lock, &signals);
	widen(t, &start, &end);
	do
		rc = eject_next(a, &start, end);
	while (rc > 0);
	nb_unlock(&t->lock, &signals);
	return (int)rc;
}
