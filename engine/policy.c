/* SPDX-License-Identifier: MIT */
#include "policy.h"
#include <errno.h>
#include "engine_private.h"

enum {
	WORDS = NB_MAX_NODES / 64,
};

static void add_node(struct nb_policy *p, int node)
{
	p->nodes[node / 64] |= UINT64_C(1) << (node % 64);
}

static bool has_nodes(const struct nb_policy *p)
{
	for (int w = 0; w < WORDS; w++)
		if (p->nodes[w] != 0)
			return true;
	return false;
}

/* BIND, PREFERRED and INTERLEAVE name nodes; the others are about whoever touches. */
static bool needs_nodes(int mode)
{
	return mode == NB_POLICY_BIND || mode == NB_POLICY_PREFERRED ||
	       mode == NB_POLICY_INTERLEAVE;
}

static void copy_nodes(const struct nb_engine *e, struct nb_policy *to,
	const struct nb_policy *from, bool with_memory)
{
	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		if (!nb_policy_allows(from, n))
			continue;
		if (with_memory && e->nodes[n].near == n)
			add_node(to, n);
		if (!with_memory)
			add_node(to, e->nodes[n].near);
	}
}

int nb_policy_compile(const struct nb_engine *e, struct nb_policy *to, const struct nb_policy *from)
{
	if (from->mode >= NB_NR_POLICY_MODES)
		return -EINVAL;
	*to = (struct nb_policy){.mode = from->mode, .migrate_on_fault = from->migrate_on_fault};
	if (!needs_nodes(from->mode))
		return 0;
	copy_nodes(e, to, from, true);
	if (!has_nodes(to))
		copy_nodes(e, to, from, false);
	return has_nodes(to) ? 0 : -EINVAL;
}

/* NULL where this policy only says "as the level below". */
static const struct nb_policy *meaningful(const struct nb_engine *e, const struct nb_policy *p)
{
	if (p->mode == NB_POLICY_DEFAULT)
		return NULL;
	if (p->mode == NB_POLICY_LOCAL && !nb_has(&e->config, NB_MECH_MPOL_LOCAL))
		return NULL;
	return p;
}

const struct nb_policy *nb_policy_in_force(
	const struct nb_engine *e, const struct nb_task *t, const struct nb_vma *vma)
{
	const struct nb_policy *p = NULL;

	if (vma != NULL && vma->policy != NULL)
		p = meaningful(e, &vma->policy->policy);
	return p != NULL || t == NULL ? p : meaningful(e, &t->policy);
}

static unsigned int count_nodes(const struct nb_policy *p)
{
	unsigned int nr = 0;

	for (int w = 0; w < WORDS; w++)
		nr += (unsigned int)__builtin_popcountll(p->nodes[w]);
	return nr;
}

/* The n-th node of the policy, counted from 0; n is below their number. */
static int nth_node(const struct nb_policy *p, unsigned int n)
{
	int w = 0;
	uint64_t bits;

	while (n >= (unsigned int)__builtin_popcountll(p->nodes[w]))
		n -= (unsigned int)__builtin_popcountll(p->nodes[w++]);
	for (bits = p->nodes[w]; n > 0; n--)
		bits &= bits - 1;
	return w * 64 + __builtin_ctzll(bits);
}

/* Which page of the VMA, as it was mapped: parts of it that are left after an unmap keep their
 * numbers. */
static uint64_t interleave_index(const struct nb_vma *vma, uint64_t addr, bool huge)
{
	const uint64_t base = vma != NULL ? vma->base : 0;
	const int shift = huge ? NB_HUGE_SHIFT : NB_PAGE_SHIFT;

	return (addr >> shift) - (base >> shift);
}

static int interleave_node(
	const struct nb_policy *p, const struct nb_vma *vma, uint64_t addr, bool huge)
{
	return nth_node(p, (unsigned int)(interleave_index(vma, addr, huge) % count_nodes(p)));
}

static int nearest_allowed(const struct nb_engine *e, const struct nb_policy *p, int cpu_node)
{
	int best = NB_NO_NODE;

	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		if (!nb_policy_allows(p, n))
			continue;
		if (best < 0 ||
			nb_distance(&e->topo, (unsigned int)cpu_node, (unsigned int)n) <
				nb_distance(&e->topo, (unsigned int)cpu_node, (unsigned int)best))
			best = n;
	}
	return best;
}

int nb_policy_node(const struct nb_engine *e, const struct nb_policy *p, const struct nb_vma *vma,
	uint64_t addr, bool huge, int cpu_node)
{
	switch (p != NULL ? p->mode : NB_POLICY_LOCAL) {
	case NB_POLICY_PREFERRED:
		return nth_node(p, 0);
	case NB_POLICY_BIND:
		return nearest_allowed(e, p, cpu_node);
	case NB_POLICY_INTERLEAVE:
		return interleave_node(p, vma, addr, huge);
	default:
		return cpu_node;
	}
}

struct nb_vma_policy *nb_vma_policy_get(struct nb_vma_policy *p)
{
	if (p != NULL)
		p->users++;
	return p;
}

void nb_vma_policy_put(struct nb_engine *e, struct nb_vma_policy *p)
{
	if (p != NULL && --p->users == 0)
		nb_free(e, p, sizeof(*p));
}
