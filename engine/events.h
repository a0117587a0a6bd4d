/* SPDX-License-Identifier: MIT */
/*
 * events: what the engine says about each decision, for recordings, `explain` and traces. One
 * fixed-size record per event, handed to machine->trace at the time it happens, in order. Numbers
 * only: a reader names them by the tables below.
 */
#ifndef NB_ENGINE_EVENTS_H
#define NB_ENGINE_EVENTS_H

#include <stdint.h>

/* X(NAME, name, meaning; then what node_from, node_to, pages, arg mean) */
#define NB_EVENTS(X)                                                                               \
	X(MM_NEW, mm_new, "an address space came")                                                 \
	X(MM_GONE, mm_gone, "an address space went")                                               \
	X(TASK_NEW, task_new, "a task came")                                                       \
	X(TASK_GONE, task_gone, "a task went")                                                     \
	X(VMA_MAP, vma_map, "a VMA was mapped: addr, pages")                                       \
	X(VMA_UNMAP, vma_unmap, "a range was unmapped: addr, pages")                               \
	X(SCAN_START, scan_start, "a scan window starts: addr = offset, arg = scan period in ms")  \
	X(SCAN_ARM, scan_arm, "a range was armed: addr, pages = armed, arg = present")             \
	X(SCAN_SKIP, scan_skip, "a VMA, or the whole scan, was skipped: reason = enum nb_skip")    \
	X(SCAN_END, scan_end,                                                                      \
		"a scan window ended: addr = next offset, pages = armed, arg = scan_seq")          \
	X(HINT_FAULT, hint_fault,                                                                  \
		"node_from = page's node, node_to = toucher's; reason = enum nb_why")              \
	X(MOVE_ASKED, move_asked, "a move was asked for: node_from, node_to, pages")               \
	X(MOVE_DONE, move_done, "pages moved: node_from, node_to, pages")                          \
	X(MOVE_FAILED, move_failed, "pages did not move: reason = enum nb_move_status")            \
	X(PERIOD, period, "a task's scan period changed: arg = new period in ms")                  \
	X(SPLIT, split, "a huge page was split")                                                   \
	X(POLICY, policy, "a policy was set: arg = enum nb_policy_mode")                           \
	X(LAZY, lazy, "a range was armed for a lazy move: addr, pages = armed")                    \
	X(WATERMARK, watermark, "a node crossed its watermark: node_to, arg = 1 low, 0 fine")      \
	X(PREFERRED, preferred, "a task prefers another node: node_from, node_to")                 \
	X(TASK_MOVE, task_move, "a task was moved: node_from, node_to")                            \
	X(TASK_SWAP, task_swap,                                                                    \
		"a task changed places with another one: node_from, node_to, arg = the other "     \
		"task")                                                                            \
	X(TASK_RUN, task_run,                                                                      \
		"a task ran since this was last said of it: arg = us, node_to = where it runs")    \
	X(TASK_WAIT, task_wait, "and it waited for a CPU meanwhile: arg = us")                     \
	X(PRESENT, present, "memory was found to hold data: addr, pages, node_to = where it is")

enum nb_event_type {
#define X(NAME, name, text) NB_EVENT_##NAME,
	NB_EVENTS(X)
#undef X
		NB_NR_EVENTS
};

/* Why a VMA (or a whole scan) was skipped; the first six are sched_skip_vma_numa's. X(NAME, name,
 * text) */
#define NB_SKIPS(X)                                                                                \
	X(UNSUITABLE, unsuitable, "not migratable, or without memory worth it")                    \
	X(SHARED_RO, shared_ro, "read-only file mapping, as libraries are")                        \
	X(INACCESSIBLE, inaccessible, "no rights at all: PROT_NONE")                               \
	X(SCAN_DELAY, scan_delay, "younger than scan_delay_ms")                                    \
	X(PID_INACTIVE, pid_inactive, "this task did not touch it lately")                         \
	X(IGNORE_PID, ignore_pid, "inactive, but a scan of it was begun")                          \
	X(SEQ_COMPLETED, seq_completed, "already done in this scan sequence")                      \
	X(SMALL, small, "smaller than a huge page")                                                \
	X(RATELIMITED, ratelimited, "the whole scan: the task's node is rate-limited")             \
	X(FIRST_NODE, first_node, "the whole scan: only one node was used so far")                 \
	X(DISABLED, disabled, "the whole scan: balancing is off")                                  \
	X(POLICY, policy, "its memory policy forbids moving")

enum nb_skip {
#define X(NAME, name, text) NB_SKIP_##NAME,
	NB_SKIPS(X)
#undef X
		NB_NR_SKIPS
};

/* The verdict on a hint fault. X(NAME, name, text) */
#define NB_WHYS(X)                                                                                 \
	X(MOVE, move, "misplaced: a move was asked for")                                           \
	X(IN_PLACE, in_place, "the page is where it should be")                                    \
	X(NO_POLICY, no_policy, "no policy asks for moves on faults")                              \
	X(FILTERED, filtered, "two-stage filter: the last fault came from another node")           \
	X(RATELIMITED, ratelimited, "the migration window of the target is used up")               \
	X(TARGET_FULL, target_full, "the target is at its watermark")                              \
	X(SHARED, shared, "several processes map the page")                                        \
	X(BOUND, bound, "inside the nodes its policy allows")                                      \
	X(SPURIOUS, spurious, "the entry was already repaired")                                    \
	X(DISABLED, disabled, "balancing is off or faults move nothing in this system")            \
	X(SPLIT, split, "the huge page is to be split first")                                      \
	X(NO_MEMORY_NODE, no_memory_node,                                                          \
		"the wanted node has no memory, and no nearest one is better")                     \
	X(REFUSED, refused, "the machine did not take the move, or the split")

enum nb_why {
#define X(NAME, name, text) NB_WHY_##NAME,
	NB_WHYS(X)
#undef X
		NB_NR_WHYS
};

/* What became of a page that was to move. X(NAME, name, text) */
#define NB_MOVE_STATUSES(X)                                                                        \
	X(OK, ok, "moved")                                                                         \
	X(BUSY, busy, "could not be isolated (EBUSY)")                                             \
	X(NO_MEMORY, no_memory, "no page on the target (ENOMEM)")                                  \
	X(GONE, gone, "no longer there (ENOENT, EFAULT)")                                          \
	X(CHANGED, changed, "its entry changed during the copy")                                   \
	X(REFUSED, refused, "the machine refuses (EPERM, EACCES, ENODEV)")                         \
	X(NOT_ON_LRU, not_on_lru, "on no list yet that it could be isolated from")

enum nb_move_status {
#define X(NAME, name, text) NB_MOVE_##NAME,
	NB_MOVE_STATUSES(X)
#undef X
		NB_NR_MOVE_STATUSES
};

struct nb_event {
	uint64_t time_ns;
	uint64_t addr;
	uint32_t pages;
	uint32_t mm;   /* the machine's id of the address space; 0 = none */
	uint32_t task; /* the machine's id of the task; 0 = none */
	uint32_t arg;
	int16_t node_from; /* node index, -1 = none */
	int16_t node_to;
	uint8_t type;	/* enum nb_event_type */
	uint8_t reason; /* as the type says */
	uint8_t huge;	/* a huge page is meant */
	uint8_t write;
};
_Static_assert(sizeof(struct nb_event) == 40, "recordings hold this struct as it is");

struct nb_name {
	const char *name;
	const char *text;
};
extern const struct nb_name nb_event_names[NB_NR_EVENTS];
extern const struct nb_name nb_skip_names[NB_NR_SKIPS];
extern const struct nb_name nb_why_names[NB_NR_WHYS];
extern const struct nb_name nb_move_status_names[NB_NR_MOVE_STATUSES];

#endif
