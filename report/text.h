/* SPDX-License-Identifier: MIT */
/* text: numbers and names as text. Internal to report/. */
#ifndef NB_REPORT_TEXT_H
#define NB_REPORT_TEXT_H

#include <stddef.h>
#include <stdio.h>

enum { REPORT_NUMBER_LEN = 32 };

/* A short decimal (at most 17 digits) that reads back as `value` (finite), in the "C" form under
 * the "C" locale. Returns `text`. */
const char *report_shortest(char text[REPORT_NUMBER_LEN], double value);

/* Names come from files and command lines: whatever is not printable ASCII is printed as '?'. */
void report_put_ascii(FILE *f, const char *text);

/* Bytes of the well-formed UTF-8 sequence at `text` (RFC 3629: no surrogates, nothing overlong), or
 * 0. */
size_t report_utf8_len(const char *text);

#endif
