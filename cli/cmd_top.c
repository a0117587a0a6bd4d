/* SPDX-License-Identifier: MIT */
/* numabal top: programs that run under numabal run, watched. */
#include "cmd.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../engine/why.h"
#include "top_screen.h"

enum { OPT_BATCH, OPT_DELAY, OPT_ITERATIONS };

static const struct cli_option options[] = {
	[OPT_BATCH] = {"batch", NULL, false, "print screens as text, one after the other"},
	[OPT_DELAY] = {"delay", "SECONDS", false, "between looks, 0.1 to 3600 (1)"},
	[OPT_ITERATIONS] = {"iterations", "N", false, "end after so many screens"},
	{0},
};

struct args {
	bool batch;
	double delay_s;
	int64_t iterations; /* 0 = no end */
	uint32_t pid;	    /* 0 = all */
};

/* ---- batch ---- */

static void sleep_s(double s)
{
	struct timespec t = {(time_t)s, (long)(fmod(s, 1) * 1e9)};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static void print_page(struct top_page *page, const struct top_data *d, uint32_t pid)
{
	struct top_view view = {.pid = pid, .width = TOP_BATCH_WIDTH};

	top_page(page, d, &view);
	for (int i = 0; i < page->nr; i++) {
		size_t n = strlen(page->line[i]);

		while (n > 0 && page->line[i][n - 1] == ' ')
			n--;
		printf("%.*s\n", (int)n, page->line[i]);
	}
}

/* The first look has nothing to compare with: it is not printed. */
static int batch(struct cli *cli, const struct args *a, struct top_data *d, struct top_page *page)
{
	int err = top_look(d);

	for (int64_t i = 0; err == 0 && (a->iterations == 0 || i < a->iterations); i++) {
		sleep_s(a->delay_s);
		err = top_look(d);
		if (err != 0)
			break;
		if (i > 0)
			putchar('\n');
		print_page(page, d, a->pid);
		if (fflush(stdout) != 0 || top_over(d))
			break;
	}
	return err != 0 ? cli_fail(cli, CLI_FAILED, "%s", strerror(-err)) : cli_finish_stdout(cli);
}

/* ---- a terminal ---- */

static int screen(struct cli *cli, const struct args *a, struct top_data *d)
{
	const char *term = getenv("TERM");
	const int rc = top_screen(d, a->pid, a->delay_s, a->iterations);

	if (rc == -ENOTTY)
		return cli_fail(cli, CLI_FAILED,
			"TERM=%s: this type of terminal is not known here; expected one that is, "
			"or --batch",
			term != NULL ? term : "");
	if (rc < 0)
		return cli_fail(cli, CLI_FAILED, "%s", strerror(-rc));
	if (rc == 0)
		return CLI_OK;
	if (rc == SIGINT)
		return CLI_INTERRUPTED;
	/* End as who sent it meant. */
	signal(rc, SIG_DFL);
	raise(rc);
	return CLI_FAILED;
}

/* ---- the command ---- */

static int show(struct cli *cli, struct args *a)
{
	struct top_page *page;
	struct top_data *d;
	char why[CLI_WHY_LEN] = "no memory";
	int err, status;

	if (!a->batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return cli_fail(cli, CLI_BAD_INPUT,
			"not on a terminal; expected one for both input and output, or --batch");
	err = top_open(&d, a->pid, why, sizeof(why));
	if (err != 0)
		return cli_fail(cli, err == -ENOMEM ? CLI_FAILED : CLI_BAD_INPUT, "%s", why);
	page = a->batch ? calloc(1, sizeof(*page)) : NULL;
	if (a->batch && page == NULL)
		status = cli_fail(cli, CLI_FAILED, "no memory");
	else
		status = a->batch ? batch(cli, a, d, page) : screen(cli, a, d);
	free(page);
	top_close(d);
	return status;
}

static int take_delay(struct cli *cli, double *delay_s)
{
	if (nb_parse_double(cli->value, delay_s) == 0 && *delay_s >= 0.1 && *delay_s <= 3600)
		return 0;
	return cli_fail(cli, CLI_BAD_INPUT, "--delay '%s': expected seconds from 0.1 to 3600",
		nb_quote(cli->value).text);
}

static int take_pid(struct cli *cli, const char *operand, uint32_t *pid)
{
	int64_t number;

	if (operand == NULL)
		return 0;
	if (nb_parse_i64(operand, &number) != 0 || number < 1 || number > INT32_MAX)
		return cli_fail(cli, CLI_BAD_INPUT, "expected the number of a process, not %s",
			nb_quote(operand).text);
	*pid = (uint32_t)number;
	return 0;
}

static int take_option(struct cli *cli, int option, struct args *a)
{
	if (option == OPT_DELAY)
		return take_delay(cli, &a->delay_s);
	if (option == OPT_ITERATIONS)
		return cli_integer(cli, "iterations", 1, 1000000000, &a->iterations) == 0
			       ? 0
			       : cli->status;
	a->batch = true;
	return 0;
}

static int run(struct cli *cli)
{
	struct args a = {.delay_s = 1};
	const char *operand;
	int option, status;

	while ((option = cli_next(cli)) >= 0) {
		status = take_option(cli, option, &a);
		if (status != 0)
			return status;
	}
	if (option == CLI_STOP || cli_one_operand(cli, &operand) != 0)
		return cli->status;
	status = take_pid(cli, operand, &a.pid);
	return status != 0 ? status : show(cli, &a);
}

const struct cmd cmd_top = {
	.name = "top",
	.summary = "Watch programs that run under numabal run: nodes, regions, faults, moves.",
	.usage = "[OPTION...] [PID]",
	.options = options,
	.letters = "bdn",
	.examples = "  numabal top\n  numabal top 4711\n  numabal top --batch -n 3 -d 0.5 4711\n",
	.run = run,
};
