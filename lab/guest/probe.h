/* SPDX-License-Identifier: MIT */
/*
 * probe: what the kernel shows in no file: a task's scan period and locality, and each scan's size
 * and cost.
 *
 * Kprobes through tracefs, in an instance of our own. proc_sched_show_task runs only when somebody
 * reads /proc/PID/task/TID/sched, so this costs the watched program nothing; task_numa_work and
 * change_prot_numa run a few times a second at most.
 */
#ifndef NB_LAB_PROBE_H
#define NB_LAB_PROBE_H

#include <stddef.h>
#include <stdint.h>

/* As read by the last /proc/PID/task/TID/sched. */
struct probe_task {
	int tid;
	unsigned int scan_period, scan_period_max; /* ms */
	uint64_t scan_seq, total_faults, migrated;
	uint64_t locality[3]; /* remote, local, failed: numa_faults_locality */
};

/* A scan of a task's address space (task_numa_work), from its beginning to its end. */
struct probe_scan {
	int tid;
	double began_s; /* CLOCK_MONOTONIC */
	double took_us;
	unsigned int scan_period; /* ms, before the scan */
	unsigned int calls;	  /* of change_prot_numa: ranges */
	uint64_t pages, updated;  /* of 4 KiB: in those ranges; armed (a huge one counts 512) */
	double in_calls_us;
};

struct probe;

/*
 * NULL and one line in `why` when this kernel offers no such probes. `on_scan` is called from
 * probe_take for each scan of a task that was asked for.
 */
struct probe *probe_open(void (*on_scan)(void *arg, const struct probe_scan *scan), void *arg,
	char *why, size_t why_len);
/* Take what was traced since the last time. */
void probe_take(struct probe *p);
/* What was last seen of a task; NULL when nothing was. From then on its scans are written to
 * `scans`. */
const struct probe_task *probe_task(struct probe *p, int tid);
/* Removes the probes. NULL is allowed. */
void probe_close(struct probe *p);

#endif
