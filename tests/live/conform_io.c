/* SPDX-License-Identifier: MIT */
/*
 * conform_io: data that the kernel or a device puts into memory by itself: read(2), direct I/O,
 * io_uring with registered buffers. The file is an unnamed one in TMPDIR; where direct I/O or
 * io_uring is not to be had both sides say so.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include "conform.h"

enum {
	CHUNK = 64 << 10,
	ROUNDS = 4, /* over the whole area: pages are armed in between */
	ENTRIES = 8,
};

/* A file of AREA bytes with another pattern than the area's, to be read with these flags more. */
static int file_new(int flags)
{
	const char *dir = getenv("TMPDIR");
	char *p = malloc(AREA), path[64];
	const int fd = open(dir != NULL ? dir : "/tmp", O_TMPFILE | O_RDWR, 0600);
	int again;

	if (fd < 0 || p == NULL) {
		printf("no file\n");
		exit(3);
	}
	fill(p, AREA, 77);
	if (write(fd, p, AREA) != AREA || fsync(fd) != 0)
		printf("not written\n");
	free(p);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | flags);
	if (again < 0)
		say_rc("open", again);
	close(fd);
	return again;
}

/* Chunk by chunk, the last one first. */
static void read_all(int fd, char *p)
{
	long bytes = 0;

	for (long at = AREA - CHUNK; at >= 0; at -= CHUNK) {
		const ssize_t n = pread(fd, p + at, CHUNK, at);

		if (n < 0) {
			say_rc("pread", n);
			return;
		}
		bytes += n;
	}
	printf("read %ld\n", bytes);
}

static void read_with(int flags)
{
	const int fd = file_new(flags);
	char *p = area_new();

	for (int i = 0; fd >= 0 && i < ROUNDS; i++) {
		fill(p, AREA, (unsigned int)i);
		age();
		read_all(fd, p);
		say_sum("read", p, AREA);
		age();
		say_sum("later", p, AREA);
	}
}

static void reading(void)
{
	read_with(0);
}

static void direct_reading(void)
{
	read_with(O_DIRECT);
}

/* What is armed is written out. */
static void direct_writing(void)
{
	const char *dir = getenv("TMPDIR");
	const int fd = open(dir != NULL ? dir : "/tmp", O_TMPFILE | O_RDWR | O_DIRECT, 0600);
	char *p = area_new(), *q = malloc(AREA);

	if (fd < 0) {
		say_rc("open", fd);
		return;
	}
	age();
	say_rc("pwrite", pwrite(fd, p, AREA, 0) == AREA ? 0 : -1);
	fcntl(fd, F_SETFL, 0);
	printf("read back %zd\n", pread(fd, q, AREA, 0));
	say_sum("file", q, AREA);
}

/* ---- while the program forks ---- */

enum {
	READERS = 2,
	FORKS = 20,
	LONG = 2 << 20, /* takes the disk some time */
};

struct reader {
	pthread_t thread;
	char *to, *expected;
	int fd;
	_Atomic bool stop;
	long wrong, short_reads;
};

/* Each chunk is spoiled, read again by the disk, and looked at. */
static void *keep_reading(void *reader)
{
	struct reader *r = reader;
	const long half = AREA / READERS;

	for (long at = 0; !atomic_load(&r->stop); at = (at + LONG) % half) {
		memset(r->to + at, 0x5a, LONG);
		r->short_reads += pread(r->fd, r->to + at, LONG, at) != LONG;
		r->wrong += memcmp(r->to + at, r->expected + at, LONG) != 0;
	}
	return NULL;
}

static void fork_and_wait(int i)
{
	const struct timespec t = {0, 5000000L * (i % 3)};
	const pid_t child = fork();

	if (child == 0) {
		nanosleep(&t, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	age();
}

/* What a child made private comes back while reads are on their way. */
static void direct_forks(void)
{
	const int fd = file_new(O_DIRECT);
	char *p = area_new(), *expected = malloc(AREA);
	struct reader r[READERS];

	if (fd < 0 || expected == NULL)
		return;
	fill(expected, AREA, 77);
	fflush(stdout);
	for (int i = 0; i < READERS; i++) {
		r[i] = (struct reader){
			.to = p + (size_t)i * (AREA / READERS), .expected = expected, .fd = fd};
		pthread_create(&r[i].thread, NULL, keep_reading, &r[i]);
	}
	for (int i = 0; i < FORKS; i++)
		fork_and_wait(i);
	for (int i = 0; i < READERS; i++) {
		atomic_store(&r[i].stop, true);
		pthread_join(r[i].thread, NULL);
		printf("wrong %ld, short %ld\n", r[i].wrong, r[i].short_reads);
	}
}

/* ---- io_uring, by its system calls ---- */

struct ring {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static int ring_open(struct ring *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &r->p);
	if (r->fd < 0)
		return -1;
	r->sq = mmap(NULL, r->p.sq_off.array + r->p.sq_entries * 4, PROT_READ | PROT_WRITE,
		MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe),
		PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE, MAP_SHARED,
		r->fd, IORING_OFF_SQES);
	return r->sq == MAP_FAILED || r->cq == MAP_FAILED || r->sqes == MAP_FAILED ? -1 : 0;
}

static _Atomic uint32_t *word(char *ring, uint32_t offset)
{
	return (_Atomic uint32_t *)(void *)(ring + offset);
}

/* One read: what it answered. */
static int read_with_opcode(
	struct ring *r, uint8_t opcode, int fd, char *to, unsigned int bytes, uint64_t at)
{
	const uint32_t tail = atomic_load(word(r->sq, r->p.sq_off.tail));
	const uint32_t slot = tail & *word(r->sq, r->p.sq_off.ring_mask);
	const uint32_t head = atomic_load(word(r->cq, r->p.cq_off.head));
	const struct io_uring_cqe *cqe;

	r->sqes[slot] = (struct io_uring_sqe){.opcode = opcode,
		.fd = fd,
		.off = at,
		.addr = (uint64_t)(uintptr_t)to,
		.len = bytes,
		.buf_index = 0};
	*word(r->sq, r->p.sq_off.array + slot * 4) = slot;
	atomic_store(word(r->sq, r->p.sq_off.tail), tail + 1);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	cqe = (const struct io_uring_cqe *)(const void *)(r->cq + r->p.cq_off.cqes) +
	      (head & *word(r->cq, r->p.cq_off.ring_mask));
	atomic_store(word(r->cq, r->p.cq_off.head), head + 1);
	return cqe->res;
}

/* Into the registered buffer. */
static int read_fixed(struct ring *r, int fd, char *to, unsigned int bytes, uint64_t at)
{
	return read_with_opcode(r, IORING_OP_READ_FIXED, fd, to, bytes, at);
}

static void ring_read_all(struct ring *r, int fd, char *p)
{
	long bytes = 0;

	for (long at = 0; at < AREA; at += CHUNK) {
		const int n = read_fixed(r, fd, p + at, CHUNK, (uint64_t)at);

		if (n < 0) {
			printf("read: %s\n", strerrorname_np(-n));
			return;
		}
		bytes += n;
	}
	printf("read %ld\n", bytes);
}

/* The whole area is one registered buffer, for as long as it lasts. */
static int ring_of(struct ring *r, char *p)
{
	struct iovec whole = {p, AREA};

	if (ring_open(r) != 0) {
		say_rc("io_uring", -1);
		return -1;
	}
	if (syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &whole, 1) != 0) {
		say_rc("register", -1);
		return -1;
	}
	return 0;
}

static void ring_reading(int flags)
{
	const int fd = file_new(flags);
	char *p = area_new();
	struct ring r;

	if (fd < 0 || ring_of(&r, p) != 0)
		return;
	for (int i = 0; i < ROUNDS; i++) {
		fill(p, AREA, (unsigned int)i);
		age();
		ring_read_all(&r, fd, p);
		say_sum("read", p, AREA);
		age();
		say_sum("later", p, AREA);
	}
	say_rc("unregister",
		syscall(SYS_io_uring_register, r.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	age();
	say_sum("unregistered", p, AREA);
	say_rc("munmap", munmap(p, AREA));
}

static void uring(void)
{
	ring_reading(0);
}

static void uring_direct(void)
{
	ring_reading(O_DIRECT);
}

/* Memory that is registered is the parent's after a fork, and goes on to be what is read into. */
static void uring_fork(void)
{
	const int fd = file_new(0);
	char *p = area_new();
	struct ring r;
	int go[2];
	pid_t child;
	char c = 0;

	if (fd < 0 || ring_of(&r, p) != 0 || pipe(go) != 0)
		return;
	age();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		close(go[1]);
		(void)!read(go[0], &c, 1);
		_exit((int)(sum(p, AREA) % 251));
	}
	fill(p, AREA / 2, 5);
	ring_read_all(&r, fd, p);
	say_sum("parent", p, AREA);
	close(go[1]);
	say_child("child", child);
	age();
	ring_read_all(&r, fd, p);
	say_sum("afterwards", p, AREA);
}

/* The ring is named by its number in the task's own table, which is a flag of the call. */
static void uring_registered_ring(void)
{
	struct {
		uint32_t offset, resv;
		uint64_t data;
	} update = {.offset = UINT32_MAX};
	const int fd = file_new(0);
	char *p = area_new();
	struct iovec whole = {p, AREA};
	struct ring r;
	pid_t child;

	if (fd < 0 || ring_open(&r) != 0)
		return;
	update.data = (uint64_t)r.fd;
	if (syscall(SYS_io_uring_register, r.fd, 20, &update, 1) != 1) {
		say_rc("register the ring", -1);
		return;
	}
	say_rc("register", syscall(SYS_io_uring_register, update.offset,
				   IORING_REGISTER_BUFFERS | 1U << 31, &whole, 1));
	age();
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(0);
	fill(p, AREA, 5);
	ring_read_all(&r, fd, p);
	say_sum("parent", p, AREA);
	say_child("child", child);
}

/* The rings lie in memory of the program's own: they are where the kernel looks after a fork, too.
 */
static void uring_own_rings(void)
{
	const int fd = file_new(0);
	char *p = area_new(), *to = p + AREA / 2;
	const uint64_t rings = (uint64_t)(uintptr_t)p, sqes = rings + (2 << 20);
	struct ring r = {.sq = p, .cq = p, .sqes = (struct io_uring_sqe *)(uintptr_t)sqes};
	pid_t child;

	if (fd < 0)
		return;
	memset(p, 0, 4 << 20);
	r.p.flags = 1U << 14;
	memcpy((char *)(&r.p.sq_off + 1) - 8, &sqes, 8);
	memcpy((char *)(&r.p.cq_off + 1) - 8, &rings, 8);
	age();
	r.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &r.p);
	if (r.fd < 0) {
		say_rc("io_uring", -1);
		return;
	}
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(0);
	printf("read %d\n", read_with_opcode(&r, IORING_OP_READ, fd, to, CHUNK, 0));
	say_sum("parent", to, CHUNK);
	say_child("child", child);
}

const struct scenario conform_io[] = {
	{"reading", reading},
	{"direct_reading", direct_reading},
	{"direct_writing", direct_writing},
	{"direct_forks", direct_forks},
	{"uring", uring},
	{"uring_direct", uring_direct},
	{"uring_fork", uring_fork},
	{"uring_own_rings", uring_own_rings},
	{"uring_registered_ring", uring_registered_ring},
	{NULL, NULL},
};
