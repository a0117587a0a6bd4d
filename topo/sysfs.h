/* SPDX-License-Identifier: MIT */
/* sysfs: what readers of trees share within topo/. */
#ifndef NB_TOPO_SYSFS_H
#define NB_TOPO_SYSFS_H

#include "topo.h"
#include "tree.h"

/*
 * Read a topology from a tree of files: "sys/devices/system/node" and what belongs to it below the
 * tree's prefix, which this sets. As topo_read_sysfs in all else. `is_host`: also mark nodes this
 * process may not use.
 */
int topo_parse_tree(struct topo_info *out, struct topo_tree *tree, bool is_host, const char *name,
	char *why, size_t why_len);

/*
 * Read a tar archive, compressed or not, held in memory. Only files of a topology are kept, and
 * those in memory too. 0, -EINVAL (not an archive, names that leave it, too large), -ENOMEM. Never
 * touches the disk.
 */
int topo_parse_archive(struct topo_info *out, const void *data, size_t len, const char *name,
	char *why, size_t why_len);

#endif
