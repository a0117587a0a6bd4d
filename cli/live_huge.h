/* SPDX-License-Identifier: MIT */
/* live_huge: how much of managed memory huge pages map, by the kernel's own books (smaps). */
#ifndef NB_CLI_LIVE_HUGE_H
#define NB_CLI_LIVE_HUGE_H

#include <stdio.h>
#include "../live/session.h"

struct live_huge {
	uint64_t mapped_bytes;		/* managed memory that is in page tables */
	uint64_t huge_bytes;		/* of these, by huge pages */
	unsigned int processes, unread; /* that were looked at; that were not to be read */
};

/* Add what a file like /proc/PID/smaps says of mappings that numabal backs. */
void live_huge_add(struct live_huge *h, FILE *smaps);
/* All processes of a session that run. Takes some 0.1 ms for each MiB that is mapped by pages: only
 * for who asks. */
void live_huge_look(struct live_huge *h, const struct nb_session *s);

#endif
