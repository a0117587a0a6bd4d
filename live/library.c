/* SPDX-License-Identifier: MIT */
/* library: include/numabal.h on top of a guest of its own. One thing at a time is asked of the
 * agent. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../include/numabal.h"
#include "../topo/topo.h"
#include "call.h"
#include "launch.h"
#include "probe.h"

#define API __attribute__((visibility("default")))

enum {
	LEAST = 4 << 20, /* what is worth managing */
	MAX_REGIONS = 900,
};

struct numabal {
	struct nb_guest guest;
	struct nb_session *session;
	size_t session_bytes;
};

/* ---- forks: every open one takes part ---- */

enum { MAX_OPEN = 8 };

static struct numabal *opened[MAX_OPEN];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	for (int i = 0; i < MAX_OPEN; i++)
		if (opened[i] != NULL)
			nb_before_fork(&opened[i]->guest);
}

static void in_parent(void)
{
	for (int i = MAX_OPEN; i-- > 0;)
		if (opened[i] != NULL)
			nb_after_fork_parent(&opened[i]->guest);
}

static void in_child(void)
{
	for (int i = MAX_OPEN; i-- > 0;)
		if (opened[i] != NULL)
			nb_after_fork_child(&opened[i]->guest);
}

static void register_handlers(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int enlist(struct numabal *nb)
{
	pthread_once(&once, register_handlers);
	for (int i = 0; i < MAX_OPEN; i++)
		if (opened[i] == NULL) {
			opened[i] = nb;
			return 0;
		}
	return -ENOMEM;
}

static void strike(const struct numabal *nb)
{
	for (int i = 0; i < MAX_OPEN; i++)
		if (opened[i] == nb)
			opened[i] = NULL;
}

/* ---- opening ---- */

static int known_options(const struct numabal_options *given, struct numabal_options *o)
{
	const unsigned char *bytes = (const unsigned char *)given;

	*o = (struct numabal_options){.size = sizeof(*o)};
	if (given == NULL)
		return 0;
	if (given->size < sizeof(size_t))
		return -EINVAL;
	for (size_t i = sizeof(*o); i < given->size; i++)
		if (bytes[i] != 0)
			return -EINVAL;
	memcpy(o, given, given->size < sizeof(*o) ? given->size : sizeof(*o));
	return 0;
}

static int find_nodes(struct nb_topology *out, unsigned int virtual_nodes)
{
	struct topo_info info;
	int err = topo_read(&info, "host", NULL, 0);

	if (err != 0)
		return err;
	if (virtual_nodes > 0)
		err = nb_virtual_nodes(out, &info.topo, virtual_nodes, NULL, 0);
	else if (nb_topology_memory_nodes(&info.topo) < 2)
		err = -ENODEV;
	else
		err = topo_copy(out, &info.topo);
	topo_info_free(&info);
	return err;
}

static int make_session(struct numabal *nb, const struct numabal_options *o)
{
	const struct nb_system *system = nb_system_find(o->system != NULL ? o->system : "numabal");
	struct nb_topology topo;
	struct nb_config config;
	int err = system == NULL ? -ENOENT : find_nodes(&topo, o->virtual_nodes);

	if (err != 0)
		return err;
	nb_config_from_system(&config, system);
	nb_live_defaults(&config);
	nb->session_bytes = nb_session_bytes(&topo, 0);
	nb->session = nb_os_pages(nb->session_bytes);
	if (nb->session != NULL) {
		nb_session_init(nb->session, &topo, &config, 0);
		nb->session->min_size = LEAST;
		nb->session->max_regions = MAX_REGIONS;
		nb->session->watchdog_ms = o->watchdog_ms > 0 ? o->watchdog_ms : 1000;
		nb->session->move_ms = NB_MOVE_MS;
		nb->session->flags = o->virtual_nodes > 0 ? NB_SESSION_VIRTUAL : 0;
	}
	topo_free(&topo);
	return nb->session != NULL ? 0 : -ENOMEM;
}

static int start(struct numabal *nb)
{
	long n;

	nb_guest_init(&nb->guest);
	nb->guest.session = nb->session;
	n = NB_OS_3(sched_getaffinity, 0, sizeof(nb->guest.cpu_mask), nb->guest.cpu_mask);
	nb->guest.nr_cpu_mask = n > 0 ? (uint32_t)n : 0;
	atomic_store(&nb->guest.state, NB_GUEST_READY);
	return nb_agent_ensure(&nb->guest) ? 0 : -EOPNOTSUPP;
}

static void drop(struct numabal *nb)
{
	nb_os_pages_free(nb->session, nb->session_bytes);
	nb_os_pages_free(nb, sizeof(*nb));
}

API int numabal_open(struct numabal **out, const struct numabal_options *options)
{
	struct numabal_options o;
	struct numabal *nb;
	int err = known_options(options, &o);

	*out = NULL;
	if (err != 0)
		return err;
	nb = nb_os_pages(sizeof(*nb));
	if (nb == NULL)
		return -ENOMEM;
	/* A child of a fork goes on with it. */
	NB_OS_3(madvise, nb, sizeof(*nb), MADV_DOFORK);
	err = make_session(nb, &o);
	if (err == 0) {
		NB_OS_3(madvise, nb->session, nb->session_bytes, MADV_DOFORK);
		err = enlist(nb);
	}
	if (err == 0)
		err = start(nb);
	if (err != 0) {
		strike(nb);
		drop(nb);
		return err;
	}
	*out = nb;
	return 0;
}

API void numabal_close(struct numabal *nb)
{
	if (nb == NULL)
		return;
	nb_call_stop(&nb->guest, -1, true);
	strike(nb);
	drop(nb);
}

/* ---- memory ---- */

static int whole_pages(const void *addr, size_t bytes)
{
	const uint64_t a = (uint64_t)addr;

	return (a | bytes) % NB_PAGE_SIZE == 0 && bytes > 0 && a + bytes > a ? 0 : -EINVAL;
}

static struct nb_wish wish_for(enum nb_request_kind kind, void *addr, size_t bytes)
{
	return (struct nb_wish){.kind = kind,
		.prot = PROT_READ | PROT_WRITE,
		.start = (uint64_t)addr,
		.end = (uint64_t)addr + bytes,
		.cpu = -1};
}

API int numabal_manage(struct numabal *nb, void *addr, size_t bytes)
{
	struct nb_wish wish = wish_for(NB_REQUEST_ADOPT, addr, bytes);
	unsigned int cpu = 0;

	if (whole_pages(addr, bytes) != 0)
		return -EINVAL;
	NB_OS_3(getcpu, &cpu, NULL, NULL);
	wish.cpu = (int32_t)cpu;
	return nb_agent_ensure(&nb->guest) ? nb_ask(&nb->guest, &wish) : -EAGAIN;
}

API int numabal_release(struct numabal *nb, void *addr, size_t bytes)
{
	return whole_pages(addr, bytes) != 0 ? -EINVAL
					     : nb_call_eject(&nb->guest, (uint64_t)addr, bytes);
}

static size_t rounded(size_t bytes)
{
	return (bytes + NB_HUGE_SIZE - 1) & ~(size_t)(NB_HUGE_SIZE - 1);
}

/* Aligned: what is too much at both ends goes back. */
static char *map_aligned(size_t bytes)
{
	char *p = (char *)NB_OS_6(mmap, 0, bytes + NB_HUGE_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (nb_os_failed((long)p))
		return NULL;
	before = -(uint64_t)p % NB_HUGE_SIZE;
	if (before > 0)
		NB_OS_2(munmap, p, before);
	NB_OS_2(munmap, p + before + bytes, NB_HUGE_SIZE - before);
	return p + before;
}

API void *numabal_alloc(struct numabal *nb, size_t bytes)
{
	char *p;

	if (bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	p = map_aligned(rounded(bytes));
	if (p != NULL && bytes >= LEAST)
		numabal_manage(nb, p, rounded(bytes));
	return p;
}

API void numabal_free(struct numabal *nb, void *p, size_t bytes)
{
	if (p != NULL)
		nb_call_munmap(&nb->guest, (uint64_t)p, rounded(bytes));
}

API int numabal_discard(struct numabal *nb, void *addr, size_t bytes)
{
	return whole_pages(addr, bytes) != 0
		       ? -EINVAL
		       : (int)nb_call_madvise(&nb->guest, (uint64_t)addr, bytes, MADV_DONTNEED);
}

/* ---- where it belongs ---- */

static int ask_for_range(struct numabal *nb, struct nb_wish *wish)
{
	if (wish->end <= wish->start)
		return -EINVAL;
	if (!nb_regions_touch(&nb->guest.regions, wish->start, wish->end))
		return -ENOENT;
	return nb_ask(&nb->guest, wish);
}

API int numabal_next_touch(struct numabal *nb, void *addr, size_t bytes)
{
	struct nb_wish wish = wish_for(NB_REQUEST_LAZY, addr, bytes);

	return ask_for_range(nb, &wish);
}

API int numabal_set_policy(
	struct numabal *nb, void *addr, size_t bytes, enum numabal_policy policy, uint64_t nodes)
{
	static const uint32_t modes[] = {
		[NUMABAL_AUTOMATIC] = NB_POLICY_DEFAULT,
		[NUMABAL_BIND] = NB_POLICY_BIND,
		[NUMABAL_PREFERRED] = NB_POLICY_PREFERRED,
	};
	struct nb_wish wish = wish_for(NB_REQUEST_POLICY, addr, bytes);

	if ((unsigned int)policy > NUMABAL_PREFERRED)
		return -EINVAL;
	wish.mode = modes[policy];
	wish.nodes = nodes;
	return ask_for_range(nb, &wish);
}

/* ---- counters ---- */

API int numabal_read_counters(struct numabal *nb, struct numabal_counters *out)
{
	const struct nb_live_stats *s = nb_guest_stats(&nb->guest);
	struct numabal_counters c = {
		.size = out->size,
		.managed_bytes = atomic_load(&s->managed_bytes),
		.hint_faults = atomic_load(&s->samples),
		.hint_faults_local = atomic_load(&s->samples_local),
		.pages_migrated = atomic_load(&s->moved),
		.pages_failed = atomic_load(&s->move_failed),
		.agent_ns = atomic_load(&s->agent_ns),
		.closed = atomic_load(&s->closed),
	};

	if (out->size < sizeof(size_t))
		return -EINVAL;
	memcpy(out, &c, out->size < sizeof(c) ? out->size : sizeof(c));
	return 0;
}
