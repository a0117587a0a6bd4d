/* SPDX-License-Identifier: MIT */
/*
 * trace: events as text lines that those who live in `perf script` can grep:
 *
 *	mm1 12 [000] 12.345678: sched:sched_skip_vma_numa: numa_scan_offset=0 vm_start=7F00
 *vm_end=8F00 reason=scan_delay
 *
 * (address space, task, CPU: not recorded, time in seconds: event: fields). Where the kernel has a
 *tracepoint for what happened, the line is that tracepoint's, with its fields in its order:
 *sched:sched_skip_vma_numa, migrate:mm_migrate_pages, migrate:mm_numa_migrate_ratelimit. All else
 *is numabal:NAME: key=value ...
 */
#ifndef NB_REPORT_TRACE_H
#define NB_REPORT_TRACE_H

#include <stdio.h>
#include "../engine/events.h"

/* Fill in f (and node_ids), leave the rest 0. */
struct report_tracer {
	FILE *f;
	const int *node_ids;  /* what node indexes stand for; NULL: print the indexes */
	uint64_t scan_offset; /* of the scan that is running: numa_scan_offset of the skips in it */
};

/* Has the type of nb_machine.trace; `tracer` is the struct report_tracer. Look at f's error
 * indicator afterwards. */
void report_trace_event(void *tracer, const struct nb_event *e);

/* One event by itself; numa_scan_offset is 0. 0 or -EIO. */
int report_trace_line(FILE *f, const struct nb_event *e);

#endif
