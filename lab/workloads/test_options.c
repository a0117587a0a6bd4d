/* SPDX-License-Identifier: MIT */
/* The workloads' command line: what is not said, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "work.h"

enum { MAX_ARGS = 32 };

/* Parse words separated by blanks, on a machine with 4 CPUs. */
static int parse(struct work_options *opt, const char *line, char *why, size_t why_len)
{
	static char text[512];
	char *argv[MAX_ARGS] = {NULL}, *save = NULL;
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	argv[0] = text + strlen(text);
	for (char *word = strtok_r(text, " ", &save); word && argc < MAX_ARGS - 1;
		word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return work_parse(opt, 4, argc, argv, why, why_len);
}

/* Threads and sizes for 4 CPUs, as docs/lab.md has them. */
static void defaults_for_4_cpus(void **state)
{
	static const struct {
		const char *name;
		unsigned int processes, threads, mib;
	} expected[] = {{"numa01", 2, 2, 160}, {"numa01_TA", 2, 2, 160}, {"numa02", 1, 4, 256},
		{"numa02_SMT", 1, 2, 256}, {"zipf", 1, 4, 256}, {"late", 1, 4, 128}};
	struct work_options opt;
	char why[128];

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(parse(&opt, expected[i].name, why, sizeof(why)), 0);
		assert_string_equal(work_name(opt.pattern), expected[i].name);
		assert_int_equal(opt.processes, expected[i].processes);
		assert_int_equal(opt.threads, expected[i].threads);
		assert_int_equal(opt.bytes, (uint64_t)expected[i].mib << 20);
		assert_int_equal(opt.start_node, -1);
		assert_int_equal(opt.shared_pct, 10);
	}
}

static void everything_can_be_said(void **state)
{
	struct work_options opt;
	char why[128];

	(void)state;
	assert_int_equal(parse(&opt,
				 "--seconds 2.5 --csv a --scans b --processes 3 --threads 5 --size "
				 "10M --start 2 --pin "
				 "--shared 0 late",
				 why, sizeof(why)),
		0);
	assert_true(opt.seconds > 2.4 && opt.seconds < 2.6);
	assert_string_equal(opt.csv, "a");
	assert_string_equal(opt.scans, "b");
	assert_int_equal(opt.processes, 3);
	assert_int_equal(opt.threads, 5);
	assert_int_equal(opt.start_node, 2);
	assert_true(opt.pin);
	assert_int_equal(opt.shared_pct, 0);
	/* Whole pages for each of 5 threads: 2560 pages are 5 x 512. */
	assert_int_equal(opt.bytes, 10 << 20);
	assert_int_equal(parse(&opt, "--threads 3 --size 1M late", why, sizeof(why)), 0);
	assert_int_equal(opt.bytes, 85 * 3 * 4096);
}

static void nonsense_is_refused(void **state)
{
	static const char *const lines[] = {"", "nosuch", "numa02 numa02", "--seconds 0 numa02",
		"--seconds -1 numa02", "--seconds nan numa02", "--threads 0 numa02",
		"--threads 65 numa02", "--threads 33 --processes 2 numa02", "--size 100 numa02",
		"--size -1 numa02", "--size 99999999999999999999 numa02", "--start 64 numa02",
		"--start -2 numa02", "--shared 101 zipf", "--shared -1 zipf", "--nosuch numa02",
		"--seconds", "--seed x zipf", "--threads 64 --size 4K numa02", "--late-at 0 late"};
	struct work_options opt;
	char why[128];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		why[0] = '\0';
		if (!parse(&opt, lines[i], why, sizeof(why)))
			fail_msg("'%s' was taken", lines[i]);
		assert_true(strlen(why) > 0);
		assert_null(strchr(why, '\n'));
	}
}

static void ranks_have_a_page_each(void **state)
{
	static const uint64_t sizes[] = {1, 2, 3, 512, 1000, 16384, 20480};
	static unsigned char seen[20480];

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		memset(seen, 0, sizeof(seen));
		for (uint64_t rank = 0; rank < sizes[s]; rank++) {
			const uint64_t page = work_page_of_rank(rank, sizes[s]);

			assert_true(page < sizes[s]);
			assert_int_equal(seen[page]++, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_for_4_cpus),
		cmocka_unit_test(everything_can_be_said),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(ranks_have_a_page_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
