/* SPDX-License-Identifier: MIT */
/* CSV: read back by a small RFC 4180 reader of the test's own. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "csv.h"
#include "fixture.h"

enum { MAX_CELLS = 96 };

struct record {
	size_t nr;
	char *cell[MAX_CELLS];
};

/* One record from *at on, cells unquoted in place; false at the end of the text. */
static bool next_record(struct record *r, char **at)
{
	char *p = *at;

	r->nr = 0;
	if (!*p)
		return false;
	for (;;) {
		char *to = p, end;

		assert_true(r->nr < MAX_CELLS);
		r->cell[r->nr++] = p;
		if (*p == '"') {
			for (p++; *p != '"' || p[1] == '"'; p++) {
				assert_true(*p != 0);
				p += *p == '"';
				*to++ = *p;
			}
			p++;
		} else {
			to = p += strcspn(p, ",\n\"");
		}
		end = *p++;
		*to = 0;
		if (end == '\n') {
			*at = p;
			return true;
		}
		assert_int_equal(end, ',');
	}
}

static const char *cell_of(const struct record *header, const struct record *row, const char *name)
{
	for (size_t i = 0; i < header->nr; i++)
		if (!strcmp(header->cell[i], name))
			return row->cell[i];
	fail_msg("no column %s", name);
	return NULL;
}

static void test_runs(void **state)
{
	struct fixture x = {0};
	struct nb_result *r = fixture_add(&x, "a,\"b\"\r\nc", "", 0.1 + 0.2);
	struct record header, row;
	char *text, *at;

	(void)state;
	r->counters.numa_hint_faults = UINT64_MAX;
	fixture_series(r, 2, 1);				   /* nodes 0 and 2 */
	fixture_series(fixture_add(&x, "plain", "none", 1), 3, 1); /* nodes 0, 2 and 4 */
	text = at = fixture_text(&x, report_csv);
	assert_true(next_record(&header, &at));
	assert_true(next_record(&row, &at));
	assert_int_equal(row.nr, header.nr);
	assert_string_equal(cell_of(&header, &row, "job"), "a,\"b\"\r\nc");
	assert_string_equal(cell_of(&header, &row, "system"), "");
	assert_string_equal(cell_of(&header, &row, "machine"), "two nodes");
	assert_string_equal(cell_of(&header, &row, "seed"), "7");
	assert_true(strtod(cell_of(&header, &row, "elapsed_s"), NULL) == 0.1 + 0.2);
	assert_string_equal(cell_of(&header, &row, "local_share"), ""); /* NaN */
	assert_string_equal(cell_of(&header, &row, "numa_hint_faults"), "18446744073709551615");
	assert_string_equal(cell_of(&header, &row, "pages_node2"), "1001");
	assert_string_equal(cell_of(&header, &row, "pages_node4"), ""); /* it has no such node */
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		cell_of(&header, &row, nb_counter_table[i].name);
	assert_true(next_record(&row, &at));
	assert_int_equal(row.nr, header.nr);
	assert_string_equal(cell_of(&header, &row, "job"), "plain");
	assert_string_equal(cell_of(&header, &row, "elapsed_s"), "1");
	assert_string_equal(cell_of(&header, &row, "pages_node4"), "1002");
	assert_false(next_record(&row, &at));
	free(text);
	fixture_free(&x);
}

static void test_series(void **state)
{
	struct fixture x = {0};
	struct record header, row;
	char *text, *at;

	(void)state;
	fixture_series(fixture_add(&x, "j", "s", 1), 2, 4);
	fixture_add(&x, "j", "without samples", 1);
	text = at = fixture_text(&x, report_csv_series);
	assert_true(next_record(&header, &at));
	for (int i = 0; i < 4; i++) {
		assert_true(next_record(&row, &at));
		assert_int_equal(row.nr, header.nr);
		assert_int_equal(atoi(cell_of(&header, &row, "time_s")), i + 1);
		assert_string_equal(cell_of(&header, &row, "local_share"), i % 3 ? "0.25" : "");
		assert_int_equal(atoi(cell_of(&header, &row, "hint_faults")), 100 * i);
		assert_int_equal(atoi(cell_of(&header, &row, "hint_faults_local")), 40 * i);
		assert_int_equal(atoi(cell_of(&header, &row, "pte_updates")), 512 * i);
		assert_int_equal(atoi(cell_of(&header, &row, "pages_migrated")), 10 * i);
		assert_int_equal(atoi(cell_of(&header, &row, "scan_period_ms")), 1000);
		assert_int_equal(atoi(cell_of(&header, &row, "pages_node2")), 100 + i);
	}
	assert_false(next_record(&row, &at));
	free(text);
	fixture_free(&x);
}

static void test_empty(void **state)
{
	struct fixture x = {0};
	struct record header, row;
	char *text, *at;

	(void)state;
	text = at = fixture_text(&x, report_csv);
	assert_true(next_record(&header, &at));
	assert_string_equal(header.cell[0], "job");
	assert_false(next_record(&row, &at));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
