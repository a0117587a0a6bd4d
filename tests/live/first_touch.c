/* SPDX-License-Identifier: MIT */
/*
 * first_touch: on which nodes memory is that a thread was the first to touch. usage:
 * first_touch touch MIB CPU | first_touch bound MIB CPU SECONDS | first_touch interleaved --
 * COMMAND...
 *
 * touch: a thread on that CPU touches all of a mapping that the main thread made; prints "node N
 * permille" for each node. bound: the same with memory that is bound to node 0 (mbind) and used for
 * so long. interleaved: run the command with the policy that `numactl -i all` gives.
 */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	CHUNK = 512,
	MOST_NODES = 64,
};

struct job {
	char *p;
	size_t bytes;
	int cpu;
	time_t seconds; /* 0: once */
};

static void *touch(void *job)
{
	const struct job *j = job;
	const time_t until = time(NULL) + j->seconds;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(j->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		exit(4);
	do
		for (size_t i = 0; i < j->bytes; i += PAGE)
			((volatile char *)j->p)[i]++;
	while (time(NULL) < until);
	return NULL;
}

static void say_nodes(char *p, size_t bytes)
{
	size_t on[MOST_NODES] = {0};

	for (size_t at = 0; at < bytes; at += (size_t)CHUNK * PAGE) {
		void *page[CHUNK];
		int status[CHUNK];
		unsigned long n = 0;

		for (; n < CHUNK && at + n * PAGE < bytes; n++)
			page[n] = p + at + n * PAGE;
		if (syscall(SYS_move_pages, 0, n, page, NULL, status, 0) != 0)
			exit(5);
		/* An armed page is in no table: touched, it is. */
		for (unsigned long i = 0; i < n; i++) {
			if (status[i] < 0) {
				(void)*(volatile char *)page[i];
				syscall(SYS_move_pages, 0, 1UL, &page[i], NULL, &status[i], 0);
			}
			if (status[i] >= 0 && status[i] < MOST_NODES)
				on[status[i]]++;
		}
	}
	for (int i = 0; i < MOST_NODES; i++)
		if (on[i] > 0)
			printf("node %d %zu\n", i, on[i] * 1000 / (bytes / PAGE));
}

static int measure(size_t bytes, int cpu, time_t seconds, bool bound)
{
	struct job j = {.bytes = bytes, .cpu = cpu, .seconds = seconds};
	const unsigned long node0 = 1;
	pthread_t t;

	j.p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (j.p == MAP_FAILED)
		return 3;
	if (bound && syscall(SYS_mbind, j.p, bytes, MPOL_BIND, &node0, 8 * sizeof(node0), 0) != 0)
		return 3;
	if (pthread_create(&t, NULL, touch, &j) != 0)
		return 3;
	pthread_join(t, NULL);
	say_nodes(j.p, bytes);
	return 0;
}

static int interleaved(char **command)
{
	const unsigned long all = 3; /* a machine of two nodes */

	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &all, 8 * sizeof(all)) != 0)
		return 3;
	execvp(command[0], command);
	return 127;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "touch") == 0)
		return measure((size_t)atol(argv[2]) << 20, atoi(argv[3]), 0, false);
	if (argc == 5 && strcmp(argv[1], "bound") == 0)
		return measure((size_t)atol(argv[2]) << 20, atoi(argv[3]), atol(argv[4]), true);
	if (argc > 3 && strcmp(argv[1], "interleaved") == 0 && strcmp(argv[2], "--") == 0)
		return interleaved(argv + 3);
	return 2;
}
