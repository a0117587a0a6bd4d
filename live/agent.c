/* SPDX-License-Identifier: MIT */
/* agent: its start, its rounds, its end. agent.h says what it does. */
#include "agent.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>

enum {
	CANARY_MS = 100,
	PUBLISH_MS = 200,
	LONGEST_WAIT_MS = 1000,
	STACKS_BYTES = 2 * sizeof(struct nb_helper_stack),
	MAPS_SHARE = 90, /* percent of vm.max_map_count that may be used */
	START_TIMES = 5, /* the watchdog's time: then an agent that does not start is given up */
};

static const uint64_t ms = 1000000;

/* ---- the guest ---- */

void nb_guest_init(struct nb_guest *g)
{
	nb_regions_init(&g->regions);
	atomic_store(&g->uffd, -1);
	g->canary.fd = -1;
	g->proc_fd = -1;
	g->pid = (uint32_t)NB_OS_0(getpid);
}

bool nb_guest_is_helper(struct nb_guest *g, uint32_t tid)
{
	if (tid == 0)
		return false;
	for (int i = 0; i < NB_MAX_CARRIERS; i++)
		if (tid == atomic_load(&g->carrier_tid[i]))
			return true;
	return tid == atomic_load(&g->agent_tid) || tid == atomic_load(&g->watchdog_tid);
}

long nb_helper_start(struct nb_helper_stack *s, void (*fn)(void *arg), void *arg)
{
	void **const tls = (void **)(void *)s->tls;

	/* What code compiled for this ABI may read of it: its own address. */
	tls[0] = tls;
	tls[2] = tls;
	return nb_os_spawn(fn, arg, s->tls, tls);
}

/* Somewhere to count for those who have no slot. */
static struct nb_live_stats sink;

struct nb_live_stats *nb_guest_stats(struct nb_guest *g)
{
	struct nb_slot *slot = atomic_load(&g->slot);

	return slot != NULL ? &slot->stats : &sink;
}

void nb_guest_note(struct nb_guest *g, enum nb_note note)
{
	struct nb_slot *slot = atomic_load(&g->slot);

	if (slot != NULL)
		nb_slot_note(slot, note);
}

/* ---- the beginning ---- */

/*
 * The agent needs no rights of root's but one: threads with more rights than itself can be moved
 * with CAP_SYS_NICE only. Dropping the others changes nothing for the program's own threads.
 */
static void drop_rights(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct keep[2];

	memset(keep, 0, sizeof(keep));
	keep[0].effective = keep[0].permitted = 1U << CAP_SYS_NICE;
	if (NB_OS_2(capset, &head, keep) == 0)
		return;
	memset(keep, 0, sizeof(keep));
	NB_OS_2(capset, &head, keep);
}

static uint64_t number_in(const char *path)
{
	char text[32];
	const long n = nb_os_read_file(path, text, sizeof(text) - 1);
	uint64_t value = 0;

	for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	return value;
}

static long open_proc(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;

	g->proc_fd =
		(int)NB_OS_4(openat, AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (g->proc_fd < 0)
		return g->proc_fd;
	a->pagemap_fd = (int)NB_OS_4(openat, g->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC, 0);
	a->task_fd =
		(int)NB_OS_4(openat, g->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return a->pagemap_fd < 0 ? a->pagemap_fd : a->task_fd < 0 ? a->task_fd : 0;
}

static long open_signals(struct nb_agent *a)
{
	const uint64_t mask = UINT64_C(1) << (NB_NUDGE - 1);

	a->signal_fd = (int)NB_OS_4(signalfd4, -1, &mask, sizeof(mask), SFD_NONBLOCK | SFD_CLOEXEC);
	return a->signal_fd < 0 ? a->signal_fd : 0;
}

static long open_uffd(struct nb_agent *a)
{
	const long fd = nb_uffd_open(&a->has_wp);

	if (fd < 0) {
		nb_guest_note(a->guest, NB_NOTE_NO_USERFAULTFD);
		return fd;
	}
	atomic_store(&a->guest->uffd, (int)fd);
	return 0;
}

/* A policy that the thread which made the agent has (numactl's, say) is the program's wish. */
static void look_at_policy(struct nb_agent *a)
{
	int mode = 0;

	if (NB_OS_5(get_mempolicy, &mode, NULL, 0UL, NULL, 0) == 0 && mode != 0) {
		atomic_store(&a->guest->policy, NB_POLICY_SET);
		nb_guest_note(a->guest, NB_NOTE_POLICY);
	}
}

static struct nb_agent *new_agent(struct nb_guest *g)
{
	struct nb_agent *a = nb_os_pages(sizeof(*a));

	if (a == NULL)
		return NULL;
	a->guest = g;
	a->topo = nb_session_topology(g->session);
	a->is_virtual = g->session->flags & NB_SESSION_VIRTUAL;
	a->has_homes = nb_has(&g->session->config, NB_MECH_HOME_NODE);
	a->random = nb_os_now_ns() ^ g->pid;
	a->threads = nb_heap_alloc(&a->heap, NB_MAX_THREADS * sizeof(a->threads[0]));
	a->spans = nb_heap_alloc(&a->heap, NB_MAX_SEEN * sizeof(a->spans[0]));
	a->wanted = nb_heap_alloc(&a->heap, NB_MAX_SEEN * sizeof(a->wanted[0]));
	a->residents = nb_heap_alloc(&a->heap, a->topo.nr_nodes * sizeof(a->residents[0]));
	a->full_until_ns = nb_heap_alloc(&a->heap, a->topo.nr_nodes * sizeof(a->full_until_ns[0]));
	if (a->threads == NULL || a->spans == NULL || a->wanted == NULL || a->residents == NULL ||
		a->full_until_ns == NULL)
		return NULL;
	return a;
}

static long set_up(struct nb_agent *a)
{
	struct nb_guest *g = a->guest;
	long rc = open_uffd(a);

	if (rc == 0)
		rc = open_proc(a);
	if (rc == 0)
		rc = open_signals(a);
	if (rc == 0)
		rc = nb_door_open(a);
	if (rc != 0)
		return rc;
	a->max_maps = number_in("/proc/sys/vm/max_map_count");
	look_at_policy(a);
	nb_huge_init(a);
	NB_OS_3(sched_setaffinity, 0, g->nr_cpu_mask, g->cpu_mask);
	drop_rights();
	return 0;
}

/* ---- requests ---- */

static int count_map(void *ctx, const struct nb_map *m)
{
	uint64_t *n = ctx;

	(void)m;
	(*n)++;
	return 0;
}

static void look_at_maps(struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();
	uint64_t n = 0;

	if (a->max_maps == 0 || now < a->next_maps_ns)
		return;
	if (nb_maps_each(a->guest->proc_fd, count_map, &n) == 0)
		a->maps_full = n >= a->max_maps * MAPS_SHARE / 100;
	a->next_maps_ns = now + LONGEST_WAIT_MS * ms;
}

static int serve(void *ctx, const struct nb_wish *w)
{
	struct nb_agent *a = ctx;

	switch (w->kind) {
	case NB_REQUEST_ADOPT:
		look_at_maps(a);
		return nb_backing_adopt(a, w);
	case NB_REQUEST_PRE_FORK:
		return nb_backing_pre_fork(a->guest, true);
	case NB_REQUEST_PRIVATE:
		return nb_backing_pre_fork(a->guest, false);
	case NB_REQUEST_EJECT:
		return nb_backing_eject(a, w->start, w->end);
	case NB_REQUEST_LAZY:
	case NB_REQUEST_POLICY:
		return nb_door_policy(a, w);
	case NB_REQUEST_STOP:
		atomic_store(&a->guest->stop, 1);
		return nb_backing_pre_fork(a->guest, false);
	default:
		return -EINVAL;
	}
}

/* ---- rounds ---- */

/* One policy was taken back, or a thread ended with it: is there another? */
static void look_for_policies(struct nb_agent *a)
{
	uint32_t unsure = NB_POLICY_UNSURE;

	if (atomic_load(&a->guest->policy) != NB_POLICY_UNSURE)
		return;
	nb_threads_look(a);
	atomic_compare_exchange_strong(&a->guest->policy, &unsure,
		nb_threads_have_policy(a) ? NB_POLICY_SET : NB_POLICY_NONE);
}

static void publish(struct nb_agent *a, uint64_t now)
{
	look_for_policies(a);
	atomic_store(&nb_guest_stats(a->guest)->agent_ns, nb_os_cpu_ns() + nb_carriers_cpu_ns(a));
	nb_door_publish(a);
	a->next_publish_ns = now + PUBLISH_MS * ms;
}

static void timed_work(struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();

	if (now >= a->next_tick_ns && a->nr_spans > 0)
		nb_threads_tick(a);
	if (now >= a->diary.next_ns && a->nr_spans > 0)
		nb_diary_work(a);
	if (now >= a->next_canary_ns) {
		nb_backing_look_at_canary(a);
		a->next_canary_ns = now + CANARY_MS * ms;
	}
	if (now >= a->next_publish_ns)
		publish(a, now);
}

/* A slice of each; true when there is more. */
static bool background(struct nb_agent *a)
{
	bool more;

	nb_sample_work(a);
	more = nb_faults_infer(a);
	more |= nb_move_work(a);
	more |= nb_backing_take_back(a);
	if (a->sweep) {
		a->sweep = nb_backing_sweep(a);
		more |= a->sweep;
	}
	nb_huge_work(a);
	return more;
}

static uint64_t time_to_wait(const struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();
	const uint64_t arm = nb_sample_next_ns(a, now);
	uint64_t until = now + LONGEST_WAIT_MS * ms;

	if (a->nr_spans > 0 && a->next_tick_ns < until)
		until = a->next_tick_ns;
	if (arm < until)
		until = arm;
	if (a->more_to_collapse && a->next_collapse_ns < until)
		until = a->next_collapse_ns;
	if (a->guest->canary.fd >= 0 && a->next_canary_ns < until)
		until = a->next_canary_ns;
	return until > now ? until - now : 1;
}

static void drain_signals(struct nb_agent *a)
{
	struct signalfd_siginfo info;

	while (NB_OS_3(read, a->signal_fd, &info, sizeof(info)) > 0)
		;
}

static void wait(struct nb_agent *a)
{
	const uint64_t ns = time_to_wait(a);
	const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	struct pollfd p[2] = {
		{.fd = a->signal_fd, .events = POLLIN},
		{.fd = atomic_load(&a->guest->uffd), .events = POLLIN},
	};

	NB_OS_5(ppoll, p, p[1].fd >= 0 ? 2 : 1, &t, NULL, 8);
	if (p[0].revents & POLLIN)
		drain_signals(a);
	if (p[1].fd >= 0 && (p[1].revents & (POLLNVAL | POLLERR)))
		nb_guest_close(a->guest, -1);
}

static void round_of(struct nb_agent *a)
{
	atomic_fetch_add(&a->guest->progress, 1);
	nb_faults_serve(a);
	nb_requests_serve(a->guest, 0, serve, a);
	nb_door_sync(a);
	timed_work(a);
	nb_place_settle(a);
	if (!background(a))
		wait(a);
}

/* ---- its thread ---- */

/* Their numbers mean nothing once this table of descriptors is gone. */
static void forget_files(struct nb_guest *g)
{
	struct nb_signals signals;

	nb_lock(&g->regions.lock, &signals);
	for (int i = 0; i < NB_MAX_BACKINGS; i++) {
		struct nb_backing *b = &g->regions.backing[i];

		b->blocks = NULL;
		b->fd = b->users > 0 ? NB_FD_ELSEWHERE : NB_FD_FREE;
	}
	g->canary.fd = -1;
	atomic_store(&nb_guest_stats(g)->managed_bytes, 0);
	atomic_store(&nb_guest_stats(g)->private_bytes, 0);
	nb_unlock(&g->regions.lock, &signals);
}

static void leave(struct nb_guest *g)
{
	nb_guest_close(g, -1);
	forget_files(g);
	atomic_store(&g->state, NB_GUEST_OFF);
	atomic_store(&g->agent_tid, 0);
	atomic_store(&g->stop, 1);
	nb_carriers_end(g->agent);
	atomic_store(&g->watch_word, 1);
	nb_futex_wake(&g->watch_word, 1);
	NB_OS_1(exit, 0);
}

static long start_watchdog(struct nb_guest *g)
{
	const long tid = nb_helper_start(&g->stacks[1], nb_watchdog_main, g);

	if (tid < 0)
		return tid;
	atomic_store(&g->watchdog_tid, (uint32_t)tid);
	return 0;
}

/* False when nobody waits for it any more: it took too long. */
static bool ready(struct nb_guest *g, enum nb_guest_state state)
{
	uint32_t starting = NB_GUEST_STARTING;
	const bool awaited = atomic_compare_exchange_strong(&g->state, &starting, state);

	nb_futex_wake(&g->state, INT32_MAX);
	return awaited;
}

/* From here on the program's descriptors are out of reach, and ours out of the program's. */
static bool own_descriptors(void)
{
	return NB_OS_3(close_range, 0, ~0U, CLOSE_RANGE_UNSHARE) == 0;
}

static void agent_main(void *guest)
{
	struct nb_guest *g = guest;
	struct nb_agent *a;

	if (!own_descriptors()) {
		nb_guest_note(g, NB_NOTE_NO_THREAD);
		ready(g, NB_GUEST_OFF);
		NB_OS_1(exit, 0);
	}
	atomic_store(&g->agent_tid, (uint32_t)NB_OS_0(gettid));
	a = new_agent(g);
	if (a == NULL || set_up(a) != 0 || start_watchdog(g) != 0) {
		ready(g, NB_GUEST_OFF);
		leave(g);
	}
	g->agent = a;
	if (!ready(g, NB_GUEST_RUNNING))
		leave(g);
	while (!atomic_load(&g->stop) && !atomic_load(&g->revoked))
		round_of(a);
	/* Robbed: the watchdog has the descriptors, and there is nothing left to do here. */
	while (!atomic_load(&g->stop))
		nb_futex_wait(&g->stop, 0, 0);
	publish(a, nb_os_now_ns());
	leave(g);
}

/* ---- starting it ---- */

/*
 * Strict overcommit promises that memory once given is there, and a limit on data counts private
 * memory: a memfd's pages are counted when touched, and as shared.
 */
static bool may_balance(struct nb_guest *g)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (number_in("/proc/sys/vm/overcommit_memory") == 2) {
		nb_guest_note(g, NB_NOTE_OVERCOMMIT);
		return false;
	}
	NB_OS_4(prlimit64, 0, RLIMIT_DATA, NULL, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		return true;
	nb_guest_note(g, NB_NOTE_RLIMIT_DATA);
	return false;
}

static void take_slot(struct nb_guest *g)
{
	struct nb_slot *slot;

	if (atomic_load(&g->slot) != NULL)
		return;
	/* Children count when they have memory worth managing: most end soon, or exec. */
	if (!g->counted)
		nb_stat_add(&g->session->processes, 1);
	g->counted = true;
	slot = nb_session_slot(g->session, g->pid);
	nb_os_read_file("/proc/self/comm", slot->comm, sizeof(slot->comm) - 1);
	for (size_t i = 0; i < sizeof(slot->comm); i++)
		if (slot->comm[i] == '\n')
			slot->comm[i] = '\0';
	atomic_store(&g->slot, slot);
}

static bool spawn_agent(struct nb_guest *g)
{
	long tid;

	g->stacks = nb_os_pages(STACKS_BYTES);
	if (g->stacks == NULL)
		return false;
	tid = nb_helper_start(&g->stacks[0], agent_main, g);
	if (tid < 0) {
		nb_os_pages_free(g->stacks, STACKS_BYTES);
		return false;
	}
	return true;
}

/* A start that hangs must not keep the program from going on without it. */
static void await_start(struct nb_guest *g)
{
	const uint64_t until = nb_os_now_ns() + START_TIMES * g->session->watchdog_ms * ms;

	while (atomic_load(&g->state) == NB_GUEST_STARTING) {
		const uint64_t now = nb_os_now_ns();

		if (now < until)
			nb_futex_wait(&g->state, NB_GUEST_STARTING, until - now);
		else if (ready(g, NB_GUEST_OFF))
			nb_guest_note(g, NB_NOTE_NO_THREAD);
	}
}

static void start(struct nb_guest *g)
{
	struct nb_signals signals;

	take_slot(g);
	if (!may_balance(g)) {
		ready(g, NB_GUEST_OFF);
		return;
	}
	nb_signals_block(&signals);
	if (!spawn_agent(g)) {
		nb_guest_note(g, NB_NOTE_NO_THREAD);
		ready(g, NB_GUEST_OFF);
	}
	await_start(g);
	nb_signals_restore(&signals);
}

bool nb_agent_ensure(struct nb_guest *g)
{
	uint32_t state = NB_GUEST_READY;

	/* A child between vfork and exec shares this memory; its threads would end with it. */
	if ((uint32_t)NB_OS_0(getpid) != g->pid)
		return false;
	if (atomic_compare_exchange_strong(&g->state, &state, NB_GUEST_STARTING))
		start(g);
	return atomic_load(&g->state) == NB_GUEST_RUNNING;
}
