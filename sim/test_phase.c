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

/* A section [a] with this phase, on line 3, and an area of 1 MiB called m. */
static void assert_phase_refused(const char *phase, int err, const char *what)
{
	char text[512], line[512];

	snprintf(text, sizeof(text), "[a]\narea = m size=1M\nphase = %s\n", phase);
	snprintf(line, sizeof(line), "dir/j.ini:3: %s", what);
	assert_job_refused(text, err, line);
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
	p = only_phase("zipf slice=group bytes=1M shared=0.2");
	assert_int_equal(p.slice, SIM_SLICE_PART);
	assert_true(p.from == 0 && p.to == 512 << 10 && p.shared_ratio == 0.2 && p.with == 0);
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

/* Three threads of a group divide what the process's four would have divided otherwise. */
static void groups_have_slices_and_another_area(void **state)
{
	static const uint64_t bounds[] = {0, 3, 6, 10}; /* pages of 10, rounded down */
	struct sim_load load;

	(void)state;
	assert_resolves(&load,
		"[a]\narea = x size=40K\narea = y size=4K\nphase = sweep area=x with=y\n"
		"[b]\nprocess = a\nthreads = 3\nphase = sweep area=x slice=group\n");
	assert_int_equal(load.threads[0].phases[0].with, 2);
	assert_true(load.processes[0].has_main);
	assert_int_equal(load.processes[0].libraries, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(load.threads[1 + i].phases[0].from, bounds[i] * 4096);
		assert_int_equal(load.threads[1 + i].phases[0].to, bounds[i + 1] * 4096);
	}
	sim_load_free(&load);
	assert_phase_refused("sweep with=m", -EINVAL, "with=m: expected another area than area=");
	assert_phase_refused("sweep with=n", -EINVAL, "this process has no area 'n'");
	assert_phase_refused("mbind policy=local with=n", -EINVAL, "mbind has no 'with'");
	assert_job_refused("[a]\narea = x size=8K\nphase = sweep\n[b]\nprocess = a\nthreads = 3\n"
			   "phase = sweep slice=group\n",
		-EINVAL,
		"dir/j.ini:7: slice=group: area x has 2 pages, fewer than the section's 3 threads");
	assert_job_refused("[a]\nlibraries = 1001\nphase = compute time=1\n", -ERANGE,
		"dir/j.ini:2: libraries = 1001 is 1001, expected 0 to 1000");
}

static void phases_have_words(void **state)
{
	(void)state;
	assert_true(only_phase("sweep kernel").kernel);
	assert_true(only_phase("zipf bytes=1 lookup").lookup);
	assert_false(only_phase("sweep").kernel || only_phase("sweep").lookup);
	assert_phase_refused("sweep kernel lookup", -EINVAL, "sweep has no 'lookup'");
	assert_phase_refused("compute time=1 kernel", -EINVAL, "compute has no 'kernel'");
	assert_phase_refused("mbind policy=local lookup", -EINVAL, "mbind has no 'lookup'");
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
	assert_phase_refused("sweep slice=mine", -EINVAL, "slice=mine: expected own, group or all");
	assert_phase_refused("compute", -EINVAL, "compute lacks time=");
	assert_phase_refused("hotset bytes=1 hot=0.1", -EINVAL, "hotset lacks share=");
	assert_phase_refused("mbind", -EINVAL, "mbind lacks policy=");
	assert_phase_refused("policy policy=noop", -EINVAL,
		"policy=noop: expected a lazy mbind, nothing else would happen");
	assert_phase_refused("goto", -EINVAL, "goto lacks target=");
	assert_job_refused("[a]\nphase = sweep\n", -EINVAL,
		"dir/j.ini:2: expected area=, this process has 0 areas");
	assert_job_refused("[a]\narea = x size=1\narea = y size=1\nphase = sweep\n", -EINVAL,
		"dir/j.ini:4: expected area=, this process has 2 areas");
	assert_job_refused("[a]\nthreads = 3\narea = x size=8K\nphase = sweep slice=own\n", -EINVAL,
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
		"shared= without slice=own or group: every access is shared already");
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
	assert_phase_refused("compute time=0.9ns", -EINVAL,
		"compute of 9e-10 s, expected time= of 1 ns or more");
	assert_phase_refused(
		"sweep time=1e-300", -EINVAL, "sweep of 1e-300 s, expected time= of 1 ns or more");
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
	assert_job_refused("[a]\nphase = x: compute time=1\nphase = x: compute time=1\n", -EINVAL,
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
	assert_job_refused("[a]\nphase = compute time=1 if=0\n", -EINVAL,
		"dir/j.ini: a thread has no phases: all are left out");
}

static void cycles_must_end(void **state)
{
	struct sim_load load;

	(void)state;
	assert_job_refused("[a]\nphase = x: compute time=1\nphase = goto target=x\n", -EINVAL,
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
	assert_job_refused(
		"[global]\ntime_limit = 1\n[a]\nphase = x: barrier\nphase = goto target=x\n",
		-EINVAL, "dir/j.ini:5: " NO_TIME);
	assert_job_refused("[a]\nphase = x: policy policy=local\nphase = goto target=x loops=9\n",
		-EINVAL, "dir/j.ini:3: " NO_TIME);
	assert_job_refused(
		"[a]\nphase = x: goto target=x loops=3\n", -EINVAL, "dir/j.ini:2: " NO_TIME);
	/* the part that takes time is jumped over */
	assert_job_refused(
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_have_defaults),
		cmocka_unit_test(phases_take_values),
		cmocka_unit_test(groups_have_slices_and_another_area),
		cmocka_unit_test(phases_have_words),
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
	};

	return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
