/* SPDX-License-Identifier: MIT */
/*
 * placement: is this page where it should be? (mpol_misplaced of the series, with the two-stage
 * filter.)
 */
#ifndef NB_ENGINE_PLACEMENT_H
#define NB_ENGINE_PLACEMENT_H

#include "machine.h"
#include "pool.h"

/*
 * Where the page of the fault should go: why == NB_WHY_MOVE and a node with memory, else why not
 * and NB_NO_NODE. Remembers the toucher; *last: who was remembered before, where the default policy
 * is in force, else NB_HISTORY_NONE. f->vma is not NULL, f's nodes exist.
 */
struct nb_verdict nb_misplaced(struct nb_engine *e, const struct nb_fault *f, nb_history *last);

#endif
