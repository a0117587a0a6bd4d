/* SPDX-License-Identifier: MIT */
#include "task.h"
#include "engine_private.h"
#include "home.h"

static void trace_task(
	struct nb_engine *e, const struct nb_task *t, int type, uint32_t arg, uint64_t now_ns)
{
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = (uint8_t)type,
			    .mm = t->mm != NULL ? t->mm->id : 0,
			    .task = t->id,
			    .node_from = NB_NO_NODE,
			    .node_to = NB_NO_NODE,
			    .arg = arg});
}

static uint32_t first_period(const struct nb_engine *e)
{
	if (!nb_has(&e->config, NB_MECH_SCAN_DELAY))
		return e->rules.period_min_ms;
	return (uint32_t)nb_tune(&e->config, NB_TUNE_SCAN_DELAY_MS);
}

void nb_task_free(struct nb_engine *e, struct nb_task *t)
{
	nb_stats_free(e, t);
	nb_free(e, t, sizeof(*t));
}

/*
 * The first task of an address space sets off its scanning; those that come later look after it at
 * different times. With the second one it all begins again, for a kernel counts the users before it
 * adds the new one: what was scanned until then counts as scanned in the first sequence.
 */
static void stagger(const struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	struct nb_mm *mm = t->mm;

	if (!nb_has(&e->config, NB_MECH_SCAN_STAGGER))
		return;
	if (mm->nr_tasks > 0)
		t->node_stamp_ns = 2 * e->rules.tick_ns;
	if (mm->nr_tasks > 1)
		return;
	mm->next_scan_j =
		nb_jiffies(&e->rules, now_ns) + nb_msecs_to_jiffies(&e->rules, first_period(e));
	mm->scan_seq = t->scan_seq = 0;
}

struct nb_task *nb_task_new(struct nb_engine *e, struct nb_mm *mm, uint32_t id, uint64_t now_ns)
{
	struct nb_task *t = mm != NULL ? nb_alloc(e, sizeof(*t)) : NULL;

	if (t == NULL)
		return NULL;
	t->mm = mm;
	t->id = id;
	t->scan_period_ms = first_period(e);
	t->scan_seq = mm->scan_seq;
	t->hurries = mm->hurries;
	t->preferred = t->cpu_node = t->home = NB_NO_NODE;
	if (nb_stats_init(e, t) != 0 || nb_groups_grow(e) != 0 ||
		nb_idmap_add(e, &e->tasks, id, t) != 0) {
		nb_task_free(e, t);
		return NULL;
	}
	stagger(e, t, now_ns);
	mm->nr_tasks++;
	trace_task(e, t, NB_EVENT_TASK_NEW, 0, now_ns);
	return t;
}

void nb_task_gone(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	trace_task(e, t, NB_EVENT_TASK_GONE, 0, now_ns);
	if (t->mm != NULL)
		t->mm->nr_tasks--;
	nb_group_leave(e, t);
	nb_home_gone(e, t);
	nb_idmap_remove(&e->tasks, t->id);
	nb_groups_shrink(e);
	nb_task_free(e, t);
}

struct nb_task *nb_task_by_id(const struct nb_engine *e, uint32_t id)
{
	return nb_idmap_find(&e->tasks, id);
}

void nb_task_policy(
	struct nb_engine *e, struct nb_task *t, const struct nb_policy *p, uint64_t now_ns)
{
	struct nb_policy compiled;

	if (p->mode == NB_POLICY_NOOP || nb_policy_compile(e, &compiled, p) != 0)
		return;
	t->policy = compiled;
	trace_task(e, t, NB_EVENT_POLICY, compiled.mode, now_ns);
}

uint32_t nb_task_scan_period_ms(const struct nb_task *t)
{
	return t->scan_period_ms;
}

void nb_task_set_period(struct nb_engine *e, struct nb_task *t, uint32_t period_ms, uint64_t now_ns)
{
	if (t->scan_period_ms == period_ms)
		return;
	e->cut_periods += period_ms < t->scan_period_ms;
	t->scan_period_ms = period_ms;
	trace_task(e, t, NB_EVENT_PERIOD, period_ms, now_ns);
}

/*
 * scan_grow_settled: only what stayed where it was speaks for scanning less. scan_grow: every fault
 * does, but the stage of the series that has it (patch 37) accounts huge pages only when they
 * moved.
 */
static bool lengthens(const struct nb_engine *e, bool huge, bool moved)
{
	if (nb_has(&e->config, NB_MECH_SCAN_GROW_SETTLED))
		return !moved;
	return nb_has(&e->config, NB_MECH_SCAN_GROW) && (!huge || moved);
}

void nb_task_fault_done(
	struct nb_engine *e, struct nb_task *t, bool huge, bool moved, uint64_t now_ns)
{
	const uint64_t longer = (uint64_t)t->scan_period_ms + e->rules.grow_ms;

	if (!nb_has(&e->config, NB_MECH_BALANCING) || !lengthens(e, huge, moved))
		return;
	nb_task_set_period(e, t,
		longer < e->rules.period_max_ms ? (uint32_t)longer : e->rules.period_max_ms,
		now_ns);
}
