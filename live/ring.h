/* SPDX-License-Identifier: MIT */
/*
 * ring: the engine's events on their way from the agents of all processes to the command that
 * records them: a ring in the session's file. Any number of writers, which never wait: what finds
 * no room is counted as lost. One reader.
 */
#ifndef NB_LIVE_RING_H
#define NB_LIVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "../engine/events.h"

struct nb_ring_slot {
	_Atomic uint64_t turn; /* its position + 1 once the event is there */
	struct nb_event event;
};

struct nb_ring {
	uint64_t size;		     /* slots, a power of two */
	_Atomic uint64_t head, tail; /* positions: the next to write, the next to read */
	_Atomic uint64_t lost;
	struct nb_ring_slot slot[];
};

enum {
	NB_RING_SLOTS = 1 << 16,
};

static inline uint64_t nb_ring_bytes(uint64_t slots)
{
	return sizeof(struct nb_ring) + slots * sizeof(struct nb_ring_slot);
}

void nb_ring_put(struct nb_ring *r, const struct nb_event *e);
/* The oldest event, if it is there. */
bool nb_ring_get(struct nb_ring *r, struct nb_event *e);
/* Pass over one that its writer claimed and never wrote (it was killed): true when there was one.
 */
bool nb_ring_skip(struct nb_ring *r);

#endif
