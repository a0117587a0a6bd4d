/* SPDX-License-Identifier: MIT */
/* See plan.h. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "../engine/why.h"

enum {
	LEAST_REMOTE =
		NB_DISTANCE_LOCAL + 1, /* the kernel drops a table with less between two nodes */
	MOST_DISTANCE = 254,
	MOST_LATENCY_NS = 65000,  /* QEMU keeps sixteen bits of a common unit */
	BANDWIDTH_GRAIN_MIB = 64, /* likewise: up to 4 TiB/s */
};

__attribute__((format(printf, 2, 3))) static void note(struct lab_plan *p, const char *format, ...)
{
	va_list args;

	if (p->nr_notes == LAB_MAX_NOTES)
		return;
	va_start(args, format);
	vsnprintf(p->notes[p->nr_notes++], LAB_NOTE_LEN, format, args);
	va_end(args);
}

/* ---- ids ---- */

/* The lowest CPU of a node; INT_MAX where it has none, so that such nodes come last. */
static int lowest_cpu(const struct nb_topology *t, unsigned int index)
{
	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++)
		if (t->cpu_node[cpu] == (int)index)
			return (int)cpu;
	return INT_MAX;
}

static bool is_there(const struct nb_node *node)
{
	return node->nr_cpus || node->mem_bytes;
}

/* Nodes that the kernel meets before this one. */
static int nodes_before(const struct nb_topology *t, unsigned int index)
{
	const int cpu = lowest_cpu(t, index);
	int nr = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const int other = lowest_cpu(t, i);

		if (i != index && is_there(&t->nodes[i]) &&
			(other < cpu || (other == cpu && i < index)))
			nr++;
	}
	return nr;
}

static void note_numbers(struct lab_plan *p, const struct nb_topology *t)
{
	char text[LAB_NOTE_LEN] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		if (p->guest[i] != t->nodes[i].id && len + 16 < sizeof(text) / 2)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
				p->guest[i] < 0 ? " %d is left out" : " %d is %d", t->nodes[i].id,
				p->guest[i]);
	if (len)
		note(p, "the kernel's numbers of nodes:%s", text);
}

static int plan_ids(struct lab_plan *p, const struct nb_topology *t, char *why, size_t len)
{
	if (t->nr_nodes > LAB_MAX_NODES)
		return nb_why(why, len, -EINVAL, "%u nodes: the lab emulates at most %d",
			t->nr_nodes, LAB_MAX_NODES);
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		p->guest[i] = is_there(&t->nodes[i]) ? nodes_before(t, i) : -1;
		if (p->guest[i] < 0)
			continue;
		p->nodes[p->guest[i]].source_id = t->nodes[i].id;
		p->nr_nodes++;
	}
	note_numbers(p, t);
	return 0;
}

/* ---- CPUs ---- */

static unsigned int nodes_with_cpus(const struct nb_topology *t)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		nr += t->nodes[i].nr_cpus > 0;
	return nr;
}

static unsigned int cpu_limit(const struct nb_topology *t, const struct lab_options *opt)
{
	const unsigned int nr = nodes_with_cpus(t);

	if (opt->cpus)
		return opt->cpus;
	if (t->nr_cpus <= LAB_CPUS || !nr)
		return LAB_MAX_CPUS;
	return LAB_CPUS / nr ? LAB_CPUS / nr : 1;
}

/* As numbered in the machine, where it keeps all of them and their numbers have no holes. */
static void keep_cpu_numbers(struct lab_plan *p, const struct nb_topology *t)
{
	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++)
		p->cpu_node[cpu] = (uint8_t)p->guest[t->cpu_node[cpu]];
}

static void number_cpus_by_node(struct lab_plan *p)
{
	unsigned int cpu = 0;

	for (unsigned int id = 0; id < p->nr_nodes; id++)
		for (unsigned int i = 0; i < p->nodes[id].nr_cpus; i++)
			p->cpu_node[cpu++] = (uint8_t)id;
}

static unsigned int common_divisor(unsigned int a, unsigned int b)
{
	return b ? common_divisor(b, a % b) : a;
}

static unsigned int cores_of_socket(const struct lab_plan *p)
{
	unsigned int cores = 0;

	for (unsigned int id = 0; id < p->nr_nodes; id++)
		cores = common_divisor(cores, p->nodes[id].nr_cpus);
	for (unsigned int cpu = 0; cpu < p->nr_cpus; cpu++)
		if (p->cpu_node[cpu] != p->cpu_node[cpu - cpu % cores])
			return 1;
	return cores;
}

static int plan_cpus(struct lab_plan *p, const struct nb_topology *t, const struct lab_options *opt,
	char *why, size_t len)
{
	const unsigned int limit = cpu_limit(t, opt);

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const unsigned int nr = t->nodes[i].nr_cpus < limit ? t->nodes[i].nr_cpus : limit;

		if (nr)
			p->nodes[p->guest[i]].nr_cpus = nr;
		p->nr_cpus += nr;
	}
	if (!p->nr_cpus)
		return nb_why(why, len, -EINVAL, "no node has CPUs");
	if (p->nr_cpus > LAB_MAX_CPUS)
		return nb_why(why, len, -EINVAL,
			"%u CPUs: the lab emulates at most %d; fewer with --cpus", p->nr_cpus,
			LAB_MAX_CPUS);
	if (p->nr_cpus == t->cpu_ids)
		keep_cpu_numbers(p, t);
	else
		number_cpus_by_node(p);
	p->cores = cores_of_socket(p);
	if (p->nr_cpus < t->nr_cpus)
		note(p, "%u of %u CPUs, at most %u a node", p->nr_cpus, t->nr_cpus, limit);
	return 0;
}

/* ---- memory ---- */

static double total_mib(const struct nb_topology *t)
{
	double mib = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		mib += (double)t->nodes[i].mem_bytes / (1 << 20);
	return mib;
}

static uint64_t scaled_mib(uint64_t bytes, double factor)
{
	const double mib = (double)bytes / (1 << 20) * factor;
	/* A machine that fits keeps its sizes, to what QEMU can: pieces of 8 MiB. */
	const double grain = factor < 1 || factor > 1 ? LAB_GRAIN_MIB : 8;
	const double pieces = floor(mib / grain + 1e-9);

	if (!bytes)
		return 0;
	return (uint64_t)(grain * (pieces < 1 ? 1 : pieces));
}

static int plan_memory(struct lab_plan *p, const struct nb_topology *t,
	const struct lab_options *opt, char *why, size_t len)
{
	const double total = total_mib(t);
	const double factor = opt->scale_mem > 0       ? opt->scale_mem
			      : total > LAB_MEMORY_MIB ? LAB_MEMORY_MIB / total
						       : 1;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		const uint64_t mib = scaled_mib(t->nodes[i].mem_bytes, factor);

		if (mib)
			p->nodes[p->guest[i]].mem_mib = mib;
		p->mem_mib += mib;
	}
	if (p->mem_mib < LAB_LEAST_MIB)
		return nb_why(why, len, -EINVAL,
			"%" PRIu64 " MiB of memory in all: the lab needs at least %d MiB",
			p->mem_mib, LAB_LEAST_MIB);
	if (factor < 1 || factor > 1)
		note(p, "memory times %.4g: %" PRIu64 " of %.0f MiB", factor, p->mem_mib, total);
	return 0;
}

/* ---- between nodes ---- */

static uint8_t plan_distance(struct lab_plan *p, unsigned int distance)
{
	if (distance >= LEAST_REMOTE && distance <= MOST_DISTANCE)
		return (uint8_t)distance;
	note(p, "a distance of %u between two nodes: the kernel takes %d to %d", distance,
		LEAST_REMOTE, MOST_DISTANCE);
	return distance < LEAST_REMOTE ? LEAST_REMOTE : MOST_DISTANCE;
}

/* Index in the topology of the node with this id in the guest. */
static unsigned int index_of(const struct lab_plan *p, unsigned int id)
{
	unsigned int i = 0;

	while (p->guest[i] != (int)id)
		i++;
	return i;
}

static void plan_distances(struct lab_plan *p, const struct nb_topology *t)
{
	for (unsigned int from = 0; from < p->nr_nodes; from++)
		for (unsigned int to = 0; to < p->nr_nodes; to++)
			p->distance[from][to] =
				from == to ? NB_DISTANCE_LOCAL
					   : plan_distance(p, nb_distance(t, index_of(p, from),
								      index_of(p, to)));
}

static unsigned int nearest_with_cpus(const struct lab_plan *p, unsigned int id)
{
	unsigned int best = id;

	for (unsigned int from = 0; from < p->nr_nodes; from++)
		if (p->nodes[from].nr_cpus &&
			(best == id || p->distance[from][id] < p->distance[best][id]) && from != id)
			best = from;
	return p->nodes[id].nr_cpus ? id : best;
}

static bool has_memory_without_cpus(const struct lab_plan *p)
{
	for (unsigned int id = 0; id < p->nr_nodes; id++)
		if (p->nodes[id].mem_mib && !p->nodes[id].nr_cpus)
			return true;
	return false;
}

static double route_bandwidth(const struct sim_model *m, unsigned int from, unsigned int to)
{
	const struct sim_route *route = &m->route[(size_t)from * m->topo.nr_nodes + to];
	double least = m->node_bandwidth[to];

	for (unsigned int i = 0; i < route->nr; i++)
		if (m->links[route->link[i]].bandwidth < least)
			least = m->links[route->link[i]].bandwidth;
	return least;
}

static uint32_t grained_bandwidth(double bytes_per_s)
{
	const double grains = floor(bytes_per_s / ((double)BANDWIDTH_GRAIN_MIB * (1 << 20)));
	const double most = 65000;

	return (uint32_t)(grains < 1 ? 1 : grains > most ? most : grains) * BANDWIDTH_GRAIN_MIB;
}

static uint32_t whole_latency(double ns)
{
	return (uint32_t)(ns < 1 ? 1 : ns > MOST_LATENCY_NS ? MOST_LATENCY_NS : ns + 0.5);
}

/*
 * The kernel makes tiers of what it is told. Where a machine has a slower tier that costs no more
 * (this lab's own machines: the emulator knows no distance), tell what the distance says.
 */
static double told_latency(const struct sim_model *m, unsigned int from, unsigned int to)
{
	const unsigned int nr = m->topo.nr_nodes;
	const double own = m->latency_ns[(size_t)from * nr + from],
		     said = m->latency_ns[(size_t)from * nr + to];

	if (m->topo.nodes[to].tier <= m->topo.nodes[from].tier || said > own)
		return said;
	return own * nb_distance(&m->topo, from, to) / NB_DISTANCE_LOCAL;
}

static void plan_attributes(struct lab_plan *p, const struct sim_model *m)
{
	for (unsigned int from = 0; from < p->nr_nodes; from++) {
		for (unsigned int to = 0; to < p->nr_nodes; to++) {
			const unsigned int i = index_of(p, from), j = index_of(p, to);

			p->latency_ns[from][to] = whole_latency(told_latency(m, i, j));
			p->bandwidth_mib_s[from][to] = grained_bandwidth(route_bandwidth(m, i, j));
		}
	}
}

int lab_plan_make(struct lab_plan *p, const struct sim_model *m, const struct lab_options *opt,
	char *why, size_t why_len)
{
	const struct nb_topology *t = &m->topo;
	int err;

	*p = (struct lab_plan){0};
	err = plan_ids(p, t, why, why_len);
	if (!err)
		err = plan_cpus(p, t, opt, why, why_len);
	if (!err)
		err = plan_memory(p, t, opt, why, why_len);
	if (err)
		return err;
	plan_distances(p, t);
	for (unsigned int id = 0; id < p->nr_nodes; id++)
		p->nodes[id].initiator = nearest_with_cpus(p, id);
	p->hmat = opt->hmat || has_memory_without_cpus(p);
	if (p->hmat)
		plan_attributes(p, m);
	return 0;
}

/* ---- QEMU's words ---- */

static void print_cpus(const struct lab_plan *p, unsigned int id, FILE *out)
{
	for (unsigned int cpu = 0; cpu < p->nr_cpus; cpu++) {
		unsigned int last = cpu;

		if (p->cpu_node[cpu] != id)
			continue;
		while (last + 1 < p->nr_cpus && p->cpu_node[last + 1] == id)
			last++;
		fprintf(out, ",cpus=%u-%u", cpu, last);
		cpu = last;
	}
}

static void print_node(const struct lab_plan *p, unsigned int id, FILE *out)
{
	const struct lab_node *node = &p->nodes[id];

	fprintf(out, "-numa\nnode,nodeid=%u", id);
	print_cpus(p, id, out);
	if (node->mem_mib)
		fprintf(out, ",memdev=m%u", id);
	if (p->hmat && node->mem_mib)
		fprintf(out, ",initiator=%u", node->initiator);
	fputc('\n', out);
}

static void print_distances(const struct lab_plan *p, FILE *out)
{
	for (unsigned int i = 0; i < p->nr_nodes; i++)
		for (unsigned int j = 0; j < p->nr_nodes; j++)
			if (i != j)
				fprintf(out, "-numa\ndist,src=%u,dst=%u,val=%u\n", i, j,
					p->distance[i][j]);
}

static void print_attributes_of(
	const struct lab_plan *p, unsigned int from, unsigned int to, FILE *out)
{
	fprintf(out,
		"-numa\nhmat-lb,initiator=%u,target=%u,hierarchy=memory,data-type=access-latency,"
		"latency=%u\n",
		from, to, p->latency_ns[from][to]);
	fprintf(out,
		"-numa\nhmat-lb,initiator=%u,target=%u,hierarchy=memory,data-type=access-bandwidth,"
		"bandwidth=%uM\n",
		from, to, p->bandwidth_mib_s[from][to]);
}

static void print_attributes(const struct lab_plan *p, FILE *out)
{
	for (unsigned int from = 0; from < p->nr_nodes; from++)
		for (unsigned int to = 0; to < p->nr_nodes; to++)
			if (p->nodes[from].nr_cpus && p->nodes[to].mem_mib)
				print_attributes_of(p, from, to, out);
}

void lab_plan_print(const struct lab_plan *p, FILE *out)
{
	fprintf(out, "-machine\nq35%s\n", p->hmat ? ",hmat=on" : "");
	fprintf(out, "-smp\n%u,sockets=%u,cores=%u,threads=1\n", p->nr_cpus, p->nr_cpus / p->cores,
		p->cores);
	fprintf(out, "-m\n%" PRIu64 "M\n", p->mem_mib);
	for (unsigned int id = 0; id < p->nr_nodes; id++)
		if (p->nodes[id].mem_mib)
			fprintf(out, "-object\nmemory-backend-ram,size=%" PRIu64 "M,id=m%u\n",
				p->nodes[id].mem_mib, id);
	for (unsigned int id = 0; id < p->nr_nodes; id++)
		print_node(p, id, out);
	print_distances(p, out);
	if (p->hmat)
		print_attributes(p, out);
}
