/* SPDX-License-Identifier: MIT */
/*
 * thp: what becomes of huge pages when anonymous memory is backed by a memfd: the kernel has one
 * setting for the first, and another one, mostly "never", for the second.
 */
#ifndef NB_LIVE_THP_H
#define NB_LIVE_THP_H

#include <stdbool.h>

enum nb_thp_loss {
	NB_THP_KEPT,	     /* nothing is lost, or there was nothing to lose */
	NB_THP_LOST_ADVISED, /* memory with MADV_HUGEPAGE loses them */
	NB_THP_LOST_ALL,     /* all memory does */
};

struct nb_thp {
	char enabled[16], shmem[16]; /* as chosen in the kernel's files; "" = not known */
	enum nb_thp_loss loss;
};

/*
 * Compare both settings, found in `dir` (/sys/kernel/mm/transparent_hugepage). Where one can't be
 * read nothing counts as lost. Settled memory gets its huge pages back in any case where
 * MADV_COLLAPSE is there.
 */
void nb_thp_read(const char *dir, struct nb_thp *t);

#endif
