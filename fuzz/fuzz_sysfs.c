/* SPDX-License-Identifier: MIT */
/*
 * Recorded sysfs trees. Most inputs are a tree in a form of our own, so that the fuzzer spends its
 * time on the files and not on tar's checksums: path NUL text NUL path NUL text ... Inputs that
 * look like an archive go through libarchive.
 */
#include "../topo/sysfs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Take what stands before the next NUL. */
static const char *take(const uint8_t **data, size_t *size, size_t *len)
{
	const uint8_t *end = memchr(*data, '\0', *size);
	const char *text = (const char *)*data;

	if (!end)
		return NULL;
	*len = (size_t)(end - *data);
	*size -= *len + 1;
	*data = end + 1;
	return text;
}

static int parse_files(struct topo_info *info, const uint8_t *data, size_t size)
{
	struct topo_tree tree = {.rootfd = -1};
	const char *path, *text;
	size_t path_len, len;
	char why[256];
	int err = 0;

	while (!err && (path = take(&data, &size, &path_len)) && (text = take(&data, &size, &len)))
		err = topo_tree_add(&tree, path, text, len);
	topo_tree_sort(&tree);
	err = topo_parse_tree(info, &tree, false, "fuzz", why, sizeof(why));
	topo_tree_free(&tree);
	return err;
}

static int parse_archive(struct topo_info *info, const uint8_t *data, size_t size)
{
	char why[256];

	return topo_parse_archive(info, data, size, "fuzz", why, sizeof(why));
}

static int looks_like_archive(const uint8_t *data, size_t size)
{
	return (size > 262 && !memcmp(data + 257, "ustar", 5)) ||
	       (size > 2 && data[0] == 0x1f && data[1] == 0x8b) ||
	       (size > 2 && data[0] == 0xfd && data[1] == '7');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topo_info info;
	int err = looks_like_archive(data, size) ? parse_archive(&info, data, size)
						 : parse_files(&info, data, size);

	if (!err && nb_topology_check(&info.topo))
		abort();
	topo_info_free(&info);
	return 0;
}
