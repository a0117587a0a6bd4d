/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compare.h"
#include "grid.h"
#include "text.h"

/* Everything the rows are computed from. */
struct table {
	const struct report_set *set;
	struct report_axes axes;
	double *values;		   /* [set->nr_runs] scratch */
	struct nb_counters *total; /* [nr_systems] over all jobs and iterations */
	struct report_grid *grid;  /* the block being built */
};

/* ---- rows over the iterations ---- */

enum row_kind {
	ROW_MIN,
	ROW_MEAN,
	ROW_STDDEV,
	ROW_COEFFVAR,
	ROW_MAX,
	ROW_BEST_50,
	ROW_BEST_95,
	ROW_BEST_99
};

/* Times have arithmetic means, rates harmonic ones; the names are MMTests'. */
static const struct row_info {
	const char *name, *rate_name;
	unsigned int best_percent; /* 0 = no mean of the best */
	bool spread; /* less is better whatever the metric; no test of means applies */
} row_infos[] = {
	[ROW_MIN] = {"Min", "Min", 0, false},
	[ROW_MEAN] = {"Amean", "Hmean", 0, false},
	[ROW_STDDEV] = {"Stddev", "Stddev", 0, true},
	[ROW_COEFFVAR] = {"CoeffVar", "CoeffVar", 0, true},
	[ROW_MAX] = {"Max", "Max", 0, false},
	[ROW_BEST_50] = {"BAmean-50", "BHmean-50", 50, false},
	[ROW_BEST_95] = {"BAmean-95", "BHmean-95", 95, false},
	[ROW_BEST_99] = {"BAmean-99", "BHmean-99", 99, false},
};
enum { NR_ROW_KINDS = sizeof(row_infos) / sizeof(row_infos[0]) };

/* `values` are those that `s` was made from. */
static double row_value(
	enum row_kind kind, enum report_metric metric, const struct report_stats *s, double *values)
{
	const bool rate = report_metric_table[metric].more_is_better;

	switch (kind) {
	case ROW_MIN:
		return s->min;
	case ROW_MAX:
		return s->max;
	case ROW_MEAN:
		return report_mean_of(s, metric);
	case ROW_STDDEV:
		return s->stddev;
	case ROW_COEFFVAR:
		return s->coeffvar;
	default:
		return report_best_mean(values, s->nr, row_infos[kind].best_percent, rate, rate);
	}
}

/* Print into a cell; what does not fit (1e300 seconds) keeps its size in another form. */
static void put_number(char cell[GRID_CELL], double value)
{
	if (isnan(value))
		strcpy(cell, "-");
	else if (fabs(value) < 1e18)
		snprintf(cell, GRID_CELL, "%.2f",
			value + 0.0); /* + 0.0: never "-0.00" for nothing */
	else
		snprintf(cell, GRID_CELL, "%.6g", value);
}

static void put_percent(char note[GRID_CELL], double percent, bool significant)
{
	char number[GRID_CELL];

	if (isnan(percent))
		strcpy(number, "-");
	else
		snprintf(number, sizeof(number), fabs(percent) < 1e18 ? "%.2f" : "%.6g", percent);
	snprintf(note, GRID_CELL, significant ? "*%7.32s%%*" : "(%7.32s%%)", number);
}

static int iteration_row(
	struct table *t, enum row_kind kind, enum report_metric metric, const char *job)
{
	const struct report_metric_info *m = &report_metric_table[metric];
	const struct row_info *info = &row_infos[kind];
	struct report_stats base = {0};
	double base_value = NAN;
	struct report_cell *cells = report_grid_row(t->grid, "%-9s %s-%s",
		m->more_is_better ? info->rate_name : info->name, m->name, job);

	if (!cells)
		return -ENOMEM;
	for (size_t c = 0; c < t->axes.nr_systems; c++) {
		const size_t nr =
			report_collect(t->values, t->set, job, t->axes.systems[c], metric);
		const struct report_stats s = report_stats_of(t->values, nr);
		const double value = row_value(kind, metric, &s, t->values);

		if (c == 0) {
			base = s;
			base_value = value;
		}
		put_number(cells[c].value, value);
		put_percent(cells[c].note,
			report_percent(base_value, value, m->more_is_better && !info->spread),
			c > 0 && kind == ROW_MEAN && report_significant(&base, &s));
	}
	return 0;
}

static int kind_rows(struct table *t, enum row_kind kind)
{
	for (int metric = 0; metric < REPORT_NR_METRICS; metric++) {
		for (size_t j = 0; j < t->axes.nr_jobs; j++) {
			if (!report_job_has(t->set, t->axes.jobs[j], metric, t->values))
				continue;
			if (iteration_row(t, kind, metric, t->axes.jobs[j]))
				return -ENOMEM;
		}
	}
	return 0;
}

/* ---- share of the possible gain ---- */

static int gain_row(struct table *t, const char *job)
{
	const char *best = report_best_system(t->set, job);
	struct report_cell *cells;

	if (!best)
		return 0;
	cells = report_grid_row(t->grid, "Share of gain-%s", job);
	if (!cells)
		return -ENOMEM;
	for (size_t c = 0; c < t->axes.nr_systems; c++) {
		const double share = report_gain(
			t->set, job, t->axes.systems[0], t->axes.systems[c], best, t->values);

		put_number(cells[c].value, 100 * share);
		if (!isnan(share))
			strcat(cells[c].value, "%");
	}
	return 0;
}

static int comparison(struct table *t, bool full)
{
	for (int kind = 0; kind < NR_ROW_KINDS; kind++)
		if ((full || kind == ROW_MEAN) && kind_rows(t, kind))
			return -ENOMEM;
	for (size_t j = 0; j < t->axes.nr_jobs; j++)
		if (gain_row(t, t->axes.jobs[j]))
			return -ENOMEM;
	return 0;
}

/* ---- totals ---- */

static double total_of(const struct table *t, const char *system, enum report_metric metric)
{
	double sum = 0;

	for (size_t i = 0; i < t->set->nr_runs; i++)
		if (!strcmp(t->set->runs[i].system, system))
			sum += report_metric_of(t->set->runs[i].result, metric);
	return sum;
}

static int durations(struct table *t, bool full)
{
	static const struct {
		const char *label;
		enum report_metric metric;
	} rows[] = {{"User", REPORT_USER}, {"System", REPORT_SYSTEM}, {"Elapsed", REPORT_ELAPSED}};

	(void)full;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct report_cell *cells = report_grid_row(t->grid, "Duration %s", rows[i].label);

		if (!cells)
			return -ENOMEM;
		for (size_t c = 0; c < t->axes.nr_systems; c++)
			put_number(cells[c].value, total_of(t, t->axes.systems[c], rows[i].metric));
	}
	return 0;
}

static double compaction_cost(const struct nb_counters *c)
{
	return nb_cost_compaction(c->pgmigrate_success);
}

static double autonuma_mmtests(const struct nb_counters *c)
{
	return nb_cost_autonuma_mmtests(
		c->numa_pte_updates, c->numa_hint_faults, c->numa_pages_migrated);
}

static double autonuma_full(const struct nb_counters *c)
{
	return nb_cost_autonuma_full(
		c->numa_pte_updates, c->numa_hint_faults, c->numa_pages_migrated);
}

/* MMTests says 100 where there was no fault at all; there is nothing to take a share of. */
static double local_percent(const struct nb_counters *c)
{
	if (!c->numa_hint_faults)
		return NAN;
	return 100 * (double)c->numa_hint_faults_local / (double)c->numa_hint_faults;
}

/* A row is a counter or something computed from counters. */
static const struct ops_row {
	const char *label;
	size_t offset; /* of the counter */
	double (*compute)(const struct nb_counters *c);
} ops_rows[] = {
#define COUNTER(label, field)                                                                      \
	{                                                                                          \
		label, offsetof(struct nb_counters, field), NULL                                   \
	}
	COUNTER("THP fault alloc", thp_fault_alloc),
	COUNTER("THP collapse alloc", thp_collapse_alloc),
	COUNTER("THP splits", thp_split_page),
	COUNTER("Page migrate success", pgmigrate_success),
	COUNTER("Page migrate failure", pgmigrate_fail),
	{"Compaction cost", 0, compaction_cost},
	COUNTER("NUMA PTE updates", numa_pte_updates),
	COUNTER("NUMA huge PMD updates", numa_huge_pte_updates),
	COUNTER("NUMA hint faults", numa_hint_faults),
	COUNTER("NUMA hint local faults", numa_hint_faults_local),
	{"NUMA hint local percent", 0, local_percent},
	COUNTER("NUMA pages migrated", numa_pages_migrated),
	{"AutoNUMA cost (MMTests)", 0, autonuma_mmtests},
	{"AutoNUMA cost (full, with copy)", 0, autonuma_full},
#undef COUNTER
};

static double ops_value(const struct ops_row *row, const struct nb_counters *c)
{
	if (row->compute)
		return row->compute(c);
	return (double)*(const uint64_t *)((const char *)c + row->offset);
}

static int ops(struct table *t, bool full)
{
	(void)full;
	for (size_t i = 0; i < sizeof(ops_rows) / sizeof(ops_rows[0]); i++) {
		struct report_cell *cells = report_grid_row(t->grid, "Ops %s", ops_rows[i].label);

		if (!cells)
			return -ENOMEM;
		for (size_t c = 0; c < t->axes.nr_systems; c++)
			put_number(cells[c].value, ops_value(&ops_rows[i], &t->total[c]));
	}
	return 0;
}

static void add_counters(struct nb_counters *sum, const struct nb_result *result)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = report_counters(result);

	for (int i = 0; i < NB_NR_COUNTERS; i++)
		to[i] += from[i];
}

static void total_counters(struct table *t)
{
	for (size_t i = 0; i < t->set->nr_runs; i++)
		for (size_t c = 0; c < t->axes.nr_systems; c++)
			if (!strcmp(t->set->runs[i].system, t->axes.systems[c]))
				add_counters(&t->total[c], t->set->runs[i].result);
}

/* ---- remarks ---- */

static void remark(FILE *f, const struct report_run *run, const char *what)
{
	report_put_ascii(f, run->job);
	fputs(" with ", f);
	report_put_ascii(f, run->system);
	fprintf(f, ", iteration %u: ", run->iteration);
	report_put_ascii(f, what);
	fputc('\n', f);
}

/* An empty line goes before the first remark only. */
static void remarks(const struct table *t, FILE *f)
{
	const char *before = "\n";

	for (size_t i = 0; i < t->set->nr_runs; i++) {
		const struct report_run *run = &t->set->runs[i];
		const char *texts[] = {
			run->result->timed_out ? "stopped by its time limit, not finished" : NULL,
			run->is_best ? run->best_text : NULL,
		};

		for (int k = 0; k < 2; k++) {
			if (!texts[k])
				continue;
			fputs(before, f);
			remark(f, run, texts[k]);
			before = "";
		}
	}
}

/* ---- the whole ---- */

static int block(struct table *t, FILE *f, int (*rows)(struct table *t, bool full), bool full)
{
	int err;

	t->grid = report_grid_new(t->axes.nr_systems, t->axes.systems);
	if (!t->grid)
		return -ENOMEM;
	err = rows(t, full);
	if (!err)
		err = report_grid_print(t->grid, f);
	report_grid_free(t->grid);
	t->grid = NULL;
	return err;
}

static int blocks(struct table *t, FILE *f, bool full)
{
	int err = block(t, f, comparison, full);

	fputc('\n', f);
	if (!err)
		err = block(t, f, durations, full);
	fputc('\n', f);
	if (!err)
		err = block(t, f, ops, full);
	if (!err)
		remarks(t, f);
	return err ? err : ferror(f) ? -EIO : 0;
}

int report_table(FILE *f, const struct report_set *set, const struct report_table_options *options)
{
	struct table t = {.set = set};
	int err = report_axes_init(&t.axes, set);

	if (err)
		return err;
	t.values = calloc(set->nr_runs + 1, sizeof(*t.values));
	t.total = calloc(t.axes.nr_systems + 1, sizeof(*t.total));
	if (t.values && t.total) {
		total_counters(&t);
		err = set->nr_runs ? blocks(&t, f, options && options->full_rows) : 0;
	} else {
		err = -ENOMEM;
	}
	free(t.values);
	free(t.total);
	report_axes_free(&t.axes);
	return err;
}
