/* SPDX-License-Identifier: MIT */
/* What the commands share: options, errors, the end of stdout. See cmd.h. */
#include "cmd.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "../engine/why.h"
#include "../sim/nearest.h"

enum { MAX_OPTIONS = 63, MAX_NAME = 32 };

int cli_fail(const struct cli *cli, int status, const char *format, ...)
{
	char text[CLI_WHY_LEN];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	fflush(stdout);
	if (cli->cmd)
		fprintf(stderr, "numabal %s: %s\n", cli->cmd->name, text);
	else
		fprintf(stderr, "numabal: %s\n", text);
	return status;
}

int cli_status_of(int err)
{
	switch (-err) {
	case EINTR:
		return CLI_INTERRUPTED;
	case ENOMEM:
	case EIO:
	case ENOSPC:
	case EPIPE:
		return CLI_FAILED;
	default:
		return CLI_BAD_INPUT;
	}
}

/* ---- suggestions ---- */

const char *cli_closest(const char *text, const char *const *names)
{
	struct sim_nearest nearest = {.name = text};

	for (; *names; names++)
		sim_nearest_try(&nearest, *names);
	return nearest.best;
}

/* ---- options ---- */

static size_t count_options(const struct cmd *cmd)
{
	size_t n = 0;

	while (cmd->options[n].name)
		n++;
	assert(n <= MAX_OPTIONS);
	return n;
}

/* "--delay, -d SECONDS" */
static void print_option(const struct cmd *cmd, size_t row)
{
	const struct cli_option *o = &cmd->options[row];
	const bool has_letter = cmd->letters && row < strlen(cmd->letters);
	const char letter[] = {',', ' ', '-', has_letter ? cmd->letters[row] : '\0', '\0'};
	char left[64];

	snprintf(left, sizeof(left), "--%s%s%s%s", o->name, has_letter ? letter : "",
		o->arg ? " " : "", o->arg ? o->arg : "");
	printf("  %-26s %s%s\n", left, o->help, o->repeatable ? " (repeatable)" : "");
}

static int print_help(const struct cli *cli)
{
	const struct cmd *cmd = cli->cmd;

	printf("Usage: numabal %s %s\n\n%s\n\nOptions:\n", cmd->name, cmd->usage, cmd->summary);
	for (size_t i = 0; cmd->options[i].name; i++)
		print_option(cmd, i);
	printf("  %-26s %s\n\nExamples:\n%s\n", "--help", "this text", cmd->examples);
	printf("Exit status: 0 done, 1 the work failed, 2 the input was refused, 130 interrupted.\n"
	       "The manual: man numabal-%s\n",
		cmd->name);
	return cli_finish_stdout(cli);
}

static int stop(struct cli *cli, int status)
{
	cli->status = status;
	return CLI_STOP;
}

/* The option as it was typed, up to its '='. */
static const char *typed_name(const struct cli *cli, char *name, size_t len)
{
	const char *arg = cli->argv[optind - 1];

	while (*arg == '-')
		arg++;
	snprintf(name, len, "%.*s", (int)strcspn(arg, "="), arg);
	return name;
}

static int refuse_unknown(struct cli *cli)
{
	const char *names[MAX_OPTIONS + 2];
	const size_t n = count_options(cli->cmd);
	const char *closest;
	char name[MAX_NAME + 1];

	names[0] = "help"; /* first: it wins among equals */
	for (size_t i = 0; i <= n; i++)
		names[i + 1] = cli->cmd->options[i].name;
	if (optopt && !strncmp(cli->argv[optind - 1], "--", 2))
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "--%s takes no argument",
					 typed_name(cli, name, sizeof(name))));
	if (optopt)
		return stop(cli,
			cli_fail(cli, CLI_BAD_INPUT,
				"unknown option -%c; options are words, see 'numabal %s --help'",
				optopt, cli->cmd->name));
	closest = cli_closest(typed_name(cli, name, sizeof(name)), names);
	if (closest)
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT,
					 "unknown option --%s; did you mean --%s?", name, closest));
	return stop(
		cli, cli_fail(cli, CLI_BAD_INPUT, "unknown option --%s; see 'numabal %s --help'",
			     name, cli->cmd->name));
}

static int accept(struct cli *cli, size_t row)
{
	const struct cli_option *o = &cli->cmd->options[row];

	if (!o->repeatable && (cli->seen >> row & 1))
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "--%s given twice", o->name));
	if (o->arg && !strcmp(o->arg, CLI_FILE) && !*optarg)
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "--%s '': expected a file", o->name));
	cli->seen |= UINT64_C(1) << row;
	cli->value = optarg;
	return (int)row;
}

/* For getopt: a colon first makes it tell apart what is missing from what is unknown. */
static void short_options(const struct cmd *cmd, char *text)
{
	*text++ = ':';
	*text++ = 'h';
	for (size_t i = 0; cmd->letters && cmd->letters[i]; i++) {
		*text++ = cmd->letters[i];
		if (cmd->options[i].arg)
			*text++ = ':';
	}
	*text = '\0';
}

static int row_of_letter(const struct cmd *cmd, int letter)
{
	return (int)(strchr(cmd->letters, letter) - cmd->letters);
}

int cli_next(struct cli *cli)
{
	/* getopt_long's `val` is the row + FIRST, out of the way of the characters it returns by
	 * itself. */
	enum { FIRST = 1000 };
	struct option longs[MAX_OPTIONS + 2] = {{0}};
	char shorts[2 * MAX_OPTIONS + 3];
	const size_t n = count_options(cli->cmd);
	int c;

	for (size_t i = 0; i < n; i++)
		longs[i] = (struct option){cli->cmd->options[i].name,
			cli->cmd->options[i].arg ? required_argument : no_argument, NULL,
			FIRST + (int)i};
	longs[n] = (struct option){"help", no_argument, NULL, 'h'};
	short_options(cli->cmd, shorts);
	opterr = 0;
	if (!cli->seen && !cli->value && optind <= 1)
		optind = 0; /* GNU: start afresh */
	c = getopt_long(cli->argc, cli->argv, shorts, longs, NULL);
	if (c == -1)
		return CLI_END;
	if (c == 'h')
		return stop(cli, print_help(cli));
	if (c == ':')
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "%s needs an argument",
					 nb_quote(cli->argv[optind - 1]).text));
	if (c == '?')
		return refuse_unknown(cli);
	return accept(cli, (size_t)(c >= FIRST ? c - FIRST : row_of_letter(cli->cmd, c)));
}

int cli_operands(const struct cli *cli)
{
	(void)cli;
	return optind;
}

int cli_one_operand(struct cli *cli, const char **operand)
{
	const int first = cli_operands(cli);

	*operand = first < cli->argc ? cli->argv[first] : NULL;
	if (cli->argc - first > 1)
		return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "too many arguments: '%s'",
					 nb_quote(cli->argv[first + 1]).text));
	return 0;
}

int cli_integer(struct cli *cli, const char *name, int64_t min, int64_t max, int64_t *out)
{
	int64_t value;

	if (nb_parse_i64(cli->value, &value) || value < min || value > max)
		return stop(
			cli, cli_fail(cli, CLI_BAD_INPUT,
				     "--%s '%s': expected an integer from %" PRId64 " to %" PRId64,
				     name, nb_quote(cli->value).text, min, max));
	*out = value;
	return 0;
}

int cli_choice(struct cli *cli, const char *name, const char *const *names)
{
	char all[256] = "";
	size_t used = 0;

	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], cli->value))
			return i;
	for (int i = 0; names[i] && used < sizeof(all); i++)
		used += (size_t)snprintf(
			all + used, sizeof(all) - used, "%s%s", i ? ", " : "", names[i]);
	return stop(cli, cli_fail(cli, CLI_BAD_INPUT, "--%s '%s': expected one of %s", name,
				 nb_quote(cli->value).text, all));
}

int cli_check_sets(const struct cli *cli, const char *const *sets, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const size_t name = strcspn(sets[i], "=");

		for (size_t k = 0; k < i; k++)
			if (strcspn(sets[k], "=") == name && !strncmp(sets[k], sets[i], name))
				return cli_fail(cli, CLI_BAD_INPUT,
					"--set %s: its name given twice", nb_quote(sets[i]).text);
	}
	return CLI_OK;
}

int cli_finish_stdout(const struct cli *cli)
{
	if (!fflush(stdout) && !ferror(stdout))
		return CLI_OK;
	if (errno == EPIPE)
		return CLI_OK;
	return cli_fail(cli, CLI_FAILED, "cannot write to stdout: %s", strerror(errno));
}
