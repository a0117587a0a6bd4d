/* SPDX-License-Identifier: MIT */
/* What touches say of blocks: owners, neighbours, what is inferred and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "agent.h"

enum {
	BLOCKS = 64,
	SLICE = 16, /* blocks of one owner */
	LAST = 4,   /* of five nodes */
};

#define START (UINT64_C(512) << NB_HUGE_SHIFT)

struct place {
	struct nb_guest guest;
	struct nb_agent agent;
	struct nb_block block[BLOCKS];
	struct nb_node node[LAST + 1];
};

/* One region of 64 blocks; four threads run. */
static struct place *new_place(void)
{
	struct place *p = calloc(1, sizeof(*p));
	struct nb_region r = {.start = START, .end = START + ((uint64_t)BLOCKS << NB_HUGE_SHIFT)};
	struct nb_backing *k;

	assert_non_null(p);
	nb_guest_init(&p->guest);
	p->agent.guest = &p->guest;
	p->agent.pagemap_fd = -1;
	p->agent.nr_running = 4;
	p->agent.topo = (struct nb_topology){.nr_nodes = LAST + 1, .nodes = p->node};
	for (int i = 0; i <= LAST; i++)
		p->node[i].mem_bytes = 1;
	assert_int_equal(nb_region_add(&p->guest.regions, &r), 0);
	k = &p->guest.regions.backing[0];
	k->fd = 0;
	k->nr_blocks = BLOCKS;
	k->blocks = p->block;
	for (int i = 0; i < BLOCKS; i++)
		p->block[i] = (struct nb_block){.node = NB_NO_NODE, .wanted = NB_NO_NODE};
	return p;
}

static uint64_t at(int block)
{
	return START + ((uint64_t)block << NB_HUGE_SHIFT);
}

/* By one whose home is that node, and the page is on the last one. */
static uint32_t touch(struct place *p, int block, int home)
{
	return nb_judge_touch(&p->agent, at(block), LAST, home);
}

static void an_owner_is_who_is_met_twice(void **state)
{
	struct place *p = new_place();

	(void)state;
	assert_int_equal(touch(p, 20, 1), 0);
	assert_int_equal(touch(p, 20, 1), NB_FAULT_SURE);
	/* One of another node says little then, and the second one more. */
	assert_int_equal(touch(p, 20, 0), NB_FAULT_DOUBT);
	assert_int_equal(touch(p, 20, 0), NB_FAULT_SURE);
	assert_int_equal(p->block[20].wanted, 0);
	free(p);
}

static void the_more_it_was_met_the_more_it_takes(void **state)
{
	struct place *p = new_place();
	int doubts = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		nb_judge_touch(&p->agent, at(20), 1, 1);
	while (touch(p, 20, 0) == NB_FAULT_DOUBT)
		doubts++;
	assert_in_range(doubts, 3, 6);
	free(p);
}

static void neighbours_convince(void **state)
{
	struct place *p = new_place();

	(void)state;
	for (int i = 0; i < 10; i++)
		nb_judge_touch(&p->agent, at(20), 1, 1);
	touch(p, 18, 0);
	touch(p, 19, 0);
	touch(p, 22, 0);
	assert_int_equal(touch(p, 20, 0), NB_FAULT_SURE);
	/* And they dissuade: others are wanted elsewhere. */
	assert_int_equal(touch(p, 21, 1), NB_FAULT_DOUBT);
	free(p);
}

static void who_runs_alone_says_nothing_of_others(void **state)
{
	struct place *p = new_place();

	(void)state;
	p->agent.nr_running = 1;
	for (int i = 0; i < 10; i++)
		assert_int_equal(touch(p, 20, 1), 0);
	assert_int_equal(p->block[20].wanted, NB_NO_NODE);
	assert_int_equal(p->block[20].trust, 0);
	free(p);
}

static int slice_owner(int block)
{
	return block / SLICE;
}

static int anybody(int block)
{
	return (int)((unsigned int)block * 2654435761u >> 30);
}

/* Every fourth block is touched once, out of order; returns how many others were inferred. */
static uint32_t touch_each_fourth(struct place *p, int (*owner)(int block))
{
	uint64_t found[NB_MAX_INFERRED];
	int home[NB_MAX_INFERRED];
	uint32_t n = 0, m;

	for (int i = 0; i < BLOCKS / 4; i++) {
		const int block = i * 7 % (BLOCKS / 4) * 4 + 1;

		touch(p, block, owner(block));
		n += nb_judge_others(&p->agent, at(block), owner(block), false, found);
	}
	nb_judge_again(&p->agent, 0, UINT64_MAX);
	while (p->agent.infer_at < p->agent.infer_end) {
		m = nb_judge_sweep(&p->agent, found, home);
		for (uint32_t i = 0; i < m; i++)
			assert_int_equal(
				home[i], p->block[(found[i] - START) >> NB_HUGE_SHIFT].wanted);
		n += m;
	}
	return n;
}

static void what_lies_between_is_inferred(void **state)
{
	struct place *p = new_place();
	int unknown = 0;

	(void)state;
	assert_in_range(touch_each_fourth(p, slice_owner), BLOCKS / 2, BLOCKS);
	for (int i = 0; i < BLOCKS; i++) {
		unknown += p->block[i].wanted == NB_NO_NODE;
		assert_true(
			p->block[i].wanted == NB_NO_NODE || p->block[i].wanted == slice_owner(i));
	}
	/* The gaps in which two owners meet, three blocks each. */
	assert_int_equal(unknown, 3 * 3);
	free(p);
}

static void what_somebody_placed_is_asked(void **state)
{
	struct place *p = new_place();

	(void)state;
	touch_each_fourth(p, slice_owner);
	/* Inferred to be node 0's: found there, or where those around it were, all is well. */
	assert_int_equal(p->block[2].wanted, 0);
	assert_true(nb_judge_guess(&p->agent, at(2), 0, 0));
	assert_true(nb_judge_guess(&p->agent, at(2), 0, LAST));
	assert_false(nb_judge_guess(&p->agent, at(2), 0, 2));
	assert_int_equal(p->block[2].wanted, NB_NO_NODE);
	/* And not inferred again, whatever those around it say. */
	assert_false(nb_judge_infers(&p->agent, at(2)));
	touch_each_fourth(p, slice_owner);
	assert_int_equal(p->block[2].wanted, NB_NO_NODE);
	free(p);
}

static void nothing_is_inferred_where_that_is_wrong(void **state)
{
	struct place *p = new_place();

	(void)state;
	assert_true(touch_each_fourth(p, anybody) <= BLOCKS / 16);
	assert_false(nb_judge_may_infer(&p->agent, at(30)));
	free(p);
}

/* Its blocks alone, those that were inferred too. */
static void who_leaves_a_home_leaves_no_owner(void **state)
{
	struct place *p = new_place();

	(void)state;
	touch_each_fourth(p, slice_owner);
	assert_true(nb_judge_left(&p->agent, 1));
	for (int i = 0; i < BLOCKS; i++) {
		assert_int_not_equal(p->block[i].wanted, 1);
		if (slice_owner(i) == 1)
			assert_int_equal(p->block[i].trust, 0);
		if (i % 4 == 1 && slice_owner(i) != 1)
			assert_int_equal(p->block[i].wanted, slice_owner(i));
	}
	free(p);
}

/* What comes there next is somebody's else; of a block that was dropped in part it is not. */
static void what_was_dropped_is_unknown(void **state)
{
	struct place *p = new_place();

	(void)state;
	for (int i = 20; i <= 23; i++) {
		touch(p, i, 1);
		touch(p, i, 1);
		p->block[i].armed = 1;
		p->block[i].waits = true;
	}
	nb_blocks_discarded(&p->guest.regions, at(20) + NB_PAGE_SIZE, at(22) + NB_HUGE_SIZE);
	assert_int_equal(p->block[20].wanted, 1);
	assert_int_equal(p->block[20].armed, 0);
	for (int i = 21; i <= 22; i++) {
		assert_int_equal(p->block[i].wanted, NB_NO_NODE);
		assert_int_equal(p->block[i].trust, 0);
		assert_int_equal(p->block[i].armed, 0);
		assert_false(p->block[i].waits);
		/* One page of it is armed next, not a huge one. */
		assert_true(p->block[i].split);
	}
	assert_int_equal(p->block[23].wanted, 1);
	assert_int_equal(p->block[23].armed, 1);
	free(p);
}

/* A lone thread is asked nothing of others; but a block that waited for it does no more. */
static void waiting_ends_when_one_runs_alone_too(void **state)
{
	uint64_t found[NB_MAX_INFERRED];
	struct place *p = new_place();

	(void)state;
	touch(p, 20, 1);
	nb_judge_others(&p->agent, at(20), 1, true, found);
	assert_true(p->block[20].waits);
	p->agent.nr_running = 1;
	assert_int_equal(nb_judge_others(&p->agent, at(20), 1, false, found), 0);
	assert_false(p->block[20].waits);
	free(p);
}

static void the_unknown_is_asked_at_intervals(void **state)
{
	struct place *p = new_place();

	(void)state;
	assert_true(nb_judge_may_infer(&p->agent, at(30)));
	/* Beside one whose owner is known it is asked: is this where another one's begins? */
	touch(p, 31, 1);
	assert_false(nb_judge_may_infer(&p->agent, at(30)));
	/* Between two of one owner it need not. */
	touch(p, 28, 1);
	assert_true(nb_judge_may_infer(&p->agent, at(30)));
	assert_false(nb_judge_may_infer(&p->agent, START - NB_HUGE_SIZE));
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_owner_is_who_is_met_twice),
		cmocka_unit_test(the_more_it_was_met_the_more_it_takes),
		cmocka_unit_test(neighbours_convince),
		cmocka_unit_test(who_runs_alone_says_nothing_of_others),
		cmocka_unit_test(what_lies_between_is_inferred),
		cmocka_unit_test(what_somebody_placed_is_asked),
		cmocka_unit_test(nothing_is_inferred_where_that_is_wrong),
		cmocka_unit_test(who_leaves_a_home_leaves_no_owner),
		cmocka_unit_test(what_was_dropped_is_unknown),
		cmocka_unit_test(waiting_ends_when_one_runs_alone_too),
		cmocka_unit_test(the_unknown_is_asked_at_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
