/* SPDX-License-Identifier: MIT */
/* live_record: writes down what the agents of a session decide, while the program runs. */
#ifndef NB_CLI_LIVE_RECORD_H
#define NB_CLI_LIVE_RECORD_H

#include <stddef.h>
#include "../live/session.h"

struct live_record;

/* Start recording the session's ring to `path`. `job` and `system` are names for the reader. 0 or
 * -errno. */
int live_record_start(struct live_record **out, struct nb_session *s, const char *path,
	const char *job, const char *system, char *why, size_t why_len);
/* The recording appears, or a line in `why` says why not. *lost: events that found no room. */
int live_record_finish(struct live_record *r, uint64_t *lost, char *why, size_t why_len);

#endif
