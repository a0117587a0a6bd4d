/* SPDX-License-Identifier: MIT */
#include "vmascan.h"
#include "engine_private.h"

enum {
	RESET_DELAYS = 4,	/* periods of pid activity are so many scan delays long */
	UNCONDITIONAL_SEQS = 2, /* sequences in which all VMAs are scanned */
};

void nb_vma_scanned(const struct nb_engine *e, struct nb_vma *vma)
{
	if (nb_has(&e->config, NB_MECH_VMA_PREV_SEQ))
		vma->scan.prev_scan_seq = vma->mm->scan_seq;
}

static uint64_t delay_j(const struct nb_engine *e)
{
	return nb_msecs_to_jiffies(&e->rules, (uint64_t)nb_tune(&e->config, NB_TUNE_SCAN_DELAY_MS));
}

static void meet(const struct nb_engine *e, struct nb_vma *vma, uint64_t now_j)
{
	const uint64_t next = now_j + delay_j(e);

	if (vma->scan.known)
		return;
	vma->scan = (struct nb_vma_scan){.known = true,
		.start_scan_seq = vma->mm->scan_seq,
		.prev_scan_seq = vma->mm->scan_seq - 1,
		.next_scan_j = next,
		.pids_reset_j = next + RESET_DELAYS * delay_j(e)};
}

static void forget_pids(const struct nb_engine *e, struct nb_vma *vma, uint64_t now_j)
{
	struct nb_vma_scan *s = &vma->scan;

	if (vma->mm->scan_seq == 0 || now_j <= s->pids_reset_j)
		return;
	s->pids_reset_j += RESET_DELAYS * delay_j(e);
	s->pids_active[0] = s->pids_active[1];
	s->pids_active[1] = 0;
}

/* Scanned by everybody: the first two sequences, of the VMA or of its address space. */
static bool is_new(const struct nb_engine *e, const struct nb_vma *vma)
{
	const uint32_t since =
		nb_has(&e->config, NB_MECH_VMA_START_SEQ) ? vma->scan.start_scan_seq : 0;

	return vma->mm->scan_seq - since < UNCONDITIONAL_SEQS;
}

/* Nobody came by for more sequences than there are threads: nobody will. */
static bool starves(const struct nb_engine *e, const struct nb_vma *vma)
{
	return nb_has(&e->config, NB_MECH_VMA_STARVING) &&
	       vma->mm->scan_seq > vma->scan.prev_scan_seq + vma->mm->nr_tasks;
}

static bool is_active(
	const struct nb_engine *e, const struct nb_vma *vma, const struct nb_task *t, bool *partial)
{
	const uint64_t pids = vma->scan.pids_active[0] | vma->scan.pids_active[1];

	if (!nb_has(&e->config, NB_MECH_VMA_PIDS) || is_new(e, vma) ||
		(pids & nb_pid_bit(t->id)) != 0)
		return true;
	if (nb_has(&e->config, NB_MECH_VMA_PARTIAL) && vma->mm->scan_offset > vma->start) {
		*partial = true;
		return true;
	}
	return starves(e, vma);
}

enum nb_skip nb_vma_skip(const struct nb_engine *e, struct nb_vma *vma, const struct nb_task *t,
	bool forced, uint64_t now_j, bool *partial)
{
	const struct nb_config *c = &e->config;
	const bool reset_first = nb_has(c, NB_MECH_VMA_PIDS_RESET);
	struct nb_mm *mm = vma->mm;

	*partial = false;
	meet(e, vma, now_j);
	if (nb_has(c, NB_MECH_VMA_SCAN_DELAY) && mm->scan_seq > 0 && now_j < vma->scan.next_scan_j)
		return NB_SKIP_SCAN_DELAY;
	if (reset_first)
		forget_pids(e, vma, now_j);
	if (nb_has(c, NB_MECH_VMA_PREV_SEQ) && vma->scan.prev_scan_seq == mm->scan_seq) {
		mm->scan_offset = vma->end;
		return NB_SKIP_SEQ_COMPLETED;
	}
	if (!forced && !is_active(e, vma, t, partial))
		return NB_SKIP_PID_INACTIVE;
	/* Before 6.7 only a VMA that is scanned forgets who touched it. */
	if (!reset_first)
		forget_pids(e, vma, now_j);
	return NB_NR_SKIPS;
}
