/* SPDX-License-Identifier: MIT */
/*
 * scan: a task's tick, and the scan window that may come of it (task_tick_numa and task_numa_work
 * of the series).
 *
 * A tick is due when the task has run for its scan period. Then, in this order: the address space
 * must have run on a second node (second_node), the period may start afresh (scan_reset), the time
 * of the next scan must have come, and the task's node must not be rate-limited (scan_ratelimit). A
 * window begins where the last one ended, passes over VMAs that are not worth it, and ends at the
 * first 2 MiB boundary at which scan_size_mb of pages were armed; at the end of the address space
 * it starts over and ends the pass (scan_seq).
 *
 * How max_present of a request keeps to that rule. The series arms [start, start + remaining
 * rounded up to 2 MiB), subtracts the pages it updated and goes on with what remains. It therefore
 * ends at the first 2 MiB boundary at which all that it updated reaches the window: any part of
 * such a piece but the whole has too few pages to reach it. A request up to the end of the VMA that
 * stops at the boundary where `remaining` pages were *present* never passes that point, as updated
 * pages are present; so asking again with what remains gives the same arming and the same end, in
 * one request where memory is sparse or dense, at most one per block where nearly all is armed
 * already.
 */
#ifndef NB_ENGINE_SCAN_H
#define NB_ENGINE_SCAN_H

#include "machine.h"

/*
 * Arm [start, end) of the VMA, at most up to the boundary where max_present pages were present (0 =
 * all), but for small pages on `spare_node` (NB_NO_NODE = none), count it, and make page state
 * ready for the faults to come. Fills *out; out->updated holds what counts as an update.
 */
void nb_arm(struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end,
	uint64_t max_present, int spare_node, struct nb_arm_result *out);

#endif
