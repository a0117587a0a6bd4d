/* SPDX-License-Identifier: MIT */
/*
 * policy: memory policies, as the field has them (set_mempolicy(2), mbind(2)), and the node each
 * one asks for.
 *
 * Which policy is in force: the VMA's, else the task's, else the system's default (NULL here): the
 * toucher's node, and with migrate_on_reference hint faults move pages there.
 */
#ifndef NB_ENGINE_POLICY_H
#define NB_ENGINE_POLICY_H

#include "machine.h"

/* A VMA's policy; shared by the VMAs that one call gave it to. */
struct nb_vma_policy {
	uint32_t users;
	struct nb_policy policy;
};

/*
 * Copy `from` with the nodes that exist, have memory and may be used; where none of the given nodes
 * has memory, the nearest that has stands in for each. 0; -EINVAL: an unknown mode, or no node
 * where one is needed.
 */
int nb_policy_compile(
	const struct nb_engine *e, struct nb_policy *to, const struct nb_policy *from);

/* The policy in force, or NULL for the system's default. `vma` may be NULL. */
const struct nb_policy *nb_policy_in_force(
	const struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma);

/* Whether the policy (not NULL) allows this node: for BIND, and for PREFERRED's only node. */
static inline bool nb_policy_allows(const struct nb_policy *p, int node)
{
	return (p->nodes[node / 64] >> (node % 64)) & 1;
}

/* Where this address belongs, for a toucher on cpu_node. The node may lack memory. `p` may be NULL.
 */
int nb_policy_node(const struct nb_engine *e, const struct nb_policy *p, const struct nb_vma *vma,
	uint64_t addr, bool huge, int cpu_node);

/* References of VMAs; the last one frees. NULL is allowed. */
struct nb_vma_policy *nb_vma_policy_get(struct nb_vma_policy *p);
void nb_vma_policy_put(struct nb_engine *e, struct nb_vma_policy *p);

#endif
