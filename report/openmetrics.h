/* SPDX-License-Identifier: MIT */
/*
 * openmetrics: runs as OpenMetrics 1.0 text for scrapers: every counter as numabal_NAME_total, and
 * gauges for times, local share and pages per node, each with the labels job, system, machine and
 * iteration. Ends with "# EOF".
 */
#ifndef NB_REPORT_OPENMETRICS_H
#define NB_REPORT_OPENMETRICS_H

#include <stdio.h>
#include "run.h"

/* 0 or -EIO. */
int report_openmetrics(FILE *f, const struct report_set *set);

#endif
