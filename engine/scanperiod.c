/* SPDX-License-Identifier: MIT */
#include "scanperiod.h"
#include "engine_private.h"
#include "group.h"

enum {
	STRAGGLERS = 10, /* one fault in so many may be remote, and all count as in place */
	SLOTS = 10,	 /* parts that ratios and periods are reckoned in */
	RESTART = 3,	 /* of SLOTS: remote faults after which scanning starts afresh */
	THRESHOLD = 7,	 /* of SLOTS: above, scanning may slow down */
	MS_PER_SEC = 1000,
};

/* ---- bounds ---- */

static uint64_t rss(const struct nb_engine *e, const struct nb_mm *mm)
{
	uint64_t pages = 0;

	if (e->machine.rss != NULL)
		return e->machine.rss(e->machine.ctx, mm->id);
	for (uint32_t i = 0; i < mm->nr_vmas; i++)
		pages += (mm->vmas[i]->end - mm->vmas[i]->start) >> NB_PAGE_SHIFT;
	return pages;
}

/* How many scan windows the memory of the task fills, at least 1. */
static uint64_t windows(const struct nb_engine *e, const struct nb_task *t)
{
	const uint64_t window = e->rules.scan_pages;
	uint64_t pages;

	if (!nb_has(&e->config, NB_MECH_SCAN_RSS) || t->mm == NULL)
		return 1;
	pages = rss(e, t->mm);
	return pages > window ? (pages + window - 1) / window : 1;
}

static uint32_t floor_ms(const struct nb_engine *e)
{
	const int64_t size = nb_tune(&e->config, NB_TUNE_SCAN_SIZE_MB);
	const int64_t most = nb_tune(&e->config, NB_TUNE_MAX_SCAN_WINDOW_MB_S);

	return (uint32_t)(MS_PER_SEC / (size < most ? most / size : 1));
}

uint32_t nb_scan_min_ms(const struct nb_engine *e, const struct nb_task *t)
{
	const uint32_t scan = (uint32_t)(e->rules.period_min_ms / windows(e, t));
	const uint32_t floor = floor_ms(e);

	if (!nb_has(&e->config, NB_MECH_SCAN_RSS))
		return e->rules.period_min_ms;
	return scan > floor ? scan : floor;
}

/* Longer for many tasks that share much: each of them scans for all. */
static uint64_t scaled_by_group(const struct nb_engine *e, const struct nb_task *t, uint64_t period)
{
	const struct nb_group *g = t->group;
	uint64_t shared = 0, priv = 0;

	if (g == NULL || !nb_has(&e->config, NB_MECH_SCAN_GROUP))
		return period;
	for (int n = 0; n < (int)e->topo.nr_nodes; n++) {
		shared += g->faults[nb_stat_slot(e->topo.nr_nodes, NB_STAT_MEM, n, 0)];
		priv += g->faults[nb_stat_slot(e->topo.nr_nodes, NB_STAT_MEM, n, 1)];
	}
	return period * g->nr_tasks * (shared + 1) / (priv + shared + 1);
}

static uint32_t at_most(uint64_t ms)
{
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

uint32_t nb_scan_start_ms(const struct nb_engine *e, const struct nb_task *t)
{
	const uint32_t min = nb_scan_min_ms(e, t);
	const uint64_t period = scaled_by_group(e, t, min);

	return period > min ? at_most(period) : min;
}

uint32_t nb_scan_max_ms(const struct nb_engine *e, const struct nb_task *t)
{
	const uint32_t min = nb_scan_min_ms(e, t);
	const uint64_t max = e->rules.period_max_ms / windows(e, t);
	const uint64_t period = scaled_by_group(e, t, max);
	const uint64_t longest = period > max ? period : max;

	return longest > min ? at_most(longest) : min;
}

/* ---- adapting ---- */

/* By how many slots a ratio above the threshold lengthens the period: at least one. */
static int64_t slots_above(int64_t ratio)
{
	return ratio > THRESHOLD ? ratio - THRESHOLD : 1;
}

static int64_t ratio_of(uint64_t part, uint64_t rest)
{
	return part + rest > 0 ? (int64_t)(part * SLOTS / (part + rest)) : 0;
}

/* In slots; the private share decides first, then the local one. */
static int64_t change_by_shares(int64_t local, int64_t priv)
{
	if (priv >= THRESHOLD)
		return slots_above(priv);
	if (local >= THRESHOLD)
		return slots_above(local);
	return (local > priv ? local : priv) - THRESHOLD;
}

/* Slots x SLOTS: the local share decides; the fewer faults are private, the less is hurried. */
static int64_t change_by_local(int64_t local, uint64_t shared, uint64_t priv)
{
	const uint64_t all = priv + shared + 1;

	if (local >= THRESHOLD)
		return slots_above(local) * SLOTS;
	return (local - THRESHOLD) * (int64_t)((priv * SLOTS + all - 1) / all);
}

static uint32_t clamp_ms(int64_t ms, uint32_t min, uint32_t max)
{
	if (ms < min)
		return min;
	return ms > max ? max : (uint32_t)ms;
}

static void lengthen(struct nb_engine *e, struct nb_task *t, uint64_t by_ms, uint64_t now_ns)
{
	const uint64_t longer = t->scan_period_ms + by_ms;

	nb_task_set_period(
		e, t, longer < t->period_max_ms ? (uint32_t)longer : t->period_max_ms, now_ns);
}

/* Nothing of interest was found, or moves fail: look again later, all of the address space. */
static void slow_down(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	lengthen(e, t, t->scan_period_ms, now_ns);
	t->mm->next_scan_j =
		nb_jiffies(&e->rules, now_ns) + nb_msecs_to_jiffies(&e->rules, t->scan_period_ms);
}

static void forget_locality(struct nb_task *t)
{
	for (int i = 0; i < NB_NR_LOCALITIES; i++)
		t->locality[i] = 0;
}

static bool in_three_of_ten(uint64_t part, uint64_t all)
{
	return part > 0 && part * SLOTS >= all * RESTART;
}

/*
 * Afresh when much is far from home. Where that moves little, as with pages that many nodes use, it
 * is tried once, since a page may have to be met twice before it moves; then it is as if all were
 * in place.
 */
static bool starts_afresh(struct nb_task *t)
{
	const uint64_t *l = t->locality;
	const uint64_t all = l[NB_LOCAL] + l[NB_REMOTE];
	const uint64_t moved = l[NB_MOVED] > l[NB_FAILED] ? l[NB_MOVED] - l[NB_FAILED] : 0;
	const bool far = in_three_of_ten(l[NB_REMOTE], all);
	const bool tried = t->hurried_in_vain;

	t->hurried_in_vain = far && !in_three_of_ten(moved, all);
	return far && !(tried && t->hurried_in_vain);
}

/* All but one in 10: while more are far away, the next look should not wait twice as long. */
static bool in_place(const struct nb_task *t)
{
	const uint64_t remote = t->locality[NB_REMOTE];

	return t->hurried_in_vain || remote * STRAGGLERS <= t->locality[NB_LOCAL] + remote;
}

void nb_scan_afresh(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	const uint64_t now_j = nb_jiffies(&e->rules, now_ns);

	nb_task_set_period(e, t, nb_scan_min_ms(e, t), now_ns);
	if (t->mm->next_scan_j > now_j)
		t->mm->next_scan_j = now_j;
}

/* By what the faults of a sequence found, and nothing else. One task that finds memory far away is
 * enough to scan; many that do not must not keep it from that. */
static void double_or_restart(struct nb_engine *e, struct nb_task *t, uint64_t now_ns)
{
	if (starts_afresh(t))
		nb_scan_afresh(e, t, now_ns);
	else
		lengthen(e, t, in_place(t) ? t->scan_period_ms : t->scan_period_ms / 4, now_ns);
	forget_locality(t);
}

/* While it goes to where it belongs, or has not been there, what it found stays good. */
static bool stays_good(const struct nb_task *t, int from, int to)
{
	return t->scan_seq > 0 &&
	       (to == t->preferred || (t->preferred != NB_NO_NODE && from != t->preferred));
}

void nb_task_moved(struct nb_engine *e, struct nb_task *t, int from, int to, uint64_t now_ns)
{
	if (!nb_has(&e->config, NB_MECH_SCAN_MOVE_RESET) || t->mm == NULL || !t->faulted)
		return;
	if (!nb_node_exists(e, from) || !nb_node_exists(e, to) || from == to ||
		stays_good(t, from, to))
		return;
	nb_task_set_period(e, t, nb_scan_start_ms(e, t), now_ns);
}

void nb_scan_adapt(
	struct nb_engine *e, struct nb_task *t, uint64_t shared, uint64_t priv, uint64_t now_ns)
{
	const int64_t slot = ((int64_t)t->scan_period_ms + SLOTS - 1) / SLOTS;
	const int64_t local = ratio_of(t->locality[NB_LOCAL], t->locality[NB_REMOTE]);
	int64_t change;

	if (!nb_has(&e->config, NB_MECH_SCAN_ADAPT))
		return;
	if (nb_has(&e->config, NB_MECH_SCAN_DOUBLE)) {
		double_or_restart(e, t, now_ns);
		return;
	}
	if (t->locality[NB_LOCAL] + shared == 0 || t->locality[NB_FAILED] > 0) {
		slow_down(e, t, now_ns);
		forget_locality(t);
		return;
	}
	change = nb_has(&e->config, NB_MECH_SCAN_ADAPT_PRIVATE)
			 ? change_by_shares(local, ratio_of(priv, shared)) * slot
			 : change_by_local(local, shared, priv) * slot / SLOTS;
	nb_task_set_period(e, t,
		clamp_ms((int64_t)t->scan_period_ms + change, nb_scan_min_ms(e, t),
			nb_scan_max_ms(e, t)),
		now_ns);
	forget_locality(t);
}
