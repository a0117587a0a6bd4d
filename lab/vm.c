/* SPDX-License-Identifier: MIT */
/*
 * vm: start QEMU, hand on what the guest sends (frame.h), and see that the machine ends.
 *
 *   lab-vm [--boot-timeout S] [--timeout S] [--status FILE] [--files FILE] [--log FILE] -- QEMU
 * ARG...
 *
 * The guest's output becomes this program's output as it comes; the archive of the result directory
 * goes to --files.
 * --status gets lines NAME=VALUE: end (see enum end's names), exit (the command's status), boot_s,
 * uptime_s, error. However this program ends, the machine ends with it; it adds the port that the
 * guest's init opens to QEMU's arguments.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

enum { GUEST_FD = 3 };

/* How it ended. The script asks for the name, not the number. */
enum end {
	END_NONE,
	END_DONE,
	END_BOOT,
	END_DIED,
	END_TIMEOUT,
	END_REFUSED,
	END_OUTPUT,
	END_SIGNAL,
	END_QEMU
};
static const char *const end_names[] = {
	[END_DONE] = "done",	   /* the command ended; `exit` is its status */
	[END_BOOT] = "boot",	   /* the machine died or hung before the command started */
	[END_DIED] = "died",	   /* the machine died before the command ended */
	[END_TIMEOUT] = "timeout", /* the command took too long */
	[END_REFUSED] = "refused", /* the guest could not do what it was asked: `error` */
	[END_OUTPUT] = "output",   /* nobody takes our output: `error` */
	[END_SIGNAL] = "signal",   /* we were told to stop */
	[END_QEMU] = "qemu",	   /* QEMU could not be started: `error` */
};

struct options {
	double boot_timeout_s, timeout_s;
	const char *status, *files, *log;
	char **qemu; /* NULL-terminated */
};

struct vm {
	struct options opt;
	pid_t pid;
	int port; /* to the guest */
	int files;
	double started_s, ready_s; /* CLOCK_MONOTONIC; ready 0 = not yet */
	bool said_something;
	char uptime[32], exit_status[16], error[512];
	/* the frame being read */
	uint8_t head[FRAME_HEAD];
	size_t have_head, left;
	uint8_t body[512]; /* of frames that are text */
	size_t have_body;
	enum end end;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- frames ---- */

static bool write_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0)
			bytes += n, len -= (size_t)n;
	}
	return true;
}

/* `text` becomes one line. */
static void end_with(struct vm *vm, enum end end, const char *text)
{
	vm->end = end;
	if (!text)
		return;
	snprintf(vm->error, sizeof(vm->error), "%s", text);
	for (char *c = vm->error; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
}

static void hand_on(struct vm *vm, int fd, const uint8_t *bytes, size_t len)
{
	if (fd >= 0 && !write_all(fd, bytes, len))
		end_with(vm, END_OUTPUT, strerror(errno));
}

static void keep_text(struct vm *vm, const uint8_t *bytes, size_t len)
{
	const size_t room = sizeof(vm->body) - 1 - vm->have_body;

	if (len > room)
		len = room;
	memcpy(vm->body + vm->have_body, bytes, len);
	vm->have_body += len;
}

static void frame_piece(struct vm *vm, const uint8_t *bytes, size_t len)
{
	switch (vm->head[0]) {
	case FRAME_STDOUT:
	case FRAME_STDERR:
		vm->said_something = true;
		hand_on(vm, vm->head[0] == FRAME_STDOUT ? 1 : 2, bytes, len);
		break;
	case FRAME_FILES:
		hand_on(vm, vm->files, bytes, len);
		break;
	default:
		keep_text(vm, bytes, len);
	}
}

static void frame_end(struct vm *vm)
{
	const char *text = (const char *)vm->body;

	vm->body[vm->have_body] = '\0';
	switch (vm->head[0]) {
	case FRAME_READY:
		vm->ready_s = now_s();
		snprintf(vm->uptime, sizeof(vm->uptime), "%.*s", (int)sizeof(vm->uptime) - 1, text);
		break;
	case FRAME_EXIT:
		snprintf(vm->exit_status, sizeof(vm->exit_status), "%.*s",
			(int)sizeof(vm->exit_status) - 1, text);
		end_with(vm, END_DONE, NULL);
		break;
	case FRAME_ERROR:
		end_with(vm, END_REFUSED, text);
		break;
	default:
		break;
	}
	vm->have_head = vm->have_body = 0;
}

static bool known_kind(uint8_t kind)
{
	return kind && strchr("R12FLX", kind);
}

/* The head of the next frame, a byte at a time: pieces may be cut anywhere. */
static size_t frame_begin(struct vm *vm, const uint8_t *bytes)
{
	vm->head[vm->have_head++] = bytes[0];
	if (vm->have_head < FRAME_HEAD)
		return 1;
	vm->left = frame_len(vm->head);
	if (!known_kind(vm->head[0]) || vm->left > FRAME_MAX)
		end_with(vm, END_DIED, "what the guest sends makes no sense");
	else if (!vm->left)
		frame_end(vm);
	return 1;
}

static void take(struct vm *vm, const uint8_t *bytes, size_t len)
{
	while (len && vm->end == END_NONE) {
		size_t n;

		if (vm->have_head < FRAME_HEAD) {
			n = frame_begin(vm, bytes);
		} else {
			n = len < vm->left ? len : vm->left;
			frame_piece(vm, bytes, n);
			vm->left -= n;
			if (!vm->left && vm->end == END_NONE)
				frame_end(vm);
		}
		bytes += n;
		len -= n;
	}
}

/* ---- the machine ---- */

static void machine_gone(struct vm *vm)
{
	end_with(vm, vm->ready_s > 0 ? END_DIED : END_BOOT, NULL);
}

static void receive(struct vm *vm)
{
	uint8_t bytes[FRAME_MAX];
	const ssize_t n = read(vm->port, bytes, sizeof(bytes));

	if (n > 0)
		take(vm, bytes, (size_t)n);
	else if (n == 0 || errno != EINTR)
		machine_gone(vm);
}

static double deadline_s(const struct vm *vm)
{
	return vm->ready_s > 0 ? vm->ready_s + vm->opt.timeout_s
			       : vm->started_s + vm->opt.boot_timeout_s;
}

static void too_late(struct vm *vm)
{
	end_with(vm, vm->ready_s > 0 ? END_TIMEOUT : END_BOOT, "took too long");
}

static void attend(struct vm *vm)
{
	struct pollfd fd = {.fd = vm->port, .events = POLLIN};

	while (vm->end == END_NONE) {
		const double left = deadline_s(vm) - now_s();
		int ready;

		if (stopped) {
			end_with(vm, END_SIGNAL, NULL);
			return;
		}
		if (left <= 0) {
			too_late(vm);
			return;
		}
		/* At most a second: a signal may come between the check and the wait. */
		ready = poll(&fd, 1, left < 1 ? (int)(left * 1000) + 1 : 1000);
		if (ready > 0)
			receive(vm);
	}
}

static void redirect_output(const char *path)
{
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dup2(fd, 1);
	dup2(fd, 2);
}

static _Noreturn void become_qemu(const struct options *opt, int port, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127); /* gone before the line above */
	redirect_output(opt->log);
	dup2(port, GUEST_FD);
	if (port == GUEST_FD)
		fcntl(port, F_SETFD, 0);
	execvp(opt->qemu[0], opt->qemu);
	_exit(127);
}

static bool start(struct vm *vm)
{
	const pid_t self = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	vm->started_s = now_s();
	vm->pid = fork();
	if (vm->pid == 0)
		become_qemu(&vm->opt, ends[1], self);
	close(ends[1]);
	vm->port = ends[0];
	return vm->pid > 0;
}

/* Nothing of the guest is worth keeping: do not wait for it to power off. */
static void finish(struct vm *vm)
{
	int status;

	kill(vm->pid, SIGKILL);
	while (waitpid(vm->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (vm->end == END_BOOT && WIFEXITED(status) &&
		(WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 1))
		vm->end = END_QEMU;
}

/* ---- the program ---- */

static void write_status(const struct vm *vm)
{
	FILE *f = vm->opt.status ? fopen(vm->opt.status, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "end=%s\nexit=%s\nuptime_s=%s\nerror=%s\n", end_names[vm->end], vm->exit_status,
		vm->uptime, vm->error);
	fprintf(f, "boot_s=%.2f\nran_s=%.2f\nsaid_something=%d\n",
		vm->ready_s > 0 ? vm->ready_s - vm->started_s : 0,
		vm->ready_s > 0 ? now_s() - vm->ready_s : 0, vm->said_something);
	fclose(f);
}

static bool seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out > 0 && *out <= 1e6;
}

static bool parse(struct options *opt, int argc, char **argv)
{
	static const struct option longs[] = {{"boot-timeout", required_argument, NULL, 'b'},
		{"timeout", required_argument, NULL, 't'}, {"status", required_argument, NULL, 's'},
		{"files", required_argument, NULL, 'f'}, {"log", required_argument, NULL, 'l'},
		{0}};
	bool good = true;
	int c;

	*opt = (struct options){.boot_timeout_s = 60, .timeout_s = 600};
	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		if (c == 'b')
			good &= seconds(optarg, &opt->boot_timeout_s);
		else if (c == 't')
			good &= seconds(optarg, &opt->timeout_s);
		else if (c == 's')
			opt->status = optarg;
		else if (c == 'f')
			opt->files = optarg;
		else if (c == 'l')
			opt->log = optarg;
		else
			good = false;
	}
	opt->qemu = argv + optind;
	return good && argv[optind];
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = stop};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error to report */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int main(int argc, char **argv)
{
	struct vm vm = {.files = -1};

	if (!parse(&vm.opt, argc, argv)) {
		fprintf(stderr, "usage: lab-vm [--boot-timeout S] [--timeout S] [--status FILE] "
				"[--files FILE] [--log FILE] -- QEMU "
				"ARG...\n");
		return 2;
	}
	catch_signals();
	if (vm.opt.files)
		vm.files = open(vm.opt.files, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if ((vm.opt.files && vm.files < 0) || !start(&vm)) {
		end_with(&vm, END_QEMU, strerror(errno));
		write_status(&vm);
		return 1;
	}
	attend(&vm);
	finish(&vm);
	write_status(&vm);
	return vm.end == END_DONE ? 0 : 1;
}
