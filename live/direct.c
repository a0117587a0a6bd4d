/* SPDX-License-Identifier: MIT */
/*
 * direct: may a device be writing into the program's memory behind its page tables' back? Direct
 * I/O and io_uring pin pages, and what arrives in a page after it was copied is lost. So where a
 * descriptor for either is open, memory that a fork made private is not copied back.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "agent.h"

enum {
	NAME = 16,
	LOOK_BLOCKS = 64,     /* taken back between two looks */
	REST_NS = 2000000000, /* after one that found something */
};

struct search {
	long dir;
	bool found;
};

/* "flags:" is in octal. */
static bool has_direct_flag(const char *text)
{
	static const char key[] = "flags:\t";
	const char *p = strstr(text, key);
	unsigned long flags = 0;

	if (p == NULL)
		return false;
	for (p += sizeof(key) - 1; *p >= '0' && *p <= '7'; p++)
		flags = flags * 8 + (unsigned long)(*p - '0');
	return flags & O_DIRECT;
}

static bool is_direct(long dir, uint32_t fd)
{
	char name[NAME], text[512];
	long file, n;

	nb_procfs_number(name, fd);
	file = NB_OS_4(openat, dir, name, O_RDONLY | O_CLOEXEC, 0);
	/* Closed meanwhile. */
	if (file < 0)
		return file != -ENOENT;
	n = NB_OS_3(read, file, text, sizeof(text) - 1);
	NB_OS_1(close, file);
	if (n <= 0)
		return n != -ENOENT;
	text[n] = '\0';
	/* A ring's file says where it is. */
	return has_direct_flag(text) || strstr(text, "SqMask:") != NULL;
}

static void look_at(void *ctx, uint32_t fd)
{
	struct search *s = ctx;

	s->found = s->found || is_direct(s->dir, fd);
}

/* Of a thread that is there: the first one may have ended, and has no descriptors then. */
static long open_fdinfo(struct nb_agent *a)
{
	long dir = -ESRCH;

	for (uint32_t i = 0; i < a->nr_threads && dir < 0; i++)
		if (a->threads[i].runs)
			dir = nb_thread_open(a, a->threads[i].tid, "/fdinfo");
	for (uint32_t i = 0; i < a->nr_threads && dir < 0; i++)
		dir = nb_thread_open(a, a->threads[i].tid, "/fdinfo");
	return dir;
}

/* Also true when it can't be told. */
static bool is_open_somewhere(struct nb_agent *a)
{
	struct search s = {.dir = open_fdinfo(a)};

	if (s.dir < 0)
		return true;
	if (nb_procfs_each(s.dir, look_at, &s) != 0)
		s.found = true;
	NB_OS_1(close, s.dir);
	return s.found;
}

bool nb_direct_io(struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();

	if (now < a->next_direct_ns)
		return true;
	if (a->direct_looks++ % LOOK_BLOCKS != 0 || !is_open_somewhere(a))
		return false;
	nb_guest_note(a->guest, NB_NOTE_DIRECT_IO);
	a->next_direct_ns = now + REST_NS;
	a->direct_looks = 0;
	return true;
}
