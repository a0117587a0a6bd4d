/* SPDX-License-Identifier: MIT */
/*
 * sample: arming. The engine asks for a range; here each block of 2 MiB in it gets one page armed,
 * chosen at random among those that are mapped, and stands for the block: the engine hears of
 * blocks as of huge pages that were armed and faulted as one. Arming is MADV_DONTNEED on shared
 * file memory: the data stays in the file and only the entry goes.
 *
 * A request is answered at once, with what will be armed; the pages are armed in slices, between
 * which faults are served.
 *
 * MADV_DONTNEED on memory that is not ours would destroy it. So right before, with the table's lock
 * held, UFFDIO_CONTINUE is asked to map the page: it answers -EEXIST for mapped memory that this
 * descriptor watches, and -ENOENT for anything else, whatever the table believes.
 */
#include <errno.h>
#include <sys/mman.h>
#include "agent.h"

enum {
	BLOCKS_AT_ONCE = 32, /* with the lock held: some tens of microseconds */
	SLICE_NS = 100000,   /* of arming; each page may interrupt every CPU of the program */
	TRIES = 4,	     /* to find a mapped page in a block */
	MOST_ARMED = 16,     /* pages of a block that nobody touched */
	PATIENCE = 8,	     /* scans, about, until an untouched one gets company */
	DUTY = 5,	     /* arming takes at most one part in so many of the time */
};

static bool is_mapped(struct nb_agent *a, uint64_t addr)
{
	uint64_t entry = 0;

	NB_OS_4(pread64, a->pagemap_fd, &entry, sizeof(entry),
		(addr >> NB_PAGE_SHIFT) * sizeof(entry));
	return entry >> 63;
}

static bool pick(struct nb_agent *a, const struct nb_span *reach, uint64_t *page)
{
	const uint64_t pages = (reach->end - reach->start) >> NB_PAGE_SHIFT;

	for (int i = 0; i < TRIES; i++) {
		*page = reach->start + ((nb_agent_random(a) % pages) << NB_PAGE_SHIFT);
		if (is_mapped(a, *page))
			return true;
	}
	return false;
}

static bool arm_page(struct nb_agent *a, struct nb_region *r, uint64_t page)
{
	struct nb_live_stats *s = nb_guest_stats(a->guest);
	const long rc = nb_uffd_continue(atomic_load(&a->guest->uffd), page, page + NB_PAGE_SIZE);

	if (rc != 0 && rc != -EEXIST) {
		nb_stat_add(&s->arm_stale, 1);
		return false;
	}
	if (atomic_load(&a->guest->revoked))
		return false;
	if (NB_OS_3(madvise, page, NB_PAGE_SIZE, MADV_DONTNEED) != 0) {
		r->flags |= NB_REGION_LOCKED;
		atomic_fetch_add(&a->guest->regions.version, 2);
		return false;
	}
	nb_stat_add(&s->armed, 1);
	return true;
}

static bool may_arm(const struct nb_region *r)
{
	const unsigned int never = NB_REGION_PRIVATE | NB_REGION_POLICY | NB_REGION_LOCKED;

	return r != NULL && !(r->flags & never) && r->prot != PROT_NONE;
}

/* ---- choosing, when the engine asks ---- */

static bool queue_full(const struct nb_agent *a)
{
	return a->armer.nr == NB_MAX_ARMS;
}

/* A page that nobody touched yet says nothing new when it gets company; but it may be one that
 * nobody ever will. */
static bool enough_waits(struct nb_agent *a, const struct nb_block *b)
{
	return b->armed > 0 && (b->armed >= MOST_ARMED || nb_agent_random(a) % PATIENCE != 0);
}

/* The lock is held. */
static void choose(struct nb_agent *a, uint64_t block, struct nb_arm_result *out)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_region *r = nb_region_at(t, block);
	struct nb_block *b = nb_block_at(t, block);
	struct nb_span reach;
	uint64_t page;

	if (!may_arm(r) || (b != NULL && enough_waits(a, b)))
		return;
	reach = nb_block_reach(r, block);
	if (!pick(a, &reach, &page))
		return;
	a->armer.page[(a->armer.head + a->armer.nr++) % NB_MAX_ARMS] = page;
	if (b != NULL)
		b->armed++;
	out->present += NB_HUGE_PAGES;
	out->updated += NB_HUGE_PAGES;
	out->huge_present++;
	out->huge_updated++;
}

static bool full(const struct nb_arm_request *q, const struct nb_arm_result *out)
{
	return q->max_present != 0 && out->present >= q->max_present;
}

int nb_sample_arm(void *ctx, const struct nb_arm_request *q, struct nb_arm_result *out)
{
	struct nb_agent *a = ctx;
	struct nb_signals signals;

	*out = (struct nb_arm_result){.end = q->start};
	if (atomic_load(&a->guest->uffd) < 0)
		return -EBADF;
	while (out->end < q->end && !full(q, out) && !queue_full(a)) {
		if (!nb_lock_try(&a->guest->regions.lock, &signals))
			break;
		for (int i = 0;
			i < BLOCKS_AT_ONCE && out->end < q->end && !full(q, out) && !queue_full(a);
			i++) {
			choose(a, out->end, out);
			out->end += NB_HUGE_SIZE;
		}
		nb_unlock(&a->guest->regions.lock, &signals);
		nb_faults_resolve(a);
	}
	/* What is left comes with the next scan. */
	if (out->end == q->start)
		return -EAGAIN;
	return 0;
}

/* ---- arming, in slices; each page may interrupt every CPU that runs the program ---- */

void nb_sample_work(struct nb_agent *a)
{
	struct nb_armer *w = &a->armer;
	const uint64_t since = nb_os_now_ns(), until = since + SLICE_NS;
	struct nb_signals signals;

	if (w->nr == 0 || since < w->next_ns || atomic_load(&a->guest->uffd) < 0 ||
		!nb_lock_try(&a->guest->regions.lock, &signals))
		return;
	while (w->nr > 0) {
		struct nb_region *r = nb_region_at(&a->guest->regions, w->page[w->head]);

		if (may_arm(r))
			arm_page(a, r, w->page[w->head]);
		w->head = (w->head + 1) % NB_MAX_ARMS;
		w->nr--;
		if (nb_os_now_ns() >= until)
			break;
	}
	nb_unlock(&a->guest->regions.lock, &signals);
	w->next_ns = nb_os_now_ns() + (DUTY - 1) * (nb_os_now_ns() - since);
}
