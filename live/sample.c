/* SPDX-License-Identifier: MIT */
/*
 * sample: arming. The engine asks for a range; here a block of 2 MiB in it gets one page armed,
 * chosen at random among those that are mapped, and stands for the block: the engine hears of
 * blocks as of huge pages that were armed and faulted as one. Arming is MADV_DONTNEED on shared
 * file memory: the data stays in the file and only the entry goes.
 *
 * Not every block is asked in every scan: the surer its owner is, the more seldom (judge.c).
 *
 * A request is answered at once, with what will be armed; the pages are armed in slices, between
 * which faults are served, in no order: so the first few say something of all of it, and no sweep
 * of the program keeps step.
 *
 * Each call flushes the TLBs of all CPUs of the program: some microseconds, or as many milliseconds
 * where CPUs are emulated and wait for real ones. One call for many blocks would not be cheaper:
 * entries of pages that were written are flushed page table by page table.
 *
 * Where a huge page maps the block, all of it is unmapped with one of its pages. Then the first
 * touch of any page maps all of it again.
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
	PATIENCE = 8,	     /* scans, about, until an untouched one is given up */
	DUTY = 4,	     /* asking again takes at most one part in so many of the time */
	MOST_PAUSE_NS = 200000000,
	MOST_PATIENCE_NS = 1000000000, /* with threads that are new */
	STEP = 8,		       /* one block in so many, of those that nothing is known of */
	FEW_BLOCKS = 32,	       /* a region of fewer is asked block by block */
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

static bool is_ours(struct nb_agent *a, uint64_t page)
{
	const long rc = nb_uffd_continue(atomic_load(&a->guest->uffd), page, page + NB_PAGE_SIZE);

	if (rc == 0 || rc == -EEXIST)
		return true;
	nb_stat_add(&nb_guest_stats(a->guest)->arm_stale, 1);
	return false;
}

static void arm_page(struct nb_agent *a, struct nb_region *r, struct nb_block *b, uint64_t page)
{
	if (!is_ours(a, page) || atomic_load(&a->guest->revoked))
		return;
	if (NB_OS_3(madvise, page, NB_PAGE_SIZE, MADV_DONTNEED) != 0) {
		r->flags |= NB_REGION_LOCKED;
		atomic_fetch_add(&a->guest->regions.version, 2);
		return;
	}
	if (b != NULL) {
		b->whole = b->whole || !b->split;
		b->split = true;
	}
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
static bool enough_waits(struct nb_agent *a, struct nb_block *b)
{
	if (b->armed > 0 && nb_agent_random(a) % PATIENCE != 0)
		return true;
	b->armed = 0;
	return false;
}

/* One thread alone, which finds its memory in place: others that come would be the first to touch
 * what was armed before, on their way to where they will run. */
static bool is_calm(struct nb_agent *a)
{
	const struct nb_live_stats *s = nb_guest_stats(a->guest);

	return a->nr_running < 2 &&
	       atomic_load(&s->last_local) * 4 >= atomic_load(&s->last_samples) * 3;
}

/* A block whose owner is known is asked now and then. */
static bool is_settled(struct nb_agent *a, const struct nb_block *b)
{
	const unsigned int rare = is_calm(a) && !b->away ? NB_MOST_TRUST : b->trust;

	return nb_agent_random(a) >> (64 - NB_MOST_TRUST) >= (1U << NB_MOST_TRUST) >> rare;
}

/* Of what nothing is known of one block in STEP is asked first: what is between is inferred, or
 * asked when the round is over. */
static bool has_others(struct nb_agent *a, const struct nb_region *r, const struct nb_block *b,
	uint64_t block, uint64_t phase)
{
	return a->has_homes && a->nr_running > 1 && b->wanted == NB_NO_NODE && !b->waits &&
	       r->end - r->start >= FEW_BLOCKS * (uint64_t)NB_HUGE_SIZE &&
	       ((block >> NB_HUGE_SHIFT) + phase) % STEP != 0 && nb_judge_may_infer(a, block);
}

static bool passed_over(struct nb_agent *a, const struct nb_region *r, struct nb_block *b,
	uint64_t block, uint64_t phase)
{
	if (b->moving || enough_waits(a, b))
		return true;
	return !a->armer.all && (is_settled(a, b) || has_others(a, r, b, block, phase));
}

static uint64_t *slot_of(struct nb_armer *w, uint32_t i)
{
	return &w->page[(w->head + i) % NB_MAX_ARMS];
}

/* `to` becomes free, as who was there goes to `from`, which is. */
static void put_at(struct nb_armer *w, uint32_t from, uint32_t to, uint64_t page)
{
	*slot_of(w, from) = *slot_of(w, to);
	*slot_of(w, to) = page;
}

/* Anywhere among those that are as urgent. */
static void push(struct nb_agent *a, uint64_t page, bool urgent)
{
	struct nb_armer *w = &a->armer;
	const uint64_t r = nb_agent_random(a);

	if (w->nr++ == 0)
		w->since_ns = nb_os_now_ns();
	if (urgent) {
		w->head = (w->head + NB_MAX_ARMS - 1) % NB_MAX_ARMS;
		put_at(w, 0, (uint32_t)(r % ++w->urgent), page);
	} else {
		put_at(w, w->nr - 1, w->urgent + (uint32_t)(r % (w->nr - w->urgent)), page);
	}
}

/* Its owner is known, and can be asked at leisure. */
static bool has_owner(const struct nb_block *b)
{
	return b != NULL && b->wanted != NB_NO_NODE && !b->waits;
}

static bool push_page_of(struct nb_agent *a, const struct nb_region *r, uint64_t block)
{
	const struct nb_span reach = nb_block_reach(r, block);
	struct nb_block *b = nb_block_at(&a->guest->regions, block);
	uint64_t page;

	if (!pick(a, &reach, &page))
		return false;
	push(a, page, !has_owner(b));
	if (b != NULL) {
		b->armed++;
		b->chosen = b->trust;
	}
	return true;
}

/* The lock is held. */
static void choose(struct nb_agent *a, uint64_t block, uint64_t phase, struct nb_arm_result *out)
{
	const struct nb_region *r = nb_region_at(&a->guest->regions, block);
	struct nb_block *b = nb_block_at(&a->guest->regions, block);

	if (!may_arm(r))
		return;
	if (b != NULL && a->armer.all)
		nb_block_forget(b, true);
	if (queue_full(a))
		return;
	if ((b != NULL && passed_over(a, r, b, block, phase)) || !push_page_of(a, r, block))
		return;
	out->present += NB_HUGE_PAGES;
	out->updated += NB_HUGE_PAGES;
	out->huge_present++;
	out->huge_updated++;
}

void nb_sample_again(struct nb_agent *a, uint64_t block)
{
	const struct nb_region *r = nb_region_at(&a->guest->regions, block);
	const struct nb_block *b = nb_block_at(&a->guest->regions, block);

	if (may_arm(r) && b != NULL && !b->moving && b->armed == 0 && !queue_full(a))
		push_page_of(a, r, block);
}

/* Where each block is to be asked all are gone through, if only to be forgotten. */
static bool has_more(
	const struct nb_agent *a, const struct nb_arm_request *q, const struct nb_arm_result *out)
{
	return out->end < q->end && (q->max_present == 0 || out->present < q->max_present) &&
	       (!queue_full(a) || a->armer.all);
}

int nb_sample_arm(void *ctx, const struct nb_arm_request *q, struct nb_arm_result *out)
{
	struct nb_agent *a = ctx;
	const uint64_t phase = nb_agent_random(a);
	struct nb_signals signals;

	*out = (struct nb_arm_result){.end = q->start};
	if (atomic_load(&a->guest->uffd) < 0)
		return -EBADF;
	while (has_more(a, q, out)) {
		if (!nb_lock_try(&a->guest->regions.lock, &signals))
			break;
		for (int i = 0; i < BLOCKS_AT_ONCE && has_more(a, q, out); i++) {
			choose(a, out->end, phase, out);
			out->end += NB_HUGE_SIZE;
		}
		nb_unlock(&a->guest->regions.lock, &signals);
		nb_faults_resolve(a);
	}
	a->armer.start = a->armer.start < q->start ? a->armer.start : q->start;
	a->armer.end = a->armer.end > out->end ? a->armer.end : out->end;
	/* What is left comes with the next scan. */
	if (out->end == q->start)
		return -EAGAIN;
	return 0;
}

/* ---- arming, in slices ---- */

static uint64_t pop(struct nb_armer *w)
{
	const uint64_t page = *slot_of(w, 0);

	w->head = (w->head + 1) % NB_MAX_ARMS;
	w->nr--;
	w->urgent -= w->urgent > 0;
	return page;
}

/* Others may have said enough of it since it was chosen. */
static bool not_needed(struct nb_agent *a, struct nb_block *b, uint64_t block)
{
	/* So much more seldom it would have been chosen now. */
	const bool known =
		b->trust > b->chosen && nb_agent_random(a) % (1U << (b->trust - b->chosen)) != 0;

	if (!b->moving && !known && !nb_judge_infers(a, block))
		return false;
	b->armed = (uint8_t)(b->armed - (b->armed > 0));
	return true;
}

/* The lock is held. True: there was no hurry. */
static bool arm_next(struct nb_agent *a)
{
	const uint64_t page = pop(&a->armer);
	struct nb_region *r = nb_region_at(&a->guest->regions, page);
	struct nb_block *b = nb_block_at(&a->guest->regions, page);

	if (!may_arm(r)) {
		if (b != NULL)
			b->armed = 0;
		return false;
	}
	if (b != NULL && not_needed(a, b, page & ~(uint64_t)NB_HUGE_MASK))
		return false;
	arm_page(a, r, b, page);
	return b == NULL || has_owner(b);
}

/* Most of those who would touch what is armed now have not found their places. */
static bool too_early(const struct nb_agent *a, uint64_t now)
{
	return a->nr_homeless * 2 > a->nr_running && now < a->armer.since_ns + MOST_PATIENCE_NS;
}

uint64_t nb_sample_next_ns(const struct nb_agent *a, uint64_t now)
{
	const struct nb_armer *w = &a->armer;

	if (w->nr == 0 || atomic_load(&a->guest->uffd) < 0)
		return UINT64_MAX;
	if (too_early(a, now))
		return now + MOST_PAUSE_NS / 4;
	return w->urgent > 0 ? w->retry_ns : w->next_ns;
}

/* What nobody was asked of is inferred, or asked now. */
static void round_over(struct nb_agent *a)
{
	nb_judge_again(a, a->armer.start, a->armer.end);
	a->armer.start = UINT64_MAX;
	a->armer.end = 0;
}

void nb_sample_work(struct nb_agent *a)
{
	struct nb_armer *w = &a->armer;
	const uint64_t since = nb_os_now_ns(), until = since + SLICE_NS;
	struct nb_signals signals;
	bool leisurely = false;
	uint64_t pause_ns;

	if (nb_sample_next_ns(a, since) > since)
		return;
	/* Who has it may keep it for long, and the urgent ones would be tried again at once. */
	if (!nb_lock_try(&a->guest->regions.lock, &signals)) {
		w->next_ns = w->retry_ns = since + SLICE_NS;
		return;
	}
	while (w->nr > 0 && nb_os_now_ns() < until)
		leisurely |= arm_next(a);
	nb_unlock(&a->guest->regions.lock, &signals);
	if (w->nr == 0)
		round_over(a);
	if (!leisurely)
		return;
	w->next_ns = nb_os_now_ns();
	pause_ns = (DUTY - 1) * (w->next_ns - since);
	w->next_ns += pause_ns < MOST_PAUSE_NS ? pause_ns : MOST_PAUSE_NS;
}
