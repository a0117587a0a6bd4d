/* SPDX-License-Identifier: MIT */
#include "lock.h"
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include "os.h"

enum {
	FREE,
	TAKEN,
	WAITED,
};

void nb_signals_block(struct nb_signals *old)
{
	const uint64_t all = UINT64_MAX;

	NB_OS_4(rt_sigprocmask, SIG_SETMASK, &all, &old->mask, sizeof(all));
}

void nb_signals_restore(const struct nb_signals *old)
{
	NB_OS_4(rt_sigprocmask, SIG_SETMASK, &old->mask, NULL, sizeof(old->mask));
}

long nb_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	const struct timespec t = {
		(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};

	return NB_OS_6(futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns ? &t : NULL, NULL, 0);
}

void nb_futex_wake(_Atomic uint32_t *word, int threads)
{
	NB_OS_3(futex, word, FUTEX_WAKE_PRIVATE, threads);
}

/* Asked before: who is stopped with the lock must be known by then. */
static uint32_t self(void)
{
	return (uint32_t)NB_OS_0(gettid);
}

static bool take(struct nb_lock *l, uint32_t me)
{
	uint32_t expected = FREE;

	if (!atomic_compare_exchange_strong(&l->state, &expected, TAKEN))
		return false;
	atomic_store(&l->owner, me);
	return true;
}

void nb_lock(struct nb_lock *l, struct nb_signals *old)
{
	while (!nb_lock_timed(l, old, 0))
		;
}

bool nb_lock_timed(struct nb_lock *l, struct nb_signals *old, uint64_t timeout_ns)
{
	uint32_t me;

	nb_signals_block(old);
	me = self();
	if (take(l, me))
		return true;
	while (atomic_exchange(&l->state, WAITED) != FREE) {
		if (nb_futex_wait(&l->state, WAITED, timeout_ns) != -ETIMEDOUT)
			continue;
		nb_signals_restore(old);
		return false;
	}
	atomic_store(&l->owner, me);
	return true;
}

bool nb_lock_try(struct nb_lock *l, struct nb_signals *old)
{
	nb_signals_block(old);
	if (take(l, self()))
		return true;
	nb_signals_restore(old);
	return false;
}

void nb_lock_spin(struct nb_lock *l)
{
	uint32_t seen = FREE;

	while (!atomic_compare_exchange_weak(&l->state, &seen, TAKEN))
		seen = FREE;
}

void nb_lock_steal(struct nb_lock *l, struct nb_signals *old)
{
	nb_signals_block(old);
	atomic_store(&l->owner, self());
}

void nb_unlock(struct nb_lock *l, const struct nb_signals *old)
{
	uint32_t me = self();

	if (atomic_compare_exchange_strong(&l->owner, &me, 0) &&
		atomic_exchange(&l->state, FREE) == WAITED)
		nb_futex_wake(&l->state, 1);
	nb_signals_restore(old);
}
