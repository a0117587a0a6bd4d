/* SPDX-License-Identifier: MIT */
#include "find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/why.h"
#include "inifile.h"
#include "nearest.h"

/* Called for each data directory in order; a return other than 0 ends the walk and is its result.
 */
typedef int (*on_dir)(void *ctx, const char *dir, size_t len);

static int each_in_env(on_dir visit, void *ctx)
{
	const char *dirs = getenv("NUMABAL_DATA");
	int err = 0;

	while (dirs && *dirs && !err) {
		const size_t len = strcspn(dirs, ":");

		err = len ? visit(ctx, dirs, len) : 0;
		dirs += len + (dirs[len] == ':');
	}
	return err;
}

static int each_dir(on_dir visit, void *ctx)
{
	int err = each_in_env(visit, ctx);

	if (!err)
		err = visit(ctx, NB_SOURCE_DATADIR, strlen(NB_SOURCE_DATADIR));
	if (!err)
		err = visit(ctx, NB_DATADIR, strlen(NB_DATADIR));
	return err;
}

struct search {
	const char *kind, *name;
	char *path;
};

enum { FOUND = 1 };

static int look_in(void *ctx, const char *dir, size_t len)
{
	struct search *s = ctx;

	if (asprintf(&s->path, "%.*s/%s/%s.ini", (int)len, dir, s->kind, s->name) < 0)
		return -ENOMEM;
	if (!access(s->path, F_OK))
		return FOUND;
	free(s->path);
	s->path = NULL;
	return 0;
}

int sim_is_preset_name(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || (text[n] && strchr("._+-", text[n])))
		n++;
	return n && !text[n] && n < SIM_NAME;
}

struct names {
	const char *kind;
	struct sim_listing *list;
	size_t nr;
};

static bool known(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcmp(n->list[i].name, name))
			return true;
	return false;
}

/* The name of a preset's file without ".ini", in name[SIM_NAME]; false when it is no such file. */
static bool preset_of_file(char *name, const char *file)
{
	const size_t len = strlen(file);

	if (len < 5 || len - 4 >= SIM_NAME || strcmp(file + len - 4, ".ini") || file[0] == '.')
		return false;
	memcpy(name, file, len - 4);
	name[len - 4] = '\0';
	return sim_is_preset_name(name);
}

static int add_name(struct names *n, const char *path, const char *name)
{
	struct sim_listing *list = realloc(n->list, (n->nr + 1) * sizeof(*list));
	struct sim_listing *l;

	if (!list)
		return -ENOMEM;
	n->list = list;
	l = &list[n->nr];
	*l = (struct sim_listing){0};
	memcpy(l->name, name, strlen(name) + 1);
	if (asprintf(&l->path, "%s/%s.ini", path, name) < 0)
		return -ENOMEM;
	n->nr++;
	return 0;
}

static int list_open_dir(struct names *n, DIR *dir, const char *path)
{
	char name[SIM_NAME];
	struct dirent *file;
	int err = 0;

	while (!err && (file = readdir(dir)) != NULL)
		if (preset_of_file(name, file->d_name) && !known(n, name))
			err = add_name(n, path, name);
	return err;
}

static int list_dir(void *ctx, const char *dir, size_t len)
{
	struct names *n = ctx;
	char *path;
	DIR *open;
	int err = 0;

	if (asprintf(&path, "%.*s/%s", (int)len, dir, n->kind) < 0)
		return -ENOMEM;
	open = opendir(path);
	if (open) {
		err = list_open_dir(n, open, path);
		closedir(open);
	}
	free(path);
	return err;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sim_listing *)a)->name, ((const struct sim_listing *)b)->name);
}

static int list_names(struct sim_listing **list, size_t *nr, const char *kind)
{
	struct names n = {.kind = kind};
	const int err = each_dir(list_dir, &n);

	if (err) {
		sim_listing_free(n.list, n.nr);
		return err;
	}
	if (n.nr)
		qsort(n.list, n.nr, sizeof(*n.list), by_name);
	*list = n.list;
	*nr = n.nr;
	return 0;
}

static void describe(struct sim_listing *l, const char *section)
{
	const struct sim_ini_section *s;
	const struct sim_ini_entry *e;
	struct sim_ini ini;
	char *text;
	size_t len;

	if (sim_file_read(&text, &len, l->path, SIM_INI_MAX_BYTES, l->description, SIM_TEXT))
		return;
	if (!sim_ini_parse(&ini, l->path, text, len, l->description, SIM_TEXT)) {
		s = sim_ini_section(&ini, section);
		e = s ? sim_ini_entry(s, "description") : NULL;
		snprintf(l->description, SIM_TEXT, "%s", e ? e->value : "");
		sim_ini_free(&ini);
	}
	free(text);
}

int sim_list_presets(struct sim_listing **list, size_t *nr, const char *kind, const char *section)
{
	const int err = list_names(list, nr, kind);

	if (err)
		return err;
	for (size_t i = 0; i < *nr; i++)
		describe(&(*list)[i], section);
	return 0;
}

void sim_listing_free(struct sim_listing *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(list[i].path);
	free(list);
}

static int not_found(
	const char *kind, const char *noun, const char *name, char *why, size_t why_len)
{
	struct sim_nearest near = {.name = name};
	struct sim_listing *list = NULL;
	char hint[SIM_HINT_LEN];
	size_t nr = 0;

	if (list_names(&list, &nr, kind))
		nr = 0;
	for (size_t i = 0; i < nr; i++)
		sim_nearest_try(&near, list[i].name);
	nb_why(why, why_len, -ENOENT, "no %s named '%s'%s (numabal %s lists them)", noun,
		nb_quote(name).text, sim_nearest_hint(&near, hint), kind);
	sim_listing_free(list, nr);
	return -ENOENT;
}

int sim_find_preset(char **path, const char *kind, const char *noun, const char *name, char *why,
	size_t why_len)
{
	struct search s = {.kind = kind, .name = name};
	int err = sim_is_preset_name(name) ? each_dir(look_in, &s) : 0;

	if (err < 0)
		return nb_why(why, why_len, err, "out of memory");
	if (err != FOUND)
		return not_found(kind, noun, name, why, why_len);
	*path = s.path;
	return 0;
}
