/* SPDX-License-Identifier: MIT */
/* Lists of ids, as the kernel writes them, and the numbers in them. */
#include <errno.h>
#include <string.h>

#include "fixture.h"
#include "set.h"

static int parse(struct topo_set *set, const char *list)
{
	return topo_set_parse(set, topo_slice_of(list), 1024);
}

static const struct {
	const char *list;
	const char *written; /* the same ids, in the shortest form */
	unsigned int count;
} good[] = {
	{"", "", 0},
	{"\n", "", 0},
	{"0", "0", 1},
	{"0-3,8,10-11", "0-3,8,10-11", 7},
	{"0-3,8,10-11\n", "0-3,8,10-11", 7},
	{"3,2,1", "1-3", 3},
	{"5,5,5-5", "5", 1},
	{"0 1 2", "0-2", 3},
	{"0-7:2/4", "0-1,4-5", 4},
	{"0-8:1/2,1023", "0,2,4,6,8,1023", 6},
	{"63-64", "63-64", 2},
	{"0-1023", "0-1023", 1024},
	{"0-3,\n4-5", "0-5", 6},
};

static void lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct topo_set set;
		char text[64];

		assert_int_equal(parse(&set, good[i].list), 0);
		assert_int_equal(topo_set_count(&set), good[i].count);
		assert_int_equal(
			topo_set_format(&set, text, sizeof(text)), strlen(good[i].written));
		assert_string_equal(text, good[i].written);
	}
}

static void bad_lists(void **state)
{
	static const struct {
		const char *list;
		int err;
	} bad[] = {
		{"a", -EINVAL},
		{"1-", -EINVAL},
		{"-1", -EINVAL},
		{"1,,2", -EINVAL},
		{",1", -EINVAL},
		{"1-2-3", -EINVAL},
		{"0x1", -EINVAL},
		{"1:1/2", -EINVAL},
		{"0-7:2", -EINVAL},
		{"0-7:2/", -EINVAL},
		{"0-7:/4", -EINVAL},
		{"1.5", -EINVAL},
		{"+1", -EINVAL},
		{"0-7:0/4", -ERANGE},
		{"0-7:5/4", -ERANGE},
		{"3-1", -ERANGE},
		{"1024", -ERANGE},
		{"0-1024", -ERANGE},
		{"4294967296", -ERANGE},
		{"18446744073709551616", -ERANGE},
		{"99999999999999999999999999999", -ERANGE},
	};
	struct topo_set set;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(&set, bad[i].list) != bad[i].err)
			fail_msg("\"%s\": %d, expected %d", bad[i].list, parse(&set, bad[i].list),
				bad[i].err);
}

static void short_buffers(void **state)
{
	struct topo_set set;
	char text[12];

	(void)state;
	/* Exactly full, and one item more than fits. */
	assert_int_equal(parse(&set, "100,200,300"), 0);
	topo_set_format(&set, text, sizeof(text));
	assert_string_equal(text, "100,200,300");
	assert_int_equal(parse(&set, "100,200,300,400"), 0);
	assert_int_equal(topo_set_format(&set, text, sizeof(text)), 10);
	assert_string_equal(text, "100,200...");
}

static void algebra(void **state)
{
	struct topo_set a, b, rest;

	(void)state;
	assert_int_equal(parse(&a, "0-3,70"), 0);
	assert_int_equal(parse(&b, "2-3"), 0);
	assert_true(topo_set_within(&b, &a));
	assert_false(topo_set_within(&a, &b));
	rest = topo_set_minus(&a, &b);
	assert_int_equal(topo_set_count(&rest), 3);
	assert_int_equal(topo_set_next(&rest, 0), 0);
	assert_int_equal(topo_set_next(&rest, 2), 70);
	assert_int_equal(topo_set_next(&rest, 71), -1);
	assert_int_equal(topo_set_next(&rest, TOPO_SET_BITS), -1);
	assert_false(topo_set_has(&rest, TOPO_SET_BITS));
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{"0", 0},
		{"10", 0},
		{"007", 0},
		{"11", -ERANGE},
		{"-1", -ERANGE},
		{"", -EINVAL},
		{"-", -EINVAL},
		{" 1", -EINVAL},
		{"1x", -EINVAL},
		{"--1", -EINVAL},
		{"1e1", -EINVAL},
		{"99999999999999999999999999", -ERANGE},
	};
	unsigned int value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (topo_slice_uint(topo_slice_of(cases[i].text), 10, &value) != cases[i].err)
			fail_msg("\"%s\"", cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(bad_lists),
		cmocka_unit_test(short_buffers),
		cmocka_unit_test(algebra),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
