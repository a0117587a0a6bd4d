/* SPDX-License-Identifier: MIT */
#include "home.h"
#include <errno.h>
#include "engine_private.h"

static const uint64_t ms = 1000000;

enum {
	START_MS = 200,	  /* running, before a task has a home */
	LOOK_MS = 200,	  /* between looks at a task that is at home */
	AWAY_MS = 20,	  /* and at one that is not */
	ACTIVE_MS = 1000, /* not seen for so long before another one: it needs no CPU */
};

static void trace(struct nb_engine *e, const struct nb_task *t, int from, uint64_t now_ns)
{
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = NB_EVENT_PREFERRED,
			    .mm = t->mm != NULL ? t->mm->id : 0,
			    .task = t->id,
			    .node_from = (int16_t)from,
			    .node_to = t->home});
}

bool nb_home_idle(const struct nb_task *t, uint64_t now_ns)
{
	return now_ns < t->home_look_ns;
}

/* ---- choosing ---- */

/* Seen by a machine that may itself have been late: what counts is when `t` was seen before. */
static bool is_active(const struct nb_task *o, const struct nb_task *t)
{
	return o->home != NB_NO_NODE && o->seen_ns != 0 &&
	       o->seen_ns + ACTIVE_MS * ms >= t->seen_ns;
}

/* Tasks that belong there and need a CPU, but for `t`. */
static unsigned int others_of(const struct nb_engine *e, int node, const struct nb_task *t)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *o = e->tasks.slots[i].value;

		n += o != NULL && o != t && o->home == node && is_active(o, t);
	}
	return n;
}

/* The fewest tasks for its CPUs; the first of equals, and `here` before any of them. */
static int least_loaded(const struct nb_engine *e, const struct nb_task *t, int here)
{
	uint64_t least = others_of(e, here, t), cpus = e->topo.nodes[here].nr_cpus;
	int best = here;

	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		const uint64_t nr = e->topo.nodes[n].nr_cpus;
		const uint64_t tasks = nr > 0 ? others_of(e, n, t) : 0;

		if (nr == 0 || tasks * cpus >= least * nr)
			continue;
		least = tasks;
		cpus = nr;
		best = n;
	}
	return best;
}

static void settle(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	const int from = t->home;

	t->home = (int16_t)cpu_node;
	if (others_of(e, cpu_node, t) >= e->topo.nodes[cpu_node].nr_cpus)
		t->home = (int16_t)least_loaded(e, t, cpu_node);
	t->away_ns = 0;
	if (t->home != from)
		trace(e, t, from, now_ns);
}

/* ---- going home ---- */

/* A task that runs where `t` belongs and does not belong there; best of all one that belongs here.
 */
static struct nb_task *intruder(const struct nb_engine *e, const struct nb_task *t, int cpu_node)
{
	struct nb_task *found = NULL;

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		struct nb_task *o = e->tasks.slots[i].value;

		if (o == NULL || o == t || !is_active(o, t) || o->cpu_node != t->home ||
			o->home == t->home)
			continue;
		if (o->home == cpu_node)
			return o;
		found = o;
	}
	return found;
}

static int swap(struct nb_engine *e, struct nb_task *t, int cpu_node)
{
	struct nb_task *o = intruder(e, t, cpu_node);
	int err;

	if (o == NULL || e->machine.swap == NULL)
		return -EBUSY;
	err = e->machine.swap(e->machine.ctx, t->id, o->id);
	if (err != 0)
		return err;
	o->cpu_node = (int16_t)cpu_node;
	e->counters.numa_task_swaps++;
	return 0;
}

static int go(struct nb_engine *e, struct nb_task *t, int cpu_node)
{
	int err;

	if (e->machine.run_on == NULL)
		return -EINVAL;
	err = e->machine.run_on(e->machine.ctx, t->id, t->home);
	if (err == -EBUSY || err == -EAGAIN)
		return swap(e, t, cpu_node);
	e->counters.numa_task_moves += err == 0;
	return err;
}

/* The node would have no more tasks than CPUs, or no more for its CPUs than the one given up. */
static bool has_room(const struct nb_engine *e, const struct nb_task *t, int node)
{
	const uint64_t here = others_of(e, node, t) + 1, cpus = e->topo.nodes[node].nr_cpus;
	const uint64_t home = others_of(e, t->home, t) + 1;

	return here <= cpus || here * e->topo.nodes[t->home].nr_cpus <= home * cpus;
}

static void come_home(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	const uint64_t patience = (uint64_t)nb_tune(&e->config, NB_TUNE_HOME_PATIENCE_MS) * ms;
	const int err = go(e, t, cpu_node);

	if (err == 0)
		t->cpu_node = t->home;
	if (t->away_ns == 0)
		t->away_ns = now_ns;
	/* Who may not go where it belongs belongs where it may be. */
	if (err == -EINVAL || (now_ns - t->away_ns > patience && has_room(e, t, cpu_node))) {
		const int from = t->home;

		t->home = (int16_t)cpu_node;
		t->away_ns = 0;
		trace(e, t, from, now_ns);
	}
}

static void look(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	t->home_look_ns = now_ns + LOOK_MS * ms;
	if (t->home == NB_NO_NODE)
		settle(e, t, cpu_node, now_ns);
	if (t->home == cpu_node) {
		t->away_ns = 0;
		return;
	}
	t->home_look_ns = now_ns + AWAY_MS * ms;
	come_home(e, t, cpu_node, now_ns);
}

void nb_home_tick(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	if (!nb_has(&e->config, NB_MECH_HOME_NODE) || nb_home_idle(t, now_ns) ||
		e->topo.nodes[cpu_node].nr_cpus == 0)
		return;
	t->cpu_node = (int16_t)cpu_node;
	if (t->first_seen_ns == 0)
		t->first_seen_ns = now_ns;
	if (now_ns - t->first_seen_ns >= START_MS * ms)
		look(e, t, cpu_node, now_ns);
	t->seen_ns = now_ns;
}

void nb_task_sleeps(struct nb_task *t)
{
	t->seen_ns = 0;
}
