/* SPDX-License-Identifier: MIT */
/*
 * shim: what a program finds in place of libc's memory calls when libnumabal-run.so is preloaded.
 * Each hook hands over to call.h and turns -errno into errno. Nothing is looked up here: where
 * libc's own function is needed (fork.c) it was found by the constructor. Before the constructor
 * ran there is no session, and every hook is the plain system call.
 */
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <linux/vfio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "call.h"

#define HOOK __attribute__((visibility("default")))

/* The one guest of this process. */
static struct nb_guest guest;

struct nb_guest *nb_shim_guest(void)
{
	return &guest;
}

static void *answer_pointer(long rc)
{
	return (void *)nb_shim_answer(rc);
}

/* ---- hooks ---- */

HOOK void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return answer_pointer(nb_call_mmap(
		&guest, &(struct nb_mmap){(uint64_t)addr, bytes, prot, flags, fd, offset}));
}

HOOK void *mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return answer_pointer(nb_call_mmap(
		&guest, &(struct nb_mmap){(uint64_t)addr, bytes, prot, flags, fd, offset}));
}

HOOK int munmap(void *addr, size_t bytes)
{
	return (int)nb_shim_answer(nb_call_munmap(&guest, (uint64_t)addr, bytes));
}

HOOK int mprotect(void *addr, size_t bytes, int prot)
{
	return (int)nb_shim_answer(nb_call_mprotect(&guest, (uint64_t)addr, bytes, prot));
}

HOOK int madvise(void *addr, size_t bytes, int advice)
{
	return (int)nb_shim_answer(nb_call_madvise(&guest, (uint64_t)addr, bytes, advice));
}

HOOK void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	uint64_t to = 0;
	va_list args;

	va_start(args, flags);
	if (flags & MREMAP_FIXED)
		to = (uint64_t)va_arg(args, void *);
	va_end(args);
	return answer_pointer(nb_call_mremap(&guest, (uint64_t)old, old_bytes, bytes, flags, to));
}

/* Locked memory takes no hint faults: it becomes ordinary memory first. */
HOOK int mlock(const void *addr, size_t bytes)
{
	nb_call_eject(&guest, (uint64_t)addr, bytes);
	return (int)nb_shim_answer(nb_arch_call(SYS_mlock, (long)addr, (long)bytes, 0, 0, 0, 0));
}

HOOK int mlock2(const void *addr, size_t bytes, unsigned int flags)
{
	nb_call_eject(&guest, (uint64_t)addr, bytes);
	return (int)nb_shim_answer(
		nb_arch_call(SYS_mlock2, (long)addr, (long)bytes, (long)flags, 0, 0, 0));
}

HOOK int mlockall(int flags)
{
	if (flags & MCL_CURRENT)
		nb_call_eject(&guest, 0, UINT64_MAX >> 17);
	if (flags & MCL_FUTURE) {
		guest.no_more = true;
		nb_guest_note(&guest, NB_NOTE_LOCKED_FUTURE);
	}
	return (int)nb_shim_answer(nb_arch_call(SYS_mlockall, flags, 0, 0, 0, 0, 0));
}

HOOK int munlockall(void)
{
	guest.no_more = false;
	return (int)nb_shim_answer(nb_arch_call(SYS_munlockall, 0, 0, 0, 0, 0, 0));
}

HOOK int pkey_mprotect(void *addr, size_t bytes, int prot, int key)
{
	nb_call_eject(&guest, (uint64_t)addr, bytes);
	return (int)nb_shim_answer(
		nb_arch_call(SYS_pkey_mprotect, (long)addr, (long)bytes, prot, key, 0, 0));
}

/* ---- userfaultfd of the program's own ---- */

/* Two cannot watch one mapping: what the program wants to watch is given back. */
static long call_ioctl(int fd, unsigned long request, long arg)
{
	if (request == UFFDIO_REGISTER && arg != 0) {
		const struct uffdio_register *r = (const struct uffdio_register *)arg;

		nb_call_eject(&guest, r->range.start, r->range.len);
	}
	if (request == VFIO_IOMMU_MAP_DMA)
		nb_shim_before_dma((const void *)arg);
	return nb_arch_call(SYS_ioctl, fd, (long)request, arg, 0, 0, 0);
}

HOOK int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	long arg;

	va_start(args, request);
	arg = va_arg(args, long);
	va_end(args);
	return (int)nb_shim_answer(call_ioctl(fd, request, arg));
}

/* ---- libnuma's; its headers need not be there ---- */

HOOK long mbind(void *addr, unsigned long bytes, int mode, const unsigned long *nodes,
	unsigned long max_node, unsigned int flags);
HOOK long set_mempolicy(int mode, const unsigned long *nodes, unsigned long max_node);

HOOK long mbind(void *addr, unsigned long bytes, int mode, const unsigned long *nodes,
	unsigned long max_node, unsigned int flags)
{
	return nb_shim_answer(
		nb_call_mbind(&guest, (uint64_t)addr, bytes, mode, nodes, max_node, flags));
}

HOOK long set_mempolicy(int mode, const unsigned long *nodes, unsigned long max_node)
{
	return nb_shim_answer(nb_call_set_mempolicy(&guest, mode, nodes, max_node));
}

/* ---- system calls made by number ---- */

static long by_number(long n, const long *a)
{
	switch (n) {
	case SYS_mmap:
		return nb_call_mmap(&guest, &(struct nb_mmap){(uint64_t)a[0], (uint64_t)a[1],
						    (int)a[2], (int)a[3], (int)a[4], a[5]});
	case SYS_munmap:
		return nb_call_munmap(&guest, (uint64_t)a[0], (uint64_t)a[1]);
	case SYS_mprotect:
		return nb_call_mprotect(&guest, (uint64_t)a[0], (uint64_t)a[1], (int)a[2]);
	case SYS_madvise:
		return nb_call_madvise(&guest, (uint64_t)a[0], (uint64_t)a[1], (int)a[2]);
	case SYS_mremap:
		return nb_call_mremap(&guest, (uint64_t)a[0], (uint64_t)a[1], (uint64_t)a[2],
			(int)a[3], (uint64_t)a[4]);
	case SYS_mbind:
		return nb_call_mbind(&guest, (uint64_t)a[0], (uint64_t)a[1], (int)a[2],
			(const unsigned long *)a[3], (unsigned long)a[4], (unsigned int)a[5]);
	case SYS_ioctl:
		return call_ioctl((int)a[0], (unsigned long)a[1], a[2]);
	case SYS_set_mempolicy:
		return nb_call_set_mempolicy(
			&guest, (int)a[0], (const unsigned long *)a[1], (unsigned long)a[2]);
	case SYS_prlimit64:
		return nb_shim_prlimit(a[0], a[1], (const struct rlimit *)a[2], a[3]);
	case SYS_io_uring_setup:
		return nb_shim_io_uring_setup(a);
	case SYS_io_uring_register:
		return nb_shim_io_uring_register(a);
	case SYS_sigaltstack:
		return nb_shim_sigaltstack((const stack_t *)a[0], (stack_t *)a[1]);
	case SYS_sched_setaffinity:
	case SYS_sched_getaffinity:
		return nb_shim_affinity_by_number(n, a);
	default:
		return nb_arch_call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

HOOK long syscall(long n, ...)
{
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (nb_shim_is_fork(n, a))
		return nb_shim_answer(nb_shim_fork_by_number(n, a));
	if (n == SYS_seccomp && nb_shim_seccomp_filters(a[0]))
		nb_call_sandbox(&guest);
	return nb_shim_answer(by_number(n, a));
}

/* ---- the beginning ---- */

static struct nb_session *map_session(const char *path)
{
	const long fd = NB_OS_4(openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	struct stat st;
	long p = -1;

	if (fd < 0)
		return NULL;
	if (NB_OS_2(fstat, fd, &st) == 0 && st.st_size > 0)
		p = NB_OS_6(mmap, 0, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NB_OS_1(close, fd);
	if (nb_os_failed(p))
		return NULL;
	if (nb_session_valid((struct nb_session *)p, (size_t)st.st_size))
		return (struct nb_session *)p;
	NB_OS_2(munmap, p, st.st_size);
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv(NB_SESSION_ENV);
	long n;

	nb_guest_init(&guest);
	if (path == NULL || path[0] == '\0')
		return;
	guest.session = map_session(path);
	if (guest.session == NULL)
		return;
	nb_stat_add(&guest.session->processes, 1);
	guest.counted = true;
	n = NB_OS_3(sched_getaffinity, 0, sizeof(guest.cpu_mask), guest.cpu_mask);
	guest.nr_cpu_mask = n > 0 ? (uint32_t)n : 0;
	nb_shim_fork_init();
	nb_shim_identity_init();
	nb_shim_affinity_init();
	nb_shim_stacks_init();
	atomic_store(&guest.state, NB_GUEST_READY);
}
