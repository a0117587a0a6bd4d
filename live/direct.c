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
	struct nb_agent *agent;
	long dir;   /* of descriptors */
	bool any;   /* there was one */
	bool found; /* one that counts, or it can't be told */
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

static void look_at_file(void *ctx, uint32_t fd)
{
	struct search *s = ctx;

	s->any = true;
	s->found = s->found || is_direct(s->dir, fd);
}

/* The helpers have descriptors of their own; and a first thread that has ended has none. */
static void look_at_thread(void *ctx, uint32_t tid)
{
	struct search *s = ctx;

	if (s->any || s->found || nb_guest_is_helper(s->agent->guest, tid))
		return;
	s->dir = nb_thread_open(s->agent, tid, "/fdinfo");
	if (s->dir < 0) {
		s->found = s->dir != -ENOENT;
		return;
	}
	if (nb_procfs_each(s->dir, look_at_file, s) != 0)
		s->found = true;
	NB_OS_1(close, s->dir);
}

/* Also true when it can't be told. */
static bool is_open_somewhere(struct nb_agent *a)
{
	struct search s = {.agent = a};

	return nb_procfs_each(a->task_fd, look_at_thread, &s) != 0 || s.found;
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
