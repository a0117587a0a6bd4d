/* SPDX-License-Identifier: MIT */
/* conform: what the files of the conformance suite share. */
#ifndef NB_TESTS_LIVE_CONFORM_H
#define NB_TESTS_LIVE_CONFORM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	AREA = 16 << 20,
};

struct scenario {
	const char *name;
	void (*run)(void);
};
extern const struct scenario conform_io[], conform_memory[], conform_process[];

/* Fresh anonymous memory of AREA bytes, filled with a pattern; ends the program when there is none.
 */
char *area_new(void);
void fill(char *p, size_t bytes, unsigned int seed);
/* A checksum of what is there. */
uint64_t sum(const char *p, size_t bytes);
/* Print what a call answered: its value when small, or the name of errno. */
void say_rc(const char *what, long rc);
/* Print a checksum. */
void say_sum(const char *what, const char *p, size_t bytes);
/* What a read (or a write) of one byte does: "ok", or the signal and its code. */
const char *touch(volatile char *p, int write);
/* Give the agent time to arm what it wants. */
void age(void);
/* Wait for a child and print how it ended. */
void say_child(const char *what, pid_t pid);

#endif
