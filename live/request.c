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
	PATIENCE_MS = 2000, /* for what may be left undone */
};

static const uint64_t ms = 1000000;

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
	if ((uint32_t)NB_OS_0(getpid) != g->pid)
		return false;
	return atomic_load(&g->agent_tid) != 0 || atomic_load(&g->watchdog_tid) != 0;
}

void nb_nudge(struct nb_guest *g)
{
	const uint32_t tid = atomic_load(&g->agent_tid);

	if (tid != 0)
		NB_OS_3(tgkill, g->pid, tid, SIGURG);
}

/* What must be answered is waited for as long as anybody is there to answer. */
static bool give_up(struct nb_guest *g, struct nb_request *r, bool must)
{
	uint32_t pending = NB_REQUEST_PENDING;

	if (must && helpers_there(g))
		return false;
	return atomic_compare_exchange_strong(&r->state, &pending, NB_REQUEST_CLAIMED);
}

static int wait_for(struct nb_guest *g, struct nb_request *r, bool must)
{
	uint32_t state;

	while ((state = atomic_load(&r->state)) != NB_REQUEST_DONE) {
		const long rc = nb_futex_wait(&r->state, state, PATIENCE_MS * ms);

		if (rc == -ETIMEDOUT && give_up(g, r, must))
			return -EAGAIN;
	}
	return r->answer;
}

int nb_ask(struct nb_guest *g, const struct nb_wish *wish)
{
	const bool must = wish->kind != NB_REQUEST_ADOPT;
	struct nb_signals signals;
	struct nb_request *r = NULL;
	int answer;

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
