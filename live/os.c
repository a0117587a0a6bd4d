/* SPDX-License-Identifier: MIT */
#include "os.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include "os_arch.h"

/* Tables of system call numbers have no spawn. */
#define SYS_spawn (-1)

enum {
	AWAY_GAP = 2 << 20,
	AWAY_TRIES = 64,
};

static const uint64_t away_start = UINT64_C(0x200000000000), away_room = UINT64_C(0x200000000000);
static _Atomic uint64_t away_used;

struct nb_os_row nb_os_table[NB_NR_OS_CALLS] = {
#define X(name) {#name, SYS_##name, nb_os_kernel, nb_os_kernel},
	NB_OS_CALLS(X)
#undef X
};

long nb_os_kernel(enum nb_os_call call, const struct nb_os_args *args)
{
	const long *a = args->a;

	if (call == NB_OS_spawn)
		return nb_arch_spawn(
			(void (*)(void *))a[0], (void *)a[1], (void *)a[2], (void *)a[3]);
	return nb_arch_syscall(nb_os_table[call].number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void nb_os_reset(void)
{
	for (int i = 0; i < NB_NR_OS_CALLS; i++)
		nb_os_table[i].current = nb_os_table[i].fallback;
}

long nb_os_spawn(void (*fn)(void *arg), void *arg, void *stack_top, void *tls)
{
	return NB_OS_4(spawn, fn, arg, stack_top, tls);
}

long nb_os_clock_ns(int clock, uint64_t *ns)
{
	struct timespec t;
	const long rc = NB_OS_2(clock_gettime, clock, &t);

	if (rc == 0)
		*ns = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	return rc;
}

uint64_t nb_os_now_ns(void)
{
	uint64_t ns = 0;

	nb_os_clock_ns(CLOCK_MONOTONIC, &ns);
	return ns;
}

uint64_t nb_os_cpu_ns(void)
{
	uint64_t ns = 0;

	nb_os_clock_ns(CLOCK_THREAD_CPUTIME_ID, &ns);
	return ns;
}

/*
 * Far below where the kernel puts what has no address of its own, and above what is built in. Where
 * that is not free or not there, any address must do.
 */
long nb_os_map(size_t bytes, int flags, int fd)
{
	const uint64_t room = (bytes + 2 * AWAY_GAP) & ~(uint64_t)(AWAY_GAP - 1);

	for (int i = 0; i < AWAY_TRIES; i++) {
		const uint64_t at = away_start + atomic_fetch_add(&away_used, room) % away_room;
		const long p = NB_OS_6(mmap, at, bytes, PROT_READ | PROT_WRITE,
			flags | MAP_FIXED_NOREPLACE, fd, 0);

		if (!nb_os_failed(p))
			return p;
		if (p != -EEXIST)
			break;
	}
	return NB_OS_6(mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

void *nb_os_pages(size_t bytes)
{
	const long p = nb_os_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (nb_os_failed(p))
		return NULL;
	NB_OS_3(madvise, p, bytes, MADV_DONTFORK);
	return (void *)p;
}

void nb_os_pages_free(void *p, size_t bytes)
{
	if (p != NULL)
		NB_OS_2(munmap, p, bytes);
}

static long read_all(int fd, char *buffer, size_t cap)
{
	size_t got = 0;

	while (got < cap) {
		const long n = NB_OS_3(read, fd, buffer + got, cap - got);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (long)got;
}

long nb_os_read_file(const char *path, char *buffer, size_t cap)
{
	const long fd = NB_OS_4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return fd;
	n = read_all((int)fd, buffer, cap);
	NB_OS_1(close, fd);
	return n;
}
