/* SPDX-License-Identifier: MIT */
/* replay_load: a replay as a job, and as a load for one machine. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"
#include "jobfile.h"
#include "replay_parts.h"

static const double LINE_BYTES = 64;
static const double SHORTEST_SLEEP_S = 0.01;

/* ---- the job ---- */

static int set_variable(struct sim_replay *r, const char *text, char *why, size_t why_len)
{
	if (!strncmp(text, "memory=", 7)) {
		if (!nb_parse_double(text + 7, &r->memory) && r->memory >= 0.01 && r->memory <= 1)
			return 0;
		return nb_why(why, why_len, -EINVAL,
			"%s: %.64s: expected the share of run time that waits for memory, 0.01 to "
			"1",
			r->name, text);
	}
	if (!strcmp(text, "thp=always") || !strcmp(text, "thp=never")) {
		r->thp = text[4] == 'a' ? SIM_THP_ALWAYS : SIM_THP_NEVER;
		return 0;
	}
	return nb_why(why, why_len, -EINVAL,
		"%s: %.64s: a recording has the variables memory=0.01..1 and thp=always|never",
		r->name, text);
}

static int set_variables(struct sim_replay *r, const char *overrides, char *why, size_t why_len)
{
	char *text = overrides ? strdup(overrides) : NULL;
	int err = 0;

	if (overrides && !text)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	for (char *rest = text, *one; !err && (one = strsep(&rest, ","));)
		err = set_variable(r, one, why, why_len);
	free(text);
	return err;
}

static const char *what_is_missing(const struct sim_replay *r)
{
	if (!r->runs.nr)
		return "no task_run in it: expected a recording by 'numabal run --record'";
	if (!r->samples.nr && !r->presents.nr)
		return "nothing in it says what memory was used: the program had none worth "
		       "managing";
	return NULL;
}

static void name_job(struct sim_job *job, const char *name)
{
	const char *slash = strrchr(name, '/');
	char *dot;

	snprintf(job->name, sizeof(job->name), "%.*s", SIM_NAME - 1,
		slash && slash[1] ? slash + 1 : name);
	dot = strrchr(job->name, '.');
	if (dot && dot != job->name)
		*dot = '\0';
}

static int make_job(struct sim_job *job, const char *overrides, char *why, size_t why_len)
{
	struct sim_replay *r = job->replay;
	const char *missing = what_is_missing(r);
	int err;

	name_job(job, r->name);
	job->file = strdup(r->name);
	if (!job->file)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	if (missing)
		return nb_why(why, why_len, -EINVAL, "%s: %s", r->name, missing);
	err = set_variables(r, overrides, why, why_len);
	if (err)
		return err;
	err = sim_replay_use(r);
	return err ? nb_why(why, why_len, err, "%s: %s", r->name,
			     err == -ENOMEM ? "out of memory"
					    : "too many threads, mappings or blocks for a replay")
		   : 0;
}

int sim_replay_job(struct sim_job **job, struct sim_replay *r, const char *overrides, char *why,
	size_t why_len)
{
	struct sim_job *j = calloc(1, sizeof(*j));
	int err;

	if (!j) {
		sim_replay_free(r);
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	}
	j->replay = r;
	err = make_job(j, overrides, why, why_len);
	if (err)
		sim_job_free(j);
	else
		*job = j;
	return err;
}

/* ---- the load ---- */

struct last_use {
	uint32_t vma, interval;
};

struct making {
	const struct sim_replay *r;
	const struct sim_model *m;
	struct sim_load *load;
	double rate;	  /* bytes/ns that a thread gets from near memory, alone */
	double bandwidth; /* bytes/ns of all memory that is near to CPUs */
	double others;	  /* threads of other processes that run, on average */
	uint32_t index;	  /* of the process in the replay, */
	const struct rp_process *from;
	uint32_t process; /* and in the load */
	struct sim_process_load *to;
	/* of the thread being made */
	bool *mapped;	       /* [areas] it has mapped it */
	uint32_t *place;       /* [areas] index in `last`; nr_areas = none */
	struct last_use *last; /* [areas] */
	uint32_t nr_last;
	double idle_s; /* not slept yet */
	/* of the process being made */
	double running[RP_MAX_INTERVALS];
	const struct rp_use *use, *use_end; /* what is left of them */
	const struct rp_touch *touch, *touch_end;
};

struct phases {
	RP_LIST(struct sim_phase, list);
	bool failed;
};

static void add(struct phases *p, struct sim_phase phase)
{
	struct sim_phase *to = p->failed ? NULL : RP_ADD(&p->list);

	if (!to) {
		p->failed = true;
		return;
	}
	phase.access_bytes = LINE_BYTES;
	*to = phase;
}

/* As fast as the fastest node with CPUs lets one of them be. */
static double near_rate(const struct sim_model *m)
{
	double best = 0;

	for (unsigned int n = 0; n < m->topo.nr_nodes; n++)
		for (unsigned int to = 0; to < m->topo.nr_nodes; to++) {
			const double ns = m->latency_ns[(size_t)n * m->topo.nr_nodes + to];
			const double lines = m->lines_in_flight * LINE_BYTES / ns;
			const double rate = fmin(lines, m->node_bandwidth[to] / 1e9);

			if (m->topo.nodes[n].nr_cpus && m->topo.nodes[to].mem_bytes && rate > best)
				best = rate;
		}
	return best > 0 ? best : 1;
}

static double near_bandwidth(const struct sim_model *m)
{
	double sum = 0;

	for (unsigned int n = 0; n < m->topo.nr_nodes; n++)
		if (m->topo.nodes[n].nr_cpus && m->topo.nodes[n].mem_bytes)
			sum += m->node_bandwidth[n] / 1e9;
	return sum > 0 ? sum : m->node_bandwidth[0] / 1e9;
}

/* Threads of a process that run at a time, in an interval, on average. */
static double running(const struct sim_replay *r, uint32_t process, uint32_t interval)
{
	double run_s = 0;

	for (size_t i = 0; i < r->threads.nr; i++)
		if (r->threads.at[i].process == process)
			run_s += r->times.at[i * RP_MAX_INTERVALS + interval].run_s;
	return run_s / r->processes.at[process].interval_s;
}

/* The same over their lives, of the other processes that are there at the same time. */
static double running_others(const struct sim_replay *r, uint32_t process)
{
	const struct rp_process *p = &r->processes.at[process];
	double sum = 0;

	for (uint32_t i = 0; i < r->processes.nr; i++) {
		const struct rp_process *o = &r->processes.at[i];

		if (i == process || o->end_ns <= p->start_ns || o->start_ns >= p->end_ns)
			continue;
		for (uint32_t k = 0; k < o->nr_intervals; k++)
			sum += running(r, i, k) / o->nr_intervals;
	}
	return sum;
}

/*
 * The share of run time that waits for memory: no more than that, if all memory were near and
 * evenly used, it would give to those who run. What was recorded was possible, after all.
 */
static double memory_share(const struct making *k, uint32_t interval)
{
	const double at_a_time = fmin(k->running[interval] + k->others, k->m->topo.nr_cpus);
	const double most = k->bandwidth / (fmax(at_a_time, 1) * k->rate);

	return fmin(k->r->memory, most);
}

static void set_part(
	const struct making *k, struct sim_phase *p, uint32_t vma, uint32_t first, uint32_t nr)
{
	const struct rp_vma *v = &k->r->vmas.at[vma];
	const uint64_t base = v->start >> NB_HUGE_SHIFT;
	const uint64_t from = (base + first) << NB_HUGE_SHIFT;
	const uint64_t to = (base + first + nr) << NB_HUGE_SHIFT;

	p->slice = SIM_SLICE_PART;
	p->area = (uint16_t)v->number;
	p->from = from > v->start ? from - v->start : 0;
	p->to = (to < v->end ? to : v->end) - v->start;
}

/* Mapped when first used: by everybody who does, for whoever comes first. */
static void map_late(const struct making *k, struct phases *out, uint32_t vma)
{
	const uint32_t area = k->r->vmas.at[vma].number;

	if (!k->to->areas[area].late || k->mapped[area])
		return;
	k->mapped[area] = true;
	add(out, (struct sim_phase){.kind = SIM_PHASE_MAP, .area = (uint16_t)area});
}

/* First touches in this interval; returns the run time that they account for. */
static double add_touches(struct making *k, struct phases *out, uint32_t thread, uint32_t interval)
{
	double bytes = 0;

	for (; k->touch < k->touch_end && k->touch->thread == thread &&
		k->touch->interval == interval;
		k->touch++) {
		struct sim_phase p = {.kind = SIM_PHASE_SWEEP, .loops = 1, .write_ratio = 1};

		map_late(k, out, k->touch->vma);
		set_part(k, &p, k->touch->vma, k->touch->first, k->touch->nr);
		bytes += (double)(p.to - p.from);
		add(out, p);
	}
	if (k->from->touches[interval])
		add(out, (struct sim_phase){.kind = SIM_PHASE_BARRIER});
	return bytes / k->m->clear_rate;
}

static double write_ratio(const struct rp_thread *t)
{
	return t->samples ? (double)t->writes / (double)t->samples : 0.5;
}

/* Accesses for so long a run; without any known, it computes. */
static void add_uses(
	struct making *k, struct phases *out, uint32_t thread, uint32_t interval, double run_s)
{
	const double memory = memory_share(k, interval);
	bool any = false;

	for (; k->use < k->use_end && k->use->thread == thread && k->use->interval == interval;
		k->use++) {
		struct sim_phase p = {.kind = SIM_PHASE_UNIFORM,
			.bytes = k->use->share * run_s * 1e9 * memory * k->rate,
			.weights = k->r->weights.at + k->use->weights,
			.write_ratio = write_ratio(&k->r->threads.at[thread]),
			.compute_ns = LINE_BYTES / k->rate * (1 - memory) / memory};

		if (p.bytes < LINE_BYTES)
			continue;
		any = true;
		map_late(k, out, k->use->vma);
		set_part(k, &p, k->use->vma, k->use->first, k->use->nr);
		add(out, p);
	}
	if (!any && run_s > 0)
		add(out, (struct sim_phase){.kind = SIM_PHASE_COMPUTE, .time_s = run_s});
}

/* ---- one thread ---- */

/* What the thread does not use any more, and what is unmapped in the recording, goes with the last
 * user. */
static void add_unmaps(const struct making *k, struct phases *out, uint32_t interval)
{
	for (uint32_t i = 0; i < k->nr_last; i++) {
		const struct rp_vma *v = &k->r->vmas.at[k->last[i].vma];

		if (k->last[i].interval == interval && v->unmap_ns < k->from->end_ns)
			add(out, (struct sim_phase){.kind = SIM_PHASE_UNMAP,
					 .area = (uint16_t)v->number,
					 .loops = v->users});
	}
}

/* Seconds of the interval in which the thread was not there yet, or was and had nothing to do. */
static double idle_s(const struct making *k, const struct rp_thread *t, uint32_t interval)
{
	const struct rp_time *time =
		&k->r->times.at[(size_t)(t - k->r->threads.at) * RP_MAX_INTERVALS + interval];
	const double end = (double)(t->end_ns - k->from->start_ns) / 1e9;
	const double from = interval * k->from->interval_s;
	const double to = fmin(end, from + k->from->interval_s);

	return to > from ? to - from - time->run_s - time->wait_s : 0;
}

static void add_interval(struct making *k, struct phases *out, uint32_t thread, uint32_t interval)
{
	const struct rp_time *time = &k->r->times.at[(size_t)thread * RP_MAX_INTERVALS + interval];
	const double touched_s = add_touches(k, out, thread, interval);

	add_uses(k, out, thread, interval, fmax(0, time->run_s - touched_s));
	k->idle_s += idle_s(k, &k->r->threads.at[thread], interval);
	if (k->idle_s >= SHORTEST_SLEEP_S) {
		add(out, (struct sim_phase){.kind = SIM_PHASE_SLEEP, .time_s = k->idle_s});
		k->idle_s = 0;
	}
	add_unmaps(k, out, interval);
}

/* The interval that a thread's last use of a VMA is in; all of them end with the thread. */
static void note_last(struct making *k, uint32_t vma, uint32_t interval, uint32_t end)
{
	uint32_t *place = &k->place[k->r->vmas.at[vma].number];
	struct last_use *l;

	interval = interval < end ? interval : end;
	if (*place == k->to->nr_areas) {
		*place = k->nr_last++;
		k->last[*place] = (struct last_use){.vma = vma};
	}
	l = &k->last[*place];
	l->interval = interval > l->interval ? interval : l->interval;
}

/* Move both cursors to what is this thread's, and see when it uses what last. */
static void begin_thread(struct making *k, uint32_t thread, uint32_t end)
{
	k->nr_last = 0;
	k->idle_s = 0;
	for (uint32_t i = 0; i < k->to->nr_areas; i++) {
		k->mapped[i] = false;
		k->place[i] = k->to->nr_areas;
	}
	while (k->use < k->use_end && k->use->thread < thread)
		k->use++;
	while (k->touch < k->touch_end && k->touch->thread < thread)
		k->touch++;
	for (const struct rp_use *u = k->use; u < k->use_end && u->thread == thread; u++)
		note_last(k, u->vma, u->interval, end);
	for (const struct rp_touch *t = k->touch; t < k->touch_end && t->thread == thread; t++)
		note_last(k, t->vma, t->interval, end);
}

static int make_thread(struct making *k, uint32_t thread)
{
	const struct rp_thread *t = &k->r->threads.at[thread];
	struct sim_thread_load *to = &k->load->threads[k->to->first_thread + t->number];
	const uint32_t last = t->end_ns < k->from->end_ns ? rp_interval(k->from, t->end_ns)
							  : k->from->nr_intervals - 1;
	struct phases out = {0};

	begin_thread(k, thread, last);
	for (uint32_t i = 0; i <= last; i++)
		add_interval(k, &out, thread, i);
	/* A thread that only was there. */
	if (!out.list.nr)
		add(&out, (struct sim_phase){.kind = SIM_PHASE_SLEEP, .time_s = SHORTEST_SLEEP_S});
	to->process = k->process;
	to->number = t->number;
	to->phases = out.list.at;
	to->nr_phases = (uint32_t)out.list.nr;
	if (out.failed)
		return -ENOMEM;
	return out.list.nr > UINT16_MAX ? -E2BIG : 0;
}

/* ---- processes ---- */

static void make_area(struct making *k, const struct rp_vma *v)
{
	struct sim_area *a = &k->to->areas[v->number];

	snprintf(a->name, sizeof(a->name), "%llx", (unsigned long long)v->start);
	a->bytes = v->end - v->start;
	a->offset = v->start % NB_HUGE_SIZE;
	a->thp = k->r->thp;
	a->late = rp_interval(k->from, v->map_ns) > 0;
	a->owners = k->r->owners.at + v->first_block;
}

static int make_threads(struct making *k)
{
	const struct sim_replay *r = k->r;
	int err = 0;

	k->use = r->uses.at;
	k->use_end = RP_END(r->uses);
	k->touch = r->touches.at;
	k->touch_end = RP_END(r->touches);
	k->mapped = calloc(k->to->nr_areas + 1, sizeof(*k->mapped));
	k->place = calloc(k->to->nr_areas + 1, sizeof(*k->place));
	k->last = calloc(k->to->nr_areas + 1, sizeof(*k->last));
	if (!k->mapped || !k->place || !k->last)
		err = -ENOMEM;
	for (uint32_t i = 0; i < r->threads.nr && !err; i++)
		if (r->threads.at[i].process == k->index)
			err = make_thread(k, i);
	free(k->mapped);
	free(k->place);
	free(k->last);
	return err;
}

static int make_process(struct making *k)
{
	const struct sim_replay *r = k->r;

	k->to->areas = calloc(k->from->nr_areas + 1, sizeof(*k->to->areas));
	if (!k->to->areas)
		return -ENOMEM;
	k->to->nr_areas = k->from->nr_areas;
	snprintf(k->to->name, sizeof(k->to->name), "%u", k->from->mm);
	for (uint32_t i = 0; i < k->from->nr_intervals; i++)
		k->running[i] = running(r, k->index, i);
	k->others = running_others(r, k->index);
	k->to->start_s = (double)(k->from->start_ns - r->processes.at[0].start_ns) / 1e9;
	k->to->pool = k->process;
	for (size_t i = 0; i < r->vmas.nr; i++)
		if (r->vmas.at[i].process == k->index && r->vmas.at[i].used)
			make_area(k, &r->vmas.at[i]);
	return make_threads(k);
}

/* Processes without threads have done nothing. */
static int make_load(struct making *k)
{
	const struct sim_replay *r = k->r;
	int err = 0;

	k->load->processes = calloc(r->processes.nr, sizeof(*k->load->processes));
	k->load->threads = calloc(r->threads.nr, sizeof(*k->load->threads));
	if (!k->load->processes || !k->load->threads)
		return -ENOMEM;
	for (k->index = 0; k->index < r->processes.nr && !err; k->index++) {
		k->from = &r->processes.at[k->index];
		if (!k->from->nr_threads)
			continue;
		k->process = k->load->nr_processes++;
		k->to = &k->load->processes[k->process];
		k->to->first_thread = k->load->nr_threads;
		k->to->has_main = true;
		k->to->libraries = SIM_LIBRARIES;
		k->to->nr_threads = k->from->nr_threads;
		k->load->nr_threads += k->from->nr_threads;
		err = make_process(k);
	}
	return err;
}

/* ---- does it fit? ---- */

static double used_bytes(const struct sim_replay *r, const struct rp_vma *v)
{
	double bytes = 0;

	for (uint32_t i = 0; i < v->nr_blocks; i++) {
		const struct rp_block *b = &r->blocks.at[v->first_block + i];

		if (b->present_ns != RP_NEVER || b->first_user != RP_NONE)
			bytes += NB_HUGE_SIZE;
	}
	return bytes < (double)(v->end - v->start) ? bytes : (double)(v->end - v->start);
}

/* The most that a process has in any interval. */
static double most_bytes(const struct sim_replay *r, uint32_t process)
{
	const struct rp_process *p = &r->processes.at[process];
	double bytes[RP_MAX_INTERVALS] = {0}, most = 0;

	for (size_t k = 0; k < r->vmas.nr; k++) {
		const struct rp_vma *v = &r->vmas.at[k];
		const double used = v->process == process && v->used ? used_bytes(r, v) : 0;

		for (uint32_t i = rp_interval(p, v->map_ns);
			used > 0 && i <= rp_interval(p, v->unmap_ns); i++)
			bytes[i] += used;
	}
	for (uint32_t i = 0; i < p->nr_intervals; i++)
		most = fmax(most, bytes[i]);
	return most;
}

static int check_memory(const struct making *k, char *why, size_t why_len)
{
	double need = 0, have = 0;

	for (uint32_t i = 0; i < k->r->processes.nr; i++)
		need += most_bytes(k->r, i);
	for (unsigned int n = 0; n < k->m->topo.nr_nodes; n++)
		if (!(k->m->topo.nodes[n].flags & NB_NODE_DISALLOWED))
			have += (double)k->m->topo.nodes[n].mem_bytes * (1 - k->m->reserved);
	if (need <= have)
		return 0;
	return nb_why(why, why_len, -EINVAL,
		"%s: the recorded program had %.3f GiB of memory, machine %s has %.3f GiB for it",
		k->r->name, need / 0x1p30, k->m->name, have / 0x1p30);
}

/* ---- public ---- */

int sim_replay_resolve(struct sim_load *load, const struct sim_job *job, const struct sim_model *m,
	char *why, size_t why_len)
{
	struct making k = {.r = job->replay,
		.m = m,
		.load = load,
		.rate = near_rate(m),
		.bandwidth = near_bandwidth(m)};
	const char *unsound;
	int err;

	*load = (struct sim_load){0};
	snprintf(load->name, sizeof(load->name), "%s", job->name);
	err = check_memory(&k, why, why_len);
	if (err)
		return err;
	err = make_load(&k);
	unsound = err ? NULL : sim_load_check(load, m);
	if (err)
		nb_why(why, why_len, err, "%s: %s", job->file,
			err == -ENOMEM ? "out of memory" : "a thread has too many phases");
	if (unsound)
		err = nb_why(why, why_len, -EINVAL, "%s: %s", job->file, unsound);
	if (err)
		sim_load_free(load);
	return err;
}
