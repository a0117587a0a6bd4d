/* SPDX-License-Identifier: MIT */
/* check: the deep checker of a whole engine, from the checkers of its rooms. */
#include "engine_private.h"
#include "home.h"

static const char *check_task(const struct nb_engine *e, const struct nb_task *t)
{
	if (t->mm != NULL && nb_mm_by_id(e, t->mm->id) != t->mm)
		return "task: its address space is unknown";
	if (t->preferred < NB_NO_NODE || t->preferred >= (int)e->topo.nr_nodes)
		return "task: prefers a node that is not there";
	if (t->cpu_node < NB_NO_NODE || t->cpu_node >= (int)e->topo.nr_nodes)
		return "task: on a node that is not there";
	if (t->group != NULL && t->faults == NULL)
		return "task: in a group, without statistics";
	if (t->policy.mode >= NB_NR_POLICY_MODES || t->policy.mode == NB_POLICY_NOOP)
		return "task: not a policy to have";
	return NULL;
}

static const char *check_tasks(const struct nb_engine *e)
{
	uint64_t with_mm = 0, counted = 0;

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *t = e->tasks.slots[i].value;
		const char *wrong = t != NULL ? check_task(e, t) : NULL;

		if (wrong != NULL)
			return wrong;
		if (t != NULL && t->id != e->tasks.slots[i].id)
			return "task: known by another id";
		with_mm += t != NULL && t->mm != NULL;
	}
	for (uint32_t i = 0; i < e->mms.capacity; i++)
		if (e->mms.slots[i].id != 0)
			counted += ((struct nb_mm *)e->mms.slots[i].value)->nr_tasks;
	return with_mm == counted ? NULL : "mm: wrong number of tasks";
}

/* What the VMAs hold must be what the engine counts. */
struct sums {
	uint64_t block_bytes, pages, expansions;
};

static void add_vma(struct sums *s, const struct nb_vma *vma)
{
	s->block_bytes += vma->pages.memory_nr * sizeof(struct nb_block);
	s->pages += (vma->end - vma->start) >> NB_PAGE_SHIFT;
	for (uint64_t b = 0; b < vma->pages.nr; b++)
		s->expansions += vma->pages.blocks[b].expansion != 0;
}

static const char *check_mms(const struct nb_engine *e)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < e->mms.capacity; i++) {
		const struct nb_mm *mm = e->mms.slots[i].value;
		const char *wrong = mm != NULL ? nb_mm_check(mm) : NULL;

		if (wrong != NULL)
			return wrong;
		for (uint32_t v = 0; mm != NULL && v < mm->nr_vmas; v++)
			add_vma(&sums, mm->vmas[v]);
	}
	if (sums.block_bytes != e->block_bytes || sums.pages != e->tracked_pages)
		return "engine: wrong count of page state";
	if (sums.expansions != e->pool.nr_used)
		return "engine: an expansion is lost, or used twice";
	return NULL;
}

static const char *check_nodes(const struct nb_engine *e)
{
	for (unsigned int n = 0; n < e->topo.nr_nodes; n++) {
		const struct nb_node_state *s = &e->nodes[n];

		if (!nb_node_exists(e, s->near) || e->topo.nodes[s->near].mem_bytes == 0)
			return "node: nothing near";
	}
	return NULL;
}

static const char *check_counters(const struct nb_engine *e)
{
	const struct nb_counters *c = &e->counters;

	return c->numa_hint_faults_local > c->numa_hint_faults
		       ? "counters: more local hint faults than hint faults"
		       : NULL;
}

const char *nb_engine_check(const struct nb_engine *e)
{
	const char *wrong = nb_topology_check(&e->topo);

	if (wrong == NULL)
		wrong = nb_idmap_check(&e->mms);
	if (wrong == NULL)
		wrong = nb_idmap_check(&e->tasks);
	if (wrong == NULL)
		wrong = nb_pool_check(&e->pool);
	if (wrong == NULL)
		wrong = check_mms(e);
	if (wrong == NULL)
		wrong = check_tasks(e);
	if (wrong == NULL)
		wrong = nb_groups_check(e);
	if (wrong == NULL)
		wrong = nb_home_check(e);
	if (wrong == NULL)
		wrong = check_nodes(e);
	if (wrong == NULL)
		wrong = check_counters(e);
	return wrong;
}
