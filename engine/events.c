/* SPDX-License-Identifier: MIT */
#include "events.h"

#define X(NAME, name, text) {#name, text},

const struct nb_name nb_event_names[NB_NR_EVENTS] = {NB_EVENTS(X)};
const struct nb_name nb_skip_names[NB_NR_SKIPS] = {NB_SKIPS(X)};
const struct nb_name nb_why_names[NB_NR_WHYS] = {NB_WHYS(X)};
const struct nb_name nb_move_status_names[NB_NR_MOVE_STATUSES] = {NB_MOVE_STATUSES(X)};
