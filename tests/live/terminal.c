/* SPDX-License-Identifier: MIT */
/*
 * terminal: a program on a terminal of its own: terminal ROWSxCOLS KEY... -- COMMAND. Waits for its
 * first output, then each KEY follows: text is typed as it is (\e is ESC, \r Enter), size=ROWSxCOLS
 * changes the size, signal=N sends one, wait=MS waits. What it wrote comes out on stdout. Status:
 * the command's, 128 + a signal's; 200: it left the terminal changed; 201: it did not end.
 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

enum { CHANGED = 200, HUNG = 201, PAUSE_MS = 120, FIRST_MS = 5000, LAST_MS = 5000 };

static struct winsize size_of(const char *text)
{
	struct winsize size = {0};
	unsigned int rows = 0, cols = 0;

	if (sscanf(text, "%ux%u", &rows, &cols) != 2)
		exit(2);
	size.ws_row = (unsigned short)rows;
	size.ws_col = (unsigned short)cols;
	return size;
}

/* Copy what comes within `ms`, each piece beginning the wait anew. False: it is gone. */
static int copy(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char buffer[65536];

	while (poll(&p, 1, ms) > 0) {
		const ssize_t n = read(fd, buffer, sizeof(buffer));

		if (n <= 0)
			return 0;
		fwrite(buffer, 1, (size_t)n, stdout);
		ms = PAUSE_MS;
	}
	return 1;
}

static void type(int fd, const char *text)
{
	char out[256];
	size_t n = 0;

	for (; *text != '\0' && n < sizeof(out); text++) {
		if (*text == '\\' && text[1] != '\0')
			out[n++] = *++text == 'e' ? '\033' : *text == 'r' ? '\r' : *text;
		else
			out[n++] = *text;
	}
	if (write(fd, out, n) < 0)
		return;
}

static void act(int fd, pid_t pid, const char *key)
{
	struct winsize size;

	if (strncmp(key, "size=", 5) == 0) {
		size = size_of(key + 5);
		ioctl(fd, TIOCSWINSZ, &size);
	} else if (strncmp(key, "signal=", 7) == 0) {
		kill(pid, atoi(key + 7));
	} else if (strncmp(key, "wait=", 5) == 0) {
		usleep((useconds_t)atoi(key + 5) * 1000);
	} else {
		type(fd, key);
	}
}

static int wait_for_end(int fd, pid_t pid)
{
	int status;

	for (int ms = 0; ms < LAST_MS; ms += 50) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		copy(fd, 50);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return HUNG;
}

int main(int argc, char **argv)
{
	struct termios before, after;
	struct winsize size;
	int master, slave, at = 2, status;
	pid_t pid;

	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	if (at + 1 >= argc)
		return 2;
	size = size_of(argv[1]);
	/* Our own end of the slave stays open: its state can be asked for afterwards. */
	if (openpty(&master, &slave, NULL, NULL, &size) != 0 || tcgetattr(slave, &before) != 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		close(master);
		if (login_tty(slave) == 0)
			execvp(argv[at + 1], &argv[at + 1]);
		_exit(127);
	}
	copy(master, FIRST_MS);
	for (int i = 2; i < at; i++) {
		act(master, pid, argv[i]);
		copy(master, PAUSE_MS);
	}
	status = wait_for_end(master, pid);
	fflush(stdout);
	tcgetattr(slave, &after);
	return memcmp(&before.c_lflag, &after.c_lflag, sizeof(before.c_lflag)) != 0 ||
			       before.c_iflag != after.c_iflag
		       ? CHANGED
		       : status;
}
