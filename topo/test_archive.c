/* SPDX-License-Identifier: MIT */
/* Recorded trees in archives: compressed in each way, hostile in each way. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"
#include "sysfs.h"

#define NODE "sys/devices/system/node/"

enum { MAX_ARCHIVE = 8 << 20 };

struct member {
	const char *path, *text;
	mode_t type;	  /* 0: regular */
	const char *link; /* of symbolic and hard links */
	size_t size;	  /* of zeroes, when there is no text */
};

static const struct member tree[] = {
	{.path = NODE "online", .text = "0-1\n"},
	{.path = "sys/devices/system/cpu/online", .text = "0-3\n"},
	{.path = NODE "node0/cpulist", .text = "0-1\n"},
	{.path = NODE "node1/cpulist", .text = "2-3\n"},
	{.path = NODE "node0/meminfo", .text = "Node 0 MemTotal: 4096 kB\n"},
	{.path = NODE "node1/meminfo", .text = "Node 1 MemTotal: 8192 kB\n"},
	{.path = NODE "node0/distance", .text = "10 21\n"},
	{.path = NODE "node1/distance", .text = "21 10\n"},
};

enum { NR_TREE = sizeof(tree) / sizeof(tree[0]) };

static char data[MAX_ARCHIVE];

static void add(struct archive *a, const struct member *m, const char *prefix)
{
	struct archive_entry *e = archive_entry_new();
	char path[512];
	static const char zeroes[1 << 16];
	size_t size = m->text ? strlen(m->text) : m->size;

	snprintf(path, sizeof(path), "%s%s", prefix, m->path);
	archive_entry_set_pathname(e, path);
	archive_entry_set_filetype(e, m->type ? m->type : S_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (int64_t)size);
	if (m->type == S_IFLNK)
		archive_entry_set_symlink(e, m->link);
	else if (m->link)
		archive_entry_set_hardlink(e, m->link);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	if (m->text)
		archive_write_data(a, m->text, size);
	for (size_t done = 0; !m->text && done < size; done += sizeof(zeroes))
		archive_write_data(
			a, zeroes, size - done < sizeof(zeroes) ? size - done : sizeof(zeroes));
	archive_entry_free(e);
}

/* The tree below `prefix` and one member more, packed into data[]. Its length. */
static size_t pack(const char *prefix, const struct member *more, int (*filter)(struct archive *))
{
	struct archive *a = archive_write_new();
	size_t used = 0;

	archive_write_set_format_pax_restricted(a);
	if (filter)
		assert_int_equal(filter(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(a, data, sizeof(data), &used), ARCHIVE_OK);
	for (size_t i = 0; i < NR_TREE; i++)
		add(a, &tree[i], prefix);
	if (more)
		add(a, more, "");
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	return used;
}

static void accepted(size_t len)
{
	struct topo_info t;
	char why[WHY_LEN] = "";

	if (topo_parse_archive(&t, data, len, "tar", why, sizeof(why)))
		fail_msg("refused: %s", why);
	ASSERT_IDS(&t, 0, 1);
	assert_int_equal(t.kind, TOPO_SYSFS);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(distance_of(&t, 0, 1), 21);
	assert_int_equal(node_of(&t, 1)->mem_bytes, 8192 << 10);
	topo_info_free(&t);
}

static void refused(size_t len, const char *fragment)
{
	struct topo_info t;
	char why[WHY_LEN] = "";

	check_refused(
		topo_parse_archive(&t, data, len, "tar", why, sizeof(why)), &t, why, fragment);
}

static void filters(void **state)
{
	(void)state;
	accepted(pack("", NULL, NULL));
	accepted(pack("", NULL, archive_write_add_filter_gzip));
	accepted(pack("", NULL, archive_write_add_filter_bzip2));
	accepted(pack("", NULL, archive_write_add_filter_xz));
	accepted(pack("", NULL, archive_write_add_filter_zstd));
}

static void prefixes(void **state)
{
	(void)state;
	accepted(pack("./", NULL, NULL));
	accepted(pack("machine-7/", NULL, NULL));
	accepted(pack("a/b/c/", NULL, NULL));
}

static void names_that_leave(void **state)
{
	static const char *const names[] = {
		"/etc/passwd",
		"../escape",
		"a/../../escape",
		"sys/..",
		"..",
		"/" NODE "online",
		"a/..",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct member m = {.path = names[i], .text = "x"};

		refused(pack("", &m, NULL), "leaves the archive; expected relative names");
	}
	/* Dots that are no such name. */
	{
		const struct member m = {.path = "a/..b/c..", .text = "x"};

		accepted(pack("", &m, NULL));
	}
}

static void links(void **state)
{
	/* A link in the place of a file is no file: what it points to is never looked at. */
	static const struct member symbolic = {
		.path = NODE "node0/cpulist", .type = S_IFLNK, .link = "/etc/passwd"};
	static const struct member hard = {
		.path = NODE "node0/cpulist", .link = NODE "node1/cpulist"};
	static const struct member device = {.path = NODE "node0/cpulist", .type = S_IFCHR};

	(void)state;
	accepted(pack("", &symbolic, NULL));
	accepted(pack("", &hard, NULL));
	accepted(pack("", &device, NULL));
}

static void the_last_of_a_name_holds(void **state)
{
	static const struct member again = {.path = NODE "node1/distance", .text = "21 9\n"};

	(void)state;
	refused(pack("", &again, NULL), "node1/distance: \"9\"");
}

static void large_members(void **state)
{
	static const struct member other = {.path = "sys/big", .size = 4 << 20};
	static const struct member wanted = {
		.path = NODE "node0/vmstat/online", .size = (64 << 10) + 1};
	static const struct member fits = {.path = NODE "node0/vmstat/online", .size = 64 << 10};
	static const struct member bomb = {.path = "sys/bomb", .size = 513u << 20};

	(void)state;
	accepted(pack("", &other, NULL));
	accepted(pack("", &fits, NULL));
	refused(pack("", &wanted, NULL), "larger than 64 KiB");
	/* 513 MiB in half a megabyte. */
	refused(pack("", &bomb, archive_write_add_filter_gzip), "unpacks to more than 512 MiB");
}

static void damaged(void **state)
{
	size_t len = pack("", NULL, archive_write_add_filter_gzip);

	(void)state;
	refused(len / 2, "expected a complete tar archive");
	refused(0, "tar");
	refused(pack("", NULL, NULL) / 2, "tar");
	memset(data, 'x', 2048);
	refused(2048, "tar");
}

static void without_a_topology(void **state)
{
	struct archive *a = archive_write_new();
	const struct member m = {.path = "etc/motd", .text = "hello\n"};
	size_t used = 0;

	(void)state;
	archive_write_set_format_pax_restricted(a);
	archive_write_open_memory(a, data, sizeof(data), &used);
	add(a, &m, "");
	archive_write_close(a);
	archive_write_free(a);
	refused(used, "expected a recorded /sys");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(names_that_leave),
		cmocka_unit_test(links),
		cmocka_unit_test(the_last_of_a_name_holds),
		cmocka_unit_test(large_members),
		cmocka_unit_test(damaged),
		cmocka_unit_test(without_a_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
