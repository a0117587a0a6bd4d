/* SPDX-License-Identifier: MIT */
/* Areas and phases of a job file: words, some of them name=value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expr.h"
#include "jobfile.h"
#include "nearest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define A(NAME)	     (UINT32_C(1) << SIM_ATTR_##NAME)

#define RANDOM                                                                                     \
	(A(AREA) | A(SLICE) | A(WITH) | A(BYTES) | A(TIME) | A(WRITE) | A(SHARED) | A(ACCESS) |    \
		A(COMPUTE))

const struct sim_phase_kind_info sim_phase_kinds[SIM_NR_PHASE_KINDS] = {
	[SIM_PHASE_SWEEP] = {.name = "sweep",
		.attrs = A(AREA) | A(SLICE) | A(WITH) | A(LOOPS) | A(TIME) | A(WRITE) | A(ACCESS) |
			 A(COMPUTE),
		.write_ratio = 1,
		.touches = true},
	[SIM_PHASE_UNIFORM] = {.name = "uniform",
		.attrs = RANDOM,
		.write_ratio = 0.5,
		.touches = true,
		.random = true},
	[SIM_PHASE_ZIPF] = {.name = "zipf",
		.attrs = RANDOM | A(THETA),
		.write_ratio = 0.5,
		.touches = true,
		.random = true},
	[SIM_PHASE_CHASE] = {.name = "chase",
		.attrs = RANDOM,
		.write_ratio = 0,
		.touches = true,
		.random = true},
	[SIM_PHASE_HOTSET] = {.name = "hotset",
		.attrs = RANDOM | A(HOT) | A(SHARE),
		.required = A(HOT) | A(SHARE),
		.write_ratio = 0.5,
		.touches = true,
		.random = true},
	[SIM_PHASE_COMPUTE] = {.name = "compute", .attrs = A(TIME), .required = A(TIME)},
	[SIM_PHASE_SLEEP] = {.name = "sleep", .attrs = A(TIME), .required = A(TIME)},
	[SIM_PHASE_BARRIER] = {.name = "barrier"},
	[SIM_PHASE_POLICY] = {.name = "policy", .attrs = A(POLICY), .required = A(POLICY)},
	[SIM_PHASE_MBIND] = {.name = "mbind",
		.attrs = A(AREA) | A(SLICE) | A(POLICY),
		.required = A(POLICY),
		.may_be_lazy = true},
	[SIM_PHASE_MAP] = {.name = "map", .attrs = A(AREA)},
	[SIM_PHASE_UNMAP] = {.name = "unmap", .attrs = A(AREA)},
	[SIM_PHASE_GOTO] = {.name = "goto", .attrs = A(TARGET) | A(LOOPS), .required = A(TARGET)},
};

const char *const sim_phase_attr_names[SIM_NR_ATTRS] = {
#define X(NAME, name) #name,
	SIM_PHASE_ATTRS(X)
#undef X
};

static const char BLANKS[] = " \t";

/* ---- areas ---- */

static int area_thp(struct sim_job_reader *r, struct sim_job_area *a, const char *value)
{
	if (!strcmp(value, "always"))
		a->thp = SIM_THP_ALWAYS;
	else if (!strcmp(value, "never"))
		a->thp = SIM_THP_NEVER;
	else
		return sim_job_refuse(
			r, a->line, -EINVAL, "thp=%.32s: expected always or never", value);
	return 0;
}

static int unknown_area_word(
	struct sim_job_reader *r, const struct sim_job_area *a, const char *word)
{
	static const char *const known[] = {"size", "thp", "offset", "policy", "shared", "late"};
	struct sim_nearest near = {.name = word};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; i < COUNT(known); i++)
		sim_nearest_try(&near, known[i]);
	return sim_job_refuse(
		r, a->line, -EINVAL, "area has no '%.32s'%s", word, sim_nearest_hint(&near, hint));
}

/* The place for a text that may be said once. */
static int set_once(struct sim_job_reader *r, uint32_t line, const char **place, const char *name,
	const char *value)
{
	if (*place)
		return sim_job_refuse(r, line, -EINVAL, "%s= again", name);
	if (!value[0])
		return sim_job_refuse(r, line, -EINVAL, "%s= without a value", name);
	*place = value;
	return 0;
}

static int area_word(struct sim_job_reader *r, struct sim_job_area *a, char *word)
{
	char *value = strchr(word, '=');

	if (!value) {
		if (!strcmp(word, "shared"))
			a->shared = true;
		else if (!strcmp(word, "late"))
			a->late = true;
		else
			return unknown_area_word(r, a, word);
		return 0;
	}
	*value++ = '\0';
	if (!strcmp(word, "size"))
		return set_once(r, a->line, &a->size, word, value);
	if (!strcmp(word, "offset"))
		return set_once(r, a->line, &a->offset, word, value);
	if (!strcmp(word, "policy"))
		return set_once(r, a->line, &a->policy, word, value);
	if (!strcmp(word, "thp"))
		return area_thp(r, a, value);
	return unknown_area_word(r, a, word);
}

int sim_job_read_area(
	struct sim_job_reader *r, struct sim_job_area *a, const struct sim_ini_entry *e)
{
	char *rest = NULL;
	int err = sim_job_substitute(r, &a->text, e->value, e->line);

	if (err)
		return err;
	a->line = e->line;
	a->name = strtok_r(a->text, BLANKS, &rest);
	if (!a->name || !sim_expr_is_name(a->name))
		return sim_job_refuse(r, e->line, -EINVAL,
			"expected area = NAME size=..., NAME of letters, digits and '_'");
	for (char *w = strtok_r(NULL, BLANKS, &rest); w && !err; w = strtok_r(NULL, BLANKS, &rest))
		err = area_word(r, a, w);
	if (!err && !a->size)
		err = sim_job_refuse(r, e->line, -EINVAL, "area %.32s lacks size=", a->name);
	return err;
}

/* ---- phases ---- */

static int unknown_kind(struct sim_job_reader *r, const struct sim_job_phase *p, const char *word)
{
	struct sim_nearest near = {.name = word};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; i < SIM_NR_PHASE_KINDS; i++)
		sim_nearest_try(&near, sim_phase_kinds[i].name);
	return sim_job_refuse(r, p->line, -EINVAL, "no kind of phase '%.32s'%s", word,
		sim_nearest_hint(&near, hint));
}

static int set_kind(struct sim_job_reader *r, struct sim_job_phase *p, const char *word)
{
	for (p->kind = 0; p->kind < SIM_NR_PHASE_KINDS; p->kind++)
		if (!strcmp(sim_phase_kinds[p->kind].name, word))
			return 0;
	return unknown_kind(r, p, word);
}

/* ["LABEL:"] ["main"] KIND; leaves the rest to strtok_r. */
static int read_head(struct sim_job_reader *r, struct sim_job_phase *p, char **rest)
{
	char *word = strtok_r(p->text, BLANKS, rest);
	const size_t len = word ? strlen(word) : 0;

	if (len > 1 && word[len - 1] == ':') {
		word[len - 1] = '\0';
		p->label = word;
		if (!sim_expr_is_name(word))
			return sim_job_refuse(r, p->line, -EINVAL,
				"label '%.32s': expected letters, digits and '_'", word);
		word = strtok_r(NULL, BLANKS, rest);
	}
	p->main_only = word && !strcmp(word, "main");
	if (p->main_only)
		word = strtok_r(NULL, BLANKS, rest);
	if (!word)
		return sim_job_refuse(
			r, p->line, -EINVAL, "expected phase = [LABEL:] [main] KIND name=value...");
	return set_kind(r, p, word);
}

static int unknown_attr(struct sim_job_reader *r, const struct sim_job_phase *p, const char *word)
{
	const struct sim_phase_kind_info *kind = &sim_phase_kinds[p->kind];
	struct sim_nearest near = {.name = word};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; i < SIM_NR_ATTRS; i++)
		if (kind->attrs >> i & 1)
			sim_nearest_try(&near, sim_phase_attr_names[i]);
	return sim_job_refuse(r, p->line, -EINVAL, "%s has no '%.32s'%s", kind->name, word,
		sim_nearest_hint(&near, hint));
}

static int read_word(struct sim_job_reader *r, struct sim_job_phase *p, const char *word)
{
	const struct sim_phase_kind_info *kind = &sim_phase_kinds[p->kind];

	if (!strcmp(word, "lazy") && kind->may_be_lazy)
		p->lazy = true;
	else if (!strcmp(word, "kernel") && kind->touches && !p->lookup)
		p->kernel = true;
	else if (!strcmp(word, "lookup") && kind->touches && !p->kernel)
		p->lookup = true;
	else
		return unknown_attr(r, p, word);
	return 0;
}

static int read_attr(struct sim_job_reader *r, struct sim_job_phase *p, char *word)
{
	const uint32_t allowed = sim_phase_kinds[p->kind].attrs | A(IF);
	char *value = strchr(word, '=');

	if (!value)
		return read_word(r, p, word);
	*value++ = '\0';
	for (size_t i = 0; i < SIM_NR_ATTRS; i++)
		if ((allowed >> i & 1) && !strcmp(word, sim_phase_attr_names[i]))
			return set_once(r, p->line, &p->value[i], word, value);
	return unknown_attr(r, p, word);
}

static int check_required(struct sim_job_reader *r, const struct sim_job_phase *p)
{
	const struct sim_phase_kind_info *kind = &sim_phase_kinds[p->kind];

	for (size_t i = 0; i < SIM_NR_ATTRS; i++)
		if ((kind->required >> i & 1) && !p->value[i])
			return sim_job_refuse(r, p->line, -EINVAL, "%s lacks %s=", kind->name,
				sim_phase_attr_names[i]);
	return 0;
}

int sim_job_read_phase(
	struct sim_job_reader *r, struct sim_job_phase *p, const struct sim_ini_entry *e)
{
	char *rest = NULL;
	int err = sim_job_substitute(r, &p->text, e->value, e->line);

	if (err)
		return err;
	p->line = e->line;
	err = read_head(r, p, &rest);
	for (char *w = err ? NULL : strtok_r(NULL, BLANKS, &rest); w && !err;
		w = strtok_r(NULL, BLANKS, &rest))
		err = read_attr(r, p, w);
	return err ? err : check_required(r, p);
}
