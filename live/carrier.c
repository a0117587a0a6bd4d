/* SPDX-License-Identifier: MIT */
/*
 * carrier: a helper that does nothing but move_pages(2), so that the agent serves faults meanwhile.
 * The agent hands it a batch of moves, and looks at what came of them when it is done.
 *
 * What a call costs by itself (it drains every CPU's list of fresh pages) is shared by a batch. A
 * thread that touches pages under way waits for the kernel's own batch of 512, not for the call.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include "agent.h"

static const uint64_t second = 1000000000;

long nb_batch_carry(struct nb_batch *b)
{
	if (b->nr == 0)
		return 0;
	return NB_OS_6(
		move_pages, 0, (unsigned long)b->nr, b->page, b->node, b->status, MPOL_MF_MOVE);
}

static void carry(struct nb_carrier *c)
{
	const uint64_t since = nb_os_now_ns();

	c->rc = nb_batch_carry(&c->batch);
	nb_stat_max(&nb_guest_stats(c->guest)->move_max_ns, nb_os_now_ns() - since);
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
