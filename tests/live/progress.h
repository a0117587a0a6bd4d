/* SPDX-License-Identifier: MIT */
/* progress: threads of a test that say so when they did something, and what ends a test in which
 * one of them does not. */
#ifndef NB_TESTS_LIVE_PROGRESS_H
#define NB_TESTS_LIVE_PROGRESS_H

/*
 * Watch threads 0 .. n - 1 from now on: when one of them does nothing for a minute
 * (PROGRESS_SECONDS in the environment: for so long) the program ends by SIGALRM, with a line on
 * stderr that names it.
 */
void progress_watch(int n);
/* Thread i did something. */
void progress_step(int i);
/* Thread i has ended. */
void progress_end(int i);

#endif
