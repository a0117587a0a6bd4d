/* SPDX-License-Identifier: MIT */
/* replay_use: who used what when, from samples; see replay.h for how. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"
#include "jobfile.h"
#include "replay_parts.h"

enum {
	MAX_ENTRIES = 4 << 20, /* blocks used x intervals */
	MAX_WEIGHTS = 64 << 20,
	MAX_PIECES = 50000, /* areas x intervals: phases of a thread are counted in 16 bits */
	MAX_TALLY = 16,
};

static const double INTERVAL_S = 0.25; /* and no shorter: runs are told of that often */
/* Runs that were told of right before memory was found belong to it. */
static const uint64_t RIGHT_BEFORE_NS = 40000000;

/* A share of a block's use by a thread in an interval. */
struct entry {
	uint32_t thread, interval, block;
	float weight;
};

struct entries {
	RP_LIST(struct entry, list);
};

/* ---- intervals ---- */

uint32_t rp_interval(const struct rp_process *p, uint64_t ns)
{
	const double s = ns > p->start_ns ? (double)(ns - p->start_ns) / 1e9 : 0;
	const double i = s / p->interval_s;

	return i < p->nr_intervals ? (uint32_t)i : p->nr_intervals - 1;
}

static uint64_t interval_start(const struct rp_process *p, uint32_t i)
{
	return p->start_ns + (uint64_t)(i * p->interval_s * 1e9);
}

static void choose_intervals(struct sim_replay *r, uint32_t most)
{
	for (size_t i = 0; i < r->processes.nr; i++) {
		struct rp_process *p = &r->processes.at[i];
		const double s = (double)(p->end_ns - p->start_ns) / 1e9;
		const double n = ceil(s / INTERVAL_S);

		p->nr_intervals = n < 1 ? 1 : n < most ? (uint32_t)n : most;
		while (p->nr_intervals > 1 && (uint64_t)p->nr_intervals * p->nr_areas > MAX_PIECES)
			p->nr_intervals /= 2;
		p->interval_s = s > 0 ? s / p->nr_intervals : INTERVAL_S;
		memset(p->touches, 0, sizeof(p->touches));
	}
}

/* ---- numbers ---- */

static void mark_used(struct sim_replay *r)
{
	for (size_t i = 0; i < r->samples.nr; i++)
		r->vmas.at[r->blocks.at[r->samples.at[i].block].vma].used = true;
	for (size_t i = 0; i < r->presents.nr; i++)
		r->vmas.at[r->blocks.at[r->presents.at[i].first_block].vma].used = true;
}

static int number_all(struct sim_replay *r)
{
	mark_used(r);
	if (r->threads.nr > SIM_JOB_MAX_THREADS)
		return -E2BIG;
	for (size_t i = 0; i < r->threads.nr; i++) {
		struct rp_thread *t = &r->threads.at[i];

		t->number = r->processes.at[t->process].nr_threads++;
	}
	for (size_t i = 0; i < r->vmas.nr; i++) {
		struct rp_vma *v = &r->vmas.at[i];

		if (!v->used)
			continue;
		v->number = r->processes.at[v->process].nr_areas++;
		if (v->number == RP_MAX_AREAS)
			return -E2BIG;
	}
	return 0;
}

/* ---- run time ---- */

static double overlap_s(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	const uint64_t from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;

	return to > from ? (double)(to - from) / 1e9 : 0;
}

/* A run is spread evenly over the time it was told for. */
static void spread_run(struct sim_replay *r, const struct rp_run *run)
{
	const struct rp_process *p = &r->processes.at[r->threads.at[run->thread].process];
	struct rp_time *times = &r->times.at[(size_t)run->thread * RP_MAX_INTERVALS];
	const double all = (double)(run->to_ns - run->from_ns) / 1e9;

	for (uint32_t i = rp_interval(p, run->from_ns); all > 0 && i <= rp_interval(p, run->to_ns);
		i++) {
		const uint64_t end = i + 1 < p->nr_intervals ? interval_start(p, i + 1) : RP_NEVER;
		const double part =
			overlap_s(run->from_ns, run->to_ns, interval_start(p, i), end) / all;

		times[i].run_s += part * run->run_s;
		times[i].wait_s += part * run->wait_s;
	}
}

static int sum_times(struct sim_replay *r)
{
	const size_t nr = r->threads.nr * RP_MAX_INTERVALS;

	free(r->times.at);
	r->times.at = calloc(nr + 1, sizeof(*r->times.at));
	if (!r->times.at)
		return -ENOMEM;
	for (size_t i = 0; i < r->runs.nr; i++)
		spread_run(r, &r->runs.at[i]);
	return 0;
}

/* ---- first touches ---- */

struct candidates {
	double most_s; /* the longest run */
	uint32_t best;
	const struct rp_run *first, *end; /* what is told of right before */
	const struct rp_present *p;
	bool any_node;
};

/* Who ran for a moment only was not it; nor who ran on another node, unless all did: threads move,
 * and where one runs is known for the end of its run. */
static bool may_have_touched(
	const struct sim_replay *r, const struct candidates *c, const struct rp_run *run)
{
	const uint32_t process = r->vmas.at[r->blocks.at[c->p->first_block].vma].process;

	return r->threads.at[run->thread].process == process && run->run_s > 0 &&
	       run->run_s >= c->most_s / 2 &&
	       (c->any_node || c->p->node < 0 || run->node < 0 || run->node == c->p->node);
}

static const struct rp_run *longest(const struct sim_replay *r, const struct candidates *c)
{
	const struct rp_run *best = NULL;

	for (const struct rp_run *run = c->first; run < c->end; run++)
		if (may_have_touched(r, c, run) && (!best || run->run_s > best->run_s))
			best = run;
	return best;
}

static void find_candidates(
	const struct sim_replay *r, const struct rp_present *p, struct candidates *c)
{
	const struct rp_run *best;

	*c = (struct candidates){
		.best = RP_NONE, .p = p, .end = r->runs.at + p->nr_runs, .any_node = true};
	c->first = c->end;
	while (c->first > r->runs.at && c->first[-1].to_ns + RIGHT_BEFORE_NS >= p->ns)
		c->first--;
	best = longest(r, c);
	if (!best)
		return;
	c->most_s = best->run_s;
	c->any_node = false;
	c->any_node = !longest(r, c);
	c->best = longest(r, c)->thread;
}

static bool ran(const struct candidates *c, uint32_t thread)
{
	for (const struct rp_run *run = c->first; run < c->end; run++)
		if (run->thread == thread && run->run_s > 0)
			return true;
	return false;
}

/* Who touched the block before it, in an earlier look or going on from one, and still ran: memory
 * is mostly filled in order of address. RP_NONE: nobody is known to. */
static uint32_t goes_on(const struct sim_replay *r, const struct candidates *c, uint32_t block)
{
	const struct rp_block *b = &r->blocks.at[block];
	const struct rp_block *before = block ? b - 1 : b;

	if (before == b || before->vma != b->vma || before->toucher == RP_NONE)
		return RP_NONE;
	if (before->present_ns == b->present_ns && !before->goes_on)
		return RP_NONE;
	return ran(c, before->toucher) ? before->toucher : RP_NONE;
}

/* Its first user, where that one may have been it; else who ran longest. One that nobody was seen
 * to use goes with the block before it, if it was found together with that. */
static uint32_t toucher_of(
	const struct sim_replay *r, const struct candidates *c, const struct rp_block *b)
{
	if (c->best == RP_NONE)
		return b->first_user;
	if (b->first_user == RP_NONE)
		return b > &r->blocks.at[c->p->first_block] ? b[-1].toucher : c->best;
	for (const struct rp_run *run = c->first; run < c->end; run++)
		if (run->thread == b->first_user && may_have_touched(r, c, run))
			return b->first_user;
	return c->best;
}

static int add_touch(
	struct sim_replay *r, const struct rp_present *p, uint32_t block, uint32_t thread)
{
	const uint32_t vma = r->blocks.at[block].vma, at = block - r->vmas.at[vma].first_block;
	struct rp_process *process = &r->processes.at[r->vmas.at[vma].process];
	struct rp_touch *last = r->touches.nr ? &r->touches.at[r->touches.nr - 1] : NULL;
	const uint32_t interval = rp_interval(process, p->ns);

	if (last && last->thread == thread && last->interval == interval && last->vma == vma &&
		last->first + last->nr == at) {
		last->nr++;
		return 0;
	}
	last = RP_ADD(&r->touches);
	if (!last)
		return -ENOMEM;
	*last = (struct rp_touch){
		.thread = thread, .interval = interval, .vma = vma, .first = at, .nr = 1};
	process->touches[interval] = true;
	return 0;
}

static int by_touch(const void *a, const void *b)
{
	const struct rp_touch *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->interval != y->interval)
		return x->interval < y->interval ? -1 : 1;
	if (x->vma != y->vma)
		return x->vma < y->vma ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int find_touches(struct sim_replay *r)
{
	int err = 0;

	r->touches.nr = 0;
	for (size_t i = 0; i < r->presents.nr && !err; i++) {
		const struct rp_present *p = &r->presents.at[i];
		struct candidates c;

		find_candidates(r, p, &c);
		for (uint32_t k = 0; k < p->nr_blocks && !err; k++) {
			const uint32_t block = p->first_block + k;
			struct rp_block *b = &r->blocks.at[block];

			b->toucher = goes_on(r, &c, block);
			b->goes_on = b->toucher != RP_NONE;
			if (!b->goes_on)
				b->toucher = toucher_of(r, &c, b);
			if (b->toucher != RP_NONE)
				err = add_touch(r, p, block, b->toucher);
		}
	}
	if (!err && r->touches.nr)
		qsort(r->touches.at, r->touches.nr, sizeof(*r->touches.at), by_touch);
	return err;
}

/* ---- samples -> entries ---- */

static int by_block(const void *a, const void *b)
{
	const struct rp_sample *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* A block's use by one thread for a while. */
struct spell {
	uint32_t block, thread;
	uint64_t from_ns, to_ns;
	double weight;
};

static int add_spell(struct sim_replay *r, struct entries *e, const struct spell *s)
{
	const struct rp_thread *t = &r->threads.at[s->thread];
	const struct rp_process *p = &r->processes.at[t->process];
	const uint64_t from = s->from_ns > t->start_ns ? s->from_ns : t->start_ns;
	const uint64_t to = s->to_ns < t->end_ns ? s->to_ns : t->end_ns;

	for (uint32_t i = rp_interval(p, from); from < to && i <= rp_interval(p, to); i++) {
		const uint64_t end = i + 1 < p->nr_intervals ? interval_start(p, i + 1) : RP_NEVER;
		const double share = s->weight * overlap_s(from, to, interval_start(p, i), end);
		struct entry *entry;

		if (share <= 0)
			continue;
		entry = RP_ADD(&e->list);
		if (!entry)
			return -ENOMEM;
		*entry = (struct entry){s->thread, i, s->block, (float)share};
	}
	return 0;
}

/* After its last sample a block is used no more than the page says that is still waiting. */
static int add_last(struct sim_replay *r, struct entries *e, struct spell s)
{
	const uint64_t armed = r->blocks.at[s.block].armed_ns, end = s.to_ns;
	int err;

	if (armed == RP_NEVER || armed >= end)
		return add_spell(r, e, &s);
	s.to_ns = armed > s.from_ns ? armed : s.from_ns;
	err = add_spell(r, e, &s);
	s.from_ns = s.to_ns;
	s.to_ns = end;
	s.weight = fmin(1, RP_PROMPT_S / ((double)(end - armed) / 1e9));
	return err ? err : add_spell(r, e, &s);
}

/* The samples of one block, [s, s + n). */
static int add_block(struct sim_replay *r, struct entries *e, const struct rp_sample *s, size_t n)
{
	const struct rp_block *b = &r->blocks.at[s->block];
	const struct rp_vma *v = &r->vmas.at[b->vma];
	const struct rp_process *p = &r->processes.at[v->process];
	uint64_t from = b->present_ns < s->ns ? b->present_ns : v->map_ns;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct spell spell = {.block = s[i].block,
			.thread = s[i].thread,
			.from_ns = from,
			.weight = (double)s[i].weight};

		if (i + 1 < n) {
			spell.to_ns = s[i].ns + (s[i + 1].ns - s[i].ns) / 2;
			err = add_spell(r, e, &spell);
		} else {
			spell.to_ns = v->unmap_ns < p->end_ns ? v->unmap_ns : p->end_ns;
			err = add_last(r, e, spell);
		}
		from = spell.to_ns;
	}
	return err;
}

/* Which of the threads had it longest, of the first few. */
static uint32_t owner_among(const struct rp_sample *s, size_t n)
{
	uint32_t thread[MAX_TALLY], count[MAX_TALLY], nr = 0, best = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < nr && thread[k] != s[i].thread)
			k++;
		if (k == MAX_TALLY)
			continue;
		if (k == nr) {
			thread[nr] = s[i].thread;
			count[nr++] = 0;
		}
		count[k]++;
	}
	for (uint32_t k = 1; k < nr; k++)
		if (count[k] > count[best])
			best = k;
	return thread[best];
}

static int add_blocks(struct sim_replay *r, struct entries *e)
{
	const struct rp_sample *s = r->samples.at;
	int err = 0;

	for (size_t i = 0, end; i < r->samples.nr && !err; i = end) {
		for (end = i + 1; end < r->samples.nr && s[end].block == s[i].block;)
			end++;
		r->blocks.at[s[i].block].owner = owner_among(&s[i], end - i);
		err = add_block(r, e, &s[i], end - i);
		if (!err && e->list.nr > MAX_ENTRIES)
			err = -E2BIG;
	}
	return err;
}

/* ---- entries -> uses ---- */

static int by_entry(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->interval != y->interval)
		return x->interval < y->interval ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return 0;
}

static bool same_use(const struct sim_replay *r, const struct entry *a, const struct entry *b)
{
	return a->thread == b->thread && a->interval == b->interval &&
	       r->blocks.at[a->block].vma == r->blocks.at[b->block].vma;
}

/* One use from the entries [e, e + n), all of one VMA. */
static int add_use(struct sim_replay *r, const struct entry *e, size_t n)
{
	const uint32_t vma = r->blocks.at[e->block].vma;
	const uint32_t nr = e[n - 1].block - e->block + 1;
	const size_t weights = r->weights.nr;
	struct rp_use *use = RP_ADD(&r->uses);

	if (!use)
		return -ENOMEM;
	*use = (struct rp_use){.thread = e->thread,
		.interval = e->interval,
		.vma = vma,
		.first = e->block - r->vmas.at[vma].first_block,
		.nr = nr,
		.weights = weights};
	if (weights + nr > MAX_WEIGHTS)
		return -E2BIG;
	for (uint32_t i = 0; i < nr; i++)
		if (rp_grow((void **)&r->weights.at, &r->weights.nr, &r->weights.room,
			    sizeof(*r->weights.at)))
			return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r->weights.at[weights + (e[i].block - e->block)] += e[i].weight;
		use->share += (double)e[i].weight;
	}
	return 0;
}

/* Sums become shares of the thread's accesses in the interval. */
static void normalise(struct sim_replay *r)
{
	struct rp_use *u = r->uses.at;

	for (size_t i = 0, end; i < r->uses.nr; i = end) {
		double sum = 0;

		for (end = i; end < r->uses.nr && u[end].thread == u[i].thread &&
			      u[end].interval == u[i].interval;
			end++)
			sum += u[end].share;
		for (size_t k = i; k < end; k++)
			u[k].share /= sum;
	}
}

static int make_uses(struct sim_replay *r, struct entries *e)
{
	const struct entry *at;
	int err = add_blocks(r, e);

	if (err || !e->list.nr)
		return err;
	qsort(e->list.at, e->list.nr, sizeof(*e->list.at), by_entry);
	at = e->list.at;
	for (size_t i = 0, end; i < e->list.nr && !err; i = end) {
		for (end = i + 1; end < e->list.nr && same_use(r, &at[i], &at[end]);)
			end++;
		err = add_use(r, &at[i], end - i);
	}
	normalise(r);
	return err;
}

/* ---- all of it ---- */

static int try_intervals(struct sim_replay *r, uint32_t most)
{
	struct entries e = {0};
	int err;

	choose_intervals(r, most);
	r->uses.nr = 0;
	r->weights.nr = 0;
	err = sum_times(r);
	if (!err)
		err = find_touches(r);
	if (!err)
		err = make_uses(r, &e);
	free(e.list.at);
	return err;
}

static void count_user(struct rp_vma *v, uint32_t thread)
{
	v->users += v->mark != thread + 1;
	v->mark = thread + 1;
}

/* Both lists are by thread. */
static void count_users(struct sim_replay *r)
{
	size_t use = 0, touch = 0;

	for (uint32_t t = 0; t < r->threads.nr; t++) {
		for (; use < r->uses.nr && r->uses.at[use].thread == t; use++)
			count_user(&r->vmas.at[r->uses.at[use].vma], t);
		for (; touch < r->touches.nr && r->touches.at[touch].thread == t; touch++)
			count_user(&r->vmas.at[r->touches.at[touch].vma], t);
	}
}

static int fill_owners(struct sim_replay *r)
{
	for (size_t i = 0; i < r->blocks.nr; i++) {
		uint32_t *owner = RP_ADD(&r->owners);

		if (!owner)
			return -ENOMEM;
		*owner = r->blocks.at[i].owner == RP_NONE
				 ? RP_NONE
				 : r->threads.at[r->blocks.at[i].owner].number;
	}
	return 0;
}

int sim_replay_use(struct sim_replay *r)
{
	int err = number_all(r);

	if (r->samples.nr)
		qsort(r->samples.at, r->samples.nr, sizeof(*r->samples.at), by_block);
	/* Long recordings of much memory are told more coarsely. */
	for (uint32_t most = RP_MAX_INTERVALS; !err; most /= 2) {
		err = try_intervals(r, most);
		if (err != -E2BIG || most == 1)
			break;
		err = 0;
	}
	if (err)
		return err;
	count_users(r);
	return fill_owners(r);
}
