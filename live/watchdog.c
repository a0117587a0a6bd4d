/* SPDX-License-Identifier: MIT */
/*
 * watchdog: the second helper. It shares the agent's descriptors, sleeps most of the time, and asks
 * a few times a second: is a fault waiting that the agent does not take, or has it held some for
 * too long? Then everything is unregistered, which wakes all who wait, and the descriptor is
 * closed. From then on memory is ordinary shared file memory: correct, and unbalanced.
 *
 * It also answers requests that are too old, and ends both helpers when no thread of the program is
 * left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "agent.h"

static const uint64_t ms = 1000000;

/* Unregistering wakes; closing alone would wait for a call that is under way in the other helper.
 */
void nb_guest_close(struct nb_guest *g, int note)
{
	const int uffd = atomic_exchange(&g->uffd, -1);
	uint32_t running = NB_GUEST_RUNNING;

	if (uffd < 0)
		return;
	if (note >= 0)
		nb_guest_note(g, (enum nb_note)note);
	nb_stat_add(&nb_guest_stats(g)->closed, 1);
	atomic_compare_exchange_strong(&g->state, &running, NB_GUEST_CLOSED);
	for (uint32_t i = 0; i < g->regions.nr; i++)
		nb_uffd_unregister(uffd, g->regions.region[i].start, g->regions.region[i].end);
	NB_OS_1(close, uffd);
	atomic_store(&g->holding_ns, 0);
	nb_nudge(g);
}

static bool fault_waits(struct nb_guest *g)
{
	struct pollfd p = {.fd = atomic_load(&g->uffd), .events = POLLIN};
	const struct timespec now = {0, 0};

	return p.fd >= 0 && NB_OS_5(ppoll, &p, 1, &now, NULL, 8) > 0 && (p.revents & POLLIN);
}

struct watch {
	uint64_t progress;   /* the agent's, when a fault was first seen waiting */
	uint64_t waiting_ns; /* since when; 0 = none */
};

static bool waited_too_long(struct nb_guest *g, struct watch *w, uint64_t now)
{
	const uint64_t limit = g->session->watchdog_ms * ms;
	const uint64_t held = atomic_load(&g->holding_ns);
	const uint64_t progress = atomic_load(&g->progress);

	if (held != 0 && now > held && now - held > limit)
		return true;
	if (!fault_waits(g) || progress != w->progress) {
		w->waiting_ns = 0;
		w->progress = progress;
		return false;
	}
	if (w->waiting_ns == 0)
		w->waiting_ns = now;
	return now - w->waiting_ns > limit;
}

/* The memory can be made private by anybody who has the descriptors; the rest is refused. */
static int serve(void *ctx, const struct nb_wish *w)
{
	struct nb_guest *g = ctx;

	if (w->kind == NB_REQUEST_PRE_FORK || w->kind == NB_REQUEST_PRIVATE)
		return nb_backing_pre_fork(g, w->kind == NB_REQUEST_PRE_FORK);
	return -EAGAIN;
}

static unsigned int helpers(struct nb_guest *g)
{
	unsigned int n = 2;

	for (int i = 0; i < NB_MAX_CARRIERS; i++)
		n += atomic_load(&g->carrier_tid[i]) != 0;
	return n;
}

/*
 * No thread of the program is left when only its first one is there besides us, ended, as a zombie
 * that waits for the others. /proc/self/task has two links, and one for each thread.
 */
static bool program_gone(struct nb_guest *g)
{
	struct stat st;
	const long fd = NB_OS_4(openat, g->proc_fd, "task", 0, 0);
	char text[512];
	long n, stat_fd;
	const char *p;

	if (fd < 0)
		return false;
	n = NB_OS_2(fstat, fd, &st);
	NB_OS_1(close, fd);
	if (n != 0 || st.st_nlink > 2 + 1 + helpers(g))
		return false;
	stat_fd = NB_OS_4(openat, g->proc_fd, "stat", O_RDONLY | O_CLOEXEC, 0);
	if (stat_fd < 0)
		return false;
	n = NB_OS_3(read, stat_fd, text, sizeof(text) - 1);
	NB_OS_1(close, stat_fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	for (p = text + n; p > text && *p != ')'; p--)
		;
	return p[0] == ')' && p[1] == ' ' && p[2] == 'Z';
}

/* Once the agent is known not to serve, nobody waits for it. */
static uint64_t patience(struct nb_guest *g)
{
	return atomic_load(&g->uffd) < 0 || atomic_load(&g->revoked)
		       ? g->session->watchdog_ms * ms / 4
		       : g->session->watchdog_ms * ms;
}

void nb_watchdog_main(void *guest)
{
	struct nb_guest *g = guest;
	struct watch w = {0};
	const uint64_t pause = g->session->watchdog_ms * ms / 4;

	while (!atomic_load(&g->stop)) {
		const uint64_t now = nb_os_now_ns();

		if (waited_too_long(g, &w, now))
			nb_guest_close(g, NB_NOTE_WATCHDOG);
		/* An agent that lets people wait so long is not there. */
		if (nb_requests_serve(g, patience(g), serve, g) > 0 || atomic_load(&g->revoked))
			nb_guest_close(g, NB_NOTE_WATCHDOG);
		if (program_gone(g)) {
			atomic_store(&g->stop, 1);
			nb_nudge(g);
			break;
		}
		nb_futex_wait(&g->watch_word, 0, pause);
	}
	atomic_store(&g->watchdog_tid, 0);
	NB_OS_1(exit, 0);
}
