/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../engine/why.h"

struct report_out {
	FILE *stream;
	int fd;
	int err;	     /* the first failed write, -errno */
	char name[PATH_MAX]; /* for messages */
	char path[PATH_MAX]; /* final place, links followed; "" = written directly */
	char temp[PATH_MAX]; /* beside it; "" = none */
};

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

/* stdio forgets why an early write failed; this remembers. */
static ssize_t cookie_write(void *cookie, const char *data, size_t len)
{
	struct report_out *out = cookie;
	size_t done = 0;

	while (done < len) {
		const ssize_t n = write(out->fd, data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			out->err = out->err ? out->err : -errno;
			return 0;
		}
		done += (size_t)n;
	}
	return (ssize_t)len;
}

static int open_stream(struct report_out *out)
{
	out->stream = fopencookie(out, "w", (cookie_io_functions_t){.write = cookie_write});
	return out->stream ? 0 : -ENOMEM;
}

/* The directory of `path` with its slash, or "" for the working directory. */
static int dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path + 1) : 0;
}

/* Replace path by what the link there points to. 1 = followed, 0 = no link, or -errno. */
static int follow_link(char path[PATH_MAX])
{
	char target[PATH_MAX], joined[PATH_MAX];
	const ssize_t n = readlink(path, target, sizeof(target) - 1);
	int len;

	if (n < 0)
		return errno == EINVAL || errno == ENOENT ? 0 : -errno;
	target[n] = 0;
	if (target[0] == '/')
		len = snprintf(joined, sizeof(joined), "%s", target);
	else
		len = snprintf(joined, sizeof(joined), "%.*s%s", dir_len(path), path, target);
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, joined, (size_t)len + 1);
	return 1;
}

static int follow_links(char path[PATH_MAX])
{
	enum { MAX_LINKS = 40 };

	for (int i = 0; i < MAX_LINKS; i++) {
		const int followed = follow_link(path);

		if (followed <= 0)
			return followed;
	}
	return -ELOOP;
}

static int open_temp(struct report_out *out, mode_t mode)
{
	enum { MAX_TRIES = 1000 };

	for (int i = 0; i < MAX_TRIES; i++) {
		const int len = snprintf(out->temp, sizeof(out->temp), "%.*s.numabal-%d-%d.tmp",
			dir_len(out->path), out->path, (int)getpid(), i);

		if (len >= PATH_MAX)
			return -ENAMETOOLONG;
		out->fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (out->fd >= 0 || errno != EEXIST)
			return out->fd < 0 ? -errno : 0;
	}
	return -EEXIST;
}

/* A file that may not be written must not be replaced either, although rename would do it. */
static int open_beside(struct report_out *out, const struct stat *old)
{
	int err = follow_links(out->path);

	if (!err && old && faccessat(AT_FDCWD, out->path, W_OK, AT_EACCESS))
		err = -errno;
	if (!err)
		err = open_temp(out, 0666);
	if (err)
		out->temp[0] = 0;
	else if (old && fchmod(out->fd, old->st_mode & 07777))
		err = -errno;
	return err;
}

static int open_directly(struct report_out *out)
{
	out->fd = open(out->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
	out->path[0] = 0;
	return out->fd < 0 ? -errno : 0;
}

/* /dev/fd/N and /proc/PID/fd/N look like files but stand for descriptors that are open already. */
static bool is_descriptor(const char *path)
{
	return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6) ||
	       !strcmp(path, "/dev/stderr");
}

static int open_path(struct report_out *out)
{
	struct stat st;

	if (!out->path[0])
		return -ENOENT;
	if (stat(out->path, &st))
		return errno == ENOENT ? open_beside(out, NULL) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || is_descriptor(out->path))
		return open_directly(out);
	return open_beside(out, &st);
}

static int open_stdout(struct report_out *out)
{
	fflush(stdout);
	out->path[0] = 0;
	out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	return out->fd < 0 ? -errno : 0;
}

int report_out_open(struct report_out **out, const char *path, char *why, size_t why_len)
{
	const char *name = is_stdout(path) ? "stdout" : path;
	struct report_out *o;
	int err;

	*out = NULL;
	if (strlen(name) >= PATH_MAX)
		return nb_why(why, why_len, -ENAMETOOLONG, "%s: %s", nb_quote(name).text,
			strerror(ENAMETOOLONG));
	o = calloc(1, sizeof(*o));
	if (!o)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", nb_quote(name).text);
	o->fd = -1;
	strcpy(o->name, name);
	strcpy(o->path, name);
	err = is_stdout(path) ? open_stdout(o) : open_path(o);
	if (!err)
		err = open_stream(o);
	if (err) {
		report_out_abort(o);
		return nb_why(why, why_len, err, "%s: cannot write: %s", nb_quote(name).text,
			strerror(-err));
	}
	*out = o;
	return 0;
}

FILE *report_out_stream(struct report_out *out)
{
	return out->stream;
}

static void close_stream(struct report_out *out)
{
	if (out->stream && fclose(out->stream) && !out->err)
		out->err = -errno;
	out->stream = NULL;
}

/* Pipes and terminals have nothing to sync and say so; an error of a file system is an error. */
static int sync_and_close(struct report_out *out)
{
	int err = 0;

	if (out->temp[0] && fsync(out->fd) && errno != EINVAL && errno != EROFS)
		err = -errno;
	if (close(out->fd) && !err && errno != EINTR)
		err = -errno;
	out->fd = -1;
	return err;
}

int report_out_commit(struct report_out *out, char *why, size_t why_len)
{
	int err, later;

	close_stream(out);
	err = out->err;
	later = sync_and_close(out);
	err = err ? err : later;
	if (!err && out->temp[0] && rename(out->temp, out->path))
		err = -errno;
	if (!err)
		out->temp[0] = 0;
	else
		nb_why(why, why_len, err, "%s: cannot write: %s", nb_quote(out->name).text,
			strerror(-err));
	report_out_abort(out);
	return err;
}

void report_out_abort(struct report_out *out)
{
	if (!out)
		return;
	close_stream(out);
	if (out->fd >= 0)
		close(out->fd);
	if (out->temp[0])
		unlink(out->temp);
	free(out);
}

/* Run fill under the "C" locale; without memory for that, under the one there is. */
static int fill_in_c_locale(int (*fill)(FILE *f, void *ctx), FILE *f, void *ctx)
{
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	const locale_t before = uselocale(c);
	const int err = fill(f, ctx);

	uselocale(before);
	if (c)
		freelocale(c);
	return err;
}

int report_write_file(
	const char *path, int (*fill)(FILE *f, void *ctx), void *ctx, char *why, size_t why_len)
{
	struct report_out *out;
	int err;

	if (why && why_len)
		why[0] = 0;
	err = report_out_open(&out, path, why, why_len);
	if (err)
		return err;
	err = fill_in_c_locale(fill, out->stream, ctx);
	fflush(out->stream);
	if (!err || out->err)
		return report_out_commit(out, why, why_len);
	if (why && why_len && !why[0])
		nb_why(why, why_len, err, "%s: cannot write: %s", nb_quote(out->name).text,
			strerror(-err));
	report_out_abort(out);
	return err;
}
