/* SPDX-License-Identifier: MIT */
/*
 * best: the best static placement of threads and pages that a search finds.
 *
 * Candidates are what a careful person would try: threads left to the scheduler, packed process by
 * process onto neighbouring nodes, or dealt out one by one; pages with their owner, or interleaved
 * over the process's nodes or over all, by 2 MiB or 4 KiB, evenly or by bandwidth. Each is
 * simulated with balancing off, and abandoned when it takes longer than the best so far. The result
 * bounds a policy from above only as far as the search goes.
 */
#include "sim.h"
#include "../engine/why.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum thread_plan { PLAN_SCHEDULER, PLAN_PACKED, PLAN_DEALT, NR_PLANS };

static const char *const plan_text[NR_PLANS] = {"threads left to the scheduler",
	"threads packed by process", "threads dealt out over the nodes"};

struct search {
	const struct sim_model *model;
	const struct sim_load *load;
	const struct sim_options *options;
	struct nb_config none;
	int16_t *plans[NR_PLANS];
	struct nb_result best;
	bool found;
	char *chosen;
	char *why;
	size_t why_len;
};

/* CPU nodes in order of index, each as often as it has CPUs: seat k of the machine is on this node.
 */
static int16_t seat_node(const struct nb_topology *t, unsigned int seat)
{
	for (unsigned int n = 0; n < t->nr_nodes; n++) {
		if (seat < t->nodes[n].nr_cpus)
			return (int16_t)n;
		seat -= t->nodes[n].nr_cpus;
	}
	return 0;
}

static int16_t dealt_node(const struct nb_topology *t, unsigned int i)
{
	unsigned int nodes = 0;

	for (unsigned int n = 0; n < t->nr_nodes; n++)
		nodes += t->nodes[n].nr_cpus > 0;
	i %= nodes;
	for (unsigned int n = 0; n < t->nr_nodes; n++)
		if (t->nodes[n].nr_cpus > 0 && !i--)
			return (int16_t)n;
	return 0;
}

/* A hand-made placement respects the job's own affinities: where they forbid the node the plan is
 * void. */
static bool may_run_on(const struct sim_thread_load *t, const struct nb_topology *topo, int node)
{
	if (!t->cpus)
		return true;
	for (unsigned int c = 0; c < topo->cpu_ids; c++)
		if (topo->cpu_node[c] == node && t->cpus[c / 64] >> (c % 64) & 1)
			return true;
	return false;
}

static int make_plan(struct search *s, enum thread_plan plan)
{
	const struct nb_topology *topo = &s->model->topo;
	const uint32_t n = s->load->nr_threads;
	int16_t *nodes;

	if (plan == PLAN_SCHEDULER)
		return 0;
	nodes = malloc((n + 1) * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		/* Fewer threads than CPUs: spread over all nodes in order, as many on each as its
		 * share. */
		const unsigned int seat = n <= topo->nr_cpus
						  ? (unsigned int)((uint64_t)i * topo->nr_cpus / n)
						  : i % topo->nr_cpus;

		nodes[i] = plan == PLAN_PACKED ? seat_node(topo, seat) : dealt_node(topo, i);
		if (!may_run_on(&s->load->threads[i], topo, nodes[i])) {
			free(nodes);
			return 0;
		}
	}
	s->plans[plan] = nodes;
	return 0;
}

/* Is `a` a better outcome than `b`? More work done where the time is fixed, less time where the
 * work is. */
static bool better(const struct nb_result *a, const struct nb_result *b)
{
	if (a->timed_out != b->timed_out)
		return b->timed_out;
	return a->timed_out ? a->bytes > b->bytes : a->elapsed_s < b->elapsed_s;
}

static int try_one(struct search *s, const struct sim_placement *placement, enum thread_plan plan)
{
	struct sim_options options = *s->options;
	struct sim_load load = *s->load;
	struct nb_result result;
	int err;

	options.placement = placement;
	options.trace = NULL;
	/* Slower than the best so far: no need to see the end. A little slack, for a limit that is
	 * met exactly. */
	if (s->found && !s->best.timed_out &&
		(load.time_limit_s <= 0 || load.time_limit_s > s->best.elapsed_s * 1.001))
		load.time_limit_s = s->best.elapsed_s * 1.001;
	err = sim_run(&result, s->model, &load, &s->none, &options, s->why, s->why_len);
	/* A placement that does not fit is no candidate. */
	if (err)
		return err == -ENOSPC ? 0 : err;
	if (s->found && !better(&result, &s->best)) {
		nb_result_free(&result);
		return 0;
	}
	if (s->found)
		nb_result_free(&s->best);
	s->best = result;
	s->found = true;
	snprintf(s->chosen, SIM_TEXT, "%s; %s%s%s%s", plan_text[plan],
		placement->pages == SIM_PAGES_FIRST_TOUCH ? "pages by first touch"
		: placement->pages == SIM_PAGES_OWNER
			? "pages with their owners, shared ones interleaved"
			: "pages interleaved",
		placement->pages == SIM_PAGES_FIRST_TOUCH ? ""
		: placement->by_page			  ? " by 4 KiB"
							  : " by 2 MiB",
		placement->pages == SIM_PAGES_FIRST_TOUCH ? ""
		: placement->over_all			  ? " over all nodes"
							  : " over the process's nodes",
		placement->by_bandwidth ? " by bandwidth" : "");
	return 0;
}

static bool equal_bandwidths(const struct sim_model *m)
{
	for (unsigned int n = 1; n < m->topo.nr_nodes; n++)
		if (m->node_bandwidth[n] != m->node_bandwidth[0])
			return false;
	return true;
}

/* Every combination that says something new for these threads. */
static int try_plan(struct search *s, enum thread_plan plan)
{
	const bool even = equal_bandwidths(s->model);
	int err = 0;

	for (int pages = SIM_PAGES_FIRST_TOUCH; pages <= SIM_PAGES_INTERLEAVE && !err; pages++)
		for (int bits = 0; bits < 8 && !err; bits++) {
			const struct sim_placement p = {.thread_node = s->plans[plan],
				.pages = (enum sim_pages)pages,
				.over_all = bits & 1,
				.by_bandwidth = bits & 2,
				.by_page = bits & 4};

			if (pages == SIM_PAGES_FIRST_TOUCH && bits)
				break;
			if (pages == SIM_PAGES_OWNER && (!p.thread_node || p.by_page))
				continue;
			if ((p.by_bandwidth && even) ||
				(!p.thread_node && !p.over_all && pages != SIM_PAGES_FIRST_TOUCH))
				continue;
			err = try_one(s, &p, plan);
		}
	return err;
}

int sim_best(struct nb_result *out, char *chosen, const struct sim_model *m,
	const struct sim_load *load, const struct sim_options *options, char *why, size_t why_len)
{
	struct search s = {.model = m,
		.load = load,
		.options = options,
		.chosen = chosen,
		.why = why,
		.why_len = why_len};
	int err = 0;

	nb_config_from_system(&s.none, nb_system_find("none"));
	for (int plan = 0; plan < NR_PLANS && !err; plan++) {
		err = make_plan(&s, (enum thread_plan)plan);
		if (!err && (plan == PLAN_SCHEDULER || s.plans[plan]))
			err = try_plan(&s, (enum thread_plan)plan);
	}
	for (int plan = 0; plan < NR_PLANS; plan++)
		free(s.plans[plan]);
	if (!err && !s.found)
		err = nb_why(why, why_len, -ENOSPC, "%s on %s: no placement fits into memory",
			load->name, m->name);
	if (err && s.found)
		nb_result_free(&s.best);
	if (!err)
		*out = s.best;
	return err;
}
