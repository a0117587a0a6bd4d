/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../topo/topo.h"
#include "memory.h"
#include "rng.h"

#define assert_near(a, b, precision) assert_true(fabs((a) / (b)-1) <= (precision))

/* A machine of n nodes: 100 ns local, 200 ns remote, ten lines in flight, 10 GB/s of memory a node.
 */
static void make_model(struct sim_model *m, unsigned int n, unsigned int links)
{
	*m = (struct sim_model){.lines_in_flight = 10};
	assert_int_equal(topo_alloc(&m->topo, n, n), 0);
	m->node_bandwidth = calloc(n, sizeof(double));
	m->latency_ns = calloc((size_t)n * n, sizeof(double));
	m->route = calloc((size_t)n * n, sizeof(*m->route));
	m->links = calloc(links + 1, sizeof(*m->links));
	m->nr_links = links;
	for (unsigned int i = 0; i < n; i++) {
		m->node_bandwidth[i] = 10e9;
		for (unsigned int j = 0; j < n; j++)
			m->latency_ns[i * n + j] = i == j ? 100 : 200;
	}
}

static void free_model(struct sim_model *m)
{
	topo_free(&m->topo);
	free(m->node_bandwidth);
	free(m->latency_ns);
	free(m->route);
	free(m->links);
}

/* 10 lines of 64 bytes every 100 ns. */
static void test_one_cpu_is_bound_by_its_lines(void **state)
{
	struct sim_model m;
	struct sim_memory s;

	(void)state;
	make_model(&m, 2, 0);
	assert_int_equal(sim_memory_init(&s, &m), 0);
	s.demand[0] = 1;
	sim_memory_solve(&s);
	assert_true(fabs(sim_memory_rate(&s, 0, 0) - 6.4e9) < 1);
	assert_true(fabs(sim_memory_rate(&s, 0, 1) - 3.2e9) < 1);
	sim_memory_free(&s);
	free_model(&m);
}

/* Everybody in front of a full node waits in the same queue, on top of each one's own way there. */
static void test_a_full_node_makes_everybody_wait_alike(void **state)
{
	struct sim_model m;
	struct sim_memory s;

	(void)state;
	make_model(&m, 2, 0);
	assert_int_equal(sim_memory_init(&s, &m), 0);
	s.demand[0 * 2 + 0] = 4;
	s.demand[1 * 2 + 0] = 4;
	sim_memory_solve(&s);
	assert_near(s.used[0], 10e9, 1e-3);
	assert_near(s.round_ns[0 * 2 + 0] - 100, s.wait_ns[0], 1e-9);
	assert_near(s.round_ns[1 * 2 + 0] - 200, s.wait_ns[0], 1e-9);
	/* 4 x 640 / (100 + w) + 4 x 640 / (200 + w) = 10 bytes/ns: w = 366.4 ns */
	assert_near(s.wait_ns[0], 366.4, 2e-3);
	/* A hundred times as many, and distance hardly matters. */
	s.demand[0 * 2 + 0] = s.demand[1 * 2 + 0] = 400;
	sim_memory_solve(&s);
	assert_near(sim_memory_rate(&s, 0, 0), sim_memory_rate(&s, 1, 0), 0.01);
	assert_near(sim_memory_utilisation(&s, 0), 1, 1e-3);
	sim_memory_free(&s);
	free_model(&m);
}

static void test_a_narrow_link_leaves_the_rest_to_the_near_ones(void **state)
{
	struct sim_model m;
	struct sim_memory s;

	(void)state;
	make_model(&m, 2, 1);
	m.links[0].bandwidth = 1e9;
	m.route[1 * 2 + 0] = (struct sim_route){.nr = 1, .link = {0}};
	assert_int_equal(sim_memory_init(&s, &m), 0);
	s.demand[0 * 2 + 0] = 8;
	s.demand[1 * 2 + 0] = 8;
	sim_memory_solve(&s);
	assert_near(8 * sim_memory_rate(&s, 1, 0), 1e9, 2e-3);
	assert_near(8 * sim_memory_rate(&s, 0, 0), 9e9, 2e-3);
	sim_memory_free(&s);
	free_model(&m);
}

static void test_copies_take_their_part(void **state)
{
	struct sim_model m;
	struct sim_memory s;

	(void)state;
	make_model(&m, 2, 0);
	assert_int_equal(sim_memory_init(&s, &m), 0);
	sim_memory_take_copy(&s, 0, 1, 4e9);
	s.demand[0] = 8;
	sim_memory_solve(&s);
	assert_near(8 * sim_memory_rate(&s, 0, 0), 6e9, 2e-3);
	/* However much is copied, a tenth is left. */
	sim_memory_take_copy(&s, 0, 1, 400e9);
	sim_memory_solve(&s);
	assert_near(8 * sim_memory_rate(&s, 0, 0), 1e9, 2e-3);
	sim_memory_free(&s);
	free_model(&m);
}

/* Whatever is asked: nothing beyond capacity, and nobody waits in front of what is not full. */
static void check_solution(const struct sim_memory *s)
{
	const unsigned int n = s->nr_nodes;

	for (unsigned int r = 0; r < s->nr_resources; r++) {
		assert_true(s->used[r] <= s->capacity[r] * 1.003);
		assert_true(s->wait_ns[r] >= 0);
		if (s->wait_ns[r] > 1)
			assert_true(s->used[r] >= s->capacity[r] * 0.997);
	}
	for (unsigned int f = 0; f < n * n; f++)
		assert_true(s->round_ns[f] >= s->model->latency_ns[f]);
}

static void test_any_demand_is_shared_out_soundly(void **state)
{
	struct sim_rng rng;

	(void)state;
	sim_rng_seed(&rng, 20121123);
	for (int round = 0; round < 2000; round++) {
		const unsigned int n = 1 + (unsigned int)sim_rng_below(&rng, 8);
		const unsigned int links = (unsigned int)sim_rng_below(&rng, 4);
		struct sim_model m;
		struct sim_memory s;

		make_model(&m, n, links);
		for (unsigned int l = 0; l < links; l++)
			m.links[l].bandwidth = 1e8 + sim_rng_unit(&rng) * 1e10;
		for (unsigned int f = 0; f < n * n; f++) {
			m.latency_ns[f] = 50 + sim_rng_unit(&rng) * 500;
			if (links && f % n != f / n)
				m.route[f] = (struct sim_route){
					.nr = 1, .link = {(uint16_t)sim_rng_below(&rng, links)}};
		}
		assert_int_equal(sim_memory_init(&s, &m), 0);
		for (unsigned int f = 0; f < n * n; f++)
			s.demand[f] = sim_rng_unit(&rng) < 0.4 ? 0 : sim_rng_unit(&rng) * 20;
		sim_memory_solve(&s);
		check_solution(&s);
		sim_memory_free(&s);
		free_model(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_cpu_is_bound_by_its_lines),
		cmocka_unit_test(test_a_full_node_makes_everybody_wait_alike),
		cmocka_unit_test(test_a_narrow_link_leaves_the_rest_to_the_near_ones),
		cmocka_unit_test(test_copies_take_their_part),
		cmocka_unit_test(test_any_demand_is_shared_out_soundly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
