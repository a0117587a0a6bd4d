/* SPDX-License-Identifier: MIT */
/*
 * replay: a recording of a running program, made into a job. Events go in, in order; out comes what
 * the program did, as far as the recording tells: processes, threads, how long each ran, what
 * memory they had and who used which block of 2 MiB when. What the recorded machine and system
 * decided is not taken over: the simulated ones decide anew.
 *
 * How samples become use
 *  - A block belongs, at each moment, to the thread whose sample of it is nearest in time. So a
 *    block that is sampled seldom, because it is settled, is used no less than others.
 *  - A sample weighs less when its armed page waited long for a touch: the block is used seldom.
 *  - The life of a process is cut into intervals. In each a thread runs as long as it did, with its
 *    accesses spread over the blocks it had then, and sleeps as long as it did: each at its own
 * pace. Waiting for a CPU is not taken over.
 *  - A block is touched first by who ran, on the node where it was found, in the interval in which
 * it was found; all threads of the process wait for that.
 */
#ifndef NB_SIM_REPLAY_H
#define NB_SIM_REPLAY_H

#include "../engine/events.h"
#include "job.h"

struct sim_replay;

/* `name` is the recording's, for tables and messages. NULL on no memory. */
struct sim_replay *sim_replay_new(const char *name);
/* NULL is allowed. */
void sim_replay_free(struct sim_replay *r);

/* The next event. 0, or -errno with one line in `why`. */
int sim_replay_event(struct sim_replay *r, const struct nb_event *e, char *why, size_t why_len);

/*
 * All events are in: a job, which owns `r` from now on (also on error). overrides:
 * "memory=0.5,thp=never" or NULL: memory is the share of their run time that threads wait for
 * memory, thp as of an area. -EINVAL: the recording is not of a running program, or says nothing of
 * its memory; -E2BIG.
 */
int sim_replay_job(struct sim_job **job, struct sim_replay *r, const char *overrides, char *why,
	size_t why_len);

/* As sim_load_resolve, for such a job. */
int sim_replay_resolve(struct sim_load *load, const struct sim_job *job, const struct sim_model *m,
	char *why, size_t why_len);

#endif
