/* SPDX-License-Identifier: MIT */
/* Page state: how much memory it takes, when it grows and shrinks, and what happens when there is
 * none. */
#include "test_world.h"
#include "engine_private.h"

static uint64_t bytes_held(const struct world *w)
{
	uint64_t bytes, pages;

	nb_engine_page_state(w->m->e, &bytes, &pages);
	return bytes;
}

static uint64_t pages_held(const struct world *w)
{
	uint64_t bytes, pages;

	nb_engine_page_state(w->m->e, &bytes, &pages);
	return pages;
}

static struct nb_vma *map_only(struct world *w, uint64_t start, uint64_t bytes)
{
	struct nb_vma *vma = nb_vma_map(w->m->e, w->mm, start, start + bytes, NB_VMA_WRITE, 0);

	assert_non_null(vma);
	return vma;
}

/* A fault without page tables behind it. */
static int fault_at(struct world *w, struct nb_vma *vma, uint64_t addr, int node, uint32_t flags)
{
	const struct nb_fault f = {.task = w->t,
		.vma = vma,
		.addr = addr,
		.now_ns = w->m->now_ns,
		.cpu_node = (int16_t)node,
		.flags = flags};
	struct nb_verdict v;

	w->m->in_fault = true;
	v = nb_hint_fault(w->m->e, &f);
	w->m->in_fault = false;
	w->m->nr_moves = 0;
	return v.why;
}

static void a_tebibyte_alike_takes_8_mib_at_most(void **state)
{
	const uint64_t tib = UINT64_C(1) << 40;
	struct world w = w_begin("balancenuma-v8", 4);
	struct nb_vma *vma = map_only(&w, tib, tib);

	(void)state;
	assert_int_equal(pages_held(&w), tib / W_PAGE);
	assert_true(bytes_held(&w) <= 8 * MIB);
	for (uint64_t a = tib; a < 2 * tib; a += W_HUGE)
		fault_at(&w, vma, a, 3, NB_FAULT_HUGE);
	assert_true(bytes_held(&w) <= 8 * MIB);
	w_end(&w);
}

/* Every page unlike its neighbours: 8 bytes a page and the blocks. */
static void pages_that_differ_take_8_bytes_each_at_most(void **state)
{
	const uint64_t bytes = 64 * MIB;
	struct world w = w_begin("balancenuma-v8", 4);
	struct nb_vma *vma;

	(void)state;
	vma = map_only(&w, W_BASE, bytes);
	for (uint64_t i = 0; i < bytes / W_PAGE; i++) {
		if (i % 512 == 0)
			w_scan(&w, 0); /* outside faults, room is made */
		fault_at(&w, vma, W_BASE + i * W_PAGE, (int)(i % 4), 0);
	}
	assert_int_equal(tm_counters(w.m)->numa_page_state_missed, 0);
	assert_true(bytes_held(&w) <= 8 * (bytes / W_PAGE) + 16 * (bytes / W_HUGE));
	assert_true(w.m->e->pool.nr_used == bytes / W_HUGE);
	w_end(&w);
}

/* A sweep makes a block's pages differ and then alike again: the next arming gives the expansion
 * back. */
static void blocks_become_alike_again(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);

	(void)state;
	w_fill(&w, W_BASE, 16 * W_HUGE, false);
	w_scan(&w, 0);
	for (uint64_t i = 0; i < 16 * 512; i++)
		w_fault(&w, W_BASE + i * W_PAGE, 2);
	assert_int_equal(w.m->e->pool.nr_used, 16);
	w_scan(&w, 0);
	assert_int_equal(w.m->e->pool.nr_used, 0);
	for (uint64_t i = 0; i < 16 * 512; i++)
		assert_int_equal(w_fault(&w, W_BASE + i * W_PAGE, 2), NB_WHY_MOVE);
	w_end(&w);
}

/* ... also where the VMA has a part of the block only. */
static void parts_of_blocks_become_alike_again(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);

	(void)state;
	w_fill(&w, W_BASE + 300 * W_PAGE, 600 * W_PAGE, false);
	w_scan(&w, 0);
	for (uint64_t i = 300; i < 900; i++)
		w_fault(&w, W_BASE + i * W_PAGE, 2);
	assert_int_equal(w.m->e->pool.nr_used, 2);
	w_scan(&w, 0);
	assert_int_equal(w.m->e->pool.nr_used, 0);
	assert_int_equal(w_fault(&w, W_BASE + 899 * W_PAGE, 2), NB_WHY_MOVE);
	w_end(&w);
}

/* One window of small pages is armed: all of its blocks may differ before the engine is called
 * again. */
static void a_window_can_differ_without_a_miss(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);

	(void)state;
	w_fill(&w, W_BASE, 256 * MIB, false);
	w_scan(&w, 0);
	for (uint64_t a = W_BASE; a < W_BASE + 256 * MIB; a += W_HUGE)
		w_fault(&w, a, 1);
	assert_int_equal(tm_counters(w.m)->numa_page_state_missed, 0);
	for (uint64_t a = W_BASE; a < W_BASE + 256 * MIB; a += W_HUGE)
		assert_int_equal(w_fault(&w, a, 1), NB_WHY_MOVE);
	w_end(&w);
}

/* ... nor do two windows that were armed one after the other, before any fault. */
static void two_windows_can_differ_without_a_miss(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);

	(void)state;
	w_fill(&w, W_BASE, 512 * MIB, false);
	w_scan(&w, 0);
	w_scan(&w, 0);
	for (uint64_t a = W_BASE; a < W_BASE + 512 * MIB; a += W_HUGE)
		w_fault(&w, a, 1);
	assert_int_equal(tm_counters(w.m)->numa_page_state_missed, 0);
	w_end(&w);
}

/* With no memory for it a fault is decided without history, counted, and nothing moves by mistake.
 */
static void without_room_faults_have_no_history(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);
	uint64_t missed = 0;

	(void)state;
	w.m->no_memory = false;
	w_fill(&w, W_BASE, 256 * MIB, false);
	w.m->no_memory = true;
	w_scan(&w, 0);
	for (int round = 0; round < 3; round++)
		for (uint64_t a = W_BASE; a < W_BASE + 256 * MIB; a += W_HUGE) {
			const int why = w_fault(&w, a, 1);

			missed = tm_counters(w.m)->numa_page_state_missed;
			assert_true(why == NB_WHY_FILTERED || (why == NB_WHY_MOVE && round > 0));
		}
	assert_int_equal(missed, 3 * (128 - 32)); /* 32 were ready when it was mapped */
	w.m->no_memory = false;
	w_scan(&w, 0);
	for (int round = 0; round < 2; round++)
		for (uint64_t a = W_BASE; a < W_BASE + 256 * MIB; a += W_HUGE)
			w_fault(&w, a, 1);
	assert_int_equal(tm_counters(w.m)->numa_page_state_missed, missed);
	w_end(&w);
}

/* A toucher that is remembered for the whole block already needs no room. */
static void what_is_known_takes_no_room(void **state)
{
	struct world w = w_begin("balancenuma-v8", 4);

	(void)state;
	w_fill(&w, W_BASE, W_HUGE, true);
	w_fault(&w, W_BASE, 2);
	tm_unmap(w.m, w.mm, W_MM, W_BASE + 511 * W_PAGE, W_BASE + W_HUGE); /* comes apart */
	for (uint64_t i = 0; i < 511; i++)
		w_fault(&w, W_BASE + i * W_PAGE, 2);
	assert_int_equal(w.m->e->pool.nr_used, 0);
	w_end(&w);
}

/* Faults that come without being armed first find more room each time it ran out. */
static void room_that_ran_out_is_doubled(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);
	uint64_t missed = 0, rounds = 0;
	struct nb_vma *vma;

	(void)state;
	for (uint64_t last = 1; last > 0; rounds++) {
		const uint64_t start = GIB * (rounds + 1);

		vma = map_only(&w, start, 512 * MIB);
		for (uint64_t a = start; a < start + 512 * MIB; a += W_HUGE)
			fault_at(&w, vma, a, 1, 0);
		last = tm_counters(w.m)->numa_page_state_missed - missed;
		missed += last;
		assert_true(rounds < 5);
	}
	assert_int_equal(rounds, 4); /* 32, 64, 128 ready, then 256 */
	w_end(&w);
}

/* What ran out once is kept ready in greater number; what is not needed any more is given back. */
static void the_pool_follows_the_need(void **state)
{
	struct world w = w_begin("thpmigrate-v5", 4);
	uint64_t most;

	(void)state;
	w_set(&w, "scan_size_mb=1024");
	w_fill(&w, W_BASE, 1024 * MIB, false);
	w_scan(&w, 0);
	for (uint64_t a = W_BASE; a < W_BASE + 1024 * MIB; a += W_HUGE)
		w_fault(&w, a, 1);
	assert_int_equal(w.m->e->pool.nr_used, 512);
	most = bytes_held(&w);
	tm_unmap(w.m, w.mm, W_MM, W_BASE, W_BASE + 1024 * MIB);
	w_fill(&w, W_BASE + 2 * GIB, W_HUGE, false);
	for (int i = 0; i < 100; i++) {
		w_scan(&w, 0);
		tm_page(w.m, W_MM, W_BASE + 2 * GIB)->armed = false;
	}
	assert_true(bytes_held(&w) < most / 2);
	w_end(&w);
}

static void the_pool_hands_out_each_expansion_once(void **state)
{
	struct world w = w_begin("none", 2);
	struct nb_pool *p = &w.m->e->pool;
	static bool taken[4096];
	uint32_t numbers[1000];

	(void)state;
	assert_int_equal(nb_pool_prepare(w.m->e, p, 1000), 0);
	for (int i = 0; i < 1000; i++) {
		numbers[i] = nb_pool_take(p);
		assert_true(numbers[i] > 0 && numbers[i] < 4096 && !taken[numbers[i]]);
		taken[numbers[i]] = true;
	}
	for (int i = 0; i < 1000; i += 2)
		nb_pool_give(p, numbers[i]);
	assert_null(nb_pool_check(p));
	assert_int_equal(nb_pool_refill(w.m->e, p), 0);
	for (int i = 0; i < 1000; i += 2)
		assert_true((numbers[i] = nb_pool_take(p)) > 0);
	while (nb_pool_take(p) != 0)
		;
	assert_true(p->ran_out);
	assert_null(nb_pool_check(p));
	nb_pool_free(w.m->e, p);
	w_end(&w);
}

/* The node numbers of the largest topology fit a history. */
static void histories_hold_every_node(void **state)
{
	(void)state;
	for (int n = 0; n < NB_MAX_NODES; n++) {
		assert_int_equal(nb_history_node(n), n + 1);
		assert_int_not_equal(nb_history_node(n), NB_HISTORY_LAZY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tebibyte_alike_takes_8_mib_at_most),
		cmocka_unit_test(pages_that_differ_take_8_bytes_each_at_most),
		cmocka_unit_test(blocks_become_alike_again),
		cmocka_unit_test(parts_of_blocks_become_alike_again),
		cmocka_unit_test(a_window_can_differ_without_a_miss),
		cmocka_unit_test(two_windows_can_differ_without_a_miss),
		cmocka_unit_test(without_room_faults_have_no_history),
		cmocka_unit_test(what_is_known_takes_no_room),
		cmocka_unit_test(room_that_ran_out_is_doubled),
		cmocka_unit_test(the_pool_follows_the_need),
		cmocka_unit_test(the_pool_hands_out_each_expansion_once),
		cmocka_unit_test(histories_hold_every_node),
	};

	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
