/* SPDX-License-Identifier: MIT */
/* What a machine has one of per node, per pair of nodes or per CPU: bandwidth, latency, links,
 * cores. */
#include "model_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"

#define MIB 0x1p20

static const struct sim_param *param(const char *field)
{
	size_t i = 0;

	while (strcmp(sim_params[i].field, field))
		i++;
	return &sim_params[i];
}

static int no_memory(const struct sim_machine_file *file)
{
	return sim_refuse(file, 0, -ENOMEM, "out of memory");
}

int sim_node_of(const struct sim_model *m, const struct sim_machine_file *file, uint32_t line,
	const char *id)
{
	int64_t number;
	int index = NB_NO_NODE;

	if (nb_parse_i64(id, &number) || number < 0)
		return sim_refuse(file, line, -EINVAL, "'%.32s': expected a node id", id);
	if (number < NB_MAX_NODES)
		index = nb_topology_index(&m->topo, (int)number);
	if (index == NB_NO_NODE)
		return sim_refuse(file, line, -EINVAL, "no node %.32s in this topology", id);
	return index;
}

/* ---- nodes ---- */

static void default_node(struct sim_model *m, unsigned int n)
{
	const struct nb_node *node = &m->topo.nodes[n];

	m->node_bandwidth[n] =
		node->bandwidth_mib_s ? node->bandwidth_mib_s * MIB : m->mem_bandwidth;
}

static int set_size(struct sim_model *m, const struct sim_machine_file *file,
	const struct sim_ini_entry *e, int n)
{
	uint64_t bytes;

	if (nb_parse_bytes(e->value, &bytes) || bytes > UINT64_C(1) << 52)
		return sim_refuse(file, e->line, -EINVAL,
			"size = %.32s: expected bytes up to 4096T, as 64G", e->value);
	m->topo.nodes[n].mem_bytes = bytes;
	m->topo.nodes[n].free_bytes = bytes;
	return 0;
}

static int set_bandwidth(struct sim_model *m, const struct sim_machine_file *file,
	const struct sim_ini_entry *e, int n)
{
	const struct sim_param *p = param("mem_bandwidth");
	double value;
	const int err = sim_number(file, e, "MiB/s", p->min, p->max, &value);

	if (!err)
		m->node_bandwidth[n] = value * MIB;
	return err;
}

static int set_node_latency(struct sim_model *m, const struct sim_machine_file *file,
	const struct sim_ini_entry *e, int n)
{
	const struct sim_param *p = param("local_latency");
	double value;
	const int err = sim_number(file, e, "ns", p->min, p->max, &value);

	if (err)
		return err;
	if (value != floor(value)) /* struct nb_node has whole ones, as HMAT does; [latency] takes
				      fractions */
		return sim_refuse(
			file, e->line, -EINVAL, "latency_ns = %s: expected whole ns", e->value);
	m->topo.nodes[n].latency_ns = (uint32_t)value;
	return 0;
}

static int set_node(struct sim_model *m, const struct sim_machine_file *file,
	const struct sim_ini_section *s, const char *id)
{
	const struct sim_ini_entry *size = sim_ini_entry(s, "size");
	const struct sim_ini_entry *bandwidth = sim_ini_entry(s, "bandwidth_mib_s");
	const struct sim_ini_entry *latency = sim_ini_entry(s, "latency_ns");
	const int n = sim_node_of(m, file, s->line, id);
	int err = n < 0 ? n : 0;

	if (!err && size)
		err = set_size(m, file, size, n);
	if (!err && bandwidth)
		err = set_bandwidth(m, file, bandwidth, n);
	if (!err && latency)
		err = set_node_latency(m, file, latency, n);
	return err;
}

int sim_model_nodes(struct sim_model *m, const struct sim_machine_file *file)
{
	int err = 0;

	m->node_bandwidth = calloc(m->topo.nr_nodes, sizeof(*m->node_bandwidth));
	if (!m->node_bandwidth)
		return no_memory(file);
	for (unsigned int n = 0; n < m->topo.nr_nodes; n++)
		default_node(m, n);
	for (uint32_t i = 0; file->ini && i < file->ini->nr_sections && !err; i++) {
		const struct sim_ini_section *s = &file->ini->sections[i];
		const char *id = sim_section_arg(s->name, "node");

		if (id)
			err = set_node(m, file, s, id);
	}
	return err;
}

/* ---- latency ---- */

/* The smallest distance at which CPUs see the node's memory; that to itself where no CPU does. */
static unsigned int nearest_cpu_distance(const struct nb_topology *t, unsigned int to)
{
	unsigned int best = NB_DISTANCE_UNREACHABLE;

	for (unsigned int from = 0; from < t->nr_nodes; from++)
		if (t->nodes[from].nr_cpus && nb_distance(t, from, to) < best)
			best = nb_distance(t, from, to);
	return best == NB_DISTANCE_UNREACHABLE ? nb_distance(t, to, to) : best;
}

/*
 * The distance that stands for the cost, or 0 where nothing says what it costs: 255 means that
 * nothing is known. Where no program's access can go that way (no CPUs or no memory there) the
 * other direction stands in.
 */
static unsigned int cost_distance(const struct nb_topology *t, unsigned int from, unsigned int to)
{
	const unsigned int d = nb_distance(t, from, to);

	if (d != NB_DISTANCE_UNREACHABLE)
		return d;
	if (t->nodes[from].nr_cpus && t->nodes[to].mem_bytes)
		return 0;
	return nb_distance(t, to, from);
}

/* A node's own latency holds at the distance of its nearest CPUs and grows in proportion. */
static void default_latency_to(struct sim_model *m, unsigned int to)
{
	const struct nb_topology *t = &m->topo;
	const double said = t->nodes[to].latency_ns;
	const double nearest = said > 0 ? nearest_cpu_distance(t, to) : NB_DISTANCE_LOCAL;
	const double local = said > 0 ? said : m->local_latency;

	for (unsigned int from = 0; from < t->nr_nodes; from++)
		m->latency_ns[(size_t)from * t->nr_nodes + to] =
			local * cost_distance(t, from, to) / nearest;
}

/* A row: one number per node in ascending order of id, or "-" to leave the default. */
static int set_latency(struct sim_model *m, const struct sim_machine_file *file, const char *word,
	const struct sim_ini_entry *row, size_t slot)
{
	const struct sim_param *p = param("local_latency");
	struct sim_ini_entry e = {.line = row->line};
	char key[64], value[64];

	if (!strcmp(word, "-"))
		return 0;
	snprintf(key, sizeof(key), "latency from %.16s", row->key);
	snprintf(value, sizeof(value), "%s", word);
	e.key = key;
	e.value = value;
	return sim_number(file, &e, "ns", p->min, p->max, &m->latency_ns[slot]);
}

static int set_latency_row(
	struct sim_model *m, const struct sim_machine_file *file, const struct sim_ini_entry *row)
{
	const unsigned int nr = m->topo.nr_nodes;
	const int from = sim_node_of(m, file, row->line, row->key);
	char *copy = strdup(row->value), *rest = NULL;
	unsigned int to = 0;
	int err = from < 0 ? from : !copy ? no_memory(file) : 0;

	for (char *w = copy ? strtok_r(copy, " \t", &rest) : NULL; w && !err;
		w = strtok_r(NULL, " \t", &rest), to++)
		if (to < nr)
			err = set_latency(m, file, w, row, (size_t)from * nr + to);
	if (!err && to != nr)
		err = sim_refuse(file, row->line, -EINVAL, "%u latencies from node %s, expected %u",
			to, row->key, nr);
	free(copy);
	return err;
}

static int check_row_again(
	const struct sim_machine_file *file, const struct sim_ini_section *s, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (!strcmp(s->entries[j].key, s->entries[i].key))
			return sim_refuse(file, s->entries[i].line, -EINVAL,
				"'%s' again in [latency]", s->entries[i].key);
	return 0;
}

/* No default would be honest where CPUs reach memory at distance 255. */
static int check_reach(const struct sim_model *m, const struct sim_machine_file *file)
{
	const struct nb_node *nodes = m->topo.nodes;
	const size_t nr = m->topo.nr_nodes;

	for (size_t slot = 0; slot < nr * nr; slot++)
		if (!(m->latency_ns[slot] > 0))
			return sim_refuse(file, 1, -EINVAL,
				"node %d to node %d: distance 255 says nothing, expected [latency] "
				"to "
				"have a row for node %d",
				nodes[slot / nr].id, nodes[slot % nr].id, nodes[slot / nr].id);
	return 0;
}

int sim_model_latency(struct sim_model *m, const struct sim_machine_file *file)
{
	const struct sim_ini_section *s = file->ini ? sim_ini_section(file->ini, "latency") : NULL;
	const size_t nr = m->topo.nr_nodes;
	int err = 0;

	m->latency_ns = calloc(nr * nr, sizeof(*m->latency_ns));
	if (!m->latency_ns)
		return no_memory(file);
	for (unsigned int to = 0; to < nr; to++)
		default_latency_to(m, to);
	for (uint32_t i = 0; s && i < s->nr_entries && !err; i++) {
		err = check_row_again(file, s, i);
		if (!err)
			err = set_latency_row(m, file, &s->entries[i]);
	}
	return err ? err : check_reach(m, file);
}

/* ---- links ---- */

struct node_set {
	bool has[NB_MAX_NODES]; /* by index */
};

static int add_range(struct node_set *set, const struct sim_model *m,
	const struct sim_machine_file *file, uint32_t line, char *text)
{
	char *dash = strchr(text, '-');
	int first, last;

	if (dash)
		*dash = '\0';
	first = sim_node_of(m, file, line, text);
	last = dash && first >= 0 ? sim_node_of(m, file, line, dash + 1) : first;
	if (first < 0 || last < 0)
		return first < 0 ? first : last;
	if (last < first)
		return sim_refuse(
			file, line, -EINVAL, "range %s-%s runs backwards", text, dash + 1);
	for (int i = first; i <= last; i++)
		set->has[i] = true;
	return 0;
}

/* "0-3,8": ids and ranges of ids; a range is the nodes there are from one to the other. Cuts up
 * `text`. */
static int parse_node_set(struct node_set *set, const struct sim_model *m,
	const struct sim_machine_file *file, uint32_t line, char *text)
{
	char *rest = NULL;
	int err = 0, nr = 0;

	*set = (struct node_set){0};
	for (char *w = strtok_r(text, ", \t", &rest); w && !err;
		w = strtok_r(NULL, ", \t", &rest)) {
		err = add_range(set, m, file, line, w);
		nr++;
	}
	if (!err && !nr)
		err = sim_refuse(file, line, -EINVAL, "expected nodes on both sides, as 0-3 : 4-7");
	return err;
}

/* Room for twice as many, once that many are there: a machine of 255 nodes has 64,770 links. */
static int make_room_for_link(struct sim_model *m)
{
	const size_t nr = m->nr_links;
	struct sim_link *links;

	if ((nr & (nr - 1)) != 0)
		return 0;
	links = realloc(m->links, (nr ? 2 * nr : 1) * sizeof(*links));
	if (!links)
		return -ENOMEM;
	m->links = links;
	return 0;
}

static int add_link(struct sim_model *m, const char *name, const char *direction, double bandwidth)
{
	struct sim_link *links;

	if (make_room_for_link(m))
		return -ENOMEM;
	links = m->links;
	links[m->nr_links].bandwidth = bandwidth;
	snprintf(links[m->nr_links].name, SIM_NAME, "%.48s%s", name, direction);
	m->nr_links++;
	return 0;
}

static int add_to_route(struct sim_model *m, const struct sim_machine_file *file, uint32_t line,
	size_t from, size_t to, unsigned int link)
{
	struct sim_route *r = &m->route[from * m->topo.nr_nodes + to];

	if (r->nr >= SIM_MAX_ROUTE)
		return sim_refuse(file, line, -EINVAL, "more than %d links between nodes %d and %d",
			SIM_MAX_ROUTE, m->topo.nodes[from].id, m->topo.nodes[to].id);
	r->link[r->nr++] = (uint16_t)link;
	return 0;
}

/* Every pair across uses the two new links, one each way. */
static int connect(struct sim_model *m, const struct sim_machine_file *file, uint32_t line,
	const struct node_set *a, const struct node_set *b)
{
	const unsigned int nr = m->topo.nr_nodes, back = m->nr_links - 1, there = back - 1;
	int err = 0;

	for (unsigned int i = 0; i < nr && !err; i++) {
		if (a->has[i] && b->has[i])
			err = sim_refuse(file, line, -EINVAL, "node %d is on both sides",
				m->topo.nodes[i].id);
		for (unsigned int j = 0; a->has[i] && j < nr && !err; j++) {
			if (!b->has[j])
				continue;
			err = add_to_route(m, file, line, i, j, there);
			if (!err)
				err = add_to_route(m, file, line, j, i, back);
		}
	}
	return err;
}

static int parse_between(struct node_set *a, struct node_set *b, const struct sim_model *m,
	const struct sim_machine_file *file, const struct sim_ini_entry *e)
{
	char *copy = strdup(e->value), *colon;
	int err;

	if (!copy)
		return no_memory(file);
	colon = strchr(copy, ':');
	if (!colon) {
		free(copy);
		return sim_refuse(file, e->line, -EINVAL,
			"between = %.64s: expected nodes on both sides, as 0-3 : 4-7", e->value);
	}
	*colon = '\0';
	err = parse_node_set(a, m, file, e->line, copy);
	if (!err)
		err = parse_node_set(b, m, file, e->line, colon + 1);
	free(copy);
	return err;
}

static int named_link(struct sim_model *m, const struct sim_machine_file *file,
	const struct sim_ini_section *s, const char *name)
{
	const struct sim_param *p = param("mem_bandwidth");
	const struct sim_ini_entry *between = sim_ini_entry(s, "between");
	const struct sim_ini_entry *bandwidth = sim_ini_entry(s, "bandwidth_mib_s");
	struct node_set a, b;
	double value = 0;
	int err;

	if (!between || !bandwidth)
		return sim_refuse(file, s->line, -EINVAL, "[%s] lacks %s", s->name,
			between ? "bandwidth_mib_s" : "between");
	err = sim_number(file, bandwidth, "MiB/s", p->min, p->max, &value);
	if (!err)
		err = parse_between(&a, &b, m, file, between);
	if (err)
		return err;
	if (add_link(m, name, ">", value * MIB) || add_link(m, name, "<", value * MIB))
		return no_memory(file);
	return connect(m, file, s->line, &a, &b);
}

/* A link of its own for each ordered pair that has none yet. */
static int pair_links(struct sim_model *m, const struct sim_machine_file *file)
{
	const size_t nr = m->topo.nr_nodes;
	char name[SIM_NAME];

	if (nr * nr > UINT16_MAX)
		return sim_refuse(file, 1, -EINVAL,
			"link_bandwidth_mib_s with %zu nodes: expected at most 255, one link per "
			"pair",
			nr);
	for (size_t slot = 0; slot < nr * nr; slot++) {
		struct sim_route *r = &m->route[slot];

		if (r->nr || slot / nr == slot % nr)
			continue;
		snprintf(name, sizeof(name), "%d>%d", m->topo.nodes[slot / nr].id,
			m->topo.nodes[slot % nr].id);
		r->link[r->nr++] = (uint16_t)m->nr_links;
		if (add_link(m, name, "", m->link_bandwidth))
			return no_memory(file);
	}
	return 0;
}

int sim_model_links(struct sim_model *m, const struct sim_machine_file *file)
{
	const size_t nr = m->topo.nr_nodes;
	int err = 0;

	m->route = calloc(nr * nr, sizeof(*m->route));
	if (!m->route)
		return no_memory(file);
	for (uint32_t i = 0; file->ini && i < file->ini->nr_sections && !err; i++) {
		const struct sim_ini_section *s = &file->ini->sections[i];
		const char *name = sim_section_arg(s->name, "link");

		if (name)
			err = named_link(m, file, s, name);
	}
	if (!err && m->link_bandwidth > 0)
		err = pair_links(m, file);
	return err;
}

/* ---- cores ---- */

static unsigned int cores_of(const struct sim_model *m, unsigned int node)
{
	const unsigned int threads = (unsigned int)m->threads_per_core;

	return (m->topo.nodes[node].nr_cpus + threads - 1) / threads;
}

/* first[n]: the number of node n's first core. */
static void number_cores(struct sim_model *m, unsigned int *first, unsigned int *seen)
{
	unsigned int cores = 0;

	for (unsigned int n = 0; n < m->topo.nr_nodes; n++) {
		first[n] = cores;
		cores += cores_of(m, n);
	}
	for (unsigned int c = 0; c < m->topo.cpu_ids; c++) {
		const int n = m->topo.cpu_node[c];

		m->cpu_core[c] = -1;
		if (n != NB_NO_NODE)
			m->cpu_core[c] =
				(int32_t)(first[n] + seen[n]++ % cores_of(m, (unsigned int)n));
	}
}

int sim_model_cores(struct sim_model *m, const struct sim_machine_file *file)
{
	unsigned int *scratch = calloc((size_t)m->topo.nr_nodes * 2, sizeof(*scratch));

	m->cpu_core = calloc(m->topo.cpu_ids ? m->topo.cpu_ids : 1, sizeof(*m->cpu_core));
	if (!scratch || !m->cpu_core) {
		free(scratch);
		return no_memory(file);
	}
	number_cores(m, scratch, scratch + m->topo.nr_nodes);
	free(scratch);
	return 0;
}
