/* SPDX-License-Identifier: MIT */
/* Readers of the kernel's files, on texts as kernels print them, and on broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proc.h"

static uint64_t counter(const uint64_t *values, const char *name)
{
	for (size_t i = 0; i < proc_nr_counters; i++)
		if (!strcmp(proc_counters[i], name))
			return values[i];
	fail_msg("no counter %s", name);
	return 0;
}

static void vmstat(void **state)
{
	uint64_t values[PROC_MAX_COUNTERS];

	(void)state;
	assert_true(proc_nr_counters <= PROC_MAX_COUNTERS);
	/* One name begins another; a counter that is not asked for; no line end at the end. */
	proc_parse_vmstat("nr_free_pages 7\nnuma_hint_faults 12\nnuma_hint_faults_local 5\npgfault "
			  "18446744073709551615",
		values);
	assert_int_equal(counter(values, "numa_hint_faults"), 12);
	assert_int_equal(counter(values, "numa_hint_faults_local"), 5);
	assert_true(counter(values, "pgfault") == UINT64_MAX);
	assert_int_equal(counter(values, "numa_pte_updates"), 0);
	proc_parse_vmstat("", values);
	assert_int_equal(counter(values, "pgfault"), 0);
}

static void numa_maps(void **state)
{
	uint64_t pages[3];

	(void)state;
	proc_parse_numa_maps("7f0000000000 default anon=65536 dirty=65536 N0=40000 N1=25536 "
			     "kernelpagesize_kB=4\n"
			     "7f1000000000 default file=/N9=3/x mapped=2 N1=2 kernelpagesize_kB=4\n"
			     "7f2000000000 bind:0 huge anon=4 dirty=4 N2=4 kernelpagesize_kB=2048\n"
			     "7f3000000000 default stack anon=3 N0=3",
		pages, 3);
	assert_int_equal(pages[0], 40003);
	assert_int_equal(pages[1], 25538);
	assert_int_equal(pages[2], 4 * 512);
	/* A node that is not asked for; a line that is cut. */
	proc_parse_numa_maps("7f00 default N7=5 N0=\n7f01 default N1", pages, 3);
	assert_int_equal(pages[0] + pages[1] + pages[2], 0);
}

static void sched(void **state)
{
	struct proc_sched s;

	(void)state;
	proc_parse_sched("lab-work (165, #threads: 5)\n"
			 "-------------------------------------------------------------------\n"
			 "se.exec_start                                :          2830.474661\n"
			 "se.sum_exec_runtime                          :          1797.063275\n"
			 "mm->numa_scan_seq                            :                    4\n"
			 "numa_pages_migrated                          :                13166\n"
			 "numa_preferred_nid                           :                   -1\n"
			 "total_numa_faults                            :                16388\n"
			 "current_node=0, numa_group_id=0\n",
		&s);
	assert_true(s.runtime_ms > 1797.06 && s.runtime_ms < 1797.07);
	assert_int_equal(s.mm_scan_seq, 4);
	assert_int_equal(s.migrated, 13166);
	assert_int_equal(s.preferred_nid, -1);
	assert_int_equal(s.total_faults, 16388);
	proc_parse_sched("", &s);
	assert_int_equal(s.total_faults, 0);
}

static void lists(void **state)
{
	(void)state;
	assert_int_equal(proc_list_end("0\n"), 1);
	assert_int_equal(proc_list_end("0-3\n"), 4);
	assert_int_equal(proc_list_end("0-1,4\n"), 5);
	assert_int_equal(proc_list_end("4,0\n"), 5);
	assert_int_equal(proc_list_end("\n"), 0);
	assert_int_equal(proc_list_end(""), 0);
}

static void files(void **state)
{
	char *text = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(proc_read("/proc/self/nosuch", &text, &size), -ENOENT);
	assert_int_equal(proc_read("/proc", &text, &size), -EISDIR);
	assert_true(proc_read("/proc/self/status", &text, &size) > 0);
	assert_non_null(strstr(text, "Name:"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmstat),
		cmocka_unit_test(numa_maps),
		cmocka_unit_test(sched),
		cmocka_unit_test(lists),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
