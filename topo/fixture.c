/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"

static char path[4096];

static const char *below(const char *variable, const char *dir, const char *name)
{
	const char *root = getenv(variable);

	if (!root)
		return NULL;
	snprintf(path, sizeof(path), "%s/%s/%s", root, dir, name);
	return access(path, R_OK) ? NULL : path;
}

const char *shared_case(const char *name)
{
	const char *found = below("NUMABAL_SHARED", "cases", name);

	if (!found)
		skip();
	return found;
}

const char *data_file(const char *name)
{
	const char *found = below("NUMABAL_SOURCE", "tests/data/topo", name);

	if (!found)
		fail_msg("no tests/data/topo/%s below $NUMABAL_SOURCE", name);
	return found;
}

static void check_ok(int err, const struct topo_info *info, const char *why)
{
	const char *wrong;

	if (err)
		fail_msg("refused: %s", why);
	wrong = nb_topology_check(&info->topo);
	if (wrong)
		fail_msg("unsound: %s", wrong);
}

void read_ok(struct topo_info *info, const char *source)
{
	char why[WHY_LEN] = "";

	check_ok(topo_read(info, source, why, sizeof(why)), info, why);
}

void numactl_ok(struct topo_info *info, const char *text)
{
	char why[WHY_LEN] = "";

	check_ok(topo_parse_numactl(info, text, strlen(text), "text", why, sizeof(why)), info, why);
}

void line_ok(struct topo_info *info, const char *text)
{
	char why[WHY_LEN] = "";

	check_ok(topo_parse_line(info, text, strlen(text), why, sizeof(why)), info, why);
}

void hwloc_ok(struct topo_info *info, const char *text)
{
	char why[WHY_LEN] = "";

	check_ok(
		topo_parse_hwloc_xml(info, text, strlen(text), "xml", why, sizeof(why)), info, why);
}

void check_refused(int err, const struct topo_info *info, const char *why, const char *fragment)
{
	if (err >= 0)
		fail_msg("accepted; expected \"%s\"", fragment);
	if (!strstr(why, fragment))
		fail_msg("refused with \"%s\"; expected \"%s\"", why, fragment);
	assert_null(strchr(why, '\n'));
	assert_null(info->topo.nodes);
	assert_null(info->topo.distance);
	assert_null(info->topo.cpu_node);
}

void read_refused(const char *source, int err, const char *fragment)
{
	struct topo_info info;
	char why[WHY_LEN] = "";
	int got = topo_read(&info, source, why, sizeof(why));

	check_refused(got, &info, why, fragment);
	assert_int_equal(got, err);
}

void numactl_refused(const char *text, const char *fragment)
{
	struct topo_info info;
	char why[WHY_LEN] = "";

	check_refused(topo_parse_numactl(&info, text, strlen(text), "text", why, sizeof(why)),
		&info, why, fragment);
}

void line_refused(const char *text, const char *fragment)
{
	struct topo_info info;
	char why[WHY_LEN] = "";

	check_refused(
		topo_parse_line(&info, text, strlen(text), why, sizeof(why)), &info, why, fragment);
}

void hwloc_refused(const char *text, const char *fragment)
{
	struct topo_info info;
	char why[WHY_LEN] = "";

	check_refused(topo_parse_hwloc_xml(&info, text, strlen(text), "xml", why, sizeof(why)),
		&info, why, fragment);
}

static unsigned int index_of(const struct topo_info *info, int id)
{
	int index = nb_topology_index(&info->topo, id);

	if (index < 0)
		fail_msg("no node %d", id);
	return (unsigned int)index;
}

static int id_of(const struct topo_info *info, int index)
{
	return index < 0 ? -1 : info->topo.nodes[index].id;
}

const struct nb_node *node_of(const struct topo_info *info, int id)
{
	return &info->topo.nodes[index_of(info, id)];
}

unsigned int distance_of(const struct topo_info *info, int from, int to)
{
	return nb_distance(&info->topo, index_of(info, from), index_of(info, to));
}

int home_of(const struct topo_info *info, int id)
{
	return id_of(info, nb_topology_nearest_memory(&info->topo, index_of(info, id)));
}

int demotion_of(const struct topo_info *info, int id)
{
	return id_of(info, nb_topology_demotion_target(&info->topo, index_of(info, id)));
}

int promotion_of(const struct topo_info *info, int id)
{
	return id_of(info, nb_topology_promotion_target(&info->topo, index_of(info, id)));
}

int node_of_cpu(const struct topo_info *info, unsigned int cpu)
{
	return cpu < info->topo.cpu_ids ? id_of(info, info->topo.cpu_node[cpu]) : -1;
}

uint64_t total_mib(const struct topo_info *info)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < info->topo.nr_nodes; i++)
		sum += info->topo.nodes[i].mem_bytes >> 20;
	return sum;
}

int has_note(const struct topo_info *info, const char *fragment)
{
	for (unsigned int i = 0; i < info->nr_notes; i++)
		if (strstr(info->notes[i], fragment))
			return 1;
	return 0;
}

void assert_ids(const struct topo_info *info, const int *ids, unsigned int n)
{
	assert_int_equal(info->topo.nr_nodes, n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(info->topo.nodes[i].id, ids[i]);
}

int parse_files(struct topo_info *info, const struct file_text *files, char *why)
{
	struct topo_tree tree = {.rootfd = -1};
	int err;

	for (; files->path; files++)
		assert_int_equal(
			topo_tree_add(&tree, files->path, files->text, strlen(files->text)), 0);
	topo_tree_sort(&tree);
	err = topo_parse_tree(info, &tree, false, "tree", why, WHY_LEN);
	topo_tree_free(&tree);
	return err;
}

void files_ok(struct topo_info *info, const struct file_text *files)
{
	char why[WHY_LEN] = "";

	check_ok(parse_files(info, files, why), info, why);
}

void files_refused(const struct file_text *files, const char *fragment)
{
	struct topo_info info;
	char why[WHY_LEN] = "";

	check_refused(parse_files(&info, files, why), &info, why, fragment);
}
