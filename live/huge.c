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
	SETTLED = 3, /* faults in a row that found the block in place */
};

static bool wants_huge(const struct nb_agent *a, const struct nb_region *r)
{
	if (r->flags & (NB_REGION_NO_HUGE | NB_REGION_PRIVATE))
		return false;
	return a->thp_always || (a->thp_madvise && (r->flags & NB_REGION_HUGE));
}

/* The next settled block at or after a->collapse_at. */
static bool next_block(struct nb_agent *a, uint64_t *block)
{
	struct nb_regions *t = &a->guest->regions;

	for (uint32_t i = nb_regions_index(t, a->collapse_at); i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];
		uint64_t at = r->start > a->collapse_at ? r->start : a->collapse_at;

		if (!wants_huge(a, r))
			continue;
		at = (at + NB_HUGE_MASK) & ~(uint64_t)NB_HUGE_MASK;
		for (; at + NB_HUGE_SIZE <= r->end; at += NB_HUGE_SIZE) {
			struct nb_block *b = nb_block_at(t, at);

			if (b != NULL && b->settled >= SETTLED && b->armed == 0) {
				b->settled = 0;
				*block = at;
				return true;
			}
		}
	}
	return false;
}

bool nb_huge_work(struct nb_agent *a)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	uint64_t block;
	bool found;

	if (!a->thp_always && !a->thp_madvise)
		return false;
	if (!nb_lock_try(&t->lock, &signals))
		return false;
	found = next_block(a, &block);
	if (found) {
		const long rc = NB_OS_3(madvise, block, NB_HUGE_SIZE, MADV_COLLAPSE);

		nb_stat_add(&nb_guest_stats(a->guest)->collapsed, rc == 0);
		/* Also in vain it may have unmapped pages. */
		nb_backing_map_block(a, block, block + NB_HUGE_SIZE);
	}
	nb_unlock(&t->lock, &signals);
	a->collapse_at = found ? block + NB_HUGE_SIZE : 0;
	return found;
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
