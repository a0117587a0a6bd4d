/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include <string.h>
#include "engine_private.h"
#include "home.h"
#include "scanperiod.h"

enum {
	VIRTUAL_WINDOWS = 8, /* a scan passes so many windows of addresses at most */
	COST_TIMES = 32,     /* scans take one part in so many of a task's run time at most */
};

#define MS UINT64_C(1000000)

/* One run of the scanner. */
struct scan {
	struct nb_engine *e;
	struct nb_mm *mm;
	struct nb_task *task;
	uint64_t now_ns;
	uint64_t pos;	    /* where to go on */
	uint64_t remaining; /* pages left in the window */
	uint64_t virtual;   /* pages of addresses that may still be passed */
	uint64_t armed;	    /* pages, what counts as an update */
	uint64_t cost_ns;   /* run time that it took */
	bool skipped;	    /* a VMA was passed over because it is inactive */
	bool forced;	    /* one inactive VMA is scanned all the same */
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- arming ---- */

/*
 * A machine's answer that makes no sense must not send the scan round for ever: then the whole
 * range counts as passed, and nothing as done.
 */
static void ask_to_arm(
	struct nb_engine *e, const struct nb_arm_request *r, struct nb_arm_result *out)
{
	*out = (struct nb_arm_result){0};
	if (e->machine.arm(e->machine.ctx, r, out) != 0)
		*out = (struct nb_arm_result){.end = r->end};
	if (out->end <= r->start || out->end > r->end || out->end % NB_PAGE_SIZE != 0)
		out->end = r->end;
}

/* Pages that may need a history of their own soon, at most one block's expansion each. */
static void prepare_faults(struct nb_engine *e, uint64_t bytes, const struct nb_arm_result *out)
{
	const uint64_t huge = out->huge_updated * NB_HUGE_PAGES;
	const uint64_t small = out->updated > huge ? out->updated - huge : 0;

	if (small > 0)
		nb_pool_prepare(e, &e->pool, min_u64(small, (bytes >> NB_HUGE_SHIFT) + 2));
}

void nb_arm(struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end,
	uint64_t max_present, int spare_node, struct nb_arm_result *out)
{
	const struct nb_arm_request r = {
		.mm = vma->mm->id,
		.start = start,
		.end = end,
		.max_present = max_present,
		.pmd_batch = nb_has(&e->config, NB_MECH_PMD_BATCH),
		.single_mapped = nb_has(&e->config, NB_MECH_SINGLE_MAPPED),
		.spare_node = (int16_t)spare_node,
	};

	ask_to_arm(e, &r, out);
	nb_pages_settle(e, &vma->pages, start, out->end);
	prepare_faults(e, out->end - start, out);
	if (nb_has(&e->config, NB_MECH_SCAN_COUNTS_HUGE) && out->huge_present > out->huge_updated)
		out->updated += (out->huge_present - out->huge_updated) * NB_HUGE_PAGES;
	e->counters.numa_pte_updates += out->updated;
	e->counters.numa_huge_pte_updates += out->huge_updated;
	e->counters.numa_scan_pages += out->present;
}

/* ---- the window ---- */

static void trace_skip(const struct scan *s, const struct nb_vma *vma, enum nb_skip reason)
{
	nb_trace(s->e,
		&(struct nb_event){.time_ns = s->now_ns,
			.type = NB_EVENT_SCAN_SKIP,
			.reason = (uint8_t)reason,
			.mm = s->mm->id,
			.task = s->task->id,
			.node_from = NB_NO_NODE,
			.node_to = NB_NO_NODE,
			.addr = vma != NULL ? vma->start : 0,
			.pages = vma != NULL ? (uint32_t)((vma->end - vma->start) >> NB_PAGE_SHIFT)
					     : 0});
}

static void trace_scan(
	const struct scan *s, enum nb_event_type type, uint64_t addr, uint64_t pages, uint64_t arg)
{
	nb_trace(s->e, &(struct nb_event){.time_ns = s->now_ns,
			       .type = (uint8_t)type,
			       .mm = s->mm->id,
			       .task = s->task->id,
			       .node_from = NB_NO_NODE,
			       .node_to = NB_NO_NODE,
			       .addr = addr,
			       .pages = (uint32_t)pages,
			       .arg = (uint32_t)arg});
}

static uint64_t *skip_counter(struct nb_counters *c, enum nb_skip reason)
{
	switch (reason) {
	case NB_SKIP_UNSUITABLE:
		return &c->numa_skip_unsuitable;
	case NB_SKIP_SHARED_RO:
		return &c->numa_skip_shared_ro;
	case NB_SKIP_INACCESSIBLE:
		return &c->numa_skip_inaccessible;
	case NB_SKIP_SCAN_DELAY:
		return &c->numa_skip_scan_delay;
	case NB_SKIP_PID_INACTIVE:
		return &c->numa_skip_pid_inactive;
	case NB_SKIP_IGNORE_PID:
		return &c->numa_skip_ignore_pid;
	case NB_SKIP_SEQ_COMPLETED:
		return &c->numa_skip_seq_completed;
	default:
		return NULL;
	}
}

static void tell_skip(const struct scan *s, const struct nb_vma *vma, enum nb_skip reason)
{
	uint64_t *counter = skip_counter(&s->e->counters, reason);

	if (counter != NULL)
		++*counter;
	trace_skip(s, vma, reason);
}

static bool moves_on_fault(const struct scan *s, const struct nb_vma *vma)
{
	const struct nb_policy *p = nb_policy_in_force(s->e, s->task, vma);

	return p == NULL || p->migrate_on_fault;
}

/* What the VMA is, whoever scans it. Kernels call a policy without moves unsuitable, too. */
static enum nb_skip unfit(const struct scan *s, const struct nb_vma *vma)
{
	const struct nb_config *c = &s->e->config;
	const unsigned int rights = vma->flags & (NB_VMA_READ | NB_VMA_WRITE);

	if (vma->flags & NB_VMA_UNMIGRATABLE)
		return NB_SKIP_UNSUITABLE;
	if (nb_has(c, NB_MECH_SCAN_MOF_ONLY) && !moves_on_fault(s, vma))
		return NB_SKIP_UNSUITABLE;
	if (vma->end - vma->start < NB_HUGE_SIZE && nb_has(c, NB_MECH_SCAN_SKIP_SMALL))
		return NB_SKIP_SMALL;
	if ((vma->flags & NB_VMA_FILE) && rights == NB_VMA_READ &&
		nb_has(c, NB_MECH_SCAN_SKIP_SHARED_RO))
		return NB_SKIP_SHARED_RO;
	if (rights == 0 && nb_has(c, NB_MECH_SCAN_SKIP_INACCESSIBLE))
		return NB_SKIP_INACCESSIBLE;
	return NB_NR_SKIPS;
}

static bool skip_vma(struct scan *s, struct nb_vma *vma)
{
	enum nb_skip reason = unfit(s, vma);
	bool partial = false;

	if (reason == NB_NR_SKIPS)
		reason = nb_vma_skip(s->e, vma, s->task, s->forced,
			nb_jiffies(&s->e->rules, s->now_ns), &partial);
	if (partial)
		tell_skip(s, vma, NB_SKIP_IGNORE_PID);
	if (reason == NB_NR_SKIPS)
		return false;
	s->skipped |= reason == NB_SKIP_PID_INACTIVE;
	tell_skip(s, vma, reason);
	return true;
}

/* Where a window that counts addresses ends in this VMA. */
static uint64_t address_limit(const struct scan *s, const struct nb_vma *vma)
{
	const uint64_t blocks =
		((s->pos >> NB_PAGE_SHIFT) % NB_HUGE_PAGES + s->remaining + NB_HUGE_PAGES - 1) /
		NB_HUGE_PAGES;
	const uint64_t base = s->pos >> NB_HUGE_SHIFT;

	if (blocks > (vma->end >> NB_HUGE_SHIFT) - base)
		return vma->end;
	return (base + blocks) << NB_HUGE_SHIFT;
}

static void use_window(struct scan *s, uint64_t pages)
{
	s->remaining -= min_u64(pages, s->remaining);
}

/* Pages of a lone task that are on its own node need no fault to say so. */
static int spare_node(const struct scan *s)
{
	if (s->mm->nr_tasks != 1 || !nb_has(&s->e->config, NB_MECH_SCAN_SINGLE_LOCAL))
		return NB_NO_NODE;
	if (nb_has(&s->e->config, NB_MECH_HOME_NODE) && s->task->home != NB_NO_NODE)
		return s->task->home;
	return s->task->cpu_node;
}

/*
 * A piece as large as what is left of the window. It uses its whole extent of the window when an
 * entry of it changed (without scan_virtpages: of it or of any before), else nothing.
 */
static void scan_extent(struct scan *s, struct nb_vma *vma)
{
	const bool limited = nb_has(&s->e->config, NB_MECH_SCAN_VIRTPAGES);
	struct nb_arm_result out;
	uint64_t pages;

	nb_arm(s->e, vma, s->pos, address_limit(s, vma), 0, spare_node(s), &out);
	trace_scan(s, NB_EVENT_SCAN_ARM, s->pos, out.updated, out.present);
	pages = (out.end - s->pos) >> NB_PAGE_SHIFT;
	s->armed += out.updated;
	s->cost_ns += out.cost_ns;
	s->pos = out.end;
	if (out.updated > 0 || (!limited && s->armed > 0))
		use_window(s, pages);
	if (limited)
		s->virtual -= min_u64(pages, s->virtual);
}

static bool window_full(const struct scan *s)
{
	return s->remaining == 0 || s->virtual == 0;
}

/* One request, from s->pos; moves s->pos on. */
static void scan_piece(struct scan *s, struct nb_vma *vma)
{
	const bool windowed = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW);
	const bool by_present = windowed && nb_has(&s->e->config, NB_MECH_SCAN_PRESENT);
	const uint64_t end = windowed && !by_present ? address_limit(s, vma) : vma->end;
	struct nb_arm_result out;

	nb_arm(s->e, vma, s->pos, end, by_present ? s->remaining : 0, NB_NO_NODE, &out);
	trace_scan(s, NB_EVENT_SCAN_ARM, s->pos, out.updated, out.present);
	s->armed += out.updated;
	s->cost_ns += out.cost_ns;
	if (by_present)
		use_window(s, out.updated);
	else if (windowed)
		use_window(s, (out.end - s->pos) >> NB_PAGE_SHIFT);
	s->pos = out.end;
}

static void scan_vma(struct scan *s, struct nb_vma *vma)
{
	const bool by_extent = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW) &&
			       nb_has(&s->e->config, NB_MECH_SCAN_EXTENT);

	if (s->pos < vma->start)
		s->pos = vma->start;
	while (s->pos < vma->end && !window_full(s))
		if (by_extent)
			scan_extent(s, vma);
		else
			scan_piece(s, vma);
}

/* While the first pass lasts scan periods are at their start: what was mapped meanwhile needs no
 * hurry. */
static void end_pass(struct nb_mm *mm)
{
	if (mm->scan_seq++ == 0)
		mm->maps_hurried = mm->maps;
	mm->scan_offset = 0;
}

/* Scan VMAs from s->pos on until the window is full. Returns false when it came to the end of the
 * address space. */
static bool scan_vmas(struct scan *s, uint32_t first)
{
	for (uint32_t i = first; i < s->mm->nr_vmas; i++) {
		struct nb_vma *vma = s->mm->vmas[i];

		if (skip_vma(s, vma))
			continue;
		scan_vma(s, vma);
		if (window_full(s))
			return true;
		nb_vma_scanned(s->e, vma);
		if (s->forced)
			return true;
	}
	return false;
}

static bool scan_from_offset(struct scan *s)
{
	uint32_t first;

	s->pos = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW) ? s->mm->scan_offset : 0;
	first = nb_mm_index(s->mm, s->pos);
	if (first == s->mm->nr_vmas && s->pos > 0) {
		end_pass(s->mm);
		s->pos = 0;
		first = 0;
	}
	return scan_vmas(s, first);
}

/* Nothing is left but what this task does not touch: one VMA of that, so that none is left out for
 * ever. */
static bool scan_forced(struct scan *s)
{
	if (!s->skipped || !nb_has(&s->e->config, NB_MECH_VMA_FORCE))
		return false;
	s->forced = true;
	return scan_from_offset(s);
}

static void scan_window(struct scan *s)
{
	if (scan_from_offset(s) || scan_forced(s))
		s->mm->scan_offset = s->pos;
	else
		end_pass(s->mm);
}

static void run_scan(struct scan *s)
{
	const bool windowed = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW);

	s->remaining = windowed ? s->e->rules.scan_pages : UINT64_MAX;
	s->virtual = windowed ? VIRTUAL_WINDOWS * s->e->rules.scan_pages : UINT64_MAX;
	s->e->counters.numa_scans++;
	trace_scan(s, NB_EVENT_SCAN_START, windowed ? s->mm->scan_offset : 0, 0,
		s->task->scan_period_ms);
	scan_window(s);
	if (nb_has(&s->e->config, NB_MECH_SCAN_COST))
		s->task->node_stamp_ns += COST_TIMES * s->cost_ns;
	trace_scan(s, NB_EVENT_SCAN_END, s->mm->scan_offset, s->armed, s->mm->scan_seq);
}

/* ---- whether to scan ---- */

/* Migrations follow CPUs: while all tasks run on the first node there is nothing to find. */
static bool second_node_seen(const struct scan *s, int cpu_node)
{
	struct nb_mm *mm = s->mm;

	if (!nb_has(&s->e->config, NB_MECH_SECOND_NODE))
		return true;
	if (mm->first_node == NB_FIRST_NODE_INIT)
		mm->first_node = (int16_t)cpu_node;
	if (mm->first_node == cpu_node && !nb_has(&s->e->config, NB_MECH_FORCE))
		return false;
	mm->first_node = NB_FIRST_NODE_ACTIVE;
	return true;
}

static void reset_period(const struct scan *s, uint64_t now_j)
{
	if (!nb_has(&s->e->config, NB_MECH_SCAN_RESET) || now_j <= s->mm->next_reset_j)
		return;
	nb_task_set_period(s->e, s->task, s->e->rules.period_min_ms, s->now_ns);
	s->mm->next_reset_j = now_j + s->e->rules.reset_j;
}

static uint64_t time_to_next_scan(const struct scan *s)
{
	const uint64_t j = nb_msecs_to_jiffies(&s->e->rules, s->task->scan_period_ms);

	return nb_has(&s->e->config, NB_MECH_SCAN_HALF_RATE) ? 2 * j : j;
}

static bool ratelimited(const struct scan *s, int cpu_node)
{
	return nb_has(&s->e->config, NB_MECH_SCAN_RATELIMIT) &&
	       nb_ratelimit_scan(s->e, s->e->nodes[cpu_node].near, s->now_ns);
}

static void task_work(struct scan *s, int cpu_node)
{
	const uint64_t now_j = nb_jiffies(&s->e->rules, s->now_ns);

	if (!second_node_seen(s, cpu_node)) {
		trace_skip(s, NULL, NB_SKIP_FIRST_NODE);
		return;
	}
	reset_period(s, now_j);
	if (s->task->scan_period_ms == 0)
		nb_task_set_period(s->e, s->task, nb_scan_start_ms(s->e, s->task), s->now_ns);
	s->mm->next_scan_j = now_j + time_to_next_scan(s);
	if (nb_has(&s->e->config, NB_MECH_SCAN_STAGGER))
		s->task->node_stamp_ns += 2 * s->e->rules.tick_ns;
	if (ratelimited(s, cpu_node)) {
		s->e->counters.numa_scan_skipped_ratelimit++;
		trace_skip(s, NULL, NB_SKIP_RATELIMITED);
		return;
	}
	run_scan(s);
}

/* ---- the tick ---- */

static bool period_over(const struct nb_task *t, uint64_t runtime_ns)
{
	return runtime_ns > t->node_stamp_ns &&
	       runtime_ns - t->node_stamp_ns > t->scan_period_ms * MS;
}

static bool hurry_due(const struct nb_mm *mm, uint64_t now_ns)
{
	return mm->scan_seq > 0 && mm->maps_hurried != mm->maps && now_ns >= mm->next_hurry_ns;
}

static void begin_hurry(const struct scan *s)
{
	s->mm->maps_hurried = s->mm->maps;
	s->mm->hurries++;
	s->mm->next_hurry_ns = s->now_ns + s->e->rules.period_max_ms * MS;
	s->mm->next_scan_j = nb_jiffies(&s->e->rules, s->now_ns);
}

/* Is there something besides the scan period to look after? Apart from the question that is asked
 * of every task at every tick. */
static bool looked_after(const struct nb_task *t, uint64_t now_ns)
{
	const struct nb_mm *mm = t->mm;

	if (nb_has(&mm->engine->config, NB_MECH_HOME_NODE) && !nb_home_idle(t, now_ns))
		return true;
	return nb_has(&mm->engine->config, NB_MECH_SCAN_NEW_VMA) &&
	       (t->hurries != mm->hurries || hurry_due(mm, now_ns));
}

/* What a task's next tick may be for. */
enum duty {
	NO_DUTY,     /* nothing, until something is changed */
	AT_ONCE,     /* something, whenever it comes */
	WHEN_DUE,    /* a scan, when the period is over */
	LOOKED_AFTER /* that, and more besides */
};

static inline enum duty duty_of(const struct nb_task *t)
{
	const struct nb_mm *mm = t->mm;
	const struct nb_config *c;

	if (mm == NULL)
		return NO_DUTY;
	c = &mm->engine->config;
	if (!nb_has(c, NB_MECH_BALANCING))
		return mm->told_disabled ? NO_DUTY : AT_ONCE;
	return nb_has(c, NB_MECH_HOME_NODE) || nb_has(c, NB_MECH_SCAN_NEW_VMA) ? LOOKED_AFTER
									       : WHEN_DUE;
}

bool nb_task_tick_idle(const struct nb_task *t, uint64_t runtime_ns, uint64_t now_ns)
{
	const enum duty duty = duty_of(t);

	if (duty == NO_DUTY || duty == AT_ONCE)
		return duty == NO_DUTY;
	if (period_over(t, runtime_ns))
		return false;
	return duty == WHEN_DUE || !looked_after(t, now_ns);
}

uint64_t nb_task_quiet_ns(const struct nb_task *t)
{
	const enum duty duty = duty_of(t);

	if (duty == NO_DUTY)
		return UINT64_MAX;
	/* Between ticks a stamp only grows. */
	return duty == WHEN_DUE ? t->node_stamp_ns + t->scan_period_ms * MS : 0;
}

const uint32_t *nb_engine_cut_periods(const struct nb_engine *e)
{
	return &e->cut_periods;
}

/*
 * New memory is looked at soon, whatever was found of the old. Whose turn the next scan is can't be
 * known, so all tasks begin anew. Who maps and unmaps all the time makes them do so once in the
 * longest scan period.
 */
static void hurry(const struct scan *s, uint64_t runtime_ns)
{
	const uint64_t period = nb_scan_start_ms(s->e, s->task);
	struct nb_task *t = s->task;

	if (!nb_has(&s->e->config, NB_MECH_SCAN_NEW_VMA))
		return;
	if (hurry_due(s->mm, s->now_ns))
		begin_hurry(s);
	if (t->hurries == s->mm->hurries)
		return;
	t->hurries = s->mm->hurries;
	if (t->node_stamp_ns == 0)
		return;
	nb_task_set_period(s->e, t, (uint32_t)period, s->now_ns);
	/* Due at once, and what was run beyond it does not count. */
	if (runtime_ns > period * MS)
		t->node_stamp_ns = max_u64(t->node_stamp_ns, runtime_ns - period * MS - 1);
}

/* Said once per address space: nothing will be scanned until somebody switches it on. */
static void tell_disabled(const struct scan *s)
{
	if (!s->mm->told_disabled)
		trace_skip(s, NULL, NB_SKIP_DISABLED);
	s->mm->told_disabled = true;
}

static void end_scan_delay(const struct scan *s)
{
	if (s->task->node_stamp_ns == 0 && nb_has(&s->e->config, NB_MECH_SCAN_DELAY))
		nb_task_set_period(s->e, s->task, nb_scan_start_ms(s->e, s->task), s->now_ns);
}

/* By a period: what was run beyond it counts for the next one. */
static void stamp(const struct scan *s, uint64_t period_ms, uint64_t runtime_ns)
{
	struct nb_task *t = s->task;

	if (nb_has(&s->e->config, NB_MECH_SCAN_STAGGER))
		t->node_stamp_ns += period_ms * MS;
	else
		t->node_stamp_ns = runtime_ns;
}

void nb_task_tick(
	struct nb_engine *e, struct nb_task *t, uint64_t runtime_ns, int cpu_node, uint64_t now_ns)
{
	struct scan s = {.e = e, .mm = t->mm, .task = t, .now_ns = now_ns};
	uint32_t period_ms;

	if (t->mm == NULL || !nb_node_exists(e, cpu_node))
		return;
	if (!nb_has(&e->config, NB_MECH_BALANCING)) {
		tell_disabled(&s);
		return;
	}
	t->mm->told_disabled = false;
	cpu_node = nb_home_tick(e, t, runtime_ns, cpu_node, now_ns);
	hurry(&s, runtime_ns);
	period_ms = t->scan_period_ms;
	if (!period_over(t, runtime_ns))
		return;
	nb_pool_refill(e, &e->pool);
	t->cpu_node = (int16_t)cpu_node;
	end_scan_delay(&s);
	stamp(&s, period_ms, runtime_ns);
	if (nb_jiffies(&e->rules, now_ns) < t->mm->next_scan_j)
		return;
	task_work(&s, cpu_node);
}
