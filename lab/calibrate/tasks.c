/* SPDX-License-Identifier: MIT */
/* What tasks cost: system calls, switches, threads, processes, flushes of other CPUs' TLBs. See
 * calibrate.h. */
#include "calibrate.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

enum { MANY = 20000, ROUNDS = 4000, STARTS = 50 };

static uint64_t samples[MANY];

static void row(const struct calibration *c, struct timing *t, const char *name, double per)
{
	timing_row(t, name, c->busy ? "busy" : "", per);
}

static struct timing fresh(void)
{
	return (struct timing){.ns = samples, .size = MANY};
}

static void clock_pairs(const struct calibration *c)
{
	struct timing t = fresh();

	for (int i = 0; i < MANY; i++) {
		const uint64_t began = timing_now_ns();

		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "clock_pair", 1);
}

/* A fixed amount of work: what a CPU that shares a real one with others makes of it. */
static void spins(const struct calibration *c)
{
	struct timing t = fresh();

	for (int i = 0; i < ROUNDS / 4; i++) {
		const uint64_t began = timing_now_ns();

		for (volatile int n = 0; n < 200000; n++)
			;
		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "spin_200000", 1);
}

static void system_calls(const struct calibration *c)
{
	struct timing t = fresh();

	for (int i = 0; i < MANY; i++) {
		const uint64_t began = timing_now_ns();

		syscall(SYS_getppid);
		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "syscall_getppid", 1);
}

/* Two processes on one CPU that wait for each other: two switches a round. */
static void switches(const struct calibration *c)
{
	struct timing t = fresh();
	int there[2], back[2];
	char byte = 0;
	pid_t pid;

	if (pipe(there) || pipe(back))
		exit(1);
	pid = fork();
	if (!pid) {
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t began = timing_now_ns();

		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "context_switch_and_pipe", 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++)
		close(there[i]), close(back[i]);
}

/* The same calls without a switch. */
static void pipes(const struct calibration *c)
{
	struct timing t = fresh();
	int ends[2];
	char byte = 0;

	if (pipe(ends))
		exit(1);
	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t began = timing_now_ns();

		if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			exit(1);
		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "pipe_write_and_read", 1);
	close(ends[0]);
	close(ends[1]);
}

static void *nothing(void *arg)
{
	return arg;
}

static void new_threads(const struct calibration *c)
{
	struct timing t = fresh();

	for (int i = 0; i < STARTS; i++) {
		const uint64_t began = timing_now_ns();
		pthread_t id;

		if (pthread_create(&id, NULL, nothing, NULL))
			exit(1);
		timing_add(&t, timing_now_ns() - began);
		pthread_join(id, NULL);
	}
	row(c, &t, "pthread_create", 1);
}

/* A process that starts this program again, which then ends at once. */
static void new_processes(const struct calibration *c)
{
	struct timing t = fresh();

	for (int i = 0; i < STARTS; i++) {
		const uint64_t began = timing_now_ns();
		const pid_t pid = fork();

		if (!pid) {
			execl("/proc/self/exe", "lab-calibrate", "--nothing", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
		timing_add(&t, timing_now_ns() - began);
	}
	row(c, &t, "fork_exec_exit", 1);
}

/* ---- flushes ---- */

struct spinner {
	unsigned int cpu;
	_Atomic bool on, stop;
};

static void *spin(void *arg)
{
	struct spinner *s = arg;

	machine_pin(s->cpu);
	atomic_store(&s->on, true);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
		;
	return NULL;
}

/* Taking write access from a page: where it is in the TLB there is a flush here, and everywhere
 * else the program runs. */
static void protect(struct timing *t, bool touched)
{
	char *at = machine_map(HUGE_PAGE, false);

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t began;

		if (touched)
			*(volatile char *)at = 1;
		began = timing_now_ns();
		mprotect(at, PAGE, PROT_READ);
		timing_add(t, timing_now_ns() - began);
		mprotect(at, PAGE, PROT_READ | PROT_WRITE);
	}
	machine_unmap(at, HUGE_PAGE);
}

static void flushes(const struct calibration *c)
{
	struct spinner s = {.cpu = 1};
	struct timing t = fresh();
	pthread_t id;

	protect(&t, false);
	row(c, &t, "mprotect_nothing_there", 1);
	t = fresh();
	protect(&t, true);
	row(c, &t, "mprotect_1_page_1_cpu", 1);
	if (c->machine.nr_cpus < 2 || pthread_create(&id, NULL, spin, &s))
		return;
	while (!atomic_load(&s.on))
		usleep(1000);
	t = fresh();
	protect(&t, true);
	row(c, &t, "mprotect_1_page_2_cpus", 1);
	atomic_store(&s.stop, true);
	pthread_join(id, NULL);
}

void calibrate_tasks(const struct calibration *c)
{
	clock_pairs(c);
	spins(c);
	system_calls(c);
	switches(c);
	pipes(c);
	new_threads(c);
	new_processes(c);
	flushes(c);
}
