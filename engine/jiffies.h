/* SPDX-License-Identifier: MIT */
/*
 * jiffies: the rules of the 2012 series compare ticks of the kernel's clock, not nanoseconds. What
 * the configuration means in jiffies and pages is computed once, here, and not at each fault.
 *
 * Conversions follow the kernel: milliseconds become jiffies rounded up, jiffies milliseconds
 * rounded down.
 */
#ifndef NB_ENGINE_JIFFIES_H
#define NB_ENGINE_JIFFIES_H

#include <stdint.h>
#include "systems.h"

enum {
	NB_MIN_HZ = 1,
	NB_MAX_HZ = 1000000,
};

struct nb_rules {
	uint64_t tick_ns; /* length of a jiffy */
	uint32_t hz;
	uint32_t period_min_ms, period_max_ms;
	uint32_t grow_ms;	   /* what a fault adds to a scan period */
	uint64_t reset_j;	   /* scan_period_reset_ms */
	uint64_t migrate_window_j; /* migrate_interval_ms */
	uint64_t pteupdate_j;	   /* pteupdate_interval_ms */
	uint64_t ratelimit_pages;  /* 4 KiB pages per migration window */
	uint64_t scan_pages;	   /* 4 KiB pages per scan window */
};

/* hz must be NB_MIN_HZ to NB_MAX_HZ. */
void nb_rules_from_config(struct nb_rules *r, const struct nb_config *c);

static inline uint64_t nb_jiffies(const struct nb_rules *r, uint64_t now_ns)
{
	return now_ns / r->tick_ns;
}

static inline uint64_t nb_msecs_to_jiffies(const struct nb_rules *r, uint64_t ms)
{
	return (ms * r->hz + 999) / 1000;
}

static inline uint64_t nb_jiffies_to_msecs(const struct nb_rules *r, uint64_t jiffies)
{
	return jiffies * 1000 / r->hz;
}

#endif
