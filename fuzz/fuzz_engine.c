/* SPDX-License-Identifier: MIT */
/*
 * The door of the engine: bytes become events on the test machine. The first byte chooses the row,
 * the second one what is odd about the machine; then each event is one byte of kind and three of
 * arguments. The engine must be sound afterwards, and every rule of the door kept.
 */
#include <stdio.h>
#include <stdlib.h>
/* The test machine belongs to the engine's tests; as source, because nothing else links it. */
#include "../engine/test_machine.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	NODES = 4,
	MMS = 2,
	TASKS = 4,
	AREAS = 3,
	AREA_PAGES = 1536,
	MAX_EVENTS = 400,
};

struct fuzz {
	struct tm *m;
	struct nb_mm *mm[MMS];
	struct nb_task *task[TASKS];
	uint64_t runtime_ns;
};

struct args {
	uint8_t a, b, c;
};

static uint32_t mm_id(uint8_t a)
{
	return a % MMS + 1U;
}

static struct nb_mm *mm_of(const struct fuzz *f, uint8_t a)
{
	return f->mm[a % MMS];
}

/* A task of that address space. */
static struct nb_task *task_of(const struct fuzz *f, uint8_t a)
{
	return f->task[a % MMS + (a / MMS % 2) * MMS];
}

static uint64_t addr_of(struct args x)
{
	const uint64_t area = UINT64_C(1) << (30 + x.b % AREAS);

	return area + (uint64_t)(x.b * 64U + x.c) % AREA_PAGES * NB_PAGE_SIZE;
}

static uint64_t end_of(struct args x)
{
	return addr_of(x) + (UINT64_C(1) + x.c * (x.a / 8U)) * NB_PAGE_SIZE;
}

static int node_of(uint8_t a)
{
	return a % (NODES + 2) - 1;
}

/* ---- events ---- */

static void map(struct fuzz *f, struct args x)
{
	tm_map(f->m, mm_of(f, x.a), mm_id(x.a), addr_of(x), end_of(x) - addr_of(x), x.a >> 4);
}

static void unmap(struct fuzz *f, struct args x)
{
	tm_unmap(f->m, mm_of(f, x.a), mm_id(x.a), addr_of(x), end_of(x));
}

static void unmap_all(struct fuzz *f, struct args x)
{
	for (uint64_t a = 0; a < AREAS; a++) {
		const uint64_t start = UINT64_C(1) << (30 + a);

		tm_unmap(f->m, mm_of(f, x.a), mm_id(x.a), start, start + AREA_PAGES * NB_PAGE_SIZE);
	}
}

static void populate(struct fuzz *f, struct args x)
{
	tm_populate(f->m, mm_id(x.a), addr_of(x) & ~(uint64_t)(NB_HUGE_SIZE - 1), end_of(x),
		f->m->nodes[x.a % NODES].mem_bytes > 0 ? x.a % NODES : 0, x.c & 1);
}

static void protect(struct fuzz *f, struct args x)
{
	nb_vma_protect(f->m->e, mm_of(f, x.a), addr_of(x), end_of(x), x.c, f->m->now_ns);
}

static void policy(struct fuzz *f, struct args x)
{
	const struct nb_policy p = {
		.mode = x.c % 8, .migrate_on_fault = x.a & 16, .nodes = {x.b, x.c}};

	if (x.a & 32)
		nb_task_policy(f->m->e, task_of(f, x.a), &p, f->m->now_ns);
	else
		nb_vma_policy(
			f->m->e, mm_of(f, x.a), addr_of(x), end_of(x), &p, x.a & 64, f->m->now_ns);
}

static void drop(struct fuzz *f, struct args x)
{
	nb_pages_dropped(f->m->e, mm_of(f, x.a), addr_of(x), end_of(x));
}

static void tick(struct fuzz *f, struct args x)
{
	f->runtime_ns += x.b * UINT64_C(10000000);
	f->m->now_ns += x.c * UINT64_C(4000000);
	nb_task_tick(f->m->e, task_of(f, x.a), f->runtime_ns, node_of(x.a / 4), f->m->now_ns);
}

static void moved(struct fuzz *f, struct args x)
{
	nb_task_moved(f->m->e, task_of(f, x.a), node_of(x.b), node_of(x.c), f->m->now_ns);
}

static void touch(struct fuzz *f, struct args x)
{
	for (uint64_t a = addr_of(x), i = 0; i < 64; a += NB_PAGE_SIZE, i++)
		tm_touch(f->m, task_of(f, x.a), mm_of(f, x.a), mm_id(x.a), a, x.a / 4 % NODES);
}

static void odd_fault(struct fuzz *f, struct args x)
{
	tm_fault(f->m, task_of(f, x.a), mm_of(f, x.a), mm_id(x.a), addr_of(x), node_of(x.a / 4),
		x.c & 0x7DU);
}

static void moves(struct fuzz *f, struct args x)
{
	tm_finish_moves(f->m, (enum nb_move_status)(x.a % NB_NR_MOVE_STATUSES));
}

static void huge(struct fuzz *f, struct args x)
{
	if (x.c & 1)
		nb_huge_split(f->m->e, mm_of(f, x.a), addr_of(x), f->m->now_ns);
	else
		nb_huge_collapsed(f->m->e, mm_of(f, x.a), addr_of(x), f->m->now_ns);
}

static void set(struct fuzz *f, struct args x)
{
	char text[96];

	if (x.a & 1)
		snprintf(text, sizeof(text), "%s=%d",
			nb_mechanism_table[x.b % NB_NR_MECHANISMS].name, x.c & 1);
	else
		snprintf(text, sizeof(text), "%s=%d", nb_tunable_table[x.b % NB_NR_TUNABLES].name,
			x.c);
	nb_engine_set(f->m->e, text, NULL, 0);
}

static void watermark(struct fuzz *f, struct args x)
{
	nb_node_watermark(f->m->e, node_of(x.a), x.c & 1, f->m->now_ns);
}

static void trouble(struct fuzz *f, struct args x)
{
	static const int run_on[] = {0, EBUSY, EAGAIN, EINVAL};

	f->m->refuse_run_on = run_on[x.b % 4];
	f->m->refuse_swap = x.b & 4 ? EINVAL : 0;
	f->m->no_memory = x.a & 1;
	f->m->refuse_arm = x.a & 2 ? EPERM : 0;
	f->m->refuse_move = x.a & 4 ? EBUSY : 0;
	f->m->refuse_split = x.a & 8 ? EBUSY : 0;
	f->m->bad_arm_end = x.a & 16;
}

static void others(struct fuzz *f, struct args x)
{
	const uint32_t tasks[NODES] = {x.b, x.c, x.a & 1 ? UINT32_MAX : 0};

	nb_engine_others(f->m->e, tasks);
}

static void replace_task(struct fuzz *f, struct args x)
{
	const uint32_t i = x.a % TASKS;
	struct nb_task *t = nb_task_new(f->m->e, f->mm[i % MMS], 10U + TASKS + i, f->m->now_ns);

	if (t == NULL)
		return;
	nb_task_gone(f->m->e, f->task[i], f->m->now_ns);
	f->task[i] = t;
}

typedef void (*event_fn)(struct fuzz *f, struct args x);

static const event_fn events[] = {map, map, unmap, populate, populate, protect, policy, drop, tick,
	tick, touch, touch, odd_fault, moves, huge, set, watermark, trouble, replace_task,
	unmap_all, moved, others};

/* ---- a run ---- */

static void odd_machine(struct tm *m, uint8_t how)
{
	if (how & 1)
		m->nodes[1].mem_bytes = 0;
	if (how & 2)
		m->nodes[2].nr_cpus = 0;
	if (how & 4)
		m->distance[1] = 77;
	if (how & 8)
		m->config.hz = 1000;
	if (how & 16)
		m->machine.trace = NULL;
	if (how & 32)
		m->machine.swap = NULL;
	if (how & 64)
		m->machine.run_on = NULL;
	tm_set(m, "scan_size_mb=2");
	tm_set(m, "ratelimit_mb=1");
	tm_set(m, "scan_delay_ms=0");
}

/* Something is there from the start, so that faults mean something soon: one area of huge pages,
 * one of small ones. */
static void begin_mm(struct fuzz *f, uint32_t i)
{
	f->mm[i] = nb_mm_new(f->m->e, i + 1, 0);
	for (uint64_t a = 0; a < AREAS; a++)
		tm_add_area(f->m, i + 1, UINT64_C(1) << (30 + a), AREA_PAGES * NB_PAGE_SIZE);
	for (uint64_t a = 0; a < 2; a++) {
		const uint64_t start = UINT64_C(1) << (30 + a);
		const uint64_t end = start + AREA_PAGES * NB_PAGE_SIZE;

		nb_vma_map(f->m->e, f->mm[i], start, end, NB_VMA_WRITE, 0);
		tm_populate(f->m, i + 1, start, end, 0, a == 0);
	}
}

static void begin(struct fuzz *f, uint8_t row, uint8_t odd)
{
	size_t rows = 0;

	while (nb_system_at(rows) != NULL)
		rows++;
	tm_init(f->m, nb_system_name(nb_system_at(row % rows)), NODES);
	odd_machine(f->m, odd);
	if (!tm_start(f->m))
		abort();
	for (uint32_t i = 0; i < MMS; i++)
		begin_mm(f, i);
	for (uint32_t i = 0; i < TASKS; i++)
		f->task[i] = nb_task_new(f->m->e, f->mm[i % MMS], 10 + i, 0);
}

static void end(struct fuzz *f)
{
	const char *wrong = tm_stop(f->m);

	if (wrong != NULL) {
		fprintf(stderr, "fuzz_engine: %s\n", wrong);
		abort();
	}
	free(f->m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.m = malloc(sizeof(struct tm))};

	if (f.m == NULL || size < 2) {
		free(f.m);
		return 0;
	}
	begin(&f, data[0], data[1]);
	for (size_t i = 2, nr = 0; i + 4 <= size && nr < MAX_EVENTS; i += 4, nr++) {
		const struct args x = {data[i + 1], data[i + 2], data[i + 3]};

		events[data[i] % (sizeof(events) / sizeof(events[0]))](&f, x);
		f.m->nr_events = f.m->nr_arms = 0;
	}
	end(&f);
	return 0;
}
