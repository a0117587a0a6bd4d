/* SPDX-License-Identifier: MIT */
/* What backing costs in huge pages, for each pair of the kernel's settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "thp.h"

static char dir[] = "/tmp/numabal-thp-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (text == NULL) {
		unlink(path);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static enum nb_thp_loss loss(const char *enabled, const char *shmem)
{
	struct nb_thp t;

	put("enabled", enabled);
	put("shmem_enabled", shmem);
	nb_thp_read(dir, &t);
	return t.loss;
}

static void test_losses(void **state)
{
	(void)state;
	assert_int_equal(
		loss("[always] madvise never\n", "always within_size advise [never] deny force\n"),
		NB_THP_LOST_ALL);
	assert_int_equal(
		loss("[always] madvise never\n", "always within_size [advise] never deny force\n"),
		NB_THP_LOST_ALL);
	assert_int_equal(
		loss("[always] madvise never\n", "[always] within_size advise never deny force\n"),
		NB_THP_KEPT);
	assert_int_equal(
		loss("always [madvise] never\n", "always within_size advise [never] deny force\n"),
		NB_THP_LOST_ADVISED);
	assert_int_equal(
		loss("always [madvise] never\n", "always within_size [advise] never deny force\n"),
		NB_THP_KEPT);
	assert_int_equal(
		loss("always madvise [never]\n", "always within_size advise [never] deny force\n"),
		NB_THP_KEPT);
}

static void test_unreadable(void **state)
{
	(void)state;
	assert_int_equal(loss(NULL, NULL), NB_THP_KEPT);
	assert_int_equal(loss("[always] madvise never\n", NULL), NB_THP_KEPT);
	assert_int_equal(loss("[always", "]["), NB_THP_KEPT);
	assert_int_equal(loss("", ""), NB_THP_KEPT);
	assert_int_equal(
		loss("[a_word_longer_than_any_setting_of_the_kernel]", "[never]"), NB_THP_KEPT);
}

static int end(void **state)
{
	(void)state;
	put("enabled", NULL);
	put("shmem_enabled", NULL);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_unreadable),
	};

	if (mkdtemp(dir) == NULL)
		return 1;
	return cmocka_run_group_tests_name("thp", tests, NULL, end);
}
