/* SPDX-License-Identifier: MIT */
/*
 * policy: a memory policy that the program takes back again holds no longer: memory that is mapped
 * and used after that is balanced. usage: policy [keep]
 */
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	AREA = 32 << 20,
};

int main(int argc, char **argv)
{
	const unsigned long node0 = 1;
	const time_t until = time(NULL) + 3;
	unsigned long rounds = 0;
	char *p;

	(void)argv;
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &node0, 8 * sizeof(node0)) != 0)
		return 77;
	if (argc == 1 && syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0) != 0)
		return 2;
	p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 2;
	while (time(NULL) < until)
		memset(p, (int)rounds++, AREA);
	return 0;
}
