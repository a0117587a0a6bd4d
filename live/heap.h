/* SPDX-License-Identifier: MIT */
/*
 * heap: memory for the agent's own thread, engine included, from the kernel alone: the program's
 * malloc may be the one that is waiting for us. Sizes are powers of two from 16 bytes to 64 KiB,
 * with a free list each; larger ones are mappings of their own. One thread at a time.
 */
#ifndef NB_LIVE_HEAP_H
#define NB_LIVE_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum {
	NB_HEAP_CLASSES = 13,
};

struct nb_heap {
	void *free[NB_HEAP_CLASSES];
	char *chunk; /* what is left of the last chunk */
	size_t left;
	uint64_t bytes; /* taken from the kernel */
};

/* Zeroed, or NULL. */
void *nb_heap_alloc(struct nb_heap *h, size_t bytes);
/* `bytes` as asked for. NULL is no memory to give back. */
void nb_heap_free(struct nb_heap *h, void *p, size_t bytes);

#endif
