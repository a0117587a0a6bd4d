/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "inifile.h"
#include "nearest.h"

static char why[512];

static int parse_bytes(struct sim_ini *ini, const char *text, size_t len)
{
	why[0] = '\0';
	return sim_ini_parse(ini, "f.ini", text, len, why, sizeof(why));
}

static void assert_parses(struct sim_ini *ini, const char *text)
{
	if (parse_bytes(ini, text, strlen(text)))
		fail_msg("refused: %s", why);
}

/* The text is refused with exactly this line. */
static void assert_refused(const char *text, int err, const char *line)
{
	struct sim_ini ini;

	assert_int_equal(parse_bytes(&ini, text, strlen(text)), err);
	assert_string_equal(why, line);
	assert_null(ini.sections);
}

static void lines_sections_and_comments(void **state)
{
	struct sim_ini ini;
	const struct sim_ini_section *b;

	(void)state;
	assert_parses(&ini, "# first\n"
			    "[a]\n"
			    "x = 1 ; one\n"
			    "\n"
			    "; [not] a section\n"
			    "y=2;3\n"
			    "[b]   ; empty\r\n"
			    "[c d]\n"
			    "z =\n"
			    "x = again\n");
	assert_int_equal(ini.nr_sections, 3);
	assert_string_equal(ini.sections[0].name, "a");
	assert_int_equal(ini.sections[0].line, 2);
	assert_int_equal(ini.sections[0].nr_entries, 2);
	assert_string_equal(ini.sections[0].entries[0].value, "1");
	assert_int_equal(ini.sections[0].entries[0].line, 3);
	assert_string_equal(ini.sections[0].entries[1].value, "2;3");
	assert_int_equal(ini.sections[0].entries[1].line, 6);
	b = sim_ini_section(&ini, "b");
	assert_non_null(b);
	assert_int_equal(b->nr_entries, 0);
	assert_string_equal(sim_ini_entry(sim_ini_section(&ini, "c d"), "z")->value, "");
	assert_null(sim_ini_section(&ini, "d"));
	assert_null(sim_ini_entry(b, "z"));
	sim_ini_free(&ini);
}

static void values_continue_on_indented_lines(void **state)
{
	struct sim_ini ini;

	(void)state;
	assert_parses(&ini,
		"[a]\n  first = 1\nlong = one ; and a comment\n\ttwo = 2\n\n   three\nnext = 4\n");
	assert_int_equal(ini.sections[0].nr_entries, 3);
	assert_string_equal(ini.sections[0].entries[0].value, "1");
	assert_string_equal(ini.sections[0].entries[1].value, "one two = 2 three");
	assert_int_equal(ini.sections[0].entries[1].line, 3);
	assert_int_equal(ini.sections[0].entries[2].line, 7);
	sim_ini_free(&ini);
}

/* A continuation must not reach over a section's header. */
static void indented_first_key_is_a_key(void **state)
{
	struct sim_ini ini;

	(void)state;
	assert_parses(&ini, "[a]\nx = 1\n[b]\n y = 2\n");
	assert_string_equal(ini.sections[0].entries[0].value, "1");
	assert_string_equal(ini.sections[1].entries[0].key, "y");
	sim_ini_free(&ini);
}

static void byte_order_mark_and_missing_newline(void **state)
{
	struct sim_ini ini;

	(void)state;
	assert_parses(&ini, "\xef\xbb\xbf[a]\nx = 1");
	assert_string_equal(ini.sections[0].entries[0].value, "1");
	sim_ini_free(&ini);
}

static void empty_files_have_no_sections(void **state)
{
	struct sim_ini ini;

	(void)state;
	assert_parses(&ini, "");
	assert_int_equal(ini.nr_sections, 0);
	sim_ini_free(&ini);
	assert_parses(&ini, "\n\n# nothing\n");
	assert_int_equal(ini.nr_sections, 0);
	sim_ini_free(&ini);
}

static void malformed_lines_are_refused(void **state)
{
	(void)state;
	assert_refused("[a]\n\nnonsense\n", -EINVAL, "f.ini:3: expected [section] or key = value");
	assert_refused("x = 1\n[a]\n", -EINVAL, "f.ini:1: 'x' comes before any [section]");
	assert_refused("[a]\n[b\n", -EINVAL, "f.ini:2: expected [section] and nothing after it");
	assert_refused("[a] x = 1\n", -EINVAL, "f.ini:1: expected [section] and nothing after it");
	assert_refused("[]\n", -EINVAL, "f.ini:1: section name of 0 bytes, expected 1 to 48");
	assert_refused("[a]\nx=1\n [b]\n", -EINVAL,
		"f.ini:3: expected [section] at the beginning of the line");
	assert_refused(
		"[a]\n[b]\n[a]\n", -EINVAL, "f.ini:3: section [a] again, it began at line 1");
	assert_refused(
		"[b\x01]\n[b\x01]\n", -EINVAL, "f.ini:2: section [b?] again, it began at line 1");
}

/* The first complaint counts, whichever side found it. */
static void the_first_error_is_told(void **state)
{
	(void)state;
	assert_refused(
		"[a]\nbad\n[a]\n", -EINVAL, "f.ini:3: section [a] again, it began at line 1");
	assert_refused(
		"[a]\n[a]\nbad\n", -EINVAL, "f.ini:2: section [a] again, it began at line 1");
}

static void nul_bytes_are_refused(void **state)
{
	struct sim_ini ini;

	(void)state;
	assert_int_equal(parse_bytes(&ini, "[a]\nx = \0 1\n", 12), -EINVAL);
	assert_string_equal(why, "f.ini:2: a NUL byte, expected text");
}

/* inih would cut these and go on with the rest. */
static void long_lines_and_names_are_refused(void **state)
{
	struct sim_ini ini;
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), "[a]\nx = %0300d\n", 1);
	assert_int_equal(parse_bytes(&ini, text, strlen(text)), -EINVAL);
	assert_non_null(strstr(why, "f.ini:2: 304 bytes before the comment, expected at most "));
	snprintf(text, sizeof(text), "[%049d]\n", 1);
	assert_int_equal(parse_bytes(&ini, text, strlen(text)), -EINVAL);
	assert_string_equal(why, "f.ini:1: section name of 49 bytes, expected 1 to 48");
	snprintf(text, sizeof(text), "[%048d]\nx = 1 ; %0500d\n# %0400d\n", 1, 2, 3);
	assert_parses(&ini, text);
	assert_string_equal(ini.sections[0].entries[0].value, "1");
	assert_int_equal(strlen(ini.sections[0].name), 48);
	sim_ini_free(&ini);
}

/* The longest line that is taken arrives whole. */
static void the_longest_line_is_not_cut(void **state)
{
	struct sim_ini ini;
	char text[512];
	int length = 100;

	(void)state;
	for (;; length++) {
		snprintf(text, sizeof(text), "[a]\nx=%0*d\n", length, 7);
		if (parse_bytes(&ini, text, strlen(text)))
			break;
		assert_int_equal(strlen(ini.sections[0].entries[0].value), length);
		assert_int_equal(ini.sections[0].nr_entries, 1);
		sim_ini_free(&ini);
	}
	assert_true(length > 150);
}

static void sizes_are_limited(void **state)
{
	struct sim_ini ini;
	const size_t len = SIM_INI_MAX_BYTES + 1;
	char *text = malloc(len);
	size_t n = 0;

	(void)state;
	memset(text, '\n', len);
	assert_int_equal(parse_bytes(&ini, text, len), -E2BIG);
	assert_int_equal(parse_bytes(&ini, text, len - 1), 0);
	sim_ini_free(&ini);
	for (int i = 0; i < SIM_INI_MAX_SECTIONS + 1; i++)
		n += (size_t)sprintf(text + n, "[%d]\n", i);
	assert_int_equal(parse_bytes(&ini, text, n), -E2BIG);
	assert_string_equal(why, "f.ini:4097: more than 4096 sections");
	free(text);
}

/* Joined values would otherwise be copied once for each of many lines. */
static void joined_values_are_limited(void **state)
{
	struct sim_ini ini;
	char *text = malloc(SIM_INI_MAX_BYTES);
	size_t n = (size_t)sprintf(text, "[a]\nx = 1\n");

	(void)state;
	while (n + 4 < SIM_INI_MAX_BYTES)
		n += (size_t)sprintf(text + n, " y\n");
	assert_int_equal(parse_bytes(&ini, text, n), -E2BIG);
	assert_string_equal(why, "f.ini:2050: a value of more than 4096 bytes");
	free(text);
}

static int check(const char *text)
{
	static const struct sim_ini_key keys[] = {{.name = "loops"}, {.name = "size"},
		{.name = "phase", .repeats = true},
		{.name = "var", .repeats = true, .prefix = true}};
	struct sim_ini ini;
	int err;

	assert_parses(&ini, text);
	err = sim_ini_check_keys(&ini, &ini.sections[0], keys, 4, why, sizeof(why));
	sim_ini_free(&ini);
	return err;
}

static void keys_are_checked(void **state)
{
	(void)state;
	assert_int_equal(check("[a]\nphase=1\nsize=2\nphase=3\nvar x=1\nvar y=2\n"), 0);
	assert_int_equal(check("[a]\nlops=1\n"), -EINVAL);
	assert_string_equal(why, "f.ini:2: [a] has no key 'lops'; did you mean 'loops'?");
	assert_int_equal(check("[a]\nbananas=1\n"), -EINVAL);
	assert_string_equal(why, "f.ini:2: [a] has no key 'bananas'");
	assert_int_equal(check("[a]\nsize=1\nloops=2\nsize=3\n"), -EINVAL);
	assert_string_equal(why, "f.ini:4: 'size' again in [a]");
	assert_int_equal(check("[a]\nvar=1\n"), -EINVAL);
	assert_int_equal(check("[a]\nvarx=1\n"), -EINVAL);
}

static void nearest_names(void **state)
{
	struct sim_nearest n = {.name = "bandwith"};
	char hint[SIM_HINT_LEN];

	(void)state;
	sim_nearest_try(&n, "latency");
	assert_string_equal(sim_nearest_hint(&n, hint), "");
	sim_nearest_try(&n, "bandwidth");
	sim_nearest_try(&n, "bandits");
	assert_string_equal(sim_nearest_hint(&n, hint), "; did you mean 'bandwidth'?");
	n = (struct sim_nearest){.name = "x"};
	sim_nearest_try(&n, "y");
	assert_string_equal(sim_nearest_hint(&n, hint), "");
}

/* ---- files ---- */

static char dir[] = "/tmp/numabal-test-ini-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int read_path(const char *path, size_t max)
{
	char *text = NULL;
	size_t len;
	const int err = sim_file_read(&text, &len, path, max, why, sizeof(why));

	if (!err)
		free(text);
	return err;
}

static void files_that_are_none(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(read_path(dir, 100), -EISDIR);
	assert_int_equal(read_path(path, 100), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_path(path, 100), -EINVAL); /* and does not wait for a writer */
	unlink(path);
	assert_int_equal(read_path("/dev/zero", 100), -EINVAL);
	assert_string_equal(why, "/dev/zero: not a regular file");
}

static void files_have_a_largest_size(void **state)
{
	char path[128];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345", 5), 5);
	assert_int_equal(read_path(path, 5), 0);
	assert_int_equal(read_path(path, 4), -E2BIG);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* sparse: must not be read whole */
	assert_int_equal(read_path(path, 100), -E2BIG);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_sections_and_comments),
		cmocka_unit_test(values_continue_on_indented_lines),
		cmocka_unit_test(indented_first_key_is_a_key),
		cmocka_unit_test(byte_order_mark_and_missing_newline),
		cmocka_unit_test(empty_files_have_no_sections),
		cmocka_unit_test(malformed_lines_are_refused),
		cmocka_unit_test(the_first_error_is_told),
		cmocka_unit_test(nul_bytes_are_refused),
		cmocka_unit_test(long_lines_and_names_are_refused),
		cmocka_unit_test(the_longest_line_is_not_cut),
		cmocka_unit_test(sizes_are_limited),
		cmocka_unit_test(joined_values_are_limited),
		cmocka_unit_test(keys_are_checked),
		cmocka_unit_test(nearest_names),
		cmocka_unit_test(files_that_are_none),
		cmocka_unit_test(files_have_a_largest_size),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
