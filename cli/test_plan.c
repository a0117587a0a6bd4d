/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cmd.h"
#include "plan.h"

static char why[CLI_WHY_LEN];

static void test_seeds(void **state)
{
	static const char *const jobs[] = {"a", "b", "ab", "ba", "numa01", "numa02", ""};
	enum { JOBS = sizeof(jobs) / sizeof(jobs[0]), SEEDS = 5, ITERATIONS = 7 };
	uint64_t all[JOBS * SEEDS * ITERATIONS];
	size_t nr = 0;

	(void)state;
	for (size_t j = 0; j < JOBS; j++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			for (unsigned int i = 0; i < ITERATIONS; i++)
				all[nr++] = plan_seed(seed, jobs[j], i);
	for (size_t i = 0; i < nr; i++) {
		assert_true(all[i] < UINT64_C(1) << 53);
		for (size_t j = 0; j < i; j++)
			assert_true(all[i] != all[j]);
	}
	assert_true(plan_seed(3, "numa01", 2) == plan_seed(3, "numa01", 2));
}

static void test_systems(void **state)
{
	static const struct {
		const char *list;
		int err;
		size_t nr;
	} rows[] = {
		{"none", 0, 1},
		{"none,moron,best", 0, 3},
		{"best", 0, 1},
		{"", -EINVAL, 0},
		{",", -EINVAL, 0},
		{"none,", -EINVAL, 0},
		{",none", -EINVAL, 0},
		{"none,,moron", -EINVAL, 0},
		{"none,none", -EINVAL, 0},
		{"None", -EINVAL, 0},
		{" none", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan p = {0};
		const int err = plan_add_systems(&p, rows[i].list, why, sizeof(why));

		assert_int_equal(err, rows[i].err);
		if (!err)
			assert_int_equal(p.nr_systems, rows[i].nr);
		plan_free(&p);
	}
}

/* A name longer than any buffer is refused, not cut to one that exists. */
static void test_long_names(void **state)
{
	char list[5000];
	struct plan p = {0};

	(void)state;
	memset(list, 'x', sizeof(list) - 1);
	list[sizeof(list) - 1] = '\0';
	memcpy(list, "none", 4);
	assert_int_equal(plan_add_systems(&p, list, why, sizeof(why)), -EINVAL);
	assert_int_equal(plan_add_jobs(&p, list, why, sizeof(why)), -EINVAL);
	assert_int_equal(p.nr_systems + p.nr_jobs, 0);
	plan_free(&p);
}

static void test_set_reaches_every_row(void **state)
{
	struct plan p = {0};

	(void)state;
	assert_int_equal(plan_add_systems(&p, "moron,best,balancenuma-v8", why, sizeof(why)), 0);
	assert_true(nb_has(&p.systems[0].config, NB_MECH_SCAN_DELAY));
	assert_int_equal(plan_set(&p, "scan_delay=off", why, sizeof(why)), 0);
	assert_int_equal(plan_set(&p, "scan_size_mb=7", why, sizeof(why)), 0);
	for (size_t i = 0; i < 3; i += 2) {
		assert_false(nb_has(&p.systems[i].config, NB_MECH_SCAN_DELAY));
		assert_int_equal(nb_tune(&p.systems[i].config, NB_TUNE_SCAN_SIZE_MB), 7);
	}
	assert_true(plan_set(&p, "nosuch=1", why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "nosuch"));
	plan_free(&p);
}

/* Job, system, iteration; every combination once; seeds do not know the system. */
static void test_order(void **state)
{
	struct plan p = {0};

	(void)state;
	assert_int_equal(plan_set_machine(&p, "2 nodes x 2 cpus x 8G", why, sizeof(why)), 0);
	assert_int_equal(plan_add_systems(&p, "none,best", why, sizeof(why)), 0);
	assert_int_equal(
		plan_add_jobs(&p, "numa02:size=64M,passes=2,numa01:size=64M", why, sizeof(why)), 0);
	assert_int_equal(plan_add_jobs(&p, "numa02:passes=3-5", why, sizeof(why)), 0);
	assert_int_equal(p.nr_jobs, 5);
	assert_string_equal(p.jobs[0].name, "numa02:size=64M,passes=2");
	assert_string_equal(p.jobs[1].name, "numa01:size=64M");
	assert_string_equal(p.jobs[4].name, "numa02:passes=5");
	assert_int_equal(plan_runs(&p, 3, 1), 0);
	assert_int_equal(p.nr_runs, 5 * 2 * 3);
	for (size_t i = 0; i < p.nr_runs; i++) {
		const struct plan_at at = plan_at(&p, i);

		assert_int_equal((at.job * 2 + at.system) * 3 + at.iteration, i);
		assert_int_equal(p.runs[i].iteration, at.iteration + 1);
		assert_ptr_equal(p.runs[i].job, p.jobs[at.job].name);
		assert_true(p.runs[i].seed == p.runs[at.job * 6 + at.iteration].seed);
		assert_int_equal(p.runs[i].is_best, at.system == 1);
	}
	plan_free(&p);
}

static void test_same_job_twice(void **state)
{
	struct plan p = {0};

	(void)state;
	assert_int_equal(plan_set_machine(&p, "2 nodes x 2 cpus x 8G", why, sizeof(why)), 0);
	assert_int_equal(plan_add_jobs(&p, "numa02", why, sizeof(why)), 0);
	assert_int_equal(plan_add_jobs(&p, "numa02", why, sizeof(why)), -EINVAL);
	assert_int_equal(
		plan_add_jobs(&p, "numa02:passes=2,numa02:passes=2", why, sizeof(why)), -EINVAL);
	plan_free(&p);
}

static void test_too_many_runs(void **state)
{
	struct plan p = {.nr_jobs = 2000, .nr_systems = 60};

	(void)state;
	assert_int_equal(plan_runs(&p, 1000, 1), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_systems),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_set_reaches_every_row),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_same_job_twice),
		cmocka_unit_test(test_too_many_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
