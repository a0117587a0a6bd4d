/* SPDX-License-Identifier: MIT */
/*
 * place: threads change nodes. A thread is moved as the kernel's own balancing moves one: once, and
 * free again at once. Its affinity is made narrow, which moves it, and is put back.
 *
 * Only threads whose affinity is the one the program began with; and none any more once the program
 * has set an affinity itself (affinity.c). The regions' lock is held meanwhile: forks and the hooks
 * for affinities wait for it, so that nobody sees or inherits what holds for microseconds. A thread
 * that another one makes in that time is looked for afterwards.
 *
 * Where the idea is from: migrate_task_to and migrate_swap of Linux.
 */
#include <errno.h>
#include <string.h>
#include "agent.h"

enum {
	MASK_BYTES = NB_CPU_MASK_BYTES,
	TRIES = 10,
};

struct mask {
	_Alignas(8) unsigned char bits[MASK_BYTES];
};

static bool get(uint32_t tid, struct mask *m)
{
	memset(m, 0, sizeof(*m));
	return NB_OS_3(sched_getaffinity, tid, MASK_BYTES, m->bits) > 0;
}

static bool set(uint32_t tid, const struct mask *m)
{
	return NB_OS_3(sched_setaffinity, tid, MASK_BYTES, m->bits) == 0;
}

static bool same(const struct mask *a, const struct mask *b)
{
	return memcmp(a->bits, b->bits, MASK_BYTES) == 0;
}

static struct mask beginning(const struct nb_guest *g)
{
	struct mask m = {{0}};

	memcpy(m.bits, g->cpu_mask, g->nr_cpu_mask < MASK_BYTES ? g->nr_cpu_mask : MASK_BYTES);
	return m;
}

/* The CPUs of a node that the program may use: how many. */
static unsigned int narrow(
	const struct nb_agent *a, const struct mask *all, int node, struct mask *m)
{
	unsigned int n = 0;

	memset(m, 0, sizeof(*m));
	for (uint32_t cpu = 0; cpu < a->topo.cpu_ids && cpu < 8 * MASK_BYTES; cpu++) {
		const unsigned char bit = (unsigned char)(1U << cpu % 8);

		if (a->topo.cpu_node[cpu] != node || !(all->bits[cpu / 8] & bit))
			continue;
		m->bits[cpu / 8] |= bit;
		n++;
	}
	return n;
}

/*
 * All CPUs, where that is what the thread had: else a later change of its cpuset would not reach
 * it. The kernel cuts the mask to what is allowed.
 */
static bool put_back(uint32_t tid, const struct mask *old)
{
	struct mask all, now;

	memset(&all, 0xff, sizeof(all));
	for (int i = 0; i < TRIES; i++)
		if (set(tid, &all) && get(tid, &now) && (same(&now, old) || set(tid, old)))
			return true;
	return set(tid, old);
}

/* Threads that others made while these were moved have a narrow mask. */
static void widen(struct nb_agent *a, const struct nb_thread *t)
{
	const struct mask old = beginning(a->guest);
	struct mask now, thin;

	if (t->since <= a->placed_look || !get(t->tid, &now) || same(&now, &old))
		return;
	for (int node = 0; node < (int)a->topo.nr_nodes; node++)
		if ((a->placed_nodes >> node % 64 & 1) && narrow(a, &old, node, &thin) > 0 &&
			same(&now, &thin))
			put_back(t->tid, &old);
}

void nb_place_settle(struct nb_agent *a)
{
	if (a->placed_nodes == 0)
		return;
	nb_threads_look(a);
	for (uint32_t i = 0; i < a->nr_threads && !atomic_load(&a->guest->own_affinity); i++)
		widen(a, &a->threads[i]);
	a->placed_nodes = 0;
}

/* The thread is confined to the node, and so goes there. 0, or -EINVAL: it is as it was. */
static int confine(struct nb_agent *a, const struct nb_thread *t, int node)
{
	const struct mask old = beginning(a->guest);
	struct mask now, thin;

	if (narrow(a, &old, node, &thin) == 0 || !get(t->tid, &now) || !same(&now, &old))
		return -EINVAL;
	if (!set(t->tid, &thin))
		return -EINVAL;
	/* Somebody else (taskset) was faster: theirs holds. */
	if (get(t->tid, &now) && !same(&now, &thin))
		return -EINVAL;
	if (a->placed_nodes == 0)
		a->placed_look = a->look;
	a->placed_nodes |= UINT64_C(1) << node % 64;
	return 0;
}

static void release(struct nb_agent *a, struct nb_thread *t, int node)
{
	const struct mask old = beginning(a->guest);

	put_back(t->tid, &old);
	t->node = (int16_t)node;
}

static bool allowed(const struct nb_agent *a)
{
	const struct nb_guest *g = a->guest;

	return !a->is_virtual && !atomic_load(&g->own_affinity) && !atomic_load(&g->revoked) &&
	       g->nr_cpu_mask > 0;
}

static struct nb_thread *running(struct nb_agent *a, uint32_t tid)
{
	struct nb_thread *t = nb_thread_known(a, tid);

	return t != NULL && t->runs ? t : NULL;
}

static unsigned int running_on(const struct nb_agent *a, int node)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < a->nr_threads; i++)
		n += a->threads[i].runs && a->threads[i].node == node;
	return n;
}

/* How busy the node is with other programs is for the kernel's load balancing to judge. */
static int run_on(struct nb_agent *a, struct nb_thread *t, int node)
{
	const struct mask all = beginning(a->guest);
	struct mask unused;
	int rc;

	if (running_on(a, node) >= narrow(a, &all, node, &unused))
		return -EBUSY;
	rc = confine(a, t, node);
	if (rc == 0)
		release(a, t, node);
	return rc;
}

/* Both are confined before one is released: else an idle CPU would take the first one back. */
static int exchange(struct nb_agent *a, struct nb_thread *t, struct nb_thread *o)
{
	const int from = t->node, to = o->node;
	int rc = confine(a, t, to);

	if (rc != 0)
		return rc;
	rc = confine(a, o, from);
	if (rc == 0)
		release(a, o, from);
	release(a, t, to);
	return rc;
}

int nb_place_run_on(void *ctx, uint32_t task, int node)
{
	struct nb_agent *a = ctx;
	struct nb_thread *t = running(a, task);
	struct nb_signals signals;
	int rc;

	if (!allowed(a))
		return -EINVAL;
	/* Asleep, or there already. */
	if (t == NULL || t->node == node)
		return -EBUSY;
	if (!nb_lock_try(&a->guest->regions.lock, &signals))
		return -EBUSY;
	rc = run_on(a, t, node);
	nb_unlock(&a->guest->regions.lock, &signals);
	nb_stat_add(&nb_guest_stats(a->guest)->thread_moves, rc == 0);
	return rc;
}

int nb_place_swap(void *ctx, uint32_t task, uint32_t other)
{
	struct nb_agent *a = ctx;
	struct nb_thread *t = running(a, task), *o = running(a, other);
	struct nb_signals signals;
	int rc;

	if (!allowed(a))
		return -EINVAL;
	if (t == NULL || o == NULL || t->node == o->node)
		return -EBUSY;
	if (!nb_lock_try(&a->guest->regions.lock, &signals))
		return -EBUSY;
	rc = exchange(a, t, o);
	nb_unlock(&a->guest->regions.lock, &signals);
	nb_stat_add(&nb_guest_stats(a->guest)->thread_moves, rc == 0 ? 2 : 0);
	return rc;
}
