/* SPDX-License-Identifier: MIT */
/* See probe.h. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../engine/why.h"
#include "btf.h"
#include "proc.h"

#define TRACING	 "/sys/kernel/tracing"
#define INSTANCE TRACING "/instances/numabal"

enum { MAX_TASKS = 256, PAGE = 4096 };

/* A scan that is going on: task_numa_work was entered and has not returned. */
struct going {
	bool on;
	double call_began_s;
	struct probe_scan scan;
};

struct probe {
	void (*on_scan)(void *arg, const struct probe_scan *scan);
	void *arg;
	int pipe; /* trace_pipe, non-blocking */
	char line[1024];
	size_t have;
	unsigned int nr;
	struct probe_task tasks[MAX_TASKS];
	struct going going[MAX_TASKS]; /* of the task with the same index */
};

/* ---- tracefs ---- */

static bool put(const char *path, const char *text, int flags)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static const struct {
	const char *name, *member;
} members[] = {{"period", "numa_scan_period"}, {"period_max", "numa_scan_period_max"},
	{"seq", "numa_scan_seq"}, {"total", "total_numa_faults"},
	{"locality", "numa_faults_locality"}, {"migrated", "numa_pages_migrated"},
	{"work", "numa_work"}, {"tid", "pid"}};
enum { PERIOD, PERIOD_MAX, SEQ, TOTAL, LOCALITY, MIGRATED, WORK, TID, NR_MEMBERS };

static int find_members(long offset[NR_MEMBERS], char *why, size_t why_len)
{
	char *btf = NULL;
	size_t size = 0;
	const ssize_t len = proc_read("/sys/kernel/btf/vmlinux", &btf, &size);

	for (int i = 0; i < NR_MEMBERS && len >= 0; i++) {
		offset[i] = btf_offset(btf, (size_t)len, "task_struct", members[i].member);
		if (offset[i] < 0) {
			free(btf);
			return nb_why(why, why_len, -ENOENT,
				"the kernel's BTF has no task_struct.%s", members[i].member);
		}
	}
	free(btf);
	return len < 0 ? nb_why(why, why_len, (int)len, "/sys/kernel/btf/vmlinux: %s",
				 strerror((int)-len))
		       : 0;
}

/* Arguments by register: these functions' own types do not say what we want of them. */
static bool add_probes(const long o[NR_MEMBERS])
{
	char show[512], work[128];

	snprintf(show, sizeof(show),
		"p:numabal/show proc_sched_show_task tid=+%ld(%%di):s32 period=+%ld(%%di):u32 "
		"max=+%ld(%%di):u32 seq=+%ld(%%di):s32 "
		"total=+%ld(%%di):u64 remote=+%ld(%%di):u64 local=+%ld(%%di):u64 "
		"failed=+%ld(%%di):u64 migrated=+%ld(%%di):u64\n",
		o[TID], o[PERIOD], o[PERIOD_MAX], o[SEQ], o[TOTAL], o[LOCALITY], o[LOCALITY] + 8,
		o[LOCALITY] + 16, o[MIGRATED]);
	snprintf(work, sizeof(work), "p:numabal/work task_numa_work period=%+ld(%%di):u32\n",
		o[PERIOD] - o[WORK]);
	return put(TRACING "/kprobe_events", show, O_APPEND) &&
	       put(TRACING "/kprobe_events", work, O_APPEND) &&
	       put(TRACING "/kprobe_events", "r:numabal/done task_numa_work\n", O_APPEND) &&
	       put(TRACING "/kprobe_events",
		       "p:numabal/prot change_prot_numa start=%si:u64 end=%dx:u64\n", O_APPEND) &&
	       put(TRACING "/kprobe_events",
		       "r:numabal/protted change_prot_numa updated=$retval:u64\n", O_APPEND);
}

static void remove_probes(void)
{
	static const char *const names[] = {"show", "work", "done", "prot", "protted"};
	char line[64];

	put(INSTANCE "/events/numabal/enable", "0", 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line), "-:numabal/%s\n", names[i]);
		put(TRACING "/kprobe_events", line, O_APPEND);
	}
	rmdir(INSTANCE);
}

/* ---- what was traced ---- */

static int find_task(const struct probe *p, int tid)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (p->tasks[i].tid == tid)
			return (int)i;
	return -1;
}

static int find_or_add_task(struct probe *p, int tid)
{
	const int found = find_task(p, tid);

	if (found >= 0 || p->nr == MAX_TASKS)
		return found;
	p->tasks[p->nr].tid = tid;
	return (int)p->nr++;
}

/* NAME=VALUE in the line; 0 where it is not. */
static uint64_t field(const char *line, const char *name)
{
	const size_t len = strlen(name);
	const char *at = line;

	while ((at = strstr(at, name))) {
		if (at[-1] == ' ' && at[len] == '=')
			return strtoull(at + len + 1, NULL, 0);
		at += len;
	}
	return 0;
}

static void take_show(struct probe *p, const char *line)
{
	const int i = find_or_add_task(p, (int)field(line, "tid"));

	if (i < 0)
		return;
	p->tasks[i] = (struct probe_task){.tid = p->tasks[i].tid,
		.scan_period = (unsigned int)field(line, "period"),
		.scan_period_max = (unsigned int)field(line, "max"),
		.scan_seq = field(line, "seq"),
		.total_faults = field(line, "total"),
		.locality = {field(line, "remote"), field(line, "local"), field(line, "failed")},
		.migrated = field(line, "migrated")};
}

static void scan_done(struct probe *p, struct going *g, double now_s)
{
	g->scan.took_us = (now_s - g->scan.began_s) * 1e6;
	if (g->on && p->on_scan)
		p->on_scan(p->arg, &g->scan);
	g->on = false;
}

static void take_scan(struct probe *p, const char *event, const char *line, int tid, double now_s)
{
	const int i = find_task(p, tid);
	struct going *g = i < 0 ? NULL : &p->going[i];

	if (!g)
		return;
	if (!strcmp(event, "work")) {
		*g = (struct going){.on = true,
			.scan = {.tid = tid,
				.began_s = now_s,
				.scan_period = (unsigned int)field(line, "period")}};
	} else if (!strcmp(event, "prot")) {
		g->scan.calls++;
		g->call_began_s = now_s;
		g->scan.pages += (field(line, "end") - field(line, "start")) / PAGE;
	} else if (!strcmp(event, "protted")) {
		g->scan.updated += field(line, "updated");
		g->scan.in_calls_us += (now_s - g->call_began_s) * 1e6;
	} else if (!strcmp(event, "done")) {
		scan_done(p, g, now_s);
	}
}

/* "  NAME-TID [CPU] FLAGS SECONDS: EVENT: (FUNCTION...) NAME=VALUE ..."; NAME may hold anything. */
static void take_line(struct probe *p, const char *line)
{
	const char *bracket = strstr(line, " [");
	const char *tid = bracket;
	char event[16];
	double now_s;

	while (tid && tid > line && tid[-1] != '-')
		tid--;
	if (!tid || tid == line || sscanf(bracket, " [%*u] %*s %lf: %15[a-z]:", &now_s, event) != 2)
		return;
	if (!strcmp(event, "show"))
		take_show(p, line);
	else
		take_scan(p, event, line, atoi(tid), now_s);
}

static void take_bytes(struct probe *p, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			if (p->have < sizeof(p->line) - 1)
				p->line[p->have++] = bytes[i];
			continue;
		}
		p->line[p->have] = '\0';
		take_line(p, p->line);
		p->have = 0;
	}
}

void probe_take(struct probe *p)
{
	char bytes[1 << 14];
	ssize_t n;

	while ((n = read(p->pipe, bytes, sizeof(bytes))) > 0)
		take_bytes(p, bytes, (size_t)n);
}

const struct probe_task *probe_task(struct probe *p, int tid)
{
	const int i = find_or_add_task(p, tid);

	return i < 0 ? NULL : &p->tasks[i];
}

/* ---- opening and closing ---- */

struct probe *probe_open(void (*on_scan)(void *arg, const struct probe_scan *scan), void *arg,
	char *why, size_t why_len)
{
	struct probe *p = calloc(1, sizeof(*p));
	long offset[NR_MEMBERS];

	if (!p || find_members(offset, why, why_len)) {
		free(p);
		return NULL;
	}
	mkdir(INSTANCE, 0700);
	p->pipe = open(INSTANCE "/trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (p->pipe < 0 || !add_probes(offset) || !put(INSTANCE "/trace_clock", "mono", 0) ||
		!put(INSTANCE "/events/numabal/enable", "1", 0)) {
		nb_why(why, why_len, -ENOENT, "%s: %s", TRACING, strerror(errno));
		probe_close(p);
		return NULL;
	}
	p->on_scan = on_scan;
	p->arg = arg;
	return p;
}

void probe_close(struct probe *p)
{
	if (!p)
		return;
	if (p->pipe >= 0)
		close(p->pipe);
	remove_probes();
	free(p);
}
