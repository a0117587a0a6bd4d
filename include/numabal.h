/* SPDX-License-Identifier: MIT */
/*
 * numabal: automatic NUMA balancing of memory that a program hands over: what `numabal run` does to
 * unmodified programs, for those that can call it.
 *
 *	struct numabal *nb;
 *	int err = numabal_open(&nb, NULL);
 *	double *a = numabal_alloc(nb, bytes);
 *	...
 *	numabal_next_touch(nb, a, bytes);	// the phase changed: whoever touches it next, gets
 *it
 *	...
 *	numabal_free(nb, a, bytes);
 *	numabal_close(nb);
 *
 * Units are bytes and pages of 4 KiB. Functions return 0 or a negative errno value, set no errno,
 *print nothing and never exit. They may be called from any thread at any time, but for numabal_open
 *and numabal_close, which are for one thread at a time; and from no signal handler.
 *
 * Memory that is managed has the meaning of private anonymous memory, also over fork, as long as
 *these rules are kept: it is given back by numabal_free or numabal_release and not by munmap; and
 *mremap, madvise (MADV_DONTNEED, MADV_FREE, MADV_REMOVE) and mlock are not used on it.
 *numabal_discard is MADV_DONTNEED.
 *
 * Where the idea is from: next-touch migration is the lazy move of mbind(MPOL_MF_LAZY), which never
 * reached user space.
 */
#ifndef NUMABAL_H
#define NUMABAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct numabal; /* one for a process is enough; opaque */

/*
 * How to open: .size = sizeof(struct numabal_options), everything else 0 or NULL for the default.
 * Members may be added at the end; what this version does not know must be zero (-EINVAL).
 */
struct numabal_options {
	size_t size;
	const char *system;	    /* a row of `numabal systems`; default numabal */
	unsigned int virtual_nodes; /* so many virtual nodes: faults are real, moves are bookkept;
				       0: the real ones */
	unsigned int watchdog_ms;   /* a fault that waited so long ends balancing; 0: 1000 */
};

/*
 * Start balancing in this process: two threads that libc does not know. `options` may be NULL.
 * -EINVAL: an option; -ENOENT: no such system; -EOPNOTSUPP: this machine can't (`numabal doctor`
 * says why); -ENODEV: it has one memory node; -ENOMEM. On success *nb is the caller's, until
 * numabal_close.
 */
int numabal_open(struct numabal **nb, const struct numabal_options *options);

/* Stop balancing and both threads. Managed memory stays, with its contents, as ordinary private
 * memory. */
void numabal_close(struct numabal *nb);

/*
 * Zeroed memory of at least `bytes`, aligned to 2 MiB, managed. NULL: none to be had. Memory that
 * can't be managed (too little: less than 4 MiB; a bound on the number of ranges, 900) is given all
 * the same, unmanaged.
 */
void *numabal_alloc(struct numabal *nb, size_t bytes);
/* Give back what numabal_alloc gave, all of it. NULL is nothing to give back. */
void numabal_free(struct numabal *nb, void *p, size_t bytes);

/*
 * Manage [addr, addr + bytes): private anonymous memory, page aligned, that was mapped readable and
 * writable and not used yet: what it holds is lost. -EINVAL: not of whole pages; -EAGAIN: a bound
 * was reached, it stays what it is.
 */
int numabal_manage(struct numabal *nb, void *addr, size_t bytes);
/* Manage it no longer: it becomes ordinary memory with the same contents. Writers wait meanwhile.
 */
int numabal_release(struct numabal *nb, void *addr, size_t bytes);

/* Its contents are zeroes from now on, and the pages are free. */
int numabal_discard(struct numabal *nb, void *addr, size_t bytes);

/*
 * Whatever is in the range moves to the node of the thread that touches it next, in blocks of 2
 * MiB, whatever was learned before. -EINVAL: bad range. -ENOENT: nothing of it is managed.
 */
int numabal_next_touch(struct numabal *nb, void *addr, size_t bytes);

enum numabal_policy {
	NUMABAL_AUTOMATIC, /* follow the threads that use it: the default */
	NUMABAL_BIND,	   /* stay on the given nodes; moved there at the next touch */
	NUMABAL_PREFERRED, /* the first of the given nodes; moved there at the next touch */
};
/* nodes: bit n = node number n, of the kernel's numbers up to 63. -EINVAL: none of them has memory.
 */
int numabal_set_policy(
	struct numabal *nb, void *addr, size_t bytes, enum numabal_policy policy, uint64_t nodes);

/* .size = sizeof(struct numabal_counters) on the way in; members may be added at the end. */
struct numabal_counters {
	size_t size;
	uint64_t managed_bytes;	    /* now */
	uint64_t hint_faults;	    /* faults that said who uses what */
	uint64_t hint_faults_local; /* of these, where the page was on the toucher's node */
	uint64_t pages_migrated;    /* pages moved */
	uint64_t pages_failed;	    /* pages that did not move */
	uint64_t agent_ns;	    /* CPU time of the agent */
	uint64_t closed;	    /* 1: balancing ended early; memory works on */
};
int numabal_read_counters(struct numabal *nb, struct numabal_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
