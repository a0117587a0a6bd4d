/* SPDX-License-Identifier: MIT */
/* conform_memory: mmap, munmap, mprotect, mremap, madvise and their kin. */
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include "conform.h"

static void mmap_kinds(void)
{
	static const struct {
		const char *what;
		size_t bytes;
		int prot, flags;
	} rows[] = {
		{"plain", AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS},
		{"odd length", AREA + 5, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS},
		{"nothing", 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS},
		{"too much", SIZE_MAX / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS},
		{"neither", AREA, PROT_READ | PROT_WRITE, MAP_ANONYMOUS},
		{"shared", AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS},
		{"stack", AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK},
		{"grows down", AREA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN},
		{"huge", AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB},
		{"32 bit", AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT},
		{"locked", AREA / 4, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED},
		{"no rights", AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS},
		{"read only", AREA, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
		{"code", AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS},
		{"populated", AREA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE},
		{"no reserve", AREA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *p = mmap(NULL, rows[i].bytes, rows[i].prot, rows[i].flags, -1, 0);

		say_rc(rows[i].what, (long)p);
		if (p == MAP_FAILED)
			continue;
		printf("  read %s, write %s\n", touch(p + 100, 0), touch(p + 100, 1));
		if (rows[i].prot & PROT_WRITE)
			printf("  last byte %d\n", p[rows[i].bytes - 1]);
		say_rc("  munmap", munmap(p, rows[i].bytes));
		printf("  after: %s\n", touch(p + 100, 0));
	}
	say_rc("bad descriptor", (long)mmap(NULL, AREA, PROT_READ, MAP_PRIVATE, 12345, 0));
	say_rc("odd offset", (long)mmap(NULL, AREA, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 7));
}

static void mmap_fixed(void)
{
	char *p = area_new(), *q;

	age();
	q = mmap(p + AREA / 4, AREA / 2, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	printf("same place: %d\n", q == p + AREA / 4);
	say_sum("all", p, AREA);
	q = mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		-1, 0);
	say_rc("no replace", (long)q);
	fill(p + AREA / 4, AREA / 2, 9);
	age();
	say_sum("all", p, AREA);
	q = mmap(p + AREA / 2, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	printf("one page: %d %s\n", q == p + AREA / 2, touch(q, 0));
	q = mmap(p, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	say_sum("anew", p, AREA);
}

static void munmap_parts(void)
{
	char *p = area_new();

	age();
	say_rc("odd address", munmap(p + 1, PAGE));
	say_rc("nothing", munmap(p, 0));
	say_rc("head", munmap(p, 3 * PAGE));
	say_rc("tail", munmap(p + AREA - 3 * PAGE, 3 * PAGE));
	say_rc("middle, odd length", munmap(p + AREA / 2, 5 * PAGE + 1));
	say_rc("again", munmap(p + AREA / 2, 5 * PAGE));
	printf("%s %s %s %s\n", touch(p, 0), touch(p + AREA - PAGE, 0),
		touch(p + AREA / 2 + 5 * PAGE, 0), touch(p + AREA / 2 + 6 * PAGE, 0));
	say_sum("before", p + 3 * PAGE, AREA / 2 - 3 * PAGE);
	say_sum("after", p + AREA / 2 + 6 * PAGE, AREA / 2 - 9 * PAGE);
	age();
	say_sum("before", p + 3 * PAGE, AREA / 2 - 3 * PAGE);
	say_rc("over holes", munmap(p, AREA));
	printf("%s\n", touch(p + AREA / 4, 0));
}

static void munmap_many(void)
{
	char *p[8];

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 8; i++)
			p[i] = area_new();
		for (int i = 0; i < 8; i++)
			if (sum(p[i], AREA) != sum(p[0], AREA))
				printf("differs\n");
		for (int i = 0; i < 8; i++)
			if (munmap(p[i], AREA) != 0)
				printf("munmap failed\n");
	}
	printf("done\n");
}

static void mprotect_parts(void)
{
	char *p = area_new();

	age();
	say_rc("odd address", mprotect(p + 1, PAGE, PROT_READ));
	say_rc("bad rights", mprotect(p, PAGE, 0x1000));
	say_rc("read only", mprotect(p + AREA / 4, AREA / 4, PROT_READ));
	printf("%s %s %s\n", touch(p + AREA / 4, 0), touch(p + AREA / 4, 1), touch(p, 1));
	say_rc("none", mprotect(p + AREA / 2, PAGE, PROT_NONE));
	printf("%s\n", touch(p + AREA / 2, 0));
	age();
	say_rc("back", mprotect(p, AREA, PROT_READ | PROT_WRITE));
	printf("%s %s\n", touch(p + AREA / 4, 1), touch(p + AREA / 2, 1));
	say_sum("all", p, AREA);
	say_rc("code", mprotect(p, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	munmap(p + AREA / 2, PAGE);
	say_rc("over a hole", mprotect(p, AREA, PROT_READ));
	printf("%s %s\n", touch(p + AREA / 4, 1), touch(p + AREA - PAGE, 1));
	say_rc("empty", mprotect(p, 0, PROT_READ));
}

static void mprotect_many(void)
{
	char *p = area_new();

	for (size_t i = 0; i < AREA / PAGE; i += 2)
		if (mprotect(p + i * PAGE, PAGE, PROT_READ) != 0)
			printf("failed at %zu\n", i);
	age();
	say_sum("all", p, AREA);
	printf("%s %s\n", touch(p, 1), touch(p + PAGE, 1));
	say_rc("back", mprotect(p, AREA, PROT_READ | PROT_WRITE));
	fill(p, AREA, 5);
	say_sum("all", p, AREA);
}

static void mremap_kinds(void)
{
	char *p = area_new(), *q;

	age();
	q = mremap(p, AREA, AREA / 2, 0);
	printf("shrunk in place: %d, %s\n", q == p, touch(p + AREA / 2, 0));
	say_sum("rest", p, AREA / 2);
	q = mremap(p, AREA / 2, AREA / 2, 0);
	printf("same: %d\n", q == p);
	age();
	p = mremap(p, AREA / 2, 2 * AREA, MREMAP_MAYMOVE);
	say_rc("grown", (long)p);
	say_sum("old part", p, AREA / 2);
	say_sum("new part", p + AREA / 2, 2 * AREA - AREA / 2);
	fill(p, 2 * AREA, 7);
	q = area_new();
	age();
	q = mremap(p, 2 * AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	say_rc("moved over", (long)q);
	say_sum("moved", q, AREA);
	printf("old place: %s\n", touch(p, 0));
	say_rc("duplicate", (long)mremap(q, 0, AREA, MREMAP_MAYMOVE));
	say_rc("odd address", (long)mremap(q + 1, AREA, AREA, MREMAP_MAYMOVE));
	say_rc("to nothing", (long)mremap(q, AREA, 0, MREMAP_MAYMOVE));
	say_rc("bad flag", (long)mremap(q, AREA, AREA, 64));
}

static void mremap_dontunmap(void)
{
	char *p = area_new(), *q;

	age();
	q = mremap(p, AREA, AREA, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */);
	say_rc("left behind", (long)q);
	say_sum("moved", q, AREA);
	say_sum("old", p, AREA);
	fill(p, AREA, 3);
	say_sum("moved still", q, AREA);
}

static void mremap_part(void)
{
	char *p = area_new(), *q;

	age();
	q = mremap(p + AREA / 4, AREA / 4, AREA, MREMAP_MAYMOVE);
	say_rc("a part", (long)q);
	say_sum("part", q, AREA / 4);
	say_sum("head", p, AREA / 4);
	say_sum("tail", p + AREA / 2, AREA / 2);
	printf("%s\n", touch(p + AREA / 4, 0));
	mprotect(p, PAGE, PROT_READ);
	say_rc("two kinds", (long)mremap(p, AREA / 4, AREA, MREMAP_MAYMOVE));
	say_sum("head", p, AREA / 4);
}

static void madvise_dontneed(void)
{
	char *p = area_new();

	age();
	say_rc("odd address", madvise(p + 1, PAGE, MADV_DONTNEED));
	say_rc("nothing", madvise(p, 0, MADV_DONTNEED));
	say_rc("odd length", madvise(p, 2 * PAGE + 1, MADV_DONTNEED));
	say_rc("one page", madvise(p + 100 * PAGE, PAGE, MADV_DONTNEED));
	say_rc("middle", madvise(p + AREA / 4, AREA / 2, MADV_DONTNEED));
	say_sum("all", p, AREA);
	fill(p, AREA, 2);
	age();
	say_rc("all", madvise(p, AREA, MADV_DONTNEED));
	say_sum("all", p, AREA);
	fill(p, AREA, 4);
	munmap(p + AREA / 2, PAGE);
	say_rc("over a hole", madvise(p, AREA, MADV_DONTNEED));
	say_sum("before", p, AREA / 2);
	say_sum("after", p + AREA / 2 + PAGE, AREA / 2 - PAGE);
	say_rc("wrapping", madvise(p, SIZE_MAX - PAGE, MADV_DONTNEED));
}

/* A managed mapping and a small one beside it that is not. */
static void madvise_spanning(void)
{
	char *p = mmap(NULL, AREA + (1 << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mmap(p, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mmap(p + AREA, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		0);
	fill(p, AREA + (1 << 20), 6);
	age();
	say_rc("across", madvise(p + AREA / 2, AREA / 2 + (1 << 19), MADV_DONTNEED));
	say_sum("all", p, AREA + (1 << 20));
	say_rc("protect across", mprotect(p + AREA - PAGE, 2 * PAGE, PROT_READ));
	printf("%s %s\n", touch(p + AREA - PAGE, 1), touch(p + AREA, 1));
	say_rc("unmap across", munmap(p + AREA - PAGE, 2 * PAGE));
	printf("%s %s\n", touch(p + AREA - PAGE, 0), touch(p + AREA, 0));
	say_sum("head", p, AREA - PAGE);
}

static void madvise_free(void)
{
	char *p = area_new();
	size_t old = 0, zero = 0;

	age();
	say_rc("free", madvise(p, AREA, MADV_FREE));
	for (size_t i = 0; i < AREA; i += PAGE) {
		char was[PAGE];

		memset(was, 0, PAGE);
		if (memcmp(was, p + i, PAGE) == 0)
			zero++;
		else
			old++;
	}
	printf("each page old or zero: %d\n", old + zero == AREA / PAGE);
	fill(p, AREA, 8);
	age();
	say_sum("written after", p, AREA);
}

static void madvise_others(void)
{
	static const struct {
		const char *name;
		int advice;
	} rows[] = {
		{"NORMAL", MADV_NORMAL},
		{"RANDOM", MADV_RANDOM},
		{"SEQUENTIAL", MADV_SEQUENTIAL},
		{"WILLNEED", MADV_WILLNEED},
		{"REMOVE", MADV_REMOVE},
		{"DONTFORK", MADV_DONTFORK},
		{"DOFORK", MADV_DOFORK},
		{"MERGEABLE", MADV_MERGEABLE},
		{"UNMERGEABLE", MADV_UNMERGEABLE},
		{"HUGEPAGE", MADV_HUGEPAGE},
		{"NOHUGEPAGE", MADV_NOHUGEPAGE},
		{"DONTDUMP", MADV_DONTDUMP},
		{"DODUMP", MADV_DODUMP},
		{"WIPEONFORK", MADV_WIPEONFORK},
		{"KEEPONFORK", MADV_KEEPONFORK},
		{"COLD", MADV_COLD},
		{"POPULATE_READ", 22},
		{"POPULATE_WRITE", 23},
		{"DONTNEED_LOCKED", 24},
		{"unknown", 12345},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *p = area_new();

		say_rc(rows[i].name, madvise(p, AREA, rows[i].advice));
		say_rc("  a part", madvise(p + 2 * PAGE, 3 * PAGE, rows[i].advice));
		if (rows[i].advice != MADV_FREE)
			say_sum("  all", p, AREA);
		munmap(p, AREA);
	}
}

/* What the kernel has noted of a mapping's huge pages: "hg" and "nh" of its VmFlags. */
static void say_huge_flags(const char *what, const char *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	int here = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (unsigned long)p && (unsigned long)p < end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			printf("%s:%s%s\n", what, strstr(line, " hg") != NULL ? " hg" : "",
				strstr(line, " nh") != NULL ? " nh" : "");
	}
	if (f != NULL)
		fclose(f);
}

static void huge_advice(void)
{
	char *p = area_new();
	pid_t pid;

	say_huge_flags("none", p);
	say_rc("huge", madvise(p, AREA / 2, MADV_HUGEPAGE));
	say_rc("no huge", madvise(p + AREA / 2, AREA / 2, MADV_NOHUGEPAGE));
	age();
	say_huge_flags("huge", p);
	say_huge_flags("no huge", p + AREA / 2);
	pid = fork();
	if (pid == 0) {
		say_huge_flags("child, huge", p);
		say_huge_flags("child, no huge", p + AREA / 2);
		exit(0);
	}
	say_child("child", pid);
	say_huge_flags("later, huge", p);
	say_huge_flags("later, no huge", p + AREA / 2);
	say_sum("all", p, AREA);
}

static void locking(void)
{
	char *p = area_new();

	age();
	say_rc("mlock", mlock(p, 4 * PAGE));
	say_rc("discard locked", madvise(p, 8 * PAGE, MADV_DONTNEED));
	say_sum("all", p, AREA);
	say_rc("munlock", munlock(p, 4 * PAGE));
	say_rc("discard", madvise(p, 8 * PAGE, MADV_DONTNEED));
	say_sum("all", p, AREA);
	say_rc("mlock2", mlock2(p + AREA / 2, 4 * PAGE, MLOCK_ONFAULT));
	say_rc("hole", mlock(p + AREA + (64 << 20), 0));
	say_rc("mlockall future", mlockall(MCL_FUTURE | MCL_ONFAULT));
	p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say_rc("then", (long)p);
	say_rc("munlockall", munlockall());
}

static void syncing(void)
{
	char *p = area_new();
	static unsigned char vec[AREA / PAGE];
	size_t in = 0;

	age();
	say_rc("msync", msync(p, AREA, MS_SYNC));
	say_rc("msync async", msync(p, AREA, MS_ASYNC));
	say_rc("msync invalidate", msync(p, AREA, MS_INVALIDATE));
	say_rc("msync odd", msync(p + 1, PAGE, MS_SYNC));
	say_rc("mincore", mincore(p, AREA, vec));
	for (size_t i = 0; i < AREA / PAGE; i++)
		in += vec[i] & 1;
	printf("in memory: %zu\n", in);
	madvise(p, AREA / 2, MADV_DONTNEED);
	say_rc("mincore", mincore(p, AREA, vec));
	in = 0;
	for (size_t i = 0; i < AREA / PAGE; i++)
		in += vec[i] & 1;
	printf("in memory: %zu\n", in);
	munmap(p, PAGE);
	say_rc("mincore hole", mincore(p, AREA, vec));
}

/* The kernel reads and writes the memory, armed or not. */
/* Settled blocks get huge pages back, are armed, and get them back again. */
static void huge_pages(void)
{
	char *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	say_rc("advice", madvise(p, AREA, MADV_HUGEPAGE));
	fill(p, AREA, 1);
	for (int i = 0; i < 30; i++) {
		age();
		for (size_t at = 0; at < AREA; at += PAGE)
			p[at]++;
	}
	say_sum("counted", p, AREA);
}

static void kernel_access(void)
{
	char *p = area_new(), *q = area_new(), name[] = "/tmp/numabal-conform-XXXXXX";
	int fd = mkstemp(name), pipes[2];
	struct iovec from = {p, AREA}, to = {q, AREA};

	unlink(name);
	age();
	say_rc("write", write(fd, p, AREA) == AREA);
	fill(q, AREA, 3);
	age();
	say_rc("pread", pread(fd, q, AREA, 0) == AREA);
	printf("same: %d\n", memcmp(p, q, AREA) == 0);
	if (pipe(pipes) == 0)
		for (int i = 0; i < 64; i++) {
			if (write(pipes[1], p + i * PAGE, PAGE) != PAGE ||
				read(pipes[0], q + (AREA / 64) * i, PAGE) != PAGE)
				printf("pipe failed\n");
		}
	say_sum("piped", q, AREA);
	say_rc("process_vm_readv",
		process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)AREA);
	printf("same: %d\n", memcmp(p, q, AREA) == 0);
	say_rc("beyond", syscall(SYS_pread64, fd, 16L, 1L, 0L));
}

const struct scenario conform_memory[] = {
	{"mmap_kinds", mmap_kinds},
	{"mmap_fixed", mmap_fixed},
	{"munmap_parts", munmap_parts},
	{"munmap_many", munmap_many},
	{"mprotect_parts", mprotect_parts},
	{"mprotect_many", mprotect_many},
	{"mremap_kinds", mremap_kinds},
	{"mremap_dontunmap", mremap_dontunmap},
	{"mremap_part", mremap_part},
	{"madvise_dontneed", madvise_dontneed},
	{"madvise_spanning", madvise_spanning},
	{"madvise_free", madvise_free},
	{"madvise_others", madvise_others},
	{"huge_advice", huge_advice},
	{"locking", locking},
	{"syncing", syncing},
	{"huge_pages", huge_pages},
	{"kernel_access", kernel_access},
	{0},
};
