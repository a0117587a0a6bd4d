/* SPDX-License-Identifier: MIT */
/* numabal jobs: the job presets, and the file of one. */
#include "cmd.h"

#include <errno.h>
#include <string.h>
#include "../sim/job.h"

static const struct cli_option options[] = {{0}};

static int list(const struct cli *cli)
{
	struct sim_listing *jobs;
	size_t nr;

	if (sim_list_jobs(&jobs, &nr))
		return cli_fail(cli, CLI_FAILED, "no memory");
	for (size_t i = 0; i < nr; i++)
		printf("%-28s %s\n", jobs[i].name, jobs[i].description);
	sim_listing_free(jobs, nr);
	return cli_finish_stdout(cli);
}

static int print_file(const struct cli *cli, const char *path)
{
	FILE *f = fopen(path, "r");
	char buf[4096];
	size_t n;

	if (!f)
		return cli_fail(cli, CLI_FAILED, "%s: %s", path, strerror(errno));
	printf("# %s\n", path);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		fwrite(buf, 1, n, stdout);
	fclose(f);
	return cli_finish_stdout(cli);
}

/* The file of a preset, or the name itself where it is a file. */
static int show(const struct cli *cli, const char *name)
{
	char why[CLI_WHY_LEN] = "";
	struct sim_listing *jobs;
	struct sim_job *job;
	const char *path = name;
	size_t nr;
	int status = sim_job_load(&job, name, why, sizeof(why));

	if (status)
		return cli_fail(cli, cli_status_of(status), "%s", why);
	sim_job_free(job);
	if (sim_list_jobs(&jobs, &nr))
		return cli_fail(cli, CLI_FAILED, "no memory");
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(jobs[i].name, name))
			path = jobs[i].path;
	status = print_file(cli, path);
	sim_listing_free(jobs, nr);
	return status;
}

static int run(struct cli *cli)
{
	const char *name;

	if (cli_next(cli) == CLI_STOP || cli_one_operand(cli, &name))
		return cli->status;
	return name ? show(cli, name) : list(cli);
}

const struct cmd cmd_jobs = {
	.name = "jobs",
	.summary = "List the job presets, or show the file of one.",
	.usage = "[NAME]",
	.options = options,
	.examples = "  numabal jobs\n"
		    "  numabal jobs numa01\n"
		    "  numabal jobs numa01 >mine.ini\n",
	.run = run,
};
