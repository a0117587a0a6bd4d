/* SPDX-License-Identifier: MIT */
/*
 * limits: a limit on data counts private memory, and ours is shared until a fork needs it private,
 * which the limit might then refuse. So where the program sets one, its memory is private before.
 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include "call.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

long nb_shim_prlimit(long pid, long resource, const struct rlimit *new_limit, long old_limit)
{
	struct nb_guest *g = nb_shim_guest();
	struct rlimit limit;

	if (resource == RLIMIT_DATA && g->regions.nr > 0 && (pid == 0 || pid == (long)g->pid) &&
		nb_shim_copy(&limit, new_limit, sizeof(limit)) && limit.rlim_cur != RLIM_INFINITY)
		nb_call_stop(g, NB_NOTE_RLIMIT_DATA, true);
	return nb_arch_call(SYS_prlimit64, pid, resource, (long)new_limit, old_limit, 0, 0);
}

/* libc's own take enums for the resource. */
HOOK int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return (int)nb_shim_answer(nb_shim_prlimit(0, (long)resource, limit, 0));
}

HOOK int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return (int)nb_shim_answer(
		nb_shim_prlimit(0, (long)resource, (const struct rlimit *)limit, 0));
}

HOOK int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *new_limit,
	struct rlimit *old_limit)
{
	return (int)nb_shim_answer(
		nb_shim_prlimit(pid, (long)resource, new_limit, (long)old_limit));
}

HOOK int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *new_limit,
	struct rlimit64 *old_limit)
{
	return (int)nb_shim_answer(nb_shim_prlimit(
		pid, (long)resource, (const struct rlimit *)new_limit, (long)old_limit));
}
