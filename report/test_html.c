/* SPDX-License-Identifier: MIT */
/* The page: well-formed whatever the names are, nothing from outside, and the data in it as it was.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include "fixture.h"
#include "html.h"

static const char hostile[] = "</script><script>alert(1)</script><!--<script \"'&amp;\x01\xff<b>";

static size_t count(const char *text, const char *what)
{
	size_t nr = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		nr++;
	return nr;
}

static bool is_void(const char *name)
{
	static const char *const names[] = {"meta", "link", "!doctype"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* The name after "<" or "</", lower case. */
static void tag_name(char name[32], const char *at)
{
	size_t n = 0;

	while (n < 31 && (isalnum((unsigned char)at[n]) || at[n] == '!')) {
		name[n] = (char)tolower((unsigned char)at[n]);
		n++;
	}
	name[n] = 0;
}

/* Past the tag at `at`, quoted attributes respected. */
static const char *tag_end(const char *at)
{
	char quote = 0;

	for (; *at && (quote || *at != '>'); at++) {
		if (quote)
			quote = *at == quote ? 0 : quote;
		else if (*at == '"' || *at == '\'')
			quote = *at;
	}
	assert_int_equal(*at, '>');
	return at + 1;
}

/* Every element that is opened is closed, in order; raw text elements end at their own end tag. */
static void check_elements(const char *html)
{
	char open[64][32];
	size_t depth = 0;

	for (const char *at = strchr(html, '<'); at; at = strchr(at, '<')) {
		char name[32];
		const bool end = at[1] == '/';

		tag_name(name, at + 1 + end);
		if (!name[0])
			fail_msg("a bare \"<\": %.40s", at);
		at = tag_end(at);
		if (end) {
			assert_true(depth > 0);
			assert_string_equal(open[--depth], name);
		} else if (!is_void(name)) {
			assert_true(depth < 64);
			strcpy(open[depth++], name);
			if (!strcmp(name, "script") || !strcmp(name, "style")) {
				char close[40];

				snprintf(close, sizeof(close), "</%s", name);
				at = strstr(at, close);
				assert_non_null(at);
			}
		}
	}
	assert_int_equal(depth, 0);
}

/* "&" always begins a reference that we use. */
static void check_references(const char *html)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	const char *end = strstr(html, "<script>"); /* the script itself may hold && */

	html = strstr(html, "</style>");
	assert_true(html && end);
	for (const char *at = strchr(html, '&'); at && at < end; at = strchr(at + 1, '&')) {
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			found |= !strncmp(at, known[i], strlen(known[i]));
		assert_true(found);
	}
}

static json_t *load_data(const char *html)
{
	static const char mark[] = "<script type=\"application/json\" id=\"data\">";
	const char *start = strstr(html, mark), *end;
	json_error_t error;
	json_t *data;

	assert_non_null(start);
	start += strlen(mark);
	end = strstr(start, "</script>");
	assert_null(memchr(start, '<', (size_t)(end - start)));
	data = json_loadb(start, (size_t)(end - start), 0, &error);
	if (!data)
		fail_msg("%s", error.text);
	return data;
}

static void test_hostile_names(void **state)
{
	struct fixture x = {0};
	char *html;
	json_t *data;

	(void)state;
	fixture_series(fixture_add(&x, hostile, "none", 1), 2, 3);
	fixture_series(fixture_add(&x, "plain", hostile, 2), 2, 3);
	x.runs[1].machine = hostile;
	x.runs[0].machine = hostile;
	x.runs[0].is_best = true;
	x.runs[0].best_text = (char *)hostile;
	x.results[1].timed_out = true;
	html = fixture_text(&x, report_html);
	check_elements(html);
	check_references(html);
	assert_int_equal(count(html, "<script"), 2); /* the data and the code */
	assert_int_equal(count(html, "</script"), 2);
	assert_int_equal(count(html, "<!--"), 0);
	assert_null(strstr(html, "<b>"));
	assert_null(strchr(html, '\x01'));
	data = load_data(html);
	assert_non_null(strstr(
		json_string_value(json_array_get(json_object_get(data, "jobs"), 0)), "</script>"));
	json_decref(data);
	free(html);
	fixture_free(&x);
}

static void test_nothing_from_outside(void **state)
{
	static const char *const outside[] = {
		"src=", "url(", "@import", "https:", "fetch(", "XMLHttp", "import("};
	struct fixture x = {0};
	char *html;

	(void)state;
	fixture_add(&x, "j", "s", 1);
	html = fixture_text(&x, report_html);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		assert_null(strstr(html, outside[i]));
	assert_int_equal(count(html, "http:"), 1); /* the name of the SVG name space */
	assert_int_equal(count(html, "href="), 1);
	assert_int_equal(count(html, "href=\"data:,\""), 1);
	free(html);
	fixture_free(&x);
}

static void test_data(void **state)
{
	struct fixture x = {0};
	char *html;
	json_t *data, *runs, *run;

	(void)state;
	fixture_series(fixture_add(&x, "j", "a", 1), 3, 4);
	fixture_series(fixture_add(&x, "j", "a", 1), 3, 9); /* a second iteration: not plotted */
	fixture_series(fixture_add(&x, "j", "b", 1), 1, 1);
	fixture_add(&x, "k", "b", 1);
	html = fixture_text(&x, report_html);
	data = load_data(html);
	runs = json_object_get(data, "runs");
	assert_int_equal(json_array_size(runs), 3);
	run = json_array_get(runs, 0);
	assert_int_equal(json_array_size(json_object_get(run, "t")), 4);
	assert_int_equal(json_array_size(json_object_get(run, "pages")), 3);
	assert_true(json_is_null(json_array_get(json_object_get(run, "local"), 0))); /* NaN */
	assert_true(json_real_value(json_array_get(json_object_get(run, "local"), 1)) == 0.25);
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(run, "faults"), 3)), 300);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(run, "moved"), 3)), 30);
	assert_int_equal(json_integer_value(json_array_get(
				 json_array_get(json_object_get(run, "pages"), 2), 3)),
		203);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(run, "nodes"), 2)), 4);
	run = json_array_get(runs, 2);
	assert_int_equal(json_integer_value(json_object_get(run, "job")), 1);
	assert_int_equal(json_integer_value(json_object_get(run, "system")), 1);
	assert_int_equal(count(html, "<section class=\"job\">"), 2);
	json_decref(data);
	free(html);
	fixture_free(&x);
}

static void test_summary(void **state)
{
	struct fixture x = {0};
	char *html;

	(void)state;
	fixture_add(&x, "j", "none", 200);
	fixture_add(&x, "j", "better", 50);
	fixture_add(&x, "j", "worse", 250);
	html = fixture_text(&x, report_html);
	assert_non_null(strstr(html, "<td>50.00<small class=\"good\">+75.00 %</small></td>"));
	assert_non_null(strstr(html, "<td>250.00<small class=\"bad\">-25.00 %</small></td>"));
	assert_non_null(strstr(html, "style=\"width:100.00%\""));
	assert_non_null(strstr(html, "style=\"width:20.00%\""));
	free(html);
	fixture_free(&x);
}

static void test_extremes(void **state)
{
	struct fixture x = {0};
	char *html = fixture_text(&x, report_html);

	(void)state;
	check_elements(html);
	free(html);
	fixture_add(&x, "", "", NAN);
	fixture_add(&x, "zero", "", 0);
	fixture_add(&x, "huge", "", 1e300)->operations = 1e308;
	fixture_add(&x, "inf", "", INFINITY);
	html = fixture_text(&x, report_html);
	check_elements(html);
	json_decref(load_data(html));
	free(html);
	fixture_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_nothing_from_outside),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
