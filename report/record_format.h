/* SPDX-License-Identifier: MIT */
/*
 * record_format: what both the writer and the reader of recordings know. Internal to report/.
 *
 * Inside the one zstd frame: struct record_prefix, `header_len` bytes of JSON, then struct nb_event
 * to the end. Everything is little-endian.
 */
#ifndef NB_REPORT_RECORD_FORMAT_H
#define NB_REPORT_RECORD_FORMAT_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "recordings hold structures as they are in memory: this needs conversions on a big-endian machine"
#endif

#define RECORD_MAGIC "NBEVENTS"

enum {
	RECORD_SCHEMA = 1,
	RECORD_MAX_HEADER = 1 << 20, /* bytes of JSON */
	RECORD_MAX_WINDOW_LOG = 23,  /* memory a reader may be made to use: 8 MiB */
};

struct record_prefix {
	char magic[8];
	uint32_t schema;
	uint32_t header_len;
};
_Static_assert(sizeof(struct record_prefix) == 16, "no padding");

#endif
