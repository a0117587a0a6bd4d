/* SPDX-License-Identifier: MIT */
/*
 * model: a machine to simulate: a topology and what memory, links, CPUs and kernel work cost on it.
 *
 * Everything here is a property of the machine, never of a system or a job. A machine comes from a
 * topology source (topo/) plus an INI file for what that source lacks; every parameter has a
 * default in SIM_PARAMS, with its source.
 */
#ifndef NB_SIM_MODEL_H
#define NB_SIM_MODEL_H

#include <stdint.h>
#include "../engine/topology.h"

/* X(field, "section", "key", unit, default, min, max, where the default is from) — scalars of the
 * machine file */
#define SIM_PARAMS(X)                                                                              \
	X(hz, "machine", "hz", "1/s", 250, 10, 10000, "CONFIG_HZ of distribution kernels")         \
	X(stack, "machine", "stack_mib", "MiB", 0, 0, 255,                                         \
		"size of a thread's stack; 0 = neither stacks nor libraries are modelled; 8 is "   \
		"what ulimit -s says on most systems")                                             \
	X(mem_bandwidth, "memory", "bandwidth_mib_s", "MiB/s", 20000, 1, 1e9,                      \
		"one node's memory, written sequentially by many CPUs; two channels of DDR4-2400 " \
		"less a third")                                                                    \
	X(local_latency, "memory", "latency_ns", "ns", 90, 1, 1e6,                                 \
		"idle load-to-use latency of local DRAM on two-socket servers")                    \
	X(link_bandwidth, "memory", "link_bandwidth_mib_s", "MiB/s", 0, 0, 1e9,                    \
		"one direction between any two nodes; 0 = as much as the slower node has")         \
	X(latency_rise, "memory", "latency_rise", "ratio", 1.0, 0, 100,                            \
		"by how much of itself the round trip of a pointer chase is longer on a fully "    \
		"used node, as the square of its use; loaded-latency curves double near "          \
		"saturation")                                                                      \
	X(lines_in_flight, "cpu", "lines_in_flight", "lines", 10, 0.1, 1000,                       \
		"cache lines one CPU keeps outstanding: line fill buffers of x86 cores since "     \
		"Nehalem")                                                                         \
	X(llc_bytes, "cpu", "llc_mib", "MiB", 16, 0, 1e6, "last-level cache per node")             \
	X(follower_gain, "cpu", "follower_gain", "ratio", 0.3, 0, 100,                             \
		"how much faster than from a busy memory a line comes that another CPU wrote "     \
		"just before, at the reach of a cache; numa01 of the 2012 tables")                 \
	X(llc_sharing, "cpu", "llc_sharing", "ratio", 0, 0, 1,                                     \
		"share of a line's traffic saved when a CPU of the same node wrote it just "       \
		"before; 0 where coherence goes through the home node")                            \
	X(llc_transfer, "cpu", "llc_transfer_mib_s", "MiB/s", 0, 0, 1e9,                           \
		"what llc_sharing saves comes at this rate: one CPU taking over lines that "       \
		"another wrote; 0 = clear_mib_s")                                                  \
	X(llc_retention, "cpu", "llc_retention", "ratio", 0, 0, 1,                                 \
		"share of the last-level cache in which threads that sweep their own slices over " \
		"and over find them again; 0 = replaced in order of use, so that a sweep larger "  \
		"than the cache finds nothing")                                                    \
	X(threads_per_core, "cpu", "threads_per_core", "threads", 1, 1, 8, "SMT")                  \
	X(smt_speedup, "cpu", "smt_speedup", "ratio", 1.25, 1, 8,                                  \
		"what a core does with all its threads busy, against one")                         \
	X(page_fault, "costs", "page_fault_ns", "ns", 1000, 0, 1e9,                                \
		"minor fault without clearing, lmbench lat_pagefault")                             \
	X(hint_fault, "costs", "hint_fault_ns", "ns", 1500, 0, 1e9,                                \
		"a minor fault and the accounting, no move")                                       \
	X(pte_update, "costs", "pte_update_ns", "ns", 15, 0, 1e9, "change_protection per PTE")     \
	X(scan_page, "costs", "scan_page_ns", "ns", 5, 0, 1e9,                                     \
		"looking at a PTE that is left as it is")                                          \
	X(isolate_page, "costs", "isolate_page_ns", "ns", 800, 0, 1e9,                             \
		"isolate, unmap and put back around a copy, per page")                             \
	X(move_fixed, "costs", "move_fixed_ns", "ns", 2000, 0, 1e9,                                \
		"once per move, whatever its size")                                                \
	X(copy_rate, "costs", "copy_mib_s", "MiB/s", 2500, 1, 1e9,                                 \
		"one CPU copying between nodes")                                                   \
	X(clear_rate, "costs", "clear_mib_s", "MiB/s", 4000, 1, 1e9,                               \
		"one CPU clearing a new page")                                                     \
	X(tlb_flush_local, "costs", "tlb_flush_local_ns", "ns", 200, 0, 1e9,                       \
		"flushing a range on this CPU")                                                    \
	X(tlb_flush_remote, "costs", "tlb_flush_remote_ns", "ns", 2000, 0, 1e9,                    \
		"one IPI round for a flush elsewhere, per CPU that runs the mm")                   \
	X(timer_tick, "costs", "tick_ns", "ns", 2500, 0, 1e6,                                      \
		"timer interrupt and what it wakes, per tick; the system time of jobs that only "  \
		"compute in the 2012 tables")                                                      \
	X(context_switch, "costs", "context_switch_ns", "ns", 2000, 0, 1e9,                        \
		"lmbench lat_ctx with caches cold")                                                \
	X(task_migrate, "costs", "task_migrate_ns", "ns", 20000, 0, 1e9,                           \
		"caches refilled after a move to another CPU")                                     \
	X(thread_start, "costs", "thread_start_ns", "ns", 25000, 0, 1e9,                           \
		"pthread_create, one after the other")                                             \
	X(process_start, "costs", "process_start_ns", "ns", 500000, 0, 1e9,                        \
		"fork and exec, lmbench lat_proc exec")                                            \
	X(timeslice, "scheduler", "timeslice_ms", "ms", 12, 1, 10000,                              \
		"CFS with several runnable tasks")                                                 \
	X(balance_interval, "scheduler", "balance_interval_ms", "ms", 64, 1, 10000,                \
		"periodic balancing between nodes")                                                \
	X(imbalance_pct, "scheduler", "imbalance_pct", "percent", 125, 100, 1000,                  \
		"sched_domain of NUMA level")                                                      \
	X(wander, "scheduler", "wander_per_min", "1/min", 0.2, 0, 1e6,                             \
		"how often a running task is pushed to another CPU by what else runs (daemons, "   \
		"IRQ threads)")                                                                    \
	X(steal_rate, "scheduler", "steal_per_s", "1/s", 1, 0, 1e5,                                \
		"how often a CPU is taken from a running task for a moment by interrupts, kernel " \
		"threads and daemons")                                                             \
	X(steal_time, "scheduler", "steal_ms", "ms", 2, 0, 1e4, "for how long, on average")        \
	X(watermark_high, "memory", "watermark_high_ratio", "ratio", 0.01, 0, 0.9,                 \
		"share of a node that stays free: high watermark")                                 \
	X(reserved, "memory", "reserved_ratio", "ratio", 0.02, 0, 0.9,                             \
		"share of a node that the kernel and the rest hold")

enum { SIM_MAX_ROUTE = 4, SIM_NAME = 64, SIM_TEXT = 512 };

struct sim_link {
	char name[SIM_NAME];
	double bandwidth; /* bytes/s, one direction */
};

/* The links that traffic from a CPU of node i to memory of node j uses; links are directed. */
struct sim_route {
	uint8_t nr;
	uint16_t link[SIM_MAX_ROUTE];
};

struct sim_model {
	char name[SIM_NAME];
	char description[SIM_TEXT];
	char source[SIM_TEXT]; /* where topology and parameters are from */
	struct nb_topology topo;
	/* scalars in base units: MiB -> bytes, MiB/s -> bytes/s, ms -> ns, 1/min -> 1/s; the others
	 * as in the file */
#define X(field, section, key, unit, def, min, max, text) double field;
	SIM_PARAMS(X)
#undef X
	double *node_bandwidth; /* [nr_nodes] bytes/s */
	double *latency_ns;	/* [nr_nodes * nr_nodes], from (CPU) * nr_nodes + to (memory), idle;
				   finite, > 0 */
	unsigned int nr_links;
	struct sim_link *links;	 /* [nr_links] */
	struct sim_route *route; /* [nr_nodes * nr_nodes] */
	/*
	 * [topo.cpu_ids] core number, -1 = CPU not usable. Of a node's c = CPUs / threads_per_core
	 * cores, the first is its 1st, (c + 1)-th, (2c + 1)-th ... CPU: siblings are as far apart
	 * as Linux numbers them.
	 */
	int32_t *cpu_core;
};

/* The table, to be walked: one row per line of SIM_PARAMS. */
struct sim_param {
	const char *field, *section, *key, *unit;
	double def, min, max; /* in `unit` */
	const char *text;     /* what it is and where the default is from */
	size_t offset;	      /* of the double in struct sim_model */
};
extern const struct sim_param sim_params[];
extern const size_t sim_nr_params;
/* What a value in the row's unit is multiplied with to be in the base unit. */
double sim_param_factor(const struct sim_param *p);

/*
 * Load a machine: a preset name (looked up as share/machines/NAME.ini in the data directories), a
 * machine file
 * (*.ini), or anything topo/ understands (then every parameter has its default). `why` gets one
 * line (file:line: what, what was expected) on error. Returns 0 or -errno. *m is owned by the
 * caller: sim_model_free.
 */
int sim_model_load(struct sim_model *m, const char *source, char *why, size_t why_len);
/*
 * A machine file already in memory (`file` is used in messages and as its name). Reads no other
 * file, so its topology must be a one-line string.
 */
int sim_model_parse(struct sim_model *m, const char *file, const char *text, size_t len, char *why,
	size_t why_len);
void sim_model_free(struct sim_model *m);
/* NULL when sound. */
const char *sim_model_check(const struct sim_model *m);

/* A preset, for `numabal machines` and `numabal jobs`. */
struct sim_listing {
	char name[SIM_NAME];
	char description[SIM_TEXT]; /* or what is wrong with the file */
	char *path;
};
/* Ascending by name; owned by the caller: sim_listing_free. 0 or -ENOMEM. */
int sim_list_machines(struct sim_listing **list, size_t *nr);
void sim_listing_free(struct sim_listing *list, size_t nr);

#endif
