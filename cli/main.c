/* SPDX-License-Identifier: MIT */
/* numabal: finds the command and runs it. */
#include "cmd.h"

#include <signal.h>
#include <string.h>
#include "../engine/why.h"
#include "commands.h"

#define X(name) extern const struct cmd cmd_##name;
CLI_COMMANDS(X)
#undef X

static const struct cmd *const commands[] = {
#define X(name) &cmd_##name,
	CLI_COMMANDS(X)
#undef X
};

enum { NR_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct cmd *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int refuse(const char *name)
{
	const struct cli cli = {0};
	const char *names[NR_COMMANDS + 2];
	const char *closest;

	for (size_t i = 0; i < NR_COMMANDS; i++)
		names[i] = commands[i]->name;
	names[NR_COMMANDS] = "help";
	names[NR_COMMANDS + 1] = NULL;
	closest = cli_closest(name, names);
	if (name[0] == '-')
		return cli_fail(&cli, CLI_BAD_INPUT, "unknown option '%s'; see 'numabal help'",
			nb_quote(name).text);
	if (closest)
		return cli_fail(&cli, CLI_BAD_INPUT, "unknown command '%s'; did you mean '%s'?",
			nb_quote(name).text, closest);
	return cli_fail(&cli, CLI_BAD_INPUT, "unknown command '%s'; see 'numabal help'",
		nb_quote(name).text);
}

static int print_help(void)
{
	const struct cli cli = {0};

	printf("Usage: numabal COMMAND [OPTION...]\n\n"
	       "Automatic NUMA balancing in user space: the decisions, and machines to try them "
	       "on.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-10s %s\n", "help", "This text, or the help of a command: numabal help sim");
	printf("\nOptions:\n  --help     this text\n  --version  the version\n\n"
	       "Examples:\n"
	       "  numabal machines\n"
	       "  numabal sim --machine 2012-4node-48cpu --system none,balancenuma-v8 --job "
	       "numa02\n"
	       "  numabal systems balancenuma-v8\n");
	return cli_finish_stdout(&cli);
}

static int print_version(void)
{
	const struct cli cli = {0};

	printf("numabal %s\n", NB_VERSION);
	return cli_finish_stdout(&cli);
}

static int run(const struct cmd *cmd, int argc, char **argv)
{
	struct cli cli = {.cmd = cmd, .argc = argc, .argv = argv};

	return cmd->run(&cli);
}

static int help(int argc, char **argv)
{
	char name[64], option[] = "--help";
	char *args[] = {name, option, NULL};

	if (argc < 2)
		return print_help();
	if (!find(argv[1]))
		return strcmp(argv[1], "help") ? refuse(argv[1]) : print_help();
	snprintf(name, sizeof(name), "%s", argv[1]);
	return run(find(argv[1]), 2, args);
}

int main(int argc, char **argv)
{
	const struct cli cli = {0};

	/* A reader that goes away is seen as EPIPE where it is written, so that files are left
	 * whole. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return cli_fail(&cli, CLI_BAD_INPUT, "no command given; see 'numabal help'");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help();
	if (!strcmp(argv[1], "--version"))
		return print_version();
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!find(argv[1]))
		return refuse(argv[1]);
	return run(find(argv[1]), argc - 1, argv + 1);
}
