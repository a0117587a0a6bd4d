/* SPDX-License-Identifier: MIT */
/*
 * lab-plan: print QEMU's arguments for a machine, one a line; what was changed goes to stderr.
 *
 *   lab-plan [--cpus N] [--scale-mem FACTOR] [--hmat] MACHINE
 *
 * MACHINE is what sim_model_load takes: a preset, a machine file, or any topology source. FACTOR is
 * a number or 1/N.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../engine/why.h"
#include "plan.h"

static int fail(const char *why)
{
	fprintf(stderr, "lab/run: %s\n", why);
	return 125;
}

static bool parse_cpus(const char *text, unsigned int *out)
{
	int64_t n;

	if (nb_parse_i64(text, &n) || n < 1 || n > LAB_MAX_CPUS)
		return false;
	*out = (unsigned int)n;
	return true;
}

static bool parse_factor(const char *text, double *out)
{
	const bool inverse = !strncmp(text, "1/", 2);
	double x;

	if (nb_parse_double(text + (inverse ? 2 : 0), &x) || x <= 0)
		return false;
	*out = inverse ? 1 / x : x;
	return *out >= 1e-9 && *out <= 1e6;
}

/* NULL, or what is wrong. */
static const char *parse(struct lab_options *opt, int argc, char **argv)
{
	static const struct option longs[] = {{"cpus", required_argument, NULL, 'c'},
		{"scale-mem", required_argument, NULL, 'm'}, {"hmat", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		if (c == 'c' && !parse_cpus(optarg, &opt->cpus))
			return "--cpus: expected 1 to 255";
		if (c == 'm' && !parse_factor(optarg, &opt->scale_mem))
			return "--scale-mem: expected a number over 0, or 1/N";
		if (c == 'h')
			opt->hmat = true;
		if (c == '?')
			return "lab-plan: unknown option";
	}
	return optind + 1 == argc ? NULL : "lab-plan: expected one machine";
}

int main(int argc, char **argv)
{
	static struct lab_plan plan;
	struct lab_options opt = {0};
	const char *wrong = parse(&opt, argc, argv);
	struct sim_model model;
	char why[512] = "";
	int err;

	if (wrong)
		return fail(wrong);
	if (sim_model_load(&model, argv[optind], why, sizeof(why)))
		return fail(why);
	err = lab_plan_make(&plan, &model, &opt, why, sizeof(why));
	sim_model_free(&model);
	if (err)
		return fail(why);
	for (unsigned int i = 0; i < plan.nr_notes; i++)
		fprintf(stderr, "lab/run: %s\n", plan.notes[i]);
	lab_plan_print(&plan, stdout);
	return fflush(stdout) ? fail("cannot write") : 0;
}
