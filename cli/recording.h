/* SPDX-License-Identifier: MIT */
/* recording: a job that is a recording of a running program. */
#ifndef NB_CLI_RECORDING_H
#define NB_CLI_RECORDING_H

#include <stddef.h>

struct sim_job;

/* As sim_job_load, but the file may be a recording too: told by its first bytes. */
int recording_or_job(struct sim_job **job, const char *source, char *why, size_t why_len);

#endif
