/* SPDX-License-Identifier: MIT */
/*
 * own_buffer: a program that maps its memory itself, hands it over, binds a part of it, and reads
 *the counters.
 *
 *	cc own_buffer.c $(pkg-config --cflags --libs numabal) && ./a.out
 */
#include <numabal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	BYTES = 32 << 20,
	FIRST = 8 << 20,
};

int main(void)
{
	const struct numabal_options options = {.size = sizeof(options), .virtual_nodes = 2};
	struct numabal_counters c = {.size = sizeof(c)};
	struct numabal *nb;
	char *p;
	int err = numabal_open(&nb, &options);

	if (err != 0) {
		printf("no balancing here: %s\n", strerror(-err));
		return 0;
	}
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	/* Before the first use: what it holds is lost. */
	err = numabal_manage(nb, p, BYTES);
	printf("managed: %s\n", err == 0 ? "yes" : strerror(-err));
	memset(p, 1, BYTES);

	/* The first part is everybody's: it stays on node 0. */
	err = numabal_set_policy(nb, p, FIRST, NUMABAL_BIND, 1);
	printf("bound: %s\n", err == 0 ? "yes" : strerror(-err));

	numabal_discard(nb, p + FIRST, FIRST);
	numabal_read_counters(nb, &c);
	printf("%lu MiB managed, byte %d, discarded byte %d\n",
		(unsigned long)(c.managed_bytes >> 20), p[0], p[FIRST]);

	/* Back to ordinary memory, with its contents, before it is unmapped. */
	err = numabal_release(nb, p, BYTES);
	printf("released: %s, byte %d\n", err == 0 ? "yes" : strerror(-err), p[0]);
	munmap(p, BYTES);
	numabal_close(nb);
	return 0;
}
