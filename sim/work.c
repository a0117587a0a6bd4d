/* SPDX-License-Identifier: MIT */
/*
 * work: what a thread does with a tick: the access patterns of its phases, step by step.
 */
#include "world.h"

#include <errno.h>
#include <math.h>

enum {
	LINE_BYTES = 64,
	MAX_STEPS = 1000000000, /* in a tick */
	LOOK_STEPS = 4096,	/* so often a step looks up from its work */
};

/* ---- using time ---- */

static double local_share(const struct sim_thread *t)
{
	double local = 0;

	/* Nearly always */
	if (t->mix.nr == 1)
		return t->mix.node[0] == t->node ? (double)t->mix.share[0] : 0;
	for (unsigned int k = 0; k < t->mix.nr; k++)
		if (t->mix.node[k] == t->node)
			local += (double)t->mix.share[k];
	return local;
}

static inline void account_bytes(struct sim_world *w, struct sim_thread *t, double bytes)
{
	const double local = local_share(t);

	t->done_bytes += bytes;
	w->bytes += bytes;
	w->local_bytes += bytes * local;
}

/* Pay for kernel work and waits first; returns what is left of `left`. */
static double pay(struct sim_world *w, struct sim_thread *t, double left)
{
	const double now = w->now_ns + w->tick_ns - left;

	if (t->wait_until_ns > now) {
		const double wait = t->wait_until_ns - now < left ? t->wait_until_ns - now : left;

		/* Others run meanwhile, or nobody does: it is no run time. */
		t->runtime_ns -= wait;
		left -= wait;
	}
	if (t->debt_ns > 0) {
		const double d = t->debt_ns < left ? t->debt_ns : left;

		t->debt_ns -= d;
		t->system_ns += d;
		left -= d;
	}
	return left;
}

static void use(struct sim_thread *t, double ns)
{
	t->user_ns += ns;
	t->done_ns += ns;
}

/* How much of `left` the phase's time limit leaves. */
static double within_time(const struct sim_thread *t, double left)
{
	const double limit = t->phase->time_s * 1e9 - t->done_ns;

	return t->phase->time_s > 0 && limit < left ? limit : left;
}

static bool time_is_up(const struct sim_thread *t)
{
	const double limit = t->phase->time_s;

	return limit > 0 && t->done_ns >= limit * 1e9 - 1;
}

/* Where this pass ends: the last one of a broken number of loops ends early. */
static double pass_end(const struct sim_thread *t)
{
	if (t->phase->loops <= 0 || t->loops_left >= 1)
		return (double)t->slice_end;
	return (double)t->slice_start + t->loops_left * (double)(t->slice_end - t->slice_start);
}

/* True when it was the last one. */
static bool pass_done(struct sim_thread *t)
{
	t->pos = (double)t->slice_start;
	t->clean_end = 0; /* what was ahead at the end of the slice is not ahead at its start */
	t->loops_left--;
	return t->phase->loops > 0 && t->loops_left <= 1e-9;
}

static double sweep(struct sim_world *w, struct sim_thread *t, double left)
{
	double bytes, ns, rate, last, stop;
	bool over;

	if (t->clean_gen != t->area->gen || t->pos >= t->clean_end) {
		if (!sim_sweep_establish(w, t) || t->debt_ns > 0 || t->wait_until_ns > w->now_ns)
			return left;
	}
	rate = sim_rate_now(w, t);
	last = pass_end(t);
	stop = t->clean_end < last ? t->clean_end : last;
	ns = within_time(t, left);
	bytes = rate * ns;
	if (t->pos + bytes >= stop) {
		bytes = stop - t->pos;
		ns = bytes / rate;
	}
	t->pos += bytes;
	account_bytes(w, t, bytes);
	use(t, ns);
	over = t->pos >= last && pass_done(t);
	if (over || time_is_up(t)) {
		w->used_ns += ns;
		sim_phase_over(w, t);
	}
	return left - ns;
}

/* One of the regions' pages that need attention was hit. */
static void random_touch(
	struct sim_world *w, struct sim_thread *t, double own_wants, double all_wants)
{
	const struct sim_phase *p = t->phase;
	const bool own = !t->all || sim_rng_unit(&w->rng) * (own_wants + all_wants) < own_wants;
	struct sim_region *r = own ? t->own : t->all;
	const uint64_t offset = sim_region_pick(w, r);
	double cost;

	if (offset == UINT64_MAX) {
		r->wants = 0;
		return;
	}
	cost = sim_touch_page(w, t, offset, sim_touch_flags(w, p));
	if (cost < 0)
		return;
	sim_block_contract(w, t->area, sim_block_of(t->area, offset));
	t->debt_ns += cost;
}

static double own_wants(const struct sim_thread *t)
{
	return (1 - t->phase->shared_ratio) * t->own->wants;
}

static double all_wants(const struct sim_thread *t)
{
	return t->all ? t->phase->shared_ratio * t->all->wants : 0;
}

/* An access takes whole lines from memory, however little of them it wants. */
static double access_ns(struct sim_world *w, const struct sim_thread *t, double rate)
{
	const struct sim_phase *p = t->phase;
	const double bytes = p->access_bytes > LINE_BYTES ? p->access_bytes : LINE_BYTES;
	/* The lines of one access need not wait for each other, only for the access before. */
	const double together = p->kind == SIM_PHASE_CHASE ? fmax(w->model->lines_in_flight, 1) : 1;

	return (LINE_BYTES + (bytes - LINE_BYTES) / together) / rate +
	       p->compute_ns / t->core_factor;
}

/*
 * How far a random pattern gets before something happens: it hits a page that wants attention, its
 * phase ends, or the tick does. Returns that time; `random_act` follows when it has come.
 */
static double random_plan(struct sim_world *w, struct sim_thread *t, double left)
{
	const struct sim_phase *p = t->phase;
	const double wants = own_wants(t) + all_wants(t);
	const double each = access_ns(w, t, sim_rate_now(w, t));
	struct sim_plan plan = {
		.pending = true, .n = within_time(t, left) / each, .each = each, .wants = wants};

	if (p->bytes > 0 && t->done_bytes + plan.n * p->access_bytes >= p->bytes)
		plan.n = (p->bytes - t->done_bytes) / p->access_bytes;
	if (wants > 0) {
		const double gap = sim_rng_exponential(&w->rng, 1 / wants);

		plan.hit = gap < plan.n;
		if (plan.hit)
			plan.n = gap;
	}
	t->plan = plan;
	return plan.n * each;
}

/*
 * Others may have been to the pages since: fewer want attention now, so the hit is one of theirs
 * with a probability in proportion (thinning, which is exact for what comes at random).
 */
static double random_act(struct sim_world *w, struct sim_thread *t, double left)
{
	const struct sim_phase *p = t->phase;
	const struct sim_plan plan = t->plan;
	const double own = own_wants(t), all = all_wants(t);

	t->plan.pending = false;
	account_bytes(w, t, plan.n * p->access_bytes);
	use(t, plan.n * plan.each);
	if (plan.hit && own + all > 0 && sim_rng_unit(&w->rng) * plan.wants < own + all)
		random_touch(w, t, own, all);
	if ((p->bytes > 0 && t->done_bytes >= p->bytes * (1 - 1e-12)) || time_is_up(t)) {
		w->used_ns += plan.n * plan.each;
		sim_phase_over(w, t);
	}
	return left - plan.n * plan.each;
}

static double compute(struct sim_world *w, struct sim_thread *t, double left)
{
	const double need = t->phase->time_s * 1e9 - t->done_ns;
	double done = left * t->core_factor;

	if (done < need) {
		t->user_ns += left;
		t->done_ns += done;
		return 0;
	}
	t->user_ns += need / t->core_factor;
	left -= need / t->core_factor;
	w->used_ns += need / t->core_factor;
	sim_phase_over(w, t);
	return left;
}

/* ---- a tick ---- */

/* A sweep that stays within its clean run: nothing can happen to it this tick. */
static bool run_fast(struct sim_world *w, struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	double bytes, ns;

	if (!sim_sweeps(t) || t->debt_ns > 0 || t->wait_until_ns > w->now_ns || p->time_s > 0 ||
		t->clean_gen != t->area->gen)
		return false;
	ns = w->tick_ns - w->model->timer_tick;
	bytes = sim_rate_now(w, t) * ns;
	if (t->pos + bytes >= t->clean_end)
		return false;
	t->pos += bytes;
	account_bytes(w, t, bytes);
	use(t, ns);
	t->system_ns += w->model->timer_tick;
	t->runtime_ns += w->tick_ns;
	return true;
}

/* ---- those who need care, in order of time ---- */

static bool earlier(const struct sim_world *w, uint32_t i, uint32_t k)
{
	return w->slow_key[i] < w->slow_key[k] ||
	       (w->slow_key[i] == w->slow_key[k] && w->slow_list[i] < w->slow_list[k]);
}

static void swap_slow(struct sim_world *w, uint32_t i, uint32_t k)
{
	const uint32_t thread = w->slow_list[i];
	const double key = w->slow_key[i];

	w->slow_list[i] = w->slow_list[k];
	w->slow_key[i] = w->slow_key[k];
	w->slow_list[k] = thread;
	w->slow_key[k] = key;
}

/* The root of a binary heap has a new key: let it sink to its place. */
static void sink(struct sim_world *w, uint32_t n)
{
	for (uint32_t i = 0, child = 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && earlier(w, child + 1, child))
			child++;
		if (!earlier(w, child, i))
			return;
		swap_slow(w, i, child);
		i = child;
	}
}

/* The last entry of a heap is new: let it rise to its place. */
static void rise(struct sim_world *w, uint32_t n)
{
	for (uint32_t i = n - 1; i && earlier(w, i, (i - 1) / 2); i = (i - 1) / 2)
		swap_slow(w, i, (i - 1) / 2);
}

static bool goes_on(const struct sim_thread *t)
{
	return t->left > 1e-3 && t->current && t->state == SIM_T_RUNNABLE;
}

/* One step of a thread: to the next thing that it does to others, or that others may do to it. */
static void step(struct sim_world *w, struct sim_thread *t)
{
	if (t->plan.pending) {
		w->used_ns = w->tick_ns - t->left;
		t->left = random_act(w, t, t->left);
		return;
	}
	t->left = pay(w, t, t->left);
	if (!goes_on(t))
		return;
	w->used_ns = w->tick_ns - t->left;
	if (sim_sweeps(t))
		t->left = sweep(w, t, t->left);
	else if (!sim_is_random(t->phase->kind))
		t->left = compute(w, t, t->left);
}

/* When its next step takes place, ns into the tick. */
static double next_step(struct sim_world *w, struct sim_thread *t)
{
	double at = w->tick_ns - t->left;

	if (sim_is_random(t->phase->kind) && t->debt_ns <= 0 && t->wait_until_ns <= w->now_ns + at)
		at += random_plan(w, t, t->left);
	return at;
}

/* A step of t, and where it has another one this tick, a place in the heap of `n` for that. */
static uint32_t step_first(struct sim_world *w, uint32_t n, uint32_t thread)
{
	struct sim_thread *t = &w->threads[thread];

	step(w, t);
	if (!goes_on(t)) {
		t->plan.pending = false;
		return n;
	}
	w->slow_key[n] = next_step(w, t);
	w->slow_list[n] = thread;
	rise(w, n + 1);
	return n + 1;
}

/* The step of the heap's root; returns how many are left. */
static uint32_t step_root(struct sim_world *w, uint32_t n)
{
	struct sim_thread *t = &w->threads[w->slow_list[0]];

	step(w, t);
	if (goes_on(t)) {
		w->slow_key[0] = next_step(w, t);
	} else {
		t->plan.pending = false;
		swap_slow(w, 0, --n);
	}
	sink(w, n);
	return n;
}

/*
 * All steps of all threads, the earliest first: who comes first to a page is not decided by who has
 * the lower number. All begin at 0, in order of their numbers, which is the order of the list; most
 * are through with their first step. Those that are not go into a heap, which takes the place in
 * the list of those who have begun.
 */
static void run_slow(struct sim_world *w, uint32_t nr)
{
	const uint64_t too_many = w->steps + MAX_STEPS;
	uint32_t begun = 0, n = 0;

	while ((begun < nr || n) && !w->error) {
		const bool root =
			n && (begun == nr || (w->slow_key[0] <= 0 &&
						     w->slow_list[0] < w->slow_list[begun]));

		n = root ? step_root(w, n) : step_first(w, n, w->slow_list[begun++]);
		if (++w->steps % LOOK_STEPS == 0)
			sim_look_up(w);
		if (w->steps > too_many)
			sim_fail(w, -ELOOP, "threads do not get on");
	}
}

static void add_slow(struct sim_world *w, uint32_t n, struct sim_thread *t)
{
	t->left = w->tick_ns - w->model->timer_tick;
	t->system_ns += w->model->timer_tick;
	t->runtime_ns += w->tick_ns;
	t->plan.pending = false;
	w->slow_list[n] = t->id - 1;
}

/* Whoever moved it, the engine hears of it when it has run there. */
static void tell_node(struct sim_world *w, struct sim_thread *t)
{
	if (t->task && t->told_node != NB_NO_NODE && t->told_node != t->node)
		nb_task_moved(w->engine, t->task, t->told_node, t->node, (uint64_t)w->now_ns);
	t->told_node = t->node;
}

static void note_quiet(const struct sim_world *w, struct sim_thread *t)
{
	t->quiet_ns = nb_task_quiet_ns(t->task);
	t->quiet_cut = *w->cut_periods;
}

static void engine_tick(struct sim_world *w, struct sim_thread *t, uint64_t now_ns)
{
	const uint64_t runtime_ns = sim_whole(t->runtime_ns);

	if (t->told_node != t->node)
		tell_node(w, t);
	if (!t->task || (runtime_ns <= t->quiet_ns && t->quiet_cut == *w->cut_periods))
		return;
	if (nb_task_tick_idle(t->task, runtime_ns, now_ns)) {
		if (t->quiet_ns || t->quiet_cut != *w->cut_periods)
			note_quiet(w, t);
		return;
	}
	w->kernel_ns = 0;
	nb_task_tick(w->engine, t->task, runtime_ns, t->node, now_ns);
	t->debt_ns += w->kernel_ns;
	note_quiet(w, t);
}

const char *sim_work_check(const struct sim_world *w)
{
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		const struct sim_thread *t = &w->threads[i];

		if (t->phase != &t->load->phases[t->in_phase])
			return "a thread's phase is not the one of its number";
		if (t->task && t->quiet_ns && t->quiet_cut == *w->cut_periods &&
			!nb_task_tick_idle(t->task, t->quiet_ns, (uint64_t)w->now_ns))
			return "a tick is left out that the engine wants";
	}
	return NULL;
}

/* The area whose first page the thread's phase touches besides, where that page wants attention. */
static struct sim_area_state *wants_besides(const struct sim_world *w, const struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	struct sim_area_state *a;

	if (!p->with || !t->current || !t->task || !t->proc->map[p->with - 1].mapped)
		return NULL;
	a = t->proc->map[p->with - 1].area;
	return (sim_pte_get(w, a, 0) & (SIM_PTE_PRESENT | SIM_PTE_ARMED)) == SIM_PTE_PRESENT ? NULL
											     : a;
}

static void touch_first_page(struct sim_world *w, struct sim_thread *t, struct sim_area_state *a)
{
	struct sim_area_state *const own = t->area;
	double cost;

	t->area = a;
	cost = sim_touch_page(w, t, 0, sim_touch_flags(w, t->phase));
	sim_block_contract(w, a, 0);
	t->area = own;
	t->debt_ns += fmax(cost, 0);
}

/* All who run touch it at once: any of them may be the first. */
static void touch_besides(struct sim_world *w)
{
	uint32_t first = 0, nr = 0;

	if (!w->has_besides)
		return;
	for (uint32_t i = 0; i < w->nr_run; i++)
		nr += wants_besides(w, w->run_list[i]) != NULL;
	if (!nr)
		return;
	first = (uint32_t)sim_rng_below(&w->rng, w->nr_run);
	for (uint32_t i = 0; i < w->nr_run; i++) {
		struct sim_thread *t = w->run_list[(first + i) % w->nr_run];
		struct sim_area_state *a = wants_besides(w, t);

		if (a)
			touch_first_page(w, t, a);
	}
}

void sim_work_tick(struct sim_world *w)
{
	const uint64_t now_ns = (uint64_t)w->now_ns;
	uint32_t slow = 0;

	for (uint32_t i = 0; i < w->nr_run; i++)
		if (!run_fast(w, w->run_list[i]))
			add_slow(w, slow++, w->run_list[i]);
	run_slow(w, slow);
	w->used_ns = 0;
	touch_besides(w);
	sim_backdrop_touch_common(w);
	for (uint32_t i = 0; i < w->nr_run; i++) {
		struct sim_thread *t = w->run_list[i];

		if (t->stack_armed && t->current)
			sim_backdrop_touch(w, t);
		if (t->state == SIM_T_RUNNABLE)
			engine_tick(w, t, now_ns);
	}
}
