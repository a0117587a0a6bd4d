/* SPDX-License-Identifier: MIT */
/* explain and traces: small recordings made by hand, and what must be said of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include "explain.h"
#include "fixture.h"
#include "trace.h"

enum { WHY = 300 };

#define MS     UINT64_C(1000000)
#define BASE   UINT64_C(0x10000000)
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static char path[] = "/tmp/numabal-test-explain-XXXXXX";
static const int node_ids[] = {0, 8};

/*
 * Two address spaces with a VMA of 1024 pages at the same place. In mm 1, page BASE + 0x3000 is
 * armed, faulted twice, moved once; then the VMA is passed over. In mm 2 nothing is ever scanned.
 */
static const struct nb_event story[] = {
	{.time_ns = 0,
		.type = NB_EVENT_VMA_MAP,
		.mm = 1,
		.addr = BASE,
		.pages = 1024,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 0,
		.type = NB_EVENT_VMA_MAP,
		.mm = 2,
		.addr = BASE,
		.pages = 1024,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 500 * MS,
		.type = NB_EVENT_SCAN_SKIP,
		.mm = 2,
		.task = 21,
		.reason = NB_SKIP_FIRST_NODE,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 1000 * MS,
		.type = NB_EVENT_SCAN_START,
		.mm = 1,
		.task = 11,
		.arg = 1000,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 1000 * MS,
		.type = NB_EVENT_SCAN_ARM,
		.mm = 1,
		.task = 11,
		.addr = BASE,
		.pages = 100,
		.arg = 120,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 1000 * MS,
		.type = NB_EVENT_SCAN_END,
		.mm = 1,
		.task = 11,
		.addr = BASE + 0x200000,
		.pages = 100,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 1100 * MS,
		.type = NB_EVENT_HINT_FAULT,
		.mm = 1,
		.task = 11,
		.addr = BASE + 0x3000,
		.pages = 1,
		.node_from = 0,
		.node_to = 1,
		.reason = NB_WHY_FILTERED},
	{.time_ns = 1150 * MS,
		.type = NB_EVENT_HINT_FAULT,
		.mm = 1,
		.task = 11,
		.addr = BASE + 0x9000,
		.pages = 1,
		.node_from = 0,
		.node_to = 0,
		.reason = NB_WHY_IN_PLACE},
	{.time_ns = 1200 * MS,
		.type = NB_EVENT_HINT_FAULT,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x3000,
		.pages = 1,
		.node_from = 0,
		.node_to = 1,
		.write = 1,
		.reason = NB_WHY_MOVE},
	{.time_ns = 1200 * MS,
		.type = NB_EVENT_MOVE_ASKED,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x3000,
		.pages = 1,
		.node_from = 0,
		.node_to = 1},
	{.time_ns = 1200 * MS,
		.type = NB_EVENT_MOVE_DONE,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x3000,
		.pages = 1,
		.node_from = 0,
		.node_to = 1},
	{.time_ns = 1300 * MS,
		.type = NB_EVENT_HINT_FAULT,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x200000,
		.pages = 512,
		.huge = 1,
		.node_from = 0,
		.node_to = 1,
		.reason = NB_WHY_MOVE},
	{.time_ns = 1300 * MS,
		.type = NB_EVENT_MOVE_ASKED,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x200000,
		.pages = 512,
		.huge = 1,
		.node_from = 0,
		.node_to = 1},
	{.time_ns = 1310 * MS,
		.type = NB_EVENT_MOVE_FAILED,
		.mm = 1,
		.task = 12,
		.addr = BASE + 0x200000,
		.pages = 512,
		.huge = 1,
		.node_from = 0,
		.node_to = 1,
		.reason = NB_MOVE_BUSY},
	{.time_ns = 2000 * MS,
		.type = NB_EVENT_SCAN_SKIP,
		.mm = 1,
		.task = 11,
		.addr = BASE,
		.pages = 1024,
		.reason = NB_SKIP_PID_INACTIVE,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 3000 * MS,
		.type = NB_EVENT_SCAN_SKIP,
		.mm = 1,
		.task = 12,
		.addr = BASE,
		.pages = 1024,
		.reason = NB_SKIP_PID_INACTIVE,
		.node_from = -1,
		.node_to = -1},
	{.time_ns = 4000 * MS,
		.type = NB_EVENT_SCAN_SKIP,
		.mm = 1,
		.task = 11,
		.addr = BASE,
		.pages = 1024,
		.reason = NB_SKIP_PID_INACTIVE,
		.node_from = -1,
		.node_to = -1},
};

static void record(const struct nb_event *events, size_t nr)
{
	static const struct report_area area = {1, BASE + 0x2000, BASE + 0x4000, "the heap"};
	const struct report_record_header header = {
		.machine = "m",
		.job = "j",
		.system = "s",
		.iteration = 1,
		.seed = 42,
		.nr_nodes = 2,
		.node_ids = node_ids,
		.nr_areas = 1,
		.areas = &area,
	};
	struct report_recorder *r;
	char why[WHY];

	assert_int_equal(report_record_open(&r, path, &header, why, sizeof(why)), 0);
	for (size_t i = 0; i < nr; i++)
		report_record_event(r, &events[i]);
	if (report_record_close(r, why, sizeof(why)))
		fail_msg("%s", why);
}

/* What explain prints, or NULL with its error. */
static char *explain(struct report_explain_options options, int *err, char *why)
{
	struct report_reader *reader;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(report_reader_open(&reader, path, why, WHY), 0);
	*err = report_explain(f, reader, &options, why, WHY);
	fclose(f);
	report_reader_close(reader);
	if (!*err)
		return text;
	free(text);
	return NULL;
}

static char *explain_target(
	const char *target, enum report_target_kind kind, uint64_t limit, bool json)
{
	struct report_explain_options options = {.limit = limit, .json = json};
	char why[WHY] = "", *text;
	int err;

	assert_int_equal(report_target_parse(&options.target, kind, target, why, sizeof(why)), 0);
	text = explain(options, &err, why);
	if (!text)
		fail_msg("%d: %s", err, why);
	return text;
}

static void assert_lines_in_order(const char *text, const char *const *lines, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const char *at = strstr(text, lines[i]);

		if (!at)
			fail_msg("\"%s\" is not in what is left:\n%s", lines[i], text);
		text = at + strlen(lines[i]);
	}
}

static size_t count(const char *text, const char *what)
{
	size_t nr = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		nr++;
	return nr;
}

static void test_page(void **state)
{
	static const char *const lines[] = {
		"The page at 0x10003000 in mm 1\n",
		"In the area the heap\n",
		"      0.000000 s  mapped: 0x10000000 to 0x10400000, 1024 pages\n",
		"      1.000000 s  a scan by task 11 armed it from 0x10000000 on: 100 pages of 120 "
		"present\n",
		"      1.100000 s  hint fault (read) on the page at 0x10003000 by task 11 on node "
		"8, the page on node 0: "
		"filtered: two-stage filter: the last fault came from another node\n",
		"      1.200000 s  hint fault (write) on the page at 0x10003000 by task 12 on node "
		"8, the page on node 0: "
		"move: misplaced",
		"      1.200000 s  a move was asked for: 1 pages at 0x10003000 from node 0 to node "
		"8\n",
		"      1.200000 s  moved: 1 pages at 0x10003000 from node 0 to node 8\n",
		"      2.000000 s  a scan by task 11 passed it over: pid_inactive: this task did "
		"not touch it lately "
		"(3 times until 4.000000 s)\n",
		"Summary\n",
		"  armed by scans: 1 times, 1.000000 s to 1.000000 s, 100 pages\n",
		"  passed over for pid_inactive: 3 times, 2.000000 s to 4.000000 s",
		"  not scanned at the end: pid_inactive, since 2.000000 s\n",
		"  hint faults: 2, local: 0\n",
		"    from node 8: 2\n",
		"    move: 1",
		"    filtered: 1",
		"  pages asked to move: 1, moved: 1\n",
		"    node 0 to node 8: 1\n",
		"  1 VMAs of other address spaces hold this address too",
	};
	char *text;

	(void)state;
	record(story, LEN(story));
	text = explain_target("0x10003abc", REPORT_TARGET_PAGE, 1000, false);
	assert_lines_in_order(text, lines, LEN(lines));
	assert_null(strstr(text, "0x10009000")); /* another page's fault */
	assert_null(strstr(text, "0x10200000"));
	assert_null(strstr(text, "first_node")); /* another address space's scan */
	free(text);
}

/* Past what the scan reached: the SCAN_END names 0x10200000. */
static void test_page_beyond_the_window(void **state)
{
	char *text;

	(void)state;
	record(story, LEN(story));
	text = explain_target("1:0x102ff000", REPORT_TARGET_PAGE, 1000, false);
	assert_non_null(strstr(text, "  never armed by a scan\n"));
	assert_non_null(strstr(
		text, "hint fault (read) on the huge page at 0x10200000")); /* it is in there */
	assert_non_null(
		strstr(text, "not moved: 512 pages at 0x10200000 from node 0 to node 8: busy: "));
	assert_non_null(strstr(text, "    not moved, busy: 512"));
	free(text);
}

/* The other side of the hole: 120 pages were present, but the window reached further than 120
 * pages. */
static void test_page_behind_holes(void **state)
{
	char *text;

	(void)state;
	record(story, LEN(story));
	text = explain_target("1:0x101ff000", REPORT_TARGET_PAGE, 1000, false);
	assert_non_null(strstr(text, "a scan by task 11 armed it"));
	free(text);
}

static void test_vma(void **state)
{
	char *first, *by_address, *never;

	(void)state;
	record(story, LEN(story));
	first = explain_target("1", REPORT_TARGET_VMA, 1000, false);
	by_address = explain_target("1:0x10200000", REPORT_TARGET_VMA, 1000, false);
	assert_string_equal(first, by_address);
	assert_non_null(strstr(first, "VMA 1, 0x10000000 in mm 1\n"));
	assert_int_equal(count(first, "hint fault ("), 4);
	assert_non_null(strstr(first, "  hint faults: 4, local: 1\n"));
	never = explain_target("2", REPORT_TARGET_VMA, 1000, false);
	assert_non_null(strstr(never, "  never armed by a scan\n"));
	assert_non_null(strstr(never, "passed it over: first_node"));
	assert_non_null(strstr(never, "  not scanned at the end: first_node, since 0.500000 s\n"));
	assert_null(strstr(never, "hint fault ("));
	free(first);
	free(by_address);
	free(never);
}

static void test_limit(void **state)
{
	char *text;

	(void)state;
	record(story, LEN(story));
	text = explain_target("1", REPORT_TARGET_VMA, 3, false);
	assert_int_equal(count(text, " s  "), 3);
	assert_non_null(strstr(text, "... and 8 more lines, left out (limit 3)\n"));
	assert_non_null(
		strstr(text, "  hint faults: 4, local: 1\n")); /* the summary is of everything */
	free(text);
}

static void test_json(void **state)
{
	char *text;
	json_t *root, *events, *summary;

	(void)state;
	record(story, LEN(story));
	text = explain_target("1", REPORT_TARGET_VMA, 5, true);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "schema")), REPORT_SCHEMA);
	events = json_object_get(root, "events");
	assert_int_equal(json_array_size(events), 5);
	assert_string_equal(json_string_value(json_object_get(json_array_get(events, 2), "event")),
		"hint_fault");
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(events, 2), "node_to")), 8);
	assert_int_equal(json_integer_value(json_object_get(root, "left_out")), 6);
	summary = json_object_get(root, "summary");
	assert_int_equal(json_integer_value(json_object_get(summary, "hint_faults")), 4);
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(summary, "not_scanned"), "reason")),
		"pid_inactive");
	json_decref(root);
	free(text);
	text = explain_target("1", REPORT_TARGET_VMA, 0, true);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	json_decref(root);
	free(text);
}

static void test_not_there(void **state)
{
	static const struct {
		const char *target;
		enum report_target_kind kind;
		const char *says;
	} absent[] = {
		{"3", REPORT_TARGET_VMA, "no VMA 3: 2 were mapped"},
		{"3:0x10000000", REPORT_TARGET_VMA, "no VMA of mm 3 held 0x10000000"},
		{"0xfffffff", REPORT_TARGET_PAGE, "no VMA held 0xfffffff"},
		{"0x10400000", REPORT_TARGET_PAGE,
			"no VMA held 0x10400000"}, /* the first byte after it */
	};

	(void)state;
	record(story, LEN(story));
	for (size_t i = 0; i < LEN(absent); i++) {
		struct report_explain_options options = {.limit = 10};
		char why[WHY] = "";
		int err;

		assert_int_equal(report_target_parse(&options.target, absent[i].kind,
					 absent[i].target, why, sizeof(why)),
			0);
		assert_null(explain(options, &err, why));
		assert_int_equal(err, -ENOENT);
		assert_non_null(strstr(why, absent[i].says));
	}
}

/* Unmapped and mapped again: a page is followed into the new VMA, a numbered VMA is not. */
static void test_mapped_again(void **state)
{
	static const struct nb_event events[] = {
		{.time_ns = 0,
			.type = NB_EVENT_VMA_MAP,
			.mm = 1,
			.addr = BASE,
			.pages = 512,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 1,
			.type = NB_EVENT_VMA_UNMAP,
			.mm = 1,
			.addr = BASE,
			.pages = 512,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 2,
			.type = NB_EVENT_SCAN_SKIP,
			.mm = 1,
			.reason = NB_SKIP_DISABLED,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 3,
			.type = NB_EVENT_VMA_MAP,
			.mm = 1,
			.addr = BASE,
			.pages = 256,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 4,
			.type = NB_EVENT_HINT_FAULT,
			.mm = 1,
			.addr = BASE,
			.pages = 1,
			.node_from = 0,
			.node_to = 1},
		{.time_ns = 5, .type = NB_EVENT_MM_GONE, .mm = 1, .node_from = -1, .node_to = -1},
		{.time_ns = 6,
			.type = NB_EVENT_SCAN_SKIP,
			.mm = 1,
			.reason = NB_SKIP_DISABLED,
			.node_from = -1,
			.node_to = -1},
	};
	char *text;

	(void)state;
	record(events, LEN(events));
	text = explain_target("0x10000000", REPORT_TARGET_PAGE, 100, false);
	assert_int_equal(count(text, "s  mapped:"), 2);
	assert_int_equal(count(text, "s  unmapped:"), 1);
	assert_int_equal(count(text, "hint fault ("), 1);
	assert_int_equal(count(text, "an address space went"), 1);
	assert_null(strstr(text, "disabled")); /* it was not mapped then */
	free(text);
	text = explain_target("1", REPORT_TARGET_VMA, 100, false);
	assert_int_equal(count(text, " s  "), 2);
	free(text);
}

static void test_targets(void **state)
{
	static const struct {
		const char *text;
		enum report_target_kind kind;
		int err;
		struct report_target target;
	} cases[] = {
		{"0x0", REPORT_TARGET_PAGE, 0, {.kind = REPORT_TARGET_PAGE}},
		{"7:0xFfF", REPORT_TARGET_PAGE, 0,
			{.kind = REPORT_TARGET_PAGE, .has_mm = true, .mm = 7, .addr = 0xfff}},
		{"0xffffffffffffffff", REPORT_TARGET_PAGE, 0,
			{.kind = REPORT_TARGET_PAGE, .addr = UINT64_MAX}},
		{"12", REPORT_TARGET_VMA, 0, {.kind = REPORT_TARGET_VMA, .number = 12}},
		{"0x10", REPORT_TARGET_VMA, 0, {.kind = REPORT_TARGET_VMA, .addr = 16}},
		{"12", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"", REPORT_TARGET_VMA, -EINVAL, {0}},
		{"0", REPORT_TARGET_VMA, -ERANGE, {0}},
		{"-1", REPORT_TARGET_VMA, -EINVAL, {0}},
		{"99999999999999999999999999", REPORT_TARGET_VMA, -ERANGE, {0}},
		{"0x", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"0x-1", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"0x 1", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"0x1g", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"0x10000000000000000", REPORT_TARGET_PAGE, -ERANGE, {0}},
		{":0x1", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"x:0x1", REPORT_TARGET_PAGE, -EINVAL, {0}},
		{"4294967296:0x1", REPORT_TARGET_PAGE, -ERANGE, {0}},
		{"1:2:0x3", REPORT_TARGET_PAGE, -EINVAL, {0}},
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		struct report_target t = {0};
		char why[WHY] = "";

		if (report_target_parse(&t, cases[i].kind, cases[i].text, why, sizeof(why)) !=
			cases[i].err)
			fail_msg("\"%s\": %s", cases[i].text, why);
		assert_true(t.kind == cases[i].target.kind && t.has_mm == cases[i].target.has_mm &&
			    t.mm == cases[i].target.mm && t.addr == cases[i].target.addr &&
			    t.number == cases[i].target.number);
		assert_true(!cases[i].err == !why[0]);
	}
}

/* ---- traces ---- */

static void test_trace(void **state)
{
	static const char *const lines[] = {
		"mm1 11 [000] 1.000000: numabal:scan_start: mm=1 task=11 addr=30000000 pages=0 "
		"node_from=-1 node_to=-1 "
		"arg=1000 huge=0 write=0\n",
		"mm1 11 [000] 1.000000: sched:sched_skip_vma_numa: numa_scan_offset=30000000 "
		"vm_start=10000000 "
		"vm_end=10400000 reason=shared_ro\n",
		"mm1 12 [000] 1.000001: migrate:mm_numa_migrate_ratelimit: comm=mm1 pid=12 "
		"dst_nid=8 nr_pages=512\n",
		"mm1 12 [000] 1.000001: numabal:hint_fault: mm=1 task=12 addr=10000000 pages=512 "
		"node_from=0 node_to=8 "
		"arg=0 huge=1 write=1 reason=ratelimited\n",
		"mm1 12 [000] 2.000000: migrate:mm_migrate_pages: nr_succeeded=512 nr_failed=0 "
		"mode=MIGRATE_ASYNC "
		"reason=numa_misplaced\n",
		"mm1 12 [000] 2.000000: migrate:mm_migrate_pages: nr_succeeded=0 nr_failed=3 "
		"mode=MIGRATE_ASYNC "
		"reason=numa_misplaced\n",
	};
	static const struct nb_event events[] = {
		{.time_ns = 1000 * MS,
			.type = NB_EVENT_SCAN_START,
			.mm = 1,
			.task = 11,
			.addr = 0x30000000,
			.arg = 1000,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 1000 * MS,
			.type = NB_EVENT_SCAN_SKIP,
			.mm = 1,
			.task = 11,
			.addr = BASE,
			.pages = 1024,
			.reason = NB_SKIP_SHARED_RO,
			.node_from = -1,
			.node_to = -1},
		{.time_ns = 1000 * MS + 1999,
			.type = NB_EVENT_HINT_FAULT,
			.mm = 1,
			.task = 12,
			.addr = BASE,
			.pages = 512,
			.reason = NB_WHY_RATELIMITED,
			.node_from = 0,
			.node_to = 1,
			.huge = 1,
			.write = 1},
		{.time_ns = 2000 * MS,
			.type = NB_EVENT_MOVE_DONE,
			.mm = 1,
			.task = 12,
			.addr = BASE,
			.pages = 512,
			.node_from = 0,
			.node_to = 1,
			.huge = 1},
		{.time_ns = 2000 * MS,
			.type = NB_EVENT_MOVE_FAILED,
			.mm = 1,
			.task = 12,
			.addr = BASE,
			.pages = 3,
			.node_from = 0,
			.node_to = 1},
	};
	char *text = NULL;
	size_t len = 0;
	struct report_tracer tracer = {.f = open_memstream(&text, &len), .node_ids = node_ids};

	(void)state;
	for (size_t i = 0; i < LEN(events); i++)
		report_trace_event(&tracer, &events[i]);
	fclose(tracer.f);
	assert_lines_in_order(text, lines, LEN(lines));
	assert_int_equal(count(text, "\n"), LEN(lines));
	free(text);
}

static void test_trace_of_tasks(void **state)
{
	static const char *const lines[] = {
		"mm1 12 [000] 2.500000: sched:sched_move_numa: pid=12 tgid=1 ngid=0 src_cpu=-1 "
		"src_nid=0 dst_cpu=-1 dst_nid=8\n",
		"mm1 12 [000] 2.500000: sched:sched_swap_numa: src_pid=12 src_tgid=1 src_ngid=0 "
		"src_cpu=-1 src_nid=8 dst_pid=13 dst_tgid=0 dst_ngid=0 dst_cpu=-1 dst_nid=0\n",
	};
	static const struct nb_event events[] = {
		{.time_ns = 2500 * MS,
			.type = NB_EVENT_TASK_MOVE,
			.mm = 1,
			.task = 12,
			.node_from = 0,
			.node_to = 1},
		{.time_ns = 2500 * MS,
			.type = NB_EVENT_TASK_SWAP,
			.mm = 1,
			.task = 12,
			.arg = 13,
			.node_from = 1,
			.node_to = 0},
	};
	char *text = NULL;
	size_t len = 0;
	struct report_tracer tracer = {.f = open_memstream(&text, &len), .node_ids = node_ids};

	(void)state;
	for (size_t i = 0; i < LEN(events); i++)
		report_trace_event(&tracer, &events[i]);
	fclose(tracer.f);
	assert_lines_in_order(text, lines, LEN(lines));
	assert_int_equal(count(text, "\n"), LEN(lines));
	free(text);
}

static int setup(void **state)
{
	const int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_beyond_the_window),
		cmocka_unit_test(test_page_behind_holes),
		cmocka_unit_test(test_vma),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_mapped_again),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_trace_of_tasks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
