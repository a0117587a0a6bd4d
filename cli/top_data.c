/* SPDX-License-Identifier: MIT */
#include "top_data.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "../live/launch.h"

static const double WATCH_S = 10;     /* agents survey for so long after a look */
static const double FIND_EVERY_S = 2; /* new sessions are looked for that often */

enum { TRIES = 100 };

struct opened {
	char path[NB_SESSION_PATH];
	struct nb_session *session;
	bool writable;
	bool there; /* found by the last look for sessions */
};

struct top_data {
	uint32_t pid; /* 0 = all */
	size_t nr_sessions, nr_processes;
	struct opened *sessions;
	struct top_process *processes;
	double first_s, last_s, interval_s, next_find_s;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- sessions ---- */

static int add_session(struct top_data *d, uint32_t pid, const char *path, char *why, size_t len)
{
	struct opened *more = reallocarray(d->sessions, d->nr_sessions + 1, sizeof(*more));
	struct opened *o;
	int err;

	if (more == NULL)
		return -ENOMEM;
	d->sessions = more;
	o = &more[d->nr_sessions];
	memset(o, 0, sizeof(*o));
	err = nb_session_open(pid, &o->session, &o->writable, why, len);
	if (err != 0)
		return err;
	snprintf(o->path, sizeof(o->path), "%s", path);
	o->there = true;
	d->nr_sessions++;
	return 0;
}

static int found(void *ctx, uint32_t pid, const char *path)
{
	struct top_data *d = ctx;

	for (size_t i = 0; i < d->nr_sessions; i++)
		if (strcmp(d->sessions[i].path, path) == 0) {
			d->sessions[i].there = true;
			return 0;
		}
	/* One that can't be opened belongs to somebody else, or to another version. */
	return add_session(d, pid, path, NULL, 0) == -ENOMEM ? -ENOMEM : 0;
}

static void process_free(struct top_process *p)
{
	free(p->history);
	free(p->node_bytes);
}

static void drop_session(struct top_data *d, struct opened *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->nr_processes; i++) {
		if (d->processes[i].session == o->session)
			process_free(&d->processes[i]);
		else
			d->processes[kept++] = d->processes[i];
	}
	d->nr_processes = kept;
	munmap(o->session, (size_t)o->session->bytes);
	*o = d->sessions[--d->nr_sessions];
}

static int find_sessions(struct top_data *d, double now)
{
	int err;

	if (d->pid != 0 || now < d->next_find_s)
		return 0;
	d->next_find_s = now + FIND_EVERY_S;
	for (size_t i = 0; i < d->nr_sessions; i++)
		d->sessions[i].there = false;
	err = nb_sessions_each(found, d);
	for (size_t i = d->nr_sessions; err == 0 && i-- > 0;)
		if (!d->sessions[i].there)
			drop_session(d, &d->sessions[i]);
	return err == -ENOMEM ? err : 0;
}

int top_open(struct top_data **out, uint32_t pid, char *why, size_t why_len)
{
	struct top_data *d = calloc(1, sizeof(*d));
	int err = 0;

	if (d == NULL)
		return -ENOMEM;
	d->pid = pid;
	if (pid != 0)
		err = add_session(d, pid, "", why, why_len);
	if (err == 0)
		*out = d;
	else
		top_close(d);
	return err;
}

void top_close(struct top_data *d)
{
	for (size_t i = 0; i < d->nr_processes; i++)
		process_free(&d->processes[i]);
	for (size_t i = 0; i < d->nr_sessions; i++)
		munmap(d->sessions[i].session, (size_t)d->sessions[i].session->bytes);
	free(d->processes);
	free(d->sessions);
	free(d);
}

/* ---- processes ---- */

static struct top_process *process_of(
	struct top_data *d, const struct nb_session *s, const struct nb_slot *slot, uint32_t pid)
{
	struct top_process *more, *p;

	for (size_t i = 0; i < d->nr_processes; i++)
		if (d->processes[i].slot == slot && d->processes[i].pid == pid)
			return &d->processes[i];
	more = reallocarray(d->processes, d->nr_processes + 1, sizeof(*more));
	if (more == NULL)
		return NULL;
	d->processes = more;
	p = &more[d->nr_processes];
	*p = (struct top_process){.session = s, .slot = slot, .pid = pid};
	p->history = calloc(TOP_HISTORY, 1);
	p->node_bytes = calloc(s->nr_nodes, sizeof(*p->node_bytes));
	if (p->history == NULL || p->node_bytes == NULL) {
		process_free(p);
		return NULL;
	}
	d->nr_processes++;
	return p;
}

/* Names come from programs. */
static void take_name(struct top_process *p)
{
	memcpy(p->name, p->slot->comm, sizeof(p->slot->comm));
	p->name[sizeof(p->name) - 1] = '\0';
	for (char *c = p->name; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

/* The writer takes milliseconds, once a second. */
static void take_survey(struct top_process *p)
{
	const struct timespec pause = {0, 1000000};

	for (int i = 0; i < TRIES; i++) {
		const uint32_t version = atomic_load(&p->slot->survey.version);

		if (version % 2 == 0) {
			memcpy(&p->survey, &p->slot->survey, sizeof(p->survey));
			memcpy(p->node_bytes, nb_session_node_bytes(p->session, p->slot),
				p->session->nr_nodes * sizeof(*p->node_bytes));
			atomic_thread_fence(memory_order_acquire);
			if (atomic_load(&p->slot->survey.version) == version)
				break;
		}
		nanosleep(&pause, NULL);
	}
	if (p->survey.nr_regions > NB_SURVEY_REGIONS)
		p->survey.nr_regions = 0;
}

static double rate(uint64_t now, uint64_t before, double s)
{
	return s > 0 && now >= before ? (double)(now - before) / s : NAN;
}

static void take_stats(struct top_process *p, double s)
{
	const struct nb_live_stats *stats = &p->slot->stats;
	const uint64_t faults = atomic_load(&stats->faults), moved = atomic_load(&stats->moved);
	const uint64_t agent = atomic_load(&stats->agent_ns);
	const uint64_t samples = atomic_load(&stats->last_samples);
	const bool first = p->nr_history == 0;

	p->managed = atomic_load(&stats->managed_bytes);
	p->regions_made = atomic_load(&stats->regions);
	p->notes = atomic_load(&p->slot->notes);
	p->local = samples > 0 ? fmin(1, (double)atomic_load(&stats->last_local) / (double)samples)
			       : NAN;
	p->faults_s = first ? NAN : rate(faults, p->faults, s);
	p->moved_s = first ? NAN : rate(moved, p->moved, s);
	p->agent_share = first ? NAN : rate(agent, p->agent_ns, s) * 1e-9;
	p->faults = faults;
	p->moved = moved;
	p->agent_ns = agent;
}

static int look_at(
	struct top_data *d, const struct nb_session *s, const struct nb_slot *slot, uint32_t pid)
{
	struct top_process *p = process_of(d, s, slot, pid);

	if (p == NULL)
		return -ENOMEM;
	p->seen = true;
	p->ended = kill((pid_t)pid, 0) != 0 && errno == ESRCH;
	take_name(p);
	take_stats(p, d->interval_s);
	take_survey(p);
	p->history[p->nr_history++ % TOP_HISTORY] =
		isnan(p->local) ? TOP_NO_SHARE : (unsigned char)(p->local * 100 + 0.5);
	return 0;
}

/* Those that are over, where all sessions are shown, and slots that others took. */
static void drop_gone(struct top_data *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->nr_processes; i++) {
		struct top_process *p = &d->processes[i];

		if (!p->seen || (p->ended && d->pid == 0))
			process_free(p);
		else
			d->processes[kept++] = *p;
	}
	d->nr_processes = kept;
}

int top_look(struct top_data *d)
{
	const double now = now_s();
	int err = find_sessions(d, now);

	if (d->first_s == 0)
		d->first_s = now;
	d->interval_s = d->last_s > 0 ? now - d->last_s : 0;
	d->last_s = now;
	for (size_t i = 0; i < d->nr_processes; i++)
		d->processes[i].seen = false;
	for (size_t i = 0; err == 0 && i < d->nr_sessions; i++) {
		struct nb_session *s = d->sessions[i].session;

		if (d->sessions[i].writable)
			nb_session_watch(s, WATCH_S);
		for (int k = 0; err == 0 && k < NB_SESSION_SLOTS; k++) {
			const uint32_t pid = atomic_load(&s->slot[k].pid);

			if (pid != 0)
				err = look_at(d, s, &s->slot[k], pid);
		}
	}
	if (err == 0)
		drop_gone(d);
	return err;
}

/* ---- asking ---- */

size_t top_nr(const struct top_data *d)
{
	return d->nr_processes;
}

const struct top_process *top_at(const struct top_data *d, size_t i)
{
	return &d->processes[i];
}

const struct top_process *top_find(const struct top_data *d, uint32_t pid)
{
	for (size_t i = 0; i < d->nr_processes; i++)
		if (d->processes[i].pid == pid)
			return &d->processes[i];
	return NULL;
}

double top_watched_s(const struct top_data *d)
{
	return d->last_s - d->first_s;
}

double top_interval_s(const struct top_data *d)
{
	return d->interval_s;
}

bool top_over(const struct top_data *d)
{
	if (d->pid == 0 || (kill((pid_t)d->pid, 0) == 0 || errno != ESRCH))
		return false;
	for (size_t i = 0; i < d->nr_processes; i++)
		if (!d->processes[i].ended)
			return false;
	return true;
}
