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

	(void)state;
	put_file("my:job.ini", "[global]\ndescription = text\nvar n = 1\n[a]\nthreads = n\nphase = "
			       "compute time=1\n");
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
	assert_int_equal(load_error(test_dir()), -EISDIR);
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

/* ---- documentation ---- */

static void assert_documented(const char *file, const char *format, const char *name)
{
	char word[80];

	snprintf(word, sizeof(word), format, name);
	if (!strstr(read_doc(file), word))
		fail_msg("%s lacks %s", file, word);
}

static void the_documented_example_runs(void **state)
{
	struct sim_load load;

	(void)state;
	assert_resolves(&load, read_example("docs/jobs.md"));
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
	for (size_t i = 0; i < 3; i++) {
		static const char *const words[] = {"lazy", "kernel", "lookup"};

		assert_documented("docs/jobs.md", "| `%s` |", words[i]);
		assert_documented("man/numabal-job.5", ".B %s\n", words[i]);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_expand),
		cmocka_unit_test(jobs_are_found),
		cmocka_unit_test(the_autonuma_family_does_the_published_work),
		cmocka_unit_test(the_bindings_of_numa02),
		cmocka_unit_test(the_bindings_of_numa01),
		cmocka_unit_test(every_preset_fits_machines),
		cmocka_unit_test(preset_variables),
		cmocka_unit_test(presets_say_what_they_are_for),
		cmocka_unit_test(the_documented_example_runs),
		cmocka_unit_test(everything_a_job_can_say_is_documented),
	};

	return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
