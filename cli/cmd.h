/* SPDX-License-Identifier: MIT */
/*
 * cmd: what the commands of numabal share: one table row per command, one per option, one way to
 * fail.
 *
 * A command is a const struct cmd in cli/cmd_NAME.c, listed in cli/main.c. Its options are a table,
 * from which parsing, --help and suggestions come. --help is added to every command.
 *
 * Exit status: 0 done; 1 the work failed; 2 the input was refused; 130 interrupted. What went wrong
 * is one line on stderr, "numabal COMMAND: what", said by cli_fail and by nobody else.
 */
#ifndef NB_CLI_CMD_H
#define NB_CLI_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_BAD_INPUT = 2,
	CLI_INTERRUPTED = 130,
	CLI_WHY_LEN = 1024, /* for the `why` of the libraries */
};

/* The argument of options that name a file: an empty one is refused. */
#define CLI_FILE "FILE"

struct cli_option {
	const char *name; /* without the dashes */
	const char *arg;  /* the name of its argument in --help; NULL: it takes none */
	bool repeatable;  /* false: giving it twice is refused */
	const char *help; /* one line */
};

struct cli;

struct cmd {
	const char *name;
	const char *summary;		  /* one sentence */
	const char *usage;		  /* what follows "numabal NAME " in the usage line */
	const struct cli_option *options; /* ends with a NULL name; at most 63 */
	const char
		*letters; /* of rows of `options`, in their order: short forms, as -d; NULL: none */
	const char *examples;	     /* lines, each two blanks in and ended by a newline */
	int (*run)(struct cli *cli); /* returns the exit status */
};

/* One invocation. */
struct cli {
	const struct cmd *cmd;
	int argc;
	char **argv;	   /* argv[0] is the command's name */
	uint64_t seen;	   /* bit = row of cmd->options that was given */
	const char *value; /* the argument of the option that cli_next returned last */
	int status;	   /* what to exit with after CLI_STOP */
};

enum {
	CLI_END = -1,  /* no more options: operands are argv[cli_operands(cli)] .. argv[argc - 1] */
	CLI_STOP = -2, /* --help was printed, or an error said: return cli->status */
};

/* The row of the next option in cmd->options, or CLI_END, or CLI_STOP. Options and operands may be
 * mixed. */
int cli_next(struct cli *cli);
/* Index in argv of the first operand; valid after CLI_END. */
int cli_operands(const struct cli *cli);
/* For commands with at most one operand: 0 and *operand (NULL when there is none), or CLI_STOP. */
int cli_one_operand(struct cli *cli, const char **operand);

/* Print "numabal COMMAND: ..." as one line to stderr and return `status`. */
__attribute__((format(printf, 3, 4))) int cli_fail(
	const struct cli *cli, int status, const char *format, ...);
/* CLI_BAD_INPUT for what an input can be blamed for (-EINVAL, -ENOENT ...), else CLI_FAILED. */
int cli_status_of(int err);

/* Numbers in options: 0, or CLI_STOP after saying what was expected. */
int cli_integer(struct cli *cli, const char *name, int64_t min, int64_t max, int64_t *out);
/* One of names[], a NULL-terminated list: its index, or CLI_STOP. */
int cli_choice(struct cli *cli, const char *name, const char *const *names);

/* Each NAME=VALUE sets another name: CLI_OK, or CLI_BAD_INPUT after saying which does not. */
int cli_check_sets(const struct cli *cli, const char *const *sets, size_t nr);

/* Flush stdout. CLI_OK also when its reader went away (EPIPE); CLI_FAILED and a line when it could
 * not be written. */
int cli_finish_stdout(const struct cli *cli);

/* The closest of the names (NULL-terminated) to `text`, or NULL when none is close enough to
 * suggest. */
const char *cli_closest(const char *text, const char *const *names);

#endif
