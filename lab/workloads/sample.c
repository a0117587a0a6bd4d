/* SPDX-License-Identifier: MIT */
/* See sample.h. */
#include "sample.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../guest/proc.h"

enum { SAMPLES = 1024 }; /* pages of a slice that are asked for */

struct sampler {
	const struct work_options *opt;
	struct work_shared *shared;
	const pid_t *pids;
	unsigned int nr_nodes;
	struct probe *probe;
	FILE *out;
	char *text; /* a file of the kernel's */
	size_t text_size;
	uint64_t first[PROC_MAX_COUNTERS]; /* counters at the start */
	struct proc_sched main[WORK_MAX_PROCESSES], sched[WORK_MAX_THREADS];
	uint64_t used[WORK_MAX_THREADS][WORK_MAX_NODES]; /* at the last row */
	/* of this row */
	double weighted_local, weight, used_local, used_weight;
	uint64_t bytes;
};

/* Where some pages of a range are. */
struct places {
	unsigned int known, on_node[WORK_MAX_NODES];
};

void sampler_free(struct sampler *s)
{
	if (s)
		free(s->text);
	free(s);
}

static unsigned int nr_threads(const struct sampler *s)
{
	return s->opt->processes * s->opt->threads;
}

/* ---- head ---- */

static void head_thread(const struct sampler *s, unsigned int i)
{
	static const char *const columns[] = {"cpu", "node", "bytes", "runtime_ms", "pref_nid",
		"scan_seq", "scan_period", "scan_period_max", "total_faults", "loc_remote",
		"loc_local", "loc_failed", "migrated", "local_frac"};

	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
		fprintf(s->out, ",t%u_%s", i, columns[c]);
	for (unsigned int node = 0; node < s->nr_nodes; node++)
		fprintf(s->out, ",t%u_sl_N%u", i, node);
	for (unsigned int node = 0; node < s->nr_nodes; node++)
		fprintf(s->out, ",t%u_used_N%u", i, node);
	if (s->opt->pattern == WORK_ZIPF)
		fprintf(s->out, ",t%u_hot_local_frac", i);
	if (s->opt->pattern == WORK_LATE) {
		fprintf(s->out, ",t%u_bytes2,t%u_local_frac2", i, i);
		for (unsigned int node = 0; node < s->nr_nodes; node++)
			fprintf(s->out, ",t%u_sl2_N%u", i, node);
	}
}

void sampler_head(struct sampler *s)
{
	fputs("t", s->out);
	for (size_t i = 0; i < proc_nr_counters; i++)
		fprintf(s->out, ",%s", proc_counters[i]);
	for (unsigned int p = 0; p < s->opt->processes; p++) {
		for (unsigned int node = 0; node < s->nr_nodes; node++)
			fprintf(s->out, ",p%u_N%u", p, node);
		fprintf(s->out, ",p%u_mm_scan_seq", p);
	}
	for (unsigned int i = 0; i < nr_threads(s); i++)
		head_thread(s, i);
	fputs(",bytes_total,local_frac,used_local_frac,sampler_ms\n", s->out);
}

/* ---- parts of a row ---- */

static const char *read_text(struct sampler *s, const char *path)
{
	return proc_read(path, &s->text, &s->text_size) < 0 ? "" : s->text;
}

static void read_counters(struct sampler *s, uint64_t *values)
{
	proc_parse_vmstat(read_text(s, "/proc/vmstat"), values);
}

static void row_counters(struct sampler *s)
{
	uint64_t now[PROC_MAX_COUNTERS];

	read_counters(s, now);
	for (size_t i = 0; i < proc_nr_counters; i++)
		fprintf(s->out, ",%llu", (unsigned long long)(now[i] - s->first[i]));
}

static void read_sched(struct sampler *s, int pid, int tid, struct proc_sched *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", pid, tid);
	proc_parse_sched(read_text(s, path), out);
}

/* Main threads too: they scan as well, and are there before the others. */
static void read_tasks(struct sampler *s)
{
	for (unsigned int p = 0; p < s->opt->processes; p++) {
		read_sched(s, s->pids[p], s->pids[p], &s->main[p]);
		if (s->probe)
			probe_task(s->probe, s->pids[p]);
	}
	for (unsigned int i = 0; i < nr_threads(s); i++) {
		const int tid = atomic_load(&s->shared->threads[i].tid);

		s->sched[i] = (struct proc_sched){0};
		if (tid)
			read_sched(s, s->pids[i / s->opt->threads], tid, &s->sched[i]);
	}
	if (s->probe)
		probe_take(s->probe);
}

static void row_process(struct sampler *s, unsigned int process)
{
	uint64_t pages[WORK_MAX_NODES];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int)s->pids[process]);
	proc_parse_numa_maps(read_text(s, path), pages, s->nr_nodes);
	for (unsigned int node = 0; node < s->nr_nodes; node++)
		fprintf(s->out, ",%llu", (unsigned long long)pages[node]);
	fprintf(s->out, ",%lld", (long long)s->main[process].mm_scan_seq);
}

static void count_places(struct places *where, const int *status, unsigned int nr)
{
	*where = (struct places){0};
	for (unsigned int i = 0; i < nr; i++) {
		if (status[i] < 0 || status[i] >= WORK_MAX_NODES)
			continue; /* not there yet */
		where->known++;
		where->on_node[status[i]]++;
	}
}

static void ask_places(
	struct sampler *s, unsigned int thread, void **pages, unsigned int nr, struct places *where)
{
	int status[SAMPLES];

	for (unsigned int i = 0; i < nr; i++)
		status[i] = -1;
	if (nr)
		syscall(SYS_move_pages, s->pids[thread / s->opt->threads], (unsigned long)nr, pages,
			NULL, status, 0);
	count_places(where, status, nr);
}

/* Pages spread evenly over a range. */
static void ask_range(
	struct sampler *s, unsigned int thread, uint64_t at, uint64_t len, struct places *where)
{
	const uint64_t pages = len / WORK_PAGE;
	const unsigned int nr = pages < SAMPLES ? (unsigned int)pages : SAMPLES;
	void *addresses[SAMPLES];

	for (unsigned int i = 0; i < nr; i++)
		addresses[i] = (void *)(uintptr_t)(at + i * pages / nr * WORK_PAGE);
	ask_places(s, thread, addresses, at ? nr : 0, where);
}

/* The tenth of a zipf slice that is accessed most. */
static void ask_hot(
	struct sampler *s, unsigned int thread, uint64_t at, uint64_t len, struct places *where)
{
	const uint64_t pages = len / WORK_PAGE, hot = pages / 10;
	const unsigned int nr = hot < SAMPLES ? (unsigned int)hot : SAMPLES;
	void *addresses[SAMPLES];

	for (unsigned int i = 0; i < nr; i++)
		addresses[i] = (void *)(uintptr_t)(at + work_page_of_rank(i * hot / nr, pages) *
								WORK_PAGE);
	ask_places(s, thread, addresses, at ? nr : 0, where);
}

static double share_on(const struct places *where, int node, double unknown)
{
	if (!where->known)
		return unknown;
	return node < 0 ? 0 : (double)where->on_node[node] / where->known;
}

static void row_kernel_columns(struct sampler *s, unsigned int i)
{
	static const struct probe_task none;
	const int tid = atomic_load(&s->shared->threads[i].tid);
	const struct probe_task *seen = s->probe && tid ? probe_task(s->probe, tid) : NULL;
	const struct probe_task *k = seen ? seen : &none;

	fprintf(s->out, ",%.0f,%lld,%llu,%u,%u,%lld,%llu,%llu,%llu,%lld", s->sched[i].runtime_ms,
		(long long)s->sched[i].preferred_nid, (unsigned long long)k->scan_seq,
		k->scan_period, k->scan_period_max, (long long)s->sched[i].total_faults,
		(unsigned long long)k->locality[0], (unsigned long long)k->locality[1],
		(unsigned long long)k->locality[2], (long long)s->sched[i].migrated);
}

static void row_late(struct sampler *s, unsigned int i, int node)
{
	struct work_thread *t = &s->shared->threads[i];
	const uint64_t at = atomic_load(&t->late_slice), bytes = atomic_load(&t->late_bytes);
	struct places where;

	ask_range(s, i, at, t->late_len, &where);
	s->bytes += bytes;
	s->weighted_local += at ? share_on(&where, node, 0) * (double)t->late_len : 0;
	s->weight += at ? (double)t->late_len : 0;
	fprintf(s->out, ",%llu,%.4f", (unsigned long long)bytes, share_on(&where, node, -1));
	for (unsigned int n = 0; n < s->nr_nodes; n++)
		fprintf(s->out, ",%.4f", share_on(&where, (int)n, -1));
}

/*
 * The share of what the thread did since the last row that was local, as far as its pages' places
 * tell now. Where it is found now says less: the watcher runs now, and somebody has to make room.
 */
static double used_local(struct sampler *s, unsigned int i, const struct places *where)
{
	uint64_t all = 0;
	double local = 0;

	for (unsigned int n = 0; n < s->nr_nodes; n++) {
		const uint64_t used = atomic_load(&s->shared->threads[i].used[n]);
		const uint64_t bytes = used - s->used[i][n];

		fprintf(s->out, ",%llu", (unsigned long long)used);
		s->used[i][n] = used;
		all += bytes;
		local += (double)bytes * share_on(where, (int)n, 0);
	}
	return all > 0 ? local / (double)all : 0;
}

static void row_thread(struct sampler *s, unsigned int i)
{
	struct work_thread *t = &s->shared->threads[i];
	const uint64_t at = atomic_load(&t->slice), bytes = atomic_load(&t->bytes);
	const int node = atomic_load(&t->node);
	struct places where;

	fprintf(s->out, ",%d,%d,%llu", atomic_load(&t->cpu), node, (unsigned long long)bytes);
	row_kernel_columns(s, i);
	ask_range(s, i, at, t->slice_len, &where);
	fprintf(s->out, ",%.4f", share_on(&where, node, 0));
	for (unsigned int n = 0; n < s->nr_nodes; n++)
		fprintf(s->out, ",%.4f", share_on(&where, (int)n, 0));
	s->used_local += used_local(s, i, &where) * (double)t->slice_len;
	s->used_weight += where.known ? (double)t->slice_len : 0;
	s->bytes += bytes;
	s->weighted_local += share_on(&where, node, 0) * (double)t->slice_len;
	s->weight += where.known ? (double)t->slice_len : 0;
	if (s->opt->pattern == WORK_ZIPF) {
		ask_hot(s, i, at, t->slice_len, &where);
		fprintf(s->out, ",%.4f", share_on(&where, node, 0));
	}
	if (s->opt->pattern == WORK_LATE)
		row_late(s, i, node);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void sampler_row(struct sampler *s, double t_s)
{
	const double began = now_ms();

	s->bytes = 0;
	s->weighted_local = s->weight = s->used_local = s->used_weight = 0;
	fprintf(s->out, "%.3f", t_s);
	row_counters(s);
	read_tasks(s);
	for (unsigned int p = 0; p < s->opt->processes; p++)
		row_process(s, p);
	for (unsigned int i = 0; i < nr_threads(s); i++)
		row_thread(s, i);
	fprintf(s->out, ",%llu,%.4f,%.4f,%.1f\n", (unsigned long long)s->bytes,
		s->weight > 0 ? s->weighted_local / s->weight : 0,
		s->used_weight > 0 ? s->used_local / s->used_weight : 0, now_ms() - began);
}

struct sampler *sampler_new(const struct work_options *opt, struct work_shared *shared,
	const pid_t *pids, unsigned int nr_nodes, struct probe *probe, FILE *out)
{
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct sampler){.opt = opt,
		.shared = shared,
		.pids = pids,
		.nr_nodes = nr_nodes,
		.probe = probe,
		.out = out};
	read_counters(s, s->first);
	return s;
}
