/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "../engine/topology.h"
#include "../engine/why.h"
#include "event.h"
#include "file.h"
#include "json.h"
#include "record_format.h"

enum { BATCH = 1024, WHY_LEN = 256 };

struct report_recorder {
	struct report_out *out;
	ZSTD_CCtx *zstd;
	unsigned int nr_nodes;
	uint64_t nr_events;
	uint64_t last_time_ns;
	int err; /* the first failure */
	char why[WHY_LEN];
	unsigned int nr_batch;
	struct nb_event batch[BATCH];
	char packed[1 << 16];
};

static void fail(struct report_recorder *r, int err, const char *what)
{
	if (r->err)
		return;
	r->err = nb_why(r->why, sizeof(r->why), err, "recording: event %llu: %s",
		(unsigned long long)r->nr_events, what);
}

/* Failed writes are remembered by the output itself and come out at close. */
static void compress(
	struct report_recorder *r, const void *data, size_t len, ZSTD_EndDirective directive)
{
	ZSTD_inBuffer in = {data, len, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {r->packed, sizeof(r->packed), 0};

		left = ZSTD_compressStream2(r->zstd, &out, &in, directive);
		if (ZSTD_isError(left)) {
			fail(r, -ENOMEM, ZSTD_getErrorName(left));
			return;
		}
		fwrite(r->packed, 1, out.pos, report_out_stream(r->out));
	} while (directive == ZSTD_e_end ? left > 0 : in.pos < in.size);
}

static void flush_batch(struct report_recorder *r)
{
	compress(r, r->batch, r->nr_batch * sizeof(r->batch[0]), ZSTD_e_continue);
	r->nr_batch = 0;
}

void report_record_event(void *recorder, const struct nb_event *e)
{
	struct report_recorder *r = recorder;
	const char *wrong;

	if (r->err)
		return;
	wrong = e->time_ns < r->last_time_ns ? "earlier than the one before"
					     : report_event_check(e, r->nr_nodes);
	if (wrong) {
		fail(r, -EINVAL, wrong);
		return;
	}
	r->last_time_ns = e->time_ns;
	r->nr_events++;
	r->batch[r->nr_batch++] = *e;
	if (r->nr_batch == BATCH)
		flush_batch(r);
}

static json_t *name_json(const void *names, size_t i)
{
	return json_string(((const struct nb_name *)names)[i].name);
}

static json_t *area_json(const void *areas, size_t i)
{
	const struct report_area *a = (const struct report_area *)areas + i;

	return json_pack("{s:I,s:o,s:o,s:o}", "mm", (json_int_t)a->mm, "start",
		report_json_u64(a->start), "end", report_json_u64(a->end), "name",
		report_json_text(a->name));
}

/* The header as text, or NULL on no memory; free() it. */
static char *header_text(const struct report_record_header *h)
{
	json_t *o = json_object();
	char *text = NULL;
	int err = json_object_set_new(o, "version", json_string(NB_VERSION));

	err |= json_object_set_new(o, "machine", report_json_text(h->machine));
	err |= json_object_set_new(o, "job", report_json_text(h->job));
	err |= json_object_set_new(o, "system", report_json_text(h->system));
	err |= json_object_set_new(o, "iteration", json_integer(h->iteration));
	err |= json_object_set_new(o, "seed", report_json_u64(h->seed));
	err |= json_object_set_new(
		o, "nodes", report_json_array(h->nr_nodes, report_json_int_item, h->node_ids));
	err |= json_object_set_new(o, "areas", report_json_array(h->nr_areas, area_json, h->areas));
	for (int i = 0; i < REPORT_NR_NAMES; i++) {
		const struct report_name_table *t = &report_name_tables[i];

		err |= json_object_set_new(
			o, t->key, report_json_array(t->nr, name_json, t->names));
	}
	if (!err)
		text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(o);
	return text;
}

static int write_header(struct report_recorder *r, const struct report_record_header *h)
{
	char *text = header_text(h);
	struct record_prefix prefix = {.magic = RECORD_MAGIC, .schema = RECORD_SCHEMA};
	const size_t len = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	if (len <= RECORD_MAX_HEADER) {
		prefix.header_len = (uint32_t)len;
		compress(r, &prefix, sizeof(prefix), ZSTD_e_continue);
		compress(r, text, len, ZSTD_e_continue);
	}
	free(text);
	return len > RECORD_MAX_HEADER ? -E2BIG : r->err;
}

static int start_zstd(struct report_recorder *r)
{
	r->zstd = ZSTD_createCCtx();
	if (!r->zstd || ZSTD_isError(ZSTD_CCtx_setParameter(r->zstd, ZSTD_c_checksumFlag, 1)))
		return -ENOMEM;
	return 0;
}

int report_record_open(struct report_recorder **out, const char *path,
	const struct report_record_header *header, char *why, size_t why_len)
{
	struct report_recorder *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return nb_why(why, why_len, -ENOMEM, "recording: out of memory");
	r->nr_nodes = header->nr_nodes;
	err = report_out_open(&r->out, path, why, why_len);
	if (err) {
		report_record_abort(r);
		return err;
	}
	err = header->nr_nodes > NB_MAX_NODES ? -EINVAL : start_zstd(r);
	if (!err)
		err = write_header(r, header);
	if (err) {
		report_record_abort(r);
		return nb_why(why, why_len, err, "recording: header: %s", strerror(-err));
	}
	*out = r;
	return 0;
}

int report_record_close(struct report_recorder *r, char *why, size_t why_len)
{
	int err;

	if (!r->err)
		flush_batch(r);
	if (!r->err)
		compress(r, NULL, 0, ZSTD_e_end);
	err = r->err;
	if (err) {
		nb_why(why, why_len, err, "%s", r->why);
	} else {
		err = report_out_commit(r->out, why, why_len);
		r->out = NULL;
	}
	report_record_abort(r);
	return err;
}

void report_record_abort(struct report_recorder *r)
{
	if (!r)
		return;
	report_out_abort(r->out);
	ZSTD_freeCCtx(r->zstd);
	free(r);
}
