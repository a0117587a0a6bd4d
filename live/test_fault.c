/* SPDX-License-Identifier: MIT */
/*
 * Every message of userfaultfd ends in exactly one of two ways, whatever the kernel says: the page
 * is mapped (UFFDIO_CONTINUE, which wakes), or the thread is woken to try again.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <cmocka.h>
#include "agent.h"

enum {
	FD = 7,
	PAGE = NB_PAGE_SIZE,
	MOST = 200, /* more than one read gives */
};

static struct {
	struct uffd_msg queue[MOST];
	int nr, given;
	long answer; /* of UFFDIO_CONTINUE */
	int again;   /* and -EAGAIN so many times before that */
	int continued, mapped, woken, others;
	uint64_t last;
} kernel;

static long fake_read(enum nb_os_call call, const struct nb_os_args *args)
{
	struct uffd_msg *to = (struct uffd_msg *)args->a[1];
	const int room = (int)((size_t)args->a[2] / sizeof(*to));
	const int left = kernel.nr - kernel.given, n = left < room ? left : room;

	(void)call;
	assert_int_equal(args->a[0], FD);
	if (n == 0)
		return -EAGAIN;
	memcpy(to, &kernel.queue[kernel.given], (size_t)n * sizeof(*to));
	kernel.given += n;
	return n * (long)sizeof(*to);
}

static long fake_ioctl(enum nb_os_call call, const struct nb_os_args *args)
{
	(void)call;
	if (args->a[1] == (long)UFFDIO_WAKE) {
		kernel.woken++;
		kernel.last = ((const struct uffdio_range *)args->a[2])->start;
		return 0;
	}
	if (args->a[1] != (long)UFFDIO_CONTINUE) {
		kernel.others++;
		return 0;
	}
	kernel.continued++;
	kernel.last = ((const struct uffdio_continue *)args->a[2])->range.start;
	if (kernel.again > 0) {
		kernel.again--;
		return -EAGAIN;
	}
	kernel.mapped += kernel.answer == 0;
	return kernel.answer;
}

static struct {
	struct nb_guest guest;
	struct nb_agent agent;
	struct nb_slot slot;
} room;

static void fault(uint64_t addr, uint64_t flags)
{
	struct uffd_msg *m = &kernel.queue[kernel.nr++];

	m->event = UFFD_EVENT_PAGEFAULT;
	m->arg.pagefault.address = addr;
	m->arg.pagefault.flags = flags;
	m->arg.pagefault.feat.ptid = 1;
}

static int begin(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	memset(&room, 0, sizeof(room));
	room.agent.guest = &room.guest;
	atomic_store(&room.guest.uffd, FD);
	atomic_store(&room.guest.slot, &room.slot);
	nb_os_table[NB_OS_read].current = fake_read;
	nb_os_table[NB_OS_ioctl].current = fake_ioctl;
	return 0;
}

static int end(void **state)
{
	(void)state;
	nb_os_reset();
	return 0;
}

static uint64_t counted(const _Atomic uint64_t *stat)
{
	return atomic_load(stat);
}

/* So many were mapped, and so many woken; nobody is left, and all are counted. */
static void expect(int mapped, int woken)
{
	nb_faults_resolve(&room.agent);
	assert_int_equal(kernel.given, kernel.nr);
	assert_int_equal(kernel.mapped, mapped);
	assert_int_equal(kernel.woken, woken);
	assert_int_equal(kernel.mapped + kernel.woken, kernel.nr);
	assert_int_equal(kernel.others, 0);
	assert_int_equal(counted(&room.slot.stats.faults), mapped);
	assert_int_equal(counted(&room.slot.stats.faults_other), woken);
	assert_int_equal(atomic_load(&room.guest.holding_ns), 0);
}

static void a_minor_fault_is_continued(void **state)
{
	(void)state;
	fault(0x7f0000001234, UFFD_PAGEFAULT_FLAG_MINOR);
	expect(1, 0);
	assert_int_equal(kernel.last, 0x7f0000001000);
}

/* A missing page in a range that is registered for minor faults: there is nothing to map. */
static void a_missing_page_is_woken_for(void **state)
{
	(void)state;
	fault(0x7f0000001234, 0);
	fault(0x7f0000002234, UFFD_PAGEFAULT_FLAG_WRITE);
	fault(0x7f0000003234, UFFD_PAGEFAULT_FLAG_WP | UFFD_PAGEFAULT_FLAG_WRITE);
	expect(0, 3);
	assert_int_equal(kernel.continued, 0);
	assert_int_equal(kernel.last, 0x7f0000003000);
}

/* It is mapped already; its range is gone; its page is; whatever comes next: who waits tries again.
 */
static void what_cannot_be_continued_is_woken(void **state)
{
	static const long errors[] = {
		-EEXIST, -ENOENT, -EFAULT, -EINVAL, -ENOMEM, -ESRCH, -EBUSY, -EPERM};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		begin(state);
		kernel.answer = errors[i];
		fault(0x7f0000005000, UFFD_PAGEFAULT_FLAG_MINOR);
		expect(0, 1);
		assert_int_equal(kernel.continued, 1);
	}
}

static void again_is_tried_again(void **state)
{
	(void)state;
	kernel.again = 20;
	fault(0x7f0000005000, UFFD_PAGEFAULT_FLAG_MINOR);
	expect(1, 0);
	assert_int_equal(kernel.continued, 21);
}

/* Not for ever: the address space may be changing for long. */
static void again_for_ever_is_woken(void **state)
{
	(void)state;
	kernel.again = INT32_MAX;
	fault(0x7f0000005000, UFFD_PAGEFAULT_FLAG_MINOR);
	expect(0, 1);
}

static void many_at_once(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < MOST; i++)
		fault(0x7f0000000000 + i * PAGE, i % 3 ? UFFD_PAGEFAULT_FLAG_MINOR : 0);
	expect(MOST - (MOST + 2) / 3, (MOST + 2) / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_minor_fault_is_continued, begin, end),
		cmocka_unit_test_setup_teardown(a_missing_page_is_woken_for, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_continued_is_woken, begin, end),
		cmocka_unit_test_setup_teardown(again_is_tried_again, begin, end),
		cmocka_unit_test_setup_teardown(again_for_ever_is_woken, begin, end),
		cmocka_unit_test_setup_teardown(many_at_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
