/* SPDX-License-Identifier: MIT */
/* OpenMetrics text, read line by line as a scraper would. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fixture.h"
#include "openmetrics.h"

/* Past a metric or label name. */
static const char *skip_name(const char *at)
{
	const size_t len =
		strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");

	assert_true(len > 0 && (*at < '0' || *at > '9'));
	return at + len;
}

/* Past a quoted label value: every backslash begins \\, \" or \n. */
static const char *skip_value(const char *at)
{
	assert_int_equal(*at++, '"');
	for (; *at != '"'; at++) {
		assert_true(*at && *at != '\n');
		if (*at == '\\') {
			at++;
			assert_true(*at == '\\' || *at == '"' || *at == 'n');
		}
	}
	return at + 1;
}

static void check_sample(const char *line)
{
	const char *at = skip_name(line);
	char *end;

	assert_int_equal(*at, '{');
	do {
		at = skip_name(at + 1);
		assert_int_equal(*at, '=');
		at = skip_value(at + 1);
	} while (*at == ',');
	assert_int_equal(at[0], '}');
	assert_int_equal(at[1], ' ');
	strtod(at + 2, &end);
	assert_true(end > at + 2 && *end == '\n');
}

/* Samples stand under the TYPE line of their own family. */
static void check_lines(const char *text)
{
	char family[128] = "";

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (!strncmp(line, "# TYPE ", 7)) {
			const size_t len = strcspn(line + 7, " ");

			memcpy(family, line + 7, len);
			family[len] = 0;
		} else if (line[0] != '#') {
			assert_int_equal(strncmp(line, family, strlen(family)), 0);
			check_sample(line);
		}
	}
}

static void test_text(void **state)
{
	struct fixture x = {0};
	char *text, type[160];
	size_t len;

	(void)state;
	fixture_series(fixture_add(&x, "quote\" back\\slash\nline", "a", 1.5), 2, 1);
	fixture_add(&x, "plain", "b", NAN)->counters.numa_hint_faults = UINT64_MAX;
	text = fixture_text(&x, report_openmetrics);
	check_lines(text);
	len = strlen(text);
	assert_string_equal(text + len - 6, "# EOF\n");
	assert_int_equal(strstr(text, "# EOF") - text, len - 6);
	for (int i = 0; i < NB_NR_COUNTERS; i++) {
		snprintf(type, sizeof(type), "# TYPE numabal_%s counter", nb_counter_table[i].name);
		assert_true(fixture_has_line(text, type));
	}
	assert_true(fixture_has_line(text, "numabal_numa_hint_faults_total{job=\"plain\",system="
					   "\"b\",machine=\"two nodes\",iteration=\"1\"} "
					   "18446744073709551615"));
	assert_true(
		fixture_has_line(text, "numabal_elapsed_seconds{job=\"quote\\\" "
				       "back\\\\slash\\nline\",system=\"a\",machine=\"two nodes\","
				       "iteration=\"1\"} 1.5"));
	assert_true(fixture_has_line(text, "numabal_elapsed_seconds{job=\"plain\",system=\"b\","
					   "machine=\"two nodes\",iteration=\"1\"} NaN"));
	assert_true(
		fixture_has_line(text, "numabal_node_pages{job=\"quote\\\" "
				       "back\\\\slash\\nline\",system=\"a\",machine=\"two nodes\","
				       "iteration=\"1\",node=\"2\"} 1001"));
	free(text);
	fixture_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_text)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
