/* SPDX-License-Identifier: MIT */
/* html_data: the series that the page's script draws. Internal to report/. */
#ifndef NB_REPORT_HTML_DATA_H
#define NB_REPORT_HTML_DATA_H

#include <stdio.h>
#include "run.h"

/*
 * JSON that may stand inside a script element: no "<" in it, whatever the names hold.
 * {"jobs": [name], "systems": [name], "runs": [{"job": index, "system": index, "nodes": [id], "t":
 * [s], "local": [], "faults": [], "period": [], "moved": [], "pages": [[per sample] per node]}]},
 * the first run of each job and system. 0, -ENOMEM or -EIO.
 */
int report_html_data(FILE *f, const struct report_set *set, const struct report_axes *axes);

#endif
