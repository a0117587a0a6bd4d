/* SPDX-License-Identifier: MIT */
/*
 * fork: the ways a program copies its address space. libc's fork, and all that is built on it
 * (daemon, forkpty ...), calls the handlers asked for here; _Fork and clone are hooked. vfork,
 * posix_spawn, system and popen share memory until exec and need nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include "call.h"
#include "os_arch.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

typedef pid_t (*fork_fn)(void);
typedef int (*clone_fn)(int (*fn)(void *), void *stack, int flags, void *arg, ...);
typedef int (*prctl_fn)(int option, ...);

/* Found once, before main. */
static fork_fn real_fork;
static clone_fn real_clone;
static prctl_fn real_prctl;

long nb_arch_call(long n, long a, long b, long c, long d, long e, long f)
{
	return nb_arch_syscall(n, a, b, c, d, e, f);
}

/* ---- libc's fork ---- */

static void before(void)
{
	nb_before_fork(nb_shim_guest());
}

static void in_parent(void)
{
	nb_after_fork_parent(nb_shim_guest());
}

static void in_child(void)
{
	nb_after_fork_child(nb_shim_guest());
}

static void *find(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void nb_shim_fork_init(void)
{
	real_fork = (fork_fn)find("_Fork");
	real_clone = (clone_fn)find("clone");
	real_prctl = (prctl_fn)find("prctl");
	pthread_atfork(before, in_parent, in_child);
}

/* ---- the others ---- */

HOOK pid_t _Fork(void);

HOOK pid_t _Fork(void)
{
	pid_t pid;

	if (real_fork == NULL) {
		errno = ENOSYS;
		return -1;
	}
	before();
	pid = real_fork();
	if (pid == 0)
		in_child();
	else
		in_parent();
	return pid;
}

struct cloned {
	int (*fn)(void *);
	void *arg;
};

/* The child has its own copy of this: it was made before the copy. */
static int run_clone(void *p)
{
	const struct cloned c = *(const struct cloned *)p;

	in_child();
	return c.fn(c.arg);
}

HOOK int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct cloned c = {fn, arg};
	void *parent_tid, *tls, *child_tid;
	va_list args;
	int rc;

	va_start(args, arg);
	parent_tid = va_arg(args, void *);
	tls = va_arg(args, void *);
	child_tid = va_arg(args, void *);
	va_end(args);
	if (real_clone == NULL) {
		errno = ENOSYS;
		return -1;
	}
	if (flags & CLONE_VM)
		return real_clone(fn, stack, flags, arg, parent_tid, tls, child_tid);
	before();
	rc = real_clone(run_clone, stack, flags, &c, parent_tid, tls, child_tid);
	in_parent();
	return rc;
}

/* ---- by number ---- */

static bool is_clone3_fork(const long *a)
{
	const struct clone_args *c = (const struct clone_args *)a[0];

	return c != NULL && (size_t)a[1] >= sizeof(c->flags) && !(c->flags & CLONE_VM);
}

/* With a stack of its own a raw child goes on elsewhere and could not be told anything: its memory
 * is simply not inherited. */
bool nb_shim_is_fork(long n, const long *a)
{
#ifdef SYS_fork
	if (n == SYS_fork)
		return true;
#endif
	if (n == SYS_clone)
		return !(a[0] & CLONE_VM) && a[1] == 0;
	if (n == SYS_clone3)
		return is_clone3_fork(a) && ((const struct clone_args *)a[0])->stack == 0;
	return false;
}

long nb_shim_fork_by_number(long n, const long *a)
{
	long rc;

	before();
	rc = nb_arch_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (rc == 0)
		in_child();
	else
		in_parent();
	return rc;
}

/* ---- sandboxes ---- */

bool nb_shim_seccomp_filters(long operation)
{
	return operation == SECCOMP_SET_MODE_FILTER || operation == SECCOMP_SET_MODE_STRICT;
}

/*
 * A filter on all threads would be one on the agent too, which may then be killed, and the program
 * with it; one on a thread alone may kill it for what a hook does. So the helpers end, all memory
 * is private from then on, and hooks make no calls of their own.
 */
HOOK int prctl(int option, ...)
{
	unsigned long a[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_SECCOMP)
		nb_call_sandbox(nb_shim_guest());
	if (real_prctl == NULL)
		return (int)nb_shim_answer(nb_arch_syscall(
			SYS_prctl, option, (long)a[0], (long)a[1], (long)a[2], (long)a[3], 0));
	return real_prctl(option, a[0], a[1], a[2], a[3]);
}
