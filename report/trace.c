/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include "../engine/machine.h"
#include "event.h"

static int node_id(const struct report_tracer *t, int16_t node)
{
	return t->node_ids && node >= 0 ? t->node_ids[node] : node;
}

static void put_head(const struct report_tracer *t, const struct nb_event *e, const char *event)
{
	fprintf(t->f, "mm%u %u [000] %" PRIu64 ".%06" PRIu64 ": %s: ", e->mm, e->task,
		e->time_ns / 1000000000, e->time_ns / 1000 % 1000000, event);
}

static uint64_t event_end(const struct nb_event *e)
{
	return e->addr + (uint64_t)e->pages * NB_PAGE_SIZE;
}

static void put_skip(const struct report_tracer *t, const struct nb_event *e)
{
	put_head(t, e, "sched:sched_skip_vma_numa");
	fprintf(t->f,
		"numa_scan_offset=%" PRIX64 " vm_start=%" PRIX64 " vm_end=%" PRIX64 " reason=%s\n",
		t->scan_offset, e->addr, event_end(e), nb_skip_names[e->reason].name);
}

static void put_moved(
	const struct report_tracer *t, const struct nb_event *e, uint32_t moved, uint32_t failed)
{
	put_head(t, e, "migrate:mm_migrate_pages");
	fprintf(t->f, "nr_succeeded=%u nr_failed=%u mode=MIGRATE_ASYNC reason=numa_misplaced\n",
		moved, failed);
}

static void put_ratelimit(const struct report_tracer *t, const struct nb_event *e)
{
	put_head(t, e, "migrate:mm_numa_migrate_ratelimit");
	fprintf(t->f, "comm=mm%u pid=%u dst_nid=%d nr_pages=%u\n", e->mm, e->task,
		node_id(t, e->node_to), e->huge ? NB_HUGE_PAGES : 1);
}

/* CPUs and groups are not recorded: -1 and 0. */
static void put_task_move(const struct report_tracer *t, const struct nb_event *e)
{
	put_head(t, e, "sched:sched_move_numa");
	fprintf(t->f, "pid=%u tgid=%u ngid=0 src_cpu=-1 src_nid=%d dst_cpu=-1 dst_nid=%d\n",
		e->task, e->mm, node_id(t, e->node_from), node_id(t, e->node_to));
}

static void put_task_swap(const struct report_tracer *t, const struct nb_event *e)
{
	put_head(t, e, "sched:sched_swap_numa");
	fprintf(t->f,
		"src_pid=%u src_tgid=%u src_ngid=0 src_cpu=-1 src_nid=%d dst_pid=%u dst_tgid=0 "
		"dst_ngid=0 dst_cpu=-1 dst_nid=%d\n",
		e->task, e->mm, node_id(t, e->node_from), e->arg, node_id(t, e->node_to));
}

static void put_own(const struct report_tracer *t, const struct nb_event *e)
{
	const struct report_name_table *reasons = report_reason_table(e->type);
	char name[64];

	snprintf(name, sizeof(name), "numabal:%s", nb_event_names[e->type].name);
	put_head(t, e, name);
	fprintf(t->f,
		"mm=%u task=%u addr=%" PRIx64
		" pages=%u node_from=%d node_to=%d arg=%u huge=%u write=%u",
		e->mm, e->task, e->addr, e->pages, node_id(t, e->node_from), node_id(t, e->node_to),
		e->arg, e->huge, e->write);
	if (reasons)
		fprintf(t->f, " reason=%s", reasons->names[e->reason].name);
	fputc('\n', t->f);
}

void report_trace_event(void *tracer, const struct nb_event *e)
{
	struct report_tracer *t = tracer;

	switch (e->type) {
	case NB_EVENT_SCAN_SKIP:
		put_skip(t, e);
		return;
	case NB_EVENT_MOVE_DONE:
		put_moved(t, e, e->pages, 0);
		return;
	case NB_EVENT_MOVE_FAILED:
		put_moved(t, e, 0, e->pages);
		return;
	case NB_EVENT_TASK_MOVE:
		put_task_move(t, e);
		return;
	case NB_EVENT_TASK_SWAP:
		put_task_swap(t, e);
		return;
	case NB_EVENT_SCAN_START:
		t->scan_offset = e->addr;
		break;
	case NB_EVENT_HINT_FAULT:
		if (e->reason == NB_WHY_RATELIMITED)
			put_ratelimit(t, e);
		break;
	default:
		break;
	}
	put_own(t, e);
}

int report_trace_line(FILE *f, const struct nb_event *e)
{
	struct report_tracer t = {.f = f};

	report_trace_event(&t, e);
	return ferror(f) ? -EIO : 0;
}
