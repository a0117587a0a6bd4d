/* SPDX-License-Identifier: MIT */
/*
 * The cost formulas against every published table: costs must come out as printed. Tables of 2012
 * print whole numbers with the rest cut off, later ones two digits, rounded.
 */
#include "test_world.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "counters.h"

enum {
	MAX_CELLS = 4096,
	MAX_COLUMNS = 8,
	MAX_TEXT = 64,
};

/* One number of a table: a benchmark, a system (a column, or a field), a counter. */
struct cell {
	char benchmark[MAX_TEXT], system[MAX_TEXT], counter[MAX_TEXT], value[MAX_TEXT];
};

static struct cell cells[MAX_CELLS];
static size_t nr_cells;

static void put(char *to, const char *from)
{
	snprintf(to, MAX_TEXT, "%.63s", from);
}

static void add_cell(
	const char *benchmark, const char *system, const char *counter, const char *value)
{
	struct cell *c = &cells[nr_cells];

	assert_true(nr_cells < MAX_CELLS);
	put(c->benchmark, benchmark);
	put(c->system, system);
	put(c->counter, counter);
	put(c->value, value);
	nr_cells++;
}

static int split(char *line, char *fields[MAX_COLUMNS])
{
	int nr = 0;

	line[strcspn(line, "\r\n")] = '\0';
	for (char *rest = line; rest != NULL && nr < MAX_COLUMNS; nr++)
		fields[nr] = strsep(&rest, ",");
	return nr;
}

/* "benchmark,system,counter,value", or "benchmark,metric,<one column per system>". */
static void add_row(char *const header[], char *const fields[], int nr)
{
	if (nr == 4 && strcmp(header[2], "counter") == 0) {
		add_cell(fields[0], fields[1], fields[2], fields[3]);
		return;
	}
	for (int i = 2; i < nr && strcmp(header[1], "metric") == 0; i++)
		add_cell(fields[0], header[i], fields[1], fields[i]);
}

static void read_table(FILE *f)
{
	char line[4096], first[4096] = "", *header[MAX_COLUMNS], *fields[MAX_COLUMNS];
	int columns = 0;

	while (fgets(line, sizeof(line), f) != NULL) {
		if (line[0] == '#')
			continue;
		if (columns == 0) {
			memcpy(first, line, sizeof(first));
			columns = split(first, header);
		} else if (split(line, fields) == columns && columns > 2) {
			add_row(header, fields, columns);
		}
	}
}

static const char *tables(void)
{
	static char path[4096];
	const char *shared = getenv("NUMABAL_SHARED");

	snprintf(path, sizeof(path), "%s/tables", shared != NULL ? shared : "../shared");
	return path;
}

static void read_tables(DIR *dir)
{
	nr_cells = 0;
	for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
		char path[8192];
		FILE *f;

		if (strstr(d->d_name, ".csv") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", tables(), d->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		read_table(f);
		fclose(f);
	}
	closedir(dir);
}

static uint64_t value_of(const struct cell *like, const char *counter)
{
	for (size_t i = 0; i < nr_cells; i++)
		if (strcmp(cells[i].counter, counter) == 0 &&
			strcmp(cells[i].benchmark, like->benchmark) == 0 &&
			strcmp(cells[i].system, like->system) == 0)
			return strtoull(cells[i].value, NULL, 10);
	fail_msg("%s %s has no %s", like->benchmark, like->system, counter);
	return 0;
}

static void as_printed(const struct cell *c, double cost)
{
	const char *point = strchr(c->value, '.');
	char text[64];

	if (point == NULL)
		snprintf(text, sizeof(text), "%.0f", floor(cost));
	else
		snprintf(text, sizeof(text), "%.*f", (int)strlen(point + 1), cost);
	if (strcmp(text, c->value) != 0)
		fail_msg("%s %s %s: printed %s, computed %s", c->benchmark, c->system, c->counter,
			c->value, text);
}

static bool load(void)
{
	DIR *dir = opendir(tables());

	if (dir == NULL)
		return false;
	read_tables(dir);
	return true;
}

static void autonuma_cost_as_printed(void **state)
{
	int positive = 0;

	(void)state;
	if (!load())
		skip();
	for (size_t i = 0; i < nr_cells; i++) {
		const struct cell *c = &cells[i];

		if (strcmp(c->counter, "AutoNUMA cost") != 0)
			continue;
		as_printed(c, nb_cost_autonuma_mmtests(value_of(c, "NUMA PTE updates"),
				      value_of(c, "NUMA hint faults"),
				      value_of(c, "NUMA pages migrated")));
		positive += strcmp(c->value, "0") != 0;
	}
	assert_int_equal(positive, 21);
}

static void compaction_cost_as_printed(void **state)
{
	int positive = 0;

	(void)state;
	if (!load())
		skip();
	for (size_t i = 0; i < nr_cells; i++) {
		const struct cell *c = &cells[i];

		if (strcmp(c->counter, "Compaction cost") != 0)
			continue;
		as_printed(c, nb_cost_compaction(value_of(c, "Page migrate success")));
		positive += strcmp(c->value, "0") != 0;
	}
	assert_int_equal(positive, 13);
}

/*
 * The model with the copy, in words of 8 bytes: struct page 56 bytes = 7, isolation 19, a page 512;
 * what is far costs 1.2. A page copied and isolated on both sides: (7 + 512 + 19) x 2.2.
 */
static void the_full_model_adds_the_copy(void **state)
{
	const double copy = (7 + 512 + 19) * 2.2;

	(void)state;
	assert_true(fabs(nb_cost_autonuma_full(0, 0, 1000000) - (19 + copy)) < 1e-9);
	assert_true(
		fabs(nb_cost_autonuma_full(5, 7, 0) - nb_cost_autonuma_mmtests(5, 7, 0)) < 1e-12);
}

static void counters_have_names_in_order(void **state)
{
	struct nb_counters c = {0};

	(void)state;
	c.numa_pte_updates = 1;
	assert_int_equal(((const uint64_t *)&c)[0], 1);
	assert_string_equal(nb_counter_table[0].name, "numa_pte_updates");
	assert_string_equal(nb_counter_table[NB_NR_COUNTERS - 1].name, "numa_page_state_missed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(autonuma_cost_as_printed),
		cmocka_unit_test(compaction_cost_as_printed),
		cmocka_unit_test(the_full_model_adds_the_copy),
		cmocka_unit_test(counters_have_names_in_order),
	};

	return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
