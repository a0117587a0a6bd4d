/* SPDX-License-Identifier: MIT */
/* numabal doctor: what this machine offers `numabal run`, and the command that would enable what is
 * missing. */
#include "cmd.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "../engine/why.h"
#include <sys/resource.h>
#include <sys/utsname.h>
#include "../live/launch.h"
#include "../live/probe.h"
#include "../topo/topo.h"

enum { OPT_FORMAT };

static const struct cli_option options[] = {
	[OPT_FORMAT] = {"format", "FORMAT", false, "text (default) or json"},
	{0},
};

enum { MAX_FINDINGS = 40, TEXT = 512 };

enum level { FINE, HINT, BAD };
static const char *const level_names[] = {"ok", "note", "missing"};

struct finding {
	enum level level;
	char what[TEXT], command[TEXT];
};

struct report {
	unsigned int nr;
	struct finding finding[MAX_FINDINGS];
};

__attribute__((format(printf, 4, 5))) static void add(
	struct report *r, enum level level, const char *command, const char *format, ...)
{
	struct finding *f = &r->finding[r->nr];
	va_list args;

	if (r->nr == MAX_FINDINGS)
		return;
	f->level = level;
	snprintf(f->command, sizeof(f->command), "%s", command);
	va_start(args, format);
	vsnprintf(f->what, sizeof(f->what), format, args);
	va_end(args);
	r->nr++;
}

/* ---- what is looked at ---- */

/* The first line of a file; "" when it can't be read. */
static void line_of(const char *path, char *text, size_t len)
{
	FILE *f = fopen(path, "re");

	text[0] = '\0';
	if (f == NULL)
		return;
	if (fgets(text, (int)len, f) == NULL)
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
}

/* The word between brackets, as sysfs marks the one in force. */
static void chosen_in(const char *path, char *word, size_t len)
{
	char text[256];
	char *open;

	line_of(path, text, sizeof(text));
	open = strchr(text, '[');
	if (open != NULL)
		open[strcspn(open, "]")] = '\0';
	snprintf(word, len, "%s", open != NULL ? open + 1 : "unknown");
}

static void look_at_kernel(struct report *r)
{
	struct utsname u;

	if (uname(&u) == 0)
		add(r, FINE, "", "Linux %s on %s", u.release, u.machine);
}

static void look_at_nodes(struct report *r)
{
	struct topo_info info;
	char why[CLI_WHY_LEN];

	if (topo_read(&info, "host", why, sizeof(why)) != 0) {
		add(r, BAD, "", "memory nodes: %s", why);
		return;
	}
	if (nb_topology_memory_nodes(&info.topo) < 2 || info.balance_refused)
		add(r, HINT, "numabal run --topology 2 -- CMD",
			"memory nodes: %u: nothing to balance; virtual nodes can be tried",
			nb_topology_memory_nodes(&info.topo));
	else
		add(r, FINE, "", "memory nodes: %u with memory, %u CPUs",
			nb_topology_memory_nodes(&info.topo), info.topo.nr_cpus);
	topo_info_free(&info);
}

static void look_at_probes(struct report *r)
{
	struct nb_probe_result probes;

	nb_probe_all(&probes);
	for (int i = 0; i < NB_NR_PROBES; i++) {
		const struct nb_probe_info *p = &nb_probe_table[i];
		const char *answers[] = {"not known", "no", "yes"};
		const bool yes = probes.answer[i] == NB_PROBE_YES;

		add(r,
			yes	    ? FINE
			: p->needed ? BAD
				    : HINT,
			yes ? "" : p->command, "%s: %s (%s)%s%s", p->name,
			answers[probes.answer[i]], p->text, probes.why[i][0] ? ": " : "",
			probes.why[i]);
	}
}

static void look_at_huge_pages(struct report *r)
{
	char anonymous[32], shared[32];

	chosen_in("/sys/kernel/mm/transparent_hugepage/enabled", anonymous, sizeof(anonymous));
	chosen_in("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared, sizeof(shared));
	if (strcmp(anonymous, "always") == 0 &&
		(strcmp(shared, "never") == 0 || strcmp(shared, "deny") == 0))
		add(r, HINT,
			"echo advise | sudo tee "
			"/sys/kernel/mm/transparent_hugepage/shmem_enabled",
			"huge pages: anonymous %s, shared %s: managed memory begins with small "
			"pages, and gets huge ones when it has settled",
			anonymous, shared);
	else
		add(r, FINE, "", "huge pages: anonymous %s, shared %s", anonymous, shared);
}

static void look_at_settings(struct report *r)
{
	char text[64];

	line_of("/proc/sys/kernel/numa_balancing", text, sizeof(text));
	if (text[0] != '\0' && strcmp(text, "0") != 0)
		add(r, HINT, "sudo sysctl kernel.numa_balancing=0",
			"kernel.numa_balancing is %s: both would move the same pages", text);
	else
		add(r, FINE, "", "kernel.numa_balancing is %s", text[0] ? text : "not there");
	line_of("/proc/sys/vm/overcommit_memory", text, sizeof(text));
	if (strcmp(text, "2") == 0)
		add(r, BAD, "sudo sysctl vm.overcommit_memory=0",
			"vm.overcommit_memory is 2: memory is left alone");
	line_of("/proc/sys/vm/max_map_count", text, sizeof(text));
	add(r, atol(text) < 65530 ? HINT : FINE,
		atol(text) < 65530 ? "sudo sysctl vm.max_map_count=65530" : "",
		"vm.max_map_count is %s", text);
}

static void look_at_limits(struct report *r)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		add(r, HINT, "ulimit -f unlimited",
			"file size is limited: larger mappings are left alone");
	if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		add(r, BAD, "ulimit -d unlimited", "data is limited: memory is left alone");
}

static void look_at_files(struct report *r)
{
	char path[4096], why[CLI_WHY_LEN];

	if (nb_find_shim(path, sizeof(path), why, sizeof(why)) == 0)
		add(r, FINE, "", "shim: %.400s", path);
	else
		add(r, BAD, "make install", "shim: %.400s", why);
	if (nb_find_jemalloc(path, sizeof(path)) == 0)
		add(r, FINE, "", "jemalloc: %.400s", path);
	else
		add(r, HINT, "sudo apt-get install libjemalloc2",
			"jemalloc: not installed: what malloc takes is not managed");
}

/* ---- saying it ---- */

static bool all_there(const struct report *r)
{
	for (unsigned int i = 0; i < r->nr; i++)
		if (r->finding[i].level == BAD)
			return false;
	return true;
}

static void print_text(const struct report *r)
{
	for (unsigned int i = 0; i < r->nr; i++) {
		const struct finding *f = &r->finding[i];

		printf("%-8s %s\n", level_names[f->level], f->what);
		if (f->command[0] != '\0')
			printf("         to change it: %s\n", f->command);
	}
	printf("\nnumabal run can balance here: %s\n", all_there(r) ? "yes" : "no");
}

static void print_json(const struct report *r)
{
	json_t *list = json_array(), *o;

	for (unsigned int i = 0; i < r->nr; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:s}", "level", level_names[r->finding[i].level],
				"what", r->finding[i].what, "command", r->finding[i].command));
	o = json_pack(
		"{s:i, s:b, s:o}", "schema", 1, "can_balance", all_there(r), "findings", list);
	json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
}

static int run(struct cli *cli)
{
	static const char *const formats[] = {"text", "json", NULL};
	struct report r = {0};
	const char *operand;
	int option, format = 0;

	while ((option = cli_next(cli)) >= 0) {
		format = cli_choice(cli, "format", formats);
		if (format < 0)
			return cli->status;
	}
	if (option == CLI_STOP || cli_one_operand(cli, &operand) != 0)
		return cli->status;
	if (operand != NULL)
		return cli_fail(
			cli, CLI_BAD_INPUT, "'%s': expected no operand", nb_quote(operand).text);
	look_at_kernel(&r);
	look_at_nodes(&r);
	look_at_probes(&r);
	look_at_huge_pages(&r);
	look_at_settings(&r);
	look_at_limits(&r);
	look_at_files(&r);
	if (format == 1)
		print_json(&r);
	else
		print_text(&r);
	option = cli_finish_stdout(cli);
	return option != CLI_OK ? option : all_there(&r) ? CLI_OK : CLI_FAILED;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "Say what this machine offers numabal run, and how to enable what is missing.",
	.usage = "[--format FORMAT]",
	.options = options,
	.examples = "  numabal doctor\n",
	.run = run,
};
