/* SPDX-License-Identifier: MIT */
/*
 * work: the lab's workloads, and what is shared between the processes that work and the one that
 * watches them.
 *
 * Small programs whose pages have a known owner, so that where a page should be is known without
 * asking the kernel: each thread has a slice (struct work_thread), and a page of it is in the right
 * place on the node the thread runs on.
 */
#ifndef NB_LAB_WORK_H
#define NB_LAB_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WORK_MAX_PROCESSES = 8,
	WORK_MAX_THREADS = 64, /* of all processes */
	WORK_MAX_NODES = 64,
	WORK_PAGE = 4096,
};

/* X(NAME, "name", processes, per = threads of all are CPUs / per, MiB a process, text) */
#define WORK_PATTERNS(X)                                                                           \
	X(NUMA01, "numa01", 2, 1, 160, "each thread clears all of its process' memory, for ever")  \
	X(NUMA01_TA, "numa01_TA", 2, 1, 160,                                                       \
		"each clears it all once, then its own share for ever")                            \
	X(NUMA02, "numa02", 1, 1, 256, "the main thread clears all, then each thread its share")   \
	X(NUMA02_SMT, "numa02_SMT", 1, 2, 256, "the same with half as many threads")               \
	X(ZIPF, "zipf", 1, 1, 256,                                                                 \
		"each thread changes random lines, its own pages by zipf(0.99), some of all")      \
	X(LATE, "late", 1, 1, 128,                                                                 \
		"as numa02; after some time the threads use a second, new region too")

enum work_pattern {
#define X(NAME, name, processes, per, mib, text) WORK_##NAME,
	WORK_PATTERNS(X)
#undef X
		WORK_NR_PATTERNS,
};

struct work_options {
	enum work_pattern pattern;
	unsigned int processes;
	unsigned int threads; /* of each process */
	uint64_t bytes;	      /* of each process; whole pages for each thread */
	double seconds;	      /* the run's length */
	int start_node; /* memory is first touched there, by policy; -1 = by the program itself */
	unsigned int shared_pct; /* zipf: accesses to all of the memory, in percent */
	double late_s;		 /* late: when the second region is made */
	uint64_t late_bytes;	 /* late: its size */
	bool pin;		 /* thread i runs on CPU i alone */
	uint64_t seed;
	const char *csv, *scans; /* files to write; scans may be NULL */
};

/* What a thread tells. One cache line each: they must not disturb each other. */
struct work_thread {
	_Alignas(128) _Atomic uint64_t bytes; /* cleared or accessed; of the first region */
	_Atomic uint64_t late_bytes;	      /* of the second */
	_Atomic int tid, cpu, node; /* where it was when it last said; tid 0 = not there yet */
	_Atomic uint64_t slice, late_slice;    /* address of its part; 0 = not yet known */
	uint64_t slice_len, late_len;	       /* bytes; set before the addresses */
	_Atomic uint64_t used[WORK_MAX_NODES]; /* bytes of both, by the node where it ran */
};

struct work_shared {
	struct work_thread threads[WORK_MAX_THREADS];
	_Atomic int failed; /* errno of the first thing that went wrong in a process */
};

/* options.c: 0, or -EINVAL with one line in `why`. `cpus` gives the defaults. */
int work_parse(struct work_options *opt, unsigned int cpus, int argc, char **argv, char *why,
	size_t why_len);
const char *work_usage(void);
const char *work_name(enum work_pattern pattern);

/* load.c: the process with this number, in the process that shall do the work. Never returns. */
_Noreturn void work_process(
	const struct work_options *opt, struct work_shared *shared, unsigned int process);

/*
 * The page of a slice of `pages` that is accessed most (rank 0), second most ...: scattered over
 * the slice so that neighbours are not alike. The factor is Knuth's; as a prime larger than any
 * slice it gives each page one rank.
 */
static inline uint64_t work_page_of_rank(uint64_t rank, uint64_t pages)
{
	return rank * UINT64_C(2654435761) % pages;
}

#endif
