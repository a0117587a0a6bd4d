/* SPDX-License-Identifier: MIT */
/* A machine in one line. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

static void the_example(void **state)
{
	struct topo_info t;

	(void)state;
	line_ok(&t, "2 nodes x 24 cpus x 64G + 1 node x 256G at 40");
	ASSERT_IDS(&t, 0, 1, 2);
	assert_int_equal(t.kind, TOPO_LINE);
	assert_int_equal(t.topo.nr_cpus, 48);
	assert_int_equal(node_of_cpu(&t, 0), 0);
	assert_int_equal(node_of_cpu(&t, 23), 0);
	assert_int_equal(node_of_cpu(&t, 24), 1);
	assert_int_equal(node_of_cpu(&t, 47), 1);
	assert_int_equal(node_of(&t, 0)->mem_bytes, UINT64_C(64) << 30);
	assert_int_equal(node_of(&t, 0)->free_bytes, UINT64_C(64) << 30);
	assert_int_equal(node_of(&t, 2)->mem_bytes, UINT64_C(256) << 30);
	assert_int_equal(node_of(&t, 2)->nr_cpus, 0);
	assert_int_equal(distance_of(&t, 0, 0), 10);
	assert_int_equal(distance_of(&t, 0, 1), 20);
	assert_int_equal(distance_of(&t, 0, 2), 40);
	assert_int_equal(distance_of(&t, 2, 1), 40);
	assert_true(t.topo.has_distances);
	assert_true(t.topo.tiers_known);
	assert_int_equal(node_of(&t, 0)->tier, 0);
	assert_int_equal(node_of(&t, 2)->tier, 1);
	topo_info_free(&t);
}

static void distances_hold_backwards(void **state)
{
	struct topo_info t;

	(void)state;
	line_ok(&t, "2 nodes x 4 cpus x 1G at 21 + 2 nodes x 1G at 14 + 1 node x 1G");
	assert_int_equal(distance_of(&t, 0, 1), 21);
	assert_int_equal(distance_of(&t, 1, 2), 14);
	assert_int_equal(distance_of(&t, 2, 3), 14);
	assert_int_equal(distance_of(&t, 3, 0), 14);
	assert_int_equal(distance_of(&t, 4, 3), 20);
	assert_int_equal(distance_of(&t, 4, 4), 10);
	topo_info_free(&t);
}

static void forms(void **state)
{
	static const char *const same[] = {
		"2 nodes x 4 cpus x 1536M",
		"2nodesx4cpusx1536M",
		"2 NODES X 4 CPUS X 1.5GiB",
		"  2 node * 1.5 GB * 4 cpu ",
		"1 node x 4 cpus x 1.5g + 1 node x 4 cpus x 1572864K",
		"2 nodes x 4 cpus x 1536M\n",
		"2\tnodes\tx 4 cpus x 1536M",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct topo_info t;

		line_ok(&t, same[i]);
		ASSERT_IDS(&t, 0, 1);
		assert_int_equal(t.topo.nr_cpus, 8);
		assert_int_equal(node_of(&t, 1)->mem_bytes, UINT64_C(1536) << 20);
		assert_false(t.topo.has_distances);
		topo_info_free(&t);
	}
}

static void tiers(void **state)
{
	struct topo_info t;

	(void)state;
	/* Tiers are renumbered without gaps; order of the words is free. */
	line_ok(&t, "1 node x 2 cpus x 1G tier 4 + 1 node x 1G tier 7 at 30 + 1 node x 1G at 50 "
		    "tier 9");
	assert_int_equal(node_of(&t, 0)->tier, 0);
	assert_int_equal(node_of(&t, 1)->tier, 1);
	assert_int_equal(node_of(&t, 2)->tier, 2);
	assert_int_equal(distance_of(&t, 0, 1), 30);
	assert_int_equal(distance_of(&t, 0, 2), 50);
	topo_info_free(&t);
	/* Faster memory without CPUs. */
	line_ok(&t, "1 node x 2 cpus x 1G tier 1 + 1 node x 1G tier 0");
	assert_int_equal(promotion_of(&t, 0), 1);
	topo_info_free(&t);
}

static void odd_but_sound(void **state)
{
	struct topo_info t;

	(void)state;
	line_ok(&t, "1 node x 4 cpus");
	assert_int_equal(node_of(&t, 0)->mem_bytes, 0);
	assert_true(t.balance_refused);
	topo_info_free(&t);
	line_ok(&t, "1 node x 0 cpus x 1G + 1 node x 0G");
	assert_int_equal(t.topo.nr_cpus, 0);
	assert_true(t.balance_refused);
	topo_info_free(&t);
	line_ok(&t, "1 node x 4 cpus x 1G + 1 node x 2 cpus");
	assert_int_equal(home_of(&t, 1), 0);
	assert_note(&t, "node 1 has CPUs but no memory: home is node 0");
	topo_info_free(&t);
	line_ok(&t, "2 nodes x 2 cpus x 1G at 255");
	assert_note(&t, "1 pair of nodes at distance 255");
	topo_info_free(&t);
}

static void the_largest(void **state)
{
	struct topo_info t;

	(void)state;
	line_ok(&t, "1024 nodes x 8 cpus x 4096T");
	assert_int_equal(t.topo.nr_nodes, 1024);
	assert_int_equal(t.topo.nr_cpus, 8192);
	assert_int_equal(node_of_cpu(&t, 8191), 1023);
	topo_info_free(&t);
}

static void refusals(void **state)
{
	static const struct {
		const char *line, *why;
	} bad[] = {
		{"", "column 1: the line ends; expected a number of nodes"},
		{"   ", "column 4: the line ends"},
		{"x", "column 1: \"x\"; expected a number of nodes"},
		{"0 nodes x 1G", "column 1: \"0\"; expected a number of nodes, 1 to 1024"},
		{"-2 nodes x 1G", "column 1: \"-2\""},
		{"1.5 nodes x 1G", "column 1: \"1.5\""},
		{"1025 nodes x 1G", "1 to 1024"},
		{"99999999999999999999 nodes x 1G", "1 to 1024"},
		{"2", "column 2: the line ends; expected \"nodes\""},
		{"2 sockets x 1G", "column 3: \"sockets\"; expected \"nodes\""},
		{"2 nodes", "expected \"x\" and the cpus or the size"},
		{"2 nodes at 20", "expected \"x\" and the cpus or the size"},
		{"2 nodes x", "column 10: the line ends; expected a number of cpus or a size"},
		{"2 nodes x cpus", "column 11: \"cpus\"; expected a number of cpus or a size"},
		{"2 nodes x 4", "expected \"cpus\" or a unit"},
		{"2 nodes x 4 + 1 node x 1G", "column 13: \"+\"; expected \"cpus\" or a unit"},
		{"2 nodes x 4 cpus x 5 cpus", "column 22: \"cpus\"; expected one number of cpus"},
		{"2 nodes x 1G x 2G", "one size for each group"},
		{"2 nodes x -1 cpus", "column 11: \"-1\"; expected a number of cpus"},
		{"2 nodes x 8193 cpus", "expected a number of cpus, 0 to 8192"},
		{"2 nodes x 8192 cpus", "more than 8192 cpus in all"},
		{"1000 nodes x 1G + 25 nodes x 1G", "more than 1024 nodes in all"},
		{"2 nodes x 64B", "expected a size with a unit"},
		{"2 nodes x 64Q", "expected a size with a unit"},
		{"2 nodes x 64GG", "expected a size with a unit"},
		{"2 nodes x 1e3G", "expected a size with a unit"},
		{"2 nodes x -64G", "\"-64G\"; expected a size"},
		{"2 nodes x 1.2.3G", "expected a size with a unit"},
		{"2 nodes x 4097T", "expected a size with a unit"},
		{"2 nodes x 99999999999999999999P", "expected a size with a unit"},
		{"2 nodes x 1G at", "expected a distance, 10 to 255"},
		{"2 nodes x 1G at 0", "\"0\"; expected a distance, 10 to 255"},
		{"2 nodes x 1G at 9", "expected a distance, 10 to 255"},
		{"2 nodes x 1G at 256", "expected a distance, 10 to 255"},
		{"2 nodes x 1G at -20", "expected a distance, 10 to 255"},
		{"2 nodes x 1G at 20 at 30", "one distance for each group"},
		{"2 nodes x 1G tier", "expected a tier, 0 to 1023"},
		{"2 nodes x 1G tier 1024", "expected a tier, 0 to 1023"},
		{"2 nodes x 1G tier 1 tier 1", "one tier for each group"},
		{"2 nodes x 1G +", "column 15: the line ends; expected a number of nodes"},
		{"2 nodes x 1G 3 nodes x 1G",
			"column 14: \"3\"; expected \"x\", \"at\", \"tier\" or \"+\""},
		{"2 nodes x 1G, 1 node x 1G", "column 13: \",\""},
		{"2 nodes x 1G at 20 x 4 cpus", "column 20: \"x\""},
		{"2 nodes \xc3\x97 1G", "column 9"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		line_refused(bad[i].line, bad[i].why);
}

static void bytes_that_are_no_text(void **state)
{
	static const char nul[] = "2 nodes x 1G\0 x 4 cpus";
	struct topo_info info;
	char why[WHY_LEN];

	(void)state;
	check_refused(topo_parse_line(&info, nul, sizeof(nul), why, sizeof(why)), &info, why,
		"column 13");
	/* Nobody has to want the reason. */
	assert_true(topo_parse_line(&info, "", 0, NULL, 0) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example),
		cmocka_unit_test(distances_hold_backwards),
		cmocka_unit_test(forms),
		cmocka_unit_test(tiers),
		cmocka_unit_test(odd_but_sound),
		cmocka_unit_test(the_largest),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bytes_that_are_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
