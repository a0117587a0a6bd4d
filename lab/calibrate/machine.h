/* SPDX-License-Identifier: MIT */
/* machine: the nodes and CPUs a calibration uses, memory in a known place, and CPUs kept busy. */
#ifndef NB_LAB_MACHINE_H
#define NB_LAB_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, MAX_CPUS = 64 };

struct machine {
	unsigned int nr_cpus;
	int home, away; /* the node of CPU 0, and another with memory; -1 = there is none */
};

struct machine machine_look(void);
void machine_pin(unsigned int cpu);
void machine_unpin(void); /* the calling thread may run anywhere */

/* `len` bytes, aligned to 2 MiB, not touched; huge: with MADV_HUGEPAGE, else MADV_NOHUGEPAGE. Ends
 * the program when there is no memory: a calibration of half a machine is none. */
char *machine_map(size_t len, bool huge);
void machine_unmap(char *at, size_t len);
/* Touch it all so that it lies on `node`; its policy is the default afterwards. */
void machine_fill(char *at, size_t len, int node);
/* Move pages of `step` bytes to a node, all in one call; how many are not there afterwards. */
size_t machine_move(char *at, size_t len, size_t step, int node);

/* Every CPU but CPU 0 spins in a process of its own, so that the CPUs share what runs them as in a
 * workload. */
struct busy {
	pid_t pids[MAX_CPUS];
	unsigned int nr;
};
void machine_make_busy(struct busy *b, const struct machine *m);
void machine_end_busy(struct busy *b);

/* A counter of /proc/vmstat. */
uint64_t machine_counter(const char *name);
/* Write a value into a file of /proc or /sys; the program ends when that fails. */
void machine_set(const char *path, const char *value);

#endif
