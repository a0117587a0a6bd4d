/* SPDX-License-Identifier: MIT */
/*
 * carrier: a helper that does nothing but move_pages(2), so that the agent serves faults meanwhile.
 * The agent hands it a batch of moves, and looks at what came of them when it is done.
 *
 * What a call costs by itself (it drains every CPU's list of fresh pages) is shared by a batch, as
 * long as the call stays short: how many pages it takes follows from what the last ones took. A
 * thread that touches pages under way waits for the kernel's own batch of 512, not for the call.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include "agent.h"

static const uint64_t second = 1000000000, ms = 1000000;

enum {
	EASING = 4, /* a part of that many of what a page took is forgotten with each call */
};

/* ---- how many pages a call takes ---- */

uint32_t nb_pace_step(struct nb_pace *p, uint32_t pages, uint64_t took_ns, uint64_t goal_ns)
{
	/* A short call is dearer by the page than a long one is: it counts as a whole block. */
	const uint64_t ns = took_ns / (pages > NB_HUGE_PAGES ? pages : NB_HUGE_PAGES) + 1;
	const uint64_t slower = p->page_ns - p->page_ns / EASING;
	uint64_t most;

	/* What is slow is believed at once, what is fast again bit by bit. */
	p->page_ns = ns > slower ? ns : slower;
	most = goal_ns / p->page_ns;
	if (most > 2 * (uint64_t)p->pages)
		most = 2 * (uint64_t)p->pages;
	most -= most % NB_HUGE_PAGES;
	p->pages = most > NB_BATCH_PAGES  ? NB_BATCH_PAGES
		   : most < NB_HUGE_PAGES ? NB_HUGE_PAGES
					  : (uint32_t)most;
	return p->pages;
}

static void count_call(struct nb_guest *g, uint64_t ns)
{
	struct nb_live_stats *s = nb_guest_stats(g);
	struct nb_slot *slot = atomic_load(&g->slot);

	nb_stat_add(&s->move_calls, 1);
	nb_stat_max(&s->move_max_ns, ns);
	if (slot != NULL)
		nb_histogram_add(slot->move_histogram, ns);
}

static long move_some(struct nb_guest *g, struct nb_batch *b, uint32_t first, uint32_t n)
{
	const uint64_t since = nb_os_now_ns();
	const long rc = NB_OS_6(move_pages, 0, (unsigned long)n, b->page + first, b->node + first,
		b->status + first, MPOL_MF_MOVE);
	const uint64_t took = nb_os_now_ns() - since;

	count_call(g, took);
	nb_pace_step(&b->pace, n, took, g->session->move_ms * ms);
	return rc;
}

long nb_batch_carry(struct nb_guest *g, struct nb_batch *b)
{
	long rc = 0;

	if (b->pace.pages == 0)
		b->pace.pages = NB_HUGE_PAGES;
	for (uint32_t at = 0, n; at < b->nr && rc >= 0; at += n) {
		n = b->nr - at < b->pace.pages ? b->nr - at : b->pace.pages;
		rc = move_some(g, b, at, n);
	}
	return rc;
}

/* ---- the thread ---- */

static void carry(struct nb_carrier *c)
{
	c->rc = nb_batch_carry(c->guest, &c->batch);
	atomic_store(&c->cpu_ns, nb_os_cpu_ns());
	atomic_store(&c->state, NB_CARRIER_DONE);
	nb_nudge(c->guest);
}

static void carrier_main(void *arg)
{
	struct nb_carrier *c = arg;
	struct nb_guest *g = c->guest;

	while (!atomic_load(&g->stop) && !atomic_load(&g->revoked)) {
		const uint32_t state = atomic_load(&c->state);

		if (state == NB_CARRIER_WORK)
			carry(c);
		else
			nb_futex_wait(&c->state, state, second);
	}
	atomic_store(&g->carrier_tid[c->number], 0);
	nb_futex_wake(&g->carrier_tid[c->number], 1);
	NB_OS_1(exit, 0);
}

static bool start(struct nb_carrier *c)
{
	const long tid = nb_helper_start(&c->stack, carrier_main, c);

	if (tid < 0)
		return false;
	atomic_store(&c->guest->carrier_tid[c->number], (uint32_t)tid);
	return true;
}

/* One for each node, about: that is how many copies memory bandwidth is there for. */
static uint32_t wanted(const struct nb_agent *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->topo.nr_nodes && n < NB_MAX_CARRIERS; i++)
		n += a->topo.nodes[i].mem_bytes > 0;
	return n;
}

void nb_carriers_start(struct nb_agent *a)
{
	const uint32_t n = wanted(a);

	for (uint32_t i = 0; i < n; i++) {
		struct nb_carrier *c = nb_os_pages(sizeof(*c));

		if (c == NULL)
			return;
		c->guest = a->guest;
		c->number = i;
		if (!start(c)) {
			nb_os_pages_free(c, sizeof(*c));
			return;
		}
		a->carrier[a->nr_carriers++] = c;
	}
}

void nb_carrier_send(struct nb_carrier *c)
{
	atomic_store(&c->state, NB_CARRIER_WORK);
	nb_futex_wake(&c->state, 1);
}

void nb_carriers_end(struct nb_agent *a)
{
	for (uint32_t i = 0; a != NULL && i < a->nr_carriers; i++)
		nb_futex_wake(&a->carrier[i]->state, 1);
}

uint64_t nb_carriers_cpu_ns(const struct nb_agent *a)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < a->nr_carriers; i++)
		ns += atomic_load(&a->carrier[i]->cpu_ns);
	return ns;
}
