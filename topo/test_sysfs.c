/* SPDX-License-Identifier: MIT */
/* Trees of /sys: which file decides when they disagree, and what is no such file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

#define NODE "sys/devices/system/node/"
#define CPU  "sys/devices/system/cpu/"
#define MEMINFO(id, total, free)                                                                   \
	"Node " #id " MemTotal:       " #total " kB\nNode " #id " MemFree:        " #free " kB\n"

#define PLAIN_LISTS                                                                                \
	{NODE "online", "0-1\n"}, {NODE "possible", "0-1\n"},                                      \
	{                                                                                          \
		CPU "online", "0-3\n"                                                              \
	}
#define PLAIN_NODE0                                                                                \
	{NODE "node0/cpulist", "0-1\n"},                                                           \
	{                                                                                          \
		NODE "node0/meminfo", MEMINFO(0, 4096, 1024)                                       \
	}
#define PLAIN_NODE1                                                                                \
	{NODE "node1/cpulist", "2-3\n"},                                                           \
	{                                                                                          \
		NODE "node1/meminfo", MEMINFO(1, 8192, 8192)                                       \
	}
#define PLAIN_DISTANCES                                                                            \
	{NODE "node0/distance", "10 21\n"},                                                        \
	{                                                                                          \
		NODE "node1/distance", "22 10\n"                                                   \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, NULL                                                                         \
	}

static void plain(void **state)
{
	static const struct file_text files[] = {
		PLAIN_LISTS, PLAIN_NODE0, PLAIN_NODE1, PLAIN_DISTANCES, END};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	ASSERT_IDS(&t, 0, 1);
	assert_int_equal(t.kind, TOPO_SYSFS);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(node_of(&t, 0)->mem_bytes, 4096 << 10);
	assert_int_equal(node_of(&t, 0)->free_bytes, 1024 << 10);
	/* The row is the CPUs' side. */
	assert_int_equal(distance_of(&t, 0, 1), 21);
	assert_int_equal(distance_of(&t, 1, 0), 22);
	topo_info_free(&t);
}

static void row_length_decides(void **state)
{
	/* Possible 0-3, online 1 and 3. One kernel lists distances to those online, another to all
	 * possible. */
	static const struct file_text by_online[] = {
		{NODE "online", "1,3\n"},
		{NODE "possible", "0-3\n"},
		{CPU "online", "0-3\n"},
		{NODE "node1/cpulist", "0-1\n"},
		{NODE "node3/cpulist", "2-3\n"},
		{NODE "node1/meminfo", MEMINFO(1, 4096, 0)},
		{NODE "node3/meminfo", MEMINFO(3, 4096, 0)},
		{NODE "node1/distance", "10 31\n"},
		{NODE "node3/distance", "31 10\n"},
		END,
	};
	static const struct file_text by_possible[] = {
		{NODE "online", "1,3\n"},
		{NODE "possible", "0-3\n"},
		{CPU "online", "0-3\n"},
		{NODE "node1/cpulist", "0-1\n"},
		{NODE "node3/cpulist", "2-3\n"},
		{NODE "node1/meminfo", MEMINFO(1, 4096, 0)},
		{NODE "node3/meminfo", MEMINFO(3, 4096, 0)},
		{NODE "node1/distance", "40 10 50 31\n"},
		{NODE "node3/distance", "60 31 70 10\n"},
		END,
	};
	static const struct file_text neither[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		PLAIN_NODE1,
		{NODE "node0/distance", "10 21 21\n"},
		END,
	};
	struct topo_info t;

	(void)state;
	files_ok(&t, by_online);
	ASSERT_IDS(&t, 1, 3);
	assert_int_equal(distance_of(&t, 1, 3), 31);
	topo_info_free(&t);
	files_ok(&t, by_possible);
	ASSERT_IDS(&t, 1, 3);
	assert_int_equal(distance_of(&t, 1, 3), 31);
	assert_int_equal(distance_of(&t, 3, 3), 10);
	topo_info_free(&t);
	files_refused(neither, "tree: devices/system/node/node0/distance: 3 distances");
}

static void nodes_come_and_go(void **state)
{
	/* 2 is said to be online and is not there; 3 is there and not online. */
	static const struct file_text files[] = {
		{NODE "online", "0-2\n"},
		{NODE "possible", "0-3\n"},
		{CPU "online", "0-3\n"},
		PLAIN_NODE0,
		PLAIN_NODE1,
		{NODE "node3/cpulist", "\n"},
		END,
	};
	/* Without lists the directories count. */
	static const struct file_text no_lists[] = {PLAIN_NODE0, PLAIN_NODE1, PLAIN_DISTANCES, END};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	ASSERT_IDS(&t, 0, 1);
	assert_note(&t, "node 2: said to be online, but without a directory");
	assert_note(&t, "node 3: offline");
	assert_false(t.topo.has_distances);
	topo_info_free(&t);
	files_ok(&t, no_lists);
	ASSERT_IDS(&t, 0, 1);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_note(&t, "every CPU on a node taken as usable");
	topo_info_free(&t);
}

static void cpus_offline(void **state)
{
	static const struct file_text files[] = {
		{NODE "online", "0-1\n"},
		{CPU "online", "1-2,9\n"},
		PLAIN_NODE0,
		PLAIN_NODE1,
		PLAIN_DISTANCES,
		END,
	};
	static const struct file_text all_of_one[] = {
		{NODE "online", "0-1\n"},
		{CPU "online", "0-1\n"},
		PLAIN_NODE0,
		PLAIN_NODE1,
		PLAIN_DISTANCES,
		END,
	};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	assert_int_equal(t.topo.nr_cpus, 2);
	assert_int_equal(node_of_cpu(&t, 0), -1);
	assert_int_equal(node_of_cpu(&t, 1), 0);
	assert_int_equal(node_of_cpu(&t, 2), 1);
	assert_int_equal(node_of_cpu(&t, 3), -1);
	assert_note(&t, "nodes 0-1: some CPUs are offline");
	assert_note(&t, "1 CPUs are online but on no node");
	topo_info_free(&t);
	/* A node whose CPUs are all offline is no slower memory for it. */
	files_ok(&t, all_of_one);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 0);
	assert_int_equal(node_of(&t, 1)->tier, 0);
	topo_info_free(&t);
}

static void cpumap(void **state)
{
	static const struct file_text files[] = {
		{NODE "online", "0-1\n"},
		{CPU "online", "0-69\n"},
		{NODE "node0/cpumap", "00000000,00000000,0000000f\n"},
		{NODE "node1/cpumap", "00000020,80000000,00000000\n"},
		{NODE "node0/meminfo", MEMINFO(0, 4096, 0)},
		{NODE "node1/meminfo", MEMINFO(1, 4096, 0)},
		END,
	};
	static const struct file_text bad[] = {{NODE "node0/cpumap", "0000g\n"}, END};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 4);
	assert_int_equal(node_of_cpu(&t, 63), 1);
	assert_int_equal(node_of_cpu(&t, 69), 1);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 2);
	topo_info_free(&t);
	files_refused(bad, "node0/cpumap: \"0000g\"");
}

static void movable_memory(void **state)
{
	static const struct file_text files[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		PLAIN_NODE1,
		{NODE "has_memory", "0-1\n"},
		{NODE "has_normal_memory", "0\n"},
		END,
	};
	/* Old kernels have no has_memory; firmware can say nonsense. */
	static const struct file_text no_has_memory[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		PLAIN_NODE1,
		{NODE "has_normal_memory", "0\n"},
		END,
	};
	static const struct file_text nonsense[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		PLAIN_NODE1,
		{NODE "has_memory", "0-1\n"},
		{NODE "has_normal_memory", "0,7\n"},
		END,
	};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	assert_int_equal(node_of(&t, 0)->flags, 0);
	assert_int_equal(node_of(&t, 1)->flags, NB_NODE_MOVABLE_ONLY);
	assert_note(&t, "node 1: memory for movable pages only");
	topo_info_free(&t);
	files_ok(&t, no_has_memory);
	assert_int_equal(node_of(&t, 1)->flags, 0);
	topo_info_free(&t);
	files_ok(&t, nonsense);
	assert_int_equal(node_of(&t, 1)->flags, 0);
	assert_note(&t, "has_normal_memory names 7, not online: not believed");
	topo_info_free(&t);
}

static void hmat(void **state)
{
	static const struct file_text files[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		{NODE "node1/meminfo", MEMINFO(1, 8192, 0)},
		{NODE "node0/access1/initiators/read_latency", "100\n"},
		{NODE "node0/access1/initiators/read_bandwidth", "40000\n"},
		{NODE "node0/access0/initiators/read_latency", "7\n"},
		{NODE "node1/access0/initiators/read_latency", "250\n"},
		{NODE "node1/access0/initiators/read_bandwidth", "20000\n"},
		END,
	};
	static const struct file_text bad[] = {PLAIN_LISTS, PLAIN_NODE0, PLAIN_NODE1,
		{NODE "node1/access0/initiators/read_latency", "fast\n"}, END};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	/* access1 is about CPUs and goes first. */
	assert_int_equal(node_of(&t, 0)->latency_ns, 100);
	assert_int_equal(node_of(&t, 0)->bandwidth_mib_s, 40000);
	assert_int_equal(node_of(&t, 1)->latency_ns, 250);
	assert_int_equal(node_of(&t, 1)->tier, 1);
	assert_note(&t, "2 tiers from latency and bandwidth");
	topo_info_free(&t);
	files_refused(bad, "read_latency: \"fast\"; expected a number");
}

static void kernel_tiers(void **state)
{
	static const struct file_text files[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		{NODE "node1/meminfo", MEMINFO(1, 8192, 0)},
		{"sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "1\n"},
		{"sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n"},
		END,
	};
	/* The kernel has both in one tier: it knows, whatever the distances say. */
	static const struct file_text one[] = {
		PLAIN_LISTS,
		PLAIN_NODE0,
		{NODE "node1/meminfo", MEMINFO(1, 8192, 0)},
		PLAIN_DISTANCES,
		{"sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n"},
		END,
	};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	assert_int_equal(node_of(&t, 0)->tier, 0);
	assert_int_equal(node_of(&t, 1)->tier, 1);
	assert_true(t.topo.tiers_known);
	topo_info_free(&t);
	files_ok(&t, one);
	assert_int_equal(node_of(&t, 1)->tier, 0);
	assert_true(t.topo.tiers_known);
	topo_info_free(&t);
}

static void without_numa(void **state)
{
	static const struct file_text files[] = {
		{CPU "online", "0-7\n"},
		{"proc/meminfo", "MemTotal:       16384 kB\nMemFree:         1024 kB\n"},
		END,
	};
	struct topo_info t;

	(void)state;
	files_ok(&t, files);
	ASSERT_IDS(&t, 0);
	assert_int_equal(t.topo.nr_cpus, 8);
	assert_int_equal(node_of(&t, 0)->mem_bytes, 16 << 20);
	assert_int_equal(node_of(&t, 0)->free_bytes, 1 << 20);
	assert_true(t.balance_refused);
	topo_info_free(&t);
}

static void padded(void **state)
{
	/* Archives of /sys may pad each file with zeroes. */
	struct topo_tree tree = {.rootfd = -1};
	static const char text[64] = "0-1\n";
	char out[80];

	(void)state;
	assert_int_equal(topo_tree_add(&tree, "a", text, sizeof(text)), 0);
	assert_int_equal(topo_tree_add(&tree, "b", "0\0001", 3), 0);
	assert_int_equal(topo_tree_add(&tree, "a", text, 5), 0);
	topo_tree_sort(&tree);
	assert_int_equal(topo_tree_read(&tree, "a", out, sizeof(out)), 4);
	assert_string_equal(out, "0-1\n");
	assert_int_equal(topo_tree_read(&tree, "b", out, sizeof(out)), -EINVAL);
	assert_int_equal(topo_tree_read(&tree, "c", out, sizeof(out)), -ENOENT);
	assert_int_equal(topo_tree_read(&tree, "a", out, 4), -EFBIG);
	topo_tree_free(&tree);
}

static void refusals(void **state)
{
	static const struct {
		struct file_text file;
		const char *why;
	} bad[] = {
		{{NODE "online", "0-\n"},
			"devices/system/node/online: \"0-\"; expected a list of ids below 1024"},
		{{NODE "online", "0,1024\n"}, "node/online"},
		{{NODE "online", "\n"}, "0 nodes"},
		{{NODE "possible", "x\n"}, "node/possible: \"x\""},
		{{CPU "online", "0-8192\n"},
			"cpu/online: \"0-8192\"; expected a list of ids below 8192"},
		{{NODE "node1/cpulist", "2-3,\xff\n"}, "node1/cpulist"},
		{{NODE "node1/cpulist", "1-3\n"}, "cpu 1 is on node 0 and on node 1"},
		{{NODE "node1/meminfo", "Node 1 MemFree: 5 kB\n"},
			"node1/meminfo: no \"MemTotal:\""},
		{{NODE "node1/meminfo", "Node 1 MemTotal: -5 kB\n"},
			"node1/meminfo:1: MemTotal: \"-5\"; expected 0 to"},
		{{NODE "node1/meminfo", "Node 1 MemTotal: 5 MB\n"}, "node1/meminfo:1"},
		{{NODE "node1/meminfo", "Node 1 MemTotal:\n"}, "node1/meminfo:1"},
		{{NODE "node1/meminfo", "Node 1 MemTotal: 4398046511105 kB\n"},
			"expected 0 to 4398046511104 kB"},
		{{NODE "node1/meminfo", "Node 1 MemTotal: 99999999999999999999 kB\n"},
			"node1/meminfo:1"},
		{{NODE "node1/distance", "0 10\n"},
			"node1/distance: \"0\"; expected distances of 10..255"},
		{{NODE "node1/distance", "20 256\n"}, "node1/distance: \"256\""},
		{{NODE "node1/distance", "20 ten\n"}, "node1/distance: \"ten\""},
		{{NODE "node1/distance", "\n"}, "node1/distance: 0 distances"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct file_text files[] = {
			PLAIN_LISTS, PLAIN_NODE0, PLAIN_NODE1, PLAIN_DISTANCES, bad[i].file, END};

		files_refused(files, bad[i].why);
	}
}

static void nothing_there(void **state)
{
	static const struct file_text none[] = {END};
	static const struct file_text other[] = {{"etc/passwd", "root\n"}, END};

	(void)state;
	files_refused(none, "expected a recorded /sys");
	files_refused(other, "expected a recorded /sys");
}

/* ---- on disk ---- */

static void write_file(const char *dir, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	for (char *slash = full + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void remove_tree(const char *dir)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
}

static void links_are_not_followed(void **state)
{
	static const struct file_text files[] = {
		PLAIN_LISTS, PLAIN_NODE0, PLAIN_NODE1, PLAIN_DISTANCES, END};
	char dir[] = "/tmp/numabal-test-XXXXXX", path[512], target[512];
	struct topo_info t;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (const struct file_text *f = files; f->path; f++)
		write_file(dir, f->path, f->text);
	read_ok(&t, dir);
	assert_int_equal(t.topo.nr_cpus, 4);
	topo_info_free(&t);
	/* A file that is a link, then a node directory that is one: both are as if they were not
	 * there. */
	write_file(dir, "outside/cpulist", "0-3\n");
	snprintf(path, sizeof(path), "%s/" NODE "node1/cpulist", dir);
	snprintf(target, sizeof(target), "%s/outside/cpulist", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
	read_ok(&t, dir);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 0);
	topo_info_free(&t);
	snprintf(path, sizeof(path), "%s/" NODE "node0", dir);
	snprintf(target, sizeof(target), "%s/" NODE "away", dir);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	read_ok(&t, dir);
	ASSERT_IDS(&t, 1);
	topo_info_free(&t);
	remove_tree(dir);
}

static void pipes_do_not_hang(void **state)
{
	char dir[] = "/tmp/numabal-test-XXXXXX", path[512];

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_file(dir, NODE "node0/cpulist", "0\n");
	snprintf(path, sizeof(path), "%s/" NODE "online", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	{
		struct topo_info t;

		read_ok(&t, dir);
		ASSERT_IDS(&t, 0);
		topo_info_free(&t);
	}
	remove_tree(dir);
}

static void recorded(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, data_file("cxl.sysfs"));
	ASSERT_IDS(&t, 0, 2);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(node_of(&t, 2)->tier, 1);
	assert_int_equal(node_of(&t, 2)->flags, NB_NODE_MOVABLE_ONLY);
	assert_int_equal(node_of(&t, 2)->latency_ns, 260);
	assert_int_equal(distance_of(&t, 0, 2), 17);
	topo_info_free(&t);
	/* The same from inside of its sys directory. */
	read_ok(&t, data_file("cxl.sysfs/sys"));
	ASSERT_IDS(&t, 0, 2);
	topo_info_free(&t);
}

static void running_host(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, "host");
	assert_int_equal(t.kind, TOPO_HOST);
	assert_int_equal(t.topo.nr_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	topo_info_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(row_length_decides),
		cmocka_unit_test(nodes_come_and_go),
		cmocka_unit_test(cpus_offline),
		cmocka_unit_test(cpumap),
		cmocka_unit_test(movable_memory),
		cmocka_unit_test(hmat),
		cmocka_unit_test(kernel_tiers),
		cmocka_unit_test(without_numa),
		cmocka_unit_test(padded),
		cmocka_unit_test(refusals),
		cmocka_unit_test(nothing_there),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(pipes_do_not_hang),
		cmocka_unit_test(recorded),
		cmocka_unit_test(running_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
