/* SPDX-License-Identifier: MIT */
/*
 * os: the one seam between the live part and Linux. Every system call that the shim, the agent and
 * the watchdog make is a row of one table, so that a test can make the Nth call of any kind fail in
 * any way it can.
 *
 * The contract of all calls
 *  - They are the kernel's own, entered directly: no libc wrapper, no errno, no cancellation point,
 *    no thread-local storage, no lazy binding. So they may be made before main, inside malloc, in a
 *    signal handler, in a child between vfork and exec, and in a thread that libc does not know.
 *  - The answer is the kernel's: the value, or -errno (-4095 .. -1). nb_os_failed tells.
 *  - No call is retried: -EINTR and -EAGAIN are the caller's to handle.
 *  - Addresses are page aligned where the kernel wants them so, and sizes are in bytes.
 *  - Any thread may call at any time. Rows are replaced only while no other thread uses the table.
 *
 * Where the idea is from: SQLite's table of system calls, mimalloc's layer of primitives.
 */
#ifndef NB_LIVE_OS_H
#define NB_LIVE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): a system call of this name. */
#define NB_OS_CALLS(X)                                                                             \
	X(mmap)                                                                                    \
	X(munmap)                                                                                  \
	X(mremap)                                                                                  \
	X(mprotect)                                                                                \
	X(madvise)                                                                                 \
	X(mbind)                                                                                   \
	X(set_mempolicy)                                                                           \
	X(get_mempolicy)                                                                           \
	X(move_pages)                                                                              \
	X(memfd_create)                                                                            \
	X(ftruncate)                                                                               \
	X(fallocate)                                                                               \
	X(userfaultfd)                                                                             \
	X(ioctl)                                                                                   \
	X(fcntl)                                                                                   \
	X(openat)                                                                                  \
	X(close)                                                                                   \
	X(close_range)                                                                             \
	X(read)                                                                                    \
	X(write)                                                                                   \
	X(pread64)                                                                                 \
	X(pwrite64)                                                                                \
	X(lseek)                                                                                   \
	X(fstat)                                                                                   \
	X(ppoll)                                                                                   \
	X(pipe2)                                                                                   \
	X(signalfd4)                                                                               \
	X(tgkill)                                                                                  \
	X(rt_sigprocmask)                                                                          \
	X(futex)                                                                                   \
	X(getdents64)                                                                              \
	X(clock_gettime)                                                                           \
	X(prlimit64)                                                                               \
	X(sched_setaffinity)                                                                       \
	X(sched_getaffinity)                                                                       \
	X(capset)                                                                                  \
	X(getpid)                                                                                  \
	X(gettid)                                                                                  \
	X(getcpu)                                                                                  \
	X(mincore)                                                                                 \
	X(exit)                                                                                    \
	X(spawn)

enum nb_os_call {
#define X(name) NB_OS_##name,
	NB_OS_CALLS(X)
#undef X
		NB_NR_OS_CALLS
};

/* The six arguments of a call, as the kernel takes them. */
struct nb_os_args {
	long a[6];
};

typedef long (*nb_os_fn)(enum nb_os_call call, const struct nb_os_args *args);

struct nb_os_row {
	const char *name;
	long number;	  /* the kernel's; -1 for spawn, which is a clone with a stack of its own */
	nb_os_fn current; /* what is called */
	nb_os_fn fallback; /* what was there at the start: asks the kernel */
};

extern struct nb_os_row nb_os_table[NB_NR_OS_CALLS];

/* Ask the kernel, whatever the table says: for the functions that stand in for it. */
long nb_os_kernel(enum nb_os_call call, const struct nb_os_args *args);
/* Put every row back. */
void nb_os_reset(void);

static inline bool nb_os_failed(long rc)
{
	return rc < 0 && rc >= -4095;
}

static inline long nb_os(enum nb_os_call call, long a, long b, long c, long d, long e, long f)
{
	const struct nb_os_args args = {{a, b, c, d, e, f}};

	return nb_os_table[call].current(call, &args);
}

#define NB_OS_0(name)	       nb_os(NB_OS_##name, 0, 0, 0, 0, 0, 0)
#define NB_OS_1(name, a)       nb_os(NB_OS_##name, (long)(a), 0, 0, 0, 0, 0)
#define NB_OS_2(name, a, b)    nb_os(NB_OS_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define NB_OS_3(name, a, b, c) nb_os(NB_OS_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define NB_OS_4(name, a, b, c, d)                                                                  \
	nb_os(NB_OS_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define NB_OS_5(name, a, b, c, d, e)                                                               \
	nb_os(NB_OS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define NB_OS_6(name, a, b, c, d, e, f)                                                            \
	nb_os(NB_OS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/*
 * A new thread of this process on the given stack (its top, 16-byte aligned), that shares
 * everything with it, has `tls` as its thread pointer and runs fn(arg), which must not return: it
 * ends with NB_OS_1(exit, 0). The thread's id, or -errno. The caller blocks all signals around the
 * call, so that the new thread starts, and stays, with all of them blocked.
 */
long nb_os_spawn(void (*fn)(void *arg), void *arg, void *stack_top, void *tls);

/* ---- what nearly every caller wants, on top of the rows ---- */

/* What this clock of the kernel's says, ns: 0 or -errno, and then *ns is as it was. */
long nb_os_clock_ns(int clock, uint64_t *ns);
/* Monotonic time, ns. */
uint64_t nb_os_now_ns(void);
/* CPU time of the calling thread, ns. */
uint64_t nb_os_cpu_ns(void);
/*
 * A readable and writable mapping of our own: its address, or -errno. It never lies where the
 * program just unmapped something: many programs map there again with MAP_FIXED, which is right as
 * long as no thread they do not know of maps memory.
 */
long nb_os_map(size_t bytes, int flags, int fd);
/* Anonymous private memory, zeroed, that a fork does not copy; NULL when there is none. */
void *nb_os_pages(size_t bytes);
void nb_os_pages_free(void *p, size_t bytes);
/* The whole file of at most `cap` bytes, without its end: bytes read, or -errno. */
long nb_os_read_file(const char *path, char *buffer, size_t cap);

#endif
