/* SPDX-License-Identifier: MIT */
/* measure: run a command; one line on stdout: CPU seconds (user + system), largest resident set in
 * MiB, its status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* The command's own output is of no interest here. */
static void run(char **argv)
{
	if (!freopen("/dev/null", "w", stdout))
		_exit(127);
	execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t child;

	if (argc < 2) {
		fputs("usage: measure COMMAND [ARG...]\n", stderr);
		return 2;
	}
	child = fork();
	if (child == 0)
		run(argv + 1);
	if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
		perror("measure");
		return 1;
	}
	printf("%.3f %.1f %d\n", seconds(&usage.ru_utime) + seconds(&usage.ru_stime),
		(double)usage.ru_maxrss / 1024,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}
