/* SPDX-License-Identifier: MIT */
/*
 * sched: CPUs and run queues. A scheduler of the kind that NUMA balancing has to live with: it
 * spreads new tasks over the idlest node and core, keeps a task where it ran, rotates a queue by
 * time slice, lets an idle CPU take a waiting task, and, where one node has more idle CPUs than
 * another, moves a running task there (active balancing). Now and then something else that runs
 * pushes a task to another CPU (the machine's wander_per_min).
 */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sim_sched_init(struct sim_world *w)
{
	const struct nb_topology *topo = &w->model->topo;
	int32_t cores = 0;

	w->cpus = calloc(topo->cpu_ids, sizeof(*w->cpus));
	w->run_list = calloc(w->load->nr_threads + 1, sizeof(*w->run_list));
	if (!w->cpus || !w->run_list)
		return -ENOMEM;
	for (unsigned int c = 0; c < topo->cpu_ids; c++) {
		w->cpus[c].usable = topo->cpu_node[c] != NB_NO_NODE;
		w->cpus[c].node = topo->cpu_node[c];
		w->cpus[c].core = w->model->cpu_core[c];
		if (w->cpus[c].core >= cores)
			cores = w->cpus[c].core + 1;
	}
	w->core_busy = calloc((size_t)cores + 1, sizeof(*w->core_busy));
	w->slow_list = calloc(w->load->nr_threads + 1, sizeof(*w->slow_list));
	w->convoy = calloc(w->load->nr_threads + 1, sizeof(*w->convoy));
	w->slow_key = calloc(w->load->nr_threads + 1, sizeof(*w->slow_key));
	return w->core_busy && w->slow_list && w->slow_key && w->convoy ? 0 : -ENOMEM;
}

void sim_sched_free(struct sim_world *w)
{
	free(w->cpus);
	free(w->run_list);
	free(w->core_busy);
	free(w->slow_list);
	free(w->slow_key);
	free(w->convoy);
}

static bool allowed(const struct sim_world *w, const struct sim_thread *t, unsigned int cpu)
{
	if (!w->cpus[cpu].usable)
		return false;
	if (t->pinned_node >= 0 && w->cpus[cpu].node != t->pinned_node)
		return false;
	return !t->load->cpus || t->load->cpus[cpu / 64] >> (cpu % 64) & 1;
}

/* ---- a CPU's current task and queue ---- */

static void set_current(struct sim_world *w, uint32_t cpu, struct sim_thread *t)
{
	struct sim_cpu *c = &w->cpus[cpu];

	c->current = t->id;
	w->core_busy[c->core]++;
	t->current = true;
	t->slice_left_ns = w->model->timeslice;
	w->run_list_stale = true;
	w->demand_stale = true;
}

static void clear_current(struct sim_world *w, uint32_t cpu)
{
	struct sim_cpu *c = &w->cpus[cpu];

	w->threads[c->current - 1].current = false;
	w->core_busy[c->core]--;
	c->current = 0;
	w->run_list_stale = true;
	w->demand_stale = true;
}

static void queue_push(struct sim_world *w, uint32_t cpu, struct sim_thread *t)
{
	struct sim_cpu *c = &w->cpus[cpu];

	t->queue_next = 0;
	if (c->tail)
		w->threads[c->tail - 1].queue_next = t->id;
	else
		c->queue = t->id;
	c->tail = t->id;
	w->nr_waiting++;
}

static struct sim_thread *queue_take(struct sim_world *w, uint32_t cpu, struct sim_thread *wanted)
{
	struct sim_cpu *c = &w->cpus[cpu];
	uint32_t before = 0;

	for (uint32_t i = c->queue; i; before = i, i = w->threads[i - 1].queue_next) {
		struct sim_thread *t = &w->threads[i - 1];

		if (wanted && t != wanted)
			continue;
		if (before)
			w->threads[before - 1].queue_next = t->queue_next;
		else
			c->queue = t->queue_next;
		if (c->tail == i)
			c->tail = before;
		w->nr_waiting--;
		return t;
	}
	return NULL;
}

static void attach(struct sim_world *w, struct sim_thread *t, uint32_t cpu)
{
	struct sim_cpu *c = &w->cpus[cpu];

	if (t->cpu >= 0 && t->cpu != (int32_t)cpu)
		t->debt_ns += w->model->task_migrate;
	t->cpu = (int32_t)cpu;
	t->node = c->node;
	t->rate_epoch = 0;
	sim_pace_forget(t);
	c->nr_running++;
	if (c->current)
		queue_push(w, cpu, t);
	else
		set_current(w, cpu, t);
}

static void detach(struct sim_world *w, struct sim_thread *t)
{
	const uint32_t cpu = (uint32_t)t->cpu;
	struct sim_thread *next;

	w->cpus[cpu].nr_running--;
	if (!t->current) {
		queue_take(w, cpu, t);
		return;
	}
	clear_current(w, cpu);
	next = queue_take(w, cpu, NULL);
	if (next) {
		next->debt_ns += w->model->context_switch;
		set_current(w, cpu, next);
	}
}

/* ---- choosing a CPU ---- */

/* Lower is better: an idle core, an idle CPU, a short queue. */
static uint32_t cpu_rank(const struct sim_world *w, uint32_t cpu)
{
	const struct sim_cpu *c = &w->cpus[cpu];

	return c->nr_running * 2 + (w->core_busy[c->core] > 0);
}

/* The best CPU of a node for t, or -1 when it may not run there. */
static int32_t best_cpu_of(const struct sim_world *w, const struct sim_thread *t, int node)
{
	int32_t best = -1;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].node == node && allowed(w, t, c) &&
			(best < 0 || cpu_rank(w, c) < cpu_rank(w, (uint32_t)best)))
			best = (int32_t)c;
	return best;
}

static double node_load(const struct sim_world *w, int node)
{
	uint32_t running = 0;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].usable && w->cpus[c].node == node)
			running += w->cpus[c].nr_running;
	return (double)running / w->model->topo.nodes[node].nr_cpus;
}

/* As find_idlest_group: the node with the least load for its size; the task's own among equals. */
static int32_t choose_cpu(const struct sim_world *w, const struct sim_thread *t)
{
	int32_t best = -1;
	double best_load = 0;

	for (unsigned int k = 0; k < w->nr_nodes; k++) {
		const int node =
			(int)((k + (t->cpu >= 0 ? (unsigned int)t->node : 0)) % w->nr_nodes);
		double load;
		int32_t cpu;

		if (!w->model->topo.nodes[node].nr_cpus)
			continue;
		load = node_load(w, node);
		if (best >= 0 && load >= best_load)
			continue;
		cpu = best_cpu_of(w, t, node);
		if (cpu < 0)
			continue;
		best = cpu;
		best_load = load;
	}
	return best;
}

void sim_sched_wake(struct sim_world *w, struct sim_thread *t)
{
	int32_t cpu = t->cpu;

	t->state = SIM_T_RUNNABLE;
	/* A waking task goes where it was if nobody runs there, else to an idle CPU of that node,
	 * else anywhere. */
	if (cpu < 0 || w->cpus[cpu].nr_running || !allowed(w, t, (uint32_t)cpu)) {
		cpu = t->cpu >= 0 ? best_cpu_of(w, t, t->node) : -1;
		if (cpu < 0 || w->cpus[cpu].nr_running)
			cpu = choose_cpu(w, t);
	}
	assert(cpu >= 0);
	attach(w, t, (uint32_t)cpu);
}

void sim_sched_sleep(struct sim_world *w, struct sim_thread *t)
{
	detach(w, t);
}

int sim_sched_run_on(struct sim_world *w, struct sim_thread *t, int node)
{
	const int32_t cpu = best_cpu_of(w, t, node);

	if (cpu < 0 || t->state != SIM_T_RUNNABLE)
		return -EINVAL;
	detach(w, t);
	attach(w, t, (uint32_t)cpu);
	return 0;
}

/* ---- NUMA placement ---- */

static uint32_t node_running(const struct sim_world *w, int node)
{
	uint32_t running = 0;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].usable && w->cpus[c].node == node)
			running += w->cpus[c].nr_running;
	return running;
}

/*
 * As adjust_numa_imbalance: a node may not become busier than the one that is left, except by two
 * tasks while it is nearly idle.
 */
static bool keeps_balance(const struct sim_world *w, int from, int to)
{
	const uint32_t source = node_running(w, from) - 1, target = node_running(w, to) + 1;

	return target <= source ||
	       (target <= w->model->topo.nodes[to].nr_cpus / 4 && target - source <= 2);
}

int sim_sched_move(struct sim_world *w, struct sim_thread *t, int node)
{
	const int32_t cpu = best_cpu_of(w, t, node);

	if (cpu < 0 || t->state != SIM_T_RUNNABLE)
		return -EINVAL;
	if (w->cpus[cpu].nr_running)
		return -EBUSY;
	if (!keeps_balance(w, t->node, node))
		return -EAGAIN;
	detach(w, t);
	attach(w, t, (uint32_t)cpu);
	return 0;
}

int sim_sched_swap(struct sim_world *w, struct sim_thread *t, struct sim_thread *other)
{
	const int32_t here = t->cpu, there = other->cpu;

	if (t->state != SIM_T_RUNNABLE || other->state != SIM_T_RUNNABLE || here == there)
		return -EINVAL;
	if (!allowed(w, t, (uint32_t)there) || !allowed(w, other, (uint32_t)here))
		return -EINVAL;
	detach(w, t);
	detach(w, other);
	attach(w, t, (uint32_t)there);
	attach(w, other, (uint32_t)here);
	return 0;
}

/* ---- balancing ---- */

static void move_task(struct sim_world *w, struct sim_thread *t, uint32_t cpu)
{
	detach(w, t);
	attach(w, t, cpu);
}

/* An idle CPU takes a waiting task, of its own node first. */
static bool pull_waiting(struct sim_world *w, uint32_t idle)
{
	struct sim_thread *found = NULL;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		for (uint32_t i = w->cpus[c].queue; i; i = w->threads[i - 1].queue_next) {
			struct sim_thread *t = &w->threads[i - 1];

			if (!allowed(w, t, idle))
				continue;
			if (!found || (w->cpus[c].node == w->cpus[idle].node &&
					      found->node != w->cpus[idle].node))
				found = t;
		}
	if (found)
		move_task(w, found, idle);
	return found != NULL;
}

static void new_idle_balance(struct sim_world *w)
{
	for (uint32_t c = 0; w->nr_waiting && c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].usable && !w->cpus[c].nr_running)
			pull_waiting(w, c);
}

/* CPUs of each node that run nothing. */
static void count_idle(const struct sim_world *w, uint32_t *idle)
{
	memset(idle, 0, w->nr_nodes * sizeof(*idle));
	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].usable && !w->cpus[c].nr_running)
			idle[w->cpus[c].node]++;
}

/* A running task of node `from` that may run on `cpu`; a different one each time, so that none is
 * moved for ever. One that prefers to be there only where there is no other. */
static struct sim_thread *movable_task(struct sim_world *w, int from, uint32_t cpu)
{
	const uint32_t ids = w->model->topo.cpu_ids;
	const uint32_t first = (uint32_t)sim_rng_below(&w->rng, ids);
	struct sim_thread *second_best = NULL;

	for (uint32_t k = 0; k < ids; k++) {
		const struct sim_cpu *c = &w->cpus[(first + k) % ids];

		if (c->usable && c->node == from && c->current &&
			allowed(w, &w->threads[c->current - 1], cpu)) {
			if (w->threads[c->current - 1].preferred != from)
				return &w->threads[c->current - 1];
			if (!second_best)
				second_best = &w->threads[c->current - 1];
		}
	}
	return second_best;
}

static int32_t idle_cpu_of(const struct sim_world *w, int node)
{
	int32_t best = -1;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++)
		if (w->cpus[c].usable && w->cpus[c].node == node && !w->cpus[c].nr_running &&
			(best < 0 || cpu_rank(w, c) < cpu_rank(w, (uint32_t)best)))
			best = (int32_t)c;
	return best;
}

static double fullness(const struct sim_world *w, const uint32_t *idle, unsigned int node)
{
	const double cpus = w->model->topo.nodes[node].nr_cpus;

	return (cpus - idle[node]) / cpus;
}

/*
 * Between nodes, as load_balance with an idle CPU: a node whose idle CPUs outnumber another's by
 * more than one, and which is emptier for its size by more than imbalance_pct allows, takes one of
 * its running tasks. -1: no such node.
 */
static int busiest_node(const struct sim_world *w, const uint32_t *idle, unsigned int to)
{
	int busiest = -1;

	for (unsigned int n = 0; n < w->nr_nodes; n++) {
		if (n == to || !w->model->topo.nodes[n].nr_cpus || idle[n] + 1 >= idle[to])
			continue;
		if (fullness(w, idle, n) * 100 <= fullness(w, idle, to) * w->model->imbalance_pct)
			continue;
		if (busiest < 0 || idle[n] < idle[busiest])
			busiest = (int)n;
	}
	return busiest;
}

static void balance_nodes(struct sim_world *w)
{
	uint32_t idle[NB_MAX_NODES];

	count_idle(w, idle);
	for (unsigned int to = 0; to < w->nr_nodes; to++) {
		const int from = idle[to] < 2 ? -1 : busiest_node(w, idle, to);
		struct sim_thread *t;
		int32_t cpu;

		if (from < 0)
			continue;
		cpu = idle_cpu_of(w, (int)to);
		t = movable_task(w, from, (uint32_t)cpu);
		if (!t)
			continue;
		idle[to]--;
		idle[from] += w->cpus[t->cpu].nr_running == 1;
		move_task(w, t, (uint32_t)cpu);
	}
}

/* Would be pushed off the node that it prefers: load balancing passes over what that would harm. */
static bool settled(const struct sim_world *w, const struct sim_thread *t, uint32_t cpu)
{
	return t->preferred == t->node && w->cpus[cpu].node != t->node;
}

/* Something else wants a CPU: its task changes places with one elsewhere. */
static void wander(struct sim_world *w)
{
	const double mean = w->model->wander * w->tick_ns / 1e9 * w->nr_run;
	struct sim_thread *t, *other;
	uint32_t cpu, ids = w->model->topo.cpu_ids;

	if (!w->nr_run || sim_rng_unit(&w->rng) >= mean)
		return;
	t = w->run_list[sim_rng_below(&w->rng, w->nr_run)];
	cpu = (uint32_t)sim_rng_below(&w->rng, ids);
	if (!t->current || cpu == (uint32_t)t->cpu || !allowed(w, t, cpu) || settled(w, t, cpu))
		return;
	if (!w->cpus[cpu].nr_running) {
		move_task(w, t, cpu);
		return;
	}
	other = w->cpus[cpu].current ? &w->threads[w->cpus[cpu].current - 1] : NULL;
	if (!other || !allowed(w, other, (uint32_t)t->cpu) || settled(w, other, (uint32_t)t->cpu))
		return;
	ids = (uint32_t)t->cpu;
	detach(w, t);
	detach(w, other);
	attach(w, t, cpu);
	attach(w, other, ids);
}

/* Interrupts and daemons: whoever runs on that CPU stands still for a moment. */
static void steal(struct sim_world *w)
{
	const double mean = 1e9 / (w->model->steal_rate * w->model->topo.cpu_ids);

	while (w->now_ns >= w->next_steal_ns) {
		const uint32_t cpu = (uint32_t)sim_rng_below(&w->rng, w->model->topo.cpu_ids);
		const double ns = sim_rng_exponential(&w->rng, w->model->steal_time);
		struct sim_thread *t;

		w->next_steal_ns += sim_rng_exponential(&w->rng, mean);
		if (!w->cpus[cpu].current)
			continue;
		t = &w->threads[w->cpus[cpu].current - 1];
		if (t->wait_until_ns < w->now_ns + ns)
			t->wait_until_ns = w->now_ns + ns;
	}
}

static void rotate_queues(struct sim_world *w)
{
	for (uint32_t c = 0; w->nr_waiting && c < w->model->topo.cpu_ids; c++) {
		struct sim_thread *t;

		if (!w->cpus[c].queue || !w->cpus[c].current)
			continue;
		t = &w->threads[w->cpus[c].current - 1];
		t->slice_left_ns -= w->tick_ns;
		if (t->slice_left_ns > 0)
			continue;
		detach(w, t);
		attach(w, t, c);
	}
}

void sim_sched_tick(struct sim_world *w)
{
	if (w->nr_waiting) {
		rotate_queues(w);
		new_idle_balance(w);
	}
	if (w->now_ns >= w->next_balance_ns) {
		w->next_balance_ns = w->now_ns + w->model->balance_interval;
		balance_nodes(w);
	}
	if (w->model->wander > 0)
		wander(w);
	if (w->model->steal_rate > 0)
		steal(w);
	sim_sched_refresh(w);
}

/* The list of running threads, in order of their number, and how fast their cores are now. */
void sim_sched_refresh(struct sim_world *w)
{
	const double shared = w->model->threads_per_core > 1
				      ? w->model->smt_speedup / w->model->threads_per_core
				      : 1;

	if (!w->run_list_stale)
		return;
	w->run_list_stale = false;
	w->convoy_stale = true;
	w->nr_run = 0;
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		struct sim_thread *t = &w->threads[i];
		double factor;

		if (!t->current)
			continue;
		w->run_list[w->nr_run++] = t;
		factor = w->core_busy[w->cpus[t->cpu].core] > 1 ? shared : 1;
		if (factor != t->core_factor)
			sim_pace_forget(t);
		t->core_factor = factor;
	}
}

static const char *check_task(const struct sim_world *w, uint32_t cpu, uint32_t id, bool current)
{
	const struct sim_thread *t = &w->threads[id - 1];

	if (t->cpu != (int32_t)cpu || t->node != w->cpus[cpu].node || t->current != current)
		return "a task is not where it thinks it is";
	if (t->state != SIM_T_RUNNABLE)
		return "a task that is not runnable has a CPU";
	return allowed(w, t, cpu) ? NULL : "a task is where it may not run";
}

/* Adds to *tasks and *waiting. */
static const char *check_cpu(
	const struct sim_world *w, uint32_t cpu, uint32_t *tasks, uint32_t *waiting)
{
	const struct sim_cpu *c = &w->cpus[cpu];
	uint32_t n = c->current != 0, last = 0;
	const char *wrong = c->current ? check_task(w, cpu, c->current, true) : NULL;

	if (!c->current && c->queue)
		return "a CPU idles while tasks queue on it";
	for (uint32_t i = c->queue; i && !wrong; i = w->threads[i - 1].queue_next) {
		wrong = check_task(w, cpu, i, false);
		last = i;
		n++;
		++*waiting;
		if (n > w->load->nr_threads)
			return "a run queue goes round";
	}
	*tasks += n;
	if (!wrong && (n != c->nr_running || last != c->tail))
		wrong = "a run queue's length disagrees with its tasks";
	return wrong;
}

static const char *check_cores(const struct sim_world *w)
{
	for (uint32_t c = 0; c < w->model->topo.cpu_ids; c++) {
		uint32_t busy = 0;

		if (!w->cpus[c].usable)
			continue;
		for (uint32_t k = 0; k < w->model->topo.cpu_ids; k++)
			busy += w->cpus[k].usable && w->cpus[k].core == w->cpus[c].core &&
				w->cpus[k].current;
		if (busy != w->core_busy[w->cpus[c].core])
			return "a core's running tasks are miscounted";
	}
	return NULL;
}

const char *sim_sched_check(const struct sim_world *w)
{
	uint32_t waiting = 0, tasks = 0, runnable = 0;
	const char *wrong = NULL;

	for (uint32_t c = 0; c < w->model->topo.cpu_ids && !wrong; c++)
		wrong = check_cpu(w, c, &tasks, &waiting);
	for (uint32_t i = 0; i < w->load->nr_threads; i++)
		runnable += w->threads[i].state == SIM_T_RUNNABLE;
	if (!wrong && waiting != w->nr_waiting)
		wrong = "the number of waiting tasks is wrong";
	if (!wrong && tasks != runnable)
		wrong = "a runnable task has no CPU, or two";
	return wrong ? wrong : check_cores(w);
}
