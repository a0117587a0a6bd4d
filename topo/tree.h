/* SPDX-License-Identifier: MIT */
/*
 * tree: a tree of small text files, on disk or in memory, that nobody vouches for.
 *
 * On disk it lies below a directory descriptor and is read by openat alone, one component at a
 * time, never through a symbolic link: nothing outside of the directory can be reached. In memory
 * it holds what an archive held; nothing is ever written to disk. Paths are relative, with single
 * slashes.
 */
#ifndef NB_TOPO_TREE_H
#define NB_TOPO_TREE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	TOPO_FILE_MAX =
		64 << 10, /* of a file that is read: a distance row of 1,024 nodes takes 4 KiB */
	TOPO_PATH_LEN = 256,
	TOPO_TREE_MAX_FILES = 1 << 14,
};

struct topo_file {
	char *path;
	char *data;
	size_t len;
	unsigned int order; /* of adding: the last of the same name holds */
};

struct topo_tree {
	int rootfd; /* -1: in memory */
	struct topo_file *files;
	unsigned int nr_files, cap;
	const char *prefix; /* put before each path asked for; "" or ends in '/' */
};

/*
 * A file's text: terminated, without the zero bytes that archives of /sys pad it with. `size` is at
 * least 1. Its length, -ENOENT when it is no regular file or not there, -EFBIG when it does not
 * fit, -EINVAL when it has zero bytes inside, or what the system says. Failures leave an empty
 * text.
 */
int topo_tree_read(const struct topo_tree *t, const char *path, char *text, size_t size);

/* Whether a file or a directory is there. */
bool topo_tree_has(const struct topo_tree *t, const char *path);

/* Add a file to a tree in memory; copies. 0, -ENOMEM, -E2BIG when there are too many. */
int topo_tree_add(struct topo_tree *t, const char *path, const char *data, size_t len);

/* Put a tree in memory in order, once all is added; before that nothing is found. */
void topo_tree_sort(struct topo_tree *t);

void topo_tree_free(struct topo_tree *t);

#endif
