/* SPDX-License-Identifier: MIT */
#include "ratelimit.h"
#include "engine_private.h"

bool nb_ratelimit_move(struct nb_engine *e, int node, uint64_t pages, uint64_t now_ns)
{
	struct nb_window *w = &e->nodes[node].window;
	const uint64_t now = nb_jiffies(&e->rules, now_ns);

	if (now > w->end_j) {
		w->pages = 0;
		w->end_j = now + e->rules.migrate_window_j;
	}
	if (w->pages > e->rules.ratelimit_pages)
		return true;
	w->pages += pages;
	return false;
}

bool nb_ratelimit_scan(const struct nb_engine *e, int node, uint64_t now_ns)
{
	const struct nb_window *w = &e->nodes[node].window;

	if (nb_jiffies(&e->rules, now_ns) > w->end_j + e->rules.pteupdate_j)
		return false;
	return w->pages >= e->rules.ratelimit_pages;
}
