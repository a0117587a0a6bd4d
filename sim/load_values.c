/* SPDX-License-Identifier: MIT */
/* Values of a job on a machine: variables, numbers, policies, CPU sets. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load_parts.h"

/* What a quotient that should be whole may lack by rounding. */
static const double ROUNDING = 1e-9;

/* ---- variables ---- */

static void find_nodes(struct sim_resolver *x)
{
	const struct nb_topology *t = &x->m->topo;

	for (unsigned int n = 0; n < t->nr_nodes; n++)
		if (t->nodes[n].nr_cpus)
			x->node[x->nr_cpu_nodes++] = (uint16_t)n;
	x->nr_nodes = x->nr_cpu_nodes;
	for (unsigned int n = 0; n < t->nr_nodes; n++)
		if (!t->nodes[n].nr_cpus && t->nodes[n].mem_bytes &&
			!(t->nodes[n].flags & NB_NODE_DISALLOWED))
			x->node[x->nr_nodes++] = (uint16_t)n;
}

static double memory_of(const struct nb_topology *t)
{
	double bytes = 0;

	for (unsigned int n = 0; n < t->nr_nodes; n++)
		if (!(t->nodes[n].flags & NB_NODE_DISALLOWED))
			bytes += (double)t->nodes[n].mem_bytes;
	return bytes;
}

static void set_builtins(struct sim_resolver *x)
{
	const struct nb_topology *t = &x->m->topo;

	for (size_t i = 0; i < SIM_NR_BUILTINS; i++)
		x->vars[i] = (struct sim_var){.name = sim_job_builtin(i), .value = NAN};
	x->vars[SIM_VAR_CPUS].value = t->nr_cpus;
	x->vars[SIM_VAR_NODES].value = nb_topology_memory_nodes(t);
	x->vars[SIM_VAR_CPUNODES].value = x->nr_cpu_nodes;
	x->vars[SIM_VAR_MEM].value = memory_of(t);
	x->vars[SIM_VAR_NODE_CPUS].value = (double)t->nr_cpus / x->nr_cpu_nodes;
}

static bool names_variable(const struct sim_resolver *x, const char *text, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(x->vars[i].name, text))
			return true;
	return false;
}

/* A value that is a mere name, and not that of a variable, is a word, for "$NAME" to insert. */
static void add_variable(struct sim_resolver *x, const struct sim_job_var *v, uint32_t i)
{
	const char *text = v->value.text;
	const bool word = sim_expr_is_name(text) && !names_variable(x, text, SIM_NR_BUILTINS + i);

	x->vars[SIM_NR_BUILTINS + i] =
		(struct sim_var){.name = v->name, .value = NAN, .word = word ? text : NULL};
}

int sim_resolver_init(struct sim_resolver *x, struct sim_load *load, const struct sim_job *job,
	const struct sim_model *m, char *why, size_t why_len)
{
	*x = (struct sim_resolver){.job = job, .m = m, .load = load};
	x->r = (struct sim_job_reader){
		.job = (struct sim_job *)job, .why = why, .why_len = why_len};
	find_nodes(x);
	if (!x->nr_cpu_nodes)
		return sim_job_refuse(&x->r, 0, -EINVAL, "machine %s has no CPUs", m->name);
	set_builtins(x);
	for (uint32_t i = 0; i < job->nr_vars; i++)
		add_variable(x, &job->vars[i], i);
	return sim_resolve_vars(x, SIM_STAGE_JOB);
}

/* A short file can ask for much: 100,000 threads, each with 1,000 phases. */
int sim_resolve_items(struct sim_resolver *x, uint32_t more, uint32_t line)
{
	x->items += more;
	if (x->items <= SIM_JOB_MAX_ITEMS)
		return 0;
	return sim_job_refuse(&x->r, line, -E2BIG,
		"more than %d phases of threads and areas of processes", SIM_JOB_MAX_ITEMS);
}

static int spend(struct sim_resolver *x, const char *text, uint32_t line)
{
	x->work += strlen(text) + 1;
	if (x->work <= SIM_JOB_MAX_WORK)
		return 0;
	return sim_job_refuse(
		&x->r, line, -E2BIG, "too much to evaluate: threads times expressions");
}

static int resolve_var(struct sim_resolver *x, uint32_t i, enum sim_stage stage)
{
	struct sim_var *v = &x->vars[SIM_NR_BUILTINS + i];
	const struct sim_job_text *value = &x->job->vars[i].value;
	char problem[SIM_TEXT];
	int err = spend(x, value->text, value->line);

	if (err)
		return err;
	err = sim_expr_eval(
		&v->value, value->text, x->vars, SIM_NR_BUILTINS + i, problem, sizeof(problem));
	if (err == -EAGAIN && stage < SIM_STAGE_THREAD) {
		v->value = NAN;
		x->stage[i] = (uint8_t)(stage + 1);
		return 0;
	}
	if (err)
		return sim_job_refuse(&x->r, value->line, err, "variable %s: %s", v->name, problem);
	return 0;
}

int sim_resolve_vars(struct sim_resolver *x, enum sim_stage stage)
{
	int err = 0;

	for (uint32_t i = 0; i < x->job->nr_vars && !err; i++)
		if (!x->vars[SIM_NR_BUILTINS + i].word && x->stage[i] >= stage)
			err = resolve_var(x, i, stage);
	return err;
}

/* ---- numbers ---- */

static int eval(struct sim_resolver *x, struct sim_text t, const char *text, double *out)
{
	char problem[SIM_TEXT];
	int err = spend(x, text, t.line);

	if (err)
		return err;
	err = sim_expr_eval(
		out, text, x->vars, SIM_NR_BUILTINS + x->job->nr_vars, problem, sizeof(problem));
	if (err)
		return sim_job_refuse(
			&x->r, t.line, err == -EAGAIN ? -EINVAL : err, "%s: %s", t.name, problem);
	return 0;
}

int sim_resolve_number(struct sim_resolver *x, struct sim_text t, double min, double max,
	const char *unit, double *out)
{
	const int err = eval(x, t, t.text, out);

	if (err)
		return err;
	if (*out < min || *out > max)
		return sim_job_refuse(&x->r, t.line, -ERANGE,
			"%s = %.64s is %g, expected %g to %g%s%s", t.name, t.text, *out, min, max,
			unit[0] ? " " : "", unit);
	return 0;
}

int sim_resolve_count(
	struct sim_resolver *x, struct sim_text t, uint32_t min, uint32_t max, uint32_t *out)
{
	double value;
	int err = eval(x, t, t.text, &value);

	if (err)
		return err;
	value = floor(value + ROUNDING);
	if (value < min || value > max)
		return sim_job_refuse(&x->r, t.line, -ERANGE, "%s = %.64s is %g, expected %u to %u",
			t.name, t.text, value, min, max);
	*out = (uint32_t)value;
	return 0;
}

/* ---- lists of nodes ---- */

/* Called with each number of a list. */
typedef void (*on_number)(void *ctx, uint32_t number);

static int list_number(
	struct sim_resolver *x, struct sim_text t, const char *text, uint32_t limit, uint32_t *out)
{
	double value;
	int err = eval(x, t, text, &value);

	if (err)
		return err;
	value = floor(value + ROUNDING);
	if (value < 0 || value >= limit)
		return sim_job_refuse(&x->r, t.line, -ERANGE,
			"%s: node %.48s is %g, expected 0 to %u on this machine", t.name, text,
			value, limit - 1);
	*out = (uint32_t)value;
	return 0;
}

/* Where the range's two ends part: at "..", or at the '-' of two plain numbers; NULL where there is
 * one end. */
static char *range_middle(char *text, size_t *len)
{
	char *dots = strstr(text, "..");
	const size_t digits = strspn(text, "0123456789");
	const char *rest = text + digits + 1;

	if (dots) {
		*len = 2;
		return dots;
	}
	*len = 1;
	if (!digits || text[digits] != '-' || !*rest || rest[strspn(rest, "0123456789")])
		return NULL;
	return text + digits;
}

static int list_item(struct sim_resolver *x, struct sim_text t, char *item, uint32_t limit,
	on_number visit, void *ctx)
{
	size_t len;
	char *middle = range_middle(item, &len);
	uint32_t first, last;
	int err;

	if (middle)
		*middle = '\0';
	err = list_number(x, t, item, limit, &first);
	last = first;
	if (!err && middle)
		err = list_number(x, t, middle + len, limit, &last);
	if (err)
		return err;
	if (last < first)
		return sim_job_refuse(&x->r, t.line, -EINVAL, "%s: range %u to %u runs backwards",
			t.name, first, last);
	for (uint32_t i = first; i <= last; i++)
		visit(ctx, i);
	return 0;
}

/* "E", "E..E", "1-3", several separated by commas, or "all". */
static int each_in_list(struct sim_resolver *x, struct sim_text t, const char *list, uint32_t limit,
	on_number visit, void *ctx)
{
	char *copy, *next;
	int err = 0;

	if (!strcmp(list, "all")) {
		for (uint32_t i = 0; i < limit; i++)
			visit(ctx, i);
		return 0;
	}
	copy = strdup(list);
	if (!copy)
		return sim_job_refuse(&x->r, t.line, -ENOMEM, "out of memory");
	for (char *at = copy; at && !err; at = next) {
		next = sim_cut_at_comma(at);
		err = list_item(x, t, at, limit, visit, ctx);
	}
	free(copy);
	return err;
}

/* What follows "prefix:", or NULL. */
static const char *after(const char *text, const char *prefix)
{
	const size_t n = strlen(prefix);

	return !strncmp(text, prefix, n) && text[n] == ':' ? text + n + 1 : NULL;
}

/* ---- policies ---- */

struct policy_form {
	const char *name;
	uint8_t mode;
	bool nodes, one;
};

static const struct policy_form policy_forms[] = {
	{.name = "default", .mode = NB_POLICY_DEFAULT},
	{.name = "local", .mode = NB_POLICY_LOCAL},
	{.name = "noop", .mode = NB_POLICY_NOOP},
	{.name = "preferred", .mode = NB_POLICY_PREFERRED, .nodes = true, .one = true},
	{.name = "bind", .mode = NB_POLICY_BIND, .nodes = true},
	{.name = "interleave", .mode = NB_POLICY_INTERLEAVE, .nodes = true},
};

struct policy_nodes {
	const struct sim_resolver *x;
	struct nb_policy *policy;
};

/* A node with CPUs and no memory stands for the nearest memory. */
static void add_policy_node(void *ctx, uint32_t number)
{
	struct policy_nodes *p = ctx;
	const struct nb_topology *t = &p->x->m->topo;
	const int node = nb_topology_nearest_memory(t, p->x->node[number]);

	if (node != NB_NO_NODE)
		p->policy->nodes[node / 64] |= UINT64_C(1) << (node % 64);
}

static unsigned int count_nodes(const struct nb_policy *p)
{
	int nr = 0;

	for (size_t i = 0; i < NB_MAX_NODES / 64; i++)
		nr += __builtin_popcountll(p->nodes[i]);
	return (unsigned int)nr;
}

static int policy_nodes(struct sim_resolver *x, struct sim_text t, const struct policy_form *form,
	const char *list, struct nb_policy *out)
{
	struct policy_nodes p = {.x = x, .policy = out};
	const int err = each_in_list(x, t, list, x->nr_nodes, add_policy_node, &p);

	if (err)
		return err;
	if (form->one && count_nodes(out) != 1)
		return sim_job_refuse(
			&x->r, t.line, -EINVAL, "%s = %.48s: expected one node", t.name, t.text);
	return 0;
}

int sim_resolve_policy(struct sim_resolver *x, struct sim_text t, struct nb_policy *out)
{
	*out = (struct nb_policy){0};
	for (size_t i = 0; i < sizeof(policy_forms) / sizeof(policy_forms[0]); i++) {
		const struct policy_form *form = &policy_forms[i];
		const char *list = form->nodes ? after(t.text, form->name) : NULL;

		out->mode = form->mode;
		if (list)
			return policy_nodes(x, t, form, list, out);
		if (!form->nodes && !strcmp(t.text, form->name))
			return 0;
	}
	return sim_job_refuse(&x->r, t.line, -EINVAL,
		"%s = %.48s: expected default, local, preferred:NODE, bind:NODES or "
		"interleave:NODES",
		t.name, t.text);
}

/* ---- CPUs ---- */

struct cpu_set {
	const struct sim_resolver *x;
	uint64_t *bits;
};

static void add_node_cpus(void *ctx, uint32_t number)
{
	struct cpu_set *set = ctx;
	const struct nb_topology *t = &set->x->m->topo;

	for (unsigned int c = 0; c < t->cpu_ids; c++)
		if (t->cpu_node[c] == set->x->node[number])
			set->bits[c / 64] |= UINT64_C(1) << (c % 64);
}

int sim_resolve_cpus(struct sim_resolver *x, struct sim_text t, uint64_t **out)
{
	struct cpu_set set = {.x = x};
	const char *list = after(t.text, "node");
	int err;

	*out = NULL;
	if (!strcmp(t.text, "all"))
		return 0;
	if (!list)
		list = after(t.text, "nodes");
	if (!list)
		return sim_job_refuse(&x->r, t.line, -EINVAL,
			"%s = %.48s: expected all, node:NODE or nodes:NODES", t.name, t.text);
	set.bits = calloc((x->m->topo.cpu_ids + 63) / 64, sizeof(*set.bits));
	if (!set.bits)
		return sim_job_refuse(&x->r, t.line, -ENOMEM, "out of memory");
	err = each_in_list(x, t, list, x->nr_cpu_nodes, add_node_cpus, &set);
	if (err)
		free(set.bits);
	else
		*out = set.bits;
	return err;
}
