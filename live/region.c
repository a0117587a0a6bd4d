/* SPDX-License-Identifier: MIT */
#include "region.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>

enum {
	HUGE = 2 << 20,
	PAGE = 4096,
};

void nb_regions_init(struct nb_regions *t)
{
	nb_lock_init(&t->lock);
	atomic_store(&t->version, 0);
	t->nr = 0;
	for (int i = 0; i < NB_MAX_BACKINGS; i++)
		t->backing[i] = (struct nb_backing){.fd = NB_FD_FREE};
}

/* ---- finding ---- */

uint32_t nb_regions_index(const struct nb_regions *t, uint64_t addr)
{
	uint32_t lo = 0, hi = t->nr;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (t->region[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool meets(const struct nb_regions *t, uint64_t start, uint64_t end)
{
	const uint32_t i = nb_regions_index(t, start);

	return i < t->nr && t->region[i].start < end;
}

/* A change shows as an odd or a different version: then the answer is asked for again. */
bool nb_regions_touch(const struct nb_regions *t, uint64_t start, uint64_t end)
{
	for (;;) {
		const uint32_t before = atomic_load(&t->version);
		const bool answer = meets(t, start, end);

		atomic_thread_fence(memory_order_seq_cst);
		if ((before & 1) == 0 && atomic_load(&t->version) == before)
			return answer;
	}
}

struct nb_region *nb_region_at(struct nb_regions *t, uint64_t addr)
{
	const uint32_t i = nb_regions_index(t, addr);

	return i < t->nr && t->region[i].start <= addr ? &t->region[i] : NULL;
}

uint16_t nb_backing_free(const struct nb_regions *t)
{
	for (uint16_t i = 0; i < NB_MAX_BACKINGS; i++)
		if (t->backing[i].fd < 0 && t->backing[i].users == 0)
			return i;
	return NB_NO_BACKING;
}

/* ---- changing ---- */

static void begin(struct nb_regions *t)
{
	atomic_fetch_add(&t->version, 1);
}

static void finish(struct nb_regions *t)
{
	atomic_fetch_add(&t->version, 1);
}

static void insert(struct nb_regions *t, uint32_t i, const struct nb_region *r)
{
	begin(t);
	memmove(&t->region[i + 1], &t->region[i], (t->nr - i) * sizeof(t->region[0]));
	t->region[i] = *r;
	t->nr++;
	finish(t);
	t->backing[r->backing].users++;
}

static void erase(struct nb_regions *t, uint32_t i)
{
	t->backing[t->region[i].backing].users--;
	t->backing[t->region[i].backing].trimmed = true;
	begin(t);
	memmove(&t->region[i], &t->region[i + 1], (t->nr - i - 1) * sizeof(t->region[0]));
	t->nr--;
	finish(t);
}

int nb_region_add(struct nb_regions *t, const struct nb_region *r)
{
	if (t->nr == NB_MAX_REGIONS)
		return -ENOSPC;
	if (meets(t, r->start, r->end))
		return -EEXIST;
	insert(t, nb_regions_index(t, r->start), r);
	return 0;
}

static void set_range(struct nb_regions *t, struct nb_region *r, uint64_t start, uint64_t end)
{
	begin(t);
	r->offset += start - r->start;
	r->start = start;
	r->end = end;
	finish(t);
}

int nb_regions_cut(struct nb_regions *t, uint64_t at)
{
	struct nb_region *r = nb_region_at(t, at);
	struct nb_region tail;

	if (r == NULL || r->start == at)
		return 0;
	if (t->nr == NB_MAX_REGIONS)
		return -ENOSPC;
	tail = *r;
	tail.offset += at - r->start;
	tail.start = at;
	set_range(t, r, r->start, at);
	insert(t, nb_regions_index(t, at), &tail);
	return 0;
}

/* Take [start, end) out of a region that cannot be cut in two: its longer rest stays. */
static void trim(struct nb_regions *t, struct nb_region *r, uint64_t start, uint64_t end)
{
	const uint64_t before = start > r->start ? start - r->start : 0;
	const uint64_t after = r->end > end ? r->end - end : 0;

	t->backing[r->backing].trimmed = true;
	if (before >= after)
		set_range(t, r, r->start, r->start + before);
	else
		set_range(t, r, end, r->end);
}

void nb_regions_forget(struct nb_regions *t, uint64_t start, uint64_t end)
{
	uint32_t i;

	nb_regions_cut(t, start);
	nb_regions_cut(t, end);
	i = nb_regions_index(t, start);
	while (i < t->nr && t->region[i].start < end) {
		struct nb_region *r = &t->region[i];

		if (r->start >= start && r->end <= end) {
			erase(t, i);
			continue;
		}
		trim(t, r, start, end);
		i++;
	}
}

bool nb_regions_can_cut(const struct nb_regions *t)
{
	return t->nr + 2 <= NB_MAX_REGIONS;
}

static bool continues(const struct nb_region *a, const struct nb_region *b)
{
	return a->end == b->start && a->backing == b->backing && a->prot == b->prot &&
	       a->flags == b->flags && a->offset + (a->end - a->start) == b->offset;
}

static void merge_at(struct nb_regions *t, uint64_t at)
{
	const uint32_t i = nb_regions_index(t, at);
	const bool trimmed = i < t->nr && t->backing[t->region[i].backing].trimmed;
	uint64_t end;

	if (i == 0 || i >= t->nr || !continues(&t->region[i - 1], &t->region[i]))
		return;
	end = t->region[i].end;
	erase(t, i);
	t->backing[t->region[i - 1].backing].trimmed = trimmed;
	set_range(t, &t->region[i - 1], t->region[i - 1].start, end);
}

void nb_regions_merge(struct nb_regions *t, uint64_t start, uint64_t end)
{
	uint64_t at = end;

	/* From the end, so that indexes before it stay good. */
	while (at > start) {
		const uint32_t i = nb_regions_index(t, at - 1);

		merge_at(t, at);
		if (i >= t->nr || t->region[i].start >= at)
			break;
		at = t->region[i].start;
	}
	merge_at(t, start);
}

bool nb_regions_run(const struct nb_regions *t, uint64_t start, uint64_t end, struct nb_run *run)
{
	uint32_t i = nb_regions_index(t, start);
	const struct nb_region *r = &t->region[i];

	if (i >= t->nr || r->start >= end)
		return false;
	*run = (struct nb_run){
		r->start > start ? r->start : start, r->end, r->prot, r->flags & NB_REGION_PRIVATE};
	for (i++, r++; i < t->nr && r->start == run->end && r->prot == run->prot; i++, r++) {
		run->end = r->end;
		run->is_private &= (r->flags & NB_REGION_PRIVATE) != 0;
	}
	run->end = run->end < end ? run->end : end;
	return true;
}

void nb_regions_each(struct nb_regions *t, uint64_t start, uint64_t end, nb_region_fn fn, void *ctx)
{
	for (uint32_t i = nb_regions_index(t, start); i < t->nr && t->region[i].start < end; i++) {
		struct nb_region *r = &t->region[i];

		fn(ctx, r, r->start > start ? r->start : start, r->end < end ? r->end : end);
	}
}

/* ---- the checker ---- */

static const char *check_region(const struct nb_regions *t, uint32_t i)
{
	const struct nb_region *r = &t->region[i];

	if (r->start >= r->end || (r->start | r->end | r->offset) % PAGE != 0)
		return "region: empty, or not of whole pages";
	if (i > 0 && t->region[i - 1].end > r->start)
		return "regions: overlapping, or out of order";
	if (r->backing >= NB_MAX_BACKINGS)
		return "region: no such backing";
	if ((r->start - r->offset) % HUGE != 0)
		return "region: huge pages do not fit its file";
	return NULL;
}

const char *nb_regions_check(const struct nb_regions *t)
{
	uint32_t users[NB_MAX_BACKINGS] = {0};

	if (t->nr > NB_MAX_REGIONS)
		return "regions: more than there is room for";
	for (uint32_t i = 0; i < t->nr; i++) {
		const char *wrong = check_region(t, i);

		if (wrong != NULL)
			return wrong;
		users[t->region[i].backing]++;
	}
	for (int i = 0; i < NB_MAX_BACKINGS; i++)
		if (users[i] != t->backing[i].users)
			return "backing: its users are not its regions";
	return NULL;
}
