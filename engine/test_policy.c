/* SPDX-License-Identifier: MIT */
/* Memory policies: where first touches go, what hint faults make of them, and the lazy move. */
#include "test_world.h"
#include <errno.h>

enum {
	LENGTH = 4 * NB_HUGE_SIZE,
};

static struct nb_policy policy(int mode, uint64_t nodes, bool mof)
{
	return (struct nb_policy){.mode = (uint8_t)mode, .migrate_on_fault = mof, .nodes = {nodes}};
}

static int bind_vma(struct world *w, int mode, uint64_t nodes, bool lazy)
{
	const struct nb_policy p = policy(mode, nodes, false);

	return nb_vma_policy(w->m->e, w->mm, W_BASE, W_BASE + LENGTH, &p, lazy, 0);
}

static void bind_task(struct world *w, int mode, uint64_t nodes, bool mof)
{
	const struct nb_policy p = policy(mode, nodes, mof);

	nb_task_policy(w->m->e, w->t, &p, 0);
}

static int first_touch(struct world *w, uint64_t addr, int node)
{
	return nb_first_touch_node(w->m->e, w->t, nb_vma_find(w->mm, addr), addr, node);
}

static struct world four_nodes(const char *system)
{
	struct world w = w_begin(system, 4);

	w_fill(&w, W_BASE, LENGTH, false);
	return w;
}

/* ---- first touch ---- */

static void default_is_the_touchers_node(void **state)
{
	struct world w = four_nodes("none");

	(void)state;
	for (int n = 0; n < 4; n++) {
		assert_int_equal(first_touch(&w, W_BASE, n), n);
		assert_int_equal(nb_first_touch_node(w.m->e, NULL, NULL, 0, n), n);
	}
	assert_int_equal(first_touch(&w, W_BASE, -1), 0);
	assert_int_equal(first_touch(&w, W_BASE, 99), 0);
	w_end(&w);
}

static void first_touches_follow_the_policy(void **state)
{
	struct world w = four_nodes("moron");

	(void)state;
	assert_int_equal(bind_vma(&w, NB_POLICY_PREFERRED, 0xC, false), 0);
	assert_int_equal(first_touch(&w, W_BASE, 0), 2);
	assert_int_equal(bind_vma(&w, NB_POLICY_BIND, 0x6, false), 0);
	assert_int_equal(first_touch(&w, W_BASE, 0), 1);
	assert_int_equal(first_touch(&w, W_BASE, 2), 2);
	assert_int_equal(bind_vma(&w, NB_POLICY_LOCAL, 0, false), 0);
	assert_int_equal(first_touch(&w, W_BASE, 3), 3);
	assert_int_equal(bind_vma(&w, NB_POLICY_INTERLEAVE, 0xB, false), 0);
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(
			first_touch(&w, W_BASE + i * W_PAGE, 2), ((const int[]){0, 1, 3})[i % 3]);
	assert_int_equal(bind_vma(&w, NB_POLICY_DEFAULT, 0, false), 0);
	assert_int_equal(first_touch(&w, W_BASE, 3), 3);
	w_end(&w);
}

static void a_vma_goes_before_the_task_before_the_system(void **state)
{
	struct world w = four_nodes("moron");

	(void)state;
	bind_task(&w, NB_POLICY_PREFERRED, 0x2, false);
	assert_int_equal(first_touch(&w, W_BASE, 0), 1);
	bind_vma(&w, NB_POLICY_PREFERRED, 0x8, false);
	assert_int_equal(first_touch(&w, W_BASE, 0), 3);
	bind_vma(&w, NB_POLICY_DEFAULT, 0, false);
	assert_int_equal(first_touch(&w, W_BASE, 0), 1);
	bind_task(&w, NB_POLICY_NOOP, 0, false); /* leaves it */
	assert_int_equal(first_touch(&w, W_BASE, 0), 1);
	bind_task(&w, NB_POLICY_BIND, 0, false); /* no node: leaves it */
	bind_task(&w, 77, 1, false);
	assert_int_equal(first_touch(&w, W_BASE, 0), 1);
	bind_task(&w, NB_POLICY_DEFAULT, 0, false);
	assert_int_equal(first_touch(&w, W_BASE, 0), 0);
	w_end(&w);
}

/* Page n of the VMA stays page n when what is before it is unmapped or bound elsewhere; huge pages
 * count as such. */
static void interleaving_counts_from_where_the_vma_began(void **state)
{
	struct world w = four_nodes("moron");
	const struct nb_policy other = policy(NB_POLICY_BIND, 1, false);

	(void)state;
	bind_vma(&w, NB_POLICY_INTERLEAVE, 0xF, false);
	assert_int_equal(tm_unmap(w.m, w.mm, W_MM, W_BASE, W_BASE + 3 * W_PAGE), 0);
	assert_int_equal(nb_vma_policy(w.m->e, w.mm, W_BASE + 6 * W_PAGE, W_BASE + 7 * W_PAGE,
				 &other, false, 0),
		0);
	for (uint64_t i = 3; i < 20; i++)
		assert_int_equal(
			first_touch(&w, W_BASE + i * W_PAGE, 0), i == 6 ? 0 : (int)(i % 4));
	for (uint64_t i = 1; i < 4; i++)
		assert_int_equal(
			nb_first_touch_huge_node(w.m->e, w.t,
				nb_vma_find(w.mm, W_BASE + i * W_HUGE), W_BASE + i * W_HUGE, 0),
			(int)i);
	w_end(&w);
}

static void nodes_without_memory_stand_back(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	w.m->nodes[1].mem_bytes = 0;
	w.m->distance[1 * 4 + 3] = 11;
	w_start(&w);
	w_fill(&w, W_BASE, LENGTH, false);
	assert_int_equal(first_touch(&w, W_BASE, 1), 3);
	bind_vma(&w, NB_POLICY_INTERLEAVE, 0x7, false);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(first_touch(&w, W_BASE + i * W_PAGE, 3), i % 2 ? 2 : 0);
	bind_vma(&w, NB_POLICY_BIND, 0x3, false);
	assert_int_equal(first_touch(&w, W_BASE, 1), 0);
	bind_vma(&w, NB_POLICY_PREFERRED, 0x2, false); /* only a node without memory */
	assert_int_equal(first_touch(&w, W_BASE, 0), 3);
	w_end(&w);
}

/* ---- refusals ---- */

static void policies_that_make_no_sense_are_refused(void **state)
{
	struct world w = four_nodes("moron");
	const struct nb_policy p = policy(NB_POLICY_BIND, 1, false);

	(void)state;
	assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, false), -EINVAL);
	assert_int_equal(bind_vma(&w, NB_POLICY_BIND, 0, false), -EINVAL);
	assert_int_equal(bind_vma(&w, NB_POLICY_PREFERRED, 0, false), -EINVAL);
	assert_int_equal(bind_vma(&w, NB_POLICY_INTERLEAVE, 0x10, false), -EINVAL);
	assert_int_equal(bind_vma(&w, NB_NR_POLICY_MODES, 1, false), -EINVAL);
	assert_int_equal(bind_vma(&w, 255, 1, true), -EINVAL);
	assert_int_equal(nb_vma_policy(w.m->e, w.mm, W_BASE, W_BASE, &p, false, 0), -EINVAL);
	assert_int_equal(
		nb_vma_policy(w.m->e, w.mm, W_BASE + 1, W_BASE + 4097, &p, false, 0), -EINVAL);
	assert_int_equal(
		nb_vma_policy(w.m->e, w.mm, W_BASE + W_HUGE, W_BASE, &p, false, 0), -EINVAL);
	w_end(&w);
	w = four_nodes("none");
	assert_int_equal(bind_vma(&w, NB_POLICY_LOCAL, 0, false), -EOPNOTSUPP);
	assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, true), -EOPNOTSUPP);
	assert_int_equal(bind_vma(&w, NB_POLICY_BIND, 1, true), -EOPNOTSUPP);
	assert_int_equal(bind_vma(&w, NB_POLICY_BIND, 1, false), 0);
	assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, false), -EINVAL);
	w_end(&w);
}

static void without_memory_nothing_changes(void **state)
{
	struct world w = four_nodes("moron");
	const struct nb_policy p = policy(NB_POLICY_BIND, 8, false);
	int err = -ENOMEM;

	(void)state;
	for (int64_t allocs = 0; err == -ENOMEM; allocs++) {
		w.m->allocs_left = allocs;
		err = nb_vma_policy(
			w.m->e, w.mm, W_BASE + 5 * W_PAGE, W_BASE + 9 * W_PAGE, &p, false, 0);
		assert_null(nb_engine_check(w.m->e));
		assert_int_equal(first_touch(&w, W_BASE + 5 * W_PAGE, 1), err == 0 ? 3 : 1);
		assert_true(allocs < 20);
	}
	assert_int_equal(err, 0);
	assert_int_equal(first_touch(&w, W_BASE + 4 * W_PAGE, 1), 1);
	assert_int_equal(first_touch(&w, W_BASE + 9 * W_PAGE, 1), 1);
	w_end(&w);
}

/* ---- hint faults ---- */

/* Without migrate_on_fault (set_mempolicy, mbind) a policy keeps pages where they are. */
static void plain_policies_move_nothing(void **state)
{
	static const int modes[] = {
		NB_POLICY_PREFERRED, NB_POLICY_BIND, NB_POLICY_INTERLEAVE, NB_POLICY_LOCAL};
	struct world w = four_nodes("balancenuma-v8");

	(void)state;
	for (int i = 0; i < 4; i++) {
		bind_vma(&w, modes[i], 0x4, false);
		for (int n = 0; n < 6; n++)
			assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_NO_POLICY);
		bind_vma(&w, NB_POLICY_DEFAULT, 0, false);
		bind_task(&w, modes[i], 0x4, false);
		assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_NO_POLICY);
		bind_task(&w, NB_POLICY_DEFAULT, 0, false);
	}
	assert_int_equal(tm_counters(w.m)->numa_policy_refused, 4 * 7);
	assert_int_equal(w.m->nr_moves, 0);
	w_end(&w);
}

static void migrate_on_fault_satisfies_the_policy(void **state)
{
	struct world w = four_nodes("balancenuma-v8");

	(void)state;
	bind_task(&w, NB_POLICY_PREFERRED, 0x4, true);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, 0).node, 2); /* no filter here */
	bind_task(&w, NB_POLICY_INTERLEAVE, 0xF, true);
	for (uint64_t i = 0; i < 8; i++) {
		const struct nb_verdict v = w_fault_by(&w, w.t, W_BASE + i * W_PAGE, 1, 0);

		assert_int_equal(v.why, i % 4 == 0 ? NB_WHY_IN_PLACE : NB_WHY_MOVE);
		assert_int_equal(v.node, i % 4 == 0 ? NB_NO_NODE : (int)(i % 4));
	}
	bind_task(&w, NB_POLICY_LOCAL, 0, true);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 3, 0).node, 3);
	bind_task(&w, NB_POLICY_BIND, 0x3, true);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_BOUND);
	bind_task(&w, NB_POLICY_BIND, 0xA, true);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 3, 0).node, 3);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 2, 0).node, 1);
	w_end(&w);
}

static void local_without_its_mechanism_is_default(void **state)
{
	struct world w = four_nodes("balancenuma-v8");

	(void)state;
	bind_task(&w, NB_POLICY_LOCAL, 0, false);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_NO_POLICY);
	w_set(&w, "mpol_local=off");
	w_fault(&w, W_BASE, 1);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE);
	w_end(&w);
}

/* ---- the lazy move ---- */

static void a_lazy_bind_moves_pages_at_their_next_touch(void **state)
{
	struct world w = four_nodes("balancenuma-v8");

	(void)state;
	assert_int_equal(bind_vma(&w, NB_POLICY_BIND, 0x4, true), 0);
	assert_int_equal(tm_counters(w.m)->numa_pte_updates, LENGTH / W_PAGE);
	assert_int_equal(tm_count(w.m, NB_EVENT_LAZY, -1), 1);
	for (uint64_t a = W_BASE; a < W_BASE + LENGTH; a += W_PAGE)
		tm_touch(w.m, w.t, w.mm, W_MM, a, 1);
	tm_finish_moves(w.m, NB_MOVE_OK);
	assert_int_equal(w.m->node_pages[2], LENGTH / W_PAGE);
	w_end(&w);
}

/* NOOP keeps the policy in force, here the system's: each page goes to whoever touches it next,
 * filter or not. */
static void a_lazy_noop_is_next_touch(void **state)
{
	static const char *const systems[] = {"moron", "balancenuma-v8"};

	(void)state;
	for (int s = 0; s < 2; s++) {
		struct world w = four_nodes(systems[s]);

		assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, true), 0);
		for (uint64_t a = W_BASE; a < W_BASE + LENGTH; a += W_PAGE)
			tm_touch(w.m, w.t, w.mm, W_MM, a, a < W_BASE + LENGTH / 2 ? 1 : 3);
		tm_finish_moves(w.m, NB_MOVE_OK);
		assert_int_equal(w.m->node_pages[1], LENGTH / W_PAGE / 2);
		assert_int_equal(w.m->node_pages[3], LENGTH / W_PAGE / 2);
		w_end(&w);
	}
}

/* ... also where nothing else would move pages, and once only. */
static void a_lazy_noop_needs_no_balancing(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	w_set(&w, "migrate_on_reference=off");
	w_start(&w);
	w_fill(&w, W_BASE, LENGTH, false);
	assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, true), 0);
	assert_int_equal(w_fault(&w, W_BASE, 1), NB_WHY_MOVE);
	assert_int_equal(w_fault(&w, W_BASE, 2), NB_WHY_NO_POLICY);
	bind_vma(&w, NB_POLICY_PREFERRED, 0x8, false);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE + W_PAGE, 1, 0).node, 3);
	assert_int_equal(w_fault(&w, W_BASE + W_PAGE, 1), NB_WHY_NO_POLICY);
	w_end(&w);
}

/* Part of a VMA, of blocks, and of what is unmapped or does not move. */
static void a_lazy_move_is_of_the_range_alone(void **state)
{
	struct world w = four_nodes("balancenuma-v8");
	const struct nb_policy noop = policy(NB_POLICY_NOOP, 0, false);

	(void)state;
	tm_map(w.m, w.mm, W_MM, W_BASE + LENGTH, W_HUGE, NB_VMA_UNMIGRATABLE);
	tm_populate(w.m, W_MM, W_BASE + LENGTH, W_BASE + LENGTH + W_HUGE, 0, false);
	assert_int_equal(nb_vma_policy(w.m->e, w.mm, W_BASE + 100 * W_PAGE, W_BASE + 900 * W_PAGE,
				 &noop, true, 0),
		0);
	assert_int_equal(tm_counters(w.m)->numa_pte_updates, 800);
	for (uint64_t i = 0; i < 1024; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 1),
			i >= 100 && i < 900 ? NB_WHY_MOVE : NB_WHY_FILTERED);
	assert_int_equal(nb_vma_policy(w.m->e, w.mm, W_BASE + LENGTH, W_BASE + LENGTH + W_HUGE,
				 &noop, true, 0),
		0);
	assert_int_equal(tm_counters(w.m)->numa_pte_updates, 800);
	w_end(&w);
}

static void huge_pages_move_lazily(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);

	(void)state;
	w_fill(&w, W_BASE, LENGTH, true);
	assert_int_equal(bind_vma(&w, NB_POLICY_NOOP, 0, true), 0);
	for (uint64_t i = 0; i < 4; i++)
		tm_touch(w.m, w.t, w.mm, W_MM, W_BASE + i * W_HUGE, (int)i);
	tm_finish_moves(w.m, NB_MOVE_OK);
	for (int n = 0; n < 4; n++)
		assert_int_equal(w.m->node_pages[n], 512);
	w_end(&w);
}

/* mbind with LAZY also makes its policy one that hint faults keep up, from then on. */
static void a_lazy_policy_stays_migrate_on_fault(void **state)
{
	struct world w = four_nodes("balancenuma-v8");

	(void)state;
	bind_vma(&w, NB_POLICY_BIND, 0x4, true);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, 0).node, 2);
	tm_finish_moves(w.m, NB_MOVE_BUSY);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, 0).node, 2);
	w_end(&w);
}

/* Where firmware says 10 for all pairs nothing is nearer, but what the user asked for is done. */
static void policies_go_before_distances(void **state)
{
	struct world w = w_new("moron", 4);

	(void)state;
	for (int i = 0; i < 16; i++)
		w.m->distance[i] = 10;
	w_start(&w);
	w_fill(&w, W_BASE, LENGTH, false);
	bind_task(&w, NB_POLICY_PREFERRED, 0x4, true);
	assert_int_equal(w_fault_by(&w, w.t, W_BASE, 1, 0).node, 2);
	w_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_is_the_touchers_node),
		cmocka_unit_test(first_touches_follow_the_policy),
		cmocka_unit_test(a_vma_goes_before_the_task_before_the_system),
		cmocka_unit_test(interleaving_counts_from_where_the_vma_began),
		cmocka_unit_test(nodes_without_memory_stand_back),
		cmocka_unit_test(policies_that_make_no_sense_are_refused),
		cmocka_unit_test(without_memory_nothing_changes),
		cmocka_unit_test(plain_policies_move_nothing),
		cmocka_unit_test(migrate_on_fault_satisfies_the_policy),
		cmocka_unit_test(local_without_its_mechanism_is_default),
		cmocka_unit_test(a_lazy_bind_moves_pages_at_their_next_touch),
		cmocka_unit_test(a_lazy_noop_is_next_touch),
		cmocka_unit_test(a_lazy_noop_needs_no_balancing),
		cmocka_unit_test(a_lazy_move_is_of_the_range_alone),
		cmocka_unit_test(huge_pages_move_lazily),
		cmocka_unit_test(a_lazy_policy_stays_migrate_on_fault),
		cmocka_unit_test(policies_go_before_distances),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
