/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

#define TWO_NODES  "[machine]\ntopology = 2 nodes x 4 cpus x 4G\n"
#define FOUR_NODES "[machine]\ntopology = 4 nodes x 2 cpus x 4G\n"

static int parse(struct sim_model *m, const char *text)
{
	why[0] = '\0';
	return sim_model_parse(m, "m.ini", text, strlen(text), why, sizeof(why));
}

static void assert_parses(struct sim_model *m, const char *text)
{
	const char *wrong;

	if (parse(m, text))
		fail_msg("refused: %s", why);
	wrong = sim_model_check(m);
	if (wrong)
		fail_msg("unsound: %s", wrong);
}

static void assert_refused(const char *text, int err, const char *line)
{
	struct sim_model m;

	assert_int_equal(parse(&m, text), err);
	assert_string_equal(why, line);
}

static double field(const struct sim_model *m, const struct sim_param *p)
{
	double value;

	memcpy(&value, (const char *)m + p->offset, sizeof(value));
	return value;
}

/* ---- parameters ---- */

static void parameters_have_their_defaults(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, TWO_NODES);
	for (size_t i = 0; i < sim_nr_params; i++)
		assert_true(field(&m, &sim_params[i]) ==
			    sim_params[i].def * sim_param_factor(&sim_params[i]));
	assert_string_equal(m.name, "m");
	sim_model_free(&m);
}

static void parameters_become_base_units(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m,
		"[machine]\ntopology = 1 node x 1 cpu x 1G\nhz = 100\n"
		"[memory]\nbandwidth_mib_s = 2\n[cpu]\nllc_mib = 3\n"
		"[scheduler]\ntimeslice_ms = 4\nwander_per_min = 30\nimbalance_pct = 110\n"
		"[costs]\nhint_fault_ns = 5\n");
	assert_true(m.hz == 100);
	assert_true(m.mem_bandwidth == 2097152);
	assert_true(m.node_bandwidth[0] == 2097152);
	assert_true(m.llc_bytes == 3145728);
	assert_true(m.timeslice == 4e6);
	assert_true(m.wander == 0.5);
	assert_true(m.imbalance_pct == 110);
	assert_true(m.hint_fault == 5);
	sim_model_free(&m);
}

static int set_to(const struct sim_param *p, const char *value)
{
	struct sim_model m;
	char text[512];
	int err;

	if (!strcmp(p->section, "machine"))
		snprintf(text, sizeof(text), TWO_NODES "%s = %s\n", p->key, value);
	else
		snprintf(
			text, sizeof(text), TWO_NODES "[%s]\n%s = %s\n", p->section, p->key, value);
	err = parse(&m, text);
	if (!err)
		sim_model_free(&m);
	return err;
}

/* Every row of the table: its limits are taken (or break another rule), what is beyond them is
 * refused by name. */
static void parameters_have_limits(void **state)
{
	char value[64];

	(void)state;
	for (size_t i = 0; i < sim_nr_params; i++) {
		const struct sim_param *p = &sim_params[i];

		snprintf(value, sizeof(value), "%.17g", p->max * 1.001 + 1);
		assert_int_equal(set_to(p, value), -ERANGE);
		assert_non_null(strstr(why, p->key));
		assert_non_null(strstr(why, p->unit));
		snprintf(value, sizeof(value), "%.17g", p->min - 0.001);
		assert_int_equal(set_to(p, value), -ERANGE);
		assert_int_equal(set_to(p, "1e999"), -ERANGE);
		assert_int_equal(set_to(p, "-1e30"), -ERANGE);
		assert_int_equal(set_to(p, "nan"), -EINVAL);
		assert_int_equal(set_to(p, "many"), -EINVAL);
		assert_int_equal(set_to(p, ""), -EINVAL);
		snprintf(value, sizeof(value), "%.17g", p->def);
		assert_int_equal(set_to(p, value), 0);
	}
}

static void refusals_name_file_line_and_unit(void **state)
{
	(void)state;
	assert_refused(TWO_NODES "[memory]\nlatency_ns = 0\n", -ERANGE,
		"m.ini:4: latency_ns = 0: expected 1 to 1e+06 ns");
	assert_refused(TWO_NODES "[cpu]\nllc_mib = 16M\n", -EINVAL,
		"m.ini:4: llc_mib = 16M: expected a number of MiB");
	assert_refused(TWO_NODES "[cpu]\nthreads_per_core = 1.5\n", -EINVAL,
		"m.ini:4: threads_per_core = 1.5: expected a whole number");
	assert_refused(TWO_NODES "[memroy]\nlatency_ns = 90\n", -EINVAL,
		"m.ini:3: no section [memroy] in a machine file; did you mean 'memory'?");
	assert_refused(TWO_NODES "[memory]\nlatency = 90\n", -EINVAL,
		"m.ini:4: [memory] has no key 'latency'; did you mean 'latency_ns'?");
	assert_refused(TWO_NODES "[memory]\nlatency_ns = 90\nlatency_ns = 91\n", -EINVAL,
		"m.ini:5: 'latency_ns' again in [memory]");
	assert_refused(TWO_NODES "[cpu]\nlatency_ns = 90\n", -EINVAL,
		"m.ini:4: [cpu] has no key 'latency_ns'");
	assert_refused(TWO_NODES "[memory]\nreserved_ratio = 0.6\nwatermark_high_ratio = 0.5\n",
		-EINVAL, "m.ini:1: reserved_ratio and watermark_high_ratio leave no memory");
}

/* ---- topology ---- */

static void a_machine_needs_a_topology(void **state)
{
	struct sim_model m;

	(void)state;
	assert_int_equal(parse(&m, ""), -EINVAL);
	assert_non_null(strstr(why, "m.ini:1: [machine] lacks topology"));
	assert_int_equal(parse(&m, "\n[machine]\nhz = 100\n"), -EINVAL);
	assert_non_null(strstr(why, "m.ini:2: [machine] lacks topology"));
	assert_int_equal(parse(&m, "[machine]\nhz = 100\ntopology = 2 bananas\n"), -EINVAL);
	assert_non_null(strstr(why, "m.ini:3: topology: "));
	/* From memory no file is read. */
	assert_int_equal(parse(&m, "[machine]\ntopology = host\n"), -EINVAL);
	assert_int_equal(parse(&m, "[machine]\ntopology = /etc/passwd\n"), -EINVAL);
}

static void machines_that_can_not_run_anything(void **state)
{
	struct sim_model m;

	(void)state;
	assert_int_equal(parse(&m, "[machine]\ntopology = 2 nodes x 4G\n"), -EINVAL);
	assert_int_equal(parse(&m, "[machine]\ntopology = 2 nodes x 4 cpus\n"), -EINVAL);
	assert_int_equal(parse(&m, "[machine]\ntopology = 0 nodes\n"), -EINVAL);
	assert_int_equal(parse(&m, TWO_NODES "[node 0]\nsize = 0\n[node 1]\nsize = 0\n"), -EINVAL);
	assert_string_equal(why, "m.ini:1: no node has memory");
}

static void a_thousand_nodes(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, "[machine]\ntopology = 1024 nodes x 1 cpu x 1G\n");
	assert_int_equal(m.topo.nr_nodes, 1024);
	assert_true(m.latency_ns[1024 * 1024 - 2] == 180);
	sim_model_free(&m);
	assert_int_equal(parse(&m, "[machine]\ntopology = 1025 nodes x 1 cpu x 1G\n"), -EINVAL);
}

static void nodes_can_differ(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m,
		TWO_NODES "[memory]\nbandwidth_mib_s = 1000\nlatency_ns = 100\n"
			  "[node 1]\nbandwidth_mib_s = 500\nlatency_ns = 300\nsize = 16G\n");
	assert_true(m.node_bandwidth[0] == 1000 * 0x1p20);
	assert_true(m.node_bandwidth[1] == 500 * 0x1p20);
	assert_true(m.topo.nodes[1].mem_bytes == UINT64_C(16) << 30);
	assert_true(m.topo.nodes[1].free_bytes == UINT64_C(16) << 30);
	assert_true(m.latency_ns[0] == 100); /* 0 -> 0 */
	assert_true(m.latency_ns[1] == 600); /* 0 -> 1: distance 20 */
	assert_true(m.latency_ns[2] == 200); /* 1 -> 0 */
	assert_true(m.latency_ns[3] == 300);
	sim_model_free(&m);
	assert_refused(
		TWO_NODES "[node 2]\nsize = 1G\n", -EINVAL, "m.ini:3: no node 2 in this topology");
	assert_refused(
		TWO_NODES "[node x]\nsize = 1G\n", -EINVAL, "m.ini:3: 'x': expected a node id");
	assert_refused(TWO_NODES "[node -1]\n", -EINVAL, "m.ini:3: '-1': expected a node id");
	assert_refused(TWO_NODES "[node 99999999999]\n", -EINVAL,
		"m.ini:3: no node 99999999999 in this topology");
	assert_refused(TWO_NODES "[node 0]\nsize = 1e30\n", -EINVAL,
		"m.ini:4: size = 1e30: expected bytes up to 4096T, as 64G");
	assert_refused(
		TWO_NODES "[node 0]\nspeed = 3\n", -EINVAL, "m.ini:4: [node 0] has no key 'speed'");
}

/* The latency of memory without CPUs is that of its nearest CPUs; others are further off in
 * proportion. */
static void latency_of_memory_without_cpus(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, "[machine]\ntopology = 1 node x 4 cpus x 4G + 1 node x 8G at 40\n"
			  "[node 1]\nlatency_ns = 250\n");
	assert_true(m.latency_ns[1] == 250);
	assert_true(m.latency_ns[0] == 90);
	sim_model_free(&m);
}

static void latency_rows(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, TWO_NODES "[latency]\n0 = 80 140\n1 = - 85.5\n");
	assert_true(m.latency_ns[0] == 80);
	assert_true(m.latency_ns[1] == 140);
	assert_true(m.latency_ns[2] == 180);
	assert_true(m.latency_ns[3] == 85.5);
	sim_model_free(&m);
	assert_refused(TWO_NODES "[latency]\n0 = 80\n", -EINVAL,
		"m.ini:4: 1 latencies from node 0, expected 2");
	assert_refused(TWO_NODES "[latency]\n0 = 80 90 100\n", -EINVAL,
		"m.ini:4: 3 latencies from node 0, expected 2");
	assert_refused(TWO_NODES "[latency]\n0 = 80 0\n", -ERANGE,
		"m.ini:4: latency from 0 = 0: expected 1 to 1e+06 ns");
	assert_refused(TWO_NODES "[latency]\n0 = 80 x\n", -EINVAL,
		"m.ini:4: latency from 0 = x: expected a number of ns");
	assert_refused(
		TWO_NODES "[latency]\n2 = 80 90\n", -EINVAL, "m.ini:4: no node 2 in this topology");
	assert_refused(TWO_NODES "[latency]\n0 = 80 90\n0 = 80 90\n", -EINVAL,
		"m.ini:5: '0' again in [latency]");
}

static void siblings_share_a_core(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(
		&m, "[machine]\ntopology = 2 nodes x 4 cpus x 1G\n[cpu]\nthreads_per_core = 2\n");
	assert_int_equal(m.cpu_core[0], m.cpu_core[2]);
	assert_int_equal(m.cpu_core[1], m.cpu_core[3]);
	assert_int_equal(m.cpu_core[4], m.cpu_core[6]);
	for (int i = 0; i < 4; i++)
		for (int j = 4; j < 8; j++)
			assert_int_not_equal(m.cpu_core[i], m.cpu_core[j]);
	sim_model_free(&m);
	assert_parses(
		&m, "[machine]\ntopology = 1 node x 5 cpus x 1G\n[cpu]\nthreads_per_core = 2\n");
	assert_int_equal(m.cpu_core[0], m.cpu_core[3]);
	assert_int_equal(m.cpu_core[2], 2); /* a core with one thread left */
	sim_model_free(&m);
}

/* ---- links ---- */

static const struct sim_route *route(const struct sim_model *m, unsigned int from, unsigned int to)
{
	return &m->route[from * m->topo.nr_nodes + to];
}

static void links_carry_the_pairs_across(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, FOUR_NODES "[link boards]\nbetween = 0-1 : 2,3\nbandwidth_mib_s = 100\n");
	assert_int_equal(m.nr_links, 2);
	assert_string_equal(m.links[0].name, "boards>");
	assert_string_equal(m.links[1].name, "boards<");
	assert_true(m.links[1].bandwidth == 100 * 0x1p20);
	assert_int_equal(route(&m, 0, 1)->nr, 0);
	assert_int_equal(route(&m, 2, 3)->nr, 0);
	assert_int_equal(route(&m, 1, 3)->nr, 1);
	assert_int_equal(route(&m, 1, 3)->link[0], 0);
	assert_int_equal(route(&m, 3, 1)->link[0], 1);
	sim_model_free(&m);
}

static void routes_use_several_links(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, FOUR_NODES "[link a]\nbetween = 0 : 1-3\nbandwidth_mib_s = 100\n"
				     "[link b]\nbetween = 0-2 : 3\nbandwidth_mib_s = 50\n");
	assert_int_equal(route(&m, 0, 3)->nr, 2);
	assert_int_equal(route(&m, 0, 3)->link[0], 0);
	assert_int_equal(route(&m, 0, 3)->link[1], 2);
	assert_int_equal(route(&m, 3, 0)->link[1], 3);
	assert_int_equal(route(&m, 2, 3)->nr, 1);
	sim_model_free(&m);
}

static void every_pair_gets_a_link(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, FOUR_NODES "[memory]\nlink_bandwidth_mib_s = 10\n"
				     "[link boards]\nbetween = 0-1 : 2-3\nbandwidth_mib_s = 100\n");
	assert_int_equal(m.nr_links, 2 + 4); /* 0>1 1>0 2>3 3>2; the others use the named one */
	assert_int_equal(route(&m, 0, 0)->nr, 0);
	assert_int_equal(route(&m, 0, 1)->nr, 1);
	assert_int_not_equal(route(&m, 0, 1)->link[0], route(&m, 1, 0)->link[0]);
	assert_string_equal(m.links[route(&m, 3, 2)->link[0]].name, "3>2");
	assert_true(m.links[route(&m, 3, 2)->link[0]].bandwidth == 10 * 0x1p20);
	assert_int_equal(route(&m, 0, 2)->link[0], 0);
	sim_model_free(&m);
	assert_refused("[machine]\ntopology = 256 nodes x 1 cpu x "
		       "1G\n[memory]\nlink_bandwidth_mib_s = 10\n",
		-EINVAL,
		"m.ini:1: link_bandwidth_mib_s with 256 nodes: expected at most 255, one link per "
		"pair");
}

static void links_that_are_none(void **state)
{
#define LINK FOUR_NODES "[link x]\nbandwidth_mib_s = 100\nbetween = "
	(void)state;
	assert_refused(FOUR_NODES "[link x]\nbetween = 0 : 1\n", -EINVAL,
		"m.ini:3: [link x] lacks bandwidth_mib_s");
	assert_refused(FOUR_NODES "[link x]\nbandwidth_mib_s = 1\n", -EINVAL,
		"m.ini:3: [link x] lacks between");
	assert_refused(FOUR_NODES "[link x]\nbetween = 0 : 1\nbandwidth_mib_s = 0\n", -ERANGE,
		"m.ini:5: bandwidth_mib_s = 0: expected 1 to 1e+09 MiB/s");
	assert_refused(LINK "0-3\n", -EINVAL,
		"m.ini:5: between = 0-3: expected nodes on both sides, as 0-3 : 4-7");
	assert_refused(
		LINK "0 :\n", -EINVAL, "m.ini:5: expected nodes on both sides, as 0-3 : 4-7");
	assert_refused(LINK "0-1 : 1-2\n", -EINVAL, "m.ini:3: node 1 is on both sides");
	assert_refused(LINK "0 : 4\n", -EINVAL, "m.ini:5: no node 4 in this topology");
	assert_refused(LINK "1-0 : 2\n", -EINVAL, "m.ini:5: range 1-0 runs backwards");
	assert_refused(LINK "0- : 2\n", -EINVAL, "m.ini:5: '': expected a node id");
	assert_refused(LINK "a : 2\n", -EINVAL, "m.ini:5: 'a': expected a node id");
	assert_refused(FOUR_NODES "[link]\nbetween = 0 : 1\nbandwidth_mib_s = 1\n", -EINVAL,
		"m.ini:3: no section [link] in a machine file");
}

static void routes_have_a_longest_length(void **state)
{
	char text[1024] = FOUR_NODES;
	struct sim_model m;

	(void)state;
	for (int i = 0; i < SIM_MAX_ROUTE; i++)
		sprintf(text + strlen(text), "[link %d]\nbetween = 0 : 1\nbandwidth_mib_s = 1\n",
			i);
	assert_parses(&m, text);
	assert_int_equal(route(&m, 0, 1)->nr, SIM_MAX_ROUTE);
	sim_model_free(&m);
	sprintf(text + strlen(text), "[link more]\nbetween = 0 : 1\nbandwidth_mib_s = 1\n");
	assert_refused(text, -EINVAL, "m.ini:15: more than 4 links between nodes 0 and 1");
}

/* ---- the check ---- */

static void the_check_sees_damage(void **state)
{
	struct sim_model m;

	(void)state;
	assert_parses(&m, FOUR_NODES "[link x]\nbetween = 0 : 1\nbandwidth_mib_s = 100\n");
	m.latency_ns[3] = NAN;
	assert_non_null(sim_model_check(&m));
	m.latency_ns[3] = 90;
	m.node_bandwidth[1] = 0;
	assert_non_null(sim_model_check(&m));
	m.node_bandwidth[1] = 1;
	m.route[1].link[0] = 2;
	assert_non_null(sim_model_check(&m));
	m.route[1].link[0] = 0;
	m.cpu_core[1] = -1;
	assert_non_null(sim_model_check(&m));
	m.cpu_core[1] = 1;
	m.hz = -1;
	assert_non_null(sim_model_check(&m));
	m.hz = 250;
	m.links[0].bandwidth = INFINITY;
	assert_non_null(sim_model_check(&m));
	m.links[0].bandwidth = 1;
	assert_null(sim_model_check(&m));
	sim_model_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_have_their_defaults),
		cmocka_unit_test(parameters_become_base_units),
		cmocka_unit_test(parameters_have_limits),
		cmocka_unit_test(refusals_name_file_line_and_unit),
		cmocka_unit_test(a_machine_needs_a_topology),
		cmocka_unit_test(machines_that_can_not_run_anything),
		cmocka_unit_test(a_thousand_nodes),
		cmocka_unit_test(nodes_can_differ),
		cmocka_unit_test(latency_of_memory_without_cpus),
		cmocka_unit_test(latency_rows),
		cmocka_unit_test(siblings_share_a_core),
		cmocka_unit_test(links_carry_the_pairs_across),
		cmocka_unit_test(routes_use_several_links),
		cmocka_unit_test(every_pair_gets_a_link),
		cmocka_unit_test(links_that_are_none),
		cmocka_unit_test(routes_have_a_longest_length),
		cmocka_unit_test(the_check_sees_damage),
	};

	return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
