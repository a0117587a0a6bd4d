/* SPDX-License-Identifier: MIT */
/*
 * file: an output is there whole or not at all.
 *
 * A regular file is written beside its final place, synced and renamed over it, so that a reader, a
 * crash or a full disk never meets half of it; a symbolic link is followed and its target replaced;
 * rights of a file that was there are kept. Devices, pipes and sockets are written directly; "-",
 * NULL and /dev/stdout are stdout. While `fill` runs the thread's locale is "C": numbers look the
 * same everywhere.
 */
#ifndef NB_REPORT_FILE_H
#define NB_REPORT_FILE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Have `fill` write the output. 0, or -errno with one line in `why` ("PATH: what"); the first error
 * of any write, even one that fill did not look at, is reported (-ENOSPC: disk full). What fill
 * returns, if not 0, is passed on; then `why` is left alone when fill filled it (when why[0] is not
 * 0).
 */
int report_write_file(
	const char *path, int (*fill)(FILE *f, void *ctx), void *ctx, char *why, size_t why_len);

/* The same in steps, for outputs that grow while something else runs. One thread at a time. */
struct report_out;

/* 0 or -errno. *out is freed by commit or abort, whichever comes first. */
int report_out_open(struct report_out **out, const char *path, char *why, size_t why_len);
FILE *report_out_stream(struct report_out *out);
/* The output appears. 0 or -errno; on error nothing appears. */
int report_out_commit(struct report_out *out, char *why, size_t why_len);
/* Nothing appears. NULL is allowed. */
void report_out_abort(struct report_out *out);

#endif
