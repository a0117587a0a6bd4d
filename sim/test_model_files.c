/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

static void load(struct sim_model *m, const char *source)
{
	why[0] = '\0';
	if (sim_model_load(m, source, why, sizeof(why)))
		fail_msg("%s refused: %s", source, why);
	if (sim_model_check(m))
		fail_msg("%s unsound: %s", source, sim_model_check(m));
}

static int load_error(const char *source)
{
	struct sim_model m;
	int err;

	why[0] = '\0';
	err = sim_model_load(&m, source, why, sizeof(why));
	if (!err)
		sim_model_free(&m);
	return err;
}

/* ---- files ---- */

static const char numactl_text[] = "available: 2 nodes (0-1)\n"
				   "node 0 cpus: 0 1\nnode 0 size: 4096 MB\nnode 0 free: 4000 MB\n"
				   "node 1 cpus: 2 3\nnode 1 size: 4096 MB\nnode 1 free: 4000 MB\n"
				   "node distances:\nnode   0   1\n  0:  10  30\n  1:  30  10\n";

static void topology_files_are_machines(void **state)
{
	struct sim_model m;

	(void)state;
	put_file("box.txt", numactl_text);
	load(&m, in_dir("box.txt"));
	assert_int_equal(m.topo.nr_cpus, 4);
	assert_true(m.latency_ns[1] == 270);
	assert_true(m.hz == 250);
	assert_string_equal(m.name, "box");
	sim_model_free(&m);
	load(&m, "2 nodes x 2 cpus x 1G");
	assert_string_equal(m.name, "2 nodes x 2 cpus x 1G");
	sim_model_free(&m);
	unlink(in_dir("box.txt"));
}

static void a_machine_file_beside_a_topology_is_found(void **state)
{
	struct sim_model m;

	(void)state;
	put_file("side.txt", numactl_text);
	put_file("side.ini", "[machine]\nhz = 100\n");
	load(&m, in_dir("side.txt"));
	assert_true(m.hz == 100);
	assert_int_equal(m.topo.nr_cpus, 4);
	sim_model_free(&m);
	put_file("side.txt.ini",
		"[machine]\nhz = 300\ntopology = side.txt\n"); /* comes before side.ini */
	load(&m, in_dir("side.txt"));
	assert_true(m.hz == 300);
	sim_model_free(&m);
	put_file("side.txt.ini", "[machine]\ntopology = 1 node x 1 cpu x 1G\n");
	assert_int_equal(load_error(in_dir("side.txt")), -EINVAL);
	assert_non_null(
		strstr(why, "side.txt.ini:2: topology = 1 node x 1 cpu x 1G, but this file"));
	put_file("side.txt.ini", "[machine]\nhz = none\n");
	assert_int_equal(load_error(in_dir("side.txt")), -EINVAL);
	assert_non_null(strstr(why, "side.txt.ini:2: hz = none: expected a number of 1/s"));
	unlink(in_dir("side.txt"));
	unlink(in_dir("side.txt.ini"));
	unlink(in_dir("side.ini"));
}

static void topology_paths_are_relative_to_the_machine_file(void **state)
{
	struct sim_model m;

	(void)state;
	put_file("box.txt", numactl_text);
	put_file("rel.ini",
		"[machine]\nname = mine\ndescription = a box\nsource = me\ntopology = box.txt\n");
	load(&m, in_dir("rel.ini"));
	assert_int_equal(m.topo.nr_cpus, 4);
	assert_string_equal(m.name, "mine");
	assert_string_equal(m.description, "a box");
	assert_string_equal(m.source, "me");
	sim_model_free(&m);
	put_file("rel.ini", "[machine]\ntopology = not-there.txt\n");
	assert_int_equal(load_error(in_dir("rel.ini")), -EINVAL);
	assert_non_null(strstr(why, "rel.ini:2: topology: "));
	put_file("rel.ini", "[machine]\ntopology = rel.ini\n");
	assert_true(load_error(in_dir("rel.ini")) < 0);
	unlink(in_dir("rel.ini"));
	unlink(in_dir("box.txt"));
}

/* 255 between CPUs and memory is no latency; the file must say one. */
static void unreachable_memory_needs_a_latency(void **state)
{
	struct sim_model m;

	(void)state;
	put_file("far.txt", "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 4096 MB\n"
			    "node 1 cpus: 2 3\nnode 1 size: 4096 MB\n"
			    "node distances:\nnode   0   1\n  0:  10  255\n  1:  20  10\n");
	assert_int_equal(load_error(in_dir("far.txt")), -EINVAL);
	assert_non_null(strstr(why, "far.txt: node 0 to node 1: distance 255 says nothing"));
	put_file("far.ini", "[latency]\n0 = - 400\n");
	load(&m, in_dir("far.txt"));
	assert_true(m.latency_ns[1] == 400);
	assert_true(m.latency_ns[2] == 180);
	sim_model_free(&m);
	unlink(in_dir("far.ini"));
	unlink(in_dir("far.txt"));
}

static void files_that_are_no_machines(void **state)
{
	(void)state;
	assert_int_equal(load_error(""), -EINVAL);
	assert_int_equal(load_error(in_dir("absent.ini")), -ENOENT);
	assert_int_equal(load_error(in_dir("absent.txt")), -ENOENT);
	put_file("empty.ini", "");
	assert_int_equal(load_error(in_dir("empty.ini")), -EINVAL);
	put_file("empty.txt", "");
	assert_true(load_error(in_dir("empty.txt")) < 0);
	assert_int_equal(mkdir(in_dir("dir.ini"), 0700), 0);
	assert_int_equal(load_error(in_dir("dir.ini")), -EISDIR);
	rmdir(in_dir("dir.ini"));
	unlink(in_dir("empty.ini"));
	unlink(in_dir("empty.txt"));
}

/* ---- presets ---- */

static void presets_are_found_by_name(void **state)
{
	struct sim_model m;

	(void)state;
	assert_int_equal(mkdir(in_dir("machines"), 0700), 0);
	put_file("machines/laptop-2node.ini", "[machine]\ntopology = 1 node x 3 cpus x 1G\n");
	put_file("machines/broken.ini", "[machine]\nnonsense\n");
	setenv("NUMABAL_DATA", test_dir(), 1);
	load(&m, "laptop-2node"); /* the environment's comes first */
	assert_int_equal(m.topo.nr_cpus, 3);
	sim_model_free(&m);
	assert_int_equal(load_error("broken"), -EINVAL);
	unsetenv("NUMABAL_DATA");
	load(&m, "laptop-2node");
	assert_int_equal(m.topo.nr_cpus, 8);
	sim_model_free(&m);
	assert_int_equal(load_error("broken"), -ENOENT);
	assert_int_equal(load_error("laptop-2nodes"), -ENOENT);
	assert_string_equal(why, "no machine named 'laptop-2nodes'; did you mean 'laptop-2node'? "
				 "(numabal machines lists them)");
	assert_int_equal(load_error("../machines/laptop-2node"), -ENOENT);
}

static const struct sim_listing *find_listing(
	const struct sim_listing *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static void presets_are_listed(void **state)
{
	struct sim_listing *list;
	char search[400];
	size_t nr;

	(void)state;
	/* directories that are not there, and empty names, are passed over */
	snprintf(search, sizeof(search), "%s::%s:", in_dir("absent"), test_dir());
	setenv("NUMABAL_DATA", search, 1);
	assert_int_equal(sim_list_machines(&list, &nr), 0);
	unsetenv("NUMABAL_DATA");
	for (size_t i = 1; i < nr; i++)
		assert_true(strcmp(list[i - 1].name, list[i].name) < 0);
	assert_non_null(find_listing(list, nr, "milan-2node-256cpu"));
	assert_true(strlen(find_listing(list, nr, "milan-2node-256cpu")->description) > 10);
	assert_non_null(
		strstr(find_listing(list, nr, "broken")->description, "broken.ini:2: expected"));
	assert_string_equal(find_listing(list, nr, "laptop-2node")->description, "");
	sim_listing_free(list, nr);
	unlink(in_dir("machines/laptop-2node.ini"));
	unlink(in_dir("machines/broken.ini"));
	rmdir(in_dir("machines"));
}

static void every_preset_is_sound_and_says_its_sources(void **state)
{
	struct sim_listing *list;
	struct sim_model m;
	size_t nr;

	(void)state;
	assert_int_equal(sim_list_machines(&list, &nr), 0);
	assert_true(nr >= 5);
	for (size_t i = 0; i < nr; i++) {
		load(&m, list[i].name);
		assert_string_equal(m.name, list[i].name);
		assert_string_equal(m.description, list[i].description);
		assert_true(strlen(m.description) > 10 && strlen(m.source) > 10);
		sim_model_free(&m);
	}
	sim_listing_free(list, nr);
}

static uint64_t gib(const struct sim_model *m, unsigned int node)
{
	return m->topo.nodes[node].mem_bytes >> 30;
}

/* What the seeds say of the machines. */
static void presets_have_the_published_shape(void **state)
{
	struct sim_model m;
	unsigned int large = 0;

	(void)state;
	load(&m, "2012-4node-48cpu");
	assert_int_equal(m.topo.nr_nodes, 4);
	assert_int_equal(m.topo.nr_cpus, 48);
	sim_model_free(&m);
	load(&m, "2012-8node-64cpu");
	assert_int_equal(m.topo.nr_nodes, 8);
	assert_int_equal(m.topo.nr_cpus, 64);
	for (unsigned int n = 0; n < 8; n++) {
		assert_true(gib(&m, n) == 32 || gib(&m, n) == 64);
		large += gib(&m, n) == 64;
		assert_int_equal(nb_distance(&m.topo, n, (n + 1) % 8), 20);
	}
	assert_int_equal(large, 2);
	sim_model_free(&m);
	load(&m, "milan-2node-256cpu");
	assert_int_equal(m.topo.nr_nodes, 2);
	assert_int_equal(m.topo.nr_cpus, 256);
	sim_model_free(&m);
}

static void the_cxl_preset_is_the_published_text(void **state)
{
	struct sim_model m;
	static const uint16_t distances[] = {10, 32, 50, 32, 10, 60, 255, 255, 10};

	(void)state;
	load(&m, "zen5-cxl-3node");
	assert_int_equal(m.topo.nr_nodes, 3);
	assert_int_equal(m.topo.nr_cpus, 384);
	assert_int_equal(m.topo.nodes[2].nr_cpus, 0);
	assert_int_equal(m.topo.nodes[2].mem_bytes >> 20, 257993);
	assert_memory_equal(m.topo.distance, distances, sizeof(distances));
	assert_int_equal(m.topo.cpu_node[0], 0);
	assert_int_equal(m.topo.cpu_node[191], 1);
	assert_int_equal(m.cpu_core[0], m.cpu_core[192]);
	assert_true(m.latency_ns[2] > m.latency_ns[1]);
	sim_model_free(&m);
}

/* ---- recorded topologies of others ---- */

static const char *shared(const char *name)
{
	const char *root = getenv("NUMABAL_SHARED");
	static char path[512];

	if (!root)
		return NULL;
	snprintf(path, sizeof(path), "%s/cases/%s", root, name);
	return access(path, R_OK) ? NULL : path;
}

static void recorded_topologies_load_or_say_why(void **state)
{
	static const struct {
		const char *file;
		unsigned int nodes, cpus; /* 0: must be refused */
	} cases[] = {
		{"numactl-H-gh200-9nodes-255.txt", 9, 72},
		{"numactl-H-power9-ac922-gpu-nodes.txt", 6, 128},
		{"numactl-H-cxl-4nodes-14-24-26.txt", 4, 208},
		{"numactl-H-threadripper-nps4-memless.txt", 4, 48},
		{"numactl-H-epyc-2s-nps4-8nodes.txt", 8, 256},
		{"numactl-H-pseries-no-distance.txt", 1, 1},
		{"numactl-H-docker-0nodes.txt", 0, 0},
		{"numactl-H-xeonmax-snc4-hbm-16nodes-TRUNCATED.txt", 0, 0},
		{"hwloc-xml-16amd64-4distances.xml", 8, 16},
		{"hwloc-xml-v1.11-8em64t-2mi2ma2c.xml", 0, 0},
		{"sysfs-offline-cpu0-node0.tar.gz", 1, 8},
	};
	struct sim_model m;

	(void)state;
	if (!shared(cases[0].file))
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *path = shared(cases[i].file);

		if (!path)
			continue;
		if (!cases[i].nodes) {
			assert_true(load_error(path) < 0);
			assert_true(strlen(why) > 10 && !strchr(why, '\n'));
			continue;
		}
		load(&m, path);
		assert_int_equal(m.topo.nr_nodes, cases[i].nodes);
		assert_int_equal(m.topo.nr_cpus, cases[i].cpus);
		sim_model_free(&m);
	}
}

/* ---- documentation ---- */

/* Every row of the table stands in docs/machines.md with unit, default, range and source. */
static void the_parameters_are_documented(void **state)
{
	char *doc = read_doc("docs/machines.md"), row[512];
	unsigned int missing = 0;

	(void)state;
	for (size_t i = 0; i < sim_nr_params; i++) {
		const struct sim_param *p = &sim_params[i];

		snprintf(row, sizeof(row), "| [%s] `%s` | %s | %g | %g to %g | %s |", p->section,
			p->key, p->unit, p->def, p->min, p->max, p->text);
		if (strstr(doc, row))
			continue;
		print_error("docs/machines.md lacks: %s\n", row);
		missing++;
	}
	assert_int_equal(missing, 0);
}

static void the_documented_example_loads(void **state)
{
	const char *text = read_example("docs/machines.md");
	struct sim_model m;

	(void)state;
	if (sim_model_parse(&m, "example", text, strlen(text), why, sizeof(why)))
		fail_msg("%s", why);
	assert_string_equal(m.name, "mine");
	assert_int_equal(m.nr_links, 2);
	sim_model_free(&m);
}

static void the_parameters_are_in_the_manual(void **state)
{
	char *man = read_doc("man/numabal-machine.5");

	(void)state;
	for (size_t i = 0; i < sim_nr_params; i++)
		if (!strstr(man, sim_params[i].key))
			fail_msg("man/numabal-machine.5 lacks %s", sim_params[i].key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_files_are_machines),
		cmocka_unit_test(a_machine_file_beside_a_topology_is_found),
		cmocka_unit_test(topology_paths_are_relative_to_the_machine_file),
		cmocka_unit_test(unreachable_memory_needs_a_latency),
		cmocka_unit_test(files_that_are_no_machines),
		cmocka_unit_test(presets_are_found_by_name),
		cmocka_unit_test(presets_are_listed),
		cmocka_unit_test(every_preset_is_sound_and_says_its_sources),
		cmocka_unit_test(presets_have_the_published_shape),
		cmocka_unit_test(the_cxl_preset_is_the_published_text),
		cmocka_unit_test(recorded_topologies_load_or_say_why),
		cmocka_unit_test(the_parameters_are_documented),
		cmocka_unit_test(the_documented_example_loads),
		cmocka_unit_test(the_parameters_are_in_the_manual),
	};

	return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
