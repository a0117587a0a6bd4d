/* SPDX-License-Identifier: MIT */
/* numabal stat: the counters of a program that runs under numabal run. */
#include "cmd.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "../engine/why.h"
#include "../live/launch.h"
#include "live_report.h"

enum { OPT_ALL };

static const struct cli_option options[] = {
	[OPT_ALL] = {"all", NULL, false, "every counter with its meaning, not the summary"},
	{0},
};

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
	printf("\nfault service time, from reading the fault to waking the thread:\n");
	for (int i = 0; i < NB_SESSION_HISTOGRAM; i++)
		if (t.histogram[i] > 0)
			printf("  below %10.1f us %14" PRIu64 "\n",
				(double)(UINT64_C(2) << i) / 1000, t.histogram[i]);
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

static int show(struct cli *cli, const char *operand, bool all)
{
	struct nb_session *s;
	char why[CLI_WHY_LEN];
	int64_t pid;
	int err;

	if (operand == NULL || nb_parse_i64(operand, &pid) != 0 || pid < 1 || pid > INT32_MAX)
		return cli_fail(cli, CLI_BAD_INPUT, "expected the number of a process%s%s",
			operand ? ", not " : "", nb_quote(operand ? operand : "").text);
	err = nb_session_of((uint32_t)pid, &s, why, sizeof(why));
	if (err != 0)
		return cli_fail(cli, CLI_BAD_INPUT, "%s", why);
	print_processes(s);
	if (all)
		print_counters(s);
	else
		live_report_text(stdout, s, 0, 0);
	munmap(s, (size_t)s->bytes);
	return cli_finish_stdout(cli);
}

static int run(struct cli *cli)
{
	const char *operand;
	bool all = false;
	int option;

	while ((option = cli_next(cli)) >= 0)
		all = true;
	if (option == CLI_STOP || cli_one_operand(cli, &operand) != 0)
		return cli->status;
	return show(cli, operand, all);
}

const struct cmd cmd_stat = {
	.name = "stat",
	.summary = "Show the counters of a program that runs under numabal run.",
	.usage = "[--all] PID",
	.options = options,
	.examples = "  numabal stat 4711\n  numabal stat --all 4711\n",
	.run = run,
};
