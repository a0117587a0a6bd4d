/* SPDX-License-Identifier: MIT */
/* top_screen: `numabal top` on a terminal. */
#ifndef NB_CLI_TOP_SCREEN_H
#define NB_CLI_TOP_SCREEN_H

#include "top_page.h"

/*
 * Show until q, a signal, or `iterations` looks (0 = no end). pid: of the process to begin with, 0
 * = the list. 0; -ENOTTY: the terminal's type is not known; -ENOMEM; or the number of the signal
 * that ended it. The terminal is as it was before in every case.
 */
int top_screen(struct top_data *d, uint32_t pid, double delay_s, int64_t iterations);

#endif
