/* SPDX-License-Identifier: MIT */
#include "csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"

static void put_text(FILE *f, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void put_real(FILE *f, double value)
{
	char text[REPORT_NUMBER_LEN];

	fputc(',', f);
	if (isfinite(value))
		fputs(report_shortest(text, value), f);
}

static void put_u64(FILE *f, uint64_t value)
{
	fprintf(f, ",%" PRIu64, value);
}

static void put_labels(FILE *f, const struct report_run *run)
{
	put_text(f, run->job);
	fputc(',', f);
	put_text(f, run->system);
	fputc(',', f);
	put_text(f, run->machine);
	fprintf(f, ",%u", run->iteration);
	put_u64(f, run->seed);
}

static int compare_ids(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Node ids of all runs, ascending, each once. */
struct node_ids {
	size_t nr;
	int *ids;
};

static int collect_ids(struct node_ids *n, const struct report_set *set)
{
	size_t all = 0, kept = 0;

	for (size_t i = 0; i < set->nr_runs; i++)
		all += set->runs[i].result->nr_nodes;
	n->ids = calloc(all + 1, sizeof(*n->ids));
	if (!n->ids)
		return -ENOMEM;
	n->nr = 0;
	for (size_t i = 0; i < set->nr_runs; i++)
		for (unsigned int k = 0; k < set->runs[i].result->nr_nodes; k++)
			n->ids[n->nr++] = set->runs[i].result->node_ids[k];
	qsort(n->ids, n->nr, sizeof(*n->ids), compare_ids);
	for (size_t i = 0; i < n->nr; i++)
		if (!i || n->ids[i] != n->ids[kept - 1])
			n->ids[kept++] = n->ids[i];
	n->nr = kept;
	return 0;
}

static void put_header(FILE *f, const char *columns, const struct node_ids *n)
{
	fprintf(f, "job,system,machine,iteration,seed,%s", columns);
	for (size_t i = 0; i < n->nr; i++)
		fprintf(f, ",pages_node%d", n->ids[i]);
	fputc('\n', f);
}

/* Pages of each node of `n`, empty where this result has no such node. */
static void put_node_pages(
	FILE *f, const struct node_ids *n, const struct nb_result *r, const uint64_t *pages)
{
	for (size_t i = 0; i < n->nr; i++) {
		unsigned int k = 0;

		while (k < r->nr_nodes && r->node_ids[k] != n->ids[i])
			k++;
		if (k < r->nr_nodes)
			put_u64(f, pages[k]);
		else
			fputc(',', f);
	}
	fputc('\n', f);
}

static void put_run(FILE *f, const struct node_ids *n, const struct report_run *run)
{
	const struct nb_result *r = run->result;

	put_labels(f, run);
	put_real(f, r->elapsed_s);
	put_real(f, r->user_s);
	put_real(f, r->system_s);
	put_real(f, r->bytes);
	put_real(f, r->operations);
	put_real(f, r->local_share);
	fprintf(f, ",%d,%d", r->timed_out, run->is_best);
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		put_u64(f, report_counters(r)[i]);
	put_node_pages(f, n, r, r->final_pages);
}

static void put_sample(FILE *f, const struct node_ids *n, const struct report_run *run, uint32_t i)
{
	const struct nb_result *r = run->result;
	const struct nb_sample *s = &r->samples[i];

	put_labels(f, run);
	put_real(f, s->time_s);
	put_real(f, s->local_share);
	put_real(f, s->bytes);
	put_real(f, s->scan_period_ms);
	put_u64(f, s->hint_faults);
	put_u64(f, s->hint_faults_local);
	put_u64(f, s->pte_updates);
	put_u64(f, s->pages_migrated);
	put_node_pages(f, n, r, r->node_pages + (size_t)i * r->nr_nodes);
}

#define X(name, unit, text) "," #name
static const char run_columns[] =
	"elapsed_s,user_s,system_s,bytes,operations,local_share,timed_out,best" NB_COUNTERS(X);
#undef X
static const char sample_columns[] = "time_s,local_share,bytes,scan_period_ms,hint_faults,hint_"
				     "faults_local,pte_updates,pages_migrated";

int report_csv(FILE *f, const struct report_set *set)
{
	struct node_ids n;
	const int err = collect_ids(&n, set);

	if (err)
		return err;
	put_header(f, run_columns, &n);
	for (size_t i = 0; i < set->nr_runs; i++)
		put_run(f, &n, &set->runs[i]);
	free(n.ids);
	return ferror(f) ? -EIO : 0;
}

int report_csv_series(FILE *f, const struct report_set *set)
{
	struct node_ids n;
	const int err = collect_ids(&n, set);

	if (err)
		return err;
	put_header(f, sample_columns, &n);
	for (size_t i = 0; i < set->nr_runs; i++)
		for (uint32_t s = 0; s < set->runs[i].result->nr_samples; s++)
			put_sample(f, &n, &set->runs[i], s);
	free(n.ids);
	return ferror(f) ? -EIO : 0;
}
