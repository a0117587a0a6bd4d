/* SPDX-License-Identifier: MIT */
/*
 * sysfs: a topology from the files under /sys, of this machine or a recorded one.
 *
 * What decides when files disagree: node/online and the node directories say which nodes there are;
 * cpulist says where a CPU is and cpu/online whether it can be used; the length of a distance row
 * says which nodes it is about (those online, or those possible); has_memory and has_normal_memory
 * only tell movable memory apart, and only when they name no node that is not possible.
 */
#include "sysfs.h"

#include "build.h"

#include "../engine/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODE_DIR "devices/system/node"
#define CPU_DIR	 "devices/system/cpu"
#define TIER_DIR "devices/virtual/memory_tiering"

/* Numbers of the kernel's memory tiers: abstract distance over 128, 4 for DRAM. More are not looked
 * for. */
enum { MAX_KERNEL_TIER = 1023 };

/* A list of ids in a file of its own. */
struct list {
	bool there;
	struct topo_set ids;
};

struct sysfs {
	struct topo_build *b;
	struct topo_tree *tree;
	struct list online, possible, has_memory, has_normal_memory;
	struct list cpu_online;
	struct topo_set nodes; /* with a directory, and online */
	char path[TOPO_PATH_LEN];
	char text[TOPO_FILE_MAX];
	size_t len;
};

/* Read a file into s->text. False when it is not there; *err tells what else was wrong. */
static bool read_file(struct sysfs *s, int *err, const char *path)
{
	int n = topo_tree_read(s->tree, path, s->text, sizeof(s->text));

	snprintf(s->path, sizeof(s->path), "%s", path);
	s->len = n > 0 ? (size_t)n : 0;
	*err = 0;
	if (n >= 0)
		return true;
	if (n == -ENOENT || n == -EACCES || n == -EPERM)
		return false;
	if (n == -EFBIG)
		*err = topo_refuse(
			s->b, 0, "%s: larger than 64 KiB; expected a file of /sys", path);
	else if (n == -EINVAL)
		*err = topo_refuse(s->b, 0, "%s: a NUL byte; expected text", path);
	else
		*err = nb_why(
			s->b->why, s->b->why_len, n, "%s: %s: %s", s->b->name, path, strerror(-n));
	return false;
}

static struct topo_slice text_of(const struct sysfs *s)
{
	return (struct topo_slice){.at = s->text, .len = s->len};
}

static int read_list(struct sysfs *s, struct list *list, const char *path, unsigned int limit)
{
	int err;

	list->there = read_file(s, &err, path);
	if (!list->there)
		return err;
	err = topo_set_parse(&list->ids, text_of(s), limit);
	if (err)
		return topo_refuse(s->b, 0, "%s: \"%.*s\"; expected a list of ids below %u", path,
			TOPO_SHOW(topo_trim(text_of(s))), limit);
	return 0;
}

static int read_lists(struct sysfs *s)
{
	const struct {
		struct list *list;
		const char *path;
		unsigned int limit;
	} lists[] = {
		{&s->online, NODE_DIR "/online", NB_MAX_NODES},
		{&s->possible, NODE_DIR "/possible", NB_MAX_NODES},
		{&s->has_memory, NODE_DIR "/has_memory", NB_MAX_NODES},
		{&s->has_normal_memory, NODE_DIR "/has_normal_memory", NB_MAX_NODES},
		{&s->cpu_online, CPU_DIR "/online", NB_MAX_CPUS},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(lists) / sizeof(lists[0]); i++)
		err = read_list(s, lists[i].list, lists[i].path, lists[i].limit);
	return err;
}

static void format_ids(const struct topo_set *ids, char list[100])
{
	topo_set_format(ids, list, 100);
}

/* Note ids that one list has and another lacks. */
static void note_surplus(struct sysfs *s, const struct topo_set *ids, const char *text)
{
	char list[100];

	format_ids(ids, list);
	if (list[0])
		topo_note(s->b->out, "node%s %s: %s", topo_set_count(ids) == 1 ? "" : "s", list,
			text);
}

static bool has_directory(const struct sysfs *s, unsigned int id)
{
	char path[TOPO_PATH_LEN];

	snprintf(path, sizeof(path), NODE_DIR "/node%u", id);
	return topo_tree_has(s->tree, path);
}

static void find_nodes(struct sysfs *s)
{
	struct topo_set lost = {0}, offline = {0};

	for (unsigned int id = 0; id < NB_MAX_NODES; id++) {
		bool online = !s->online.there || topo_set_has(&s->online.ids, id);
		bool maybe = online || !s->possible.there || topo_set_has(&s->possible.ids, id);
		bool directory = maybe && has_directory(s, id);

		if (directory)
			topo_set_add(online ? &s->nodes : &offline, id);
		else if (s->online.there && online)
			topo_set_add(&lost, id);
	}
	note_surplus(s, &lost, "said to be online, but without a directory: left out");
	note_surplus(s, &offline, "offline: left out");
}

/* "00000000,000000ff": words of 32 bits, the last one first. */
static int parse_cpumap(struct topo_slice map, struct topo_set *cpus)
{
	unsigned int cpu = 0, digits = 0;

	memset(cpus, 0, sizeof(*cpus));
	for (size_t i = map.len; i-- > 0;) {
		const char *hex = "0123456789abcdef", *digit = strchr(hex, map.at[i]);

		if (map.at[i] == ',' && digits % 8 == 0)
			continue;
		if (!digit || !map.at[i])
			return -EINVAL;
		for (unsigned int bit = 0; bit < 4; bit++, cpu++) {
			if (!((unsigned int)(digit - hex) >> bit & 1))
				continue;
			if (cpu >= NB_MAX_CPUS)
				return -ERANGE;
			topo_set_add(cpus, cpu);
		}
		digits++;
	}
	return 0;
}

static int read_cpumap(struct sysfs *s, unsigned int id, struct topo_set *cpus)
{
	char path[TOPO_PATH_LEN];
	int err;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/cpumap", id);
	memset(cpus, 0, sizeof(*cpus));
	if (!read_file(s, &err, path))
		return err;
	if (parse_cpumap(topo_trim(text_of(s)), cpus))
		return topo_refuse(s->b, 0, "%s: \"%.*s\"; expected words of 8 hexadecimal digits",
			path, TOPO_SHOW(topo_trim(text_of(s))));
	return 0;
}

static int read_cpus(struct sysfs *s, unsigned int slot, unsigned int id)
{
	struct list cpus;
	char path[TOPO_PATH_LEN];
	int err;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/cpulist", id);
	err = read_list(s, &cpus, path, NB_MAX_CPUS);
	if (!err && !cpus.there)
		err = read_cpumap(s, id, &cpus.ids);
	if (err)
		return err;
	topo_build_cpus(s->b, slot, &cpus.ids, s->cpu_online.there ? &s->cpu_online.ids : NULL, 0);
	return 0;
}

/* "MemTotal:   65536 kB" after "Node 0" or at the start of a line; false when it is another line.
 */
static int parse_kb(struct sysfs *s, struct topo_slice line, unsigned int number, const char *key,
	uint64_t *bytes, bool *found)
{
	struct topo_slice word, value, unit;
	uint64_t kb;

	while (topo_word(&line, &word) && !topo_slice_is(word, key))
		if (word.at[word.len - 1] == ':')
			return 0;
	if (!word.len)
		return 0;
	if (!topo_word(&line, &value) || !topo_word(&line, &unit) || !topo_slice_is(unit, "kB") ||
		topo_slice_u64(value, TOPO_MAX_NODE_BYTES >> 10, &kb))
		return topo_refuse(s->b, 0, "%s:%u: %s \"%.*s\"; expected 0 to %llu kB", s->path,
			number, key, TOPO_SHOW(value),
			(unsigned long long)(TOPO_MAX_NODE_BYTES >> 10));
	*bytes = kb << 10;
	*found = true;
	return 0;
}

static int read_meminfo(struct sysfs *s, unsigned int slot, const char *path)
{
	struct topo_text t;
	struct topo_slice line;
	uint64_t total = 0, free_bytes = 0;
	bool has_total = false, has_free = false;
	int err;

	if (!read_file(s, &err, path))
		return err;
	t = (struct topo_text){.at = s->text, .end = s->text + s->len};
	while (!err && topo_text_line(&t, &line)) {
		err = parse_kb(s, line, t.line, "MemTotal:", &total, &has_total);
		if (!err)
			err = parse_kb(s, line, t.line, "MemFree:", &free_bytes, &has_free);
	}
	if (!err && !has_total)
		err = topo_refuse(s->b, 0, "%s: no \"MemTotal:\"; expected its size in kB", path);
	if (!err)
		err = topo_build_memory(s->b, slot, total, 0);
	if (!err && has_free)
		err = topo_build_free(s->b, slot, free_bytes, 0);
	return err;
}

/* A number in a file of its own; 0 where there is none. Numbers beyond 32 bits are not believed. */
static int read_number(struct sysfs *s, uint32_t *out, const char *dir, const char *file)
{
	char path[TOPO_PATH_LEN];
	uint64_t value;
	int err;

	*out = 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!read_file(s, &err, path))
		return err;
	if (topo_slice_u64(topo_trim(text_of(s)), UINT32_MAX, &value))
		return topo_refuse(s->b, 0, "%s: \"%.*s\"; expected a number", path,
			TOPO_SHOW(topo_trim(text_of(s))));
	*out = (uint32_t)value;
	return 0;
}

/* HMAT: latency in ns and bandwidth in MiB/s as seen from the nearest CPUs (access1) or anything
 * (access0). */
static int read_figures(struct sysfs *s, unsigned int slot, unsigned int id)
{
	struct nb_node *node = &s->b->slot[slot].node;
	int err = 0;

	for (int access = 1; !err && access >= 0 && !node->latency_ns && !node->bandwidth_mib_s;
		access--) {
		char dir[TOPO_PATH_LEN];

		snprintf(dir, sizeof(dir), NODE_DIR "/node%u/access%d/initiators", id, access);
		err = read_number(s, &node->latency_ns, dir, "read_latency");
		if (!err)
			err = read_number(s, &node->bandwidth_mib_s, dir, "read_bandwidth");
	}
	return err;
}

static void set_flags(struct sysfs *s, unsigned int slot, unsigned int id)
{
	bool believed = s->has_memory.there && s->has_normal_memory.there &&
			(!s->possible.there ||
				topo_set_within(&s->has_normal_memory.ids, &s->possible.ids));

	if (believed && topo_set_has(&s->has_memory.ids, id) &&
		!topo_set_has(&s->has_normal_memory.ids, id))
		s->b->slot[slot].node.flags |= NB_NODE_MOVABLE_ONLY;
}

static int read_node(struct sysfs *s, unsigned int id)
{
	char path[TOPO_PATH_LEN];
	int slot = topo_build_node(s->b, id, 0);
	int err;

	if (slot < 0)
		return slot;
	snprintf(path, sizeof(path), NODE_DIR "/node%u/meminfo", id);
	err = read_cpus(s, (unsigned int)slot, id);
	if (!err)
		err = read_meminfo(s, (unsigned int)slot, path);
	if (!err)
		err = read_figures(s, (unsigned int)slot, id);
	if (!err)
		set_flags(s, (unsigned int)slot, id);
	return err;
}

/* The nodes that a row of `n` distances is about, or NULL when it fits none of the lists. */
static const struct topo_set *row_nodes(const struct sysfs *s, unsigned int n)
{
	if (n == topo_set_count(&s->nodes))
		return &s->nodes;
	if (s->online.there && n == topo_set_count(&s->online.ids))
		return &s->online.ids;
	if (s->possible.there && n == topo_set_count(&s->possible.ids))
		return &s->possible.ids;
	return NULL;
}

static unsigned int count_words(struct topo_slice s)
{
	struct topo_slice word;
	unsigned int n = 0;

	while (topo_word(&s, &word))
		n++;
	return n;
}

static int parse_row(struct sysfs *s, unsigned int from, const struct topo_set *ids)
{
	struct topo_slice rest = text_of(s), word;
	int err = 0;

	for (int id = topo_set_next(ids, 0); !err && id >= 0; id = topo_set_next(ids, id + 1)) {
		unsigned int value;
		int to = topo_build_slot(s->b, (unsigned int)id);

		topo_word(&rest, &word);
		if (topo_slice_uint(word, NB_DISTANCE_UNREACHABLE, &value) ||
			value < NB_DISTANCE_LOCAL)
			return topo_refuse(s->b, 0, "%s: \"%.*s\"; expected distances of 10..255",
				s->path, TOPO_SHOW(word));
		if (to >= 0)
			err = topo_build_distance(s->b, from, (unsigned int)to, value, 0);
	}
	return err;
}

static int read_row(struct sysfs *s, unsigned int slot, unsigned int id, unsigned int *rows)
{
	const struct topo_set *ids;
	char path[TOPO_PATH_LEN];
	unsigned int n;
	int err;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/distance", id);
	if (!read_file(s, &err, path))
		return err;
	n = count_words(text_of(s));
	ids = row_nodes(s, n);
	if (!ids)
		return topo_refuse(s->b, 0,
			"%s: %u distances; expected one for each of %u nodes online or %u possible",
			path, n, topo_set_count(&s->nodes), topo_set_count(&s->possible.ids));
	if (!(*rows)++)
		err = topo_build_matrix(s->b);
	return err ? err : parse_row(s, slot, ids);
}

static int read_distances(struct sysfs *s)
{
	unsigned int rows = 0;
	int err = 0;

	for (unsigned int slot = 0; !err && slot < s->b->nr_slots; slot++)
		err = read_row(s, slot, (unsigned int)s->b->slot[slot].node.id, &rows);
	if (!err && rows && rows < s->b->nr_slots)
		topo_note(s->b->out,
			"%u of %u nodes have no distances: 10 and 20 stand in for them",
			s->b->nr_slots - rows, s->b->nr_slots);
	return err;
}

static void set_tier(struct sysfs *s, const struct topo_set *ids, unsigned int tier)
{
	for (unsigned int slot = 0; slot < s->b->nr_slots; slot++) {
		if (!topo_set_has(ids, (unsigned int)s->b->slot[slot].node.id))
			continue;
		s->b->slot[slot].node.tier = (int)tier;
		s->b->slot[slot].has_tier = true;
	}
}

/* The kernel's own tiers (since 6.1); the smaller number is the faster. */
static int read_tiers(struct sysfs *s)
{
	int err = 0;

	if (!topo_tree_has(s->tree, TIER_DIR))
		return 0;
	for (unsigned int tier = 0; !err && tier <= MAX_KERNEL_TIER; tier++) {
		char path[TOPO_PATH_LEN];
		struct list list;

		snprintf(path, sizeof(path), TIER_DIR "/memory_tier%u/nodelist", tier);
		err = read_list(s, &list, path, NB_MAX_NODES);
		if (!err && list.there)
			set_tier(s, &list.ids, tier);
	}
	return err;
}

static void note_memory_list(struct sysfs *s, const struct list *list, const char *name)
{
	struct topo_set surplus = topo_set_minus(&list->ids, &s->nodes);
	char ids[100];

	format_ids(&surplus, ids);
	if (list->there && ids[0])
		topo_note(s->b->out, "%s names %s, not online: not believed", name, ids);
}

static void note_stray_cpus(struct sysfs *s)
{
	unsigned int stray = 0;

	for (int cpu = topo_set_next(&s->cpu_online.ids, 0); cpu >= 0;
		cpu = topo_set_next(&s->cpu_online.ids, cpu + 1))
		stray += s->b->slot_of_cpu[cpu] < 0;
	if (s->cpu_online.there && stray)
		topo_note(s->b->out, "%u CPUs are online but on no node: left out", stray);
	if (!s->cpu_online.there)
		topo_note(s->b->out, "no " CPU_DIR "/online: every CPU on a node taken as usable");
}

/* A kernel without NUMA: one node with all there is. */
static int read_plain(struct sysfs *s)
{
	struct topo_tree root = *s->tree;
	int slot, err;

	if (!s->cpu_online.there || !topo_set_count(&s->cpu_online.ids))
		return topo_refuse(s->b, 0,
			"neither sys/" NODE_DIR " nor sys/" CPU_DIR
			"/online; expected a recorded /sys");
	topo_note(s->b->out,
		"no " NODE_DIR ": a kernel without NUMA, one node with all CPUs and memory");
	slot = topo_build_node(s->b, 0, 0);
	topo_build_cpus(s->b, (unsigned int)slot, &s->cpu_online.ids, NULL, 0);
	root.prefix = "";
	s->tree = &root;
	err = read_meminfo(s, (unsigned int)slot, "proc/meminfo");
	return err ? err : topo_build_finish(s->b);
}

/* Nodes that the cpuset of this process leaves out. */
static int read_allowed(struct sysfs *s)
{
	struct topo_tree root = *s->tree;
	struct topo_text t;
	struct topo_slice line;
	struct topo_set allowed;
	char path[TOPO_PATH_LEN];
	int err;

	snprintf(path, sizeof(path), "proc/%d/status", (int)getpid());
	root.prefix = "";
	if (topo_tree_read(&root, path, s->text, sizeof(s->text)) <= 0)
		return 0;
	t = (struct topo_text){.at = s->text, .end = s->text + strlen(s->text)};
	while (topo_text_line(&t, &line)) {
		if (!topo_slice_skip(&line, "Mems_allowed_list:"))
			continue;
		err = topo_set_parse(&allowed, line, NB_MAX_NODES);
		for (unsigned int i = 0; !err && i < s->b->nr_slots; i++)
			if (!topo_set_has(&allowed, (unsigned int)s->b->slot[i].node.id))
				s->b->slot[i].node.flags |= NB_NODE_DISALLOWED;
	}
	return 0;
}

static int read_numa(struct sysfs *s, bool is_host)
{
	int err = 0;

	find_nodes(s);
	for (int id = topo_set_next(&s->nodes, 0); !err && id >= 0;
		id = topo_set_next(&s->nodes, id + 1))
		err = read_node(s, (unsigned int)id);
	if (!err && !s->b->nr_slots)
		err = topo_refuse(s->b, 0, NODE_DIR ": 0 nodes; expected at least one online");
	if (!err)
		err = read_distances(s);
	if (!err)
		err = read_tiers(s);
	if (!err && is_host)
		err = read_allowed(s);
	if (err)
		return err;
	note_memory_list(s, &s->has_memory, "has_memory");
	note_memory_list(s, &s->has_normal_memory, "has_normal_memory");
	note_stray_cpus(s);
	return topo_build_finish(s->b);
}

/* The tree may be "/" or "/sys". */
static void find_prefix(struct topo_tree *tree)
{
	const char *root = tree->prefix ? tree->prefix : "";

	tree->prefix = root;
	if (!*root && topo_tree_has(tree, "sys/devices/system"))
		tree->prefix = "sys/";
}

static int read_tree(struct sysfs *s, bool is_host)
{
	int err;

	find_prefix(s->tree);
	err = read_lists(s);
	if (err)
		return err;
	return topo_tree_has(s->tree, NODE_DIR) ? read_numa(s, is_host) : read_plain(s);
}

int topo_parse_tree(struct topo_info *out, struct topo_tree *tree, bool is_host, const char *name,
	char *why, size_t why_len)
{
	struct sysfs *s = calloc(1, sizeof(*s));
	int err;

	memset(out, 0, sizeof(*out));
	if (!s)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	s->tree = tree;
	err = topo_build_begin(&s->b, out, name, why, why_len);
	if (!err) {
		out->kind = is_host ? TOPO_HOST : TOPO_SYSFS;
		err = read_tree(s, is_host);
	}
	topo_build_end(s->b);
	free(s);
	return err;
}

int topo_read_sysfs(struct topo_info *out, int rootfd, const char *name, char *why, size_t why_len)
{
	struct topo_tree tree = {.rootfd = rootfd};

	return topo_parse_tree(out, &tree, false, name, why, why_len);
}
