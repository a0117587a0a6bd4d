/* SPDX-License-Identifier: MIT */
/*
 * table: the comparison that MMTests prints, for people who read those: one column per system,
 * percent against the first column (positive = better), stars where Welch's t-test over the
 * iterations says 95 %.
 *
 * Blocks: per metric and job the mean (or the full set of rows: Min, mean, Stddev, CoeffVar, Max,
 * best-50/95/99); the share of the possible gain where the set holds runs of the best placement;
 * Duration; Ops (counters). Duration and Ops are totals over all jobs and iterations of a system,
 * as MMTests' are.
 */
#ifndef NB_REPORT_TABLE_H
#define NB_REPORT_TABLE_H

#include <stdbool.h>
#include <stdio.h>
#include "run.h"

struct report_table_options {
	bool full_rows; /* Min, Stddev, CoeffVar, Max, BAmean-50/95/99 too */
};

/* ASCII; other bytes of names become '?'. `options` may be NULL. 0 or -ENOMEM, -EIO (f's error
 * indicator). */
int report_table(FILE *f, const struct report_set *set, const struct report_table_options *options);

#endif
