/* SPDX-License-Identifier: MIT */
/* numabal stat: the counters of a program that runs under numabal run. */
#include "cmd.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "../engine/why.h"
#include "../live/launch.h"
#include "live_huge.h"
#include "live_report.h"

enum { OPT_ALL, OPT_FORMAT };
enum { FORMAT_TEXT, FORMAT_JSON };

static const struct cli_option options[] = {
	[OPT_ALL] = {"all", NULL, false, "every counter with its meaning, not the summary"},
	[OPT_FORMAT] = {"format", "FORMAT", false, "text (default) or json"},
	{0},
};

static const char *const formats[] = {"text", "json", NULL};

static void print_times(const char *what, const uint64_t histogram[NB_SESSION_HISTOGRAM])
{
	const uint64_t p99 = live_below_ns(histogram, 990);

	if (p99 == 0)
		return;
	printf("\n%s: 99 %% below %.1f us\n", what, (double)p99 / 1000);
	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		if (histogram[i] > 0)
			printf("  below %10.1f us %14" PRIu64 "\n",
				(double)(UINT64_C(2) << i) / 1000, histogram[i]);
}

static void print_counters(const struct nb_session *s)
{
	struct live_total t;

	live_total(&t, s);
	for (int i = 0; i < NB_NR_LIVE_STATS; i++)
		printf("%-24s %14" PRIu64 " %-7s %s\n", nb_live_stat_table[i].name, t.stat[i],
			nb_live_stat_table[i].unit, nb_live_stat_table[i].text);
	for (int i = 0; i < NB_NR_COUNTERS; i++)
		printf("%-24s %14" PRIu64 " %-7s %s\n", nb_counter_table[i].name, t.counter[i],
			nb_counter_table[i].unit, nb_counter_table[i].text);
	print_times("fault service time, from reading the fault to waking the thread", t.histogram);
	print_times("calls of move_pages", t.move_histogram);
}

static void print_processes(const struct nb_session *s)
{
	for (int i = 0; i < NB_SESSION_SLOTS; i++) {
		const struct nb_slot *slot = &s->slot[i];
		const uint32_t pid = atomic_load(&slot->pid);
		char comm[sizeof(slot->comm) + 1] = "";

		if (pid == 0)
			continue;
		memcpy(comm, slot->comm, sizeof(slot->comm));
		printf("%7u %-15s %s, %" PRIu64 " MiB managed, %" PRIu64 " faults, %" PRIu64
		       " pages moved\n",
			pid, comm, kill((pid_t)pid, 0) == 0 ? "running" : "ended",
			atomic_load(&slot->stats.managed_bytes) >> 20,
			atomic_load(&slot->stats.faults), atomic_load(&slot->stats.moved));
	}
}

static void print_huge(const struct live_huge *h)
{
	char huge[32], mapped[32];

	if (h->processes == 0)
		return;
	printf("numabal: huge pages map %s of %s",
		live_size_text(h->huge_bytes, huge, sizeof(huge)),
		live_size_text(h->mapped_bytes, mapped, sizeof(mapped)));
	if (h->mapped_bytes > 0)
		printf(" (%.1f %%)", 100.0 * (double)h->huge_bytes / (double)h->mapped_bytes);
	printf(" that is mapped of managed memory\n");
}

static void print_text(const struct nb_session *s, const struct live_huge *h, bool all)
{
	print_processes(s);
	if (all)
		print_counters(s);
	else
		live_report_text(stdout, s, 0, 0);
	print_huge(h);
}

static int print_json(struct cli *cli, const struct nb_session *s, const struct live_huge *h)
{
	json_t *o = live_report_object(s, 0);
	int rc = -1;

	/* What could not be read is not known, and not nothing. */
	if (o != NULL && h->processes > 0)
		rc = json_object_set_new(o, "huge_pages",
			json_pack("{s:I, s:I}", "mapped_bytes", (json_int_t)h->mapped_bytes,
				"huge_bytes", (json_int_t)h->huge_bytes));
	else if (o != NULL)
		rc = json_object_set_new(o, "huge_pages", json_null());
	if (o != NULL)
		json_object_del(o, "elapsed_s");
	if (rc == 0)
		rc = json_dumpf(o, stdout, JSON_INDENT(2));
	json_decref(o);
	if (rc != 0)
		return cli_fail(cli, CLI_FAILED, "no memory for the report");
	putchar('\n');
	return CLI_OK;
}

static int show(struct cli *cli, const char *operand, bool all, int format)
{
	struct nb_session *s;
	char why[CLI_WHY_LEN];
	struct live_huge h;
	int64_t pid;
	int err, status = CLI_OK;

	if (operand == NULL || nb_parse_i64(operand, &pid) != 0 || pid < 1 || pid > INT32_MAX)
		return cli_fail(cli, CLI_BAD_INPUT, "expected the number of a process%s%s",
			operand ? ", not " : "", nb_quote(operand ? operand : "").text);
	err = nb_session_of((uint32_t)pid, &s, why, sizeof(why));
	if (err != 0)
		return cli_fail(cli, CLI_BAD_INPUT, "%s", why);
	live_huge_look(&h, s);
	if (format == FORMAT_JSON)
		status = print_json(cli, s, &h);
	else
		print_text(s, &h, all);
	munmap(s, (size_t)s->bytes);
	return status != CLI_OK ? status : cli_finish_stdout(cli);
}

static int run(struct cli *cli)
{
	const char *operand;
	bool all = false;
	int option, format = FORMAT_TEXT;

	while ((option = cli_next(cli)) >= 0) {
		if (option == OPT_ALL)
			all = true;
		else if ((format = cli_choice(cli, "format", formats)) < 0)
			return cli->status;
	}
	if (option == CLI_STOP || cli_one_operand(cli, &operand) != 0)
		return cli->status;
	return show(cli, operand, all, format);
}

const struct cmd cmd_stat = {
	.name = "stat",
	.summary = "Show the counters of a program that runs under numabal run.",
	.usage = "[OPTION...] PID",
	.options = options,
	.examples = "  numabal stat 4711\n  numabal stat --all 4711\n  numabal stat --format json "
		    "4711\n",
	.run = run,
};
