/* SPDX-License-Identifier: MIT */
/*
 * request: how a thread of the program asks the agent for something and waits. A request is a slot
 * of a small pool; its state word is what both sides change by compare-and-swap, so that an
 * impatient asker and a late server can't both have their way.
 */
#include <errno.h>
#include <signal.h>
#include "agent.h"

enum {
	PATIENCE_MS = 1000, /* for what may be left undone */
	STUCK_TIMES = 10,   /* the watchdog's time: then who serves a request is given up */
};

static const uint64_t ms = 1000000;

/* For a thread that nobody may keep from going on. */
static void lock_or_steal(struct nb_guest *g, struct nb_signals *old)
{
	const uint64_t patience =
		g->session != NULL ? g->session->watchdog_ms * ms : PATIENCE_MS * ms;
	uint64_t progress = atomic_load(&g->progress);

	while (!nb_lock_timed(&g->regions.lock, old, patience)) {
		const uint64_t now = atomic_load(&g->progress);

		if (now == progress && nb_guest_is_helper(g, atomic_load(&g->regions.lock.owner))) {
			atomic_store(&g->revoked, 1);
			nb_lock_steal(&g->regions.lock, old);
			break;
		}
		progress = now;
	}
}

/* A thread that forks holds the lock already, also when handlers of other libraries run. */
static bool has_it(struct nb_guest *g)
{
	const uint32_t forking = atomic_load(&g->fork_tid);

	return forking != 0 && forking == (uint32_t)NB_OS_0(gettid);
}

void nb_guest_hold(struct nb_guest *g, struct nb_hold *h)
{
	h->locked = true;
	if (atomic_load(&g->sandboxed))
		nb_lock_spin(&g->regions.lock);
	else if (has_it(g))
		h->locked = false;
	else
		lock_or_steal(g, &h->signals);
}

void nb_guest_release(struct nb_guest *g, const struct nb_hold *h)
{
	if (!h->locked)
		return;
	if (atomic_load(&g->sandboxed))
		nb_lock_init(&g->regions.lock);
	else
		nb_unlock(&g->regions.lock, &h->signals);
}

static struct nb_request *claim(struct nb_guest *g)
{
	for (int i = 0; i < NB_MAX_REQUESTS; i++) {
		uint32_t free = NB_REQUEST_FREE;

		if (atomic_compare_exchange_strong(&g->request[i].state, &free, NB_REQUEST_CLAIMED))
			return &g->request[i];
	}
	return NULL;
}

/* A child that a fork made unseen has a copy of all this, and no helpers. */
static bool helpers_there(struct nb_guest *g)
{
	if (atomic_load(&g->agent_tid) == 0 && atomic_load(&g->watchdog_tid) == 0)
		return false;
	return (uint32_t)NB_OS_0(getpid) == g->pid;
}

void nb_nudge(struct nb_guest *g)
{
	const uint32_t tid = atomic_load(&g->agent_tid);

	if (tid != 0)
		NB_OS_3(tgkill, g->pid, tid, NB_NUDGE);
}

/* What must be answered is waited for as long as anybody is there to answer. */
static bool take_back(struct nb_guest *g, struct nb_request *r, bool must)
{
	uint32_t pending = NB_REQUEST_PENDING;

	if (must && helpers_there(g))
		return false;
	return atomic_compare_exchange_strong(&r->state, &pending, NB_REQUEST_CLAIMED);
}

/*
 * Being served for long, and without any progress: who serves is stopped. From now on the helpers
 * change nothing, and the slot is lost.
 */
static bool is_stuck(struct nb_guest *g, struct nb_request *r, uint64_t *progress, uint64_t *since)
{
	const uint64_t now = nb_os_now_ns(), seen = atomic_load(&g->progress);

	if (seen != *progress || atomic_load(&r->state) != NB_REQUEST_TAKEN) {
		*progress = seen;
		*since = now;
		return false;
	}
	if (now - *since < STUCK_TIMES * g->session->watchdog_ms * ms)
		return false;
	atomic_store(&g->revoked, 1);
	return true;
}

static int wait_for(struct nb_guest *g, struct nb_request *r, bool must)
{
	uint64_t progress = atomic_load(&g->progress), since = nb_os_now_ns();
	uint32_t state;

	while ((state = atomic_load(&r->state)) != NB_REQUEST_DONE) {
		if (nb_futex_wait(&r->state, state, PATIENCE_MS * ms) != -ETIMEDOUT)
			continue;
		if (take_back(g, r, must))
			return -EAGAIN;
		if (is_stuck(g, r, &progress, &since))
			return -ETIMEDOUT;
	}
	return r->answer;
}

int nb_ask(struct nb_guest *g, const struct nb_wish *wish)
{
	const bool must = wish->kind != NB_REQUEST_ADOPT;
	struct nb_signals signals;
	struct nb_request *r = NULL;
	int answer;

	if (!helpers_there(g))
		return -EAGAIN;
	nb_signals_block(&signals);
	while (helpers_there(g) && (r = claim(g)) == NULL && must)
		nb_futex_wait(&g->request[0].state, NB_REQUEST_PENDING, ms / 10);
	if (r == NULL) {
		nb_signals_restore(&signals);
		return -EAGAIN;
	}
	r->wish = *wish;
	r->asked_ns = nb_os_now_ns();
	atomic_store(&r->state, NB_REQUEST_PENDING);
	nb_nudge(g);
	answer = wait_for(g, r, must);
	if (answer != -ETIMEDOUT)
		atomic_store(&r->state, NB_REQUEST_FREE);
	nb_signals_restore(&signals);
	return answer;
}

int nb_requests_serve(struct nb_guest *g, uint64_t age_ns, nb_serve_fn serve, void *ctx)
{
	const uint64_t now = nb_os_now_ns();
	int served = 0;

	for (int i = 0; i < NB_MAX_REQUESTS; i++) {
		struct nb_request *r = &g->request[i];
		uint32_t pending = NB_REQUEST_PENDING;

		if (atomic_load(&r->state) != pending || now - r->asked_ns < age_ns)
			continue;
		if (!atomic_compare_exchange_strong(&r->state, &pending, NB_REQUEST_TAKEN))
			continue;
		r->answer = serve(ctx, &r->wish);
		atomic_store(&r->state, NB_REQUEST_DONE);
		nb_futex_wake(&r->state, 1);
		served++;
	}
	return served;
}
