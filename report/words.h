/* SPDX-License-Identifier: MIT */
/* words: events in plain words. Internal to report/. */
#ifndef NB_REPORT_WORDS_H
#define NB_REPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include "../engine/events.h"

enum { REPORT_WORDS_LEN = 320, REPORT_TIME_LEN = 32 };

/* One sentence on a checked event; `node_ids` names the nodes. */
void report_words(char text[REPORT_WORDS_LEN], const struct nb_event *e, const int *node_ids);

/* "12.345678": seconds to the microsecond. Returns `text`. */
const char *report_seconds(char text[REPORT_TIME_LEN], uint64_t ns);

#endif
