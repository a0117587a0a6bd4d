/* SPDX-License-Identifier: MIT */
#include "html_data.h"

#include <errno.h>
#include <string.h>
#include "json.h"

/* Strings are the only place where JSON can hold a "<", and there it may be written as an escape.
 */
static int put_escaped(const char *buffer, size_t size, void *data)
{
	FILE *f = data;

	for (size_t i = 0; i < size; i++) {
		if (buffer[i] == '<')
			fputs("\\u003c", f);
		else
			fputc(buffer[i], f);
	}
	return ferror(f) ? -1 : 0;
}

/* Six digits are more than a plot can show. */
static int dump(FILE *f, json_t *value)
{
	int failed;

	if (!value)
		return -ENOMEM;
	failed = json_dump_callback(value, put_escaped, f,
		JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6) | JSON_ENCODE_ANY);
	json_decref(value);
	return failed ? -EIO : 0;
}

static json_t *name_json(const void *names, size_t i)
{
	return report_json_text(((const char *const *)names)[i]);
}

/* Fields of the samples: an array for each is less than half the size of an object for each sample.
 */
static json_t *time_json(const void *samples, size_t i)
{
	return report_json_real(((const struct nb_sample *)samples)[i].time_s);
}

static json_t *local_json(const void *samples, size_t i)
{
	return report_json_real(((const struct nb_sample *)samples)[i].local_share);
}

static json_t *faults_json(const void *samples, size_t i)
{
	return report_json_u64(((const struct nb_sample *)samples)[i].hint_faults);
}

static json_t *period_json(const void *samples, size_t i)
{
	return report_json_real(((const struct nb_sample *)samples)[i].scan_period_ms);
}

static json_t *moved_json(const void *samples, size_t i)
{
	return report_json_u64(((const struct nb_sample *)samples)[i].pages_migrated);
}

/* One node's pages over time. */
struct node_column {
	const struct nb_result *r;
	size_t node;
};

static json_t *node_pages_json(const void *ctx, size_t i)
{
	const struct node_column *c = ctx;

	return report_json_u64(c->r->node_pages[i * c->r->nr_nodes + c->node]);
}

static json_t *node_column_json(const void *ctx, size_t node)
{
	const struct node_column c = {ctx, node};

	return report_json_array(c.r->nr_samples, node_pages_json, &c);
}

static json_t *run_json(const struct nb_result *r, size_t job, size_t system)
{
	const size_t n = r->nr_samples;

	return json_pack("{s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "job", (json_int_t)job, "system",
		(json_int_t)system, "nodes",
		report_json_array(r->nr_nodes, report_json_int_item, r->node_ids), "t",
		report_json_array(n, time_json, r->samples), "local",
		report_json_array(n, local_json, r->samples), "faults",
		report_json_array(n, faults_json, r->samples), "period",
		report_json_array(n, period_json, r->samples), "moved",
		report_json_array(n, moved_json, r->samples), "pages",
		report_json_array(r->nr_nodes, node_column_json, r));
}

static const struct report_run *first_run(
	const struct report_set *set, const char *job, const char *system)
{
	for (size_t i = 0; i < set->nr_runs; i++)
		if (!strcmp(set->runs[i].job, job) && !strcmp(set->runs[i].system, system))
			return &set->runs[i];
	return NULL;
}

int report_html_data(FILE *f, const struct report_set *set, const struct report_axes *axes)
{
	const char *separator = "\n";
	int err;

	fputs("{\"jobs\":", f);
	err = dump(f, report_json_array(axes->nr_jobs, name_json, axes->jobs));
	fputs(",\"systems\":", f);
	if (!err)
		err = dump(f, report_json_array(axes->nr_systems, name_json, axes->systems));
	fputs(",\"runs\":[", f);
	for (size_t i = 0; !err && i < axes->nr_jobs * axes->nr_systems; i++) {
		const size_t job = i / axes->nr_systems, system = i % axes->nr_systems;
		const struct report_run *run =
			first_run(set, axes->jobs[job], axes->systems[system]);

		if (!run)
			continue;
		fputs(separator, f);
		separator = ",\n";
		err = dump(f, run_json(run->result, job, system));
	}
	fputs("\n]}\n", f);
	return err;
}
