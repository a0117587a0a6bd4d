/* SPDX-License-Identifier: MIT */
/*
 * session: what `numabal run` and the processes below it share: one file, mapped by all of them.
 * The command writes the configuration and the topology once; each process that manages memory
 * takes a slot and counts into it; the command, `numabal stat` and `numabal top` read. Found by the
 * environment variable NUMABAL_SESSION, which holds its path.
 *
 * Thread rules: the head is only read once it is there; counters are atomic.
 */
#ifndef NB_LIVE_SESSION_H
#define NB_LIVE_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../engine/counters.h"
#include "../engine/systems.h"
#include "../engine/topology.h"
#include "ring.h"

#define NB_SESSION_ENV "NUMABAL_SESSION"
/* The name that files behind managed memory have in /proc/PID/maps. */
#define NB_BACKING_NAME "numabal"

enum {
	NB_SESSION_SLOTS = 256,
	NB_SESSION_HISTOGRAM = 32, /* powers of two of ns */
	NB_MOVE_MS = 20,	   /* what a call of move_pages may take, unless said otherwise */
};

/* X(name, unit, one sentence). Units: bytes, pages of 4 KiB, events, ns. */
#define NB_LIVE_STATS(X)                                                                           \
	X(managed_bytes, "bytes", "address space managed now")                                     \
	X(managed_peak, "bytes", "the most that was managed at one time")                          \
	X(regions, "events", "regions managed so far")                                             \
	X(regions_skipped, "events",                                                               \
		"mappings left alone because a bound or a resource was reached")                   \
	X(skipped_bytes, "bytes", "their size")                                                    \
	X(unsuited, "events", "large mappings left alone by rule")                                 \
	X(unsuited_bytes, "bytes", "their size")                                                   \
	X(armed, "pages", "pages armed")                                                           \
	X(arm_stale, "events", "armings given up: the memory was not ours any more")               \
	X(faults, "events", "faults resolved")                                                     \
	X(faults_other, "events", "faults answered by a wake-up alone")                            \
	X(samples, "events", "faults with a known toucher and a known page")                       \
	X(samples_local, "events", "of these, page and toucher on one node")                       \
	X(first_samples, "events", "samples before the first moves")                               \
	X(first_local, "events", "of these, local")                                                \
	X(last_samples, "events", "samples in the last seconds, older ones fading")                \
	X(last_local, "events", "of these, local")                                                 \
	X(inferred, "events", "blocks judged by those around them, without a fault")               \
	X(moves, "events", "blocks moved")                                                         \
	X(moved, "pages", "pages moved")                                                           \
	X(move_failed, "pages", "pages that did not move")                                         \
	X(move_calls, "events", "calls of move_pages that moved")                                  \
	X(move_max_ns, "ns", "the longest of them")                                                \
	X(thread_moves, "events", "threads moved to another node")                                 \
	X(collapsed, "events", "blocks given their huge page back")                                \
	X(forks, "events", "forks with managed memory")                                            \
	X(private_bytes, "bytes", "private since a fork, waiting for the child to go")             \
	X(taken_back, "bytes", "taken back under management after forks")                          \
	X(ejected, "bytes", "turned into ordinary memory for calls that need it")                  \
	X(discarded, "bytes", "dropped by the program (MADV_DONTNEED, MADV_FREE)")                 \
	X(agent_ns, "ns", "CPU time of the agent")                                                 \
	X(closed, "events", "the descriptor was closed early: memory works on, unbalanced")

struct nb_live_stats {
#define X(name, unit, text) _Atomic uint64_t name;
	NB_LIVE_STATS(X)
#undef X
};

enum {
	NB_NR_LIVE_STATS = sizeof(struct nb_live_stats) / sizeof(uint64_t),
};

struct nb_live_stat_info {
	const char *name, *unit, *text;
};
extern const struct nb_live_stat_info nb_live_stat_table[NB_NR_LIVE_STATS];

/* Why a process does not balance, or only in part: bits of a slot's `notes`. X(NAME, sentence) */
#define NB_NOTES(X)                                                                                \
	X(NO_USERFAULTFD, "userfaultfd was refused")                                               \
	X(NO_MEMFD, "memfd_create was refused")                                                    \
	X(NO_KERNEL_FAULTS, "userfaultfd serves faults of user mode only")                         \
	X(NO_MOVE_PAGES, "move_pages was refused: observing only")                                 \
	X(NO_WP, "no write-protection for shared memory: memory stays private after a fork")       \
	X(NO_THREAD, "the agent's thread could not be started")                                    \
	X(NO_MEMORY, "memory for the engine ran out")                                              \
	X(OVERCOMMIT, "strict overcommit (vm.overcommit_memory=2): memory is left alone")          \
	X(RLIMIT_DATA, "a limit on data (ulimit -d): memory is left alone")                        \
	X(CREDENTIALS,                                                                             \
		"the program changed who it is: memory managed before that is not any more")       \
	X(MAX_REGIONS, "the bound on regions was reached")                                         \
	X(MAX_MAPS, "vm.max_map_count is near: no more regions")                                   \
	X(POLICY, "the program has a memory policy of its own: its pages are not moved")           \
	X(WATCHDOG, "a fault waited for a second: the descriptor was closed")                      \
	X(SECCOMP, "the program entered a seccomp sandbox: the agent stepped back")                \
	X(LOCKED_FUTURE, "the program locks all its future memory: left alone")                    \
	X(THP_ADVISED, "memory with MADV_HUGEPAGE began without huge pages (shmem_enabled)")       \
	X(DIRECT_IO, "direct I/O or io_uring in use: memory stays private after a fork")

enum nb_note {
#define X(NAME, text) NB_NOTE_##NAME,
	NB_NOTES(X)
#undef X
		NB_NR_NOTES
};
extern const char *const nb_note_texts[NB_NR_NOTES];

/*
 * Where a process's memory is. Looked for once a second while somebody watches, on some thousand
 * blocks at most: shares of larger memory are those of a sample. One writer; version is odd while
 * it writes, and 0 before it first did.
 */
enum {
	NB_SURVEY_REGIONS = 32, /* the largest ones */
	NB_SURVEY_NODES = 4,	/* on which most of a region is */
};

struct nb_survey_region {
	uint64_t start, bytes;
	int16_t node[NB_SURVEY_NODES];	    /* index; NB_NO_NODE = none */
	uint16_t permille[NB_SURVEY_NODES]; /* of its blocks; what is missing was not found */
};

struct nb_survey {
	_Atomic uint32_t version;
	uint32_t nr_regions; /* in `region`, by size */
	uint64_t unknown;    /* bytes that are nowhere, as they were not touched, or not found */
	struct nb_survey_region region[NB_SURVEY_REGIONS];
};

/* A process. */
struct nb_slot {
	_Atomic uint32_t pid;	/* 0 = free */
	_Atomic uint32_t notes; /* bits of enum nb_note */
	_Atomic uint32_t agent; /* 1 while its agent runs and balances */
	uint32_t padding;
	char comm[16];
	struct nb_live_stats stats;
	_Atomic uint64_t
		counters[NB_NR_COUNTERS]; /* the engine's, in the order of struct nb_counters */
	_Atomic uint64_t
		histogram[NB_SESSION_HISTOGRAM]; /* fault service time: [i] = 2^i .. 2^(i+1) ns */
	_Atomic uint64_t move_histogram[NB_SESSION_HISTOGRAM]; /* of calls of move_pages */
	struct nb_survey survey;
};

enum nb_session_flags {
	NB_SESSION_VIRTUAL = 1 << 0,	  /* nodes are virtual: moves are bookkept */
	NB_SESSION_KEEP_THP = 1 << 1,	  /* backing would lose huge pages: leave all alone */
	NB_SESSION_KEEP_ADVISED = 1 << 3, /* the same for what the program wants them for */
	NB_SESSION_LOSE_ADVISED = 1 << 4, /* that loses them, to begin with */
	NB_SESSION_CHECK = 1 << 2,	  /* check structures as they change */
};

/*
 * Tasks of a process that belong to each node: processes choose homes with those of the others in
 * mind. Good for a while: an agent may have been killed.
 */
struct nb_residents {
	_Atomic uint64_t told_ns; /* CLOCK_MONOTONIC; 0 = never */
	_Atomic uint32_t tasks[]; /* [nr_nodes] */
};

struct nb_session {
	char magic[8];
	uint64_t build; /* of the layout: sizes and version */
	uint64_t bytes; /* of the whole file */
	uint64_t min_size;
	uint32_t flags;
	uint32_t watchdog_ms;
	uint32_t move_ms; /* what a call of move_pages may take */
	uint32_t max_regions;
	char system[32]; /* the row that `config` is of */
	struct nb_config config;
	/* The topology, flattened: offsets from the head. */
	uint32_t nr_nodes, nr_cpus, cpu_ids, topo_flags;
	uint64_t nodes_at, cpu_node_at, distance_at;
	uint64_t ring_at;	/* where events go; 0: nobody records */
	uint64_t node_bytes_at; /* of the surveys: [NB_SESSION_SLOTS][nr_nodes] */
	uint64_t residents_at;	/* [NB_SESSION_SLOTS], each of residents_bytes */
	uint64_t residents_bytes;
	_Atomic uint64_t watched_ns; /* until when (CLOCK_MONOTONIC) somebody watches */
	_Atomic uint64_t processes;  /* that loaded the shim */
	_Atomic uint64_t slots_lost; /* processes that found no free slot */
	struct nb_slot slot[NB_SESSION_SLOTS];
};

/* Bytes needed for this topology, with a ring of so many slots (a power of two, or 0). */
size_t nb_session_bytes(const struct nb_topology *t, uint64_t ring_slots);
/* Fill in the head of a zeroed file of that size. */
void nb_session_init(struct nb_session *s, const struct nb_topology *t, const struct nb_config *c,
	uint64_t ring_slots);
/* NULL: nobody records. */
struct nb_ring *nb_session_ring(struct nb_session *s);
/* True when the mapping of `bytes` bytes is a session of this build. */
bool nb_session_valid(const struct nb_session *s, size_t bytes);
/* The topology as the engine wants it; borrowed from the session. */
struct nb_topology nb_session_topology(struct nb_session *s);

/* What the survey of that slot found on each node, bytes: [nr_nodes]. */
uint64_t *nb_session_node_bytes(const struct nb_session *s, const struct nb_slot *slot);

/* This slot's process tells; nobody reads what the slot that many share says. */
void nb_session_tell_residents(const struct nb_session *s, const struct nb_slot *slot,
	const uint32_t *tasks, uint64_t now_ns);
/* Those of all other slots, together: [nr_nodes]. */
void nb_session_other_residents(
	const struct nb_session *s, const struct nb_slot *slot, uint32_t *tasks, uint64_t now_ns);

/* A slot for this process; the last one is shared by those who find no other. */
struct nb_slot *nb_session_slot(struct nb_session *s, uint32_t pid);

static inline void nb_stat_add(_Atomic uint64_t *stat, uint64_t n)
{
	atomic_fetch_add_explicit(stat, n, memory_order_relaxed);
}

static inline void nb_stat_sub(_Atomic uint64_t *stat, uint64_t n)
{
	atomic_fetch_sub_explicit(stat, n, memory_order_relaxed);
}

static inline void nb_stat_max(_Atomic uint64_t *stat, uint64_t n)
{
	if (atomic_load_explicit(stat, memory_order_relaxed) < n)
		atomic_store_explicit(stat, n, memory_order_relaxed);
}

/* One more that took so long. */
static inline void nb_histogram_add(_Atomic uint64_t *histogram, uint64_t ns)
{
	const int i = 63 - __builtin_clzll(ns | 1);

	nb_stat_add(&histogram[i < NB_SESSION_HISTOGRAM ? i : NB_SESSION_HISTOGRAM - 1], 1);
}

static inline void nb_slot_note(struct nb_slot *s, enum nb_note note)
{
	atomic_fetch_or(&s->notes, 1U << note);
}

#endif
