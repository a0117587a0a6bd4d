/* SPDX-License-Identifier: MIT */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static size_t min3(size_t a, size_t b, size_t c)
{
	const size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Row by row; `row` holds the distances of a's first i bytes to each prefix of b. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[LONGEST + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			const size_t above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_len];
}

void sim_nearest_try(struct sim_nearest *n, const char *candidate)
{
	const size_t name_len = strlen(n->name), len = strlen(candidate);
	size_t distance;

	if (!name_len || name_len >= LONGEST || len >= LONGEST)
		return;
	distance = edit_distance(n->name, name_len, candidate, len);
	if (distance > 1 + len / 4 || distance >= len)
		return;
	if (n->best && distance >= n->distance)
		return;
	n->best = candidate;
	n->distance = distance;
}

const char *sim_nearest_hint(const struct sim_nearest *n, char *hint)
{
	hint[0] = '\0';
	if (n->best)
		snprintf(hint, SIM_HINT_LEN, "; did you mean '%s'?", n->best);
	return hint;
}
