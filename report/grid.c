/* SPDX-License-Identifier: MIT */
#include "grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"

/* MMTests' %12.2f: narrower columns would not line up with the tables people compare with. */
enum { MIN_VALUE_WIDTH = 12 };

struct row {
	char *label;
	struct report_cell *cells; /* [nr_columns] */
};

struct report_grid {
	size_t nr_columns, nr_rows, room;
	const char *const *headings;
	struct row *rows;
};

struct report_grid *report_grid_new(size_t nr_columns, const char *const *headings)
{
	struct report_grid *g = calloc(1, sizeof(*g));

	if (g) {
		g->nr_columns = nr_columns;
		g->headings = headings;
	}
	return g;
}

static int make_room(struct report_grid *g)
{
	const size_t room = g->room ? 2 * g->room : 16;
	struct row *rows;

	if (g->nr_rows < g->room)
		return 0;
	rows = reallocarray(g->rows, room, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	g->rows = rows;
	g->room = room;
	return 0;
}

struct report_cell *report_grid_row(struct report_grid *g, const char *label, ...)
{
	struct row row = {.cells = calloc(g->nr_columns + 1, sizeof(*row.cells))};
	va_list args;
	int len;

	va_start(args, label);
	len = vasprintf(&row.label, label, args);
	va_end(args);
	if (len < 0 || !row.cells || make_room(g)) {
		free(len < 0 ? NULL : row.label);
		free(row.cells);
		return NULL;
	}
	g->rows[g->nr_rows++] = row;
	return row.cells;
}

void report_grid_free(struct report_grid *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nr_rows; i++) {
		free(g->rows[i].label);
		free(g->rows[i].cells);
	}
	free(g->rows);
	free(g);
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

static int label_width(const struct report_grid *g)
{
	int width = 0;

	for (size_t i = 0; i < g->nr_rows; i++)
		width = max_int(width, (int)strlen(g->rows[i].label));
	return width;
}

static int value_width(const struct report_grid *g, size_t column)
{
	int width = MIN_VALUE_WIDTH;

	for (size_t i = 0; i < g->nr_rows; i++)
		width = max_int(width, (int)strlen(g->rows[i].cells[column].value));
	return width;
}

static int note_width(const struct report_grid *g, size_t column)
{
	int width = 0;

	for (size_t i = 0; i < g->nr_rows; i++)
		width = max_int(width, (int)strlen(g->rows[i].cells[column].note));
	return width;
}

/* Width of a whole column: the space before it not included. */
static int column_width(const struct report_grid *g, size_t column)
{
	const int note = note_width(g, column);

	return max_int(
		value_width(g, column) + (note ? note + 1 : 0), (int)strlen(g->headings[column]));
}

static void put_spaces(FILE *f, int nr)
{
	if (nr > 0)
		fprintf(f, "%*s", nr, "");
}

static void print_headings(const struct report_grid *g, FILE *f, int labels)
{
	put_spaces(f, labels);
	for (size_t c = 0; c < g->nr_columns; c++) {
		put_spaces(f, 1 + column_width(g, c) - (int)strlen(g->headings[c]));
		report_put_ascii(f, g->headings[c]);
	}
	fputc('\n', f);
}

static void print_row(const struct report_grid *g, FILE *f, const struct row *row, int labels)
{
	int pending = labels -
		      (int)strlen(row->label); /* blanks owed: none are left at the end of a line */

	report_put_ascii(f, row->label);
	for (size_t c = 0; c < g->nr_columns; c++) {
		const struct report_cell *cell = &row->cells[c];
		const int note = note_width(g, c);
		const int value = column_width(g, c) - (note ? note + 1 : 0);

		put_spaces(f, pending + 1 + value - (int)strlen(cell->value));
		report_put_ascii(f, cell->value);
		pending = note ? note + 1 - (int)strlen(cell->note) : 0;
		if (!cell->note[0])
			continue;
		put_spaces(f, pending);
		report_put_ascii(f, cell->note);
		pending = 0;
	}
	fputc('\n', f);
}

int report_grid_print(const struct report_grid *g, FILE *f)
{
	const int labels = label_width(g);

	if (!g->nr_rows)
		return 0;
	print_headings(g, f, labels);
	for (size_t i = 0; i < g->nr_rows; i++)
		print_row(g, f, &g->rows[i], labels);
	return ferror(f) ? -EIO : 0;
}
