/* SPDX-License-Identifier: MIT */
/*
 * huge: a sampled page of a huge page leaves the block mapped by small entries. A block that was
 * found where it belongs some times in a row gets its huge mapping back (MADV_COLLAPSE, which works
 * on memfd memory whatever shmem_enabled says), where anonymous memory would have had one.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "agent.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
	SETTLED = 3,	     /* faults in a row that found the block in place */
	TRUSTED = 2,	     /* or the owner is believed in so much */
	LOOKS = 256,	     /* blocks looked at in one go */
	REST_NS = 100000000, /* after a failure */
	DUTY = 2,	     /* at most one part in so many of the time */
};

static bool wants_huge(const struct nb_agent *a, const struct nb_region *r)
{
	if (r->flags & (NB_REGION_NO_HUGE | NB_REGION_PRIVATE))
		return false;
	return a->thp_always || (a->thp_madvise && (r->flags & NB_REGION_HUGE));
}

/* Arming left it in small entries, and it is not likely to move or to be asked soon. */
static bool is_due(const struct nb_agent *a, const struct nb_block *b)
{
	const unsigned int settled = a->nr_running > 1 ? SETTLED : 1;

	return b->split && b->armed == 0 && !b->moving &&
	       (b->settled >= settled || (b->trust >= TRUSTED && !b->waits));
}

/* The next such block at or after a->collapse_at, which goes on to it, of the next few. */
static struct nb_block *next_block(struct nb_agent *a)
{
	struct nb_regions *t = &a->guest->regions;
	int left = LOOKS;

	for (uint32_t i = nb_regions_index(t, a->collapse_at); i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];
		const struct nb_span whole = nb_whole_blocks(r);

		if (!wants_huge(a, r))
			continue;
		if (a->collapse_at < whole.start)
			a->collapse_at = whole.start;
		for (; a->collapse_at < whole.end; a->collapse_at += NB_HUGE_SIZE) {
			struct nb_block *b = nb_block_at(t, a->collapse_at);

			if (left-- == 0)
				return NULL;
			if (b != NULL && is_due(a, b))
				return b;
		}
	}
	a->collapse_at = 0;
	return NULL;
}

static void collapse(struct nb_agent *a, uint64_t block, struct nb_block *b)
{
	const long rc = NB_OS_3(madvise, block, NB_HUGE_SIZE, MADV_COLLAPSE);

	nb_stat_add(&nb_guest_stats(a->guest)->collapsed, rc == 0);
	b->split = rc != 0;
	b->whole = false;
	/* No huge page to be had, say: not all of memory is tried at once. */
	if (rc != 0)
		a->next_collapse_ns = nb_os_now_ns() + REST_NS;
	/* Also in vain it may have unmapped pages. */
	nb_backing_map_block(a, block, block + NB_HUGE_SIZE);
}

void nb_huge_map(struct nb_agent *a, uint64_t block, struct nb_block *b)
{
	if (b->whole)
		collapse(a, block, b);
}

/* A slice of the time: what is copied meanwhile, its threads wait for. */
static void rest(struct nb_agent *a, uint64_t since)
{
	const uint64_t now = nb_os_now_ns(), until = now + (now - since) * (DUTY - 1);

	if (until > a->next_collapse_ns)
		a->next_collapse_ns = until;
}

void nb_huge_work(struct nb_agent *a)
{
	struct nb_regions *t = &a->guest->regions;
	const uint64_t since = nb_os_now_ns();
	struct nb_signals signals;
	struct nb_block *b;

	if (!a->thp_always && !a->thp_madvise)
		return;
	if (since < a->next_collapse_ns || !nb_lock_try(&t->lock, &signals))
		return;
	b = next_block(a);
	a->more_to_collapse = b != NULL;
	if (b != NULL) {
		collapse(a, a->collapse_at, b);
		a->collapse_at += NB_HUGE_SIZE;
	}
	nb_unlock(&t->lock, &signals);
	if (b != NULL)
		rest(a, since);
}

/* Which of always, madvise and never has the brackets. */
static bool chosen(const char *text, const char *word)
{
	const char *p = strstr(text, word);

	return p != NULL && p > text && p[-1] == '[';
}

void nb_huge_init(struct nb_agent *a)
{
	char text[128];
	const long n = nb_os_read_file(
		"/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	a->thp_always = chosen(text, "always");
	a->thp_madvise = chosen(text, "madvise");
}
