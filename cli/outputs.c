/* SPDX-License-Identifier: MIT */
#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include "../engine/why.h"
#include "../report/csv.h"
#include "../report/html.h"
#include "../report/json.h"
#include "../report/table.h"
#include "plan.h"

/* ---- opening ---- */

static int open_one(
	struct report_out **out, const char *path, bool wanted, char *why, size_t why_len)
{
	return wanted ? report_out_open(out, path, why, why_len) : 0;
}

static int *node_ids_of(const struct plan *p)
{
	const struct nb_topology *t = &p->model.topo;
	int *ids = calloc(t->nr_nodes, sizeof(*ids));

	for (unsigned int i = 0; ids && i < t->nr_nodes; i++)
		ids[i] = t->nodes[i].id;
	return ids;
}

/* The header is copied by the recorder. */
static int open_recorder(
	struct outputs *o, const struct plan *p, const int *ids, char *why, size_t why_len)
{
	const struct report_run *run = &p->runs[0];
	const struct report_record_header header = {
		.machine = run->machine,
		.job = run->job,
		.system = run->system,
		.iteration = run->iteration,
		.seed = run->seed,
		.nr_nodes = p->model.topo.nr_nodes,
		.node_ids = ids,
	};

	return report_record_open(&o->recorder, o->request->record, &header, why, why_len);
}

static int open_event_outputs(struct outputs *o, const struct plan *p, char *why, size_t why_len)
{
	int *ids = node_ids_of(p);
	int err = 0;

	if (!ids)
		return nb_why(why, why_len, -ENOMEM, "no memory");
	if (o->request->record)
		err = open_recorder(o, p, ids, why, why_len);
	if (!err)
		err = open_one(&o->trace, o->request->trace, o->request->trace, why, why_len);
	if (o->trace)
		o->tracer =
			(struct report_tracer){.f = report_out_stream(o->trace), .node_ids = ids};
	else
		free(ids);
	return err;
}

int outputs_open(struct outputs *o, const struct output_request *request, const struct plan *p,
	char *why, size_t why_len)
{
	int err;

	*o = (struct outputs){.request = request};
	err = open_one(&o->report, request->report, true, why, why_len);
	if (!err)
		err = open_one(&o->html, request->html, request->html, why, why_len);
	if (!err && (request->record || request->trace))
		err = open_event_outputs(o, p, why, why_len);
	if (err)
		outputs_abort(o);
	return err;
}

/* ---- while it runs ---- */

bool outputs_want_events(const struct outputs *o)
{
	return o->recorder || o->trace;
}

void outputs_event(void *outputs, const struct nb_event *e)
{
	struct outputs *o = outputs;

	if (o->recorder)
		report_record_event(o->recorder, e);
	if (o->trace)
		report_trace_event(&o->tracer, e);
}

/* ---- the end ---- */

static int fill_report(const struct output_request *request, FILE *f, const struct report_set *set)
{
	const struct report_table_options table = {.full_rows = request->full_rows};

	switch (request->format) {
	case OUTPUT_JSON:
		return report_json(f, set);
	case OUTPUT_CSV:
		return report_csv(f, set);
	default:
		return report_table(f, set, &table);
	}
}

/* Ends *out, whatever happened before: it appears when err is 0. A write error that fill met is
 * reported by commit. */
static int finish(struct report_out **out, int err, char *why, size_t why_len)
{
	struct report_out *done = *out;

	*out = NULL;
	if (!done)
		return err;
	if (!err || err == -EIO)
		return report_out_commit(done, why, why_len);
	report_out_abort(done);
	return nb_why(why, why_len, err, "no memory for the report");
}

static void free_tracer(struct outputs *o)
{
	free((int *)o->tracer.node_ids);
	o->tracer.node_ids = NULL;
}

static int commit_events(struct outputs *o, char *why, size_t why_len)
{
	struct report_recorder *recorder = o->recorder;
	int err = 0;

	o->recorder = NULL;
	free_tracer(o);
	if (recorder)
		err = report_record_close(recorder, why, why_len);
	if (!err)
		err = finish(&o->trace, 0, why, why_len);
	return err;
}

int outputs_commit(struct outputs *o, const struct report_set *set, char *why, size_t why_len)
{
	int err = commit_events(o, why, why_len);

	if (!err && o->html)
		err = finish(&o->html, report_html(report_out_stream(o->html), set), why, why_len);
	if (!err)
		err = finish(&o->report, fill_report(o->request, report_out_stream(o->report), set),
			why, why_len);
	if (err)
		outputs_abort(o);
	return err;
}

void outputs_abort(struct outputs *o)
{
	free_tracer(o);
	report_out_abort(o->report);
	report_out_abort(o->html);
	report_out_abort(o->trace);
	report_record_abort(o->recorder);
	*o = (struct outputs){0};
}
