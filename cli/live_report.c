/* SPDX-License-Identifier: MIT */
#include "live_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "../engine/why.h"

#define STAT(t, name) ((t)->stat[offsetof(struct nb_live_stats, name) / sizeof(uint64_t)])

static void add_slot(struct live_total *t, const struct nb_slot *slot)
{
	const _Atomic uint64_t *stats = (const _Atomic uint64_t *)&slot->stats;

	for (int i = 0; i < NB_NR_LIVE_STATS; i++)
		t->stat[i] += atomic_load(&stats[i]);
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		t->counter[i] += atomic_load(&slot->counters[i]);
	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		t->histogram[i] += atomic_load(&slot->histogram[i]);
	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		t->move_histogram[i] += atomic_load(&slot->move_histogram[i]);
	t->notes |= atomic_load(&slot->notes);
	t->balanced++;
}

void live_total(struct live_total *t, const struct nb_session *s)
{
	memset(t, 0, sizeof(*t));
	t->processes = (unsigned int)atomic_load(&s->processes);
	for (int i = 0; i < NB_SESSION_SLOTS; i++)
		if (atomic_load(&s->slot[i].pid) != 0)
			add_slot(t, &s->slot[i]);
}

uint64_t live_below_ns(const uint64_t histogram[NB_SESSION_HISTOGRAM], unsigned int permille)
{
	uint64_t all = 0, below = 0;
	int i;

	for (i = 0; i < NB_SESSION_HISTOGRAM; i++)
		all += histogram[i];
	if (all == 0)
		return 0;
	for (i = 0; i < NB_SESSION_HISTOGRAM - 1; i++) {
		below += histogram[i];
		if (below * 1000 >= all * permille)
			break;
	}
	return UINT64_C(2) << i;
}

/* ---- text ---- */

const char *live_size_text(uint64_t bytes, char *text, size_t len)
{
	static const char units[] = "BKMGTP";
	double v = (double)bytes;
	int u = 0;

	while (v >= 1024 && u < 5) {
		v /= 1024;
		u++;
	}
	snprintf(text, len, u ? "%.1f %ciB" : "%.0f %c", v, units[u]);
	return text;
}

static void share_text(FILE *out, const char *when, uint64_t local, uint64_t samples)
{
	if (samples == 0)
		fprintf(out, "%s unknown", when);
	else
		fprintf(out, "%s %.1f %%", when, 100.0 * (double)local / (double)samples);
}

static void print_managed(FILE *out, const struct live_total *t, uint64_t resident)
{
	char managed[32], rest[32];

	fprintf(out, "numabal: balancing active: %s; %s managed", STAT(t, regions) ? "yes" : "no",
		live_size_text(STAT(t, managed_peak), managed, sizeof(managed)));
	if (resident > 0)
		fprintf(out, " of %s resident", live_size_text(resident, rest, sizeof(rest)));
	fprintf(out, ", %u of %u processes\n", t->balanced, t->processes);
}

static void print_balance(FILE *out, const struct live_total *t, double elapsed_s)
{
	const double agent_s = (double)STAT(t, agent_ns) * 1e-9;

	fprintf(out, "numabal: local accesses");
	share_text(out, "", STAT(t, first_local), STAT(t, first_samples));
	share_text(out, " ->", STAT(t, last_local), STAT(t, last_samples));
	fprintf(out,
		"; %" PRIu64 " hint faults, %" PRIu64 " pages moved (%" PRIu64
		" not), agent %.3f s of CPU (%.2f %%)\n",
		STAT(t, faults), STAT(t, moved), STAT(t, move_failed), agent_s,
		elapsed_s > 0 ? 100 * agent_s / elapsed_s : 0);
}

/* Only of real nodes. A power of two says no more than that; what was longest is known. */
static void print_moves(FILE *out, const struct live_total *t)
{
	const uint64_t longest = STAT(t, move_max_ns), p99 = live_below_ns(t->move_histogram, 990);

	if (STAT(t, move_calls) == 0)
		return;
	fprintf(out,
		"numabal: %" PRIu64
		" calls of move_pages, 99 %% below %.1f ms, the longest %.1f ms\n",
		STAT(t, move_calls), (double)(p99 < longest ? p99 : longest) * 1e-6,
		(double)longest * 1e-6);
}

static void print_left_alone(FILE *out, const struct live_total *t)
{
	char text[32];

	if (STAT(t, unsuited) > 0)
		fprintf(out, "numabal: not managed: %" PRIu64 " large mappings (%s) by rule\n",
			STAT(t, unsuited),
			live_size_text(STAT(t, unsuited_bytes), text, sizeof(text)));
	if (STAT(t, regions_skipped) > 0)
		fprintf(out, "numabal: not managed: %" PRIu64 " mappings (%s) beyond a bound\n",
			STAT(t, regions_skipped),
			live_size_text(STAT(t, skipped_bytes), text, sizeof(text)));
	for (int i = 0; i < NB_NR_NOTES; i++)
		if (t->notes >> i & 1)
			fprintf(out, "numabal: note: %s\n", nb_note_texts[i]);
}

void live_report_text(
	FILE *out, const struct nb_session *s, double elapsed_s, uint64_t resident_bytes)
{
	struct live_total t;

	live_total(&t, s);
	print_managed(out, &t, resident_bytes);
	if (STAT(&t, regions) > 0)
		print_balance(out, &t, elapsed_s);
	print_moves(out, &t);
	print_left_alone(out, &t);
}

/* ---- JSON ---- */

static json_t *stats_json(const struct live_total *t)
{
	json_t *o = json_object();

	for (int i = 0; i < NB_NR_LIVE_STATS; i++)
		json_object_set_new(
			o, nb_live_stat_table[i].name, json_integer((json_int_t)t->stat[i]));
	return o;
}

static json_t *counters_json(const struct live_total *t)
{
	json_t *o = json_object();

	for (int i = 0; i < NB_NR_COUNTERS; i++)
		json_object_set_new(
			o, nb_counter_table[i].name, json_integer((json_int_t)t->counter[i]));
	return o;
}

static json_t *histogram_json(const uint64_t histogram[NB_SESSION_HISTOGRAM], const char *what)
{
	json_t *list = json_array();

	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		if (histogram[i] > 0)
			json_array_append_new(
				list, json_pack("{s:I, s:I}", "below_ns", (json_int_t)1 << (i + 1),
					      what, (json_int_t)histogram[i]));
	return list;
}

static json_t *notes_json(const struct live_total *t)
{
	json_t *list = json_array();

	for (int i = 0; i < NB_NR_NOTES; i++)
		if (t->notes >> i & 1)
			json_array_append_new(list, json_string(nb_note_texts[i]));
	return list;
}

json_t *live_report_object(const struct nb_session *s, double elapsed_s)
{
	struct live_total total;
	const struct live_total *t = &total;

	live_total(&total, s);
	return json_pack("{s:i, s:f, s:i, s:i, s:o, s:o, s:o, s:I, s:o, s:I, s:o}", "schema", 1,
		"elapsed_s", elapsed_s, "processes", (int)t->processes, "balanced",
		(int)t->balanced, "live", stats_json(t), "counters", counters_json(t),
		"service_time", histogram_json(t->histogram, "faults"), "service_p99_ns",
		(json_int_t)live_below_ns(t->histogram, 990), "move_time",
		histogram_json(t->move_histogram, "calls"), "move_p99_ns",
		(json_int_t)live_below_ns(t->move_histogram, 990), "notes", notes_json(t));
}

int live_report_json(
	const struct nb_session *s, double elapsed_s, const char *path, char *why, size_t why_len)
{
	json_t *o = live_report_object(s, elapsed_s);
	int rc;

	errno = 0;
	rc = o == NULL ? -1 : json_dump_file(o, path, JSON_INDENT(2));
	json_decref(o);
	if (rc == 0)
		return 0;
	return nb_why(why, why_len, -EIO, "--stats %s: %s", path,
		errno ? strerror(errno) : "could not be written");
}
