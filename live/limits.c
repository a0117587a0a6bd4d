/* SPDX-License-Identifier: MIT */
/*
 * limits: a limit on data counts private memory, and ours is shared until a fork needs it private,
 * which the limit might then refuse. So where the program sets one, its memory is private before.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "call.h"
#include "os_arch.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

static bool copy_limit(struct rlimit *to, const struct rlimit *from)
{
	return from != NULL && nb_shim_copy(to, from, sizeof(*to));
}

long nb_shim_prlimit(long pid, long resource, const struct rlimit *new_limit, long old_limit)
{
	struct nb_guest *g = nb_shim_guest();
	struct rlimit limit;

	if (resource == RLIMIT_DATA && g->regions.nr > 0 && (pid == 0 || pid == (long)g->pid) &&
		copy_limit(&limit, new_limit) && limit.rlim_cur != RLIM_INFINITY)
		nb_call_stop(g, NB_NOTE_RLIMIT_DATA, true);
	return nb_arch_call(SYS_prlimit64, pid, resource, (long)new_limit, old_limit, 0, 0);
}

static int answer(long rc)
{
	if (rc >= 0)
		return (int)rc;
	errno = (int)-rc;
	return -1;
}

/* libc's own take enums for the resource. */
HOOK int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return answer(nb_shim_prlimit(0, (long)resource, limit, 0));
}

HOOK int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return answer(nb_shim_prlimit(0, (long)resource, (const struct rlimit *)limit, 0));
}

HOOK int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *new_limit,
	struct rlimit *old_limit)
{
	return answer(nb_shim_prlimit(pid, (long)resource, new_limit, (long)old_limit));
}

HOOK int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *new_limit,
	struct rlimit64 *old_limit)
{
	return answer(nb_shim_prlimit(
		pid, (long)resource, (const struct rlimit *)new_limit, (long)old_limit));
}
