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
 * Each call flushes the TLBs of all CPUs of the program. Where that is dear (many CPUs, emulated
 * ones) a run of blocks is armed whole in one call, and the first touch maps all of its block
 * again. Which of both is cheaper is measured.
 *
 * MADV_DONTNEED on memory that is not ours would destroy it. So right before, with the table's lock
 * held, UFFDIO_CONTINUE is asked to map the page: it answers -EEXIST for mapped memory that this
 * descriptor watches, and -ENOENT for anything else, whatever the table believes. Of whole blocks
 * /proc/self/pagemap says besides that no page is anonymous.
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
	RUN = 128,	     /* blocks armed whole in one call */
	MOST_PAUSE_NS = 200000000,
	MAP_NS = 1000, /* mapping a page again, of many, until it was measured */
	MEASURE = 16,  /* of so many slices one begins with a single page */
};

static bool is_mapped(struct nb_agent *a, uint64_t addr)
{
	uint64_t entry;

	return nb_pagemap_read(a, addr, 1, &entry) && nb_pagemap_present(entry);
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

/* A moving average. */
static void learn(uint64_t *of, uint64_t ns)
{
	*of = *of == 0 ? ns : (*of * 3 + ns) / 4;
}

static bool is_ours(struct nb_agent *a, uint64_t page)
{
	const long rc = nb_uffd_continue(atomic_load(&a->guest->uffd), page, page + NB_PAGE_SIZE);

	if (rc == 0 || rc == -EEXIST)
		return true;
	nb_stat_add(&nb_guest_stats(a->guest)->arm_stale, 1);
	return false;
}

static bool zap(struct nb_agent *a, struct nb_region *r, uint64_t start, uint64_t end)
{
	if (atomic_load(&a->guest->revoked))
		return false;
	if (NB_OS_3(madvise, start, end - start, MADV_DONTNEED) != 0) {
		r->flags |= NB_REGION_LOCKED;
		atomic_fetch_add(&a->guest->regions.version, 2);
		return false;
	}
	return true;
}

static void arm_page(struct nb_agent *a, struct nb_region *r, uint64_t page)
{
	const uint64_t since = nb_os_now_ns();

	if (!is_ours(a, page) || !zap(a, r, page, page + NB_PAGE_SIZE))
		return;
	learn(&a->armer.page_ns, nb_os_now_ns() - since);
	nb_stat_add(&nb_guest_stats(a->guest)->armed, 1);
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

	if (!may_arm(r) || (b != NULL && (b->whole || b->moving || enough_waits(a, b))))
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

/* ---- whole blocks ---- */

static bool runs_pay(const struct nb_armer *w)
{
	const uint64_t map_ns = w->map_ns > 0 ? w->map_ns : MAP_NS;

	return w->page_ns > w->page_ns / RUN + map_ns * NB_HUGE_PAGES;
}

/* No page of [start, end), a block with the odd ends of its region, is anonymous. */
static bool all_files(struct nb_agent *a, uint64_t start, uint64_t end, uint64_t *present)
{
	uint64_t entry[NB_HUGE_PAGES];

	for (uint64_t at = start, pages; at < end; at += pages << NB_PAGE_SHIFT) {
		pages = (end - at) >> NB_PAGE_SHIFT;
		pages = pages < NB_HUGE_PAGES ? pages : NB_HUGE_PAGES;
		if (!nb_pagemap_read(a, at, pages, entry))
			return false;
		for (uint64_t i = 0; i < pages; i++) {
			if (nb_pagemap_copy(entry[i]))
				return false;
			*present += nb_pagemap_present(entry[i]);
		}
	}
	return true;
}

static uint64_t next_page(const struct nb_armer *w)
{
	return w->page[w->head];
}

static void pop(struct nb_armer *w)
{
	w->head = (w->head + 1) % NB_MAX_ARMS;
	w->nr--;
}

static bool is_moving(struct nb_agent *a, uint64_t page)
{
	const struct nb_block *b = nb_block_at(&a->guest->regions, page);

	return b != NULL && b->moving;
}

/* The run of blocks at the head of the queue. They leave it. */
static struct nb_span take_run(struct nb_agent *a, const struct nb_region *r, uint64_t *present)
{
	struct nb_armer *w = &a->armer;
	const uint64_t mask = ~(uint64_t)NB_HUGE_MASK;
	struct nb_span run = {0, 0};

	for (int i = 0; i < RUN && w->nr > 0; i++) {
		const uint64_t page = next_page(w);
		struct nb_span reach;

		if (page < r->start || page >= r->end)
			break;
		reach = nb_block_reach(r, page & mask);
		reach.start = reach.start < r->start ? r->start : reach.start;
		reach.end = reach.end > r->end ? r->end : reach.end;
		if (run.end != 0 && (reach.start != run.end || is_moving(a, page)))
			break;
		pop(w);
		if (!is_ours(a, page) || !all_files(a, reach.start, reach.end, present))
			break;
		run.start = run.end == 0 ? reach.start : run.start;
		run.end = reach.end;
	}
	return run;
}

static void mark_whole(struct nb_agent *a, const struct nb_span *run)
{
	for (uint64_t at = run->start & ~(uint64_t)NB_HUGE_MASK; at < run->end;
		at += NB_HUGE_SIZE) {
		struct nb_block *b = nb_block_at(&a->guest->regions, at);

		if (b == NULL)
			continue;
		b->whole = true;
		b->armed = 1;
	}
}

static void arm_run(struct nb_agent *a, struct nb_region *r)
{
	uint64_t present = 0;
	const struct nb_span run = take_run(a, r, &present);

	if (run.end == 0)
		return;
	/* Before it can be touched. */
	mark_whole(a, &run);
	if (zap(a, r, run.start, run.end))
		nb_stat_add(&nb_guest_stats(a->guest)->armed, present);
}

/*
 * One page, chosen at random, stays armed, and who touches that one counts. The first touch says
 * little: right after a run was armed those who use it most are the first to wait, and others come
 * by meanwhile.
 */
static uint64_t map_but_one(struct nb_agent *a, const struct nb_region *r, uint64_t start,
	uint64_t end, uint64_t touched)
{
	const int uffd = atomic_load(&a->guest->uffd),
		  fd = a->guest->regions.backing[r->backing].fd;
	const uint64_t pages = (end - start) >> NB_PAGE_SHIFT;
	const uint64_t one = start + (nb_agent_random(a) % pages << NB_PAGE_SHIFT);

	if (one == touched)
		return nb_backing_map_present(uffd, r, fd, start, end);
	return nb_backing_map_present(uffd, r, fd, start, one) +
	       nb_backing_map_present(uffd, r, fd, one + NB_PAGE_SIZE, end);
}

/* The first touch of any of its pages maps a block. Who has the lock may be long about it: then
 * this page alone is mapped. */
bool nb_sample_disarm(struct nb_agent *a, uint64_t page)
{
	struct nb_regions *t = &a->guest->regions;
	const uint64_t since = nb_os_now_ns();
	struct nb_signals signals;
	const struct nb_region *r;
	struct nb_block *b;
	uint64_t pages = 0;
	bool whole = false;

	if (a->armer.map_ns == 0 && !runs_pay(&a->armer))
		return false;
	if (!nb_lock_try(&t->lock, &signals))
		return false;
	r = nb_region_at(t, page);
	b = r != NULL ? nb_block_at(t, page) : NULL;
	if (b != NULL && b->whole && t->backing[r->backing].fd >= 0) {
		const uint64_t start = page & ~(uint64_t)NB_HUGE_MASK;

		whole = true;
		b->whole = false;
		b->armed = 1;
		pages = map_but_one(a, r, start > r->start ? start : r->start,
			start + NB_HUGE_SIZE < r->end ? start + NB_HUGE_SIZE : r->end, page);
	}
	nb_unlock(&t->lock, &signals);
	if (pages >= NB_HUGE_PAGES / 2)
		learn(&a->armer.map_ns, (nb_os_now_ns() - since) / pages);
	return whole;
}

/* ---- arming, in slices ---- */

void nb_sample_work(struct nb_agent *a)
{
	struct nb_armer *w = &a->armer;
	const uint64_t since = nb_os_now_ns(), until = since + SLICE_NS;
	struct nb_signals signals;
	bool single = w->turn % MEASURE == 0;
	uint64_t pause_ns;

	if (w->nr == 0 || since < w->next_ns || atomic_load(&a->guest->uffd) < 0 ||
		!nb_lock_try(&a->guest->regions.lock, &signals))
		return;
	w->turn++;
	while (w->nr > 0) {
		struct nb_region *r = nb_region_at(&a->guest->regions, next_page(w));
		const struct nb_block *b = nb_block_at(&a->guest->regions, next_page(w));

		if (b != NULL && (b->whole || b->moving)) {
			pop(w);
			continue;
		}
		if (may_arm(r) && !single && runs_pay(w)) {
			arm_run(a, r);
		} else {
			if (may_arm(r))
				arm_page(a, r, next_page(w));
			pop(w);
		}
		single = false;
		if (nb_os_now_ns() >= until)
			break;
	}
	nb_unlock(&a->guest->regions.lock, &signals);
	w->next_ns = nb_os_now_ns();
	pause_ns = (DUTY - 1) * (w->next_ns - since);
	w->next_ns += pause_ns < MOST_PAUSE_NS ? pause_ns : MOST_PAUSE_NS;
}
