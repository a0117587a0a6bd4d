/* SPDX-License-Identifier: MIT */
/*
 * identity: calls after which the helpers would be somebody else than the program. libc carries a
 * change of user to every thread it knows; ours it does not know, and they must not stay behind
 * with more rights. So they end, and the next large mapping starts new ones, which are who the
 * program is. unshare and setns want a process of one thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>
#include "call.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

static void step_back(void)
{
	struct nb_guest *g = nb_shim_guest();

	if (atomic_load(&g->agent_tid) != 0)
		nb_call_stop(g, NB_NOTE_CREDENTIALS, false);
}

/* X(name, parameters, arguments) */
#define IDENTITY_CALLS(X)                                                                          \
	X(setuid, (uid_t a), (a))                                                                  \
	X(setgid, (gid_t a), (a))                                                                  \
	X(seteuid, (uid_t a), (a))                                                                 \
	X(setegid, (gid_t a), (a))                                                                 \
	X(setreuid, (uid_t a, uid_t b), (a, b))                                                    \
	X(setregid, (gid_t a, gid_t b), (a, b))                                                    \
	X(setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))                                       \
	X(setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))                                       \
	X(setgroups, (size_t a, const gid_t *b), (a, b))                                           \
	X(initgroups, (const char *a, gid_t b), (a, b))                                            \
	X(unshare, (int a), (a))                                                                   \
	X(setns, (int a, int b), (a, b))

#define X(name, parameters, arguments) static int(*real_##name) parameters;
IDENTITY_CALLS(X)
#undef X

void nb_shim_identity_init(void)
{
#define X(name, parameters, arguments) real_##name = (int(*) parameters)dlsym(RTLD_NEXT, #name);
	IDENTITY_CALLS(X)
#undef X
}

/* They end before the call: none may be seen with the new rights, nor be missed by it. */
#define X(name, parameters, arguments)                                                             \
	HOOK int name parameters;                                                                  \
	HOOK int name parameters                                                                   \
	{                                                                                          \
		if (real_##name == NULL) {                                                         \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		step_back();                                                                       \
		return real_##name arguments;                                                      \
	}
IDENTITY_CALLS(X)
#undef X
