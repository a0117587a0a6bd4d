/* SPDX-License-Identifier: MIT */
/*
 * expr: the arithmetic of job files: "3G / (cpus / 2)", "min(thread * cpunodes / threads, cpunodes
 * - 1)".
 *
 *   number    decimal, with an exponent, then perhaps a unit: K M G T (1024, each with "B" or
 * "iB"), or a time: ns us ms s (seconds) name      a variable
 *   + - * / % ( )   as in C, on real numbers; a % b has the sign of b
 *   min(a,b) max(a,b) floor(a) ceil(a)
 *
 * Everything is a double; whoever needs a whole number says how it is made one. Same bytes on every
 * compiler: no contraction, no libm function beyond floor, ceil and fmod, which are exact.
 */
#ifndef NB_SIM_EXPR_H
#define NB_SIM_EXPR_H

#include <stddef.h>

enum { SIM_EXPR_MAX_DEPTH = 64 }; /* of parentheses and signs */

struct sim_var {
	const char *name;
	double value;	  /* NaN: it has none where the expression stands */
	const char *word; /* not NULL: the variable is no number but this word */
};

/*
 * The value of the whole text. 0; -EINVAL malformed, unknown variable, a word, division by zero;
 * -ERANGE not finite; -EAGAIN a variable without a value. `why` says what and where in the text,
 * without file or line. The first of several variables of one name counts.
 */
int sim_expr_eval(double *value, const char *text, const struct sim_var *vars, size_t nr_vars,
	char *why, size_t why_len);

/* A letter or '_', then letters, digits, '_'. */
int sim_expr_is_name(const char *text);
/* True for the functions, which can't be variables. */
int sim_expr_is_reserved(const char *name);

#endif
