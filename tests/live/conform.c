/* SPDX-License-Identifier: MIT */
/*
 * conform: memory calls on large anonymous memory, one scenario a run, each printing results, errno
 * and contents, and no address. tests/live/conformance runs every scenario with numabal and
 * without, and the two outputs must be the same. usage: conform --list | conform SCENARIO
 */
#include "conform.h"
#include <setjmp.h>
#include <signal.h>
#include <time.h>

char *area_new(void)
{
	char *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		printf("no memory\n");
		exit(3);
	}
	fill(p, AREA, 1);
	return p;
}

void fill(char *p, size_t bytes, unsigned int seed)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, 8);
	}
}

uint64_t sum(const char *p, size_t bytes)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t w;

		memcpy(&w, p + i, 8);
		h = (h ^ w) * UINT64_C(0x100000001b3);
	}
	return h;
}

void say_rc(const char *what, long rc)
{
	const int err = errno;

	if (rc == -1)
		printf("%s: %s\n", what, strerrorname_np(err));
	else if (rc >= 0 && rc < 1 << 20)
		printf("%s: %ld\n", what, rc);
	else
		printf("%s: ok\n", what);
}

void say_sum(const char *what, const char *p, size_t bytes)
{
	printf("%s: %016lx\n", what, (unsigned long)sum(p, bytes));
}

static sigjmp_buf back;
static char caught[64];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	snprintf(caught, sizeof(caught), "SIG%s code %d", sigabbrev_np(sig), info->si_code);
	siglongjmp(back, 1);
}

const char *touch(volatile char *p, int write)
{
	const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	if (sigsetjmp(back, 1))
		return caught;
	if (write)
		*p = (char)(*p + 1);
	else
		(void)*p;
	return "ok";
}

void age(void)
{
	const struct timespec t = {0, 60000000};
	struct timespec start, now;

	/* Some run time too: scans are paid for in it. */
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 60);
	nanosleep(&t, NULL);
}

void say_child(const char *what, pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		printf("%s: no child\n", what);
	else if (WIFSIGNALED(status))
		printf("%s: SIG%s\n", what, sigabbrev_np(WTERMSIG(status)));
	else
		printf("%s: exit %d\n", what, WEXITSTATUS(status));
}

static const struct scenario *const groups[] = {conform_memory, conform_process, conform_io};

enum { NR_GROUPS = sizeof(groups) / sizeof(groups[0]) };

static const struct scenario *find(const struct scenario *s, const char *name)
{
	for (; s->name != NULL; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

static void list(const struct scenario *s)
{
	for (; s->name != NULL; s++)
		puts(s->name);
}

int main(int argc, char **argv)
{
	const struct scenario *s = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (int i = 0; i < NR_GROUPS; i++)
			list(groups[i]);
		return 0;
	}
	for (int i = 0; i < NR_GROUPS && s == NULL && argc == 2; i++)
		s = find(groups[i], argv[1]);
	if (s == NULL)
		return 2;
	s->run();
	return 0;
}
