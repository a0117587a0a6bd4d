/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim_fixture.h"

static void make_model(struct sim_try *t, const char *machine)
{
	const bool text = strchr(machine, '\n');
	const int err = text ? sim_model_parse(&t->model, "m.ini", machine, strlen(machine), t->why,
				       sizeof(t->why))
			     : sim_model_load(&t->model, machine, t->why, sizeof(t->why));

	if (err)
		fail_msg("machine: %s", t->why);
}

static void make_load(struct sim_try *t, const char *text)
{
	struct sim_job *job;
	int err = strchr(text, '\n') ? sim_job_parse(&job, "j.ini", text, strlen(text), NULL,
					       t->why, sizeof(t->why))
				     : sim_job_load(&job, text, t->why, sizeof(t->why));

	if (err)
		fail_msg("job: %s", t->why);
	err = sim_load_resolve(&t->load, job, &t->model, t->why, sizeof(t->why));
	sim_job_free(job);
	if (err)
		fail_msg("job: %s", t->why);
}

void try_make(struct sim_try *t, const char *machine, const char *job, const char *system)
{
	memset(t, 0, sizeof(*t));
	t->options = (struct sim_options){.seed = 1, .check = true};
	make_model(t, machine);
	make_load(t, job);
	assert_non_null(nb_system_find(system));
	nb_config_from_system(&t->config, nb_system_find(system));
}

void try_set(struct sim_try *t, const char *assignment)
{
	if (nb_config_set(&t->config, assignment, t->why, sizeof(t->why)))
		fail_msg("%s", t->why);
}

int try_run(struct sim_try *t)
{
	int err;

	assert_false(t->opened);
	if (t->ran)
		nb_result_free(&t->result);
	t->why[0] = '\0';
	err = sim_run(
		&t->result, &t->model, &t->load, &t->config, &t->options, t->why, sizeof(t->why));
	t->ran = !err;
	return err;
}

void try_run_well(struct sim_try *t)
{
	if (try_run(t))
		fail_msg("run: %s", t->why);
}

void try_job(struct sim_try *t, const char *machine, const char *job, const char *system)
{
	try_make(t, machine, job, system);
	try_run_well(t);
}

void try_open(struct sim_try *t)
{
	t->w = (struct sim_world){.model = &t->model,
		.load = &t->load,
		.options = &t->options,
		.config = t->config,
		.out = &t->result,
		.why = t->why,
		.why_len = sizeof(t->why)};
	t->opened = true;
	assert_int_equal(sim_world_open(&t->w), 0);
}

void try_tick(struct sim_try *t)
{
	t->w.now_ns = (double)t->w.ticks * t->w.tick_ns;
	sim_world_tick(&t->w);
	if (t->w.error)
		fail_msg("tick: %s", t->why);
}

void try_until(struct sim_try *t, double seconds)
{
	const struct sim_world *w = &t->w;

	while ((double)w->ticks * w->tick_ns < seconds * 1e9 &&
		(w->live_processes || w->waiting_processes))
		try_tick(t);
}

void try_check(struct sim_try *t)
{
	const char *wrong = nb_engine_check(t->w.engine);

	if (!wrong)
		wrong = sim_pages_check(&t->w);
	if (!wrong)
		wrong = sim_regions_check(&t->w);
	if (!wrong)
		wrong = sim_sched_check(&t->w);
	if (wrong)
		fail_msg("at %.3f s: %s", t->w.now_ns / 1e9, wrong);
}

void try_open_nodes(struct sim_try *t, const char *area, const char *system, const char *set)
{
	char job[256];

	snprintf(job, sizeof(job),
		"[p]\nthreads = 4\ncpus = node:thread\narea = a %s\nphase = compute time=1000\n",
		area);
	try_make(t, SIM_FOUR, job, system);
	if (set)
		try_set(t, set);
	try_open(t);
	try_tick(t);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(t->w.threads[i].node, i);
		t->w.threads[i].area = &t->w.areas[0];
		t->w.threads[i].debt_ns = 0;
	}
}

double try_touch(struct sim_try *t, int thread, uint64_t offset, uint64_t end)
{
	const double ns =
		sim_touch_block(&t->w, &t->w.threads[thread], offset, end, NB_FAULT_WRITE);

	assert_true(ns >= 0);
	return ns;
}

double try_arm(struct sim_try *t, uint64_t start, uint64_t end)
{
	const struct nb_policy noop = {.mode = NB_POLICY_NOOP};
	const uint64_t va = t->w.areas[0].va;

	t->w.kernel_ns = 0;
	assert_int_equal(nb_vma_policy(t->w.engine, t->w.processes[0].mm, va + start, va + end,
				 &noop, true, (uint64_t)t->w.now_ns),
		0);
	return t->w.kernel_ns;
}

int try_node_of(const struct sim_try *t, uint64_t offset)
{
	const uint16_t pte = sim_pte_get(&t->w, &t->w.areas[0], offset);

	return pte & SIM_PTE_PRESENT ? pte & SIM_PTE_NODE : -1;
}

bool try_is_armed(const struct sim_try *t, uint64_t offset)
{
	return sim_pte_get(&t->w, &t->w.areas[0], offset) & SIM_PTE_ARMED;
}

const struct nb_counters *try_counters(const struct sim_try *t)
{
	return nb_engine_counters(t->w.engine);
}

uint64_t try_pages(const struct sim_try *t)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < t->w.nr_areas; i++)
		for (uint64_t o = 0; o < t->w.areas[i].bytes; o += NB_PAGE_SIZE)
			pages += !!(sim_pte_get(&t->w, &t->w.areas[i], o) & SIM_PTE_PRESENT);
	return pages;
}

void try_free(struct sim_try *t)
{
	if (t->opened)
		sim_world_close(&t->w);
	if (t->opened || t->ran)
		nb_result_free(&t->result);
	sim_load_free(&t->load);
	sim_model_free(&t->model);
}
