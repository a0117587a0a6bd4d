/* SPDX-License-Identifier: MIT */
/*
 * maps: /proc/self/maps, the one truth about what maps what, read in pieces without any allocation.
 * The kernel gives whole lines in each read.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include "agent.h"

enum {
	BUFFER = 8192,
};

static const char *hex(const char *p, uint64_t *out)
{
	for (*out = 0;; p++) {
		const char c = *p;

		if (c >= '0' && c <= '9')
			*out = *out * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*out = *out * 16 + (uint64_t)(c - 'a' + 10);
		else
			return p;
	}
}

static const char *decimal(const char *p, uint64_t *out)
{
	for (*out = 0; *p >= '0' && *p <= '9'; p++)
		*out = *out * 10 + (uint64_t)(*p - '0');
	return p;
}

static const char *rights(const char *p, struct nb_map *m)
{
	m->prot = (p[0] == 'r' ? PROT_READ : 0U) | (p[1] == 'w' ? PROT_WRITE : 0U) |
		  (p[2] == 'x' ? PROT_EXEC : 0U);
	m->shared = p[3] == 's';
	return p + 4;
}

/* START-END rwxp OFFSET MAJOR:MINOR INODE ...; the line ends in a zero. */
static void parse(const char *p, struct nb_map *m)
{
	uint64_t major, minor;

	p = hex(p, &m->start);
	p = hex(p + (*p == '-'), &m->end);
	p = rights(p + (*p == ' '), m);
	p = hex(p + (*p == ' '), &m->offset);
	p = hex(p + (*p == ' '), &major);
	p = hex(p + (*p == ':'), &minor);
	m->device = major << 32 | minor;
	decimal(p + (*p == ' '), &m->inode);
}

static int lines(char *buffer, nb_map_fn fn, void *ctx)
{
	for (char *line = buffer, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		struct nb_map m;
		int rc;

		*end = '\0';
		if (end - line < 20)
			continue;
		parse(line, &m);
		rc = fn(ctx, &m);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Bytes after the last newline are the beginning of the next piece. */
static size_t keep_rest(char *buffer, size_t len)
{
	size_t whole = len;

	while (whole > 0 && buffer[whole - 1] != '\n')
		whole--;
	memmove(buffer, buffer + whole, len - whole);
	return len - whole;
}

static int read_pieces(int fd, nb_map_fn fn, void *ctx)
{
	char buffer[BUFFER + 1], work[BUFFER + 1];
	size_t len = 0;

	for (;;) {
		const long n = NB_OS_3(read, fd, buffer + len, BUFFER - len);
		int rc;

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		len += (size_t)n;
		memcpy(work, buffer, len);
		work[len] = '\0';
		rc = lines(work, fn, ctx);
		if (rc != 0)
			return rc;
		len = keep_rest(buffer, len);
		if (len == BUFFER)
			return -E2BIG;
	}
}

int nb_maps_each(int proc_fd, nb_map_fn fn, void *ctx)
{
	const long fd = NB_OS_4(openat, proc_fd, "maps", O_RDONLY | O_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return (int)fd;
	rc = read_pieces((int)fd, fn, ctx);
	NB_OS_1(close, fd);
	return rc;
}

bool nb_pagemap_read(struct nb_agent *a, uint64_t addr, uint64_t pages, uint64_t *entry)
{
	const long want = (long)(pages * sizeof(entry[0]));

	return NB_OS_4(pread64, a->pagemap_fd, entry, want,
		       (addr >> NB_PAGE_SHIFT) * sizeof(entry[0])) == want;
}
