/* SPDX-License-Identifier: MIT */
/*
 * idmap: the machine's ids of tasks and address spaces -> what the engine keeps for them.
 *
 * Open addressing with linear probing, at most three quarters full; removal shifts back, so there
 * are no tombstones. Ids are non-zero. Memory comes from the engine's machine, in nb_idmap_add
 * only.
 */
#ifndef NB_ENGINE_IDMAP_H
#define NB_ENGINE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct nb_engine;

struct nb_idmap_slot {
	uint32_t id; /* 0 = empty */
	void *value;
};

struct nb_idmap {
	struct nb_idmap_slot *slots; /* [capacity] */
	uint32_t capacity;	     /* 0 or a power of two */
	uint32_t used;
};

void nb_idmap_free(struct nb_engine *e, struct nb_idmap *m);
/* 0, -EEXIST, -ENOMEM, -EINVAL (id 0). */
int nb_idmap_add(struct nb_engine *e, struct nb_idmap *m, uint32_t id, void *value);
/* NULL when absent. */
void *nb_idmap_find(const struct nb_idmap *m, uint32_t id);
void nb_idmap_remove(struct nb_idmap *m, uint32_t id);
/* NULL when sound, else what is wrong. */
const char *nb_idmap_check(const struct nb_idmap *m);

#endif
