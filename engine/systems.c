/* SPDX-License-Identifier: MIT */
/*
 * systems: the one table of rows. Each row says after which row it comes, what it adds, what it
 * drops and which tunables it changes, so that reading the table down is reading the history of
 * NUMA balancing.
 *
 * mpol_noop and mpol_lazy: the series adds them (patches 17 and 21) and then hides their user
 * interface until it has been reviewed (patch 23). The mechanism stays in the kernel, so the rows
 * have it.
 */
#include "systems.h"
#include <errno.h>
#include <string.h>
#include "why.h"

/* A set of mechanisms, wide enough for all; in the table alone. */
typedef unsigned __int128 mechanism_set;
_Static_assert(NB_NR_MECHANISMS <= 128, "mechanisms are bits of a mechanism_set");
#define B(NAME) ((mechanism_set)1 << NB_MECH_##NAME)

enum {
	MAX_CHANGES = 4,
	MAX_NAME = 64,
};

struct change {
	enum nb_tunable tunable;
	int64_t value;
};

struct nb_system {
	const char *name;
	const char *from;
	const char *summary;
	const char *after; /* the row this one builds on; NULL = on nothing */
	mechanism_set adds, drops;
	unsigned int nr_changes;
	struct change changes[MAX_CHANGES];
};

static const struct nb_system systems[] = {
	{
		.name = "none",
		.from = "balancenuma V5, patches 1-10 (stats-v5r1, stats-v6r15)",
		.summary = "first touch and no balancing: cheaper TLB rules, and moves are counted",
		.adds = B(TLB_LOCAL_FLUSH) | B(TLB_SKIP_INACCESSIBLE) | B(TLB_SKIP_UNCHANGED) |
			B(MIGRATE_STATS),
	},
	{
		.name = "moron",
		.from = "balancenuma V5, patches 1-29",
		.summary = "migrate on reference: every hint fault moves its page to the toucher's "
			   "node",
		.after = "none",
		.adds = B(GUP_HINT_FAULTS) | B(SPLIT_TRANSFERS_ARM) | B(MPOL_LOCAL) | B(MPOL_NOOP) |
			B(MIGRATE_ON_FAULT) | B(SINGLE_MAPPED) | B(TARGET_WATERMARK) |
			B(MPOL_LAZY) | B(SCAN_COUNTS_HUGE) | B(BALANCING) | B(SCAN_HALF_RATE) |
			B(SCAN_WINDOW) | B(SCAN_SKIP_SMALL) | B(SCAN_PRESENT) | B(SCAN_DELAY) |
			B(MIGRATE_ON_REFERENCE),
		.nr_changes = 1,
		.changes = {{NB_TUNE_SCAN_PERIOD_MAX_MS, 1600}},
	},
	{
		.name = "thpmigrate-v5",
		.from = "balancenuma V5, patches 1-37",
		.summary = "PMDs faulted as one, migration limited in rate, two-stage filter, huge "
			   "pages move whole",
		.after = "moron",
		.adds = B(PMD_BATCH) | B(MIGRATE_RATELIMIT) | B(SCAN_RATELIMIT) | B(SCAN_GROW) |
			B(TWO_STAGE_FILTER) | B(THP_MIGRATION),
		.drops = B(SCAN_HALF_RATE),
		.nr_changes = 1,
		.changes = {{NB_TUNE_SCAN_GROW_JIFFIES, 2}},
	},
	{
		.name = "adaptscan-v5",
		.from = "balancenuma V5, patches 1-38",
		.summary = "scans slow down only while faults find their pages in place, and start "
			   "afresh every minute",
		.after = "thpmigrate-v5",
		.adds = B(SCAN_GROW_SETTLED) | B(SCAN_RESET),
		.drops = B(SCAN_GROW),
		.nr_changes = 2,
		.changes = {{NB_TUNE_SCAN_GROW_JIFFIES, 10}, {NB_TUNE_SCAN_PERIOD_MAX_MS, 5000}},
	},
	{
		.name = "delaystart-v5",
		.from = "balancenuma V5, patches 1-40",
		.summary = "no scan until the address space has run on a second node",
		.after = "adaptscan-v5",
		.adds = B(SECOND_NODE),
	},
	{
		.name = "balancenuma-v8",
		.from = "balancenuma V8, patches 1-46",
		.summary = "the finished series: huge pages keep their history, and are counted "
			   "and limited as 512",
		.after = "delaystart-v5",
		.adds = B(THP_STATS) | B(THP_LOCAL_STATS) | B(THP_KEEPS_LAST_NID) |
			B(SPLIT_KEEPS_LAST_NID) | B(THP_ALLOC_FAIL_STATS) | B(THP_RATELIMIT),
	},
	{
		.name = "linux-3.13",
		.from = "Linux 3.13",
		.summary = "tasks move as well as pages: faults are counted per task, node and "
			   "group, and a task runs where its faults are",
		.after = "balancenuma-v8",
		.adds = B(CPUPID) | B(KEEPS_CPUPID) | B(FAULT_STATS) | B(NUMA_GROUP) |
			B(PREFERRED_NODE) | B(TASK_NUMA_MIGRATE) | B(TASK_SWAP) | B(DEFER_MIGRATE) |
			B(PREFERRED_INHERITED) | B(THP_WAITS) | B(SCAN_ADAPT) | B(SCAN_RSS) |
			B(SCAN_STAGGER) | B(SCAN_EXTENT) | B(SCAN_MOF_ONLY) |
			B(SCAN_SKIP_SHARED_RO) | B(SCAN_SKIP_INACCESSIBLE),
		.drops = B(SCAN_SKIP_SMALL) | B(SCAN_COUNTS_HUGE) | B(PMD_BATCH) |
			 B(SINGLE_MAPPED) | B(SCAN_RATELIMIT) | B(SCAN_GROW_SETTLED) |
			 B(SCAN_RESET) | B(SECOND_NODE) | B(SCAN_PRESENT),
		.nr_changes = 2,
		.changes = {{NB_TUNE_SCAN_PERIOD_MIN_MS, 1000},
			{NB_TUNE_SCAN_PERIOD_MAX_MS, 60000}},
	},
	{
		.name = "linux-6.4",
		.from = "Linux 6.4, commit fc137c0ddab2",
		.summary = "a task scans only VMAs that it faulted in lately",
		.after = "linux-3.13",
		.adds = B(LOCAL_KEEPS_CPUPID) | B(EARLY_MIGRATE) | B(GROUP_SPREAD) |
			B(SCAN_ADAPT_PRIVATE) | B(SCAN_GROUP) | B(SCAN_VIRTPAGES) |
			B(SCAN_SINGLE_LOCAL) | B(SCAN_COST) | B(SCAN_MOVE_RESET) |
			B(VMA_SCAN_DELAY) | B(VMA_PIDS),
		.drops = B(DEFER_MIGRATE) | B(MIGRATE_RATELIMIT) | B(THP_RATELIMIT),
		.nr_changes = 1,
		.changes = {{NB_TUNE_LRU_BATCH, 15}},
	},
	{
		.name = "linux-6.7",
		.from = "Linux 6.7, \"complete scanning of partial and inactive VMAs\"",
		.summary = "a scan that was begun is completed, and what nobody touches is scanned "
			   "one VMA at a time",
		.after = "linux-6.4",
		.adds = B(VMA_PIDS_RESET) | B(VMA_PREV_SEQ) | B(VMA_PARTIAL) | B(VMA_FORCE),
	},
	{
		.name = "linux-6.8",
		.from = "Linux 6.8, \"Fix mm numa_scan_seq based unconditional scan\"",
		.summary = "a VMA's first two sequences are its own: late ones are scanned too",
		.after = "linux-6.7",
		.adds = B(VMA_START_SEQ),
	},
	{
		.name = "linux-6.12",
		.from = "Linux 6.12, \"Fix the vma scan starving issue\"",
		.summary = "a VMA that nobody scanned for long is scanned by whoever comes",
		.after = "linux-6.8",
		.adds = B(VMA_STARVING) | B(WRITE_FORGETS_CPUPID),
		.nr_changes = 1,
		.changes = {{NB_TUNE_LRU_BATCH, 31}},
	},
	{
		.name = "numabal",
		.from = "numabal",
		.summary =
			"tasks have homes from the start and memory follows homes, not CPUs: made "
			"for machines that arm samples",
		.after = "linux-6.4",
		.adds = B(HOME_NODE) | B(SCAN_NEW_VMA) | B(SCAN_DOUBLE) | B(SINGLE_MAPPED),
		.drops = B(LOCAL_KEEPS_CPUPID) | B(VMA_PIDS) | B(VMA_SCAN_DELAY) |
			 B(PREFERRED_NODE) | B(TASK_NUMA_MIGRATE) | B(TASK_SWAP) | B(NUMA_GROUP) |
			 B(GROUP_SPREAD) | B(SCAN_GROUP) | B(SCAN_RSS) | B(SCAN_MOVE_RESET),
		.nr_changes = 4,
		.changes = {{NB_TUNE_SCAN_DELAY_MS, 500}, {NB_TUNE_SCAN_PERIOD_MIN_MS, 250},
			{NB_TUNE_SCAN_PERIOD_MAX_MS, 10000}, {NB_TUNE_SCAN_SIZE_MB, 1024}},
	},
};

enum {
	NR_SYSTEMS = sizeof(systems) / sizeof(systems[0]),
};

const struct nb_mechanism_info nb_mechanism_table[NB_NR_MECHANISMS] = {
#define X(NAME, name, text) {#name, text},
	NB_MECHANISMS(X)
#undef X
};

const struct nb_tunable_info nb_tunable_table[NB_NR_TUNABLES] = {
#define X(NAME, name, unit, def, min, max, text) {#name, unit, def, min, max, text},
	NB_TUNABLES(X)
#undef X
};

const struct nb_system *nb_system_at(size_t i)
{
	return i < NR_SYSTEMS ? &systems[i] : NULL;
}

const struct nb_system *nb_system_find(const char *name)
{
	for (size_t i = 0; i < NR_SYSTEMS; i++)
		if (strcmp(systems[i].name, name) == 0)
			return &systems[i];
	return NULL;
}

const char *nb_system_name(const struct nb_system *s)
{
	return s->name;
}

const char *nb_system_from(const struct nb_system *s)
{
	return s->from;
}

const char *nb_system_summary(const struct nb_system *s)
{
	return s->summary;
}

static void config_clear(struct nb_config *c)
{
	*c = (struct nb_config){.hz = 250};
	for (size_t i = 0; i < NB_NR_TUNABLES; i++)
		c->tunables[i] = nb_tunable_table[i].def;
}

/* Rows come after the rows they build on, so this recursion ends; test_systems.c checks the order.
 */
static void config_apply(struct nb_config *c, const struct nb_system *s)
{
	if (s->after != NULL)
		config_apply(c, nb_system_find(s->after));
	for (int m = 0; m < NB_NR_MECHANISMS; m++)
		if ((s->adds | s->drops) >> m & 1)
			nb_switch(c, (enum nb_mechanism)m, s->adds >> m & 1);
	for (unsigned int i = 0; i < s->nr_changes; i++)
		c->tunables[s->changes[i].tunable] = s->changes[i].value;
}

void nb_config_from_system(struct nb_config *c, const struct nb_system *s)
{
	config_clear(c);
	config_apply(c, s);
}

static int parse_switch(const char *text, bool *on)
{
	static const char *const words[2][4] = {
		{"off", "0", "false", "no"}, {"on", "1", "true", "yes"}};

	for (int v = 0; v < 2; v++)
		for (int i = 0; i < 4; i++)
			if (strcmp(text, words[v][i]) == 0) {
				*on = v == 1;
				return 0;
			}
	return -EINVAL;
}

static int set_mechanism(struct nb_config *c, int m, const char *value, char *why, size_t why_len)
{
	bool on;

	if (parse_switch(value, &on) != 0)
		return nb_why(why, why_len, -EINVAL, "%s=%s: expected on or off",
			nb_mechanism_table[m].name, nb_quote(value).text);
	nb_switch(c, (enum nb_mechanism)m, on);
	return 0;
}

static int set_tunable(struct nb_config *c, int t, const char *value, char *why, size_t why_len)
{
	const struct nb_tunable_info *info = &nb_tunable_table[t];
	int64_t v = 0;
	int err = nb_parse_i64(value, &v);

	if (err == 0 && (v < info->min || v > info->max))
		err = -ERANGE;
	if (err != 0)
		return nb_why(why, why_len, err, "%s=%s: expected %lld to %lld %s", info->name,
			nb_quote(value).text, (long long)info->min, (long long)info->max,
			info->unit);
	c->tunables[t] = v;
	return 0;
}

int nb_config_set(struct nb_config *c, const char *assignment, char *why, size_t why_len)
{
	const char *eq = strchr(assignment, '=');
	char name[MAX_NAME];
	size_t len;

	if (eq == NULL)
		return nb_why(why, why_len, -EINVAL, "%s: expected name=value",
			nb_quote(assignment).text);
	len = (size_t)(eq - assignment);
	if (len >= sizeof(name))
		return nb_why(why, why_len, -ENOENT, "%s: no mechanism or tunable of this name",
			nb_quote(assignment).text);
	memcpy(name, assignment, len);
	name[len] = '\0';
	for (int m = 0; m < NB_NR_MECHANISMS; m++)
		if (strcmp(nb_mechanism_table[m].name, name) == 0)
			return set_mechanism(c, m, eq + 1, why, why_len);
	for (int t = 0; t < NB_NR_TUNABLES; t++)
		if (strcmp(nb_tunable_table[t].name, name) == 0)
			return set_tunable(c, t, eq + 1, why, why_len);
	return nb_why(why, why_len, -ENOENT, "%s: no mechanism or tunable of this name", name);
}
