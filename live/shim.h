/* SPDX-License-Identifier: MIT */
/* shim: what the two files of hooks share. */
#ifndef NB_LIVE_SHIM_H
#define NB_LIVE_SHIM_H

#include <errno.h>
#include <signal.h>
#include "guest.h"
#include "os.h"

struct nb_guest *nb_shim_guest(void);

/* As libc answers: -errno becomes -1 and errno. */
static inline long nb_shim_answer(long rc)
{
	if (!nb_os_failed(rc))
		return rc;
	errno = (int)-rc;
	return -1;
}

/* Any system call, by its number: for those that the shim passes on and never fails on purpose. */
long nb_arch_call(long n, long a, long b, long c, long d, long e, long f);

/* Find libc's own functions and ask to be told of forks. Once, from the constructor. */
void nb_shim_fork_init(void);
/* Find libc's functions that change who the process is. Once, from the constructor. */
void nb_shim_identity_init(void);
/* Find libc's functions for affinities. Once, from the constructor. */
void nb_shim_affinity_init(void);
/* Find libc's functions for stacks. Once, from the constructor. */
void nb_shim_stacks_init(void);
/* sigaltstack(2): what becomes a stack becomes ordinary memory. 0 or -errno. */
long nb_shim_sigaltstack(const stack_t *stack, stack_t *old);
/* sched_setaffinity and sched_getaffinity by their numbers. */
long nb_shim_affinity_by_number(long n, const long *a);
/* What the program passes may be no address at all; false then, and the call says so. */
bool nb_shim_copy(void *to, const void *from, size_t bytes);
/* prlimit64. */
struct rlimit;
long nb_shim_prlimit(long pid, long resource, const struct rlimit *new_limit, long old_limit);
/* io_uring_register and io_uring_setup by their numbers; and before VFIO_IOMMU_MAP_DMA. */
long nb_shim_io_uring_register(const long *a);
long nb_shim_io_uring_setup(const long *a);
void nb_shim_before_dma(const void *arg);
/* A system call that copies this address space, and making it. */
bool nb_shim_is_fork(long n, const long *a);
long nb_shim_fork_by_number(long n, const long *a);
/* True for seccomp(2) that begins a sandbox. */
bool nb_shim_seccomp_filters(long operation);

#endif
