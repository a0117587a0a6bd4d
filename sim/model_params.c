/* SPDX-License-Identifier: MIT */
/* The scalar parameters of a machine file, and which sections and keys it may have: both from
 * SIM_PARAMS. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../engine/why.h"
#include "model_parts.h"
#include "nearest.h"

const struct sim_param sim_params[] = {
#define X(field, section, key, unit, def, min, max, text)                                          \
	{#field, section, key, unit, def, min, max, text, offsetof(struct sim_model, field)},
	SIM_PARAMS(X)
#undef X
};
const size_t sim_nr_params = sizeof(sim_params) / sizeof(sim_params[0]);

/* What a section may have besides the rows of SIM_PARAMS. */
static const struct sim_ini_key machine_keys[] = {
	{.name = "name"}, {.name = "description"}, {.name = "source"}, {.name = "topology"}};
static const struct sim_ini_key node_keys[] = {
	{.name = "bandwidth_mib_s"}, {.name = "latency_ns"}, {.name = "size"}};
static const struct sim_ini_key link_keys[] = {{.name = "between"}, {.name = "bandwidth_mib_s"}};

enum { MAX_KEYS = 64 };
_Static_assert(sizeof(sim_params) / sizeof(sim_params[0]) + 4 <= MAX_KEYS, "keys of a section");

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

double sim_param_factor(const struct sim_param *p)
{
	if (!strcmp(p->unit, "MiB") || !strcmp(p->unit, "MiB/s"))
		return 0x1p20;
	if (!strcmp(p->unit, "ms"))
		return 1e6;
	if (!strcmp(p->unit, "1/min"))
		return 1.0 / 60;
	return 1;
}

int sim_refuse(const struct sim_machine_file *file, uint32_t line, int err, const char *format, ...)
{
	char text[384];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!file->ini)
		return nb_why(file->why, file->why_len, err, "%s", text);
	return nb_why(file->why, file->why_len, err, "%s:%u: %s", file->ini->file, line, text);
}

int sim_number(const struct sim_machine_file *file, const struct sim_ini_entry *e, const char *unit,
	double min, double max, double *out)
{
	const int err = nb_parse_double(e->value, out);

	if (err == -EINVAL)
		return sim_refuse(file, e->line, err, "%s = %.64s: expected a number of %s", e->key,
			e->value, unit);
	if (err || *out < min || *out > max)
		return sim_refuse(file, e->line, -ERANGE, "%s = %.64s: expected %g to %g %s",
			e->key, e->value, min, max, unit);
	return 0;
}

const char *sim_section_arg(const char *name, const char *prefix)
{
	const size_t n = strlen(prefix);

	return !strncmp(name, prefix, n) && name[n] == ' ' && name[n + 1] ? name + n + 1 : NULL;
}

/* Sections that hold rows of SIM_PARAMS, plus [latency]; NULL past the end. */
static const char *section_at(size_t i)
{
	static const char *const names[] = {
		"machine", "memory", "cpu", "costs", "scheduler", "latency"};

	return i < COUNT(names) ? names[i] : NULL;
}

static int unknown_section(const struct sim_machine_file *file, const struct sim_ini_section *s)
{
	struct sim_nearest near = {.name = s->name};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; section_at(i); i++)
		sim_nearest_try(&near, section_at(i));
	sim_nearest_try(&near, "node 0");
	sim_nearest_try(&near, "link NAME");
	return sim_refuse(file, s->line, -EINVAL, "no section [%s] in a machine file%s", s->name,
		sim_nearest_hint(&near, hint));
}

static bool has_params(const char *section)
{
	for (size_t i = 0; i < sim_nr_params; i++)
		if (!strcmp(sim_params[i].section, section))
			return true;
	return false;
}

static size_t add_param_keys(struct sim_ini_key *keys, const char *section)
{
	size_t nr = 0;

	for (size_t i = 0; i < sim_nr_params; i++)
		if (!strcmp(sim_params[i].section, section))
			keys[nr++] = (struct sim_ini_key){.name = sim_params[i].key};
	return nr;
}

static int check_section(const struct sim_machine_file *file, const struct sim_ini_section *s)
{
	struct sim_ini_key keys[MAX_KEYS];
	size_t nr;

	if (!strcmp(s->name, "latency"))
		return 0; /* its keys are node ids; sim_model_latency looks at them */
	if (sim_section_arg(s->name, "node"))
		return sim_ini_check_keys(
			file->ini, s, node_keys, COUNT(node_keys), file->why, file->why_len);
	if (sim_section_arg(s->name, "link"))
		return sim_ini_check_keys(
			file->ini, s, link_keys, COUNT(link_keys), file->why, file->why_len);
	if (!has_params(s->name))
		return unknown_section(file, s);
	nr = add_param_keys(keys, s->name);
	if (!strcmp(s->name, "machine")) {
		memcpy(keys + nr, machine_keys, sizeof(machine_keys));
		nr += COUNT(machine_keys);
	}
	return sim_ini_check_keys(file->ini, s, keys, nr, file->why, file->why_len);
}

int sim_model_check_names(const struct sim_machine_file *file)
{
	int err = 0;

	for (uint32_t i = 0; file->ini && i < file->ini->nr_sections && !err; i++)
		err = check_section(file, &file->ini->sections[i]);
	return err;
}

static double *field_of(struct sim_model *m, const struct sim_param *p)
{
	return (double *)(void *)((char *)m + p->offset);
}

static const struct sim_ini_entry *find_param(
	const struct sim_machine_file *file, const struct sim_param *p)
{
	const struct sim_ini_section *s = file->ini ? sim_ini_section(file->ini, p->section) : NULL;

	return s ? sim_ini_entry(s, p->key) : NULL;
}

static bool is_whole(const struct sim_param *p)
{
	return !strcmp(p->unit, "threads") || !strcmp(p->key, "hz");
}

static int set_param(
	struct sim_model *m, const struct sim_machine_file *file, const struct sim_param *p)
{
	const struct sim_ini_entry *e = find_param(file, p);
	double value = p->def;
	int err = e ? sim_number(file, e, p->unit, p->min, p->max, &value) : 0;

	if (!err && is_whole(p) && value != floor(value))
		err = sim_refuse(
			file, e->line, -EINVAL, "%s = %g: expected a whole number", p->key, value);
	if (!err)
		*field_of(m, p) = value * sim_param_factor(p);
	return err;
}

int sim_model_params(struct sim_model *m, const struct sim_machine_file *file)
{
	int err = 0;

	for (size_t i = 0; i < sim_nr_params && !err; i++)
		err = set_param(m, file, &sim_params[i]);
	return err;
}
