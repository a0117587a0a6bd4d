/* SPDX-License-Identifier: MIT */
/* The command line of lab-work. See work.h. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "../../engine/why.h"
#include "work.h"

static const struct pattern {
	const char *name, *text;
	unsigned int processes, per, mib;
} patterns[] = {
#define X(NAME, name, processes, per, mib, text) {name, text, processes, per, mib},
	WORK_PATTERNS(X)
#undef X
};

const char *work_name(enum work_pattern pattern)
{
	return patterns[pattern].name;
}

const char *work_usage(void)
{
	return "usage: lab-work [OPTION...] PATTERN\n"
	       "  --seconds S      length of the run (40)\n"
	       "  --csv FILE       one row a second (standard output)\n"
	       "  --scans FILE     one row for each scan of the kernel's (needs tracefs and BTF)\n"
	       "  --processes N, --threads N, --size SIZE   of each process\n"
	       "  --start NODE     touch all memory there first (the program's own first touch)\n"
	       "  --pin            thread i on CPU i\n"
	       "  --shared PCT     zipf: accesses to everybody's pages (10)\n"
	       "  --late-at S, --late-size SIZE   late: when, and how much (30, 256M)\n"
	       "  --seed N         of random accesses (1)\n"
	       "PATTERN: numa01 numa01_TA numa02 numa02_SMT zipf late\n";
}

static int find_pattern(const char *name)
{
	for (int i = 0; i < WORK_NR_PATTERNS; i++)
		if (!strcmp(patterns[i].name, name))
			return i;
	return -1;
}

static bool parse_count(const char *text, int64_t least, int64_t most, int64_t *out)
{
	return !nb_parse_i64(text, out) && *out >= least && *out <= most;
}

static bool parse_unsigned(const char *text, unsigned int most, unsigned int *out)
{
	int64_t n;

	if (!parse_count(text, 1, most, &n))
		return false;
	*out = (unsigned int)n;
	return true;
}

static bool parse_seconds(const char *text, double *out)
{
	return !nb_parse_double(text, out) && *out > 0 && *out <= 86400;
}

static bool parse_size(const char *text, uint64_t *out)
{
	return !nb_parse_bytes(text, out) && *out >= WORK_PAGE && *out <= UINT64_C(1) << 40;
}

static bool parse_node(const char *text, int *out)
{
	int64_t n;

	if (!parse_count(text, -1, WORK_MAX_NODES - 1, &n))
		return false;
	*out = (int)n;
	return true;
}

static bool parse_percent(const char *text, unsigned int *out)
{
	int64_t n;

	if (!parse_count(text, 0, 100, &n))
		return false;
	*out = (unsigned int)n;
	return true;
}

static bool parse_seed(const char *text, uint64_t *out)
{
	int64_t n;

	if (!parse_count(text, 0, INT64_MAX, &n))
		return false;
	*out = (uint64_t)n;
	return true;
}

static bool take(struct work_options *opt, int c, const char *text)
{
	switch (c) {
	case 't':
		return parse_seconds(text, &opt->seconds);
	case 'o':
		opt->csv = text;
		return true;
	case 'x':
		opt->scans = text;
		return true;
	case 'p':
		return parse_unsigned(text, WORK_MAX_PROCESSES, &opt->processes);
	case 'n':
		return parse_unsigned(text, WORK_MAX_THREADS, &opt->threads);
	case 's':
		return parse_size(text, &opt->bytes);
	case 'N':
		return parse_node(text, &opt->start_node);
	case 'P':
		opt->pin = true;
		return true;
	case 'S':
		return parse_percent(text, &opt->shared_pct);
	case 'l':
		return parse_seconds(text, &opt->late_s);
	case 'L':
		return parse_size(text, &opt->late_bytes);
	case 'r':
		return parse_seed(text, &opt->seed);
	default:
		return false;
	}
}

static const struct option longs[] = {{"seconds", required_argument, NULL, 't'},
	{"csv", required_argument, NULL, 'o'}, {"scans", required_argument, NULL, 'x'},
	{"processes", required_argument, NULL, 'p'}, {"threads", required_argument, NULL, 'n'},
	{"size", required_argument, NULL, 's'}, {"start", required_argument, NULL, 'N'},
	{"pin", no_argument, NULL, 'P'}, {"shared", required_argument, NULL, 'S'},
	{"late-at", required_argument, NULL, 'l'}, {"late-size", required_argument, NULL, 'L'},
	{"seed", required_argument, NULL, 'r'}, {0}};

static void set_defaults(struct work_options *opt, unsigned int cpus)
{
	const struct pattern *p = &patterns[opt->pattern];
	const unsigned int threads = cpus / (p->processes * p->per);

	if (!opt->processes)
		opt->processes = p->processes;
	if (!opt->threads)
		opt->threads = threads ? threads : 1;
	if (!opt->bytes)
		opt->bytes = (uint64_t)p->mib << 20;
}

static uint64_t whole_pages(uint64_t bytes, unsigned int threads)
{
	return bytes / WORK_PAGE / threads * WORK_PAGE * threads;
}

int work_parse(struct work_options *opt, unsigned int cpus, int argc, char **argv, char *why,
	size_t why_len)
{
	int c, pattern;

	*opt = (struct work_options){.seconds = 40,
		.start_node = -1,
		.shared_pct = 10,
		.late_s = 30,
		.late_bytes = 256 << 20,
		.seed = 1};
	optind = 0; /* glibc: begin anew, for tests */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1)
		if (!take(opt, c, optarg))
			return nb_why(why, why_len, -EINVAL,
				"%s: not an option or not a value for it", argv[optind - 1]);
	if (optind + 1 != argc)
		return nb_why(why, why_len, -EINVAL, "expected one pattern");
	pattern = find_pattern(argv[optind]);
	if (pattern < 0)
		return nb_why(why, why_len, -EINVAL, "%s: no such pattern", argv[optind]);
	opt->pattern = (enum work_pattern)pattern;
	set_defaults(opt, cpus);
	if (opt->processes * opt->threads > WORK_MAX_THREADS)
		return nb_why(why, why_len, -EINVAL, "%u threads, expected at most %d",
			opt->processes * opt->threads, WORK_MAX_THREADS);
	opt->bytes = whole_pages(opt->bytes, opt->threads);
	opt->late_bytes = whole_pages(opt->late_bytes, opt->threads);
	if (!opt->bytes || !opt->late_bytes)
		return nb_why(why, why_len, -EINVAL, "less than a page for each of %u threads",
			opt->threads);
	return 0;
}
