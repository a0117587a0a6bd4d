/* SPDX-License-Identifier: MIT */
#include "thp.h"
#include <stdio.h>
#include <string.h>

/* The word in brackets: always [madvise] never. */
static void chosen(const char *dir, const char *name, char *word, size_t len)
{
	char path[4096], text[256];
	const char *from, *to;
	size_t n;
	FILE *f;

	word[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	from = strchr(text, '[');
	to = from != NULL ? strchr(from, ']') : NULL;
	if (to != NULL && (size_t)(to - from) <= len)
		snprintf(word, len, "%.*s", (int)(to - from - 1), from + 1);
}

static bool is(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

void nb_thp_read(const char *dir, struct nb_thp *t)
{
	chosen(dir, "enabled", t->enabled, sizeof(t->enabled));
	chosen(dir, "shmem_enabled", t->shmem, sizeof(t->shmem));
	t->loss = NB_THP_KEPT;
	if (t->shmem[0] == '\0' || is(t->shmem, "always", "within_size", "force"))
		return;
	if (strcmp(t->enabled, "always") == 0)
		t->loss = NB_THP_LOST_ALL;
	else if (strcmp(t->enabled, "madvise") == 0 && strcmp(t->shmem, "advise") != 0)
		t->loss = NB_THP_LOST_ADVISED;
}
