/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

char why[512];
struct sim_model four;
struct sim_model odd;

static char dir[] = "/tmp/numabal-test-sim-XXXXXX";

int fixture_set_up(void **state)
{
	(void)state;
	unsetenv("NUMABAL_DATA");
	make_model(&four, "4 nodes x 4 cpus x 4G");
	make_model(&odd, "1 node x 2 cpus + 1 node x 2 cpus x 16G + 1 node x 8G at 40");
	return mkdtemp(dir) ? 0 : -1;
}

int fixture_tear_down(void **state)
{
	(void)state;
	sim_model_free(&four);
	sim_model_free(&odd);
	return rmdir(dir); /* a test that leaves files behind fails here */
}

const char *test_dir(void)
{
	return dir;
}

const char *in_dir(const char *name)
{
	static char paths[4][160];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

void put_file(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

char *read_doc(const char *name)
{
	const char *root = getenv("NUMABAL_SOURCE");
	static char path[512], text[1 << 17];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root ? root : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s can't be read (NUMABAL_SOURCE)", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

char *read_example(const char *name)
{
	char *begin = strstr(read_doc(name), "```ini\n"), *end;

	assert_non_null(begin);
	begin += strlen("```ini\n");
	end = strstr(begin, "```");
	assert_non_null(end);
	*end = '\0';
	return begin;
}

void make_model(struct sim_model *m, const char *topology)
{
	char text[256];

	snprintf(text, sizeof(text), "[machine]\nname = m\ntopology = %s\n", topology);
	if (sim_model_parse(m, "m.ini", text, strlen(text), why, sizeof(why)))
		fail_msg("%s", why);
}

int resolve(
	struct sim_load *load, const char *text, const char *overrides, const struct sim_model *m)
{
	struct sim_job *job;
	int err;

	why[0] = '\0';
	err = sim_job_parse(&job, "dir/j.ini", text, strlen(text), overrides, why, sizeof(why));
	if (err)
		return err;
	err = sim_load_resolve(load, job, m, why, sizeof(why));
	sim_job_free(job);
	return err;
}

void assert_resolves(struct sim_load *load, const char *text)
{
	if (resolve(load, text, NULL, &four))
		fail_msg("refused: %s", why);
	if (sim_load_check(load, &four))
		fail_msg("unsound: %s", sim_load_check(load, &four));
}

void assert_job_refused(const char *text, int err, const char *line)
{
	struct sim_load load;

	assert_int_equal(resolve(&load, text, NULL, &four), err);
	assert_string_equal(why, line);
	assert_false(strchr(why, '\n'));
}
