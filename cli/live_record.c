/* SPDX-License-Identifier: MIT */
#include "live_record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "../engine/why.h"
#include "../live/ring.h"
#include "../report/record.h"

enum {
	HELD = 1 << 16, /* events kept to be put in order */
	PAUSE_MS = 20,
	SETTLE_MS = 200,  /* events of different processes arrive in order within this time */
	DEAD_ROUNDS = 50, /* a slot that stays empty for so long will never be filled */
};

struct live_record {
	struct report_recorder *recorder;
	struct nb_ring *ring;
	uint64_t start_ns, last_ns;
	struct nb_event *held;
	size_t nr_held;
	pthread_t thread;
	atomic_bool stop;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = ((const struct nb_event *)a)->time_ns,
		       y = ((const struct nb_event *)b)->time_ns;

	return x < y ? -1 : x > y;
}

/* Times are told from the start of the run. */
static void write_event(struct live_record *r, const struct nb_event *e)
{
	struct nb_event told = *e;

	told.time_ns = e->time_ns > r->start_ns ? e->time_ns - r->start_ns : 0;
	if (told.time_ns < r->last_ns)
		told.time_ns = r->last_ns;
	r->last_ns = told.time_ns;
	report_record_event(r->recorder, &told);
}

/* Write what is older than `until`, in order; keep the rest. */
static void write_settled(struct live_record *r, uint64_t until)
{
	size_t n = 0;

	qsort(r->held, r->nr_held, sizeof(r->held[0]), by_time);
	while (n < r->nr_held && r->held[n].time_ns < until)
		write_event(r, &r->held[n++]);
	for (size_t i = n; i < r->nr_held; i++)
		r->held[i - n] = r->held[i];
	r->nr_held -= n;
}

static bool drain(struct live_record *r)
{
	bool any = false;

	while (nb_ring_get(r->ring, &r->held[r->nr_held])) {
		any = true;
		if (++r->nr_held == HELD)
			write_settled(r, UINT64_MAX);
	}
	return any;
}

static void *record(void *p)
{
	struct live_record *r = p;
	const struct timespec pause = {0, PAUSE_MS * 1000000L};
	int empty = 0;

	while (!atomic_load(&r->stop)) {
		empty = drain(r) ? 0 : empty + 1;
		if (empty > DEAD_ROUNDS && nb_ring_skip(r->ring))
			empty = 0;
		write_settled(r, now_ns() - SETTLE_MS * UINT64_C(1000000));
		nanosleep(&pause, NULL);
	}
	do
		drain(r);
	while (nb_ring_skip(r->ring));
	write_settled(r, UINT64_MAX);
	return NULL;
}

static int open_recorder(struct live_record *r, struct nb_session *s, const char *path,
	const char *job, const char *system, char *why, size_t why_len)
{
	const struct nb_topology topo = nb_session_topology(s);
	int ids[NB_MAX_NODES];
	const struct report_record_header header = {
		.machine = s->flags & NB_SESSION_VIRTUAL ? "virtual" : "host",
		.job = job,
		.system = system,
		.nr_nodes = topo.nr_nodes,
		.node_ids = ids,
	};

	for (unsigned int i = 0; i < topo.nr_nodes; i++)
		ids[i] = topo.nodes[i].id;
	return report_record_open(&r->recorder, path, &header, why, why_len);
}

int live_record_start(struct live_record **out, struct nb_session *s, const char *path,
	const char *job, const char *system, char *why, size_t why_len)
{
	struct live_record *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r != NULL)
		r->held = calloc(HELD, sizeof(r->held[0]));
	if (r == NULL || r->held == NULL) {
		free(r);
		return nb_why(why, why_len, err, "no memory to record");
	}
	r->ring = nb_session_ring(s);
	r->start_ns = now_ns();
	err = open_recorder(r, s, path, job, system, why, why_len);
	if (err == 0 && pthread_create(&r->thread, NULL, record, r) != 0) {
		report_record_abort(r->recorder);
		err = nb_why(why, why_len, -EAGAIN, "no thread to record");
	}
	if (err != 0) {
		free(r->held);
		free(r);
		return err;
	}
	*out = r;
	return 0;
}

int live_record_finish(struct live_record *r, uint64_t *lost, char *why, size_t why_len)
{
	int err;

	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	*lost = atomic_load(&r->ring->lost);
	err = report_record_close(r->recorder, why, why_len);
	free(r->held);
	free(r);
	return err;
}
