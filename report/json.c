/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"

#define DUMP_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17))

json_t *report_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *report_json_u64(uint64_t value)
{
	char digits[24];

	if (value <= INT64_MAX)
		return json_integer((json_int_t)value);
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	return json_string(digits);
}

json_t *report_json_text(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *clean = malloc(3 * strlen(text) + 1), *to = clean;
	json_t *string;

	if (!clean)
		return NULL;
	while (*text) {
		const size_t len = report_utf8_len(text);

		memcpy(to, len ? text : replacement, len ? len : 3);
		to += len ? len : 3;
		text += len ? len : 1;
	}
	string = json_stringn(clean, (size_t)(to - clean));
	free(clean);
	return string;
}

json_t *report_json_array(size_t nr, report_json_item *item, const void *ctx)
{
	json_t *array = json_array();
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++)
		err = json_array_append_new(array, item(ctx, i));
	if (!err)
		return array;
	json_decref(array);
	return NULL;
}

json_t *report_json_u64_item(const void *values, size_t i)
{
	return report_json_u64(((const uint64_t *)values)[i]);
}

json_t *report_json_int_item(const void *values, size_t i)
{
	return json_integer(((const int *)values)[i]);
}

/* json_object_set_new and json_array_append_new refuse NULL, so one check at the end of a chain is
 * enough. */
static int set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

static json_t *counters_json(const struct nb_result *r)
{
	json_t *object = json_object();
	int err = 0;

	for (int i = 0; i < NB_NR_COUNTERS; i++)
		err |= set(
			object, nb_counter_table[i].name, report_json_u64(report_counters(r)[i]));
	if (!err)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *costs_json(const struct nb_counters *c)
{
	return json_pack("{s:o,s:o,s:o}", "autonuma_mmtests",
		report_json_real(nb_cost_autonuma_mmtests(
			c->numa_pte_updates, c->numa_hint_faults, c->numa_pages_migrated)),
		"autonuma_full",
		report_json_real(nb_cost_autonuma_full(
			c->numa_pte_updates, c->numa_hint_faults, c->numa_pages_migrated)),
		"compaction", report_json_real(nb_cost_compaction(c->pgmigrate_success)));
}

static json_t *node_json(const void *ctx, size_t i)
{
	const struct nb_result *r = ctx;

	return json_pack(
		"{s:i,s:o}", "id", r->node_ids[i], "pages", report_json_u64(r->final_pages[i]));
}

static json_t *sample_json(const void *ctx, size_t i)
{
	const struct nb_result *r = ctx;
	const struct nb_sample *s = &r->samples[i];

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "time_s",
		report_json_real(s->time_s), "local_share", report_json_real(s->local_share),
		"bytes", report_json_real(s->bytes), "scan_period_ms",
		report_json_real(s->scan_period_ms), "hint_faults", report_json_u64(s->hint_faults),
		"hint_faults_local", report_json_u64(s->hint_faults_local), "pte_updates",
		report_json_u64(s->pte_updates), "pages_migrated",
		report_json_u64(s->pages_migrated), "node_pages",
		report_json_array(
			r->nr_nodes, report_json_u64_item, r->node_pages + i * r->nr_nodes));
}

json_t *report_json_run(const struct report_run *run)
{
	const struct nb_result *r = run->result;
	json_t *object = json_object();
	int err = set(object, "job", report_json_text(run->job));

	err |= set(object, "system", report_json_text(run->system));
	err |= set(object, "machine", report_json_text(run->machine));
	err |= set(object, "iteration", json_integer(run->iteration));
	err |= set(object, "seed", report_json_u64(run->seed));
	err |= set(object, "best", json_boolean(run->is_best));
	if (run->best_text)
		err |= set(object, "placement", report_json_text(run->best_text));
	err |= set(object, "elapsed_s", report_json_real(r->elapsed_s));
	err |= set(object, "user_s", report_json_real(r->user_s));
	err |= set(object, "system_s", report_json_real(r->system_s));
	err |= set(object, "bytes", report_json_real(r->bytes));
	err |= set(object, "operations", report_json_real(r->operations));
	err |= set(object, "local_share", report_json_real(r->local_share));
	err |= set(object, "timed_out", json_boolean(r->timed_out));
	err |= set(object, "counters", counters_json(r));
	err |= set(object, "costs", costs_json(&r->counters));
	err |= set(object, "nodes", report_json_array(r->nr_nodes, node_json, r));
	err |= set(object, "series", report_json_array(r->nr_samples, sample_json, r));
	if (!err)
		return object;
	json_decref(object);
	return NULL;
}

static int dump(json_t *value, FILE *f)
{
	const int failed = value ? json_dumpf(value, f, DUMP_FLAGS | JSON_ENCODE_ANY) : 0;

	json_decref(value);
	return !value ? -ENOMEM : failed ? -EIO : 0;
}

int report_json(FILE *f, const struct report_set *set)
{
	int err;

	fprintf(f, "{\"schema\":%d,\"version\":\"%s\",\"machine\":", REPORT_SCHEMA, NB_VERSION);
	err = dump(set->nr_runs ? report_json_text(set->runs[0].machine) : json_null(), f);
	fputs(",\"runs\":[", f);
	for (size_t i = 0; !err && i < set->nr_runs; i++) {
		fputs(i ? ",\n" : "\n", f);
		err = dump(report_json_run(&set->runs[i]), f);
	}
	fputs("\n]}\n", f);
	return err ? err : ferror(f) ? -EIO : 0;
}
