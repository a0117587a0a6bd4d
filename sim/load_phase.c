/* SPDX-License-Identifier: MIT */
/* The phases of one thread: values, defaults, and the refusal of programs that can't end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load_parts.h"
#include "nearest.h"

enum { DROPPED = UINT16_MAX };

/* Shorter ones would take the simulator for ever, and be no time to a machine. */
static const double MIN_TIME_S = 0.999e-9;
static const double MAX_TIME_S = 1e9, MAX_LOOPS = 1e12, MAX_BYTES = 0x1p62;

struct context {
	struct sim_resolver *x;
	const struct sim_process_load *process;
	const struct sim_job_section *section;
	const struct sim_job_phase *from; /* the phase as written */
};

#define REFUSE(c, err, ...) sim_job_refuse(&(c)->x->r, (c)->from->line, (err), __VA_ARGS__)

static struct sim_text attr_text(const struct context *c, enum sim_phase_attr attr)
{
	return (struct sim_text){.text = c->from->value[attr],
		.name = sim_phase_attr_names[attr],
		.line = c->from->line};
}

/* *out keeps its value where the attribute is not given. */
static int number(const struct context *c, enum sim_phase_attr attr, double min, double max,
	const char *unit, double *out)
{
	if (!c->from->value[attr])
		return 0;
	return sim_resolve_number(c->x, attr_text(c, attr), min, max, unit, out);
}

/* ---- what a phase works on ---- */

static int unknown_area(const struct context *c, const char *name)
{
	struct sim_nearest near = {.name = name};
	char hint[SIM_HINT_LEN];

	for (uint32_t i = 0; i < c->process->nr_areas; i++)
		sim_nearest_try(&near, c->process->areas[i].name);
	return REFUSE(c, -EINVAL, "this process has no area '%.48s'%s", name,
		sim_nearest_hint(&near, hint));
}

static int area_named(const struct context *c, const char *name, uint32_t *area)
{
	for (*area = 0; *area < c->process->nr_areas; ++*area)
		if (!strcmp(c->process->areas[*area].name, name))
			return 0;
	return unknown_area(c, name);
}

static int find_area(const struct context *c, struct sim_phase *p)
{
	const char *name = c->from->value[SIM_ATTR_AREA];
	uint32_t area = 0;
	int err = 0;

	if (name)
		err = area_named(c, name, &area);
	else if (c->process->nr_areas != 1)
		return REFUSE(c, -EINVAL, "expected area=, this process has %u areas",
			c->process->nr_areas);
	p->area = (uint16_t)area;
	return err;
}

static int find_with(const struct context *c, struct sim_phase *p)
{
	const char *name = c->from->value[SIM_ATTR_WITH];
	uint32_t area;
	int err;

	if (!name)
		return 0;
	err = area_named(c, name, &area);
	if (!err && area == p->area)
		err = REFUSE(c, -EINVAL, "with=%.48s: expected another area than area=", name);
	if (!err)
		p->with = (uint16_t)(area + 1);
	return err;
}

/* The area divided among `of` threads of the process or of the section. */
static int check_sliced(const struct context *c, const struct sim_phase *p, uint32_t of)
{
	const struct sim_area *a = &c->process->areas[p->area];

	if (a->bytes / NB_PAGE_SIZE >= of)
		return 0;
	return REFUSE(c, -EINVAL,
		"slice=%s: area %s has %llu pages, fewer than the %s's %u threads",
		c->from->value[SIM_ATTR_SLICE], a->name,
		(unsigned long long)(a->bytes / NB_PAGE_SIZE),
		p->slice == SIM_SLICE_OWN ? "process" : "section", of);
}

static int find_slice(const struct context *c, struct sim_phase *p)
{
	const char *slice = c->from->value[SIM_ATTR_SLICE];
	const uint64_t pages = c->process->areas[p->area].bytes / NB_PAGE_SIZE;
	const uint32_t of = c->x->group_threads;

	p->slice = SIM_SLICE_ALL;
	if (!slice || !strcmp(slice, "all"))
		return 0;
	if (!strcmp(slice, "own")) {
		p->slice = SIM_SLICE_OWN;
		return check_sliced(c, p, c->process->nr_threads);
	}
	if (strcmp(slice, "group"))
		return REFUSE(c, -EINVAL, "slice=%.32s: expected own, group or all", slice);
	p->slice = SIM_SLICE_PART;
	p->from = pages * c->x->group_number / of * NB_PAGE_SIZE;
	p->to = pages * (c->x->group_number + 1) / of * NB_PAGE_SIZE;
	return check_sliced(c, p, of);
}

static bool uses_area(uint8_t kind)
{
	return sim_phase_kinds[kind].attrs >> SIM_ATTR_AREA & 1;
}

/* ---- values ---- */

static int access_values(const struct context *c, struct sim_phase *p)
{
	double compute_s = 0;
	int err = number(c, SIM_ATTR_WRITE, 0, 1, "", &p->write_ratio);

	if (!err)
		err = number(c, SIM_ATTR_ACCESS, 1, NB_PAGE_SIZE, "bytes", &p->access_bytes);
	if (!err)
		err = number(c, SIM_ATTR_COMPUTE, 0, 1, "s per access (write 5ns)", &compute_s);
	p->compute_ns = compute_s * 1e9;
	return err;
}

static int random_values(const struct context *c, struct sim_phase *p)
{
	int err = number(c, SIM_ATTR_THETA, 0, 10, "", &p->theta);

	if (!err)
		err = number(c, SIM_ATTR_HOT, 1e-9, 1, "", &p->hot_ratio);
	if (!err)
		err = number(c, SIM_ATTR_SHARE, 0, 1, "", &p->hot_share);
	if (!err)
		err = number(c, SIM_ATTR_SHARED, 0, 1, "", &p->shared_ratio);
	if (!err && p->shared_ratio > 0 && p->slice == SIM_SLICE_ALL)
		err = REFUSE(c, -EINVAL,
			"shared= without slice=own or group: every access is shared already");
	return err;
}

/* How long it goes on. */
static int extent(const struct context *c, struct sim_phase *p)
{
	const bool timed = c->from->value[SIM_ATTR_TIME];
	int err = number(c, SIM_ATTR_TIME, 0, MAX_TIME_S, "s", &p->time_s);

	if (p->kind == SIM_PHASE_SWEEP)
		p->loops = timed ? 0 : 1;
	if (!err)
		err = number(c, SIM_ATTR_LOOPS, 0, MAX_LOOPS, "", &p->loops);
	if (!err)
		err = number(c, SIM_ATTR_BYTES, 0, MAX_BYTES, "bytes", &p->bytes);
	return err;
}

static bool takes_time(const struct sim_phase *p)
{
	return sim_phase_kinds[p->kind].touches || p->kind == SIM_PHASE_COMPUTE ||
	       p->kind == SIM_PHASE_SLEEP;
}

static int check_extent(const struct context *c, const struct sim_phase *p)
{
	const bool limited = p->loops > 0 || p->bytes > 0 || p->time_s > 0;
	const char *name = sim_phase_kinds[p->kind].name;

	if (p->time_s > 0 && p->time_s < MIN_TIME_S)
		return REFUSE(
			c, -EINVAL, "%s of %g s, expected time= of 1 ns or more", name, p->time_s);
	if (!takes_time(p) || limited)
		return 0;
	if (!sim_phase_kinds[p->kind].touches)
		return REFUSE(c, -EINVAL, "%s of no time, expected time= above 0", name);
	if (c->x->load->time_limit_s > 0)
		return 0;
	return REFUSE(c, -EINVAL, "%s without an end, expected %s, time= or [global] time_limit",
		name, p->kind == SIM_PHASE_SWEEP ? "loops=" : "bytes=");
}

static int policy_value(const struct context *c, struct sim_phase *p)
{
	int err;

	if (!c->from->value[SIM_ATTR_POLICY])
		return 0;
	err = sim_resolve_policy(c->x, attr_text(c, SIM_ATTR_POLICY), &p->policy);
	if (!err && p->policy.mode == NB_POLICY_NOOP && !p->lazy)
		err = REFUSE(c, -EINVAL,
			"policy=noop: expected a lazy mbind, nothing else would happen");
	p->policy.migrate_on_fault = p->lazy;
	return err;
}

static int phase_values(const struct context *c, struct sim_phase *p)
{
	int err = 0;

	if (uses_area(p->kind))
		err = find_area(c, p);
	if (!err && (sim_phase_kinds[p->kind].attrs >> SIM_ATTR_SLICE & 1))
		err = find_slice(c, p);
	if (!err)
		err = find_with(c, p);
	if (!err)
		err = extent(c, p);
	if (!err && sim_phase_kinds[p->kind].touches)
		err = access_values(c, p);
	if (!err && sim_phase_kinds[p->kind].random)
		err = random_values(c, p);
	if (!err)
		err = policy_value(c, p);
	return err ? err : check_extent(c, p);
}

static int resolve_phase(const struct context *c, struct sim_phase *p)
{
	*p = (struct sim_phase){
		.kind = c->from->kind,
		.main_only = c->from->main_only,
		.lazy = c->from->lazy,
		.kernel = c->from->kernel,
		.lookup = c->from->lookup,
		.line = c->from->line,
		.write_ratio = sim_phase_kinds[c->from->kind].write_ratio,
		.access_bytes = 64,
		.theta = 0.99,
	};
	return phase_values(c, p);
}

/* ---- order ---- */

static int is_kept(const struct context *c, bool *keep)
{
	double value = 1;
	const int err = number(c, SIM_ATTR_IF, -1e300, 1e300, "", &value);

	*keep = value != 0;
	return err;
}

/* Targets count phases as written; those left out lead to the next that is there. */
static int set_target(const struct context *c, struct sim_phase *p, const uint16_t *place)
{
	uint32_t target = c->from->target;

	while (target < c->section->nr_phases && place[target] == DROPPED)
		target++;
	if (target == c->section->nr_phases)
		return REFUSE(c, -EINVAL, "goto a phase that is left out, with none after it");
	p->target = place[target];
	return 0;
}

static int check_goto(const struct context *c, const struct sim_phase *p, uint32_t index)
{
	if (p->target > index || p->loops > 0 || c->x->load->time_limit_s > 0)
		return 0;
	return REFUSE(c, -EINVAL, "goto without an end, expected loops= or [global] time_limit");
}

static int set_targets(struct context *c, struct sim_thread_load *t, const uint16_t *place)
{
	int err = 0;

	for (uint32_t i = 0; i < c->section->nr_phases && !err; i++) {
		c->from = &c->section->phases[i];
		if (place[i] == DROPPED || c->from->kind != SIM_PHASE_GOTO)
			continue;
		err = set_target(c, &t->phases[place[i]], place);
		if (!err)
			err = check_goto(c, &t->phases[place[i]], place[i]);
	}
	return err;
}

/* ---- cycles that take no time ---- */

enum colour { UNSEEN, OPEN, CLOSED };

/* Depth-first over phases that take no time; true when it comes back to an open one. */
static bool finds_cycle(const struct sim_thread_load *t, uint8_t *colour, uint32_t i)
{
	const struct sim_phase *p = &t->phases[i];
	bool found = false;

	if (i >= t->nr_phases || takes_time(p) || colour[i] == CLOSED)
		return false;
	if (colour[i] == OPEN)
		return true;
	colour[i] = OPEN;
	if (p->kind == SIM_PHASE_GOTO)
		found = finds_cycle(t, colour, p->target);
	if (!found && (p->kind != SIM_PHASE_GOTO || p->loops > 0))
		found = finds_cycle(t, colour, i + 1);
	colour[i] = CLOSED;
	return found;
}

static int check_cycles(const struct context *c, const struct sim_thread_load *t)
{
	uint8_t colour[SIM_JOB_MAX_PHASES] = {UNSEEN};

	for (uint32_t i = 0; i < t->nr_phases; i++)
		if (t->phases[i].kind == SIM_PHASE_GOTO && finds_cycle(t, colour, i))
			return sim_job_refuse(&c->x->r, t->phases[i].line, -EINVAL,
				"goto in a cycle of phases that take no time");
	return 0;
}

/* ---- public ---- */

static int resolve_kept(struct context *c, struct sim_thread_load *t, uint16_t *place)
{
	bool keep;
	int err = 0;

	for (uint32_t i = 0; i < c->section->nr_phases && !err; i++) {
		c->from = &c->section->phases[i];
		place[i] = DROPPED;
		err = is_kept(c, &keep);
		if (err || !keep)
			continue;
		place[i] = (uint16_t)t->nr_phases;
		err = resolve_phase(c, &t->phases[t->nr_phases++]);
	}
	return err;
}

int sim_resolve_phases(struct sim_resolver *x, struct sim_thread_load *t,
	const struct sim_process_load *p, const struct sim_job_section *s)
{
	struct context c = {.x = x, .process = p, .section = s};
	uint16_t place[SIM_JOB_MAX_PHASES];
	int err = sim_resolve_items(x, s->nr_phases, s->line);

	if (err)
		return err;
	t->phases = calloc(s->nr_phases, sizeof(*t->phases));
	if (!t->phases)
		return sim_job_refuse(&x->r, s->line, -ENOMEM, "out of memory");
	err = resolve_kept(&c, t, place);
	if (!err)
		err = set_targets(&c, t, place);
	return err ? err : check_cycles(&c, t);
}
