/* SPDX-License-Identifier: MIT */
/* Ranks come as often as the formula says: the alias table against the sum it was made from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

#include "zipf.h"

enum { DRAWS = 2000000 };

static double chance(uint32_t rank, uint32_t nr, double exponent)
{
	double sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += pow(i + 1, -exponent);
	return pow(rank + 1, -exponent) / sum;
}

/* The table itself: what slots keep and what they give away, summed by rank. */
static double chance_in_table(const struct zipf *z, uint32_t rank)
{
	double sum = 0;

	for (uint32_t i = 0; i < z->nr; i++)
		sum += i == rank		   ? (double)z->slots[i].keep
		       : z->slots[i].other == rank ? 1 - (double)z->slots[i].keep
						   : 0;
	return sum / z->nr;
}

static void table_is_exact(void **state)
{
	static const uint32_t sizes[] = {1, 2, 7, 1000};
	static const double exponents[] = {0, 0.5, 0.99, 2};
	struct zipf z;

	(void)state;
	for (int s = 0; s < 4; s++) {
		for (int e = 0; e < 4; e++) {
			assert_int_equal(zipf_init(&z, sizes[s], exponents[e]), 0);
			for (uint32_t rank = 0; rank < sizes[s]; rank += 1 + sizes[s] / 7)
				assert_true(fabs(chance_in_table(&z, rank) -
						    chance(rank, sizes[s], exponents[e])) < 1e-6);
			zipf_free(&z);
		}
	}
}

static void draws_follow_the_table(void **state)
{
	const uint32_t nr = 16384;
	uint64_t random = 1;
	uint32_t first = 0, second = 0, hot = 0;
	double expected_hot = 0;
	struct zipf z;

	(void)state;
	assert_int_equal(zipf_init(&z, nr, 0.99), 0);
	for (int i = 0; i < DRAWS; i++) {
		const uint32_t rank = zipf_draw(&z, random_next(&random));

		assert_true(rank < nr);
		first += rank == 0;
		second += rank == 1;
		hot += rank < 100;
	}
	for (uint32_t rank = 0; rank < 100; rank++)
		expected_hot += chance(rank, nr, 0.99);
	/* Five standard deviations of that many draws are under 0.2 % of them. */
	assert_true(fabs((double)first / DRAWS - chance(0, nr, 0.99)) < 0.002);
	assert_true(fabs((double)second / DRAWS - chance(1, nr, 0.99)) < 0.002);
	assert_true(fabs((double)hot / DRAWS - expected_hot) < 0.002);
	zipf_free(&z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_exact),
		cmocka_unit_test(draws_follow_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
