/* SPDX-License-Identifier: MIT */
/*
 * stacks: one of each kind of stack, all of them large, and whether a file backs it: a line each.
 * Only what is no stack may be. usage: stacks
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	AREA = 32 << 20,
};

static void *fresh(int flags)
{
	char *p = mmap(
		NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p != MAP_FAILED)
		memset(p + AREA / 2, 1, 4096);
	return p;
}

/* Does a mapping of memfd hold the address? */
static bool is_backed(const void *p)
{
	FILE *f = fopen("/proc/self/maps", "re");
	const uintptr_t addr = (uintptr_t)p;
	char line[512];
	bool found = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= addr && addr < end)
			found = strstr(line, "/memfd:") != NULL;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static void say(const char *what, const void *p)
{
	printf("%s: %s\n", what, is_backed(p) ? "backed" : "ordinary");
}

static void *in_thread(void *what)
{
	volatile char here = 1;

	say(what, (const void *)&here);
	return NULL;
}

static void thread(const char *what, pthread_attr_t *attr)
{
	pthread_t t;

	if (pthread_create(&t, attr, in_thread, (void *)(uintptr_t)what) == 0)
		pthread_join(t, NULL);
}

static void on_signal(int sig)
{
	volatile char here = (char)sig;

	say("signal stack, in use", (const void *)&here);
}

int main(void)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	char *plain = fresh(0), *signals = fresh(0), *own = fresh(0);
	const stack_t stack = {.ss_sp = signals + AREA / 4, .ss_size = AREA / 2};
	pthread_attr_t attr;

	say("plain", plain + AREA / 2);
	say("MAP_STACK", (char *)fresh(MAP_STACK) + AREA / 2);
	say("MAP_GROWSDOWN", (char *)fresh(MAP_GROWSDOWN) + AREA / 2);
	say("main's", &attr);
	thread("default", NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 20);
	thread("256 MiB", &attr);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, own, AREA);
	thread("the program's own", &attr);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	say("beside the signal stack", signals);
	return 0;
}
