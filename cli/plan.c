/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../engine/why.h"
#include "cmd.h"
#include "recording.h"

enum { MAX_SYSTEMS = 64, MAX_JOBS = 4096, MAX_RUNS = 1000000 };

/* ---- lists ---- */

/* The next piece of a comma-separated list into buf; *list moves past it. 0, -ENOENT at the end,
 * -EINVAL, -E2BIG. */
static int next_piece(const char **list, char *buf, size_t len)
{
	const size_t n = strcspn(*list, ",");

	if (!**list)
		return -ENOENT;
	if (!n)
		return -EINVAL;
	if (n >= len)
		return -E2BIG;
	memcpy(buf, *list, n);
	buf[n] = '\0';
	*list += n;
	/* A comma must be followed by another piece. */
	if (**list == ',' && !*++*list)
		return -EINVAL;
	return 0;
}

static int refuse_list(const char *what, const char *list, char *why, size_t why_len)
{
	return nb_why(why, why_len, -EINVAL,
		"--%s '%s': expected names separated by commas, none empty", what,
		nb_quote(list).text);
}

static void *grown(void *array, size_t nr, size_t size)
{
	/* Powers of two: only then is there more to allocate. */
	if (nr & (nr - 1))
		return array;
	return reallocarray(array, nr ? 2 * nr : 1, size);
}

/* ---- machine ---- */

int plan_set_machine(struct plan *p, const char *source, char *why, size_t why_len)
{
	const int err = sim_model_load(&p->model, source, why, why_len);

	p->has_model = !err;
	return err;
}

/* ---- systems ---- */

static int refuse_system(const char *name, char *why, size_t why_len)
{
	const char *names[MAX_SYSTEMS + 2] = {"best"};
	const struct nb_system *s;
	const char *closest;

	for (size_t i = 0; i < MAX_SYSTEMS && (s = nb_system_at(i)); i++)
		names[i + 1] = nb_system_name(s);
	closest = cli_closest(name, names);
	if (closest)
		return nb_why(why, why_len, -EINVAL, "no system '%s'; did you mean '%s'?",
			nb_quote(name).text, closest);
	return nb_why(why, why_len, -EINVAL, "no system '%s'; 'numabal systems' lists them",
		nb_quote(name).text);
}

static int add_system(struct plan *p, const char *name, char *why, size_t why_len)
{
	const struct nb_system *row = nb_system_find(name);
	const bool best = !strcmp(name, "best");
	struct plan_system *systems;

	if (!row && !best)
		return refuse_system(name, why, why_len);
	for (size_t i = 0; i < p->nr_systems; i++)
		if (!strcmp(p->systems[i].name, name))
			return nb_why(why, why_len, -EINVAL, "system '%s' given twice",
				nb_quote(name).text);
	systems = grown(p->systems, p->nr_systems, sizeof(*systems));
	if (!systems)
		return nb_why(why, why_len, -ENOMEM, "no memory");
	p->systems = systems;
	systems += p->nr_systems++;
	*systems = (struct plan_system){.best = best};
	snprintf(systems->name, sizeof(systems->name), "%s", name);
	if (row)
		nb_config_from_system(&systems->config, row);
	return 0;
}

int plan_add_systems(struct plan *p, const char *list, char *why, size_t why_len)
{
	const char *rest = list;
	char name[SIM_NAME];
	int err;

	while (!(err = next_piece(&rest, name, sizeof(name)))) {
		err = add_system(p, name, why, why_len);
		if (err)
			return err;
	}
	if (err != -ENOENT || rest == list)
		return refuse_list("system", list, why, why_len);
	return 0;
}

int plan_set(struct plan *p, const char *assignment, char *why, size_t why_len)
{
	char reason[CLI_WHY_LEN] = "";

	for (size_t i = 0; i < p->nr_systems; i++) {
		int err;

		if (p->systems[i].best)
			continue;
		err = nb_config_set(&p->systems[i].config, assignment, reason, sizeof(reason));
		if (err)
			return nb_why(why, why_len, err, "--set %s", reason);
	}
	return 0;
}

/* ---- jobs ---- */

/* "name=" at the start: letters, digits and _, then '='. */
static bool is_assignment(const char *text)
{
	const size_t n =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n && text[n] == '=';
}

/* The ":VAR=VALUE,..." at the end of a job's source, or "". */
static const char *variables_of(const char *source)
{
	const char *colon = strrchr(source, ':');

	return colon && is_assignment(colon + 1) ? colon : "";
}

static int add_job(struct plan *p, const char *source, char *why, size_t why_len)
{
	struct plan_job *jobs = grown(p->jobs, p->nr_jobs, sizeof(*jobs));
	struct plan_job *j;
	int err;

	if (!jobs)
		return nb_why(why, why_len, -ENOMEM, "no memory");
	p->jobs = jobs;
	if (p->nr_jobs == MAX_JOBS)
		return nb_why(why, why_len, -E2BIG, "more than %d jobs", MAX_JOBS);
	j = &jobs[p->nr_jobs];
	*j = (struct plan_job){0};
	err = recording_or_job(&j->job, source, why, why_len);
	if (err)
		return err;
	snprintf(j->name, sizeof(j->name), "%s%s", sim_job_name(j->job), variables_of(source));
	for (size_t i = 0; i < p->nr_jobs; i++)
		if (!strcmp(jobs[i].name, j->name))
			err = nb_why(why, why_len, -EINVAL, "two jobs are named '%s'",
				nb_quote(j->name).text);
	if (!err)
		err = sim_load_resolve(&j->load, j->job, &p->model, why, why_len);
	if (err)
		sim_job_free(j->job);
	else
		p->nr_jobs++;
	return err;
}

/* A source whose variables have ranges is a job for each value. */
static int add_expanded(struct plan *p, const char *source, char *why, size_t why_len)
{
	char **sources;
	size_t nr;
	int err = sim_job_expand(source, &sources, &nr, why, why_len);

	if (err)
		return err;
	for (size_t i = 0; !err && i < nr; i++)
		err = add_job(p, sources[i], why, why_len);
	sim_job_expand_free(sources, nr);
	return err;
}

/* The next job of a list, with its variables: "numa02,jbb:warehouses=8,jvms=2" holds two. */
static int next_job(const char **list, char *buf, size_t len)
{
	int err = next_piece(list, buf, len);

	while (!err && strchr(buf, ':') && is_assignment(*list)) {
		const size_t used = strlen(buf);

		if (used + 2 >= len)
			return -E2BIG;
		buf[used] = ',';
		err = next_piece(list, buf + used + 1, len - used - 1);
	}
	return err;
}

int plan_add_jobs(struct plan *p, const char *list, char *why, size_t why_len)
{
	const char *rest = list;
	char source[SIM_TEXT];
	int err;

	while (!(err = next_job(&rest, source, sizeof(source)))) {
		err = add_expanded(p, source, why, why_len);
		if (err)
			return err;
	}
	if (err != -ENOENT || rest == list)
		return refuse_list("job", list, why, why_len);
	return 0;
}

/* ---- runs ---- */

/* The finisher of splitmix64: each bit of the input moves about half of the output's. */
static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t plan_seed(uint64_t seed, const char *job, unsigned int iteration)
{
	/* FNV-1a from a mixed start: the seed must not cancel against a name's first letter. */
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ mixed(seed + UINT64_C(0x9e3779b97f4a7c15));

	for (; *job; job++)
		h = (h ^ (unsigned char)*job) * UINT64_C(0x100000001b3);
	return mixed(h + (iteration + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 11;
}

struct plan_at plan_at(const struct plan *p, size_t i)
{
	return (struct plan_at){
		.job = i / p->iterations / p->nr_systems,
		.system = i / p->iterations % p->nr_systems,
		.iteration = (unsigned int)(i % p->iterations),
	};
}

int plan_runs(struct plan *p, unsigned int iterations, uint64_t seed)
{
	const size_t nr = p->nr_jobs * p->nr_systems * iterations;

	if (nr > MAX_RUNS)
		return -E2BIG;
	p->iterations = iterations;
	p->seed = seed;
	p->runs = calloc(nr, sizeof(*p->runs));
	p->results = calloc(nr, sizeof(*p->results));
	p->chosen = calloc(nr, sizeof(*p->chosen));
	if (!p->runs || !p->results || !p->chosen)
		return -ENOMEM;
	p->nr_runs = nr;
	for (size_t i = 0; i < nr; i++) {
		const struct plan_at at = plan_at(p, i);
		const struct plan_system *system = &p->systems[at.system];

		p->runs[i] = (struct report_run){
			.job = p->jobs[at.job].name,
			.system = system->name,
			.machine = p->model.name,
			.iteration = at.iteration + 1,
			.seed = plan_seed(seed, p->jobs[at.job].name, at.iteration),
			.result = &p->results[i],
			.is_best = system->best,
			.best_text = system->best ? p->chosen[i] : NULL,
		};
	}
	return 0;
}

int plan_run(struct plan *p, size_t i, struct sim_options options, char *why, size_t why_len)
{
	const struct plan_at at = plan_at(p, i);
	const struct sim_load *load = &p->jobs[at.job].load;

	options.seed = p->runs[i].seed;
	if (p->systems[at.system].best)
		return sim_best(
			&p->results[i], p->chosen[i], &p->model, load, &options, why, why_len);
	return sim_run(&p->results[i], &p->model, load, &p->systems[at.system].config, &options,
		why, why_len);
}

void plan_free(struct plan *p)
{
	for (size_t i = 0; i < p->nr_runs; i++)
		nb_result_free(&p->results[i]);
	for (size_t i = 0; i < p->nr_jobs; i++) {
		sim_load_free(&p->jobs[i].load);
		sim_job_free(p->jobs[i].job);
	}
	free(p->runs);
	free(p->results);
	free(p->chosen);
	free(p->systems);
	free(p->jobs);
	if (p->has_model)
		sim_model_free(&p->model);
}
