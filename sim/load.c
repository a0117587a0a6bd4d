/* SPDX-License-Identifier: MIT */
/* A job resolved for one machine: processes, areas and threads as numbers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "../engine/why.h"
#include "load_parts.h"
#include "replay.h"

/* Larger than any machine; sums of 100,000 such areas still fit into a double exactly enough. */
static const double MAX_AREA = 0x1p52;
static const double MAX_TIME_S = 1e9;

enum { MAX_LIBRARIES = 1000 };

static int no_memory(const struct sim_resolver *x)
{
	return sim_job_refuse(&x->r, 0, -ENOMEM, "out of memory");
}

static struct sim_text text_of(const struct sim_job_text *t, const char *name)
{
	return (struct sim_text){.text = t->text, .name = name, .line = t->line};
}

/* ---- [global] ---- */

static int resolve_global(struct sim_resolver *x)
{
	const struct sim_job *job = x->job;
	int err = 0;

	snprintf(x->load->name, sizeof(x->load->name), "%s", job->name);
	x->load->preload_lower_tier = job->preload_lower_tier;
	if (job->time_limit.text)
		err = sim_resolve_number(x, text_of(&job->time_limit, "time_limit"), 1e-6,
			MAX_TIME_S, "s", &x->load->time_limit_s);
	if (!err && job->op_bytes.text)
		err = sim_resolve_number(x, text_of(&job->op_bytes, "op_bytes"), 1, MAX_AREA,
			"bytes", &x->load->op_bytes);
	if (!err && job->background_fill.text)
		err = sim_resolve_number(x, text_of(&job->background_fill, "background_fill"), 0,
			0.99, "", &x->load->background_fill);
	return err;
}

/* ---- areas ---- */

static int resolve_area_policy(
	struct sim_resolver *x, struct sim_area *to, const struct sim_job_area *a)
{
	int err;

	if (!a->policy)
		return 0;
	err = sim_resolve_policy(x,
		(struct sim_text){.text = a->policy, .name = "policy", .line = a->line},
		&to->policy);
	if (!err && to->policy.mode == NB_POLICY_NOOP)
		err = sim_job_refuse(&x->r, a->line, -EINVAL, "policy=noop on an area");
	return err;
}

static int resolve_offset(struct sim_resolver *x, struct sim_area *to, const struct sim_job_area *a)
{
	double offset;
	int err;

	if (!a->offset)
		return 0;
	err = sim_resolve_number(x,
		(struct sim_text){.text = a->offset, .name = "offset", .line = a->line}, 0,
		NB_HUGE_SIZE - 1, "bytes", &offset);
	if (err)
		return err;
	to->offset = (uint64_t)offset;
	if (to->offset % NB_PAGE_SIZE)
		return sim_job_refuse(&x->r, a->line, -EINVAL,
			"offset=%.32s: expected whole pages of 4K", a->offset);
	return 0;
}

static int resolve_area(struct sim_resolver *x, struct sim_area *to, const struct sim_job_area *a)
{
	double bytes;
	int err = sim_resolve_number(x,
		(struct sim_text){.text = a->size, .name = "size", .line = a->line}, 1, MAX_AREA,
		"bytes", &bytes);

	if (err)
		return err;
	*to = (struct sim_area){.thp = a->thp, .late = a->late, .shared = a->shared};
	snprintf(to->name, sizeof(to->name), "%s", a->name);
	to->bytes = ((uint64_t)ceil(bytes) + NB_PAGE_SIZE - 1) / NB_PAGE_SIZE * NB_PAGE_SIZE;
	err = resolve_offset(x, to, a);
	return err ? err : resolve_area_policy(x, to, a);
}

static uint32_t count_areas(const struct sim_job *job, uint32_t section)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < job->nr_sections; i++)
		if (job->sections[i].process == section)
			nr += job->sections[i].nr_areas;
	return nr;
}

static int add_areas(
	struct sim_resolver *x, struct sim_process_load *p, const struct sim_job_section *s)
{
	int err = 0;

	for (uint32_t a = 0; a < s->nr_areas && !err; a++)
		err = resolve_area(x, &p->areas[p->nr_areas++], &s->areas[a]);
	return err;
}

/* The section at place i of a process: the one it is named after, then those that join it, as in
 * the file. */
static uint32_t section_at(uint32_t process, uint32_t i)
{
	if (!i)
		return process;
	return i <= process ? i - 1 : i;
}

static int resolve_areas(struct sim_resolver *x, struct sim_process_load *p, uint32_t section)
{
	const struct sim_job *job = x->job;
	const uint32_t nr = count_areas(job, section);
	int err = sim_resolve_items(x, nr, job->sections[section].line);

	if (err)
		return err;
	p->areas = calloc(nr ? nr : 1, sizeof(*p->areas));
	if (!p->areas)
		return no_memory(x);
	for (uint32_t i = 0; i < job->nr_sections && !err; i++) {
		const struct sim_job_section *s = &job->sections[section_at(section, i)];

		if (s->process == section)
			err = add_areas(x, p, s);
	}
	return err;
}

/* ---- threads ---- */

static int resolve_thread(
	struct sim_resolver *x, uint32_t process, uint32_t number, const struct sim_job_section *s)
{
	struct sim_process_load *p = &x->load->processes[process];
	struct sim_thread_load *t = &x->load->threads[p->first_thread + number];
	int err;

	*t = (struct sim_thread_load){.process = process, .number = number};
	x->vars[SIM_VAR_THREAD].value = number;
	err = sim_resolve_vars(x, SIM_STAGE_THREAD);
	if (!err && s->cpus_text.text)
		err = sim_resolve_cpus(x, text_of(&s->cpus_text, "cpus"), &t->cpus);
	if (!err && s->policy_text.text)
		err = sim_resolve_policy(x, text_of(&s->policy_text, "policy"), &t->policy);
	if (!err && t->policy.mode == NB_POLICY_NOOP)
		err = sim_job_refuse(&x->r, s->policy_text.line, -EINVAL, "policy = noop at start");
	return err ? err : sim_resolve_phases(x, t, p, s);
}

/* Threads of all sections of the process, numbered in the order of section_at. */
static int resolve_threads(
	struct sim_resolver *x, uint32_t process, uint32_t section, const uint32_t *threads)
{
	uint32_t number = 0;
	int err = 0;

	for (uint32_t i = 0; i < x->job->nr_sections && !err; i++) {
		const uint32_t k = section_at(section, i);
		const struct sim_job_section *s = &x->job->sections[k];

		x->group_threads = threads[k];
		for (uint32_t t = 0; s->process == section && t < threads[k] && !err; t++) {
			x->group_number = t;
			err = resolve_thread(x, process, number++, s);
		}
	}
	x->vars[SIM_VAR_THREAD].value = NAN;
	return err;
}

/* ---- processes ---- */

/* The next power of two, so that adding one at a time copies each element a few times at most. */
static size_t capacity(size_t nr)
{
	size_t room = 1;

	while (room < nr)
		room *= 2;
	return room;
}

/* Room for so many more; new elements are zero. */
static int grow(void **array, size_t nr, size_t more, size_t size)
{
	if (!*array || capacity(nr + more) != capacity(nr)) {
		void *grown = realloc(*array, capacity(nr + more) * size);

		if (!grown)
			return -ENOMEM;
		*array = grown;
	}
	memset((char *)*array + nr * size, 0, more * size);
	return 0;
}

static int add_process(struct sim_resolver *x, uint32_t nr_threads, struct sim_process_load **p)
{
	struct sim_load *load = x->load;

	if (load->nr_threads + nr_threads > SIM_JOB_MAX_THREADS)
		return sim_job_refuse(
			&x->r, 0, -E2BIG, "more than %d threads", SIM_JOB_MAX_THREADS);
	if (grow((void **)&load->processes, load->nr_processes, 1, sizeof(*load->processes)) ||
		grow((void **)&load->threads, load->nr_threads, nr_threads, sizeof(*load->threads)))
		return no_memory(x);
	*p = &load->processes[load->nr_processes++];
	(*p)->first_thread = load->nr_threads;
	(*p)->nr_threads = nr_threads;
	load->nr_threads += nr_threads;
	return 0;
}

/* How many threads each section of the process has: into threads[nr_sections], their sum into *sum.
 */
static int count_threads(struct sim_resolver *x, uint32_t section, uint32_t *threads, uint32_t *sum)
{
	int err = 0;

	*sum = 0;
	for (uint32_t i = 0; i < x->job->nr_sections && !err; i++) {
		const struct sim_job_section *s = &x->job->sections[i];

		threads[i] = 1;
		if (s->process != section)
			continue;
		if (s->threads_text.text)
			err = sim_resolve_count(x, text_of(&s->threads_text, "threads"), 1,
				SIM_JOB_MAX_THREADS, &threads[i]);
		*sum += threads[i];
	}
	return err;
}

static void name_process(
	struct sim_process_load *p, const char *name, uint32_t instance, uint32_t instances)
{
	if (instances > 1)
		snprintf(p->name, sizeof(p->name), "%.48s.%u", name, instance);
	else
		snprintf(p->name, sizeof(p->name), "%.48s", name);
}

static int resolve_start(
	struct sim_resolver *x, struct sim_process_load *p, const struct sim_job_section *s)
{
	if (!s->start_text.text)
		return 0;
	return sim_resolve_number(
		x, text_of(&s->start_text, "start"), 0, MAX_TIME_S, "s", &p->start_s);
}

static int resolve_libraries(
	struct sim_resolver *x, struct sim_process_load *p, const struct sim_job_section *s)
{
	p->libraries = SIM_LIBRARIES;
	if (!s->libraries_text.text)
		return 0;
	return sim_resolve_count(
		x, text_of(&s->libraries_text, "libraries"), 0, MAX_LIBRARIES, &p->libraries);
}

struct instance {
	uint32_t section, number, of, concurrency;
};

static int resolve_instance(struct sim_resolver *x, struct instance in, uint32_t *threads)
{
	const struct sim_job_section *s = &x->job->sections[in.section];
	struct sim_process_load *p = NULL;
	uint32_t nr_threads = 0;
	int err;

	x->vars[SIM_VAR_PROC].value = in.number;
	x->vars[SIM_VAR_PROCS].value = in.of;
	x->vars[SIM_VAR_THREADS].value = NAN;
	err = sim_resolve_vars(x, SIM_STAGE_PROCESS);
	if (!err)
		err = count_threads(x, in.section, threads, &nr_threads);
	if (err)
		return err;
	x->vars[SIM_VAR_THREADS].value = nr_threads;
	err = sim_resolve_vars(x, SIM_STAGE_PROCESS);
	if (!err)
		err = add_process(x, nr_threads, &p);
	if (err)
		return err;
	name_process(p, s->name, in.number, in.of);
	p->has_main = threads[in.section] == 1;
	p->pool = in.section;
	p->concurrency = in.concurrency;
	err = resolve_start(x, p, s);
	if (!err)
		err = resolve_libraries(x, p, s);
	if (!err)
		err = resolve_areas(x, p, in.section);
	return err ? err : resolve_threads(x, x->load->nr_processes - 1, in.section, threads);
}

/* Shared areas are one for all instances, so they must agree. */
static int check_shared(struct sim_resolver *x, uint32_t first, uint32_t line)
{
	const struct sim_load *load = x->load;
	const struct sim_process_load *p = &load->processes[first];

	for (uint32_t i = first + 1; i < load->nr_processes; i++)
		for (uint32_t a = 0; a < p->nr_areas; a++)
			if (p->areas[a].shared &&
				(load->processes[i].areas[a].bytes != p->areas[a].bytes ||
					load->processes[i].areas[a].offset != p->areas[a].offset))
				return sim_job_refuse(&x->r, line, -EINVAL,
					"shared area %s differs between instances",
					p->areas[a].name);
	return 0;
}

static int resolve_group(struct sim_resolver *x, uint32_t section, uint32_t *threads)
{
	const struct sim_job_section *s = &x->job->sections[section];
	const uint32_t first = x->load->nr_processes;
	struct instance in = {.section = section, .of = 1};
	int err = 0;

	for (int v = SIM_VAR_PROC; v < SIM_NR_BUILTINS; v++)
		x->vars[v].value = NAN;
	err = sim_resolve_vars(x, SIM_STAGE_PROCESS);
	if (!err && s->instances_text.text)
		err = sim_resolve_count(x, text_of(&s->instances_text, "instances"), 1,
			SIM_JOB_MAX_THREADS, &in.of);
	if (!err && s->concurrency_text.text)
		err = sim_resolve_count(x, text_of(&s->concurrency_text, "concurrency"), 0,
			SIM_JOB_MAX_THREADS, &in.concurrency);
	for (; in.number < in.of && !err; in.number++)
		err = resolve_instance(x, in, threads);
	return err ? err : check_shared(x, first, s->line);
}

/* ---- memory ---- */

static double process_bytes(const struct sim_process_load *p, bool shared)
{
	double bytes = 0;

	for (uint32_t a = 0; a < p->nr_areas; a++)
		if (p->areas[a].shared == shared)
			bytes += (double)p->areas[a].bytes;
	return bytes;
}

/* Bytes that processes first .. end of one pool can have at a time. */
static double pool_bytes(const struct sim_load *load, uint32_t first, uint32_t end)
{
	const uint32_t nr = end - first, limit = load->processes[first].concurrency;
	double largest = 0, all = 0;

	for (uint32_t i = first; i < end; i++) {
		const double bytes = process_bytes(&load->processes[i], false);

		all += bytes;
		largest = bytes > largest ? bytes : largest;
	}
	if (limit && limit < nr)
		all = largest * limit;
	return all + process_bytes(&load->processes[first], true);
}

static double needed_bytes(const struct sim_load *load)
{
	double bytes = 0;

	for (uint32_t i = 0, end; i < load->nr_processes; i = end) {
		for (end = i + 1; end < load->nr_processes; end++)
			if (load->processes[end].pool != load->processes[i].pool)
				break;
		bytes += pool_bytes(load, i, end);
	}
	return bytes;
}

static double usable_bytes(const struct sim_load *load, const struct sim_model *m)
{
	double bytes = 0;

	for (unsigned int n = 0; n < m->topo.nr_nodes; n++) {
		const struct nb_node *node = &m->topo.nodes[n];
		const double fill = node->tier ? 0 : load->background_fill;

		if (!(node->flags & NB_NODE_DISALLOWED))
			bytes += (double)node->mem_bytes * (1 - m->reserved) * (1 - fill);
	}
	return bytes;
}

static int check_memory(struct sim_resolver *x)
{
	const double need = needed_bytes(x->load), have = usable_bytes(x->load, x->m);

	if (need <= have)
		return 0;
	return sim_job_refuse(&x->r, 0, -EINVAL,
		"job %s needs %.3f GiB of memory, machine %s has %.3f GiB for it", x->load->name,
		need / 0x1p30, x->m->name, have / 0x1p30);
}

/* ---- late areas ---- */

static bool is_mapped(const struct sim_load *load, const struct sim_process_load *p, uint32_t area)
{
	for (uint32_t i = 0; i < p->nr_threads; i++) {
		const struct sim_thread_load *t = &load->threads[p->first_thread + i];

		for (uint32_t k = 0; k < t->nr_phases; k++)
			if (t->phases[k].kind == SIM_PHASE_MAP && t->phases[k].area == area)
				return true;
	}
	return false;
}

static int check_late(struct sim_resolver *x)
{
	const struct sim_load *load = x->load;

	for (uint32_t i = 0; i < load->nr_processes; i++)
		for (uint32_t a = 0; a < load->processes[i].nr_areas; a++)
			if (load->processes[i].areas[a].late &&
				!is_mapped(load, &load->processes[i], a))
				return sim_job_refuse(&x->r, 0, -EINVAL,
					"process %s: area %s is late, but no phase maps it",
					load->processes[i].name, load->processes[i].areas[a].name);
	return 0;
}

/* ---- public ---- */

static int resolve(struct sim_resolver *x)
{
	uint32_t *threads = calloc(x->job->nr_sections, sizeof(*threads));
	int err = threads ? resolve_global(x) : no_memory(x);

	for (uint32_t i = 0; i < x->job->nr_sections && !err; i++)
		if (x->job->sections[i].process == i)
			err = resolve_group(x, i, threads);
	free(threads);
	if (!err)
		err = check_late(x);
	return err ? err : check_memory(x);
}

int sim_load_resolve(struct sim_load *load, const struct sim_job *job, const struct sim_model *m,
	char *why, size_t why_len)
{
	struct sim_resolver *x = calloc(1, sizeof(*x));
	const char *unsound;
	int err;

	*load = (struct sim_load){0};
	if (!x)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	if (job->replay) {
		free(x);
		return sim_replay_resolve(load, job, m, why, why_len);
	}
	err = sim_resolver_init(x, load, job, m, why, why_len);
	if (!err)
		err = resolve(x);
	unsound = err ? NULL : sim_load_check(load, m);
	if (unsound)
		err = sim_job_refuse(&x->r, 0, -EINVAL, "%s", unsound);
	if (err)
		sim_load_free(load);
	free(x);
	return err;
}

void sim_load_free(struct sim_load *load)
{
	for (uint32_t i = 0; i < load->nr_threads; i++) {
		free(load->threads[i].cpus);
		free(load->threads[i].phases);
	}
	for (uint32_t i = 0; i < load->nr_processes; i++)
		free(load->processes[i].areas);
	free(load->threads);
	free(load->processes);
	*load = (struct sim_load){0};
}
