/* SPDX-License-Identifier: MIT */
/*
 * fault: what userfaultfd says. Every message ends in exactly one of UFFDIO_CONTINUE (which wakes)
 * and UFFDIO_WAKE: a minor fault is continued, and where that is not possible (the memory is gone,
 * the page is, somebody else mapped it) the thread is woken to try again, and the kernel does the
 * rest.
 *
 * First all that wait are let go; then the engine is told.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include "agent.h"

enum {
	BATCH = 64,
	PAGE_MASK = NB_PAGE_SIZE - 1,
};

static void count_service(struct nb_guest *g, uint64_t ns)
{
	struct nb_slot *slot = atomic_load(&g->slot);

	if (slot != NULL)
		nb_histogram_add(slot->histogram, ns);
}

/* False: not a page of ours, or somebody else was faster. */
static bool resolve(struct nb_agent *a, const struct uffd_msg *m)
{
	const int uffd = atomic_load(&a->guest->uffd);
	const uint64_t page = m->arg.pagefault.address & ~(uint64_t)PAGE_MASK;
	struct nb_live_stats *s = nb_guest_stats(a->guest);

	if ((m->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_MINOR) &&
		nb_uffd_continue(uffd, page, page + NB_PAGE_SIZE) == 0) {
		nb_stat_add(&s->faults, 1);
		return true;
	}
	nb_uffd_wake(uffd, page, page + NB_PAGE_SIZE);
	nb_stat_add(&s->faults_other, 1);
	return false;
}

static void note_sample(struct nb_agent *a, bool local)
{
	struct nb_live_stats *s = nb_guest_stats(a->guest);
	const uint64_t samples = atomic_load(&s->last_samples);

	nb_stat_add(&s->samples, 1);
	nb_stat_add(&s->samples_local, local);
	if (a->first_move_ns == 0) {
		nb_stat_add(&s->first_samples, 1);
		nb_stat_add(&s->first_local, local);
	}
	/* When the window is full its past counts half. */
	if (samples >= NB_LAST_SAMPLES) {
		atomic_store(&s->last_samples, samples / 2);
		atomic_store(&s->last_local, atomic_load(&s->last_local) / 2);
	}
	nb_stat_add(&s->last_samples, 1);
	nb_stat_add(&s->last_local, local);
}

/* The whole block that stands for an address: the odd ends of a region go with their neighbours. */
static bool block_of(struct nb_agent *a, uint64_t addr, uint64_t *block)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	const struct nb_region *r;
	struct nb_block *b;
	bool ok = false;

	/* Who has the lock may be unmapping gigabytes: the next fault is more important than this
	 * one. */
	if (!nb_lock_try(&t->lock, &signals))
		return false;
	r = nb_region_at(t, addr);
	if (r != NULL) {
		const struct nb_span whole = nb_whole_blocks(r);
		const uint64_t first = whole.start, last = whole.end - NB_HUGE_SIZE;

		*block = addr & ~(uint64_t)NB_HUGE_MASK;
		*block = *block < first ? first : *block > last ? last : *block;
		ok = first <= last;
		b = nb_block_at(t, *block);
		if (b != NULL) {
			b->armed = 0;
			if (!(r->flags & NB_REGION_PRIVATE))
				nb_huge_map(a, *block, b);
		}
	}
	nb_unlock(&t->lock, &signals);
	return ok;
}

/* Pages of the block that are elsewhere than those of its owner should be, without a fault. False:
 * it is to be moved and can't be. */
static bool tell_of_strays(
	struct nb_agent *a, struct nb_fault *f, uint64_t block, int home, int node)
{
	f->addr = block;
	f->vma = nb_vma_find(a->mm, block);
	f->page_node = (int16_t)node;
	f->flags = NB_FAULT_HUGE | NB_FAULT_SURE | NB_FAULT_INFERRED;
	if (node < 0 || node == nb_near_node(a, home) || f->vma == NULL)
		return true;
	nb_stat_add(&nb_guest_stats(a->guest)->inferred, 1);
	return nb_hint_fault(a->engine, f).why != NB_WHY_REFUSED;
}

/* A block that nobody asked, and of which its neighbours say enough. */
static void tell_of_guess(struct nb_agent *a, struct nb_fault *f, uint64_t block, int home)
{
	const int node = nb_block_stray(a, block, nb_near_node(a, home));

	if (f->task == NULL || !nb_judge_guess(a, block, home, node) ||
		!tell_of_strays(a, f, block, home, node))
		nb_judge_forget(a, block);
	nb_faults_resolve(a);
}

static void infer(struct nb_agent *a, struct nb_fault *f, int home, bool waits)
{
	uint64_t block[NB_MAX_INFERRED];
	const uint32_t n = nb_judge_others(a, f->addr, home, waits, block);

	for (uint32_t i = 0; i < n; i++)
		tell_of_guess(a, f, block[i], home);
}

/* Owners are where tasks belong; other rows decide page by page, as they do elsewhere. */
static bool judges(const struct nb_agent *a, const struct nb_thread *t)
{
	return a->has_homes && !t->homeless;
}

static void tell_engine(struct nb_agent *a, const struct nb_sight *s)
{
	struct nb_thread *t = nb_thread_find(a, s->tid);
	struct nb_fault f = {
		.addr = s->addr,
		.now_ns = nb_os_now_ns(),
		.flags = NB_FAULT_HUGE | (s->write ? NB_FAULT_WRITE : 0U),
	};
	struct nb_verdict v;
	uint32_t judged;
	uint64_t block;
	int page_node, cpu_node, home, near;

	if (!block_of(a, s->addr, &block) || t == NULL || t->task == NULL)
		return;
	cpu_node = nb_thread_node(a, t);
	page_node = nb_page_node(a, s->addr);
	if (cpu_node < 0 || page_node < 0)
		return;
	note_sample(a, cpu_node == page_node);
	f.task = t->task;
	home = nb_task_home(t->task, cpu_node);
	near = nb_near_node(a, home);
	judged = judges(a, t) ? nb_judge_touch(a, block, page_node, home) : 0;
	f.flags |= judged;
	f.vma = nb_vma_find(a->mm, block);
	f.addr = block;
	f.cpu_node = (int16_t)cpu_node;
	f.page_node = (int16_t)page_node;
	if (f.vma == NULL)
		return;
	v = nb_hint_fault(a->engine, &f);
	if (!judges(a, t))
		return;
	/* By a policy of the program's, say, which may be gone in a moment. */
	if (v.why == NB_WHY_REFUSED) {
		nb_judge_forget(a, block);
		return;
	}
	infer(a, &f, home, page_node != near && v.why == NB_WHY_FILTERED);
	/* One fault is enough to move a block, and so for what is left of one. */
	if (page_node == near && !(judged & NB_FAULT_DOUBT))
		tell_of_strays(a, &f, block, home, nb_block_stray(a, block, near));
}

/* Messages are read before they are resolved, so who waits for what is known to the watchdog. */
static int read_batch(struct nb_agent *a, struct uffd_msg *m)
{
	const long n = NB_OS_3(read, atomic_load(&a->guest->uffd), m, BATCH * sizeof(*m));

	/* Who can't hear must not keep anybody waiting. */
	if (n < 0 && n != -EAGAIN && n != -EINTR)
		nb_guest_close(a->guest, -1);
	if (n <= 0)
		return 0;
	atomic_store(&a->guest->holding_ns, nb_os_now_ns());
	return (int)((size_t)n / sizeof(*m));
}

/* When too many wait to be told the newest is forgotten: it is one sample of many. */
static void remember(struct nb_agent *a, const struct uffd_msg *m)
{
	struct nb_sights *q = &a->sights;

	if (q->nr == NB_MAX_SIGHTS)
		return;
	q->sight[(q->head + q->nr++) % NB_MAX_SIGHTS] = (struct nb_sight){m->arg.pagefault.address,
		m->arg.pagefault.feat.ptid, m->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE};
}

static void resolve_batch(struct nb_agent *a, const struct uffd_msg *m, int n)
{
	const uint64_t since = nb_os_now_ns();

	for (int i = 0; i < n; i++) {
		if (m[i].event != UFFD_EVENT_PAGEFAULT || !resolve(a, &m[i]))
			continue;
		count_service(a->guest, nb_os_now_ns() - since);
		remember(a, &m[i]);
	}
}

void nb_faults_resolve(struct nb_agent *a)
{
	struct uffd_msg m[BATCH];
	int n = BATCH;

	while (n == BATCH && atomic_load(&a->guest->uffd) >= 0 && (n = read_batch(a, m)) > 0) {
		resolve_batch(a, m, n);
		atomic_store(&a->guest->holding_ns, 0);
	}
	atomic_fetch_add(&a->guest->progress, 1);
}

void nb_faults_serve(struct nb_agent *a)
{
	struct nb_sights *q = &a->sights;

	nb_faults_resolve(a);
	while (q->nr > 0) {
		const struct nb_sight s = q->sight[q->head];

		q->head = (q->head + 1) % NB_MAX_SIGHTS;
		q->nr--;
		tell_engine(a, &s);
		nb_faults_resolve(a);
	}
}

static struct nb_task *task_of_home(const struct nb_agent *a, int home)
{
	for (uint32_t i = 0; i < a->nr_threads; i++)
		if (nb_task_home(a->threads[i].task, NB_NO_NODE) == home)
			return a->threads[i].task;
	return NULL;
}

bool nb_faults_infer(struct nb_agent *a)
{
	uint64_t block[NB_MAX_INFERRED];
	int home[NB_MAX_INFERRED];
	uint32_t n;

	if (a->infer_at >= a->infer_end)
		return false;
	n = nb_judge_sweep(a, block, home);
	for (uint32_t i = 0; i < n; i++) {
		struct nb_fault f = {.now_ns = nb_os_now_ns(),
			.task = task_of_home(a, home[i]),
			.cpu_node = (int16_t)home[i]};

		tell_of_guess(a, &f, block[i], home[i]);
	}
	return a->infer_at < a->infer_end;
}
