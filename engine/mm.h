/* SPDX-License-Identifier: MIT */
/*
 * mm: address spaces and their VMAs. The calls of machine.h about them live in mm.c; here is what
 * other rooms may look at.
 *
 * VMAs are kept as a sorted array of pointers, so that a pointer stays good while its VMA lives,
 * and finding one is a binary search. A VMA is owned by its address space, its page state and its
 * share of the policy by it.
 */
#ifndef NB_ENGINE_MM_H
#define NB_ENGINE_MM_H

#include "machine.h"
#include "page.h"
#include "vmascan.h"

struct nb_vma_policy;

enum {
	NB_FIRST_NODE_INIT = -1,   /* no task has scanned yet */
	NB_FIRST_NODE_ACTIVE = -2, /* a second node is in use */
};

struct nb_vma {
	struct nb_mm *mm;
	uint64_t start, end;   /* bytes */
	uint64_t base;	       /* where it began when it was mapped: INTERLEAVE counts from there */
	struct nb_pages pages; /* of [start, end) */
	struct nb_vma_policy *policy; /* NULL = none of its own */
	uint32_t flags;		      /* enum nb_vma_flags */
	struct nb_vma_scan scan;      /* as it was split off, a VMA is new to scans */
};

struct nb_mm {
	struct nb_engine *engine;
	uint32_t id;
	uint32_t nr_tasks;
	struct nb_vma **vmas; /* [nr_vmas], ascending, not overlapping */
	uint32_t nr_vmas, max_vmas;
	uint32_t scan_seq;	/* passes through the address space */
	uint64_t scan_offset;	/* where the next window begins */
	uint64_t next_scan_j;	/* jiffies: no scan before */
	uint64_t next_reset_j;	/* jiffies: after this, the scan period starts afresh */
	uint64_t next_hurry_ns; /* new VMAs set no scan period back before */
	uint32_t maps;		/* VMAs mapped so far */
	uint32_t maps_hurried; /* of them, when scan periods were last set back, or not yet grown */
	uint32_t hurries;      /* how often they were */
	int16_t first_node;    /* the node its tasks ran on at first, or one of the above */
	bool told_disabled;    /* a DISABLED skip was traced since balancing went off */
};

/* Index of the first VMA that ends after addr; nr_vmas when there is none. */
uint32_t nb_mm_index(const struct nb_mm *mm, uint64_t addr);

/* The address space with this id, or NULL. */
struct nb_mm *nb_mm_by_id(const struct nb_engine *e, uint32_t id);

const char *nb_mm_check(const struct nb_mm *mm);

#endif
