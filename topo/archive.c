/* SPDX-License-Identifier: MIT */
/*
 * archive: a recorded /sys in a tar file, read through libarchive into memory.
 *
 * An archive can claim anything, so nothing of it reaches the disk: of its regular files those that
 * a topology is made of are kept in memory, each up to 64 KiB, and the whole is given up when it
 * unpacks to more than 512 MiB or holds more than a million members. A name that leaves the archive
 * is refused, not repaired.
 */
#include "sysfs.h"

#include "../engine/why.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MEMBERS = 1000000, MAX_UNPACKED_MIB = 512 };

struct reader {
	struct archive *a;
	struct topo_tree tree;
	const char *name;
	char *why;
	size_t why_len;
	unsigned int members;
	int64_t unpacked; /* bytes, as the members claim */
	char data[TOPO_FILE_MAX + 1];
};

/* The files a topology is made of, by the last part of their names. */
static const char *const leaves[] = {
	"online",
	"possible",
	"has_memory",
	"has_normal_memory",
	"cpulist",
	"cpumap",
	"meminfo",
	"distance",
	"read_latency",
	"read_bandwidth",
	"nodelist",
};

static const char *const roots[] = {
	"sys/devices/system/node/",
	"sys/devices/system/cpu/",
	"sys/devices/virtual/memory_tiering/",
	"proc/meminfo",
};

static bool leaf_wanted(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *leaf = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		if (!strcmp(leaf, leaves[i]))
			return true;
	return false;
}

/* The part of a member's name from "sys/" or "proc/" on, however deep it lies; NULL when it is not
 * wanted. */
static const char *wanted(const char *path)
{
	if (!leaf_wanted(path))
		return NULL;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
			if (!strncmp(at, roots[i], strlen(roots[i])))
				return at;
	}
	return NULL;
}

static bool leaves_archive(const char *path)
{
	if (*path == '/')
		return true;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (at[0] == '.' && at[1] == '.' && (!at[2] || at[2] == '/'))
			return true;
	}
	return false;
}

static int unreadable(struct reader *r)
{
	const char *text = archive_error_string(r->a);

	return nb_why(r->why, r->why_len, archive_errno(r->a) == ENOMEM ? -ENOMEM : -EINVAL,
		"%s: %s; expected a complete tar archive", r->name, text ? text : "unreadable");
}

/* Read the member at hand into r->data. Its length or -errno. */
static ssize_t read_member(struct reader *r, const char *path)
{
	size_t used = 0;

	while (used <= TOPO_FILE_MAX) {
		ssize_t n = archive_read_data(r->a, r->data + used, sizeof(r->data) - used);

		if (n < 0)
			return unreadable(r);
		if (!n)
			return (ssize_t)used;
		used += (size_t)n;
	}
	return nb_why(r->why, r->why_len, -EINVAL,
		"%s: %s is larger than 64 KiB; expected a file of /sys", r->name, path);
}

static int keep(struct reader *r, const char *path)
{
	ssize_t n = read_member(r, path);
	int err;

	if (n < 0)
		return (int)n;
	err = topo_tree_add(&r->tree, path, r->data, (size_t)n);
	if (err == -E2BIG)
		return nb_why(r->why, r->why_len, -EINVAL, "%s: more than %u files of a topology",
			r->name, TOPO_TREE_MAX_FILES);
	return err ? nb_why(r->why, r->why_len, err, "%s: out of memory", r->name) : 0;
}

/* Before a member is unpacked or skipped, which takes as long: what it claims counts. */
static int check_bounds(struct reader *r, struct archive_entry *entry)
{
	int64_t size = archive_entry_size(entry), max = (int64_t)MAX_UNPACKED_MIB << 20;

	if (++r->members > MAX_MEMBERS)
		return nb_why(r->why, r->why_len, -EINVAL,
			"%s: more than %d members; expected a recorded /sys", r->name, MAX_MEMBERS);
	r->unpacked += size >= 0 && size <= max ? size : max + 1;
	if (r->unpacked > max || archive_filter_bytes(r->a, 0) > max)
		return nb_why(r->why, r->why_len, -EINVAL,
			"%s: unpacks to more than %d MiB; expected a recorded /sys", r->name,
			MAX_UNPACKED_MIB);
	return 0;
}

static int take_member(struct reader *r, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry), *kept;
	int err = check_bounds(r, entry);

	if (err)
		return err;
	if (!path)
		return nb_why(r->why, r->why_len, -EINVAL, "%s: a member without a name", r->name);
	if (leaves_archive(path))
		return nb_why(r->why, r->why_len, -EINVAL,
			"%s: member \"%.100s\" leaves the archive; expected relative names",
			r->name, path);
	kept = wanted(path);
	if (!kept || archive_entry_filetype(entry) != S_IFREG || archive_entry_hardlink(entry))
		return 0;
	return keep(r, kept);
}

static int read_members(struct reader *r)
{
	struct archive_entry *entry;
	int err = 0, got = ARCHIVE_OK;

	while (!err && (got = archive_read_next_header(r->a, &entry)) >= ARCHIVE_WARN &&
		got != ARCHIVE_EOF)
		err = take_member(r, entry);
	if (!err && got != ARCHIVE_EOF)
		err = unreadable(r);
	return err;
}

static int open_archive(struct reader *r, const void *data, size_t len)
{
	r->a = archive_read_new();
	if (!r->a)
		return nb_why(r->why, r->why_len, -ENOMEM, "%s: out of memory", r->name);
	archive_read_support_format_tar(r->a);
	archive_read_support_filter_gzip(r->a);
	archive_read_support_filter_bzip2(r->a);
	archive_read_support_filter_xz(r->a);
	archive_read_support_filter_zstd(r->a);
	return archive_read_open_memory(r->a, data, len) == ARCHIVE_OK ? 0 : unreadable(r);
}

int topo_parse_archive(struct topo_info *out, const void *data, size_t len, const char *name,
	char *why, size_t why_len)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	memset(out, 0, sizeof(*out));
	if (!r)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	r->tree.rootfd = -1;
	r->name = name;
	r->why = why;
	r->why_len = why_len;
	err = open_archive(r, data, len);
	if (!err)
		err = read_members(r);
	if (!err) {
		topo_tree_sort(&r->tree);
		err = topo_parse_tree(out, &r->tree, false, name, why, why_len);
	}
	archive_read_free(r->a);
	topo_tree_free(&r->tree);
	free(r);
	return err;
}
