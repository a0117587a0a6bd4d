/* SPDX-License-Identifier: MIT */
/* event: what an event may hold, and which table its reason is from. Internal to report/. */
#ifndef NB_REPORT_EVENT_H
#define NB_REPORT_EVENT_H

#include "../engine/events.h"

/* Tables of names that the numbers in events refer to. */
enum report_names {
	REPORT_EVENT_NAMES,
	REPORT_SKIP_NAMES,
	REPORT_WHY_NAMES,
	REPORT_MOVE_NAMES,
	REPORT_NR_NAMES
};

struct report_name_table {
	const char *key; /* in a recording's header */
	const struct nb_name *names;
	unsigned int nr;
};
extern const struct report_name_table report_name_tables[REPORT_NR_NAMES];

/* The table that e->reason is an index of, or NULL where the type has no reason. */
const struct report_name_table *report_reason_table(uint8_t type);

/* NULL when every field is in range for `nr_nodes` nodes, else what is not. */
const char *report_event_check(const struct nb_event *e, unsigned int nr_nodes);

#endif
