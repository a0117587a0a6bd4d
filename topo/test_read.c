/* SPDX-License-Identifier: MIT */
/* Any source: what it is, found by looking; what is none. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

#define NUMACTL                                                                                    \
	"available: 2 nodes (0-1)\nnode 0 cpus: 0\nnode 0 size: 8 MB\nnode 1 cpus: 1\nnode 1 "     \
	"size: 8 MB\n"                                                                             \
	"node distances:\nnode 0 1\n0: 10 20\n1: 20 10\n"

static char dir[] = "/tmp/numabal-test-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static const char *write_file(const char *data, size_t len)
{
	static char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/source", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
	return path;
}

static const char *write_text(const char *text)
{
	return write_file(text, strlen(text));
}

static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum topo_kind kind;
	} cases[] = {
		{NUMACTL, TOPO_NUMACTL},
		{"\xef\xbb\xbf" NUMACTL, TOPO_NUMACTL},
		{"# a comment\n\n" NUMACTL, TOPO_NUMACTL},
		{"node 0 1\n0: 10 20\n1: 20 10\n", TOPO_NUMACTL},
		{"10 20\n20 10\n", TOPO_NUMACTL},
		{"2 nodes x 4 cpus x 1G\n", TOPO_LINE},
		{"# our machine\n2 nodes x 4 cpus x 1G\n", TOPO_LINE},
		{"\n\n2nodes x 4 cpus x 1G", TOPO_LINE},
		{"1 node x 4 cpus x 1G\n+ 1 node x 1G at 40\n", TOPO_LINE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo_info t;

		read_ok(&t, write_text(cases[i].text));
		assert_int_equal(t.kind, cases[i].kind);
		assert_int_equal(t.topo.nr_nodes, 2);
		topo_info_free(&t);
	}
}

static void files_of_each_kind(void **state)
{
	static const struct {
		const char *file;
		enum topo_kind kind;
		unsigned int nodes;
	} cases[] = {
		{"hwloc-v1.xml", TOPO_HWLOC_XML, 2},
		{"hwloc-v3-hbm.xml", TOPO_HWLOC_XML, 4},
		{"cxl.sysfs", TOPO_SYSFS, 2},
		{"numactl-wrapped-crlf.txt", TOPO_NUMACTL, 3},
		{"numactl-matrix.txt", TOPO_NUMACTL, 4},
		{"line.txt", TOPO_LINE, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topo_info t;

		read_ok(&t, data_file(cases[i].file));
		assert_int_equal(t.kind, cases[i].kind);
		assert_int_equal(t.topo.nr_nodes, cases[i].nodes);
		topo_info_free(&t);
	}
}

static void mailed(void **state)
{
	/* Ids 0, 4 and 16; tabs, carriage returns, CPUs over three lines, a row over two. */
	struct topo_info t;

	(void)state;
	read_ok(&t, data_file("numactl-wrapped-crlf.txt"));
	ASSERT_IDS(&t, 0, 4, 16);
	assert_int_equal(t.topo.nr_cpus, 48);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 24);
	assert_int_equal(node_of_cpu(&t, 47), 4);
	assert_int_equal(node_of(&t, 16)->mem_bytes, UINT64_C(131072) << 20);
	assert_int_equal(distance_of(&t, 4, 16), 45);
	topo_info_free(&t);
}

static void strings(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, "2 nodes x 4 cpus x 1G");
	assert_int_equal(t.kind, TOPO_LINE);
	topo_info_free(&t);
	read_refused("2 nodes x", -EINVAL, "column 10");
	read_refused("2 socks", -ENOENT, "2 socks: no such file; expected \"host\"");
	read_refused("", -ENOENT, "no such file");
	read_refused("hosts", -ENOENT, "hosts: no such file");
	read_refused("nosuch.xml", -ENOENT, "nosuch.xml: no such file");
	read_refused("/etc/passwd/x", -ENOENT, "no such file");
}

static void names(void **state)
{
	static const enum topo_kind all[] = {
		TOPO_HOST, TOPO_SYSFS, TOPO_NUMACTL, TOPO_HWLOC_XML, TOPO_LINE};
	static const char *const name[] = {"host", "sysfs", "numactl", "hwloc", "line"};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_string_equal(topo_kind_name(all[i]), name[i]);
}

static void no_topologies(void **state)
{
	static const char nul[] = "available: 1\0 nodes";

	(void)state;
	read_refused(write_text(""), -EINVAL, "empty; expected a topology");
	read_refused(write_text("\n\n  \n"), -EINVAL, "empty; expected a topology");
	read_refused(write_text("# nothing but this\n"), -EINVAL, "source");
	read_refused(write_text("2 nodes x 1G\n3 nodes x 1G\n"), -EINVAL, "column 14: \"3\"");
	read_refused(write_text("hello\n"), -EINVAL, "source:1: \"hello\"");
	read_refused(write_text("<html/>"), -EINVAL, "source:1: root element");
	read_refused(write_text("\x1f\x8bxyz"), -EINVAL, "source");
	read_refused(write_text("{\"schema\": 1}\n"), -EINVAL, "source:1");
	read_refused(write_file(nul, sizeof(nul)), -EINVAL, "NUL byte");
	read_refused(dir, -EINVAL, "expected a recorded /sys");
	/* A source without end. */
	read_refused("/dev/zero", -EINVAL, "larger than 64 MiB");
	read_refused("/dev/null", -EINVAL, "empty");
}

static void unreadable(void **state)
{
	const char *path = write_text(NUMACTL);

	(void)state;
	if (!geteuid())
		skip();
	assert_int_equal(chmod(path, 0), 0);
	read_refused(path, -EACCES, "Permission denied");
	assert_int_equal(unlink(path), 0);
}

static void *feed(void *path)
{
	int fd = open(path, O_WRONLY);

	if (fd >= 0 && write(fd, NUMACTL, strlen(NUMACTL)) < 0)
		perror("write");
	close(fd);
	return NULL;
}

static void pipes(void **state)
{
	/* As from <(numactl -H). */
	char path[200];
	pthread_t writer;
	struct topo_info t;

	(void)state;
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&writer, NULL, feed, path), 0);
	read_ok(&t, path);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(t.topo.nr_nodes, 2);
	topo_info_free(&t);
}

static void no_reason_wanted(void **state)
{
	struct topo_info t;
	char why[8];

	(void)state;
	assert_true(topo_read(&t, "nosuch", NULL, 0) < 0);
	assert_true(topo_read(&t, "nosuch", why, sizeof(why)) < 0);
	assert_int_equal(strlen(why), sizeof(why) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(files_of_each_kind),
		cmocka_unit_test(mailed),
		cmocka_unit_test(strings),
		cmocka_unit_test(names),
		cmocka_unit_test(no_topologies),
		cmocka_unit_test(unreadable),
		cmocka_unit_test(pipes),
		cmocka_unit_test(no_reason_wanted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
