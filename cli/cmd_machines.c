/* SPDX-License-Identifier: MIT */
/* numabal machines: the machine presets, and what a machine is made of. */
#include "cmd.h"

#include <inttypes.h>
#include <string.h>
#include "../sim/model.h"

static const struct cli_option options[] = {{0}};

static int list(const struct cli *cli)
{
	struct sim_listing *machines;
	size_t nr;

	if (sim_list_machines(&machines, &nr))
		return cli_fail(cli, CLI_FAILED, "no memory");
	for (size_t i = 0; i < nr; i++)
		printf("%-22s %s\n", machines[i].name, machines[i].description);
	sim_listing_free(machines, nr);
	return cli_finish_stdout(cli);
}

/* ---- one machine ---- */

static void show_nodes(const struct sim_model *m)
{
	const struct nb_topology *t = &m->topo;

	printf("\n%6s %6s %10s %6s %12s %11s   distances\n", "node", "cpus", "MiB", "tier", "MiB/s",
		"latency ns");
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		printf("%6d %6u %10" PRIu64 " %6d %12.0f %11.0f  ", t->nodes[i].id,
			t->nodes[i].nr_cpus, t->nodes[i].mem_bytes >> 20, t->nodes[i].tier,
			m->node_bandwidth[i] / (1 << 20),
			m->latency_ns[(size_t)i * t->nr_nodes + i]);
		for (unsigned int j = 0; j < t->nr_nodes; j++)
			printf(" %3u", nb_distance(t, i, j));
		putchar('\n');
	}
}

static double param_value(const struct sim_model *m, const struct sim_param *p)
{
	return *(const double *)((const char *)m + p->offset) / sim_param_factor(p);
}

static void show_params(const struct sim_model *m)
{
	printf("\nParameters (section.key = value unit; what it is, and where its default is "
	       "from):\n");
	for (size_t i = 0; i < sim_nr_params; i++) {
		const struct sim_param *p = &sim_params[i];
		const double value = param_value(m, p);
		char name[64];

		snprintf(name, sizeof(name), "%s.%s", p->section, p->key);
		printf("  %-28s = %-10.6g %-7s %s", name, value, p->unit, p->text);
		if (value < p->def || value > p->def)
			printf(" [default %.6g]", p->def);
		putchar('\n');
	}
}

static void show_links(const struct sim_model *m)
{
	if (m->nr_links)
		printf("\nLinks (one direction):\n");
	for (unsigned int i = 0; i < m->nr_links; i++)
		printf("  %-20s %.0f MiB/s\n", m->links[i].name, m->links[i].bandwidth / (1 << 20));
}

/* Where the values that differ from the defaults are from stands in the file, beside each. */
static void show_path(const char *name)
{
	struct sim_listing *machines;
	size_t nr;

	if (sim_list_machines(&machines, &nr))
		return;
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(machines[i].name, name))
			printf("File: %s (says where each value is from)\n", machines[i].path);
	sim_listing_free(machines, nr);
}

static int show(const struct cli *cli, const char *source)
{
	char why[CLI_WHY_LEN] = "";
	struct sim_model m;
	const int err = sim_model_load(&m, source, why, sizeof(why));

	if (err)
		return cli_fail(cli, cli_status_of(err), "%s", why);
	printf("%s: %s\n", m.name, m.description);
	if (m.source[0])
		printf("Source: %s\n", m.source);
	show_path(source);
	show_nodes(&m);
	show_links(&m);
	show_params(&m);
	sim_model_free(&m);
	return cli_finish_stdout(cli);
}

static int run(struct cli *cli)
{
	const char *source;

	if (cli_next(cli) == CLI_STOP || cli_one_operand(cli, &source))
		return cli->status;
	return source ? show(cli, source) : list(cli);
}

const struct cmd cmd_machines = {
	.name = "machines",
	.summary = "List the machine presets, or show every parameter of a machine.",
	.usage = "[SOURCE]",
	.options = options,
	.examples = "  numabal machines\n"
		    "  numabal machines 2012-4node-48cpu\n"
		    "  numabal machines '2 nodes x 8 cpus x 16G'\n",
	.run = run,
};
