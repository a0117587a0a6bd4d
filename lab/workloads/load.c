/* SPDX-License-Identifier: MIT */
/*
 * The processes that work. They never end by themselves: the watcher (sample.c) ends them.
 *
 * Regions come from malloc, as in the benchmark these imitate, so they begin 16 bytes into a page
 * and neighbouring slices share a page (with huge pages, 2 MiB). Clearing goes in pieces of 1 MiB
 * so that progress can be told.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"
#include "zipf.h"

enum { PIECE = 1 << 20, LINE = 64, LINES_OF_PAGE = WORK_PAGE / LINE, ACCESSES = 4096 };

struct process {
	const struct work_options *opt;
	struct work_shared *shared;
	unsigned int number;
	char *memory;
	_Atomic(char *) late; /* the second region; NULL = not there yet */
	struct zipf zipf;     /* ranks of the pages of a slice */
};

struct thread {
	struct process *process;
	unsigned int number; /* within the process */
	struct work_thread *tell;
};

static _Noreturn void fail(struct work_shared *shared, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&shared->failed, &none, err ? err : EIO);
	_exit(1);
}

/* ---- telling ---- */

static void tell(struct work_thread *t, _Atomic uint64_t *count, uint64_t bytes)
{
	unsigned int cpu, node;

	getcpu(&cpu, &node);
	atomic_store_explicit(&t->cpu, (int)cpu, memory_order_relaxed);
	atomic_store_explicit(&t->node, (int)node, memory_order_relaxed);
	atomic_fetch_add_explicit(count, bytes, memory_order_relaxed);
	if (node < WORK_MAX_NODES)
		atomic_fetch_add_explicit(&t->used[node], bytes, memory_order_relaxed);
}

static void tell_slice(struct work_thread *t, char *at, uint64_t len)
{
	t->slice_len = len;
	atomic_store(&t->slice, (uint64_t)(uintptr_t)at);
}

static void tell_late(struct work_thread *t, char *at, uint64_t len)
{
	t->late_len = len;
	atomic_store(&t->late_slice, (uint64_t)(uintptr_t)at);
}

/* ---- what threads do ---- */

static void clear(struct work_thread *t, _Atomic uint64_t *count, char *at, uint64_t len)
{
	while (len) {
		const uint64_t piece = len < PIECE ? len : PIECE;

		memset(at, 0, piece);
		tell(t, count, piece);
		at += piece;
		len -= piece;
	}
}

static uint64_t slice_len(const struct thread *t)
{
	return t->process->opt->bytes / t->process->opt->threads;
}

static char *slice(const struct thread *t)
{
	return t->process->memory + t->number * slice_len(t);
}

static void work_all(const struct thread *t)
{
	tell_slice(t->tell, t->process->memory, t->process->opt->bytes);
	for (;;)
		clear(t->tell, &t->tell->bytes, t->process->memory, t->process->opt->bytes);
}

static void work_slice(const struct thread *t)
{
	tell_slice(t->tell, slice(t), slice_len(t));
	for (;;)
		clear(t->tell, &t->tell->bytes, slice(t), slice_len(t));
}

static void work_all_then_slice(const struct thread *t)
{
	tell_slice(t->tell, slice(t), slice_len(t));
	clear(t->tell, &t->tell->bytes, t->process->memory, t->process->opt->bytes);
	work_slice(t);
}

static void work_late(const struct thread *t)
{
	const uint64_t late_len = t->process->opt->late_bytes / t->process->opt->threads;
	char *late;

	tell_slice(t->tell, slice(t), slice_len(t));
	for (;;) {
		clear(t->tell, &t->tell->bytes, slice(t), slice_len(t));
		late = atomic_load(&t->process->late);
		if (!late)
			continue;
		late += t->number * late_len;
		tell_late(t->tell, late, late_len);
		clear(t->tell, &t->tell->late_bytes, late, late_len);
	}
}

static char *zipf_page(const struct thread *t, uint64_t *state)
{
	const struct work_options *opt = t->process->opt;
	const uint64_t random = random_next(state);
	uint32_t page;

	if (random_below((uint32_t)(random >> 32), 100) < opt->shared_pct) {
		page = random_below((uint32_t)random, (uint32_t)(opt->bytes / WORK_PAGE));
		return t->process->memory + (uint64_t)page * WORK_PAGE;
	}
	page = zipf_draw(&t->process->zipf, random_next(state));
	return slice(t) + work_page_of_rank(page, t->process->zipf.nr) * WORK_PAGE;
}

static void work_zipf(const struct thread *t)
{
	uint64_t state = t->process->opt->seed * WORK_MAX_THREADS + t->number;

	tell_slice(t->tell, slice(t), slice_len(t));
	for (;;) {
		for (int i = 0; i < ACCESSES; i++) {
			char *line =
				zipf_page(t, &state) + random_next(&state) % LINES_OF_PAGE * LINE;

			++*(volatile uint64_t *)(void *)line;
		}
		tell(t->tell, &t->tell->bytes, ACCESSES * LINE);
	}
}

static void (*const works[])(const struct thread *) = {
	[WORK_NUMA01] = work_all,
	[WORK_NUMA01_TA] = work_all_then_slice,
	[WORK_NUMA02] = work_slice,
	[WORK_NUMA02_SMT] = work_slice,
	[WORK_ZIPF] = work_zipf,
	[WORK_LATE] = work_late,
};

/* ---- threads ---- */

static void pin_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *run_thread(void *arg)
{
	const struct thread *t = arg;
	const struct work_options *opt = t->process->opt;

	if (opt->pin)
		pin_to(t->process->number * opt->threads + t->number);
	atomic_store(&t->tell->tid, gettid());
	works[opt->pattern](t);
	return NULL;
}

static void start_threads(struct process *p)
{
	static struct thread threads[WORK_MAX_THREADS];
	pthread_t id;

	for (unsigned int i = 0; i < p->opt->threads; i++) {
		const unsigned int global = p->number * p->opt->threads + i;
		int err;

		threads[i] = (struct thread){
			.process = p, .number = i, .tell = &p->shared->threads[global]};
		err = pthread_create(&id, NULL, run_thread, &threads[i]);
		if (err)
			fail(p->shared, err);
	}
}

/* ---- the main thread ---- */

static void set_policy(struct work_shared *shared, int mode, int node)
{
	const unsigned long mask = node >= 0 ? 1UL << node : 0;

	if (syscall(SYS_set_mempolicy, mode, node >= 0 ? &mask : NULL,
		    node >= 0 ? 8 * sizeof(mask) + 1 : 0))
		fail(shared, errno);
}

/* Touch a region for the first time: on the node asked for, else as the pattern does it. */
static void touch_first(struct process *p, char *at, uint64_t len)
{
	const bool by_main = p->opt->pattern != WORK_NUMA01 && p->opt->pattern != WORK_NUMA01_TA;

	if (p->opt->start_node >= 0)
		set_policy(p->shared, MPOL_BIND, p->opt->start_node);
	if (p->opt->start_node >= 0 || by_main)
		memset(at, 0, len);
	if (p->opt->start_node >= 0)
		set_policy(p->shared, MPOL_DEFAULT, -1);
}

static void sleep_s(double s)
{
	usleep((useconds_t)(s * 1e6));
}

static void make_late_region(struct process *p)
{
	char *at;

	sleep_s(p->opt->late_s);
	at = mmap(NULL, p->opt->late_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	if (at == MAP_FAILED)
		fail(p->shared, errno);
	touch_first(p, at, p->opt->late_bytes);
	atomic_store(&p->late, at);
}

_Noreturn void work_process(
	const struct work_options *opt, struct work_shared *shared, unsigned int process)
{
	struct process p = {
		.opt = opt, .shared = shared, .number = process, .memory = malloc(opt->bytes)};
	int err = p.memory ? 0 : -ENOMEM;

	if (!err && opt->pattern == WORK_ZIPF)
		err = zipf_init(&p.zipf, (uint32_t)(opt->bytes / opt->threads / WORK_PAGE), 0.99);
	if (err)
		fail(shared, -err);
	touch_first(&p, p.memory, opt->bytes);
	start_threads(&p);
	if (opt->pattern == WORK_LATE)
		make_late_region(&p);
	for (;;)
		pause();
}
