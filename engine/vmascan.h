/* SPDX-License-Identifier: MIT */
/*
 * vmascan: which VMAs a task's scan passes over (in a kernel: vma_is_accessed and the checks of
 * task_numa_work around it).
 *
 * Since Linux 6.4 a task scans the VMAs in which it took hint faults lately: a fault sets one of 64
 * bits, chosen by the pid, and the bits of two periods are kept. As only scanned VMAs can have
 * faults, there are exceptions: each row's own.
 */
#ifndef NB_ENGINE_VMASCAN_H
#define NB_ENGINE_VMASCAN_H

#include "machine.h"

enum {
	NB_PID_HASH_BITS = 6, /* a word of bits */
};

struct nb_vma_scan {
	bool known;		 /* a scan has come by: the rest is set */
	uint32_t start_scan_seq; /* of the address space when that was */
	uint32_t prev_scan_seq;	 /* of the address space when it was last scanned completely */
	uint64_t next_scan_j;	 /* jiffies: not before, once the first sequence is over */
	uint64_t pids_reset_j;	 /* jiffies: the older period's bits are forgotten after this */
	uint64_t
		pids_active[2]; /* bits by pid: who faulted in the period before, and in this one */
};

/* A hint fault in it by the task of this id. Multiplicative hashing by the golden section, as
 * kernels do, so that the same pids meet. */
static inline uint64_t nb_pid_bit(uint32_t pid)
{
	return UINT64_C(1) << ((uint32_t)(pid * UINT32_C(0x61C88647)) >> (32 - NB_PID_HASH_BITS));
}

static inline void nb_vma_touched(struct nb_vma_scan *s, uint32_t pid)
{
	s->pids_active[1] |= nb_pid_bit(pid);
}

/*
 * Whether the task's scan passes over the VMA: enum nb_skip, or NB_NR_SKIPS for no. `forced`: being
 * inactive is no reason. *partial is set when only a scan begun earlier lets it in (ignore_pid).
 */
enum nb_skip nb_vma_skip(const struct nb_engine *e, struct nb_vma *vma, const struct nb_task *t,
	bool forced, uint64_t now_j, bool *partial);

/* Its scan came to its end in this sequence. */
void nb_vma_scanned(const struct nb_engine *e, struct nb_vma *vma);

#endif
