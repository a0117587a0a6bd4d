/* SPDX-License-Identifier: MIT */
/* The ring of events: nothing is doubled, nothing invented, and what is lost is counted. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "ring.h"

enum {
	SLOTS = 256,
	WRITERS = 4,
	EACH = 20000,
};

static struct nb_ring *ring;

static int begin(void **state)
{
	(void)state;
	ring = calloc(1, nb_ring_bytes(SLOTS));
	ring->size = SLOTS;
	return ring == NULL;
}

static int end(void **state)
{
	(void)state;
	free(ring);
	return 0;
}

static void test_order_and_room(void **state)
{
	struct nb_event e = {0};

	(void)state;
	assert_false(nb_ring_get(ring, &e));
	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < SLOTS + 10; i++) {
			e.addr = i;
			nb_ring_put(ring, &e);
		}
		assert_int_equal(atomic_load(&ring->lost), 10 * (round + 1));
		for (uint64_t i = 0; i < SLOTS; i++) {
			assert_true(nb_ring_get(ring, &e));
			assert_int_equal(e.addr, i);
		}
		assert_false(nb_ring_get(ring, &e));
	}
}

static void test_a_dead_writer_is_passed_over(void **state)
{
	struct nb_event e = {.addr = 7};

	(void)state;
	assert_false(nb_ring_skip(ring));
	/* It claimed its slot, and no more. */
	atomic_fetch_add(&ring->head, 1);
	nb_ring_put(ring, &e);
	assert_false(nb_ring_get(ring, &e));
	assert_true(nb_ring_skip(ring));
	assert_true(nb_ring_get(ring, &e));
	assert_int_equal(e.addr, 7);
	assert_int_equal(atomic_load(&ring->lost), 1);
}

static void *write_many(void *who)
{
	for (uint64_t i = 1; i <= EACH; i++) {
		const struct nb_event e = {.mm = (uint32_t)(size_t)who, .addr = i};

		nb_ring_put(ring, &e);
	}
	return NULL;
}

static void test_many_writers(void **state)
{
	pthread_t t[WRITERS];
	uint64_t last[WRITERS] = {0}, got = 0;
	struct nb_event e;

	(void)state;
	for (size_t i = 0; i < WRITERS; i++)
		pthread_create(&t[i], NULL, write_many, (void *)i);
	while (got + atomic_load(&ring->lost) < WRITERS * EACH) {
		if (!nb_ring_get(ring, &e))
			continue;
		got++;
		assert_true(e.mm < WRITERS);
		/* Of one writer they come in order, some left out. */
		assert_true(e.addr > last[e.mm] && e.addr <= EACH);
		last[e.mm] = e.addr;
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	assert_false(nb_ring_get(ring, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_and_room, begin, end),
		cmocka_unit_test_setup_teardown(test_a_dead_writer_is_passed_over, begin, end),
		cmocka_unit_test_setup_teardown(test_many_writers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
