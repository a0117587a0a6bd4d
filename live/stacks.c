/* SPDX-License-Identifier: MIT */
/*
 * stacks: memory that a program made by itself and then names as a stack, of a thread or of signal
 * handlers. It becomes ordinary memory first: what a stack holds must be there without anybody's
 * help, also in a child that a fork made in a way that was not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include "call.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

typedef int (*setstack_fn)(pthread_attr_t *attr, void *stack, size_t bytes);

/* Found once, before main. */
static setstack_fn real_setstack;

void nb_shim_stacks_init(void)
{
	real_setstack = (setstack_fn)dlsym(RTLD_NEXT, "pthread_attr_setstack");
}

/* The kernel looks at what is asked for: once it has agreed, the addresses are good. */
long nb_shim_sigaltstack(const stack_t *stack, stack_t *old)
{
	const long rc = nb_arch_call(SYS_sigaltstack, (long)stack, (long)old, 0, 0, 0, 0);

	if (rc == 0 && stack != NULL && !(stack->ss_flags & SS_DISABLE))
		nb_call_eject(nb_shim_guest(), (uint64_t)stack->ss_sp, stack->ss_size);
	return rc;
}

HOOK int sigaltstack(const stack_t *stack, stack_t *old)
{
	return (int)nb_shim_answer(nb_shim_sigaltstack(stack, old));
}

HOOK int pthread_attr_setstack(pthread_attr_t *attr, void *stack, size_t bytes)
{
	const int err = real_setstack != NULL ? real_setstack(attr, stack, bytes) : ENOSYS;

	if (err == 0)
		nb_call_eject(nb_shim_guest(), (uint64_t)stack, bytes);
	return err;
}
