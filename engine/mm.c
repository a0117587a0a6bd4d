/* SPDX-License-Identifier: MIT */
#include "mm.h"
#include <errno.h>
#include <string.h>
#include "engine_private.h"

enum {
	FIRST_VMAS = 16,
};

static void trace_mm(
	struct nb_mm *mm, int type, uint64_t addr, uint64_t bytes, uint32_t arg, uint64_t now_ns)
{
	nb_trace(mm->engine, &(struct nb_event){.time_ns = now_ns,
				     .type = (uint8_t)type,
				     .mm = mm->id,
				     .node_from = NB_NO_NODE,
				     .node_to = NB_NO_NODE,
				     .addr = addr,
				     .pages = (uint32_t)(bytes >> NB_PAGE_SHIFT),
				     .arg = arg});
}

/* ---- address spaces ---- */

struct nb_mm *nb_mm_new(struct nb_engine *e, uint32_t id, uint64_t now_ns)
{
	struct nb_mm *mm = nb_alloc(e, sizeof(*mm));

	if (mm == NULL)
		return NULL;
	mm->engine = e;
	mm->id = id;
	mm->next_scan_j = mm->next_reset_j = nb_jiffies(&e->rules, now_ns);
	mm->first_node = NB_FIRST_NODE_INIT;
	if (nb_idmap_add(e, &e->mms, id, mm) != 0) {
		nb_free(e, mm, sizeof(*mm));
		return NULL;
	}
	trace_mm(mm, NB_EVENT_MM_NEW, 0, 0, 0, now_ns);
	return mm;
}

struct nb_mm *nb_mm_by_id(const struct nb_engine *e, uint32_t id)
{
	return nb_idmap_find(&e->mms, id);
}

static void free_vma(struct nb_engine *e, struct nb_vma *vma)
{
	nb_pages_free(e, &vma->pages);
	nb_vma_policy_put(e, vma->policy);
	nb_free(e, vma, sizeof(*vma));
}

/* Tasks should be gone before their address space; those that are not have none from now on. */
static void detach_tasks(struct nb_engine *e, struct nb_mm *mm)
{
	for (uint32_t i = 0; mm->nr_tasks > 0 && i < e->tasks.capacity; i++) {
		struct nb_task *t = e->tasks.slots[i].value;

		if (t == NULL || t->mm != mm)
			continue;
		t->mm = NULL;
		mm->nr_tasks--;
	}
}

void nb_mm_gone(struct nb_engine *e, struct nb_mm *mm, uint64_t now_ns)
{
	trace_mm(mm, NB_EVENT_MM_GONE, 0, 0, 0, now_ns);
	detach_tasks(e, mm);
	for (uint32_t i = 0; i < mm->nr_vmas; i++)
		free_vma(e, mm->vmas[i]);
	nb_free(e, mm->vmas, mm->max_vmas * sizeof(mm->vmas[0]));
	nb_idmap_remove(&e->mms, mm->id);
	nb_free(e, mm, sizeof(*mm));
}

/* ---- finding VMAs ---- */

uint32_t nb_mm_index(const struct nb_mm *mm, uint64_t addr)
{
	uint32_t lo = 0, hi = mm->nr_vmas;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (mm->vmas[mid]->end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct nb_vma *nb_vma_find(const struct nb_mm *mm, uint64_t addr)
{
	const uint32_t i = nb_mm_index(mm, addr);

	return i < mm->nr_vmas && mm->vmas[i]->start <= addr ? mm->vmas[i] : NULL;
}

static bool overlaps(const struct nb_mm *mm, uint64_t start, uint64_t end)
{
	const uint32_t i = nb_mm_index(mm, start);

	return i < mm->nr_vmas && mm->vmas[i]->start < end;
}

/* ---- adding and splitting ---- */

static int make_room(struct nb_engine *e, struct nb_mm *mm)
{
	const uint32_t max = mm->max_vmas ? mm->max_vmas * 2 : FIRST_VMAS;
	struct nb_vma **wider;

	if (mm->nr_vmas < mm->max_vmas)
		return 0;
	wider = nb_alloc(e, max * sizeof(wider[0]));
	if (wider == NULL)
		return -ENOMEM;
	if (mm->nr_vmas > 0)
		memcpy(wider, mm->vmas, mm->nr_vmas * sizeof(wider[0]));
	nb_free(e, mm->vmas, mm->max_vmas * sizeof(wider[0]));
	mm->vmas = wider;
	mm->max_vmas = max;
	return 0;
}

static void insert(struct nb_mm *mm, uint32_t i, struct nb_vma *vma)
{
	memmove(&mm->vmas[i + 1], &mm->vmas[i], (mm->nr_vmas - i) * sizeof(mm->vmas[0]));
	mm->vmas[i] = vma;
	mm->nr_vmas++;
}

static struct nb_vma *new_vma(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end)
{
	struct nb_vma *vma = make_room(e, mm) == 0 ? nb_alloc(e, sizeof(*vma)) : NULL;

	if (vma == NULL)
		return NULL;
	vma->mm = mm;
	vma->start = vma->base = start;
	vma->end = end;
	return vma;
}

struct nb_vma *nb_vma_map(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	unsigned int flags, uint64_t now_ns)
{
	struct nb_vma *vma;

	if (!nb_is_range(start, end) || overlaps(mm, start, end))
		return NULL;
	vma = new_vma(e, mm, start, end);
	if (vma == NULL)
		return NULL;
	vma->flags = flags;
	if (nb_pages_init(e, &vma->pages, start, end) != 0) {
		nb_free(e, vma, sizeof(*vma));
		return NULL;
	}
	nb_pool_refill(e, &e->pool);
	insert(mm, nb_mm_index(mm, start), vma);
	mm->maps++;
	trace_mm(mm, NB_EVENT_VMA_MAP, start, end - start, flags, now_ns);
	return vma;
}

/* Cut the VMA in two at `at`, which lies inside. 0, or -ENOMEM and nothing changed. */
static int split_vma(struct nb_engine *e, struct nb_vma *vma, uint64_t at)
{
	struct nb_mm *mm = vma->mm;
	struct nb_vma *tail = new_vma(e, mm, at, vma->end);

	if (tail == NULL)
		return -ENOMEM;
	if (nb_pages_split(e, &vma->pages, at, &tail->pages) != 0) {
		nb_free(e, tail, sizeof(*tail));
		return -ENOMEM;
	}
	tail->base = vma->base;
	tail->flags = vma->flags;
	tail->policy = nb_vma_policy_get(vma->policy);
	vma->end = at;
	insert(mm, nb_mm_index(mm, at), tail);
	return 0;
}

/* So that no VMA crosses `at`. */
static int split_at(struct nb_engine *e, struct nb_mm *mm, uint64_t at)
{
	struct nb_vma *vma = nb_vma_find(mm, at);

	return vma == NULL || vma->start == at ? 0 : split_vma(e, vma, at);
}

/* ---- unmapping ---- */

static void trim_vma(struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end)
{
	nb_pages_trim(e, &vma->pages, start, end);
	vma->start = start;
	vma->end = end;
}

/* A hole in the middle of one VMA. Without memory for two parts the second one is lost. */
static int punch(struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end)
{
	const int err = split_vma(e, vma, end);

	trim_vma(e, vma, vma->start, start);
	return err;
}

/* Take [start, end) out of a VMA that stays in part. */
static int cut(struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end)
{
	if (vma->start < start && vma->end > end)
		return punch(e, vma, start, end);
	if (vma->start < start)
		trim_vma(e, vma, vma->start, start);
	else
		trim_vma(e, vma, end, vma->end);
	return 0;
}

static bool inside(const struct nb_vma *vma, uint64_t start, uint64_t end)
{
	return vma->start >= start && vma->end <= end;
}

static void remove_vmas(struct nb_engine *e, struct nb_mm *mm, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last; i++)
		free_vma(e, mm->vmas[i]);
	memmove(&mm->vmas[first], &mm->vmas[last], (mm->nr_vmas - last) * sizeof(mm->vmas[0]));
	mm->nr_vmas -= last - first;
}

int nb_vma_unmap(
	struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end, uint64_t now_ns)
{
	uint32_t first, last;
	int err = 0;

	if (!nb_is_range(start, end))
		return -EINVAL;
	first = nb_mm_index(mm, start);
	if (first < mm->nr_vmas && mm->vmas[first]->start < start) {
		err = cut(e, mm->vmas[first], start, end);
		first++;
	}
	for (last = first; last < mm->nr_vmas && inside(mm->vmas[last], start, end);)
		last++;
	if (last < mm->nr_vmas && mm->vmas[last]->start < end)
		cut(e, mm->vmas[last], start, end);
	if (last > first)
		remove_vmas(e, mm, first, last);
	trace_mm(mm, NB_EVENT_VMA_UNMAP, start, end - start, 0, now_ns);
	return err;
}

/* ---- changing ---- */

int nb_vma_protect(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	unsigned int flags, uint64_t now_ns)
{
	(void)e;
	(void)now_ns;
	if (!nb_is_range(start, end))
		return -EINVAL;
	for (uint32_t i = nb_mm_index(mm, start); i < mm->nr_vmas && mm->vmas[i]->start < end; i++)
		if (inside(mm->vmas[i], start, end))
			mm->vmas[i]->flags = flags;
	return 0;
}

static void set_policy(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	struct nb_vma_policy *policy)
{
	for (uint32_t i = nb_mm_index(mm, start); i < mm->nr_vmas && mm->vmas[i]->start < end;
		i++) {
		nb_vma_policy_put(e, mm->vmas[i]->policy);
		mm->vmas[i]->policy = nb_vma_policy_get(policy);
	}
}

/* Arm it all, and mark it, so that the next touch moves a page whatever the filter thinks of it. */
static void lazy_vma(
	struct nb_engine *e, struct nb_vma *vma, uint64_t start, uint64_t end, uint64_t now_ns)
{
	uint64_t armed = 0;

	if (vma->flags & NB_VMA_UNMIGRATABLE)
		return;
	e->counters.numa_page_state_missed +=
		nb_pages_fill(e, &vma->pages, start, end, NB_HISTORY_LAZY);
	for (uint64_t pos = start; pos < end;) {
		struct nb_arm_result out;

		nb_arm(e, vma, pos, end, 0, NB_NO_NODE, &out);
		armed += out.updated;
		pos = out.end;
	}
	trace_mm(vma->mm, NB_EVENT_LAZY, start, armed << NB_PAGE_SHIFT, 0, now_ns);
}

static void lazy_range(
	struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end, uint64_t now_ns)
{
	for (uint32_t i = nb_mm_index(mm, start); i < mm->nr_vmas && mm->vmas[i]->start < end;
		i++) {
		struct nb_vma *vma = mm->vmas[i];

		lazy_vma(e, vma, vma->start > start ? vma->start : start,
			vma->end < end ? vma->end : end, now_ns);
	}
}

static int policy_supported(const struct nb_engine *e, const struct nb_policy *p, bool lazy)
{
	if (p->mode == NB_POLICY_NOOP && !lazy)
		return -EINVAL;
	if (p->mode == NB_POLICY_NOOP && !nb_has(&e->config, NB_MECH_MPOL_NOOP))
		return -EOPNOTSUPP;
	if (p->mode == NB_POLICY_LOCAL && !nb_has(&e->config, NB_MECH_MPOL_LOCAL))
		return -EOPNOTSUPP;
	if (lazy && !nb_has(&e->config, NB_MECH_MPOL_LAZY))
		return -EOPNOTSUPP;
	return 0;
}

/* NULL stands for "none of its own": DEFAULT takes a policy off. */
static int replace_policy(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	const struct nb_policy *policy)
{
	struct nb_vma_policy *shared = NULL;

	if (split_at(e, mm, start) != 0 || split_at(e, mm, end) != 0)
		return -ENOMEM;
	if (policy->mode != NB_POLICY_DEFAULT) {
		shared = nb_alloc(e, sizeof(*shared));
		if (shared == NULL)
			return -ENOMEM;
		*shared = (struct nb_vma_policy){.users = 1, .policy = *policy};
	}
	set_policy(e, mm, start, end, shared);
	nb_vma_policy_put(e, shared);
	return 0;
}

int nb_vma_policy(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end,
	const struct nb_policy *p, bool lazy, uint64_t now_ns)
{
	struct nb_policy compiled;
	int err = nb_is_range(start, end) ? nb_policy_compile(e, &compiled, p) : -EINVAL;

	if (err == 0)
		err = policy_supported(e, p, lazy);
	if (err != 0)
		return err;
	compiled.migrate_on_fault |= lazy;
	if (p->mode != NB_POLICY_NOOP)
		err = replace_policy(e, mm, start, end, &compiled);
	if (err != 0)
		return err;
	trace_mm(mm, NB_EVENT_POLICY, start, end - start, p->mode, now_ns);
	if (lazy)
		lazy_range(e, mm, start, end, now_ns);
	return 0;
}

/* ---- contents ---- */

void nb_pages_dropped(struct nb_engine *e, struct nb_mm *mm, uint64_t start, uint64_t end)
{
	if (!nb_is_range(start, end))
		return;
	for (uint32_t i = nb_mm_index(mm, start); i < mm->nr_vmas && mm->vmas[i]->start < end;
		i++) {
		struct nb_vma *vma = mm->vmas[i];

		e->counters.numa_page_state_missed +=
			nb_pages_fill(e, &vma->pages, vma->start > start ? vma->start : start,
				vma->end < end ? vma->end : end, NB_HISTORY_NONE);
	}
}

/* The huge page at addr has this history in each part from now on. Returns its VMA, or NULL. */
static struct nb_vma *huge_vma(struct nb_mm *mm, uint64_t *addr)
{
	struct nb_vma *vma = nb_vma_find(mm, *addr);

	*addr &= ~(uint64_t)(NB_HUGE_SIZE - 1);
	if (vma == NULL || *addr < vma->start || vma->end - *addr < NB_HUGE_SIZE)
		return NULL;
	return vma;
}

void nb_huge_split(struct nb_engine *e, struct nb_mm *mm, uint64_t addr, uint64_t now_ns)
{
	struct nb_vma *vma = huge_vma(mm, &addr);

	e->counters.thp_split_page++;
	trace_mm(mm, NB_EVENT_SPLIT, addr, NB_HUGE_SIZE, 0, now_ns);
	if (vma == NULL || nb_has(&e->config, NB_MECH_SPLIT_KEEPS_LAST_NID))
		return;
	nb_pages_fill(e, &vma->pages, addr, addr + NB_HUGE_SIZE, NB_HISTORY_NONE);
}

/* A huge page that was put together is a new page: it has no history. */
void nb_huge_collapsed(struct nb_engine *e, struct nb_mm *mm, uint64_t addr, uint64_t now_ns)
{
	struct nb_vma *vma = huge_vma(mm, &addr);

	(void)now_ns;
	e->counters.thp_collapse_alloc++;
	if (vma != NULL)
		nb_pages_fill(e, &vma->pages, addr, addr + NB_HUGE_SIZE, NB_HISTORY_NONE);
}

/* ---- the checker ---- */

static const char *check_vma(const struct nb_mm *mm, const struct nb_vma *vma)
{
	if (vma->mm != mm)
		return "vma: in another address space";
	if (vma->start != vma->pages.start || vma->end != vma->pages.end)
		return "vma: its pages are not its range";
	if (vma->base > vma->start)
		return "vma: begins before it was mapped";
	if (vma->policy != NULL && vma->policy->users == 0)
		return "vma: a policy that nobody holds";
	return nb_pages_check(mm->engine, &vma->pages);
}

const char *nb_mm_check(const struct nb_mm *mm)
{
	if (mm->nr_vmas > mm->max_vmas)
		return "mm: more VMAs than room";
	if (mm->first_node < NB_FIRST_NODE_ACTIVE || mm->first_node >= NB_MAX_NODES)
		return "mm: first node out of range";
	for (uint32_t i = 0; i < mm->nr_vmas; i++) {
		const char *wrong = check_vma(mm, mm->vmas[i]);

		if (wrong != NULL)
			return wrong;
		if (i > 0 && mm->vmas[i - 1]->end > mm->vmas[i]->start)
			return "mm: VMAs overlap or are out of order";
	}
	return NULL;
}
