/* SPDX-License-Identifier: MIT */
/* os_arch: entering the kernel, and starting a thread that libc does not know. Included by os.c. */
#ifndef NB_LIVE_OS_ARCH_H
#define NB_LIVE_OS_ARCH_H

#include <sched.h>

#define NB_ARCH_SPAWN_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
		CLONE_SETTLS)

#if defined(__x86_64__)

static inline long nb_arch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

/* The child finds fn and arg on its own stack: it must touch nothing of the parent's frame. */
static inline long nb_arch_spawn(void (*fn)(void *), void *arg, void *stack_top, void *tls)
{
	void **sp = stack_top;
	register void *r8 __asm__("r8") = tls;
	register long r10 __asm__("r10") = 0;
	long rc;

	*--sp = arg;
	*--sp = (void *)fn;
	__asm__ volatile(
		"syscall\n\t"
		"test %%rax, %%rax\n\t"
		"jnz 1f\n\t"
		"xor %%ebp, %%ebp\n\t"
		"pop %%rax\n\t"
		"pop %%rdi\n\t"
		"call *%%rax\n\t"
		"hlt\n"
		"1:"
		: "=a"(rc)
		: "a"(56L), "D"((long)NB_ARCH_SPAWN_FLAGS), "S"(sp), "d"(0L), "r"(r10), "r"(r8)
		: "rcx", "r11", "memory");
	return rc;
}

#elif defined(__aarch64__)

static inline long nb_arch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long nb_arch_spawn(void (*fn)(void *), void *arg, void *stack_top, void *tls)
{
	void **sp = stack_top;
	register long x8 __asm__("x8") = 220;
	register long x0 __asm__("x0") = NB_ARCH_SPAWN_FLAGS;
	register void *x1 __asm__("x1");
	register long x2 __asm__("x2") = 0;
	register void *x3 __asm__("x3") = tls;
	register long x4 __asm__("x4") = 0;

	*--sp = arg;
	*--sp = (void *)fn;
	x1 = sp;
	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x30, xzr\n\t"
			 "ldp x9, x0, [sp], #16\n\t"
			 "blr x9\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "x9", "memory");
	return x0;
}

#else
#error "numabal's live part knows x86-64 and arm64"
#endif

#endif
