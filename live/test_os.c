/* SPDX-License-Identifier: MIT */
/* The table of system calls: each row can be made to fail, and is put back; the lock and the heap
 * on top. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "heap.h"
#include "lock.h"
#include "os.h"

static long refuse(enum nb_os_call call, const struct nb_os_args *args)
{
	(void)call;
	(void)args;
	return -ENOMEM;
}

static int reset(void **state)
{
	(void)state;
	nb_os_reset();
	return 0;
}

static void test_rows_are_named_and_put_back(void **state)
{
	(void)state;
	for (int i = 0; i < NB_NR_OS_CALLS; i++) {
		assert_true(strlen(nb_os_table[i].name) > 1);
		nb_os_table[i].current = refuse;
		assert_int_equal(nb_os((enum nb_os_call)i, 0, 0, 0, 0, 0, 0), -ENOMEM);
	}
	nb_os_reset();
	assert_int_equal(NB_OS_0(getpid), getpid());
	for (int i = 0; i < NB_NR_OS_CALLS; i++)
		assert_ptr_equal((void *)nb_os_table[i].current, (void *)nb_os_table[i].fallback);
}

static void test_errors_are_values(void **state)
{
	(void)state;
	errno = 77;
	assert_int_equal(NB_OS_1(close, 999999), -EBADF);
	assert_int_equal(NB_OS_2(munmap, 1, 4096), -EINVAL);
	assert_int_equal(errno, 77);
	assert_false(nb_os_failed(0));
	assert_false(nb_os_failed(-5000));
	assert_true(nb_os_failed(-1));
}

static void test_no_memory_is_null(void **state)
{
	struct nb_heap heap = {0};

	(void)state;
	nb_os_table[NB_OS_mmap].current = refuse;
	assert_null(nb_os_pages(4096));
	assert_null(nb_heap_alloc(&heap, 10));
	assert_null(nb_heap_alloc(&heap, 1 << 20));
}

static void test_heap(void **state)
{
	struct nb_heap heap = {0};
	char *p[64];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 64; i++) {
			const size_t bytes = (size_t)1 << (i % 18);

			p[i] = nb_heap_alloc(&heap, bytes);
			assert_non_null(p[i]);
			for (size_t k = 0; k < bytes; k++)
				assert_int_equal(p[i][k], 0);
			memset(p[i], i + 1, bytes);
		}
		for (int i = 0; i < 64; i++) {
			const size_t bytes = (size_t)1 << (i % 18);

			assert_int_equal(p[i][bytes - 1], i + 1);
			nb_heap_free(&heap, p[i], bytes);
		}
	}
	nb_heap_free(&heap, NULL, 10);
	assert_true(heap.bytes <= 4 << 20);
	assert_null(nb_heap_alloc(&heap, SIZE_MAX));
}

static void test_read_file(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(nb_os_read_file("/nowhere/at/all", text, sizeof(text)), -ENOENT);
	assert_int_equal(nb_os_read_file("/proc/self/maps", text, sizeof(text)), sizeof(text));
}

/* ---- the lock ---- */

static struct nb_lock lock;
static long together;

static void *count(void *unused)
{
	struct nb_signals signals;

	for (int i = 0; i < 20000; i++) {
		nb_lock(&lock, &signals);
		together++;
		nb_unlock(&lock, &signals);
	}
	return unused;
}

static void test_lock_excludes(void **state)
{
	pthread_t t[4];

	(void)state;
	nb_lock_init(&lock);
	together = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, count, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(together, 80000);
}

static void test_lock_blocks_signals(void **state)
{
	struct nb_signals signals, other;
	sigset_t now;

	(void)state;
	nb_lock_init(&lock);
	nb_lock(&lock, &signals);
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_true(sigismember(&now, SIGUSR1));
	assert_false(nb_lock_try(&lock, &other));
	assert_false(nb_lock_timed(&lock, &other, 1000000));
	nb_unlock(&lock, &signals);
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_false(sigismember(&now, SIGUSR1));
	assert_true(nb_lock_try(&lock, &other));
	nb_unlock(&lock, &other);
}

static void *take_and_keep(void *signals)
{
	nb_lock(&lock, signals);
	return NULL;
}

static void *unlock_late(void *signals)
{
	nb_unlock(&lock, signals);
	return NULL;
}

static void test_lock_stolen(void **state)
{
	struct nb_signals theirs, ours, third;
	pthread_t t;

	(void)state;
	nb_lock_init(&lock);
	pthread_create(&t, NULL, take_and_keep, &theirs);
	pthread_join(t, NULL);
	assert_false(nb_lock_timed(&lock, &ours, 1000000));
	nb_lock_steal(&lock, &ours);
	/* Nobody but the thief can unlock it. */
	pthread_create(&t, NULL, unlock_late, &theirs);
	pthread_join(t, NULL);
	assert_false(nb_lock_try(&lock, &third));
	nb_unlock(&lock, &ours);
	assert_true(nb_lock_try(&lock, &third));
	nb_unlock(&lock, &third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_rows_are_named_and_put_back, reset),
		cmocka_unit_test_teardown(test_errors_are_values, reset),
		cmocka_unit_test_teardown(test_no_memory_is_null, reset),
		cmocka_unit_test_teardown(test_heap, reset),
		cmocka_unit_test_teardown(test_read_file, reset),
		cmocka_unit_test_teardown(test_lock_excludes, reset),
		cmocka_unit_test_teardown(test_lock_blocks_signals, reset),
		cmocka_unit_test_teardown(test_lock_stolen, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
