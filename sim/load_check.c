/* SPDX-License-Identifier: MIT */
/* What holds of every load, whoever made it. */
#include <stdlib.h>

#include "job.h"

static const char *check_phase(const struct sim_thread_load *t, const struct sim_process_load *p,
	const struct sim_phase *f)
{
	if (f->kind >= SIM_NR_PHASE_KINDS)
		return "a phase of no known kind";
	if (f->kind == SIM_PHASE_GOTO && f->target >= t->nr_phases)
		return "a goto leads nowhere";
	if (f->kind != SIM_PHASE_GOTO && f->area && f->area >= p->nr_areas)
		return "a phase uses an area that is not there";
	if (!(f->write_ratio >= 0 && f->write_ratio <= 1))
		return "a share of writes is not from 0 to 1";
	if (!(f->loops >= 0 && f->bytes >= 0 && f->time_s >= 0))
		return "a phase's extent is negative";
	if (f->slice == SIM_SLICE_PART &&
		(f->from >= f->to || f->area >= p->nr_areas || f->to > p->areas[f->area].bytes))
		return "a part of an area is not inside it";
	if (f->with > p->nr_areas || f->with == f->area + 1)
		return "what a phase touches besides is not another area";
	if (f->weights && (f->slice != SIM_SLICE_PART || f->kind != SIM_PHASE_UNIFORM))
		return "weights without a part, or a pattern that has none";
	if (!(f->access_bytes > 0) || !(f->compute_ns >= 0))
		return "an access of no bytes, or of negative time";
	return NULL;
}

static bool any_cpu(const uint64_t *cpus, const struct nb_topology *t)
{
	for (unsigned int c = 0; c < t->cpu_ids; c++)
		if ((cpus[c / 64] >> (c % 64) & 1) && t->cpu_node[c] != NB_NO_NODE)
			return true;
	return false;
}

static const char *check_thread(
	const struct sim_load *load, const struct sim_thread_load *t, const struct sim_model *m)
{
	const char *wrong = NULL;

	if (t->process >= load->nr_processes)
		return "a thread without a process";
	if (!t->nr_phases)
		return "a thread has no phases: all are left out";
	if (t->cpus && !any_cpu(t->cpus, &m->topo))
		return "a thread may run on no CPU";
	for (uint32_t i = 0; i < t->nr_phases && !wrong; i++)
		wrong = check_phase(t, &load->processes[t->process], &t->phases[i]);
	return wrong;
}

static const char *check_process(const struct sim_load *load, uint32_t index, uint32_t *next_thread)
{
	const struct sim_process_load *p = &load->processes[index];

	if (p->first_thread != *next_thread || !p->nr_threads)
		return "a process's threads are not its own, or none";
	*next_thread += p->nr_threads;
	if (*next_thread > load->nr_threads)
		return "a process has threads that are not there";
	for (uint32_t i = 0; i < p->nr_threads; i++)
		if (load->threads[p->first_thread + i].process != index ||
			load->threads[p->first_thread + i].number != i)
			return "a thread's numbers disagree with its process";
	for (uint32_t a = 0; a < p->nr_areas; a++) {
		if (!p->areas[a].bytes || p->areas[a].bytes % NB_PAGE_SIZE)
			return "an area is not whole pages";
		if (p->areas[a].offset % NB_PAGE_SIZE || p->areas[a].offset >= NB_HUGE_SIZE)
			return "an area's offset is not pages inside 2 MiB";
	}
	return NULL;
}

const char *sim_load_check(const struct sim_load *load, const struct sim_model *m)
{
	const char *wrong = load->nr_processes ? NULL : "no process";
	uint32_t next_thread = 0;

	for (uint32_t i = 0; i < load->nr_processes && !wrong; i++)
		wrong = check_process(load, i, &next_thread);
	if (!wrong && next_thread != load->nr_threads)
		wrong = "a thread without a process";
	for (uint32_t i = 0; i < load->nr_threads && !wrong; i++)
		wrong = check_thread(load, &load->threads[i], m);
	return wrong;
}
