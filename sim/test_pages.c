/* SPDX-License-Identifier: MIT */
/* Page tables: what blocks and entries say, and that every page is accounted for once. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim_fixture.h"

static const char machine[] = "[machine]\ntopology = 4 nodes x 1 cpu x 64M\n" SIM_QUIET;

/* An area of so many bytes, so far from a 2 MiB boundary; nothing runs, the tests use its page
 * tables alone. */
static struct sim_area_state *open_area(struct sim_try *t, const char *area)
{
	char job[256];

	snprintf(job, sizeof(job), "[p]\narea = a %s\nphase = sweep area=a\n", area);
	try_make(t, machine, job, "none");
	try_open(t);
	return &t->w.areas[0];
}

static const char *const areas[] = {"size=4K", "size=2M", "size=16M", "size=5M offset=64K",
	"size=2M offset=4K", "size=4K offset=2044K", "size=8K offset=2044K", "size=6M offset=2044K",
	"size=4M-4K offset=1M"};

enum { NR_AREAS = sizeof(areas) / sizeof(areas[0]) };

/* ---- geometry ---- */

static void check_tiles(const struct sim_area_state *a)
{
	uint64_t next = 0;

	for (uint32_t b = 0; b < a->nr_blocks; b++) {
		uint64_t start, end;

		sim_block_range(a, b, &start, &end);
		assert_int_equal(start, next);
		assert_true(end > start && end - start <= NB_HUGE_SIZE);
		assert_int_equal(sim_block_of(a, start), b);
		assert_int_equal(sim_block_of(a, end - 1), b);
		assert_int_equal(sim_block_pages(a, b), (end - start) / 4096);
		assert_int_equal(sim_block_whole(a, b), end - start == 2 << 20);
		assert_int_equal((a->va + start) >> 21, (a->va + end - 1) >> 21);
		next = end;
	}
	assert_int_equal(next, a->bytes);
}

static void test_blocks_tile_an_area_at_any_offset(void **state)
{
	(void)state;
	for (int i = 0; i < NR_AREAS; i++) {
		struct sim_try t;
		const struct sim_area_state *a = open_area(&t, areas[i]);

		check_tiles(a);
		for (uint64_t o = 0; o < a->bytes; o += 4096)
			assert_int_equal(sim_pte_index(a, o), (a->va + o) / 4096 % 512);
		try_free(&t);
	}
}

static void test_areas_do_not_overlap_and_are_found_by_address(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t, machine,
		"[p]\ninstances = 3\narea = a size=5M offset=64K\narea = b size=4K\n"
		"area = c size=2M offset=2044K\nphase = sweep area=a\n",
		"none");
	try_open(&t);
	assert_int_equal(t.w.nr_areas, 9);
	for (uint32_t i = 0; i < t.w.nr_areas; i++) {
		struct sim_area_state *a = &t.w.areas[i];

		assert_int_equal(a->va % NB_HUGE_SIZE, a->load->offset);
		assert_ptr_equal(sim_area_at(&t.w, a->va), a);
		assert_ptr_equal(sim_area_at(&t.w, a->va + a->bytes - 1), a);
		assert_null(sim_area_at(&t.w, a->va + a->bytes));
		assert_null(sim_area_at(&t.w, a->va - 1));
	}
	try_free(&t);
}

/* ---- alike and differing ---- */

static void test_a_block_that_is_alike_needs_no_entries(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=5M offset=64K");

	(void)state;
	for (uint32_t b = 0; b < a->nr_blocks; b++)
		sim_block_set(&t.w, a, b, (int)b, b & 1 ? SIM_B_ARMED : 0);
	for (uint64_t o = 0; o < a->bytes; o += 4096) {
		const uint32_t b = sim_block_of(a, o);

		assert_int_equal(
			sim_pte_get(&t.w, a, o), SIM_PTE_PRESENT | b | (b & 1 ? SIM_PTE_ARMED : 0));
	}
	/* 64 KiB = 16 pages are missing from the first block; 5 MiB are 1280 pages. */
	assert_int_equal(a->node_pages[0], 496);
	assert_int_equal(a->node_pages[1], 512);
	assert_int_equal(a->node_pages[2], 1280 - 496 - 512);
	assert_int_equal(t.w.nr_chunks, 0);
	try_free(&t);
}

static void test_one_page_that_differs_gives_the_block_entries_until_it_is_alike(void **state)
{
	(void)state;
	for (int i = 0; i < NR_AREAS; i++) {
		struct sim_try t;
		struct sim_area_state *a = open_area(&t, areas[i]);
		uint64_t start, end;
		uint32_t b = a->nr_blocks - 1;

		sim_block_set(&t.w, a, b, 1, SIM_B_ARMED);
		sim_block_range(a, b, &start, &end);
		for (uint64_t o = start; o < end; o += 4096) {
			sim_pte_set(&t.w, a, o, SIM_PTE_PRESENT | 2);
			sim_block_contract(&t.w, a, b);
			/* The last one makes them alike again. */
			assert_int_equal(!(a->blocks[b].flags & SIM_B_PTES), o + 4096 == end);
			for (uint64_t k = start; k < end; k += 4096)
				assert_int_equal(sim_pte_get(&t.w, a, k),
					k <= o ? SIM_PTE_PRESENT | 2
					       : SIM_PTE_PRESENT | SIM_PTE_ARMED | 1);
		}
		assert_int_equal(a->blocks[b].flags, SIM_B_PRESENT);
		assert_int_equal(a->node_pages[2], (end - start) / 4096);
		assert_int_equal(a->node_pages[1], 0);
		try_free(&t);
	}
}

static void test_entries_of_all_absent_pages_go(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=2M");

	(void)state;
	sim_pte_set(&t.w, a, 4096, SIM_PTE_PRESENT | 3);
	assert_true(a->blocks[0].flags & SIM_B_PTES);
	sim_pte_set(&t.w, a, 4096, 0);
	sim_block_contract(&t.w, a, 0);
	assert_int_equal(a->blocks[0].flags, 0);
	assert_int_equal(a->node_pages[3], 0);
	try_free(&t);
}

static void test_entries_are_used_again(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=64M-2M");

	(void)state;
	for (int round = 0; round < 50; round++)
		for (uint32_t b = 0; b < a->nr_blocks; b++) {
			sim_block_set(&t.w, a, b, 0, 0);
			sim_pte_set(&t.w, a, (uint64_t)b << 21, SIM_PTE_PRESENT | 1);
			if (round & 1)
				sim_block_set(&t.w, a, b, -1, 0);
			else
				sim_pte_set(&t.w, a, (uint64_t)b << 21, SIM_PTE_PRESENT);
			sim_block_contract(&t.w, a, b);
		}
	assert_int_equal(t.w.nr_chunks, 1);
	/* Several at a time, given back in another order. */
	for (int round = 0; round < 3; round++) {
		for (uint32_t b = 0; b < a->nr_blocks; b++)
			sim_pte_set(&t.w, a, (uint64_t)b << 21, SIM_PTE_PRESENT | 1);
		for (uint32_t b = 0; b < a->nr_blocks; b++)
			sim_block_set(&t.w, a, (b * 7) % a->nr_blocks, -1, 0);
		assert_int_equal(t.w.nr_chunks, a->nr_blocks);
		assert_int_equal(try_pages(&t), 0);
	}
	try_free(&t);
}

static void test_a_block_on_its_way_stays_so_whatever_its_entries(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=2M");

	(void)state;
	sim_block_set(&t.w, a, 0, 0, SIM_B_HUGE);
	a->blocks[0].flags |= SIM_B_BUSY;
	sim_block_set(&t.w, a, 0, 1, SIM_B_HUGE);
	assert_true(a->blocks[0].flags & SIM_B_BUSY);
	sim_pte_set(&t.w, a, 0, SIM_PTE_PRESENT);
	assert_true(a->blocks[0].flags & SIM_B_BUSY);
	sim_pte_set(&t.w, a, 0, SIM_PTE_PRESENT | 1);
	sim_block_contract(&t.w, a, 0);
	assert_int_equal(a->blocks[0].flags, SIM_B_PRESENT | SIM_B_BUSY);
	try_free(&t);
}

/* ---- shares by node ---- */

static void test_shares_by_node_count_pages(void **state)
{
	struct sim_try t;
	struct sim_mix mix;
	struct sim_area_state *a = open_area(&t, "size=2M");

	(void)state;
	sim_block_mix(&t.w, a, 0, 2 << 20, 3, &mix);
	assert_int_equal(mix.nr, 1);
	assert_int_equal(mix.node[0], 3); /* absent pages will be where the toucher is */
	for (uint64_t k = 0; k < 512; k++)
		if (k % 4 != 3)
			sim_pte_set(&t.w, a, k << 12, (uint16_t)(SIM_PTE_PRESENT | k % 4));
	sim_block_mix(&t.w, a, 0, 2 << 20, 0, &mix);
	assert_int_equal(mix.nr, 3);
	for (int k = 0; k < 3; k++)
		assert_true(mix.share[k] == (mix.node[k] ? 0.25f : 0.5f));
	/* From the middle of page 4 to the end of page 6. */
	sim_block_mix(&t.w, a, 4 * 4096 + 100, 7 * 4096, 0, &mix);
	assert_int_equal(mix.nr, 3);
	for (int k = 0; k < 3; k++)
		assert_true(fabs((double)mix.share[k] * 3 - 1) < 1e-6);
	try_free(&t);
}

/* An answer that was kept is not given again once anything in the area changed. */
static void compare_shares(
	const struct sim_try *t, const struct sim_area_state *a, uint32_t b, int absent)
{
	double share[4] = {0};
	struct sim_mix mix;
	uint64_t start, end;

	sim_block_range(a, b, &start, &end);
	for (uint64_t o = start; o < end; o += 4096) {
		const uint16_t pte = sim_pte_get(&t->w, a, o);

		share[pte & SIM_PTE_PRESENT ? pte & SIM_PTE_NODE : absent] +=
			4096. / (double)(end - start);
	}
	sim_block_mix(&t->w, a, start, end, absent, &mix);
	for (int k = 0; k < mix.nr; k++)
		assert_true(fabs((double)mix.share[k] - share[mix.node[k]]) < 1e-5);
}

static void test_shares_follow_every_change(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=6M offset=64K");
	struct sim_rng rng;

	(void)state;
	sim_rng_seed(&rng, 7);
	for (int i = 0; i < 3000; i++) {
		const uint32_t b = (uint32_t)sim_rng_below(&rng, a->nr_blocks);

		sim_pte_set(&t.w, a, sim_rng_below(&rng, a->bytes >> 12) << 12,
			(uint16_t)(sim_rng_below(&rng, 5) ? SIM_PTE_PRESENT | sim_rng_below(&rng, 4)
							  : 0));
		/* Asked twice, and by threads of two nodes. */
		compare_shares(&t, a, b, i % 4);
		compare_shares(&t, a, b, i % 4);
		compare_shares(&t, a, b, (i + 1) % 4);
	}
	try_free(&t);
}

/* A sum of shares below one would make time cheaper on machines with many nodes. */
static void test_shares_sum_to_one_on_any_number_of_nodes(void **state)
{
	struct sim_try t;
	struct sim_mix mix;
	double sum = 0;

	(void)state;
	try_make(&t, "64 nodes x 1 cpu x 64M", "[p]\narea = a size=2M\nphase = sweep area=a\n",
		"none");
	try_open(&t);
	for (uint64_t k = 0; k < 512; k++)
		sim_pte_set(&t.w, &t.w.areas[0], k << 12, (uint16_t)(SIM_PTE_PRESENT | k % 64));
	sim_block_mix(&t.w, &t.w.areas[0], 0, 2 << 20, 0, &mix);
	for (int k = 0; k < mix.nr; k++)
		sum += (double)mix.share[k];
	assert_true(fabs(sum - 1) < 1e-5);
	try_free(&t);
}

/* ---- watermarks and allocation ---- */

struct marks {
	int low, fine, node;
};

static void note_watermark(void *ctx, const struct nb_event *e)
{
	struct marks *m = ctx;

	if (e->type != NB_EVENT_WATERMARK)
		return;
	m->node = e->node_to;
	m->low += e->arg == 1;
	m->fine += e->arg == 0;
}

static void test_the_engine_hears_of_watermarks(void **state)
{
	struct marks seen = {0};
	struct sim_try t;
	/* 64 MiB less 2 % reserved = 16056 pages; 1 % of them stay free: 160.56. */
	const uint64_t capacity = 16056, floor = 160;
	uint64_t put = 0;

	(void)state;
	try_make(
		&t, machine, "[p]\narea = a size=64M-2M thp=never\nphase = sweep area=a\n", "none");
	t.options.trace = note_watermark;
	t.options.trace_ctx = &seen;
	try_open(&t);
	assert_int_equal(t.w.node_capacity[2], capacity);
	/* Another's pages, so that this area comes to the mark. */
	sim_node_account(&t.w, 2, 1000);
	for (; put < capacity - 1000 - floor - 1; put++)
		sim_pte_set(&t.w, &t.w.areas[0], put << 12, SIM_PTE_PRESENT | 2);
	assert_int_equal(seen.low, 0);
	sim_pte_set(&t.w, &t.w.areas[0], put << 12, SIM_PTE_PRESENT | 2);
	assert_int_equal(seen.low, 1);
	assert_int_equal(seen.node, 2);
	assert_int_equal(seen.fine, 0);
	sim_pte_set(&t.w, &t.w.areas[0], put << 12, 0);
	assert_int_equal(seen.fine, 1);
	try_free(&t);
}

static void test_a_node_without_memory_is_never_low(void **state)
{
	struct marks seen = {0};
	struct sim_try t;

	(void)state;
	try_make(&t, "1 node x 1 cpu + 1 node x 64M",
		"[p]\narea = a size=4K\nphase = sweep area=a\n", "none");
	t.options.trace = note_watermark;
	t.options.trace_ctx = &seen;
	try_open(&t);
	assert_int_equal(seen.low, 0);
	assert_false(t.w.node_low[0]);
	try_free(&t);
}

static void test_memory_comes_from_the_nearest_node_that_has_some(void **state)
{
	struct sim_try t;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 1 node x 1 cpu x 64M + 1 node x 1 cpu x 64M at 40 + "
		"1 node x 64M at 20 + 1 node x 1 cpu at 15\n" SIM_QUIET,
		"[p]\narea = a size=2M\nphase = sweep area=a\n", "none");
	try_open(&t);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), 0);
	/* Nearly full: the nearest above its watermark; node 3 is near, and has no memory. */
	sim_node_account(&t.w, 0, 16056 - 100);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), 2);
	sim_node_account(&t.w, 2, 16056 - 100);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), 1);
	/* All nearly full: down to the last page, the near ones first. */
	sim_node_account(&t.w, 1, 16056 - 100);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), 0);
	assert_int_equal(sim_alloc_node(&t.w, 0, 100), 0);
	assert_int_equal(sim_alloc_node(&t.w, 0, 101), -1);
	sim_node_account(&t.w, 0, 100);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), 2);
	sim_node_account(&t.w, 2, 100);
	sim_node_account(&t.w, 1, 100);
	assert_int_equal(sim_alloc_node(&t.w, 0, 1), -1);
	try_free(&t);
}

static void test_what_cold_memory_holds_counts_from_the_start(void **state)
{
	struct marks seen = {0};
	struct sim_try t;

	(void)state;
	try_make(&t,
		"[machine]\ntopology = 4 nodes x 1 cpu x 64M\n[memory]\nwatermark_high_ratio = "
		"0.05\n",
		"[global]\nbackground_fill = 0.99\n[p]\narea = a size=4K\nphase = sweep area=a\n",
		"none");
	t.options.trace = note_watermark;
	t.options.trace_ctx = &seen;
	try_open(&t);
	for (int n = 0; n < 4; n++) {
		assert_int_equal(t.w.node_used[n], (uint64_t)(0.99 * 16056));
		assert_int_equal(t.w.node_low[n], true);
	}
	assert_int_equal(seen.low, 4);
	try_free(&t);
}

/* ---- any sequence of changes ---- */

/* What the page tables should say: an entry a page. */
struct mirror {
	uint16_t pte[4096];
	uint64_t node_pages[4];
};

static uint16_t any_pte(struct sim_rng *rng)
{
	const uint16_t node = (uint16_t)sim_rng_below(rng, 4);

	switch (sim_rng_below(rng, 4)) {
	case 0:
		return 0;
	case 1:
		return (uint16_t)(SIM_PTE_PRESENT | SIM_PTE_ARMED | node);
	default:
		return (uint16_t)(SIM_PTE_PRESENT | node);
	}
}

static void change_block(struct sim_try *t, struct mirror *m, struct sim_rng *rng, uint32_t b)
{
	struct sim_area_state *a = &t->w.areas[0];
	const uint16_t pte = any_pte(rng);
	uint64_t start, end;

	sim_block_range(a, b, &start, &end);
	if (!(pte & SIM_PTE_PRESENT))
		sim_block_set(&t->w, a, b, -1, 0);
	else
		sim_block_set(&t->w, a, b, pte & SIM_PTE_NODE,
			(pte & SIM_PTE_ARMED ? SIM_B_ARMED : 0) |
				(sim_block_whole(a, b) ? SIM_B_HUGE : 0));
	for (uint64_t o = start; o < end; o += 4096)
		m->pte[o >> 12] = pte;
}

static void change(struct sim_try *t, struct mirror *m, struct sim_rng *rng)
{
	struct sim_area_state *a = &t->w.areas[0];
	const uint64_t page = sim_rng_below(rng, a->bytes >> 12);
	const uint32_t b = sim_block_of(a, page << 12);

	switch (sim_rng_below(rng, 8)) {
	case 0:
		change_block(t, m, rng, b);
		break;
	case 1:
		assert_int_equal(sim_block_expand(&t->w, a, b), 0);
		break;
	case 2:
		sim_block_contract(&t->w, a, b);
		break;
	case 3:
		if (!sim_rng_below(rng, 50)) {
			sim_pages_drop(&t->w, a);
			memset(m->pte, 0, sizeof(m->pte));
		}
		break;
	default:
		m->pte[page] = any_pte(rng);
		assert_int_equal(sim_pte_set(&t->w, a, page << 12, m->pte[page]), 0);
	}
}

static void compare(struct sim_try *t, struct mirror *m)
{
	const struct sim_area_state *a = &t->w.areas[0];

	memset(m->node_pages, 0, sizeof(m->node_pages));
	for (uint64_t p = 0; p < a->bytes >> 12; p++) {
		assert_int_equal(sim_pte_get(&t->w, a, p << 12), m->pte[p]);
		if (m->pte[p] & SIM_PTE_PRESENT)
			m->node_pages[m->pte[p] & SIM_PTE_NODE]++;
	}
	for (int n = 0; n < 4; n++) {
		assert_int_equal(a->node_pages[n], m->node_pages[n]);
		assert_int_equal(t->w.node_used[n], m->node_pages[n]);
	}
	try_check(t);
}

static void test_any_sequence_of_changes_is_accounted_for(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3 * NR_AREAS; seed++) {
		struct mirror m = {0};
		struct sim_rng rng;
		struct sim_try t;
		const char *area = areas[seed % NR_AREAS];

		print_message("seed %d: %s\n", (int)seed, area);
		sim_rng_seed(&rng, seed);
		open_area(&t, area);
		for (int i = 0; i < 1500; i++) {
			const uint32_t gen = t.w.areas[0].gen;

			change(&t, &m, &rng);
			assert_true(t.w.areas[0].gen >= gen);
			if (i % 50 == 49)
				compare(&t, &m);
		}
		try_free(&t);
	}
}

/* ---- the checker ---- */

static void test_the_checker_sees_what_is_wrong(void **state)
{
	struct sim_try t;
	struct sim_area_state *a = open_area(&t, "size=6M");

	(void)state;
	sim_block_set(&t.w, a, 0, 1, 0);
	sim_pte_set(&t.w, a, 2 << 20, SIM_PTE_PRESENT | 1);
	assert_null(sim_pages_check(&t.w));
	a->blocks[0].present--;
	assert_non_null(sim_pages_check(&t.w));
	a->blocks[0].present++;
	a->blocks[0].armed = 1; /* entries alike, none armed */
	assert_non_null(sim_pages_check(&t.w));
	a->blocks[0].armed = 0;
	t.w.chunks[a->blocks[1].ptes][1] = SIM_PTE_ARMED; /* and absent */
	assert_non_null(sim_pages_check(&t.w));
	t.w.chunks[a->blocks[1].ptes][1] = SIM_PTE_PRESENT; /* not counted */
	assert_non_null(sim_pages_check(&t.w));
	t.w.chunks[a->blocks[1].ptes][1] = 0;
	a->node_pages[1]--;
	assert_non_null(sim_pages_check(&t.w));
	a->node_pages[1]++;
	t.w.node_used[1]--;
	assert_non_null(sim_pages_check(&t.w));
	t.w.node_used[1]++;
	t.w.node_used[1]++; /* held by nobody */
	assert_non_null(sim_pages_check(&t.w));
	t.w.node_used[1]--;
	assert_null(sim_pages_check(&t.w));
	try_free(&t);
}

/* ---- memory ---- */

static size_t heap(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* docs/simulator.md: 12 bytes for 2 MiB that are alike, 2 bytes a page (and growing room of half as
 * much) where they differ. */
static void test_page_tables_stay_small(void **state)
{
	enum { BLOCKS = 1 << 15 }; /* 64 GiB */
	struct sim_area load = {.bytes = (uint64_t)BLOCKS << 21};
	struct sim_area_state a;
	struct sim_try t;
	uint64_t va = 1 << 21;
	size_t before, bytes;

	(void)state;
	if (!heap())
		skip(); /* a sanitizer's malloc does not tell */
	try_make(&t, "1 node x 1 cpu x 128G", "[p]\narea = a size=4K\nphase = sweep area=a\n",
		"none");
	try_open(&t);
	before = heap();
	assert_int_equal(sim_area_init(&t.w, &a, &load, &va), 0);
	bytes = heap() - before;
	print_message("%.2f bytes for a block whose pages are alike\n", (double)bytes / BLOCKS);
	assert_true(bytes <= 12.1 * BLOCKS);
	for (uint32_t b = 0; b < BLOCKS; b++)
		sim_block_set(&t.w, &a, b, 0, 0);
	assert_int_equal(heap() - before, bytes);
	before = heap();
	for (uint32_t b = 0; b < 4096; b++)
		sim_pte_set(&t.w, &a, (uint64_t)b << 21, SIM_PTE_PRESENT | SIM_PTE_ARMED);
	bytes = heap() - before;
	print_message("%.2f bytes for a page of a block whose pages differ\n",
		(double)bytes / (4096 * 512.));
	assert_true(bytes <= 4096 * 512 * 3.01);
	sim_pages_drop(&t.w, &a);
	sim_area_free(&t.w, &a);
	try_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_tile_an_area_at_any_offset),
		cmocka_unit_test(test_areas_do_not_overlap_and_are_found_by_address),
		cmocka_unit_test(test_a_block_that_is_alike_needs_no_entries),
		cmocka_unit_test(
			test_one_page_that_differs_gives_the_block_entries_until_it_is_alike),
		cmocka_unit_test(test_entries_of_all_absent_pages_go),
		cmocka_unit_test(test_entries_are_used_again),
		cmocka_unit_test(test_a_block_on_its_way_stays_so_whatever_its_entries),
		cmocka_unit_test(test_shares_by_node_count_pages),
		cmocka_unit_test(test_shares_follow_every_change),
		cmocka_unit_test(test_shares_sum_to_one_on_any_number_of_nodes),
		cmocka_unit_test(test_the_engine_hears_of_watermarks),
		cmocka_unit_test(test_a_node_without_memory_is_never_low),
		cmocka_unit_test(test_memory_comes_from_the_nearest_node_that_has_some),
		cmocka_unit_test(test_what_cold_memory_holds_counts_from_the_start),
		cmocka_unit_test(test_any_sequence_of_changes_is_accounted_for),
		cmocka_unit_test(test_the_checker_sees_what_is_wrong),
		cmocka_unit_test(test_page_tables_stay_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
