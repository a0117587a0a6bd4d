/* SPDX-License-Identifier: MIT */
/* Changes of CPU and node, counted from where a thread said it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wander.h"

static void test_changes_are_counted_from_the_first_look(void **state)
{
	/* CPUs 0 and 1 are node 0, 2 and 3 node 1. */
	static const struct {
		unsigned int cpu;
		uint64_t cpus, nodes;
	} looks[] = {{3, 0, 0}, {3, 0, 0}, {2, 1, 0}, {1, 2, 1}, {1, 2, 1}, {0, 3, 1}, {3, 4, 2}};
	struct wander w = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		wander_seen(&w, looks[i].cpu, looks[i].cpu / 2);
		assert_int_equal(w.cpu_changes, looks[i].cpus);
		assert_int_equal(w.node_changes, looks[i].nodes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes_are_counted_from_the_first_look),
	};

	return cmocka_run_group_tests_name("wander", tests, NULL, NULL);
}
