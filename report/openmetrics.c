/* SPDX-License-Identifier: MIT */
#include "openmetrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include "text.h"

/* Label values and help texts share their escapes: backslash, quote, end of line. */
static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", f);
			continue;
		}
		if (*text == '\\' || *text == '"')
			fputc('\\', f);
		fputc(*text, f);
	}
}

static void put_label(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=\"", name);
	put_escaped(f, value);
	fputs("\",", f);
}

/* Without the closing brace: a gauge may add labels of its own. */
static void put_sample_head(
	FILE *f, const char *name, const char *suffix, const struct report_run *run)
{
	fprintf(f, "numabal_%s%s{", name, suffix);
	put_label(f, "job", run->job);
	put_label(f, "system", run->system);
	put_label(f, "machine", run->machine);
	fprintf(f, "iteration=\"%u\"", run->iteration);
}

static void put_family(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# TYPE numabal_%s %s\n# HELP numabal_%s ", name, type, name);
	put_escaped(f, help);
	fputc('\n', f);
}

static void put_value(FILE *f, double value)
{
	char text[REPORT_NUMBER_LEN];

	if (isfinite(value))
		fprintf(f, "} %s\n", report_shortest(text, value));
	else
		fprintf(f, "} %s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
}

static void put_counter(FILE *f, const struct report_set *set, int i)
{
	const struct nb_counter_info *info = &nb_counter_table[i];

	put_family(f, info->name, "counter", info->text);
	for (size_t k = 0; k < set->nr_runs; k++) {
		put_sample_head(f, info->name, "_total", &set->runs[k]);
		fprintf(f, "} %" PRIu64 "\n", report_counters(set->runs[k].result)[i]);
	}
}

static const struct gauge {
	const char *name, *help;
	size_t offset; /* of the double in struct nb_result */
} gauges[] = {
	{"elapsed_seconds", "time from start to end of the run",
		offsetof(struct nb_result, elapsed_s)},
	{"user_seconds", "CPU time of the program", offsetof(struct nb_result, user_s)},
	{"system_seconds", "CPU time of the kernel on its behalf",
		offsetof(struct nb_result, system_s)},
	{"accessed_bytes", "bytes the program accessed", offsetof(struct nb_result, bytes)},
	{"operations", "operations done; 0 where time is the result",
		offsetof(struct nb_result, operations)},
	{"local_share_ratio", "share of the accessed bytes that were local",
		offsetof(struct nb_result, local_share)},
};

static void put_gauge(FILE *f, const struct report_set *set, const struct gauge *g)
{
	put_family(f, g->name, "gauge", g->help);
	for (size_t k = 0; k < set->nr_runs; k++) {
		put_sample_head(f, g->name, "", &set->runs[k]);
		put_value(f, *(const double *)((const char *)set->runs[k].result + g->offset));
	}
}

static void put_node_pages(FILE *f, const struct report_set *set)
{
	put_family(f, "node_pages", "gauge", "pages of 4 KiB on the node at the end");
	for (size_t k = 0; k < set->nr_runs; k++) {
		const struct nb_result *r = set->runs[k].result;

		for (unsigned int n = 0; n < r->nr_nodes; n++) {
			put_sample_head(f, "node_pages", "", &set->runs[k]);
			fprintf(f, ",node=\"%d\"} %" PRIu64 "\n", r->node_ids[n],
				r->final_pages[n]);
		}
	}
}

int report_openmetrics(FILE *f, const struct report_set *set)
{
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		put_counter(f, set, i);
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		put_gauge(f, set, &gauges[i]);
	put_node_pages(f, set);
	fputs("# EOF\n", f);
	return ferror(f) ? -EIO : 0;
}
