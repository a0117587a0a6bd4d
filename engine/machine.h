/* SPDX-License-Identifier: MIT */
/*
 * machine: the only door between the engine, which decides, and a machine, which has memory and
 * tasks: the simulator, a live Linux process, a replay. Events come in as function calls; requests
 * go out through struct nb_machine. Nothing else passes.
 *
 * Rules of the door
 *  - Time, randomness and memory come from the machine. The same events give the same requests,
 *    bit for bit.
 *  - One thread at a time calls in. A request is made from inside an event call; a machine must
 *    not call in again from a request, but remembers what happened and tells it as an event
 *    afterwards.
 *  - Nodes are indexes of the topology. Addresses are bytes, page aligned where a page is meant.
 *    Times are ns on one monotonic clock of the machine's choice. A page is 4 KiB, a huge page
 *    2 MiB = 512 pages.
 *  - The machine knows where pages are and which entries are armed (in a kernel: page tables);
 *    the engine keeps what it learned about them (in a kernel: page->_last_nid and friends).
 *  - alloc is never called while a hint fault is handled.
 *
 * Where the idea is from: the split follows mm/ and sched/: task_tick_numa, do_numa_page,
 * change_prot_numa, migrate_misplaced_page are the four places at which policy and mechanism meet.
 */
#ifndef NB_ENGINE_MACHINE_H
#define NB_ENGINE_MACHINE_H

#include "events.h"
#include "systems.h"
#include "topology.h"

struct nb_counters;
struct nb_engine;
struct nb_mm;
struct nb_task;
struct nb_vma;

enum {
	NB_PAGE_SHIFT = 12,
	NB_PAGE_SIZE = 1 << NB_PAGE_SHIFT,
	NB_HUGE_SHIFT = 21,
	NB_HUGE_SIZE = 1 << NB_HUGE_SHIFT,
	NB_HUGE_PAGES = NB_HUGE_SIZE / NB_PAGE_SIZE,
};

/* ---- memory policies (set_mempolicy(2), mbind(2)) ---- */

enum nb_policy_mode {
	NB_POLICY_DEFAULT,    /* fall back: VMA -> task -> the system's default */
	NB_POLICY_PREFERRED,  /* the first node of `nodes` */
	NB_POLICY_BIND,	      /* one of `nodes`, nearest to the toucher first */
	NB_POLICY_INTERLEAVE, /* page n of the VMA on the n-th of `nodes`, modulo */
	NB_POLICY_LOCAL,      /* the toucher's node, and no balancing */
	NB_POLICY_NOOP,	      /* leave the policy as it is (only with a lazy move) */
	NB_NR_POLICY_MODES
};

struct nb_policy {
	uint8_t mode;	       /* enum nb_policy_mode */
	bool migrate_on_fault; /* MPOL_F_MOF: hint faults may move pages to satisfy it */
	uint64_t nodes[NB_MAX_NODES / 64]; /* bit = node index */
};

/* ---- requests: what the engine may ask of a machine ---- */

struct nb_arm_request {
	uint32_t mm;	     /* the machine's id */
	uint64_t start, end; /* page aligned, inside one VMA */
	/* Stop at the first huge-page boundary where so many pages were present; 0 = no limit. */
	uint64_t max_present;
	bool pmd_batch;	    /* a PMD whose present pages share a node is armed as one */
	bool single_mapped; /* pass over pages that other processes map too */
	int16_t spare_node; /* small pages on this node are left as they are; NB_NO_NODE = none */
};

struct nb_arm_result {
	uint64_t end;	       /* how far it came */
	uint64_t present;      /* pages present in the range passed */
	uint64_t updated;      /* pages newly armed; a huge page counts 512 */
	uint64_t huge_updated; /* huge pages among the updated: 1 each */
	uint64_t huge_present; /* huge pages among the present, armed before or not: 1 each */
	uint64_t cost_ns;      /* run time of the task that scans that this took */
};

struct nb_move_request {
	uint32_t mm;
	uint32_t task;	/* on whose behalf; 0 = none */
	uint64_t addr;	/* first page */
	uint32_t pages; /* 1, or 512 with huge */
	int16_t node_from, node_to;
	bool huge;
	bool write; /* it was a write that asked */
};

struct nb_machine {
	void *ctx; /* handed back in each call */

	/* Zeroed memory, or NULL. `bytes` is given back on free. */
	void *(*alloc)(void *ctx, size_t bytes);
	void (*free)(void *ctx, void *p, size_t bytes);

	/* 64 uniformly random bits; deterministic where the machine promises it. */
	uint64_t (*random)(void *ctx);

	/* Make present pages of the range trap on their next touch. Answers at once: 0 or -errno.
	 */
	int (*arm)(void *ctx, const struct nb_arm_request *r, struct nb_arm_result *out);

	/*
	 * Move pages, now or later; every accepted request is answered by exactly one nb_move_done.
	 * 0 or -errno (then nothing will happen and no nb_move_done follows). -EAGAIN: the page is
	 * on its way already, by somebody else's request; that is no failed move and is not counted
	 * as one.
	 */
	int (*move)(void *ctx, const struct nb_move_request *r);

	/* Break the huge page at addr into PTEs; armed ones stay so when keep_armed. 0 or -errno.
	 */
	int (*split)(void *ctx, uint32_t mm, uint64_t addr, bool keep_armed);

	/*
	 * Move the task to an idle CPU of that node, now. 0; -EBUSY: no CPU there is idle; -EAGAIN:
	 * one is, but the node would be busier than the one it leaves; -EINVAL: its affinity
	 * forbids it, it does not run, or no such node. May be NULL.
	 */
	int (*run_on)(void *ctx, uint32_t task, int node);

	/* Two tasks change CPUs, now. 0, or -EINVAL: an affinity forbids it, or one does not run.
	 * May be NULL. */
	int (*swap)(void *ctx, uint32_t task, uint32_t other);

	/* The task's preferred node is this one from now on: a hint for load balancing. May be
	 * NULL.
	 */
	void (*prefer)(void *ctx, uint32_t task, int node);

	/* Pages of the address space that are present. May be NULL: then what is mapped counts. */
	uint64_t (*rss)(void *ctx, uint32_t mm);

	/* Take note of a decision. May be NULL: then nothing is traced. */
	void (*trace)(void *ctx, const struct nb_event *e);
};

/* ---- life ---- */

/*
 * An engine for this machine, topology and configuration; all three are copied (machine->ctx is
 * borrowed). NULL on no memory or an unsound topology. Memory comes from machine->alloc.
 */
struct nb_engine *nb_engine_new(const struct nb_machine *machine,
	const struct nb_topology *topology, const struct nb_config *config);
void nb_engine_free(struct nb_engine *e);

const struct nb_counters *nb_engine_counters(const struct nb_engine *e);
const struct nb_config *nb_engine_config(const struct nb_engine *e);

/* Change one mechanism or tunable while it runs; as nb_config_set. */
int nb_engine_set(struct nb_engine *e, const char *assignment, char *why, size_t why_len);

/* Deep check of every structure: NULL when sound, else what is wrong. Slow. */
const char *nb_engine_check(const struct nb_engine *e);

/* Bytes of page state held now, and the pages they describe (for tests and `stat`). */
void nb_engine_page_state(const struct nb_engine *e, uint64_t *bytes, uint64_t *pages);

/* ---- events: what a machine tells the engine ---- */

/* Ids of tasks and address spaces are the machine's: non-zero, unique while alive. */

/* An address space came, with its page state empty. NULL on no memory. */
struct nb_mm *nb_mm_new(struct nb_engine *e, uint32_t id, uint64_t now_ns);
void nb_mm_gone(struct nb_engine *e, struct nb_mm *mm, uint64_t now_ns);

struct nb_task *nb_task_new(struct nb_engine *e, struct nb_mm *mm, uint32_t id, uint64_t now_ns);
/* Said right after nb_task_new, where it is known: another task of the address space made this one.
 */
void nb_task_made_by(
	struct nb_engine *e, struct nb_task *t, const struct nb_task *maker, uint64_t now_ns);
void nb_task_gone(struct nb_engine *e, struct nb_task *t, uint64_t now_ns);
/* set_mempolicy. */
void nb_task_policy(
	struct nb_engine *e, struct nb_task *t, const struct nb_policy *p, uint64_t now_ns);
/* The task's scan period now, ms (for series and `explain`). */
uint32_t nb_task_scan_period_ms(const struct nb_task *t);

enum nb_vma_flags {
	NB_VMA_READ = 1 << 0,
	NB_VMA_WRITE = 1 << 1,
	NB_VMA_FILE = 1 << 2,	      /* maps a file */
	NB_VMA_UNMIGRATABLE = 1 << 3, /* VM_IO, VM_PFNMAP, hugetlb ...: its pages do not move */
};

/*
 * [start, end) was mapped; page aligned, not overlapping any other VMA of the mm. Page state is
 * allocated here (16 bytes per 2 MiB). NULL: no memory, or overlap; the range is then simply not
 * balanced.
 */
struct nb_vma *nb_vma_map(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	unsigned int flags, uint64_t now_ns);
/*
 * [start, end) is gone: whole VMAs, parts of them, several; holes allowed. Pointers to VMAs inside
 * are no good afterwards. 0; -EINVAL: not a range; -ENOMEM: no memory for the two parts a VMA fell
 * into: it is gone from `start` on, and that part is not balanced any more.
 */
int nb_vma_unmap(
	struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end, uint64_t now_ns);
/* mprotect on whole VMAs in the range (a machine splits with unmap + map where rights differ). */
int nb_vma_protect(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	unsigned int flags, uint64_t now_ns);
/*
 * mbind: policy for the VMAs inside [start, end); one that is only partly inside is split, and a
 * pointer to it stays good for its first part. `lazy` (MPOL_MF_LAZY): also arm the range now, so
 * that pages move at their next touch to where the policy (NB_POLICY_NOOP: the one in force) wants
 * them.
 * -EINVAL: NOOP without lazy, empty node set where one is needed, bad range; -EOPNOTSUPP: the
 * system lacks the mechanism; -ENOMEM: no policy was changed.
 */
int nb_vma_policy(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	const struct nb_policy *p, bool lazy, uint64_t now_ns);
struct nb_vma *nb_vma_find(const struct nb_mm *mm, uint64_t addr);

/* Contents of [start, end) were dropped (MADV_DONTNEED, exit): page state is forgotten. */
void nb_pages_dropped(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end);

/*
 * Where a first touch by this task belongs by policy. Not a decision on misplacement: the
 * allocation rule. allowed[]: node bits in order of preference are up to the machine; the engine
 * names the policy's first choice. Returns a node index with memory.
 */
int nb_first_touch_node(struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma,
	uint64_t addr, int cpu_node);
/* The same for a huge page: INTERLEAVE counts huge pages, so that neighbours are spread. */
int nb_first_touch_huge_node(struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma,
	uint64_t addr, int cpu_node);

/* The task was found on this CPU node, with so much run time in all. May scan (machine->arm). */
void nb_task_tick(
	struct nb_engine *e, struct nb_task *t, uint64_t runtime_ns, int cpu_node, uint64_t now_ns);

/* The node that the task belongs to, in rows that have homes; else `cpu_node`. */
int nb_task_home(const struct nb_task *t, int cpu_node);
/* The task has not run since it was looked at last: it needs no CPU at present. A machine that does
 * not say so is understood by the ticks that do not come. */
void nb_task_sleeps(struct nb_task *t);

/*
 * Programs with an engine each, on one machine: how many of the others' tasks belong to each node
 * and need a CPU, [nr_nodes]; to be told before ticks. And what is to be told of this one's.
 */
void nb_engine_others(struct nb_engine *e, const uint32_t *tasks);
uint32_t nb_engine_residents(const struct nb_engine *e, int node);

/*
 * True when the next nb_task_tick with this run time and time would do nothing, so that a machine
 * with many tasks may skip the call. Cheap.
 */
bool nb_task_tick_idle(const struct nb_task *t, uint64_t runtime_ns, uint64_t now_ns);

/*
 * The run time up to which that stays true whatever the time is, for a machine that would rather
 * not ask every task at every tick; 0 where it depends on more. It holds until the next
 * nb_task_tick of the task, and as long as the number does not change that nb_engine_cut_periods
 * points to, for as long as the engine lives: how many scan periods became shorter.
 */
uint64_t nb_task_quiet_ns(const struct nb_task *t);
const uint32_t *nb_engine_cut_periods(const struct nb_engine *e);

/* The task goes on on a CPU of another node, whoever moved it. A machine that does not know leaves
 * it out. */
void nb_task_moved(struct nb_engine *e, struct nb_task *t, int from, int to, uint64_t now_ns);

enum nb_fault_flags {
	NB_FAULT_WRITE = 1 << 0,
	NB_FAULT_HUGE = 1 << 1,	  /* addr is a huge page's, armed as one entry */
	NB_FAULT_SHARED = 1 << 2, /* other processes map the page too */
	NB_FAULT_KERNEL = 1 << 3, /* taken by the kernel on the program's behalf (get_user_pages) */
	NB_FAULT_LOOKUP = 1 << 4, /* must not disturb: nothing is counted, nothing moves */
	NB_FAULT_SPURIOUS = 1 << 5, /* another task repaired the entry meanwhile */
	NB_FAULT_BATCHED = 1 << 6, /* one of the pages of a PMD that was armed as one (pmd_batch) */
	NB_FAULT_DOUBT = 1 << 7,   /* the last ones were of another node: too little to move it */
	NB_FAULT_SURE = 1 << 8, /* those of the pages around say the same: it passes the filter */
	NB_FAULT_INFERRED = 1 << 9, /* nobody faulted: those of the pages around say so */
};

struct nb_fault {
	struct nb_task *task;
	struct nb_vma *vma;
	uint64_t addr;
	uint64_t now_ns;
	int16_t cpu_node;  /* where the toucher runs */
	int16_t page_node; /* where the page is */
	uint32_t flags;	   /* enum nb_fault_flags */
};

struct nb_verdict {
	int16_t node; /* where the page is to go, or NB_NO_NODE */
	uint8_t why;  /* enum nb_why */
};

/*
 * A hint fault. The entry is repaired by the machine whatever comes out. When a move is wanted
 * machine->move has been called before this returns (verdict.why == NB_WHY_MOVE). NB_WHY_SPLIT:
 * machine->split was called; the machine takes the faults of the parts again.
 */
struct nb_verdict nb_hint_fault(struct nb_engine *e, const struct nb_fault *f);

/* The outcome of an accepted move request: `moved` pages of it moved, the rest has this status. */
void nb_move_done(struct nb_engine *e, const struct nb_move_request *r, uint32_t moved,
	enum nb_move_status rest, uint64_t now_ns);

/* A huge page at addr was split (by whoever) / put together. Page state follows. */
void nb_huge_split(struct nb_engine *e, struct nb_mm *mm, uint64_t addr, uint64_t now_ns);
void nb_huge_collapsed(struct nb_engine *e, struct nb_mm *mm, uint64_t addr, uint64_t now_ns);

/* A node crossed its high watermark: low = true, it is nearly full. */
void nb_node_watermark(struct nb_engine *e, int node, bool low, uint64_t now_ns);

/* Counters the machine keeps itself (pgfault, thp_fault_alloc) are added here. */
struct nb_counters *nb_engine_counters_rw(struct nb_engine *e);

#endif
