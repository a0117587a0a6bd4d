/* SPDX-License-Identifier: MIT */
/*
 * run: the clock of the simulation: processes come and go, ticks pass, samples are taken.
 */
#include "world.h"
#include "../engine/why.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SAMPLES = 1000, PROGRESS_TICKS = 256 };

void sim_fail(struct sim_world *w, int err, const char *text)
{
	if (w->error)
		return;
	w->error = nb_why(w->why, w->why_len, err, "%s on %s: at %.3f s: %s", w->load->name,
		w->model->name, w->now_ns / 1e9, text);
}

/* ---- processes ---- */

static int map_area(struct sim_world *w, struct sim_process *p, uint32_t area)
{
	struct sim_mapping *m = &p->map[area];
	int err;

	if (m->mapped)
		return 0;
	if (!nb_vma_map(w->engine, p->mm, m->area->va, m->area->va + m->area->bytes,
		    NB_VMA_READ | NB_VMA_WRITE, (uint64_t)w->now_ns))
		return -ENOMEM;
	m->mapped = true;
	if (!m->area->mappings++ && w->load->preload_lower_tier && sim_area_preload(w, m->area))
		return -ENOSPC;
	if (m->area->load->policy.mode == NB_POLICY_DEFAULT)
		return 0;
	err = nb_vma_policy(w->engine, p->mm, m->area->va, m->area->va + m->area->bytes,
		&m->area->load->policy, false, (uint64_t)w->now_ns);
	/* A policy that the system does not have is refused, as its kernel would: the program goes
	 * on. */
	return err == -EOPNOTSUPP ? 0 : err;
}

void sim_process_map(struct sim_world *w, struct sim_process *p, uint32_t area)
{
	const int err = map_area(w, p, area);

	if (err)
		sim_fail(w, err,
			err == -ENOSPC ? "the simulated machine is out of memory"
				       : "an area could not be mapped");
}

void sim_process_unmap(struct sim_world *w, struct sim_process *p, uint32_t area)
{
	struct sim_mapping *m = &p->map[area];

	if (!m->mapped)
		return;
	m->mapped = false;
	nb_vma_unmap(
		w->engine, p->mm, m->area->va, m->area->va + m->area->bytes, (uint64_t)w->now_ns);
	if (!--m->area->mappings)
		sim_pages_drop(w, m->area);
}

static void start_process(struct sim_world *w, struct sim_process *p)
{
	const struct sim_process_load *load = p->load;

	p->state = SIM_PROC_RUNNING;
	p->mm = nb_mm_new(w->engine, p->id, (uint64_t)w->now_ns);
	if (!p->mm) {
		sim_fail(w, -ENOMEM, "no memory for an address space");
		return;
	}
	p->live_threads = load->nr_threads;
	w->pool_running[load->pool]++;
	w->waiting_processes--;
	w->live_processes++;
	for (uint32_t i = 0; i < load->nr_areas && !w->error; i++)
		if (!load->areas[i].late)
			sim_process_map(w, p, i);
	if (!w->error)
		sim_backdrop_map(w, p);
	for (uint32_t i = 0; i < load->nr_threads && !w->error; i++)
		sim_phase_start(w, &w->threads[load->first_thread + i]);
	p->begun = true;
}

void sim_thread_begin(struct sim_world *w, struct sim_thread *t)
{
	struct sim_process *p = t->proc;
	/* Where none of them is main, the one that makes all does nothing else. */
	const struct sim_thread *maker = p->load->has_main && t->load->number > 0
						 ? &w->threads[p->load->first_thread]
						 : NULL;

	t->task = nb_task_new(w->engine, p->mm, t->id, (uint64_t)w->now_ns);
	if (!t->task) {
		sim_fail(w, -ENOMEM, "no memory for a task");
		return;
	}
	if (t->load->policy.mode != NB_POLICY_DEFAULT)
		nb_task_policy(w->engine, t->task, &t->load->policy, (uint64_t)w->now_ns);
	if (maker && maker->task)
		nb_task_made_by(w->engine, t->task, maker->task, (uint64_t)w->now_ns);
	t->debt_ns +=
		(p->begun ? 0 : w->model->process_start) + t->load->number * w->model->thread_start;
	sim_backdrop_begin(w, t);
}

static void take_final_pages(struct sim_world *w)
{
	if (w->final_taken)
		return;
	w->final_taken = true;
	for (uint32_t a = 0; a < w->nr_areas; a++)
		for (unsigned int n = 0; n < w->nr_nodes; n++)
			w->out->final_pages[n] += w->areas[a].node_pages[n];
}

void sim_process_exit(struct sim_world *w, struct sim_process *p)
{
	/* Short processes come and go; where pages ended up is asked of jobs whose processes all
	 * stay. */
	if (!w->waiting_processes)
		take_final_pages(w);
	for (uint32_t i = 0; i < p->load->nr_areas; i++)
		sim_process_unmap(w, p, i);
	sim_backdrop_leave(w, p);
	nb_mm_gone(w->engine, p->mm, (uint64_t)w->now_ns);
	p->mm = NULL;
	p->state = SIM_PROC_DONE;
	w->pool_running[p->load->pool]--;
	w->live_processes--;
}

static void start_processes(struct sim_world *w)
{
	for (uint32_t i = 0; w->waiting_processes && i < w->load->nr_processes && !w->error; i++) {
		struct sim_process *p = &w->processes[i];
		const struct sim_process_load *load = p->load;

		if (p->state != SIM_PROC_WAITING || load->start_s * 1e9 > w->now_ns)
			continue;
		if (load->concurrency && w->pool_running[load->pool] >= load->concurrency)
			continue;
		start_process(w, p);
	}
}

/* ---- samples ---- */

/* The local share of what two neighbouring samples cover; `before` was taken ahead of them. */
static double merged_share(
	const struct nb_sample *before, const struct nb_sample *a, const struct nb_sample *b)
{
	const double first = a->bytes - (before ? before->bytes : 0);
	const double second = b->bytes - a->bytes;
	double local = 0;

	if (first + second <= 0)
		return NAN;
	local += first > 0 ? first * a->local_share : 0;
	local += second > 0 ? second * b->local_share : 0;
	return local / (first + second);
}

/* The last sample goes: what it covers is left to the next one. */
static void drop_sample(struct sim_world *w)
{
	const struct nb_sample *last = &w->out->samples[--w->out->nr_samples];
	const double bytes = last->bytes - last[-1].bytes;

	w->sample_bytes = last[-1].bytes;
	if (bytes > 0)
		w->sample_local -= bytes * last->local_share;
}

/* Keep every second sample, from the first on: the series covers the whole run in at most
 * MAX_SAMPLES points, at even distances but for the last. */
static void thin_samples(struct sim_world *w)
{
	struct nb_result *out = w->out;
	const size_t n = w->nr_nodes;

	if (out->nr_samples % 2 == 0)
		drop_sample(w);
	for (uint32_t i = 2; i < out->nr_samples; i += 2) {
		out->samples[i].local_share = merged_share(
			&out->samples[i / 2 - 1], &out->samples[i - 1], &out->samples[i]);
		out->samples[i / 2] = out->samples[i];
		memcpy(&out->node_pages[i / 2 * n], &out->node_pages[i * n], n * sizeof(uint64_t));
	}
	out->nr_samples = (out->nr_samples + 1) / 2;
	w->sample_ns *= 2;
}

static double mean_scan_period(const struct sim_world *w)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->load->nr_threads; i++)
		if (w->threads[i].task) {
			sum += nb_task_scan_period_ms(w->threads[i].task);
			n++;
		}
	return n ? sum / n : 0;
}

static void take_sample(struct sim_world *w, double at_ns)
{
	const struct nb_counters *c = nb_engine_counters(w->engine);
	double bytes;
	uint64_t *pages;

	if (w->out->nr_samples == MAX_SAMPLES)
		thin_samples(w);
	bytes = w->bytes - w->sample_bytes;
	w->out->samples[w->out->nr_samples] = (struct nb_sample){.time_s = at_ns / 1e9,
		.local_share = bytes > 0 ? (w->local_bytes - w->sample_local) / bytes : NAN,
		.bytes = w->bytes,
		.scan_period_ms = mean_scan_period(w),
		.hint_faults = c->numa_hint_faults,
		.hint_faults_local = c->numa_hint_faults_local,
		.pte_updates = c->numa_pte_updates,
		.pages_migrated = c->numa_pages_migrated};
	pages = &w->out->node_pages[(size_t)w->out->nr_samples++ * w->nr_nodes];
	memset(pages, 0, w->nr_nodes * sizeof(*pages));
	for (uint32_t a = 0; a < w->nr_areas; a++)
		for (unsigned int n = 0; n < w->nr_nodes; n++)
			pages[n] += w->areas[a].node_pages[n];
	w->sample_bytes = w->bytes;
	w->sample_local = w->local_bytes;
	w->next_sample_ns = at_ns + w->sample_ns;
}

static void take_last_sample(struct sim_world *w, double at_ns)
{
	const struct nb_result *out = w->out;

	if (!out->nr_samples || at_ns / 1e9 > out->samples[out->nr_samples - 1].time_s)
		take_sample(w, at_ns);
}

void sim_thread_ends(struct sim_world *w, const struct sim_thread *t)
{
	if (t->proc->live_threads == 1 && w->live_processes == 1 && !w->waiting_processes)
		take_last_sample(w, w->now_ns + w->used_ns);
}

/* ---- setting up ---- */

static int set_up_areas(struct sim_world *w)
{
	uint64_t next_va = UINT64_C(1) << 40;
	uint32_t nr = 0;

	for (uint32_t p = 0; p < w->load->nr_processes; p++)
		nr += w->load->processes[p].nr_areas;
	w->areas = calloc(nr + 1, sizeof(*w->areas));
	if (!w->areas)
		return -ENOMEM;
	for (uint32_t p = 0; p < w->load->nr_processes; p++) {
		const struct sim_process_load *load = &w->load->processes[p];
		struct sim_process *proc = &w->processes[p];
		const bool joins = p > 0 && load->pool == w->load->processes[p - 1].pool;

		proc->map = calloc(load->nr_areas + 1, sizeof(*proc->map));
		if (!proc->map)
			return -ENOMEM;
		for (uint32_t i = 0; i < load->nr_areas; i++) {
			/* A shared area is the one of the pool's first process. */
			if (load->areas[i].shared && joins) {
				proc->map[i].area = w->processes[p - 1].map[i].area;
				continue;
			}
			proc->map[i].area = &w->areas[w->nr_areas];
			if (sim_area_init(w, &w->areas[w->nr_areas++], &load->areas[i], &next_va))
				return -ENOMEM;
		}
	}
	return 0;
}

static bool has_besides(const struct sim_thread_load *t)
{
	for (uint32_t i = 0; i < t->nr_phases; i++)
		if (t->phases[i].with)
			return true;
	return false;
}

static int set_up_threads(struct sim_world *w)
{
	w->threads = calloc(w->load->nr_threads + 1, sizeof(*w->threads));
	if (!w->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		struct sim_thread *t = &w->threads[i];

		t->load = &w->load->threads[i];
		t->phase = t->load->phases;
		w->has_besides = w->has_besides || has_besides(t->load);
		t->proc = &w->processes[t->load->process];
		t->id = i + 1;
		t->cpu = -1;
		t->core_factor = 1;
		t->pull = 1;
		t->preferred = t->told_node = NB_NO_NODE;
		t->stack_node = NB_NO_NODE;
		t->pinned_node = w->options->placement && w->options->placement->thread_node
					 ? w->options->placement->thread_node[i]
					 : -1;
		t->goto_left = calloc(t->load->nr_phases + 1, sizeof(*t->goto_left));
		if (!t->goto_left)
			return -ENOMEM;
	}
	return 0;
}

static int set_up_nodes(struct sim_world *w)
{
	const struct nb_topology *topo = &w->model->topo;

	w->nr_nodes = topo->nr_nodes;
	w->node_capacity = calloc(w->nr_nodes, sizeof(*w->node_capacity));
	w->node_used = calloc(w->nr_nodes, sizeof(*w->node_used));
	w->node_fill = calloc(w->nr_nodes, sizeof(*w->node_fill));
	w->node_low = calloc(w->nr_nodes, sizeof(*w->node_low));
	w->copied = calloc((size_t)w->nr_nodes * w->nr_nodes, sizeof(*w->copied));
	if (!w->node_capacity || !w->node_used || !w->node_fill || !w->node_low || !w->copied)
		return -ENOMEM;
	for (unsigned int n = 0; n < w->nr_nodes; n++) {
		const bool usable = !(topo->nodes[n].flags & NB_NODE_DISALLOWED);

		w->node_capacity[n] = usable ? (uint64_t)((double)topo->nodes[n].mem_bytes *
							  (1 - w->model->reserved)) >>
						       NB_PAGE_SHIFT
					     : 0;
		if (topo->nodes[n].tier == 0)
			w->node_fill[n] =
				(uint64_t)(w->load->background_fill * (double)w->node_capacity[n]);
		w->node_used[n] = w->node_fill[n];
	}
	return 0;
}

static int set_up_result(struct sim_world *w)
{
	struct nb_result *out = w->out;

	memset(out, 0, sizeof(*out));
	out->nr_nodes = w->nr_nodes;
	out->node_ids = calloc(w->nr_nodes, sizeof(*out->node_ids));
	out->final_pages = calloc(w->nr_nodes, sizeof(*out->final_pages));
	out->samples = calloc(MAX_SAMPLES, sizeof(*out->samples));
	out->node_pages = calloc((size_t)MAX_SAMPLES * w->nr_nodes, sizeof(*out->node_pages));
	if (!out->node_ids || !out->final_pages || !out->samples || !out->node_pages)
		return -ENOMEM;
	for (unsigned int n = 0; n < w->nr_nodes; n++)
		out->node_ids[n] = w->model->topo.nodes[n].id;
	return 0;
}

void nb_result_free(struct nb_result *r)
{
	free(r->node_ids);
	free(r->final_pages);
	free(r->samples);
	free(r->node_pages);
	memset(r, 0, sizeof(*r));
}

int sim_world_open(struct sim_world *w)
{
	int err;

	w->tick_ns = 1e9 / w->model->hz;
	w->epoch = 1;
	w->next_wake_ns = INFINITY;
	w->sample_ns =
		w->options->sample_interval_s > 0 ? w->options->sample_interval_s * 1e9 : 1e9;
	w->config.hz = (uint32_t)w->model->hz;
	sim_rng_seed(&w->rng, w->options->seed);
	w->processes = calloc(w->load->nr_processes + 1, sizeof(*w->processes));
	w->pool_running = calloc(w->load->nr_processes + 1, sizeof(*w->pool_running));
	w->memo = calloc(SIM_MIX_MEMOS, sizeof(*w->memo));
	if (!w->processes || !w->pool_running || !w->memo)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->load->nr_processes; i++) {
		w->processes[i].load = &w->load->processes[i];
		w->processes[i].id = i + 1;
	}
	w->waiting_processes = w->load->nr_processes;
	err = set_up_nodes(w);
	if (!err)
		err = set_up_result(w);
	if (!err)
		err = set_up_areas(w);
	if (!err)
		err = set_up_threads(w);
	if (!err)
		err = sim_sched_init(w);
	if (!err)
		err = sim_lru_init(w);
	if (!err)
		err = sim_memory_init(&w->memory, w->model);
	if (err)
		return err;
	w->engine = sim_door_open(w);
	if (!w->engine)
		return -ENOMEM;
	w->cut_periods = nb_engine_cut_periods(w->engine);
	/* Nodes that cold memory fills from the start are low from the start. */
	for (unsigned int n = 0; n < w->nr_nodes; n++)
		sim_node_account(w, (int)n, 0);
	return 0;
}

void sim_world_close(struct sim_world *w)
{
	for (uint32_t i = 0; w->threads && i < w->load->nr_threads; i++)
		free(w->threads[i].goto_left);
	for (uint32_t i = 0; w->processes && i < w->load->nr_processes; i++)
		free(w->processes[i].map);
	if (w->engine)
		nb_engine_free(w->engine);
	for (uint32_t i = 0; i < w->nr_areas; i++)
		sim_area_free(w, &w->areas[i]);
	sim_memory_free(&w->memory);
	sim_sched_free(w);
	sim_lru_free(w);
	free(w->areas);
	free(w->threads);
	free(w->processes);
	free(w->pool_running);
	free(w->node_capacity);
	free(w->node_used);
	free(w->node_fill);
	free(w->node_low);
	free(w->copied);
	free(w->chunks);
	free(w->memo);
	free(w->moves);
}

/* ---- the clock ---- */

static void deep_check(struct sim_world *w)
{
	const char *wrong = nb_engine_check(w->engine);

	if (!wrong)
		wrong = sim_pages_check(w);
	if (!wrong)
		wrong = sim_regions_check(w);
	if (!wrong)
		wrong = sim_sched_check(w);
	if (!wrong)
		wrong = sim_paces_check(w);
	if (!wrong)
		wrong = sim_work_check(w);
	if (wrong)
		sim_fail(w, -EPROTO, wrong);
}

/* These are gone when the tick is over. */
static void check_pulls(struct sim_world *w)
{
	const char *wrong = sim_pulls_check(w);

	if (wrong)
		sim_fail(w, -EPROTO, wrong);
}

void sim_world_tick(struct sim_world *w)
{
	w->used_ns = 0;
	if (w->waiting_processes)
		start_processes(w);
	sim_phase_wake(w);
	sim_sched_tick(w);
	if (w->nr_moves)
		sim_moves_finish(w);
	sim_lru_tick(w);
	if (w->live_processes && !w->nr_run && w->next_wake_ns == INFINITY)
		sim_fail(w, -EDEADLK, "every thread waits for another");
	if (w->error)
		return;
	sim_convoy_update(w);
	if (w->options->check)
		check_pulls(w);
	sim_demand(w);
	sim_work_tick(w);
	w->ticks++;
}

static bool finished(const struct sim_world *w)
{
	return !w->live_processes && !w->waiting_processes;
}

void sim_look_up(struct sim_world *w)
{
	struct timespec ts;
	uint64_t ms;

	if (!w->options->progress)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	if (ms < w->next_progress_ms)
		return;
	w->next_progress_ms = ms + 100;
	if (w->options->progress(w->options->progress_ctx, w->now_ns / 1e9))
		sim_fail(w, -EINTR, "interrupted");
}

static void run_clock(struct sim_world *w)
{
	const double limit = w->load->time_limit_s > 0 ? w->load->time_limit_s * 1e9 : INFINITY;

	for (uint64_t ticks = 0; !w->error && !finished(w); ticks++) {
		w->now_ns = (double)ticks * w->tick_ns;
		if (w->now_ns >= limit) {
			w->out->timed_out = true;
			w->end_ns = limit;
			take_last_sample(w, limit);
			break;
		}
		if (w->now_ns >= w->next_sample_ns) {
			if (w->options->check)
				deep_check(w);
			take_sample(w, w->now_ns);
		}
		if (ticks % PROGRESS_TICKS == 0)
			sim_look_up(w);
		if (!w->error)
			sim_world_tick(w);
	}
}

static void finish_result(struct sim_world *w)
{
	struct nb_result *out = w->out;

	if (w->end_ns > w->now_ns)
		w->now_ns = w->end_ns;
	take_final_pages(w);
	out->elapsed_s = w->end_ns / 1e9;
	out->bytes = w->bytes;
	out->local_share = w->bytes > 0 ? w->local_bytes / w->bytes : NAN;
	out->operations = w->load->op_bytes > 0 ? w->bytes / w->load->op_bytes : 0;
	out->counters = *nb_engine_counters(w->engine);
	for (uint32_t i = 0; i < w->load->nr_threads; i++) {
		out->user_s += w->threads[i].user_ns / 1e9;
		out->system_s += w->threads[i].system_ns / 1e9;
	}
}

int sim_run(struct nb_result *out, const struct sim_model *m, const struct sim_load *load,
	const struct nb_config *config, const struct sim_options *options, char *why,
	size_t why_len)
{
	struct sim_world w = {.model = m,
		.load = load,
		.options = options,
		.config = *config,
		.out = out,
		.why = why,
		.why_len = why_len};
	int err = sim_world_open(&w);

	if (err)
		nb_why(why, why_len, err, "%s on %s: %s", load->name, m->name,
			"no memory to simulate it");
	if (!err) {
		run_clock(&w);
		err = w.error;
	}
	if (!err)
		finish_result(&w);
	else
		nb_result_free(out);
	sim_world_close(&w);
	return err;
}
