/* SPDX-License-Identifier: MIT */
/* See machine.h. */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest/proc.h"

static _Noreturn void stop(const char *what)
{
	fprintf(stderr, "lab-calibrate: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- nodes and CPUs ---- */

static bool node_has_memory(int node)
{
	char path[64], *text = NULL;
	size_t size = 0;
	unsigned long long kib = 0;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	if (proc_read(path, &text, &size) > 0) {
		const char *total = strstr(text, "MemTotal:");

		kib = total ? strtoull(total + strlen("MemTotal:"), NULL, 10) : 0;
	}
	free(text);
	return kib > 0;
}

struct machine machine_look(void)
{
	struct machine m = {.nr_cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), .away = -1};
	unsigned int cpu, node;

	machine_pin(0);
	getcpu(&cpu, &node);
	m.home = (int)node;
	for (int i = 0; i < 64 && m.away < 0; i++)
		if (i != m.home && node_has_memory(i))
			m.away = i;
	return m;
}

void machine_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		stop("sched_setaffinity");
}

void machine_unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	if (sched_setaffinity(0, sizeof(set), &set))
		stop("sched_setaffinity");
}

/* ---- memory ---- */

char *machine_map(size_t len, bool huge)
{
	char *at = mmap(
		NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t before = at == MAP_FAILED ? 0 : -(uintptr_t)at % HUGE_PAGE;

	if (at == MAP_FAILED)
		stop("mmap");
	if (before)
		munmap(at, before);
	munmap(at + before + len, HUGE_PAGE - before);
	if (madvise(at + before, len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		stop("madvise");
	return at + before;
}

void machine_unmap(char *at, size_t len)
{
	munmap(at, len);
}

static void set_policy(int mode, int node)
{
	const unsigned long mask = node >= 0 ? 1UL << node : 0;

	if (syscall(SYS_set_mempolicy, mode, node >= 0 ? &mask : NULL,
		    node >= 0 ? 8 * sizeof(mask) + 1 : 0))
		stop("set_mempolicy");
}

void machine_fill(char *at, size_t len, int node)
{
	set_policy(MPOL_BIND, node);
	memset(at, 1, len);
	set_policy(MPOL_DEFAULT, -1);
}

size_t machine_move(char *at, size_t len, size_t step, int node)
{
	const size_t nr = len / step;
	void **pages = calloc(nr, sizeof(*pages));
	int *nodes = calloc(nr, sizeof(*nodes)), *status = calloc(nr, sizeof(*status));
	size_t elsewhere = 0;

	if (!pages || !nodes || !status)
		stop("calloc");
	for (size_t i = 0; i < nr; i++)
		pages[i] = at + i * step, nodes[i] = node, status[i] = -1;
	syscall(SYS_move_pages, 0, nr, pages, nodes, status, MPOL_MF_MOVE);
	for (size_t i = 0; i < nr; i++)
		elsewhere += status[i] != node;
	free(pages);
	free(nodes);
	free(status);
	return elsewhere;
}

/* ---- busy CPUs ---- */

static _Noreturn void spin(unsigned int cpu)
{
	volatile uint64_t n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	machine_pin(cpu);
	for (;;)
		n++;
}

void machine_make_busy(struct busy *b, const struct machine *m)
{
	b->nr = 0;
	for (unsigned int cpu = 1; cpu < m->nr_cpus && cpu <= MAX_CPUS; cpu++) {
		const pid_t pid = fork();

		if (pid < 0)
			stop("fork");
		if (!pid)
			spin(cpu);
		b->pids[b->nr++] = pid;
	}
}

void machine_end_busy(struct busy *b)
{
	for (unsigned int i = 0; i < b->nr; i++)
		kill(b->pids[i], SIGKILL);
	for (unsigned int i = 0; i < b->nr; i++)
		waitpid(b->pids[i], NULL, 0);
	b->nr = 0;
}

/* ---- the kernel's files ---- */

uint64_t machine_counter(const char *name)
{
	static char *text;
	static size_t size;
	uint64_t values[PROC_MAX_COUNTERS];

	if (proc_read("/proc/vmstat", &text, &size) < 0)
		stop("/proc/vmstat");
	proc_parse_vmstat(text, values);
	for (size_t i = 0; i < proc_nr_counters; i++)
		if (!strcmp(proc_counters[i], name))
			return values[i];
	return 0;
}

void machine_set(const char *path, const char *value)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		stop(path);
	close(fd);
}
