/* SPDX-License-Identifier: MIT */
/* numabal explain: what was decided on a VMA or a page of a recorded run, and why. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "../engine/machine.h"
#include "../report/explain.h"
#include "../report/file.h"

enum { OPT_VMA, OPT_ADDR, OPT_FORMAT, OPT_LIMIT };

static const struct cli_option options[] = {
	[OPT_VMA] = {"vma", "VMA", false,
		"a number from the list, an address in it, or MM:ADDRESS"},
	[OPT_ADDR] = {"addr", "ADDRESS", false, "the page of this address, or MM:ADDRESS"},
	[OPT_FORMAT] = {"format", "FORMAT", false, "text (default) or json"},
	[OPT_LIMIT] = {"limit", "N", false, "print at most N lines (1000)"},
	{0},
};

static const char *const formats[] = {"text", "json", NULL};
enum { FORMAT_TEXT, FORMAT_JSON };

struct args {
	const char *file;
	bool has_target;
	struct report_explain_options how;
};

/* ---- options ---- */

static int refuse(struct cli *cli, const char *what)
{
	cli->status = cli_fail(cli, CLI_BAD_INPUT, "%s", what);
	return CLI_STOP;
}

static int parse_target(struct cli *cli, enum report_target_kind kind, struct args *a)
{
	char why[CLI_WHY_LEN] = "";

	if (a->has_target)
		return refuse(cli, "expected one of --vma and --addr");
	a->has_target = true;
	if (!report_target_parse(&a->how.target, kind, cli->value, why, sizeof(why)))
		return 0;
	return refuse(cli, why);
}

static int parse_format(struct cli *cli, struct args *a)
{
	const int format = cli_choice(cli, "format", formats);

	a->how.json = format == FORMAT_JSON;
	return format < 0 ? format : 0;
}

static int parse_limit(struct cli *cli, struct args *a)
{
	int64_t limit = 0;
	const int stopped = cli_integer(cli, "limit", 1, INT64_MAX, &limit);

	a->how.limit = (uint64_t)limit;
	return stopped;
}

static int parse_option(struct cli *cli, int option, struct args *a)
{
	switch (option) {
	case OPT_VMA:
		return parse_target(cli, REPORT_TARGET_VMA, a);
	case OPT_ADDR:
		return parse_target(cli, REPORT_TARGET_PAGE, a);
	case OPT_FORMAT:
		return parse_format(cli, a);
	default:
		return parse_limit(cli, a);
	}
}

static int parse(struct cli *cli, struct args *a)
{
	int option;

	while ((option = cli_next(cli)) >= 0)
		if (parse_option(cli, option, a))
			return CLI_STOP;
	if (option == CLI_STOP || cli_one_operand(cli, &a->file))
		return CLI_STOP;
	if (!a->file)
		return refuse(cli, "no recording given; 'numabal sim --record FILE' makes one");
	if (a->how.json && !a->has_target)
		return refuse(cli, "--format json needs --vma or --addr");
	return 0;
}

/* ---- without a target: what there is to ask about ---- */

static int list(FILE *f, struct report_reader *reader, char *why)
{
	const struct report_record_header *h = report_reader_header(reader);
	struct nb_event e;
	uint64_t nr = 0, events = 0;
	int more;

	fprintf(f, "%s under %s on %s, iteration %u, seed %" PRIu64 "\n\nVMAs (--vma N):\n", h->job,
		h->system, h->machine, h->iteration, h->seed);
	while ((more = report_reader_next(reader, &e, why, CLI_WHY_LEN)) > 0) {
		events++;
		if (e.type != NB_EVENT_VMA_MAP)
			continue;
		fprintf(f, "%6" PRIu64 "  mm %-4u 0x%" PRIx64 "  %10.1f MiB  mapped at %.3f s\n",
			++nr, e.mm, e.addr, (double)e.pages * NB_PAGE_SIZE / (1 << 20),
			(double)e.time_ns / 1e9);
	}
	if (!more)
		fprintf(f, "%" PRIu64 " events in all\n", events);
	return more;
}

/* ---- the command ---- */

struct job {
	const struct args *args;
	struct report_reader *reader;
	char why[CLI_WHY_LEN];
};

static int fill(FILE *f, void *ctx)
{
	struct job *job = ctx;

	if (!job->args->has_target)
		return list(f, job->reader, job->why);
	return report_explain(f, job->reader, &job->args->how, job->why, sizeof(job->why));
}

static int explain(const struct cli *cli, const struct args *a)
{
	struct job job = {.args = a};
	char why[CLI_WHY_LEN] = "";
	int err = report_reader_open(&job.reader, a->file, job.why, sizeof(job.why));

	if (err)
		return cli_fail(cli, cli_status_of(err), "%s", job.why);
	err = report_write_file(NULL, fill, &job, why, sizeof(why));
	report_reader_close(job.reader);
	if (!err || err == -EPIPE)
		return CLI_OK;
	return cli_fail(cli, cli_status_of(err), "%s", job.why[0] ? job.why : why);
}

static int run(struct cli *cli)
{
	struct args a = {.how = {.limit = REPORT_EXPLAIN_LIMIT}};

	return parse(cli, &a) ? cli->status : explain(cli, &a);
}

const struct cmd cmd_explain = {
	.name = "explain",
	.summary = "Say why a VMA or a page was scanned, skipped, faulted, moved or left.",
	.usage = "FILE [--vma VMA | --addr ADDRESS] [OPTION...]",
	.options = options,
	.examples = "  numabal sim --machine 2012-4node-48cpu --system balancenuma-v8 --job numa02 "
		    "--record run.nbrec\n"
		    "  numabal explain run.nbrec\n"
		    "  numabal explain run.nbrec --vma 1\n"
		    "  numabal explain run.nbrec --addr 0x10000010000\n",
	.run = run,
};
