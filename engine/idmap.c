/* SPDX-License-Identifier: MIT */
#include "idmap.h"
#include <errno.h>
#include "engine_private.h"

enum {
	FIRST_CAPACITY = 16,
};

/* Fibonacci hashing: consecutive ids, the usual case, spread over the table. */
static uint32_t home(const struct nb_idmap *m, uint32_t id)
{
	return (uint32_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (m->capacity - 1);
}

static uint32_t next(const struct nb_idmap *m, uint32_t i)
{
	return (i + 1) & (m->capacity - 1);
}

void nb_idmap_free(struct nb_engine *e, struct nb_idmap *m)
{
	nb_free(e, m->slots, m->capacity * sizeof(m->slots[0]));
	*m = (struct nb_idmap){0};
}

/* The slot that holds id, or the empty one where it would go. */
static uint32_t probe(const struct nb_idmap *m, uint32_t id)
{
	uint32_t i = home(m, id);

	while (m->slots[i].id != 0 && m->slots[i].id != id)
		i = next(m, i);
	return i;
}

static int grow(struct nb_engine *e, struct nb_idmap *m)
{
	struct nb_idmap wider = {.capacity = m->capacity ? m->capacity * 2 : FIRST_CAPACITY};

	wider.slots = nb_alloc(e, wider.capacity * sizeof(wider.slots[0]));
	if (wider.slots == NULL)
		return -ENOMEM;
	wider.used = m->used;
	for (uint32_t i = 0; i < m->capacity; i++)
		if (m->slots[i].id != 0)
			wider.slots[probe(&wider, m->slots[i].id)] = m->slots[i];
	nb_idmap_free(e, m);
	*m = wider;
	return 0;
}

int nb_idmap_add(struct nb_engine *e, struct nb_idmap *m, uint32_t id, void *value)
{
	uint32_t i;

	if (id == 0)
		return -EINVAL;
	if (nb_idmap_find(m, id) != NULL)
		return -EEXIST;
	if (m->used + 1 > m->capacity / 4 * 3) {
		const int err = grow(e, m);

		if (err != 0)
			return err;
	}
	i = probe(m, id);
	m->slots[i] = (struct nb_idmap_slot){id, value};
	m->used++;
	return 0;
}

void *nb_idmap_find(const struct nb_idmap *m, uint32_t id)
{
	return m->used > 0 && id != 0 ? m->slots[probe(m, id)].value : NULL;
}

/* Whether the entry at `at` may move into the hole: its home is not between the hole (excluded) and
 * itself. */
static bool may_fill(const struct nb_idmap *m, uint32_t hole, uint32_t at)
{
	const uint32_t mask = m->capacity - 1;

	return ((at - home(m, m->slots[at].id)) & mask) >= ((at - hole) & mask);
}

void nb_idmap_remove(struct nb_idmap *m, uint32_t id)
{
	uint32_t hole;

	if (nb_idmap_find(m, id) == NULL)
		return;
	hole = probe(m, id);
	for (uint32_t i = next(m, hole); m->slots[i].id != 0; i = next(m, i)) {
		if (!may_fill(m, hole, i))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole] = (struct nb_idmap_slot){0};
	m->used--;
}

const char *nb_idmap_check(const struct nb_idmap *m)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < m->capacity; i++) {
		if (m->slots[i].id == 0)
			continue;
		used++;
		if (m->slots[i].value == NULL)
			return "idmap: an id without a value";
		if (probe(m, m->slots[i].id) != i)
			return "idmap: an id that can't be found";
	}
	return used == m->used ? NULL : "idmap: wrong count";
}
