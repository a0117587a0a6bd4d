/* SPDX-License-Identifier: MIT */
/*
 * touch: what happens when a thread meets an entry that needs attention: a first touch, a hint
 * fault, a page that is being moved. Each function answers with the kernel time it cost, in ns; the
 * caller charges it to the thread.
 */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double FAILED = -1;

/* ---- costs ---- */

/* CPUs other than this one that run the process now: each is interrupted by a flush. */
static double others_running(const struct sim_process *p)
{
	return p->live_threads > 1 ? (double)(p->live_threads - 1) : 0;
}

double sim_flush_cost(const struct sim_world *w, const struct sim_process *p)
{
	return w->model->tlb_flush_local + w->model->tlb_flush_remote * others_running(p);
}

/* Giving an entry its rights back: elsewhere it may stay as it was, at the price of a spurious
 * fault. */
static double repair_cost(const struct sim_world *w, const struct sim_process *p)
{
	return nb_has(&w->config, NB_MECH_TLB_LOCAL_FLUSH) ? 0 : sim_flush_cost(w, p);
}

/* Taking an entry away before a move: an armed one can be in no TLB. */
static double unmap_cost(const struct sim_world *w, const struct sim_process *p)
{
	return nb_has(&w->config, NB_MECH_TLB_SKIP_INACCESSIBLE) ? 0 : sim_flush_cost(w, p);
}

static double copy_cost(
	const struct sim_world *w, const struct sim_process *p, uint32_t pages, bool huge)
{
	const double bytes = (double)pages * NB_PAGE_SIZE;

	return w->model->move_fixed + w->model->isolate_page * (huge ? 1 : pages) +
	       unmap_cost(w, p) + bytes * 1e9 / w->model->copy_rate;
}

/* ---- moves in flight ---- */

const struct sim_move *sim_move_of(
	const struct sim_world *w, const struct sim_area_state *a, uint32_t b)
{
	for (uint32_t i = 0; i < w->nr_moves; i++)
		if (w->moves[i].area == a && w->moves[i].block == b)
			return &w->moves[i];
	return NULL;
}

static void move_begin(struct sim_world *w, uint32_t by, struct sim_area_state *a, uint32_t b,
	int from, double until_ns)
{
	if (w->nr_moves == w->max_moves) {
		const uint32_t more = w->max_moves ? 2 * w->max_moves : 64;
		struct sim_move *p = realloc(w->moves, more * sizeof(*p));

		/* Without a note nobody waits for the move: less exact, not wrong. */
		if (!p)
			return;
		w->moves = p;
		w->max_moves = more;
	}
	w->moves[w->nr_moves++] = (struct sim_move){a, b, by, (int16_t)from, until_ns};
	a->blocks[b].flags |= SIM_B_BUSY;
}

void sim_moves_finish(struct sim_world *w)
{
	for (uint32_t i = 0; i < w->nr_moves;) {
		if (w->moves[i].until_ns > w->now_ns) {
			i++;
			continue;
		}
		w->moves[i].area->blocks[w->moves[i].block].flags &= (uint16_t)~SIM_B_BUSY;
		w->moves[i].area->gen++;
		w->moves[i] = w->moves[--w->nr_moves];
	}
}

/* ---- first touch ---- */

static double out_of_memory(struct sim_world *w)
{
	sim_fail(w, -ENOSPC, "the simulated machine is out of memory");
	return FAILED;
}

/* An mbind of part of an area splits its VMA: ask each time. */
static struct nb_vma *vma_at(const struct sim_thread *t, uint64_t offset)
{
	return nb_vma_find(t->proc->mm, t->area->va + offset);
}

static bool placed_by_hand(const struct sim_world *w)
{
	return w->options->placement && w->options->placement->pages != SIM_PAGES_FIRST_TOUCH;
}

static int wanted_node(struct sim_world *w, const struct sim_thread *t, uint64_t offset)
{
	if (placed_by_hand(w))
		return sim_placed_node(w, t, offset);
	return nb_first_touch_node(
		w->engine, t->task, vma_at(t, offset), t->area->va + offset, t->node);
}

static int wanted_huge_node(struct sim_world *w, const struct sim_thread *t, uint64_t offset)
{
	uint64_t start, end;

	/* Several threads' slices may meet in it: whoever has its middle has most of it. */
	sim_block_range(t->area, sim_block_of(t->area, offset), &start, &end);
	if (placed_by_hand(w))
		return sim_placed_node(w, t, start + (end - start) / 2);
	return nb_first_touch_huge_node(
		w->engine, t->task, vma_at(t, offset), t->area->va + offset, t->node);
}

/* Pages that are dealt out one by one are small. */
static bool may_be_huge(const struct sim_world *w, const struct sim_thread *t)
{
	const struct sim_placement *p = w->options->placement;

	return t->area->load->thp == SIM_THP_ALWAYS &&
	       !(p && p->pages == SIM_PAGES_INTERLEAVE && p->by_page);
}

/* A huge page needs 2 MiB of one VMA: an mbind of part of them leaves small pages. */
static bool fits_huge(const struct sim_thread *t, uint32_t b)
{
	uint64_t start, end;

	sim_block_range(t->area, b, &start, &end);
	return end - start == NB_HUGE_SIZE && vma_at(t, start) == vma_at(t, end - 1);
}

static int not_mapped(struct sim_world *w)
{
	sim_fail(w, -EFAULT, "a thread touches memory that another has unmapped");
	return -1;
}

static double appear_cost(const struct sim_world *w, int pages)
{
	return w->model->page_fault + pages * (double)NB_PAGE_SIZE * 1e9 / w->model->clear_rate;
}

/* A page or a whole block appears; how many pages, or 0 when memory is out, -1 on error. */
static int appear(struct sim_world *w, struct sim_thread *t, uint64_t offset)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = sim_block_of(a, offset);
	const bool empty = a->blocks[b].present == 0 && fits_huge(t, b);
	int node;

	if (!vma_at(t, offset))
		return not_mapped(w);
	if (empty && may_be_huge(w, t)) {
		node = sim_alloc_node(w, wanted_huge_node(w, t, offset), NB_HUGE_PAGES);
		if (node >= 0) {
			sim_block_set(w, a, b, node, SIM_B_HUGE);
			move_begin(w, t->id, a, b, NB_NO_NODE,
				w->now_ns + w->used_ns + t->debt_ns +
					appear_cost(w, NB_HUGE_PAGES));
			sim_lru_drain(w, t->cpu);
			nb_engine_counters_rw(w->engine)->thp_fault_alloc++;
			nb_engine_counters_rw(w->engine)->pgfault++;
			return NB_HUGE_PAGES;
		}
	}
	node = sim_alloc_node(w, wanted_node(w, t, offset), 1);
	if (node < 0)
		return 0;
	nb_engine_counters_rw(w->engine)->pgfault++;
	sim_lru_add(w, t->cpu, a->va + offset, 1);
	return sim_pte_set(w, a, offset, (uint16_t)(SIM_PTE_PRESENT | node)) ? -1 : 1;
}

/* ---- hint faults ---- */

/* Returns what it cost; a move that fails for want of a page fails before anything is copied. */
static double execute_move(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint16_t pte)
{
	struct sim_area_state *a = t->area;
	const struct nb_move_request r = w->move;
	const int node = r.node_to;

	w->move_wanted = false;
	if (!r.huge && sim_lru_holds(w, r.addr)) {
		nb_move_done(w->engine, &r, 0, NB_MOVE_NOT_ON_LRU, (uint64_t)w->now_ns);
		return w->model->move_fixed;
	}
	if (w->node_capacity[node] - w->node_used[node] < r.pages) {
		nb_move_done(w->engine, &r, 0, NB_MOVE_NO_MEMORY, (uint64_t)w->now_ns);
		return w->model->move_fixed;
	}
	if (r.huge)
		sim_block_set(w, a, sim_block_of(a, offset), node, SIM_B_HUGE);
	else
		sim_pte_set(w, a, offset, (uint16_t)((pte & ~SIM_PTE_NODE) | node));
	if (r.huge)
		sim_lru_drain(w, t->cpu);
	else
		sim_lru_add(w, t->cpu, r.addr, 1);
	w->copied[r.node_from * (int)w->nr_nodes + node] += (double)r.pages * NB_PAGE_SIZE;
	nb_move_done(w->engine, &r, r.pages, NB_MOVE_OK, (uint64_t)w->now_ns);
	return copy_cost(w, t->proc, r.pages, r.huge);
}

static struct nb_fault fault_of(const struct sim_world *w, const struct sim_thread *t,
	uint64_t offset, int page_node, uint32_t flags)
{
	return (struct nb_fault){.task = t->task,
		.vma = vma_at(t, offset),
		.addr = t->area->va + offset,
		.now_ns = (uint64_t)w->now_ns,
		.cpu_node = t->node,
		.page_node = (int16_t)page_node,
		.flags = flags | (t->area->mappings > 1 ? NB_FAULT_SHARED : 0)};
}

/* Others of the process that stand in the same block may still hold the armed entry: each faults
 * once for nothing. */
static void spurious_faults(struct sim_world *w, const struct sim_thread *by, uint32_t b)
{
	const struct sim_process_load *p = by->proc->load;

	if (!nb_has(&w->config, NB_MECH_TLB_LOCAL_FLUSH) || p->nr_threads < 2)
		return;
	for (uint32_t i = 0; i < p->nr_threads; i++) {
		struct sim_thread *t = &w->threads[p->first_thread + i];
		struct nb_fault f;

		if (t == by || !t->current || t->area != by->area || !t->task || !sim_sweeps(t) ||
			sim_block_of(t->area, (uint64_t)t->pos) != b)
			continue;
		f = fault_of(w, t, (uint64_t)t->pos, by->node, NB_FAULT_SPURIOUS);
		nb_hint_fault(w->engine, &f);
		t->debt_ns += w->model->page_fault;
	}
}

/* One hint fault on a huge page. */
static double fault_huge(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint32_t flags)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = sim_block_of(a, offset);
	uint64_t start, end;
	struct nb_fault f;
	double cost = w->model->hint_fault + repair_cost(w, t->proc);

	sim_block_range(a, b, &start, &end);
	f = fault_of(w, t, start, a->blocks[b].node, flags | NB_FAULT_HUGE);
	w->move_wanted = false;
	w->was_split = false;
	nb_hint_fault(w->engine, &f);
	nb_engine_counters_rw(w->engine)->pgfault++;
	if (w->was_split) {
		nb_huge_split(w->engine, t->proc->mm, a->va + start, (uint64_t)w->now_ns);
		return cost;
	}
	if (w->move_wanted) {
		const int from = a->blocks[b].node;

		cost += execute_move(w, t, start, 0);
		if (a->blocks[b].node != from)
			move_begin(w, t->id, a, b, from, w->now_ns + cost);
	} else {
		spurious_faults(w, t, b);
	}
	if (a->blocks[b].flags & SIM_B_ARMED)
		sim_block_set(w, a, b, a->blocks[b].node, SIM_B_HUGE);
	return cost;
}

/* One hint fault on a small page; `trap` = false when a PMD's fault brought it along. */
static double fault_page(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint16_t pte,
	uint32_t flags, bool trap)
{
	const struct nb_fault f =
		fault_of(w, t, offset, pte & SIM_PTE_NODE, flags | (trap ? 0 : NB_FAULT_BATCHED));
	double cost = trap ? w->model->hint_fault + repair_cost(w, t->proc) : w->model->pte_update;

	w->move_wanted = false;
	nb_hint_fault(w->engine, &f);
	nb_engine_counters_rw(w->engine)->pgfault += trap;
	pte &= (uint16_t)~SIM_PTE_ARMED;
	if (!w->move_wanted) {
		sim_pte_set(w, t->area, offset, pte);
		return cost;
	}
	sim_pte_set(w, t->area, offset, pte);
	return cost + execute_move(w, t, offset, pte);
}

void sim_split_at(struct sim_world *w, struct sim_thread *t, uint64_t offset)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = offset < a->bytes ? sim_block_of(a, offset) : 0;
	uint64_t start, end;

	sim_block_range(a, b, &start, &end);
	if (offset >= a->bytes || offset == start || !(a->blocks[b].flags & SIM_B_HUGE))
		return;
	sim_block_split(w, a, b, nb_has(&w->config, NB_MECH_SPLIT_TRANSFERS_ARM));
	nb_huge_split(w->engine, t->proc->mm, a->va + start, (uint64_t)w->now_ns);
}

/* Small pages armed as one PMD: one trap, a decision for each. */
static double fault_pmd(struct sim_world *w, struct sim_thread *t, uint32_t b, uint32_t flags)
{
	struct sim_area_state *a = t->area;
	double cost = w->model->hint_fault + repair_cost(w, t->proc);
	uint64_t start, end;

	sim_block_range(a, b, &start, &end);
	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE) {
		const uint16_t pte = sim_pte_get(w, a, o);

		if (pte & SIM_PTE_ARMED)
			cost += fault_page(w, t, o, pte, flags, false);
	}
	nb_engine_counters_rw(w->engine)->pgfault++;
	a->blocks[b].flags &= (uint16_t)~SIM_B_PMD;
	sim_block_contract(w, a, b);
	return cost;
}

/*
 * A huge page that somebody is moving: this thread is told to wait, and finds it moved. Where the
 * entry stays armed meanwhile it takes a hint fault for that.
 */
static double fault_on_moving(struct sim_world *w, struct sim_thread *t, uint32_t b)
{
	const struct sim_move *move = sim_move_of(w, t->area, b);
	uint64_t start, end;
	struct nb_fault f;

	if (!move || move->until_ns <= w->now_ns || move->by == t->id)
		return 0;
	if (t->wait_until_ns < move->until_ns)
		t->wait_until_ns = move->until_ns;
	if (move->from == NB_NO_NODE || nb_has(&w->config, NB_MECH_THP_WAITS))
		return w->model->page_fault;
	sim_block_range(t->area, b, &start, &end);
	f = fault_of(w, t, start, move->from, NB_FAULT_HUGE);
	w->refuse_moves = true;
	nb_hint_fault(w->engine, &f);
	w->refuse_moves = false;
	return w->model->hint_fault;
}

uint32_t sim_touch_flags(struct sim_world *w, const struct sim_phase *p)
{
	const bool write = p->write_ratio >= 1 || sim_rng_unit(&w->rng) < p->write_ratio;

	return (write ? NB_FAULT_WRITE : 0) | (p->kernel ? NB_FAULT_KERNEL : 0) |
	       (p->lookup ? NB_FAULT_LOOKUP : 0);
}

bool sim_passes_armed(const struct sim_world *w, bool kernel, bool lookup)
{
	return lookup || (kernel && !nb_has(&w->config, NB_MECH_GUP_HINT_FAULTS));
}

static bool passes_armed(const struct sim_world *w, uint32_t flags)
{
	return sim_passes_armed(w, flags & NB_FAULT_KERNEL, flags & NB_FAULT_LOOKUP);
}

/* A look at a present page: whatever its entry says stays as it is. The engine is told, and does
 * nothing. */
static double look_up(
	struct sim_world *w, struct sim_thread *t, uint64_t offset, uint16_t pte, uint32_t flags)
{
	const struct nb_fault f = fault_of(w, t, offset, pte & SIM_PTE_NODE, flags);

	if (pte & SIM_PTE_ARMED)
		nb_hint_fault(w->engine, &f);
	return 0;
}

double sim_touch_page(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint32_t flags)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = sim_block_of(a, offset);
	double cost = 0;
	uint16_t pte = sim_pte_get(w, a, offset);

	if (passes_armed(w, flags) && pte & SIM_PTE_PRESENT)
		return look_up(w, t, offset, pte, flags);
	if (a->blocks[b].flags & SIM_B_BUSY)
		cost += fault_on_moving(w, t, b);
	if (a->blocks[b].flags & SIM_B_HUGE && a->blocks[b].flags & SIM_B_ARMED)
		cost += fault_huge(w, t, offset, flags);
	if (a->blocks[b].flags & SIM_B_PMD)
		cost += fault_pmd(w, t, b, flags);
	pte = sim_pte_get(w, a, offset);
	if (!(pte & SIM_PTE_PRESENT)) {
		const int pages = appear(w, t, offset);

		return pages > 0 ? cost + appear_cost(w, pages) : out_of_memory(w);
	}
	if (pte & SIM_PTE_ARMED && !(a->blocks[b].flags & SIM_B_HUGE))
		cost += fault_page(w, t, offset, pte, flags, true);
	return cost;
}

/* An empty block of small pages that is about to be swept: all of them appear, on one node, in one
 * go. */
static double appear_whole(struct sim_world *w, struct sim_thread *t, uint32_t b, uint64_t offset)
{
	const uint32_t pages = sim_block_pages(t->area, b);
	const int node = sim_alloc_node(w, wanted_node(w, t, offset), pages);

	if (node < 0)
		return 0;
	sim_block_set(w, t->area, b, node, 0);
	sim_lru_add(w, t->cpu, t->area->va + (offset & ~(uint64_t)(NB_PAGE_SIZE - 1)), pages);
	nb_engine_counters_rw(w->engine)->pgfault += pages;
	return pages * appear_cost(w, 1);
}

static bool appears_whole(
	struct sim_world *w, const struct sim_thread *t, uint32_t b, uint64_t offset, uint64_t end)
{
	uint64_t block_start, block_end;

	sim_block_range(t->area, b, &block_start, &block_end);
	if (t->area->blocks[b].present || offset != block_start || end != block_end ||
		end - offset < 2 * NB_PAGE_SIZE)
		return false;
	if (may_be_huge(w, t) && fits_huge(t, b))
		return false;
	if (!vma_at(t, offset) || vma_at(t, offset) != vma_at(t, end - 1))
		return false;
	/* An interleaving policy puts neighbours on different nodes. */
	return wanted_node(w, t, offset) == wanted_node(w, t, offset + NB_PAGE_SIZE);
}

/*
 * How far behind t others may be and still catch up with it while it is in the kernel for the
 * block's faults: within reach of a cache, or as far as a CPU gets meanwhile.
 */
static double catch_up(const struct sim_world *w, const struct sim_thread *t, double faults_ns)
{
	return fmax(w->model->llc_bytes, t->rate * faults_ns);
}

/*
 * Who takes the fault. While one thread of a sweep is in the kernel the others catch up with it,
 * and any of them may be the first at the next entry. One is drawn; where it is not within reach
 * behind t, it is t.
 */
static struct sim_thread *first_at(struct sim_world *w, struct sim_thread *t, double reach)
{
	const struct sim_process_load *p = t->proc->load;
	struct sim_thread *u;

	if (p->nr_threads < 2 || !sim_sweeps(t) || t->phase->slice != SIM_SLICE_ALL)
		return t;
	u = &w->threads[p->first_thread + sim_rng_below(&w->rng, p->nr_threads)];
	if (!u->current || !u->task || !sim_same_slice(u, t) || u->in_phase != t->in_phase ||
		u->pos > t->pos || t->pos - u->pos > reach)
		return t;
	return u;
}

/* One armed entry of a block whose pages are handled one by one; `f` says who touches what. */
static double fault_entry(struct sim_world *w, struct sim_thread *t, uint64_t offset, uint16_t *pte,
	const struct nb_fault *f)
{
	struct sim_area_state *a = t->area;
	const uint16_t armed = *pte;

	w->move_wanted = false;
	nb_hint_fault(w->engine, f);
	*pte = (uint16_t)(armed & ~SIM_PTE_ARMED);
	a->blocks[sim_block_of(a, offset)].armed--;
	if (a->nr_regions)
		sim_regions_page_changed(w, a, offset, armed, *pte);
	if (!w->move_wanted)
		return 0;
	return execute_move(w, t, offset, *pte);
}

/* A run of entries, all present, some armed, in one VMA: what a sweep meets when huge pages are
 * off. */
static double fault_entries(
	struct sim_world *w, struct sim_thread *t, uint64_t start, uint64_t end, uint32_t flags)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = sim_block_of(a, start);
	const double trap = w->model->hint_fault + repair_cost(w, t->proc);
	struct nb_fault f = fault_of(w, t, start, 0, flags);
	const uint64_t va = f.addr - start;
	const double reach = catch_up(w, t, trap * a->blocks[b].armed);
	struct sim_thread *by;
	uint64_t faults = 0;
	double cost = 0, one;

	if (sim_block_expand(w, a, b)) {
		sim_fail(w, -ENOMEM, "no memory for page tables");
		return FAILED;
	}
	for (uint64_t o = start; o < end; o += NB_PAGE_SIZE) {
		uint16_t *pte = &w->chunks[a->blocks[b].ptes][sim_pte_index(a, o)];

		if (!(*pte & SIM_PTE_ARMED))
			continue;
		f.addr = va + o;
		f.page_node = *pte & SIM_PTE_NODE;
		by = first_at(w, t, reach);
		f.task = by->task;
		f.cpu_node = by->node;
		one = trap + fault_entry(w, t, o, pte, &f);
		faults++;
		if (by == t)
			cost += one;
		else
			by->debt_ns += one;
	}
	a->gen++;
	nb_engine_counters_rw(w->engine)->pgfault += faults;
	sim_block_contract(w, a, b);
	return cost;
}

static bool plain_entries(const struct sim_thread *t, uint32_t b, uint64_t start, uint64_t end)
{
	const struct sim_block *block = &t->area->blocks[b];

	return !(block->flags & (SIM_B_HUGE | SIM_B_PMD | SIM_B_BUSY)) &&
	       block->present == sim_block_pages(t->area, b) &&
	       vma_at(t, start) == vma_at(t, end - 1);
}

double sim_touch_block(
	struct sim_world *w, struct sim_thread *t, uint64_t offset, uint64_t end, uint32_t flags)
{
	struct sim_area_state *a = t->area;
	const uint32_t b = sim_block_of(a, offset);
	double cost = 0;

	if (appears_whole(w, t, b, offset, end)) {
		cost = appear_whole(w, t, b, offset);
		if (cost > 0)
			return cost;
	}
	offset &= ~(uint64_t)(NB_PAGE_SIZE - 1);
	if (!passes_armed(w, flags) && plain_entries(t, b, offset, end))
		return fault_entries(w, t, offset, end, flags);
	for (uint64_t o = offset; o < end; o += NB_PAGE_SIZE) {
		const double one = sim_touch_page(w, t, o, flags);

		if (one < 0)
			return one;
		cost += one;
		if (a->blocks[b].flags & SIM_B_HUGE)
			break;
	}
	sim_block_contract(w, a, b);
	return cost;
}
