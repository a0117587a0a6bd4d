/* SPDX-License-Identifier: MIT */
#include "cpupid.h"
#include "engine_private.h"
#include "group.h"

enum {
	EARLY_SEQS = 4, /* two passes of the two-stage filter */
};

/* Early in a task's life it is better to have private pages near than to be sure. */
static bool early(const struct nb_engine *e, const struct nb_task *t)
{
	return nb_has(&e->config, NB_MECH_EARLY_MIGRATE) &&
	       (t->preferred == NB_NO_NODE || t->scan_seq <= EARLY_SEQS);
}

/* Shared pages of a task whose shared pages are touched from elsewhere stay for a while: better
 * the task moves. */
static bool deferred(const struct nb_engine *e, struct nb_task *t)
{
	if (!nb_has(&e->config, NB_MECH_DEFER_MIGRATE) || t->deferred == 0)
		return false;
	t->deferred--;
	return true;
}

static void defer(const struct nb_engine *e, struct nb_task *t)
{
	if (nb_has(&e->config, NB_MECH_DEFER_MIGRATE))
		t->deferred = (uint32_t)nb_tune(&e->config, NB_TUNE_MIGRATE_DEFERRED);
}

/* Memory of a group should be spread as its CPU time is, with a quarter's hysteresis. */
static bool spreads(const struct nb_engine *e, const struct nb_group *g, int from, int to)
{
	const unsigned int nr = e->topo.nr_nodes;
	const uint64_t cpu_to = nb_stat_node(g->faults, nr, NB_STAT_CPU, to);
	const uint64_t cpu_from = nb_stat_node(g->faults, nr, NB_STAT_CPU, from);

	if (cpu_to > cpu_from * NB_ACTIVE_NODE_FRACTION)
		return true;
	return cpu_to * nb_stat_node(g->faults, nr, NB_STAT_MEM, from) * 3 >
	       cpu_from * nb_stat_node(g->faults, nr, NB_STAT_MEM, to) * 4;
}

bool nb_should_numa_migrate(struct nb_engine *e, const struct nb_fault *f, nb_history last)
{
	struct nb_task *t = f->task;
	const bool known = nb_cpupid_known(last);
	const bool priv = known && nb_cpupid_is_of(last, t->id);

	if ((!known || priv) && early(e, t))
		return true;
	if (known && nb_cpupid_node(last) != f->cpu_node) {
		if (!priv)
			defer(e, t);
		return false;
	}
	if (priv)
		return true;
	if (deferred(e, t))
		return false;
	if (t->group == NULL || !nb_has(&e->config, NB_MECH_GROUP_SPREAD))
		return true;
	return spreads(e, t->group, f->page_node, f->cpu_node);
}
