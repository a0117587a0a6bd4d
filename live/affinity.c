/* SPDX-License-Identifier: MIT */
/*
 * affinity: a program that sets affinities itself knows better: its threads are left where they are
 * from then on. And nobody may see the affinity that a thread has while place.c moves it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include "os_arch.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

/* X(name, parameters, arguments, sets) */
#define AFFINITY_CALLS(X)                                                                          \
	X(sched_setaffinity, (pid_t a, size_t b, const cpu_set_t *c), (a, b, c), true)             \
	X(sched_getaffinity, (pid_t a, size_t b, cpu_set_t * c), (a, b, c), false)                 \
	X(pthread_setaffinity_np, (pthread_t a, size_t b, const cpu_set_t *c), (a, b, c), true)    \
	X(pthread_getaffinity_np, (pthread_t a, size_t b, cpu_set_t * c), (a, b, c), false)

/* Found once, before main. */
#define X(name, parameters, arguments, sets) static int(*real_##name) parameters;
AFFINITY_CALLS(X)
#undef X

void nb_shim_affinity_init(void)
{
#define X(name, parameters, arguments, sets)                                                       \
	real_##name = (int(*) parameters)dlsym(RTLD_NEXT, #name);
	AFFINITY_CALLS(X)
#undef X
}

static bool hold(struct nb_hold *h, bool sets)
{
	struct nb_guest *g = nb_shim_guest();

	if (atomic_load(&g->agent_tid) == 0 || atomic_load(&g->sandboxed)) {
		atomic_fetch_or(&g->own_affinity, sets);
		return false;
	}
	nb_guest_hold(g, h);
	atomic_fetch_or(&g->own_affinity, sets);
	return true;
}

#define X(name, parameters, arguments, sets)                                                       \
	HOOK int name parameters                                                                   \
	{                                                                                          \
		struct nb_hold h;                                                                  \
		bool held;                                                                         \
		int rc;                                                                            \
                                                                                                   \
		if (real_##name == NULL) {                                                         \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		held = hold(&h, sets);                                                             \
		rc = real_##name arguments;                                                        \
		if (held)                                                                          \
			nb_guest_release(nb_shim_guest(), &h);                                     \
		return rc;                                                                         \
	}
AFFINITY_CALLS(X)
#undef X

long nb_shim_affinity_by_number(long n, const long *a)
{
	struct nb_hold h;
	const bool held = hold(&h, n == SYS_sched_setaffinity);
	const long rc = nb_arch_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);

	if (held)
		nb_guest_release(nb_shim_guest(), &h);
	return rc;
}
