/* SPDX-License-Identifier: MIT */
/*
 * scanperiod: how long a task's scan period may be and how it adapts (in a kernel: task_scan_min,
 * task_scan_start, task_scan_max, update_task_scan_period).
 *
 * The tunables are for one window of memory: more memory, shorter periods, but never more than
 * max_scan_window_mb_s. Periods are ms of run time.
 */
#ifndef NB_ENGINE_SCANPERIOD_H
#define NB_ENGINE_SCANPERIOD_H

#include "machine.h"

uint32_t nb_scan_min_ms(const struct nb_engine *e, const struct nb_task *t);
/* The first one, after the scan delay. */
uint32_t nb_scan_start_ms(const struct nb_engine *e, const struct nb_task *t);
uint32_t nb_scan_max_ms(const struct nb_engine *e, const struct nb_task *t);

/* What the task uses is likely far away: the shortest period, and the next scan now. */
void nb_scan_afresh(struct nb_engine *e, struct nb_task *t, uint64_t now_ns);

/*
 * With scan_adapt: after a scan sequence with so many pages in shared and private faults, and
 * t->locality: longer where nothing was found or moves failed, longer where pages are where they
 * should be, shorter where they are not.
 */
void nb_scan_adapt(
	struct nb_engine *e, struct nb_task *t, uint64_t shared, uint64_t priv, uint64_t now_ns);

#endif
