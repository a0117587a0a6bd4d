/* SPDX-License-Identifier: MIT */
#include "common.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

char *fresh_area(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		puts("no memory");
		exit(3);
	}
	return p;
}

void pin_to(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}
