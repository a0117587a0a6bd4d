/* SPDX-License-Identifier: MIT */
/* alloc: the storage of a struct nb_topology. */
#include "topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void topo_free(struct nb_topology *t)
{
	free(t->nodes);
	free(t->cpu_node);
	free(t->distance);
	memset(t, 0, sizeof(*t));
}

void topo_info_free(struct topo_info *t)
{
	topo_free(&t->topo);
}

static void set_defaults(struct nb_topology *t)
{
	size_t n = t->nr_nodes;

	for (unsigned int i = 0; i < n; i++)
		t->nodes[i].id = (int)i;
	for (unsigned int cpu = 0; cpu < t->cpu_ids; cpu++)
		t->cpu_node[cpu] = NB_NO_NODE;
	for (size_t i = 0; i < n * n; i++)
		t->distance[i] = i % (n + 1) ? NB_DISTANCE_REMOTE : NB_DISTANCE_LOCAL;
}

int topo_alloc(struct nb_topology *t, unsigned int nr_nodes, unsigned int cpu_ids)
{
	memset(t, 0, sizeof(*t));
	if (!nr_nodes || nr_nodes > NB_MAX_NODES || cpu_ids > NB_MAX_CPUS)
		return -EINVAL;
	t->nr_nodes = nr_nodes;
	t->cpu_ids = cpu_ids;
	t->nodes = calloc(nr_nodes, sizeof(*t->nodes));
	t->cpu_node = calloc(cpu_ids ? cpu_ids : 1, sizeof(*t->cpu_node));
	t->distance = calloc((size_t)nr_nodes * nr_nodes, sizeof(*t->distance));
	if (!t->nodes || !t->cpu_node || !t->distance) {
		topo_free(t);
		return -ENOMEM;
	}
	set_defaults(t);
	return 0;
}

int topo_copy(struct nb_topology *to, const struct nb_topology *from)
{
	struct nb_topology copy;
	size_t n = from->nr_nodes;
	int err = topo_alloc(&copy, from->nr_nodes, from->cpu_ids);

	if (err) {
		memset(to, 0, sizeof(*to));
		return err;
	}
	memcpy(copy.nodes, from->nodes, n * sizeof(*copy.nodes));
	memcpy(copy.cpu_node, from->cpu_node, from->cpu_ids * sizeof(*copy.cpu_node));
	memcpy(copy.distance, from->distance, n * n * sizeof(*copy.distance));
	copy.nr_cpus = from->nr_cpus;
	copy.has_distances = from->has_distances;
	copy.tiers_known = from->tiers_known;
	*to = copy;
	return 0;
}
