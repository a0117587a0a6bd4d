/* SPDX-License-Identifier: MIT */
#include "event.h"

#include <stdbool.h>
#include <stddef.h>

const struct report_name_table report_name_tables[REPORT_NR_NAMES] = {
	[REPORT_EVENT_NAMES] = {"events", nb_event_names, NB_NR_EVENTS},
	[REPORT_SKIP_NAMES] = {"skips", nb_skip_names, NB_NR_SKIPS},
	[REPORT_WHY_NAMES] = {"whys", nb_why_names, NB_NR_WHYS},
	[REPORT_MOVE_NAMES] = {"moves", nb_move_status_names, NB_NR_MOVE_STATUSES},
};

const struct report_name_table *report_reason_table(uint8_t type)
{
	switch (type) {
	case NB_EVENT_SCAN_SKIP:
		return &report_name_tables[REPORT_SKIP_NAMES];
	case NB_EVENT_HINT_FAULT:
		return &report_name_tables[REPORT_WHY_NAMES];
	case NB_EVENT_MOVE_FAILED:
		return &report_name_tables[REPORT_MOVE_NAMES];
	default:
		return NULL;
	}
}

static bool is_node(int16_t node, unsigned int nr_nodes)
{
	return node >= -1 && node < (int)nr_nodes;
}

const char *report_event_check(const struct nb_event *e, unsigned int nr_nodes)
{
	const struct report_name_table *reasons;

	if (e->type >= NB_NR_EVENTS)
		return "an unknown type";
	reasons = report_reason_table(e->type);
	if (reasons && e->reason >= reasons->nr)
		return "an unknown reason";
	if (!is_node(e->node_from, nr_nodes) || !is_node(e->node_to, nr_nodes))
		return "a node that the machine does not have";
	if (e->huge > 1 || e->write > 1)
		return "a flag that is neither 0 nor 1";
	return NULL;
}
