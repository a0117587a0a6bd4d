/* SPDX-License-Identifier: MIT */
#include "ring.h"

static struct nb_ring_slot *slot_at(struct nb_ring *r, uint64_t at)
{
	return &r->slot[at & (r->size - 1)];
}

/* Never more than `size` between tail and head, so a slot has one writer at a time. */
static bool claim(struct nb_ring *r, uint64_t *at)
{
	*at = atomic_load(&r->head);
	do
		if (*at - atomic_load(&r->tail) >= r->size)
			return false;
	while (!atomic_compare_exchange_weak(&r->head, at, *at + 1));
	return true;
}

void nb_ring_put(struct nb_ring *r, const struct nb_event *e)
{
	uint64_t at;

	if (!claim(r, &at)) {
		atomic_fetch_add(&r->lost, 1);
		return;
	}
	slot_at(r, at)->event = *e;
	atomic_store(&slot_at(r, at)->turn, at + 1);
}

bool nb_ring_get(struct nb_ring *r, struct nb_event *e)
{
	const uint64_t at = atomic_load(&r->tail);

	if (at == atomic_load(&r->head) || atomic_load(&slot_at(r, at)->turn) != at + 1)
		return false;
	*e = slot_at(r, at)->event;
	atomic_store(&r->tail, at + 1);
	return true;
}

bool nb_ring_skip(struct nb_ring *r)
{
	const uint64_t at = atomic_load(&r->tail);

	if (at == atomic_load(&r->head) || atomic_load(&slot_at(r, at)->turn) == at + 1)
		return false;
	atomic_fetch_add(&r->lost, 1);
	atomic_store(&r->tail, at + 1);
	return true;
}
