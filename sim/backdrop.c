/* SPDX-License-Identifier: MIT */
/*
 * backdrop: what every process maps besides the areas of its job: its program and libraries, and a
 * stack with a guard for each thread. They hold next to nothing, but scans pass them, one by one,
 * and rules that scan one VMA at a time come to them first. Only on machines that say how large a
 * stack is (stack_mib); a stack has STACK_PAGES pages that its thread touches all the time.
 *
 * Stacks lie below the areas, as mmap gives addresses from the top down and makes
 * stacks after a program's large memory; libraries lie above.
 *
 * The thread that makes the others and waits for their end is there as well: it never runs, but it
 * is the one that a process begins with, and new threads scan otherwise than the first.
 */
#include "world.h"

#include <errno.h>

enum {
	STACK_PAGES = 2,
	LIBRARIES = 4,	      /* ld.so, libc, libnuma, and the program itself */
	LIBRARY_RO_PARTS = 3, /* headers, text, constants */
};

static const uint64_t STACKS_AT = UINT64_C(1) << 32;
static const uint64_t STACK_STRIDE = UINT64_C(1) << 28;
static const uint64_t LIBRARIES_AT = UINT64_C(1) << 50;
static const uint64_t LIBRARY_STRIDE = UINT64_C(1) << 24;
static const uint64_t PART = UINT64_C(1) << 21;

/* Stacks of more threads would come among the areas. */
static bool has_backdrop(const struct sim_world *w)
{
	return w->model->stack > 0 &&
	       STACKS_AT + w->load->nr_threads * STACK_STRIDE < UINT64_C(1) << 40;
}

/* The guard's page comes first. */
static uint64_t stack_va(const struct sim_thread *t)
{
	return STACKS_AT + (t->id - 1) * STACK_STRIDE + NB_PAGE_SIZE;
}

static uint64_t stack_end(const struct sim_world *w, const struct sim_thread *t)
{
	return stack_va(t) + ((uint64_t)w->model->stack & ~(uint64_t)(NB_PAGE_SIZE - 1));
}

static bool map(struct sim_world *w, struct sim_process *p, uint64_t start, uint64_t end,
	unsigned int flags)
{
	return nb_vma_map(w->engine, p->mm, start, end, flags, (uint64_t)w->now_ns) != NULL;
}

static bool map_library(struct sim_world *w, struct sim_process *p, uint64_t at)
{
	bool ok = true;

	for (uint64_t i = 0; i < LIBRARY_RO_PARTS; i++)
		ok = ok && map(w, p, at + i * PART, at + (i + 1) * PART, NB_VMA_READ | NB_VMA_FILE);
	at += LIBRARY_RO_PARTS * PART;
	return ok &&
	       map(w, p, at, at + 16 * NB_PAGE_SIZE, NB_VMA_READ | NB_VMA_WRITE | NB_VMA_FILE);
}

/* A process of one thread needs nobody who waits. */
static void make_waiting(struct sim_world *w, struct sim_process *p)
{
	if (p->load->nr_threads < 2)
		return;
	p->waiting =
		nb_task_new(w->engine, p->mm, w->load->nr_threads + p->id, (uint64_t)w->now_ns);
	if (!p->waiting)
		sim_fail(w, -ENOMEM, "no memory for a task");
}

void sim_backdrop_leave(struct sim_world *w, struct sim_process *p)
{
	if (p->waiting)
		nb_task_gone(w->engine, p->waiting, (uint64_t)w->now_ns);
	p->waiting = NULL;
}

void sim_backdrop_map(struct sim_world *w, struct sim_process *p)
{
	bool ok = true;

	if (!has_backdrop(w))
		return;
	make_waiting(w, p);
	for (uint64_t i = 0; ok && i < LIBRARIES; i++)
		ok = map_library(w, p, LIBRARIES_AT + i * LIBRARY_STRIDE);
	for (uint32_t i = 0; ok && i < p->load->nr_threads; i++) {
		const struct sim_thread *t = &w->threads[p->load->first_thread + i];
		const uint64_t va = stack_va(t);

		ok = map(w, p, va - NB_PAGE_SIZE, va, 0) &&
		     map(w, p, va, stack_end(w, t), NB_VMA_READ | NB_VMA_WRITE);
	}
	if (!ok)
		sim_fail(w, -ENOMEM, "no memory for stacks and libraries");
}

/* ---- arming ---- */

static struct sim_thread *stack_owner(const struct sim_world *w, uint64_t va)
{
	const uint64_t i = (va - STACKS_AT) / STACK_STRIDE;

	return va >= STACKS_AT && i < w->load->nr_threads ? &w->threads[i] : NULL;
}

/* The used pages are at a stack's end. */
int sim_backdrop_arm(struct sim_world *w, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	struct sim_thread *t = stack_owner(w, r->start);

	if (!has_backdrop(w) || (!t && r->start < LIBRARIES_AT))
		return -EFAULT;
	if (!t || t->stack_node < 0 || r->end != stack_end(w, t))
		return 0;
	out->present = STACK_PAGES;
	if (t->stack_armed || t->stack_node == r->spare_node)
		return 0;
	t->stack_armed = true;
	out->updated = STACK_PAGES;
	w->kernel_ns += STACK_PAGES * w->model->pte_update + sim_flush_cost(w, t->proc);
	return 0;
}

/* ---- touching ---- */

static double touch_page(struct sim_world *w, struct sim_thread *t, uint64_t va)
{
	const struct nb_fault f = {.task = t->task,
		.vma = nb_vma_find(t->proc->mm, va),
		.addr = va,
		.now_ns = (uint64_t)w->now_ns,
		.cpu_node = t->node,
		.page_node = t->stack_node,
		.flags = NB_FAULT_WRITE};

	w->move_wanted = false;
	nb_hint_fault(w->engine, &f);
	nb_engine_counters_rw(w->engine)->pgfault++;
	if (!w->move_wanted)
		return w->model->hint_fault;
	w->move_wanted = false;
	nb_move_done(w->engine, &w->move, 1, NB_MOVE_OK, (uint64_t)w->now_ns);
	t->stack_wanted = w->move.node_to;
	return w->model->hint_fault + w->model->move_fixed + w->model->isolate_page +
	       NB_PAGE_SIZE * 1e9 / w->model->copy_rate;
}

void sim_backdrop_touch(struct sim_world *w, struct sim_thread *t)
{
	const uint64_t end = stack_end(w, t);

	t->stack_armed = false;
	t->stack_wanted = t->stack_node;
	for (uint64_t i = 1; i <= STACK_PAGES && t->task; i++)
		t->debt_ns += touch_page(w, t, end - i * NB_PAGE_SIZE);
	/* Its pages go together here. */
	t->stack_node = t->stack_wanted;
}
