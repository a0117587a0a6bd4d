/* SPDX-License-Identifier: MIT */
/*
 * Any text as a job file, after a first line of variables that a caller sets; resolved for a
 * machine with nodes of every kind. What comes out must be sound.
 */
#include "../sim/job.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char machine[] =
	"[machine]\n"
	"topology = 2 nodes x 2 cpus x 4G + 1 node x 1 cpu + 1 node x 16G at 40\n";

/* Its memory lives as long as the process. */
static const struct sim_model *model(void)
{
	static struct sim_model m;
	static bool made;

	if (!made && sim_model_parse(&m, "machine.ini", machine, sizeof(machine) - 1, NULL, 0))
		abort();
	made = true;
	return &m;
}

static void resolve(const struct sim_job *job)
{
	struct sim_load load;
	char why[256] = "";

	if (sim_load_resolve(&load, job, model(), why, sizeof(why))) {
		if (!why[0] || strchr(why, '\n'))
			abort(); /* a refusal is one line */
		return;
	}
	if (sim_load_check(&load, model()))
		abort();
	sim_load_free(&load);
}

static void expand(const char *source)
{
	char **list, why[256] = "";
	size_t n;

	if (sim_job_expand(source, &list, &n, why, sizeof(why))) {
		if (!why[0] || strchr(why, '\n'))
			abort();
		return;
	}
	sim_job_expand_free(list, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *newline = size ? memchr(text, '\n', size) : NULL;
	const size_t first = newline ? (size_t)(newline - text) : 0;
	char overrides[128] = ":", why[256] = "";
	struct sim_job *job;

	if (first < sizeof(overrides) - 1)
		memcpy(overrides + 1, text, first);
	if (newline) {
		size -= first + 1;
		text = newline + 1;
	}
	expand(overrides);
	if (sim_job_parse(&job, "fuzz.ini", text, size, overrides[1] ? overrides + 1 : NULL, why,
		    sizeof(why))) {
		if (!why[0] || strchr(why, '\n'))
			abort();
		return 0;
	}
	resolve(job);
	sim_job_free(job);
	return 0;
}
