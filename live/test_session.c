/* SPDX-License-Identifier: MIT */
/* What processes tell each other: which nodes their tasks belong to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "session.h"

enum {
	NODES = 3,
	SEC = 1000000000,
};

struct shared {
	struct nb_session *s;
	struct nb_node node[NODES];
	int16_t cpu_node[NODES];
	uint16_t distance[NODES * NODES];
};

static void begin(struct shared *w)
{
	const struct nb_config config = {0};
	size_t bytes;

	*w = (struct shared){0};
	const struct nb_topology topo = {.nr_nodes = NODES,
		.nr_cpus = NODES,
		.cpu_ids = NODES,
		.nodes = w->node,
		.cpu_node = w->cpu_node,
		.distance = w->distance};
	bytes = nb_session_bytes(&topo, 16);
	w->s = aligned_alloc(64, (bytes + 63) / 64 * 64);
	assert_non_null(w->s);
	memset(w->s, 0, bytes);
	nb_session_init(w->s, &topo, &config, 16);
	assert_true(nb_session_valid(w->s, bytes));
}

static void expect_others(
	struct shared *w, const struct nb_slot *slot, uint64_t now_ns, uint32_t a, uint32_t b)
{
	uint32_t tasks[NODES] = {99, 99, 99};

	nb_session_other_residents(w->s, slot, tasks, now_ns);
	assert_int_equal(tasks[0], a);
	assert_int_equal(tasks[1], b);
	assert_int_equal(tasks[2], 0);
}

static void each_hears_of_all_others(void **state)
{
	const uint32_t first[NODES] = {2, 1, 0}, second[NODES] = {4, 0, 0};
	const struct nb_slot *one, *two, *three;
	struct shared w;

	(void)state;
	begin(&w);
	one = nb_session_slot(w.s, 11);
	two = nb_session_slot(w.s, 12);
	three = nb_session_slot(w.s, 13);
	expect_others(&w, one, SEC, 0, 0);
	nb_session_tell_residents(w.s, one, first, SEC);
	nb_session_tell_residents(w.s, two, second, SEC);
	expect_others(&w, one, SEC, 4, 0);
	expect_others(&w, two, SEC, 2, 1);
	expect_others(&w, three, SEC, 6, 1);
	free(w.s);
}

/* Killed, perhaps. */
static void who_is_silent_is_forgotten(void **state)
{
	const uint32_t tasks[NODES] = {2, 1, 0};
	const struct nb_slot *one, *two;
	struct shared w;

	(void)state;
	begin(&w);
	one = nb_session_slot(w.s, 11);
	two = nb_session_slot(w.s, 12);
	nb_session_tell_residents(w.s, one, tasks, SEC);
	expect_others(&w, two, UINT64_C(2) * SEC, 2, 1);
	expect_others(&w, two, UINT64_C(4) * SEC, 0, 0);
	nb_session_tell_residents(w.s, one, tasks, UINT64_C(4) * SEC);
	expect_others(&w, two, UINT64_C(4) * SEC, 2, 1);
	free(w.s);
}

/* And the events of a recording, which come behind, stay what they are. */
static void the_slot_of_many_is_not_heard(void **state)
{
	const uint32_t tasks[NODES] = {2, 1, 7};
	const struct nb_slot *first, *last = NULL;
	struct shared w;

	(void)state;
	begin(&w);
	first = nb_session_slot(w.s, 1);
	for (uint32_t pid = 2; pid <= NB_SESSION_SLOTS; pid++)
		last = nb_session_slot(w.s, pid);
	assert_ptr_equal(last, &w.s->slot[NB_SESSION_SLOTS - 1]);
	nb_session_tell_residents(w.s, last, tasks, SEC);
	expect_others(&w, first, SEC, 0, 0);
	assert_int_equal(nb_session_ring(w.s)->size, 16);
	free(w.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hears_of_all_others),
		cmocka_unit_test(who_is_silent_is_forgotten),
		cmocka_unit_test(the_slot_of_many_is_not_heard),
	};

	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
