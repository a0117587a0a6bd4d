/* SPDX-License-Identifier: MIT */
/*
 * judge: what a touch says of its block, and of those around it. A sample is one page of a block at
 * one moment: it may be one that its owner hardly uses and others as often. So the owner of a block
 * that was met again and again is believed in, and neighbours, who mostly share one, have a say.
 *
 * What lies between two blocks that are wanted on one node is likely wanted there too. Each fault
 * tries that: would it have been foretold? While that is nearly always so for the memory of an
 * mmap, only every eighth block of it is asked at first and the rest is inferred; where it is not,
 * as in memory that all threads share, nothing is.
 *
 * The regions' lock is held in all of these, but for the last ones.
 */
#include "agent.h"

enum {
	INFERRED_TRUST = 2,
	VOTERS = 8,  /* blocks around one that have a vote */
	NEAREST = 2, /* of them, those that are doubted with it */
	MAJORITY = 2,
	BESIDE = 8,	 /* how far away a neighbour may be that says what is between */
	GUESSES = 32,	 /* remembered */
	FEW_GUESSES = 4, /* too few to say whether they are right */
	RIGHT = 7,	 /* of EIGHTHS */
	EIGHTHS = 8,
	SWEEP = 64,    /* blocks that are looked at in one go */
	NO_BLOCK = -2, /* the region ends */
};

static uint64_t address_beside(uint64_t block, int by)
{
	return block + (uint64_t)(int64_t)by * (uint64_t)NB_HUGE_SIZE;
}

static struct nb_block *block_beside(struct nb_agent *a, uint64_t block, int by)
{
	return nb_block_at(&a->guest->regions, address_beside(block, by));
}

/* The n-th neighbour, in turn on either side, or NULL. */
static struct nb_block *neighbour(struct nb_agent *a, uint64_t block, int n)
{
	return block_beside(a, block, n % 2 != 0 ? n / 2 + 1 : -(n / 2 + 1));
}

/* How many more of the blocks around were wanted there than elsewhere, when touched last. */
static int votes(struct nb_agent *a, uint64_t block, int node)
{
	int votes = 0;

	for (int i = 0; i < VOTERS; i++) {
		const struct nb_block *b = neighbour(a, block, i);

		if (b != NULL && b->wanted != NB_NO_NODE)
			votes += b->wanted == node ? 1 : -1;
	}
	return votes;
}

/* ---- trust ---- */

static void more_trust(struct nb_block *b, int by)
{
	const int trust = b->trust + by;

	b->trust = (uint8_t)(trust < 0 ? 0 : trust > NB_MOST_TRUST ? NB_MOST_TRUST : trust);
}

/* Found elsewhere than expected: whoever is near may be as well, and is asked more often. */
static void doubt_neighbours(struct nb_agent *a, uint64_t block)
{
	for (int i = 0; i < NEAREST; i++) {
		struct nb_block *b = neighbour(a, block, i);

		if (b != NULL)
			more_trust(b, -1);
	}
}

/* ---- foretelling ---- */

/* The nearest block on either side of which it is known where it is wanted. */
struct sides {
	int left, right; /* nodes; NB_NO_NODE: none near, NO_BLOCK: the region ends before */
	int to_left, to_right;
};

static int wanted_beside(struct nb_agent *a, uint64_t block, int side, int *far)
{
	for (*far = 1; *far <= BESIDE; ++*far) {
		const struct nb_block *b = block_beside(a, block, side * *far);

		if (b == NULL)
			return NO_BLOCK;
		if (b->wanted != NB_NO_NODE)
			return b->wanted;
	}
	return NB_NO_NODE;
}

static struct sides sides_of(struct nb_agent *a, uint64_t block)
{
	struct sides s;

	s.left = wanted_beside(a, block, -1, &s.to_left);
	s.right = wanted_beside(a, block, 1, &s.to_right);
	return s;
}

/* Where a block is likely wanted, by what is on either side of it. */
static int foretold_by(const struct sides *s)
{
	if (s->left == s->right || s->right == NO_BLOCK)
		return s->left == NO_BLOCK ? NB_NO_NODE : s->left;
	return s->left == NO_BLOCK ? s->right : NB_NO_NODE;
}

static int foretold(struct nb_agent *a, uint64_t block)
{
	const struct sides s = sides_of(a, block);

	return foretold_by(&s);
}

/* And nobody wants the next toucher to say. */
static bool is_unknown(const struct nb_block *b)
{
	return b->wanted == NB_NO_NODE && !b->waits;
}

static struct nb_backing *backing_at(struct nb_agent *a, const struct nb_region *r)
{
	return r != NULL ? &a->guest->regions.backing[r->backing] : NULL;
}

static struct nb_backing *backing_of(struct nb_agent *a, uint64_t block)
{
	return backing_at(a, nb_region_at(&a->guest->regions, block));
}

/* With a margin, so that it does not change its mind with each guess. */
static void weigh_guesses(struct nb_backing *k)
{
	const int right = k->right_guesses * EIGHTHS;

	if (k->guesses >= FEW_GUESSES && right >= k->guesses * RIGHT)
		k->proven = true;
	else if (right < k->guesses * (RIGHT - 1))
		k->proven = false;
}

static void try_guess(struct nb_agent *a, uint64_t block, int home)
{
	const struct nb_region *r = nb_region_at(&a->guest->regions, block);
	struct nb_backing *k = backing_at(a, r);
	const int guess = foretold(a, block);
	bool was_proven;

	if (k == NULL || guess == NB_NO_NODE)
		return;
	was_proven = k->proven;
	if (k->guesses == GUESSES) {
		k->guesses /= 2;
		k->right_guesses /= 2;
	}
	k->guesses++;
	k->right_guesses = (uint8_t)(k->right_guesses + (guess == home));
	weigh_guesses(k);
	if (!was_proven && k->proven)
		nb_judge_again(a, r->start, r->end);
}

/* Where it is not known yet, and where two owners meet, blocks are asked one by one. */
bool nb_judge_may_infer(struct nb_agent *a, uint64_t block)
{
	const struct nb_backing *k = backing_of(a, block);
	const struct sides s = sides_of(a, block);

	if (k == NULL || (k->guesses >= FEW_GUESSES && !k->proven))
		return false;
	return foretold_by(&s) != NB_NO_NODE || (s.left < 0 && s.right < 0);
}

bool nb_judge_infers(struct nb_agent *a, uint64_t block)
{
	const struct nb_backing *k = backing_of(a, block);
	const struct nb_block *b = nb_block_at(&a->guest->regions, block);

	if (k == NULL || b == NULL || !k->proven || !is_unknown(b) ||
		foretold(a, block) == NB_NO_NODE)
		return false;
	nb_judge_again(a, block, block + NB_HUGE_SIZE);
	return true;
}

void nb_judge_again(struct nb_agent *a, uint64_t start, uint64_t end)
{
	const bool nothing = a->infer_at >= a->infer_end;

	a->infer_at = nothing || start < a->infer_at ? start : a->infer_at;
	a->infer_end = nothing || end > a->infer_end ? end : a->infer_end;
}

/* ---- a touch ---- */

/* The same owner as before: those around that have it too are believed with it. */
static void confirm(struct nb_agent *a, uint64_t block, struct nb_block *b, int home)
{
	const struct nb_backing *k = backing_of(a, block);

	more_trust(b, 1);
	if (!k->proven)
		return;
	for (int i = 0; i < VOTERS; i++) {
		struct nb_block *o = neighbour(a, block, i);

		if (o != NULL && o->wanted == home && o->trust < INFERRED_TRUST)
			more_trust(o, 1);
	}
}

/* Another one than before: is that enough to believe in a change of hands? */
static bool convinces(struct nb_agent *a, uint64_t block, struct nb_block *b, int around)
{
	const bool believed = b->wanted != NB_NO_NODE && b->trust > 0;

	if (believed) {
		more_trust(b, -1);
		doubt_neighbours(a, block);
	}
	return believed ? around >= MAJORITY : around >= 0;
}

static bool is_expected(struct nb_agent *a, uint64_t block, int home)
{
	const struct nb_backing *k = backing_of(a, block);

	return k != NULL && k->proven && foretold(a, block) == home;
}

/* Flags for the engine of a touch of a block by who belongs to `home`. */
static uint32_t judge(struct nb_agent *a, uint64_t block, struct nb_block *b, int node, int home)
{
	const bool local = node == nb_near_node(a, home);
	int around;

	b->node = (int16_t)node;
	b->away = !local;
	b->settled = local ? (uint8_t)(b->settled + (b->settled < UINT8_MAX)) : 0;
	/* Where only one thread runs nobody else could have touched it. */
	if (a->nr_running < 2)
		return 0;
	/* One that all use, between others, is asked often, and is one exception only. */
	if (!b->waits)
		try_guess(a, block, home);
	if (b->wanted == home) {
		confirm(a, block, b, home);
		/* Soon again: does it come? */
		if (!local)
			b->trust = 1;
		return NB_FAULT_SURE;
	}
	around = votes(a, block, home);
	if (!convinces(a, block, b, around)) {
		if (b->wanted == NB_NO_NODE || b->trust == 0)
			b->wanted = (int16_t)home;
		return NB_FAULT_DOUBT;
	}
	b->wanted = (int16_t)home;
	b->trust = is_expected(a, block, home) ? INFERRED_TRUST : 0;
	return around >= MAJORITY ? NB_FAULT_SURE : 0;
}

/* ---- and what it says of others ---- */

static bool is_open(const struct nb_block *b, int home)
{
	if (b->moving || b->armed > 0)
		return false;
	return is_unknown(b) || (b->wanted == home && b->waits);
}

static void believe(struct nb_block *b, int home)
{
	b->wanted = (int16_t)home;
	b->waits = false;
	more_trust(b, INFERRED_TRUST);
}

/* Two owners meet somewhere among the blocks that nothing is known of: the middle one is asked. */
static void look_between(struct nb_agent *a, uint64_t block, int side, int far)
{
	int first = far, unknown = 0;

	while (first > 1) {
		const struct nb_block *b = block_beside(a, block, side * (first - 1));

		if (b->wanted != NB_NO_NODE)
			break;
		if (b->armed > 0 || b->moving)
			return;
		first--;
		unknown++;
	}
	if (unknown > 0)
		nb_sample_again(a, address_beside(block, side * (first + unknown / 2)));
}

static uint32_t infer_side(
	struct nb_agent *a, uint64_t block, int home, int side, uint64_t *found, uint32_t n)
{
	for (int far = 1; far <= BESIDE && n < NB_MAX_INFERRED; far++) {
		const uint64_t at = address_beside(block, side * far);
		struct nb_block *b = nb_block_at(&a->guest->regions, at);

		if (b == NULL)
			break;
		if (b->wanted != NB_NO_NODE && b->wanted != home) {
			look_between(a, block, side, far);
			break;
		}
		if (!is_open(b, home) || foretold(a, at) != home)
			continue;
		believe(b, home);
		found[n++] = at;
	}
	return n;
}

/* In the middle of a gap between two owners, or beside the last one of which something is known
 * while nobody else is about to be asked. */
static bool is_asked_best(const struct nb_agent *a, const struct sides *s)
{
	if (s->left >= 0 && s->right >= 0)
		return s->to_left == s->to_right || s->to_left + 1 == s->to_right;
	return a->armer.nr == 0 &&
	       ((s->left >= 0 && s->to_left == 1) || (s->right >= 0 && s->to_right == 1));
}

static bool infer_block(struct nb_agent *a, uint64_t block, int *home)
{
	struct nb_block *b = nb_block_at(&a->guest->regions, block);
	struct sides s;

	if (b == NULL || b->moving || b->armed > 0 ||
		(b->wanted == NB_NO_NODE ? b->waits : b->trust >= INFERRED_TRUST))
		return false;
	s = sides_of(a, block);
	*home = foretold_by(&s);
	if (b->wanted != NB_NO_NODE) {
		b->trust = *home == b->wanted ? INFERRED_TRUST : b->trust;
		return false;
	}
	if (*home != NB_NO_NODE)
		believe(b, *home);
	else if (is_asked_best(a, &s))
		nb_sample_again(a, block);
	return *home != NB_NO_NODE;
}

/* ---- with the lock to be had ---- */

uint32_t nb_judge_touch(struct nb_agent *a, uint64_t block, int node, int home)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	struct nb_block *b;
	uint32_t flags;

	if (!nb_lock_try(&t->lock, &signals))
		return NB_FAULT_DOUBT;
	b = nb_block_at(t, block);
	flags = b != NULL ? judge(a, block, b, node, home) : 0;
	nb_unlock(&t->lock, &signals);
	return flags;
}

uint32_t nb_judge_others(
	struct nb_agent *a, uint64_t block, int home, bool waits, uint64_t found[NB_MAX_INFERRED])
{
	struct nb_regions *t = &a->guest->regions;
	const struct nb_backing *k;
	struct nb_signals signals;
	struct nb_block *b;
	uint32_t n = 0;

	if (!nb_lock_try(&t->lock, &signals))
		return 0;
	b = nb_block_at(t, block);
	k = backing_of(a, block);
	if (b != NULL)
		b->waits = waits;
	if (k != NULL && k->proven && a->nr_running > 1) {
		/* An exception to the rule: now, not when all of it is asked again. */
		if (waits)
			nb_sample_again(a, block);
		n = infer_side(a, block, home, -1, found, 0);
		n = infer_side(a, block, home, 1, found, n);
	}
	nb_unlock(&t->lock, &signals);
	return n;
}

uint32_t nb_judge_sweep(
	struct nb_agent *a, uint64_t found[NB_MAX_INFERRED], int home[NB_MAX_INFERRED])
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	uint32_t n = 0;
	int left = SWEEP;

	/* Who has it may keep it for long: what was to be looked at is given up, until the end of
	 * the next round. */
	if (!nb_lock_try(&t->lock, &signals)) {
		a->infer_at = a->infer_end;
		return 0;
	}
	for (uint32_t i = nb_regions_index(t, a->infer_at); i < t->nr; i++) {
		const struct nb_region *r = &t->region[i];
		const struct nb_span whole = nb_whole_blocks(r);
		const uint64_t end = whole.end < a->infer_end ? whole.end : a->infer_end;

		if (whole.start >= a->infer_end || left == 0 || n == NB_MAX_INFERRED)
			break;
		if (a->infer_at < whole.start)
			a->infer_at = whole.start;
		if (!t->backing[r->backing].proven)
			continue;
		for (; a->infer_at < end && n < NB_MAX_INFERRED && left > 0; left--) {
			n += infer_block(a, found[n] = a->infer_at, &home[n]);
			a->infer_at += NB_HUGE_SIZE;
		}
	}
	if (left > 0 && n < NB_MAX_INFERRED)
		a->infer_at = a->infer_end;
	nb_unlock(&t->lock, &signals);
	return n;
}

/* Where one of the nearest blocks was found of which something is known: not away from its owner.
 */
static bool found_at(struct nb_agent *a, uint64_t block, const struct sides *s, int node)
{
	const struct nb_block *l = block_beside(a, block, -s->to_left);
	const struct nb_block *r = block_beside(a, block, s->to_right);

	return (s->left >= 0 && l->node == node) || (s->right >= 0 && r->node == node);
}

bool nb_judge_guess(struct nb_agent *a, uint64_t block, int home, int node)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	struct nb_block *b;
	struct sides s;
	bool ok = false;

	if (!nb_lock_try(&t->lock, &signals))
		return false;
	b = nb_block_at(t, block);
	if (b != NULL && b->wanted == home) {
		s = sides_of(a, block);
		ok = node == nb_near_node(a, home) || found_at(a, block, &s, node);
		b->node = (int16_t)node;
		if (!ok) {
			nb_block_forget(b, true);
			nb_sample_again(a, block);
		}
	}
	nb_unlock(&t->lock, &signals);
	return ok;
}

void nb_judge_forget(struct nb_agent *a, uint64_t block)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;
	struct nb_block *b;

	if (!nb_lock_try(&t->lock, &signals))
		return;
	b = nb_block_at(t, block);
	if (b != NULL)
		nb_block_forget(b, false);
	nb_unlock(&t->lock, &signals);
}

static void leave_region(struct nb_agent *a, const struct nb_region *r, int home)
{
	const struct nb_span whole = nb_whole_blocks(r);

	for (uint64_t at = whole.start; at < whole.end; at += NB_HUGE_SIZE) {
		struct nb_block *b = nb_block_at(&a->guest->regions, at);

		if (b != NULL && b->wanted == home)
			nb_block_forget(b, false);
	}
}

bool nb_judge_left(struct nb_agent *a, int home)
{
	struct nb_regions *t = &a->guest->regions;
	struct nb_signals signals;

	if (!nb_lock_try(&t->lock, &signals))
		return false;
	for (uint32_t i = 0; i < t->nr; i++)
		leave_region(a, &t->region[i], home);
	nb_unlock(&t->lock, &signals);
	return true;
}
