/* SPDX-License-Identifier: MIT */
/* engine: its life, and the events that concern no address space. */
#include <errno.h>
#include <string.h>
#include "engine_private.h"

/* ---- life ---- */

/* A copy of `bytes` at `from`; NULL with bytes 0, so that *ok tells. */
static void *copy(struct nb_engine *e, const void *from, size_t bytes, bool *ok)
{
	void *to = bytes > 0 ? nb_alloc(e, bytes) : NULL;

	if (to != NULL)
		memcpy(to, from, bytes);
	else if (bytes > 0)
		*ok = false;
	return to;
}

static size_t distance_bytes(const struct nb_topology *t)
{
	return (size_t)t->nr_nodes * t->nr_nodes * sizeof(t->distance[0]);
}

static bool copy_topology(struct nb_engine *e, const struct nb_topology *t)
{
	bool ok = true;

	e->topo = *t;
	e->topo.nodes = copy(e, t->nodes, t->nr_nodes * sizeof(t->nodes[0]), &ok);
	e->topo.cpu_node = copy(e, t->cpu_node, t->cpu_ids * sizeof(t->cpu_node[0]), &ok);
	e->topo.distance = copy(e, t->distance, distance_bytes(t), &ok);
	return ok;
}

static void free_topology(struct nb_engine *e)
{
	nb_free(e, e->topo.nodes, e->topo.nr_nodes * sizeof(e->topo.nodes[0]));
	nb_free(e, e->topo.cpu_node, e->topo.cpu_ids * sizeof(e->topo.cpu_node[0]));
	nb_free(e, e->topo.distance, distance_bytes(&e->topo));
}

static bool make_nodes(struct nb_engine *e)
{
	e->nodes = nb_alloc(e, e->topo.nr_nodes * sizeof(e->nodes[0]));
	if (e->nodes == NULL)
		return false;
	for (unsigned int n = 0; n < e->topo.nr_nodes; n++)
		e->nodes[n].near = (int16_t)nb_topology_nearest_memory(&e->topo, n);
	return true;
}

static bool usable(
	const struct nb_machine *m, const struct nb_topology *t, const struct nb_config *c)
{
	if (m->alloc == NULL || m->free == NULL || m->arm == NULL || m->move == NULL ||
		m->split == NULL)
		return false;
	if (c->hz < NB_MIN_HZ || c->hz > NB_MAX_HZ)
		return false;
	return nb_topology_check(t) == NULL && nb_topology_memory_nodes(t) > 0;
}

struct nb_engine *nb_engine_new(const struct nb_machine *machine,
	const struct nb_topology *topology, const struct nb_config *config)
{
	struct nb_engine *e;

	if (!usable(machine, topology, config))
		return NULL;
	e = machine->alloc(machine->ctx, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->machine = *machine;
	e->config = *config;
	nb_rules_from_config(&e->rules, config);
	nb_pool_init(&e->pool);
	if (!copy_topology(e, topology) || !make_nodes(e)) {
		nb_engine_free(e);
		return NULL;
	}
	return e;
}

static void free_task(struct nb_engine *e, struct nb_task *t)
{
	nb_group_leave(e, t);
	nb_task_free(e, t);
}

static void free_tasks(struct nb_engine *e)
{
	for (uint32_t i = 0; i < e->tasks.capacity; i++)
		if (e->tasks.slots[i].id != 0)
			free_task(e, e->tasks.slots[i].value);
	nb_idmap_free(e, &e->tasks);
}

/* Address spaces that are still there go untraced: this is the end of the engine, not theirs. */
static void free_mms(struct nb_engine *e)
{
	e->machine.trace = NULL;
	for (uint32_t i = 0; i < e->mms.capacity;) {
		struct nb_mm *mm = e->mms.slots[i].value;

		if (mm != NULL)
			nb_mm_gone(e, mm, 0);
		else
			i++;
	}
	nb_idmap_free(e, &e->mms);
}

void nb_engine_free(struct nb_engine *e)
{
	struct nb_machine machine;

	if (e == NULL)
		return;
	free_tasks(e);
	nb_groups_free(e);
	free_mms(e);
	nb_pool_free(e, &e->pool);
	nb_free(e, e->nodes, e->topo.nr_nodes * sizeof(e->nodes[0]));
	free_topology(e);
	machine = e->machine;
	machine.free(machine.ctx, e, sizeof(*e));
}

/* ---- asking and setting ---- */

const struct nb_counters *nb_engine_counters(const struct nb_engine *e)
{
	return &e->counters;
}

struct nb_counters *nb_engine_counters_rw(struct nb_engine *e)
{
	return &e->counters;
}

const struct nb_config *nb_engine_config(const struct nb_engine *e)
{
	return &e->config;
}

int nb_engine_set(struct nb_engine *e, const char *assignment, char *why, size_t why_len)
{
	const int err = nb_config_set(&e->config, assignment, why, why_len);

	if (err == 0)
		nb_rules_from_config(&e->rules, &e->config);
	return err;
}

void nb_engine_page_state(const struct nb_engine *e, uint64_t *bytes, uint64_t *pages)
{
	*bytes = e->block_bytes + nb_pool_bytes(&e->pool);
	*pages = e->tracked_pages;
}

/* ---- events ---- */

void nb_node_watermark(struct nb_engine *e, int node, bool low, uint64_t now_ns)
{
	if (!nb_node_exists(e, node) || e->nodes[node].low == low)
		return;
	e->nodes[node].low = low;
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = NB_EVENT_WATERMARK,
			    .node_from = NB_NO_NODE,
			    .node_to = (int16_t)node,
			    .arg = low});
}

static int first_touch(const struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma,
	uint64_t addr, bool huge, int cpu_node)
{
	const struct nb_policy *p = nb_policy_in_force(e, t, vma);
	const int from = nb_node_exists(e, cpu_node) ? cpu_node : 0;

	return e->nodes[nb_policy_node(e, p, vma, addr, huge, from)].near;
}

int nb_first_touch_node(struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma,
	uint64_t addr, int cpu_node)
{
	return first_touch(e, t, vma, addr, false, cpu_node);
}

int nb_first_touch_huge_node(struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma,
	uint64_t addr, int cpu_node)
{
	return first_touch(e, t, vma, addr, true, cpu_node);
}
