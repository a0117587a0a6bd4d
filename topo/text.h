/* SPDX-License-Identifier: MIT */
/*
 * text: walking over text that nobody vouches for.
 *
 * Slices point into the caller's buffer and are never written to; nothing here allocates.
 * Blanks are space, tab and carriage return, so that text from any system reads the same.
 */
#ifndef NB_TOPO_TEXT_H
#define NB_TOPO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topo_slice {
	const char *at;
	size_t len;
};

struct topo_text {
	const char *at;
	const char *end;
	unsigned int line; /* number of the line given last, from 1; 0 before the first */
};

struct topo_slice topo_slice_of(const char *text);

/* The next line without its end and without blanks around it; false when there is none. */
bool topo_text_line(struct topo_text *t, struct topo_slice *line);

/* Take the next blank-separated word off the front of `rest`; false when none is left. */
bool topo_word(struct topo_slice *rest, struct topo_slice *word);

struct topo_slice topo_trim(struct topo_slice s);
bool topo_slice_is(struct topo_slice s, const char *text);
bool topo_slice_begins(struct topo_slice s, const char *text);

/* Take `text` off the front of `s` where it stands there. */
bool topo_slice_skip(struct topo_slice *s, const char *text);

/*
 * A plain decimal number, the whole slice, from 0 to `limit`.
 * 0, -EINVAL when it is none, -ERANGE when it is larger or negative.
 */
int topo_slice_u64(struct topo_slice s, uint64_t limit, uint64_t *out);
int topo_slice_uint(struct topo_slice s, unsigned int limit, unsigned int *out);

/* At most 40 characters of a slice for a message: printf("%.*s", TOPO_SHOW(s)). */
#define TOPO_SHOW(s) (int)((s).len < 40 ? (s).len : 40), (s).at

#endif
