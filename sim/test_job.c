/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
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

#include "fixture.h"
#include "jobfile.h"

#define REST "[a]\nphase = compute time=1\n"

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
	(void)state;
	assert_job_refused("[global]\ntime_limit = 0\n" REST, -ERANGE,
		"dir/j.ini:2: time_limit = 0 is 0, expected 1e-06 to 1e+09 s");
	assert_job_refused("[global]\ntime_limit = -3\n" REST, -ERANGE,
		"dir/j.ini:2: time_limit = -3 is -3, expected 1e-06 to 1e+09 s");
	assert_job_refused("[global]\nop_bytes = 1/0\n" REST, -EINVAL,
		"dir/j.ini:2: op_bytes: '1/0': division by zero");
	assert_job_refused("[global]\nbackground_fill = 1.5\n" REST, -ERANGE,
		"dir/j.ini:2: background_fill = 1.5 is 1.5, expected 0 to 0.99");
	assert_job_refused("[global]\npreload = yes\n" REST, -EINVAL,
		"dir/j.ini:2: preload = yes: expected lower_tier");
	assert_job_refused("[global]\ntime_limt = 1\n" REST, -EINVAL,
		"dir/j.ini:2: [global] has no key 'time_limt'; did you mean 'time_limit'?");
	assert_job_refused("[global]\ntime_limit =\n" REST, -EINVAL,
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
	assert_job_refused("[global]\nvar cpus = 2\n" REST, -EINVAL,
		"dir/j.ini:2: 'cpus' can't be defined, it is there");
	assert_job_refused("[global]\nvar min = 2\n" REST, -EINVAL,
		"dir/j.ini:2: 'min' can't be defined, it is there");
	assert_job_refused("[global]\nvar x = 1\nvar x = 2\n" REST, -EINVAL,
		"dir/j.ini:3: variable 'x' again");
	assert_job_refused("[global]\nvar x = 1\nvar  x = 2\n" REST, -EINVAL,
		"dir/j.ini:3: variable 'x' again");
	assert_job_refused("[global]\nvar 1x = 1\n" REST, -EINVAL,
		"dir/j.ini:2: 'var 1x': expected var NAME = value, NAME of letters, digits and "
		"'_'");
	assert_job_refused(
		"[global]\nvar x =\n" REST, -EINVAL, "dir/j.ini:2: variable 'x' lacks a value");
	assert_job_refused("[global]\nvar x = y + 1\nvar y = 1\n" REST, -EINVAL,
		"dir/j.ini:2: variable x: 'y + 1': no variable 'y'");
	assert_job_refused("[global]\nvar x = x + 1\n" REST, -EINVAL,
		"dir/j.ini:2: variable x: 'x + 1': no variable 'x'");
	assert_job_refused(
		"[global]\nvar word = never\n[a]\nthreads = word\nphase = compute time=1\n",
		-EINVAL,
		"dir/j.ini:4: threads: 'word': variable 'word' is the word 'never', not a number");
	assert_job_refused("[a]\nphase = compute time=$x\n", -EINVAL,
		"dir/j.ini:2: this job has no variable 'x'");
	assert_job_refused("[a]\nphase = compute time=$\n", -EINVAL,
		"dir/j.ini:2: '$' without the name of a variable");
}

static void variables_have_no_value_too_early(void **state)
{
	(void)state;
	assert_job_refused("[global]\ntime_limit = threads\n" REST, -EINVAL,
		"dir/j.ini:2: time_limit: 'threads': variable 'threads' has no value here");
	assert_job_refused("[a]\nthreads = threads\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: threads: 'threads': variable 'threads' has no value here");
	assert_job_refused("[a]\ninstances = proc\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: instances: 'proc': variable 'proc' has no value here");
	assert_job_refused("[a]\narea = m size=thread\nphase = sweep\n", -EINVAL,
		"dir/j.ini:2: size: 'thread': variable 'thread' has no value here");
	/* and none is left over from the process before */
	assert_job_refused(
		"[a]\nthreads = 3\nphase = compute time=1\n[b]\ninstances = threads\nphase "
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
	assert_job_refused("[a]\nthreads = 0\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = 0 is 0, expected 1 to 100000");
	assert_job_refused("[a]\nthreads = cpus/100\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = cpus/100 is 0, expected 1 to 100000");
	assert_job_refused("[a]\nthreads = -1\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = -1 is -1, expected 1 to 100000");
	assert_job_refused("[a]\nthreads = 1e30\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: threads = 1e30 is 1e+30, expected 1 to 100000");
	assert_job_refused("[a]\ninstances = 0\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: instances = 0 is 0, expected 1 to 100000");
	assert_job_refused("[a]\ninstances = 1000\nthreads = 1000\nphase = compute time=1\n",
		-E2BIG, "dir/j.ini: more than 100000 threads");
	assert_job_refused("[a]\nstart = -1\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: start = -1 is -1, expected 0 to 1e+09 s");
}

static void sections_that_are_none(void **state)
{
	(void)state;
	assert_job_refused("", -EINVAL,
		"dir/j.ini: no section besides [global]: expected one for each process or thread "
		"group");
	assert_job_refused("[global]\nname = x\n", -EINVAL,
		"dir/j.ini: no section besides [global]: expected one for each process or thread "
		"group");
	assert_job_refused(
		"[a]\n", -EINVAL, "dir/j.ini:1: [a] has no phase: its threads would do nothing");
	assert_job_refused("[a]\nthread = 3\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: [a] has no key 'thread'; did you mean 'threads'?");
	assert_job_refused("[a]\nthreads = 1\nthreads = 2\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:3: 'threads' again in [a]");
	assert_job_refused("[a]\nphase = compute time=1\n[a]\nphase = compute time=1\n", -EINVAL,
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
	assert_job_refused(MAIN "[b]\nprocess = mian\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:4: no section [mian]; did you mean 'main'?");
	assert_job_refused(MAIN "[b]\nprocess = main\ninstances = 2\nphase = compute time=1\n",
		-EINVAL,
		"dir/j.ini:5: instances, concurrency, libraries and start belong into [main], "
		"whose process this is");
	assert_job_refused(MAIN "[b]\nprocess = main\nphase = main compute time=1\n", -EINVAL,
		"dir/j.ini:5: main: thread 0 is in [main]");
	assert_job_refused(MAIN "[b]\nprocess = main\nphase = compute time=1\n"
				"[c]\nprocess = b\nphase = compute time=1\n",
		-EINVAL, "dir/j.ini:7: [b] has no process of its own, it is in 'main'");
	assert_job_refused("[b]\nprocess = b\nphase = compute time=1\n", -EINVAL,
		"dir/j.ini:2: [b] has no process of its own, it is in 'b'");
	assert_job_refused("[main]\narea = m size=4K\nphase = sweep\n[b]\nprocess = main\narea = m "
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
	assert_job_refused(CPUS("node:4"), -ERANGE,
		"dir/j.ini:2: cpus: node 4 is 4, expected 0 to 3 on this machine");
	assert_job_refused(CPUS("node:-1"), -ERANGE,
		"dir/j.ini:2: cpus: node -1 is -1, expected 0 to 3 on this machine");
	assert_job_refused(CPUS("nodes:1-4"), -ERANGE,
		"dir/j.ini:2: cpus: node 4 is 4, expected 0 to 3 on this machine");
	assert_job_refused(
		CPUS("nodes:2-1"), -EINVAL, "dir/j.ini:2: cpus: range 2 to 1 runs backwards");
	assert_job_refused(CPUS("0-3"), -EINVAL,
		"dir/j.ini:2: cpus = 0-3: expected all, node:NODE or nodes:NODES");
	assert_job_refused(CPUS("nodes:"), -EINVAL,
		"dir/j.ini:2: cpus: '': ends where a number or a name was expected");
	assert_job_refused(CPUS("nodes:1,"), -EINVAL,
		"dir/j.ini:2: cpus: '': ends where a number or a name was expected");
	assert_job_refused(CPUS("nodes:1e30"), -ERANGE,
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
	assert_job_refused(POLICY("bnid:0"), -EINVAL,
		"dir/j.ini:2: policy = bnid:0: expected default, local, preferred:NODE, bind:NODES "
		"or interleave:NODES");
	assert_job_refused(POLICY("bind"), -EINVAL,
		"dir/j.ini:2: policy = bind: expected default, local, preferred:NODE, bind:NODES "
		"or interleave:NODES");
	assert_job_refused(POLICY("preferred:0-1"), -EINVAL,
		"dir/j.ini:2: policy = preferred:0-1: expected one node");
	assert_job_refused(POLICY("bind:9"), -ERANGE,
		"dir/j.ini:2: policy: node 9 is 9, expected 0 to 3 on this machine");
	assert_job_refused(POLICY("noop"), -EINVAL, "dir/j.ini:2: policy = noop at start");
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
	assert_job_refused(AREA(""), -EINVAL,
		"dir/j.ini:2: expected area = NAME size=..., NAME of letters, digits and '_'");
	assert_job_refused(AREA("size=1G"), -EINVAL,
		"dir/j.ini:2: expected area = NAME size=..., NAME of letters, digits and '_'");
	assert_job_refused(AREA("m"), -EINVAL, "dir/j.ini:2: area m lacks size=");
	assert_job_refused(AREA("m size="), -EINVAL, "dir/j.ini:2: size= without a value");
	assert_job_refused(AREA("m size=1 size=2"), -EINVAL, "dir/j.ini:2: size= again");
	assert_job_refused(AREA("m size=1 lat"), -EINVAL,
		"dir/j.ini:2: area has no 'lat'; did you mean 'late'?");
	assert_job_refused(AREA("m size=1 ofset=0"), -EINVAL,
		"dir/j.ini:2: area has no 'ofset'; did you mean 'offset'?");
	assert_job_refused(AREA("m size=0"), -ERANGE,
		"dir/j.ini:2: size = 0 is 0, expected 1 to 4.5036e+15 bytes");
	assert_job_refused(AREA("m size=1e30"), -ERANGE,
		"dir/j.ini:2: size = 1e30 is 1e+30, expected 1 to 4.5036e+15 bytes");
	assert_job_refused(AREA("m size=-4K"), -ERANGE,
		"dir/j.ini:2: size = -4K is -4096, expected 1 to 4.5036e+15 bytes");
	assert_job_refused(AREA("m size=4K offset=2M"), -ERANGE,
		"dir/j.ini:2: offset = 2M is 2.09715e+06, expected 0 to 2.09715e+06 bytes");
	assert_job_refused(AREA("m size=4K offset=16"), -EINVAL,
		"dir/j.ini:2: offset=16: expected whole pages of 4K");
	assert_job_refused(
		AREA("m size=4K policy=noop"), -EINVAL, "dir/j.ini:2: policy=noop on an area");
	assert_job_refused(
		AREA("m size=4K\narea = m size=8K"), -EINVAL, "dir/j.ini:3: area 'm' again");
	assert_job_refused(AREA("m size=4K late"), -EINVAL,
		"dir/j.ini: process a: area m is late, but no phase maps it");
	assert_job_refused("[a]\ninstances = 2\narea = m size=4K*(1+proc) shared\nphase = sweep\n",
		-EINVAL, "dir/j.ini:1: shared area m differs between instances");
}

/* 4 nodes x 4 GiB, 2 % reserved: 15.68 GiB. */
static void jobs_must_fit_into_memory(void **state)
{
	struct sim_load load;

	(void)state;
	assert_job_refused("[a]\narea = m size=16G\nphase = sweep\n", -EINVAL,
		"dir/j.ini: job j needs 16.000 GiB of memory, machine m has 15.680 GiB for it");
	assert_job_refused("[a]\ninstances = 16\narea = m size=1G\nphase = sweep\n", -EINVAL,
		"dir/j.ini: job j needs 16.000 GiB of memory, machine m has 15.680 GiB for it");
	assert_job_refused(
		"[global]\nbackground_fill = 0.5\n[a]\narea = m size=8G\nphase = sweep\n", -EINVAL,
		"dir/j.ini: job j needs 8.000 GiB of memory, machine m has 7.840 GiB for it");
	assert_resolves(&load, "[a]\narea = m size=15G\nphase = sweep\n");
	sim_load_free(&load);
	assert_resolves(
		&load, "[a]\ninstances = 100\nconcurrency = 15\narea = m size=1G\nphase = sweep\n");
	sim_load_free(&load);
	assert_resolves(&load, "[a]\ninstances = 100\narea = m size=10G shared\nphase = sweep\n");
	sim_load_free(&load);
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
		cmocka_unit_test(the_check_sees_damage),
	};

	return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
