/* SPDX-License-Identifier: MIT */
#include "test_machine.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void broke(struct tm *m, const char *what)
{
	if (m->broken == NULL)
		m->broken = what;
}

/* ---- memory ---- */

static void *tm_alloc(void *ctx, size_t bytes)
{
	struct tm *m = ctx;
	void *p;

	if (m->in_fault)
		broke(m, "allocation during a hint fault");
	if (m->no_memory || m->allocs_left == 0 || bytes > (size_t)1 << 32)
		return NULL;
	if (m->allocs_left > 0)
		m->allocs_left--;
	p = calloc(1, bytes);
	if (p != NULL)
		m->live_bytes += (int64_t)bytes;
	return p;
}

static void tm_free(void *ctx, void *p, size_t bytes)
{
	struct tm *m = ctx;

	m->live_bytes -= (int64_t)bytes;
	free(p);
}

/* ---- pages ---- */

static struct tm_area *area_of(struct tm *m, uint32_t mm_id, uint64_t addr)
{
	for (unsigned int i = 0; i < m->nr_areas; i++) {
		struct tm_area *a = &m->areas[i];

		if (a->mm == mm_id && addr >= a->start && addr < a->end)
			return a;
	}
	return NULL;
}

static struct tm_page *raw_page(struct tm *m, uint32_t mm_id, uint64_t addr)
{
	struct tm_area *a = area_of(m, mm_id, addr);

	return a != NULL ? &a->pages[(addr - a->start) >> NB_PAGE_SHIFT] : NULL;
}

struct tm_page *tm_page(struct tm *m, uint32_t mm_id, uint64_t addr)
{
	struct tm_page *p = raw_page(m, mm_id, addr);

	if (p != NULL && p->huge)
		return raw_page(m, mm_id, addr & ~(uint64_t)(NB_HUGE_SIZE - 1));
	return p;
}

static uint64_t pages_at(const struct tm_page *p)
{
	return p->huge ? NB_HUGE_PAGES : 1;
}

static void make_absent(struct tm *m, struct tm_page *p)
{
	if (p->present)
		m->node_pages[p->node]--;
	*p = (struct tm_page){.node = NB_NO_NODE};
}

/* A whole block, and nothing in it yet. */
static bool huge_fits(const struct tm_area *a, uint64_t addr, uint64_t end)
{
	if (addr % NB_HUGE_SIZE != 0 || end - addr < NB_HUGE_SIZE || a->end - addr < NB_HUGE_SIZE)
		return false;
	for (uint64_t i = 0; i < NB_HUGE_PAGES; i++)
		if (a->pages[((addr - a->start) >> NB_PAGE_SHIFT) + i].present)
			return false;
	return true;
}

static void populate_page(struct tm *m, struct tm_page *p, int node, bool huge)
{
	if (p->present)
		return;
	*p = (struct tm_page){.node = (int16_t)node, .present = true, .huge = huge};
	m->node_pages[node]++;
}

void tm_populate(struct tm *m, uint32_t mm_id, uint64_t start, uint64_t end, int node, bool huge)
{
	while (start < end) {
		const struct tm_area *a = area_of(m, mm_id, start);
		const bool whole = huge && a != NULL && huge_fits(a, start, end);
		const uint64_t nr = whole ? NB_HUGE_PAGES : 1;

		for (uint64_t i = 0; a != NULL && i < nr; i++)
			populate_page(
				m, raw_page(m, mm_id, start + (i << NB_PAGE_SHIFT)), node, whole);
		start += nr << NB_PAGE_SHIFT;
	}
}

/* From the last part to the first, which tells whether there is a huge page. */
static void break_huge(struct tm *m, uint32_t mm_id, uint64_t addr, bool keep_armed)
{
	struct tm_page *first = tm_page(m, mm_id, addr);
	struct tm_page part;

	if (first == NULL || !first->huge)
		return;
	part = (struct tm_page){.node = first->node,
		.present = true,
		.shared = first->shared,
		.armed = first->armed && keep_armed};
	for (int i = 0; i < NB_HUGE_PAGES; i++)
		first[i] = part;
}

void tm_add_area(struct tm *m, uint32_t mm_id, uint64_t start, uint64_t bytes)
{
	const size_t nr = (size_t)(bytes >> NB_PAGE_SHIFT);
	struct tm_area *a = &m->areas[m->nr_areas];

	if (m->nr_areas == TM_MAX_AREAS) {
		broke(m, "more areas than the test machine has");
		return;
	}
	*a = (struct tm_area){mm_id, start, start + bytes, calloc(nr, sizeof(*a->pages))};
	for (size_t i = 0; i < nr; i++)
		a->pages[i].node = NB_NO_NODE;
	m->nr_areas++;
}

void tm_drop_areas(struct tm *m, uint32_t mm_id)
{
	for (unsigned int i = m->nr_areas; i-- > 0;) {
		if (m->areas[i].mm != mm_id)
			continue;
		for (uint64_t p = 0; p < (m->areas[i].end - m->areas[i].start) >> NB_PAGE_SHIFT;
			p++)
			make_absent(m, &m->areas[i].pages[p]);
		free(m->areas[i].pages);
		m->areas[i] = m->areas[--m->nr_areas];
	}
}

struct nb_vma *tm_map(struct tm *m, struct nb_mm *mm, uint32_t mm_id, uint64_t start,
	uint64_t bytes, unsigned int flags)
{
	struct nb_vma *vma = nb_vma_map(m->e, mm, start, start + bytes, flags, m->now_ns);

	if (vma != NULL && area_of(m, mm_id, start) == NULL)
		tm_add_area(m, mm_id, start, bytes);
	return vma;
}

/* A huge page across `at` comes apart: its parts stay as they are. */
static void split_across(struct tm *m, struct nb_mm *mm, uint32_t mm_id, uint64_t at)
{
	const struct tm_page *p = tm_page(m, mm_id, at);

	if (p == NULL || !p->huge || at % NB_HUGE_SIZE == 0)
		return;
	break_huge(m, mm_id, at, true);
	tm_tell_split(m, mm, at);
}

int tm_unmap(struct tm *m, struct nb_mm *mm, uint32_t mm_id, uint64_t start, uint64_t end)
{
	split_across(m, mm, mm_id, start);
	split_across(m, mm, mm_id, end);
	for (uint64_t addr = start; addr < end; addr += NB_PAGE_SIZE) {
		struct tm_page *p = raw_page(m, mm_id, addr);

		if (p != NULL)
			make_absent(m, p);
	}
	return nb_vma_unmap(m->e, mm, start, end, m->now_ns);
}

/* ---- requests ---- */

static void arm_page(const struct nb_arm_request *r, struct nb_arm_result *out, struct tm_page *p)
{
	out->present += pages_at(p);
	out->huge_present += p->huge;
	if (p->armed || (p->shared && r->single_mapped) || (!p->huge && p->node == r->spare_node))
		return;
	p->armed = true;
	out->updated += pages_at(p);
	out->huge_updated += p->huge;
}

/* Small pages of a block that share a node are armed as one where asked. */
static void batch_block(struct tm *m, const struct nb_arm_request *r, uint64_t start, uint64_t end)
{
	int node = NB_NO_NODE;

	for (uint64_t a = start; a < end; a += NB_PAGE_SIZE) {
		const struct tm_page *p = raw_page(m, r->mm, a);

		if (p == NULL || !p->present)
			continue;
		if (p->huge || (node != NB_NO_NODE && node != p->node))
			return;
		node = p->node;
	}
	for (uint64_t a = start; a < end; a += NB_PAGE_SIZE) {
		struct tm_page *p = raw_page(m, r->mm, a);

		if (p != NULL && p->armed)
			p->batched = true;
	}
}

static uint64_t block_end(uint64_t addr, uint64_t end)
{
	const uint64_t next = (addr / NB_HUGE_SIZE + 1) * NB_HUGE_SIZE;

	return next < end ? next : end;
}

static void arm_block(struct tm *m, const struct nb_arm_request *r, struct nb_arm_result *out,
	uint64_t start, uint64_t end)
{
	for (uint64_t addr = start; addr < end;) {
		struct tm_page *p = tm_page(m, r->mm, addr);

		if (p != NULL && p->present)
			arm_page(r, out, p);
		addr += p != NULL && p->huge ? NB_HUGE_SIZE : NB_PAGE_SIZE;
	}
	if (r->pmd_batch)
		batch_block(m, r, start, end);
}

static bool sound_arm(const struct nb_arm_request *r)
{
	return r->start < r->end && (r->start | r->end) % NB_PAGE_SIZE == 0;
}

static int tm_arm(void *ctx, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	struct tm *m = ctx;

	if (!sound_arm(r))
		broke(m, "a range to arm that is none");
	if (m->nr_arms < TM_MAX_ARMS)
		m->arms[m->nr_arms++] = *r;
	if (m->refuse_arm != 0)
		return -m->refuse_arm;
	out->end = r->start;
	while (out->end < r->end && (r->max_present == 0 || out->present < r->max_present)) {
		const uint64_t end = block_end(out->end, r->end);

		arm_block(m, r, out, out->end, end);
		out->end = end;
	}
	out->cost_ns = m->arm_cost_ns;
	if (m->bad_arm_end)
		out->end = r->start;
	return 0;
}

static bool sound_move(const struct tm *m, const struct nb_move_request *r)
{
	if (r->node_to < 0 || r->node_to >= (int)m->topo.nr_nodes || r->node_to == r->node_from)
		return false;
	if (m->topo.nodes[r->node_to].mem_bytes == 0)
		return false;
	return r->pages == (r->huge ? NB_HUGE_PAGES : 1) &&
	       r->addr % (r->huge ? NB_HUGE_SIZE : NB_PAGE_SIZE) == 0;
}

static int tm_move(void *ctx, const struct nb_move_request *r)
{
	struct tm *m = ctx;

	if (!sound_move(m, r))
		broke(m, "a move that makes no sense");
	if (m->refuse_move != 0 || m->nr_moves == TM_MAX_MOVES)
		return -(m->refuse_move != 0 ? m->refuse_move : EBUSY);
	m->moves[m->nr_moves++] = *r;
	return 0;
}

static int tm_split(void *ctx, uint32_t mm_id, uint64_t addr, bool keep_armed)
{
	struct tm *m = ctx;

	if (m->refuse_split != 0)
		return -m->refuse_split;
	m->nr_splits++;
	m->last_split_kept_armed = keep_armed;
	break_huge(m, mm_id, addr, keep_armed);
	return 0;
}

static int tm_run_on(void *ctx, uint32_t task, int node)
{
	struct tm *m = ctx;

	if (task == 0 || node < 0 || node >= (int)m->topo.nr_nodes ||
		m->topo.nodes[node].nr_cpus == 0)
		broke(m, "a task to run where no CPU is");
	m->asked_run_ons++;
	if (m->refuse_run_on != 0)
		return -m->refuse_run_on;
	m->nr_run_ons++;
	m->last_node = node;
	return 0;
}

static int tm_swap(void *ctx, uint32_t task, uint32_t other)
{
	struct tm *m = ctx;

	if (task == 0 || other == 0 || task == other)
		broke(m, "a task that changes places with itself");
	m->asked_swaps++;
	if (m->refuse_swap != 0)
		return -m->refuse_swap;
	m->nr_swaps++;
	return 0;
}

static void tm_prefer(void *ctx, uint32_t task, int node)
{
	struct tm *m = ctx;

	if (task == 0 || node < 0 || node >= (int)m->topo.nr_nodes)
		broke(m, "a preferred node that is none");
	m->nr_prefers++;
	m->last_node = node;
}

static uint64_t tm_rss(void *ctx, uint32_t mm_id)
{
	const struct tm *m = ctx;
	uint64_t pages = 0;

	for (unsigned int i = 0; i < m->nr_areas; i++)
		for (uint64_t p = 0; m->areas[i].mm == mm_id &&
				     p < (m->areas[i].end - m->areas[i].start) >> NB_PAGE_SHIFT;
			p++)
			pages += m->areas[i].pages[p].present;
	return pages;
}

static uint64_t tm_random(void *ctx)
{
	(void)ctx;
	return 4;
}

static void tm_trace(void *ctx, const struct nb_event *e)
{
	struct tm *m = ctx;

	if (m->nr_events < TM_MAX_EVENTS)
		m->events[m->nr_events++] = *e;
}

/* ---- life ---- */

void tm_init(struct tm *m, const char *system, unsigned int nr)
{
	/* The logs are large, and their counts say what is in them. */
	memset(m, 0, offsetof(struct tm, arms));
	memset((char *)m + offsetof(struct tm, refuse_arm), 0,
		sizeof(*m) - offsetof(struct tm, refuse_arm));
	m->nr_arms = m->nr_moves = m->nr_splits = m->nr_events = 0;
	m->last_split_kept_armed = false;
	m->nr_run_ons = m->nr_swaps = m->nr_prefers = 0;
	m->asked_run_ons = m->asked_swaps = 0;
	m->topo = (struct nb_topology){.nr_nodes = nr,
		.nodes = m->nodes,
		.cpu_node = m->cpu_node,
		.distance = m->distance,
		.has_distances = true,
		.tiers_known = true};
	for (unsigned int n = 0; n < nr; n++)
		m->nodes[n] = (struct nb_node){.id = (int)n,
			.nr_cpus = TM_CPUS_PER_NODE,
			.mem_bytes = UINT64_C(1) << 30,
			.free_bytes = UINT64_C(1) << 30};
	for (unsigned int i = 0; i < nr * nr; i++)
		m->distance[i] = i % (nr + 1) == 0 ? NB_DISTANCE_LOCAL : NB_DISTANCE_REMOTE;
	nb_config_from_system(&m->config, nb_system_find(system));
	m->allocs_left = -1;
	m->machine = (struct nb_machine){.ctx = m,
		.alloc = tm_alloc,
		.free = tm_free,
		.random = tm_random,
		.arm = tm_arm,
		.move = tm_move,
		.split = tm_split,
		.run_on = tm_run_on,
		.swap = tm_swap,
		.prefer = tm_prefer,
		.rss = tm_rss,
		.trace = tm_trace};
}

bool tm_start(struct tm *m)
{
	m->topo.cpu_ids = m->topo.nr_cpus = 0;
	for (unsigned int n = 0; n < m->topo.nr_nodes; n++)
		for (unsigned int c = 0; c < m->nodes[n].nr_cpus; c++)
			m->cpu_node[m->topo.cpu_ids++] = (int16_t)n;
	m->topo.nr_cpus = m->topo.cpu_ids;
	m->e = nb_engine_new(&m->machine, &m->topo, &m->config);
	return m->e != NULL;
}

const char *tm_stop(struct tm *m)
{
	const char *wrong = m->e != NULL ? nb_engine_check(m->e) : NULL;

	nb_engine_free(m->e);
	m->e = NULL;
	for (unsigned int i = 0; i < m->nr_areas; i++)
		free(m->areas[i].pages);
	m->nr_areas = 0;
	if (m->broken != NULL)
		return m->broken;
	if (wrong != NULL)
		return wrong;
	return m->live_bytes == 0 ? NULL : "memory was not given back";
}

bool tm_set(struct tm *m, const char *assignment)
{
	if (m->e != NULL)
		return nb_engine_set(m->e, assignment, NULL, 0) == 0;
	return nb_config_set(&m->config, assignment, NULL, 0) == 0;
}

const struct nb_counters *tm_counters(const struct tm *m)
{
	return nb_engine_counters(m->e);
}

/* ---- touching ---- */

struct nb_verdict tm_fault(struct tm *m, struct nb_task *t, struct nb_mm *mm, uint32_t mm_id,
	uint64_t addr, int cpu_node, uint32_t flags)
{
	const struct tm_page *p = tm_page(m, mm_id, addr);
	struct nb_fault f = {.task = t,
		.vma = nb_vma_find(mm, addr),
		.addr = addr,
		.now_ns = m->now_ns,
		.cpu_node = (int16_t)cpu_node,
		.page_node = p != NULL ? p->node : NB_NO_NODE,
		.flags = flags};
	struct nb_verdict v;

	if (p != NULL && p->huge)
		f.flags |= NB_FAULT_HUGE;
	if (p != NULL && p->shared)
		f.flags |= NB_FAULT_SHARED;
	m->in_fault = true;
	v = nb_hint_fault(m->e, &f);
	m->in_fault = false;
	return v;
}

static unsigned int touch_batch(struct tm *m, struct nb_task *t, struct nb_mm *mm, uint32_t mm_id,
	uint64_t addr, int cpu_node)
{
	const uint64_t base = addr & ~(uint64_t)(NB_HUGE_SIZE - 1);
	unsigned int faults = 0;

	for (uint64_t a = base; a < base + NB_HUGE_SIZE; a += NB_PAGE_SIZE) {
		struct tm_page *p = raw_page(m, mm_id, a);

		if (p == NULL || !p->armed)
			continue;
		p->armed = p->batched = false;
		tm_fault(m, t, mm, mm_id, a, cpu_node, NB_FAULT_BATCHED);
		faults++;
	}
	return faults;
}

unsigned int tm_touch(struct tm *m, struct nb_task *t, struct nb_mm *mm, uint32_t mm_id,
	uint64_t addr, int cpu_node)
{
	struct tm_page *p = tm_page(m, mm_id, addr);
	struct nb_verdict v;

	if (p == NULL || !p->present || !p->armed)
		return 0;
	if (p->batched)
		return touch_batch(m, t, mm, mm_id, addr, cpu_node);
	v = tm_fault(m, t, mm, mm_id, addr, cpu_node, 0);
	if (v.why == NB_WHY_SPLIT) {
		tm_tell_split(m, mm, addr);
		return 1 + tm_touch(m, t, mm, mm_id, addr, cpu_node);
	}
	p->armed = false;
	return 1;
}

/* ---- outcomes ---- */

static bool can_move(struct tm *m, const struct nb_move_request *r)
{
	const struct tm_page *p = tm_page(m, r->mm, r->addr);

	return p != NULL && p->present && p->huge == r->huge && p->node == r->node_from;
}

static void move_pages(struct tm *m, const struct nb_move_request *r)
{
	struct tm_page *p = raw_page(m, r->mm, r->addr);

	for (uint32_t i = 0; i < r->pages; i++)
		p[i].node = r->node_to;
	m->node_pages[r->node_from] -= r->pages;
	m->node_pages[r->node_to] += r->pages;
}

unsigned int tm_finish_moves(struct tm *m, enum nb_move_status status)
{
	const unsigned int nr = m->nr_moves;

	m->nr_moves = 0;
	for (unsigned int i = 0; i < nr; i++) {
		const struct nb_move_request r = m->moves[i];
		const bool ok = status == NB_MOVE_OK && can_move(m, &r);

		if (ok)
			move_pages(m, &r);
		nb_move_done(m->e, &r, ok ? r.pages : 0,
			ok		       ? NB_MOVE_OK
			: status == NB_MOVE_OK ? NB_MOVE_GONE
					       : status,
			m->now_ns);
	}
	return nr;
}

void tm_tell_split(struct tm *m, struct nb_mm *mm, uint64_t addr)
{
	nb_huge_split(m->e, mm, addr, m->now_ns);
}

unsigned int tm_count(const struct tm *m, enum nb_event_type type, int reason)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < m->nr_events; i++)
		nr += m->events[i].type == type && (reason < 0 || m->events[i].reason == reason);
	return nr;
}
