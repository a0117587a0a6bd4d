/* SPDX-License-Identifier: MIT */
/*
 * calibrate: what the kernel's work costs on this machine, for the [costs] of a machine file. No
 * workload is run: what is measured here is used to predict them.
 *
 * Everything is measured on CPU 0, and twice: alone, and with every other CPU busy ("_busy"). An
 * emulated CPU that shares a real one with others gets part of it, which only the mean of many
 * shows.
 */
#ifndef NB_LAB_CALIBRATE_H
#define NB_LAB_CALIBRATE_H

#include "machine.h"

struct calibration {
	struct machine machine;
	bool busy; /* the other CPUs are */
};

/* memory.c */
void calibrate_clearing(const struct calibration *c); /* memset, MiB/s */
void calibrate_touching(const struct calibration *c); /* minor faults, small and huge */
/* The same of memory that nobody touched since the machine started: only once, before all else. */
void calibrate_cold(const struct calibration *c);
void calibrate_moving(const struct calibration *c); /* move_pages */
/* hints.c: needs numa_balancing=1 and debugfs */
void calibrate_hints(const struct calibration *c); /* hint faults with and without a move; scans */
/* wander.c: how often tasks are moved that give no reason */
void calibrate_wandering(const struct calibration *c);
/* tasks.c */
void calibrate_tasks(const struct calibration
		*c); /* system calls, switches, new threads and processes, TLB flushes */

#endif
