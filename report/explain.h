/* SPDX-License-Identifier: MIT */
/*
 * explain: why a page or a VMA was or was not scanned, faulted and moved, from a recording: each
 * event that concerns it in order, in plain words, and then a summary.
 *
 * One pass, bounded memory. Skips in a row for the same reason are one line that says how many and
 * until when.
 */
#ifndef NB_REPORT_EXPLAIN_H
#define NB_REPORT_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "record.h"

enum report_target_kind {
	REPORT_TARGET_PAGE, /* the page at an address, in every VMA that comes to hold it */
	REPORT_TARGET_VMA,  /* a whole VMA */
};

enum { REPORT_EXPLAIN_LIMIT = 1000 };

struct report_target {
	enum report_target_kind kind;
	bool has_mm; /* false: the first address space that has the address */
	uint32_t mm;
	uint64_t addr;
	uint64_t number; /* VMA only: the N-th mapped in the recording, from 1; 0 = the one that
			    holds addr */
};

/*
 * Read a target: "0x7f0000000000" or "MM:0x7f0000000000" (MM decimal); for a VMA, any address in
 * it, or "N". 0, or -EINVAL/-ERANGE with one line.
 */
int report_target_parse(struct report_target *out, enum report_target_kind kind, const char *text,
	char *why, size_t why_len);

struct report_explain_options {
	struct report_target target;
	uint64_t limit; /* lines at most; what is left out is counted (REPORT_EXPLAIN_LIMIT is a
			   good number) */
	bool json;	/* one JSON document instead of text (docs/formats.md) */
};

/*
 * Read the rest of the recording and explain. 0; -ENOENT: the target is not in it (nothing was
 * printed); else what the reader said; -EIO, -ENOMEM. `why` gets one line.
 */
int report_explain(FILE *f, struct report_reader *reader,
	const struct report_explain_options *options, char *why, size_t why_len);

#endif
