/* SPDX-License-Identifier: MIT */
#include "html.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compare.h"
#include "html_assets.h"
#include "html_data.h"
#include "text.h"

struct page {
	FILE *f;
	const struct report_set *set;
	struct report_axes axes;
	double *scratch; /* [set->nr_runs] */
};

/* ---- text ---- */

/* HTML knows no control characters; C1 controls (U+0080 to U+009F) are two bytes of UTF-8. */
static bool is_control(const char *text)
{
	const unsigned char c = (unsigned char)text[0], next = (unsigned char)text[1];

	return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f || (c == 0xc2 && next < 0xa0);
}

static void put_char(FILE *f, const char *text, size_t len)
{
	switch (*text) {
	case '&':
		fputs("&amp;", f);
		break;
	case '<':
		fputs("&lt;", f);
		break;
	case '>':
		fputs("&gt;", f);
		break;
	case '"':
		fputs("&quot;", f);
		break;
	case '\'':
		fputs("&#39;", f);
		break;
	default:
		fwrite(text, 1, len, f);
	}
}

/* Good in elements and in quoted attributes. */
static void put_text(FILE *f, const char *text)
{
	while (*text) {
		const size_t len = report_utf8_len(text);

		if (!len || is_control(text))
			fputs("\xef\xbf\xbd", f);
		else
			put_char(f, text, len);
		text += len ? len : 1;
	}
}

static void put_decimals(FILE *f, int decimals, double value)
{
	if (isnan(value))
		fputs("-", f);
	else if (fabs(value) < 1e15)
		fprintf(f, "%.*f", decimals, value + 0.0);
	else
		fprintf(f, "%.6g", value);
}

static void put_number(FILE *f, double value)
{
	put_decimals(f, 2, value);
}

/* ---- summary table ---- */

static void put_percent(FILE *f, double percent, bool significant)
{
	if (isnan(percent))
		return;
	fprintf(f, "<small%s>%s%.*f %%</small>",
		!significant  ? ""
		: percent > 0 ? " class=\"good\""
			      : " class=\"bad\"",
		percent > 0 ? "+" : "", fabs(percent) < 1e15 ? 2 : 0, percent);
}

static void put_row_head(FILE *f, const char *label, const char *unit)
{
	fprintf(f, "<tr><th scope=\"row\">%s <span class=\"soft\">%s</span></th>", label, unit);
}

static const char *const metric_labels[REPORT_NR_METRICS] = {
	[REPORT_USER] = "User",
	[REPORT_SYSTEM] = "System",
	[REPORT_ELAPSED] = "Elapsed",
	[REPORT_THROUGHPUT] = "Throughput",
};

static struct report_stats stats_of(
	const struct page *p, const char *job, const char *system, enum report_metric metric)
{
	return report_stats_of(p->scratch, report_collect(p->scratch, p->set, job, system, metric));
}

/* Coloured is what Welch's test confirms, or, without iterations to test, every change over 1 %. */
static bool worth_colour(
	const struct report_stats *base, const struct report_stats *s, double percent)
{
	if (base->nr > 1 && s->nr > 1)
		return report_significant(base, s);
	return fabs(percent) > 1;
}

static void put_metric_row(const struct page *p, const char *job, enum report_metric metric)
{
	const struct report_metric_info *info = &report_metric_table[metric];
	const struct report_stats base = stats_of(p, job, p->axes.systems[0], metric);

	if (!report_job_has(p->set, job, metric, p->scratch))
		return;
	put_row_head(p->f, metric_labels[metric], info->unit);
	for (size_t c = 0; c < p->axes.nr_systems; c++) {
		const struct report_stats s = stats_of(p, job, p->axes.systems[c], metric);
		const double value = report_mean_of(&s, metric);
		const double percent =
			report_percent(report_mean_of(&base, metric), value, info->more_is_better);

		fputs("<td>", p->f);
		put_number(p->f, value);
		if (c)
			put_percent(p->f, percent, worth_colour(&base, &s, percent));
		fputs("</td>", p->f);
	}
	fputs("</tr>\n", p->f);
}

static double local_share(const struct nb_result *r)
{
	return 100 * r->local_share;
}

static double hint_faults(const struct nb_result *r)
{
	return (double)r->counters.numa_hint_faults;
}

static double pages_migrated(const struct nb_result *r)
{
	return (double)r->counters.numa_pages_migrated;
}

static double autonuma_full(const struct nb_result *r)
{
	return nb_cost_autonuma_full(r->counters.numa_pte_updates, r->counters.numa_hint_faults,
		r->counters.numa_pages_migrated);
}

/* Figures without a better or worse. */
static const struct figure {
	const char *label, *unit;
	int decimals;
	double (*of)(const struct nb_result *r);
} figures[] = {
	{"Local share", "% of bytes", 2, local_share},
	{"Hint faults", "", 0, hint_faults},
	{"Pages migrated", "4 KiB", 0, pages_migrated},
	{"AutoNUMA cost", "full, with copy", 2, autonuma_full},
};

static double mean_figure(
	const struct page *p, const char *job, const char *system, const struct figure *figure)
{
	size_t nr = 0;
	double sum = 0;

	for (size_t i = 0; i < p->set->nr_runs; i++) {
		const struct report_run *run = &p->set->runs[i];

		if (strcmp(run->job, job) || strcmp(run->system, system))
			continue;
		sum += figure->of(run->result);
		nr++;
	}
	return nr ? sum / (double)nr : NAN;
}

static void put_figure_row(const struct page *p, const char *job, const struct figure *figure)
{
	put_row_head(p->f, figure->label, figure->unit);
	for (size_t c = 0; c < p->axes.nr_systems; c++) {
		fputs(c ? "<td class=\"plain\">" : "<td>", p->f);
		put_decimals(
			p->f, figure->decimals, mean_figure(p, job, p->axes.systems[c], figure));
		fputs("</td>", p->f);
	}
	fputs("</tr>\n", p->f);
}

static void put_gain_row(const struct page *p, const char *job)
{
	const char *best = report_best_system(p->set, job);

	if (!best)
		return;
	put_row_head(p->f, "Share of the possible gain", "%");
	for (size_t c = 0; c < p->axes.nr_systems; c++) {
		fputs("<td>", p->f);
		put_number(p->f, 100 * report_gain(p->set, job, p->axes.systems[0],
					       p->axes.systems[c], best, p->scratch));
		fputs("</td>", p->f);
	}
	fputs("</tr>\n", p->f);
}

static void put_job_rows(const struct page *p, const char *job)
{
	fprintf(p->f, "<tbody>\n<tr><th class=\"job\" scope=\"rowgroup\" colspan=\"%zu\">",
		p->axes.nr_systems + 1);
	put_text(p->f, job);
	fputs("</th></tr>\n", p->f);
	put_metric_row(p, job, REPORT_ELAPSED);
	put_metric_row(p, job, REPORT_THROUGHPUT);
	put_gain_row(p, job);
	put_metric_row(p, job, REPORT_USER);
	put_metric_row(p, job, REPORT_SYSTEM);
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		put_figure_row(p, job, &figures[i]);
	fputs("</tbody>\n", p->f);
}

static void put_summary(const struct page *p)
{
	fputs("<section>\n<h2>Summary</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	      "aria-label=\"Summary\">\n"
	      "<table>\n<caption>Means over iterations; percent against the first column, + is "
	      "better</caption>\n"
	      "<thead><tr><th class=\"corner\" scope=\"col\">Job</th>",
		p->f);
	for (size_t c = 0; c < p->axes.nr_systems; c++) {
		fputs("<th scope=\"col\">", p->f);
		put_text(p->f, p->axes.systems[c]);
		fputs("</th>", p->f);
	}
	fputs("</tr></thead>\n", p->f);
	for (size_t j = 0; j < p->axes.nr_jobs; j++)
		put_job_rows(p, p->axes.jobs[j]);
	fputs("</table>\n</div>\n", p->f);
}

/* ---- remarks under the table ---- */

static void put_remark(const struct page *p, const struct report_run *run, const char *text)
{
	fputs("<li>", p->f);
	put_text(p->f, run->job);
	fputs(" with ", p->f);
	put_text(p->f, run->system);
	fprintf(p->f, ", iteration %u: ", run->iteration);
	put_text(p->f, text);
	fputs("</li>\n", p->f);
}

static void put_remarks(const struct page *p)
{
	bool any = false;

	for (size_t i = 0; i < p->set->nr_runs; i++) {
		const struct report_run *run = &p->set->runs[i];
		const char *best = run->is_best ? run->best_text : NULL;

		if (!run->result->timed_out && !best)
			continue;
		if (!any)
			fputs("<ul class=\"notes\">\n", p->f);
		any = true;
		if (run->result->timed_out)
			put_remark(p, run, "stopped by its time limit, not finished");
		if (best)
			put_remark(p, run, best);
	}
	if (any)
		fputs("</ul>\n", p->f);
	fputs("</section>\n", p->f);
}

/* ---- bars ---- */

static void put_bar(const struct page *p, const char *system, double value, double longest)
{
	fputs("<dt>", p->f);
	put_text(p->f, system);
	fprintf(p->f,
		"</dt><dd><span class=\"track\"><span class=\"bar\" "
		"style=\"width:%.2f%%\"></span></span>",
		longest > 0 && value > 0 ? 100 * value / longest : 0);
	fputs("<span class=\"value\">", p->f);
	put_number(p->f, value);
	fputs("</span></dd>\n", p->f);
}

static void put_job_bars(const struct page *p, const char *job)
{
	const enum report_metric metric = report_main_metric(p->set, job, p->scratch);
	double longest = 0;

	for (size_t c = 0; c < p->axes.nr_systems; c++)
		longest = fmax(
			longest, report_mean(p->set, job, p->axes.systems[c], metric, p->scratch));
	fputs("<figure>\n<figcaption>", p->f);
	put_text(p->f, job);
	fprintf(p->f, " <span class=\"soft\">%s, %s</span></figcaption>\n<dl>\n",
		metric == REPORT_ELAPSED ? "elapsed" : "throughput",
		report_metric_table[metric].unit);
	for (size_t c = 0; c < p->axes.nr_systems; c++)
		put_bar(p, p->axes.systems[c],
			report_mean(p->set, job, p->axes.systems[c], metric, p->scratch), longest);
	fputs("</dl>\n</figure>\n", p->f);
}

static void put_bars(const struct page *p)
{
	fputs("<section>\n<h2>At a glance</h2>\n<div class=\"bars\">\n", p->f);
	for (size_t j = 0; j < p->axes.nr_jobs; j++)
		put_job_bars(p, p->axes.jobs[j]);
	fputs("</div>\n</section>\n", p->f);
}

/* ---- the page ---- */

/* The script fills these in, in this order. */
static void put_job_sections(const struct page *p)
{
	for (size_t j = 0; j < p->axes.nr_jobs; j++) {
		fputs("<section class=\"job\">\n<h2>", p->f);
		put_text(p->f, p->axes.jobs[j]);
		fputs(" over time</h2>\n</section>\n", p->f);
	}
	fputs("<noscript><p>The plots over time are drawn by a script in this page, and scripts "
	      "are off. "
	      "The same figures are in numabal's JSON and CSV output.</p></noscript>\n",
		p->f);
}

static void put_head(const struct page *p, const char *machine)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; "
	      "script-src 'unsafe-inline'; img-src data:\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>numabal: ",
		p->f);
	put_text(p->f, machine);
	fputs("</title>\n<style>\n", p->f);
	fputs(embedded_html_css, p->f);
	fputs("</style>\n</head>\n<body>\n<main>\n<h1>NUMA balancing on ", p->f);
	put_text(p->f, machine);
	fprintf(p->f,
		"</h1>\n<p class=\"soft\">%zu %s: %zu %s, %zu %s. Plots show the first "
		"iteration. numabal %s.</p>\n",
		p->set->nr_runs, p->set->nr_runs == 1 ? "run" : "runs", p->axes.nr_jobs,
		p->axes.nr_jobs == 1 ? "job" : "jobs", p->axes.nr_systems,
		p->axes.nr_systems == 1 ? "system" : "systems", NB_VERSION);
}

static int put_page(const struct page *p)
{
	int err;

	put_head(p, p->set->nr_runs ? p->set->runs[0].machine : "no machine");
	if (p->set->nr_runs) {
		put_summary(p);
		put_remarks(p);
		put_bars(p);
		put_job_sections(p);
	}
	fputs("</main>\n<script type=\"application/json\" id=\"data\">\n", p->f);
	err = report_html_data(p->f, p->set, &p->axes);
	fputs("</script>\n<script>\n", p->f);
	fputs(embedded_html_js, p->f);
	fputs("</script>\n</body>\n</html>\n", p->f);
	return err ? err : ferror(p->f) ? -EIO : 0;
}

int report_html(FILE *f, const struct report_set *set)
{
	struct page p = {.f = f, .set = set};
	int err = report_axes_init(&p.axes, set);

	if (err)
		return err;
	p.scratch = calloc(set->nr_runs + 1, sizeof(*p.scratch));
	err = p.scratch ? put_page(&p) : -ENOMEM;
	free(p.scratch);
	report_axes_free(&p.axes);
	return err;
}
