/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include "../engine/machine.h"
#include "event.h"

/* A sentence under way. */
struct words {
	char *text;
	const struct nb_event *e;
	const int *node_ids;
};

#define SAY(w, ...) snprintf((w)->text, REPORT_WORDS_LEN, __VA_ARGS__)

enum { NODE_LEN = 24 };

static const char *node(char name[NODE_LEN], const struct words *w, int16_t index)
{
	if (index < 0)
		return "no node";
	snprintf(name, NODE_LEN, "node %d", w->node_ids[index]);
	return name;
}

static uint64_t end_of(const struct nb_event *e)
{
	return e->addr + (uint64_t)e->pages * NB_PAGE_SIZE;
}

static const struct nb_name *reason(const struct nb_event *e)
{
	return &report_reason_table(e->type)->names[e->reason];
}

static const char *size_of(const struct nb_event *e)
{
	return e->huge ? "huge page" : "page";
}

static void say_range(const struct words *w, const char *what)
{
	SAY(w, "%s: 0x%" PRIx64 " to 0x%" PRIx64 ", %u pages", what, w->e->addr, end_of(w->e),
		w->e->pages);
}

static void say_armed(const struct words *w)
{
	SAY(w, "a scan by task %u armed it from 0x%" PRIx64 " on: %u pages of %u present",
		w->e->task, w->e->addr, w->e->pages, w->e->arg);
}

static void say_skipped(const struct words *w)
{
	/* ignore_pid is told like a skip, as kernels do, but is none. */
	const char *what = w->e->reason == NB_SKIP_IGNORE_PID ? "takes it" : "passed it over";

	SAY(w, "a scan by task %u %s: %s: %s", w->e->task, what, reason(w->e)->name,
		reason(w->e)->text);
}

static void say_fault(const struct words *w)
{
	char from[NODE_LEN], to[NODE_LEN];

	SAY(w,
		"hint fault (%s) on the %s at 0x%" PRIx64
		" by task %u on %s, the page on %s: %s: %s",
		w->e->write ? "write" : "read", size_of(w->e), w->e->addr, w->e->task,
		node(to, w, w->e->node_to), node(from, w, w->e->node_from), reason(w->e)->name,
		reason(w->e)->text);
}

static void say_move(const struct words *w, const char *what)
{
	char from[NODE_LEN], to[NODE_LEN];

	SAY(w, "%s: %u pages at 0x%" PRIx64 " from %s to %s", what, w->e->pages, w->e->addr,
		node(from, w, w->e->node_from), node(to, w, w->e->node_to));
}

static void say_not_moved(const struct words *w)
{
	char from[NODE_LEN], to[NODE_LEN];

	SAY(w, "not moved: %u pages at 0x%" PRIx64 " from %s to %s: %s: %s", w->e->pages,
		w->e->addr, node(from, w, w->e->node_from), node(to, w, w->e->node_to),
		reason(w->e)->name, reason(w->e)->text);
}

static void say_policy(const struct words *w)
{
	static const char *const modes[NB_NR_POLICY_MODES] = {
		[NB_POLICY_DEFAULT] = "default",
		[NB_POLICY_PREFERRED] = "preferred",
		[NB_POLICY_BIND] = "bind",
		[NB_POLICY_INTERLEAVE] = "interleave",
		[NB_POLICY_LOCAL] = "local",
		[NB_POLICY_NOOP] = "noop",
	};
	const char *mode = w->e->arg < NB_NR_POLICY_MODES ? modes[w->e->arg] : "unknown";

	if (w->e->pages)
		SAY(w, "memory policy of 0x%" PRIx64 " to 0x%" PRIx64 ": %s", w->e->addr,
			end_of(w->e), mode);
	else
		SAY(w, "memory policy of task %u: %s", w->e->task, mode);
}

void report_words(char text[REPORT_WORDS_LEN], const struct nb_event *e, const int *node_ids)
{
	const struct words w = {text, e, node_ids};

	switch (e->type) {
	case NB_EVENT_VMA_MAP:
		say_range(&w, "mapped");
		break;
	case NB_EVENT_VMA_UNMAP:
		say_range(&w, "unmapped");
		break;
	case NB_EVENT_SCAN_ARM:
		say_armed(&w);
		break;
	case NB_EVENT_SCAN_SKIP:
		say_skipped(&w);
		break;
	case NB_EVENT_HINT_FAULT:
		say_fault(&w);
		break;
	case NB_EVENT_MOVE_ASKED:
		say_move(&w, "a move was asked for");
		break;
	case NB_EVENT_MOVE_DONE:
		say_move(&w, "moved");
		break;
	case NB_EVENT_MOVE_FAILED:
		say_not_moved(&w);
		break;
	case NB_EVENT_POLICY:
		say_policy(&w);
		break;
	case NB_EVENT_LAZY:
		say_range(&w, "armed for a lazy move");
		break;
	case NB_EVENT_SPLIT:
		SAY(&w, "the huge page at 0x%" PRIx64 " was split", e->addr);
		break;
	default:
		SAY(&w, "%s", nb_event_names[e->type].text);
	}
}

const char *report_seconds(char text[REPORT_TIME_LEN], uint64_t ns)
{
	snprintf(text, REPORT_TIME_LEN, "%" PRIu64 ".%06" PRIu64, ns / 1000000000,
		ns / 1000 % 1000000);
	return text;
}
