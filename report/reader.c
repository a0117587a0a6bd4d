/* SPDX-License-Identifier: MIT */
/*
 * The reader of recordings trusts nothing: what comes out of it is in range, in order and complete,
 * or an error says what is wrong and where.
 */
#include "record.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "../engine/topology.h"
#include "../engine/why.h"
#include "event.h"
#include "json.h"
#include "record_format.h"

enum { IN_SIZE = 1 << 16, OUT_SIZE = 1 << 17, NAME_LEN = 512, NR_CODES = 256 };

struct report_reader {
	FILE *f;
	char name[NAME_LEN]; /* for messages */
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	bool frame_done;
	size_t out_pos, out_len; /* unread bytes of `out` */
	uint64_t nr_events;
	uint64_t last_time_ns;
	json_t *json; /* the header; its strings are those of `header` */
	struct report_record_header header;
	/* The recording's numbers -> ours. */
	uint8_t map[REPORT_NR_NAMES][NR_CODES];
	unsigned int nr_map[REPORT_NR_NAMES];
	unsigned char in_buf[IN_SIZE];
	unsigned char out_buf[OUT_SIZE];
};

/* Where to tell what is wrong. */
struct complaint {
	const struct report_reader *r;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3))) static int refuse(
	const struct complaint *c, const char *format, ...)
{
	char what[400];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return nb_why(c->why, c->why_len, -EINVAL, "%s: %s", c->r->name, what);
}

/* ---- bytes ---- */

static int refill_input(struct report_reader *r, const struct complaint *c)
{
	size_t n;

	errno = 0;
	n = fread(r->in_buf, 1, sizeof(r->in_buf), r->f);
	if (!n && ferror(r->f))
		return nb_why(c->why, c->why_len, errno ? -errno : -EIO, "%s: cannot read: %s",
			r->name, strerror(errno ? errno : EIO));
	r->in = (ZSTD_inBuffer){r->in_buf, n, 0};
	return 0;
}

/* After the frame nothing may follow: it would be a second recording, or damage. */
static int check_end(struct report_reader *r, const struct complaint *c)
{
	int err = 0;

	if (r->in.pos == r->in.size)
		err = refill_input(r, c);
	if (!err && r->in.pos < r->in.size)
		return refuse(c, "something follows the end of the recording");
	return err;
}

static int refuse_zstd(const struct complaint *c, size_t code)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_prefix_unknown)
		return refuse(c, "not a recording: it is not zstd");
	return refuse(c, "damaged after event %llu: %s", (unsigned long long)c->r->nr_events,
		ZSTD_getErrorName(code));
}

/* Decompress some more into out_buf, which is empty. 1, 0 at the end of the frame, or -errno. */
static int refill_output(struct report_reader *r, const struct complaint *c)
{
	ZSTD_outBuffer out = {r->out_buf, sizeof(r->out_buf), 0};

	while (!out.pos) {
		size_t left;

		if (r->frame_done)
			return check_end(r, c);
		if (r->in.pos == r->in.size) {
			const int err = refill_input(r, c);

			if (err)
				return err;
			if (!r->in.size)
				return refuse(c,
					"truncated after event %llu: the file ends before the "
					"recording does",
					(unsigned long long)r->nr_events);
		}
		left = ZSTD_decompressStream(r->zstd, &out, &r->in);
		if (ZSTD_isError(left))
			return refuse_zstd(c, left);
		r->frame_done = !left;
	}
	r->out_pos = 0;
	r->out_len = out.pos;
	return 1;
}

/* Exactly `len` bytes: 1; none because the recording is over: 0; fewer, or trouble: -errno. */
static int read_bytes(struct report_reader *r, void *to, size_t len, const struct complaint *c)
{
	size_t done = 0;

	while (done < len) {
		size_t n;

		if (r->out_pos == r->out_len) {
			const int more = refill_output(r, c);

			if (more < 0 || (!more && !done))
				return more;
			if (!more)
				return refuse(c,
					"the recording ends in the middle of something, after "
					"event %llu",
					(unsigned long long)r->nr_events);
		}
		n = r->out_len - r->out_pos;
		n = n < len - done ? n : len - done;
		memcpy((char *)to + done, r->out_buf + r->out_pos, n);
		r->out_pos += n;
		done += n;
	}
	return 1;
}

/* ---- header ---- */

static int get_string(const struct complaint *c, json_t *object, const char *key, const char **out)
{
	*out = json_string_value(json_object_get(object, key));
	return *out ? 0 : refuse(c, "header: \"%s\" must be a string", key);
}

/* Integers over 2^63 - 1 are decimal strings. */
static int get_u64(
	const struct complaint *c, json_t *object, const char *key, uint64_t max, uint64_t *out)
{
	json_t *value = json_object_get(object, key);
	const char *digits = json_string_value(value);
	char *end;

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*out = (uint64_t)json_integer_value(value);
	} else if (digits && digits[0] >= '0' && digits[0] <= '9') {
		errno = 0;
		*out = strtoull(digits, &end, 10);
		if (*end || errno)
			return refuse(c, "header: \"%s\" must be a whole number", key);
	} else {
		return refuse(c, "header: \"%s\" must be a whole number", key);
	}
	return *out <= max ? 0 : refuse(c, "header: \"%s\" is too large", key);
}

static int read_nodes(struct report_reader *r, const struct complaint *c)
{
	json_t *nodes = json_object_get(r->json, "nodes");
	int *ids;

	if (!json_is_array(nodes) || json_array_size(nodes) > NB_MAX_NODES)
		return refuse(
			c, "header: \"nodes\" must be a list of at most %d node ids", NB_MAX_NODES);
	ids = calloc(json_array_size(nodes) + 1, sizeof(*ids));
	if (!ids)
		return nb_why(c->why, c->why_len, -ENOMEM, "%s: out of memory", r->name);
	r->header.node_ids = ids;
	r->header.nr_nodes = (unsigned int)json_array_size(nodes);
	for (unsigned int i = 0; i < r->header.nr_nodes; i++) {
		json_t *id = json_array_get(nodes, i);

		if (!json_is_integer(id) || json_integer_value(id) < 0 ||
			json_integer_value(id) > INT_MAX)
			return refuse(c, "header: \"nodes\" holds something that is not a node id");
		ids[i] = (int)json_integer_value(id);
	}
	return 0;
}

static int read_area(const struct complaint *c, json_t *json, struct report_area *area)
{
	uint64_t mm = 0;
	int err = get_u64(c, json, "mm", UINT32_MAX, &mm);

	if (!err)
		err = get_u64(c, json, "start", UINT64_MAX, &area->start);
	if (!err)
		err = get_u64(c, json, "end", UINT64_MAX, &area->end);
	if (!err)
		err = get_string(c, json, "name", &area->name);
	area->mm = (uint32_t)mm;
	return err;
}

static int read_areas(struct report_reader *r, const struct complaint *c)
{
	json_t *json = json_object_get(r->json, "areas");
	struct report_area *areas;
	int err = 0;

	if (!json_is_array(json))
		return refuse(c, "header: \"areas\" must be a list");
	areas = calloc(json_array_size(json) + 1, sizeof(*areas));
	if (!areas)
		return nb_why(c->why, c->why_len, -ENOMEM, "%s: out of memory", r->name);
	r->header.areas = areas;
	r->header.nr_areas = (unsigned int)json_array_size(json);
	for (unsigned int i = 0; !err && i < r->header.nr_areas; i++)
		err = read_area(c, json_array_get(json, i), &areas[i]);
	return err;
}

/* Our number for a name, or -1. */
static int find_name(const struct report_name_table *table, const char *name)
{
	for (unsigned int i = 0; i < table->nr; i++)
		if (!strcmp(table->names[i].name, name))
			return (int)i;
	return -1;
}

static int read_names(struct report_reader *r, const struct complaint *c, int which)
{
	const struct report_name_table *table = &report_name_tables[which];
	json_t *names = json_object_get(r->json, table->key);

	if (!json_is_array(names) || json_array_size(names) > NR_CODES)
		return refuse(c, "header: \"%s\" must be a list of at most %d names", table->key,
			NR_CODES);
	r->nr_map[which] = (unsigned int)json_array_size(names);
	for (unsigned int i = 0; i < r->nr_map[which]; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		const int code = name ? find_name(table, name) : -1;

		if (code < 0)
			return refuse(c,
				"header: \"%s\" holds \"%.40s\", which this version (%s) does not "
				"know",
				table->key, name ? name : "", NB_VERSION);
		r->map[which][i] = (uint8_t)code;
	}
	return 0;
}

static int read_header_fields(struct report_reader *r, const struct complaint *c)
{
	struct report_record_header *h = &r->header;
	uint64_t iteration = 0;
	int err = get_string(c, r->json, "version", &h->version);

	if (!err)
		err = get_string(c, r->json, "machine", &h->machine);
	if (!err)
		err = get_string(c, r->json, "job", &h->job);
	if (!err)
		err = get_string(c, r->json, "system", &h->system);
	if (!err)
		err = get_u64(c, r->json, "iteration", UINT_MAX, &iteration);
	if (!err)
		err = get_u64(c, r->json, "seed", UINT64_MAX, &h->seed);
	if (!err)
		err = read_nodes(r, c);
	if (!err)
		err = read_areas(r, c);
	for (int i = 0; !err && i < REPORT_NR_NAMES; i++)
		err = read_names(r, c, i);
	h->iteration = (unsigned int)iteration;
	return err;
}

static int read_prefix(
	struct report_reader *r, const struct complaint *c, struct record_prefix *prefix)
{
	const int got = read_bytes(r, prefix, sizeof(*prefix), c);

	if (got < 0)
		return got;
	if (!got || memcmp(prefix->magic, RECORD_MAGIC, sizeof(prefix->magic)))
		return refuse(c, "not a recording: it is zstd, but of something else");
	if (prefix->schema != RECORD_SCHEMA)
		return refuse(c, "schema %u: this version (%s) reads schema %d", prefix->schema,
			NB_VERSION, RECORD_SCHEMA);
	if (prefix->header_len > RECORD_MAX_HEADER)
		return refuse(c, "header of %u bytes: at most %d are allowed", prefix->header_len,
			RECORD_MAX_HEADER);
	return 0;
}

static int parse_header(
	struct report_reader *r, const struct complaint *c, const char *text, size_t len)
{
	json_error_t error;

	r->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(r->json))
		return refuse(c, "header: not a JSON object: %s",
			r->json ? "another kind of value" : error.text);
	return read_header_fields(r, c);
}

static int read_header(struct report_reader *r, const struct complaint *c)
{
	struct record_prefix prefix;
	char *text;
	int err = read_prefix(r, c, &prefix);

	if (err)
		return err;
	text = malloc(prefix.header_len + 1);
	if (!text)
		return nb_why(c->why, c->why_len, -ENOMEM, "%s: out of memory", r->name);
	err = read_bytes(r, text, prefix.header_len, c);
	if (!err)
		err = refuse(c, "truncated: the recording ends before its header does");
	if (err > 0)
		err = parse_header(r, c, text, prefix.header_len);
	free(text);
	return err;
}

/* ---- life ---- */

void report_reader_close(struct report_reader *r)
{
	if (!r)
		return;
	free((void *)r->header.node_ids);
	free((void *)r->header.areas);
	json_decref(r->json);
	ZSTD_freeDCtx(r->zstd);
	if (r->f && r->f != stdin)
		fclose(r->f);
	free(r);
}

static int start(struct report_reader *r, const struct complaint *c)
{
	int err;

	r->zstd = ZSTD_createDCtx();
	if (!r->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(
				r->zstd, ZSTD_d_windowLogMax, RECORD_MAX_WINDOW_LOG)))
		return nb_why(c->why, c->why_len, -ENOMEM, "%s: out of memory", r->name);
	err = refill_input(r, c);
	if (err)
		return err;
	if (!r->in.size)
		return refuse(c, "empty: not a recording");
	return read_header(r, c);
}

int report_reader_open_stream(
	struct report_reader **out, FILE *f, const char *name, char *why, size_t why_len)
{
	struct report_reader *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r) {
		if (f != stdin)
			fclose(f);
		return nb_why(why, why_len, -ENOMEM, "%.200s: out of memory", name);
	}
	r->f = f;
	snprintf(r->name, sizeof(r->name), "%s", name);
	err = start(r, &(struct complaint){r, why, why_len});
	if (err) {
		report_reader_close(r);
		return err;
	}
	*out = r;
	return 0;
}

int report_reader_open(struct report_reader **out, const char *path, char *why, size_t why_len)
{
	FILE *f;

	*out = NULL;
	if (!strcmp(path, "-"))
		return report_reader_open_stream(out, stdin, "stdin", why, why_len);
	f = fopen(path, "rbe");
	if (!f)
		return nb_why(why, why_len, -errno, "%s: cannot read: %s", nb_quote(path).text,
			strerror(errno));
	return report_reader_open_stream(out, f, path, why, why_len);
}

const struct report_record_header *report_reader_header(const struct report_reader *r)
{
	return &r->header;
}

/* ---- events ---- */

/* The recording's numbers become ours; out-of-range ones become numbers that the check refuses. */
static void translate(const struct report_reader *r, struct nb_event *e)
{
	const struct report_name_table *reasons;
	ptrdiff_t which;

	e->type = e->type < r->nr_map[REPORT_EVENT_NAMES] ? r->map[REPORT_EVENT_NAMES][e->type]
							  : UINT8_MAX;
	reasons = report_reason_table(e->type);
	if (!reasons)
		return;
	which = reasons - report_name_tables;
	e->reason = e->reason < r->nr_map[which] ? r->map[which][e->reason] : UINT8_MAX;
}

int report_reader_next(struct report_reader *r, struct nb_event *e, char *why, size_t why_len)
{
	const struct complaint c = {r, why, why_len};
	const char *wrong;
	int got;

	got = read_bytes(r, e, sizeof(*e), &c);
	if (got <= 0)
		return got;
	r->nr_events++;
	translate(r, e);
	wrong = e->time_ns < r->last_time_ns ? "a time before the event before it"
					     : report_event_check(e, r->header.nr_nodes);
	if (wrong)
		return refuse(&c, "event %llu has %s", (unsigned long long)r->nr_events, wrong);
	r->last_time_ns = e->time_ns;
	return 1;
}
