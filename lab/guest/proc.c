/* SPDX-License-Identifier: MIT */
/* See proc.h. */
#include "proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const proc_counters[] = {"pgfault", "numa_pte_updates", "numa_huge_pte_updates",
	"numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated", "pgmigrate_success",
	"pgmigrate_fail", "pgpromote_success", "pgpromote_candidate", "pgdemote_kswapd",
	"pgdemote_direct", "thp_migration_success", "thp_migration_fail", "thp_migration_split",
	"thp_fault_alloc", "thp_fault_fallback", "thp_split_page", "thp_split_pmd",
	"thp_collapse_alloc"};
const size_t proc_nr_counters = sizeof(proc_counters) / sizeof(proc_counters[0]);

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return *at ? at + 1 : at;
}

static bool line_begins(const char *line, const char *name)
{
	const size_t len = strlen(name);

	return !strncmp(line, name, len) && line[len] == ' ';
}

void proc_parse_vmstat(const char *text, uint64_t *values)
{
	memset(values, 0, proc_nr_counters * sizeof(*values));
	for (const char *line = text; *line; line = next_line(line))
		for (size_t i = 0; i < proc_nr_counters; i++)
			if (line_begins(line, proc_counters[i]))
				values[i] = strtoull(line + strlen(proc_counters[i]), NULL, 10);
}

/* Pages of one mapping are counted in its own page size, which stands at the end of the line. */
static uint64_t small_pages_of(const char *line)
{
	static const char key[] = "kernelpagesize_kB=";
	const size_t len = strcspn(line, "\n");
	const char *at = memmem(line, len, key, sizeof(key) - 1);
	const uint64_t kib = at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 4;

	return kib >= 4 ? kib / 4 : 1;
}

static void add_mapping(const char *line, uint64_t *pages, unsigned int nr_nodes)
{
	const uint64_t scale = small_pages_of(line);
	const char *end = line + strcspn(line, "\n");

	for (const char *at = line; at < end; at++) {
		char *after;
		unsigned long node;

		if (*at != 'N' || at == line || at[-1] != ' ' || !isdigit((unsigned char)at[1]))
			continue;
		node = strtoul(at + 1, &after, 10);
		if (*after == '=' && isdigit((unsigned char)after[1]) && node < nr_nodes)
			pages[node] += strtoull(after + 1, NULL, 10) * scale;
	}
}

void proc_parse_numa_maps(const char *text, uint64_t *pages, unsigned int nr_nodes)
{
	memset(pages, 0, nr_nodes * sizeof(*pages));
	for (const char *line = text; *line; line = next_line(line))
		add_mapping(line, pages, nr_nodes);
}

static const char *value_of(const char *text, const char *name)
{
	for (const char *line = text; *line; line = next_line(line)) {
		const char *colon = line_begins(line, name) ? strchr(line, ':') : NULL;

		if (colon)
			return colon + 1;
	}
	return NULL;
}

static int64_t integer_of(const char *text, const char *name)
{
	const char *value = value_of(text, name);

	return value ? strtoll(value, NULL, 10) : 0;
}

void proc_parse_sched(const char *text, struct proc_sched *out)
{
	const char *runtime = value_of(text, "se.sum_exec_runtime");

	*out = (struct proc_sched){
		.runtime_ms = runtime ? strtod(runtime, NULL) : 0,
		.preferred_nid = integer_of(text, "numa_preferred_nid"),
		.migrated = integer_of(text, "numa_pages_migrated"),
		.total_faults = integer_of(text, "total_numa_faults"),
		.mm_scan_seq = integer_of(text, "mm->numa_scan_seq"),
	};
}

unsigned int proc_list_end(const char *text)
{
	unsigned long highest = 0;
	bool any = false;

	while (isdigit((unsigned char)*text)) {
		char *after;
		const unsigned long id = strtoul(text, &after, 10);

		if (id >= highest)
			highest = id;
		any = true;
		text = *after == '-' || *after == ',' ? after + 1 : after;
	}
	return any ? (unsigned int)highest + 1 : 0;
}

ssize_t proc_read(const char *path, char **buffer, size_t *size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0) {
		if (*size - have < 2) {
			const size_t larger = *size ? 2 * *size : 1 << 16;
			char *grown = realloc(*buffer, larger);

			if (!grown) {
				close(fd);
				return -ENOMEM;
			}
			*buffer = grown;
			*size = larger;
		}
		n = read(fd, *buffer + have, *size - have - 1);
		if (n > 0)
			have += (size_t)n;
	}
	if (n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return n;
	(*buffer)[have] = '\0';
	return (ssize_t)have;
}
