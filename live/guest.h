/* SPDX-License-Identifier: MIT */
/*
 * guest: everything numabal has inside a program. There is one of it in a process (the shim's), and
 * the parts below are handed to it; tests make their own.
 *
 * Who is who
 *  - The program's threads come in through the shim's hooks. They touch the table of regions under
 * its lock and leave requests for the agent; they hold no descriptor.
 *  - The agent is one thread, unknown to libc, started at the first mapping worth managing. It has
 * a table of descriptors of its own, so that none of ours is in the program's reach: no
 * close_range, no dup2, no RLIMIT_NOFILE, no exec and no fork concerns them. It owns the engine,
 * backs memory, serves faults, arms, moves, and takes memory back after forks.
 *  - The watchdog is a second thread that shares the agent's descriptors and looks, a few times a
 * second, whether a fault is waiting. It closes the descriptor when one has waited too long, and
 *    answers requests that the agent does not.
 *  - Carriers move pages for the agent (carrier.c), once there are any to move.
 *  - Should all these threads end, the kernel closes their descriptors, and resolves every fault.
 *
 * No thread of the program can be lost: a fault waits for the agent, for the watchdog after that,
 * and for the kernel at last.
 */
#ifndef NB_LIVE_GUEST_H
#define NB_LIVE_GUEST_H

#include "../engine/machine.h"
#include "heap.h"
#include "os.h"
#include "region.h"
#include "session.h"

enum {
	NB_MAX_REQUESTS = 64,
	NB_CPU_MASK_BYTES = 1024,
	NB_HELPER_STACK = 64 << 10,
	NB_HELPER_TLS = 4096,
	NB_MAX_CARRIERS = 4,
};

enum nb_guest_state {
	NB_GUEST_OFF,	   /* no session, or balancing was given up for good */
	NB_GUEST_READY,	   /* no agent yet */
	NB_GUEST_STARTING, /* a thread is starting it */
	NB_GUEST_RUNNING,
	NB_GUEST_CLOSED, /* the agent serves requests, but no faults: userfaultfd is closed */
};

/* Whether threads of the program have memory policies of their own (set_mempolicy, numactl). */
enum nb_policy_state {
	NB_POLICY_NONE,
	NB_POLICY_SET,
	NB_POLICY_UNSURE, /* one was taken back: the agent will look at all threads */
};

/*
 * What wakes the agent: a descriptor that it waits on takes this signal. Signals that are sent to
 * the process would be taken too, so it is one that no program sends or waits for: C libraries keep
 * it for themselves (glibc and musl cancel threads by it) and send it to one of their own threads.
 */
enum { NB_NUDGE = 32 };

enum nb_request_kind {
	NB_REQUEST_ADOPT,    /* back [start, end), fresh anonymous memory with rights `prot` */
	NB_REQUEST_PRE_FORK, /* make all memory private, hold the canary */
	NB_REQUEST_PRIVATE,  /* make all memory private; it may be taken back at once */
	NB_REQUEST_EJECT,    /* turn what is managed in [start, end) into anonymous memory */
	NB_REQUEST_LAZY,     /* move what is in [start, end) to who touches it next */
	NB_REQUEST_POLICY,   /* where [start, end) belongs: `mode` and `nodes` */
	NB_REQUEST_STOP,     /* make all memory private and end both threads */
};

enum nb_request_state {
	NB_REQUEST_FREE,
	NB_REQUEST_CLAIMED, /* being filled in */
	NB_REQUEST_PENDING, /* may be taken back by who asked */
	NB_REQUEST_TAKEN,   /* being served: an answer will come */
	NB_REQUEST_DONE,
};

/* What is asked for. */
struct nb_wish {
	uint32_t kind; /* enum nb_request_kind */
	uint32_t prot; /* ADOPT: PROT_* */
	uint64_t start, end;
	int32_t cpu;	/* ADOPT: where the asking thread runs */
	bool policy;	/* ADOPT: it has a memory policy */
	uint32_t mode;	/* POLICY: enum nb_policy_mode */
	uint64_t nodes; /* POLICY: bit = node id */
};

struct nb_request {
	_Atomic uint32_t state; /* enum nb_request_state; waited for */
	int32_t answer;		/* 0 or -errno */
	uint64_t asked_ns;
	struct nb_wish wish;
};

/* A mapping that lives on in every process that a fork made, and in no other: see backing.c. */
struct nb_canary {
	int fd; /* -1 = none; -2 = could not be made for a fork: nobody can tell who is left */
	_Atomic uint64_t addr; /* mapped here while forks are under way; 0 = not */
};

/* What a thread of the program has while it holds the regions' lock. */
struct nb_hold {
	struct nb_signals signals;
	bool locked; /* false: the thread forks, and has the lock already */
};

/* What a helper runs on. */
struct nb_helper_stack {
	char stack[NB_HELPER_STACK];
	char tls[NB_HELPER_TLS]; /* its thread pointer, right behind its stack */
};

struct nb_agent;

struct nb_guest {
	struct nb_session *session; /* NULL: no session */
	_Atomic(struct nb_slot *) slot;
	_Atomic uint32_t state; /* enum nb_guest_state */
	_Atomic uint32_t forks; /* under way */
	/* The thread that forks holds the regions' lock meanwhile, also while handlers of others
	 * run. */
	_Atomic uint32_t fork_tid;
	struct nb_hold fork_hold;
	uint32_t pid;
	bool no_more; /* mlockall(MCL_FUTURE): adopt nothing */
	_Atomic uint32_t
		sandboxed; /* seccomp: no system calls but those that the program makes itself */
	_Atomic uint32_t policy;       /* enum nb_policy_state */
	_Atomic uint32_t own_affinity; /* 1: the program has set one itself */
	bool counted;		       /* among the session's processes */
	uint32_t nr_cpu_mask;
	unsigned char cpu_mask[NB_CPU_MASK_BYTES]; /* of the program when it started */

	struct nb_regions regions;
	struct nb_request request[NB_MAX_REQUESTS];
	struct nb_canary canary;

	/* The helpers. */
	_Atomic uint32_t agent_tid, watchdog_tid; /* 0 = not there */
	_Atomic uint32_t carrier_tid[NB_MAX_CARRIERS];
	_Atomic int uffd;	     /* in their own table; -1 = closed */
	_Atomic uint64_t progress;   /* the agent's rounds */
	_Atomic uint64_t holding_ns; /* since when the agent holds faults that it has not resolved;
					0 = none */
	_Atomic uint32_t watch_word; /* the watchdog sleeps on it */
	_Atomic uint32_t stop;	     /* both threads end */
	_Atomic uint32_t
		revoked;	/* the lock was taken from a helper: they change nothing any more */
	struct nb_agent *agent; /* the agent's own */
	int proc_fd;		/* /proc/self, in the helpers' table */
	struct nb_helper_stack *stacks; /* [2] */
};

/* A guest without a session, in zeroed memory. */
void nb_guest_init(struct nb_guest *g);

/* A thread of ours, unknown to libc: agent, watchdog or carrier. */
bool nb_guest_is_helper(struct nb_guest *g, uint32_t tid);
/* Start one; it runs fn(arg), which does not return. Its id, or -errno. */
long nb_helper_start(struct nb_helper_stack *s, void (*fn)(void *arg), void *arg);

/* Counters of this process, or a sink where it has no slot. */
struct nb_live_stats *nb_guest_stats(struct nb_guest *g);
void nb_guest_note(struct nb_guest *g, enum nb_note note);

/* ---- what the hooks ask for; any thread of the program ---- */

/*
 * The regions' lock, for a thread of the program. A helper that was stopped with it (a debugger, a
 * starved CPU) cannot hold the program: after the watchdog's time without any progress the lock is
 * taken from it, and the helpers change nothing any more. In a sandbox no system call is made for
 * it.
 */
void nb_guest_hold(struct nb_guest *g, struct nb_hold *h);
void nb_guest_release(struct nb_guest *g, const struct nb_hold *h);

/*
 * Ask the agent and wait: 0 or -errno. -EAGAIN: no agent, no room, or no answer in time; then
 * nothing was and nothing will be done. PRE_FORK and STOP wait until they are served.
 */
int nb_ask(struct nb_guest *g, const struct nb_wish *wish);
/* Let the agent look at the table of regions soon. */
void nb_nudge(struct nb_guest *g);

/* The first mapping worth managing came: start the helpers unless they run. True when they do. */
bool nb_agent_ensure(struct nb_guest *g);

/* ---- forks: around a fork that the program makes; in this order ---- */

void nb_before_fork(struct nb_guest *g);
void nb_after_fork_parent(struct nb_guest *g);
void nb_after_fork_child(struct nb_guest *g);

#endif
