/* SPDX-License-Identifier: MIT */
/*
 * hwloc: a topology from the XML that hwloc exports (lstopo FILE.xml), through libhwloc.
 *
 * hwloc tells for each node the CPUs it is near to; several nodes may be near to the same CPUs
 * (DRAM and HBM of one socket). The kernel has a CPU on one node only, and so have we: the node
 * that is near to the fewest CPUs; among equals the ordinary memory, then the lowest id. The others
 * are memory without CPUs, at distance 10 from it when the document gives no distances.
 */
#include "hwloc_filter.h"

#include "build.h"

#include "../engine/why.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MATRICES = 8 };

/* Kinds of memory, by what hwloc calls them, the fastest first. */
static const struct {
	const char *subtype;
	int tier;
} subtypes[] = {
	{"HBM", 0},
	{"MCDRAM", 0},
	{"DRAM", 1},
	{"CXL-DRAM", 2},
	{"NVM", 3},
	{"CXL-NVM", 4},
};

enum { TIER_DRAM = 1, TIER_UNKNOWN = -1 };

struct reader {
	struct topo_build *b;
	hwloc_topology_t t;
	unsigned int nr_nodes;
	hwloc_obj_t node[NB_MAX_NODES];	    /* by slot */
	struct topo_set cpus[NB_MAX_NODES]; /* given to each slot */
	unsigned int stray;		    /* CPUs near to no node */
	unsigned int shared;		    /* CPUs near to more than one */
};

static int subtype_tier(const struct hwloc_obj *node)
{
	for (size_t i = 0; node->subtype && i < sizeof(subtypes) / sizeof(subtypes[0]); i++)
		if (!strcmp(node->subtype, subtypes[i].subtype))
			return subtypes[i].tier;
	return TIER_UNKNOWN;
}

static int add_node(struct reader *r, hwloc_obj_t obj)
{
	int slot;

	if (obj->os_index >= NB_MAX_NODES)
		return topo_refuse(r->b, 0, "NUMANode P#%u; expected ids below %u", obj->os_index,
			NB_MAX_NODES);
	slot = topo_build_node(r->b, obj->os_index, 0);
	if (slot < 0)
		return slot;
	r->node[slot] = obj;
	r->nr_nodes++;
	if (!hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(r->t), obj->os_index))
		r->b->slot[slot].node.flags |= NB_NODE_DISALLOWED;
	return topo_build_memory(r->b, (unsigned int)slot, obj->attr->numanode.local_memory, 0);
}

static int add_nodes(struct reader *r)
{
	int n = hwloc_get_nbobjs_by_type(r->t, HWLOC_OBJ_NUMANODE);
	int err = 0;

	if (n < 1)
		return topo_refuse(r->b, 0, "0 nodes; expected at least one NUMANode");
	for (int i = 0; !err && i < n; i++)
		err = add_node(r, hwloc_get_obj_by_type(r->t, HWLOC_OBJ_NUMANODE, (unsigned int)i));
	return err;
}

/* Whether `a` has a better claim to a CPU than `b`, which is near to it too. */
static bool owns_rather(const struct hwloc_obj *a, const struct hwloc_obj *b)
{
	int wa = hwloc_bitmap_weight(a->complete_cpuset),
	    wb = hwloc_bitmap_weight(b->complete_cpuset);
	bool dram_a, dram_b;

	if (wa != wb)
		return wa < wb;
	dram_a = subtype_tier(a) == TIER_DRAM;
	dram_b = subtype_tier(b) == TIER_DRAM;
	if (dram_a != dram_b)
		return dram_a;
	return a->os_index < b->os_index;
}

static void give_cpu(struct reader *r, unsigned int cpu)
{
	int owner = -1;
	unsigned int claims = 0;

	for (unsigned int i = 0; i < r->nr_nodes; i++) {
		if (!hwloc_bitmap_isset(r->node[i]->complete_cpuset, cpu))
			continue;
		claims++;
		if (owner < 0 || owns_rather(r->node[i], r->node[owner]))
			owner = (int)i;
	}
	r->stray += !claims;
	r->shared += claims > 1;
	if (owner >= 0)
		topo_set_add(&r->cpus[owner], cpu);
}

/* All CPUs, those that are offline too: a node whose CPUs are away is not one that never had any.
 */
static int add_cpus(struct reader *r)
{
	hwloc_const_cpuset_t all = hwloc_topology_get_complete_cpuset(r->t);
	struct topo_set usable = {0};

	if (hwloc_bitmap_last(all) < 0 || hwloc_bitmap_last(all) >= NB_MAX_CPUS)
		return topo_refuse(r->b, 0, "PU P#%d; expected ids below %u",
			hwloc_bitmap_last(all), NB_MAX_CPUS);
	for (int cpu = hwloc_bitmap_first(all); cpu >= 0; cpu = hwloc_bitmap_next(all, cpu))
		give_cpu(r, (unsigned int)cpu);
	for (int cpu = hwloc_bitmap_first(all); cpu >= 0; cpu = hwloc_bitmap_next(all, cpu))
		if (hwloc_bitmap_isset(
			    hwloc_topology_get_topology_cpuset(r->t), (unsigned int)cpu) &&
			hwloc_bitmap_isset(
				hwloc_topology_get_allowed_cpuset(r->t), (unsigned int)cpu))
			topo_set_add(&usable, (unsigned int)cpu);
	for (unsigned int i = 0; i < r->nr_nodes; i++)
		topo_build_cpus(r->b, i, &r->cpus[i], &usable, 0);
	return 0;
}

static int add_matrix(struct reader *r, const struct hwloc_distances_s *d)
{
	int err = topo_build_matrix(r->b);

	for (unsigned int i = 0; !err && i < d->nbobjs; i++) {
		for (unsigned int j = 0; !err && j < d->nbobjs; j++) {
			int from = d->objs[i] ? topo_build_slot(r->b, d->objs[i]->os_index) : -1;
			int to = d->objs[j] ? topo_build_slot(r->b, d->objs[j]->os_index) : -1;

			if (from >= 0 && to >= 0)
				err = topo_build_distance(r->b, (unsigned int)from,
					(unsigned int)to, d->values[(size_t)i * d->nbobjs + j], 0);
		}
	}
	if (!err && d->nbobjs < r->nr_nodes)
		topo_note(r->b->out,
			"distances for %u of %u nodes: 10 and 20 stand in for the others",
			d->nbobjs, r->nr_nodes);
	return err;
}

/* The SLIT, as the system gave it to hwloc; else the first matrix of latencies. */
static const struct hwloc_distances_s *choose_matrix(
	struct reader *r, struct hwloc_distances_s **d, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const char *name = hwloc_distances_get_name(r->t, d[i]);

		if (name && !strcmp(name, "NUMALatency"))
			return d[i];
	}
	return n ? d[0] : NULL;
}

/* Nodes near to the same CPUs are near to each other, as nothing else is said. */
static int add_local_distances(struct reader *r)
{
	int err = topo_build_matrix(r->b);

	r->b->distances_assumed = true;
	topo_note(r->b->out, "no distances said: 10 between nodes near to the same CPUs, 20 "
			     "between others stand in");
	for (unsigned int i = 0; !err && i < r->nr_nodes; i++)
		for (unsigned int j = 0; !err && j < r->nr_nodes; j++)
			if (!hwloc_bitmap_iszero(r->node[i]->cpuset) &&
				hwloc_bitmap_isequal(r->node[i]->cpuset, r->node[j]->cpuset))
				err = topo_build_distance(r->b, i, j, NB_DISTANCE_LOCAL, 0);
	return err;
}

static int add_distances(struct reader *r)
{
	struct hwloc_distances_s *d[MAX_MATRICES];
	const struct hwloc_distances_s *chosen;
	unsigned int n = MAX_MATRICES;
	int err = 0;

	if (hwloc_distances_get_by_type(
		    r->t, HWLOC_OBJ_NUMANODE, &n, d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0))
		n = 0;
	n = n < MAX_MATRICES ? n : MAX_MATRICES;
	chosen = choose_matrix(r, d, n);
	if (chosen)
		err = add_matrix(r, chosen);
	else if (r->shared)
		err = add_local_distances(r);
	for (unsigned int i = 0; i < n; i++)
		hwloc_distances_release(r->t, d[i]);
	return err;
}

/* A node's figure as its own CPUs see it; 0 when there is none. */
static uint32_t figure(
	struct reader *r, unsigned int slot, hwloc_memattr_id_t attr, hwloc_memattr_id_t read_attr)
{
	struct hwloc_location best;
	hwloc_uint64_t value = 0;

	if (hwloc_memattr_get_best_initiator(r->t, attr, r->node[slot], 0, &best, &value) &&
		hwloc_memattr_get_best_initiator(r->t, read_attr, r->node[slot], 0, &best, &value))
		return 0;
	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void add_figures(struct reader *r)
{
	for (unsigned int i = 0; i < r->nr_nodes; i++) {
		struct nb_node *node = &r->b->slot[i].node;

		node->bandwidth_mib_s =
			figure(r, i, HWLOC_MEMATTR_ID_BANDWIDTH, HWLOC_MEMATTR_ID_READ_BANDWIDTH);
		node->latency_ns =
			figure(r, i, HWLOC_MEMATTR_ID_LATENCY, HWLOC_MEMATTR_ID_READ_LATENCY);
	}
}

/* Without figures, the kind of memory tells, where every node has one. */
static void add_subtypes(struct reader *r)
{
	for (unsigned int i = 0; i < r->nr_nodes; i++) {
		const struct nb_node *node = &r->b->slot[i].node;

		if (node->bandwidth_mib_s || node->latency_ns ||
			(node->mem_bytes && subtype_tier(r->node[i]) < 0))
			return;
	}
	for (unsigned int i = 0; i < r->nr_nodes; i++) {
		r->b->slot[i].node.tier = subtype_tier(r->node[i]);
		r->b->slot[i].has_tier = subtype_tier(r->node[i]) >= 0;
	}
	topo_note(r->b->out, "tiers from the kinds of memory that the nodes are said to be");
}

static void add_notes(struct reader *r)
{
	int caches = hwloc_get_nbobjs_by_type(r->t, HWLOC_OBJ_MEMCACHE);

	if (caches > 0)
		topo_note(r->b->out, "%d memory-side cache%s: not part of the model", caches,
			caches == 1 ? "" : "s");
	if (r->shared)
		topo_note(r->b->out,
			"%u CPUs are near to more than one node: each is counted on the one with "
			"ordinary memory",
			r->shared);
	if (r->stray)
		topo_note(r->b->out, "%u CPUs are near to no node: left out", r->stray);
}

static int read_topology(struct reader *r)
{
	int err = add_nodes(r);

	if (!err)
		err = add_cpus(r);
	if (!err)
		err = add_distances(r);
	if (err)
		return err;
	add_figures(r);
	add_subtypes(r);
	add_notes(r);
	return topo_build_finish(r->b);
}

static bool configure(hwloc_topology_t t, const char *xml, size_t len)
{
	return !hwloc_topology_set_xmlbuffer(t, xml, (int)len) &&
	       !hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) &&
	       !hwloc_topology_set_type_filter(t, HWLOC_OBJ_MEMCACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
}

static int load(struct reader *r, const char *xml, size_t len)
{
	if (hwloc_topology_init(&r->t))
		return nb_why(r->b->why, r->b->why_len, -ENOMEM, "%s: out of memory", r->b->name);
	if (configure(r->t, xml, len) && !hwloc_topology_load(r->t))
		return 0;
	hwloc_topology_destroy(r->t);
	return topo_refuse(
		r->b, 0, "libhwloc refuses it; expected a consistent hwloc XML document");
}

static int parse(struct reader *r, const char *text, size_t len)
{
	char *xml;
	size_t xml_len;
	int err =
		topo_hwloc_filter(&xml, &xml_len, text, len, r->b->name, r->b->why, r->b->why_len);

	if (err)
		return err;
	/* The length includes the terminator. */
	err = load(r, xml, xml_len + 1);
	if (!err) {
		err = read_topology(r);
		hwloc_topology_destroy(r->t);
	}
	free(xml);
	return err;
}

int topo_parse_hwloc_xml(struct topo_info *out, const char *text, size_t len, const char *name,
	char *why, size_t why_len)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	memset(out, 0, sizeof(*out));
	if (!r)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	err = topo_build_begin(&r->b, out, name, why, why_len);
	if (!err) {
		out->kind = TOPO_HWLOC_XML;
		err = parse(r, text, len);
	}
	topo_build_end(r->b);
	free(r);
	return err;
}
