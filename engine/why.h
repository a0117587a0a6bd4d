/* SPDX-License-Identifier: MIT */
/*
 * why: the one line that says what was wrong. Every function that can refuse an input takes `why,
 * why_len`.
 */
#ifndef NB_ENGINE_WHY_H
#define NB_ENGINE_WHY_H

#include <stddef.h>
#include <stdint.h>

/* Format one line into `why` (may be NULL), always terminated, control characters replaced by '?'.
 * Returns `err`, so that `return nb_why(why, len, -EINVAL, "...")` reads well. */
__attribute__((format(printf, 4, 5))) int nb_why(
	char *why, size_t why_len, int err, const char *format, ...);

/* A text somebody else wrote, as errors quote it: long ones without their middle. */
enum { NB_QUOTE_LEN = 160 };
struct nb_quote {
	char text[NB_QUOTE_LEN + 1];
};
struct nb_quote nb_quote(const char *text);

/* Decimal integer, the whole text, no blanks. 0, -EINVAL, -ERANGE. */
int nb_parse_i64(const char *text, int64_t *out);
/* Finite decimal number, the whole text. 0, -EINVAL, -ERANGE. */
int nb_parse_double(const char *text, double *out);
/* Bytes: a non-negative decimal number with an optional K, M, G, T, P (1024), each with optional
 * "iB" or "B". */
int nb_parse_bytes(const char *text, uint64_t *out);

#endif
