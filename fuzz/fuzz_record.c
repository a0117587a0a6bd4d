/* SPDX-License-Identifier: MIT */
/*
 * fuzz_record: recordings, as they come and, because a checksum guards those, as the content of a
 * sound zstd frame; and everything that is told of what can be read.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include "../report/explain.h"
#include "../report/record.h"
#include "../report/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WHY_LEN = 200 };

static struct report_reader *open_reader(const void *data, size_t size)
{
	struct report_reader *reader = NULL;
	char why[WHY_LEN] = "";
	FILE *f = size ? fmemopen((void *)data, size, "rb") : NULL;

	if (f && report_reader_open_stream(&reader, f, "fuzz", why, sizeof(why)) && !why[0])
		abort(); /* a refusal without a reason */
	return reader;
}

static void trace(const void *data, size_t size, FILE *sink)
{
	struct report_reader *reader = open_reader(data, size);
	struct report_tracer tracer = {.f = sink};
	struct nb_event e;

	if (!reader)
		return;
	tracer.node_ids = report_reader_header(reader)->node_ids;
	while (report_reader_next(reader, &e, NULL, 0) > 0)
		report_trace_event(&tracer, &e);
	report_reader_close(reader);
}

static void explain(
	const void *data, size_t size, FILE *sink, const struct report_explain_options *options)
{
	struct report_reader *reader = open_reader(data, size);

	if (!reader)
		return;
	report_explain(sink, reader, options, NULL, 0);
	report_reader_close(reader);
}

static void read_all(const void *data, size_t size)
{
	const struct report_explain_options vma = {
		.target = {REPORT_TARGET_VMA, .number = 1}, .limit = 100};
	const struct report_explain_options page = {
		.target = {REPORT_TARGET_PAGE, .addr = 0x10003000}, .limit = 3, .json = true};
	FILE *sink = fopen("/dev/null", "w");

	if (!sink)
		return;
	trace(data, size, sink);
	explain(data, size, sink, &vma);
	explain(data, size, sink, &page);
	fclose(sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t room = ZSTD_compressBound(size);
	void *packed = malloc(room);
	size_t len;

	read_all(data, size);
	if (!packed)
		return 0;
	len = ZSTD_compress(packed, room, data, size, 1);
	if (!ZSTD_isError(len))
		read_all(packed, len);
	free(packed);
	return 0;
}
