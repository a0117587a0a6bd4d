/* SPDX-License-Identifier: MIT */
/* Topologies that people posted: what the index beside them says that a correct reader says. */
#include <errno.h>
#include <string.h>

#include "fixture.h"

static void gh200(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-gh200-9nodes-255.txt"));
	ASSERT_IDS(&t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
	assert_int_equal(t.topo.nr_cpus, 72);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 72);
	assert_int_equal(total_mib(&t), 587317);
	for (int id = 2; id <= 8; id++) {
		assert_int_equal(node_of(&t, id)->mem_bytes, 0);
		assert_int_equal(node_of(&t, id)->nr_cpus, 0);
		assert_int_equal(distance_of(&t, 0, id), 80);
		assert_int_not_equal(home_of(&t, 0), id);
	}
	assert_int_equal(distance_of(&t, 0, 1), 80);
	assert_int_equal(distance_of(&t, 1, 2), NB_DISTANCE_UNREACHABLE);
	assert_int_equal(demotion_of(&t, 0), 1);
	assert_note(&t, "nodes 2-8: neither CPUs nor memory");
	/* Each two of nodes 1 to 8. */
	assert_note(&t, "28 pairs of nodes at distance 255");
	topo_info_free(&t);
}

static void power9_gpus(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-power9-ac922-gpu-nodes.txt"));
	ASSERT_IDS(&t, 0, 8, 252, 253, 254, 255);
	assert_int_equal(t.topo.nr_cpus, 128);
	assert_int_equal(total_mib(&t), 648468);
	assert_int_equal(distance_of(&t, 0, 252), 80);
	assert_int_equal(distance_of(&t, 0, 8), 40);
	assert_int_equal(node_of(&t, 255)->mem_bytes >> 20, 32256);
	assert_int_equal(node_of(&t, 255)->nr_cpus, 0);
	topo_info_free(&t);
}

static void power9_empty(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-power9-nodes252-255-zero.txt"));
	ASSERT_IDS(&t, 0, 8, 252, 253, 254, 255);
	assert_int_equal(t.topo.nr_cpus, 128);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 64);
	assert_int_equal(node_of(&t, 8)->nr_cpus, 64);
	assert_int_equal(node_of_cpu(&t, 63), 0);
	assert_int_equal(node_of_cpu(&t, 64), 8);
	assert_int_equal(node_of_cpu(&t, 127), 8);
	assert_int_equal(total_mib(&t), 260994);
	assert_note(&t, "nodes 252-255: neither CPUs nor memory");
	topo_info_free(&t);
}

static void cxl(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-cxl-4nodes-14-24-26.txt"));
	ASSERT_IDS(&t, 0, 1, 2, 3);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 104);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 104);
	assert_int_equal(node_of(&t, 2)->nr_cpus, 0);
	assert_int_equal(node_of(&t, 3)->nr_cpus, 0);
	assert_int_equal(t.topo.cpu_ids, 208);
	assert_int_equal(total_mib(&t), 325247);
	assert_true(t.topo.tiers_known);
	assert_int_equal(demotion_of(&t, 0), 2);
	assert_int_equal(demotion_of(&t, 1), 3);
	assert_int_equal(promotion_of(&t, 2), 0);
	assert_int_equal(promotion_of(&t, 3), 1);
	assert_false(t.balance_refused);
	topo_info_free(&t);
}

static void threadripper(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-threadripper-nps4-memless.txt"));
	ASSERT_IDS(&t, 0, 1, 2, 3);
	for (int id = 0; id < 4; id++)
		assert_int_equal(node_of(&t, id)->nr_cpus, 12);
	assert_int_equal(total_mib(&t), 128779);
	assert_int_equal(node_of(&t, 0)->mem_bytes, 0);
	assert_int_equal(node_of(&t, 3)->mem_bytes, 0);
	assert_int_equal(home_of(&t, 0), 1);
	assert_note(
		&t, "node 0 has CPUs but no memory: home is node 1 (tie at distance 12 of 1-2)");
	assert_note(&t, "node 3 has CPUs but no memory");
	assert_false(t.balance_refused);
	topo_info_free(&t);
}

static void lpar(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-lpar-all-cpus-on-memless-node2.txt"));
	assert_int_equal(t.topo.nr_cpus, 8);
	assert_int_equal(node_of(&t, 2)->nr_cpus, 8);
	assert_int_equal(node_of(&t, 2)->mem_bytes, 0);
	assert_int_equal(total_mib(&t), 15289);
	assert_note(&t, "no local memory possible");
	assert_true(t.balance_refused);
	assert_note(&t, "nothing to balance: all memory is equally far from each CPU");
	topo_info_free(&t);
}

static void epyc(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-epyc-2s-nps4-8nodes.txt"));
	ASSERT_IDS(&t, 0, 1, 2, 3, 4, 5, 6, 7);
	assert_int_equal(t.topo.nr_cpus, 256);
	assert_int_equal(t.topo.cpu_ids, 256);
	assert_int_equal(total_mib(&t), 515755);
	for (int a = 0; a < 8; a++)
		for (int b = 0; b < 8; b++)
			assert_int_equal(distance_of(&t, a, b), a == b		 ? 10
								: a / 4 == b / 4 ? 12
										 : 32);
	assert_int_equal(node_of_cpu(&t, 255), 7);
	assert_int_equal(node_of_cpu(&t, 128), 0);
	assert_int_equal(t.nr_notes, 0);
	topo_info_free(&t);
}

static void xeonmax_truncated(void **state)
{
	(void)state;
	read_refused(shared_case("numactl-H-xeonmax-snc4-hbm-16nodes-TRUNCATED.txt"), -EINVAL,
		"truncated: 16 announced, 11 seen, line 34");
}

static void docker(void **state)
{
	(void)state;
	read_refused(shared_case("numactl-H-docker-0nodes.txt"), -EINVAL, "0 nodes");
}

static void pseries(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-H-pseries-no-distance.txt"));
	ASSERT_IDS(&t, 0);
	assert_int_equal(t.topo.nr_cpus, 1);
	assert_int_equal(total_mib(&t), 16222);
	assert_int_equal(node_of(&t, 0)->free_bytes >> 20, 15681);
	assert_false(t.topo.has_distances);
	assert_true(t.balance_refused);
	assert_note(&t, "nothing to balance: there is one node");
	topo_info_free(&t);
}

static void asymmetric(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("numactl-distances-only-asymmetric-snc-upi.txt"));
	ASSERT_IDS(&t, 0, 1, 2, 3, 4, 5);
	assert_int_equal(distance_of(&t, 0, 4), 28);
	assert_int_equal(distance_of(&t, 4, 0), 23);
	assert_int_equal(distance_of(&t, 1, 3), 23);
	assert_int_equal(distance_of(&t, 3, 1), 28);
	assert_note(&t, "2 asymmetric pairs");
	assert_note(&t, "does not say which CPUs");
	assert_true(t.balance_refused);
	topo_info_free(&t);
}

static void offline_node0(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("sysfs-offline-cpu0-node0.tar.gz"));
	ASSERT_IDS(&t, 1);
	assert_int_equal(distance_of(&t, 1, 1), 10);
	assert_int_equal(t.topo.nr_cpus, 8);
	for (unsigned int cpu = 0; cpu < 24; cpu++)
		assert_int_equal(node_of_cpu(&t, cpu), cpu % 2 && cpu >= 5 && cpu <= 19 ? 1 : -1);
	assert_note(&t, "has_memory names 0, not online");
	assert_true(t.balance_refused);
	topo_info_free(&t);
}

static void sparse(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("sysfs-48amd64-4pa2n6c-sparse.tar.gz"));
	ASSERT_IDS(&t, 0, 1, 2, 33, 34, 45, 72, 73);
	assert_int_equal(t.topo.nr_cpus, 48);
	for (int id = 0; id < 3; id++)
		assert_int_equal(node_of(&t, id)->nr_cpus, 6);
	/* Rows as they are in the files. */
	assert_int_equal(distance_of(&t, 0, 33), 22);
	assert_int_equal(distance_of(&t, 0, 73), 22);
	assert_int_equal(distance_of(&t, 2, 73), 16);
	assert_int_equal(distance_of(&t, 73, 2), 16);
	assert_int_equal(distance_of(&t, 45, 1), 22);
	assert_int_equal(distance_of(&t, 72, 72), 10);
	assert_note(&t, "has_normal_memory names 3-7, not online: not believed");
	for (unsigned int i = 0; i < t.topo.nr_nodes; i++)
		assert_int_equal(t.topo.nodes[i].flags, 0);
	topo_info_free(&t);
}

static void nvidia_gpus(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("sysfs-nvidiagpunumanodes.tar.gz"));
	ASSERT_IDS(&t, 0, 8, 250, 251, 252, 253, 254, 255);
	assert_int_equal(t.topo.nr_cpus, 32);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 16);
	assert_int_equal(node_of_cpu(&t, 16), -1);
	assert_int_equal(node_of_cpu(&t, 88), 8);
	for (int id = 250; id <= 255; id++) {
		assert_int_equal(node_of(&t, id)->mem_bytes, UINT64_C(15) << 30);
		assert_int_equal(node_of(&t, id)->nr_cpus, 0);
		assert_int_equal(node_of(&t, id)->flags, NB_NODE_MOVABLE_ONLY);
	}
	assert_int_equal(node_of(&t, 0)->flags, 0);
	topo_info_free(&t);
}

static void buggy_numa(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("sysfs-8em64t-2s2ca2c-buggynuma.tar.gz"));
	assert_int_equal(t.topo.nr_nodes, 8);
	assert_int_equal(t.topo.nr_cpus, 8);
	assert_int_equal(distance_of(&t, 0, 7), 10);
	assert_true(t.balance_refused);
	assert_note(&t, "firmware error: each of 8 nodes claims all 8 CPUs");
	assert_note(&t, "nothing to balance: all memory is equally far from each CPU");
	topo_info_free(&t);
}

static void hmat_tiers(void **state)
{
	/* Bandwidths in the files: 1000 for 0 and 1, 10000 for 2 and 4, 100 for the rest. */
	static const int tier[][2] = {{0, 1}, {1, 1}, {2, 0}, {4, 0}, {6, 2}, {8, 2}, {9, 2}};
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("sysfs-fakeheteromemtiers.tar.gz"));
	ASSERT_IDS(&t, 0, 1, 2, 4, 6, 8, 9);
	assert_true(t.topo.tiers_known);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(node_of(&t, tier[i][0])->tier, tier[i][1]);
	assert_int_equal(node_of(&t, 2)->bandwidth_mib_s, 10000);
	assert_int_equal(node_of(&t, 2)->latency_ns, 0);
	assert_int_equal(distance_of(&t, 0, 9), 20);
	topo_info_free(&t);
}

static void four_distances(void **state)
{
	/* The matrix of NUMANodes alone counts: 10 and 20, whatever the packages and cores say. */
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("hwloc-xml-16amd64-4distances.xml"));
	ASSERT_IDS(&t, 0, 1, 2, 3, 4, 5, 6, 7);
	for (int id = 0; id < 8; id++) {
		assert_int_equal(node_of(&t, id)->nr_cpus, 2);
		for (int to = 0; to < 8; to++)
			assert_int_equal(distance_of(&t, id, to), id == to ? 10 : 20);
	}
	/* The first package is node 1, the second node 0. */
	assert_int_equal(node_of_cpu(&t, 0), 1);
	assert_int_equal(node_of_cpu(&t, 2), 0);
	assert_int_equal(node_of(&t, 1)->mem_bytes, UINT64_C(8589934592));
	assert_int_equal(node_of(&t, 0)->mem_bytes, UINT64_C(8587984896));
	topo_info_free(&t);
}

static void many_machines(void **state)
{
	(void)state;
	read_refused(
		shared_case("hwloc-xml-v1.11-8em64t-2mi2ma2c.xml"), -EINVAL, "several machines");
}

static void disallowed(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("hwloc-xml-irregulargroups-disallowed.xml"));
	assert_int_equal(t.topo.nr_nodes, 8);
	assert_int_equal(t.topo.nr_cpus, 16);
	assert_int_equal(node_of_cpu(&t, 15), 1);
	assert_int_equal(node_of_cpu(&t, 16), -1);
	for (int id = 0; id < 8; id++)
		assert_int_equal(node_of(&t, id)->flags, id < 2 ? 0 : NB_NODE_DISALLOWED);
	assert_int_equal(nb_topology_memory_nodes(&t.topo), 2);
	/* Row 2 of the matrix: 65 65 10 50 65 65 65 79. */
	assert_int_equal(distance_of(&t, 2, 3), 50);
	assert_int_equal(distance_of(&t, 2, 7), 79);
	assert_int_equal(distance_of(&t, 0, 1), 50);
	assert_note(&t, "nodes 2-7: not allowed");
	topo_info_free(&t);
}

static void hbm(void **state)
{
	/* DRAM node and HBM node near to the same CPUs. */
	static const int pair[][2] = {{0, 7}, {1, 4}, {2, 5}, {3, 6}};
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("hwloc-xml-64intel64-heteromem.xml"));
	assert_int_equal(t.topo.nr_nodes, 8);
	assert_int_equal(t.topo.nr_cpus, 64);
	for (size_t i = 0; i < 4; i++) {
		const struct nb_node *dram = node_of(&t, pair[i][0]),
				     *fast = node_of(&t, pair[i][1]);

		assert_int_equal(dram->mem_bytes >> 20, 1024);
		assert_int_equal(fast->mem_bytes >> 20, 2048);
		assert_int_equal(dram->tier, 1);
		assert_int_equal(fast->tier, 0);
		assert_int_equal(dram->bandwidth_mib_s, 22500);
		assert_int_equal(fast->bandwidth_mib_s, 90000);
		assert_int_equal(dram->nr_cpus, 16);
		/* Both are local to those CPUs. */
		assert_int_equal(distance_of(&t, dram->id, fast->id), 10);
		assert_int_equal(demotion_of(&t, fast->id), dram->id);
		assert_int_equal(promotion_of(&t, dram->id), fast->id);
	}
	assert_note(&t, "no distances said");
	assert_note(&t, "64 CPUs are near to more than one node");
	topo_info_free(&t);
}

static void memory_side_caches(void **state)
{
	static const int row[4][4] = {
		{10, 21, 11, 21}, {21, 10, 21, 11}, {11, 21, 10, 21}, {21, 11, 21, 10}};
	struct topo_info t;

	(void)state;
	read_ok(&t, shared_case("hwloc-xml-memorysidecaches.xml"));
	ASSERT_IDS(&t, 0, 1, 2, 3);
	for (int a = 0; a < 4; a++) {
		assert_int_equal(node_of(&t, a)->nr_cpus, 20);
		for (int b = 0; b < 4; b++)
			assert_int_equal(distance_of(&t, a, b), row[a][b]);
	}
	assert_note(&t, "4 memory-side caches");
	topo_info_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gh200),
		cmocka_unit_test(power9_gpus),
		cmocka_unit_test(power9_empty),
		cmocka_unit_test(cxl),
		cmocka_unit_test(threadripper),
		cmocka_unit_test(lpar),
		cmocka_unit_test(epyc),
		cmocka_unit_test(xeonmax_truncated),
		cmocka_unit_test(docker),
		cmocka_unit_test(pseries),
		cmocka_unit_test(asymmetric),
		cmocka_unit_test(offline_node0),
		cmocka_unit_test(sparse),
		cmocka_unit_test(nvidia_gpus),
		cmocka_unit_test(buggy_numa),
		cmocka_unit_test(hmat_tiers),
		cmocka_unit_test(four_distances),
		cmocka_unit_test(many_machines),
		cmocka_unit_test(disallowed),
		cmocka_unit_test(hbm),
		cmocka_unit_test(memory_side_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
