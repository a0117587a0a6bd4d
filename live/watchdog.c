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

enum {
	PAUSES = 4, /* in the time that a fault may wait */
};

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

/* Time is counted in steps, none longer than two pauses: where a machine or a program was stopped
 * for a while and goes on, the agent was stopped too. */
bool nb_watch_step(struct nb_watch *w, const struct nb_watch_look *look, uint64_t limit_ns)
{
	const uint64_t most = limit_ns / PAUSES * 2, since = look->now_ns - w->now_ns;
	const uint64_t step = since < most ? since : most;
	const bool stuck = look->held != 0 ? look->held == w->held
					   : look->waits && look->progress == w->progress;

	w->waited_ns = stuck ? w->waited_ns + step : 0;
	w->quiet_ns = look->progress == w->progress ? w->quiet_ns + step : 0;
	w->now_ns = look->now_ns;
	w->held = look->held;
	w->progress = look->progress;
	return w->waited_ns >= limit_ns;
}

static bool waited_too_long(struct nb_guest *g, struct nb_watch *w, uint64_t now)
{
	const struct nb_watch_look look = {
		.now_ns = now,
		.held = atomic_load(&g->holding_ns),
		.progress = atomic_load(&g->progress),
		.waits = fault_waits(g),
	};

	return nb_watch_step(w, &look, g->session->watchdog_ms * ms);
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

/* Once the agent is known not to serve, nobody waits for it; one that lets people wait for so long
 * while it does nothing is not there. True: it did not. */
static bool serve_in_its_place(struct nb_guest *g, const struct nb_watch *w)
{
	const uint64_t limit = g->session->watchdog_ms * ms;

	if (atomic_load(&g->uffd) < 0 || atomic_load(&g->revoked))
		return nb_requests_serve(g, limit / PAUSES, serve, g) > 0;
	return w->quiet_ns >= limit && nb_requests_serve(g, limit, serve, g) > 0;
}

void nb_watchdog_main(void *guest)
{
	struct nb_guest *g = guest;
	struct nb_watch w = {0};
	const uint64_t pause = g->session->watchdog_ms * ms / PAUSES;

	while (!atomic_load(&g->stop)) {
		const uint64_t now = nb_os_now_ns();

		if (waited_too_long(g, &w, now))
			nb_guest_close(g, NB_NOTE_WATCHDOG);
		if (serve_in_its_place(g, &w) || atomic_load(&g->revoked))
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
