/* SPDX-License-Identifier: MIT */
/*
 * bench_engine: the engine alone behind a machine that does nothing, to be counted by callgrind:
 *
 *	bench_engine fault N     N hint faults, a third each in place, filtered and moved;
 *--toggle-collect=nb_hint_fault bench_engine scan N      ticks until N pages were passed by scans;
 *--toggle-collect=nb_task_tick
 *
 * A third argument names the system, balancenuma-v8 without.
 * Prints how many there were, so that instructions can be divided by it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../engine/counters.h"
#include "../engine/machine.h"
#include "../engine/why.h"
#include "../topo/topo.h"

enum { PAGES = 1 << 20, NODES = 4, FAULT_NS = 100000 };
static const uint64_t START = UINT64_C(1) << 40;

struct bench {
	struct nb_move_request move; /* the last one asked for */
	bool moving;
	uint64_t passed;
};

static void *bench_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return calloc(1, bytes);
}

static void bench_free(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(p);
}

static uint64_t bench_random(void *ctx)
{
	(void)ctx;
	return 4; /* nothing that is counted here depends on it */
}

/* Every page is there, none was armed. */
static int bench_arm(void *ctx, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	struct bench *b = ctx;
	uint64_t pages = (r->end - r->start) / NB_PAGE_SIZE;

	if (r->max_present && pages > r->max_present)
		pages = r->max_present;
	*out = (struct nb_arm_result){
		.end = r->start + pages * NB_PAGE_SIZE, .present = pages, .updated = pages};
	b->passed += pages;
	return 0;
}

static int bench_move(void *ctx, const struct nb_move_request *r)
{
	struct bench *b = ctx;

	b->move = *r;
	b->moving = true;
	return 0;
}

static int bench_split(void *ctx, uint32_t mm, uint64_t addr, bool keep_armed)
{
	(void)ctx;
	(void)mm;
	(void)addr;
	(void)keep_armed;
	return 0;
}

struct subject {
	struct nb_engine *engine;
	struct nb_mm *mm;
	struct nb_task *task, *other;
	struct nb_vma *vma;
};

static void make_subject(struct subject *s, struct bench *b, const struct nb_system *system)
{
	static const char line[] = "4 nodes x 12 cpus x 16G";
	const struct nb_machine machine = {.ctx = b,
		.alloc = bench_alloc,
		.free = bench_free,
		.random = bench_random,
		.arm = bench_arm,
		.move = bench_move,
		.split = bench_split};
	struct nb_config config;
	struct topo_info info;

	nb_config_from_system(&config, system);
	/* Limits would make most decisions short. */
	if (topo_parse_line(&info, line, sizeof(line) - 1, NULL, 0) ||
		nb_config_set(&config, "migrate_ratelimit=off", NULL, 0) ||
		nb_config_set(&config, "scan_ratelimit=off", NULL, 0) ||
		nb_config_set(&config, "second_node=off", NULL, 0))
		abort();
	s->engine = nb_engine_new(&machine, &info.topo, &config);
	topo_info_free(&info);
	s->mm = s->engine ? nb_mm_new(s->engine, 1, 0) : NULL;
	s->task = s->mm ? nb_task_new(s->engine, s->mm, 1, 0) : NULL;
	s->other = s->task ? nb_task_new(s->engine, s->mm, 2, 0) : NULL;
	s->vma = s->other ? nb_vma_map(s->engine, s->mm, START,
				    START + (uint64_t)PAGES * NB_PAGE_SIZE,
				    NB_VMA_READ | NB_VMA_WRITE, 0)
			  : NULL;
	if (!s->vma)
		abort();
}

static void finish_move(struct subject *s, struct bench *b, uint64_t now_ns)
{
	if (!b->moving)
		return;
	b->moving = false;
	nb_move_done(s->engine, &b->move, b->move.pages, NB_MOVE_OK, now_ns);
}

/*
 * Each page in turn: a local fault, one from another node (filtered), a second from there (moved,
 * where groups and pids do not say otherwise), by two tasks in turn. Scans go on meanwhile.
 */
static void faults(struct subject *s, struct bench *b, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		const uint64_t page = i / 3 % PAGES;
		const struct nb_fault fault = {
			.task = i % 2 ? s->other : s->task,
			.vma = s->vma,
			.addr = START + page * NB_PAGE_SIZE,
			.now_ns = (i + 1) * FAULT_NS,
			.cpu_node = (int16_t)(i % 3 ? 1 + page % (NODES - 1) : 0),
			.page_node = 0,
			.flags = NB_FAULT_WRITE,
		};

		nb_hint_fault(s->engine, &fault);
		finish_move(s, b, fault.now_ns);
		if (i % 1000 == 0)
			nb_task_tick(s->engine, s->task, fault.now_ns, 0, fault.now_ns);
	}
	printf("%" PRIu64 "\n", nr);
	if (nb_engine_counters(s->engine)->numa_hint_faults != nr ||
		!nb_engine_counters(s->engine)->numa_filter_refused)
		abort();
}

static void scans(struct subject *s, const struct bench *b, uint64_t nr)
{
	uint64_t now_ns = 0;

	while (b->passed < nr) {
		now_ns += 4000000;
		nb_task_tick(s->engine, s->task, now_ns, 0, now_ns);
	}
	printf("%" PRIu64 "\n", b->passed);
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	struct subject s;
	int64_t nr;

	const struct nb_system *system = nb_system_find(argc == 4 ? argv[3] : "balancenuma-v8");

	if (argc < 3 || argc > 4 || !system || nb_parse_i64(argv[2], &nr) || nr <= 0) {
		fputs("usage: bench_engine fault|scan N [SYSTEM]\n", stderr);
		return 2;
	}
	make_subject(&s, &b, system);
	if (!strcmp(argv[1], "fault"))
		faults(&s, &b, (uint64_t)nr);
	else
		scans(&s, &b, (uint64_t)nr);
	nb_engine_free(s.engine);
	return 0;
}
