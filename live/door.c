/* SPDX-License-Identifier: MIT */
/* door: the engine's machine: memory, randomness, requests; and what the engine is told of regions.
 */
#include <errno.h>
#include <string.h>
#include "agent.h"

static void *door_alloc(void *ctx, size_t bytes)
{
	struct nb_agent *a = ctx;

	return nb_heap_alloc(&a->heap, bytes);
}

static void door_free(void *ctx, void *p, size_t bytes)
{
	struct nb_agent *a = ctx;

	nb_heap_free(&a->heap, p, bytes);
}

static uint64_t door_random(void *ctx)
{
	return nb_agent_random(ctx);
}

/* A block that moves page by page need not be split: it never is one page here. */
static int door_split(void *ctx, uint32_t mm, uint64_t addr, bool keep_armed)
{
	(void)ctx;
	(void)mm;
	(void)addr;
	(void)keep_armed;
	return -EOPNOTSUPP;
}

static void door_trace(void *ctx, const struct nb_event *e)
{
	struct nb_agent *a = ctx;

	nb_ring_put(nb_session_ring(a->guest->session), e);
}

int nb_door_open(struct nb_agent *a)
{
	const struct nb_machine machine = {
		.ctx = a,
		.alloc = door_alloc,
		.free = door_free,
		.random = door_random,
		.arm = nb_sample_arm,
		.move = nb_move_ask,
		.split = door_split,
		.run_on = nb_place_run_on,
		.swap = nb_place_swap,
		.trace = nb_session_ring(a->guest->session) != NULL ? door_trace : NULL,
	};

	a->engine = nb_engine_new(&machine, &a->topo, &a->guest->session->config);
	if (a->engine == NULL)
		return -ENOMEM;
	a->mm = nb_mm_new(a->engine, a->guest->pid, nb_os_now_ns());
	nb_diary_open(a);
	return a->mm == NULL ? -ENOMEM : 0;
}

/* ---- regions -> VMAs of whole blocks ---- */

/* Regions that differ in rights alone are told apart in the table, and not here. */
static uint32_t wanted_spans(struct nb_agent *a)
{
	const struct nb_regions *t = &a->guest->regions;
	const unsigned int never = NB_REGION_PRIVATE | NB_REGION_POLICY | NB_REGION_LOCKED;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];
		const struct nb_span s = nb_whole_blocks(r);

		if (!(r->flags & never) && s.start < s.end)
			a->wanted[nr++] = s;
	}
	return nr;
}

/* Call fn for what is in `from` and not in `without`; both ascending. */
static void each_difference(struct nb_agent *a, const struct nb_span *from, uint32_t nr_from,
	const struct nb_span *without, uint32_t nr_without,
	void (*fn)(struct nb_agent *, uint64_t, uint64_t))
{
	uint32_t w = 0;

	for (uint32_t i = 0; i < nr_from; i++) {
		uint64_t start = from[i].start;

		while (w < nr_without && without[w].end <= start)
			w++;
		for (uint32_t j = w; j < nr_without && without[j].start < from[i].end; j++) {
			if (without[j].start > start)
				fn(a, start, without[j].start);
			start = without[j].end > start ? without[j].end : start;
		}
		if (start < from[i].end)
			fn(a, start, from[i].end);
	}
}

static void tell_gone(struct nb_agent *a, uint64_t start, uint64_t end)
{
	nb_vma_unmap(a->engine, a->mm, start, end, nb_os_now_ns());
	nb_diary_forget(a, start, end);
}

static void tell_new(struct nb_agent *a, uint64_t start, uint64_t end)
{
	if (nb_vma_map(a->engine, a->mm, start, end, NB_VMA_READ | NB_VMA_WRITE, nb_os_now_ns()) ==
		NULL)
		nb_guest_note(a->guest, NB_NOTE_NO_MEMORY);
}

void nb_door_sync(struct nb_agent *a)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	uint32_t nr;

	if (atomic_load(&t->version) == a->seen_version || !nb_lock_try(&t->lock, &signals))
		return;
	a->seen_version = atomic_load(&t->version);
	nr = wanted_spans(a);
	nb_unlock(&t->lock, &signals);
	a->sweep = true;
	each_difference(a, a->spans, a->nr_spans, a->wanted, nr, tell_gone);
	each_difference(a, a->wanted, nr, a->spans, a->nr_spans, tell_new);
	memcpy(a->spans, a->wanted, nr * sizeof(a->spans[0]));
	a->nr_spans = nr;
}

/* ---- policies ---- */

static void node_set(const struct nb_agent *a, uint64_t ids, struct nb_policy *p)
{
	for (int id = 0; id < 64; id++) {
		const int n = ids >> id & 1 ? nb_topology_index(&a->topo, id) : NB_NO_NODE;

		if (n >= 0)
			p->nodes[n / 64] |= UINT64_C(1) << (n % 64);
	}
}

static int set_policy(struct nb_agent *a, const struct nb_wish *w, uint64_t start, uint64_t end)
{
	const bool lazy = w->kind == NB_REQUEST_LAZY || w->mode != NB_POLICY_DEFAULT;
	struct nb_policy p = {
		.mode = (uint8_t)(w->kind == NB_REQUEST_LAZY ? NB_POLICY_NOOP : w->mode),
		.migrate_on_fault = w->mode != NB_POLICY_DEFAULT,
	};
	int rc;

	node_set(a, w->nodes, &p);
	a->armer.all = true;
	rc = nb_vma_policy(a->engine, a->mm, start, end, &p, lazy, nb_os_now_ns());
	a->armer.all = false;
	return rc;
}

/* The engine knows whole blocks: a range is widened to those that it touches. */
int nb_door_policy(struct nb_agent *a, const struct nb_wish *w)
{
	const uint64_t from = w->start & ~(uint64_t)NB_HUGE_MASK;
	const uint64_t to = (w->end + NB_HUGE_MASK) & ~(uint64_t)NB_HUGE_MASK;
	int rc = -ENOENT;

	nb_door_sync(a);
	for (uint32_t i = 0; i < a->nr_spans; i++) {
		const struct nb_span *s = &a->spans[i];
		const uint64_t start = s->start > from ? s->start : from;
		const uint64_t end = s->end < to ? s->end : to;

		if (start < end)
			rc = set_policy(a, w, start, end);
	}
	return rc;
}

/* ---- for others to read ---- */

void nb_door_publish(struct nb_agent *a)
{
	const uint64_t *c = (const uint64_t *)(const void *)nb_engine_counters(a->engine);
	struct nb_slot *slot = atomic_load(&a->guest->slot);

	if (slot == NULL)
		return;
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		atomic_store_explicit(&slot->counters[i], c[i], memory_order_relaxed);
	nb_survey(a);
}
