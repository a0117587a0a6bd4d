/* SPDX-License-Identifier: MIT */
/*
 * job: what runs on the simulated machine. Two forms: struct sim_job is the file (INI, like fio's),
 * with expressions as text; struct sim_load is the job resolved for one machine: numbers only.
 *
 * Expressions: integers with K M G T suffixes, decimals, + - * / % ( ), min(a,b), max(a,b), and the
 * variables cpus (usable CPUs), nodes (nodes with memory), cpunodes (nodes with CPUs), mem (bytes
 * of all nodes), proc (instance number, from 0), procs, thread (number in the process, from 0),
 * threads, node_cpus (cpus / cpunodes), and those defined in [global] as `var NAME = value`, which
 * a caller may override: "jobname:warehouses=8".
 */
#ifndef NB_SIM_JOB_H
#define NB_SIM_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include "../engine/machine.h"
#include "model.h"

enum sim_thp { SIM_THP_ALWAYS, SIM_THP_NEVER };

enum sim_phase_kind {
	SIM_PHASE_SWEEP,   /* touch the slice in address order, `loops` times (or until `time`) */
	SIM_PHASE_UNIFORM, /* touch pages at random, each alike, `bytes` in all (or until `time`) */
	SIM_PHASE_ZIPF,	   /* page popularity by rank^-theta, ranks scattered over the slice */
	SIM_PHASE_CHASE,   /* as uniform, but each access waits for the one before: latency-bound */
	SIM_PHASE_HOTSET,  /* `hot_ratio` of the pages get `hot_share` of the accesses */
	SIM_PHASE_COMPUTE, /* CPU only, `time` of run time */
	SIM_PHASE_SLEEP,   /* off the CPU, `time` */
	SIM_PHASE_BARRIER, /* wait for every thread of the process */
	SIM_PHASE_POLICY,  /* set_mempolicy for this thread */
	SIM_PHASE_MBIND,   /* mbind the slice: policy, perhaps lazy */
	SIM_PHASE_MAP,	   /* mmap the area (areas with `late` are not there from the start) */
	SIM_PHASE_UNMAP,
	SIM_PHASE_GOTO, /* continue at phase `target`, `loops` times */
	SIM_NR_PHASE_KINDS
};

enum sim_slice {
	SIM_SLICE_ALL,	/* the whole area */
	SIM_SLICE_OWN,	/* the thread's 1/threads of it */
	SIM_SLICE_PART, /* [from, to) */
};

struct sim_phase {
	uint8_t kind;	/* enum sim_phase_kind */
	uint8_t slice;	/* enum sim_slice */
	bool main_only; /* only thread 0 does it; the others wait until it is done */
	bool lazy;	/* MBIND: MPOL_MF_LAZY */
	bool kernel;	/* accesses by the kernel on the program's behalf: get_user_pages, as for
			   direct I/O */
	bool lookup; /* accesses that look pages up and must not disturb: no hint fault, nothing is
			repaired */
	uint16_t area;	 /* index into the process's areas */
	uint16_t target; /* GOTO: phase index */
	uint32_t line;	 /* of the job file, for messages */
	double loops;	 /* SWEEP: passes; GOTO: times; 0 = not limited by loops. UNMAP: by how many
			    threads, until it goes; 0 = the first */
	double bytes;	 /* random patterns: bytes touched; 0 = not limited by bytes */
	double time_s;	 /* COMPUTE, SLEEP; a limit for the others; 0 = none */
	double write_ratio;	     /* share of accesses that write */
	double theta;		     /* ZIPF */
	double hot_ratio, hot_share; /* HOTSET */
	double shared_ratio; /* random patterns on slice=own: share of accesses that go to the whole
				area instead */
	double access_bytes; /* bytes per access (64 = a line) */
	double compute_ns;   /* CPU time spent per access besides memory */
	uint64_t from, to;   /* SIM_SLICE_PART: offsets in the area, page aligned */
	/* UNIFORM on a part: popularity of each of its 2 MiB blocks; the pages of a block share it
	 * alike. NULL: all pages are alike. Borrowed. */
	const float *weights;
	/* Touching kinds: another area, of which the thread touches the first page all the time as
	 * well: its index + 1; 0 = none. */
	uint16_t with;
	struct nb_policy policy; /* POLICY, MBIND */
};

struct sim_area {
	char name[SIM_NAME];
	uint64_t bytes;	 /* rounded up to pages */
	uint64_t offset; /* how far its start is from a 2 MiB boundary, bytes; malloc'ed memory has
			    16 pages */
	uint8_t thp;	 /* enum sim_thp */
	bool late;	 /* mapped by a MAP phase, not at the start */
	bool shared;	 /* one copy for all instances of the group (MAP_SHARED) */
	struct nb_policy policy; /* mode DEFAULT: none */
	/* By block of 2 MiB: the number of the thread that uses it most, UINT32_MAX = nobody.
	 * Borrowed; NULL: slices say it. */
	const uint32_t *owners;
};

/* One thread, resolved. */
struct sim_thread_load {
	uint32_t process;	 /* index into sim_load.processes */
	uint32_t number;	 /* in its process */
	uint64_t *cpus;		 /* affinity: bit = CPU id, [ (cpu_ids + 63) / 64 ]; NULL = all */
	struct nb_policy policy; /* at start */
	uint32_t nr_phases;
	struct sim_phase *phases;
};

struct sim_process_load {
	char name[SIM_NAME];
	double start_s;	      /* earliest start */
	uint32_t pool;	      /* processes of one pool run at most `concurrency` at a time */
	uint32_t concurrency; /* 0 = no limit */
	uint32_t first_thread, nr_threads; /* in sim_load.threads */
	uint32_t nr_areas;
	struct sim_area *areas;
	uint32_t libraries; /* shared libraries that it maps */
	bool has_main;	    /* thread 0 is the one that makes the others */
};

/* Where a job says nothing: ld.so, libc and libnuma. */
enum { SIM_LIBRARIES = 3 };

struct sim_load {
	char name[SIM_NAME];
	uint32_t nr_processes, nr_threads;
	struct sim_process_load *processes;
	struct sim_thread_load *threads;
	double time_limit_s; /* stop the run there even if not finished; 0 = none */
	double op_bytes; /* bytes per operation, where throughput is the result; 0 = elapsed time is
			  */
	bool preload_lower_tier; /* start with every area's pages on the slowest tier */
	double background_fill; /* share of each top-tier node that cold memory occupies at start */
};

struct sim_job; /* the parsed file */

/*
 * Read a job file, or a job by name from share/jobs; "name:var=value,var=value" sets variables.
 * `why` gets one line, file:line: what, what was expected. 0 or -errno.
 */
int sim_job_load(struct sim_job **job, const char *source, char *why, size_t why_len);
/*
 * The same for a file already in memory (`file` is used in messages, its base name where the job
 * has no name); overrides: "var=value,var=value" or NULL.
 */
int sim_job_parse(struct sim_job **job, const char *file, const char *text, size_t len,
	const char *overrides, char *why, size_t why_len);
void sim_job_free(struct sim_job *job);
const char *sim_job_name(const struct sim_job *job);
const char *sim_job_description(const struct sim_job *job);

/*
 * A source whose variables have ranges, "specjbb-multi:warehouses=1-12", as one source per value,
 * the first variable changing slowest; without ranges, as itself. At most 10,000. 0; -EINVAL,
 * -E2BIG with a line in why; -ENOMEM. The list is the caller's: sim_job_expand_free.
 */
int sim_job_expand(const char *source, char ***list, size_t *n, char *why, size_t why_len);
void sim_job_expand_free(char **list, size_t n);

/* As sim_list_machines (model.h), for share/jobs. */
int sim_list_jobs(struct sim_listing **list, size_t *nr);

/* Resolve for a machine. Refuses what cannot run there (larger than memory, no such node) with one
 * line. */
int sim_load_resolve(struct sim_load *load, const struct sim_job *job, const struct sim_model *m,
	char *why, size_t why_len);
void sim_load_free(struct sim_load *load);
const char *sim_load_check(const struct sim_load *load, const struct sim_model *m);

#endif
