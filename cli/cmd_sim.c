/* SPDX-License-Identifier: MIT */
/* numabal sim: run jobs on a simulated machine under one or several systems, and report. */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../engine/why.h"
#include "outputs.h"
#include "plan.h"
#include "pool.h"
#include "progress.h"

enum {
	OPT_MACHINE,
	OPT_SYSTEM,
	OPT_JOB,
	OPT_ITERATIONS,
	OPT_SEED,
	OPT_SET,
	OPT_FORMAT,
	OPT_ROWS,
	OPT_OUTPUT,
	OPT_HTML,
	OPT_RECORD,
	OPT_TRACE,
	OPT_SAMPLE,
	OPT_JOBS_PARALLEL,
	OPT_CHECK,
};

static const struct cli_option options[] = {
	[OPT_MACHINE] = {"machine", "SOURCE", false,
		"a preset, a machine file, or a topology source (needed)"},
	[OPT_SYSTEM] = {"system", "A,B,C", true,
		"rows of 'numabal systems', or best (none,balancenuma-v8)"},
	[OPT_JOB] = {"job", "J,K", true,
		"presets, job files or recordings by run, NAME:VAR=N sets a variable (needed)"},
	[OPT_ITERATIONS] = {"iterations", "N", false, "runs of each job and system (1)"},
	[OPT_SEED] = {"seed", "N", false, "the same seed gives the same bytes (1)"},
	[OPT_SET] = {"set", "NAME=VALUE", true, "a mechanism or tunable, for every system"},
	[OPT_FORMAT] = {"format", "FORMAT", false, "table (default), json or csv"},
	[OPT_ROWS] = {"rows", "ROWS", false, "of the table: default or full"},
	[OPT_OUTPUT] = {"output", CLI_FILE, false, "write the report there instead of to stdout"},
	[OPT_HTML] = {"html", CLI_FILE, false, "also write a page with plots over time"},
	[OPT_RECORD] = {"record", CLI_FILE, false,
		"also write every decision, for 'numabal explain'; one run only"},
	[OPT_TRACE] = {"trace", CLI_FILE, false,
		"also write every decision as a line of text; one run only"},
	[OPT_SAMPLE] = {"sample", "SECONDS", false,
		"interval of the time series (1, doubled on long runs)"},
	[OPT_JOBS_PARALLEL] = {"jobs-parallel", "N", false,
		"runs at a time (the CPUs of this machine)"},
	[OPT_CHECK] = {"check", NULL, false, "check every structure each simulated second"},
	{0},
};

/* In the order of enum output_format. */
static const char *const formats[] = {"table", "json", "csv", NULL};

static const char *const rows[] = {"default", "full", NULL};
enum { ROWS_DEFAULT, ROWS_FULL };

struct strings {
	size_t nr;
	const char **at; /* borrowed from argv, which bounds how many there can be */
};

struct args {
	const char *machine;
	struct strings systems, jobs, sets;
	int64_t iterations, seed, parallel;
	double sample_s;
	bool check;
	struct output_request output;
};

/* ---- options ---- */

static void keep(struct strings *list, const char *text)
{
	list->at[list->nr++] = text;
}

static int parse_sample(struct cli *cli, double *out)
{
	if (!nb_parse_double(cli->value, out) && *out >= 0.001 && *out <= 86400)
		return 0;
	cli->status = cli_fail(cli, CLI_BAD_INPUT,
		"--sample '%s': expected seconds from 0.001 to 86400", nb_quote(cli->value).text);
	return CLI_STOP;
}

static int parse_format(struct cli *cli, struct output_request *output)
{
	const int format = cli_choice(cli, "format", formats);

	if (format >= 0)
		output->format = (enum output_format)format;
	return format < 0 ? format : 0;
}

static int parse_rows(struct cli *cli, struct output_request *output)
{
	const int chosen = cli_choice(cli, "rows", rows);

	output->full_rows = chosen == ROWS_FULL;
	return chosen < 0 ? chosen : 0;
}

/* Options whose argument is kept as it is. */
static const char **text_of(struct args *a, int option)
{
	switch (option) {
	case OPT_MACHINE:
		return &a->machine;
	case OPT_OUTPUT:
		return &a->output.report;
	case OPT_HTML:
		return &a->output.html;
	case OPT_RECORD:
		return &a->output.record;
	default:
		return &a->output.trace;
	}
}

static int parse_option(struct cli *cli, int option, struct args *a)
{
	switch (option) {
	case OPT_SYSTEM:
		keep(&a->systems, cli->value);
		return 0;
	case OPT_JOB:
		keep(&a->jobs, cli->value);
		return 0;
	case OPT_SET:
		keep(&a->sets, cli->value);
		return 0;
	case OPT_ITERATIONS:
		return cli_integer(cli, "iterations", 1, 1000, &a->iterations);
	case OPT_SEED:
		return cli_integer(cli, "seed", 0, INT64_MAX, &a->seed);
	case OPT_JOBS_PARALLEL:
		return cli_integer(cli, "jobs-parallel", 1, 1024, &a->parallel);
	case OPT_FORMAT:
		return parse_format(cli, &a->output);
	case OPT_ROWS:
		return parse_rows(cli, &a->output);
	case OPT_SAMPLE:
		return parse_sample(cli, &a->sample_s);
	case OPT_CHECK:
		a->check = true;
		return 0;
	default:
		*text_of(a, option) = cli->value;
		return 0;
	}
}

static int refuse(struct cli *cli, const char *what)
{
	cli->status = cli_fail(cli, CLI_BAD_INPUT, "%s", what);
	return CLI_STOP;
}

static int parse(struct cli *cli, struct args *a)
{
	const char *operand;
	int option;

	while ((option = cli_next(cli)) >= 0)
		if (parse_option(cli, option, a))
			return CLI_STOP;
	if (option == CLI_STOP || cli_one_operand(cli, &operand))
		return CLI_STOP;
	if (operand)
		return refuse(cli, "no operands are expected; jobs are given with --job");
	if (!a->machine)
		return refuse(cli, "--machine is missing; 'numabal machines' lists the presets");
	if (!a->jobs.nr)
		return refuse(cli, "--job is missing; 'numabal jobs' lists the presets");
	if (cli_check_sets(cli, a->sets.at, a->sets.nr)) {
		cli->status = CLI_BAD_INPUT;
		return CLI_STOP;
	}
	if (!a->systems.nr)
		keep(&a->systems, "none,balancenuma-v8");
	return 0;
}

/* ---- the plan ---- */

static int add_all(struct plan *p, const struct strings *list,
	int (*add)(struct plan *, const char *, char *, size_t), char *why)
{
	int err = 0;

	for (size_t i = 0; !err && i < list->nr; i++)
		err = add(p, list->at[i], why, CLI_WHY_LEN);
	return err;
}

static int make_plan(struct plan *p, const struct args *a, char *why)
{
	int err;

	if ((err = add_all(p, &a->systems, plan_add_systems, why)) ||
		(err = add_all(p, &a->sets, plan_set, why)) ||
		(err = plan_set_machine(p, a->machine, why, CLI_WHY_LEN)) ||
		(err = add_all(p, &a->jobs, plan_add_jobs, why)))
		return err;
	err = plan_runs(p, (unsigned int)a->iterations, (uint64_t)a->seed);
	if (err)
		nb_why(why, CLI_WHY_LEN, err, "too many runs, or no memory for them");
	return err;
}

/* ---- running it ---- */

struct session {
	struct plan *plan;
	const struct args *args;
	struct pool *pool;
	struct progress *progress;
	struct outputs *outputs;
	char (*why)[CLI_WHY_LEN]; /* [nr_runs] */
};

struct run_handle {
	struct session *session;
	size_t i;
};

static int on_progress(void *ctx, double simulated_s)
{
	const struct run_handle *run = ctx;

	progress_note(run->session->progress, run->i, simulated_s);
	return pool_stopped(run->session->pool, run->i);
}

static int work(void *ctx, size_t i)
{
	struct session *s = ctx;
	struct run_handle handle = {s, i};
	const struct sim_options how = {
		.sample_interval_s = s->args->sample_s,
		.check = s->args->check,
		.progress = on_progress,
		.progress_ctx = &handle,
		.trace = outputs_want_events(s->outputs) ? outputs_event : NULL,
		.trace_ctx = s->outputs,
	};

	return plan_run(s->plan, i, how, s->why[i], CLI_WHY_LEN);
}

static void tick(void *ctx, size_t done)
{
	const struct session *s = ctx;

	progress_show(s->progress, done);
}

static unsigned int default_threads(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 && n <= 1024 ? (unsigned int)n : 1;
}

static int fail_run(const struct cli *cli, const struct session *s, size_t i, int err)
{
	const struct report_run *run = &s->plan->runs[i];

	return cli_fail(cli, CLI_FAILED, "%s on %s: %s", run->job, run->system,
		s->why[i][0] ? s->why[i] : strerror(-err));
}

static int run_all(const struct cli *cli, struct plan *p, const struct args *a, struct outputs *o)
{
	struct session s = {.plan = p, .args = a, .outputs = o};
	const struct pool_job job = {
		.nr = p->nr_runs,
		.threads = a->parallel ? (unsigned int)a->parallel : default_threads(),
		.ctx = &s,
		.work = work,
		.tick = tick,
	};
	size_t failed = SIZE_MAX;
	int err = -ENOMEM, status = CLI_OK;

	s.why = calloc(p->nr_runs, sizeof(*s.why));
	s.progress = progress_new(p);
	if (s.why && s.progress)
		err = pool_run(&job, &s.pool, &failed);
	progress_end(s.progress);
	if (err == -EINTR)
		status = cli_fail(cli, CLI_INTERRUPTED, "interrupted; nothing was written");
	else if (err && failed < p->nr_runs)
		status = fail_run(cli, &s, failed, err);
	else if (err)
		status = cli_fail(cli, CLI_FAILED, "%s", strerror(-err));
	free(s.why);
	return status;
}

/* ---- the command ---- */

/* Where a path leads, links followed; a file that is not there yet lies in its directory. */
static bool where(const char *path, char out[PATH_MAX])
{
	char directory[PATH_MAX];
	const char *name = strrchr(path, '/');
	size_t length;

	if (realpath(path, out))
		return true;
	name = name ? name + 1 : path;
	length = (size_t)(name - path);
	if (length + 2 > sizeof(directory))
		return false;
	memcpy(directory, path, length);
	strcpy(directory + length, ".");
	if (!realpath(directory, out) || strlen(out) + strlen(name) + 2 > PATH_MAX)
		return false;
	strcat(out, "/");
	strcat(out, name);
	return true;
}

static bool same_place(const char *a, const char *b)
{
	char at_a[PATH_MAX], at_b[PATH_MAX];

	if (!a || !b)
		return false;
	if (!strcmp(a, "-") || !strcmp(b, "-"))
		return !strcmp(a, b);
	return where(a, at_a) && where(b, at_b) && !strcmp(at_a, at_b);
}

/* Is `output` the file that one of the comma-separated sources (FILE or FILE:VAR=VALUE...) is read
 * from? */
static bool reads(const char *sources, const char *output)
{
	char source[PATH_MAX];

	while (output && sources && *sources) {
		const size_t item = strcspn(sources, ",");
		const size_t length = strcspn(sources, ",:");

		if (length && length < sizeof(source)) {
			memcpy(source, sources, length);
			source[length] = '\0';
			if (!access(source, F_OK) && same_place(source, output))
				return true;
		}
		sources += item + (sources[item] == ',');
	}
	return false;
}

static int check_inputs(const struct cli *cli, const struct args *a)
{
	const char *outputs[] = {
		a->output.report, a->output.html, a->output.record, a->output.trace};

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		bool taken = reads(a->machine, outputs[i]);

		for (size_t k = 0; k < a->jobs.nr; k++)
			taken |= reads(a->jobs.at[k], outputs[i]);
		if (taken)
			return cli_fail(cli, CLI_BAD_INPUT,
				"%s is read from; expected another file to write to",
				nb_quote(outputs[i]).text);
	}
	return CLI_OK;
}

/* Two outputs in one file would be one of them, or neither. Devices may take several. */
static int check_places(const struct cli *cli, const struct output_request *o)
{
	const char *places[] = {o->report ? o->report : "-", o->html, o->record, o->trace};
	enum { NR = sizeof(places) / sizeof(places[0]) };

	for (size_t i = 0; i < NR; i++)
		for (size_t j = 0; j < i; j++)
			if (same_place(places[i], places[j]) && strncmp(places[i], "/dev/", 5))
				return cli_fail(cli, CLI_BAD_INPUT,
					"two outputs go to %s; give each a file of its own",
					strcmp(places[i], "-") ? nb_quote(places[i]).text
							       : "stdout");
	return CLI_OK;
}

/* Recordings hold one run; the search for the best placement makes many. */
static int check_request(const struct cli *cli, const struct plan *p, const struct args *a)
{
	const char *option = a->output.record ? "record" : "trace";

	if (!a->output.record && !a->output.trace)
		return CLI_OK;
	if (p->nr_runs > 1)
		return cli_fail(cli, CLI_BAD_INPUT,
			"--%s takes one run, and this is %zu: expected one job, one --system and "
			"one iteration",
			option, p->nr_runs);
	if (p->systems[0].best)
		return cli_fail(cli, CLI_BAD_INPUT, "--%s: 'best' is a search, not a run", option);
	return CLI_OK;
}

static int report(const struct cli *cli, const struct plan *p, struct outputs *o)
{
	const struct report_set set = {p->nr_runs, p->runs};
	char why[CLI_WHY_LEN] = "";
	const int err = outputs_commit(o, &set, why, sizeof(why));

	if (!err || err == -EPIPE)
		return CLI_OK;
	return cli_fail(cli, CLI_FAILED, "%s", why[0] ? why : strerror(-err));
}

static int run_plan(const struct cli *cli, struct plan *p, const struct args *a)
{
	struct outputs o;
	char why[CLI_WHY_LEN] = "";
	int status = check_places(cli, &a->output);

	if (status == CLI_OK)
		status = check_inputs(cli, a);

	if (status == CLI_OK)
		status = check_request(cli, p, a);
	if (status != CLI_OK)
		return status;
	if (outputs_open(&o, &a->output, p, why, sizeof(why)))
		return cli_fail(cli, CLI_FAILED, "%s", why);
	status = run_all(cli, p, a, &o);
	if (status == CLI_OK)
		return report(cli, p, &o);
	outputs_abort(&o);
	return status;
}

static int simulate(struct cli *cli, const struct args *a)
{
	struct plan plan = {0};
	char why[CLI_WHY_LEN] = "";
	const int err = make_plan(&plan, a, why);
	int status;

	if (err)
		status = cli_fail(cli, cli_status_of(err), "%s", why);
	else
		status = run_plan(cli, &plan, a);
	plan_free(&plan);
	return status;
}

static int run(struct cli *cli)
{
	const size_t most = (size_t)cli->argc + 1;
	const char **texts = calloc(3 * most, sizeof(*texts));
	const char *check = getenv("NUMABAL_CHECK");
	struct args a = {.iterations = 1, .seed = 1, .check = check && !strcmp(check, "1")};
	int status;

	if (!texts)
		return cli_fail(cli, CLI_FAILED, "no memory");
	a.systems.at = texts;
	a.jobs.at = texts + most;
	a.sets.at = texts + 2 * most;
	status = parse(cli, &a) ? cli->status : simulate(cli, &a);
	free(texts);
	return status;
}

const struct cmd cmd_sim = {
	.name = "sim",
	.summary = "Run jobs on a simulated machine under several systems, and compare them.",
	.usage = "--machine SOURCE --job J[,K...] [OPTION...]",
	.options = options,
	.examples = "  numabal sim --machine 2012-4node-48cpu --system none,balancenuma-v8 --job "
		    "numa01,numa02\n"
		    "  numabal sim --machine host --job numa02 --system none,best\n"
		    "  numabal sim --machine '2 nodes x 8 cpus x 16G' --job numa02 --set "
		    "two_stage_filter=off\n"
		    "  numabal sim --machine 2012-4node-48cpu --job numa02 --iterations 5 --format "
		    "json\n",
	.run = run,
};
