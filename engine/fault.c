/* SPDX-License-Identifier: MIT */
/*
 * fault: the hint fault, from the count to the request (do_numa_page, do_huge_pmd_numa_page and
 * migrate_misplaced_page of the series), and what the outcome of a move changes.
 */
#include <errno.h>

#include "engine_private.h"
#include "placement.h"

static bool is_huge(const struct nb_fault *f)
{
	return f->flags & NB_FAULT_HUGE;
}

static uint64_t pages_of(const struct nb_fault *f)
{
	return is_huge(f) ? NB_HUGE_PAGES : 1;
}

static struct nb_verdict stay(enum nb_why why)
{
	return (struct nb_verdict){NB_NO_NODE, (uint8_t)why};
}

/* ---- traces ---- */

static void trace_fault(struct nb_engine *e, const struct nb_fault *f, struct nb_verdict v)
{
	/* Asked before the event is put together: this is the hottest place in the engine. */
	if (e->machine.trace == NULL || (f->flags & NB_FAULT_INFERRED))
		return;
	nb_trace(e, &(struct nb_event){.time_ns = f->now_ns,
			    .type = NB_EVENT_HINT_FAULT,
			    .reason = v.why,
			    .mm = f->vma != NULL ? f->vma->mm->id : 0,
			    .task = f->task->id,
			    .addr = f->addr,
			    .pages = (uint32_t)pages_of(f),
			    .node_from = f->page_node,
			    .node_to = f->cpu_node,
			    .huge = is_huge(f),
			    .write = (f->flags & NB_FAULT_WRITE) != 0});
}

static void trace_move(struct nb_engine *e, const struct nb_move_request *r, int type,
	uint32_t pages, int reason, uint64_t now_ns)
{
	if (e->machine.trace == NULL)
		return;
	nb_trace(e, &(struct nb_event){.time_ns = now_ns,
			    .type = (uint8_t)type,
			    .reason = (uint8_t)reason,
			    .mm = r->mm,
			    .task = r->task,
			    .addr = r->addr,
			    .pages = pages,
			    .node_from = r->node_from,
			    .node_to = r->node_to,
			    .huge = r->huge});
}

/* ---- what became of a move ---- */

/* Failures of huge moves were told apart late: no huge page to be had (V7), and the rest (V6). */
static bool failure_counts(const struct nb_engine *e, bool huge, enum nb_move_status rest)
{
	/* A move that did not even begin. */
	if (rest == NB_MOVE_NOT_ON_LRU)
		return false;
	if (!huge)
		return true;
	return nb_has(&e->config,
		rest == NB_MOVE_NO_MEMORY ? NB_MECH_THP_ALLOC_FAIL_STATS : NB_MECH_THP_STATS);
}

static void count_move(
	struct nb_engine *e, bool huge, uint32_t moved, uint32_t failed, enum nb_move_status rest)
{
	const bool all = nb_has(&e->config, NB_MECH_MIGRATE_STATS);

	if (!huge || nb_has(&e->config, NB_MECH_THP_STATS)) {
		e->counters.numa_pages_migrated += moved;
		e->counters.pgmigrate_success += all ? moved : 0;
	}
	if (all && failure_counts(e, huge, rest))
		e->counters.pgmigrate_fail += failed;
}

static bool carries_history(const struct nb_engine *e, const struct nb_move_request *r)
{
	/* Mapped read-only where it went, it takes a second fault of the same write. */
	if (r->write && !r->huge && nb_has(&e->config, NB_MECH_WRITE_FORGETS_CPUPID))
		return false;
	return nb_has(&e->config, NB_MECH_KEEPS_CPUPID) ||
	       (r->huge && nb_has(&e->config, NB_MECH_THP_KEEPS_LAST_NID));
}

/* A moved page is a new page: it has no history, unless the row carries it over. */
static void move_history(struct nb_engine *e, const struct nb_move_request *r, uint32_t moved)
{
	const struct nb_mm *mm = nb_mm_by_id(e, r->mm);
	struct nb_vma *vma = mm != NULL ? nb_vma_find(mm, r->addr) : NULL;
	const uint64_t end = r->addr + ((uint64_t)moved << NB_PAGE_SHIFT);

	if (vma == NULL || moved == 0 || end > vma->end || end < r->addr)
		return;
	if (carries_history(e, r))
		return;
	e->counters.numa_page_state_missed +=
		nb_pages_fill(e, &vma->pages, r->addr, end, NB_HISTORY_NONE);
}

/* With scan_grow alone a small page's fault was accounted when it happened: the outcome does not
 * matter there. */
static bool accounted_at_once(const struct nb_engine *e, bool huge)
{
	return !huge && !nb_has(&e->config, NB_MECH_SCAN_GROW_SETTLED);
}

void nb_move_done(struct nb_engine *e, const struct nb_move_request *r, uint32_t moved,
	enum nb_move_status rest, uint64_t now_ns)
{
	struct nb_task *t = nb_task_by_id(e, r->task);

	if (moved > r->pages)
		moved = r->pages;
	nb_pool_refill(e, &e->pool);
	count_move(e, r->huge, moved, r->pages - moved, rest);
	move_history(e, r, moved);
	if (moved > 0)
		trace_move(e, r, NB_EVENT_MOVE_DONE, moved, NB_MOVE_OK, now_ns);
	if (moved < r->pages)
		trace_move(e, r, NB_EVENT_MOVE_FAILED, r->pages - moved, (int)rest, now_ns);
	if (t != NULL && moved < r->pages)
		nb_numa_move_failed(t, r->pages - moved);
	if (t != NULL && !accounted_at_once(e, r->huge))
		nb_task_fault_done(e, t, r->huge, moved > 0, now_ns);
}

/* ---- the fault ---- */

static void count_fault(struct nb_engine *e, const struct nb_fault *f)
{
	if (f->flags & NB_FAULT_INFERRED)
		return;
	e->counters.numa_hint_faults++;
	if (f->page_node != f->cpu_node)
		return;
	if (!is_huge(f) || nb_has(&e->config, NB_MECH_THP_LOCAL_STATS))
		e->counters.numa_hint_faults_local++;
}

static uint64_t *refusal_counter(struct nb_engine *e, enum nb_why why)
{
	switch (why) {
	case NB_WHY_FILTERED:
		return &e->counters.numa_filter_refused;
	case NB_WHY_RATELIMITED:
		return &e->counters.numa_ratelimited;
	case NB_WHY_TARGET_FULL:
		return &e->counters.numa_target_full;
	case NB_WHY_SHARED:
		return &e->counters.numa_shared_refused;
	default:
		return NULL;
	}
}

/* A policy refuses when the toucher would have liked the page elsewhere. */
static void count_refusal(struct nb_engine *e, const struct nb_fault *f, enum nb_why why)
{
	uint64_t *counter = refusal_counter(e, why);

	if ((why == NB_WHY_NO_POLICY || why == NB_WHY_BOUND) && f->page_node != f->cpu_node &&
		nb_policy_in_force(e, f->task, f->vma) != NULL)
		counter = &e->counters.numa_policy_refused;
	if (counter != NULL)
		*counter += pages_of(f);
}

/* What stands between a misplaced page and its move, in the series' order: the window is used
 * before the watermark. */
static enum nb_why obstacle(struct nb_engine *e, const struct nb_fault *f, int target)
{
	const uint64_t units =
		nb_has(&e->config, NB_MECH_THP_RATELIMIT) ? pages_of(f) : UINT64_C(1);

	if ((f->flags & NB_FAULT_SHARED) && nb_has(&e->config, NB_MECH_SINGLE_MAPPED))
		return NB_WHY_SHARED;
	if (nb_has(&e->config, NB_MECH_MIGRATE_RATELIMIT) &&
		nb_ratelimit_move(e, target, units, f->now_ns))
		return NB_WHY_RATELIMITED;
	if (e->nodes[target].low && nb_has(&e->config, NB_MECH_TARGET_WATERMARK))
		return NB_WHY_TARGET_FULL;
	return NB_WHY_MOVE;
}

static struct nb_verdict decide(struct nb_engine *e, const struct nb_fault *f, nb_history *last)
{
	struct nb_verdict v = nb_misplaced(e, f, last);

	if (v.why != NB_WHY_MOVE)
		return v;
	if (is_huge(f) && !nb_has(&e->config, NB_MECH_THP_MIGRATION))
		return stay(NB_WHY_SPLIT);
	v.why = (uint8_t)obstacle(e, f, v.node);
	return v.why == NB_WHY_MOVE ? v : stay((enum nb_why)v.why);
}

static struct nb_verdict ask_to_move(struct nb_engine *e, const struct nb_fault *f, int16_t target)
{
	const struct nb_move_request r = {
		.mm = f->vma->mm->id,
		.task = f->task->id,
		.addr = f->addr,
		.pages = (uint32_t)pages_of(f),
		.node_from = f->page_node,
		.node_to = target,
		.huge = is_huge(f),
		.write = (f->flags & NB_FAULT_WRITE) != 0,
	};
	int err;

	trace_move(e, &r, NB_EVENT_MOVE_ASKED, r.pages, 0, f->now_ns);
	err = e->machine.move(e->machine.ctx, &r);
	if (err == 0)
		return (struct nb_verdict){target, NB_WHY_MOVE};
	if (err != -EAGAIN)
		count_move(e, r.huge, 0, r.pages, NB_MOVE_REFUSED);
	trace_move(e, &r, NB_EVENT_MOVE_FAILED, r.pages, NB_MOVE_REFUSED, f->now_ns);
	return stay(NB_WHY_REFUSED);
}

static struct nb_verdict ask_to_split(struct nb_engine *e, const struct nb_fault *f)
{
	const bool keep_armed = nb_has(&e->config, NB_MECH_SPLIT_TRANSFERS_ARM);

	if (e->machine.split(e->machine.ctx, f->vma->mm->id, f->addr, keep_armed) == 0)
		return stay(NB_WHY_SPLIT);
	return stay(NB_WHY_REFUSED);
}

/* The series leaves pages of a PMD faulted as one out of the account when they are where they
 * should be. */
static bool accounted(const struct nb_fault *f, enum nb_why why)
{
	if (!(f->flags & NB_FAULT_BATCHED))
		return true;
	return why == NB_WHY_SHARED || why == NB_WHY_RATELIMITED || why == NB_WHY_TARGET_FULL ||
	       why == NB_WHY_REFUSED || why == NB_WHY_MOVE;
}

/* A move's account waits for its outcome (nb_move_done); the parts of a split fault again. */
static void account(struct nb_engine *e, const struct nb_fault *f, enum nb_why why)
{
	if (why == NB_WHY_SPLIT || !accounted(f, why))
		return;
	if (why == NB_WHY_MOVE && !accounted_at_once(e, is_huge(f)))
		return;
	nb_task_fault_done(e, f->task, is_huge(f), false, f->now_ns);
}

/* Faults that change nothing: a lookup; the kernel's own, in rows where it does not take hint
 * faults. */
static bool undisturbing(const struct nb_engine *e, const struct nb_fault *f)
{
	if (f->flags & NB_FAULT_LOOKUP)
		return true;
	return (f->flags & NB_FAULT_KERNEL) && !nb_has(&e->config, NB_MECH_GUP_HINT_FAULTS);
}

/* In a PMD faulted as one, pages that others map too are passed over before anything is counted. */
static bool passed_over(const struct nb_engine *e, const struct nb_fault *f)
{
	return (f->flags & NB_FAULT_BATCHED) && (f->flags & NB_FAULT_SHARED) &&
	       nb_has(&e->config, NB_MECH_SINGLE_MAPPED);
}

/* The VMA named by the machine may have been split since. */
static struct nb_vma *vma_of(const struct nb_fault *f)
{
	if (f->vma != NULL && f->addr >= f->vma->start && f->addr < f->vma->end)
		return f->vma;
	return f->task->mm != NULL ? nb_vma_find(f->task->mm, f->addr) : NULL;
}

static struct nb_verdict spurious(struct nb_engine *e, const struct nb_fault *f)
{
	e->counters.numa_spurious_faults++;
	trace_fault(e, f, stay(NB_WHY_SPURIOUS));
	return stay(NB_WHY_SPURIOUS);
}

/* Neither a policy nor a lazy move says where the page is to go. */
static bool by_reference(struct nb_engine *e, const struct nb_fault *f)
{
	return nb_policy_in_force(e, f->task, f->vma) == NULL &&
	       nb_pages_peek(e, &f->vma->pages, f->addr, is_huge(f)) != NB_HISTORY_LAZY;
}

/* Where the toucher runs before it has a home says nothing. */
static struct nb_verdict homeless(struct nb_engine *e, const struct nb_fault *f)
{
	count_refusal(e, f, NB_WHY_FILTERED);
	trace_fault(e, f, stay(NB_WHY_FILTERED));
	return stay(NB_WHY_FILTERED);
}

static struct nb_verdict act(struct nb_engine *e, const struct nb_fault *f, struct nb_verdict v)
{
	if (v.why == NB_WHY_MOVE)
		return ask_to_move(e, f, v.node);
	if (v.why == NB_WHY_SPLIT)
		return ask_to_split(e, f);
	return v;
}

struct nb_verdict nb_hint_fault(struct nb_engine *e, const struct nb_fault *fault)
{
	struct nb_fault f = *fault;
	nb_history last;
	struct nb_verdict v;

	if (undisturbing(e, &f))
		return stay(NB_WHY_DISABLED);
	if (is_huge(&f))
		f.addr &= ~(uint64_t)(NB_HUGE_SIZE - 1);
	f.vma = vma_of(&f);
	if (f.flags & NB_FAULT_SPURIOUS)
		return spurious(e, &f);
	if (f.vma == NULL || !nb_node_exists(e, f.cpu_node) || !nb_node_exists(e, f.page_node))
		return stay(NB_WHY_NO_POLICY);
	if (passed_over(e, &f))
		return stay(NB_WHY_SHARED);
	count_fault(e, &f);
	if (!(f.flags & NB_FAULT_INFERRED))
		nb_vma_touched(&f.vma->scan, f.task->id);
	f.task->cpu_node = f.cpu_node;
	if (nb_has(&e->config, NB_MECH_HOME_NODE) && by_reference(e, &f)) {
		if (f.task->home == NB_NO_NODE)
			return homeless(e, &f);
		f.cpu_node = f.task->home;
	}
	v = decide(e, &f, &last);
	count_refusal(e, &f, (enum nb_why)v.why);
	trace_fault(e, &f, v);
	v = act(e, &f, v);
	account(e, &f, (enum nb_why)v.why);
	if (f.task->faults != NULL)
		nb_numa_fault(e, &f, last, v);
	return v;
}
