/* SPDX-License-Identifier: MIT */
/*
 * load_parts: how a job becomes a load; private to sim/load*.c.
 *
 * Variables get their values in stages: the machine's and the job's own first, then the process's
 * (proc, procs, threads), then the thread's. One whose stage has not come has no value (NaN), and
 * neither has a job's variable that uses it.
 */
#ifndef NB_SIM_LOAD_PARTS_H
#define NB_SIM_LOAD_PARTS_H

#include "expr.h"
#include "jobfile.h"

enum sim_stage { SIM_STAGE_JOB, SIM_STAGE_PROCESS, SIM_STAGE_THREAD };

/* In the order of sim_job_builtin. */
enum sim_builtin {
	SIM_VAR_CPUS,
	SIM_VAR_NODES,
	SIM_VAR_CPUNODES,
	SIM_VAR_MEM,
	SIM_VAR_NODE_CPUS,
	SIM_VAR_PROC,
	SIM_VAR_PROCS,
	SIM_VAR_THREAD,
	SIM_VAR_THREADS,
	SIM_NR_BUILTINS
};

struct sim_resolver {
	struct sim_job_reader r; /* for messages; r.job is only read */
	const struct sim_job *job;
	const struct sim_model *m;
	struct sim_load *load;
	struct sim_var vars[SIM_NR_BUILTINS + SIM_JOB_MAX_VARS];
	uint8_t stage[SIM_JOB_MAX_VARS];      /* enum sim_stage at which the job's variable gets its
						 value */
	uint64_t work;			      /* bytes of expressions evaluated so far */
	uint64_t items;			      /* phases and areas made so far */
	uint32_t group_number, group_threads; /* the thread among those of its section */
	/* Nodes as policies count them: those with CPUs, then those with memory alone; by index. */
	unsigned int nr_cpu_nodes, nr_nodes;
	uint16_t node[NB_MAX_NODES];
};

/* ---- load_values.c ---- */

int sim_resolver_init(struct sim_resolver *x, struct sim_load *load, const struct sim_job *job,
	const struct sim_model *m, char *why, size_t why_len);

/* A builtin variable of the stage was set: give the job's variables of that stage and later their
 * values. */
int sim_resolve_vars(struct sim_resolver *x, enum sim_stage stage);

/* So many phases or areas more: -E2BIG where that is more than anybody means. */
int sim_resolve_items(struct sim_resolver *x, uint32_t more, uint32_t line);

/* A text, what it is called and where it is: for messages. */
struct sim_text {
	const char *text, *name;
	uint32_t line;
};

/* The value of t->text in min..max; -EINVAL, -ERANGE with a line. */
int sim_resolve_number(struct sim_resolver *x, struct sim_text t, double min, double max,
	const char *unit, double *out);
/* The same rounded down to a whole number. */
int sim_resolve_count(
	struct sim_resolver *x, struct sim_text t, uint32_t min, uint32_t max, uint32_t *out);

/* default, local, noop, preferred:E, bind:LIST, interleave:LIST. */
int sim_resolve_policy(struct sim_resolver *x, struct sim_text t, struct nb_policy *out);
/* all, node:E, nodes:LIST as a mask of CPUs, malloc'ed; *out = NULL for all. */
int sim_resolve_cpus(struct sim_resolver *x, struct sim_text t, uint64_t **out);

/* ---- load_phase.c ---- */

/* The phases of one thread of section `s` in process `p`, malloc'ed. */
int sim_resolve_phases(struct sim_resolver *x, struct sim_thread_load *t,
	const struct sim_process_load *p, const struct sim_job_section *s);

#endif
