/* SPDX-License-Identifier: MIT */
/* What a report says of times and of huge pages. */
#include "live_huge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "live_report.h"

/* ---- so many of a thousand took less than that ---- */

static void nothing_took_no_time(void **state)
{
	const uint64_t h[NB_SESSION_HISTOGRAM] = {0};

	(void)state;
	assert_int_equal(live_below_ns(h, 990), 0);
}

static void all_alike(void **state)
{
	uint64_t h[NB_SESSION_HISTOGRAM] = {0};

	(void)state;
	h[10] = 7; /* 1024 to 2047 ns */
	assert_int_equal(live_below_ns(h, 1), 2048);
	assert_int_equal(live_below_ns(h, 990), 2048);
	assert_int_equal(live_below_ns(h, 1000), 2048);
}

static void one_in_a_hundred(void **state)
{
	uint64_t h[NB_SESSION_HISTOGRAM] = {0};

	(void)state;
	h[0] = 99;
	h[20] = 1;
	assert_int_equal(live_below_ns(h, 990), 2);
	assert_int_equal(live_below_ns(h, 991), 2 << 20);
	h[20] = 2;
	assert_int_equal(live_below_ns(h, 990), 2 << 20);
}

static void the_last_one_has_no_bound(void **state)
{
	uint64_t h[NB_SESSION_HISTOGRAM] = {0};

	(void)state;
	h[NB_SESSION_HISTOGRAM - 1] = 1;
	assert_int_equal(live_below_ns(h, 990), UINT64_C(1) << NB_SESSION_HISTOGRAM);
}

/* ---- smaps ---- */

static const char smaps[] =
	"55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
	"Size:                132 kB\n"
	"Rss:                 100 kB\n"
	"ShmemPmdMapped:        0 kB\n"
	"VmFlags: rd wr mr mw me ac sd\n"
	"7f1000000000-7f1004000000 rw-s 00000000 00:01 2051                       /memfd:numabal "
	"(deleted)\n"
	"Size:              65536 kB\n"
	"Rss:               40960 kB\n"
	"Pss:               40960 kB\n"
	"AnonHugePages:         0 kB\n"
	"ShmemPmdMapped:    20480 kB\n"
	"7f2000000000-7f2004000000 rw-s 00000000 00:01 2052                       /memfd:numabal-"
	"canary (deleted)\n"
	"Rss:                   4 kB\n"
	"ShmemPmdMapped:     2048 kB\n"
	"7f3000000000-7f3000200000 rw-s 00000000 00:01 2053                       /memfd:numabal "
	"(deleted)\n"
	"Rss:                2048 kB\n"
	"ShmemPmdMapped:     2048 kB\n"
	"7f4000000000-7f4000200000 rw-s 00000000 00:01 2054                       /tmp/x/memfd:"
	"numabal (deleted)\n"
	"Rss:                2048 kB\n"
	"ShmemPmdMapped:     2048 kB\n";

static void only_what_numabal_backs_counts(void **state)
{
	char text[sizeof(smaps)];
	struct live_huge h = {0};
	FILE *f;

	(void)state;
	memcpy(text, smaps, sizeof(smaps));
	f = fmemopen(text, sizeof(smaps) - 1, "r");
	assert_non_null(f);
	live_huge_add(&h, f);
	fclose(f);
	assert_int_equal(h.mapped_bytes, (40960 + 2048) << 10);
	assert_int_equal(h.huge_bytes, (20480 + 2048) << 10);
}

static void processes_that_are_gone_are_not_read(void **state)
{
	static struct nb_session s;
	struct live_huge h;

	(void)state;
	atomic_store(&s.slot[3].pid, INT32_MAX);
	atomic_store(&s.slot[3].stats.managed_bytes, 4096);
	live_huge_look(&h, &s);
	assert_int_equal(h.processes, 0);
	assert_int_equal(h.unread, 1);
	assert_int_equal(h.mapped_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_took_no_time),
		cmocka_unit_test(all_alike),
		cmocka_unit_test(one_in_a_hundred),
		cmocka_unit_test(the_last_one_has_no_bound),
		cmocka_unit_test(only_what_numabal_backs_counts),
		cmocka_unit_test(processes_that_are_gone_are_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
