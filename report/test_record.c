/* SPDX-License-Identifier: MIT */
/* Recordings: what goes in comes out; whatever is damaged is refused with a line, never with a
 * crash. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <cmocka.h>
#include "record.h"
#include "record_format.h"

enum { WHY = 300, SMALL = 30, MANY = 5000 };

static char dir[] = "/tmp/numabal-test-record-XXXXXX";
static char path[64];

static const int node_ids[] = {0, 8, 252};
static const struct report_area areas[] = {
	{1, 0x1000, 0x2000, "heap \"x\""}, {UINT32_MAX, UINT64_MAX - 1, UINT64_MAX, ""}};
static const struct report_record_header header = {
	.machine = "m",
	.job = "j\n",
	.system = "s",
	.iteration = 3,
	.seed = UINT64_MAX,
	.nr_nodes = 3,
	.node_ids = node_ids,
	.nr_areas = 2,
	.areas = areas,
};

/* An event of every type in turn, every field in use. */
static struct nb_event event_at(uint32_t i)
{
	return (struct nb_event){
		.time_ns = 1000 * (uint64_t)(i / 3), /* equal times are in order */
		.addr = UINT64_C(0x7f0000000000) + 4096 * (uint64_t)i,
		.pages = i,
		.mm = i % 3,
		.task = i * 7,
		.arg = UINT32_MAX - i,
		.node_from = (int16_t)(i % 4 - 1),
		.node_to = (int16_t)(i % 3),
		.type = (uint8_t)(i % NB_NR_EVENTS),
		.reason = (uint8_t)(i % NB_NR_MOVE_STATUSES),
		.huge = i % 2,
		.write = i / 2 % 2,
	};
}

static void record(uint32_t nr)
{
	struct report_recorder *r;
	char why[WHY];

	assert_int_equal(report_record_open(&r, path, &header, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < nr; i++) {
		const struct nb_event e = event_at(i);

		report_record_event(r, &e);
	}
	assert_int_equal(report_record_close(r, why, sizeof(why)), 0);
}

/* Read everything; the number of events, or -errno. Each event must be event_at() of its number. */
static int read_all(struct report_reader *r, char *why)
{
	struct nb_event e;
	int got, nr = 0;

	while ((got = report_reader_next(r, &e, why, WHY)) > 0) {
		const struct nb_event expected = event_at((uint32_t)nr++);

		assert_memory_equal(&e, &expected, sizeof(e));
	}
	return got < 0 ? got : nr;
}

static int read_memory(const void *data, size_t len, char *why)
{
	struct report_reader *r;
	FILE *f = fmemopen((void *)data, len ? len : 1, "rb");
	int err;

	assert_non_null(f);
	if (!len)
		fgetc(f);
	err = report_reader_open_stream(&r, f, "memory", why, WHY);
	if (err)
		return err;
	err = read_all(r, why);
	report_reader_close(r);
	return err;
}

static char *load(size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *data = malloc(1 << 20);

	assert_non_null(f);
	*len = fread(data, 1, 1 << 20, f);
	fclose(f);
	return data;
}

static void assert_one_line(const char *why)
{
	assert_true(why[0] != 0);
	assert_null(strchr(why, '\n'));
}

static void test_round_trip(void **state)
{
	struct report_reader *r;
	const struct report_record_header *h;
	char why[WHY] = "";

	(void)state;
	record(MANY);
	assert_int_equal(report_reader_open(&r, path, why, sizeof(why)), 0);
	h = report_reader_header(r);
	assert_string_equal(h->version, NB_VERSION);
	assert_string_equal(h->machine, "m");
	assert_string_equal(h->job, "j\n");
	assert_string_equal(h->system, "s");
	assert_int_equal(h->iteration, 3);
	assert_true(h->seed == UINT64_MAX);
	assert_int_equal(h->nr_nodes, 3);
	assert_int_equal(h->node_ids[2], 252);
	assert_int_equal(h->nr_areas, 2);
	assert_string_equal(h->areas[0].name, "heap \"x\"");
	assert_true(h->areas[1].mm == UINT32_MAX && h->areas[1].end == UINT64_MAX);
	assert_int_equal(read_all(r, why), MANY);
	report_reader_close(r);
}

static void test_no_events(void **state)
{
	char why[WHY];
	char *data;
	size_t len;

	(void)state;
	record(0);
	data = load(&len);
	assert_int_equal(read_memory(data, len, why), 0);
	free(data);
}

static void test_same_bytes(void **state)
{
	char *first, *second;
	size_t len, len2;

	(void)state;
	record(SMALL);
	first = load(&len);
	record(SMALL);
	second = load(&len2);
	assert_int_equal(len, len2);
	assert_memory_equal(first, second, len);
	free(first);
	free(second);
}

static void test_truncated_anywhere(void **state)
{
	char *data;
	size_t len;

	(void)state;
	record(SMALL);
	data = load(&len);
	for (size_t kept = 0; kept < len; kept++) {
		char why[WHY] = "";
		char *copy = malloc(kept + 1); /* exact, for sanitizers */

		memcpy(copy, data, kept);
		assert_true(read_memory(copy, kept, why) < 0);
		assert_one_line(why);
		free(copy);
	}
	assert_int_equal(read_memory(data, len, (char[WHY]){""}), SMALL);
	free(data);
}

/* Either the damage is seen, or it did not touch anything that is read. */
static void test_every_byte_flipped(void **state)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	char *data;
	size_t len, refused = 0;

	(void)state;
	record(SMALL);
	data = load(&len);
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			char why[WHY] = "";
			int got;

			data[i] ^= (char)flips[k];
			got = read_memory(data, len, why);
			data[i] ^= (char)flips[k];
			if (got < 0)
				assert_one_line(why);
			else
				assert_int_equal(got, SMALL);
			refused += got < 0;
		}
	}
	assert_true(refused > 2 * len);
	free(data);
}

/* ---- files made by hand ---- */

#define GOOD_HEADER                                                                                \
	"{\"version\":\"0\",\"machine\":\"m\",\"job\":\"j\",\"system\":\"s\",\"iteration\":1,"     \
	"\"seed\":1,"                                                                              \
	"\"nodes\":[0,1],\"areas\":[],\"skips\":[\"pid_inactive\"],\"whys\":[\"filtered\","        \
	"\"move\"],"                                                                               \
	"\"moves\":[\"busy\"],\"events\":[\"hint_fault\",\"scan_skip\",\"move_failed\"]}"

struct made {
	uint32_t schema;
	const char *magic, *json;
	const struct nb_event *events;
	size_t nr_events;
	size_t cut; /* bytes missing at the end of the content */
};

/* Compress what was made and open it. 0 with *r, or -errno. */
static int open_made(struct report_reader **r, const struct made *m, char *why)
{
	struct record_prefix prefix = {
		.schema = m->schema, .header_len = (uint32_t)strlen(m->json)};
	const size_t events = m->nr_events * sizeof(*m->events);
	const size_t size = sizeof(prefix) + prefix.header_len + events - m->cut;
	char *content = malloc(size + m->cut + 1);
	static char packed[1 << 16];
	size_t len;

	memcpy(prefix.magic, m->magic, sizeof(prefix.magic));
	memcpy(content, &prefix, sizeof(prefix));
	memcpy(content + sizeof(prefix), m->json, prefix.header_len);
	if (events)
		memcpy(content + sizeof(prefix) + prefix.header_len, m->events, events);
	len = ZSTD_compress(packed, sizeof(packed), content, size, 1);
	free(content);
	assert_false(ZSTD_isError(len));
	return report_reader_open_stream(r, fmemopen(packed, len, "rb"), "made", why, WHY);
}

/* Numbers are those of the recording's own tables, whatever ours are. */
static void test_other_numbering(void **state)
{
	const struct nb_event events[] = {
		{.type = 0, .reason = 0, .node_from = 0, .node_to = 1},
		{.type = 0, .reason = 1, .node_from = 0, .node_to = 1},
		{.type = 1, .reason = 0, .node_from = -1, .node_to = -1},
		{.type = 2, .reason = 0, .node_from = 0, .node_to = 1},
	};
	static const uint8_t expected[][2] = {
		{NB_EVENT_HINT_FAULT, NB_WHY_FILTERED},
		{NB_EVENT_HINT_FAULT, NB_WHY_MOVE},
		{NB_EVENT_SCAN_SKIP, NB_SKIP_PID_INACTIVE},
		{NB_EVENT_MOVE_FAILED, NB_MOVE_BUSY},
	};
	struct report_reader *r;
	struct nb_event e;
	char why[WHY];

	(void)state;
	assert_int_equal(
		open_made(&r, &(struct made){1, RECORD_MAGIC, GOOD_HEADER, events, 4, 0}, why), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(report_reader_next(r, &e, why, sizeof(why)), 1);
		assert_int_equal(e.type, expected[i][0]);
		assert_int_equal(e.reason, expected[i][1]);
	}
	assert_int_equal(report_reader_next(r, &e, why, sizeof(why)), 0);
	report_reader_close(r);
}

static void test_bad_events(void **state)
{
	static const struct {
		struct nb_event events[2];
		const char *says;
	} bad[] = {
		{{{.time_ns = 5}, {.time_ns = 4}}, "event 2 has a time before the event before it"},
		{{{.type = 3}}, "an unknown type"},
		{{{.type = 255}}, "an unknown type"},
		{{{.type = 0, .reason = 2}}, "an unknown reason"},
		{{{.type = 1, .reason = 1}}, "an unknown reason"},
		{{{.node_to = 2}}, "a node that the machine does not have"},
		{{{.node_from = -2}}, "a node that the machine does not have"},
		{{{.node_from = INT16_MAX}}, "a node that the machine does not have"},
		{{{.huge = 2}}, "a flag that is neither 0 nor 1"},
		{{{.write = 255}}, "a flag that is neither 0 nor 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct report_reader *r;
		struct nb_event e;
		char why[WHY] = "";
		int got;

		assert_int_equal(
			open_made(&r,
				&(struct made){1, RECORD_MAGIC, GOOD_HEADER, bad[i].events, 2, 0},
				why),
			0);
		while ((got = report_reader_next(r, &e, why, sizeof(why))) > 0)
			;
		assert_int_equal(got, -EINVAL);
		assert_non_null(strstr(why, bad[i].says));
		report_reader_close(r);
	}
}

static void test_cut_event(void **state)
{
	const struct nb_event events[2] = {{0}};
	struct report_reader *r;
	struct nb_event e;
	char why[WHY];

	(void)state;
	assert_int_equal(
		open_made(&r, &(struct made){1, RECORD_MAGIC, GOOD_HEADER, events, 2, 1}, why), 0);
	assert_int_equal(report_reader_next(r, &e, why, sizeof(why)), 1);
	assert_int_equal(report_reader_next(r, &e, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "in the middle of something, after event 1"));
	report_reader_close(r);
}

#define BAD_HEADER(nodes, seed, events)                                                            \
	"{\"version\":\"0\",\"machine\":\"m\",\"job\":\"j\",\"system\":\"s\",\"iteration\":1,"     \
	"\"seed\":" seed ",\"nodes\":" nodes                                                       \
	",\"areas\":[],\"skips\":[],\"whys\":[],\"moves\":[],\"events\":" events "}"

static void test_bad_headers(void **state)
{
	static const struct {
		struct made made;
		const char *says;
	} bad[] = {
		{{2, RECORD_MAGIC, GOOD_HEADER, NULL, 0, 0}, "schema 2"},
		{{0, RECORD_MAGIC, GOOD_HEADER, NULL, 0, 0}, "schema 0"},
		{{1, "NBEVENTX", GOOD_HEADER, NULL, 0, 0}, "not a recording"},
		{{1, RECORD_MAGIC, "", NULL, 0, 0}, "not a JSON object"},
		{{1, RECORD_MAGIC, "[]", NULL, 0, 0}, "not a JSON object"},
		{{1, RECORD_MAGIC, "{\"version\":\"0\",\"version\":\"0\"}", NULL, 0, 0},
			"not a JSON object"},
		{{1, RECORD_MAGIC, "{}", NULL, 0, 0}, "\"version\" must be a string"},
		{{1, RECORD_MAGIC, "{\"version\":\"\\u0000\"}", NULL, 0, 0}, "not a JSON object"},
		{{1, RECORD_MAGIC, GOOD_HEADER, NULL, 0, 5}, "ends in the middle"},
		{{1, RECORD_MAGIC, GOOD_HEADER, NULL, 0, sizeof(GOOD_HEADER) - 1},
			"before its header"},
		{{1, RECORD_MAGIC, BAD_HEADER("{}", "1", "[]"), NULL, 0, 0},
			"\"nodes\" must be a list"},
		{{1, RECORD_MAGIC, BAD_HEADER("[-1]", "1", "[]"), NULL, 0, 0}, "not a node id"},
		{{1, RECORD_MAGIC, BAD_HEADER("[1.5]", "1", "[]"), NULL, 0, 0}, "not a node id"},
		{{1, RECORD_MAGIC, BAD_HEADER("[4294967296]", "1", "[]"), NULL, 0, 0},
			"not a node id"},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "-1", "[]"), NULL, 0, 0},
			"\"seed\" must be a whole number"},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "\"99999999999999999999\"", "[]"), NULL, 0, 0},
			"\"seed\""},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "\"1x\"", "[]"), NULL, 0, 0}, "\"seed\""},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "1", "[\"from_the_future\"]"), NULL, 0, 0},
			"\"from_the_future\", which this version"},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "1", "[7]"), NULL, 0, 0},
			"which this version"},
		{{1, RECORD_MAGIC, BAD_HEADER("[0]", "1", "7"), NULL, 0, 0}, "must be a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct report_reader *r;
		char why[WHY] = "";

		assert_int_equal(open_made(&r, &bad[i].made, why), -EINVAL);
		assert_null(r);
		if (!strstr(why, bad[i].says))
			fail_msg("case %zu: \"%s\" does not say \"%s\"", i, why, bad[i].says);
		assert_one_line(why);
	}
}

static void test_other_files(void **state)
{
	char why[WHY], doubled[1 << 16];
	struct report_reader *r;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(read_memory("", 0, why), -EINVAL);
	assert_non_null(strstr(why, "empty"));
	assert_int_equal(read_memory("hello, world", 12, why), -EINVAL);
	assert_non_null(strstr(why, "not zstd"));
	len = ZSTD_compress(doubled, sizeof(doubled), "text", 4, 1);
	assert_int_equal(read_memory(doubled, len, why), -EINVAL);
	record(SMALL);
	data = load(&len);
	memcpy(doubled, data, len);
	memcpy(doubled + len, data, len);
	assert_int_equal(read_memory(doubled, 2 * len, why), -EINVAL);
	assert_non_null(strstr(why, "something follows"));
	free(data);
	assert_int_equal(report_reader_open(&r, dir, why, sizeof(why)), -EISDIR);
	assert_int_equal(report_reader_open(&r, "/no/such/file", why, sizeof(why)), -ENOENT);
	assert_one_line(why);
}

/* ---- the writer refuses what the reader would ---- */

static void test_writer_refuses(void **state)
{
	static const struct nb_event bad[] = {
		{.time_ns = 9}, /* after one at 10 */
		{.time_ns = 10, .type = NB_NR_EVENTS},
		{.time_ns = 10, .node_to = 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct nb_event first = {.time_ns = 10};
		struct report_recorder *r;
		char why[WHY] = "";

		unlink(path);
		assert_int_equal(report_record_open(&r, path, &header, why, sizeof(why)), 0);
		report_record_event(r, &first);
		report_record_event(r, &bad[i]);
		report_record_event(r, &first);
		assert_int_equal(report_record_close(r, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "event 1"));
		assert_int_equal(access(path, F_OK), -1);
	}
}

static void test_no_room(void **state)
{
	const struct nb_event e = {0};
	struct report_recorder *r;
	char why[WHY] = "";

	(void)state;
	assert_int_equal(
		report_record_open(&r, "/no/such/dir/x", &header, why, sizeof(why)), -ENOENT);
	assert_null(r);
	assert_one_line(why);
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(report_record_open(&r, "/dev/full", &header, why, sizeof(why)), 0);
	report_record_event(r, &e);
	assert_int_equal(report_record_close(r, why, sizeof(why)), -ENOSPC);
	assert_non_null(strstr(why, strerror(ENOSPC)));
}

static void test_abort(void **state)
{
	struct report_recorder *r;

	(void)state;
	unlink(path);
	assert_int_equal(report_record_open(&r, path, &header, NULL, 0), 0);
	report_record_abort(r);
	report_record_abort(NULL);
	report_reader_close(NULL);
	assert_int_equal(access(path, F_OK), -1);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/r", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_no_events),
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_every_byte_flipped),
		cmocka_unit_test(test_other_numbering),
		cmocka_unit_test(test_bad_events),
		cmocka_unit_test(test_cut_event),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_writer_refuses),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_abort),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
