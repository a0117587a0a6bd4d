/* SPDX-License-Identifier: MIT */
/* numabal run: a program, balanced. Its input, output, signals and exit status are its own. */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../engine/why.h"
#include "../live/launch.h"
#include "../live/probe.h"
#include "../live/thp.h"
#include "../topo/topo.h"
#include "live_record.h"
#include "live_report.h"

enum {
	OPT_SYSTEM,
	OPT_SET,
	OPT_TOPOLOGY,
	OPT_MIN_SIZE,
	OPT_MALLOC,
	OPT_WATCHDOG,
	OPT_MOVE_MS,
	OPT_NO_BACKING,
	OPT_STATS,
	OPT_RECORD,
	OPT_QUIET,
};

static const struct cli_option options[] = {
	[OPT_SYSTEM] = {"system", "NAME", false,
		"who decides: a row of 'numabal systems' (numabal)"},
	[OPT_SET] = {"set", "NAME=VALUE", true, "a mechanism or tunable of it"},
	[OPT_TOPOLOGY] = {"topology", "WHAT", false,
		"real (default), a number of virtual nodes, or a topology's file: faults are real, "
		"moves are bookkept"},
	[OPT_MIN_SIZE] = {"min-size", "BYTES", false, "manage mappings of this size and more (8M)"},
	[OPT_MALLOC] = {"malloc", "WHICH", false,
		"jemalloc (default where installed), or system: what malloc takes is not managed "
		"then"},
	[OPT_WATCHDOG] = {"watchdog", "MS", false,
		"a fault that waited so long ends balancing (1000)"},
	[OPT_MOVE_MS] = {"move-ms", "MS", false,
		"what one call of move_pages may take; its pages are as many as fit (20)"},
	[OPT_NO_BACKING] = {"no-backing-if-thp-lost", NULL, false,
		"leave memory alone where it would lose huge pages"},
	[OPT_STATS] = {"stats", CLI_FILE, false, "write all counters as JSON at the end"},
	[OPT_RECORD] = {"record", CLI_FILE, false,
		"write every decision down, for numabal explain, and to be played by sim"},
	[OPT_QUIET] = {"quiet", NULL, false, "no summary, no warnings"},
	{0},
};

struct plan {
	struct nb_config config;
	struct nb_topology host, topo;
	const char *topology, *stats, *record, *system;
	char **command;
	char shim[4096], allocator[4096];
	uint64_t min_size;
	int64_t watchdog_ms, move_ms;
	enum nb_thp_loss thp; /* what backing would lose */
	bool quiet, jemalloc_wanted, system_malloc, is_virtual, no_thp_loss;
};

/* ---- what is asked for ---- */

static int set_system(struct cli *cli, struct plan *p, const char *name)
{
	const struct nb_system *s = nb_system_find(name);

	if (s == NULL)
		return cli_fail(cli, CLI_BAD_INPUT,
			"--system %s: no such system; see 'numabal systems'", nb_quote(name).text);
	p->system = nb_system_name(s);
	nb_config_from_system(&p->config, s);
	nb_live_defaults(&p->config);
	return 0;
}

static int set_size(struct cli *cli, struct plan *p)
{
	if (nb_parse_bytes(cli->value, &p->min_size) != 0 || p->min_size < (2 << 20))
		return cli_fail(cli, CLI_BAD_INPUT,
			"--min-size %s: expected bytes, 2M or more, such as 8M",
			nb_quote(cli->value).text);
	return 0;
}

static int set_malloc(struct cli *cli, struct plan *p)
{
	static const char *const names[] = {"jemalloc", "system", NULL};
	const int which = cli_choice(cli, "malloc", names);

	if (which < 0)
		return cli->status;
	p->jemalloc_wanted = which == 0;
	p->system_malloc = which == 1;
	return 0;
}

/* 0, or the status to exit with. */
static int take_option(struct cli *cli, struct plan *p, int option, const char **sets, int *nr_sets)
{
	switch (option) {
	case OPT_SYSTEM:
		return set_system(cli, p, cli->value);
	case OPT_SET:
		sets[(*nr_sets)++] = cli->value;
		return 0;
	case OPT_TOPOLOGY:
		p->topology = cli->value;
		return 0;
	case OPT_MIN_SIZE:
		return set_size(cli, p);
	case OPT_MALLOC:
		return set_malloc(cli, p);
	case OPT_WATCHDOG:
		return cli_integer(cli, "watchdog", 10, 3600000, &p->watchdog_ms) == 0
			       ? 0
			       : cli->status;
	case OPT_MOVE_MS:
		return cli_integer(cli, "move-ms", 1, 60000, &p->move_ms) == 0 ? 0 : cli->status;
	case OPT_NO_BACKING:
		p->no_thp_loss = true;
		return 0;
	case OPT_STATS:
		p->stats = cli->value;
		return 0;
	case OPT_RECORD:
		p->record = cli->value;
		return 0;
	default:
		p->quiet = true;
		return 0;
	}
}

static int apply_sets(struct cli *cli, struct plan *p, const char **sets, int nr)
{
	char why[CLI_WHY_LEN];

	for (int i = 0; i < nr; i++)
		if (nb_config_set(&p->config, sets[i], why, sizeof(why)) != 0)
			return cli_fail(cli, CLI_BAD_INPUT, "--set %s", why);
	return cli_check_sets(cli, sets, (size_t)nr);
}

/* What comes after "--" is the program's and nobody else's. */
static int find_command(struct cli *cli, struct plan *p)
{
	for (int i = 1; i < cli->argc; i++)
		if (strcmp(cli->argv[i], "--") == 0) {
			p->command = &cli->argv[i + 1];
			cli->argv[i] = NULL;
			cli->argc = i;
			break;
		}
	return 0;
}

static int read_options(struct cli *cli, struct plan *p)
{
	const char *sets[64];
	int option, nr_sets = 0, status;

	find_command(cli, p);
	while ((option = cli_next(cli)) >= 0) {
		if (nr_sets == 64)
			return cli_fail(cli, CLI_BAD_INPUT, "more than 64 times --set");
		status = take_option(cli, p, option, sets, &nr_sets);
		if (status != 0)
			return status;
	}
	if (option == CLI_STOP)
		return cli->status ? cli->status : -1;
	if (p->command == NULL || p->command[0] == NULL || cli_operands(cli) < cli->argc)
		return cli_fail(cli, CLI_BAD_INPUT,
			"expected the program after --, as in: numabal run -- CMD");
	return apply_sets(cli, p, sets, nr_sets);
}

/* ---- nodes ---- */

static int read_host(struct cli *cli, struct plan *p, bool *refused)
{
	struct topo_info info;
	char why[CLI_WHY_LEN];
	int err = topo_read(&info, "host", why, sizeof(why));

	if (err != 0)
		return cli_fail(cli, cli_status_of(err), "%s", why);
	*refused = info.balance_refused;
	err = topo_copy(&p->host, &info.topo);
	topo_info_free(&info);
	return err != 0 ? cli_fail(cli, CLI_FAILED, "no memory for the topology") : 0;
}

static int read_model(struct cli *cli, struct plan *p)
{
	struct topo_info info;
	char why[CLI_WHY_LEN];
	int err = topo_read(&info, p->topology, why, sizeof(why));

	if (err == 0) {
		err = nb_virtual_model(&p->topo, &p->host, &info.topo, why, sizeof(why));
		topo_info_free(&info);
	}
	return err != 0 ? cli_fail(cli, cli_status_of(err), "--topology %s", why) : 0;
}

static int virtual_nodes(struct cli *cli, struct plan *p)
{
	char why[CLI_WHY_LEN];
	int64_t nodes;
	int err;

	if (nb_parse_i64(p->topology, &nodes) != 0)
		return read_model(cli, p);
	if (nodes < 1 || nodes > NB_MAX_NODES)
		return cli_fail(cli, CLI_BAD_INPUT, "--topology %s: expected 1 to %d virtual nodes",
			nb_quote(p->topology).text, NB_MAX_NODES);
	err = nb_virtual_nodes(&p->topo, &p->host, (unsigned int)nodes, why, sizeof(why));
	return err != 0 ? cli_fail(cli, cli_status_of(err), "--topology %s", why) : 0;
}

/* *nothing: there is only one place for memory. */
static int read_topology(struct cli *cli, struct plan *p, bool *nothing)
{
	int status = read_host(cli, p, nothing);

	if (status != 0)
		return status;
	p->is_virtual = p->topology != NULL && strcasecmp(p->topology, "real") != 0;
	if (p->is_virtual) {
		*nothing = false;
		return virtual_nodes(cli, p);
	}
	*nothing |= nb_topology_memory_nodes(&p->host) < 2;
	return topo_copy(&p->topo, &p->host) != 0
		       ? cli_fail(cli, CLI_FAILED, "no memory for the topology")
		       : 0;
}

/* ---- the program ---- */

static volatile sig_atomic_t child;

/* A signal sent to us by somebody is meant for the program; the terminal's go to it anyway. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code <= 0 && child > 0)
		kill((pid_t)child, sig);
}

static bool is_passed_on(int sig)
{
	static const int ours[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT,
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (sig == ours[i])
			return false;
	return true;
}

static void pass_signals_on(void)
{
	const struct sigaction action = {
		.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction old;

	for (int sig = 1; sig < SIGRTMIN; sig++) {
		if (!is_passed_on(sig) || sigaction(sig, NULL, &old) != 0)
			continue;
		if (old.sa_handler == SIG_DFL)
			sigaction(sig, &action, NULL);
	}
}

static void be_the_program(const struct plan *p, const char *session)
{
	signal(SIGPIPE, SIG_DFL);
	if (session != NULL && nb_launch_environment(session, p->shim, p->allocator) != 0)
		_exit(126);
	execvp(p->command[0], p->command);
	_exit(errno == ENOENT ? 127 : 126);
}

struct ended {
	int status;
	struct rusage usage;
	double elapsed_s;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int start(struct cli *cli, const struct plan *p, const char *session, struct ended *e)
{
	const double since = now_s();
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		be_the_program(p, session);
	}
	child = pid;
	pass_signals_on();
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return cli_fail(cli, CLI_FAILED, "fork: %s", strerror(errno));
	while (wait4(pid, &e->status, 0, &e->usage) < 0 && errno == EINTR)
		;
	child = 0;
	e->elapsed_s = now_s() - since;
	return 0;
}

/* End as it ended. */
static int same_end(const struct ended *e)
{
	const struct rlimit no_core = {0, 0};
	const int sig = WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0;
	sigset_t set;

	if (sig == 0)
		return WEXITSTATUS(e->status);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	fflush(NULL);
	raise(sig);
	return 128 + sig;
}

/* ---- warnings ---- */

__attribute__((format(printf, 2, 3))) static void say(const struct plan *p, const char *format, ...)
{
	va_list args;

	if (p->quiet)
		return;
	va_start(args, format);
	fputs("numabal: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static long number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%ld", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static void warn(const struct plan *p)
{
	const long mode = number_in("/proc/sys/kernel/numa_balancing");

	if (mode != 0 && !p->is_virtual)
		say(p,
			"kernel.numa_balancing is %ld: both would move the same pages; to switch "
			"it "
			"off: sudo sysctl kernel.numa_balancing=0",
			mode);
}

/* True when the program is to run with the shim; else one line says why not. */
static bool may_balance(struct plan *p, const struct nb_probe_result *r, bool nothing)
{
	enum nb_program_kind kind;
	char why[CLI_WHY_LEN];

	if (nb_program_look(p->command[0], &kind) != 0)
		return false;
	if (kind != NB_PROGRAM_DYNAMIC) {
		say(p, "not balanced: %s: %s", nb_quote(p->command[0]).text,
			nb_program_texts[kind]);
		return false;
	}
	if (nothing) {
		say(p, "not balanced: this machine has one memory node; --topology 2 makes virtual "
		       "ones");
		return false;
	}
	if (nb_find_shim(p->shim, sizeof(p->shim), why, sizeof(why)) != 0) {
		say(p, "not balanced: %s", why);
		return false;
	}
	if (nb_probe_can_balance(r))
		return true;
	for (int i = 0; i < NB_NR_PROBES; i++)
		if (nb_probe_table[i].needed && r->answer[i] != NB_PROBE_YES) {
			say(p, "not balanced: %s: %s; to allow it: %s", nb_probe_table[i].name,
				r->why[i][0] ? r->why[i] : "not known", nb_probe_table[i].command);
			break;
		}
	return false;
}

/* ---- running ---- */

static int find_allocator(struct cli *cli, struct plan *p)
{
	if (p->system_malloc || nb_find_jemalloc(p->allocator, sizeof(p->allocator)) == 0)
		return 0;
	if (p->jemalloc_wanted)
		return cli_fail(cli, CLI_FAILED,
			"--malloc jemalloc: libjemalloc.so.2 is not installed; on Debian: sudo "
			"apt-get "
			"install libjemalloc2");
	say(p, "no jemalloc here: what malloc takes is not managed; on Debian: sudo apt-get "
	       "install "
	       "libjemalloc2");
	return 0;
}

/* What the memory to be managed loses, unless it is left alone. */
static void look_at_huge_pages(struct plan *p, const struct nb_probe_result *r)
{
	const bool given_back = r->answer[NB_PROBE_COLLAPSE] == NB_PROBE_YES;
	struct nb_thp t;

	nb_thp_read("/sys/kernel/mm/transparent_hugepage", &t);
	p->thp = t.loss;
	if (t.loss == NB_THP_KEPT)
		return;
	if (p->no_thp_loss) {
		say(p,
			"huge pages are kept: %s is not managed (transparent_hugepage: enabled is "
			"%s, "
			"shmem_enabled is %s)",
			t.loss == NB_THP_LOST_ALL ? "memory" : "memory with MADV_HUGEPAGE",
			t.enabled, t.shmem);
	} else if (t.loss == NB_THP_LOST_ALL) {
		say(p,
			"managed memory begins without huge pages (transparent_hugepage: enabled "
			"is "
			"%s, shmem_enabled is %s)%s",
			t.enabled, t.shmem, given_back ? "; settled memory gets them back" : "");
	}
}

static uint32_t huge_page_flags(const struct plan *p)
{
	switch (p->thp) {
	case NB_THP_LOST_ALL:
		return p->no_thp_loss ? NB_SESSION_KEEP_THP : 0;
	case NB_THP_LOST_ADVISED:
		return p->no_thp_loss ? NB_SESSION_KEEP_ADVISED : NB_SESSION_LOSE_ADVISED;
	default:
		return 0;
	}
}

static void fill_session(struct nb_session *s, const struct plan *p)
{
	snprintf(s->system, sizeof(s->system), "%s", p->system);
	s->min_size = p->min_size;
	s->watchdog_ms = (uint32_t)p->watchdog_ms;
	s->move_ms = (uint32_t)p->move_ms;
	s->max_regions = 900;
	s->flags = (p->is_virtual ? NB_SESSION_VIRTUAL : 0) | huge_page_flags(p);
}

static int record_start(
	struct cli *cli, const struct plan *p, struct nb_session *s, struct live_record **r)
{
	char why[CLI_WHY_LEN];

	*r = NULL;
	if (p->record == NULL)
		return 0;
	return live_record_start(r, s, p->record, p->command[0], p->system, why, sizeof(why)) == 0
		       ? 0
		       : cli_fail(cli, CLI_FAILED, "--record %s", why);
}

static void record_finish(struct cli *cli, const struct plan *p, struct live_record *r)
{
	char why[CLI_WHY_LEN];
	uint64_t lost = 0;

	if (r == NULL)
		return;
	if (live_record_finish(r, &lost, why, sizeof(why)) != 0)
		cli_fail(cli, CLI_FAILED, "--record %s", why);
	if (lost > 0)
		say(p, "note: %" PRIu64 " events found no room and are not in the recording", lost);
}

static void report(
	struct cli *cli, const struct plan *p, const struct nb_session *s, const struct ended *e)
{
	char why[CLI_WHY_LEN];

	if (!p->quiet)
		live_report_text(stderr, s, e->elapsed_s, (uint64_t)e->usage.ru_maxrss << 10);
	if (p->stats != NULL && live_report_json(s, e->elapsed_s, p->stats, why, sizeof(why)) != 0)
		cli_fail(cli, CLI_FAILED, "%s", why);
}

static int run_session(
	struct cli *cli, struct plan *p, struct nb_session *s, const char *path, struct ended *e)
{
	struct live_record *r;
	int status = record_start(cli, p, s, &r);

	if (status != 0)
		return status;
	status = start(cli, p, path, e);
	record_finish(cli, p, r);
	if (status == 0)
		report(cli, p, s, e);
	return status;
}

static int run_balanced(struct cli *cli, struct plan *p)
{
	char path[NB_SESSION_PATH], why[CLI_WHY_LEN];
	struct nb_session *s;
	struct ended e;
	int status = find_allocator(cli, p);
	int err;

	if (status != 0)
		return status;
	err = nb_session_create(&p->topo, &p->config, p->record != NULL ? NB_RING_SLOTS : 0, path,
		&s, why, sizeof(why));
	if (err != 0)
		return cli_fail(cli, CLI_FAILED, "%s", why);
	fill_session(s, p);
	status = run_session(cli, p, s, path, &e);
	nb_session_destroy(s, path);
	return status != 0 ? status : same_end(&e);
}

/* What the files would hold was never counted. */
static void say_not_written(struct plan *p)
{
	if (p->stats != NULL)
		say(p, "--stats %s: not written", nb_quote(p->stats).text);
	if (p->record != NULL)
		say(p, "--record %s: not written", nb_quote(p->record).text);
}

static int run_plain(struct cli *cli, struct plan *p)
{
	struct ended e;
	const int status = start(cli, p, NULL, &e);

	return status != 0 ? status : same_end(&e);
}

static int run_plan(struct cli *cli, struct plan *p)
{
	struct nb_probe_result r;
	enum nb_program_kind kind;
	bool nothing = false;
	int status = read_topology(cli, p, &nothing);
	int err;

	if (status != 0)
		return status;
	err = nb_program_look(p->command[0], &kind);
	if (err != 0)
		return cli_fail(cli, err == -ENOENT ? 127 : 126, "%s: %s",
			nb_quote(p->command[0]).text, strerror(-err));
	nb_probe_all(&r);
	if (!may_balance(p, &r, nothing)) {
		say_not_written(p);
		return run_plain(cli, p);
	}
	warn(p);
	look_at_huge_pages(p, &r);
	return run_balanced(cli, p);
}

static int run(struct cli *cli)
{
	struct plan p = {.min_size = 8 << 20, .watchdog_ms = 1000, .move_ms = NB_MOVE_MS};
	int status = set_system(cli, &p, "numabal");

	if (status == 0)
		status = read_options(cli, &p);
	if (status == 0)
		status = run_plan(cli, &p);
	topo_free(&p.host);
	topo_free(&p.topo);
	return status < 0 ? CLI_OK : status;
}

const struct cmd cmd_run = {
	.name = "run",
	.summary = "Run a program with its memory balanced between the nodes.",
	.usage = "[OPTION...] -- CMD [ARGUMENT...]",
	.options = options,
	.examples = "  numabal run -- redis-server\n"
		    "  numabal run --topology 2 --stats out.json -- python3 job.py\n",
	.run = run,
};
