/* SPDX-License-Identifier: MIT */
/*
 * topo: from what people have to a struct nb_topology.
 *
 * Sources: "host" (the running machine), a sysfs tree (directory or .tar/.tar.gz/.tar.xz), `numactl
 * -H` text, hwloc XML, or a one-line string: "2 nodes x 24 cpus x 64G + 1 node x 256G at 40". The
 * kind is found by looking.
 */
#ifndef NB_TOPO_TOPO_H
#define NB_TOPO_TOPO_H

#include "../engine/topology.h"

/*
 * An empty topology of `nr_nodes` nodes with ids 0.., no CPUs, no memory, distances 10/20. Owned by
 * the caller. Returns 0, -EINVAL when a count is out of range, -ENOMEM.
 */
int topo_alloc(struct nb_topology *t, unsigned int nr_nodes, unsigned int cpu_ids);
void topo_free(struct nb_topology *t);
int topo_copy(struct nb_topology *to, const struct nb_topology *from);

enum topo_kind { TOPO_HOST, TOPO_SYSFS, TOPO_NUMACTL, TOPO_HWLOC_XML, TOPO_LINE };

enum { TOPO_NOTE_LEN = 240, TOPO_MAX_NOTES = 32 };

/* "host", "sysfs", "numactl", "hwloc" or "line". */
const char *topo_kind_name(enum topo_kind kind);

/* What was understood, with notes on what was odd. */
struct topo_info {
	enum topo_kind kind;
	struct nb_topology topo;
	unsigned int nr_notes;
	char notes[TOPO_MAX_NOTES][TOPO_NOTE_LEN];
	bool balance_refused; /* sound, but there is nothing to balance (one node, all equidistant
				 ...); a note says why */
};

/*
 * Read `source`. 0, or -errno with one line in `why`: "SOURCE:LINE: what; expected what".
 * -ENOENT no such file; -EINVAL malformed or refused. Owned by the caller: topo_info_free.
 */
int topo_read(struct topo_info *out, const char *source, char *why, size_t why_len);

/* The same for text already in memory (`name` is used in messages). Never reads files. */
int topo_parse_numactl(struct topo_info *out, const char *text, size_t len, const char *name,
	char *why, size_t why_len);
int topo_parse_line(struct topo_info *out, const char *text, size_t len, char *why, size_t why_len);
int topo_parse_hwloc_xml(struct topo_info *out, const char *text, size_t len, const char *name,
	char *why, size_t why_len);
/* A sysfs tree below the open directory `rootfd` ("/" or the root of a recording). */
int topo_read_sysfs(struct topo_info *out, int rootfd, const char *name, char *why, size_t why_len);

void topo_info_free(struct topo_info *t);

#endif
