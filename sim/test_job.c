/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "job.h"
#include "jobfile.h"

static char why[512];
static struct sim_model four; /* 4 nodes x 4 cpus x 4G */
static struct sim_model odd;  /* node 0: no memory; 1: both; 2: memory only */

static void make_model(struct sim_model *m, const char *topology)
{
	char text[256];

	snprintf(text, sizeof(text), "[machine]\nname = m\ntopology = %s\n", topology);
	if (sim_model_parse(m, "m.ini", text, strlen(text), why, sizeof(why)))
		fail_msg("%s", why);
}

static int resolve(
	struct sim_load *load, const char *text, const char *overrides, const struct sim_model *m)
{
	struct sim_job *job;
	int err;

	why[0] = '\0';
	err = sim_job_parse(&job, "dir/j.ini", text, strlen(text), overrides, why, sizeof(why));
	if (err)
		return err;
	err = sim_load_resolve(load, job, m, why, sizeof(why));
	sim_job_free(job);
	return err;
}

static void assert_resolves(struct sim_load *load, const char *text)
{
	if (resolve(load, text, NULL, &four))
		fail_msg("refused: %s", why);
	if (sim_load_check(load, &four))
		fail_msg("unsound: %s", sim_load_check(load, &four));
}

static void assert_refused(const char *text, int err, const char *line)
{
	struct sim_load load;

	assert_int_equal(resolve(&load, text, NULL, &four), err);
	assert_string_equal(why, line);
	assert_false(strchr(why, '\n'));
}

/* A section [a] with this phase, on line 3, and an area of 1 MiB called m. */
static void assert_phase_refused(const char *phase, int err, const char *what)
{
	char text[512], line[512];

	snprintf(text, sizeof(text), "[a]\narea = m size=1M\nphase = %s\n", phase);
	snprintf(line, sizeof(line), "dir/j.ini:3: %s", what);
	assert_refused(text, err, line);
}

static struct sim_phase only_phase(const char *phase)
{
	struct sim_load load;
	struct sim_phase p;
	char text[512];

	snprintf(text, sizeof(text), "[a]\nthreads = 2\narea = m size=1M\nphase = %s\n", phase);
	assert_resolves(&load, text);
	assert_int_equal(load.threads[0].nr_phases, 1);
	p = load.threads[0].phases[0];
	sim_load_free(&load);
	return p;
}

/* ---- [global] ---- */

static void global_values(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[global]\nname = n\nop_bytes = 4K\ntime_limit = 2*30s\npreload = lower_tier\n"
		"background_fill = 0.25\n[a]\nphase = compute time=1\n");
	assert_string_equal(load.name, "n");
	assert_true(load.op_bytes == 4096);
	assert_true(load.time_limit_s == 60);
	assert_true(load.preload_lower_tier);
	assert_true(load.background_fill == 0.25);
	sim_load_free(&load);
	assert_resolves(&load, "[a]\nphase = compute time=1\n");
	assert_string_equal(load.name, "j");
	assert_true(load.op_bytes == 0 && load.time_limit_s == 0 && !load.preload_lower_tier);
	sim_load_free(&load);
}

static void global_values_out_of_range(void **state)
{
#define REST "[a]\nphase = compute time=1\n"
	(void)state;
	assert_refused("[global]\ntime_limit = 0\n" REST, -ERANGE,
		"dir/j.ini:2: time_limit = 0 is 0, expected 1e-06 to 1e+09 s");
	assert_refused("[global]\ntime_limit = -3\n" REST, -ERANGE,
		"dir/j.ini:2: time_limit = -3 is -3, expected 1e-06 to 1e+09 s");
	assert_refused("[global]\nop_bytes = 1/0\n" REST, -EINVAL,
		"dir/j.ini:2: op_bytes: '1/0': division by zero");
	assert_refused("[global]\nbackground_fill = 1.5\n" REST, -ERANGE,
		"dir/j.ini:2: background_fill = 1.5 is 1.5, expected 0 to 0.99");
	assert_refused("[global]\npreload = yes\n" REST, -EINVAL,
		"dir/j.ini:2: preload = yes: expected lower_tier");
	assert_refused("[global]\ntime_limt = 1\n" REST, -EINVAL,
		"dir/j.ini:2: [global] has no key 'time_limt'; did you mean 'time_limit'?");
	assert_refused("[global]\ntime_limit =\n" REST, -EINVAL,
		"dir/j.ini:2: time_limit without a value");
}

/* ---- variables ---- */

static void variables_follow_the_stage(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[global]\nvar base = 1M\nvar mine = base * (proc + 1)\nvar node = thread % 4\n"
		"[a]\ninstances = 2\nthreads = 4\narea = m size=mine\ncpus = node:node\n"
		"phase = sweep loops=base/1M+thread\n");
	assert_int_equal(load.nr_processes, 2);
	assert_int_equal(load.processes[0].areas[0].bytes, 1 << 20);
	assert_int_equal(load.processes[1].areas[0].bytes, 2 << 20);
	assert_true(load.threads[3].phases[0].loops == 4);
	assert_true(
		load.threads[4].phases[0].loops == 1); /* the next process counts from 0 again */
	assert_int_equal(load.threads[5].cpus[0], 0xf0);
	sim_load_free(&load);
}

static void variables_of_the_machine(void **state)
{
	struct sim_load load;

	(void)state;
	if (resolve(&load,
		    "[a]\nthreads = 2\nphase = sweep area=m "
		    "loops=cpus*1M+nodes*10K+cpunodes*100+node_cpus\n"
		    "area = m size=mem/1G*4K\n",
		    NULL, &odd))
		fail_msg("%s", why);
	/* 2 CPUs on each of 2 nodes; memory on 2: 16G and 8G */
	assert_true(load.threads[0].phases[0].loops == 4 * 1048576.0 + 2 * 10240 + 2 * 100 + 2);
	assert_int_equal(load.processes[0].areas[0].bytes, 24 * 4096);
	sim_load_free(&load);
}

static void callers_set_variables(void **state)
{
	static const char text[] =
		"[global]\nvar n = 2\nvar twice = n * 2\nvar thp = always\n"
		"[a]\nthreads = twice\narea = m size=1M thp=$thp\nphase = sweep\n";
	struct sim_load load;

	(void)state;
	assert_int_equal(resolve(&load, text, NULL, &four), 0);
	assert_int_equal(load.nr_threads, 4);
	assert_int_equal(load.processes[0].areas[0].thp, SIM_THP_ALWAYS);
	sim_load_free(&load);
	assert_int_equal(resolve(&load, text, "n=min(3,7),thp=never", &four), 0);
	assert_int_equal(load.nr_threads, 6);
	assert_int_equal(load.processes[0].areas[0].thp, SIM_THP_NEVER);
	sim_load_free(&load);
	assert_int_equal(resolve(&load, text, "tpp=never", &four), -EINVAL);
	assert_string_equal(why, "dir/j.ini: this job has no variable 'tpp'; did you mean 'thp'?");
	assert_int_equal(resolve(&load, text, "n=1,n=2", &four), -EINVAL);
	assert_string_equal(why, "dir/j.ini: variable 'n' is set twice");
	assert_int_equal(resolve(&load, text, "n=", &four), -EINVAL);
	assert_int_equal(resolve(&load, text, "=1", &four), -EINVAL);
	assert_int_equal(resolve(&load, text, "n", &four), -EINVAL);
	assert_int_equal(resolve(&load, text, "n=1,", &four), -EINVAL);
	assert_int_equal(resolve(&load, text, "n=$thp", &four), -EINVAL);
	assert_int_equal(resolve(&load, text, "thp=sometimes", &four), -EINVAL);
	assert_string_equal(why, "dir/j.ini:7: thp=sometimes: expected always or never");
	assert_int_equal(resolve(&load, text, "n=1/0", &four), -EINVAL);
	assert_string_equal(why, "dir/j.ini:2: variable n: '1/0': division by zero");
}

static void variables_that_are_none(void **state)
{
	(void)state;
	assert_refused("[global]\nvar cpus = 2\n" REST, -EINVAL,
		"dir/j.ini:2: 'cpus' can't be defined, it is there");
	assert_refused("[global]\nvar min = 2\n" REST, -EINVAL,
		"dir/j.ini:2: 'min' can't be defined, it is there");
	assert_refused("[global]\nvar x = 1\nvar x = 2\n" REST, -EINVAL,
		"dir/j.ini:3: variable 'x' again");
	assert_refused("[global]\nvar x = 1\nvar  x = 2\n" REST, -EINVAL,
		"dir/j.ini:3: variable 'x' again");
	assert_refused("[global]\nvar 1x = 1\n" REST, -EINVAL,
		"dir/j.ini:2: 'var 1x': expected var NAME = value, NAME of letters, digits and "
		"'_'");
	assert_refused(
		"[global]\nvar x =\n" REST, -EINVAL, "dir/j.ini:2: variable 'x' lacks a value");
	assert_refused("[global]\nvar x = y + 1\nvar y = 1\n" REST, -EINVAL,
		"dir/j.ini:2: variable x: 'y + 1': no variable 'y'");
	assert_refused("[global]\nvar x = x + 1\n" REST, -EINVAL,
		"dir/j.ini:2: variable x: 'x + 1': no variable 'x'");
	assert_refused("[global]\nvar word = never\n[a]\nthreads = word\nphase = compute time=1\n",
		-EINVAL,
		"dir/j.ini:4: threads: 'word': variable 'word' is the word 'never', not a number");
	assert_refused("[a]\nphase = compute time=$x\n", -EINVAL,
		"dir/j.ini:2: this job has no variable 'x'");
	assert_refused("[a]\nphase = compute time=$\n", -EINVAL,
		"dir/j.ini:2: '$' without the name of a variable");
}

static void variables_have_no_value_too_early(void **state)
{
	(void)state;
	assert_refused("[global]\ntime_limit = threads\n" REST, -EINVAL,
		"dir/j.ini:2: time_limit: 'threads': variable 'threads' has no value here");
	assert_refused("[a]\nthreads = threads\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: threads: 'threads': variable 'threads' has no value here");
	assert_refused("[a]\ninstances = proc\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: instances: 'proc': variable 'proc' has no value here");
	assert_refused("[a]\narea = m size=thread\nphase = sweep\n", -EINVAL,
		"dir/j.ini:2: size: 'thread': variable 'thread' has no value here");
	/* and none is left over from the process before */
	assert_refused("[a]\nthreads = 3\nphase = compute time=1\n[b]\ninstances = threads\nphase "
		       "= compute time=1\n",
		-EINVAL, "dir/j.ini:5: instances: 'threads': variable 'threads' has no value here");
}

/* ---- processes and threads ---- */

static void processes_and_threads(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[a]\ninstances = 2\nthreads = cpus/5\nstart = 1 + proc * 500ms\nconcurrency = 1\n"
		"phase = compute time=1\n[b]\nphase = compute time=1\n");
	assert_int_equal(load.nr_processes, 3);
	assert_int_equal(load.nr_threads, 7); /* 16 / 5 rounded down, twice, and one */
	assert_string_equal(load.processes[0].name, "a.0");
	assert_string_equal(load.processes[1].name, "a.1");
	assert_string_equal(load.processes[2].name, "b");
	assert_true(load.processes[1].start_s == 1.5);
	assert_int_equal(load.processes[1].concurrency, 1);
	assert_int_equal(load.processes[0].pool, load.processes[1].pool);
	assert_int_not_equal(load.processes[0].pool, load.processes[2].pool);
	assert_int_equal(load.processes[1].first_thread, 3);
	assert_int_equal(load.threads[4].number, 1);
	assert_null(load.threads[0].cpus);
	sim_load_free(&load);
}

static void counts_out_of_range(void **state)
{
	(void)state;
	assert_refused("[a]\nthreads = 0\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = 0 is 0, expected 1 to 100000");
	assert_refused("[a]\nthreads = cpus/100\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = cpus/100 is 0, expected 1 to 100000");
	assert_refused("[a]\nthreads = -1\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = -1 is -1, expected 1 to 100000");
	assert_refused("[a]\nthreads = 1e30\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = 1e30 is 1e+30, expected 1 to 100000");
	assert_refused("[a]\ninstances = 0\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: instances = 0 is 0, expected 1 to 100000");
	assert_refused("[a]\ninstances = 1000\nthreads = 1000\nphase = compute time=1\n", -E2BIG,
		"dir/j.ini: more than 100000 threads");
	assert_refused("[a]\nstart = -1\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: start = -1 is -1, expected 0 to 1e+09 s");
}

static void sections_that_are_none(void **state)
{
	(void)state;
	assert_refused("", -EINVAL,
		"dir/j.ini: no section besides [global]: expected one for each process or thread "
		"group");
	assert_refused("[global]\nname = x\n", -EINVAL,
		"dir/j.ini: no section besides [global]: expected one for each process or thread "
		"group");
	assert_refused(
		"[a]\n", -EINVAL, "dir/j.ini:1: [a] has no phase: its threads would do nothing");
	assert_refused("[a]\nthread = 3\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: [a] has no key 'thread'; did you mean 'threads'?");
	assert_refused("[a]\nthreads = 1\nthreads = 2\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:3: 'threads' again in [a]");
	assert_refused("[a]\nphase = compute time=1\n[a]\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:3: section [a] again, it began at line 1");
}

static void groups_join_a_process(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[readers]\nprocess = main\nthreads = 3\narea = r size=4K\n"
		"phase = sweep area=m\nphase = sweep area=r\n"
		"[main]\ninstances = 2\nthreads = 2\narea = m size=1M\n"
		"phase = main sweep area=m loops=threads\nphase = compute time=1+thread\n");
	assert_int_equal(load.nr_processes, 2);
	assert_int_equal(load.processes[0].nr_threads, 5);
	assert_int_equal(load.processes[0].nr_areas, 2);
	assert_string_equal(load.processes[1].name, "main.1");
	/* [main] has thread 0, and the groups that join follow in the order of the file */
	assert_true(load.threads[0].phases[0].loops == 5);
	assert_true(load.threads[1].phases[1].time_s == 2);
	assert_int_equal(load.threads[2].phases[0].kind, SIM_PHASE_SWEEP);
	sim_load_free(&load);
}

static void groups_that_can_not_join(void **state)
{
#define MAIN "[main]\nphase = compute time=1\n"
	(void)state;
	assert_refused(MAIN "[b]\nprocess = mian\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:4: no section [mian]; did you mean 'main'?");
	assert_refused(MAIN "[b]\nprocess = main\ninstances = 2\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:5: instances, concurrency and start belong into [main], whose process "
		"this is");
	assert_refused(MAIN "[b]\nprocess = main\nphase = main compute time=1\n", -EINVAL,
		"dir/j.ini:5: main: thread 0 is in [main]");
	assert_refused(MAIN "[b]\nprocess = main\nphase = compute time=1\n"
			    "[c]\nprocess = b\nphase = compute time=1\n",
		-EINVAL, "dir/j.ini:7: [b] has no process of its own, it is in 'main'");
	assert_refused("[b]\nprocess = b\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: [b] has no process of its own, it is in 'b'");
	assert_refused("[main]\narea = m size=4K\nphase = sweep\n[b]\nprocess = main\narea = m "
		       "size=4K\nphase = sweep\n",
		-EINVAL, "dir/j.ini:6: area 'm' again");
}

/* ---- CPUs and policies ---- */

static uint64_t cpus_of(const char *cpus, const struct sim_model *m, uint32_t thread)
{
	struct sim_load load;
	char text[256];
	uint64_t bits;

	snprintf(text, sizeof(text), "[a]\nthreads = 4\ncpus = %s\nphase = compute time=1\n", cpus);
	if (resolve(&load, text, NULL, m))
		fail_msg("%s", why);
	bits = load.threads[thread].cpus ? load.threads[thread].cpus[0] : 0;
	sim_load_free(&load);
	return bits;
}

static void cpus_by_node(void **state)
{
	(void)state;
	assert_int_equal(cpus_of("all", &four, 0), 0);
	assert_int_equal(cpus_of("node:1", &four, 0), 0x00f0);
	assert_int_equal(cpus_of("node:thread", &four, 3), 0xf000);
	assert_int_equal(cpus_of("node:thread*cpunodes/threads", &four, 2), 0x0f00);
	assert_int_equal(cpus_of("nodes:1-2", &four, 0), 0x0ff0);
	assert_int_equal(cpus_of("nodes:0,3", &four, 0), 0xf00f);
	assert_int_equal(cpus_of("nodes:min(1,2),3", &four, 0), 0xf0f0);
	assert_int_equal(cpus_of("nodes:cpunodes/2..cpunodes-1", &four, 0), 0xff00);
	assert_int_equal(
		cpus_of("nodes:cpunodes-1", &four, 0), 0xf000); /* no range: a difference */
	assert_int_equal(cpus_of("nodes:all", &four, 0), 0xffff);
	assert_int_equal(cpus_of("node:1", &odd, 0), 0x0c);
}

static void cpus_that_are_none(void **state)
{
#define CPUS(text) "[a]\ncpus = " text "\nphase = compute time=1\n"
	(void)state;
	assert_refused(CPUS("node:4"), -ERANGE,
		"dir/j.ini:2: cpus: node 4 is 4, expected 0 to 3 on this machine");
	assert_refused(CPUS("node:-1"), -ERANGE,
		"dir/j.ini:2: cpus: node -1 is -1, expected 0 to 3 on this machine");
	assert_refused(CPUS("nodes:1-4"), -ERANGE,
		"dir/j.ini:2: cpus: node 4 is 4, expected 0 to 3 on this machine");
	assert_refused(
		CPUS("nodes:2-1"), -EINVAL, "dir/j.ini:2: cpus: range 2 to 1 runs backwards");
	assert_refused(CPUS("0-3"), -EINVAL,
		"dir/j.ini:2: cpus = 0-3: expected all, node:NODE or nodes:NODES");
	assert_refused(CPUS("nodes:"), -EINVAL,
		"dir/j.ini:2: cpus: '': ends where a number or a name was expected");
	assert_refused(CPUS("nodes:1,"), -EINVAL,
		"dir/j.ini:2: cpus: '': ends where a number or a name was expected");
	assert_refused(CPUS("nodes:1e30"), -ERANGE,
		"dir/j.ini:2: cpus: node 1e30 is 1e+30, expected 0 to 3 on this machine");
}

static struct nb_policy policy_of(const char *policy, const struct sim_model *m)
{
	struct sim_load load;
	struct nb_policy p;
	char text[256];

	snprintf(text, sizeof(text), "[a]\npolicy = %s\nphase = compute time=1\n", policy);
	if (resolve(&load, text, NULL, m))
		fail_msg("%s", why);
	p = load.threads[0].policy;
	sim_load_free(&load);
	return p;
}

static void policies(void **state)
{
	(void)state;
	assert_int_equal(policy_of("default", &four).mode, NB_POLICY_DEFAULT);
	assert_int_equal(policy_of("local", &four).mode, NB_POLICY_LOCAL);
	assert_int_equal(policy_of("preferred:2", &four).mode, NB_POLICY_PREFERRED);
	assert_int_equal(policy_of("preferred:2", &four).nodes[0], 4);
	assert_int_equal(policy_of("bind:1-2", &four).mode, NB_POLICY_BIND);
	assert_int_equal(policy_of("bind:1-2", &four).nodes[0], 6);
	assert_int_equal(policy_of("interleave:all", &four).mode, NB_POLICY_INTERLEAVE);
	assert_int_equal(policy_of("interleave:all", &four).nodes[0], 15);
	assert_int_equal(policy_of("interleave:0,2..3", &four).nodes[0], 13);
	assert_false(policy_of("bind:0", &four).migrate_on_fault);
}

/* Policies count nodes with CPUs first; one without memory stands for the nearest; then memory
 * alone. */
static void policies_on_nodes_of_other_kinds(void **state)
{
	(void)state;
	assert_int_equal(policy_of("bind:0", &odd).nodes[0], 2);
	assert_int_equal(policy_of("bind:1", &odd).nodes[0], 2);
	assert_int_equal(policy_of("bind:2", &odd).nodes[0], 4);
	assert_int_equal(policy_of("interleave:all", &odd).nodes[0], 6);
}

static void policies_that_are_none(void **state)
{
#define POLICY(text) "[a]\npolicy = " text "\nphase = compute time=1\n"
	(void)state;
	assert_refused(POLICY("bnid:0"), -EINVAL,
		"dir/j.ini:2: policy = bnid:0: expected default, local, preferred:NODE, bind:NODES "
		"or interleave:NODES");
	assert_refused(POLICY("bind"), -EINVAL,
		"dir/j.ini:2: policy = bind: expected default, local, preferred:NODE, bind:NODES "
		"or interleave:NODES");
	assert_refused(POLICY("preferred:0-1"), -EINVAL,
		"dir/j.ini:2: policy = preferred:0-1: expected one node");
	assert_refused(POLICY("bind:9"), -ERANGE,
		"dir/j.ini:2: policy: node 9 is 9, expected 0 to 3 on this machine");
	assert_refused(POLICY("noop"), -EINVAL, "dir/j.ini:2: policy = noop at start");
	assert_phase_refused("policy policy=noop", -EINVAL,
		"policy=noop: expected a lazy mbind, nothing else would happen");
}

/* ---- areas ---- */

static void areas(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[a]\narea = x size=1\narea = y size=4097 thp=never offset=64K policy=bind:1\n"
		"area = z size=1M late shared\nphase = sweep area=x\nphase = map area=z\n");
	assert_int_equal(load.processes[0].areas[0].bytes, 4096);
	assert_int_equal(load.processes[0].areas[0].thp, SIM_THP_ALWAYS);
	assert_int_equal(load.processes[0].areas[1].bytes, 8192);
	assert_int_equal(load.processes[0].areas[1].thp, SIM_THP_NEVER);
	assert_int_equal(load.processes[0].areas[1].offset, 65536);
	assert_int_equal(load.processes[0].areas[1].policy.nodes[0], 2);
	assert_true(load.processes[0].areas[2].late && load.processes[0].areas[2].shared);
	sim_load_free(&load);
}

static void areas_that_are_none(void **state)
{
#define AREA(text) "[a]\narea = " text "\nphase = compute time=1\n"
	(void)state;
	assert_refused(AREA(""), -EINVAL,
		"dir/j.ini:2: expected area = NAME size=..., NAME of letters, digits and '_'");
	assert_refused(AREA("size=1G"), -EINVAL,
		"dir/j.ini:2: expected area = NAME size=..., NAME of letters, digits and '_'");
	assert_refused(AREA("m"), -EINVAL, "dir/j.ini:2: area m lacks size=");
	assert_refused(AREA("m size="), -EINVAL, "dir/j.ini:2: size= without a value");
	assert_refused(AREA("m size=1 size=2"), -EINVAL, "dir/j.ini:2: size= again");
	assert_refused(AREA("m size=1 lat"), -EINVAL,
		"dir/j.ini:2: area has no 'lat'; did you mean 'late'?");
	assert_refused(AREA("m size=1 ofset=0"), -EINVAL,
		"dir/j.ini:2: area has no 'ofset'; did you mean 'offset'?");
	assert_refused(AREA("m size=0"), -ERANGE,
		"dir/j.ini:2: size = 0 is 0, expected 1 to 4.5036e+15 bytes");
	assert_refused(AREA("m size=1e30"), -ERANGE,
		"dir/j.ini:2: size = 1e30 is 1e+30, expected 1 to 4.5036e+15 bytes");
	assert_refused(AREA("m size=-4K"), -ERANGE,
		"dir/j.ini:2: size = -4K is -4096, expected 1 to 4.5036e+15 bytes");
	assert_refused(AREA("m size=4K offset=2M"), -ERANGE,
		"dir/j.ini:2: offset = 2M is 2.09715e+06, expected 0 to 2.09715e+06 bytes");
	assert_refused(AREA("m size=4K offset=16"), -EINVAL,
		"dir/j.ini:2: offset=16: expected whole pages of 4K");
	assert_refused(
		AREA("m size=4K policy=noop"), -EINVAL, "dir/j.ini:2: policy=noop on an area");
	assert_refused(AREA("m size=4K\narea = m size=8K"), -EINVAL, "dir/j.ini:3: area 'm' again");
	assert_refused(AREA("m size=4K late"), -EINVAL,
		"dir/j.ini: process a: area m is late, but no phase maps it");
	assert_refused("[a]\ninstances = 2\narea = m size=4K*(1+proc) shared\nphase = sweep\n",
		-EINVAL, "dir/j.ini:1: shared area m differs between instances");
}

/* 4 nodes x 4 GiB, 2 % reserved: 15.68 GiB. */
static void jobs_must_fit_into_memory(void **state)
{
	struct sim_load load;

	(void)state;
	assert_refused("[a]\narea = m size=16G\nphase = sweep\n", -EINVAL,
		"dir/j.ini: job j needs 16.000 GiB of memory, machine m has 15.680 GiB for it");
	assert_refused("[a]\ninstances = 16\narea = m size=1G\nphase = sweep\n", -EINVAL,
		"dir/j.ini: job j needs 16.000 GiB of memory, machine m has 15.680 GiB for it");
	assert_refused("[global]\nbackground_fill = 0.5\n[a]\narea = m size=8G\nphase = sweep\n",
		-EINVAL,
		"dir/j.ini: job j needs 8.000 GiB of memory, machine m has 7.840 GiB for it");
	assert_resolves(&load, "[a]\narea = m size=15G\nphase = sweep\n");
	sim_load_free(&load);
	assert_resolves(
		&load, "[a]\ninstances = 100\nconcurrency = 15\narea = m size=1G\nphase = sweep\n");
	sim_load_free(&load);
	assert_resolves(&load, "[a]\ninstances = 100\narea = m size=10G shared\nphase = sweep\n");
	sim_load_free(&load);
}

/* ---- phases ---- */

static void phases_have_defaults(void **state)
{
	struct sim_phase p = only_phase("sweep");

	(void)state;
	assert_true(p.loops == 1 && p.time_s == 0 && p.bytes == 0);
	assert_true(p.write_ratio == 1 && p.access_bytes == 64 && p.compute_ns == 0);
	assert_int_equal(p.slice, SIM_SLICE_ALL);
	assert_false(p.main_only);
	assert_int_equal(p.line, 4);
	p = only_phase("sweep time=2");
	assert_true(p.loops == 0 && p.time_s == 2); /* until then, however often */
	p = only_phase("sweep time=2 loops=3");
	assert_true(p.loops == 3 && p.time_s == 2);
	p = only_phase("zipf bytes=1G");
	assert_true(p.theta == 0.99 && p.write_ratio == 0.5 && p.bytes == 0x1p30);
	p = only_phase("chase bytes=1G");
	assert_true(p.write_ratio == 0);
}

static void phases_take_values(void **state)
{
	struct sim_phase p =
		only_phase("main sweep area=m slice=own loops=2.5 write=0.25 access=8 compute=5ns");

	(void)state;
	assert_true(p.main_only);
	assert_int_equal(p.slice, SIM_SLICE_OWN);
	assert_true(p.loops == 2.5 && p.write_ratio == 0.25 && p.access_bytes == 8);
	assert_true(p.compute_ns > 4.999 && p.compute_ns < 5.001);
	p = only_phase("hotset slice=own bytes=1M hot=0.1 share=0.9 shared=0.2");
	assert_true(p.hot_ratio == 0.1 && p.hot_share == 0.9 && p.shared_ratio == 0.2);
	p = only_phase("zipf bytes=1M theta=1.2");
	assert_true(p.theta == 1.2);
	p = only_phase("sleep time=250ms");
	assert_true(p.time_s == 0.25);
	p = only_phase("mbind slice=own policy=noop lazy");
	assert_true(p.lazy && p.policy.migrate_on_fault);
	assert_int_equal(p.policy.mode, NB_POLICY_NOOP);
	p = only_phase("mbind policy=bind:3");
	assert_false(p.lazy || p.policy.migrate_on_fault);
	assert_int_equal(p.policy.nodes[0], 8);
}

static void every_kind_is_known(void **state)
{
	static const char *const phases[SIM_NR_PHASE_KINDS] = {
		[SIM_PHASE_SWEEP] = "sweep",
		[SIM_PHASE_UNIFORM] = "uniform bytes=1",
		[SIM_PHASE_ZIPF] = "zipf bytes=1",
		[SIM_PHASE_CHASE] = "chase bytes=1",
		[SIM_PHASE_HOTSET] = "hotset bytes=1 hot=1 share=1",
		[SIM_PHASE_COMPUTE] = "compute time=1",
		[SIM_PHASE_SLEEP] = "sleep time=1",
		[SIM_PHASE_BARRIER] = "barrier",
		[SIM_PHASE_POLICY] = "policy policy=default",
		[SIM_PHASE_MBIND] = "mbind policy=default",
		[SIM_PHASE_MAP] = "map",
		[SIM_PHASE_UNMAP] = "unmap",
	};

	(void)state;
	for (uint8_t k = 0; k < SIM_PHASE_GOTO; k++)
		assert_int_equal(only_phase(phases[k]).kind, k);
}

static void phases_that_are_none(void **state)
{
	(void)state;
	assert_phase_refused("", -EINVAL, "expected phase = [LABEL:] [main] KIND name=value...");
	assert_phase_refused(
		"main", -EINVAL, "expected phase = [LABEL:] [main] KIND name=value...");
	assert_phase_refused("x:", -EINVAL, "expected phase = [LABEL:] [main] KIND name=value...");
	assert_phase_refused("sweeep", -EINVAL, "no kind of phase 'sweeep'; did you mean 'sweep'?");
	assert_phase_refused("1: sweep", -EINVAL, "label '1': expected letters, digits and '_'");
	assert_phase_refused("sweep lops=3", -EINVAL, "sweep has no 'lops'; did you mean 'loops'?");
	assert_phase_refused("sweep bytes=3", -EINVAL, "sweep has no 'bytes'");
	assert_phase_refused("sweep lazy", -EINVAL, "sweep has no 'lazy'");
	assert_phase_refused("sweep loops=1 loops=2", -EINVAL, "loops= again");
	assert_phase_refused("sweep loops=", -EINVAL, "loops= without a value");
	assert_phase_refused("sweep area=n", -EINVAL, "this process has no area 'n'");
	assert_phase_refused("sweep slice=mine", -EINVAL, "slice=mine: expected own or all");
	assert_phase_refused("compute", -EINVAL, "compute lacks time=");
	assert_phase_refused("hotset bytes=1 hot=0.1", -EINVAL, "hotset lacks share=");
	assert_phase_refused("mbind", -EINVAL, "mbind lacks policy=");
	assert_phase_refused("goto", -EINVAL, "goto lacks target=");
	assert_refused("[a]\nphase = sweep\n", -EINVAL,
		"dir/j.ini:2: expected area=, this process has 0 areas");
	assert_refused("[a]\narea = x size=1\narea = y size=1\nphase = sweep\n", -EINVAL,
		"dir/j.ini:4: expected area=, this process has 2 areas");
	assert_refused("[a]\nthreads = 3\narea = x size=8K\nphase = sweep slice=own\n", -EINVAL,
		"dir/j.ini:4: slice=own: area x has 2 pages, fewer than the process's 3 threads");
}

static void phase_values_out_of_range(void **state)
{
	(void)state;
	assert_phase_refused("sweep loops=-1", -ERANGE, "loops = -1 is -1, expected 0 to 1e+12");
	assert_phase_refused(
		"sweep loops=1e30", -ERANGE, "loops = 1e30 is 1e+30, expected 0 to 1e+12");
	assert_phase_refused("sweep write=1.5", -ERANGE, "write = 1.5 is 1.5, expected 0 to 1");
	assert_phase_refused(
		"sweep access=0", -ERANGE, "access = 0 is 0, expected 1 to 4096 bytes");
	assert_phase_refused("sweep compute=5", -ERANGE,
		"compute = 5 is 5, expected 0 to 1 s per access (write 5ns)");
	assert_phase_refused(
		"zipf bytes=1 theta=-1", -ERANGE, "theta = -1 is -1, expected 0 to 10");
	assert_phase_refused(
		"hotset bytes=1 hot=0 share=1", -ERANGE, "hot = 0 is 0, expected 1e-09 to 1");
	assert_phase_refused("uniform bytes=1 shared=0.1", -EINVAL,
		"shared= without slice=own: every access is shared already");
	assert_phase_refused(
		"sleep time=1e10", -ERANGE, "time = 1e10 is 1e+10, expected 0 to 1e+09 s");
	assert_phase_refused("sleep time=1/(thread-thread)", -EINVAL,
		"time: '1/(thread-thread)': division by zero");
}

static void phases_must_end(void **state)
{
	struct sim_load load;

	(void)state;
	assert_phase_refused("uniform", -EINVAL,
		"uniform without an end, expected bytes=, time= or [global] time_limit");
	assert_phase_refused("sweep loops=0", -EINVAL,
		"sweep without an end, expected loops=, time= or [global] time_limit");
	assert_phase_refused(
		"compute time=0", -EINVAL, "compute of no time, expected time= above 0");
	assert_resolves(&load, "[global]\ntime_limit = 1\n[a]\narea = m size=1M\nphase = "
			       "uniform\nphase = sweep loops=0\n");
	assert_true(load.threads[0].phases[1].loops == 0);
	sim_load_free(&load);
}

/* ---- order ---- */

static void labels_and_targets(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[a]\narea = m size=1M\nphase = compute time=1\nphase = again: sweep\n"
		"phase = goto target=again loops=2\n");
	assert_int_equal(load.threads[0].phases[2].target, 1);
	assert_true(load.threads[0].phases[2].loops == 2);
	sim_load_free(&load);
	assert_phase_refused("goto target=agian", -EINVAL, "no phase 'agian:' in [a]");
	assert_refused("[a]\nphase = x: compute time=1\nphase = x: compute time=1\n", -EINVAL,
		"dir/j.ini:3: label 'x:' again");
}

static void phases_left_out(void **state)
{
	static const char text[] =
		"[global]\nvar on = 0\n[a]\nthreads = 2\narea = m size=1M\n"
		"phase = one: sweep if=on\nphase = two: sweep if=thread loops=7\n"
		"phase = compute time=1\nphase = goto target=one loops=2\n";
	struct sim_load load;

	(void)state;
	assert_int_equal(resolve(&load, text, NULL, &four), 0);
	assert_int_equal(load.threads[0].nr_phases, 2);
	assert_int_equal(load.threads[0].phases[1].target, 0); /* to the next that is there */
	assert_int_equal(load.threads[1].nr_phases, 3);
	assert_true(load.threads[1].phases[0].loops == 7);
	sim_load_free(&load);
	assert_int_equal(resolve(&load, text, "on=1", &four), 0);
	assert_int_equal(load.threads[1].nr_phases, 4);
	sim_load_free(&load);
	assert_refused("[a]\nphase = compute time=1 if=0\n", -EINVAL,
		"dir/j.ini: a thread has no phases: all are left out");
}

static void cycles_must_end(void **state)
{
	struct sim_load load;

	(void)state;
	assert_refused("[a]\nphase = x: compute time=1\nphase = goto target=x\n", -EINVAL,
		"dir/j.ini:3: goto without an end, expected loops= or [global] time_limit");
	assert_resolves(&load, "[global]\ntime_limit = 1\n[a]\nphase = x: compute time=1\nphase = "
			       "goto target=x\n");
	sim_load_free(&load);
	assert_resolves(&load,
		"[a]\nphase = goto target=x\nphase = compute time=1\nphase = x: compute time=1\n");
	sim_load_free(&load);
}

/* Whatever the limits, a cycle that takes no time would never let the clock go on. */
static void cycles_must_take_time(void **state)
{
#define NO_TIME "goto in a cycle of phases that take no time"
	struct sim_load load;

	(void)state;
	assert_refused("[global]\ntime_limit = 1\n[a]\nphase = x: barrier\nphase = goto target=x\n",
		-EINVAL, "dir/j.ini:5: " NO_TIME);
	assert_refused("[a]\nphase = x: policy policy=local\nphase = goto target=x loops=9\n",
		-EINVAL, "dir/j.ini:3: " NO_TIME);
	assert_refused("[a]\nphase = x: goto target=x loops=3\n", -EINVAL, "dir/j.ini:2: " NO_TIME);
	/* the part that takes time is jumped over */
	assert_refused(
		"[global]\ntime_limit = 1\n[a]\nphase = x: goto target=y\nphase = compute time=1\n"
		"phase = y: goto target=x\n",
		-EINVAL, "dir/j.ini:4: " NO_TIME);
	assert_resolves(&load,
		"[global]\ntime_limit = 1\n[a]\nphase = x: barrier\nphase = compute time=1\n"
		"phase = goto target=x\n");
	sim_load_free(&load);
}

static void many_phases_are_limited(void **state)
{
	char *text = malloc(64 * (SIM_JOB_MAX_PHASES + 2));
	size_t n = (size_t)sprintf(text, "[a]\n");
	struct sim_load load;

	(void)state;
	for (int i = 0; i < SIM_JOB_MAX_PHASES; i++)
		n += (size_t)sprintf(text + n, "phase = l%d: goto target=l0 loops=1\n", i);
	assert_int_equal(
		resolve(&load, text, NULL, &four), -EINVAL); /* the longest cycle of no time */
	assert_string_equal(why, "dir/j.ini:2: " NO_TIME);
	sprintf(text + n, "phase = barrier\n");
	assert_int_equal(resolve(&load, text, NULL, &four), -E2BIG);
	free(text);
}

/* Small files that ask for gigabytes or hours. */
static void work_is_limited(void **state)
{
	char *text = malloc(1 << 20);
	size_t n = (size_t)sprintf(text, "[a]\nthreads = 100000\n");
	struct sim_load load;

	(void)state;
	for (int i = 0; i < 11; i++)
		n += (size_t)sprintf(text + n, "phase = compute time=1\n");
	assert_int_equal(resolve(&load, text, NULL, &four), -E2BIG);
	assert_string_equal(
		why, "dir/j.ini:1: more than 1000000 phases of threads and areas of processes");
	n = (size_t)sprintf(text, "[global]\nvar x = thread\n");
	for (int i = 0; i < 25; i++)
		n += (size_t)sprintf(text + n, "  + %0150d\n", 1);
	sprintf(text + n, "[a]\nthreads = 100000\nphase = compute time=x\n");
	assert_int_equal(resolve(&load, text, NULL, &four), -E2BIG);
	assert_string_equal(why, "dir/j.ini:2: too much to evaluate: threads times expressions");
	free(text);
}

static void sections_and_areas_are_limited(void **state)
{
	char *text = malloc(1 << 20);
	size_t n = 0;
	struct sim_load load;

	(void)state;
	for (int i = 0; i < SIM_JOB_MAX_SECTIONS + 1; i++)
		n += (size_t)sprintf(text + n, "[%d]\nphase = compute time=1\n", i);
	assert_int_equal(resolve(&load, text, NULL, &four), -E2BIG);
	assert_string_equal(why, "dir/j.ini:513: more than 256 sections");
	n = (size_t)sprintf(text, "[a]\nphase = compute time=1\n");
	for (int i = 0; i < SIM_JOB_MAX_AREAS; i++)
		n += (size_t)sprintf(text + n, "area = a%d size=4K\n", i);
	sprintf(text + n, "[b]\nprocess = a\narea = b size=4K\nphase = compute time=1\n");
	assert_int_equal(resolve(&load, text, NULL, &four), -E2BIG);
	assert_string_equal(why, "dir/j.ini:1: 257 areas in a process, expected at most 256");
	free(text);
}

/* ---- sources ---- */

static void assert_expands(const char *source, size_t nr, const char *first, const char *last)
{
	char **list;
	size_t n;

	if (sim_job_expand(source, &list, &n, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(n, nr);
	assert_string_equal(list[0], first);
	assert_string_equal(list[n - 1], last);
	sim_job_expand_free(list, n);
}

static void ranges_expand(void **state)
{
	char **list;
	size_t n;

	(void)state;
	assert_expands("numa01", 1, "numa01", "numa01");
	assert_expands("a-1-3.ini", 1, "a-1-3.ini", "a-1-3.ini");
	assert_expands("j:w=1-12", 12, "j:w=1", "j:w=12");
	assert_expands("j:w=3-3,thp=never", 1, "j:w=3,thp=never", "j:w=3,thp=never");
	assert_expands("C:/x:a=1-2,b=x,c=8-10", 6, "C:/x:a=1,b=x,c=8", "C:/x:a=2,b=x,c=10");
	assert_expands("j:w=-3", 1, "j:w=-3", "j:w=-3"); /* a negative number */
	assert_expands("j:w=cpus-1", 1, "j:w=cpus-1", "j:w=cpus-1");
	assert_int_equal(sim_job_expand("j:w=1-100,x=1-100", &list, &n, why, sizeof(why)), 0);
	assert_int_equal(n, 10000);
	assert_string_equal(list[100], "j:w=2,x=1");
	sim_job_expand_free(list, n);
	assert_int_equal(sim_job_expand("j:w=1-101,x=1-100", &list, &n, why, sizeof(why)), -E2BIG);
	assert_string_equal(why, "j:w=1-101,x=1-100: more than 10000 combinations");
	assert_int_equal(
		sim_job_expand("j:w=0-9223372036854775807", &list, &n, why, sizeof(why)), -E2BIG);
	assert_int_equal(sim_job_expand("j:w=2-1", &list, &n, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "j:w=2-1: range 2-1 runs backwards");
}

static char dir[] = "/tmp/numabal-test-job-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int load_error(const char *source)
{
	struct sim_job *job;
	int err;

	why[0] = '\0';
	err = sim_job_load(&job, source, why, sizeof(why));
	if (!err)
		sim_job_free(job);
	return err;
}

static void jobs_are_found(void **state)
{
	struct sim_job *job;
	char source[256];
	FILE *f = fopen(in_dir("my:job.ini"), "w");

	(void)state;
	assert_non_null(f);
	fputs("[global]\ndescription = text\nvar n = 1\n[a]\nthreads = n\nphase = compute time=1\n",
		f);
	fclose(f);
	snprintf(source, sizeof(source), "%s:n=3", in_dir("my:job.ini"));
	assert_int_equal(sim_job_load(&job, source, why, sizeof(why)), 0);
	assert_string_equal(sim_job_name(job), "my:job");
	assert_string_equal(sim_job_description(job), "text");
	sim_job_free(job);
	unlink(in_dir("my:job.ini"));
	assert_int_equal(load_error("numa01"), 0);
	assert_int_equal(load_error("numa01:passes=3"), 0);
	assert_int_equal(load_error("numa1"), -ENOENT);
	assert_string_equal(
		why, "no job named 'numa1'; did you mean 'numa01'? (numabal jobs lists them)");
	assert_int_equal(load_error(""), -EINVAL);
	assert_int_equal(load_error(":n=1"), -EINVAL);
	assert_int_equal(load_error(in_dir("absent.ini")), -ENOENT);
	assert_int_equal(load_error(dir), -EISDIR);
	assert_int_equal(load_error("numa01:pases=3"), -EINVAL);
	assert_non_null(strstr(
		why, "numa01.ini: this job has no variable 'pases'; did you mean 'passes'?"));
}

/* ---- presets ---- */

static void load_preset(struct sim_load *load, const char *source, const struct sim_model *m)
{
	struct sim_job *job;

	if (sim_job_load(&job, source, why, sizeof(why)) ||
		sim_load_resolve(load, job, m, why, sizeof(why)))
		fail_msg("%s: %s", source, why);
	sim_job_free(job);
}

/* Bytes written by SWEEP phases, in GiB. */
static double swept_gib(const struct sim_load *load)
{
	double bytes = 0;

	for (uint32_t i = 0; i < load->nr_threads; i++)
		for (uint32_t k = 0; k < load->threads[i].nr_phases; k++) {
			const struct sim_phase *f = &load->threads[i].phases[k];
			const struct sim_process_load *p =
				&load->processes[load->threads[i].process];
			const double share = f->slice == SIM_SLICE_OWN ? p->nr_threads : 1;

			if (f->kind == SIM_PHASE_SWEEP &&
				(!f->main_only || !load->threads[i].number))
				bytes += f->loops * (double)p->areas[f->area].bytes / share;
		}
	return bytes / 0x1p30;
}

/* Processes, threads and GiB written, from what is published of the benchmark: N = 48 CPUs, T = 24.
 */
static void the_autonuma_family_does_the_published_work(void **state)
{
	static const struct {
		const char *name;
		uint32_t processes, threads;
		double gib;
	} jobs[] = {
		{"numa01", 2, 48, 2 * 24 * 51 * 3},
		{"numa01_hard_bind", 2, 48, 2 * 24 * 51 * 3},
		{"numa01_inverse_bind", 2, 48, 2 * 24 * 51 * 3},
		{"numa01_threadlocal", 2, 48, 2 * (3 * 24 + 3000)},
		{"numa01_threadlocal_hard_bind", 2, 48, 2 * (3 * 24 + 3000)},
		{"numa01_threadlocal_inverse_bind", 2, 48, 2 * (3 * 24 + 3000)},
		{"numa02", 1, 48, 801}, /* 800, and once by the main thread */
		{"numa02_hard_bind", 1, 48, 801},
		{"numa02_inverse_bind", 1, 48, 801},
		{"numa02_smt", 1, 24, 801},
		{"numa02_smt_hard_bind", 1, 24, 801},
		{"numa02_smt_inverse_bind", 1, 24, 801},
	};
	struct sim_model m;
	struct sim_load load;

	(void)state;
	assert_int_equal(sim_model_load(&m, "2012-4node-48cpu", why, sizeof(why)), 0);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		load_preset(&load, jobs[i].name, &m);
		assert_string_equal(load.name, jobs[i].name);
		assert_int_equal(load.nr_processes, jobs[i].processes);
		assert_int_equal(load.nr_threads, jobs[i].threads);
		assert_true(swept_gib(&load) > jobs[i].gib - 0.01 &&
			    swept_gib(&load) < jobs[i].gib + 0.01);
		sim_load_free(&load);
	}
	sim_model_free(&m);
}

static const struct sim_phase *phase_of(
	const struct sim_load *load, uint32_t thread, enum sim_phase_kind kind)
{
	for (uint32_t k = 0; k < load->threads[thread].nr_phases; k++)
		if (load->threads[thread].phases[k].kind == kind)
			return &load->threads[thread].phases[k];
	fail_msg("thread %u has no such phase", thread);
	return NULL;
}

/* Thread i and its slice on node i / (threads per node); the inverse has the threads the other way
 * round. */
static void the_bindings_of_numa02(void **state)
{
	struct sim_model m;
	struct sim_load load;

	(void)state;
	assert_int_equal(sim_model_load(&m, "2012-8node-64cpu", why, sizeof(why)), 0);
	for (int inverse = 0; inverse < 2; inverse++) {
		load_preset(&load, inverse ? "numa02_inverse_bind" : "numa02_hard_bind", &m);
		for (uint32_t i = 0; i < 64; i++) {
			const uint32_t node = i / 8, cpus = inverse ? 7 - node : node;

			assert_int_equal(load.threads[i].cpus[0], UINT64_C(0xff) << (8 * cpus));
			assert_int_equal(
				phase_of(&load, i, SIM_PHASE_MBIND)->policy.nodes[0], 1u << node);
			assert_int_equal(phase_of(&load, i, SIM_PHASE_MBIND)->slice, SIM_SLICE_OWN);
		}
		sim_load_free(&load);
	}
	sim_model_free(&m);
}

/* Each process on one half of the nodes; inverse: the memory of both on the second half. */
static void the_bindings_of_numa01(void **state)
{
	struct sim_model m;
	struct sim_load load;

	(void)state;
	assert_int_equal(sim_model_load(&m, "2012-8node-64cpu", why, sizeof(why)), 0);
	load_preset(&load, "numa01_hard_bind", &m);
	assert_int_equal(load.threads[0].cpus[0], 0xffffffffu);
	assert_int_equal(load.threads[0].policy.nodes[0], 0x0f);
	assert_int_equal(load.threads[32].cpus[0], UINT64_C(0xffffffff00000000));
	assert_int_equal(load.threads[32].policy.nodes[0], 0xf0);
	sim_load_free(&load);
	load_preset(&load, "numa01_inverse_bind", &m);
	assert_int_equal(load.threads[0].cpus[0], 0xffffffffu);
	assert_int_equal(load.threads[0].policy.nodes[0], 0xf0);
	assert_int_equal(load.threads[32].cpus[0], UINT64_C(0xffffffff00000000));
	assert_int_equal(load.threads[32].policy.nodes[0], 0xf0);
	sim_load_free(&load);
	/* the plain one starts on one node, then lets go */
	load_preset(&load, "numa01", &m);
	assert_int_equal(load.threads[40].phases[0].policy.mode, NB_POLICY_BIND);
	assert_int_equal(load.threads[40].phases[0].policy.nodes[0], 1);
	assert_int_equal(load.threads[40].phases[2].policy.mode, NB_POLICY_DEFAULT);
	assert_null(load.threads[40].cpus);
	sim_load_free(&load);
	sim_model_free(&m);
}

/* True when the job resolves; false when it is too large for the machine. */
static bool fits(const char *source, const struct sim_model *m)
{
	struct sim_job *job;
	struct sim_load load;
	int err = sim_job_load(&job, source, why, sizeof(why));

	if (err)
		fail_msg("%s: %s", source, why);
	err = sim_load_resolve(&load, job, m, why, sizeof(why));
	sim_job_free(job);
	if (!err)
		sim_load_free(&load);
	else if (!strstr(why, "GiB of memory"))
		fail_msg("%s on %s: %s", source, m->name, why);
	return !err;
}

/* Every preset can run on every preset machine, on one CPU, and where nodes are of odd kinds: or is
 * too large. */
static void every_preset_fits_machines(void **state)
{
	struct sim_listing *jobs, *machines;
	size_t nr_jobs, nr_machines;
	struct sim_model m, small, large;

	(void)state;
	assert_int_equal(sim_list_jobs(&jobs, &nr_jobs), 0);
	assert_int_equal(sim_list_machines(&machines, &nr_machines), 0);
	make_model(&small, "1 node x 1 cpu x 16G");
	make_model(&large, "8 nodes x 32 cpus x 256G");
	assert_true(nr_jobs >= 20);
	for (size_t j = 0; j < nr_jobs; j++) {
		assert_true(strlen(jobs[j].description) > 10);
		for (size_t i = 0; i < nr_machines; i++) {
			assert_int_equal(sim_model_load(&m, machines[i].name, why, sizeof(why)), 0);
			fits(jobs[j].name, &m);
			sim_model_free(&m);
		}
		fits(jobs[j].name, &small);
		fits(jobs[j].name, &odd);
		if (!fits(jobs[j].name, &large))
			fail_msg("%s does not even fit 2 TiB", jobs[j].name);
	}
	sim_model_free(&small);
	sim_model_free(&large);
	sim_listing_free(jobs, nr_jobs);
	sim_listing_free(machines, nr_machines);
}

static void preset_variables(void **state)
{
	struct sim_model m;
	struct sim_load load;

	(void)state;
	assert_int_equal(sim_model_load(&m, "2012-4node-48cpu", why, sizeof(why)), 0);
	load_preset(&load, "specjbb-multi:warehouses=3,thp=never", &m);
	assert_int_equal(load.nr_processes, 4);
	assert_int_equal(load.nr_threads, 12);
	assert_int_equal(load.processes[0].areas[0].thp, SIM_THP_NEVER);
	assert_true(load.op_bytes > 0 && load.time_limit_s > 0);
	sim_load_free(&load);
	load_preset(&load, "npb-omp:parallel_init=1", &m);
	assert_int_equal(load.threads[0].phases[0].slice, SIM_SLICE_OWN);
	assert_false(load.threads[0].phases[0].main_only);
	sim_load_free(&load);
	load_preset(&load, "npb-omp", &m);
	assert_true(load.threads[0].phases[0].main_only);
	sim_load_free(&load);
	sim_model_free(&m);
}

/* Each begins with what it exercises and when its result means nothing. */
static void presets_say_what_they_are_for(void **state)
{
	struct sim_listing *jobs;
	size_t nr;

	(void)state;
	assert_int_equal(sim_list_jobs(&jobs, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		char text[4096] = "";
		FILE *f = fopen(jobs[i].path, "r");

		assert_non_null(f);
		assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
		fclose(f);
		if (!strstr(text, "xercised:") || (!strstr(text, "result means nothing") &&
							  !strstr(text, "result says nothing")))
			fail_msg("%s does not say what is exercised or when its result means "
				 "nothing",
				jobs[i].name);
	}
	sim_listing_free(jobs, nr);
}

/* ---- the check ---- */

static void the_check_sees_damage(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(
		&load, "[a]\nthreads = 2\ncpus = node:0\narea = m size=1M\nphase = sweep\n");
	load.threads[1].process = 1;
	assert_non_null(sim_load_check(&load, &four));
	load.threads[1].process = 0;
	load.threads[1].number = 0;
	assert_non_null(sim_load_check(&load, &four));
	load.threads[1].number = 1;
	load.threads[0].cpus[0] = 0;
	assert_non_null(sim_load_check(&load, &four));
	load.threads[0].cpus[0] = 1;
	load.threads[0].phases[0].area = 1;
	assert_non_null(sim_load_check(&load, &four));
	load.threads[0].phases[0].area = 0;
	load.processes[0].areas[0].bytes = 5;
	assert_non_null(sim_load_check(&load, &four));
	load.processes[0].areas[0].bytes = 4096;
	assert_null(sim_load_check(&load, &four));
	sim_load_free(&load);
}

/* ---- documentation ---- */

static char *read_doc(const char *file)
{
	const char *root = getenv("NUMABAL_SOURCE");
	static char path[512], text[1 << 17];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root ? root : ".", file);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s can't be read (NUMABAL_SOURCE)", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static void assert_documented(const char *file, const char *format, const char *name)
{
	char word[80];

	snprintf(word, sizeof(word), format, name);
	if (!strstr(read_doc(file), word))
		fail_msg("%s lacks %s", file, word);
}

static void the_documented_example_runs(void **state)
{
	char *begin = strstr(read_doc("docs/jobs.md"), "```ini\n"), *end;
	struct sim_load load;

	(void)state;
	assert_non_null(begin);
	begin += strlen("```ini\n");
	end = strstr(begin, "```");
	assert_non_null(end);
	*end = '\0';
	assert_resolves(&load, begin);
	assert_int_equal(load.nr_processes, 2);
	assert_int_equal(load.nr_threads, 2 * (8 + 1));
	sim_load_free(&load);
}

static void everything_a_job_can_say_is_documented(void **state)
{
	static const char *const keys[] = {
#define X(field, key) key,
		SIM_SECTION_KEYS(X)
#undef X
			"area",
		"phase", "name", "description", "op_bytes", "time_limit", "preload",
		"background_fill", "var"};

	(void)state;
	for (size_t i = 0; i < SIM_NR_PHASE_KINDS; i++) {
		assert_documented("docs/jobs.md", "| `%s` |", sim_phase_kinds[i].name);
		assert_documented("man/numabal-job.5", ".B %s\n", sim_phase_kinds[i].name);
	}
	for (size_t i = 0; i < SIM_NR_ATTRS; i++) {
		assert_documented("docs/jobs.md", "| `%s=` |", sim_phase_attr_names[i]);
		assert_documented("man/numabal-job.5", ".BR %s =", sim_phase_attr_names[i]);
	}
	for (size_t i = 0; sim_job_builtin(i); i++) {
		assert_documented("docs/jobs.md", "| `%s` |", sim_job_builtin(i));
		assert_documented("man/numabal-job.5", ".B %s\n", sim_job_builtin(i));
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_documented("docs/jobs.md", "| `%s`", keys[i]);
		assert_documented("man/numabal-job.5", ".B %s", keys[i]);
	}
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("NUMABAL_DATA");
	make_model(&four, "4 nodes x 4 cpus x 4G");
	make_model(&odd, "1 node x 2 cpus + 1 node x 2 cpus x 16G + 1 node x 8G at 40");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sim_model_free(&four);
	sim_model_free(&odd);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(global_values),
		cmocka_unit_test(global_values_out_of_range),
		cmocka_unit_test(variables_follow_the_stage),
		cmocka_unit_test(variables_of_the_machine),
		cmocka_unit_test(callers_set_variables),
		cmocka_unit_test(variables_that_are_none),
		cmocka_unit_test(variables_have_no_value_too_early),
		cmocka_unit_test(processes_and_threads),
		cmocka_unit_test(counts_out_of_range),
		cmocka_unit_test(sections_that_are_none),
		cmocka_unit_test(groups_join_a_process),
		cmocka_unit_test(groups_that_can_not_join),
		cmocka_unit_test(cpus_by_node),
		cmocka_unit_test(cpus_that_are_none),
		cmocka_unit_test(policies),
		cmocka_unit_test(policies_on_nodes_of_other_kinds),
		cmocka_unit_test(policies_that_are_none),
		cmocka_unit_test(areas),
		cmocka_unit_test(areas_that_are_none),
		cmocka_unit_test(jobs_must_fit_into_memory),
		cmocka_unit_test(phases_have_defaults),
		cmocka_unit_test(phases_take_values),
		cmocka_unit_test(every_kind_is_known),
		cmocka_unit_test(phases_that_are_none),
		cmocka_unit_test(phase_values_out_of_range),
		cmocka_unit_test(phases_must_end),
		cmocka_unit_test(labels_and_targets),
		cmocka_unit_test(phases_left_out),
		cmocka_unit_test(cycles_must_end),
		cmocka_unit_test(cycles_must_take_time),
		cmocka_unit_test(many_phases_are_limited),
		cmocka_unit_test(work_is_limited),
		cmocka_unit_test(sections_and_areas_are_limited),
		cmocka_unit_test(ranges_expand),
		cmocka_unit_test(jobs_are_found),
		cmocka_unit_test(the_autonuma_family_does_the_published_work),
		cmocka_unit_test(the_bindings_of_numa02),
		cmocka_unit_test(the_bindings_of_numa01),
		cmocka_unit_test(every_preset_fits_machines),
		cmocka_unit_test(preset_variables),
		cmocka_unit_test(presets_say_what_they_are_for),
		cmocka_unit_test(the_check_sees_damage),
		cmocka_unit_test(everything_a_job_can_say_is_documented),
		cmocka_unit_test(the_documented_example_runs),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
