/* SPDX-License-Identifier: MIT */
/* JSON: the documented shape, read back with jansson. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fixture.h"
#include "json.h"

static json_t *load(const struct fixture *x)
{
	char *text = fixture_text(x, report_json);
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s: line %d: %.200s", error.text, error.line, text);
	free(text);
	return root;
}

static json_t *run_at(json_t *root, size_t i)
{
	return json_array_get(json_object_get(root, "runs"), i);
}

static double real_of(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void check_counters(json_t *run)
{
	json_t *counters = json_object_get(run, "counters");

	assert_int_equal(json_object_size(counters), NB_NR_COUNTERS);
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		assert_int_equal(
			json_integer_value(json_object_get(counters, nb_counter_table[i].name)),
			1000 + i);
}

static void check_series(json_t *run, const struct nb_result *r)
{
	json_t *series = json_object_get(run, "series");

	assert_int_equal(json_array_size(series), r->nr_samples);
	for (uint32_t i = 0; i < r->nr_samples; i++) {
		json_t *sample = json_array_get(series, i),
		       *pages = json_object_get(sample, "node_pages");
		json_t *share = json_object_get(sample, "local_share");

		assert_true(real_of(sample, "time_s") == r->samples[i].time_s);
		assert_true(isnan(r->samples[i].local_share)
				    ? json_is_null(share)
				    : json_real_value(share) == r->samples[i].local_share);
		assert_int_equal(real_of(sample, "hint_faults"), r->samples[i].hint_faults);
		assert_int_equal(
			real_of(sample, "hint_faults_local"), r->samples[i].hint_faults_local);
		assert_int_equal(real_of(sample, "pte_updates"), r->samples[i].pte_updates);
		assert_int_equal(real_of(sample, "pages_migrated"), r->samples[i].pages_migrated);
		assert_true(real_of(sample, "scan_period_ms") == r->samples[i].scan_period_ms);
		assert_true(real_of(sample, "bytes") == r->samples[i].bytes);
		assert_int_equal(json_array_size(pages), r->nr_nodes);
		for (unsigned int k = 0; k < r->nr_nodes; k++)
			assert_int_equal(json_integer_value(json_array_get(pages, k)),
				r->node_pages[(size_t)i * r->nr_nodes + k]);
	}
}

static void test_round_trip(void **state)
{
	struct fixture x = {0};
	struct nb_result *r = fixture_add(&x, "numa02", "balancenuma-v8", 0.1 + 0.2);
	json_t *root, *run, *costs, *nodes;

	(void)state;
	r->user_s = 1.0 / 3;
	r->system_s = 5e-324;
	r->bytes = 859e9;
	r->local_share = 0.7;
	r->timed_out = true;
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		((uint64_t *)&r->counters)[i] = 1000 + (uint64_t)i;
	fixture_series(r, 3, 5);
	root = load(&x);
	run = run_at(root, 0);
	assert_int_equal(real_of(root, "schema"), REPORT_SCHEMA);
	assert_string_equal(json_string_value(json_object_get(root, "version")), NB_VERSION);
	assert_string_equal(json_string_value(json_object_get(root, "machine")), "two nodes");
	assert_string_equal(json_string_value(json_object_get(run, "job")), "numa02");
	assert_string_equal(json_string_value(json_object_get(run, "system")), "balancenuma-v8");
	assert_int_equal(real_of(run, "iteration"), 1);
	assert_int_equal(real_of(run, "seed"), 7);
	assert_true(real_of(run, "elapsed_s") == r->elapsed_s);
	assert_true(real_of(run, "user_s") == r->user_s);
	assert_true(real_of(run, "system_s") == r->system_s);
	assert_true(real_of(run, "bytes") == r->bytes);
	assert_true(real_of(run, "local_share") == r->local_share);
	assert_true(json_is_true(json_object_get(run, "timed_out")));
	check_counters(run);
	costs = json_object_get(run, "costs");
	assert_true(real_of(costs, "compaction") ==
		    1038.0 * (double)r->counters.pgmigrate_success / 1e6);
	assert_true(real_of(costs, "autonuma_full") > real_of(costs, "autonuma_mmtests"));
	nodes = json_object_get(run, "nodes");
	assert_int_equal(json_array_size(nodes), 3);
	assert_int_equal(real_of(json_array_get(nodes, 1), "id"), 2);
	assert_int_equal(real_of(json_array_get(nodes, 1), "pages"), 1001);
	check_series(run, r);
	json_decref(root);
	fixture_free(&x);
}

static void test_not_numbers(void **state)
{
	struct fixture x = {0};
	struct nb_result *r = fixture_add(&x, "j", "s", INFINITY);
	json_t *root, *run;

	(void)state;
	r->counters.pgfault = UINT64_MAX;
	x.runs[0].seed = (uint64_t)INT64_MAX + 1;
	root = load(&x);
	run = run_at(root, 0);
	assert_true(json_is_null(json_object_get(run, "elapsed_s")));
	assert_true(json_is_null(json_object_get(run, "local_share")));
	assert_string_equal(json_string_value(json_object_get(run, "seed")), "9223372036854775808");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(run, "counters"), "pgfault")),
		"18446744073709551615");
	json_decref(root);
	fixture_free(&x);
}

/* Names are any bytes: quotes, control characters, UTF-8 and what is not UTF-8. */
static void test_names(void **state)
{
	static const struct {
		const char *name, *read_back;
	} names[] = {
		{"a\"b\\c\n\x01</script>", "a\"b\\c\n\x01</script>"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xf0\x9f\x90\x8c", "\xf0\x9f\x90\x8c"},
		{"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
		{"\xff\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xed\xa0\x80",
			"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half a surrogate pair */
		{"\xf4\x90\x80\x80",
			"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* past U+10FFFF */
		{"", ""},
	};
	struct fixture x = {0};
	json_t *root;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fixture_add(&x, names[i].name, "s", 1);
	root = load(&x);
	for (size_t i = 0; i < x.set.nr_runs; i++)
		assert_string_equal(json_string_value(json_object_get(run_at(root, i), "job")),
			names[i].read_back);
	json_decref(root);
	fixture_free(&x);
}

static void test_best_and_empty(void **state)
{
	struct fixture x = {0};
	json_t *root = load(&x);

	(void)state;
	assert_true(json_is_null(json_object_get(root, "machine")));
	assert_int_equal(json_array_size(json_object_get(root, "runs")), 0);
	json_decref(root);
	fixture_add(&x, "j", "best", 1);
	fixture_add(&x, "j", "none", 2);
	x.runs[0].is_best = true;
	x.runs[0].best_text = (char[]){"interleaved"};
	root = load(&x);
	assert_true(json_is_true(json_object_get(run_at(root, 0), "best")));
	assert_string_equal(
		json_string_value(json_object_get(run_at(root, 0), "placement")), "interleaved");
	assert_true(json_is_false(json_object_get(run_at(root, 1), "best")));
	assert_null(json_object_get(run_at(root, 1), "placement"));
	json_decref(root);
	fixture_free(&x);
}

static void test_full_device(void **state)
{
	struct fixture x = {0};
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	if (!f)
		skip();
	fixture_series(fixture_add(&x, "j", "s", 1), 4, 1000);
	assert_int_not_equal(report_json(f, &x.set), 0);
	fclose(f);
	fixture_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_not_numbers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_best_and_empty),
		cmocka_unit_test(test_full_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
