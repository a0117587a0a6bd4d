/* SPDX-License-Identifier: MIT */
#include "test_world.h"
#include <string.h>

/* Two sockets with CPUs, a memory-only node near each: distances as a public CXL machine reports
 * them. */
static struct tm *cxl_machine(void)
{
	static const uint16_t distance[16] = {
		10, 21, 14, 24, 21, 10, 24, 14, 14, 24, 10, 26, 24, 14, 26, 10};
	struct tm *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	tm_init(m, "none", 4);
	memcpy(m->distance, distance, sizeof(distance));
	m->nodes[2].tier = m->nodes[3].tier = 1;
	m->nodes[2].nr_cpus = m->nodes[3].nr_cpus = 0;
	assert_true(tm_start(m)); /* fills the CPUs in */
	return m;
}

static void done(struct tm *m)
{
	assert_null(tm_stop(m));
	free(m);
}

static void indexes_are_found_by_id(void **state)
{
	static const int ids[] = {0, 8, 252, 255};
	struct tm *m = cxl_machine();

	(void)state;
	for (int n = 0; n < 4; n++)
		m->nodes[n].id = ids[n];
	for (int n = 0; n < 4; n++)
		assert_int_equal(nb_topology_index(&m->topo, ids[n]), n);
	assert_int_equal(nb_topology_index(&m->topo, 1), NB_NO_NODE);
	assert_int_equal(nb_topology_index(&m->topo, -1), NB_NO_NODE);
	assert_int_equal(nb_topology_index(&m->topo, 256), NB_NO_NODE);
	assert_null(nb_topology_check(&m->topo));
	done(m);
}

static void tiers_are_neighbours(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	assert_int_equal(nb_topology_demotion_target(&m->topo, 0), 2);
	assert_int_equal(nb_topology_demotion_target(&m->topo, 1), 3);
	assert_int_equal(nb_topology_promotion_target(&m->topo, 2), 0);
	assert_int_equal(nb_topology_promotion_target(&m->topo, 3), 1);
	assert_int_equal(nb_topology_promotion_target(&m->topo, 0), NB_NO_NODE);
	assert_int_equal(nb_topology_demotion_target(&m->topo, 2), NB_NO_NODE);
	m->nodes[2].mem_bytes = 0; /* may grow later; until then the other one is the next tier */
	assert_int_equal(nb_topology_demotion_target(&m->topo, 0), 3);
	m->nodes[3].tier = 2;
	m->nodes[2].mem_bytes = GIB;
	assert_int_equal(nb_topology_demotion_target(&m->topo, 1), 2);
	assert_int_equal(nb_topology_demotion_target(&m->topo, 2), 3);
	assert_int_equal(nb_topology_promotion_target(&m->topo, 3), 2);
	done(m);
}

static void the_nearest_memory_is_found(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	for (unsigned int n = 0; n < 4; n++)
		assert_int_equal(nb_topology_nearest_memory(&m->topo, n), n);
	m->nodes[0].mem_bytes = 0;
	assert_int_equal(nb_topology_nearest_memory(&m->topo, 0), 2);
	m->nodes[2].flags = NB_NODE_DISALLOWED;
	assert_int_equal(nb_topology_nearest_memory(&m->topo, 0), 1);
	assert_int_equal(nb_topology_memory_nodes(&m->topo), 2);
	m->nodes[1].mem_bytes = m->nodes[3].mem_bytes = 0;
	assert_int_equal(nb_topology_nearest_memory(&m->topo, 0), NB_NO_NODE);
	assert_int_equal(nb_topology_memory_nodes(&m->topo), 0);
	done(m);
}

/* The faster side is the one with the CPUs: its row tells the distance, both ways. */
static void tiers_are_as_far_as_the_faster_side_sees_them(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	m->distance[0 * 4 + 2] = 30; /* from node 0 to node 2 */
	m->distance[1 * 4 + 2] = 24;
	m->distance[2 * 4 + 0] = 11; /* what node 2 would say */
	assert_int_equal(nb_topology_promotion_target(&m->topo, 2), 1);
	assert_int_equal(nb_topology_demotion_target(&m->topo, 0), 3);
	done(m);
}

/* A tier all of whose nodes are empty today is passed over. */
static void empty_tiers_are_passed_over(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	m->nodes[3].tier = 2;
	m->nodes[2].mem_bytes = 0;
	assert_int_equal(nb_topology_demotion_target(&m->topo, 0), 3);
	m->nodes[2].flags = NB_NODE_DISALLOWED;
	m->nodes[2].mem_bytes = GIB;
	assert_int_equal(nb_topology_promotion_target(&m->topo, 3), 1);
	done(m);
}

/* NPS4 with memory on the middle nodes only: a tie is the lower index. */
static void a_tie_is_the_lower_node(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	for (int i = 0; i < 16; i++)
		m->distance[i] = i % 5 == 0 ? 10 : 12;
	m->nodes[0].mem_bytes = m->nodes[3].mem_bytes = 0;
	assert_int_equal(nb_topology_nearest_memory(&m->topo, 0), 1);
	assert_int_equal(nb_topology_nearest_memory(&m->topo, 3), 1);
	done(m);
}

static void asymmetric_distances_are_kept(void **state)
{
	struct tm *m = cxl_machine();

	(void)state;
	m->distance[0 * 4 + 3] = 28;
	m->distance[3 * 4 + 0] = 23;
	assert_null(nb_topology_check(&m->topo));
	assert_int_equal(nb_distance(&m->topo, 0, 3), 28);
	assert_int_equal(nb_distance(&m->topo, 3, 0), 23);
	done(m);
}

/* What breaks a topology, and a word of what the checker must say. */
static void no_nodes(struct tm *m)
{
	m->topo.nr_nodes = 0;
}
static void many_nodes(struct tm *m)
{
	m->topo.nr_nodes = NB_MAX_NODES + 1;
}
static void many_cpus(struct tm *m)
{
	m->topo.cpu_ids = NB_MAX_CPUS + 1;
}
static void no_distance(struct tm *m)
{
	m->topo.distance = NULL;
}
static void zero_distance(struct tm *m)
{
	m->distance[7] = 0;
}
static void ids_equal(struct tm *m)
{
	m->nodes[1].id = m->nodes[0].id;
}
static void ids_fall(struct tm *m)
{
	m->nodes[3].id = 1;
}
static void id_negative(struct tm *m)
{
	m->nodes[0].id = -1;
}
static void cpu_nowhere(struct tm *m)
{
	m->cpu_node[2] = 4;
}
static void cpu_lost(struct tm *m)
{
	m->cpu_node[2] = NB_NO_NODE;
}
static void cpu_elsewhere(struct tm *m)
{
	m->cpu_node[2] = 1;
}
static void tier_negative(struct tm *m)
{
	m->nodes[1].tier = -1;
}
static void tier_unknown(struct tm *m)
{
	m->topo.tiers_known = false;
}
static void distance_unknown(struct tm *m)
{
	m->topo.has_distances = false;
}

static void broken_topologies_are_named(void **state)
{
	static const struct {
		void (*ruin)(struct tm *m);
		const char *word;
	} cases[] = {
		{no_nodes, "no node"},
		{many_nodes, "1024"},
		{many_cpus, "8192"},
		{no_distance, "missing"},
		{zero_distance, "distance of 0"},
		{ids_equal, "ascending"},
		{ids_fall, "ascending"},
		{id_negative, "negative"},
		{cpu_nowhere, "does not exist"},
		{cpu_lost, "nr_cpus"},
		{cpu_elsewhere, "nr_cpus"},
		{tier_negative, "tier"},
		{tier_unknown, "tiers are unknown"},
		{distance_unknown, "distances are unknown"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tm *m = cxl_machine();
		const char *wrong;

		assert_null(nb_topology_check(&m->topo));
		cases[i].ruin(m);
		wrong = nb_topology_check(&m->topo);
		if (wrong == NULL || strstr(wrong, cases[i].word) == NULL)
			fail_msg("%s: %s", cases[i].word, wrong != NULL ? wrong : "sound");
		done(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indexes_are_found_by_id),
		cmocka_unit_test(tiers_are_neighbours),
		cmocka_unit_test(tiers_are_as_far_as_the_faster_side_sees_them),
		cmocka_unit_test(empty_tiers_are_passed_over),
		cmocka_unit_test(the_nearest_memory_is_found),
		cmocka_unit_test(a_tie_is_the_lower_node),
		cmocka_unit_test(asymmetric_distances_are_kept),
		cmocka_unit_test(broken_topologies_are_named),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
