/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include "agent.h"

/* Newer than some headers. */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#define FEATURE_MINOR_SHMEM	 (1U << 10)
#define FEATURE_WP_HUGETLB_SHMEM (1U << 12)

enum {
	RETRIES = 1000, /* of -EAGAIN, which ends when the address space stops changing */
};

static long api(long fd, uint64_t features)
{
	struct uffdio_api a = {.api = UFFD_API, .features = features};

	return NB_OS_3(ioctl, fd, UFFDIO_API, &a);
}

static long from_device(void)
{
	const long dev = NB_OS_4(openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0);
	long fd;

	if (dev < 0)
		return dev;
	fd = NB_OS_3(ioctl, dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	NB_OS_1(close, dev);
	return fd;
}

/*
 * The device first, then the system call. A descriptor for user-mode faults alone is of no use
 * here: a read(2) into an armed page would fail, so it is not asked for.
 */
static long open_any(void)
{
	const long fd = from_device();

	return fd >= 0 ? fd : NB_OS_1(userfaultfd, O_CLOEXEC | O_NONBLOCK);
}

/* Features can be asked for once a descriptor: a refused one needs a new descriptor. */
static long open_with(uint64_t features)
{
	const long fd = open_any();
	long rc;

	if (fd < 0)
		return fd;
	rc = api(fd, features);
	if (rc == 0)
		return fd;
	NB_OS_1(close, fd);
	return rc;
}

long nb_uffd_open(bool *has_wp)
{
	const uint64_t needed = FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID;
	long fd = open_with(needed | FEATURE_WP_HUGETLB_SHMEM);

	*has_wp = fd >= 0;
	if (fd == -EINVAL)
		fd = open_with(needed);
	return fd;
}

long nb_uffd_register(int uffd, uint64_t start, uint64_t end, uint64_t mode)
{
	struct uffdio_register r = {.range = {start, end - start}, .mode = mode};

	return NB_OS_3(ioctl, uffd, UFFDIO_REGISTER, &r);
}

long nb_uffd_unregister(int uffd, uint64_t start, uint64_t end)
{
	struct uffdio_range r = {start, end - start};

	return NB_OS_3(ioctl, uffd, UFFDIO_UNREGISTER, &r);
}

long nb_uffd_protect(int uffd, uint64_t start, uint64_t end, bool on)
{
	struct uffdio_writeprotect p = {
		.range = {start, end - start},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};
	long rc = -EAGAIN;

	for (int i = 0; i < RETRIES && rc == -EAGAIN; i++)
		rc = NB_OS_3(ioctl, uffd, UFFDIO_WRITEPROTECT, &p);
	return rc;
}

long nb_uffd_wake(int uffd, uint64_t start, uint64_t end)
{
	struct uffdio_range r = {start, end - start};

	return NB_OS_3(ioctl, uffd, UFFDIO_WAKE, &r);
}

long nb_uffd_continue_from(int uffd, uint64_t *at, uint64_t end)
{
	long rc = -EAGAIN;

	for (int i = 0; i < RETRIES && rc == -EAGAIN && *at < end; i++) {
		struct uffdio_continue c = {.range = {*at, end - *at}};

		rc = NB_OS_3(ioctl, uffd, UFFDIO_CONTINUE, &c);
		if (rc == 0)
			*at = end;
		if (rc == -EAGAIN && c.mapped > 0) {
			*at += (uint64_t)c.mapped;
			i = 0;
		}
	}
	return *at >= end ? 0 : rc;
}

long nb_uffd_continue(int uffd, uint64_t start, uint64_t end)
{
	return nb_uffd_continue_from(uffd, &start, end);
}
