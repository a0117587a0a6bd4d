/* SPDX-License-Identifier: MIT */
/*
 * backdrop: what every process maps besides the areas of its job, from the lowest address to the
 * highest: its program (four read-only parts, data, bss) and its heap; a stack with a guard for
 * each thread, one below the other; above the areas its libraries, the vdso, and the stack of its
 * first thread. They hold next to nothing, but scans pass them, one by one, and rules that scan one
 * VMA at a time come to them first. Only on machines that say how large a stack is (stack_mib).
 *
 * A stack has a page that its thread touches all the time; whoever made the thread touched it
 * first, to tell it what to do, so it begins there. All threads touch a page of data, one of bss,
 * and one of the first thread's stack, where main keeps what it tells them: whoever comes first
 * takes the fault.
 *
 * Where a job's threads are all alike, the one that makes them and waits for their end is there as
 * well: it never runs, but it is the one that a process begins with, and new threads scan otherwise
 * than the first.
 */
#include "world.h"

#include <errno.h>

enum {
	STACK_PAGES = 1,
	LIBRARY_RO_PARTS = 3, /* headers, text, constants */
	CODE = NB_VMA_READ | NB_VMA_FILE,
	DATA = NB_VMA_READ | NB_VMA_WRITE,
	NOTHING = -1,
};

static const uint64_t STACKS_AT = UINT64_C(1) << 32;
static const uint64_t STACK_STRIDE = UINT64_C(1) << 28;
static const uint64_t LIBRARIES_AT = UINT64_C(1) << 50;
static const uint64_t LIBRARY_STRIDE = UINT64_C(1) << 24;
static const uint64_t PART = UINT64_C(1) << 21;

#define PROGRAM(page) ((UINT64_C(1) << 22) + ((uint64_t)(page) << NB_PAGE_SHIFT))

/* Of a small C program; the heap and the first thread's stack are what a process begins with. */
static const struct part {
	uint64_t at, pages;
	unsigned int flags;
	int common; /* enum sim_common_page: its last page is that one, or NOTHING */
} parts[] = {
	{PROGRAM(0), 1, CODE, NOTHING},
	{PROGRAM(1), 167, CODE, NOTHING},
	{PROGRAM(168), 47, CODE, NOTHING},
	{PROGRAM(215), 4, CODE, NOTHING},
	{PROGRAM(219), 3, DATA | NB_VMA_FILE, SIM_COMMON_DATA},
	{PROGRAM(222), 6, DATA, SIM_COMMON_BSS},
	{UINT64_C(1) << 28, 33, DATA, NOTHING},
	{UINT64_C(1) << 51, 2, NB_VMA_READ, NOTHING},
	{UINT64_C(1) << 52, 33, DATA, SIM_COMMON_STACK},
};

enum { NR_PARTS = sizeof(parts) / sizeof(parts[0]) };

static uint64_t part_end(const struct part *part)
{
	return part->at + part->pages * NB_PAGE_SIZE;
}

/* Stacks of more threads would come among the areas. */
static bool has_backdrop(const struct sim_world *w)
{
	return w->model->stack > 0 &&
	       STACKS_AT + w->load->nr_threads * STACK_STRIDE < UINT64_C(1) << 40;
}

/* The guard's page comes first; mmap gives addresses from the top down. */
static uint64_t stack_va(const struct sim_world *w, const struct sim_thread *t)
{
	return STACKS_AT + (w->load->nr_threads - t->id) * STACK_STRIDE + NB_PAGE_SIZE;
}

static uint64_t stack_end(const struct sim_world *w, const struct sim_thread *t)
{
	return stack_va(w, t) + ((uint64_t)w->model->stack & ~(uint64_t)(NB_PAGE_SIZE - 1));
}

/* The first thread's stack is among the parts. */
static bool has_stack(const struct sim_thread *t)
{
	return !t->proc->load->has_main || t->load->number > 0;
}

static void map(struct sim_world *w, struct sim_process *p, uint64_t start, uint64_t end,
	unsigned int flags)
{
	if (!nb_vma_map(w->engine, p->mm, start, end, flags, (uint64_t)w->now_ns))
		sim_fail(w, -ENOMEM, "no memory for stacks and libraries");
}

static void map_library(struct sim_world *w, struct sim_process *p, uint64_t at)
{
	for (uint64_t i = 0; i < LIBRARY_RO_PARTS; i++)
		map(w, p, at + i * PART, at + (i + 1) * PART, CODE);
	at += LIBRARY_RO_PARTS * PART;
	map(w, p, at, at + 16 * NB_PAGE_SIZE, DATA | NB_VMA_FILE);
}

static void make_waiting(struct sim_world *w, struct sim_process *p)
{
	if (p->load->has_main)
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
	for (int i = 0; i < SIM_NR_COMMON; i++) {
		w->common_armed -= p->common[i].armed;
		p->common[i].armed = false;
	}
}

void sim_backdrop_map(struct sim_world *w, struct sim_process *p)
{
	for (int i = 0; i < SIM_NR_COMMON; i++)
		p->common[i].node = NB_NO_NODE;
	if (!has_backdrop(w))
		return;
	make_waiting(w, p);
	for (int i = 0; i < NR_PARTS && !w->error; i++)
		map(w, p, parts[i].at, part_end(&parts[i]), parts[i].flags);
	for (uint64_t i = 0; i < p->load->libraries && !w->error; i++)
		map_library(w, p, LIBRARIES_AT + i * LIBRARY_STRIDE);
}

void sim_backdrop_begin(struct sim_world *w, struct sim_thread *t)
{
	const uint64_t va = stack_va(w, t);

	if (!has_backdrop(w) || !has_stack(t))
		return;
	map(w, t->proc, va - NB_PAGE_SIZE, va, 0);
	map(w, t->proc, va, stack_end(w, t), DATA);
}

void sim_backdrop_settle(struct sim_world *w, struct sim_thread *t)
{
	struct sim_process *p = t->proc;
	const struct sim_thread *first = &w->threads[p->load->first_thread];
	const struct sim_thread *maker = first->cpu >= 0 ? first : t;

	if (t->stack_node < 0 && has_stack(t) && has_backdrop(w)) {
		t->stack_node = maker->node;
		sim_lru_add(w, maker->cpu, stack_end(w, t) - NB_PAGE_SIZE, 1);
	}
	for (int i = 0; i < SIM_NR_COMMON; i++)
		if (p->common[i].node < 0)
			p->common[i].node = t->node;
}

/* ---- arming ---- */

static struct sim_thread *stack_owner(const struct sim_world *w, uint64_t va)
{
	const uint64_t i = (va - STACKS_AT) / STACK_STRIDE;

	return va >= STACKS_AT && i < w->load->nr_threads ? &w->threads[w->load->nr_threads - 1 - i]
							  : NULL;
}

static const struct part *part_at(uint64_t va)
{
	for (int i = 0; i < NR_PARTS; i++)
		if (va >= parts[i].at && va < part_end(&parts[i]))
			return &parts[i];
	return NULL;
}

/* So many pages at the end of what is looked at: true when they are newly armed. */
static bool arm_pages(struct sim_world *w, const struct nb_arm_request *r,
	struct nb_arm_result *out, uint64_t pages, int node, bool armed)
{
	double cost;

	out->present = pages;
	if (armed || node == r->spare_node)
		return false;
	out->updated = pages;
	cost = (double)pages * w->model->pte_update + sim_flush_cost(w, &w->processes[r->mm - 1]);
	out->cost_ns = (uint64_t)cost;
	w->kernel_ns += cost;
	return true;
}

static void arm_common(struct sim_world *w, const struct nb_arm_request *r,
	struct nb_arm_result *out, struct sim_common *c)
{
	if (c->node < 0 || !arm_pages(w, r, out, 1, c->node, c->armed))
		return;
	c->armed = true;
	w->common_armed++;
}

int sim_backdrop_arm(struct sim_world *w, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	const struct part *part = part_at(r->start);
	struct sim_thread *t = stack_owner(w, r->start);

	if (!has_backdrop(w) || (!t && !part && r->start < LIBRARIES_AT))
		return -EFAULT;
	if (part) {
		if (part->common != NOTHING && r->end == part_end(part))
			arm_common(w, r, out, &w->processes[r->mm - 1].common[part->common]);
		return 0;
	}
	if (!t || t->stack_node < 0 || r->end != stack_end(w, t))
		return 0;
	if (arm_pages(w, r, out, STACK_PAGES, t->stack_node, t->stack_armed))
		t->stack_armed = true;
	return 0;
}

/* ---- touching ---- */

/* Answers with the page's node afterwards. */
static int16_t touch_page(struct sim_world *w, struct sim_thread *t, uint64_t va, int16_t node)
{
	const struct nb_fault f = {.task = t->task,
		.vma = nb_vma_find(t->proc->mm, va),
		.addr = va,
		.now_ns = (uint64_t)w->now_ns,
		.cpu_node = t->node,
		.page_node = node,
		.flags = NB_FAULT_WRITE};

	w->move_wanted = false;
	nb_hint_fault(w->engine, &f);
	nb_engine_counters_rw(w->engine)->pgfault++;
	t->debt_ns += w->model->hint_fault;
	if (!w->move_wanted)
		return node;
	w->move_wanted = false;
	if (sim_lru_holds(w, va)) {
		nb_move_done(w->engine, &w->move, 0, NB_MOVE_NOT_ON_LRU, (uint64_t)w->now_ns);
		return node;
	}
	nb_move_done(w->engine, &w->move, 1, NB_MOVE_OK, (uint64_t)w->now_ns);
	sim_lru_add(w, t->cpu, va, 1);
	t->debt_ns += w->model->move_fixed + w->model->isolate_page +
		      NB_PAGE_SIZE * 1e9 / w->model->copy_rate;
	return w->move.node_to;
}

void sim_backdrop_touch(struct sim_world *w, struct sim_thread *t)
{
	const uint64_t end = stack_end(w, t);
	int16_t node = t->stack_node;

	t->stack_armed = false;
	for (uint64_t i = 1; i <= STACK_PAGES && t->task; i++)
		node = touch_page(w, t, end - i * NB_PAGE_SIZE, t->stack_node);
	/* Its pages go together here. */
	t->stack_node = node;
}

/* Of the threads of the process that run, each as likely; NULL: none does. */
static struct sim_thread *any_running(struct sim_world *w, const struct sim_process *p)
{
	struct sim_thread *found = NULL;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->load->nr_threads; i++) {
		struct sim_thread *t = &w->threads[p->load->first_thread + i];

		if (t->current && t->task && !sim_rng_below(&w->rng, ++nr))
			found = t;
	}
	return found;
}

static void touch_common(struct sim_world *w, struct sim_process *p, const struct part *part)
{
	struct sim_common *c = &p->common[part->common];
	struct sim_thread *t = c->armed ? any_running(w, p) : NULL;

	if (!t)
		return;
	c->armed = false;
	w->common_armed--;
	c->node = touch_page(w, t, part_end(part) - NB_PAGE_SIZE, c->node);
}

void sim_backdrop_touch_common(struct sim_world *w)
{
	for (uint32_t i = 0; i < w->load->nr_processes && w->common_armed; i++)
		for (int k = 0; k < NR_PARTS && w->processes[i].mm; k++)
			if (parts[k].common != NOTHING)
				touch_common(w, &w->processes[i], &parts[k]);
}
