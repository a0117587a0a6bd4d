/* SPDX-License-Identifier: MIT */
/*
 * deny: runs a command in which some system calls fail, as in a container's seccomp profile.
 * usage: deny CALL=ERRNO... -- COMMAND [ARGUMENT...], with CALL of the table below, or ioctl:NUMBER
 * for one request of it, and ERRNO a number. 77: no such filter is to be had here.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned int number;
} calls[] = {
	{"get_mempolicy", SYS_get_mempolicy},
	{"ioctl", SYS_ioctl},
	{"mbind", SYS_mbind},
	{"memfd_create", SYS_memfd_create},
	{"move_pages", SYS_move_pages},
	{"set_mempolicy", SYS_set_mempolicy},
	{"userfaultfd", SYS_userfaultfd},
};

enum { NR_CALLS = sizeof(calls) / sizeof(calls[0]), MOST = 128 };

static struct sock_filter filter[MOST];
static unsigned short nr;

static void add(struct sock_filter f)
{
	if (nr == MOST)
		exit(2);
	filter[nr++] = f;
}

static void load(size_t offset)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Skip so many unless it is this. */
static void unless(uint32_t value, unsigned char skip)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

static void answer(uint32_t how)
{
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, how));
}

/* NAME=ERRNO or NAME:REQUEST=ERRNO. 0 or -1. */
static int deny(const char *text)
{
	const char *equals = strchr(text, '='), *colon = strchr(text, ':');
	const size_t len = strcspn(text, ":=");
	int i = 0;

	while (i < NR_CALLS &&
		!(strlen(calls[i].name) == len && strncmp(calls[i].name, text, len) == 0))
		i++;
	if (i == NR_CALLS || equals == NULL)
		return -1;
	load(offsetof(struct seccomp_data, nr));
	unless(calls[i].number, colon != NULL ? 3 : 1);
	if (colon != NULL) {
		load(offsetof(struct seccomp_data, args[1]));
		unless((uint32_t)strtoul(colon + 1, NULL, 0), 1);
	}
	answer(SECCOMP_RET_ERRNO | (uint32_t)atoi(equals + 1));
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {.filter = filter};
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (deny(argv[i]) != 0)
			return 2;
	if (i + 1 >= argc)
		return 2;
	answer(SECCOMP_RET_ALLOW);
	program.len = nr;
	/* With the right to do without, set-user-ID programs go on to work. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 &&
		(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0))
		return 77;
	execvp(argv[i + 1], &argv[i + 1]);
	return 127;
}
