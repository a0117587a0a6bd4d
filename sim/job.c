/* SPDX-License-Identifier: MIT */
/* A job file from its source to struct sim_job. Values are checked when the job meets a machine:
 * load.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/why.h"
#include "expr.h"
#include "find.h"
#include "jobfile.h"
#include "nearest.h"
#include "replay.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct sim_ini_key global_keys[] = {{.name = "name"}, {.name = "description"},
	{.name = "op_bytes"}, {.name = "time_limit"}, {.name = "preload"},
	{.name = "background_fill"}, {.name = "var", .repeats = true, .prefix = true}};

static const struct sim_ini_key section_keys[] = {
#define X(field, key) {.name = key},
	SIM_SECTION_KEYS(X)
#undef X
		{.name = "area", .repeats = true},
	{.name = "phase", .repeats = true}};

int sim_job_refuse(const struct sim_job_reader *r, uint32_t line, int err, const char *format, ...)
{
	char text[384];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!line)
		return nb_why(r->why, r->why_len, err, "%s: %s", r->job->file, text);
	return nb_why(r->why, r->why_len, err, "%s:%u: %s", r->job->file, line, text);
}

static int no_memory(const struct sim_job_reader *r)
{
	return sim_job_refuse(r, 0, -ENOMEM, "out of memory");
}

/* ---- [global] ---- */

static int take_text(struct sim_job_reader *r, struct sim_job_text *to,
	const struct sim_ini_section *s, const char *key)
{
	const struct sim_ini_entry *e = s ? sim_ini_entry(s, key) : NULL;

	if (!e)
		return 0;
	to->line = e->line;
	if (!e->value[0])
		return sim_job_refuse(r, e->line, -EINVAL, "%s without a value", key);
	return sim_job_substitute(r, &to->text, e->value, e->line);
}

static int take_preload(struct sim_job_reader *r, const struct sim_ini_section *global)
{
	const struct sim_ini_entry *e = global ? sim_ini_entry(global, "preload") : NULL;

	if (!e)
		return 0;
	if (strcmp(e->value, "lower_tier"))
		return sim_job_refuse(
			r, e->line, -EINVAL, "preload = %.32s: expected lower_tier", e->value);
	r->job->preload_lower_tier = true;
	return 0;
}

static void default_name(char *name, const char *file)
{
	const char *slash = strrchr(file, '/');
	char *dot;

	snprintf(name, SIM_NAME, "%s", slash && slash[1] ? slash + 1 : file);
	dot = strrchr(name, '.');
	if (dot && dot != name)
		*dot = '\0';
}

static void take_names(struct sim_job *job, const struct sim_ini_section *global)
{
	const struct sim_ini_entry *name = global ? sim_ini_entry(global, "name") : NULL;
	const struct sim_ini_entry *text = global ? sim_ini_entry(global, "description") : NULL;

	if (name && name->value[0])
		snprintf(job->name, SIM_NAME, "%s", name->value);
	else
		default_name(job->name, job->file);
	snprintf(job->description, SIM_TEXT, "%s", text ? text->value : "");
}

static int read_global(struct sim_job_reader *r, const char *overrides)
{
	const struct sim_ini_section *g = sim_ini_section(r->ini, "global");
	int err = 0;

	if (g)
		err = sim_ini_check_keys(
			r->ini, g, global_keys, COUNT(global_keys), r->why, r->why_len);
	if (!err)
		err = sim_job_read_vars(r, g, overrides);
	if (!err)
		err = take_text(r, &r->job->op_bytes, g, "op_bytes");
	if (!err)
		err = take_text(r, &r->job->time_limit, g, "time_limit");
	if (!err)
		err = take_text(r, &r->job->background_fill, g, "background_fill");
	if (!err)
		err = take_preload(r, g);
	take_names(r->job, g);
	return err;
}

/* ---- sections ---- */

static uint32_t count_keys(const struct sim_ini_section *s, const char *key)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->nr_entries; i++)
		nr += !strcmp(s->entries[i].key, key);
	return nr;
}

static int alloc_lists(
	struct sim_job_reader *r, struct sim_job_section *to, const struct sim_ini_section *s)
{
	const uint32_t areas = count_keys(s, "area"), phases = count_keys(s, "phase");

	if (!phases)
		return sim_job_refuse(r, s->line, -EINVAL,
			"[%s] has no phase: its threads would do nothing", s->name);
	if (phases > SIM_JOB_MAX_PHASES || areas > SIM_JOB_MAX_AREAS)
		return sim_job_refuse(r, s->line, -E2BIG,
			"[%s] has %u phases and %u areas, expected at most %d and %d", s->name,
			phases, areas, SIM_JOB_MAX_PHASES, SIM_JOB_MAX_AREAS);
	to->areas = calloc(areas ? areas : 1, sizeof(*to->areas));
	to->phases = calloc(phases, sizeof(*to->phases));
	return to->areas && to->phases ? 0 : no_memory(r);
}

static int read_lists(
	struct sim_job_reader *r, struct sim_job_section *to, const struct sim_ini_section *s)
{
	int err = alloc_lists(r, to, s);

	for (uint32_t i = 0; i < s->nr_entries && !err; i++) {
		const struct sim_ini_entry *e = &s->entries[i];

		if (!strcmp(e->key, "area"))
			err = sim_job_read_area(r, &to->areas[to->nr_areas++], e);
		else if (!strcmp(e->key, "phase"))
			err = sim_job_read_phase(r, &to->phases[to->nr_phases++], e);
	}
	return err;
}

static int read_section(
	struct sim_job_reader *r, struct sim_job_section *to, const struct sim_ini_section *s)
{
	int err = sim_ini_check_keys(
		r->ini, s, section_keys, COUNT(section_keys), r->why, r->why_len);

	snprintf(to->name, sizeof(to->name), "%s", s->name);
	to->line = s->line;
#define X(field, key)                                                                              \
	if (!err)                                                                                  \
		err = take_text(r, &to->field##_text, s, key);
	SIM_SECTION_KEYS(X)
#undef X
	return err ? err : read_lists(r, to, s);
}

static int read_sections(struct sim_job_reader *r)
{
	struct sim_job *job = r->job;
	int err = 0;

	if (r->ini->nr_sections > SIM_JOB_MAX_SECTIONS)
		return sim_job_refuse(r, r->ini->sections[SIM_JOB_MAX_SECTIONS].line, -E2BIG,
			"more than %d sections", SIM_JOB_MAX_SECTIONS);
	job->sections = calloc(r->ini->nr_sections + 1, sizeof(*job->sections));
	if (!job->sections)
		return no_memory(r);
	for (uint32_t i = 0; i < r->ini->nr_sections && !err; i++)
		if (strcmp(r->ini->sections[i].name, "global"))
			err = read_section(
				r, &job->sections[job->nr_sections++], &r->ini->sections[i]);
	if (!err && !job->nr_sections)
		err = sim_job_refuse(r, 0, -EINVAL,
			"no section besides [global]: expected one for each process or thread "
			"group");
	return err;
}

/* ---- what refers to what ---- */

static int find_process(
	struct sim_job_reader *r, const struct sim_job_section *s, uint32_t *process)
{
	struct sim_nearest near = {.name = s->process_text.text};
	char hint[SIM_HINT_LEN];

	for (uint32_t i = 0; i < r->job->nr_sections; i++) {
		const struct sim_job_section *other = &r->job->sections[i];

		sim_nearest_try(&near, other->name);
		if (strcmp(other->name, s->process_text.text))
			continue;
		if (other->process_text.text)
			return sim_job_refuse(r, s->process_text.line, -EINVAL,
				"[%s] has no process of its own, it is in '%s'", other->name,
				other->process_text.text);
		*process = i;
		return 0;
	}
	return sim_job_refuse(r, s->process_text.line, -EINVAL, "no section [%.48s]%s",
		s->process_text.text, sim_nearest_hint(&near, hint));
}

/* What is a matter of the process can't be said by a group that joins it. */
static int check_joined(struct sim_job_reader *r, const struct sim_job_section *s)
{
	const struct sim_job_text *const own[] = {
		&s->instances_text, &s->concurrency_text, &s->libraries_text, &s->start_text};

	for (size_t i = 0; i < COUNT(own); i++)
		if (own[i]->text)
			return sim_job_refuse(r, own[i]->line, -EINVAL,
				"instances, concurrency, libraries and start belong into [%s], "
				"whose process this is",
				s->process_text.text);
	for (uint32_t i = 0; i < s->nr_phases; i++)
		if (s->phases[i].main_only)
			return sim_job_refuse(r, s->phases[i].line, -EINVAL,
				"main: thread 0 is in [%s]", s->process_text.text);
	return 0;
}

static int join_process(struct sim_job_reader *r, uint32_t index)
{
	struct sim_job_section *s = &r->job->sections[index];
	int err;

	s->process = index;
	if (!s->process_text.text)
		return 0;
	err = find_process(r, s, &s->process);
	return err ? err : check_joined(r, s);
}

static bool has_area(const struct sim_job_section *s, uint32_t nr, const char *name)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!strcmp(s->areas[i].name, name))
			return true;
	return false;
}

/* Area names of a process are unique, whichever of its sections they are in. */
static int check_area(struct sim_job_reader *r, const struct sim_job_section *s, uint32_t index)
{
	const struct sim_job_area *a = &s->areas[index];
	bool again = has_area(s, index, a->name);

	for (const struct sim_job_section *o = r->job->sections; o < s && !again; o++)
		again = o->process == s->process && has_area(o, o->nr_areas, a->name);
	return again ? sim_job_refuse(r, a->line, -EINVAL, "area '%.48s' again", a->name) : 0;
}

static int find_target(
	struct sim_job_reader *r, const struct sim_job_section *s, struct sim_job_phase *p)
{
	struct sim_nearest near = {.name = p->value[SIM_ATTR_TARGET]};
	char hint[SIM_HINT_LEN];

	for (uint32_t i = 0; i < s->nr_phases; i++) {
		if (!s->phases[i].label)
			continue;
		sim_nearest_try(&near, s->phases[i].label);
		if (strcmp(s->phases[i].label, near.name))
			continue;
		p->target = (uint16_t)i;
		return 0;
	}
	return sim_job_refuse(r, p->line, -EINVAL, "no phase '%.32s:' in [%s]%s", near.name,
		s->name, sim_nearest_hint(&near, hint));
}

static int check_labels(struct sim_job_reader *r, const struct sim_job_section *s)
{
	for (uint32_t i = 0; i < s->nr_phases; i++)
		for (uint32_t j = 0; s->phases[i].label && j < i; j++)
			if (s->phases[j].label && !strcmp(s->phases[i].label, s->phases[j].label))
				return sim_job_refuse(r, s->phases[i].line, -EINVAL,
					"label '%s:' again", s->phases[i].label);
	return 0;
}

static int count_areas(struct sim_job_reader *r, const struct sim_job_section *s)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->job->nr_sections; i++)
		if (r->job->sections[i].process == s->process)
			nr += r->job->sections[i].nr_areas;
	if (nr <= SIM_JOB_MAX_AREAS)
		return 0;
	return sim_job_refuse(r, s->line, -E2BIG, "%u areas in a process, expected at most %d", nr,
		SIM_JOB_MAX_AREAS);
}

static int link_section(struct sim_job_reader *r, struct sim_job_section *s)
{
	int err = check_labels(r, s);

	if (!err)
		err = count_areas(r, s);
	for (uint32_t i = 0; i < s->nr_areas && !err; i++)
		err = check_area(r, s, i);
	for (uint32_t i = 0; i < s->nr_phases && !err; i++)
		if (s->phases[i].kind == SIM_PHASE_GOTO)
			err = find_target(r, s, &s->phases[i]);
	return err;
}

static int link_sections(struct sim_job_reader *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->job->nr_sections && !err; i++)
		err = join_process(r, i);
	for (uint32_t i = 0; i < r->job->nr_sections && !err; i++)
		err = link_section(r, &r->job->sections[i]);
	return err;
}

/* ---- public ---- */

static int parse(struct sim_job_reader *r, const char *file, const char *overrides)
{
	int err;

	r->job->file = strdup(file);
	if (!r->job->file)
		return nb_why(r->why, r->why_len, -ENOMEM, "out of memory");
	err = read_global(r, overrides);
	if (!err)
		err = read_sections(r);
	if (!err)
		err = link_sections(r);
	return err;
}

int sim_job_parse(struct sim_job **job, const char *file, const char *text, size_t len,
	const char *overrides, char *why, size_t why_len)
{
	struct sim_job_reader r = {.why = why, .why_len = why_len};
	struct sim_ini ini;
	int err = sim_ini_parse(&ini, file, text, len, why, why_len);

	if (err)
		return err;
	r.ini = &ini;
	r.job = calloc(1, sizeof(*r.job));
	err = r.job ? parse(&r, file, overrides) : nb_why(why, why_len, -ENOMEM, "out of memory");
	sim_ini_free(&ini);
	if (err)
		sim_job_free(r.job);
	else
		*job = r.job;
	return err;
}

static int load_file(
	struct sim_job **job, const char *path, const char *overrides, char *why, size_t why_len)
{
	char *text;
	size_t len;
	int err = sim_file_read(&text, &len, path, SIM_INI_MAX_BYTES, why, why_len);

	if (err)
		return err;
	err = sim_job_parse(job, path, text, len, overrides, why, why_len);
	free(text);
	return err;
}

static int load_named(
	struct sim_job **job, const char *name, const char *overrides, char *why, size_t why_len)
{
	const size_t len = strlen(name);
	char *path = NULL;
	int err;

	if (strchr(name, '/') || (len > 4 && !strcmp(name + len - 4, ".ini")))
		return load_file(job, name, overrides, why, why_len);
	err = sim_find_preset(&path, "jobs", "job", name, why, why_len);
	if (!err)
		err = load_file(job, path, overrides, why, why_len);
	else if (err == -ENOENT && !access(name, F_OK))
		err = load_file(job, name, overrides, why, why_len);
	free(path);
	return err;
}

int sim_job_load(struct sim_job **job, const char *source, char *why, size_t why_len)
{
	const size_t name_len = sim_job_source_name(source);
	char *name = strndup(source, name_len);
	const char *overrides = source[name_len] ? source + name_len + 1 : NULL;
	int err;

	if (!name)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	if (!name_len)
		err = nb_why(why, why_len, -EINVAL, "an empty name, expected a job");
	else
		err = load_named(job, name, overrides, why, why_len);
	free(name);
	return err;
}

static void section_free(struct sim_job_section *s)
{
	for (uint32_t i = 0; i < s->nr_areas; i++)
		free(s->areas[i].text);
	for (uint32_t i = 0; i < s->nr_phases; i++)
		free(s->phases[i].text);
	free(s->areas);
	free(s->phases);
#define X(field, key) free(s->field##_text.text);
	SIM_SECTION_KEYS(X)
#undef X
}

void sim_job_free(struct sim_job *job)
{
	if (!job)
		return;
	for (uint32_t i = 0; i < job->nr_sections; i++)
		section_free(&job->sections[i]);
	for (uint32_t i = 0; i < job->nr_vars; i++)
		free(job->vars[i].value.text);
	free(job->op_bytes.text);
	free(job->time_limit.text);
	free(job->background_fill.text);
	free(job->sections);
	free(job->file);
	sim_replay_free(job->replay);
	free(job);
}

const char *sim_job_name(const struct sim_job *job)
{
	return job->name;
}

const char *sim_job_description(const struct sim_job *job)
{
	return job->description;
}

int sim_list_jobs(struct sim_listing **list, size_t *nr)
{
	return sim_list_presets(list, nr, "jobs", "global");
}
