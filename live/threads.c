/* SPDX-License-Identifier: MIT */
/* threads: those of the program that the agent knows: how long each ran, and where. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include "agent.h"

enum {
	PATH = 48,
	PROCESSOR_FIELD = 39, /* of /proc/PID/stat, counted from 1 */
	KEPT_OPEN = 256,      /* descriptors, one a thread */
	LOOK_MS = 1000,
	TICK_MS = 50,
	IDLE_TICK_MS = 500,
};

static const uint64_t ms = 1000000;

/* ---- names below /proc/self/task ---- */

long nb_thread_open(struct nb_agent *a, uint32_t tid, const char *name)
{
	char path[PATH];
	char *p = nb_procfs_number(path, tid);

	memcpy(p, name, strlen(name) + 1);
	return NB_OS_4(openat, a->task_fd, path, O_RDONLY | O_CLOEXEC, 0);
}

/* The name in brackets may hold anything, brackets too: fields are counted from the last one. */
static int processor_in(const char *text, long len)
{
	const char *p = text + len;
	int cpu = 0;

	while (p > text && *p != ')')
		p--;
	for (int field = 2; field < PROCESSOR_FIELD && *p != '\0'; p++)
		field += *p == ' ';
	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9' && cpu < NB_MAX_CPUS; p++)
		cpu = cpu * 10 + (*p - '0');
	return cpu;
}

static int processor_of(struct nb_agent *a, const struct nb_thread *t)
{
	const long fd = t->stat_fd >= 0 ? t->stat_fd : nb_thread_open(a, t->tid, "/stat");
	char text[1024];
	long n;

	if (fd < 0)
		return -1;
	n = NB_OS_4(pread64, fd, text, sizeof(text) - 1, 0);
	if (t->stat_fd < 0)
		NB_OS_1(close, fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return processor_in(text, n);
}

int nb_thread_node(struct nb_agent *a, struct nb_thread *t)
{
	const int cpu = processor_of(a, t);

	if (cpu >= 0 && (unsigned int)cpu < a->topo.cpu_ids)
		t->node = a->topo.cpu_node[cpu];
	return t->node;
}

/*
 * /proc/PID/task/TID/numa_maps: ADDRESS POLICY ..., where the policy is the thread's for memory
 * that has none of its own, as the first line's has: it is the program's text.
 */
static bool has_policy(struct nb_agent *a, uint32_t tid)
{
	static const char none[] = " default";
	char text[128];
	const char *p;
	const long fd = nb_thread_open(a, tid, "/numa_maps");
	long n;

	if (fd < 0)
		return fd != -ENOENT;
	n = NB_OS_3(read, fd, text, sizeof(text) - 1);
	NB_OS_1(close, fd);
	if (n <= 0)
		return n != -ESRCH;
	text[n] = '\0';
	p = strchr(text, ' ');
	return p == NULL || strncmp(p, none, sizeof(none) - 1) != 0;
}

bool nb_threads_have_policy(struct nb_agent *a)
{
	if (a->nr_threads == NB_MAX_THREADS)
		return true;
	for (uint32_t i = 0; i < a->nr_threads; i++)
		if (has_policy(a, a->threads[i].tid))
			return true;
	return false;
}

/* ---- the table ---- */

static struct nb_thread *add(struct nb_agent *a, uint32_t tid)
{
	struct nb_thread *t = &a->threads[a->nr_threads];

	if (a->nr_threads == NB_MAX_THREADS || tid == 0 || nb_guest_is_helper(a->guest, tid))
		return NULL;
	*t = (struct nb_thread){.tid = tid,
		.stat_fd = -1,
		.node = NB_NO_NODE,
		.since = a->look,
		.seen = a->look,
		.home = NB_NO_NODE};
	t->homeless = a->has_homes;
	t->task = nb_task_new(a->engine, a->mm, tid, nb_os_now_ns());
	if (t->task == NULL)
		return NULL;
	if (a->nr_threads < KEPT_OPEN)
		t->stat_fd = (int)nb_thread_open(a, tid, "/stat");
	a->nr_threads++;
	return t;
}

struct nb_thread *nb_thread_known(struct nb_agent *a, uint32_t tid)
{
	for (uint32_t i = 0; i < a->nr_threads; i++)
		if (a->threads[i].tid == tid)
			return &a->threads[i];
	return NULL;
}

struct nb_thread *nb_thread_find(struct nb_agent *a, uint32_t tid)
{
	struct nb_thread *t = nb_thread_known(a, tid);

	return t != NULL ? t : add(a, tid);
}

static void drop(struct nb_agent *a, uint32_t i)
{
	struct nb_thread *t = &a->threads[i];

	nb_task_gone(a->engine, t->task, nb_os_now_ns());
	if (t->stat_fd >= 0)
		NB_OS_1(close, t->stat_fd);
	*t = a->threads[--a->nr_threads];
}

/* ---- looking for new ones, and for those that went ---- */

static void see(void *agent, uint32_t tid)
{
	struct nb_agent *a = agent;
	struct nb_thread *t = nb_thread_find(a, tid);

	if (t != NULL)
		t->seen = a->look;
}

void nb_threads_look(struct nb_agent *a)
{
	bool whole;

	a->look++;
	whole = nb_procfs_each(a->task_fd, see, a) == 0;
	for (uint32_t i = a->nr_threads; whole && i-- > 0;)
		if (a->threads[i].seen != a->look)
			drop(a, i);
	a->next_look_ns = nb_os_now_ns() + LOOK_MS * ms;
}

/* ---- ticks ---- */

static bool runtime_of(struct nb_thread *t, uint64_t *ns)
{
	/* The kernel's id of a thread's CPU clock. */
	const long clock = (long)(~(uint64_t)t->tid << 3) | 6;

	return nb_os_clock_ns((int)clock, ns) == 0;
}

/* What it touched was thought to be wanted where it belonged. */
static void note_home(struct nb_agent *a, struct nb_thread *t)
{
	const int home = nb_task_home(t->task, NB_NO_NODE);

	if (home == t->home || (t->home != NB_NO_NODE && !nb_judge_left(a, t->home)))
		return;
	t->home = (int16_t)home;
}

static void tick(struct nb_agent *a, struct nb_thread *t, uint64_t now)
{
	uint64_t runtime;
	int node;

	/* Gone. */
	if (!runtime_of(t, &runtime)) {
		t->runs = t->homeless = false;
		return;
	}
	t->runs = runtime != t->runtime_ns;
	t->runtime_ns = runtime;
	/* While what was asked for is not armed yet, or nobody carries it, there is no time for
	 * another scan. */
	if ((a->armer.nr == 0 && a->mover.nr == 0) || t->scan_ns == 0)
		t->scan_ns = runtime;
	if (!t->runs)
		nb_task_sleeps(t->task);
	if (!t->runs || nb_task_tick_idle(t->task, t->scan_ns, now))
		return;
	node = nb_thread_node(a, t);
	if (node < 0) {
		t->homeless = false;
		return;
	}
	nb_task_tick(a->engine, t->task, t->scan_ns, node, now);
	note_home(a, t);
	t->homeless = a->has_homes && t->home == NB_NO_NODE;
}

/* ---- those of other processes ---- */

static void hear_of_others(struct nb_agent *a, uint64_t now)
{
	const struct nb_slot *slot = atomic_load(&a->guest->slot);

	if (slot == NULL || !a->has_homes)
		return;
	nb_session_other_residents(a->guest->session, slot, a->residents, now);
	nb_engine_others(a->engine, a->residents);
}

static void tell_others(struct nb_agent *a, uint64_t now)
{
	const struct nb_slot *slot = atomic_load(&a->guest->slot);

	if (slot == NULL || !a->has_homes)
		return;
	for (int n = 0; n < (int)a->topo.nr_nodes; n++)
		a->residents[n] = nb_engine_residents(a->engine, n);
	nb_session_tell_residents(a->guest->session, slot, a->residents, now);
}

void nb_threads_tick(struct nb_agent *a)
{
	const uint64_t now = nb_os_now_ns();
	uint32_t running = 0, homeless = 0;

	hear_of_others(a, now);
	nb_move_look(a, now);
	if (now >= a->next_look_ns)
		nb_threads_look(a);
	for (uint32_t i = 0; i < a->nr_threads; i++) {
		tick(a, &a->threads[i], now);
		running += a->threads[i].runs;
		homeless += a->threads[i].runs && a->threads[i].homeless;
		nb_faults_resolve(a);
	}
	tell_others(a, now);
	a->nr_running = running;
	a->nr_homeless = homeless;
	a->next_tick_ns = now + (running > 0 ? TICK_MS : IDLE_TICK_MS) * ms;
}
