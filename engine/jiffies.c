/* SPDX-License-Identifier: MIT */
#include "jiffies.h"
#include <assert.h>

enum {
	PAGES_PER_MIB = 256,
	NSEC_PER_SEC = 1000000000,
};

void nb_rules_from_config(struct nb_rules *r, const struct nb_config *c)
{
	assert(c->hz >= NB_MIN_HZ && c->hz <= NB_MAX_HZ);
	r->hz = c->hz;
	r->tick_ns = (NSEC_PER_SEC + c->hz / 2) / c->hz;
	r->period_min_ms = (uint32_t)nb_tune(c, NB_TUNE_SCAN_PERIOD_MIN_MS);
	r->period_max_ms = (uint32_t)nb_tune(c, NB_TUNE_SCAN_PERIOD_MAX_MS);
	r->grow_ms =
		(uint32_t)nb_jiffies_to_msecs(r, (uint64_t)nb_tune(c, NB_TUNE_SCAN_GROW_JIFFIES));
	r->reset_j = nb_msecs_to_jiffies(r, (uint64_t)nb_tune(c, NB_TUNE_SCAN_PERIOD_RESET_MS));
	r->migrate_window_j =
		nb_msecs_to_jiffies(r, (uint64_t)nb_tune(c, NB_TUNE_MIGRATE_INTERVAL_MS));
	r->pteupdate_j =
		nb_msecs_to_jiffies(r, (uint64_t)nb_tune(c, NB_TUNE_PTEUPDATE_INTERVAL_MS));
	r->ratelimit_pages = (uint64_t)nb_tune(c, NB_TUNE_RATELIMIT_MB) * PAGES_PER_MIB;
	r->scan_pages = (uint64_t)nb_tune(c, NB_TUNE_SCAN_SIZE_MB) * PAGES_PER_MIB;
}
