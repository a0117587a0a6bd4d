/* SPDX-License-Identifier: MIT */
/* Where a machine comes from: presets, machine files, topology sources with or without a machine
 * file beside them. */
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/why.h"
#include "../topo/topo.h"
#include "find.h"
#include "model_parts.h"

/* ---- putting together ---- */

static void copy_text(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%s", from);
}

static const char *machine_key(const struct sim_ini *ini, const char *key)
{
	const struct sim_ini_section *s = ini ? sim_ini_section(ini, "machine") : NULL;
	const struct sim_ini_entry *e = s ? sim_ini_entry(s, key) : NULL;

	return e ? e->value : NULL;
}

static void name_from_path(char *name, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dot;

	copy_text(name, SIM_NAME, slash && slash[1] ? slash + 1 : path);
	dot = strrchr(name, '.');
	if (dot && dot != name && !strchr(name, ' '))
		*dot = '\0';
}

static void set_texts(struct sim_model *m, const struct sim_ini *ini, const char *topology)
{
	const char *name = machine_key(ini, "name"), *text = machine_key(ini, "description");
	const char *source = machine_key(ini, "source");

	if (name)
		copy_text(m->name, SIM_NAME, name);
	else
		name_from_path(m->name, ini ? ini->file : topology);
	copy_text(m->description, SIM_TEXT, text ? text : "");
	if (source)
		copy_text(m->source, SIM_TEXT, source);
	else
		snprintf(m->source, SIM_TEXT, "topology: %.200s; parameters: %.200s", topology,
			ini ? ini->file : "defaults");
}

static int check_usable(const struct sim_model *m, const struct sim_machine_file *file)
{
	if (!m->topo.nr_nodes)
		return sim_refuse(file, 1, -EINVAL, "0 nodes: nothing to simulate");
	if (!m->topo.nr_cpus)
		return sim_refuse(file, 1, -EINVAL, "0 CPUs: nothing can run");
	if (!nb_topology_memory_nodes(&m->topo))
		return sim_refuse(file, 1, -EINVAL, "no node has memory");
	return 0;
}

/* The topology is there; make the rest. */
static int complete(struct sim_model *m, const struct sim_machine_file *file)
{
	const char *unsound;
	int err = sim_model_check_names(file);

	if (!err && !m->topo.nr_nodes)
		err = check_usable(m, file);
	if (!err)
		err = sim_model_params(m, file);
	if (!err)
		err = sim_model_nodes(m, file);
	if (!err)
		err = check_usable(m, file);
	if (!err)
		err = sim_model_latency(m, file);
	if (!err)
		err = sim_model_links(m, file);
	if (!err)
		err = sim_model_cores(m, file);
	unsound = err ? NULL : sim_model_check(m);
	return unsound ? sim_refuse(file, 1, -EINVAL, "%s", unsound) : err;
}

/* Take the topology out of `info`, which must not be freed then. */
static int from_topology(struct sim_model *m, struct topo_info *info, const struct sim_ini *ini,
	const char *topology, char *why, size_t why_len)
{
	const struct sim_machine_file file = {.ini = ini, .why = why, .why_len = why_len};
	int err = topo_copy(&m->topo, &info->topo);

	if (err)
		return nb_why(why, why_len, err, "out of memory");
	set_texts(m, ini, topology);
	err = complete(m, &file);
	if (err)
		sim_model_free(m);
	return err;
}

/* ---- machine files ---- */

/* The path of `name` as seen from the directory that `file` is in; owned by the caller. */
static char *beside(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char *path = NULL;

	if (name[0] == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - file), file, name) < 0 ? NULL : path;
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* A topology that a machine file names: a file beside it, "host", or a one-line string. */
static int read_named_topology(
	struct topo_info *info, const char *file, const char *value, char *why, size_t why_len)
{
	char *path = beside(file, value);
	int err;

	if (!path)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	if (strcmp(value, "host") && exists(path))
		err = topo_read(info, path, why, why_len);
	else if (!strcmp(value, "host"))
		err = topo_read(info, value, why, why_len);
	else
		err = topo_parse_line(info, value, strlen(value), why, why_len);
	free(path);
	return err;
}

static const struct sim_ini_entry *topology_entry(const struct sim_ini *ini)
{
	const struct sim_ini_section *s = sim_ini_section(ini, "machine");

	return s ? sim_ini_entry(s, "topology") : NULL;
}

static int no_topology(const struct sim_ini *ini, char *why, size_t why_len)
{
	const struct sim_ini_section *s = sim_ini_section(ini, "machine");

	return nb_why(why, why_len, -EINVAL,
		"%s:%u: [machine] lacks topology, expected \"host\", a file, or \"2 nodes x 8 cpus "
		"x 16G\"",
		ini->file, s ? s->line : 1);
}

/* `in_memory`: read no other file. */
static int from_ini(
	struct sim_model *m, const struct sim_ini *ini, bool in_memory, char *why, size_t why_len)
{
	const struct sim_ini_entry *e = topology_entry(ini);
	char problem[SIM_TEXT] = "";
	struct topo_info *info;
	int err;

	if (!e)
		return no_topology(ini, why, why_len);
	info = calloc(1, sizeof(*info));
	if (!info)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	if (in_memory)
		err = topo_parse_line(info, e->value, strlen(e->value), problem, sizeof(problem));
	else
		err = read_named_topology(info, ini->file, e->value, problem, sizeof(problem));
	if (err) {
		nb_why(why, why_len, err, "%s:%u: topology: %s", ini->file, e->line, problem);
	} else {
		err = from_topology(m, info, ini, e->value, why, why_len);
		topo_info_free(info);
	}
	free(info);
	return err;
}

static int read_ini(struct sim_ini *ini, const char *path, char *why, size_t why_len)
{
	char *text;
	size_t len;
	int err = sim_file_read(&text, &len, path, SIM_INI_MAX_BYTES, why, why_len);

	if (err)
		return err;
	err = sim_ini_parse(ini, path, text, len, why, why_len);
	free(text);
	return err;
}

static int from_ini_file(struct sim_model *m, const char *path, char *why, size_t why_len)
{
	struct sim_ini ini;
	int err = read_ini(&ini, path, why, why_len);

	if (err)
		return err;
	err = from_ini(m, &ini, false, why, why_len);
	sim_ini_free(&ini);
	return err;
}

/* ---- topology sources ---- */

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

/* Length of the path without the extensions of its last component: all those of a compressed tar,
 * else the last. */
static size_t stem_length(const char *path)
{
	static const char *const tars[] = {".tar", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"};
	const char *slash = strrchr(path, '/'), *dot;

	for (size_t i = 0; i < sizeof(tars) / sizeof(tars[0]); i++)
		if (ends_with(path, tars[i]))
			return strlen(path) - strlen(tars[i]);
	dot = strrchr(slash ? slash + 1 : path, '.');
	return dot && dot != path && dot[-1] != '/' ? (size_t)(dot - path) : strlen(path);
}

/* FILE.ini or STEM.ini beside a topology file, owned by the caller; NULL when there is none. */
static char *sibling(const char *path)
{
	size_t whole = strlen(path);
	char *ini;

	while (whole > 1 && path[whole - 1] == '/')
		whole--;
	for (int stem = 0; stem < 2; stem++) {
		const size_t n = stem ? stem_length(path) : whole;

		if (asprintf(&ini, "%.*s.ini", (int)n, path) < 0)
			return NULL;
		if (exists(ini))
			return ini;
		free(ini);
	}
	return NULL;
}

/* The machine file beside a topology may leave `topology` out; it may not name another one. */
static int check_sibling(const struct sim_ini *ini, const char *source, char *why, size_t why_len)
{
	const struct sim_ini_entry *e = topology_entry(ini);
	char *path = e ? beside(ini->file, e->value) : NULL;
	const bool other = e && (!path || strcmp(path, source));

	free(path);
	if (other)
		return nb_why(why, why_len, -EINVAL,
			"%s:%u: topology = %.64s, but this file was read because it lies beside %s",
			ini->file, e->line, e->value, source);
	return 0;
}

static int topology_and_ini(struct sim_model *m, struct topo_info *info, const char *source,
	const char *path, char *why, size_t why_len)
{
	struct sim_ini ini;
	int err = read_ini(&ini, path, why, why_len);

	if (err)
		return err;
	err = check_sibling(&ini, source, why, why_len);
	if (!err)
		err = from_topology(m, info, &ini, source, why, why_len);
	sim_ini_free(&ini);
	return err;
}

/* Without a file there is none to name in a message: name the source. */
static int topology_alone(
	struct sim_model *m, struct topo_info *info, const char *source, char *why, size_t why_len)
{
	char problem[SIM_TEXT] = "";
	const int err = from_topology(m, info, NULL, source, problem, sizeof(problem));

	return err ? nb_why(why, why_len, err, "%.200s: %s", source, problem) : 0;
}

static int from_source(struct sim_model *m, const char *source, char *why, size_t why_len)
{
	struct topo_info *info = calloc(1, sizeof(*info));
	char *ini;
	int err = info ? topo_read(info, source, why, why_len) : -ENOMEM;

	if (err) {
		free(info);
		return info ? err : nb_why(why, why_len, err, "out of memory");
	}
	ini = exists(source) ? sibling(source) : NULL;
	if (ini)
		err = topology_and_ini(m, info, source, ini, why, why_len);
	else
		err = topology_alone(m, info, source, why, why_len);
	free(ini);
	topo_info_free(info);
	free(info);
	return err;
}

static int from_preset(struct sim_model *m, const char *name, char *why, size_t why_len)
{
	char *path;
	int err = sim_find_preset(&path, "machines", "machine", name, why, why_len);

	if (err)
		return err;
	err = from_ini_file(m, path, why, why_len);
	free(path);
	return err;
}

/* ---- public ---- */

int sim_model_load(struct sim_model *m, const char *source, char *why, size_t why_len)
{
	int err;

	*m = (struct sim_model){0};
	if (!source[0])
		return nb_why(why, why_len, -EINVAL, "an empty name, expected a machine");
	if (ends_with(source, ".ini"))
		return from_ini_file(m, source, why, why_len);
	if (!strcmp(source, "host") || !sim_is_preset_name(source))
		return from_source(m, source, why, why_len);
	err = from_preset(m, source, why, why_len);
	if (err == -ENOENT && exists(source))
		err = from_source(m, source, why, why_len);
	return err;
}

int sim_model_parse(struct sim_model *m, const char *file, const char *text, size_t len, char *why,
	size_t why_len)
{
	struct sim_ini ini;
	int err;

	*m = (struct sim_model){0};
	err = sim_ini_parse(&ini, file, text, len, why, why_len);
	if (err)
		return err;
	err = from_ini(m, &ini, true, why, why_len);
	sim_ini_free(&ini);
	return err;
}

void sim_model_free(struct sim_model *m)
{
	topo_free(&m->topo);
	free(m->node_bandwidth);
	free(m->latency_ns);
	free(m->links);
	free(m->route);
	free(m->cpu_core);
	*m = (struct sim_model){0};
}

int sim_list_machines(struct sim_listing **list, size_t *nr)
{
	return sim_list_presets(list, nr, "machines", "machine");
}

/* ---- check ---- */

static bool positive(const double *values, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!(values[i] > 0) || !isfinite(values[i]))
			return false;
	return true;
}

static const char *check_links(const struct sim_model *m)
{
	const size_t nr = m->topo.nr_nodes;

	for (unsigned int i = 0; i < m->nr_links; i++)
		if (!positive(&m->links[i].bandwidth, 1))
			return "a link's bandwidth is not positive";
	for (size_t i = 0; i < nr * nr; i++) {
		if (m->route[i].nr > SIM_MAX_ROUTE)
			return "a route has too many links";
		for (unsigned int l = 0; l < m->route[i].nr; l++)
			if (m->route[i].link[l] >= m->nr_links)
				return "a route uses a link that is not there";
	}
	return NULL;
}

static const char *check_params(const struct sim_model *m)
{
	for (size_t i = 0; i < sim_nr_params; i++) {
		const struct sim_param *p = &sim_params[i];
		const double factor = sim_param_factor(p);
		double value;

		memcpy(&value, (const char *)m + p->offset, sizeof(value));
		if (!(value >= p->min * factor && value <= p->max * factor))
			return "a parameter is out of its range";
	}
	return NULL;
}

static const char *check_cores(const struct sim_model *m)
{
	for (unsigned int c = 0; c < m->topo.cpu_ids; c++)
		if ((m->cpu_core[c] < 0) != (m->topo.cpu_node[c] == NB_NO_NODE))
			return "a CPU has no core, or a core without a CPU";
	return NULL;
}

const char *sim_model_check(const struct sim_model *m)
{
	const size_t nr = m->topo.nr_nodes;
	const char *wrong = nb_topology_check(&m->topo);

	if (!wrong && !positive(m->node_bandwidth, nr))
		wrong = "a node's bandwidth is not positive";
	if (!wrong && !positive(m->latency_ns, nr * nr))
		wrong = "a latency is not positive";
	if (!wrong)
		wrong = check_params(m);
	if (!wrong)
		wrong = check_links(m);
	if (!wrong)
		wrong = check_cores(m);
	if (!wrong && m->reserved + m->watermark_high >= 1)
		wrong = "reserved_ratio and watermark_high_ratio leave no memory";
	if (!wrong && m->timer_tick * m->hz >= 0.5e9)
		wrong = "tick_ns takes half of a tick or more (hz)";
	if (!wrong && m->steal_rate * m->steal_time >= 0.5e9)
		wrong = "steal_per_s times steal_ms takes half of a CPU or more";
	return wrong;
}
