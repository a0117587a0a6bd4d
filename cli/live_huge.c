/* SPDX-License-Identifier: MIT */
#include "live_huge.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const char ours[] = "/memfd:" NB_BACKING_NAME " (deleted)\n";

/* START-END rights offset device inode path */
static bool begins_mapping(const char *line)
{
	uint64_t start, end;

	return sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2;
}

static bool is_ours(const char *line)
{
	const size_t len = strlen(line), tail = sizeof(ours) - 1;

	return len > tail && strcmp(line + len - tail, ours) == 0 && line[len - tail - 1] == ' ';
}

void live_huge_add(struct live_huge *h, FILE *smaps)
{
	char line[512];
	bool counts = false;
	uint64_t kib;

	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (begins_mapping(line))
			counts = is_ours(line);
		else if (counts && sscanf(line, "Rss: %" SCNu64 " kB", &kib) == 1)
			h->mapped_bytes += kib << 10;
		else if (counts && sscanf(line, "ShmemPmdMapped: %" SCNu64 " kB", &kib) == 1)
			h->huge_bytes += kib << 10;
	}
}

static void look_at(struct live_huge *h, uint32_t pid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/smaps", pid);
	f = fopen(path, "re");
	if (f == NULL) {
		h->unread++;
		return;
	}
	live_huge_add(h, f);
	fclose(f);
	h->processes++;
}

void live_huge_look(struct live_huge *h, const struct nb_session *s)
{
	memset(h, 0, sizeof(*h));
	for (int i = 0; i < NB_SESSION_SLOTS; i++) {
		const uint32_t pid = atomic_load(&s->slot[i].pid);

		if (pid != 0 && atomic_load(&s->slot[i].stats.managed_bytes) > 0)
			look_at(h, pid);
	}
}
