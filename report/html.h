/* SPDX-License-Identifier: MIT */
/*
 * html: runs as one self-contained HTML5 page that works offline: summary table, bars, and per job
 * plots over time (pages per node, local share, hint faults, scan period, migrations), drawn by a
 * small script from JSON in the page.
 *
 * The series shown are those of the first iteration of each job and system; everything else is over
 * all iterations. Names may be any bytes; nothing in them is ever markup or script.
 */
#ifndef NB_REPORT_HTML_H
#define NB_REPORT_HTML_H

#include <stdio.h>
#include "run.h"

/* 0, -ENOMEM or -EIO. */
int report_html(FILE *f, const struct report_set *set);

#endif
