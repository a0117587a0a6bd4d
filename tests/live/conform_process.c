/* SPDX-License-Identifier: MIT */
/* conform_process: fork in all its forms, threads, exec, signals, descriptors. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "conform.h"

extern char **environ;

/* Parent and child each see what was there, and then what they write themselves. */
static int check_child(char *p, uint64_t before)
{
	int wrong = sum(p, AREA) != before;

	fill(p, AREA, 20);
	usleep(30000);
	wrong |= sum(p, AREA) == before;
	fill(p, AREA, 20);
	return wrong;
}

static void both_ways(const char *what, pid_t (*how)(void))
{
	char *p = area_new();
	const uint64_t before = sum(p, AREA);
	pid_t pid;

	age();
	pid = how();
	if (pid == 0)
		_exit(check_child(p, before));
	fill(p, AREA, 21);
	say_child(what, pid);
	say_sum("parent", p, AREA);
	munmap(p, AREA);
}

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void forks(void)
{
	for (int i = 0; i < 3; i++)
		both_ways("fork", fork);
	both_ways("_Fork", _Fork);
	both_ways("by number", raw_fork);
}

static void *fork_in_thread(void *unused)
{
	both_ways("thread", fork);
	return unused;
}

static void fork_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, fork_in_thread, NULL);
	pthread_join(t, NULL);
}

static void fork_nested(void)
{
	char *p = area_new();
	const uint64_t before = sum(p, AREA);
	int depth = 0;
	pid_t pid = -1;

	age();
	while (depth < 3 && (pid = fork()) == 0) {
		if (sum(p, AREA / 2) == 0 || (depth == 0 && sum(p, AREA) != before))
			_exit(9);
		fill(p + (AREA / 4) * depth, AREA / 4, 30U + (unsigned int)depth);
		depth++;
	}
	if (depth == 3) {
		say_sum("deepest", p, AREA);
		exit(0);
	}
	say_child("child", pid);
	say_sum("level", p, AREA);
	if (depth > 0)
		exit(0);
}

/* ---- large: as the heap of a server that forks for its snapshots ---- */

enum {
	LARGE = 256 << 20,
	LEVELS = 3,
};

/* One number in each page, of who wrote it. */
static void stamp(char *p, uint64_t who)
{
	for (size_t i = 0; i < LARGE; i += PAGE) {
		const uint64_t v = who * LARGE + i;

		memcpy(p + i + (i / PAGE % 500) * 8, &v, sizeof(v));
	}
}

static size_t pages_not_of(const char *p, uint64_t who)
{
	size_t n = 0;

	for (size_t i = 0; i < LARGE; i += PAGE) {
		const uint64_t v = who * LARGE + i;

		n += memcmp(p + i + (i / PAGE % 500) * 8, &v, sizeof(v)) != 0;
	}
	return n;
}

/* The child finds A, writes B, and finds that alone; the parent writes C meanwhile. */
static void large_once(const char *what, char *p)
{
	pid_t pid;

	stamp(p, 'A');
	age();
	pid = fork();
	if (pid == 0) {
		const size_t a = pages_not_of(p, 'A');

		stamp(p, 'B');
		usleep(50000);
		_exit((a != 0) | (pages_not_of(p, 'B') != 0) << 1);
	}
	stamp(p, 'C');
	printf("%s: parent %zu not its own\n", what, pages_not_of(p, 'C'));
	say_child(what, pid);
	printf("%s: and %zu later\n", what, pages_not_of(p, 'C'));
}

static void *large_in_thread(void *p)
{
	large_once("thread", p);
	return NULL;
}

/* Each level finds what the one above wrote before it forked, and keeps what it writes itself. */
static int large_level(char *p, int level)
{
	int status = 0;
	pid_t pid;

	if (level == LEVELS)
		return 0;
	stamp(p, 10 + (uint64_t)level);
	pid = fork();
	if (pid == 0) {
		const size_t above = pages_not_of(p, 10 + (uint64_t)level);

		_exit(above != 0 ? 1 : large_level(p, level + 1));
	}
	stamp(p, 20 + (uint64_t)level);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 2;
	return pages_not_of(p, 20 + (uint64_t)level) != 0 ? 3 : 0;
}

static void fork_large(void)
{
	char *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	if (p == MAP_FAILED)
		exit(3);
	large_once("plain", p);
	pthread_create(&t, NULL, large_in_thread, p);
	pthread_join(t, NULL);
	printf("nested: %d\n", large_level(p, 0));
}

static void fork_child_discards(void)
{
	char *p = area_new();
	pid_t pid;

	age();
	pid = fork();
	if (pid == 0) {
		/* Of memory that is the child's alone there is no file to remove anything from. */
		if (madvise(p, AREA, MADV_REMOVE) == 0)
			_exit(5);
		if (madvise(p, AREA, MADV_DONTNEED) != 0)
			_exit(1);
		for (size_t i = 0; i < AREA; i++)
			if (p[i] != 0)
				_exit(2);
		fill(p, AREA, 3);
		if (madvise(p + AREA / 4, AREA / 2, MADV_FREE) != 0)
			_exit(3);
		if (munmap(p, AREA / 8) != 0)
			_exit(4);
		_exit(0);
	}
	say_child("child", pid);
	say_sum("parent", p, AREA);
}

static void fork_parent_discards(void)
{
	char *p = area_new();
	const uint64_t before = sum(p, AREA);
	int go[2];
	pid_t pid;
	char c;

	age();
	if (pipe(go) != 0)
		return;
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		_exit(sum(p, AREA) != before);
	}
	say_rc("discard", madvise(p + PAGE, AREA / 2, MADV_DONTNEED));
	say_sum("parent", p, AREA);
	munmap(p + AREA / 2 + 4 * PAGE, AREA / 4);
	say_rc("go", write(go[1], "x", 1));
	say_child("child", pid);
	say_sum("parent", p, AREA / 2);
	fill(p, AREA / 2, 8);
	usleep(300000);
	say_sum("parent", p, AREA / 2);
}

static void fork_then_calls(void)
{
	char *p = area_new(), *q;
	pid_t pid;

	age();
	pid = fork();
	if (pid != 0) {
		say_child("child", pid);
		say_sum("parent", p, AREA);
		return;
	}
	say_rc("protect", mprotect(p, AREA / 2, PROT_READ));
	printf("%s %s\n", touch(p, 1), touch(p + AREA / 2, 1));
	say_rc("back", mprotect(p, AREA, PROT_READ | PROT_WRITE));
	q = mremap(p, AREA, 3 * AREA, MREMAP_MAYMOVE);
	say_rc("grow", (long)q);
	say_sum("grown", q, 3 * AREA);
	say_rc("lock", mlock(q, PAGE));
	exit(0);
}

static void fork_advice(void)
{
	char *p = area_new(), *q = area_new();
	pid_t pid;

	say_rc("wipe", madvise(p, AREA / 2, MADV_WIPEONFORK));
	say_rc("none", madvise(q, AREA / 2, MADV_DONTFORK));
	age();
	pid = fork();
	if (pid == 0) {
		say_sum("wiped", p, AREA);
		printf("not there: %s, there: %s\n", touch(q, 0), touch(q + AREA / 2, 0));
		exit(0);
	}
	say_child("child", pid);
	say_sum("parent", p, AREA);
	say_sum("parent", q, AREA);
	say_rc("fork again", madvise(q, AREA / 2, MADV_DOFORK));
	pid = fork();
	if (pid == 0) {
		say_sum("there", q, AREA);
		exit(0);
	}
	say_child("child", pid);
}

/* Many short children while threads write: each sees a moment's memory. */
static atomic_int stop_writing;

static void *writer(void *p)
{
	uint64_t n = 0;

	/* Each word of a page gets the same number, one page after the other. */
	while (!atomic_load(&stop_writing)) {
		n++;
		for (size_t i = 0; i < AREA; i += PAGE)
			((volatile uint64_t *)(void *)((char *)p + i))[0] = n;
	}
	return (void *)n;
}

static void fork_storm(void)
{
	char *p = area_new();
	pthread_t t;
	void *last;
	int bad = 0;

	memset(p, 0, AREA);
	pthread_create(&t, NULL, writer, p);
	for (int i = 0; i < 60; i++) {
		const pid_t pid = fork();
		int status;

		if (pid == 0) {
			const uint64_t first = *(uint64_t *)(void *)p;
			const uint64_t sum_now = sum(p, AREA);

			for (size_t at = 0; at < AREA; at += PAGE)
				if (*(uint64_t *)(void *)(p + at) + 1 < first ||
					*(uint64_t *)(void *)(p + at) > first)
					_exit(1);
			usleep(1000);
			_exit(sum(p, AREA) != sum_now ? 2 : 0);
		}
		waitpid(pid, &status, 0);
		bad += status != 0;
	}
	atomic_store(&stop_writing, 1);
	pthread_join(t, &last);
	usleep(200000);
	for (size_t at = 0; at < AREA; at += PAGE)
		bad += *(uint64_t *)(void *)(p + at) != (uint64_t)last;
	printf("bad: %d\n", bad);
}

/* Before anybody has looked at the threads, and none runs afterwards: memory comes back. */
static void fork_early(void)
{
	char *p = area_new();
	const pid_t pid = fork();

	if (pid == 0)
		_exit(sum(p, AREA) == 0);
	say_child("early", pid);
	usleep(1000000);
	say_sum("parent", p, AREA);
}

/* Whatever is sent to the process is the program's. */
static void signals(void)
{
	const struct timespec soon = {1, 0};
	char *p = area_new();
	sigset_t all;
	int lost = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	age();
	for (int round = 0; round < 20; round++)
		for (int sig = 1; sig <= SIGRTMAX; sig++) {
			sigset_t one;

			if (sigismember(&all, sig) != 1 || sig == SIGKILL || sig == SIGSTOP)
				continue;
			sigemptyset(&one);
			sigaddset(&one, sig);
			kill(getpid(), sig);
			usleep(200);
			lost += sigtimedwait(&one, NULL, &soon) != sig;
		}
	printf("lost %d\n", lost);
	say_sum("area", p, AREA);
}

/* Memory that was there before counts for the limit, and is copied all the same. */
static void limit_then_fork(void)
{
	const struct rlimit small = {4096, RLIM_INFINITY};
	char *p = area_new();
	pid_t child;

	age();
	say_rc("setrlimit", setrlimit(RLIMIT_DATA, &small));
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit((int)(sum(p, AREA) % 251));
	say_child("child", child);
	say_rc("mmap",
		(long)mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	say_sum("parent", p, AREA);
}

static int clone_main(void *p)
{
	char *area = p;

	fill(area, AREA, 40);
	return sum(area, AREA) == 0;
}

static void clones(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	char *p = area_new();

	age();
	say_child("copied", clone(clone_main, stack + sizeof(stack), SIGCHLD, p));
	say_sum("parent", p, AREA);
	say_child("shared",
		clone(clone_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, p));
	say_sum("parent", p, AREA);
}

static void spawning(void)
{
	char *p = area_new();
	char *const args[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit 5", NULL};
	pid_t pid = -1;
	FILE *f;
	char line[16] = "";

	age();
	say_rc("posix_spawn", posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ));
	say_child("spawned", pid);
	say_rc("system", WEXITSTATUS(system("exit 6")));
	f = popen("echo hello", "r");
	if (f == NULL || fgets(line, sizeof(line), f) == NULL)
		printf("no popen\n");
	printf("popen: %s", line);
	if (f != NULL)
		say_rc("pclose", pclose(f));
	pid = vfork();
	if (pid == 0)
		execv("/bin/sh", args);
	say_child("vforked", pid);
	say_sum("parent", p, AREA);
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

static void descriptors(void)
{
	char *p = area_new();
	int fd;

	age();
	printf("open: %d\n", count_descriptors());
	say_rc("lowest", fd = dup(0));
	close(fd);
	say_rc("close_range", close_range(3, ~0U, 0));
	closefrom(3);
	for (int i = 3; i < 1024; i++) {
		dup2(0, i);
		close(i);
	}
	fill(p, AREA, 9);
	age();
	say_sum("after", p, AREA);
	printf("open: %d\n", count_descriptors());
}

static void on_alternate(int sig)
{
	char big[20000];

	memset(big, sig, sizeof(big));
	printf("on the alternate stack: %d\n", big[19999]);
}

/* The alternate stack lies in large memory, armed. */
static void alternate_stack(void)
{
	char *p = area_new();
	const stack_t stack = {.ss_sp = p + AREA / 2, .ss_size = AREA / 2};
	const struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};

	say_rc("sigaltstack", sigaltstack(&stack, NULL));
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 5; i++) {
		age();
		raise(SIGUSR1);
	}
	say_sum("below", p, AREA / 2);
}

/* Recursion on a stack of 256 MiB, with forks on the way. */
static int deep_below(int n, volatile char *above)
{
	volatile char frame[512];

	frame[0] = (char)n;
	frame[511] = above[0];
	return n == 0 ? 0 : deep_below(n - 1, frame) + (frame[0] == (char)n);
}

static int deep(int n, volatile char *above)
{
	volatile char frame[512];

	frame[0] = (char)n;
	frame[511] = above != NULL ? above[0] : 0;
	if (n == 0)
		return 0;
	if (n % 25000 == 0) {
		const pid_t pid = fork();

		/* Both go on: the child all the way down, and back up to here. */
		if (pid == 0)
			_exit(deep_below(n, frame) == n ? 0 : 1);
		say_child("on the big stack", pid);
	}
	return deep(n - 1, frame) + (frame[0] == (char)n);
}

static void *big_stack_main(void *unused)
{
	printf("deep: %d\n", deep(100000, NULL));
	return unused;
}

static void big_stack(void)
{
	pthread_attr_t attr;
	pthread_t t;

	area_new();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 20);
	pthread_create(&t, &attr, big_stack_main, NULL);
	pthread_join(t, NULL);
}

static void *touch_and_die(void *p)
{
	volatile char *area = p;

	for (size_t i = 0; i < AREA; i += PAGE)
		area[i]++;
	return NULL;
}

static void dying_threads(void)
{
	char *p = area_new();

	memset(p, 0, AREA);
	for (int i = 0; i < 100; i++) {
		pthread_t t[4];

		for (int j = 0; j < 4; j++)
			pthread_create(&t[j], NULL, touch_and_die, p + j);
		if (i % 10 == 0)
			pthread_cancel(t[0]);
		for (int j = 0; j < 4; j++)
			pthread_join(t[j], NULL);
	}
	printf("%d %d\n", p[1], p[AREA - PAGE + 3]);
}

static void *outlive(void *p)
{
	usleep(100000);
	say_sum("outlived", p, AREA);
	return NULL;
}

/* The first thread ends before the others. */
static void main_ends(void)
{
	pthread_t t;

	pthread_create(&t, NULL, outlive, area_new());
	pthread_exit(NULL);
}

static void exec_self(void)
{
	char *const args[] = {(char *)"/proc/self/exe", (char *)"munmap_parts", NULL};

	area_new();
	age();
	fflush(stdout);
	execv("/proc/self/exe", args);
}

static void killed(void)
{
	const pid_t pid = fork();

	if (pid == 0) {
		char *p = area_new();

		age();
		p[0] = 1;
		raise(SIGKILL);
	}
	say_child("killed", pid);
}

const struct scenario conform_process[] = {
	{"forks", forks},
	{"fork_thread", fork_thread},
	{"fork_nested", fork_nested},
	{"fork_large", fork_large},
	{"fork_child_discards", fork_child_discards},
	{"fork_parent_discards", fork_parent_discards},
	{"fork_then_calls", fork_then_calls},
	{"fork_advice", fork_advice},
	{"fork_early", fork_early},
	{"limit_then_fork", limit_then_fork},
	{"signals", signals},
	{"fork_storm", fork_storm},
	{"clones", clones},
	{"spawning", spawning},
	{"descriptors", descriptors},
	{"alternate_stack", alternate_stack},
	{"big_stack", big_stack},
	{"dying_threads", dying_threads},
	{"main_ends", main_ends},
	{"exec_self", exec_self},
	{"killed", killed},
	{0},
};
