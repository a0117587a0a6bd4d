/* SPDX-License-Identifier: MIT */
/*
 * eject: managed memory becomes ordinary anonymous memory again, for calls that only that can serve
 * (mlock, most of mremap, MADV_WIPEONFORK ...). Write-protect it (writers wait,
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

	if (rc == 0 && (r->flags & NB_REGION_PRIVATE) && !(r->prot & PROT_READ))
		rc = -EACCES;
	for (uint64_t at = start, last; rc == 0 && (r->flags & NB_REGION_PRIVATE) && at < end;
		at = last) {
		atomic_fetch_add(&a->guest->progress, 1);
		last = at + NB_HUGE_SIZE < end ? at + NB_HUGE_SIZE : end;
		rc = copy_own(a, at, last, to + (at - start));
	}
	return rc;
}

/* One step of the work on a run, for the part of it that one region holds. */
struct step {
	struct nb_agent *agent;
	const struct nb_run *run;
	char *fresh;
	long rc;
};

static void protect(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	struct step *s = ctx;
	const int uffd = atomic_load(&s->agent->guest->uffd);
	const bool is_private = r->flags & NB_REGION_PRIVATE;

	if (s->rc == 0)
		s->rc = nb_uffd_register(
			uffd, start, end, is_private ? NB_UFFD_WP : NB_UFFD_MINOR | NB_UFFD_WP);
	if (s->rc == 0)
		s->rc = nb_uffd_protect(uffd, start, end, true);
}

static void unprotect(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	struct step *s = ctx;
	const int uffd = atomic_load(&s->agent->guest->uffd);

	nb_uffd_protect(uffd, start, end, false);
	nb_uffd_unregister(uffd, start, end);
	if (!(r->flags & NB_REGION_PRIVATE))
		nb_uffd_register(uffd, start, end, NB_UFFD_MINOR);
}

static void copy(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	struct step *s = ctx;

	atomic_fetch_add(&s->agent->guest->progress, 1);
	if (s->rc == 0)
		s->rc = fill(s->agent, r, start, end, s->fresh + (start - s->run->start));
}

static void advise(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	(void)ctx;
	nb_backing_advise(r, start, end);
}

static long swap_in(const struct nb_run *run, char *fresh)
{
	const uint64_t bytes = run->end - run->start;
	long rc = NB_OS_3(mprotect, fresh, bytes, run->prot);

	if (rc == 0)
		rc = NB_OS_5(
			mremap, fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, run->start);
	return nb_os_failed(rc) ? rc : 0;
}

static void replace(struct nb_agent *a, struct step *s)
{
	struct nb_regions *t = &a->guest->regions;
	const uint64_t bytes = s->run->end - s->run->start;
	const long fresh = nb_os_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	if (nb_os_failed(fresh)) {
		s->rc = fresh;
		return;
	}
	s->fresh = (char *)fresh;
	nb_regions_each(t, s->run->start, s->run->end, copy, s);
	if (atomic_load(&a->guest->revoked))
		s->rc = -EPERM;
	if (s->rc == 0)
		s->rc = swap_in(s->run, s->fresh);
	if (s->rc != 0)
		NB_OS_2(munmap, fresh, bytes);
}

/* The lock is held. One mapping comes out of it, as mremap wants. */
static long eject_run(struct nb_agent *a, const struct nb_run *run)
{
	struct nb_regions *t = &a->guest->regions;
	struct step s = {.agent = a, .run = run};

	nb_regions_each(t, run->start, run->end, protect, &s);
	if (s.rc == 0)
		replace(a, &s);
	nb_regions_each(t, run->start, run->end, s.rc == 0 ? advise : unprotect, &s);
	nb_uffd_wake(atomic_load(&a->guest->uffd), run->start, run->end);
	return s.rc;
}

static void count(void *ctx, struct nb_region *r, uint64_t start, uint64_t end)
{
	struct nb_live_stats *s = ctx;

	nb_stat_add(&s->ejected, end - start);
	nb_stat_sub(&s->managed_bytes, end - start);
	if (r->flags & NB_REGION_PRIVATE)
		nb_stat_sub(&s->private_bytes, end - start);
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
	struct nb_run run;
	long rc = 0;

	if (!a->has_wp || atomic_load(&a->guest->uffd) < 0)
		return -ENOMEM;
	nb_lock(&t->lock, &signals);
	widen(t, &start, &end);
	while (rc == 0 && nb_regions_run(t, start, end, &run)) {
		rc = eject_run(a, &run);
		if (rc != 0)
			break;
		nb_regions_each(t, run.start, run.end, count, nb_guest_stats(a->guest));
		nb_regions_forget(t, run.start, run.end);
		start = run.end;
	}
	nb_unlock(&t->lock, &signals);
	a->sweep = true;
	return (int)rc;
}
