/* SPDX-License-Identifier: MIT */
/* The comparison table: its arithmetic against published MMTests tables, and its own layout. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fixture.h"
#include "stats.h"
#include "table.h"

enum { MAX_COLUMNS = 8 };

/* A row of an MMTests table: "LABEL LABEL  value (percent%)  value *percent%* ...". */
struct published {
	char label[64];
	size_t nr;
	double value[MAX_COLUMNS], percent[MAX_COLUMNS];
};

/* Returns whether the line is such a row. */
static bool parse_row(struct published *row, const char *line)
{
	const char *first = line + strcspn(line, "\n(*");
	const char *at = first;

	*row = (struct published){0};
	while (at > line && at[-1] == ' ')
		at--;
	while (at > line && at[-1] != ' ')
		at--; /* back over the first value */
	if (at == line || (size_t)(at - line) >= sizeof(row->label))
		return false;
	memcpy(row->label, line, (size_t)(at - line));
	while (row->nr < MAX_COLUMNS) {
		int used = 0;

		if (sscanf(at, "%lf %*1[(*]%lf%%%*1[)*]%n", &row->value[row->nr],
			    &row->percent[row->nr], &used) < 2 ||
			!used)
			break;
		at += used;
		row->nr++;
	}
	for (size_t i = strlen(row->label); i && row->label[i - 1] == ' '; i--)
		row->label[i - 1] = 0;
	return row->nr >= 2;
}

/* `published` follows from the two values, each rounded to 0.01 where it was printed. */
static bool follows(double base, double value, double published, bool more, double rounding)
{
	double low = INFINITY, high = -INFINITY;

	for (int i = -1; i <= 1; i += 2) {
		for (int k = -1; k <= 1; k += 2) {
			const double p =
				report_percent(base + i * rounding, value + k * rounding, more);

			low = fmin(low, p);
			high = fmax(high, p);
		}
	}
	return published >= low - 0.00501 && published <= high + 0.00501;
}

/* Check every row of the text for which `wanted` says so; returns the number of cells checked. */
static size_t check_percents(const char *text, int (*direction)(const char *label), double rounding)
{
	size_t checked = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct published row;
		int more;

		if (!parse_row(&row, line))
			continue;
		more = direction(row.label);
		for (size_t c = 1; more >= 0 && c < row.nr; c++, checked++)
			if (!follows(row.value[0], row.value[c], row.percent[c], more, rounding))
				fail_msg(
					"%s, column %zu: %.2f%% does not follow from %.2f and %.2f",
					row.label, c, row.percent[c], row.value[0], row.value[c]);
	}
	return checked;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static int times_of_2012(const char *label)
{
	return starts(label, "User ") || starts(label, "System ") || starts(label, "Elapsed ") ||
			       starts(label, "CPU ") || starts(label, "Time ")
		       ? 0
		       : -1;
}

static int rates_of_2012(const char *label)
{
	if (starts(label, "Mean ") || starts(label, "TPut "))
		return 1;
	return -1;
}

static int means(const char *label)
{
	return starts(label, "Amean") || starts(label, "Min") || starts(label, "Max") ? 0 : -1;
}

static void test_published_2012(void **state)
{
	char *text = fixture_shared("seeds/balancenuma-v5-to-v8.txt");

	(void)state;
	if (!text)
		skip();
	/* times were printed as measured, to 0.01 s: every percentage follows to its last digit */
	assert_true(check_percents(text, times_of_2012, 0) >= 2 * 16 * 3);
	assert_true(check_percents(text, rates_of_2012, 0.005) >= 100);
	free(text);
}

static void test_published_start_scan_seq(void **state)
{
	char *text = fixture_shared("seeds/start-scan-seq-thread.txt");

	(void)state;
	if (!text)
		skip();
	assert_true(check_percents(text, means, 0.005) >= 9);
	free(text);
}

/* ---- a whole published table, rebuilt from its iterations ---- */

static const struct published *find_row(
	const struct published *rows, size_t nr, const char *kind, const char *metric)
{
	for (size_t i = 0; i < nr; i++)
		if (starts(rows[i].label, kind) && strstr(rows[i].label, metric))
			return &rows[i];
	return NULL;
}

static size_t parse_rows(struct published *rows, size_t room, const char *text)
{
	size_t nr = 0;

	for (const char *line = text; *line && nr < room;
		line += strcspn(line, "\n"), line += *line == '\n')
		nr += parse_row(&rows[nr], line);
	return nr;
}

/* Three iterations: the lowest, the highest, and what the mean leaves for the third. */
static void rebuild(
	double v[3], const struct published *rows, size_t nr, const char *metric, size_t column)
{
	const double min = find_row(rows, nr, "Min", metric)->value[column];
	const double max = find_row(rows, nr, "Max", metric)->value[column];

	v[0] = max;
	v[1] = min;
	v[2] = 3 * find_row(rows, nr, "Amean", metric)->value[column] - min - max;
}

static int full_table(FILE *f, const struct report_set *set)
{
	return report_table(f, set, &(struct report_table_options){.full_rows = true});
}

static int plain_table(FILE *f, const struct report_set *set)
{
	return report_table(f, set, NULL);
}

static void test_published_two_columns(void **state)
{
	enum { ROOM = 128 };
	struct published theirs[ROOM], ours[ROOM];
	char *published = fixture_shared("cases/mmtests-numascan-stats-2col.txt"), *text;
	struct fixture x = {0};
	size_t nr_theirs, nr_ours, at = 0;

	(void)state;
	if (!published)
		skip();
	nr_theirs = parse_rows(theirs, ROOM, published);
	assert_int_equal(nr_theirs, 13);
	for (size_t c = 0; c < 2; c++) {
		double elapsed[3], system[3];

		rebuild(elapsed, theirs, nr_theirs, "elsp-", c);
		rebuild(system, theirs, nr_theirs, "syst-", c);
		for (size_t i = 0; i < 3; i++)
			fixture_add(&x, "NUMA01_THREADLOCAL",
				c ? "numa_scan_4_history" : "numa_scan_orig", elapsed[i])
				->system_s = system[i];
	}
	text = fixture_text(&x, full_table);
	nr_ours = parse_rows(ours, ROOM, text);
	for (size_t i = 0; i < nr_theirs; i++, at++) {
		while (at < nr_ours && strcmp(ours[at].label, theirs[i].label))
			at++; /* theirs were picked from the whole; the order is the same */
		if (at == nr_ours)
			fail_msg("no row \"%s\" after the one before it", theirs[i].label);
		for (size_t c = 0; c < 2; c++) { /* the third iteration is known to 0.02 */
			assert_true(fabs(ours[at].value[c] - theirs[i].value[c]) < 0.025);
			assert_true(fabs(ours[at].percent[c] - theirs[i].percent[c]) < 0.06);
		}
	}
	free(text);
	free(published);
	fixture_free(&x);
}

/* ---- our own layout ---- */

/* Whether `text` has this row, whatever the number of blanks between its words. */
static bool has_row(const char *text, const char *row)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *want = row, *have = line;

		while (*want && *have != '\n' && *want == *have) {
			want++;
			have++;
			if (want[-1] == ' ')
				have += strspn(have, " ");
		}
		if (!*want && *have == '\n')
			return true;
	}
	return false;
}

/* User time 2 (sd 1) against 12 (sd 1): t = -12.2; elapsed 100, 101, 102 against 101, 100, 103:
 * nothing. */
static void add_iterations(struct fixture *x)
{
	for (int i = 0; i < 3; i++)
		fixture_add(x, "numa02", "none", 100 + i)->user_s = 1 + i;
	for (int i = 0; i < 3; i++)
		fixture_add(x, "numa02", "a-system-with-quite-a-long-name",
			(double[]){101, 100, 103}[i])
			->user_s = 11 + i;
}

static void test_stars_and_widths(void **state)
{
	static const char *const lines[] = {
		"                                         none a-system-with-quite-a-long-name",
		"Amean     user-numa02         2.00 (   0.00%)                12.00 *-500.00%*",
		"Amean     elsp-numa02       101.00 (   0.00%)               101.33 (  -0.33%)",
		"                         none a-system-with-quite-a-long-name",
		"Duration Elapsed       303.00                          304.00",
	};
	struct fixture x = {0};
	char *text;

	(void)state;
	add_iterations(&x);
	text = fixture_text(&x, plain_table);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!fixture_has_line(text, lines[i]))
			fail_msg("no line \"%s\"", lines[i]);
	assert_null(strstr(text, "tput-"));
	assert_null(strstr(text, "Share of gain"));
	free(text);
	text = fixture_text(&x, full_table);
	assert_true(has_row(text,
		"Min user-numa02 1.00 ( 0.00%) 11.00 (-1000.00%)")); /* only means are tested */
	free(text);
	fixture_free(&x);
}

static void test_throughput_and_gain(void **state)
{
	struct fixture x = {0};
	char *text;

	(void)state;
	fixture_add(&x, "jbb", "none", 10)->operations = 1000;	  /* 100 a second */
	fixture_add(&x, "jbb", "numabal", 10)->operations = 1750; /* 175 */
	fixture_add(&x, "jbb", "best", 10)->operations = 2000;	  /* 200 */
	x.runs[2].is_best = true;
	x.runs[2].best_text = (char[]){"threads on\tnode 1"};
	fixture_add(&x, "sweep", "none", 100);
	fixture_add(&x, "sweep", "numabal", 40)->timed_out = true;
	fixture_add(&x, "sweep", "best", 20);
	x.runs[5].is_best = true;
	text = fixture_text(&x, plain_table);
	assert_true(
		has_row(text, "Hmean tput-jbb 100.00 ( 0.00%) 175.00 ( 75.00%) 200.00 ( 100.00%)"));
	assert_true(has_row(text, "Share of gain-jbb 0.00% 75.00% 100.00%"));
	assert_true(has_row(text, "Share of gain-sweep 0.00% 75.00% 100.00%"));
	assert_true(fixture_has_line(text, "jbb with best, iteration 1: threads on?node 1"));
	assert_true(fixture_has_line(
		text, "sweep with numabal, iteration 1: stopped by its time limit, not finished"));
	free(text);
	fixture_free(&x);
}

/* The V8 autonumabench column: what the table prints of counters must be what the mail printed. */
static void test_ops(void **state)
{
	struct fixture x = {0};
	struct nb_result *r;
	char *text;

	(void)state;
	fixture_add(&x, "all", "none", 1);
	r = fixture_add(&x, "all", "balancenuma-v8", 1);
	r->counters.thp_fault_alloc = 17857;
	r->counters.thp_split_page = 6;
	r->counters.pgmigrate_success = r->counters.numa_pages_migrated = 10303098;
	r->counters.numa_pte_updates = 147254249;
	r->counters.numa_hint_faults = 688568;
	r->counters.numa_hint_faults_local = 542906;
	text = fixture_text(&x, plain_table);
	assert_true(has_row(text, "Ops Compaction cost 0.00 10694.62"));
	assert_true(has_row(text, "Ops AutoNUMA cost (MMTests) 0.00 4669.38"));
	assert_true(has_row(text, "Ops NUMA hint local percent - 78.85"));
	assert_true(has_row(text, "Ops NUMA pages migrated 0.00 10303098.00"));
	free(text);
	fixture_free(&x);
}

static void test_odd_sets(void **state)
{
	struct fixture x = {0};
	char *text = fixture_text(&x, full_table);

	(void)state;
	assert_string_equal(text, "");
	free(text);
	fixture_add(&x, "a\nb\x01\xff", "s\"y", 0); /* zero seconds, hostile names */
	fixture_add(&x, "other", "t", 5);	    /* a job that the first system did not run */
	fixture_add(&x, "a\nb\x01\xff", "t", 1e300);
	text = fixture_text(&x, full_table);
	assert_non_null(strstr(text, "Amean     elsp-a?b??"));
	assert_non_null(
		strstr(text,
			"Amean     elsp-other             - (      -%)         5.00 (      -%)\n")
			? text
			: strstr(text, "elsp-other"));
	assert_non_null(strstr(text, "1e+300"));
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (isascii(*c) && isprint(*c)));
	free(text);
	fixture_free(&x);
}

static void test_no_trailing_blanks(void **state)
{
	struct fixture x = {0};
	char *text;

	(void)state;
	add_iterations(&x);
	text = fixture_text(&x, full_table);
	assert_null(strstr(text, " \n"));
	free(text);
	fixture_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_2012),
		cmocka_unit_test(test_published_start_scan_seq),
		cmocka_unit_test(test_published_two_columns),
		cmocka_unit_test(test_stars_and_widths),
		cmocka_unit_test(test_throughput_and_gain),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_odd_sets),
		cmocka_unit_test(test_no_trailing_blanks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
