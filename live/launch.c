/* SPDX-License-Identifier: MIT */
#include "launch.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "../engine/why.h"
#include "../topo/topo.h"

/* ---- the session's file ---- */

static int session_file(char *path, size_t len)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int fd = -1;

	if (dir != NULL && dir[0] == '/') {
		snprintf(path, len, "%s/numabal-%d.run", dir, (int)getpid());
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (fd >= 0)
		return fd;
	snprintf(path, len, "/tmp/numabal-%d-XXXXXX", (int)getuid());
	fd = mkostemp(path, O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void *map_file(int fd, size_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

int nb_session_create(const struct nb_topology *t, const struct nb_config *c, uint64_t ring_slots,
	char *path, struct nb_session **out, char *why, size_t why_len)
{
	const size_t bytes = nb_session_bytes(t, ring_slots);
	const int fd = session_file(path, NB_SESSION_PATH);
	int err = 0;

	if (fd < 0)
		return nb_why(why, why_len, fd, "%s: %s; expected a place for the session's file",
			path, strerror(-fd));
	*out = NULL;
	/* Allocated now: a full disk must not become a SIGBUS in the program. */
	err = posix_fallocate(fd, 0, (off_t)bytes);
	if (err == 0)
		*out = map_file(fd, bytes, PROT_READ | PROT_WRITE);
	close(fd);
	if (*out == NULL) {
		unlink(path);
		return nb_why(why, why_len, err ? -err : -ENOMEM, "%s: %s", path,
			strerror(err ? err : ENOMEM));
	}
	nb_session_init(*out, t, c, ring_slots);
	return 0;
}

void nb_session_destroy(struct nb_session *s, const char *path)
{
	if (s == NULL)
		return;
	munmap(s, (size_t)s->bytes);
	unlink(path);
}

/* The value of NUMABAL_SESSION in the environment of a process. */
static int session_path(uint32_t pid, char *path, size_t len)
{
	static const char name[] = NB_SESSION_ENV "=";
	char file[64], text[65536];
	size_t n;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%u/environ", pid);
	f = fopen(file, "re");
	if (f == NULL)
		return -errno;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	for (const char *p = text; p < text + n; p += strlen(p) + 1)
		if (strncmp(p, name, sizeof(name) - 1) == 0) {
			snprintf(path, len, "%s", p + sizeof(name) - 1);
			return 0;
		}
	return -ESRCH;
}

static int open_session(uint32_t pid, int flags, struct nb_session **out, char *why, size_t why_len)
{
	const int prot = flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;
	char path[NB_SESSION_PATH];
	struct stat st;
	int err = session_path(pid, path, sizeof(path));
	int fd;

	if (err != 0)
		return nb_why(why, why_len, err, "process %u: %s", pid,
			err == -ESRCH ? "not started by numabal run" : strerror(-err));
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return nb_why(why, why_len, -errno, "%s: %s", path, strerror(errno));
	*out = fstat(fd, &st) == 0 ? map_file(fd, (size_t)st.st_size, prot) : NULL;
	close(fd);
	if (*out != NULL && nb_session_valid(*out, (size_t)st.st_size))
		return 0;
	if (*out != NULL)
		munmap(*out, (size_t)st.st_size);
	return nb_why(why, why_len, -EINVAL, "%s: no session of this version", path);
}

int nb_session_of(uint32_t pid, struct nb_session **out, char *why, size_t why_len)
{
	return open_session(pid, O_RDONLY, out, why, why_len);
}

int nb_session_open(
	uint32_t pid, struct nb_session **out, bool *writable, char *why, size_t why_len)
{
	*writable = open_session(pid, O_RDWR, out, why, why_len) == 0;
	return *writable ? 0 : nb_session_of(pid, out, why, why_len);
}

void nb_session_watch(struct nb_session *s, double seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&s->watched_ns, (uint64_t)now.tv_sec * UINT64_C(1000000000) +
					     (uint64_t)now.tv_nsec + (uint64_t)(seconds * 1e9));
}

/* ---- all of them ---- */

enum { MOST_SESSIONS = 256 };

struct seen {
	size_t nr;
	char path[MOST_SESSIONS][NB_SESSION_PATH];
};

static bool is_new(struct seen *seen, const char *path)
{
	for (size_t i = 0; i < seen->nr; i++)
		if (strcmp(seen->path[i], path) == 0)
			return false;
	if (seen->nr == MOST_SESSIONS)
		return false;
	snprintf(seen->path[seen->nr++], NB_SESSION_PATH, "%s", path);
	return true;
}

static int each_new(
	DIR *proc, struct seen *seen, int (*fn)(void *, uint32_t, const char *), void *ctx)
{
	char path[NB_SESSION_PATH];
	const struct dirent *e;
	int64_t pid;
	int rc = 0;

	while (rc == 0 && (e = readdir(proc)) != NULL)
		if (nb_parse_i64(e->d_name, &pid) == 0 && pid > 0 &&
			session_path((uint32_t)pid, path, sizeof(path)) == 0 && is_new(seen, path))
			rc = fn(ctx, (uint32_t)pid, path);
	return rc;
}

int nb_sessions_each(int (*fn)(void *ctx, uint32_t pid, const char *path), void *ctx)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	DIR *proc = opendir("/proc");
	int rc = seen == NULL ? -ENOMEM : proc == NULL ? -errno : 0;

	if (rc == 0)
		rc = each_new(proc, seen, fn, ctx);
	if (proc != NULL)
		closedir(proc);
	free(seen);
	return rc;
}

/* ---- virtual nodes ---- */

/* CPU number n of nr goes to node n * nodes / nr. */
static void share_cpus(struct nb_topology *out, const struct nb_topology *host, unsigned int nodes,
	const unsigned int *home)
{
	unsigned int n = 0;

	for (unsigned int cpu = 0; cpu < host->cpu_ids; cpu++) {
		unsigned int node;

		if (host->cpu_node[cpu] == NB_NO_NODE)
			continue;
		node = home[(size_t)n * nodes / host->nr_cpus];
		out->cpu_node[cpu] = (int16_t)node;
		out->nodes[node].nr_cpus++;
		n++;
	}
	out->nr_cpus = n;
}

static uint64_t memory_of(const struct nb_topology *t)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < t->nr_nodes; i++)
		bytes += t->nodes[i].mem_bytes;
	return bytes;
}

int nb_virtual_nodes(struct nb_topology *out, const struct nb_topology *host, unsigned int nodes,
	char *why, size_t why_len)
{
	unsigned int home[NB_MAX_NODES];

	if (nodes < 1 || nodes > host->nr_cpus || nodes > NB_MAX_NODES)
		return nb_why(why, why_len, -EINVAL,
			"%u virtual nodes: expected 1 to %u, the number of CPUs", nodes,
			host->nr_cpus);
	if (topo_alloc(out, nodes, host->cpu_ids) != 0)
		return nb_why(why, why_len, -ENOMEM, "no memory for the topology");
	for (unsigned int i = 0; i < nodes; i++) {
		home[i] = i;
		out->nodes[i].mem_bytes = out->nodes[i].free_bytes = memory_of(host) / nodes;
	}
	share_cpus(out, host, nodes, home);
	return 0;
}

int nb_virtual_model(struct nb_topology *out, const struct nb_topology *host,
	const struct nb_topology *model, char *why, size_t why_len)
{
	unsigned int home[NB_MAX_NODES], nodes = 0;

	for (unsigned int i = 0; i < model->nr_nodes; i++)
		if (model->nodes[i].nr_cpus > 0)
			home[nodes++] = i;
	if (nodes == 0 || nodes > host->nr_cpus)
		return nb_why(why, why_len, -EINVAL,
			"%u nodes with CPUs: expected 1 to %u, the number of CPUs here", nodes,
			host->nr_cpus);
	if (topo_alloc(out, model->nr_nodes, host->cpu_ids) != 0)
		return nb_why(why, why_len, -ENOMEM, "no memory for the topology");
	for (unsigned int i = 0; i < model->nr_nodes; i++) {
		out->nodes[i] = model->nodes[i];
		out->nodes[i].nr_cpus = 0;
	}
	memcpy(out->distance, model->distance,
		(size_t)model->nr_nodes * model->nr_nodes * sizeof(out->distance[0]));
	out->has_distances = model->has_distances;
	out->tiers_known = model->tiers_known;
	share_cpus(out, host, nodes, home);
	return 0;
}

/* ---- what is different here ---- */

void nb_live_defaults(struct nb_config *c)
{
	static const char *const defaults[] = {
		"scan_delay_ms=100", "scan_period_max_ms=2000", "scan_grow_jiffies=1"};

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		nb_config_set(c, defaults[i], NULL, 0);
}

/* ---- files to preload ---- */

#ifndef NB_LIBDIR
#define NB_LIBDIR "/usr/local/lib/numabal"
#endif
#define SHIM "libnumabal-run.so"

int nb_find_shim(char *path, size_t len, char *why, size_t why_len)
{
	const char *other = getenv("NUMABAL_SHIM");
	char exe[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (other != NULL && other[0] == '/') {
		snprintf(path, len, "%s", other);
		return 0;
	}
	if (n > 0) {
		exe[n] = '\0';
		slash = strrchr(exe, '/');
		if (slash != NULL) {
			*slash = '\0';
			snprintf(path, len, "%s/live/" SHIM, exe);
			if (access(path, R_OK) == 0)
				return 0;
		}
	}
	snprintf(path, len, NB_LIBDIR "/" SHIM);
	if (access(path, R_OK) == 0)
		return 0;
	return nb_why(why, why_len, -ENOENT,
		"%s: not there; expected it beside numabal or installed", path);
}

int nb_find_jemalloc(char *path, size_t len)
{
	static const char *const places[] = {
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib/aarch64-linux-gnu/libjemalloc.so.2",
		"/usr/lib64/libjemalloc.so.2",
		"/usr/lib/libjemalloc.so.2",
		"/usr/local/lib/libjemalloc.so.2",
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], R_OK) == 0) {
			snprintf(path, len, "%s", places[i]);
			return 0;
		}
	return -ENOENT;
}

int nb_launch_environment(const char *session, const char *shim, const char *allocator)
{
	const char *old = getenv("LD_PRELOAD");
	char preload[4 * PATH_MAX];
	const int n =
		snprintf(preload, sizeof(preload), "%s%s%s%s%s", shim, allocator[0] ? ":" : "",
			allocator, old != NULL && old[0] ? ":" : "", old != NULL ? old : "");

	if (n < 0 || (size_t)n >= sizeof(preload))
		return -ENAMETOOLONG;
	if (setenv("LD_PRELOAD", preload, 1) != 0 || setenv(NB_SESSION_ENV, session, 1) != 0)
		return -errno;
	return 0;
}
