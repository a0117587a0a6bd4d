/* SPDX-License-Identifier: MIT */
/*
 * record: recordings of decisions: a zstd stream (with checksum) of a header and then every struct
 * nb_event as it is, little-endian, in order of time. docs/formats.md has the layout.
 *
 * The header says what every number in the events means (the names of event types and reasons), so
 * a recording stays readable when those tables grow or are reordered. Writing and reading need some
 * hundred KiB, however long the recording.
 */
#ifndef NB_REPORT_RECORD_H
#define NB_REPORT_RECORD_H

#include <stdint.h>
#include <stdio.h>
#include "../engine/events.h"

/* A name for a range of addresses, for those who read the recording; optional. */
struct report_area {
	uint32_t mm;
	uint64_t start, end;
	const char *name;
};

struct report_record_header {
	const char *version; /* of the writer; ignored when writing */
	const char *machine, *job, *system;
	unsigned int iteration;
	uint64_t seed;
	unsigned int nr_nodes; /* at most NB_MAX_NODES */
	const int *node_ids;   /* [nr_nodes] what node indexes in events stand for */
	unsigned int nr_areas;
	const struct report_area *areas; /* [nr_areas] */
};

/* ---- writing ---- */

struct report_recorder;

/* As report_write_file: nothing appears before close. The header is copied. 0 or -errno with one
 * line in `why`. */
int report_record_open(struct report_recorder **out, const char *path,
	const struct report_record_header *header, char *why, size_t why_len);
/*
 * Append an event; has the type of nb_machine.trace, `recorder` is the struct report_recorder. The
 * first failure (a full disk, an event out of order or unsound) is kept for close, and nothing is
 * recorded after it.
 */
void report_record_event(void *recorder, const struct nb_event *e);
/* The recording appears, or on any failure does not. Frees the recorder. */
int report_record_close(struct report_recorder *r, char *why, size_t why_len);
/* Nothing appears. NULL is allowed. */
void report_record_abort(struct report_recorder *r);

/* ---- reading ---- */

struct report_reader;

/*
 * Open and check the header; "-" is stdin. 0, or -errno with one line in `why`:
 * -EINVAL: not a recording, damaged, truncated, or of another version.
 */
int report_reader_open(struct report_reader **out, const char *path, char *why, size_t why_len);
/* The same from a stream, which the reader then owns (also on error). `name` is for messages, and
 * copied. */
int report_reader_open_stream(
	struct report_reader **out, FILE *f, const char *name, char *why, size_t why_len);
/* Valid until close. */
const struct report_record_header *report_reader_header(const struct report_reader *r);
/*
 * The next event, with type, reasons and node indexes checked to be in range and times in order. 1,
 * 0 at the end, or -errno with one line in `why`.
 */
int report_reader_next(struct report_reader *r, struct nb_event *e, char *why, size_t why_len);
/* NULL is allowed. */
void report_reader_close(struct report_reader *r);

#endif
