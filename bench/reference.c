/* SPDX-License-Identifier: MIT */
/*
 * reference: work that takes about a second of an undisturbed core of about 3 GHz, and longer where
 * the core is slower or shared. bench/run's bound on numa01 is one in this.
 *
 * Half of it is arithmetic that waits for itself, half loads that wait for each other from a table
 * larger than the caches nearest to the core: what a simulator is made of.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ENTRIES = 1 << 18, /* of 8 bytes: 2 MiB */
	ROUNDS = 55000000,
};

static uint64_t mix(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

int main(void)
{
	uint64_t *table = malloc(ENTRIES * sizeof(*table)), x = 88172645463325252U;

	if (table == NULL) {
		perror("reference");
		return 1;
	}
	for (uint64_t i = 0; i < ENTRIES; i++)
		table[i] = x = mix(x);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		x = mix(x + table[x % ENTRIES]);
		table[x % ENTRIES] += i;
	}
	printf("%llu\n", (unsigned long long)x);
	free(table);
	return 0;
}
