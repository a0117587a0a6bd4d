/* SPDX-License-Identifier: MIT */
/* wander: how often a task that only computes is found on another CPU, or another node. */
#ifndef NB_LAB_WANDER_H
#define NB_LAB_WANDER_H

#include <stdbool.h>
#include <stdint.h>

/* What one thread saw of itself. All zero: it has not looked yet. */
struct wander {
	bool known;
	unsigned int cpu, node;
	uint64_t cpu_changes, node_changes;
};

/* It is there now. */
static inline void wander_seen(struct wander *w, unsigned int cpu, unsigned int node)
{
	w->cpu_changes += w->known && cpu != w->cpu;
	w->node_changes += w->known && node != w->node;
	*w = (struct wander){true, cpu, node, w->cpu_changes, w->node_changes};
}

#endif
