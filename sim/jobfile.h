/* SPDX-License-Identifier: MIT */
/*
 * jobfile: a job file as read, private to sim/job*.c and sim/load*.c. Everything is text still:
 * expressions get their values when the job meets a machine (load.c). Variables written "$NAME"
 * have been replaced by their text already.
 */
#ifndef NB_SIM_JOBFILE_H
#define NB_SIM_JOBFILE_H

#include "inifile.h"
#include "job.h"

enum {
	SIM_JOB_MAX_VARS = 64,
	SIM_JOB_MAX_SECTIONS = 256,
	SIM_JOB_MAX_PHASES = 1000,    /* of a section */
	SIM_JOB_MAX_AREAS = 256,      /* of a process */
	SIM_JOB_MAX_THREADS = 100000, /* of a job, once resolved */
	SIM_JOB_MAX_ITEMS = 1000000,  /* phases of all threads, and areas of all processes */
	SIM_JOB_MAX_WORK = 1 << 28,   /* bytes of expressions evaluated, some seconds' worth */
	SIM_JOB_MAX_EXPANDED = 10000, /* sources that one with ranges stands for */
};

/* X(NAME, name): what may follow a phase's kind, as name=value. */
#define SIM_PHASE_ATTRS(X)                                                                         \
	X(AREA, area)                                                                              \
	X(SLICE, slice)                                                                            \
	X(WITH, with)                                                                              \
	X(LOOPS, loops)                                                                            \
	X(BYTES, bytes)                                                                            \
	X(TIME, time)                                                                              \
	X(WRITE, write)                                                                            \
	X(THETA, theta)                                                                            \
	X(HOT, hot)                                                                                \
	X(SHARE, share)                                                                            \
	X(SHARED, shared)                                                                          \
	X(ACCESS, access)                                                                          \
	X(COMPUTE, compute)                                                                        \
	X(POLICY, policy)                                                                          \
	X(TARGET, target)                                                                          \
	X(IF, if)

enum sim_phase_attr {
#define X(NAME, name) SIM_ATTR_##NAME,
	SIM_PHASE_ATTRS(X)
#undef X
		SIM_NR_ATTRS
};

/* What a kind of phase is called and takes. */
struct sim_phase_kind_info {
	const char *name;
	uint32_t attrs;	    /* bit = enum sim_phase_attr: allowed */
	uint32_t required;  /* of these, at least all */
	double write_ratio; /* default */
	bool may_be_lazy;
	bool touches; /* accesses memory */
	bool random;  /* in random order */
};
extern const struct sim_phase_kind_info sim_phase_kinds[SIM_NR_PHASE_KINDS];
extern const char *const sim_phase_attr_names[SIM_NR_ATTRS];

struct sim_job_phase {
	uint32_t line;
	uint8_t kind; /* enum sim_phase_kind */
	bool main_only, lazy, kernel, lookup;
	char *text;			 /* owns what the pointers below point to */
	const char *label;		 /* or NULL */
	const char *value[SIM_NR_ATTRS]; /* or NULL */
	uint16_t target;		 /* GOTO: index in the section */
};

struct sim_job_area {
	uint32_t line;
	bool shared, late;
	uint8_t thp;
	char *text;				   /* owns what the pointers below point to */
	const char *name, *size, *offset, *policy; /* offset, policy: or NULL */
};

/* A value and where it was said; text == NULL: not said. */
struct sim_job_text {
	char *text;
	uint32_t line;
};

/* X(field, key): the keys of a section that come once */
#define SIM_SECTION_KEYS(X)                                                                        \
	X(process, "process")                                                                      \
	X(instances, "instances")                                                                  \
	X(concurrency, "concurrency")                                                              \
	X(libraries, "libraries")                                                                  \
	X(threads, "threads")                                                                      \
	X(start, "start")                                                                          \
	X(cpus, "cpus")                                                                            \
	X(policy, "policy")

struct sim_job_section {
	char name[SIM_NAME];
	uint32_t line;
	uint32_t process; /* section that has the address space: this one, or that named by
			     `process` */
#define X(field, key) struct sim_job_text field##_text;
	SIM_SECTION_KEYS(X)
#undef X
	uint32_t nr_areas, nr_phases;
	struct sim_job_area *areas;
	struct sim_job_phase *phases;
};

struct sim_job_var {
	char name[SIM_NAME];
	struct sim_job_text value;
	bool overridden; /* by the caller: line is where the file defines it */
};

struct sim_replay;

struct sim_job {
	struct sim_replay *replay; /* a recording: owned, and all there is besides the names */
	char *file;		   /* for messages */
	char name[SIM_NAME];
	char description[SIM_TEXT];
	struct sim_job_text op_bytes, time_limit, background_fill;
	bool preload_lower_tier;
	uint32_t nr_vars, nr_sections;
	struct sim_job_var vars[SIM_JOB_MAX_VARS];
	struct sim_job_section *sections;
};

/* Where messages go, with the job they are about. */
struct sim_job_reader {
	struct sim_job *job;
	const struct sim_ini *ini;
	char *why;
	size_t why_len;
};

/* "FILE:LINE: ..." into why; returns err. Line 0: what the caller set, no line of the file. */
__attribute__((format(printf, 4, 5))) int sim_job_refuse(
	const struct sim_job_reader *r, uint32_t line, int err, const char *format, ...);

/* The names a job's expressions may use besides its own variables; NULL past the end. */
const char *sim_job_builtin(size_t i);

/* job_vars.c: [global]'s variables, overrides ("a=1,b=2" or NULL), and "$NAME" replaced in a text
 * (malloc'ed). */
int sim_job_read_vars(
	struct sim_job_reader *r, const struct sim_ini_section *global, const char *overrides);
int sim_job_substitute(struct sim_job_reader *r, char **out, const char *text, uint32_t line);

/* Cut at the next comma that is not inside parentheses; returns what follows it, or NULL. */
char *sim_cut_at_comma(char *text);

/* job_expand.c: the length of the job's name in "NAME:var=value"; what follows the colon are
 * overrides. */
size_t sim_job_source_name(const char *source);

/* job_phase.c */
int sim_job_read_area(
	struct sim_job_reader *r, struct sim_job_area *a, const struct sim_ini_entry *e);
int sim_job_read_phase(
	struct sim_job_reader *r, struct sim_job_phase *p, const struct sim_ini_entry *e);

#endif
