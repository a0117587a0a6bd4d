/* SPDX-License-Identifier: MIT */
/*
 * csv: runs as comma-separated values (RFC 4180, but lines end with LF), with a header; columns are
 * documented in docs/formats.md. NaN is an empty cell; numbers read back as they were.
 */
#ifndef NB_REPORT_CSV_H
#define NB_REPORT_CSV_H

#include <stdio.h>
#include "run.h"

/* One row per run; a column pages_nodeN for each node id that any run has. 0, -ENOMEM or -EIO. */
int report_csv(FILE *f, const struct report_set *set);

/* One row per sample of each run. */
int report_csv_series(FILE *f, const struct report_set *set);

#endif
