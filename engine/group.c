/* SPDX-License-Identifier: MIT */
#include "group.h"
#include <errno.h>
#include <string.h>
#include "engine_private.h"

static size_t nr_slots(const struct nb_engine *e)
{
	return (size_t)NB_NR_GROUP_STATS * e->topo.nr_nodes * 2;
}

static size_t bytes_of(const struct nb_engine *e)
{
	return sizeof(struct nb_group) + nr_slots(e) * sizeof(uint64_t);
}

/* ---- the reserve ---- */

static void put_back(struct nb_engine *e, struct nb_group *g)
{
	g->next = e->groups.reserve;
	e->groups.reserve = g;
}

int nb_groups_grow(struct nb_engine *e)
{
	struct nb_group *g;

	if (!nb_has(&e->config, NB_MECH_FAULT_STATS))
		return 0;
	while (e->groups.nr <= e->tasks.used) {
		g = nb_alloc(e, bytes_of(e));
		if (g == NULL)
			return -ENOMEM;
		put_back(e, g);
		e->groups.nr++;
	}
	return 0;
}

static void free_one(struct nb_engine *e)
{
	struct nb_group *g = e->groups.reserve;

	e->groups.reserve = g->next;
	e->groups.nr--;
	nb_free(e, g, bytes_of(e));
}

void nb_groups_shrink(struct nb_engine *e)
{
	while (e->groups.reserve != NULL && e->groups.nr > e->tasks.used)
		free_one(e);
}

void nb_groups_free(struct nb_engine *e)
{
	while (e->groups.reserve != NULL)
		free_one(e);
}

/* ---- being in one ---- */

static void add(const struct nb_engine *e, struct nb_group *g, const struct nb_task *t)
{
	for (size_t i = 0; i < nr_slots(e); i++)
		g->faults[i] += t->faults[i];
	g->total_faults += t->total_faults;
	g->nr_tasks++;
}

void nb_group_leave(struct nb_engine *e, struct nb_task *t)
{
	struct nb_group *g = t->group;

	if (g == NULL)
		return;
	t->group = NULL;
	for (size_t i = 0; i < nr_slots(e); i++)
		g->faults[i] -= t->faults[i];
	g->total_faults -= t->total_faults;
	if (--g->nr_tasks == 0)
		put_back(e, g);
}

static void begin(struct nb_engine *e, struct nb_task *t)
{
	struct nb_group *g = e->groups.reserve;

	/* None is there only where statistics were switched on after the task came. */
	if (g == NULL)
		return;
	e->groups.reserve = g->next;
	memset(g, 0, bytes_of(e));
	g->number = ++e->groups.made;
	g->gid = t->id;
	g->active_nodes = 1;
	add(e, g, t);
	t->group = g;
}

static void join(struct nb_engine *e, struct nb_task *t, struct nb_group *g)
{
	nb_group_leave(e, t);
	add(e, g, t);
	t->group = g;
}

/*
 * The task meant by what is remembered: the last one with these bits that took a fault, if it is on
 * that node. A kernel looks at who runs on the CPU that is remembered.
 */
static struct nb_task *remembered(const struct nb_engine *e, nb_history last)
{
	struct nb_task *t = e->recent[last % NB_CPUPID_PIDS];

	return t != NULL && t->cpu_node == nb_cpupid_node(last) ? t : NULL;
}

/* The smaller group joins the larger one, the younger of two equals the older. */
static bool joins(const struct nb_group *mine, const struct nb_group *other)
{
	if (mine->nr_tasks != other->nr_tasks)
		return mine->nr_tasks < other->nr_tasks;
	return mine->number > other->number;
}

bool nb_group_meet(struct nb_engine *e, struct nb_task *t, nb_history last, bool shared)
{
	const struct nb_task *other;

	if (!nb_has(&e->config, NB_MECH_NUMA_GROUP))
		return false;
	if (t->group == NULL)
		begin(e, t);
	other = remembered(e, last);
	if (t->group == NULL || other == NULL || other->group == NULL || other->group == t->group ||
		!joins(t->group, other->group))
		return false;
	if (other->mm != t->mm && !shared)
		return true;
	join(e, t, other->group);
	return false;
}

/* ---- active nodes ---- */

bool nb_group_active(const struct nb_engine *e, const struct nb_group *g, int node)
{
	return nb_stat_node(g->faults, e->topo.nr_nodes, NB_STAT_CPU, node) *
		       NB_ACTIVE_NODE_FRACTION >
	       g->max_cpu;
}

void nb_group_count_active(const struct nb_engine *e, struct nb_group *g)
{
	g->max_cpu = 0;
	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		const uint64_t cpu = nb_stat_node(g->faults, e->topo.nr_nodes, NB_STAT_CPU, n);

		if (cpu > g->max_cpu)
			g->max_cpu = cpu;
	}
	g->active_nodes = 0;
	for (int n = 0; n < (int)e->topo.nr_nodes; n++)
		g->active_nodes += nb_group_active(e, g, n);
}

/* ---- the checker ---- */

static bool counted_first(const struct nb_engine *e, uint32_t i, const struct nb_group *g)
{
	for (uint32_t k = 0; k < i; k++) {
		const struct nb_task *t = e->tasks.slots[k].value;

		if (t != NULL && t->group == g)
			return false;
	}
	return true;
}

/* What its tasks have must be what it sums up. */
static const char *check_group(const struct nb_engine *e, const struct nb_group *g)
{
	uint32_t tasks = 0;
	uint64_t total = 0, first = 0;

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *t = e->tasks.slots[i].value;

		if (t == NULL || t->group != g)
			continue;
		tasks++;
		total += t->total_faults;
		first += t->faults[0];
	}
	if (tasks != g->nr_tasks)
		return "group: wrong number of tasks";
	return total == g->total_faults && first == g->faults[0]
		       ? NULL
		       : "group: its faults are not those of its tasks";
}

const char *nb_groups_check(const struct nb_engine *e)
{
	uint32_t nr = 0;

	for (const struct nb_group *g = e->groups.reserve; g != NULL; g = g->next)
		nr++;
	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *t = e->tasks.slots[i].value;
		const char *wrong;

		if (t == NULL || t->group == NULL || !counted_first(e, i, t->group))
			continue;
		nr++;
		wrong = check_group(e, t->group);
		if (wrong != NULL)
			return wrong;
	}
	return nr == e->groups.nr ? NULL : "group: one is lost";
}
