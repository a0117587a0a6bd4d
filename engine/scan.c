/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include <string.h>
#include "engine_private.h"

/* One run of the scanner. */
struct scan {
	struct nb_engine *e;
	struct nb_mm *mm;
	struct nb_task *task;
	uint64_t now_ns;
	uint64_t pos;	    /* where to go on */
	uint64_t remaining; /* pages left in the window */
	uint64_t armed;	    /* pages, what counts as an update */
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
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
	uint64_t max_present, struct nb_arm_result *out)
{
	const struct nb_arm_request r = {
		.mm = vma->mm->id,
		.start = start,
		.end = end,
		.max_present = max_present,
		.pmd_batch = nb_has(&e->config, NB_MECH_PMD_BATCH),
		.single_mapped = nb_has(&e->config, NB_MECH_SINGLE_MAPPED),
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

static bool skip_vma(const struct scan *s, const struct nb_vma *vma)
{
	if (vma->flags & NB_VMA_UNMIGRATABLE) {
		trace_skip(s, vma, NB_SKIP_UNSUITABLE);
		return true;
	}
	if (vma->end - vma->start < NB_HUGE_SIZE &&
		nb_has(&s->e->config, NB_MECH_SCAN_SKIP_SMALL)) {
		trace_skip(s, vma, NB_SKIP_SMALL);
		return true;
	}
	return false;
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

/* One request, from s->pos; moves s->pos on. */
static void scan_piece(struct scan *s, struct nb_vma *vma)
{
	const bool windowed = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW);
	const bool by_present = windowed && nb_has(&s->e->config, NB_MECH_SCAN_PRESENT);
	const uint64_t end = windowed && !by_present ? address_limit(s, vma) : vma->end;
	struct nb_arm_result out;

	nb_arm(s->e, vma, s->pos, end, by_present ? s->remaining : 0, &out);
	trace_scan(s, NB_EVENT_SCAN_ARM, s->pos, out.updated, out.present);
	s->armed += out.updated;
	if (by_present)
		use_window(s, out.updated);
	else if (windowed)
		use_window(s, (out.end - s->pos) >> NB_PAGE_SHIFT);
	s->pos = out.end;
}

static void scan_vma(struct scan *s, struct nb_vma *vma)
{
	if (s->pos < vma->start)
		s->pos = vma->start;
	while (s->pos < vma->end && s->remaining > 0)
		scan_piece(s, vma);
}

static void end_pass(struct nb_mm *mm)
{
	mm->scan_seq++;
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
		if (s->remaining == 0)
			return true;
	}
	return false;
}

static void scan_window(struct scan *s)
{
	uint32_t first = nb_mm_index(s->mm, s->pos);

	if (first == s->mm->nr_vmas && s->pos > 0) {
		end_pass(s->mm);
		s->pos = 0;
		first = 0;
	}
	if (scan_vmas(s, first))
		s->mm->scan_offset = s->pos;
	else
		end_pass(s->mm);
}

static void run_scan(struct scan *s)
{
	const bool windowed = nb_has(&s->e->config, NB_MECH_SCAN_WINDOW);

	s->pos = windowed ? s->mm->scan_offset : 0;
	s->remaining = windowed ? s->e->rules.scan_pages : UINT64_MAX;
	s->e->counters.numa_scans++;
	trace_scan(s, NB_EVENT_SCAN_START, s->pos, 0, s->task->scan_period_ms);
	scan_window(s);
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
		nb_task_set_period(s->e, s->task, s->e->rules.period_min_ms, s->now_ns);
	s->mm->next_scan_j = now_j + time_to_next_scan(s);
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
	       runtime_ns - t->node_stamp_ns > t->scan_period_ms * UINT64_C(1000000);
}

bool nb_task_tick_idle(const struct nb_task *t, uint64_t runtime_ns, uint64_t now_ns)
{
	const struct nb_mm *mm = t->mm;

	(void)now_ns;
	if (mm == NULL)
		return true;
	if (!nb_has(&mm->engine->config, NB_MECH_BALANCING))
		return mm->told_disabled;
	return !period_over(t, runtime_ns);
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
		nb_task_set_period(s->e, s->task, s->e->rules.period_min_ms, s->now_ns);
}

void nb_task_tick(
	struct nb_engine *e, struct nb_task *t, uint64_t runtime_ns, int cpu_node, uint64_t now_ns)
{
	struct scan s = {.e = e, .mm = t->mm, .task = t, .now_ns = now_ns};

	if (t->mm == NULL || !nb_node_exists(e, cpu_node))
		return;
	if (!nb_has(&e->config, NB_MECH_BALANCING)) {
		tell_disabled(&s);
		return;
	}
	t->mm->told_disabled = false;
	if (!period_over(t, runtime_ns))
		return;
	nb_pool_refill(e, &e->pool);
	end_scan_delay(&s);
	t->node_stamp_ns = runtime_ns;
	if (nb_jiffies(&e->rules, now_ns) < t->mm->next_scan_j)
		return;
	task_work(&s, cpu_node);
}
