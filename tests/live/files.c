/* SPDX-License-Identifier: MIT */
#include "files.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1024 };

struct sum {
	long kib;
	int nr;
	ino_t seen[MOST];
};

static bool is_new(struct sum *s, ino_t inode)
{
	for (int i = 0; i < s->nr; i++)
		if (s->seen[i] == inode)
			return false;
	if (s->nr == MOST)
		return false;
	s->seen[s->nr++] = inode;
	return true;
}

static void add_file(struct sum *s, const char *path)
{
	char to[64] = "";
	struct stat st;

	if (readlink(path, to, sizeof(to) - 1) < 0 || strcmp(to, "/memfd:numabal (deleted)") != 0)
		return;
	if (stat(path, &st) == 0 && is_new(s, st.st_ino))
		s->kib += (long)st.st_blocks / 2;
}

static void add_all(struct sum *s, const char *dir, const char *deeper);

static void add_entry(struct sum *s, const char *dir, const char *name, const char *deeper)
{
	char path[512];

	snprintf(path, sizeof(path), "%.200s/%.40s%s", dir, name, deeper != NULL ? deeper : "");
	if (deeper != NULL)
		add_all(s, path, NULL);
	else
		add_file(s, path);
}

static void add_all(struct sum *s, const char *dir, const char *deeper)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			add_entry(s, dir, e->d_name, deeper);
	if (d != NULL)
		closedir(d);
}

long files_kib(void)
{
	static struct sum s;

	s.kib = 0;
	s.nr = 0;
	add_all(&s, "/proc/self/task", "/fd");
	return s.nr > 0 ? s.kib : -1;
}
