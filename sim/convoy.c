/* SPDX-License-Identifier: MIT */
/*
 * convoy: sweeps over the same memory bunch up. Who writes lines that another CPU wrote just before
 * finds them in a cache instead of in memory, and catches up; who comes to the front meets memory,
 * and is held back. So threads that sweep the same pages stay together, and load the node of the
 * pages they are at, one node at a time.
 *
 * A thread is pulled in proportion to its distance from the foremost one within reach, which is the
 * size of a last-level cache: beyond it the lines are gone. Each line still passes through its home
 * node for each of them, so being pulled changes who gets how much of the node, not how much the
 * node gives.
 *
 * On machines whose caches keep such lines from their home node (llc_sharing), a share of what a
 * thread sweeps comes from the cache when a CPU of its node is within reach before it. On machines
 * whose caches do not simply replace what is oldest (llc_retention), threads that sweep slices of
 * their own find the part of them that fits.
 */
#include "world.h"

#include <math.h>

enum { UPDATE_TICKS = 4 };

static uint64_t address(const struct sim_thread *t)
{
	return t->area->va + sim_whole(t->pos);
}

/* Nearly sorted from last time: an insertion sort has little to do. */
static void sort(struct sim_world *w)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < w->nr_convoy; i++) {
		const uint32_t thread = w->convoy[i];
		const uint64_t at = address(&w->threads[thread]);
		uint32_t k = i;

		if (at >= last) {
			last = at;
			continue;
		}
		while (k && address(&w->threads[w->convoy[k - 1]]) > at) {
			w->convoy[k] = w->convoy[k - 1];
			k--;
		}
		w->convoy[k] = thread;
	}
}

/* Which bound on its rate is known before the rate is: it gains at most in proportion. */
static void note_pulled(const struct sim_world *w, struct sim_thread *t, double gain)
{
	const struct sim_pace *pace = sim_pace_known(w, t);
	const double but_for_rounding = 1 + 1e-9;

	t->pulled_epoch = pace && pace->ns > 0 ? w->epoch : 0;
	if (t->pulled_epoch)
		t->pulled_rate = pace->rate * (gain > 1 ? gain : 1) * but_for_rounding;
}

static void set_pull(struct sim_world *w, struct sim_thread *t, double pull)
{
	if (t->pull == pull)
		return;
	note_pulled(w, t, pull / t->pull);
	t->pull = pull;
	t->rate_epoch = 0;
	sim_pace_forget(t);
	w->demand_stale = true;
}

/* ---- what caches serve ---- */

/* Changes below this are not worth another solution of memory. */
static const double CACHED_STEP = 0.01;

static void set_cached(struct sim_world *w, struct sim_thread *t, double cached, double rate)
{
	if (t->cached == cached || (cached > 0 && t->cached > 0 && t->cache_rate == rate &&
					   fabs(t->cached - cached) < CACHED_STEP))
		return;
	t->cached = cached;
	t->cache_rate = rate;
	t->rate_epoch = 0;
	sim_pace_forget(t);
	w->demand_stale = true;
}

static bool sweeps_all(const struct sim_thread *t)
{
	return t->slice_end - t->slice_start == t->area->bytes;
}

/* What a thread adds to what its node's cache would have to hold. */
static double footprint(const struct sim_thread *t)
{
	const double bytes = (double)(t->slice_end - t->slice_start);

	return sweeps_all(t) ? bytes / t->proc->live_threads : bytes;
}

/* bytes/s at which a CPU takes lines over from another one's cache. */
static double taken_over(const struct sim_world *w)
{
	return w->model->llc_transfer > 0 ? w->model->llc_transfer : w->model->clear_rate;
}

/* From the front to the back: `before` is the last one seen of each node. */
static void serve_from_caches(struct sim_world *w)
{
	const struct sim_thread *before[NB_MAX_NODES] = {NULL};
	double held[NB_MAX_NODES] = {0};

	for (uint32_t i = 0; i < w->nr_convoy; i++)
		held[w->threads[w->convoy[i]].node] += footprint(&w->threads[w->convoy[i]]);
	for (uint32_t i = w->nr_convoy; i-- > 0;) {
		struct sim_thread *t = &w->threads[w->convoy[i]];
		const struct sim_thread *b = before[t->node];
		const double kept = w->model->llc_retention * w->model->llc_bytes / held[t->node];
		const bool follows =
			b && sim_same_slice(b, t) && b->pos - t->pos <= w->model->llc_bytes;

		if (follows && w->model->llc_sharing > 0)
			set_cached(w, t, w->model->llc_sharing, taken_over(w));
		else
			set_cached(w, t, sweeps_all(t) ? 0 : fmin(kept, 1), w->model->clear_rate);
		before[t->node] = t;
	}
}

/* ---- the convoy ---- */

/* Keep the order of those still sweeping, then add whoever began. Whoever left is pulled no more.
 */
static void collect(struct sim_world *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->nr_convoy; i++) {
		struct sim_thread *t = &w->threads[w->convoy[i]];

		t->in_convoy = t->current && sim_sweeps(t);
		if (t->in_convoy)
			w->convoy[n++] = w->convoy[i];
		else {
			set_pull(w, t, 1);
			set_cached(w, t, 0, 0);
		}
	}
	for (uint32_t i = 0; i < w->nr_run; i++) {
		struct sim_thread *t = w->run_list[i];

		if (t->in_convoy || !sim_sweeps(t))
			continue;
		t->in_convoy = true;
		w->convoy[n++] = t->id - 1;
	}
	w->nr_convoy = n;
	w->convoy_stale = false;
}

static const struct sim_thread *in_convoy(const struct sim_world *w, uint32_t i)
{
	return &w->threads[w->convoy[i]];
}

static bool within_reach(const struct sim_thread *t, const struct sim_thread *ahead, double reach)
{
	return ahead->pos - t->pos <= reach && sim_same_slice(t, ahead);
}

void sim_convoy_update(struct sim_world *w)
{
	const double reach = w->model->llc_bytes;
	uint32_t front = 0;

	const bool caches = w->model->llc_sharing > 0 || w->model->llc_retention > 0;

	if ((w->model->follower_gain <= 0 && !caches) || reach <= 0 || w->ticks % UPDATE_TICKS)
		return;
	if (w->convoy_stale)
		collect(w);
	sort(w);
	if (caches)
		serve_from_caches(w);
	for (uint32_t i = 0; i < w->nr_convoy; i++) {
		struct sim_thread *t = &w->threads[w->convoy[i]];
		const struct sim_thread *first;
		double lead = 0;

		if (front < i)
			front = i;
		while (front + 1 < w->nr_convoy && within_reach(t, in_convoy(w, front + 1), reach))
			front++;
		first = in_convoy(w, front);
		if (first != t && sim_same_slice(t, first))
			lead = first->pos - t->pos;
		set_pull(w, t, 1 + w->model->follower_gain * lead / reach);
	}
}
