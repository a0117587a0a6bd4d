/* SPDX-License-Identifier: MIT */
/*
 * diary: what a recording holds besides the engine's decisions, so that the program can be played
 * again: how long each thread ran and waited for a CPU, and when memory first held data. Nothing is
 * done unless somebody records.
 *
 * Threads are told of four times a second, and before memory is: who ran just then is who touched
 * it. Memory is told of in blocks of 2 MiB, once each, and found by asking its file for data beyond
 * what is known: holes and told blocks cost one call together, however many.
 */
#include <string.h>
#include <unistd.h>
#include "agent.h"

enum {
	LOOK_MS = 50,
	RUNS_MS = 250,
	THREADS_MS = 100, /* new threads are looked for that often */
	MAX_FOUND = 256,  /* blocks in one look */
	ADDRESS_BITS = 48,
	TOLD_BYTES =
		1 << (ADDRESS_BITS - NB_HUGE_SHIFT - 3), /* a bit for each block there can be */
};

static const uint64_t ms = 1000000;

static void tell(struct nb_agent *a, struct nb_event e)
{
	e.time_ns = nb_os_now_ns();
	e.mm = a->guest->pid;
	e.node_from = NB_NO_NODE;
	nb_ring_put(nb_session_ring(a->guest->session), &e);
}

/* ---- threads ---- */

static uint32_t us_since(uint64_t now_ns, uint64_t then_ns)
{
	const uint64_t us = now_ns > then_ns ? (now_ns - then_ns) / 1000 : 0;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* /proc/self/task/TID/schedstat: ns on a CPU, ns waiting for one, times. */
static uint64_t waited(struct nb_agent *a, const struct nb_thread *t)
{
	const long fd = nb_thread_open(a, t->tid, "/schedstat");
	char text[96] = "";
	const char *p = text;
	uint64_t ns = 0;

	if (fd < 0)
		return 0;
	NB_OS_3(read, fd, text, sizeof(text) - 1);
	NB_OS_1(close, fd);
	while (*p >= '0' && *p <= '9')
		p++;
	if (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		ns = ns * 10 + (uint64_t)(*p - '0');
	return ns;
}

static void tell_thread(struct nb_agent *a, struct nb_thread *t)
{
	const uint32_t ran = us_since(t->runtime_ns, t->told_ns);
	struct nb_event e = {.type = NB_EVENT_TASK_RUN, .task = t->tid, .arg = ran};
	uint64_t wait;

	if (ran == 0)
		return;
	e.node_to = (int16_t)nb_thread_node(a, t);
	tell(a, e);
	t->told_ns = t->runtime_ns;
	wait = waited(a, t);
	e.type = NB_EVENT_TASK_WAIT;
	e.arg = us_since(wait, t->told_wait_ns);
	t->told_wait_ns = wait;
	if (e.arg > 0)
		tell(a, e);
}

static void tell_threads(struct nb_agent *a, uint64_t now)
{
	for (uint32_t i = 0; i < a->nr_threads; i++) {
		tell_thread(a, &a->threads[i]);
		nb_faults_resolve(a);
	}
	a->diary.next_runs_ns = now + RUNS_MS * ms;
}

/* ---- memory ---- */

struct found {
	uint32_t nr;
	uint64_t block[MAX_FOUND];
};

static bool is_told(const struct nb_diary *d, uint64_t block)
{
	const uint64_t bit = block >> NB_HUGE_SHIFT;

	return bit / 8 >= TOLD_BYTES || d->told[bit / 8] >> bit % 8 & 1;
}

static void set_told(struct nb_diary *d, uint64_t block)
{
	const uint64_t bit = block >> NB_HUGE_SHIFT;

	d->told[bit / 8] |= (unsigned char)(1U << bit % 8);
}

/* The first address from `at` on whose page has data; `end` when there is none. */
static uint64_t next_data(const struct nb_region *r, int fd, uint64_t at, uint64_t end)
{
	const long offset = NB_OS_3(lseek, fd, r->offset + (at - r->start), SEEK_DATA);
	const uint64_t addr = offset < 0 ? end : r->start + ((uint64_t)offset - r->offset);

	return addr < end ? addr : end;
}

/* The lock is held. */
static void find_in(
	struct nb_agent *a, const struct nb_region *r, const struct nb_span *s, struct found *f)
{
	const int fd = r->backing == NB_NO_BACKING ? -1 : a->guest->regions.backing[r->backing].fd;
	uint64_t at = s->start;

	while (fd >= 0 && f->nr < MAX_FOUND) {
		while (at < s->end && is_told(&a->diary, at))
			at += NB_HUGE_SIZE;
		if (at >= s->end)
			return;
		at = next_data(r, fd, at, s->end) & ~(uint64_t)NB_HUGE_MASK;
		if (at < s->end && !is_told(&a->diary, at)) {
			set_told(&a->diary, at);
			f->block[f->nr++] = at;
		}
	}
}

static void find(struct nb_agent *a, struct found *f)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;

	if (!nb_lock_try(&t->lock, &signals))
		return;
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];
		const struct nb_span s = nb_whole_blocks(r);

		if (!(r->flags & NB_REGION_PRIVATE) && s.start < s.end)
			find_in(a, r, &s, f);
	}
	nb_unlock(&t->lock, &signals);
}

/* Neighbours on one node are told of as one. */
static void tell_found(struct nb_agent *a, const struct found *f)
{
	struct nb_event e = {.type = NB_EVENT_PRESENT};

	for (uint32_t i = 0; i < f->nr; i++) {
		const int node = nb_page_node(a, f->block[i]);
		const uint64_t end = e.addr + ((uint64_t)e.pages << NB_PAGE_SHIFT);

		if (e.pages > 0 && (end != f->block[i] || node != e.node_to)) {
			tell(a, e);
			e.pages = 0;
		}
		if (e.pages == 0)
			e.addr = f->block[i];
		e.pages += NB_HUGE_PAGES;
		e.node_to = (int16_t)node;
		nb_faults_resolve(a);
	}
	if (e.pages > 0)
		tell(a, e);
}

/* ---- for the agent ---- */

void nb_diary_open(struct nb_agent *a)
{
	a->diary.next_ns = UINT64_MAX;
	if (nb_session_ring(a->guest->session) == NULL)
		return;
	a->diary.told = nb_heap_alloc(&a->heap, TOLD_BYTES);
	a->diary.next_ns = 0;
}

void nb_diary_forget(struct nb_agent *a, uint64_t start, uint64_t end)
{
	struct nb_diary *d = &a->diary;

	for (uint64_t at = start; d->told != NULL && at < end; at += NB_HUGE_SIZE) {
		const uint64_t bit = at >> NB_HUGE_SHIFT;

		if (bit / 8 < TOLD_BYTES)
			d->told[bit / 8] &= (unsigned char)~(1U << bit % 8);
	}
}

void nb_diary_work(struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();
	struct found f = {.nr = 0};

	a->diary.next_ns = now + LOOK_MS * ms;
	if (a->next_look_ns > now + THREADS_MS * ms)
		a->next_look_ns = now + THREADS_MS * ms;
	if (a->diary.told != NULL)
		find(a, &f);
	if (f.nr > 0 || now >= a->diary.next_runs_ns)
		tell_threads(a, now);
	tell_found(a, &f);
}
