/* SPDX-License-Identifier: MIT */
/*
 * probe: what this machine offers the live part, found out by trying. One table: name, how it is
 * asked, what it is for, and the command that would enable it. Answers: yes, no, or not known; with
 * what was tried. Runs in the command; nothing is left changed.
 */
#ifndef NB_LIVE_PROBE_H
#define NB_LIVE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* X(NAME, name, needed, what it is for, the command that would enable it) */
#define NB_PROBES(X)                                                                               \
	X(MEMFD, "memfd_create", true, "backs managed memory",                                     \
		"a kernel with CONFIG_MEMFD_CREATE, and a seccomp profile that allows "            \
		"memfd_create")                                                                    \
	X(USERFAULTFD, "userfaultfd", true, "hint faults",                                         \
		"sudo sysctl vm.unprivileged_userfaultfd=1   (or: sudo chmod 666 "                 \
		"/dev/userfaultfd)")                                                               \
	X(KERNEL_FAULTS, "userfaultfd for faults inside system calls", true,                       \
		"read(2) into an armed page must work",                                            \
		"sudo sysctl vm.unprivileged_userfaultfd=1   (or: sudo chmod 666 "                 \
		"/dev/userfaultfd)")                                                               \
	X(MINOR_SHMEM, "minor faults on shared memory", true, "arming without losing data",        \
		"Linux 5.14 or later")                                                             \
	X(WP_SHMEM, "write-protection of shared memory", false, "taking memory back after a fork", \
		"Linux 5.19 or later with CONFIG_PTE_MARKER_UFFD_WP")                              \
	X(CLOSE_RANGE, "close_range with CLOSE_RANGE_UNSHARE", true,                               \
		"descriptors out of the program's reach",                                          \
		"Linux 5.9 or later, and a seccomp profile that allows close_range")               \
	X(MOVE_PAGES, "move_pages", false,                                                         \
		"finding and moving pages; without it numabal only observes",                      \
		"CAP_SYS_NICE in the container, or a seccomp profile that allows move_pages")      \
	X(GET_MEMPOLICY, "get_mempolicy", false, "yielding to the program's own policy",           \
		"CAP_SYS_NICE in the container, or a seccomp profile that allows get_mempolicy")   \
	X(COLLAPSE, "MADV_COLLAPSE of shared memory", false, "huge pages for settled memory",      \
		"Linux 6.1 or later with CONFIG_TRANSPARENT_HUGEPAGE")

enum nb_probe {
#define X(NAME, name, needed, text, command) NB_PROBE_##NAME,
	NB_PROBES(X)
#undef X
		NB_NR_PROBES
};

enum nb_probe_answer { NB_PROBE_UNKNOWN, NB_PROBE_NO, NB_PROBE_YES };

struct nb_probe_info {
	const char *name;
	bool needed;
	const char *text, *command;
};
extern const struct nb_probe_info nb_probe_table[NB_NR_PROBES];

enum { NB_PROBE_WHY = 256 };

struct nb_probe_result {
	enum nb_probe_answer answer[NB_NR_PROBES];
	char why[NB_NR_PROBES]
		[NB_PROBE_WHY]; /* what was tried and what it said; "" = nothing to say */
};

void nb_probe_all(struct nb_probe_result *r);
/* Every needed one answered yes. */
bool nb_probe_can_balance(const struct nb_probe_result *r);

#endif
