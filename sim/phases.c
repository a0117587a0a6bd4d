/* SPDX-License-Identifier: MIT */
/*
 * phases: how a thread gets from phase to phase of its job: what begins with one, who waits for
 * whom between them, and how threads and processes end.
 */
#include "world.h"

#include <errno.h>
#include <math.h>

enum { MAX_INSTANT_PHASES = 100000 };

static void set_phase(struct sim_world *w, struct sim_thread *t, uint16_t phase)
{
	w->convoy_stale = true;
	t->in_phase = phase;
	t->phase = &t->load->phases[phase];
	sim_pace_forget(t);
}

static void set_slice(struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	const uint64_t bytes = t->area->bytes;
	const uint64_t n = t->proc->load->nr_threads;
	const uint64_t pages = bytes >> NB_PAGE_SHIFT;

	t->slice_start = 0;
	t->slice_end = bytes;
	if (p->slice == SIM_SLICE_PART) {
		t->slice_start = p->from;
		t->slice_end = p->to;
	}
	if (p->slice != SIM_SLICE_OWN)
		return;
	t->slice_start = pages * t->load->number / n << NB_PAGE_SHIFT;
	t->slice_end = pages * (t->load->number + 1) / n << NB_PAGE_SHIFT;
}

static bool set_area(struct sim_world *w, struct sim_thread *t)
{
	struct sim_mapping *m = &t->proc->map[t->phase->area];

	t->area = m->area;
	set_slice(t);
	if (m->mapped && t->slice_end > t->slice_start)
		return true;
	sim_fail(w, -EINVAL,
		m->mapped ? "a thread's slice of its area is empty"
			  : "a phase uses an area that is not mapped");
	return false;
}

static void set_regions(struct sim_world *w, struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;

	sim_region_leave(t->own);
	t->own = sim_region_get(w, t->area, t->slice_start, t->slice_end, p);
	t->all = p->shared_ratio > 0 ? sim_region_get(w, t->area, 0, t->area->bytes, p) : NULL;
	if (!t->own || (p->shared_ratio > 0 && !t->all))
		sim_fail(w, -ENOMEM, "no memory for an access pattern");
	t->own_version = t->own ? t->own->version - 1 : 0;
}

static void block(struct sim_world *w, struct sim_thread *t, uint8_t state)
{
	if (t->cpu >= 0 && t->state == SIM_T_RUNNABLE)
		sim_sched_sleep(w, t);
	t->state = state;
}

static void unblock(struct sim_world *w, struct sim_thread *t);

/* Let go everybody of the process who waits in `state`. */
static void release(struct sim_world *w, struct sim_process *p, uint8_t state)
{
	for (uint32_t i = 0; i < p->load->nr_threads; i++) {
		struct sim_thread *t = &w->threads[p->load->first_thread + i];

		if (t->state == state)
			unblock(w, t);
	}
}

static void thread_done(struct sim_world *w, struct sim_thread *t)
{
	struct sim_process *p = t->proc;

	block(w, t, SIM_T_DONE);
	sim_thread_ends(w, t);
	if (t->task)
		nb_task_gone(w->engine, t->task, (uint64_t)w->now_ns);
	t->task = NULL;
	p->live_threads--;
	if (!p->live_threads) {
		w->end_ns = w->now_ns + w->used_ns;
		sim_process_exit(w, p);
	} else if (p->at_barrier && p->at_barrier == p->live_threads) {
		p->at_barrier = 0;
		release(w, p, SIM_T_BARRIER);
	}
}

static void set_policy(struct sim_world *w, struct sim_thread *t, const struct sim_phase *p)
{
	int err = 0;

	if (p->kind == SIM_PHASE_POLICY) {
		nb_task_policy(w->engine, t->task, &p->policy, (uint64_t)w->now_ns);
		return;
	}
	if (!set_area(w, t))
		return;
	if (!p->lazy || nb_has(&w->config, NB_MECH_MPOL_LAZY)) {
		sim_split_at(w, t, t->slice_start);
		sim_split_at(w, t, t->slice_end);
	}
	w->kernel_ns = 0;
	err = nb_vma_policy(w->engine, t->proc->mm, t->area->va + t->slice_start,
		t->area->va + t->slice_end, &p->policy, p->lazy, (uint64_t)w->now_ns);
	t->debt_ns += w->kernel_ns;
	/* A system without lazy moves or NOOP refuses them, as its kernel would: the program goes
	 * on. */
	if (err && err != -EOPNOTSUPP)
		sim_fail(w, err, "mbind was refused");
}

static int next_phase(struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;

	if (p->kind != SIM_PHASE_GOTO)
		return t->in_phase + 1;
	if (p->loops > 0) {
		if (!t->goto_left[t->in_phase])
			t->goto_left[t->in_phase] = (uint64_t)p->loops + 1;
		if (!--t->goto_left[t->in_phase])
			return t->in_phase + 1;
	}
	return p->target;
}

/* Others are to come first. A thread that begins by waiting is not there yet while it waits. */
static bool waits(struct sim_world *w, struct sim_thread *t, const struct sim_phase *p)
{
	struct sim_process *proc = t->proc;

	if (p->main_only && t->load->number != 0) {
		/* Once more than this thread has waited for: thread 0 was here before. */
		if (proc->main_done > t->main_seen)
			t->main_seen++;
		else
			block(w, t, SIM_T_MAIN);
		return true;
	}
	if (p->kind != SIM_PHASE_BARRIER)
		return false;
	if (++proc->at_barrier < proc->live_threads) {
		block(w, t, SIM_T_BARRIER);
		return true;
	}
	proc->at_barrier = 0;
	release(w, proc, SIM_T_BARRIER);
	return true;
}

/* Enter phase t->in_phase. True: it is over already (or the thread is blocked: state says so). */
static bool enter_phase(struct sim_world *w, struct sim_thread *t)
{
	const struct sim_phase *p = t->phase;
	struct sim_process *proc = t->proc;

	t->done_bytes = 0;
	t->done_ns = 0;
	t->clean_end = 0;
	t->rate_epoch = 0;
	if (waits(w, t, p))
		return true;
	if (!t->task)
		sim_thread_begin(w, t);
	if (w->error)
		return true;
	switch ((enum sim_phase_kind)p->kind) {
	case SIM_PHASE_SWEEP:
		if (set_area(w, t)) {
			t->pos = (double)t->slice_start;
			t->loops_left = p->loops;
		}
		return false;
	case SIM_PHASE_UNIFORM:
	case SIM_PHASE_ZIPF:
	case SIM_PHASE_CHASE:
	case SIM_PHASE_HOTSET:
		if (set_area(w, t))
			set_regions(w, t);
		return false;
	case SIM_PHASE_COMPUTE:
		return false;
	case SIM_PHASE_SLEEP:
		t->wake_ns = w->now_ns + w->used_ns + p->time_s * 1e9;
		if (t->wake_ns < w->next_wake_ns)
			w->next_wake_ns = t->wake_ns;
		block(w, t, SIM_T_SLEEPING);
		return true;
	case SIM_PHASE_BARRIER:
		return true;
	case SIM_PHASE_POLICY:
	case SIM_PHASE_MBIND:
		set_policy(w, t, p);
		return true;
	case SIM_PHASE_MAP:
		sim_process_map(w, proc, p->area);
		return true;
	case SIM_PHASE_UNMAP:
		if (++proc->map[p->area].left >= p->loops)
			sim_process_unmap(w, proc, p->area);
		return true;
	case SIM_PHASE_GOTO:
	case SIM_NR_PHASE_KINDS:
		return true;
	}
	return true;
}

/* Thread 0 passed a main-only phase: the others need not wait for it any more. */
static void main_passed(struct sim_world *w, struct sim_thread *t)
{
	if (t->load->number != 0 || !t->phase->main_only)
		return;
	t->proc->main_done++;
	release(w, t->proc, SIM_T_MAIN);
}

void sim_phase_over(struct sim_world *w, struct sim_thread *t)
{
	for (int i = 0; i < MAX_INSTANT_PHASES && !w->error; i++) {
		int next;

		main_passed(w, t);
		next = next_phase(t);
		if (next >= (int)t->load->nr_phases) {
			thread_done(w, t);
			return;
		}
		set_phase(w, t, (uint16_t)next);
		if (!enter_phase(w, t) || (t->state != SIM_T_RUNNABLE && t->state != SIM_T_NEW))
			return;
	}
	if (!w->error)
		sim_fail(w, -ELOOP, "a thread's phases go round without taking time");
}

static void wake(struct sim_world *w, struct sim_thread *t)
{
	if (t->state != SIM_T_NEW || w->error)
		return;
	sim_sched_wake(w, t);
	sim_backdrop_settle(w, t);
}

static void unblock(struct sim_world *w, struct sim_thread *t)
{
	if (t->state == SIM_T_MAIN)
		t->main_seen++;
	t->state = SIM_T_NEW;
	sim_phase_over(w, t);
	wake(w, t);
}

void sim_phase_start(struct sim_world *w, struct sim_thread *t)
{
	t->state = SIM_T_NEW;
	set_phase(w, t, 0);
	if (enter_phase(w, t) && t->state == SIM_T_NEW)
		sim_phase_over(w, t);
	wake(w, t);
}

void sim_phase_wake(struct sim_world *w)
{
	if (w->now_ns < w->next_wake_ns)
		return;
	w->next_wake_ns = INFINITY;
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		struct sim_thread *t = &w->threads[i];

		if (t->state != SIM_T_SLEEPING)
			continue;
		if (t->wake_ns <= w->now_ns)
			unblock(w, t);
		else if (t->wake_ns < w->next_wake_ns)
			w->next_wake_ns = t->wake_ns;
	}
}
