/* SPDX-License-Identifier: MIT */
/* "job:a=1-3,b=x" as the sources it stands for. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/why.h"
#include "jobfile.h"

enum { MAX_RANGES = SIM_JOB_MAX_VARS };

/* Literal text, then a number that counts from first to last. */
struct range {
	const char *text;
	size_t len;
	int64_t first, last, now;
};

struct expansion {
	const char *source;
	size_t nr_ranges;
	struct range ranges[MAX_RANGES];
	const char *tail; /* literal text after the last range */
	char *why;
	size_t why_len;
};

/* The length of NAME in "NAME:var=..."; names may have colons, so the first one that a variable
 * follows counts. */
size_t sim_job_source_name(const char *source)
{
	for (const char *c = source; *c; c++) {
		size_t n = 1;

		if (*c != ':')
			continue;
		while (isalnum((unsigned char)c[n]) || c[n] == '_')
			n++;
		if (n > 1 && c[n] == '=')
			return (size_t)(c - source);
	}
	return strlen(source);
}

static int parse_bound(const char *text, size_t len, int64_t *out)
{
	char copy[24];

	if (!len || len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return nb_parse_i64(copy, out);
}

/* True when text[0 .. len) is INT-INT. */
static bool parse_range(struct range *r, const char *text, size_t len)
{
	const char *dash = memchr(text, '-', len);

	if (!dash || dash == text)
		return false;
	return !parse_bound(text, (size_t)(dash - text), &r->first) &&
	       !parse_bound(dash + 1, len - (size_t)(dash + 1 - text), &r->last) && r->first >= 0 &&
	       r->last >= 0;
}

static int add_range(struct expansion *x, const char *value, size_t len)
{
	struct range *r = &x->ranges[x->nr_ranges];

	if (x->nr_ranges >= MAX_RANGES)
		return nb_why(x->why, x->why_len, -E2BIG, "%.64s: more than %d variables",
			x->source, MAX_RANGES);
	if (!parse_range(r, value, len))
		return 0;
	if (r->last < r->first)
		return nb_why(x->why, x->why_len, -EINVAL, "%.64s: range %.*s runs backwards",
			x->source, (int)len, value);
	r->text = x->tail;
	r->len = (size_t)(value - x->tail);
	r->now = r->first;
	x->tail = value + len;
	x->nr_ranges++;
	return 0;
}

static int find_ranges(struct expansion *x)
{
	const char *at = x->source + sim_job_source_name(x->source);
	int err = 0;

	while (*at && !err) {
		const size_t len = strcspn(at + 1, ",");
		const char *equals = memchr(at + 1, '=', len);

		if (equals)
			err = add_range(x, equals + 1, len - (size_t)(equals - at));
		at += 1 + len;
	}
	return err;
}

static int count(struct expansion *x, size_t *n)
{
	*n = 1;
	for (size_t i = 0; i < x->nr_ranges; i++) {
		const uint64_t values = (uint64_t)(x->ranges[i].last - x->ranges[i].first) + 1;

		if (values > SIM_JOB_MAX_EXPANDED || *n * values > SIM_JOB_MAX_EXPANDED)
			return nb_why(x->why, x->why_len, -E2BIG,
				"%.64s: more than %d combinations", x->source,
				SIM_JOB_MAX_EXPANDED);
		*n *= values;
	}
	return 0;
}

static void next(struct expansion *x)
{
	for (size_t i = x->nr_ranges; i--;) {
		if (x->ranges[i].now++ < x->ranges[i].last)
			return;
		x->ranges[i].now = x->ranges[i].first;
	}
}

static char *write_one(const struct expansion *x)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (size_t i = 0; i < x->nr_ranges; i++)
		fprintf(f, "%.*s%lld", (int)x->ranges[i].len, x->ranges[i].text,
			(long long)x->ranges[i].now);
	fputs(x->tail, f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int write_all(struct expansion *x, char **list, size_t n)
{
	for (size_t i = 0; i < n; i++, next(x)) {
		list[i] = write_one(x);
		if (!list[i])
			return nb_why(x->why, x->why_len, -ENOMEM, "out of memory");
	}
	return 0;
}

int sim_job_expand(const char *source, char ***list, size_t *n, char *why, size_t why_len)
{
	struct expansion x = {.source = source, .tail = source, .why = why, .why_len = why_len};
	int err = find_ranges(&x);

	if (!err)
		err = count(&x, n);
	if (err)
		return err;
	*list = calloc(*n, sizeof(**list));
	if (!*list)
		return nb_why(why, why_len, -ENOMEM, "out of memory");
	err = write_all(&x, *list, *n);
	if (err)
		sim_job_expand_free(*list, *n);
	return err;
}

void sim_job_expand_free(char **list, size_t n)
{
	for (size_t i = 0; list && i < n; i++)
		free(list[i]);
	free(list);
}
