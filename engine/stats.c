/* SPDX-License-Identifier: MIT */
#include "stats.h"
#include <errno.h>
#include "engine_private.h"
#include "group.h"
#include "preferred.h"

enum {
	CPU_WEIGHT = 1 << 16,
};

static size_t bytes_of(const struct nb_engine *e)
{
	return (size_t)NB_NR_STATS * e->topo.nr_nodes * 2 * sizeof(uint64_t);
}

int nb_stats_init(struct nb_engine *e, struct nb_task *t)
{
	if (!nb_has(&e->config, NB_MECH_FAULT_STATS))
		return 0;
	t->faults = nb_alloc(e, bytes_of(e));
	return t->faults != NULL ? 0 : -ENOMEM;
}

void nb_stats_free(struct nb_engine *e, struct nb_task *t)
{
	if (e->recent[t->id % NB_CPUPID_PIDS] == t)
		e->recent[t->id % NB_CPUPID_PIDS] = NULL;
	nb_free(e, t->faults, bytes_of(e));
	t->faults = NULL;
}

/* ---- a fault ---- */

static bool is_private(
	struct nb_engine *e, const struct nb_fault *f, nb_history last, struct nb_task *t)
{
	if (!nb_cpupid_known(last) || nb_cpupid_is_of(last, t->id))
		return true;
	/* Read-only pages are shared by many who have nothing to do with each other. */
	if (!(f->vma->flags & NB_VMA_WRITE))
		return false;
	return nb_group_meet(e, t, last, (f->flags & NB_FAULT_SHARED) != 0);
}

/* Shared pages inside the nodes that a group works on are as local as they get. */
static bool counts_as_local(
	const struct nb_engine *e, const struct nb_fault *f, int mem_node, bool priv)
{
	const struct nb_group *g = f->task->group;

	if (f->page_node == f->cpu_node)
		return true;
	return !priv && g != NULL && g->active_nodes > 1 && nb_group_active(e, g, f->cpu_node) &&
	       nb_group_active(e, g, mem_node);
}

void nb_numa_fault(
	struct nb_engine *e, const struct nb_fault *f, nb_history last, struct nb_verdict v)
{
	struct nb_task *t = f->task;
	const uint64_t pages = f->flags & NB_FAULT_HUGE ? NB_HUGE_PAGES : 1;
	const int mem_node = v.why == NB_WHY_MOVE ? v.node : f->page_node;
	const unsigned int nr = e->topo.nr_nodes;
	bool priv, local;

	if (t->mm == NULL || v.why == NB_WHY_SPLIT)
		return;
	t->faulted = true;
	e->recent[t->id % NB_CPUPID_PIDS] = t;
	priv = is_private(e, f, last, t);
	local = counts_as_local(e, f, mem_node, priv);
	if (nb_jiffies(&e->rules, f->now_ns) > t->retry_j)
		nb_task_place(e, t, f->now_ns);
	t->faults[nb_stat_slot(nr, NB_STAT_MEM_BUFFER, mem_node, priv)] += pages;
	t->faults[nb_stat_slot(nr, NB_STAT_CPU_BUFFER, f->cpu_node, priv)] += pages;
	t->locality[local ? NB_LOCAL : NB_REMOTE] += pages;
	t->locality[NB_MOVED] += v.why == NB_WHY_MOVE ? pages : 0;
}

void nb_numa_move_failed(struct nb_task *t, uint32_t pages)
{
	t->locality[NB_FAILED] += pages;
}

/* ---- entering what was collected ---- */

/* Half of what was, and what came; entered in the group's sum as well. Returns the change. */
static uint64_t enter(struct nb_task *t, size_t slot, uint64_t came)
{
	const uint64_t change = came - t->faults[slot] / 2; /* may wrap: sums wrap back */

	t->faults[slot] += change;
	if (t->group != NULL)
		t->group->faults[slot] += change;
	return change;
}

static void enter_node(
	struct nb_engine *e, struct nb_task *t, int node, uint64_t per_fault, uint64_t by_kind[2])
{
	const unsigned int nr = e->topo.nr_nodes;

	for (int priv = 0; priv < 2; priv++) {
		uint64_t *mem = &t->faults[nb_stat_slot(nr, NB_STAT_MEM_BUFFER, node, priv)];
		uint64_t *cpu = &t->faults[nb_stat_slot(nr, NB_STAT_CPU_BUFFER, node, priv)];
		const uint64_t change = enter(t, nb_stat_slot(nr, NB_STAT_MEM, node, priv), *mem);

		t->total_faults += change;
		if (t->group != NULL)
			t->group->total_faults += change;
		enter(t, nb_stat_slot(nr, NB_STAT_CPU, node, priv),
			(uint64_t)CPU_WEIGHT * *cpu / per_fault);
		by_kind[priv] += *mem;
		*mem = *cpu = 0;
	}
}

int nb_stats_decay(struct nb_engine *e, struct nb_task *t, uint64_t by_kind[2])
{
	const uint64_t per_fault = t->locality[NB_REMOTE] + t->locality[NB_LOCAL] + 1;
	const uint64_t *sums = t->group != NULL ? t->group->faults : t->faults;
	uint64_t most = 0;
	int best = NB_NO_NODE;

	by_kind[0] = by_kind[1] = 0;
	for (int node = 0; node < (int)e->topo.nr_nodes; node++) {
		uint64_t faults;

		enter_node(e, t, node, per_fault, by_kind);
		faults = nb_stat_node(sums, e->topo.nr_nodes, NB_STAT_MEM, node);
		if (faults <= most)
			continue;
		most = faults;
		best = node;
	}
	return best;
}
