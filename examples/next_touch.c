/* SPDX-License-Identifier: MIT */
/*
 * next_touch: a program with two phases. In the first, one thread fills an array; in the second,
 *each thread works on its own half. Between them it says that whoever touches a part next shall
 *have it near.
 *
 *	cc next_touch.c $(pkg-config --cflags --libs numabal) -pthread && ./a.out
 */
#include <numabal.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	THREADS = 2,
	BYTES = 64 << 20,
	ROUNDS = 40,
};

static double *array;

static void *work(void *p)
{
	const size_t share = BYTES / sizeof(double) / THREADS;
	double *own = array + share * (size_t)p;

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < share; i++)
			own[i] = own[i] * 0.5 + 1;
	return NULL;
}

int main(void)
{
	/* Virtual nodes, so that it shows something on any machine; leave it out for the real ones.
	 */
	const struct numabal_options options = {.size = sizeof(options), .virtual_nodes = 2};
	struct numabal_counters c = {.size = sizeof(c)};
	pthread_t thread[THREADS];
	struct numabal *nb;
	const int err = numabal_open(&nb, &options);

	if (err != 0) {
		printf("no balancing here: %s\n", strerror(-err));
		return 0;
	}
	array = numabal_alloc(nb, BYTES);
	if (array == NULL)
		return 1;
	memset(array, 0, BYTES);

	numabal_next_touch(nb, array, BYTES);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);

	usleep(100000);
	numabal_read_counters(nb, &c);
	printf("%lu hint faults, %lu pages moved\n", (unsigned long)c.hint_faults,
		(unsigned long)c.pages_migrated);
	numabal_free(nb, array, BYTES);
	numabal_close(nb);
	return 0;
}
