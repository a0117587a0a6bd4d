/* SPDX-License-Identifier: MIT */
/*
 * call: the program's memory calls, with the meaning they have on anonymous memory. Each takes what
 * the system call takes and answers what it would: a value, or -errno. Where no managed memory is
 * concerned, the system call is made as it is.
 *
 * Any thread, any time; nothing is allocated, and no lock is held that malloc could want.
 */
#ifndef NB_LIVE_CALL_H
#define NB_LIVE_CALL_H

#include "guest.h"

/* mmap's arguments. */
struct nb_mmap {
	uint64_t addr, bytes;
	int prot, flags, fd;
	int64_t offset;
};

long nb_call_mmap(struct nb_guest *g, const struct nb_mmap *m);
long nb_call_munmap(struct nb_guest *g, uint64_t addr, uint64_t bytes);
long nb_call_mprotect(struct nb_guest *g, uint64_t addr, uint64_t bytes, int prot);
long nb_call_madvise(struct nb_guest *g, uint64_t addr, uint64_t bytes, int advice);
long nb_call_mremap(struct nb_guest *g, uint64_t old, uint64_t old_bytes, uint64_t bytes, int flags,
	uint64_t to);
long nb_call_mbind(struct nb_guest *g, uint64_t addr, uint64_t bytes, int mode,
	const unsigned long *nodes, unsigned long max_node, unsigned int flags);
long nb_call_set_mempolicy(
	struct nb_guest *g, int mode, const unsigned long *nodes, unsigned long max_node);

/* The range is not managed any more: table and counters follow. The regions' lock is held. */
void nb_call_forget(struct nb_guest *g, uint64_t start, uint64_t end);

/* Make what is managed in the range ordinary memory before a call that needs it so. 0 or -errno. */
int nb_call_eject(struct nb_guest *g, uint64_t addr, uint64_t bytes);
/*
 * All managed memory becomes private, and both helpers end; for_good: nothing will be managed any
 * more, else the next large mapping starts them anew. note: enum nb_note, or -1.
 */
void nb_call_stop(struct nb_guest *g, int note, bool for_good);

/* The program enters a sandbox: stop for good, and make no system calls for ourselves any more. */
void nb_call_sandbox(struct nb_guest *g);

#endif
