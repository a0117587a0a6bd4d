/* SPDX-License-Identifier: MIT */
/* What becomes of a machine: kept, scaled, or refused; and QEMU's words for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "plan.h"

static struct lab_plan plan;
static char why[512];

/* A machine file in text, planned. */
static int make(const char *text, const struct lab_options *opt)
{
	struct sim_model model;
	int err;

	why[0] = '\0';
	if (sim_model_parse(&model, "test.ini", text, strlen(text), why, sizeof(why)))
		fail_msg("%s", why);
	err = lab_plan_make(&plan, &model, opt, why, sizeof(why));
	sim_model_free(&model);
	return err;
}

static int make_line(const char *line, const struct lab_options *opt)
{
	char text[512];

	snprintf(text, sizeof(text), "[machine]\ntopology = %s\n", line);
	return make(text, opt);
}

/* The arguments, each between blanks. The caller frees it. */
static char *words(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fputc(' ', f);
	lab_plan_print(&plan, f);
	fclose(f);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	return text;
}

static void has(const char *expected)
{
	char *text = words(), wanted[256];

	snprintf(wanted, sizeof(wanted), " %s ", expected);
	if (!strstr(text, wanted))
		fail_msg("no '%s' in '%s'", expected, text);
	free(text);
}

static void has_not(const char *unexpected)
{
	char *text = words();

	if (strstr(text, unexpected))
		fail_msg("'%s' in '%s'", unexpected, text);
	free(text);
}

static void noted(const char *expected)
{
	for (unsigned int i = 0; i < plan.nr_notes; i++)
		if (strstr(plan.notes[i], expected))
			return;
	fail_msg("no note '%s'", expected);
}

static const struct lab_options none;

static void small_machine_is_kept(void **state)
{
	(void)state;
	assert_int_equal(make_line("2 nodes x 2 cpus x 640M", &none), 0);
	assert_int_equal(plan.nr_notes, 0);
	has("-machine q35");
	has("-smp 4,sockets=2,cores=2,threads=1");
	has("-m 1280M");
	has("-object memory-backend-ram,size=640M,id=m0");
	has("-numa node,nodeid=0,cpus=0-1,memdev=m0");
	has("-numa node,nodeid=1,cpus=2-3,memdev=m1");
	has("-numa dist,src=0,dst=1,val=20 -numa dist,src=1,dst=0,val=20");
	has_not("hmat");
}

static void cpus_are_cut(void **state)
{
	struct lab_options two = {.cpus = 2};

	(void)state;
	assert_int_equal(make_line("4 nodes x 12 cpus x 256M", &none), 0);
	assert_int_equal(plan.nr_cpus, 8); /* about LAB_CPUS */
	noted("8 of 48 CPUs");
	assert_int_equal(make_line("12 nodes x 12 cpus x 256M", &none), 0);
	assert_int_equal(plan.nr_cpus, 12); /* but one each at least */
	assert_int_equal(make_line("4 nodes x 12 cpus x 256M", &two), 0);
	assert_int_equal(plan.nr_cpus, 8);
	two.cpus = 64;
	assert_int_equal(make_line("4 nodes x 48 cpus x 256M", &two), 0);
	assert_int_equal(plan.nr_cpus, 192);
	assert_int_equal(make_line("8 nodes x 48 cpus x 256M", &two), -22);
	assert_non_null(strstr(why, "384 CPUs"));
}

static void unequal_nodes_share_no_socket(void **state)
{
	(void)state;
	assert_int_equal(make_line("1 node x 4 cpus x 512M + 1 node x 2 cpus x 512M", &none), 0);
	has("-smp 6,sockets=3,cores=2,threads=1");
	assert_int_equal(make_line("1 node x 3 cpus x 512M + 1 node x 2 cpus x 512M", &none), 0);
	has("-smp 5,sockets=5,cores=1,threads=1");
}

static void memory_is_scaled(void **state)
{
	struct lab_options half = {.scale_mem = 0.5};

	(void)state;
	/* 16 GiB to 4 GiB in all. */
	assert_int_equal(make_line("4 nodes x 1 cpu x 4G", &none), 0);
	assert_int_equal(plan.mem_mib, 4096);
	noted("memory times 0.25");
	assert_int_equal(make_line("2 nodes x 1 cpu x 1G", &half), 0);
	assert_int_equal(plan.mem_mib, 1024);
	/* Small nodes beside a large one keep something. */
	assert_int_equal(make_line("1 node x 1 cpu x 1T + 1 node x 1 cpu x 1G", &none), 0);
	assert_int_equal(plan.nodes[1].mem_mib, LAB_GRAIN_MIB);
	assert_true(plan.nodes[0].mem_mib <= LAB_MEMORY_MIB);
	half.scale_mem = 1e-6;
	assert_int_equal(make_line("2 nodes x 1 cpu x 1G", &half), -22);
	assert_non_null(strstr(why, "at least 384 MiB"));
}

static void nodes_without_cpus_have_tiers(void **state)
{
	(void)state;
	assert_int_equal(
		make("[machine]\ntopology = 2 nodes x 2 cpus x 640M + 1 node x 512M at 40\n"
		     "[memory]\nlatency_ns = 100\nbandwidth_mib_s = 102400\n"
		     "[node 2]\nbandwidth_mib_s = 25600\n"
		     "[latency]\n0 = 100 200 400\n1 = 200 100 400\n",
			&none),
		0);
	has("-machine q35,hmat=on");
	has("-numa node,nodeid=2,memdev=m2,initiator=0");
	has("-numa dist,src=0,dst=2,val=40");
	has("-numa "
	    "hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-latency,latency=400");
	has("-numa "
	    "hmat-lb,initiator=1,target=0,hierarchy=memory,data-type=access-latency,latency=200");
	has("-numa "
	    "hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth="
	    "25600M");
	has_not("initiator=2,target");
}

static void a_slower_tier_is_told_as_such(void **state)
{
	(void)state;
	assert_int_equal(
		make("[machine]\ntopology = 2 nodes x 2 cpus x 640M + 1 node x 512M at 40\n"
		     "[memory]\nlatency_ns = 100\n"
		     "[latency]\n0 = 100 100 100\n1 = 100 100 100\n",
			&none),
		0);
	assert_int_equal(plan.latency_ns[0][1], 100);
	assert_int_equal(plan.latency_ns[0][2], 400);
	assert_int_equal(plan.latency_ns[1][2], 400);
}

static void nodes_without_memory(void **state)
{
	(void)state;
	assert_int_equal(make_line("1 node x 2 cpus x 512M + 1 node x 2 cpus", &none), 0);
	has("-numa node,nodeid=1,cpus=2-3");
	has_not("id=m1");
}

static void hmat_on_request(void **state)
{
	struct lab_options hmat = {.hmat = true};

	(void)state;
	assert_int_equal(make_line("2 nodes x 1 cpu x 512M", &hmat), 0);
	has("-machine q35,hmat=on");
	has("-numa node,nodeid=1,cpus=1-1,memdev=m1,initiator=1");
}

/* `numactl -H` of a machine with this many nodes whose ids are `first`, `first` + step ...; all
 * distances as given. */
static int make_numactl(unsigned int nr, int first, int step, int distance)
{
	static char path[] = "/tmp/numabal-test-plan-XXXXXX", copy[sizeof(path)];
	struct sim_model model;
	int err;
	FILE *f;

	memcpy(copy, path, sizeof(path));
	f = fdopen(mkstemp(copy), "w");
	assert_non_null(f);
	fprintf(f, "available: %u nodes\n", nr);
	for (unsigned int i = 0; i < nr; i++)
		fprintf(f, "node %d cpus: %u\nnode %d size: 512 MB\nnode %d free: 500 MB\n",
			first + (int)i * step, i, first + (int)i * step, first + (int)i * step);
	fprintf(f, "node distances:\nnode ");
	for (unsigned int i = 0; i < nr; i++)
		fprintf(f, " %3d", first + (int)i * step);
	for (unsigned int i = 0; i < nr; i++) {
		fprintf(f, "\n%3d: ", first + (int)i * step);
		for (unsigned int j = 0; j < nr; j++)
			fprintf(f, " %3d", i == j ? 10 : distance + (i > j));
	}
	fputc('\n', f);
	fclose(f);
	why[0] = '\0';
	err = sim_model_load(&model, copy, why, sizeof(why));
	unlink(copy);
	if (err)
		fail_msg("%s", why);
	err = lab_plan_make(&plan, &model, &none, why, sizeof(why));
	sim_model_free(&model);
	return err;
}

static void nodes_are_numbered_as_the_kernel_does(void **state)
{
	(void)state;
	assert_int_equal(make_numactl(2, 1, 3, 20), 0);
	assert_int_equal(plan.nr_nodes, 2);
	assert_int_equal(plan.nodes[1].source_id, 4);
	noted("1 is 0 4 is 1");
	assert_int_equal(make_numactl(2, 0, 252, 20), 0);
	noted("252 is 1");
	assert_int_equal(make_numactl(65, 0, 1, 20), -22);
	assert_non_null(strstr(why, "65 nodes"));
	/* Without CPUs last, whatever their number. */
	assert_int_equal(make_line("1 node x 512M at 17 + 1 node x 2 cpus x 256M at 33", &none), 0);
	has("-numa node,nodeid=0,cpus=0-1,memdev=m0,initiator=0 -numa "
	    "node,nodeid=1,memdev=m1,initiator=0");
	has("-object memory-backend-ram,size=512M,id=m1");
	noted("0 is 1 1 is 0");
	/* Neither CPUs nor memory: the firmware has nothing to say of it. */
	assert_int_equal(
		make_line("1 node x 2 cpus x 512M + 1 node x 0M + 1 node x 1 cpu x 512M", &none),
		0);
	assert_int_equal(plan.nr_nodes, 2);
	noted("1 is left out 2 is 1");
}

static void distances_are_directed(void **state)
{
	(void)state;
	assert_int_equal(make_numactl(2, 0, 1, 31), 0);
	has("-numa dist,src=0,dst=1,val=31 -numa dist,src=1,dst=0,val=32");
	assert_int_equal(make_numactl(2, 0, 1, 10), 0);
	has("-numa dist,src=0,dst=1,val=11"); /* the kernel would drop the table */
	noted("a distance of 10");
}

static void attributes_fit_into_firmware(void **state)
{
	struct lab_options hmat = {.hmat = true};

	(void)state;
	assert_int_equal(
		make("[machine]\ntopology = 2 nodes x 1 cpu x 512M\n[memory]\nlatency_ns = 0.2e1\n"
		     "bandwidth_mib_s = 1\n[latency]\n0 = 2 900000\n1 = 900000 2\n",
			&hmat),
		0);
	assert_int_equal(plan.latency_ns[0][1], 65000);
	assert_int_equal(plan.latency_ns[0][0], 2);
	assert_int_equal(plan.bandwidth_mib_s[0][0], 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_machine_is_kept),
		cmocka_unit_test(cpus_are_cut),
		cmocka_unit_test(unequal_nodes_share_no_socket),
		cmocka_unit_test(memory_is_scaled),
		cmocka_unit_test(nodes_without_cpus_have_tiers),
		cmocka_unit_test(a_slower_tier_is_told_as_such),
		cmocka_unit_test(nodes_without_memory),
		cmocka_unit_test(hmat_on_request),
		cmocka_unit_test(nodes_are_numbered_as_the_kernel_does),
		cmocka_unit_test(distances_are_directed),
		cmocka_unit_test(attributes_fit_into_firmware),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
