/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void fixture_free(struct fixture *x)
{
	for (size_t i = 0; i < x->set.nr_runs; i++) {
		free(x->results[i].node_ids);
		free(x->results[i].final_pages);
		free(x->results[i].samples);
		free(x->results[i].node_pages);
	}
	*x = (struct fixture){0};
}

static unsigned int next_iteration(const struct fixture *x, const char *job, const char *system)
{
	unsigned int iteration = 1;

	for (size_t i = 0; i < x->set.nr_runs; i++)
		if (!strcmp(x->runs[i].job, job) && !strcmp(x->runs[i].system, system))
			iteration++;
	return iteration;
}

struct nb_result *fixture_add(
	struct fixture *x, const char *job, const char *system, double elapsed)
{
	const size_t i = x->set.nr_runs;

	assert_true(i < FIXTURE_MAX_RUNS);
	x->results[i] = (struct nb_result){.elapsed_s = elapsed, .local_share = NAN};
	x->runs[i] = (struct report_run){
		.job = job,
		.system = system,
		.machine = "two nodes",
		.iteration = next_iteration(x, job, system),
		.seed = 7 + i,
		.result = &x->results[i],
	};
	x->set = (struct report_set){.nr_runs = i + 1, .runs = x->runs};
	return &x->results[i];
}

void fixture_series(struct nb_result *r, unsigned int nr_nodes, uint32_t nr_samples)
{
	r->nr_nodes = nr_nodes;
	r->nr_samples = nr_samples;
	r->node_ids = calloc(nr_nodes, sizeof(*r->node_ids));
	r->final_pages = calloc(nr_nodes, sizeof(*r->final_pages));
	r->samples = calloc(nr_samples, sizeof(*r->samples));
	r->node_pages = calloc((size_t)nr_samples * nr_nodes, sizeof(*r->node_pages));
	for (unsigned int k = 0; k < nr_nodes; k++) {
		r->node_ids[k] = (int)(2 * k);
		r->final_pages[k] = 1000 + k;
	}
	for (uint32_t i = 0; i < nr_samples; i++) {
		r->samples[i] = (struct nb_sample){
			.time_s = i + 1,
			.local_share = i % 3 ? 0.25 : NAN,
			.bytes = 4096.0 * i,
			.scan_period_ms = 1000,
			.hint_faults = 100 * i,
			.hint_faults_local = 40 * i,
			.pte_updates = 512 * i,
			.pages_migrated = 10 * i,
		};
		for (unsigned int k = 0; k < nr_nodes; k++)
			r->node_pages[(size_t)i * nr_nodes + k] = 100 * k + i;
	}
}

char *fixture_text(const struct fixture *x, int (*write)(FILE *f, const struct report_set *set))
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(write(f, &x->set), 0);
	fclose(f);
	return text;
}

char *fixture_shared(const char *name)
{
	const char *dir = getenv("NUMABAL_SHARED");
	char path[4096];
	char *text = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "../shared", name);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	if (getdelim(&text, &room, 0, f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

int fixture_has_line(const char *text, const char *line)
{
	const size_t len = strlen(line);

	for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return 1;
	return 0;
}
