/* SPDX-License-Identifier: MIT */
/*
 * lock: a mutex for code that lives as a guest in somebody's program: a futex, no libc, and all
 * signals blocked while it is held, so that no handler of the program runs inside and finds it
 * taken. Held for short: no page fault on managed memory and no wait for the agent may happen
 * inside.
 *
 * Thread rules: any thread, any time; not recursive. A child of fork begins with nb_lock_init.
 */
#ifndef NB_LIVE_LOCK_H
#define NB_LIVE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct nb_lock {
	_Atomic uint32_t state; /* 0 free, 1 taken, 2 taken and somebody waits */
	_Atomic uint32_t owner; /* thread id, while taken */
};

/* The signals that were blocked before. */
struct nb_signals {
	uint64_t mask;
};

void nb_signals_block(struct nb_signals *old);
void nb_signals_restore(const struct nb_signals *old);

static inline void nb_lock_init(struct nb_lock *l)
{
	atomic_store(&l->state, 0);
	atomic_store(&l->owner, 0);
}

void nb_lock(struct nb_lock *l, struct nb_signals *old);
/* False, and signals as they were, when somebody else has it. */
bool nb_lock_try(struct nb_lock *l, struct nb_signals *old);
/* Wait no longer than timeout_ns: false, and signals as they were, when it is still taken. */
bool nb_lock_timed(struct nb_lock *l, struct nb_signals *old, uint64_t timeout_ns);
/* Wait without any system call, signals as they are; given back by nb_lock_init. */
void nb_lock_spin(struct nb_lock *l);
/*
 * Take it from an owner that will not give it back. Signals are blocked as by nb_lock. The old
 * owner's unlock does nothing then; it must find out by itself that it was robbed before it changes
 * what the lock protects.
 */
void nb_lock_steal(struct nb_lock *l, struct nb_signals *old);
void nb_unlock(struct nb_lock *l, const struct nb_signals *old);

/* futex(2) on a word of this process: wait while *word == value, at most timeout_ns (0 = for ever).
 * 0 or -errno. */
long nb_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void nb_futex_wake(_Atomic uint32_t *word, int threads);

#endif
