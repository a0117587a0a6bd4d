/* SPDX-License-Identifier: MIT */
/*
 * Random streams of events on the test machine, under every row and odd topologies, with fixed
 * seeds that are printed when something breaks. After every step the engine is sound, pages are
 * conserved, counters fit together, nothing goes to a node without memory, and no migration window
 * is exceeded.
 */
#include "test_world.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "mm.h"

enum {
	STEPS = 3000,
	SEEDS = 6,
	NODES = 5,
	MAX_MMS = 4,
	TASKS_PER_MM = 3,
	AREAS_PER_MM = 4,
	AREA_BLOCKS = 6,
};

struct proc {
	struct nb_mm *mm;
	uint32_t id;
	struct nb_task *tasks[TASKS_PER_MM];
};

struct run {
	struct tm *m;
	uint64_t x; /* the random state */
	struct proc procs[MAX_MMS];
	uint32_t next_id, next_task;
	uint64_t runtime_ns;
	/* migration windows, kept again from the moves seen: pages since the window of each node
	 * began */
	uint64_t window_end[NODES], window_pages[NODES];
};

/* Never twice in one expression: compilers differ in what they compute first, and seeds must mean
 * the same. */
static uint64_t rnd(struct run *r, uint64_t below)
{
	r->x ^= r->x << 13;
	r->x ^= r->x >> 7;
	r->x ^= r->x << 17;
	return (r->x >> 11) % below;
}

static uint64_t area_start(const struct proc *p, uint64_t area)
{
	return W_BASE + ((uint64_t)p->id << 36) + area * 64 * W_HUGE;
}

static uint64_t random_addr(struct run *r, const struct proc *p)
{
	const uint64_t start = area_start(p, rnd(r, AREAS_PER_MM));

	return start + rnd(r, AREA_BLOCKS * 512) * W_PAGE;
}

static void random_range(struct run *r, const struct proc *p, uint64_t *start, uint64_t *end)
{
	*start = random_addr(r, p);
	*end = *start + (rnd(r, 900) + 1) * W_PAGE;
}

/* ---- steps ---- */

static void populate(struct run *r, struct proc *p)
{
	const struct nb_vma *vma = p->mm->nr_vmas > 0 ? p->mm->vmas[rnd(r, p->mm->nr_vmas)] : NULL;
	uint64_t start;
	int node;

	if (vma == NULL)
		return;
	start = vma->start + rnd(r, (vma->end - vma->start) / W_PAGE) * W_PAGE;
	if (rnd(r, 2) && (start & ~(uint64_t)(W_HUGE - 1)) >= vma->start)
		start &= ~(uint64_t)(W_HUGE - 1);
	node = nb_first_touch_node(r->m->e, p->tasks[0], vma, start, (int)rnd(r, NODES));
	assert_true(r->m->nodes[node].mem_bytes > 0);
	tm_populate(r->m, p->id, start, vma->end, node, rnd(r, 2));
}

static void map_area(struct run *r, struct proc *p)
{
	const uint64_t area = area_start(p, rnd(r, AREAS_PER_MM));
	const uint64_t start = area + rnd(r, 3) * 100 * W_PAGE;
	const uint64_t bytes = (rnd(r, AREA_BLOCKS * 512 - 200) + 1) * W_PAGE;

	tm_map(r->m, p->mm, p->id, start, bytes,
		rnd(r, 8) == 0 ? NB_VMA_UNMIGRATABLE : NB_VMA_WRITE);
}

static void unmap_some(struct run *r, struct proc *p)
{
	uint64_t start, end;

	random_range(r, p, &start, &end);
	tm_unmap(r->m, p->mm, p->id, start, end);
}

static void drop_some(struct run *r, struct proc *p)
{
	uint64_t start, end;

	random_range(r, p, &start, &end);
	nb_pages_dropped(r->m->e, p->mm, start, end);
}

static void set_policy(struct run *r, struct proc *p)
{
	struct nb_policy policy = {.mode = (uint8_t)rnd(r, NB_NR_POLICY_MODES + 1)};
	uint64_t start, end;

	policy.migrate_on_fault = rnd(r, 2);
	policy.nodes[0] = rnd(r, 1 << NODES);
	random_range(r, p, &start, &end);
	if (rnd(r, 2))
		nb_vma_policy(r->m->e, p->mm, start, end, &policy, rnd(r, 3) == 0, r->m->now_ns);
	else
		nb_task_policy(r->m->e, p->tasks[rnd(r, TASKS_PER_MM)], &policy, r->m->now_ns);
}

static void touch_some(struct run *r, struct proc *p)
{
	uint64_t addr = random_addr(r, p);
	const int node = (int)rnd(r, NODES);
	struct nb_task *t = p->tasks[rnd(r, TASKS_PER_MM)];

	for (uint64_t i = rnd(r, 600); i > 0; i--, addr += W_PAGE)
		tm_touch(r->m, t, p->mm, p->id, addr, node);
}

static void odd_fault(struct run *r, struct proc *p)
{
	const uint64_t addr = random_addr(r, p);
	const int node = (int)rnd(r, NODES + 2) - 1;
	const uint32_t flags = (uint32_t)rnd(r, 128) & ~(uint32_t)NB_FAULT_HUGE;

	tm_fault(r->m, p->tasks[0], p->mm, p->id, addr, node, flags);
}

static void share_some(struct run *r, struct proc *p)
{
	struct tm_page *page = tm_page(r->m, p->id, random_addr(r, p));

	if (page != NULL && page->present)
		page->shared = rnd(r, 2);
}

static void tick_some(struct run *r, struct proc *p)
{
	struct nb_task *t = p->tasks[rnd(r, TASKS_PER_MM)];
	const int node = (int)rnd(r, NODES);

	r->runtime_ns += rnd(r, 400) * MS;
	if (r->runtime_ns / MS % 4 == 0)
		nb_task_moved(r->m->e, t, node, (node + 1) % NODES, r->m->now_ns);
	nb_task_tick(r->m->e, t, r->runtime_ns, node, r->m->now_ns);
}

static void finish_moves(struct run *r, struct proc *p)
{
	(void)p;
	tm_finish_moves(
		r->m, rnd(r, 3) ? NB_MOVE_OK : (enum nb_move_status)rnd(r, NB_NR_MOVE_STATUSES));
}

static void new_proc(struct run *r, struct proc *p)
{
	p->id = ++r->next_id;
	p->mm = nb_mm_new(r->m->e, p->id, r->m->now_ns);
	assert_non_null(p->mm);
	for (uint64_t a = 0; a < AREAS_PER_MM; a++)
		tm_add_area(r->m, p->id, area_start(p, a), AREA_BLOCKS * W_HUGE);
	for (uint32_t i = 0; i < TASKS_PER_MM; i++)
		p->tasks[i] = nb_task_new(r->m->e, p->mm, ++r->next_task, r->m->now_ns);
}

static void end_proc(struct run *r, struct proc *p)
{
	tm_drop_areas(r->m, p->id);
	for (int i = 0; i < TASKS_PER_MM; i++)
		nb_task_gone(r->m->e, p->tasks[i], r->m->now_ns);
	nb_mm_gone(r->m->e, p->mm, r->m->now_ns);
}

static void replace_proc(struct run *r, struct proc *p)
{
	if (rnd(r, 20) != 0)
		return;
	end_proc(r, p);
	new_proc(r, p);
}

static void replace_task(struct run *r, struct proc *p)
{
	struct nb_task **t = &p->tasks[rnd(r, TASKS_PER_MM)];

	nb_task_gone(r->m->e, *t, r->m->now_ns);
	*t = nb_task_new(r->m->e, p->mm, ++r->next_task, r->m->now_ns);
	assert_non_null(*t);
}

/* Whether tasks may be moved, from now on. */
static void change_answers(struct run *r, struct proc *p)
{
	static const int run_on[] = {0, 0, EBUSY, EAGAIN, EINVAL}, swap[] = {0, 0, EINVAL};

	(void)p;
	r->m->refuse_run_on = run_on[rnd(r, sizeof(run_on) / sizeof(run_on[0]))];
	r->m->refuse_swap = swap[rnd(r, sizeof(swap) / sizeof(swap[0]))];
}

static void watermark(struct run *r, struct proc *p)
{
	const int node = (int)rnd(r, NODES + 1);

	(void)p;
	nb_node_watermark(r->m->e, node, rnd(r, 2), r->m->now_ns);
}

static void toggle(struct run *r, struct proc *p)
{
	char setting[96];
	uint64_t m;

	(void)p;
	if (rnd(r, 4) != 0)
		return;
	m = rnd(r, NB_NR_MECHANISMS);
	snprintf(setting, sizeof(setting), "%s=%d", nb_mechanism_table[m].name, (int)rnd(r, 2));
	assert_int_equal(nb_engine_set(r->m->e, setting, NULL, 0), 0);
}

static void huge_events(struct run *r, struct proc *p)
{
	if (rnd(r, 2))
		nb_huge_split(r->m->e, p->mm, random_addr(r, p), r->m->now_ns);
	else
		nb_huge_collapsed(r->m->e, p->mm, random_addr(r, p), r->m->now_ns);
}

typedef void (*step_fn)(struct run *r, struct proc *p);

static const step_fn steps[] = {populate, populate, map_area, map_area, unmap_some, drop_some,
	set_policy, touch_some, touch_some, touch_some, touch_some, odd_fault, share_some,
	tick_some, tick_some, tick_some, finish_moves, replace_proc, watermark, huge_events,
	replace_task, change_answers};

/* ---- what must hold after each ---- */

static uint64_t present_pages(const struct run *r)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < r->m->nr_areas; i++) {
		const struct tm_area *a = &r->m->areas[i];

		for (uint64_t p = 0; p < (a->end - a->start) / W_PAGE; p++)
			nr += a->pages[p].present;
	}
	return nr;
}

static const char *conserved(const struct run *r)
{
	uint64_t nr = 0;

	for (int n = 0; n < NODES; n++)
		nr += r->m->node_pages[n];
	return nr == present_pages(r) ? NULL : "pages were lost or doubled";
}

/* Moves as they were asked for, against windows kept here: no more than the size and one request in
 * each. */
static const char *within_windows(struct run *r)
{
	const uint64_t size =
		(uint64_t)nb_tune(nb_engine_config(r->m->e), NB_TUNE_RATELIMIT_MB) * 256;

	for (unsigned int i = 0; i < r->m->nr_events; i++) {
		const struct nb_event *e = &r->m->events[i];
		const uint64_t jiffy = e->time_ns / (4 * MS);

		if (e->type != NB_EVENT_MOVE_ASKED)
			continue;
		if (jiffy > r->window_end[e->node_to]) {
			r->window_end[e->node_to] = jiffy + 25;
			r->window_pages[e->node_to] = 0;
		}
		r->window_pages[e->node_to] += e->pages;
		if (r->window_pages[e->node_to] > size + 512)
			return "a migration window was exceeded";
	}
	r->m->nr_events = 0;
	return NULL;
}

static const char *counters_fit(const struct run *r)
{
	const struct nb_counters *c = nb_engine_counters(r->m->e);

	if (c->numa_hint_faults_local > c->numa_hint_faults)
		return "more local faults than faults";
	if (c->numa_pages_migrated < c->pgmigrate_success)
		return "more moves than hint faults asked for";
	if (c->numa_huge_pte_updates * 512 > c->numa_pte_updates)
		return "more huge updates than updates";
	return NULL;
}

static const char *broken(struct run *r, bool windows)
{
	const char *wrong = r->m->broken;

	if (wrong == NULL)
		wrong = nb_engine_check(r->m->e);
	if (wrong == NULL)
		wrong = conserved(r);
	if (wrong == NULL)
		wrong = counters_fit(r);
	if (wrong == NULL && windows)
		wrong = within_windows(r);
	r->m->nr_events = 0;
	return wrong;
}

/* ---- runs ---- */

/* Node 1 has CPUs and no memory, node 3 memory and no CPUs; distances are asymmetric. */
static void odd_topology(struct tm *m)
{
	m->nodes[1].mem_bytes = 0;
	m->nodes[3].nr_cpus = 0;
	for (int i = 0; i < NODES; i++)
		m->nodes[i].id = i * i;
	for (int i = 0; i < NODES * NODES; i++)
		m->distance[i] = (uint16_t)(i % (NODES + 1) == 0 ? 10 : 12 + i % 7);
}

static void begin(struct run *r, const char *system, uint64_t seed)
{
	*r = (struct run){
		.m = calloc(1, sizeof(*r->m)), .x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
	assert_non_null(r->m);
	tm_init(r->m, system, NODES);
	odd_topology(r->m);
	assert_true(tm_set(r->m, "scan_size_mb=3"));
	assert_true(tm_set(r->m, "ratelimit_mb=2"));
	assert_true(tm_start(r->m));
	for (int i = 0; i < MAX_MMS; i++)
		new_proc(r, &r->procs[i]);
}

/* Returns how many pages moved. */
static uint64_t one_run(const char *system, uint64_t seed, bool toggles)
{
	struct run r;
	const char *wrong = NULL;
	uint64_t moved;
	int step;

	begin(&r, system, seed);
	/* Without the rate limits there are no windows to keep. */
	const bool windows = !toggles && nb_has(&r.m->config, NB_MECH_THP_RATELIMIT);

	for (step = 0; step < STEPS && wrong == NULL; step++) {
		struct proc *p = &r.procs[rnd(&r, MAX_MMS)];

		r.m->now_ns += rnd(&r, 20) * MS;
		steps[rnd(&r, sizeof(steps) / sizeof(steps[0]))](&r, p);
		if (toggles)
			toggle(&r, p);
		wrong = broken(&r, windows);
	}
	if (wrong != NULL)
		fail_msg("%s, seed %llu, step %d: %s", system, (unsigned long long)seed, step,
			wrong);
	moved = nb_engine_counters(r.m->e)->numa_pages_migrated;
	/* A run that does nothing would prove nothing. */
	if (nb_has(&r.m->config, NB_MECH_BALANCING)) {
		assert_true(nb_engine_counters(r.m->e)->numa_hint_faults > 1000);
		assert_true(moved > 0 || toggles);
	}
	wrong = tm_stop(r.m);
	free(r.m);
	if (wrong != NULL)
		fail_msg("%s, seed %llu, at the end: %s", system, (unsigned long long)seed, wrong);
	return moved;
}

static void every_row_survives_random_events(void **state)
{
	(void)state;
	for (size_t i = 0; nb_system_at(i) != NULL; i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			one_run(nb_system_name(nb_system_at(i)), seed, false);
}

static void switched_at_any_time(const char *system)
{
	uint64_t moved = 0;

	for (uint64_t seed = 100; seed < 100 + SEEDS; seed++)
		moved += one_run(system, seed, true);
	assert_true(moved > 0);
}

static void mechanisms_may_be_switched_at_any_time(void **state)
{
	(void)state;
	switched_at_any_time("balancenuma-v8");
	switched_at_any_time("numabal");
}

/* The same events give the same requests, bit for bit. */
static uint64_t digest(uint64_t seed)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	struct run r;

	begin(&r, "balancenuma-v8", seed);
	for (int step = 0; step < STEPS; step++) {
		struct proc *p = &r.procs[rnd(&r, MAX_MMS)];

		r.m->now_ns += rnd(&r, 20) * MS;
		steps[rnd(&r, sizeof(steps) / sizeof(steps[0]))](&r, p);
		for (size_t b = 0; b < r.m->nr_events * sizeof(r.m->events[0]); b++)
			hash = (hash ^ ((const uint8_t *)r.m->events)[b]) * UINT64_C(1099511628211);
		r.m->nr_events = 0;
	}
	assert_null(tm_stop(r.m));
	free(r.m);
	return hash;
}

static void the_same_events_give_the_same_requests(void **state)
{
	(void)state;
	assert_true(digest(7) == digest(7));
	assert_true(digest(7) != digest(8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_survives_random_events),
		cmocka_unit_test(mechanisms_may_be_switched_at_any_time),
		cmocka_unit_test(the_same_events_give_the_same_requests),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
