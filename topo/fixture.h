/* SPDX-License-Identifier: MIT */
/* fixture: what the tests of topo/ share. */
#ifndef NB_TOPO_FIXTURE_H
#define NB_TOPO_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "topo.h"
#include "tree.h"

enum { WHY_LEN = 512 };

/* Path of a file of real inputs, or skip the test where there are none. Overwritten by the next
 * call. */
const char *shared_case(const char *name);
/* Path of a file of tests/data/topo. Overwritten by the next call. */
const char *data_file(const char *name);

/* What a reader said: to be sound, and to be freed with topo_info_free; the same for text of each
 * kind. */
void read_ok(struct topo_info *info, const char *source);
void numactl_ok(struct topo_info *info, const char *text);
void line_ok(struct topo_info *info, const char *text);
void hwloc_ok(struct topo_info *info, const char *text);

/* A refusal: one line with `fragment` in it, nothing left in the result. */
void check_refused(int err, const struct topo_info *info, const char *why, const char *fragment);
void read_refused(const char *source, int err, const char *fragment);
void numactl_refused(const char *text, const char *fragment);
void line_refused(const char *text, const char *fragment);
void hwloc_refused(const char *text, const char *fragment);

/* Facts about a result, by id. */
const struct nb_node *node_of(const struct topo_info *info, int id);
unsigned int distance_of(const struct topo_info *info, int from, int to);
int home_of(const struct topo_info *info, int id);
int demotion_of(const struct topo_info *info, int id);
int promotion_of(const struct topo_info *info, int id);
/* The id of the node a CPU is on, -1 when it cannot be used. */
int node_of_cpu(const struct topo_info *info, unsigned int cpu);
uint64_t total_mib(const struct topo_info *info);
int has_note(const struct topo_info *info, const char *fragment);
#define assert_note(info, fragment)    assert_true(has_note(info, fragment))
#define assert_no_note(info, fragment) assert_false(has_note(info, fragment))
/* The ids are exactly these. */
void assert_ids(const struct topo_info *info, const int *ids, unsigned int n);
#define ASSERT_IDS(info, ...)                                                                      \
	assert_ids(info, (const int[]){__VA_ARGS__},                                               \
		sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* A tree of files in memory: a path and its text, one after the other, ended by NULL. */
struct file_text {
	const char *path, *text;
};
int parse_files(struct topo_info *info, const struct file_text *files, char *why);
void files_ok(struct topo_info *info, const struct file_text *files);
void files_refused(const struct file_text *files, const char *fragment);

#endif
