/* SPDX-License-Identifier: MIT */
#include "placement.h"
#include "cpupid.h"
#include "engine_private.h"

static struct nb_verdict stay(enum nb_why why)
{
	return (struct nb_verdict){NB_NO_NODE, (uint8_t)why};
}

static bool is_huge(const struct nb_fault *f)
{
	return f->flags & NB_FAULT_HUGE;
}

static bool nearer(const struct nb_engine *e, int from, int a, int b)
{
	return nb_distance(&e->topo, (unsigned int)from, (unsigned int)a) <
	       nb_distance(&e->topo, (unsigned int)from, (unsigned int)b);
}

/*
 * The page is wanted on `wanted`; the nearest node with memory stands in for one without.
 * `by_policy`: the user named the node, so it is taken although distances may say it is no nearer.
 */
static struct nb_verdict towards(
	const struct nb_engine *e, const struct nb_fault *f, int wanted, bool by_policy)
{
	const int target = e->nodes[wanted].near;

	if (target == f->page_node)
		return stay(NB_WHY_IN_PLACE);
	if (!(by_policy && target == wanted) && !nearer(e, wanted, target, f->page_node))
		return stay(target == wanted ? NB_WHY_IN_PLACE : NB_WHY_NO_MEMORY_NODE);
	return (struct nb_verdict){(int16_t)target, NB_WHY_MOVE};
}

/* A kernel looks whether the page is where it should be before it looks who touched it: then it
 * does not note this toucher. */
static bool leaves_toucher(const struct nb_engine *e, const struct nb_fault *f)
{
	return nb_has(&e->config, NB_MECH_LOCAL_KEEPS_CPUPID) && f->page_node == f->cpu_node;
}

/*
 * Who touched the page before. With the filter this toucher is remembered in any case, so that two
 * faults in a row from one node show; without it only the mark of a lazy move is looked for, and
 * taken off.
 */
static nb_history last_toucher(struct nb_engine *e, const struct nb_fault *f, bool remember)
{
	struct nb_pages *pages = &f->vma->pages;
	nb_history value = NB_HISTORY_NONE, last;
	bool missed;

	if (!remember || leaves_toucher(e, f)) {
		last = nb_pages_peek(e, pages, f->addr, is_huge(f));
		if (last != NB_HISTORY_LAZY)
			return remember ? last : NB_HISTORY_NONE;
	}
	if (remember)
		value = nb_has(&e->config, NB_MECH_CPUPID) ? nb_cpupid(f->cpu_node, f->task->id)
							   : nb_history_node(f->cpu_node);
	last = nb_pages_exchange(e, pages, f->addr, is_huge(f), value, &missed);
	e->counters.numa_page_state_missed += missed;
	return last;
}

/* The filter, by node alone or by node and pid. */
static bool passes(struct nb_engine *e, const struct nb_fault *f, nb_history last)
{
	if (f->flags & (NB_FAULT_DOUBT | NB_FAULT_SURE))
		return f->flags & NB_FAULT_SURE;
	if (nb_has(&e->config, NB_MECH_CPUPID))
		return nb_should_numa_migrate(e, f, last);
	return last == nb_history_node(f->cpu_node);
}

/* The system's default policy: the toucher's node, which must have touched the page the time before
 * as well. */
static struct nb_verdict misplaced_by_reference(
	struct nb_engine *e, const struct nb_fault *f, nb_history *before)
{
	const bool by_reference = nb_has(&e->config, NB_MECH_MIGRATE_ON_REFERENCE);
	const bool filter = by_reference && nb_has(&e->config, NB_MECH_TWO_STAGE_FILTER);
	const nb_history last = last_toucher(e, f, filter);
	const struct nb_verdict v = towards(e, f, f->cpu_node, false);

	*before = last;
	if (!by_reference && last != NB_HISTORY_LAZY)
		return stay(NB_WHY_NO_POLICY);
	if (v.why == NB_WHY_MOVE && (filter || (f->flags & NB_FAULT_DOUBT)) &&
		last != NB_HISTORY_LAZY && !passes(e, f, last))
		return stay(NB_WHY_FILTERED);
	return v;
}

static struct nb_verdict misplaced_by_policy(
	struct nb_engine *e, const struct nb_fault *f, const struct nb_policy *p)
{
	const bool lazy = last_toucher(e, f, false) == NB_HISTORY_LAZY;
	int wanted;

	if (!p->migrate_on_fault && !lazy)
		return stay(NB_WHY_NO_POLICY);
	if (p->mode == NB_POLICY_BIND && nb_policy_allows(p, f->page_node))
		return stay(NB_WHY_BOUND);
	wanted = nb_policy_node(e, p, f->vma, f->addr, is_huge(f), f->cpu_node);
	return towards(e, f, wanted, true);
}

struct nb_verdict nb_misplaced(struct nb_engine *e, const struct nb_fault *f, nb_history *last)
{
	const struct nb_policy *p;

	*last = NB_HISTORY_NONE;
	if (!nb_has(&e->config, NB_MECH_MIGRATE_ON_FAULT))
		return stay(NB_WHY_DISABLED);
	p = nb_policy_in_force(e, f->task, f->vma);
	return p == NULL ? misplaced_by_reference(e, f, last) : misplaced_by_policy(e, f, p);
}
