/* SPDX-License-Identifier: MIT */
/*
 * demand: what the running threads ask of memory in the coming tick, and how fast that makes them.
 * A thread's demand is its CPU time, split by the nodes its accesses go to: the blocks a sweep will
 * pass, the shares of a random pattern's region. Looking ahead by one tick keeps a convoy from
 * entering an idle node at everybody's full speed.
 */
#include "world.h"

#include <math.h>
#include <string.h>

/* How far ahead a run of clean blocks is followed: this many ticks of progress. */
static const double LOOKAHEAD_TICKS = 3;

enum { LOOKAHEAD_RUNS = 9 };

/* How many of the CPU's lines a thread keeps in flight: a chase waits for each one. */
static double lines_factor(const struct sim_world *w, const struct sim_thread *t)
{
	return t->phase->kind == SIM_PHASE_CHASE && w->model->lines_in_flight > 1
		       ? 1 / w->model->lines_in_flight
		       : 1;
}

/* ns per byte on one node. */
static double cost_on(
	const struct sim_world *w, const struct sim_thread *t, unsigned int node, double lines)
{
	const size_t flow = (size_t)t->node * w->nr_nodes + node;
	const double idle = w->model->latency_ns[flow];
	const double round = w->memory.round_ns[flow] / t->pull;
	/* However much it is pulled along, a CPU is no faster than on an idle machine. */
	double cost =
		(round > idle ? round : idle) / (w->memory.line_bytes * lines * t->core_factor);

	/* Whoever waits for each line feels the queue build up before it is full. */
	if (lines < 1) {
		const double u = sim_memory_utilisation(&w->memory, node);

		cost *= 1 + w->model->latency_rise * u * u;
	}
	return cost * (1 - t->cached);
}

/* ns per byte of what a sweep does not have from memory. */
static double other_cost(const struct sim_thread *t, const struct sim_phase *p)
{
	const double cache = t->cached > 0 ? t->cached * 1e9 / t->cache_rate : 0;

	return (p->compute_ns / p->access_bytes + cache) / t->core_factor;
}

/* bytes/ns where a byte from memory takes so long. */
static double rate_at(const struct sim_world *w, const struct sim_thread *t, double ns)
{
	/* Random patterns reckon access by access, and enter compute time there. */
	if (sim_sweeps(t))
		ns += other_cost(t, t->phase);
	return ns > 0 ? 1 / ns
		      : sim_memory_rate(&w->memory, (unsigned int)t->node, (unsigned int)t->node) /
				1e9;
}

double sim_rate_of(const struct sim_world *w, const struct sim_thread *t, const struct sim_mix *mix)
{
	const double lines = lines_factor(w, t);
	double ns = 0;

	for (unsigned int k = 0; k < mix->nr; k++)
		ns += (double)mix->share[k] * cost_on(w, t, mix->node[k], lines);
	return rate_at(w, t, ns);
}

/* ---- what is known of costs ---- */

static void reckon_pace(const struct sim_world *w, const struct sim_thread *t, unsigned int node,
	struct sim_pace *pace)
{
	pace->epoch = w->epoch;
	pace->node = (uint16_t)node;
	pace->ns = cost_on(w, t, node, 1);
	pace->rate = rate_at(w, t, pace->ns);
}

static inline const struct sim_pace *pace_on(
	const struct sim_world *w, struct sim_thread *t, unsigned int node)
{
	struct sim_pace *pace = &t->pace[node % SIM_PACES];

	if (pace->epoch != w->epoch || pace->node != node)
		reckon_pace(w, t, node, pace);
	return pace;
}

static void set_pure(struct sim_mix *mix, int node)
{
	mix->nr = 1;
	mix->node[0] = (uint16_t)node;
	mix->share[0] = 1;
}

/* As sim_rate_of, of a sweep whose mix is not pure. */
static double sweep_rate(const struct sim_world *w, struct sim_thread *t, const struct sim_mix *mix)
{
	double ns = 0;

	for (unsigned int k = 0; k < mix->nr; k++)
		ns += (double)mix->share[k] * pace_on(w, t, mix->node[k])->ns;
	return rate_at(w, t, ns);
}

void sim_rate_renew(const struct sim_world *w, struct sim_thread *t)
{
	if (!sim_sweeps(t))
		t->rate = sim_rate_of(w, t, &t->mix);
	else
		t->rate = sim_mix_is_pure(&t->mix) ? pace_on(w, t, t->mix.node[0])->rate
						   : sweep_rate(w, t, &t->mix);
	t->rate_epoch = w->epoch;
}

const char *sim_paces_check(const struct sim_world *w)
{
	for (uint32_t i = 0; i < w->load->nr_threads; i++)
		for (int k = 0; k < SIM_PACES; k++) {
			const struct sim_pace *pace = &w->threads[i].pace[k];
			struct sim_pace now;

			if (pace->epoch != w->epoch)
				continue;
			reckon_pace(w, &w->threads[i], pace->node, &now);
			if (now.ns != pace->ns || now.rate != pace->rate)
				return "a thread's pace on a node is not what it was reckoned to "
				       "be";
		}
	return NULL;
}

const char *sim_pulls_check(const struct sim_world *w)
{
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		const struct sim_thread *t = &w->threads[i];
		struct sim_pace now;

		if (t->pulled_epoch != w->epoch)
			continue;
		reckon_pace(w, t, t->mix.node[0], &now);
		if (!sim_mix_is_pure(&t->mix) || now.rate > t->pulled_rate)
			return "a thread goes faster than its pull was said to make it";
	}
	return NULL;
}

/* ---- sweeps ---- */

static bool clean(const struct sim_block *b)
{
	return (b->flags & (SIM_B_PRESENT | SIM_B_ARMED | SIM_B_BUSY | SIM_B_PMD)) == SIM_B_PRESENT;
}

/* Entries differ, yet none needs attention. */
static bool clean_entries(const struct sim_area_state *a, uint32_t b)
{
	const struct sim_block *block = &a->blocks[b];

	return (block->flags & (SIM_B_PTES | SIM_B_BUSY | SIM_B_PMD)) == SIM_B_PTES &&
	       !block->armed && block->present == sim_block_pages(a, b);
}

static double min_double(double a, double b)
{
	return a < b ? a : b;
}

bool sim_sweep_establish(struct sim_world *w, struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	struct sim_area_state *a = t->area;
	const uint64_t pos = sim_whole(t->pos);
	uint32_t b = sim_block_of(a, pos);
	uint64_t start, end;
	double limit;
	int node;

	sim_block_range(a, b, &start, &end);
	if (end > t->slice_end)
		end = t->slice_end;
	if (!clean(&a->blocks[b]) && !clean_entries(a, b)) {
		const double cost = sim_touch_block(w, t, pos, end, sim_touch_flags(w, p));

		if (cost < 0)
			return false;
		t->debt_ns += cost;
	}
	node = sim_block_node(a, b, t->node);
	if (node >= 0)
		set_pure(&t->mix, node);
	else
		sim_block_mix(w, a, pos, end, t->node, &t->mix);
	t->rate_epoch = 0;
	limit = t->pos + (t->rate > 0 ? t->rate * w->tick_ns * LOOKAHEAD_TICKS : 0);
	while (end < t->slice_end && (double)end < limit && t->mix.nr == 1 &&
		clean(&a->blocks[b + 1]) && a->blocks[b + 1].node == t->mix.node[0]) {
		sim_block_range(a, ++b, &start, &end);
		if (end > t->slice_end)
			end = t->slice_end;
	}
	t->clean_end = (double)end;
	t->clean_gen = a->gen;
	return true;
}

static void want_add(struct sim_mix *want, unsigned int node, double share)
{
	for (unsigned int k = 0; k < want->nr; k++)
		if (want->node[k] == node) {
			want->share[k] += (float)share;
			return;
		}
	/* More nodes than a mix holds: the last one stands for the rest. */
	if (want->nr == SIM_MAX_MIX) {
		want->share[SIM_MAX_MIX - 1] += (float)share;
		return;
	}
	want->node[want->nr] = (uint16_t)node;
	want->share[want->nr++] = (float)share;
}

/* CPU time that `bytes` with this mix take, entered by node; returns the time. */
static double want_bytes(const struct sim_world *w, struct sim_thread *t, const struct sim_mix *mix,
	double bytes, struct sim_mix *want)
{
	double total = 0;

	for (unsigned int k = 0; k < mix->nr; k++) {
		const double ns = bytes * (double)mix->share[k] * pace_on(w, t, mix->node[k])->ns;

		want_add(want, mix->node[k], ns);
		total += ns;
	}
	return total;
}

static void scale(struct sim_mix *want, double total)
{
	for (unsigned int k = 0; k < want->nr; k++)
		want->share[k] = (float)((double)want->share[k] / total);
}

/* The run from `at` on to the end of its block (or slice), wrapping round; returns where it ends.
 */
static double next_run(
	const struct sim_world *w, const struct sim_thread *t, double *at, struct sim_mix *mix)
{
	const struct sim_area_state *a = t->area;
	uint64_t start, end;
	uint32_t b;
	int node;

	if (*at >= (double)t->slice_end)
		*at = (double)t->slice_start;
	b = sim_block_of(a, sim_whole(*at));
	sim_block_range(a, b, &start, &end);
	if (end > t->slice_end)
		end = t->slice_end;
	node = sim_block_node(a, b, t->node);
	if (node >= 0)
		set_pure(mix, node);
	else
		sim_block_mix(w, a, sim_whole(*at), end, t->node, mix);
	return (double)end;
}

/* As sweep_rate and want_bytes, of a run on one node. */
static double want_pure(const struct sim_world *w, struct sim_thread *t, unsigned int node,
	double left_ns, double bytes, struct sim_mix *want)
{
	const struct sim_pace *pace = pace_on(w, t, node);

	bytes = min_double(pace->rate * left_ns, bytes);
	want_add(want, node, bytes * pace->ns);
	return bytes / pace->rate;
}

static double want_mixed(const struct sim_world *w, struct sim_thread *t, const struct sim_mix *mix,
	double left_ns, double bytes, struct sim_mix *want)
{
	const double rate = sweep_rate(w, t, mix);

	bytes = min_double(rate * left_ns, bytes);
	want_bytes(w, t, mix, bytes, want);
	return bytes / rate;
}

static void sweep_want(const struct sim_world *w, struct sim_thread *t, struct sim_mix *want)
{
	struct sim_mix next;
	const struct sim_mix *mix = &t->mix;
	double at = t->pos, end = t->clean_end, spent = 0;

	want->nr = 0;
	for (int k = 0; k < LOOKAHEAD_RUNS && spent < w->tick_ns * 0.999; k++) {
		/* At the start of a pass nothing is known but what the page tables say. */
		if (k || end <= at) {
			end = next_run(w, t, &at, &next);
			mix = &next;
		}
		if (sim_mix_is_pure(mix))
			spent += want_pure(w, t, mix->node[0], w->tick_ns - spent, end - at, want);
		else
			spent += want_mixed(w, t, mix, w->tick_ns - spent, end - at, want);
		at = end;
	}
	if (spent > 0)
		scale(want, spent);
}

/* ---- random patterns ---- */

static void add_region(const struct sim_world *w, const struct sim_region *r, double share,
	int own_node, double *by_node)
{
	double present = 0;

	for (unsigned int n = 0; n < w->nr_nodes; n++) {
		const double s = r->node_share[n] > 1e-9 ? r->node_share[n] : 0;

		by_node[n] += share * s;
		present += s;
	}
	if (present < 1)
		by_node[own_node] += share * (1 - present);
}

/* Where more nodes have a share than a mix holds: the thread's own, and after it in turn others
 * that stand for all. From each node these are different ones, so that together they load every
 * node. */
static void sample_mix(const struct sim_world *w, struct sim_thread *t, const double *by_node)
{
	const double rest = 1 - by_node[t->node];
	double chosen = 0;

	for (unsigned int k = 0; k < w->nr_nodes && t->mix.nr < SIM_MAX_MIX; k++) {
		const unsigned int n = ((unsigned int)t->node + k) % w->nr_nodes;

		if (by_node[n] <= 0)
			continue;
		want_add(&t->mix, n, by_node[n]);
		chosen += k ? by_node[n] : 0;
	}
	for (unsigned int i = 0; i < t->mix.nr; i++)
		if (t->mix.node[i] != t->node)
			t->mix.share[i] = (float)((double)t->mix.share[i] * rest / chosen);
}

static void set_mix(const struct sim_world *w, struct sim_thread *t, const double *by_node)
{
	unsigned int used = 0;

	t->mix.nr = 0;
	for (unsigned int n = 0; n < w->nr_nodes; n++)
		used += by_node[n] > 0;
	if (used > SIM_MAX_MIX) {
		sample_mix(w, t, by_node);
		return;
	}
	for (unsigned int n = 0; n < w->nr_nodes; n++)
		if (by_node[n] > 0)
			want_add(&t->mix, n, by_node[n]);
}

static void random_mix(struct sim_world *w, struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	double by_node[NB_MAX_NODES] = {0};

	add_region(w, t->own, 1 - p->shared_ratio, t->node, by_node);
	if (t->all)
		add_region(w, t->all, p->shared_ratio, t->node, by_node);
	set_mix(w, t, by_node);
	t->own_version = t->own->version;
	t->all_version = t->all ? t->all->version : 0;
	t->rate_epoch = 0;
}

/*
 * Time per access: memory, longer when only some of the lines are kept in flight, and compute time,
 * which asks nothing of memory. Demand is in CPUs with all lines in flight, so a chase's long wait
 * counts for one line.
 */
static void random_want(const struct sim_world *w, struct sim_thread *t, struct sim_mix *want)
{
	const struct sim_phase *p = t->phase;
	const double line = 64, bytes = fmax(p->access_bytes, line);
	double full, wait;

	want->nr = 0;
	full = want_bytes(w, t, &t->mix, bytes, want);
	/* The first line is waited for, the rest of the access comes with all lines in flight. */
	wait = full * line / bytes * (1 / lines_factor(w, t) - 1);
	if (full > 0)
		scale(want, full + wait + p->compute_ns / t->core_factor);
}

/* ---- all threads ---- */

/* Less than this of a CPU's time is no change: shares and queues settle on each other within a few
 * ticks. */
static const float SETTLED = 1e-3f;

static bool same_mix(const struct sim_mix *a, const struct sim_mix *b)
{
	if (a->nr != b->nr)
		return false;
	for (unsigned int k = 0; k < a->nr; k++)
		if (a->node[k] != b->node[k] || fabsf(a->share[k] - b->share[k]) > SETTLED)
			return false;
	return true;
}

static bool still_in_run(const struct sim_world *w, const struct sim_thread *t)
{
	return t->phase->compute_ns <= 0 && t->rate_epoch == w->epoch && t->want.nr == 1 &&
	       t->clean_gen == t->area->gen && t->mix.nr == 1 &&
	       t->want.node[0] == t->mix.node[0] && t->pos + t->rate * w->tick_ns <= t->clean_end;
}

/*
 * Faster or slower than before, it stays on the one node that it wants already: what sweep_want
 * would find is that node for all of its time, but for rounding.
 */
static bool wants_the_same(const struct sim_world *w, struct sim_thread *t)
{
	const double ahead = t->clean_end - t->pos;
	const struct sim_pace *pace;

	if (t->want.nr != 1 || t->phase->compute_ns > 0 || t->cached > 0 ||
		!sim_mix_is_pure(&t->mix) || t->want.node[0] != t->mix.node[0] ||
		fabsf(t->want.share[0] - 1) > SETTLED / 2)
		return false;
	if (t->pulled_epoch == w->epoch && t->pulled_rate * w->tick_ns < ahead)
		return true;
	pace = pace_on(w, t, t->mix.node[0]);
	return pace->ns > 0 && pace->rate * w->tick_ns < ahead;
}

static void update_want(struct sim_world *w, struct sim_thread *t)
{
	const uint8_t kind = t->phase->kind;
	struct sim_mix want;

	want.nr = 0;
	if (kind == SIM_PHASE_SWEEP) {
		if (still_in_run(w, t))
			return;
		if (wants_the_same(w, t)) {
			t->want_epoch = w->epoch;
			return;
		}
		sweep_want(w, t, &want);
	} else if (sim_is_random(kind)) {
		if (t->own_version == t->own->version &&
			(!t->all || t->all_version == t->all->version) && t->want_epoch == w->epoch)
			return;
		random_mix(w, t);
		random_want(w, t, &want);
	}
	t->want_epoch = w->epoch;
	if (same_mix(&want, &t->want))
		return;
	t->want = want;
	w->demand_stale = true;
}

static bool take_copies(struct sim_world *w)
{
	bool any = false;

	for (unsigned int f = 0; f < w->nr_nodes * w->nr_nodes; f++) {
		if (w->copied[f] <= 0)
			continue;
		if (!any)
			sim_memory_reset_capacity(&w->memory);
		sim_memory_take_copy(&w->memory, f / w->nr_nodes, f % w->nr_nodes,
			w->copied[f] * 1e9 / w->tick_ns);
		w->copied[f] = 0;
		any = true;
	}
	return any;
}

static void sum_demand(struct sim_world *w)
{
	memset(w->memory.demand, 0, (size_t)w->nr_nodes * w->nr_nodes * sizeof(double));
	for (uint32_t i = 0; i < w->nr_run; i++) {
		const struct sim_thread *t = w->run_list[i];

		for (unsigned int k = 0; k < t->want.nr; k++)
			w->memory.demand[(unsigned int)t->node * w->nr_nodes + t->want.node[k]] +=
				(double)t->want.share[k] * t->core_factor * t->pull;
	}
}

void sim_demand(struct sim_world *w)
{
	const bool had_copies = w->copies;

	for (uint32_t i = 0; i < w->nr_run; i++)
		update_want(w, w->run_list[i]);
	w->copies = take_copies(w);
	if (had_copies && !w->copies)
		sim_memory_reset_capacity(&w->memory);
	if (!w->demand_stale && !w->copies && !had_copies)
		return;
	w->demand_stale = false;
	sum_demand(w);
	sim_memory_solve(&w->memory);
	w->epoch++;
	if (!w->epoch)
		w->epoch = 1;
}
