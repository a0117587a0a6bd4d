/* SPDX-License-Identifier: MIT */
/*
 * json: runs as JSON, one run per line inside one document; the schema is docs/formats.md.
 *
 * Numbers are printed with 17 significant digits, so that they read back as they were; NaN is null;
 * integers over 2^63 - 1 are decimal strings. Memory: one run at a time.
 */
#ifndef NB_REPORT_JSON_H
#define NB_REPORT_JSON_H

#include <jansson.h>
#include <stdio.h>
#include "run.h"

/* 0, -ENOMEM or -EIO. */
int report_json(FILE *f, const struct report_set *set);

/* ---- pieces, for other formats of report/ ---- */

/* A number that may be NaN or infinite (null). */
json_t *report_json_real(double value);
json_t *report_json_u64(uint64_t value);
/* Text of unknown origin: bytes that are not UTF-8 become U+FFFD. */
json_t *report_json_text(const char *text);
/* An array of nr items, each made by `item`; NULL when any of them is. */
typedef json_t *report_json_item(const void *ctx, size_t i);
json_t *report_json_array(size_t nr, report_json_item *item, const void *ctx);
/* Items for arrays of uint64_t and of int. */
json_t *report_json_u64_item(const void *values, size_t i);
json_t *report_json_int_item(const void *values, size_t i);
/* One run as documented, or NULL on no memory. The caller owns it. */
json_t *report_json_run(const struct report_run *run);

#endif
