/* SPDX-License-Identifier: MIT */
/*
 * init: process 1 of the lab's guest. Mounts what programs expect, applies the settings, runs the
 * command, and sends its output, the result directory and its exit status to the host (frame.h),
 * then powers the machine off.
 *
 * /lab/job says what to do: records that end with a NUL, the first byte of each says what it is:
 *   P path of the command's program (else it is looked for in PATH)
 *   A argument of the command      E environment, NAME=VALUE      D directory to run in
 *   W setting, FILE=VALUE: VALUE is written to FILE before the command starts
 *   O (alone) send the result directory, /lab/out
 *
 * While the command runs this process sleeps unless there is output to carry, so that it does not
 * disturb what is measured. Statically linked: the guest's libraries are the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame.h"

static const char PORT[] = "/dev/vport0p1";
static const char JOB[] = "/lab/job";
static const char OUT[] = "/lab/out";
static const char BUSYBOX[] = "/lab/busybox";

struct job {
	char *text; /* the file; the arrays point into it */
	char **args, **env, **settings;
	const char *dir, *program;
	bool send_files;
};

/* ---- to the host ---- */

static void send_bytes(int port, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		const ssize_t n = write(port, at, len);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0)
			at += n, len -= (size_t)n;
	}
}

static void send_frame(int port, enum frame_kind kind, const void *bytes, size_t len)
{
	uint8_t frame[FRAME_HEAD + FRAME_MAX];

	frame_head(frame, kind, len);
	memcpy(frame + FRAME_HEAD, bytes, len);
	send_bytes(port, frame, FRAME_HEAD + len);
}

static _Noreturn void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* What stops the lab before the command starts. On the console too, in case the port is what is
 * missing. */
__attribute__((format(printf, 2, 3))) static _Noreturn void give_up(
	int port, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(2, "lab: %s\n", text);
	if (port >= 0)
		send_frame(port, FRAME_ERROR, text, strlen(text));
	power_off();
}

/* ---- the machine ---- */

static void mount_at(const char *type, const char *dir, const char *options)
{
	mkdir(dir, 0755);
	/* What a kernel lacks is left out: a command that needs it says so itself. */
	mount(type, dir, type, 0, options);
}

static void mount_all(void)
{
	mount_at("devtmpfs", "/dev", NULL);
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	mount_at("tracefs", "/sys/kernel/tracing", NULL);
	mount_at("cgroup2", "/sys/fs/cgroup", NULL);
	mount_at("devpts", "/dev/pts", NULL);
	mount_at("tmpfs", "/dev/shm", NULL);
	mkdir("/tmp", 01777);
	chmod("/tmp", 01777);
	mkdir("/root", 0700);
	mkdir("/run", 0755);
	mkdir(OUT, 0755);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

/* An image made by a plain user has no device nodes, so the kernel could not open a console for us.
 */
static void open_console(void)
{
	const int console = open("/dev/console", O_RDWR);
	const int null = open("/dev/null", O_RDWR);

	dup2(null, 0);
	dup2(console >= 0 ? console : null, 1);
	dup2(console >= 0 ? console : null, 2);
	if (console > 2)
		close(console);
	if (null > 2)
		close(null);
}

static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

static int open_port(void)
{
	for (int tries = 0; tries < 1000; tries++) {
		const int fd = open(PORT, O_RDWR | O_CLOEXEC);

		if (fd >= 0)
			return fd;
		usleep(10000); /* the device is found while we start */
	}
	return -1;
}

/* The usual commands, last in PATH; and what scripts name by their full path, unless the image has
 * it. */
static void install_busybox(void)
{
	pid_t pid;

	mkdir("/lab/bin", 0755);
	pid = fork();
	if (pid == 0) {
		execl(BUSYBOX, "busybox", "--install", "-s", "/lab/bin", NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	mkdir("/bin", 0755);
	mkdir("/usr", 0755);
	mkdir("/usr/bin", 0755);
	symlink(BUSYBOX, "/bin/sh");
	symlink(BUSYBOX, "/usr/bin/env");
}

/* ---- the job ---- */

static char *read_all(int port, const char *path, size_t *len)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		give_up(port, "%s: %s", path, strerror(errno));
	text = calloc((size_t)st.st_size + 1, 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0)
		give_up(port, "%s: %s", path, strerror(errno));
	close(fd);
	*len = (size_t)n;
	return text;
}

static void job_record(struct job *job, char *record, size_t nr[3])
{
	switch (record[0]) {
	case 'A':
		job->args[nr[0]++] = record + 1;
		break;
	case 'E':
		job->env[nr[1]++] = record + 1;
		break;
	case 'W':
		job->settings[nr[2]++] = record + 1;
		break;
	case 'D':
		job->dir = record + 1;
		break;
	case 'P':
		job->program = record + 1;
		break;
	case 'O':
		job->send_files = true;
		break;
	default:
		break;
	}
}

static struct job read_job(int port)
{
	size_t len, records = 1, nr[3] = {0, 0, 0};
	struct job job = {.text = read_all(port, JOB, &len), .dir = "/"};

	for (size_t i = 0; i < len; i++)
		records += !job.text[i];
	/* Each array could hold every record and ends with NULL. */
	job.args = calloc(records + 1, sizeof(char *));
	job.env = calloc(records + 1, sizeof(char *));
	job.settings = calloc(records + 1, sizeof(char *));
	if (!job.args || !job.env || !job.settings)
		give_up(port, "no memory for %zu records of %s", records, JOB);
	for (char *at = job.text; at < job.text + len; at += strlen(at) + 1)
		job_record(&job, at, nr);
	if (!nr[0])
		give_up(port, "%s: no command", JOB);
	return job;
}

static void apply_setting(int port, char *setting)
{
	char *value = strchr(setting, '=');
	int fd;

	if (!value)
		give_up(port, "--write %s: expected FILE=VALUE", setting);
	*value++ = '\0';
	fd = open(setting, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		give_up(port, "--write %s: %s", setting, strerror(errno));
	if (write(fd, value, strlen(value)) < 0)
		give_up(port, "--write %s=%s: %s", setting, value, strerror(errno));
	close(fd);
}

/* ---- the command ---- */

static _Noreturn void become_command(const struct job *job)
{
	sigset_t none;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	environ = job->env;
	if (chdir(job->dir)) {
		dprintf(2, "lab: %s: %s\n", job->dir, strerror(errno));
		_exit(126);
	}
	if (job->program)
		execv(job->program, job->args);
	else
		execvp(job->args[0], job->args);
	err = errno;
	dprintf(2, "lab: %s: %s\n", job->args[0], strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

static pid_t start(const struct job *job, int out[2], int err[2])
{
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		dup2(err[1], 2);
		become_command(job);
	}
	close(out[1]);
	close(err[1]);
	return pid;
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reap whatever has ended. True once the command has; then nothing else may go on: what it left
 * behind would keep its output open. */
static bool reap(pid_t command, int *status)
{
	bool ended = false;
	pid_t pid;
	int s;

	while ((pid = waitpid(-1, &s, WNOHANG)) > 0) {
		if (pid != command)
			continue;
		*status = shell_status(s);
		ended = true;
	}
	if (ended)
		kill(-1, SIGKILL);
	return ended;
}

/* False at the end of the stream. */
static bool carry(int port, int fd, enum frame_kind kind)
{
	char bytes[FRAME_MAX];
	const ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0)
		send_frame(port, kind, bytes, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Carry both streams until the command has ended and both are empty; its status. */
static int attend(int port, pid_t command, int out, int err, int children)
{
	struct pollfd fds[3] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN},
		{.fd = children, .events = POLLIN}};
	static const enum frame_kind kinds[2] = {FRAME_STDOUT, FRAME_STDERR};
	struct signalfd_siginfo info;
	int status = 125;

	while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
		if (poll(fds, 3, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents && !carry(port, fds[i].fd, kinds[i]))
				fds[i].fd = -1;
		if (fds[2].fd < 0 || !fds[2].revents)
			continue;
		if (read(children, &info, sizeof(info)) > 0 && reap(command, &status))
			fds[2].fd = -1;
	}
	return status;
}

static int run_command(int port, const struct job *job)
{
	int out[2], err[2], children;
	sigset_t child;
	pid_t pid;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	children = signalfd(-1, &child, SFD_CLOEXEC);
	pid = start(job, out, err);
	if (pid < 0 || children < 0)
		give_up(port, "cannot start the command: %s", strerror(errno));
	return attend(port, pid, out[0], err[0], children);
}

static void send_files(int port)
{
	int out[2], status = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		give_up(port, "cannot send files: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execl(BUSYBOX, "tar", "-C", OUT, "-cf", "-", ".", NULL);
		_exit(127);
	}
	close(out[1]);
	while (carry(port, out[0], FRAME_FILES))
		;
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		give_up(port, "cannot send the files in %s: tar failed", OUT);
}

static void send_ready(int port)
{
	char text[32] = "";
	const int fd = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	close(fd);
	send_frame(port, FRAME_READY, text, n < 0 ? 0 : strcspn(text, " \n"));
}

int main(void)
{
	char status[16];
	struct job job;
	int port;

	umask(0);
	mount_all();
	open_console();
	umask(022);
	port = open_port();
	if (port < 0)
		give_up(-1, "%s: %s", PORT, strerror(errno));
	job = read_job(port);
	raise_loopback();
	install_busybox();
	for (char **setting = job.settings; *setting; setting++)
		apply_setting(port, *setting);
	send_ready(port);
	snprintf(status, sizeof(status), "%d", run_command(port, &job));
	if (job.send_files)
		send_files(port);
	send_frame(port, FRAME_EXIT, status, strlen(status));
	power_off();
}
