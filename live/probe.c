/* SPDX-License-Identifier: MIT */
#include "probe.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define FEATURE_MINOR_SHMEM	 (1U << 10)
#define FEATURE_WP_HUGETLB_SHMEM (1U << 12)

enum {
	PAGE = 4096,
	HUGE = 2 << 20,
	WAIT_MS = 1000,
};

const struct nb_probe_info nb_probe_table[NB_NR_PROBES] = {
#define X(NAME, name, needed, text, command) {name, needed, text, command},
	NB_PROBES(X)
#undef X
};

static void answer(struct nb_probe_result *r, enum nb_probe p, bool yes, const char *call, int err)
{
	r->answer[p] = yes ? NB_PROBE_YES : NB_PROBE_NO;
	if (!yes)
		snprintf(r->why[p], NB_PROBE_WHY, "%s: %s", call, strerror(err));
}

/* ---- userfaultfd: the device, the call, the call for user mode ---- */

struct attempt {
	int fd, err;
};

static struct attempt device(void)
{
	struct attempt a = {-1, 0};
	const int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);

	if (dev >= 0)
		a.fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	a.err = a.fd < 0 ? errno : 0;
	if (dev >= 0)
		close(dev);
	return a;
}

static struct attempt call(int flags)
{
	struct attempt a = {-1, 0};

	a.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
	a.err = a.fd < 0 ? errno : 0;
	return a;
}

/* A descriptor, or -1 with each attempt's error in the answer. *user: it serves user mode alone. */
static int open_uffd(struct nb_probe_result *r, bool *user)
{
	const struct attempt dev = device();
	struct attempt sys, only;

	*user = false;
	r->answer[NB_PROBE_USERFAULTFD] = NB_PROBE_YES;
	if (dev.fd >= 0)
		return dev.fd;
	sys = call(0);
	if (sys.fd >= 0)
		return sys.fd;
	*user = true;
	only = call(UFFD_USER_MODE_ONLY);
	snprintf(r->why[NB_PROBE_USERFAULTFD], NB_PROBE_WHY,
		"/dev/userfaultfd: %s; userfaultfd(2): %s; with UFFD_USER_MODE_ONLY: %s",
		strerror(dev.err), strerror(sys.err), only.fd < 0 ? strerror(only.err) : "works");
	if (only.fd < 0)
		r->answer[NB_PROBE_USERFAULTFD] = NB_PROBE_NO;
	return only.fd;
}

static bool api(int fd, uint64_t features)
{
	struct uffdio_api a = {.api = UFFD_API, .features = features};

	return ioctl(fd, UFFDIO_API, &a) == 0;
}

static uint64_t all_features(void)
{
	struct uffdio_api a = {.api = UFFD_API};
	struct attempt t = device();

	if (t.fd < 0)
		t = call(0);
	if (t.fd < 0)
		t = call(UFFD_USER_MODE_ONLY);
	if (t.fd < 0 || ioctl(t.fd, UFFDIO_API, &a) != 0)
		a.features = 0;
	if (t.fd >= 0)
		close(t.fd);
	return a.features;
}

/* Serves one fault, or gives up; the descriptor is closed then, and whoever waits goes on. */
static void *serve_one(void *p)
{
	const int fd = *(int *)p;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct uffd_msg m;

	if (poll(&poll_fd, 1, WAIT_MS) == 1 && read(fd, &m, sizeof(m)) == sizeof(m)) {
		const uint64_t page = m.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		struct uffdio_continue c = {.range = {page, PAGE}};

		ioctl(fd, UFFDIO_CONTINUE, &c);
	}
	close(fd);
	return NULL;
}

/* read(2) from a pipe into an armed page: 0, or what it failed with. */
static int read_into_armed(int fd, char *page)
{
	struct uffdio_register reg = {
		.range = {(uint64_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MINOR};
	pthread_t thread;
	int pipe_fd[2], err = 0;

	page[0] = 'x';
	if (ioctl(fd, UFFDIO_REGISTER, &reg) != 0 || pipe2(pipe_fd, O_CLOEXEC) != 0)
		return errno;
	madvise(page, PAGE, MADV_DONTNEED);
	if (write(pipe_fd[1], "y", 1) != 1 || pthread_create(&thread, NULL, serve_one, &fd) != 0)
		return errno;
	if (read(pipe_fd[0], page, 1) != 1)
		err = errno;
	pthread_join(thread, NULL);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return err;
}

static void probe_kernel_faults(struct nb_probe_result *r, int fd)
{
	const int mem = memfd_create("numabal-probe", MFD_CLOEXEC);
	char *page = MAP_FAILED;
	int err;

	if (mem >= 0 && ftruncate(mem, PAGE) == 0)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	err = page != MAP_FAILED ? read_into_armed(fd, page) : errno;
	answer(r, NB_PROBE_KERNEL_FAULTS, err == 0, "read(2) from a pipe into an armed page", err);
	if (page != MAP_FAILED)
		munmap(page, PAGE);
	if (mem >= 0)
		close(mem);
}

static void probe_userfaultfd(struct nb_probe_result *r)
{
	bool user;
	const int fd = open_uffd(r, &user);
	const uint64_t features = fd >= 0 ? all_features() : 0;

	if (fd < 0)
		return;
	answer(r, NB_PROBE_MINOR_SHMEM, features & FEATURE_MINOR_SHMEM, "UFFDIO_API", EOPNOTSUPP);
	answer(r, NB_PROBE_WP_SHMEM, features & FEATURE_WP_HUGETLB_SHMEM, "UFFDIO_API", EOPNOTSUPP);
	/* serve_one closes it. */
	if ((features & FEATURE_MINOR_SHMEM) && api(fd, FEATURE_MINOR_SHMEM))
		probe_kernel_faults(r, fd);
	else
		close(fd);
}

/* ---- the others ---- */

static void probe_memfd(struct nb_probe_result *r)
{
	const int fd = memfd_create("numabal-probe", MFD_CLOEXEC);

	answer(r, NB_PROBE_MEMFD, fd >= 0, "memfd_create", errno);
	if (fd >= 0)
		close(fd);
}

/* In a child: what is closed there is nobody's loss. */
static void probe_close_range(struct nb_probe_result *r)
{
	const pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		const long rc = syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_UNSHARE);

		_Exit(rc == 0 ? 0 : errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return;
	answer(r, NB_PROBE_CLOSE_RANGE, WEXITSTATUS(status) == 0, "close_range",
		WEXITSTATUS(status));
}

/* On a page of its own, page aligned: anything else answers for the address and not for the right.
 */
static void probe_placement(struct nb_probe_result *r)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0, mode = 0;
	long rc;

	if (page == MAP_FAILED)
		return;
	*(volatile char *)page = 1;
	rc = syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0);
	answer(r, NB_PROBE_MOVE_PAGES, rc == 0 && status >= 0, "move_pages", rc ? errno : -status);
	rc = syscall(SYS_get_mempolicy, &mode, NULL, 0UL, page, 2UL /* MPOL_F_ADDR */);
	answer(r, NB_PROBE_GET_MEMPOLICY, rc == 0, "get_mempolicy", errno);
	munmap(page, PAGE);
}

static void probe_collapse(struct nb_probe_result *r)
{
	const int fd = memfd_create("numabal-probe", MFD_CLOEXEC);
	char *p = MAP_FAILED, *block;
	long rc;

	if (fd >= 0 && ftruncate(fd, 2 * HUGE) == 0)
		p = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	block = (char *)(((uint64_t)p + HUGE - 1) & ~(uint64_t)(HUGE - 1));
	if (mmap(block, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
		MAP_FAILED) {
		block[0] = 1;
		rc = madvise(block, HUGE, MADV_COLLAPSE);
		answer(r, NB_PROBE_COLLAPSE, rc == 0, "madvise(MADV_COLLAPSE)", errno);
	}
	munmap(p, 2 * HUGE);
	close(fd);
}

void nb_probe_all(struct nb_probe_result *r)
{
	/* A small limit on files is an answer, not a reason to be killed. */
	const sighandler_t old = signal(SIGXFSZ, SIG_IGN);

	memset(r, 0, sizeof(*r));
	probe_memfd(r);
	probe_close_range(r);
	probe_userfaultfd(r);
	probe_placement(r);
	probe_collapse(r);
	signal(SIGXFSZ, old);
}

bool nb_probe_can_balance(const struct nb_probe_result *r)
{
	for (int i = 0; i < NB_NR_PROBES; i++)
		if (nb_probe_table[i].needed && r->answer[i] != NB_PROBE_YES)
			return false;
	return true;
}
