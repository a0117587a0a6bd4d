/* SPDX-License-Identifier: MIT */
/* read: find out what a source is, and hand it to the reader of its kind. */
#include "sysfs.h"
#include "text.h"

#include "../engine/why.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kind_names[] = {
	[TOPO_HOST] = "host",
	[TOPO_SYSFS] = "sysfs",
	[TOPO_NUMACTL] = "numactl",
	[TOPO_HWLOC_XML] = "hwloc",
	[TOPO_LINE] = "line",
};

const char *topo_kind_name(enum topo_kind kind)
{
	return kind_names[kind];
}

/* Far beyond any source: a numactl text of 1,024 nodes takes 5 MiB. */
enum { MAX_SOURCE = 64 << 20 };

struct buffer {
	char *data; /* terminated */
	size_t len, cap;
};

static int grow(struct buffer *b)
{
	size_t cap = b->cap ? 2 * b->cap : 64 << 10;
	char *data = realloc(b->data, cap);

	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

/* Everything a descriptor gives, up to MAX_SOURCE: -EFBIG beyond. Pipes are as good as files. */
static int read_all(int fd, struct buffer *b)
{
	for (;;) {
		ssize_t n;

		if (b->len + 1 >= b->cap && grow(b))
			return -ENOMEM;
		n = read(fd, b->data + b->len, b->cap - b->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		b->len += (size_t)n;
		b->data[b->len] = '\0';
		if (!n)
			return 0;
		if (b->len > MAX_SOURCE)
			return -EFBIG;
	}
}

static bool begins(const struct buffer *b, size_t at, const char *magic, size_t n)
{
	return b->len >= at + n && !memcmp(b->data + at, magic, n);
}

static bool is_archive(const struct buffer *b)
{
	return begins(b, 0, "\x1f\x8b", 2) ||
	       begins(b, 0,
		       "\xfd"
		       "7zXZ",
		       5) ||
	       begins(b, 0, "BZh", 3) || begins(b, 0, "\x28\xb5\x2f\xfd", 4) ||
	       begins(b, 257, "ustar", 5);
}

static struct topo_slice first_line(const char *text, size_t len)
{
	struct topo_text t = {.at = text, .end = text + len};
	struct topo_slice line = {.at = text, .len = 0};

	while (topo_text_line(&t, &line))
		if (line.len && line.at[0] != '#')
			break;
	return line;
}

/* "2 nodes ...": a number, then the word. */
static bool is_line(struct topo_slice s)
{
	size_t n = 0;

	while (n < s.len && isdigit((unsigned char)s.at[n]))
		n++;
	if (!n)
		return false;
	while (n < s.len && isblank((unsigned char)s.at[n]))
		n++;
	return s.len - n >= 4 && !strncasecmp(s.at + n, "node", 4);
}

static int parse_text(
	struct topo_info *out, const struct buffer *b, const char *name, char *why, size_t why_len)
{
	size_t bom = begins(b, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
	const char *text = b->data + bom;
	size_t len = b->len - bom;
	struct topo_slice line = first_line(text, len);

	if (!line.len)
		return nb_why(why, why_len, -EINVAL, "%s: empty; expected a topology", name);
	if (line.at[0] == '<')
		return topo_parse_hwloc_xml(out, text, len, name, why, why_len);
	if (is_line(line))
		return topo_parse_line(out, line.at, (size_t)(text + len - line.at), why, why_len);
	return topo_parse_numactl(out, text, len, name, why, why_len);
}

static int read_stream(struct topo_info *out, int fd, const char *name, char *why, size_t why_len)
{
	struct buffer b = {0};
	int err = read_all(fd, &b);

	if (err == -EFBIG)
		err = nb_why(why, why_len, -EINVAL, "%s: larger than %d MiB; expected a topology",
			name, MAX_SOURCE >> 20);
	else if (err)
		err = nb_why(why, why_len, err, "%s: %s", name, strerror(-err));
	else if (is_archive(&b))
		err = topo_parse_archive(out, b.data, b.len, name, why, why_len);
	else
		err = parse_text(out, &b, name, why, why_len);
	free(b.data);
	return err;
}

static int read_path(struct topo_info *out, const char *path, char *why, size_t why_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int err;

	if (fd < 0)
		return nb_why(why, why_len, -errno, "%s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		err = topo_read_sysfs(out, fd, path, why, why_len);
	else
		err = read_stream(out, fd, path, why, why_len);
	close(fd);
	return err;
}

static int read_host(struct topo_info *out, char *why, size_t why_len)
{
	struct topo_tree tree = {.rootfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	int err;

	if (tree.rootfd < 0)
		return nb_why(why, why_len, -errno, "host: %s", strerror(errno));
	err = topo_parse_tree(out, &tree, true, "host", why, why_len);
	close(tree.rootfd);
	return err;
}

int topo_read(struct topo_info *out, const char *source, char *why, size_t why_len)
{
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (!strcmp(source, "host"))
		return read_host(out, why, why_len);
	if (!strcmp(source, "-"))
		return read_stream(out, STDIN_FILENO, "standard input", why, why_len);
	if (stat(source, &st) && (errno == ENOENT || errno == ENAMETOOLONG || errno == ENOTDIR)) {
		if (is_line(topo_slice_of(source)))
			return topo_parse_line(out, source, strlen(source), why, why_len);
		return nb_why(why, why_len, -ENOENT,
			"%s: no such file; expected \"host\", a file, a directory or a line "
			"such as \"2 nodes x 4 cpus x 8G\"",
			nb_quote(source).text);
	}
	return read_path(out, source, why, why_len);
}
