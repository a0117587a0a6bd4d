/* SPDX-License-Identifier: MIT */
/*
 * lab-work: run a workload in processes of its own and watch it, a row of CSV a second.
 *
 * The watcher runs before others (nice -20) and its own memory has a policy, so the kernel does not
 * scan it.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../guest/proc.h"
#include "sample.h"
#include "work.h"

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double when_s)
{
	const struct timespec t = {.tv_sec = (time_t)when_s,
		.tv_nsec = (long)((when_s - (double)(time_t)when_s) * 1e9)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "lab-work: %s%s%s\n", what, why ? ": " : "", why ? why : "");
	return 1;
}

static unsigned int nodes_of_machine(void)
{
	char *text = NULL;
	size_t size = 0;
	unsigned int nr = 1;

	if (proc_read("/sys/devices/system/node/online", &text, &size) > 0)
		nr = proc_list_end(text);
	free(text);
	return nr < 1 ? 1 : nr > WORK_MAX_NODES ? WORK_MAX_NODES : nr;
}

/* The watcher's own memory: any policy but the default keeps the scanner away. */
static void set_own_policy(int mode)
{
	const unsigned long node0 = 1;

	syscall(SYS_set_mempolicy, mode, mode == MPOL_BIND ? &node0 : NULL,
		mode == MPOL_BIND ? 8 * sizeof(node0) : 0);
}

static pid_t start_process(
	const struct work_options *opt, struct work_shared *shared, unsigned int number)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, 0);
	set_own_policy(MPOL_DEFAULT);
	work_process(opt, shared, number);
}

static void end_processes(const pid_t *pids, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	for (unsigned int i = 0; i < nr; i++)
		if (pids[i] > 0)
			waitpid(pids[i], NULL, 0);
}

static int watch(struct sampler *s, const struct work_options *opt, struct work_shared *shared,
	double start_s)
{
	sampler_head(s);
	for (unsigned int second = 0; second <= (unsigned int)opt->seconds; second++) {
		sleep_until(start_s + second);
		sampler_row(s, now_s() - start_s);
		if (atomic_load(&shared->failed))
			return fail("a process failed", strerror(atomic_load(&shared->failed)));
	}
	return 0;
}

/* Where scans are written to; times count from the start of the processes. */
struct scan_log {
	FILE *out; /* NULL = nowhere */
	double start_s;
};

static void log_head(const struct scan_log *log)
{
	if (log->out)
		fputs("t,tid,scan_period_before_ms,work_dur_ms,calls,pages_spanned,pte_updated,"
		      "change_prot_us\n",
			log->out);
}

static void log_scan(void *arg, const struct probe_scan *scan)
{
	const struct scan_log *log = arg;

	if (log->out)
		fprintf(log->out, "%.4f,%d,%u,%.3f,%u,%llu,%llu,%.1f\n",
			scan->began_s - log->start_s, scan->tid, scan->scan_period,
			scan->took_us / 1e3, scan->calls, (unsigned long long)scan->pages,
			(unsigned long long)scan->updated, scan->in_calls_us);
}

static bool start_processes(const struct work_options *opt, struct work_shared *shared, pid_t *pids)
{
	for (unsigned int i = 0; i < opt->processes; i++) {
		pids[i] = start_process(opt, shared, i);
		if (pids[i] < 0)
			return false;
	}
	return true;
}

static int run(const struct work_options *opt, FILE *csv, struct scan_log *log, struct probe *probe)
{
	struct work_shared *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[WORK_MAX_PROCESSES] = {0};
	struct sampler *s = sampler_new(opt, shared, pids, nodes_of_machine(), probe, csv);
	const double start_s = now_s();
	int status;

	log->start_s = start_s;
	if (shared == MAP_FAILED || !s)
		return fail("no memory", NULL);
	if (start_processes(opt, shared, pids))
		status = watch(s, opt, shared, start_s);
	else
		status = fail("fork", strerror(errno));
	end_processes(pids, opt->processes);
	sampler_free(s);
	munmap(shared, sizeof(*shared));
	return status;
}

static int run_with_probe(const struct work_options *opt, FILE *csv, FILE *scans)
{
	char why[256] = "";
	struct scan_log log = {.out = scans};
	struct probe *probe = probe_open(log_scan, &log, why, sizeof(why));
	int status;

	if (!probe)
		fprintf(stderr, "lab-work: no scan periods: %s\n", why);
	log_head(&log);
	status = run(opt, csv, &log, probe);
	probe_close(probe);
	return status;
}

static FILE *open_output(const char *path)
{
	FILE *f = path ? fopen(path, "w") : NULL;

	if (path && !f)
		fail(path, strerror(errno));
	return f;
}

int main(int argc, char **argv)
{
	struct work_options opt;
	char why[256] = "";
	FILE *csv, *scans;
	int status;

	if (work_parse(&opt, (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), argc, argv, why,
		    sizeof(why))) {
		fprintf(stderr, "lab-work: %s\n%s", why, work_usage());
		return 2;
	}
	csv = opt.csv ? open_output(opt.csv) : stdout;
	scans = open_output(opt.scans);
	if (!csv || (opt.scans && !scans))
		return 2;
	setpriority(PRIO_PROCESS, 0, -20);
	set_own_policy(MPOL_BIND);
	status = run_with_probe(&opt, csv, scans);
	if (fflush(csv) || ferror(csv) || (scans && fclose(scans)))
		return fail("cannot write", strerror(errno));
	return status;
}
