/* SPDX-License-Identifier: MIT */
/* numabal systems: the rows of the table of systems, and what a row is made of. */
#include "cmd.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include "../engine/why.h"
#include "../engine/systems.h"

enum { OPT_FORMAT };

static const struct cli_option options[] = {
	[OPT_FORMAT] = {"format", "FORMAT", false, "text (default) or json"},
	{0},
};

static const char *const formats[] = {"text", "json", NULL};
enum { FORMAT_TEXT, FORMAT_JSON };

/* ---- text ---- */

static void list_text(void)
{
	const struct nb_system *s;

	for (size_t i = 0; (s = nb_system_at(i)); i++)
		printf("%-20s %s\n", nb_system_name(s), nb_system_summary(s));
}

static void show_text(const struct nb_system *s)
{
	struct nb_config config;

	nb_config_from_system(&config, s);
	printf("%s: %s\nFrom: %s\n\nMechanisms (--set NAME=on|off):\n", nb_system_name(s),
		nb_system_summary(s), nb_system_from(s));
	for (size_t i = 0; i < NB_NR_MECHANISMS; i++)
		printf("  %-22s %-4s %s\n", nb_mechanism_table[i].name,
			nb_has(&config, (enum nb_mechanism)i) ? "on" : "off",
			nb_mechanism_table[i].text);
	printf("\nTunables (--set NAME=N):\n");
	for (size_t i = 0; i < NB_NR_TUNABLES; i++) {
		const struct nb_tunable_info *t = &nb_tunable_table[i];

		printf("  %-22s %" PRId64 " %s (%" PRId64 " to %" PRId64 "): %s\n", t->name,
			config.tunables[i], t->unit, t->min, t->max, t->text);
	}
}

/* ---- JSON ---- */

static json_t *header_json(const struct nb_system *s)
{
	return json_pack("{s:s, s:s, s:s}", "name", nb_system_name(s), "from", nb_system_from(s),
		"summary", nb_system_summary(s));
}

static json_t *mechanisms_json(const struct nb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < NB_NR_MECHANISMS; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:b, s:s}", "name", nb_mechanism_table[i].name, "on",
				      (int)nb_has(config, (enum nb_mechanism)i), "text",
				      nb_mechanism_table[i].text));
	return list;
}

static json_t *tunables_json(const struct nb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < NB_NR_TUNABLES; i++) {
		const struct nb_tunable_info *t = &nb_tunable_table[i];

		json_array_append_new(list,
			json_pack("{s:s, s:I, s:s, s:I, s:I, s:s}", "name", t->name, "value",
				(json_int_t)config->tunables[i], "unit", t->unit, "min",
				(json_int_t)t->min, "max", (json_int_t)t->max, "text", t->text));
	}
	return list;
}

static void print_json(json_t *root)
{
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

static void list_json(void)
{
	json_t *list = json_array();
	const struct nb_system *s;

	for (size_t i = 0; (s = nb_system_at(i)); i++)
		json_array_append_new(list, header_json(s));
	print_json(json_pack("{s:i, s:o}", "schema", 1, "systems", list));
}

static void show_json(const struct nb_system *s)
{
	struct nb_config config;
	json_t *root = header_json(s);

	nb_config_from_system(&config, s);
	json_object_set_new(root, "schema", json_integer(1));
	json_object_set_new(root, "mechanisms", mechanisms_json(&config));
	json_object_set_new(root, "tunables", tunables_json(&config));
	print_json(root);
}

/* ---- the command ---- */

static int refuse(const struct cli *cli, const char *name)
{
	const char *names[64] = {0};
	const struct nb_system *s;
	const char *closest;

	for (size_t i = 0; i < 63 && (s = nb_system_at(i)); i++)
		names[i] = nb_system_name(s);
	closest = cli_closest(name, names);
	if (closest)
		return cli_fail(cli, CLI_BAD_INPUT, "no system '%s'; did you mean '%s'?",
			nb_quote(name).text, closest);
	return cli_fail(cli, CLI_BAD_INPUT, "no system '%s'; 'numabal systems' lists them",
		nb_quote(name).text);
}

static int run(struct cli *cli)
{
	const struct nb_system *s = NULL;
	const char *name;
	int option, format = FORMAT_TEXT;

	while ((option = cli_next(cli)) >= 0)
		if ((format = cli_choice(cli, "format", formats)) < 0)
			return cli->status;
	if (option == CLI_STOP || cli_one_operand(cli, &name))
		return cli->status;
	if (name && !(s = nb_system_find(name)))
		return refuse(cli, name);
	if (format == FORMAT_JSON)
		s ? show_json(s) : list_json();
	else
		s ? show_text(s) : list_text();
	return cli_finish_stdout(cli);
}

const struct cmd cmd_systems = {
	.name = "systems",
	.summary = "List the systems, or show every mechanism and tunable of one.",
	.usage = "[NAME] [OPTION...]",
	.options = options,
	.examples = "  numabal systems\n"
		    "  numabal systems balancenuma-v8\n"
		    "  numabal systems moron --format json\n",
	.run = run,
};
