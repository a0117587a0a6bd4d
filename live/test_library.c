/* SPDX-License-Identifier: MIT */
/* libnumabal: what its header promises, on virtual nodes. Skipped where userfaultfd is refused. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "../include/numabal.h"

enum {
	MIB = 1 << 20,
	BYTES = 32 * MIB,
};

static struct numabal *nb;

static int open_two(void **state)
{
	const struct numabal_options o = {.size = sizeof(o), .virtual_nodes = 2};

	(void)state;
	return numabal_open(&nb, &o) == -EOPNOTSUPP ? 0 : nb == NULL;
}

static int shut(void **state)
{
	(void)state;
	numabal_close(nb);
	nb = NULL;
	return 0;
}

static void need(void)
{
	if (nb == NULL)
		skip();
}

static uint64_t managed(void)
{
	struct numabal_counters c = {.size = sizeof(c)};

	assert_int_equal(numabal_read_counters(nb, &c), 0);
	return c.managed_bytes;
}

static void test_options_are_checked(void **state)
{
	struct {
		struct numabal_options o;
		long more;
	} newer = {{.size = sizeof(newer), .virtual_nodes = 2}, 1};
	struct numabal_options o = {.size = 3};
	struct numabal *other;

	(void)state;
	assert_int_equal(numabal_open(&other, &o), -EINVAL);
	assert_int_equal(numabal_open(&other, &newer.o), -EINVAL);
	o = (struct numabal_options){.size = sizeof(o), .system = "nobody"};
	assert_int_equal(numabal_open(&other, &o), -ENOENT);
	o = (struct numabal_options){.size = sizeof(o), .virtual_nodes = 100000};
	assert_int_equal(numabal_open(&other, &o), -EINVAL);
	assert_null(other);
	numabal_close(NULL);
}

static void test_alloc_and_free(void **state)
{
	char *p, *small;

	(void)state;
	need();
	p = numabal_alloc(nb, BYTES - 5);
	small = numabal_alloc(nb, 100);
	assert_non_null(p);
	assert_non_null(small);
	assert_int_equal((uintptr_t)p % (2 * MIB), 0);
	assert_int_equal(managed(), BYTES);
	for (size_t i = 0; i < BYTES; i += 4096)
		assert_int_equal(p[i], 0);
	numabal_free(nb, p, BYTES - 5);
	numabal_free(nb, small, 100);
	numabal_free(nb, NULL, 100);
	assert_int_equal(managed(), 0);
	assert_null(numabal_alloc(nb, 0));
	assert_null(numabal_alloc(nb, SIZE_MAX));
}

static void test_bad_ranges(void **state)
{
	char *p;

	(void)state;
	need();
	p = numabal_alloc(nb, BYTES);
	assert_int_equal(numabal_manage(nb, p + 1, 4096), -EINVAL);
	assert_int_equal(numabal_manage(nb, p, 0), -EINVAL);
	assert_int_equal(numabal_release(nb, p, 100), -EINVAL);
	assert_int_equal(numabal_discard(nb, p, 100), -EINVAL);
	assert_int_equal(numabal_next_touch(nb, p, 0), -EINVAL);
	assert_int_equal(numabal_next_touch(nb, (void *)4096, 4096), -ENOENT);
	assert_int_equal(numabal_set_policy(nb, p, BYTES, (enum numabal_policy)7, 1), -EINVAL);
	assert_int_equal(numabal_set_policy(nb, p, BYTES, NUMABAL_BIND, 0), -EINVAL);
	numabal_free(nb, p, BYTES);
}

static void test_contents_survive(void **state)
{
	char *p, *copy;

	(void)state;
	need();
	p = numabal_alloc(nb, BYTES);
	copy = numabal_alloc(nb, BYTES);
	for (size_t i = 0; i < BYTES; i += 64)
		p[i] = (char)(i / 64 * 7);
	memcpy(copy, p, BYTES);
	assert_int_equal(numabal_discard(nb, p + 8 * MIB, 4 * MIB), 0);
	memset(copy + 8 * MIB, 0, 4 * MIB);
	assert_memory_equal(p, copy, BYTES);
	assert_int_equal(numabal_release(nb, p, 16 * MIB), 0);
	assert_memory_equal(p, copy, BYTES);
	assert_int_equal(managed(), BYTES + 16 * MIB);
	numabal_free(nb, p, BYTES);
	numabal_free(nb, copy, BYTES);
}

static void *touch(void *p)
{
	char *area = p;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int round = 0; round < 40; round++) {
		for (size_t i = 0; i < BYTES; i += 4096)
			area[i]++;
		usleep(5000);
	}
	return NULL;
}

static void test_next_touch_moves(void **state)
{
	struct numabal_counters c = {.size = sizeof(c)};
	cpu_set_t first;
	pthread_t t;
	char *p;

	(void)state;
	need();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	p = numabal_alloc(nb, BYTES);
	memset(p, 1, BYTES);
	assert_int_equal(numabal_next_touch(nb, p, BYTES), 0);
	pthread_create(&t, NULL, touch, p);
	pthread_join(t, NULL);
	usleep(200000);
	numabal_read_counters(nb, &c);
	/* Every block whose armed page was touched has moved: with an engine that can, all of them.
	 */
	assert_true(c.pages_migrated >= BYTES / 4096 / 2);
	numabal_free(nb, p, BYTES);
}

static void test_fork(void **state)
{
	char *p;
	int status;
	pid_t pid;

	(void)state;
	need();
	p = numabal_alloc(nb, BYTES);
	memset(p, 3, BYTES);
	pid = fork();
	if (pid == 0) {
		p[0]++;
		p[BYTES - 1]++;
		usleep(20000);
		_exit(p[0] == 4 && p[BYTES / 2] == 3 ? 0 : 1);
	}
	memset(p, 5, BYTES);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < BYTES; i += 4096)
		assert_int_equal(p[i], 5);
	numabal_free(nb, p, BYTES);
}

static void test_close_keeps_memory(void **state)
{
	char *p;

	need();
	p = numabal_alloc(nb, BYTES);
	memset(p, 9, BYTES);
	numabal_close(nb);
	for (size_t i = 0; i < BYTES; i += 4096)
		assert_int_equal(p[i], 9);
	munmap(p, BYTES);
	assert_int_equal(open_two(state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_checked),
		cmocka_unit_test_setup_teardown(test_alloc_and_free, open_two, shut),
		cmocka_unit_test_setup_teardown(test_bad_ranges, open_two, shut),
		cmocka_unit_test_setup_teardown(test_contents_survive, open_two, shut),
		cmocka_unit_test_setup_teardown(test_next_touch_moves, open_two, shut),
		cmocka_unit_test_setup_teardown(test_fork, open_two, shut),
		cmocka_unit_test_setup_teardown(test_close_keeps_memory, open_two, shut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
