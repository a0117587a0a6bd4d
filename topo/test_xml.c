/* SPDX-License-Identifier: MIT */
/* The XML that is read, and what is refused before anything looks at it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "xml.h"

/* Read to the end: the problem, or NULL when there is none. */
static const char *problem_of(const char *text, unsigned int *elements)
{
	struct topo_xml x;
	enum topo_xml_event event;

	*elements = 0;
	topo_xml_begin(&x, text, strlen(text));
	while ((event = topo_xml_next(&x)) != TOPO_XML_END && event != TOPO_XML_BAD)
		*elements += event == TOPO_XML_OPEN;
	return event == TOPO_XML_BAD ? x.problem : NULL;
}

static void good(void **state)
{
	static const struct {
		const char *text;
		unsigned int elements;
	} cases[] = {
		{"<a/>", 1},
		{"<a></a>", 1},
		{"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<a b=\"1\" "
		 "c='2'><d e = \"\"/>text</a >\n",
			2},
		{"<!-- <x> --><a><!-- > --><b/></a><!-- -->", 2},
		{"<a b=\"&quot;&#10;>\"/>", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int elements;
		const char *problem = problem_of(cases[i].text, &elements);

		if (problem)
			fail_msg("%s: %s", cases[i].text, problem);
		assert_int_equal(elements, cases[i].elements);
	}
}

static void bad(void **state)
{
	static const struct {
		const char *text, *problem;
	} cases[] = {
		{"", "no element"},
		{"  \n", "no element"},
		{"text", "text outside"},
		{"<a/>text", "text outside"},
		{"<a/><b/>", "a second root"},
		{"<a>", "truncated"},
		{"<a><b></b>", "truncated"},
		{"<a></b>", "does not match"},
		{"</a>", "does not match"},
		{"<a><b></a></b>", "does not match"},
		{"<a", "neither closed"},
		{"<a ", "neither closed"},
		{"<a b", "neither closed"},
		{"<a b=", "without quotes"},
		{"<a b=1/>", "without quotes"},
		{"<a b=\"1/>", "without end"},
		{"<a b=\"<\"/>", "a '<' in an attribute"},
		{"<a/ >", "neither closed"},
		{"<>", "begins no tag"},
		{"< a/>", "begins no tag"},
		{"<a><", "begins no tag"},
		{"<!--", "comment without end"},
		{"<?xml", "instruction without end"},
		{"<!DOCTYPE a", "DOCTYPE without end"},
		{"<!DOCTYPE a [<!ENTITY x \"y\">]><a/>", "DOCTYPE with declarations"},
		{"<!DOCTYPE a [ ]><a/>", "DOCTYPE with declarations"},
		{"<!ENTITY x \"y\"><a/>", "expected elements"},
		{"<a><![CDATA[x]]></a>", "CDATA"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int elements;
		const char *problem = problem_of(cases[i].text, &elements);

		if (!problem || !strstr(problem, cases[i].problem))
			fail_msg("%s: %s; expected %s", cases[i].text,
				problem ? problem : "accepted", cases[i].problem);
	}
}

static void bounds(void **state)
{
	char deep[4 * TOPO_XML_DEPTH + 16] = "", wide[8 * TOPO_XML_ATTRS + 32] = "<a";
	unsigned int elements;

	(void)state;
	for (int i = 0; i <= TOPO_XML_DEPTH; i++)
		strcat(deep, "<a>");
	assert_string_equal(problem_of(deep, &elements), "elements nested too deeply");
	assert_int_equal(elements, TOPO_XML_DEPTH);
	for (int i = 0; i <= TOPO_XML_ATTRS; i++)
		strcat(wide, " b=\"1\"");
	strcat(wide, "/>");
	assert_string_equal(problem_of(wide, &elements), "too many attributes");
}

static void values_and_lines(void **state)
{
	static const char text[] = "<a>\n <b one=\"1\"\n two='2'/>\n</a>";
	struct topo_xml x;

	(void)state;
	topo_xml_begin(&x, text, strlen(text));
	assert_int_equal(topo_xml_next(&x), TOPO_XML_OPEN);
	assert_int_equal(x.line, 1);
	assert_int_equal(topo_xml_next(&x), TOPO_XML_OPEN);
	assert_int_equal(x.line, 3);
	assert_true(topo_slice_is(topo_xml_value(&x, "one"), "1"));
	assert_true(topo_slice_is(topo_xml_value(&x, "two"), "2"));
	assert_null(topo_xml_value(&x, "tw").at);
	assert_int_equal(topo_xml_next(&x), TOPO_XML_CLOSE);
	assert_int_equal(topo_xml_next(&x), TOPO_XML_CLOSE);
	assert_true(topo_slice_is(x.name, "a"));
	assert_int_equal(topo_xml_next(&x), TOPO_XML_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(bounds),
		cmocka_unit_test(values_and_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
