/* SPDX-License-Identifier: MIT */
/*
 * sandbox: enters a seccomp filter that kills the process for all but a few system calls, with
 * large memory in use before and after. usage: sandbox [sync]: the filter on all threads.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	AREA = 16 << 20,
};

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int enter(int sync)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(madvise),
		ALLOW(mprotect),
		ALLOW(write),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		sync ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
}

static char *area(void)
{
	return mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv)
{
	const struct timespec t = {0, 200000000};
	char *p = area(), *q;
	unsigned long sum = 0;

	(void)argv;
	memset(p, 1, AREA);
	nanosleep(&t, NULL);
	memset(p, 2, AREA);
	if (enter(argc > 1) != 0)
		return 2;
	q = area();
	memset(q, 3, AREA);
	madvise(p, AREA / 2, MADV_DONTNEED);
	mprotect(p + AREA / 2, 4096, PROT_READ);
	for (int i = 0; i < AREA; i += 4096)
		sum += (unsigned char)p[i] + (unsigned char)q[i];
	munmap(p, AREA / 4);
	munmap(q, AREA);
	if (sum != 4096UL * 3 + 2048UL * 2)
		write(1, "wrong\n", 6);
	else
		write(1, "right\n", 6);
	syscall(SYS_exit_group, 0);
}
