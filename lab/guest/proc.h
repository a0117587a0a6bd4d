/* SPDX-License-Identifier: MIT */
/* proc: the kernel's files that the watcher reads. Parsers take text, so that they can be tested.
 */
#ifndef NB_LAB_PROC_H
#define NB_LAB_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The counters that are watched, in the order of the columns. */
extern const char *const proc_counters[];
extern const size_t proc_nr_counters;
enum { PROC_MAX_COUNTERS = 32 };

/* Text of /proc/vmstat -> values[proc_nr_counters]; what the kernel lacks is 0. */
void proc_parse_vmstat(const char *text, uint64_t *values);

/* Text of /proc/PID/numa_maps -> pages of 4 KiB on each node; nodes from `nr_nodes` on are left
 * out. */
void proc_parse_numa_maps(const char *text, uint64_t *pages, unsigned int nr_nodes);

struct proc_sched {
	double runtime_ms;
	int64_t preferred_nid, migrated, total_faults, mm_scan_seq;
};
/* Text of /proc/PID/task/TID/sched. What is not there is 0. */
void proc_parse_sched(const char *text, struct proc_sched *out);

/* Highest id + 1 of a list such as "0-1,4" (/sys/devices/system/node/online); 0 when there is none.
 */
unsigned int proc_list_end(const char *text);

/*
 * A whole file, into a buffer that grows and is kept for the next time (*buffer NULL at first; the
 * caller frees it). Ends with a NUL. -errno, or the length.
 */
ssize_t proc_read(const char *path, char **buffer, size_t *size);

#endif
