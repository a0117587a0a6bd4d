/* SPDX-License-Identifier: MIT */
/* Which memory is the faster, from distances and from figures; what is left to say when nothing
 * tells. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

/* Nodes as numactl prints them: CPUs, MB, and a matrix. */
#define NODE(id, cpus, mb) "node " #id " cpus: " cpus "\nnode " #id " size: " #mb " MB\n"

static void far_memory(void **state)
{
	struct topo_info t;

	(void)state;
	/* Nearer than the other socket, and still below: it is farther than a CPU's own memory. */
	numactl_ok(&t,
		"available: 4 nodes (0-3)\n" NODE(0, "0", 10) NODE(1, "1", 10) NODE(2, "", 10)
			NODE(3, "", 10) "node distances:\nnode 0 1 2 3\n0: 10 32 14 24\n1: 32 10 "
					"24 14\n2: 14 24 10 26\n3: 24 14 26 10\n");
	assert_true(t.topo.tiers_known);
	assert_int_equal(node_of(&t, 0)->tier, 0);
	assert_int_equal(node_of(&t, 2)->tier, 1);
	assert_int_equal(demotion_of(&t, 1), 3);
	assert_int_equal(promotion_of(&t, 3), 1);
	assert_note(&t, "tier 1 is 2-3");
	topo_info_free(&t);
	/* One node with CPUs: there is nothing that the distance could be mistaken for. */
	numactl_ok(&t, "available: 2 nodes (0-1)\n" NODE(0, "0", 10)
			       NODE(1, "", 10) "node distances:\nnode 0 1\n0: 10 20\n1: 20 10\n");
	assert_int_equal(node_of(&t, 1)->tier, 1);
	topo_info_free(&t);
	/* As near as the CPUs' own: the same tier. */
	numactl_ok(&t, "available: 2 nodes (0-1)\n" NODE(0, "0", 10)
			       NODE(1, "", 10) "node distances:\nnode 0 1\n0: 10 10\n1: 10 10\n");
	assert_true(t.topo.tiers_known);
	assert_int_equal(node_of(&t, 1)->tier, 0);
	topo_info_free(&t);
}

static void all_nodes_have_cpus(void **state)
{
	struct topo_info t;

	(void)state;
	numactl_ok(&t, "available: 2 nodes (0-1)\n" NODE(0, "0", 10)
			       NODE(1, "1", 10) "node distances:\nnode 0 1\n0: 10 40\n1: 40 10\n");
	assert_true(t.topo.tiers_known);
	assert_int_equal(node_of(&t, 1)->tier, 0);
	assert_no_note(&t, "tier");
	topo_info_free(&t);
}

static void not_derivable(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"available: 3 nodes (0-2)\n" NODE(0, "0", 10) NODE(1, "1", 10) NODE(2, "",
			 10) "node distances:\nnode 0 1 2\n0: 10 20 20\n1: 20 10 20\n2: 20 20 10\n",
			"tiers not derivable from distances: they are all the same"},
		{"available: 2 nodes (0-1)\n" NODE(0, "0", 10)
				NODE(1, "", 10) "No distance information available.\n",
			"tiers not derivable from distances: there are none"},
		{"available: 2 nodes (0-1)\n" NODE(0, "0", 0)
				NODE(1, "", 10) "node distances:\nnode 0 1\n0: 10 30\n1: 30 10\n",
			"no node has both CPUs and memory"},
		{"node 0 1\n0: 10 30\n1: 30 10\n", "no CPUs are known"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo_info t;

		numactl_ok(&t, cases[i].text);
		assert_false(t.topo.tiers_known);
		for (unsigned int n = 0; n < t.topo.nr_nodes; n++)
			assert_int_equal(t.topo.nodes[n].tier, 0);
		assert_note(&t, cases[i].why);
		topo_info_free(&t);
	}
}

/* Two nodes, the first with CPUs, with latencies in ns and bandwidths in MiB/s ("" = no such file).
 */
static void with_figures(
	struct topo_info *t, const char *lat0, const char *bw0, const char *lat1, const char *bw1)
{
#define NODE_DIR "sys/devices/system/node/"
	const struct file_text all[] = {
		{NODE_DIR "node0/access1/initiators/read_latency", lat0},
		{NODE_DIR "node0/access1/initiators/read_bandwidth", bw0},
		{NODE_DIR "node1/access1/initiators/read_latency", lat1},
		{NODE_DIR "node1/access1/initiators/read_bandwidth", bw1},
		{NODE_DIR "node0/cpulist", "0\n"},
		{NODE_DIR "node1/cpulist", "\n"},
		{NODE_DIR "node0/meminfo", "Node 0 MemTotal: 4096 kB\n"},
		{NODE_DIR "node1/meminfo", "Node 1 MemTotal: 4096 kB\n"},
		{NODE_DIR "node0/distance", "10 10\n"},
		{NODE_DIR "node1/distance", "10 10\n"},
	};
	struct file_text files[sizeof(all) / sizeof(all[0]) + 1] = {{NULL, NULL}};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].text[0])
			files[n++] = all[i];
	files_ok(t, files);
}

static void figures(void **state)
{
	/*
	 * The kernel's rule: 576 x latency ratio / bandwidth ratio, a tier for each 128. Ordinary
	 * memory is in the middle of its tier, 512 to 639: up to 11 % either way is the same.
	 */
	static const struct {
		const char *lat0, *bw0, *lat1, *bw1;
		int tier0, tier1;
	} cases[] = {
		{"100", "40000", "100", "40000", 0, 0},
		{"100", "", "110", "", 0, 0},		/* 633 */
		{"100", "", "112", "", 0, 1},		/* 645 */
		{"100", "", "89", "", 0, 0},		/* 512 */
		{"100", "", "88", "", 1, 0},		/* 506 */
		{"", "22500", "", "90000", 1, 0},	/* HBM: 144 */
		{"100", "40000", "200", "80000", 0, 0}, /* twice as far, twice as wide */
		{"100", "40000", "250", "20000", 0, 1}, /* CXL: 2880 */
		/* Only one of them has each figure: distances decide, which are all 10. */
		{"100", "", "", "20000", 0, 0},
		{"100", "", "", "", 0, 0},
		/* Zero is not a figure. */
		{"0", "1000", "0", "100", 0, 1},
		/* The largest ratio. */
		{"1", "4294967295", "4294967295", "1", 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo_info t;

		with_figures(&t, cases[i].lat0, cases[i].bw0, cases[i].lat1, cases[i].bw1);
		if (node_of(&t, 0)->tier != cases[i].tier0 ||
			node_of(&t, 1)->tier != cases[i].tier1)
			fail_msg("case %zu: tiers %d and %d", i, node_of(&t, 0)->tier,
				node_of(&t, 1)->tier);
		topo_info_free(&t);
	}
}

static void nothing_to_balance(void **state)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{"1 node x 4 cpus x 1G", "there is one node"},
		{"2 nodes x 4 cpus", "no node is known to have memory"},
		{"2 nodes x 4 cpus + 1 node x 1G", "one node alone has memory"},
		{"2 nodes x 1G", "no CPU is known"},
		{"2 nodes x 4 cpus x 1G at 10", "all memory is equally far from each CPU"},
		{"1 node x 4 cpus + 2 nodes x 1G at 30", "all memory is equally far from each CPU"},
	};
	struct topo_info t;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		line_ok(&t, cases[i].line);
		assert_true(t.balance_refused);
		assert_note(&t, cases[i].why);
		topo_info_free(&t);
	}
	line_ok(&t, "2 nodes x 4 cpus x 1G");
	assert_false(t.balance_refused);
	topo_info_free(&t);
	line_ok(&t, "1 node x 4 cpus + 1 node x 1G at 30 + 1 node x 1G at 40");
	assert_false(t.balance_refused);
	topo_info_free(&t);
}

static void many_odd_nodes(void **state)
{
	struct topo_info t;

	(void)state;
	/* A note for each would say nothing any more. */
	line_ok(&t, "500 nodes x 2 cpus + 2 nodes x 1G at 30");
	assert_note(&t, "492 more nodes have CPUs but no memory");
	assert_true(t.nr_notes <= TOPO_MAX_NOTES);
	topo_info_free(&t);
}

static void values(void **state)
{
	struct nb_topology t, copy;

	(void)state;
	assert_true(topo_alloc(&t, 0, 0) < 0);
	assert_true(topo_alloc(&t, NB_MAX_NODES + 1, 0) < 0);
	assert_true(topo_alloc(&t, 1, NB_MAX_CPUS + 1) < 0);
	assert_int_equal(topo_alloc(&t, 3, 4), 0);
	assert_null(nb_topology_check(&t));
	assert_int_equal(t.nodes[2].id, 2);
	assert_int_equal(t.cpu_node[3], NB_NO_NODE);
	assert_int_equal(nb_distance(&t, 1, 1), 10);
	assert_int_equal(nb_distance(&t, 2, 1), 20);
	t.nodes[1].id = 7;
	t.nodes[2].id = 9;
	t.cpu_node[3] = 2;
	t.nodes[2].nr_cpus = t.nr_cpus = 1;
	t.has_distances = true;
	t.distance[1] = 33;
	assert_int_equal(topo_copy(&copy, &t), 0);
	topo_free(&t);
	assert_null(t.nodes);
	assert_null(nb_topology_check(&copy));
	assert_int_equal(copy.nodes[1].id, 7);
	assert_int_equal(copy.cpu_node[3], 2);
	assert_int_equal(nb_distance(&copy, 0, 1), 33);
	topo_free(&copy);
	topo_free(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_memory),
		cmocka_unit_test(all_nodes_have_cpus),
		cmocka_unit_test(not_derivable),
		cmocka_unit_test(figures),
		cmocka_unit_test(nothing_to_balance),
		cmocka_unit_test(many_odd_nodes),
		cmocka_unit_test(values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
