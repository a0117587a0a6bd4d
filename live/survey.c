/* SPDX-License-Identifier: MIT */
/* survey: where memory is, for those who watch; see session.h. A page of each block is asked for,
 * of every n-th block where there are many. */
#include <string.h>
#include "agent.h"

enum {
	SURVEY_MS = 1000,
	MOST_BLOCKS = 4096, /* in one survey: two or three milliseconds of the agent's time */
	BREATH = 64,	    /* blocks between looks for faults */
};

struct surveyor {
	struct nb_agent *agent;
	struct nb_survey *to;
	uint64_t *node_bytes;
	uint32_t *count;       /* [nr_nodes] blocks of the region at hand */
	uint64_t stride, skip; /* blocks until the next one that is asked for */
	uint64_t asked;
};

static uint64_t blocks_of(const struct nb_span *s)
{
	return (s->end - s->start + NB_HUGE_MASK) >> NB_HUGE_SHIFT;
}

/* The table as it is now. False: somebody has the lock, another time will do. */
static bool copy_regions(struct nb_agent *a, struct nb_span *spans, uint32_t *n)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	uint32_t nr;

	if (!nb_lock_try(&t->lock, &signals))
		return false;
	for (nr = 0; nr < t->nr && nr < NB_MAX_SEEN; nr++)
		spans[nr] = (struct nb_span){t->region[nr].start, t->region[nr].end};
	nb_unlock(&t->lock, &signals);
	*n = nr;
	return true;
}

/* A page at random: the one that stands for the block may be armed. */
static int node_of_block(struct nb_agent *a, const struct nb_span *s, uint64_t block)
{
	const uint64_t start = s->start + (block << NB_HUGE_SHIFT);
	const uint64_t end = s->end - start < NB_HUGE_SIZE ? s->end : start + NB_HUGE_SIZE;
	const uint64_t pages = (end - start) >> NB_PAGE_SHIFT;

	return nb_page_node(a, start + (nb_agent_random(a) % pages << NB_PAGE_SHIFT));
}

/* Count where the region's blocks are; returns how many were asked for. */
static uint32_t ask(struct surveyor *v, const struct nb_span *s)
{
	const uint64_t blocks = blocks_of(s);
	uint32_t asked = 0;
	uint64_t at = v->skip;

	memset(v->count, 0, v->agent->topo.nr_nodes * sizeof(v->count[0]));
	for (; at < blocks; at += v->stride) {
		const int node = node_of_block(v->agent, s, at);

		if (node >= 0)
			v->count[node]++;
		asked++;
		if (++v->asked % BREATH == 0)
			nb_faults_resolve(v->agent);
	}
	v->skip = at - blocks;
	return asked;
}

/* The n-th node by count, or -1. */
static int take_largest(struct surveyor *v)
{
	int best = -1;

	for (unsigned int n = 0; n < v->agent->topo.nr_nodes; n++)
		if (v->count[n] > 0 && (best < 0 || v->count[n] > v->count[best]))
			best = (int)n;
	return best;
}

static void note_nodes(struct surveyor *v, struct nb_survey_region *r, uint32_t asked)
{
	for (int i = 0; i < NB_SURVEY_NODES; i++) {
		const int node = take_largest(v);

		r->node[i] = (int16_t)(node < 0 ? NB_NO_NODE : node);
		r->permille[i] = 0;
		if (node < 0)
			continue;
		r->permille[i] = (uint16_t)(((uint64_t)v->count[node] * 1000 + asked / 2) / asked);
		v->count[node] = 0;
	}
}

/* By size, the largest first; the smallest falls out. */
static void insert(struct nb_survey *to, const struct nb_survey_region *r)
{
	uint32_t at = to->nr_regions;

	while (at > 0 && to->region[at - 1].bytes < r->bytes)
		at--;
	if (at == NB_SURVEY_REGIONS)
		return;
	if (to->nr_regions < NB_SURVEY_REGIONS)
		to->nr_regions++;
	memmove(&to->region[at + 1], &to->region[at],
		(to->nr_regions - 1 - at) * sizeof(to->region[0]));
	to->region[at] = *r;
}

static void take_region(struct surveyor *v, const struct nb_span *s)
{
	struct nb_survey_region r = {.start = s->start, .bytes = s->end - s->start};
	const uint32_t asked = ask(v, s);
	uint64_t known = 0;

	for (unsigned int n = 0; asked > 0 && n < v->agent->topo.nr_nodes; n++) {
		const uint64_t bytes = r.bytes / asked * v->count[n];

		v->node_bytes[n] += bytes;
		known += bytes;
	}
	v->to->unknown += r.bytes - known;
	note_nodes(v, &r, asked);
	insert(v->to, &r);
}

static void take_all(struct surveyor *v, const struct nb_span *spans, uint32_t nr)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < nr; i++)
		blocks += blocks_of(&spans[i]);
	v->stride = blocks / MOST_BLOCKS + 1;
	v->skip = nb_agent_random(v->agent) % v->stride;
	atomic_fetch_add(&v->to->version, 1);
	memset(v->node_bytes, 0, v->agent->topo.nr_nodes * sizeof(v->node_bytes[0]));
	v->to->nr_regions = 0;
	v->to->unknown = 0;
	for (uint32_t i = 0; i < nr; i++)
		take_region(v, &spans[i]);
	atomic_fetch_add(&v->to->version, 1);
}

static bool is_due(struct nb_agent *a, uint64_t now)
{
	if (now < a->next_survey_ns || atomic_load(&a->guest->session->watched_ns) < now)
		return false;
	a->next_survey_ns = now + SURVEY_MS * UINT64_C(1000000);
	return !atomic_load(&a->guest->revoked);
}

void nb_survey(struct nb_agent *a)
{
	struct nb_slot *slot = atomic_load(&a->guest->slot);
	const size_t bytes = a->topo.nr_nodes * sizeof(uint32_t);
	struct surveyor v = {.agent = a};
	uint32_t nr;

	if (slot == NULL || !is_due(a, nb_os_now_ns()))
		return;
	v.to = &slot->survey;
	v.node_bytes = nb_session_node_bytes(a->guest->session, slot);
	v.count = nb_heap_alloc(&a->heap, bytes);
	if (v.count != NULL && copy_regions(a, a->wanted, &nr))
		take_all(&v, a->wanted, nr);
	nb_heap_free(&a->heap, v.count, bytes);
}
