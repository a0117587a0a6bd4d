/* SPDX-License-Identifier: MIT */
#include "preferred.h"
#include <errno.h>
#include "engine_private.h"
#include "group.h"
#include "scanperiod.h"

enum {
	WEIGHT = 1000,	 /* of all faults of a task or group */
	SMALL_GAIN = 30, /* of WEIGHT: less is not worth a move to and fro */
	RETRIES_A_PERIOD = 16,
	MAX_RETRY_MS = 1000,
};

static void trace(struct nb_engine *e, const struct nb_task *t, enum nb_event_type type, int from,
	int to, uint32_t arg, uint64_t now_ns)
{
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = (uint8_t)type,
			    .mm = t->mm != NULL ? t->mm->id : 0,
			    .task = t->id,
			    .node_from = (int16_t)from,
			    .node_to = (int16_t)to,
			    .arg = arg});
}

/* ---- what a node is worth ---- */

static int64_t weight(const struct nb_engine *e, const uint64_t *faults, uint64_t total, int node)
{
	if (total == 0)
		return 0;
	return (int64_t)(WEIGHT * nb_stat_node(faults, e->topo.nr_nodes, NB_STAT_MEM, node) /
			 total);
}

static int64_t task_weight(const struct nb_engine *e, const struct nb_task *t, int node)
{
	return weight(e, t->faults, t->total_faults, node);
}

static int64_t group_weight(const struct nb_engine *e, const struct nb_task *t, int node)
{
	if (t->group == NULL)
		return 0;
	return weight(e, t->group->faults, t->group->total_faults, node);
}

/* What a task wins by going from one node to another. */
struct gain {
	int64_t task, group;
};

static struct gain gain_of(const struct nb_engine *e, const struct nb_task *t, int from, int to)
{
	return (struct gain){
		.task = task_weight(e, t, to) - task_weight(e, t, from),
		.group = group_weight(e, t, to) - group_weight(e, t, from),
	};
}

/* ---- changing places ---- */

/* What both win. Within a group, or without groups, tasks count by themselves. */
static int64_t swap_gain(
	const struct nb_engine *e, const struct nb_task *t, const struct nb_task *other, int to)
{
	const struct gain go = gain_of(e, t, t->cpu_node, to);
	const struct gain come = gain_of(e, other, to, t->cpu_node);
	int64_t both;

	if (t->group == other->group) {
		both = go.task + come.task;
		both -= other->group != NULL ? both / 16 : 0;
	} else if (t->group != NULL && other->group != NULL) {
		both = go.group + come.group;
	} else {
		both = (t->group != NULL ? go.group : go.task) + come.task;
	}
	if (other->preferred == to)
		both -= both / 16;
	if (other->preferred == t->cpu_node)
		both += both / 8;
	return both;
}

struct partner {
	struct nb_task *task;
	int64_t gain;
	bool likes; /* it prefers the node it would come to */
};

static bool may_swap(const struct nb_task *t, const struct nb_task *other, int to, bool room)
{
	if (other == NULL || other == t || other->faults == NULL || other->cpu_node != to)
		return false;
	/* Where there is room, changing places within a group helps one at the cost of another. */
	return !room || t->group != other->group;
}

static bool better(const struct partner *a, const struct partner *best)
{
	if (a->likes != best->likes && best->task != NULL)
		return a->likes && a->gain >= SMALL_GAIN;
	return a->gain >= SMALL_GAIN && a->gain > best->gain + SMALL_GAIN / 2;
}

static struct partner find_partner(
	const struct nb_engine *e, const struct nb_task *t, int to, bool room)
{
	struct partner best = {0};

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		struct nb_task *other = e->tasks.slots[i].value;
		struct partner p = {.task = other};

		if (!may_swap(t, other, to, room))
			continue;
		p.gain = swap_gain(e, t, other, to);
		p.likes = other->preferred == t->cpu_node;
		if (better(&p, &best))
			best = p;
	}
	return best;
}

static bool swap(struct nb_engine *e, struct nb_task *t, int to, bool room, uint64_t now_ns)
{
	const int from = t->cpu_node;
	struct partner p;

	if (!nb_has(&e->config, NB_MECH_TASK_SWAP) || e->machine.swap == NULL)
		return false;
	p = find_partner(e, t, to, room);
	if (p.task == NULL || e->machine.swap(e->machine.ctx, t->id, p.task->id) != 0)
		return false;
	t->cpu_node = (int16_t)to;
	p.task->cpu_node = (int16_t)from;
	e->counters.numa_task_swaps++;
	trace(e, t, NB_EVENT_TASK_SWAP, from, to, p.task->id, now_ns);
	return true;
}

/* ---- going there ---- */

static bool go_to(struct nb_engine *e, struct nb_task *t, int to, uint64_t now_ns)
{
	const int from = t->cpu_node;
	const struct gain gain = gain_of(e, t, from, to);
	int err = -EAGAIN;

	if ((t->group != NULL ? gain.group : gain.task) >= 0)
		err = e->machine.run_on(e->machine.ctx, t->id, to);
	if (err != 0)
		return (err == -EBUSY || err == -EAGAIN) && swap(e, t, to, err == -EAGAIN, now_ns);
	t->cpu_node = (int16_t)to;
	e->counters.numa_task_moves++;
	trace(e, t, NB_EVENT_TASK_MOVE, from, to, 0, now_ns);
	return true;
}

static void prefer(struct nb_engine *e, struct nb_task *t, int node, uint64_t now_ns)
{
	if (t->preferred == node)
		return;
	trace(e, t, NB_EVENT_PREFERRED, t->preferred, node, 0, now_ns);
	t->preferred = (int16_t)node;
	if (e->machine.prefer != NULL)
		e->machine.prefer(e->machine.ctx, t->id, node);
}

void nb_task_made_by(
	struct nb_engine *e, struct nb_task *t, const struct nb_task *maker, uint64_t now_ns)
{
	if (maker->mm == t->mm && nb_has(&e->config, NB_MECH_PREFERRED_NODE) &&
		nb_has(&e->config, NB_MECH_PREFERRED_INHERITED))
		prefer(e, t, maker->preferred, now_ns);
}

/* The preferred node is full: any other that is better than this one. */
static bool go_elsewhere(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		struct gain gain;

		if (n == t->cpu_node || n == t->preferred || e->topo.nodes[n].nr_cpus == 0)
			continue;
		gain = gain_of(e, t, t->cpu_node, n);
		if (gain.task < 0 && gain.group < 0)
			continue;
		if (go_to(e, t, n, now_ns))
			return true;
	}
	return false;
}

static void migrate(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	if (!nb_has(&e->config, NB_MECH_TASK_NUMA_MIGRATE) || e->machine.run_on == NULL)
		return;
	if (!go_to(e, t, t->preferred, now_ns))
		go_elsewhere(e, t, now_ns);
	/* A group that is spread over nodes: this task's place in it is here, whether or not it
	 * found a better one. */
	if (t->group != NULL && e->topo.nodes[t->cpu_node].nr_cpus > 0)
		prefer(e, t, t->cpu_node, now_ns);
}

/* ---- choosing ---- */

static int nearest_with_cpus(const struct nb_engine *e, int node)
{
	int best = node;

	if (node == NB_NO_NODE || e->topo.nodes[node].nr_cpus > 0)
		return node;
	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		if (e->topo.nodes[n].nr_cpus == 0)
			continue;
		if (best == node ||
			nb_distance(&e->topo, (unsigned int)node, (unsigned int)n) <
				nb_distance(&e->topo, (unsigned int)node, (unsigned int)best))
			best = n;
	}
	return best;
}

static void choose(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	uint64_t by_kind[2];
	int node;

	if (t->scan_seq == t->mm->scan_seq)
		return;
	t->scan_seq = t->mm->scan_seq;
	t->period_max_ms = nb_scan_max_ms(e, t);
	node = nearest_with_cpus(e, nb_stats_decay(e, t, by_kind));
	if (t->group != NULL)
		nb_group_count_active(e, t->group);
	if (node != NB_NO_NODE && nb_has(&e->config, NB_MECH_PREFERRED_NODE))
		prefer(e, t, node, now_ns);
	nb_scan_adapt(e, t, by_kind[0], by_kind[1], now_ns);
}

void nb_task_place(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	const uint64_t now_j = nb_jiffies(&e->rules, now_ns);
	uint64_t retry_j;

	choose(e, t, now_ns);
	if (t->preferred == NB_NO_NODE)
		return;
	retry_j = nb_msecs_to_jiffies(&e->rules, t->scan_period_ms) / RETRIES_A_PERIOD;
	if (retry_j > nb_msecs_to_jiffies(&e->rules, MAX_RETRY_MS))
		retry_j = nb_msecs_to_jiffies(&e->rules, MAX_RETRY_MS);
	t->retry_j = now_j + retry_j;
	if (t->cpu_node != t->preferred)
		migrate(e, t, now_ns);
}
