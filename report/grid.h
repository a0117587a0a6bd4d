/* SPDX-License-Identifier: MIT */
/*
 * grid: right-aligned text columns that are as wide as what is in them. Internal to report/.
 */
#ifndef NB_REPORT_GRID_H
#define NB_REPORT_GRID_H

#include <stddef.h>
#include <stdio.h>

enum { GRID_CELL = 48 };

/* What stands in one cell: a value, and perhaps a remark such as "(  -2.31%)" beside it. */
struct report_cell {
	char value[GRID_CELL];
	char note[GRID_CELL];
};

struct report_grid;

/* `headings` are borrowed. NULL on no memory. */
struct report_grid *report_grid_new(size_t nr_columns, const char *const *headings);
/* The cells of a new row, [nr_columns], empty; valid until the next row. NULL on no memory. Label:
 * printf style. */
__attribute__((format(printf, 2, 3))) struct report_cell *report_grid_row(
	struct report_grid *g, const char *label, ...);
/* Headings and rows, or nothing when there are no rows. -EIO on a write error. */
int report_grid_print(const struct report_grid *g, FILE *f);
void report_grid_free(struct report_grid *g);

#endif
