/* SPDX-License-Identifier: MIT */
/*
 * fuzz_replay: the events of a recording, 40 bytes each, as a program to play again: whatever they
 * say, what comes out is a sound load, or a line that says why not; and it can be run.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../sim/replay.h"
#include "../sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WHY_LEN = 256, NODES = 2 };

static const char machine[] = "[machine]\ntopology = 2 nodes x 2 cpus x 1G\n";

static int16_t node_of(int16_t node)
{
	return node >= 0 && node < NODES ? node : NB_NO_NODE;
}

/* As the reader of recordings would let it pass: in range and in order. */
static struct nb_event passable(const uint8_t *data, uint64_t not_before)
{
	struct nb_event e;

	memcpy(&e, data, sizeof(e));
	e.type %= NB_NR_EVENTS;
	e.huge &= 1;
	e.write &= 1;
	e.node_from = node_of(e.node_from);
	e.node_to = node_of(e.node_to);
	if (e.time_ns < not_before)
		e.time_ns = not_before;
	return e;
}

static bool feed(struct sim_replay *r, const uint8_t *data, size_t size)
{
	uint64_t last_ns = 0;
	char why[WHY_LEN];

	for (size_t at = 0; at + sizeof(struct nb_event) <= size; at += sizeof(struct nb_event)) {
		const struct nb_event e = passable(data + at, last_ns);

		why[0] = '\0';
		if (sim_replay_event(r, &e, why, sizeof(why))) {
			if (!why[0])
				abort();
			return false;
		}
		last_ns = e.time_ns;
	}
	return true;
}

/* A few ticks of it: all of it could take for ever. */
static void run(const struct sim_model *m, struct sim_load *load)
{
	const struct sim_options options = {.seed = 1, .check = true};
	struct nb_config config;
	struct nb_result result;
	char why[WHY_LEN];
	int err;

	load->time_limit_s = 0.02;
	nb_config_from_system(&config, nb_system_find("balancenuma-v8"));
	err = sim_run(&result, m, load, &config, &options, why, sizeof(why));
	if (err && err != -ENOMEM && err != -ENOSPC)
		abort();
	if (!err)
		nb_result_free(&result);
}

static void play(const struct sim_job *job)
{
	struct sim_model m;
	struct sim_load load;
	char why[WHY_LEN] = "";

	if (sim_model_parse(&m, "fuzz", machine, sizeof(machine) - 1, why, sizeof(why)))
		abort();
	if (!sim_load_resolve(&load, job, &m, why, sizeof(why))) {
		if (sim_load_check(&load, &m))
			abort();
		run(&m, &load);
		sim_load_free(&load);
	} else if (!why[0]) {
		abort();
	}
	sim_model_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_replay *r = sim_replay_new("fuzz");
	struct sim_job *job = NULL;
	char why[WHY_LEN] = "";

	if (!r)
		return 0;
	if (!feed(r, data, size)) {
		sim_replay_free(r);
		return 0;
	}
	if (sim_replay_job(&job, r, size % 2 ? "memory=0.5,thp=never" : NULL, why, sizeof(why))) {
		if (!why[0])
			abort();
		return 0;
	}
	play(job);
	sim_job_free(job);
	return 0;
}
