/* SPDX-License-Identifier: MIT */
/*
 * outputs: the files that `numabal sim` writes. All are opened before the first run, so that an
 * unwritable one is known at once, and appear together after the last, or not at all.
 */
#ifndef NB_CLI_OUTPUTS_H
#define NB_CLI_OUTPUTS_H

#include <stdbool.h>
#include "../report/file.h"
#include "../report/record.h"
#include "../report/run.h"
#include "../report/trace.h"

struct plan;

enum output_format { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_CSV };

/* What the command line asks for; NULL = not wanted. */
struct output_request {
	enum output_format format;
	bool full_rows;
	const char *report; /* NULL = stdout */
	const char *html, *record, *trace;
};

struct outputs {
	const struct output_request *request; /* borrowed */
	struct report_out *report, *html, *trace;
	struct report_recorder *recorder;
	struct report_tracer tracer;
};

/* Open what is asked for. 0, or -errno with one line in `why`; then nothing is open. */
int outputs_open(struct outputs *o, const struct output_request *request, const struct plan *p,
	char *why, size_t why_len);
/* Whether decisions are to be noted; outputs_event, with the outputs as its context, then notes
 * one. */
bool outputs_want_events(const struct outputs *o);
void outputs_event(void *outputs, const struct nb_event *e);
/* Write the reports and let everything appear. The first failure is returned, with one line in
 * `why`. */
int outputs_commit(struct outputs *o, const struct report_set *set, char *why, size_t why_len);
/* Nothing appears. */
void outputs_abort(struct outputs *o);

#endif
