/* SPDX-License-Identifier: MIT */
/* Outputs appear whole or not at all, and every failed write is told. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "file.h"

enum { WHY = 200 };

static char dir[] = "/tmp/numabal-test-file-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int fill_hello(FILE *f, void *ctx)
{
	(void)ctx;
	fputs("hello\n", f);
	return 0;
}

static int fill_then_fail(FILE *f, void *ctx)
{
	fputs("half of it", f);
	return *(int *)ctx;
}

/* A careless writer: looks at nothing. */
static int fill_megabytes(FILE *f, void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 100000; i++)
		fprintf(f, "line %d of many lines\n", i);
	return 0;
}

static int fill_number(FILE *f, void *ctx)
{
	(void)ctx;
	fprintf(f, "%.1f", 0.5);
	return 0;
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void assert_content(const char *name, const char *text)
{
	char buf[64] = "";
	FILE *f = fopen(in_dir(name), "r");

	assert_non_null(f);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
	fclose(f);
	assert_string_equal(buf, text);
}

static int count_files(void)
{
	DIR *d = opendir(dir);
	int nr = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		nr += e->d_name[0] != '.' || strlen(e->d_name) > 2;
	closedir(d);
	return nr;
}

static int empty_dir(void **state)
{
	char command[600];

	(void)state;
	snprintf(command, sizeof(command), "chmod -R u+w '%s'; rm -rf '%s'/* '%s'/.numabal*", dir,
		dir, dir);
	return system(command);
}

static void test_new_and_old(void **state)
{
	struct stat st;
	char why[WHY];

	(void)state;
	assert_int_equal(report_write_file(in_dir("a"), fill_hello, NULL, why, sizeof(why)), 0);
	assert_content("a", "hello\n");
	write_text("b", "old and longer than the new one");
	assert_int_equal(chmod(in_dir("b"), 0640), 0);
	assert_int_equal(report_write_file(in_dir("b"), fill_hello, NULL, why, sizeof(why)), 0);
	assert_content("b", "hello\n");
	assert_int_equal(stat(in_dir("b"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(count_files(), 2);
}

static void test_new_file_obeys_umask(void **state)
{
	const mode_t before = umask(027);
	struct stat st;

	(void)state;
	assert_int_equal(report_write_file(in_dir("a"), fill_hello, NULL, NULL, 0), 0);
	umask(before);
	assert_int_equal(stat(in_dir("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_failed_fill_leaves_old(void **state)
{
	int err = -ENOMEM;
	char why[WHY];

	(void)state;
	write_text("a", "old");
	assert_int_equal(
		report_write_file(in_dir("a"), fill_then_fail, &err, why, sizeof(why)), -ENOMEM);
	assert_non_null(strstr(why, "Cannot allocate memory"));
	assert_content("a", "old");
	assert_int_equal(
		report_write_file(in_dir("new"), fill_then_fail, &err, why, sizeof(why)), -ENOMEM);
	assert_int_equal(access(in_dir("new"), F_OK), -1);
	assert_int_equal(count_files(), 1);
}

static void test_full_device(void **state)
{
	char why[WHY];

	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(
		report_write_file("/dev/full", fill_hello, NULL, why, sizeof(why)), -ENOSPC);
	assert_string_equal(why, "/dev/full: cannot write: No space left on device");
	assert_int_equal(
		report_write_file("/dev/full", fill_megabytes, NULL, why, sizeof(why)), -ENOSPC);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

/* stdout on a full disk, by every name it has. */
static void test_full_stdout(void **state)
{
	static const char *const names[] = {NULL, "-", "/dev/stdout"};
	int errs[3];
	char whys[3][WHY];
	int saved, full = open("/dev/full", O_WRONLY);

	(void)state;
	if (full < 0)
		skip();
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(full, STDOUT_FILENO);
	for (int i = 0; i < 3; i++)
		errs[i] = report_write_file(names[i], fill_hello, NULL, whys[i], WHY);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(full);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(errs[i], -ENOSPC);
		assert_string_equal(whys[i], "stdout: cannot write: No space left on device");
	}
}

/* A limit met in the middle of the file (as a quota or a full disk is): the old file stays. */
static void test_limit_in_the_middle(void **state)
{
	struct rlimit before, small;
	char why[WHY];
	int err;

	(void)state;
	write_text("a", "old");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){.rlim_cur = 100000, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	err = report_write_file(in_dir("a"), fill_megabytes, NULL, why, sizeof(why));
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(err, -EFBIG);
	assert_non_null(strstr(why, strerror(EFBIG)));
	assert_content("a", "old");
	assert_int_equal(count_files(), 1);
}

static void test_refused_places(void **state)
{
	static const struct {
		const char *name;
		int err;
	} places[] = {{"no/such/dir", -ENOENT}, {".", -EISDIR}, {"file/below", -ENOTDIR}};
	char why[WHY], path[5000];

	(void)state;
	write_text("file", "x");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_int_equal(report_write_file(in_dir(places[i].name), fill_hello, NULL, why,
					 sizeof(why)),
			places[i].err);
		assert_non_null(strstr(why, places[i].name));
		assert_non_null(strstr(why, strerror(-places[i].err)));
	}
	assert_int_equal(report_write_file("", fill_hello, NULL, why, sizeof(why)), -ENOENT);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = 0;
	assert_int_equal(
		report_write_file(path, fill_hello, NULL, why, sizeof(why)), -ENAMETOOLONG);
	path[300] = 0;
	assert_int_equal(
		report_write_file(path, fill_hello, NULL, why, sizeof(why)), -ENAMETOOLONG);
	assert_int_equal(count_files(), 1);
}

/* root may write everywhere: be somebody else meanwhile */
enum { NOBODY = 65534 };

static void test_unwritable(void **state)
{
	const uid_t user = geteuid() ? geteuid() : NOBODY;
	int file_err, dir_err;
	char why[WHY];

	(void)state;
	write_text("a", "old");
	assert_int_equal(chown(in_dir("a"), user, (gid_t)-1), 0);
	assert_int_equal(chmod(in_dir("a"), 0444), 0);
	assert_int_equal(chown(dir, user, (gid_t)-1), 0);
	assert_int_equal(seteuid(user), 0);
	file_err = report_write_file(in_dir("a"), fill_hello, NULL, why, sizeof(why));
	chmod(dir, 0555);
	dir_err = report_write_file(in_dir("b"), fill_hello, NULL, NULL, 0);
	chmod(dir, 0755);
	assert_int_equal(seteuid(getuid()), 0);
	assert_int_equal(file_err, -EACCES);
	assert_non_null(strstr(why, strerror(EACCES)));
	assert_int_equal(dir_err, -EACCES);
	assert_content("a", "old");
	assert_int_equal(count_files(), 1);
}

static void test_links(void **state)
{
	struct stat st;

	(void)state;
	write_text("target", "old");
	assert_int_equal(symlink("target", in_dir("link")), 0);
	assert_int_equal(symlink("link", in_dir("second")), 0);
	assert_int_equal(symlink("not-there-yet", in_dir("dangling")), 0);
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	assert_int_equal(report_write_file(in_dir("second"), fill_hello, NULL, NULL, 0), 0);
	assert_content("target", "hello\n");
	assert_int_equal(lstat(in_dir("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(report_write_file(in_dir("dangling"), fill_hello, NULL, NULL, 0), 0);
	assert_content("not-there-yet", "hello\n");
	assert_int_equal(report_write_file(in_dir("loop"), fill_hello, NULL, NULL, 0), -ELOOP);
}

static void test_pipe(void **state)
{
	char buf[16] = "";
	int fd;
	struct stat st;

	(void)state;
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	fd = open(in_dir("fifo"), O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(report_write_file(in_dir("fifo"), fill_hello, NULL, NULL, 0), 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), 6);
	assert_string_equal(buf, "hello\n");
	close(fd);
	assert_int_equal(stat(in_dir("fifo"), &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

/* An open descriptor by its /dev name is written where it stands, not replaced. */
static void test_descriptor(void **state)
{
	char path[64];
	int fd;

	(void)state;
	write_text("a", "before ");
	fd = open(in_dir("a"), O_WRONLY | O_APPEND);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_int_equal(report_write_file(path, fill_hello, NULL, NULL, 0), 0);
	close(fd);
	assert_content("a", "before hello\n");
}

static void test_steps(void **state)
{
	struct report_out *out;
	char why[WHY];

	(void)state;
	write_text("a", "old");
	assert_int_equal(report_out_open(&out, in_dir("a"), why, sizeof(why)), 0);
	fputs("new", report_out_stream(out));
	fflush(report_out_stream(out));
	assert_content("a", "old");
	assert_int_equal(report_out_commit(out, why, sizeof(why)), 0);
	assert_content("a", "new");
	assert_int_equal(report_out_open(&out, in_dir("a"), why, sizeof(why)), 0);
	fputs("never seen", report_out_stream(out));
	report_out_abort(out);
	report_out_abort(NULL);
	assert_content("a", "new");
	assert_int_equal(count_files(), 1);
}

/* Numbers do not depend on the caller's locale. */
static void test_locale(void **state)
{
	static const char *const with_comma[] = {
		"de_DE.UTF-8", "fr_FR.UTF-8", "pl_PL.UTF-8", "ru_RU.UTF-8"};
	bool found = false;

	(void)state;
	for (size_t i = 0; !found && i < sizeof(with_comma) / sizeof(with_comma[0]); i++)
		found = setlocale(LC_ALL, with_comma[i]) != NULL;
	if (!found)
		skip(); /* no such locale is installed */
	assert_int_equal(report_write_file(in_dir("a"), fill_number, NULL, NULL, 0), 0);
	setlocale(LC_ALL, "C");
	assert_content("a", "0.5");
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	empty_dir(state);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_new_and_old, empty_dir),
		cmocka_unit_test_teardown(test_new_file_obeys_umask, empty_dir),
		cmocka_unit_test_teardown(test_failed_fill_leaves_old, empty_dir),
		cmocka_unit_test_teardown(test_full_device, empty_dir),
		cmocka_unit_test_teardown(test_full_stdout, empty_dir),
		cmocka_unit_test_teardown(test_limit_in_the_middle, empty_dir),
		cmocka_unit_test_teardown(test_refused_places, empty_dir),
		cmocka_unit_test_teardown(test_unwritable, empty_dir),
		cmocka_unit_test_teardown(test_links, empty_dir),
		cmocka_unit_test_teardown(test_pipe, empty_dir),
		cmocka_unit_test_teardown(test_descriptor, empty_dir),
		cmocka_unit_test_teardown(test_steps, empty_dir),
		cmocka_unit_test_teardown(test_locale, empty_dir),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
