/* SPDX-License-Identifier: MIT */
/* test_world: one machine, one address space (id 1), tasks with ids from 1 on: what most engine
 * tests start from. */
#ifndef NB_ENGINE_TEST_WORLD_H
#define NB_ENGINE_TEST_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "test_machine.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define MS  UINT64_C(1000000)

enum {
	W_MM = 1,
	W_BASE = 1 << 30, /* a huge-page boundary */
	W_PAGE = NB_PAGE_SIZE,
	W_HUGE = NB_HUGE_SIZE,
};

struct world {
	struct tm *m;
	struct nb_mm *mm;
	struct nb_task *t; /* id 1 */
};

/* 31 bits. */
static inline uint64_t next_random(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *x >> 33;
}

/* A machine that is not started yet. */
static inline struct world w_new(const char *system, unsigned int nodes)
{
	struct world w = {.m = calloc(1, sizeof(struct tm))};

	assert_non_null(w.m);
	tm_init(w.m, system, nodes);
	return w;
}

static inline void w_set(struct world *w, const char *assignment)
{
	assert_true(tm_set(w->m, assignment));
}

static inline void w_start(struct world *w)
{
	assert_true(tm_start(w->m));
	w->mm = nb_mm_new(w->m->e, W_MM, w->m->now_ns);
	assert_non_null(w->mm);
	w->t = nb_task_new(w->m->e, w->mm, 1, w->m->now_ns);
	assert_non_null(w->t);
}

static inline struct world w_begin(const char *system, unsigned int nodes)
{
	struct world w = w_new(system, nodes);

	w_start(&w);
	return w;
}

static inline void w_end(struct world *w)
{
	const char *wrong = tm_stop(w->m);

	free(w->m);
	if (wrong != NULL)
		fail_msg("%s", wrong);
}

static inline struct nb_vma *w_map(struct world *w, uint64_t start, uint64_t bytes)
{
	struct nb_vma *vma = tm_map(w->m, w->mm, W_MM, start, bytes, NB_VMA_READ | NB_VMA_WRITE);

	assert_non_null(vma);
	return vma;
}

/* Mapped and present on node 0. */
static inline struct nb_vma *w_fill(struct world *w, uint64_t start, uint64_t bytes, bool huge)
{
	struct nb_vma *vma = w_map(w, start, bytes);

	tm_populate(w->m, W_MM, start, start + bytes, 0, huge);
	return vma;
}

static inline struct nb_verdict w_fault_by(
	struct world *w, struct nb_task *t, uint64_t addr, int node, uint32_t flags)
{
	return tm_fault(w->m, t, w->mm, W_MM, addr, node, flags);
}

static inline int w_fault(struct world *w, uint64_t addr, int node)
{
	return w_fault_by(w, w->t, addr, node, 0).why;
}

static inline void w_tick(struct world *w, struct nb_task *t, uint64_t runtime_ns, int node)
{
	nb_task_tick(w->m->e, t, runtime_ns, node, w->m->now_ns);
}

/* A tick that is surely due: far in run time and time. Returns windows run by it. */
static inline uint64_t w_scan(struct world *w, int node)
{
	static const uint64_t step = UINT64_C(3600) * 1000 * MS;
	const uint64_t before = tm_counters(w->m)->numa_scans;

	w->m->now_ns += step;
	w_tick(w, w->t, w->m->now_ns, node);
	return tm_counters(w->m)->numa_scans - before;
}

#endif
