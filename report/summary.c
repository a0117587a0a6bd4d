/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "json.h"
#include "words.h"

int report_summary_init(struct report_summary *s, unsigned int nr_nodes, const int *node_ids)
{
	*s = (struct report_summary){
		.nr_nodes = nr_nodes,
		.node_ids = node_ids,
		.faults_by_node = calloc(nr_nodes + 1, sizeof(*s->faults_by_node)),
		.moved = calloc((size_t)nr_nodes * nr_nodes + 1, sizeof(*s->moved)),
	};
	if (s->faults_by_node && s->moved)
		return 0;
	report_summary_free(s);
	return -ENOMEM;
}

void report_summary_free(struct report_summary *s)
{
	free(s->faults_by_node);
	free(s->moved);
	*s = (struct report_summary){0};
}

/* ---- adding up ---- */

static void happened(struct report_times *t, uint64_t now_ns)
{
	if (!t->nr++)
		t->first_ns = now_ns;
	t->last_ns = now_ns;
}

static void add_skip(struct report_summary *s, const struct nb_event *e)
{
	happened(&s->skipped[e->reason], e->time_ns);
	if (!s->last_was_skip || s->last_skip != e->reason)
		s->last_skip_ns = e->time_ns;
	s->last_was_skip = true;
	s->last_skip = e->reason;
}

static void add_fault(struct report_summary *s, const struct nb_event *e)
{
	happened(&s->faults, e->time_ns);
	s->verdicts[e->reason]++;
	s->faults_local += e->node_from == e->node_to;
	if (e->node_to >= 0)
		s->faults_by_node[e->node_to]++;
}

static void add_move(struct report_summary *s, const struct nb_event *e)
{
	s->moved_pages += e->pages;
	if (e->node_from >= 0 && e->node_to >= 0)
		s->moved[(size_t)e->node_from * s->nr_nodes + (size_t)e->node_to] += e->pages;
}

void report_summary_add(struct report_summary *s, const struct nb_event *e)
{
	switch (e->type) {
	case NB_EVENT_SCAN_ARM:
		happened(&s->armed, e->time_ns);
		s->armed_pages += e->pages;
		s->last_was_skip = false;
		break;
	case NB_EVENT_SCAN_SKIP:
		add_skip(s, e);
		break;
	case NB_EVENT_LAZY:
		happened(&s->lazy, e->time_ns);
		break;
	case NB_EVENT_SPLIT:
		happened(&s->split, e->time_ns);
		break;
	case NB_EVENT_HINT_FAULT:
		add_fault(s, e);
		break;
	case NB_EVENT_MOVE_ASKED:
		s->asked_pages += e->pages;
		break;
	case NB_EVENT_MOVE_DONE:
		add_move(s, e);
		break;
	case NB_EVENT_MOVE_FAILED:
		s->not_moved[e->reason] += e->pages;
		break;
	default:
		break;
	}
}

/* ---- as text ---- */

static void print_times(FILE *f, const struct report_times *t)
{
	char first[REPORT_TIME_LEN], last[REPORT_TIME_LEN];

	fprintf(f, "%" PRIu64 " times, %s s to %s s", t->nr, report_seconds(first, t->first_ns),
		report_seconds(last, t->last_ns));
}

static void print_scans(const struct report_summary *s, FILE *f)
{
	char since[REPORT_TIME_LEN];

	if (s->armed.nr) {
		fputs("  armed by scans: ", f);
		print_times(f, &s->armed);
		fprintf(f, ", %" PRIu64 " pages\n", s->armed_pages);
	} else {
		fputs("  never armed by a scan\n", f);
	}
	for (int i = 0; i < NB_NR_SKIPS; i++) {
		if (!s->skipped[i].nr)
			continue;
		fprintf(f, "  passed over for %s: ", nb_skip_names[i].name);
		print_times(f, &s->skipped[i]);
		fprintf(f, " (%s)\n", nb_skip_names[i].text);
	}
	if (s->last_was_skip)
		fprintf(f, "  not scanned at the end: %s, since %s s\n",
			nb_skip_names[s->last_skip].name, report_seconds(since, s->last_skip_ns));
}

static void print_faults(const struct report_summary *s, FILE *f)
{
	fprintf(f, "  hint faults: %" PRIu64 ", local: %" PRIu64 "\n", s->faults.nr,
		s->faults_local);
	for (unsigned int i = 0; i < s->nr_nodes; i++)
		if (s->faults_by_node[i])
			fprintf(f, "    from node %d: %" PRIu64 "\n", s->node_ids[i],
				s->faults_by_node[i]);
	for (int i = 0; i < NB_NR_WHYS; i++)
		if (s->verdicts[i])
			fprintf(f, "    %s: %" PRIu64 " (%s)\n", nb_why_names[i].name,
				s->verdicts[i], nb_why_names[i].text);
}

static void print_moves(const struct report_summary *s, FILE *f)
{
	fprintf(f, "  pages asked to move: %" PRIu64 ", moved: %" PRIu64 "\n", s->asked_pages,
		s->moved_pages);
	for (size_t i = 0; i < (size_t)s->nr_nodes * s->nr_nodes; i++)
		if (s->moved[i])
			fprintf(f, "    node %d to node %d: %" PRIu64 "\n",
				s->node_ids[i / s->nr_nodes], s->node_ids[i % s->nr_nodes],
				s->moved[i]);
	for (int i = 0; i < NB_NR_MOVE_STATUSES; i++)
		if (s->not_moved[i])
			fprintf(f, "    not moved, %s: %" PRIu64 " (%s)\n",
				nb_move_status_names[i].name, s->not_moved[i],
				nb_move_status_names[i].text);
}

void report_summary_print(const struct report_summary *s, FILE *f)
{
	fputs("Summary\n", f);
	print_scans(s, f);
	if (s->lazy.nr) {
		fputs("  armed for lazy moves: ", f);
		print_times(f, &s->lazy);
		fputc('\n', f);
	}
	if (s->split.nr)
		fprintf(f, "  huge pages split: %" PRIu64 "\n", s->split.nr);
	print_faults(s, f);
	print_moves(s, f);
}

/* ---- as JSON ---- */

static json_t *times_json(const struct report_times *t)
{
	if (!t->nr)
		return json_pack("{s:i}", "times", 0);
	return json_pack("{s:o,s:o,s:o}", "times", report_json_u64(t->nr), "first_s",
		report_json_real((double)t->first_ns / 1e9), "last_s",
		report_json_real((double)t->last_ns / 1e9));
}

static json_t *skips_json(const struct report_summary *s)
{
	json_t *o = json_object();

	for (int i = 0; i < NB_NR_SKIPS; i++)
		if (s->skipped[i].nr)
			json_object_set_new(o, nb_skip_names[i].name, times_json(&s->skipped[i]));
	return o;
}

static json_t *counts_json(const uint64_t *counts, const struct nb_name *names, int nr)
{
	json_t *o = json_object();

	for (int i = 0; i < nr; i++)
		if (counts[i])
			json_object_set_new(o, names[i].name, report_json_u64(counts[i]));
	return o;
}

static json_t *faults_by_node_json(const struct report_summary *s)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < s->nr_nodes; i++)
		if (s->faults_by_node[i])
			json_array_append_new(
				array, json_pack("{s:i,s:o}", "node", s->node_ids[i], "faults",
					       report_json_u64(s->faults_by_node[i])));
	return array;
}

static json_t *moved_json(const struct report_summary *s)
{
	json_t *array = json_array();

	for (size_t i = 0; i < (size_t)s->nr_nodes * s->nr_nodes; i++)
		if (s->moved[i])
			json_array_append_new(array,
				json_pack("{s:i,s:i,s:o}", "from", s->node_ids[i / s->nr_nodes],
					"to", s->node_ids[i % s->nr_nodes], "pages",
					report_json_u64(s->moved[i])));
	return array;
}

static json_t *not_scanned_json(const struct report_summary *s)
{
	if (!s->last_was_skip)
		return json_null();
	return json_pack("{s:s,s:o}", "reason", nb_skip_names[s->last_skip].name, "since_s",
		report_json_real((double)s->last_skip_ns / 1e9));
}

json_t *report_summary_json(const struct report_summary *s)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "armed",
		times_json(&s->armed), "armed_pages", report_json_u64(s->armed_pages), "skipped",
		skips_json(s), "not_scanned", not_scanned_json(s), "lazy", times_json(&s->lazy),
		"split", report_json_u64(s->split.nr), "hint_faults", report_json_u64(s->faults.nr),
		"hint_faults_local", report_json_u64(s->faults_local), "hint_faults_by_node",
		faults_by_node_json(s), "verdicts",
		counts_json(s->verdicts, nb_why_names, NB_NR_WHYS), "pages_asked",
		report_json_u64(s->asked_pages), "pages_moved", report_json_u64(s->moved_pages),
		"moved", moved_json(s), "not_moved",
		counts_json(s->not_moved, nb_move_status_names, NB_NR_MOVE_STATUSES));
}
