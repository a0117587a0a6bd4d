/* SPDX-License-Identifier: MIT */
/* numabal topology: what was understood of a topology, as text or JSON. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../report/file.h"
#include "../report/json.h"
#include "../topo/set.h"
#include "../topo/topo.h"

enum { OPT_FORMAT, OPT_OUTPUT };

static const struct cli_option options[] = {
	[OPT_FORMAT] = {"format", "FORMAT", false, "text (default) or json"},
	[OPT_OUTPUT] = {"output", CLI_FILE, false, "write to FILE, whole or not at all"},
	{0},
};

enum format { FORMAT_TEXT, FORMAT_JSON };

static const char *const formats[] = {"text", "json", NULL};

/* Enough for 8,192 CPUs none of which is next to another. */
enum { CPU_LIST_LEN = 64 << 10 };

struct view {
	const char *source;
	const struct topo_info *info;
	int format;
	char cpus[CPU_LIST_LEN];
};

static const char *cpus_of(struct view *v, unsigned int node)
{
	const struct nb_topology *t = &v->info->topo;
	struct topo_set cpus = {0};

	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++)
		if (t->cpu_node[cpu] == (int)node)
			topo_set_add(&cpus, cpu);
	topo_set_format(&cpus, v->cpus, sizeof(v->cpus));
	return v->cpus;
}

static uint64_t total_bytes(const struct nb_topology *t)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		sum += t->nodes[i].mem_bytes;
	return sum;
}

/* ---- text ---- */

/* An index as the id of its node, or "-". */
static const char *id_text(const struct nb_topology *t, int node, char text[16])
{
	if (node == NB_NO_NODE)
		return "-";
	snprintf(text, 16, "%d", t->nodes[node].id);
	return text;
}

static const char *figure_text(uint32_t value, char text[16])
{
	if (!value)
		return "-";
	snprintf(text, 16, "%" PRIu32, value);
	return text;
}

static void text_node(FILE *f, struct view *v, unsigned int i)
{
	const struct nb_topology *t = &v->info->topo;
	const struct nb_node *n = &t->nodes[i];
	char home[16], down[16], up[16], latency[16], bandwidth[16];

	fprintf(f, "%5d %4d %6" PRIu64 " %6" PRIu64 " %5s %6s %7s %6s %8s %5u  %s%s%s\n", n->id,
		n->tier, n->mem_bytes >> 20, n->free_bytes >> 20,
		id_text(t, nb_topology_nearest_memory(t, i), home),
		id_text(t, nb_topology_demotion_target(t, i), down),
		id_text(t, nb_topology_promotion_target(t, i), up),
		figure_text(n->latency_ns, latency), figure_text(n->bandwidth_mib_s, bandwidth),
		n->nr_cpus, n->nr_cpus ? cpus_of(v, i) : "-",
		n->flags & NB_NODE_MOVABLE_ONLY ? " (movable pages only)" : "",
		n->flags & NB_NODE_DISALLOWED ? " (not allowed)" : "");
}

static void text_nodes(FILE *f, struct view *v)
{
	fprintf(f, "\n%5s %4s %6s %6s %5s %6s %7s %6s %8s %5s  %s\n", "node", "tier", "MiB", "free",
		"home", "demote", "promote", "ns", "MiB/s", "cpus", "cpu ids");
	for (unsigned int i = 0; i < v->info->topo.nr_nodes; i++)
		text_node(f, v, i);
}

static void text_distances(FILE *f, const struct nb_topology *t)
{
	fprintf(f, "\nDistances%s, from the node of a row to the node of a column:\n     ",
		t->has_distances ? "" : " (not said: assumed)");
	for (unsigned int i = 0; i < t->nr_nodes; i++)
		fprintf(f, " %4d", t->nodes[i].id);
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		fprintf(f, "\n%5d", t->nodes[i].id);
		for (unsigned int j = 0; j < t->nr_nodes; j++)
			fprintf(f, " %4u", nb_distance(t, i, j));
	}
	fputc('\n', f);
}

static void text_notes(FILE *f, const struct topo_info *info)
{
	fprintf(f, "\nNotes:%s\n", info->nr_notes ? "" : " none");
	for (unsigned int i = 0; i < info->nr_notes; i++)
		fprintf(f, "  %s\n", info->notes[i]);
}

static int fill_text(FILE *f, struct view *v)
{
	const struct nb_topology *t = &v->info->topo;

	fprintf(f, "%s (%s): %u node%s, %u CPU%s, %" PRIu64 " MiB%s%s\n", v->source,
		topo_kind_name(v->info->kind), t->nr_nodes, t->nr_nodes == 1 ? "" : "s", t->nr_cpus,
		t->nr_cpus == 1 ? "" : "s", total_bytes(t) >> 20,
		t->tiers_known ? "" : ", tiers unknown",
		v->info->balance_refused ? ", nothing to balance" : "");
	text_nodes(f, v);
	text_distances(f, t);
	text_notes(f, v->info);
	return 0;
}

/* ---- JSON; the schema is in docs/topologies.md ---- */

static json_t *json_id(const struct nb_topology *t, int node)
{
	return node == NB_NO_NODE ? json_null() : json_integer(t->nodes[node].id);
}

static json_t *json_figure(uint32_t value)
{
	return value ? json_integer(value) : json_null();
}

static json_t *json_distances(const struct nb_topology *t, unsigned int from)
{
	json_t *row = json_object();
	char id[16];

	for (unsigned int to = 0; row && to < t->nr_nodes; to++)
		json_object_set_new(
			row, id_text(t, (int)to, id), json_integer(nb_distance(t, from, to)));
	return row;
}

static json_t *json_node(struct view *v, unsigned int i)
{
	const struct nb_topology *t = &v->info->topo;
	const struct nb_node *n = &t->nodes[i];

	return json_pack("{s:i, s:s, s:i, s:o, s:o, s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
		"id", n->id, "cpus", cpus_of(v, i), "nr_cpus", (int)n->nr_cpus, "size_bytes",
		report_json_u64(n->mem_bytes), "free_bytes", report_json_u64(n->free_bytes), "tier",
		n->tier, "movable_only", (n->flags & NB_NODE_MOVABLE_ONLY) != 0, "allowed",
		(n->flags & NB_NODE_DISALLOWED) == 0, "home",
		json_id(t, nb_topology_nearest_memory(t, i)), "demotion_target",
		json_id(t, nb_topology_demotion_target(t, i)), "promotion_target",
		json_id(t, nb_topology_promotion_target(t, i)), "latency_ns",
		json_figure(n->latency_ns), "bandwidth_mib_s", json_figure(n->bandwidth_mib_s),
		"distances", json_distances(t, i));
}

static json_t *json_head(const struct view *v)
{
	const struct nb_topology *t = &v->info->topo;
	json_t *notes = json_array();

	for (unsigned int i = 0; notes && i < v->info->nr_notes; i++)
		json_array_append_new(notes, report_json_text(v->info->notes[i]));
	return json_pack("{s:i, s:o, s:s, s:i, s:i, s:o, s:b, s:b, s:b, s:o}", "schema", 1,
		"source", report_json_text(v->source), "kind", topo_kind_name(v->info->kind),
		"nr_nodes", (int)t->nr_nodes, "nr_cpus", (int)t->nr_cpus, "size_bytes",
		report_json_u64(total_bytes(t)), "has_distances", t->has_distances, "tiers_known",
		t->tiers_known, "balance_refused", v->info->balance_refused, "notes", notes);
}

/* Write and free. 0 or -ENOMEM. */
static int dump(FILE *f, json_t *json, size_t flags)
{
	if (!json)
		return -ENOMEM;
	json_dumpf(json, f, flags);
	json_decref(json);
	return 0;
}

static int fill_json(FILE *f, struct view *v)
{
	const unsigned int nr = v->info->topo.nr_nodes;
	int err;

	fputc('{', f);
	err = dump(f, json_head(v), JSON_EMBED);
	fputs(",\n\"nodes\": [", f);
	for (unsigned int i = 0; !err && i < nr; i++) {
		fputs(i ? ",\n" : "\n", f);
		err = dump(f, json_node(v, i), 0);
	}
	fputs("\n]}\n", f);
	return err;
}

/* ---- the command ---- */

static int fill(FILE *f, void *ctx)
{
	struct view *v = ctx;

	return v->format == FORMAT_JSON ? fill_json(f, v) : fill_text(f, v);
}

static int show(const struct cli *cli, const struct topo_info *info, const char *source, int format,
	const char *output)
{
	struct view *v = malloc(sizeof(*v));
	char why[CLI_WHY_LEN] = "";
	int err;

	if (!v)
		return cli_fail(cli, CLI_FAILED, "no memory");
	v->source = source;
	v->info = info;
	v->format = format;
	err = report_write_file(output, fill, v, why, sizeof(why));
	free(v);
	if (!err || (err == -EPIPE && !output))
		return CLI_OK;
	return cli_fail(cli, CLI_FAILED, "%s", why[0] ? why : strerror(-err));
}

static int read_and_show(const struct cli *cli, const char *source, int format, const char *output)
{
	struct topo_info *info = malloc(sizeof(*info));
	char why[CLI_WHY_LEN] = "";
	int err, status;

	if (!info)
		return cli_fail(cli, CLI_FAILED, "no memory");
	err = topo_read(info, source, why, sizeof(why));
	if (err) {
		free(info);
		return cli_fail(cli, cli_status_of(err), "%s", why);
	}
	status = show(cli, info, source, format, output);
	topo_info_free(info);
	free(info);
	return status;
}

static int run(struct cli *cli)
{
	const char *source, *output = NULL;
	int option, format = FORMAT_TEXT;

	while ((option = cli_next(cli)) >= 0) {
		if (option == OPT_OUTPUT)
			output = cli->value;
		else if ((format = cli_choice(cli, "format", formats)) < 0)
			return cli->status;
	}
	if (option == CLI_STOP || cli_one_operand(cli, &source))
		return cli->status;
	if (!source)
		return cli_fail(cli, CLI_BAD_INPUT,
			"no SOURCE given; expected \"host\", a file, a directory or a line");
	return read_and_show(cli, source, format, output);
}

const struct cmd cmd_topology = {
	.name = "topology",
	.summary = "Print what is understood of a topology: nodes, CPUs, sizes, tiers, distances, "
		   "oddities.",
	.usage = "SOURCE [--format FORMAT] [--output FILE]",
	.options = options,
	.examples = "  numabal topology host\n"
		    "  numactl -H | numabal topology -\n"
		    "  numabal topology machine.xml --format json\n"
		    "  numabal topology recorded-sysfs.tar.gz --output machine.txt\n"
		    "  numabal topology '2 nodes x 24 cpus x 64G + 1 node x 256G at 40'\n",
	.run = run,
};
