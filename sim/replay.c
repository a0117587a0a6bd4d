/* SPDX-License-Identifier: MIT */
/* replay: events of a recording, sorted into who, what and when. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"
#include "replay_parts.h"

int rp_grow(void **at, size_t *nr, size_t *room, size_t size)
{
	if (*nr == *room) {
		const size_t more = *room ? 2 * *room : 16;
		void *grown = reallocarray(*at, more, size);

		if (!grown)
			return -ENOMEM;
		*at = grown;
		*room = more;
	}
	memset((char *)*at + *nr * size, 0, size);
	++*nr;
	return 0;
}

struct sim_replay *sim_replay_new(const char *name)
{
	struct sim_replay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->memory = 1;
	r->thp = SIM_THP_ALWAYS;
	r->last_vma = RP_NONE;
	memset(r->bucket, 0xff, sizeof(r->bucket));
	return r;
}

void sim_replay_free(struct sim_replay *r)
{
	if (!r)
		return;
	free(r->processes.at);
	free(r->threads.at);
	free(r->vmas.at);
	free(r->blocks.at);
	free(r->samples.at);
	free(r->runs.at);
	free(r->presents.at);
	free(r->uses.at);
	free(r->touches.at);
	free(r->weights.at);
	free(r->owners.at);
	free(r->times.at);
	free(r);
}

/* ---- who ---- */

static uint32_t process_add(struct sim_replay *r, const struct nb_event *e)
{
	struct rp_process *p = RP_ADD(&r->processes);

	if (!p)
		return RP_NONE;
	p->mm = e->mm;
	p->start_ns = e->time_ns;
	p->end_ns = e->time_ns;
	return (uint32_t)r->processes.nr - 1;
}

/* The last one of that number, even when its start was not recorded. */
static uint32_t process_of(struct sim_replay *r, const struct nb_event *e)
{
	for (size_t i = r->processes.nr; i-- > 0;) {
		struct rp_process *p = &r->processes.at[i];

		if (p->mm != e->mm || p->gone)
			continue;
		p->end_ns = e->time_ns;
		return (uint32_t)i;
	}
	return process_add(r, e);
}

static uint32_t thread_add(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	uint32_t *bucket = &r->bucket[e->task % RP_TID_BUCKETS];
	struct rp_thread *t = RP_ADD(&r->threads);

	if (!t)
		return RP_NONE;
	*t = (struct rp_thread){.tid = e->task,
		.process = process,
		.next = *bucket,
		.start_ns = e->time_ns,
		.end_ns = RP_NEVER,
		.told_ns = r->processes.at[process].start_ns};
	*bucket = (uint32_t)r->threads.nr - 1;
	return *bucket;
}

static uint32_t thread_of(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	for (uint32_t i = r->bucket[e->task % RP_TID_BUCKETS]; i != RP_NONE;
		i = r->threads.at[i].next) {
		const struct rp_thread *t = &r->threads.at[i];

		if (t->tid == e->task && t->process == process && t->end_ns == RP_NEVER)
			return i;
	}
	return thread_add(r, process, e);
}

/* A new program in the process: what was before is over. */
static void process_over(struct sim_replay *r, const struct nb_event *e)
{
	for (size_t i = 0; i < r->processes.nr; i++)
		r->processes.at[i].gone |= r->processes.at[i].mm == e->mm;
}

/* ---- memory ---- */

static bool is_mapped(const struct rp_vma *v, uint32_t process, uint64_t addr)
{
	return v->process == process && v->unmap_ns == RP_NEVER && addr >= v->start &&
	       addr < v->end;
}

static uint32_t vma_at(struct sim_replay *r, uint32_t process, uint64_t addr)
{
	if (r->last_vma != RP_NONE && is_mapped(&r->vmas.at[r->last_vma], process, addr))
		return r->last_vma;
	for (size_t i = r->vmas.nr; i-- > 0;)
		if (is_mapped(&r->vmas.at[i], process, addr)) {
			r->last_vma = (uint32_t)i;
			return r->last_vma;
		}
	return RP_NONE;
}

static uint32_t block_in(const struct rp_vma *v, uint64_t addr)
{
	return v->first_block + (uint32_t)((addr >> NB_HUGE_SHIFT) - (v->start >> NB_HUGE_SHIFT));
}

static bool is_range(const struct nb_event *e)
{
	const uint64_t bytes = (uint64_t)e->pages << NB_PAGE_SHIFT;

	return e->pages > 0 && e->addr % NB_PAGE_SIZE == 0 && e->addr + bytes > e->addr;
}

static int unmap(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint64_t end = e->addr + ((uint64_t)e->pages << NB_PAGE_SHIFT);

	for (size_t i = 0; i < r->vmas.nr; i++) {
		struct rp_vma *v = &r->vmas.at[i];
		const uint64_t from = v->start > e->addr ? v->start : e->addr;
		const uint64_t to = v->end < end ? v->end : end;

		if (v->process != process || v->unmap_ns != RP_NEVER || from >= to)
			continue;
		v->left -= to - from < v->left ? to - from : v->left;
		if (!v->left)
			v->unmap_ns = e->time_ns;
	}
	return 0;
}

/* What was there is gone, whatever was heard of it. */
static void cover(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint64_t end = e->addr + ((uint64_t)e->pages << NB_PAGE_SHIFT);

	for (size_t i = 0; i < r->vmas.nr; i++) {
		struct rp_vma *v = &r->vmas.at[i];

		if (v->process == process && v->unmap_ns == RP_NEVER && v->start < end &&
			v->end > e->addr)
			v->unmap_ns = e->time_ns;
	}
}

static int map(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint64_t end = e->addr + ((uint64_t)e->pages << NB_PAGE_SHIFT);
	const uint64_t nr = ((end - 1) >> NB_HUGE_SHIFT) - (e->addr >> NB_HUGE_SHIFT) + 1;
	struct rp_vma *v;

	cover(r, process, e);
	if (r->blocks.nr + nr > RP_MAX_BLOCKS)
		return -E2BIG;
	v = RP_ADD(&r->vmas);
	if (!v)
		return -ENOMEM;
	*v = (struct rp_vma){.process = process,
		.start = e->addr,
		.end = end,
		.map_ns = e->time_ns,
		.unmap_ns = RP_NEVER,
		.left = end - e->addr,
		.first_block = (uint32_t)r->blocks.nr,
		.nr_blocks = (uint32_t)nr};
	for (uint64_t i = 0; i < nr; i++) {
		struct rp_block *b = RP_ADD(&r->blocks);

		if (!b)
			return -ENOMEM;
		*b = (struct rp_block){.armed_ns = RP_NEVER,
			.present_ns = RP_NEVER,
			.vma = (uint32_t)r->vmas.nr - 1,
			.first_user = RP_NONE,
			.owner = RP_NONE,
			.toucher = RP_NONE};
	}
	return 0;
}

/* Blocks of the event's range that lie in the VMA at its start. */
static bool blocks_of(struct sim_replay *r, uint32_t process, const struct nb_event *e,
	uint32_t *first, uint32_t *end)
{
	const uint32_t vma = vma_at(r, process, e->addr);
	uint64_t last;

	if (vma == RP_NONE)
		return false;
	last = e->addr + ((uint64_t)e->pages << NB_PAGE_SHIFT) - 1;
	if (last >= r->vmas.at[vma].end)
		last = r->vmas.at[vma].end - 1;
	*first = block_in(&r->vmas.at[vma], e->addr);
	*end = block_in(&r->vmas.at[vma], last) + 1;
	return true;
}

/* One page of each block, unless one waits already. */
static int arm(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	uint32_t first, end;

	if (!blocks_of(r, process, e, &first, &end))
		return 0;
	for (uint32_t b = first; b < end; b++)
		if (r->blocks.at[b].armed_ns == RP_NEVER)
			r->blocks.at[b].armed_ns = e->time_ns;
	return 0;
}

static int present(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	struct rp_present *p;
	uint32_t first, end;

	if (!blocks_of(r, process, e, &first, &end))
		return 0;
	p = RP_ADD(&r->presents);
	if (!p)
		return -ENOMEM;
	*p = (struct rp_present){.ns = e->time_ns,
		.first_block = first,
		.nr_blocks = end - first,
		.nr_runs = r->runs.nr,
		.node = e->node_to};
	for (uint32_t b = first; b < end; b++)
		if (r->blocks.at[b].present_ns == RP_NEVER)
			r->blocks.at[b].present_ns = e->time_ns;
	return 0;
}

/* ---- use ---- */

static float weight_of(const struct rp_block *b, uint64_t now_ns)
{
	const double s = b->armed_ns == RP_NEVER ? 0 : (double)(now_ns - b->armed_ns) / 1e9;

	return (float)(s > RP_PROMPT_S ? RP_PROMPT_S / s : 1);
}

static int fault(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint32_t thread = thread_of(r, process, e), vma = vma_at(r, process, e->addr);
	struct rp_sample *s;
	struct rp_block *b;

	if (thread == RP_NONE)
		return -ENOMEM;
	if (vma == RP_NONE || !e->task)
		return 0;
	if (r->samples.nr == RP_MAX_SAMPLES)
		return -E2BIG;
	s = RP_ADD(&r->samples);
	if (!s)
		return -ENOMEM;
	s->block = block_in(&r->vmas.at[vma], e->addr);
	b = &r->blocks.at[s->block];
	s->ns = e->time_ns;
	s->thread = thread;
	s->weight = weight_of(b, e->time_ns);
	b->armed_ns = RP_NEVER;
	if (b->first_user == RP_NONE)
		b->first_user = thread;
	r->threads.at[thread].samples++;
	r->threads.at[thread].writes += e->write;
	return 0;
}

/* No more than there was time for: what ran before the recording is not part of it. */
static int ran(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint32_t thread = thread_of(r, process, e);
	struct rp_run *run = r->runs.nr < RP_MAX_RUNS ? RP_ADD(&r->runs) : NULL;
	struct rp_thread *t;
	double most;

	if (thread == RP_NONE || !run)
		return r->runs.nr < RP_MAX_RUNS ? -ENOMEM : -E2BIG;
	t = &r->threads.at[thread];
	most = (double)(e->time_ns - t->told_ns) / 1e9;
	*run = (struct rp_run){.from_ns = t->told_ns,
		.to_ns = e->time_ns,
		.thread = thread,
		.node = e->node_to,
		.run_s = e->arg / 1e6 < most ? e->arg / 1e6 : most};
	/* A thread that was found late began to run before. */
	if (t->start_ns > e->time_ns - (uint64_t)(run->run_s * 1e9))
		t->start_ns = e->time_ns - (uint64_t)(run->run_s * 1e9);
	if (run->from_ns < t->start_ns)
		run->from_ns = t->start_ns;
	t->told_ns = e->time_ns;
	return 0;
}

/*
 * It comes right after the run that it belongs to. A wait is told of when it is over, so it may be
 * longer than the time since the last one was; but what was before the recording is not part of it.
 */
static int waited(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	struct rp_run *run = r->runs.nr ? &r->runs.at[r->runs.nr - 1] : NULL;
	double most, wait = e->arg / 1e6;

	if (!run || r->threads.at[run->thread].tid != e->task ||
		r->threads.at[run->thread].process != process)
		return 0;
	most = (double)(run->to_ns - run->from_ns) / 1e9 - run->run_s;
	if (!r->threads.at[run->thread].waits && wait > most)
		wait = most;
	r->threads.at[run->thread].waits = true;
	run->wait_s = wait;
	return 0;
}

static int task_gone(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	const uint32_t thread = thread_of(r, process, e);

	if (thread == RP_NONE)
		return -ENOMEM;
	r->threads.at[thread].end_ns = e->time_ns;
	return 0;
}

static int take(struct sim_replay *r, uint32_t process, const struct nb_event *e)
{
	switch (e->type) {
	case NB_EVENT_TASK_NEW:
		return thread_of(r, process, e) == RP_NONE ? -ENOMEM : 0;
	case NB_EVENT_TASK_GONE:
		return task_gone(r, process, e);
	case NB_EVENT_TASK_RUN:
		return ran(r, process, e);
	case NB_EVENT_TASK_WAIT:
		return waited(r, process, e);
	case NB_EVENT_MM_GONE:
		r->processes.at[process].gone = true;
		return 0;
	case NB_EVENT_HINT_FAULT:
		return fault(r, process, e);
	default:
		break;
	}
	if (!is_range(e))
		return 0;
	switch (e->type) {
	case NB_EVENT_VMA_MAP:
		return map(r, process, e);
	case NB_EVENT_VMA_UNMAP:
		return unmap(r, process, e);
	case NB_EVENT_SCAN_ARM:
		return arm(r, process, e);
	case NB_EVENT_PRESENT:
		return present(r, process, e);
	default:
		return 0;
	}
}

int sim_replay_event(struct sim_replay *r, const struct nb_event *e, char *why, size_t why_len)
{
	uint32_t process;
	int err = -ENOMEM;

	r->nr_events++;
	if (!e->mm)
		return 0;
	if (e->type == NB_EVENT_MM_NEW)
		process_over(r, e);
	process = process_of(r, e);
	if (process != RP_NONE)
		err = take(r, process, e);
	if (!err)
		return 0;
	return nb_why(why, why_len, err, "%s: event %llu: %s", r->name,
		(unsigned long long)r->nr_events,
		err == -ENOMEM ? "out of memory"
			       : "too much for a replay: expected at most 8 TiB mapped in all, and "
				 "16 M samples");
}
