/* SPDX-License-Identifier: MIT */
#include "home.h"
#include <errno.h>
#include "engine_private.h"
#include "scanperiod.h"

static const uint64_t ms = 1000000;

enum {
	START_MS = 200,	  /* of run time, or seen for so long, before a task has a home */
	LOOK_MS = 200,	  /* between looks at a task that is at home */
	AWAY_MS = 20,	  /* and at one that is not; what was counted is good for so long, too */
	ACTIVE_MS = 1000, /* a task not seen for so long while others were needs no CPU */
	INTRUDERS = 16,	  /* looked at for one task */
	RETURNS = 16,	  /* in the time of patience: somebody else wants that CPU as much */
	FEW_RETURNS = 2,  /* where it is known that somebody does */
	QUARTERS = 4,
};

static void trace(struct nb_engine *e, const struct nb_task *t, enum nb_event_type type, int from,
	uint32_t other, uint64_t now_ns)
{
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = (uint8_t)type,
			    .mm = t->mm != NULL ? t->mm->id : 0,
			    .task = t->id,
			    .node_from = (int16_t)from,
			    .node_to = t->home,
			    .arg = other});
}

bool nb_home_idle(const struct nb_task *t, uint64_t now_ns)
{
	return now_ns < t->home_look_ns;
}

/* ---- who belongs where ---- */

static void leave(struct nb_engine *e, struct nb_task *t)
{
	if (t->resident)
		e->nodes[t->home].residents--;
	t->resident = false;
}

static void belong(struct nb_engine *e, struct nb_task *t, int node, uint64_t now_ns)
{
	const int from = t->home;

	leave(e, t);
	t->home = (int16_t)node;
	t->resident = true;
	e->nodes[node].residents++;
	t->away_ns = 0;
	t->returns = 0;
	if (from == node)
		return;
	trace(e, t, NB_EVENT_PREFERRED, from, 0, now_ns);
	/* Its memory is not there. */
	if (from != NB_NO_NODE && t->mm != NULL)
		nb_scan_afresh(e, t, now_ns);
}

void nb_home_gone(struct nb_engine *e, struct nb_task *t)
{
	leave(e, t);
}

/* Who was not seen when others were, some time ago, sleeps; a machine that was late saw nobody. */
static void note_round(struct nb_engine *e, uint64_t now_ns)
{
	if (now_ns == e->round_ns)
		return;
	e->last_round_ns = e->round_ns;
	e->round_ns = now_ns;
}

static void enlist(struct nb_engine *e, struct nb_task *t)
{
	struct nb_node_state *here;

	t->next_intruder = 0;
	t->resident = t->home != NB_NO_NODE && t->seen_ns != 0 &&
		      t->seen_ns + ACTIVE_MS * ms >= e->last_round_ns;
	if (!t->resident)
		return;
	e->nodes[t->home].residents++;
	if (t->cpu_node == NB_NO_NODE || t->cpu_node == t->home)
		return;
	here = &e->nodes[t->cpu_node];
	t->next_intruder = here->intruder;
	here->intruder = t->id;
}

/* All tasks are looked at, so not often; in between, homes that change are added and taken off. */
static void count(struct nb_engine *e, uint64_t now_ns)
{
	for (unsigned int n = 0; n < e->topo.nr_nodes; n++)
		e->nodes[n].residents = e->nodes[n].intruder = 0;
	for (uint32_t i = 0; i < e->tasks.capacity; i++)
		if (e->tasks.slots[i].value != NULL)
			enlist(e, e->tasks.slots[i].value);
	e->homes_counted = true;
	e->homes_ns = now_ns;
}

static void count_if_old(struct nb_engine *e, uint64_t now_ns)
{
	if (!e->homes_counted || now_ns - e->homes_ns >= AWAY_MS * ms)
		count(e, now_ns);
}

/* ---- choosing ---- */

/* Tasks that belong there and need a CPU, with `t`. */
static uint64_t with(const struct nb_engine *e, int node, const struct nb_task *t)
{
	const struct nb_node_state *s = &e->nodes[node];

	return (uint64_t)s->residents + s->others + !(t->resident && t->home == node);
}

/* With `t`, `a` has fewer tasks for its CPUs than `b`. */
static bool less_loaded(const struct nb_engine *e, const struct nb_task *t, int a, int b)
{
	return with(e, a, t) * e->topo.nodes[b].nr_cpus < with(e, b, t) * e->topo.nodes[a].nr_cpus;
}

/* So that it is worth while to belong there instead: it has room, or is better by a quarter. */
static bool beats(const struct nb_engine *e, const struct nb_task *t, int node, int here)
{
	const uint64_t tasks = with(e, node, t), cpus = e->topo.nodes[node].nr_cpus;

	return cpus > 0 && (tasks <= cpus || tasks * e->topo.nodes[here].nr_cpus * (QUARTERS + 1) <=
						     with(e, here, t) * cpus * QUARTERS);
}

/* The first of equals, and `here` where none is much better: its memory may well be here. */
static int least_loaded(const struct nb_engine *e, const struct nb_task *t, int here)
{
	int best = here;

	for (int n = 0; n < (int)e->topo.nr_nodes; n++)
		if (beats(e, t, n, here) && less_loaded(e, t, n, best))
			best = n;
	return best;
}

static void settle(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	int home = cpu_node;

	count_if_old(e, now_ns);
	if (with(e, cpu_node, t) > e->topo.nodes[cpu_node].nr_cpus)
		home = least_loaded(e, t, cpu_node);
	belong(e, t, home, now_ns);
}

/* ---- going home ---- */

static bool intrudes(const struct nb_task *o, const struct nb_task *t)
{
	return o != t && o->resident && o->cpu_node == t->home && o->home != t->home;
}

/*
 * A task that runs where `t` belongs and does not belong there; best of all one that belongs here.
 * It is taken off the list: until the next count nobody else asks for it.
 */
static struct nb_task *intruder(struct nb_engine *e, const struct nb_task *t, int cpu_node)
{
	uint32_t *link = &e->nodes[t->home].intruder, *found = NULL;
	struct nb_task *o;

	for (int i = 0; i < INTRUDERS && *link != 0; i++, link = &o->next_intruder) {
		o = nb_task_by_id(e, *link);
		/* Gone, and what came after it is not known any more. */
		if (o == NULL) {
			*link = 0;
			break;
		}
		if (intrudes(o, t) && (found == NULL || o->home == cpu_node))
			found = link;
		if (found == link && o->home == cpu_node)
			break;
	}
	if (found == NULL)
		return NULL;
	o = nb_task_by_id(e, *found);
	*found = o->next_intruder;
	return o;
}

/* What is wrong with the other one says nothing of `t`: it may try again. */
static int swap(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	struct nb_task *o;

	if (e->machine.swap == NULL)
		return -EBUSY;
	count_if_old(e, now_ns);
	o = intruder(e, t, cpu_node);
	if (o == NULL || e->machine.swap(e->machine.ctx, t->id, o->id) != 0)
		return -EBUSY;
	o->cpu_node = (int16_t)cpu_node;
	e->counters.numa_task_swaps++;
	trace(e, t, NB_EVENT_TASK_SWAP, cpu_node, o->id, now_ns);
	return 0;
}

/* Many tasks may wait for one node: it is asked for by the first of them. */
static int run_at_home(struct nb_engine *e, const struct nb_task *t, uint64_t now_ns)
{
	struct nb_node_state *home = &e->nodes[t->home];
	int err;

	if (home->full && now_ns - home->full_ns < AWAY_MS * ms)
		return -EBUSY;
	err = e->machine.run_on(e->machine.ctx, t->id, t->home);
	home->full = err == -EBUSY;
	home->full_ns = now_ns;
	return err;
}

static int go(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	int err;

	if (e->machine.run_on == NULL)
		return -EINVAL;
	err = run_at_home(e, t, now_ns);
	if (err == -EBUSY || err == -EAGAIN)
		return swap(e, t, cpu_node, now_ns);
	if (err != 0)
		return err;
	e->counters.numa_task_moves++;
	trace(e, t, NB_EVENT_TASK_MOVE, cpu_node, 0, now_ns);
	return 0;
}

/* The node would have no more tasks than CPUs, or no more for its CPUs than the one given up. */
static bool has_room(struct nb_engine *e, const struct nb_task *t, int node, uint64_t now_ns)
{
	count_if_old(e, now_ns);
	return with(e, node, t) <= e->topo.nodes[node].nr_cpus || !less_loaded(e, t, t->home, node);
}

static uint64_t patience_ns(const struct nb_engine *e)
{
	return (uint64_t)nb_tune(&e->config, NB_TUNE_HOME_PATIENCE_MS) * ms;
}

/* Another program's tasks may belong there too, and an idle CPU elsewhere takes one of them. */
static void note_return(const struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	if (now_ns - t->returns_ns > patience_ns(e)) {
		t->returns_ns = now_ns;
		t->returns = 0;
	}
	if (t->returns > 0 && now_ns - t->return_ns < LOOK_MS * ms)
		return;
	t->return_ns = now_ns;
	t->returns++;
}

/* Time in which it did not run does not count: nobody kept it away. */
static bool kept_away(const struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	if (t->away_ns == 0 || now_ns - t->seen_ns > ACTIVE_MS * ms)
		t->away_ns = now_ns;
	return t->returns >= RETURNS || now_ns - t->away_ns > patience_ns(e);
}

/* More belong there than it has CPUs, and not so where the task was taken: those that chose at the
 * same time did not know of each other. */
static bool crowded_out(struct nb_engine *e, const struct nb_task *t, int node, uint64_t now_ns)
{
	if (t->returns < FEW_RETURNS)
		return false;
	count_if_old(e, now_ns);
	return with(e, t->home, t) > e->topo.nodes[t->home].nr_cpus &&
	       with(e, node, t) <= e->topo.nodes[node].nr_cpus;
}

/* Its home may be the node it was taken to. */
static bool gives_up(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	if (kept_away(e, t, now_ns) && has_room(e, t, cpu_node, now_ns))
		return true;
	return crowded_out(e, t, cpu_node, now_ns);
}

static void come_home(struct nb_engine *e, struct nb_task *t, int cpu_node, uint64_t now_ns)
{
	int err;

	if (gives_up(e, t, cpu_node, now_ns)) {
		belong(e, t, cpu_node, now_ns);
		return;
	}
	err = go(e, t, cpu_node, now_ns);
	if (err == 0) {
		t->cpu_node = t->home;
		note_return(e, t, now_ns);
	}
	/* Who may not go where it belongs belongs where it may be. */
	if (err == -EINVAL)
		belong(e, t, cpu_node, now_ns);
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

int nb_home_tick(
	struct nb_engine *e, struct nb_task *t, uint64_t runtime_ns, int cpu_node, uint64_t now_ns)
{
	if (!nb_has(&e->config, NB_MECH_HOME_NODE) || nb_home_idle(t, now_ns) ||
		e->topo.nodes[cpu_node].nr_cpus == 0)
		return cpu_node;
	note_round(e, now_ns);
	t->cpu_node = (int16_t)cpu_node;
	if (t->first_seen_ns == 0)
		t->first_seen_ns = now_ns;
	if (runtime_ns >= START_MS * ms || now_ns - t->first_seen_ns >= START_MS * ms)
		look(e, t, cpu_node, now_ns);
	t->seen_ns = now_ns;
	return t->cpu_node;
}

int nb_task_home(const struct nb_task *t, int cpu_node)
{
	return t->home != NB_NO_NODE ? t->home : cpu_node;
}

void nb_engine_others(struct nb_engine *e, const uint32_t *tasks)
{
	for (unsigned int n = 0; n < e->topo.nr_nodes; n++)
		e->nodes[n].others = tasks[n];
}

uint32_t nb_engine_residents(const struct nb_engine *e, int node)
{
	return e->nodes[node].residents;
}

void nb_task_sleeps(struct nb_task *t)
{
	t->seen_ns = 0;
	if (t->mm != NULL)
		leave(t->mm->engine, t);
}

/* ---- checking ---- */

static const char *check_task(const struct nb_engine *e, const struct nb_task *t)
{
	if (t->home == NB_NO_NODE)
		return t->resident ? "home: a resident without a home" : NULL;
	if (!nb_node_exists(e, t->home) || e->topo.nodes[t->home].nr_cpus == 0)
		return "home: where no CPU is";
	return NULL;
}

static uint32_t residents(const struct nb_engine *e, int node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *t = e->tasks.slots[i].value;

		n += t != NULL && t->resident && t->home == node;
	}
	return n;
}

const char *nb_home_check(const struct nb_engine *e)
{
	for (uint32_t i = 0; i < e->tasks.capacity; i++) {
		const struct nb_task *t = e->tasks.slots[i].value;
		const char *wrong = t != NULL ? check_task(e, t) : NULL;

		if (wrong != NULL)
			return wrong;
	}
	for (int n = 0; n < (int)e->topo.nr_nodes; n++)
		if (residents(e, n) != e->nodes[n].residents)
			return "home: wrong number of residents";
	return NULL;
}
