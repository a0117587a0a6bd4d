/* SPDX-License-Identifier: MIT */
#include "top_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "live_report.h"

enum {
	TEXT = 32,
	BAR = 20,
	GRAPH_ROWS = 4,
	GRAPH_LINES = GRAPH_ROWS + 3, /* a blank, a title, and the line below */
	LEAST_LIST = 3,		      /* lines: a blank, its header, and one of it */
	MANY_NODES = 8,		      /* beyond, those without memory are left out */
};

static const char *const process_sorts[] = {
#define X(NAME, text) text,
	TOP_PROCESS_SORTS(X)
#undef X
};

static const char *const region_sorts[] = {
#define X(NAME, text) text,
	TOP_REGION_SORTS(X)
#undef X
};

/* A page being made. */
struct making {
	struct top_page *page;
	struct top_view *view;
	int room; /* lines that are left */
};

__attribute__((format(printf, 3, 4))) static void put(
	struct making *m, enum top_look_of look, const char *format, ...)
{
	struct top_page *page = m->page;
	va_list args;

	if (m->room <= 0)
		return;
	va_start(args, format);
	vsnprintf(page->line[page->nr], sizeof(page->line[0]), format, args);
	va_end(args);
	page->line[page->nr][m->view->width] = '\0';
	page->look[page->nr++] = (unsigned char)look;
	m->room--;
}

static struct making begin(struct top_page *page, struct top_view *view)
{
	struct making m = {page, view, TOP_MAX_LINES};

	page->nr = 0;
	if (view->width > TOP_MAX_WIDTH)
		view->width = TOP_MAX_WIDTH;
	if (view->height > 0 && view->height < m.room)
		m.room = view->height;
	return m;
}

/* ---- values; "-" is none ---- */

static const char *percent(double share, char text[TEXT])
{
	if (isnan(share))
		return "-";
	snprintf(text, TEXT, "%.1f %%", 100 * share);
	return text;
}

static const char *a_second(double rate, char text[TEXT])
{
	if (isnan(rate))
		return "-";
	snprintf(text, TEXT, "%.1f", rate);
	return text;
}

static const char *bytes_a_second(double pages, char text[TEXT])
{
	char size[TEXT];

	if (isnan(pages))
		return "-";
	snprintf(text, TEXT, "%s/s",
		live_size_text((uint64_t)fmin(pages * 4096, 1e18), size, sizeof(size)));
	return text;
}

/* ---- a list, of which a part is shown ---- */

static size_t bounded(size_t n, size_t most)
{
	return n < most ? n : most;
}

/* Which lines of a list of n fit below its header, the selected one among them. */
static void fit_list(struct making *m, size_t n, size_t *end)
{
	struct top_view *v = m->view;
	const size_t room = m->room > 0 ? (size_t)m->room : 0;

	v->page = room > 0 ? room : 1;
	if (v->height == 0) {
		v->first = 0;
		*end = n;
		return;
	}
	v->selected = n > 0 ? bounded(v->selected, n - 1) : 0;
	if (v->selected < v->first)
		v->first = v->selected;
	if (v->selected >= v->first + v->page)
		v->first = v->selected + 1 - v->page;
	if (v->first + v->page > n)
		v->first = n > v->page ? n - v->page : 0;
	*end = bounded(n, v->first + v->page);
}

static enum top_look_of look_of_line(const struct making *m, size_t i)
{
	return m->view->height > 0 && i == m->view->selected ? TOP_SELECTED : TOP_PLAIN;
}

/* ---- processes ---- */

static int compare(double a, double b)
{
	/* What is not known comes last. */
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a > b ? -1 : a < b;
}

static int by_process(const void *a, const void *b, void *sort)
{
	const struct top_process *x = *(const struct top_process *const *)a;
	const struct top_process *y = *(const struct top_process *const *)b;
	int order = 0;

	switch (*(const unsigned int *)sort) {
	case TOP_BY_MANAGED:
		order = compare((double)x->managed, (double)y->managed);
		break;
	case TOP_BY_FAULTS:
		order = compare(x->faults_s, y->faults_s);
		break;
	case TOP_BY_MOVED:
		order = compare(x->moved_s, y->moved_s);
		break;
	case TOP_BY_LOCAL:
		order = compare(-x->local, -y->local);
		break;
	default:
		break;
	}
	return order != 0 ? order : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void put_process(struct making *m, const struct top_process *p, enum top_look_of look)
{
	char size[TEXT], local[TEXT], faults[TEXT], moved[TEXT], agent[TEXT];

	put(m, look, "%7u %-15s %11s %8s %9s %12s %8s %s%s", p->pid, p->name,
		live_size_text(p->managed, size, sizeof(size)), percent(p->local, local),
		a_second(p->faults_s, faults), bytes_a_second(p->moved_s, moved),
		percent(p->agent_share, agent), p->session->system, p->ended ? ", ended" : "");
}

static void process_list(struct making *m, const struct top_data *d)
{
	const size_t n = top_nr(d);
	const struct top_process **list = calloc(n + 1, sizeof(const struct top_process *));
	size_t end;

	if (list == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = top_at(d, i);
	qsort_r(list, n, sizeof(list[0]), by_process, &m->view->process_sort);
	put(m, TOP_TITLE, "numabal top: %zu process%s managed; watched %.0f s; by %s", n,
		n == 1 ? "" : "es", top_watched_s(d), process_sorts[m->view->process_sort]);
	if (m->view->height == 0 || m->room > LEAST_LIST)
		put(m, TOP_PLAIN, "%s", "");
	put(m, TOP_HEADER, "%7s %-15s %11s %8s %9s %12s %8s %s", "PID", "NAME", "MANAGED", "LOCAL",
		"FAULTS/S", "MOVED", "AGENT", "SYSTEM");
	fit_list(m, n, &end);
	for (size_t i = m->view->first; i < end; i++)
		put_process(m, list[i], look_of_line(m, i));
	if (n == 0)
		put(m, TOP_PLAIN,
			"no program runs under numabal run, or none has memory to manage "
			"yet");
	m->view->chosen_pid = n > 0 ? list[bounded(m->view->selected, n - 1)]->pid : 0;
	free(list);
}

/* ---- one process: its numbers ---- */

static void numbers(struct making *m, const struct top_process *p, const struct top_data *d)
{
	const bool is_virtual = p->session->flags & NB_SESSION_VIRTUAL;
	char size[TEXT], local[TEXT], faults[TEXT], moved[TEXT], bytes[TEXT], agent[TEXT];

	put(m, TOP_TITLE, "numabal top: %s, process %u%s; %s on %u%s nodes; watched %.0f s",
		p->name, p->pid, p->ended ? ", ended" : "", p->session->system,
		p->session->nr_nodes, is_virtual ? " virtual" : "", top_watched_s(d));
	put(m, TOP_PLAIN, "managed %s; local %s; agent %s of a CPU",
		live_size_text(p->managed, size, sizeof(size)), percent(p->local, local),
		percent(p->agent_share, agent));
	put(m, TOP_PLAIN,
		"hint faults %s/s; pages moved %s/s (%s); in all %" PRIu64 " faults, %" PRIu64
		" pages moved",
		a_second(p->faults_s, faults), a_second(p->moved_s, moved),
		bytes_a_second(p->moved_s, bytes), p->faults, p->moved);
	for (int i = 0; i < NB_NR_NOTES; i++)
		if (p->notes >> i & 1 && (m->view->height == 0 || m->room > LEAST_LIST + 2))
			put(m, TOP_PLAIN, "note: %s", nb_note_texts[i]);
}

/* ---- its nodes ---- */

static const struct nb_node *nodes_of(const struct nb_session *s)
{
	return (const struct nb_node *)(const void *)((const char *)s + s->nodes_at);
}

static const char *bar(double share, char text[BAR + 1])
{
	const int full = (int)(share * BAR + 0.5);

	for (int i = 0; i < BAR; i++)
		text[i] = i < full ? '#' : ' ';
	text[BAR] = '\0';
	return text;
}

static void put_node(struct making *m, const char *name, uint64_t bytes, uint64_t all)
{
	const double share = all > 0 ? (double)bytes / (double)all : NAN;
	char size[TEXT], text[TEXT], bars[BAR + 1];

	put(m, TOP_PLAIN, "%6s %11s %8s  |%s|", name, live_size_text(bytes, size, sizeof(size)),
		percent(share, text), bar(isnan(share) ? 0 : share, bars));
}

static bool is_shown(const struct top_process *p, unsigned int n)
{
	return p->session->nr_nodes <= MANY_NODES || p->node_bytes[n] > 0;
}

static int nodes_lines(const struct top_process *p)
{
	int lines = 2 + (p->survey.unknown > 0);

	for (unsigned int n = 0; n < p->session->nr_nodes; n++)
		lines += is_shown(p, n);
	return lines;
}

static void nodes(struct making *m, const struct top_process *p)
{
	uint64_t all = p->survey.unknown;
	char name[TEXT];

	for (unsigned int n = 0; n < p->session->nr_nodes; n++)
		all += p->node_bytes[n];
	put(m, TOP_PLAIN, "%s", "");
	put(m, TOP_HEADER, "%6s %11s %8s", "NODE", "MEMORY", "SHARE");
	for (unsigned int n = 0; n < p->session->nr_nodes; n++) {
		if (!is_shown(p, n))
			continue;
		snprintf(name, sizeof(name), "%d", nodes_of(p->session)[n].id);
		put_node(m, name, p->node_bytes[n], all);
	}
	if (p->survey.unknown > 0)
		put_node(m, "none", p->survey.unknown, all);
}

/* ---- its local share over time ---- */

static char graph_cell(unsigned int share, int row)
{
	const unsigned int step = 100 / GRAPH_ROWS;
	const unsigned int level = (unsigned int)(GRAPH_ROWS - row) * step;

	if (share == TOP_NO_SHARE)
		return ' ';
	return share + step / 2 >= level ? '#' : ' ';
}

static void graph_row(struct making *m, const struct top_process *p, int row, unsigned int columns)
{
	const unsigned int first = p->nr_history > columns ? p->nr_history - columns : 0;
	char cells[TOP_HISTORY + 1];
	unsigned int n = 0;

	for (unsigned int i = first; i < p->nr_history; i++)
		cells[n++] = graph_cell(p->history[i % TOP_HISTORY], row);
	cells[n] = '\0';
	put(m, TOP_PLAIN, "%4d%% |%s", (GRAPH_ROWS - row) * 100 / GRAPH_ROWS, cells);
}

static void graph(struct making *m, const struct top_process *p)
{
	const int width = m->view->width - 7;
	unsigned int columns = width > 1 ? (unsigned int)width : 1;
	char line[TOP_HISTORY + 1];

	columns = columns < TOP_HISTORY ? columns : TOP_HISTORY;
	memset(line, '-', columns);
	line[columns] = '\0';
	put(m, TOP_PLAIN, "%s", "");
	put(m, TOP_HEADER, "LOCAL SHARE, a column for each look, the last one rightmost");
	for (int row = 0; row < GRAPH_ROWS; row++)
		graph_row(m, p, row, columns);
	put(m, TOP_PLAIN, "   0%% +%s", line);
}

/* ---- its regions ---- */

static int by_region(const void *a, const void *b, void *sort)
{
	const struct nb_survey_region *x = a, *y = b;
	int order = 0;

	if (*(const unsigned int *)sort == TOP_REGION_BY_SIZE)
		order = compare((double)x->bytes, (double)y->bytes);
	if (*(const unsigned int *)sort == TOP_REGION_BY_SPREAD)
		order = x->permille[0] - y->permille[0];
	return order != 0 ? order : x->start < y->start ? -1 : x->start > y->start;
}

static void put_region(struct making *m, const struct nb_session *s,
	const struct nb_survey_region *r, enum top_look_of look)
{
	char size[TEXT], on[NB_SURVEY_NODES * TEXT] = "";
	size_t used = 0;

	for (int i = 0; i < NB_SURVEY_NODES; i++)
		if (r->node[i] >= 0 && (uint32_t)r->node[i] < s->nr_nodes)
			used += (size_t)snprintf(on + used, sizeof(on) - used, "  N%d %.1f %%",
				nodes_of(s)[r->node[i]].id, r->permille[i] / 10.0);
	put(m, look, "%012" PRIx64 "-%012" PRIx64 " %11s%s", r->start, r->start + r->bytes,
		live_size_text(r->bytes, size, sizeof(size)), on);
}

static void regions(struct making *m, struct top_process *p)
{
	struct nb_survey *s = &p->survey;
	size_t end;

	qsort_r(s->region, s->nr_regions, sizeof(s->region[0]), by_region, &m->view->region_sort);
	if (m->view->height == 0 || m->room >= LEAST_LIST)
		put(m, TOP_PLAIN, "%s", "");
	put(m, TOP_HEADER, "%-25s %11s  NODES; by %s", "REGION", "SIZE",
		region_sorts[m->view->region_sort]);
	fit_list(m, s->nr_regions, &end);
	for (size_t i = m->view->first; i < end; i++)
		put_region(m, p->session, &s->region[i], look_of_line(m, i));
	if (s->version == 0)
		put(m, TOP_PLAIN, "%s",
			p->ended ? "it ended before anybody looked" : "not looked at yet");
}

/* What there is no room for is left out: first the graph, then the nodes. */
static void one_process(struct making *m, const struct top_process *shown, const struct top_data *d)
{
	struct top_process p = *shown;
	const bool all = m->view->height == 0;

	numbers(m, &p, d);
	if (all || m->room >= nodes_lines(&p) + LEAST_LIST)
		nodes(m, &p);
	if (all || m->room >= GRAPH_LINES + LEAST_LIST)
		graph(m, &p);
	regions(m, &p);
}

/* ---- public ---- */

void top_page(struct top_page *page, const struct top_data *d, struct top_view *view)
{
	const struct top_process *p = view->pid != 0 ? top_find(d, view->pid) : NULL;
	struct making m = begin(page, view);

	view->chosen_pid = 0;
	if (p != NULL)
		one_process(&m, p, d);
	else
		process_list(&m, d);
}

void top_page_help(struct top_page *page, const struct top_view *view)
{
	struct top_view as = *view;
	struct making m = begin(page, &as);

	put(&m, TOP_TITLE, "numabal top: keys");
	put(&m, TOP_PLAIN, "%s", "");
	put(&m, TOP_PLAIN, "up, down, PgUp, PgDn, Home, End   choose a line");
	put(&m, TOP_PLAIN, "Enter, right                      show the chosen process");
	put(&m, TOP_PLAIN, "Esc, left                         back to the list of processes");
	put(&m, TOP_PLAIN, "s                                 sort by the next column");
	put(&m, TOP_PLAIN, "?                                 this text; any key ends it");
	put(&m, TOP_PLAIN, "q                                 quit");
}
