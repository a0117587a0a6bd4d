/* SPDX-License-Identifier: MIT */
/* Random small jobs on random small machines under every system: whatever they are, what must hold
 * holds. Each case prints its seed; `test_sim_random SEED` runs that one alone, and says what it
 * is. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim_fixture.h"

enum { CASES = 30, MAX_TEXT = 4096, MAX_NODES = 6 };

static uint64_t only_seed;

static uint64_t below(struct sim_rng *rng, uint64_t n)
{
	return sim_rng_below(rng, n);
}

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
	const size_t n = strlen(text);
	va_list list;

	va_start(list, format);
	vsnprintf(text + n, MAX_TEXT - n, format, list);
	va_end(list);
	assert_true(strlen(text) < MAX_TEXT - 1);
}

/* ---- machines ---- */

struct shape {
	int nodes, cpu_nodes, memory_nodes;
};

/* The first node has CPUs, the last one memory. */
static struct shape any_nodes(struct sim_rng *rng, char *text)
{
	struct shape s = {.nodes = 1 + (int)below(rng, MAX_NODES)};

	for (int n = 0; n < s.nodes; n++) {
		const bool cpus = n == 0 || below(rng, 4);
		const bool memory = n == s.nodes - 1 || !cpus || below(rng, 4);

		add(text, "%s1 node", n ? " + " : "");
		if (cpus)
			add(text, " x %d cpus", (int)(1 + below(rng, 4)));
		if (memory)
			add(text, " x %dM", (int)(16 << below(rng, 4)));
		if (n && below(rng, 2))
			add(text, " at %d", (int)(11 + below(rng, 60)));
		s.cpu_nodes += cpus;
		s.memory_nodes += memory;
	}
	return s;
}

static struct shape any_machine(struct sim_rng *rng, char *text)
{
	static const int hz[] = {100, 250, 1000};
	struct shape s;

	add(text, "[machine]\ntopology = ");
	s = any_nodes(rng, text);
	add(text, "\nhz = %d\n[memory]\nbandwidth_mib_s = %d\n", hz[below(rng, 3)],
		(int)(500 + below(rng, 20000)));
	if (below(rng, 2))
		add(text, "link_bandwidth_mib_s = %d\n", (int)(200 + below(rng, 5000)));
	if (below(rng, 3) == 0)
		add(text, "watermark_high_ratio = 0.1\n");
	add(text, "[cpu]\nllc_mib = %d\nfollower_gain = 0.%d\n", (int)below(rng, 20),
		(int)below(rng, 10));
	add(text, "[scheduler]\nwander_per_min = %d\nsteal_per_s = %d\nsteal_ms = %d\n",
		(int)below(rng, 120), (int)below(rng, 20), (int)below(rng, 10));
	return s;
}

/* ---- jobs ---- */

static void any_list(struct sim_rng *rng, char *text, int nodes)
{
	const int first = (int)below(rng, (uint64_t)nodes);

	add(text, "%d", first);
	if (first + 1 < nodes && below(rng, 2))
		add(text, "..%d", nodes - 1);
}

static void any_policy(struct sim_rng *rng, char *text, struct shape s)
{
	static const char *const plain[] = {"default", "local"};
	static const char *const listed[] = {"bind", "interleave"};
	const uint64_t kind = below(rng, 5);

	if (kind < 2) {
		add(text, "policy=%s", plain[kind]);
	} else if (kind == 2) {
		add(text, "policy=preferred:%d", (int)below(rng, (uint64_t)s.memory_nodes));
	} else {
		add(text, "policy=%s:", listed[kind - 3]);
		any_list(rng, text, s.memory_nodes);
	}
}

static int any_areas(struct sim_rng *rng, char *text, struct shape s)
{
	const int areas = 1 + (int)below(rng, 3);

	for (int a = 0; a < areas; a++) {
		/* At least as many pages as threads. */
		add(text, "area = a%d size=%dK thp=%s", a, (int)(64 + 4 * below(rng, 1500)),
			below(rng, 2) ? "always" : "never");
		if (below(rng, 2))
			add(text, " offset=%dK", (int)(4 * below(rng, 512)));
		if (below(rng, 4) == 0)
			add(text, " shared");
		if (below(rng, 4) == 0) {
			add(text, " ");
			any_policy(rng, text, s);
		}
		add(text, "\n");
	}
	return areas;
}

static void any_access(struct sim_rng *rng, char *text, int areas)
{
	static const char *const kinds[] = {
		"uniform", "zipf theta=0.9", "hotset hot=0.2 share=0.8", "chase"};
	const bool own = below(rng, 2);
	const bool is_random = below(rng, 2);

	if (below(rng, 6) == 0)
		add(text, "main ");
	add(text, "%s area=a%d slice=%s", is_random ? kinds[below(rng, 4)] : "sweep",
		(int)below(rng, (uint64_t)areas), own ? "own" : "all");
	if (is_random && own && below(rng, 2))
		add(text, " shared=0.3");
	if (is_random)
		add(text, " bytes=%dM", (int)(1 + below(rng, 500)));
	else
		add(text, " loops=%d.%d", (int)below(rng, 200), (int)(1 + below(rng, 9)));
	if (below(rng, 2))
		add(text, " time=0.%03d", (int)(1 + below(rng, 999)));
	if (below(rng, 3) == 0)
		add(text, " write=0.%d", (int)below(rng, 10));
	if (below(rng, 8) == 0)
		add(text, " compute=%dns", (int)below(rng, 100));
	if (below(rng, 8) == 0)
		add(text, below(rng, 2) ? " kernel" : " lookup");
}

static void any_phase(struct sim_rng *rng, char *text, int areas, struct shape s, int label)
{
	add(text, "phase = l%d: ", label);
	switch (below(rng, 10)) {
	case 0:
		add(text, "compute time=0.%03d", (int)(1 + below(rng, 300)));
		break;
	case 1:
		add(text, "sleep time=0.%03d", (int)(1 + below(rng, 300)));
		break;
	case 2:
		add(text, "barrier");
		break;
	case 3:
		add(text, "policy ");
		any_policy(rng, text, s);
		break;
	case 4:
		add(text, "mbind area=a%d slice=own ", (int)below(rng, (uint64_t)areas));
		if (below(rng, 2))
			add(text, "policy=noop lazy");
		else
			any_policy(rng, text, s);
		break;
	default:
		any_access(rng, text, areas);
	}
	add(text, "\n");
}

static void any_section(struct sim_rng *rng, char *text, const char *name, struct shape s)
{
	const int phases = 1 + (int)below(rng, 6);
	int areas;

	add(text, "[%s]\ninstances = %d\nthreads = %d\n", name, (int)(1 + below(rng, 3)),
		(int)(1 + below(rng, 6)));
	if (below(rng, 3) == 0)
		add(text, "concurrency = 1\n");
	if (below(rng, 3) == 0)
		add(text, "start = 0.%d\n", (int)below(rng, 10));
	if (below(rng, 2))
		add(text, "cpus = node:%s%%%d\n", below(rng, 2) ? "thread" : "proc", s.cpu_nodes);
	areas = any_areas(rng, text, s);
	for (int i = 0; i < phases; i++)
		any_phase(rng, text, areas, s, i);
	/* Something takes time, so that a goto may go back over it. */
	add(text, "phase = compute time=0.01\n");
	if (below(rng, 2))
		add(text, "phase = goto target=l0 loops=%d\n", (int)(1 + below(rng, 5)));
}

static void any_job(struct sim_rng *rng, char *text, struct shape s)
{
	add(text, "[global]\ntime_limit = 30\n");
	if (below(rng, 4) == 0)
		add(text, "preload = lower_tier\n");
	if (below(rng, 4) == 0)
		add(text, "background_fill = 0.%d\n", (int)below(rng, 8));
	any_section(rng, text, "p", s);
	if (below(rng, 2))
		any_section(rng, text, "q", s);
}

/* ---- what must hold ---- */

/* The migration window, as the series has it, kept from the events alone. */
struct window {
	uint64_t end_j, pages, moved;
};

struct watch {
	struct window window[MAX_NODES];
	const struct sim_try *t;
	uint64_t last_ns, moved;
	const char *wrong;
};

static void expect(struct watch *w, bool holds, const char *what)
{
	if (!holds && !w->wrong)
		w->wrong = what;
}

static uint64_t limit_pages(const struct nb_config *c)
{
	return (uint64_t)nb_tune(c, NB_TUNE_RATELIMIT_MB) << 8;
}

/* In no stretch as long as the window does a node receive more than two windows' worth: one that
 * began before it, and one inside. */
static void watch_move(struct watch *w, const struct nb_event *e)
{
	const struct nb_config *c = &w->t->config;
	const uint64_t j = e->time_ns / (1000000000 / c->hz);
	const uint64_t length =
		((uint64_t)nb_tune(c, NB_TUNE_MIGRATE_INTERVAL_MS) * c->hz + 999) / 1000;
	struct window *window = &w->window[e->node_to];

	w->moved += e->pages;
	expect(w, e->node_to != e->node_from, "a move to where the page was");
	expect(w, w->t->model.topo.nodes[e->node_to].mem_bytes > 0, "a move to no memory");
	if (!nb_has(c, NB_MECH_MIGRATE_RATELIMIT))
		return;
	if (j > window->end_j) {
		window->end_j = j + length;
		window->moved = 0;
	}
	window->moved += nb_has(c, NB_MECH_THP_RATELIMIT) || !e->huge ? e->pages : 1;
	expect(w, window->moved <= 2 * (limit_pages(c) + NB_HUGE_PAGES),
		"more moves than the window allows");
}

static void watch_event(void *ctx, const struct nb_event *e)
{
	struct watch *w = ctx;
	const int nodes = (int)w->t->model.topo.nr_nodes;

	expect(w, e->time_ns >= w->last_ns, "time goes back");
	w->last_ns = e->time_ns;
	expect(w, e->node_from < nodes && e->node_to < nodes, "a node that is not there");
	if (e->type == NB_EVENT_MOVE_DONE)
		watch_move(w, e);
}

static void check_counters(const struct watch *w, const struct nb_config *config)
{
	const struct nb_counters *c = &w->t->result.counters;

	assert_true(c->numa_hint_faults_local <= c->numa_hint_faults);
	assert_true(c->numa_huge_pte_updates * NB_HUGE_PAGES <= c->numa_pte_updates);
	assert_true(c->numa_pages_migrated <= w->moved);
	if (nb_has(config, NB_MECH_THP_STATS))
		assert_int_equal(c->numa_pages_migrated, w->moved);
	if (!nb_has(config, NB_MECH_BALANCING) && !nb_has(config, NB_MECH_MPOL_LAZY))
		assert_int_equal(c->numa_pte_updates, 0);
	assert_int_equal(c->numa_page_state_missed, 0);
}

static void check_result(const struct sim_try *t)
{
	const struct nb_result *r = &t->result;
	double cpus = t->model.topo.nr_cpus;

	assert_true(isfinite(r->elapsed_s) && r->elapsed_s >= 0 && r->elapsed_s <= 30.0001);
	assert_true(isfinite(r->bytes) && r->bytes >= 0);
	assert_true(r->bytes == 0 || (r->local_share > -1e-9 && r->local_share < 1 + 1e-9));
	/* A thread that is let go in the middle of a tick may lend that tick's rest. */
	assert_true(r->user_s + r->system_s <=
		    (cpus * r->elapsed_s + (cpus + t->load.nr_threads) * 0.01) * 1.0001);
	for (unsigned int n = 0; n < r->nr_nodes; n++)
		if (!t->model.topo.nodes[n].mem_bytes)
			assert_int_equal(r->final_pages[n], 0);
	assert_int_equal(r->timed_out, r->elapsed_s == 30);
}

static void any_tunables(struct sim_rng *rng, struct sim_try *t)
{
	/* Small, so that it is met. */
	try_set(t, below(rng, 2) ? "ratelimit_mb=1" : "ratelimit_mb=4");
	try_set(t, below(rng, 2) ? "scan_delay_ms=100" : "scan_delay_ms=1000");
	if (below(rng, 4) == 0)
		try_set(t, "thp_migration=off");
	if (below(rng, 4) == 0)
		try_set(t, "two_stage_filter=off");
}

/* False: the job is too large for the machine, or says what no job may. */
static bool make(struct sim_try *t, uint64_t seed, const char *system)
{
	static char machine[MAX_TEXT], text[MAX_TEXT];
	struct sim_rng rng;
	struct sim_job *job;
	struct shape s;
	int err;

	memset(t, 0, sizeof(*t));
	machine[0] = text[0] = '\0';
	sim_rng_seed(&rng, seed);
	s = any_machine(&rng, machine);
	any_job(&rng, text, s);
	if (only_seed)
		print_message("%s\n%s\n", machine, text);
	if (sim_model_parse(&t->model, "m.ini", machine, strlen(machine), t->why, sizeof(t->why)))
		fail_msg("seed %d: %s\n%s", (int)seed, t->why, machine);
	err = sim_job_parse(&job, "j.ini", text, strlen(text), NULL, t->why, sizeof(t->why));
	if (err)
		fail_msg("seed %d: %s\n%s", (int)seed, t->why, text);
	err = sim_load_resolve(&t->load, job, &t->model, t->why, sizeof(t->why));
	sim_job_free(job);
	if (err) {
		if (!strstr(t->why, "of memory"))
			fail_msg("seed %d: %s\n%s\n%s", (int)seed, t->why, machine, text);
		sim_model_free(&t->model);
		return false;
	}
	nb_config_from_system(&t->config, nb_system_find(system));
	any_tunables(&rng, t);
	return true;
}

static bool run_one(uint64_t seed, const char *system)
{
	struct sim_try t;
	struct watch w = {.t = &t};
	int err;

	if (!make(&t, seed, system))
		return false;
	t.options = (struct sim_options){.seed = seed,
		.check = true,
		.sample_interval_s = 0.05,
		.trace = watch_event,
		.trace_ctx = &w};
	t.config.hz = (uint32_t)t.model.hz;
	err = try_run(&t);
	if (err || w.wrong)
		fail_msg("seed %d, %s: %s", (int)seed, system, err ? t.why : w.wrong);
	check_result(&t);
	check_counters(&w, &t.config);
	try_free(&t);
	return true;
}

static void test_whatever_runs_what_must_hold_holds(void **state)
{
	int ran = 0;

	(void)state;
	for (uint64_t seed = 1; ran < CASES; seed++) {
		if (only_seed && seed != only_seed)
			continue;
		print_message("seed %d\n", (int)seed);
		for (size_t s = 0; nb_system_at(s); s++)
			if (!run_one(seed, nb_system_name(nb_system_at(s))))
				break;
			else
				ran += s == 0;
		if (only_seed)
			break;
	}
}

/* ---- the migration window, exactly ---- */

struct exact {
	struct window window[4];
	uint64_t limit, refused, most;
	bool wrong;
};

/* A fault that gets as far as the window asks it: it is let through until more than the limit was
 * used, and opens a new one when the old one is over. */
static void check_window(void *ctx, const struct nb_event *e)
{
	struct exact *x = ctx;
	const uint64_t j = e->time_ns / 4000000;
	struct window *w;

	if (e->type == NB_EVENT_MOVE_DONE) {
		w = &x->window[e->node_to];
		w->moved += e->pages;
		x->most = w->moved > x->most ? w->moved : x->most;
		return;
	}
	if (e->type != NB_EVENT_HINT_FAULT ||
		(e->reason != NB_WHY_MOVE && e->reason != NB_WHY_RATELIMITED))
		return;
	w = &x->window[e->node_to];
	if (j > w->end_j)
		*w = (struct window){.end_j = j + 25};
	x->wrong = x->wrong || (e->reason == NB_WHY_RATELIMITED) != (w->pages > x->limit);
	if (e->reason == NB_WHY_RATELIMITED)
		x->refused++;
	else
		w->pages += e->pages;
}

static void test_a_node_receives_no_more_than_its_window(void **state)
{
	static const char *const thp[] = {"always", "never"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct exact x = {.limit = 4 << 8};
		char job[256];
		struct sim_try t;

		snprintf(job, sizeof(job),
			"[p]\nthreads = 4\ncpus = node:thread\narea = a size=200M thp=%s\n"
			"phase = main sweep area=a\nphase = sweep area=a slice=own time=20\n",
			thp[k]);
		try_make(&t, SIM_FOUR, job, "balancenuma-v8");
		try_set(&t, "ratelimit_mb=4");
		t.options.trace = check_window;
		t.options.trace_ctx = &x;
		try_run_well(&t);
		assert_false(x.wrong);
		assert_true(x.refused > 0);
		assert_true(x.most > x.limit && x.most <= x.limit + 512);
		assert_true(t.result.counters.numa_pages_migrated > 4 * x.limit);
		try_free(&t);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whatever_runs_what_must_hold_holds),
		cmocka_unit_test(test_a_node_receives_no_more_than_its_window),
	};

	only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
