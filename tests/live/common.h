/* SPDX-License-Identifier: MIT */
/* common: what several of the programs here do alike. */
#ifndef NB_TESTS_LIVE_COMMON_H
#define NB_TESTS_LIVE_COMMON_H

#include <stddef.h>

/* Fresh anonymous memory; ends the program with status 3 when there is none. */
char *fresh_area(size_t bytes);
/* The calling thread runs on that CPU alone; -1: anywhere, as before. */
void pin_to(int cpu);

#endif
