/* SPDX-License-Identifier: MIT */
/*
 * launch: what `numabal run` does before and after a program: look at its file, make the session,
 * set its environment, find the shim. Runs in the command, not in the program: libc as usual, one
 * thread.
 */
#ifndef NB_LIVE_LAUNCH_H
#define NB_LIVE_LAUNCH_H

#include <stddef.h>
#include "session.h"

/* What a program's file says about preloading. X(NAME, what the one line says) */
#define NB_PROGRAM_KINDS(X)                                                                        \
	X(DYNAMIC, "dynamically linked")                                                           \
	X(STATIC, "statically linked: nothing can be preloaded")                                   \
	X(GO, "a Go program: it makes its system calls itself")                                    \
	X(SETUID, "set-user-ID or with capabilities: the loader ignores preloading")               \
	X(OTHER_ARCH, "built for another architecture")                                            \
	X(UNKNOWN, "no program file that is known here")

enum nb_program_kind {
#define X(NAME, text) NB_PROGRAM_##NAME,
	NB_PROGRAM_KINDS(X)
#undef X
		NB_NR_PROGRAM_KINDS
};
extern const char *const nb_program_texts[NB_NR_PROGRAM_KINDS];

/*
 * Find `name` as execvp does and look at the file; a script's interpreter stands for the script. 0
 * with the kind, or -errno as execve would fail (-ENOENT, -EACCES).
 */
int nb_program_look(const char *name, enum nb_program_kind *kind);

/* A session file, mapped. `path` has room for NB_SESSION_PATH bytes. */
enum { NB_SESSION_PATH = 256 };
int nb_session_create(const struct nb_topology *t, const struct nb_config *c, uint64_t ring_slots,
	char *path, struct nb_session **out, char *why, size_t why_len);
/* Unmap it and remove its file. */
void nb_session_destroy(struct nb_session *s, const char *path);
/* Map the session of a running process, found in its environment, to read it. */
int nb_session_of(uint32_t pid, struct nb_session **out, char *why, size_t why_len);
/* The same, and it may be watched, where its file may be written: nb_session_watch. */
int nb_session_open(
	uint32_t pid, struct nb_session **out, bool *writable, char *why, size_t why_len);
/* Call fn once for each session that a process here was started in, with one of its processes,
 * until it returns non-zero: that is returned. Processes of others are passed over. */
int nb_sessions_each(int (*fn)(void *ctx, uint32_t pid, const char *path), void *ctx);
/* Agents say where memory is for so long from now on. Only where it is writable. */
void nb_session_watch(struct nb_session *s, double seconds);

/*
 * A virtual topology over the CPUs of `host`: `nodes` of them (ids 0 .., distances 10 and 20), or
 * the nodes of `model`, whose CPUs are then those of `host` in proportion. Owned by the caller
 * (topo_free).
 */
int nb_virtual_nodes(struct nb_topology *out, const struct nb_topology *host, unsigned int nodes,
	char *why, size_t why_len);
int nb_virtual_model(struct nb_topology *out, const struct nb_topology *host,
	const struct nb_topology *model, char *why, size_t why_len);

/* What the live machine changes of a system: sampling is cheap, so scans need not wait long nor
 * grow rare. */
void nb_live_defaults(struct nb_config *c);

/* The shim's file: beside the command in a build directory, or installed. 0 or -ENOENT. */
int nb_find_shim(char *path, size_t len, char *why, size_t why_len);
/* An installed jemalloc: 0 or -ENOENT. */
int nb_find_jemalloc(char *path, size_t len);

/* Session and preloads into the environment of this process (the child, before exec). 0 or -errno.
 */
int nb_launch_environment(const char *session, const char *shim, const char *allocator);

#endif
