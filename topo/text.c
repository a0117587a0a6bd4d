/* SPDX-License-Identifier: MIT */
#include "text.h"

#include "../engine/why.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct topo_slice topo_slice_of(const char *text)
{
	return (struct topo_slice){.at = text, .len = strlen(text)};
}

struct topo_slice topo_trim(struct topo_slice s)
{
	while (s.len && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

bool topo_text_line(struct topo_text *t, struct topo_slice *line)
{
	const char *newline;

	if (t->at == t->end)
		return false;
	newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	line->at = t->at;
	line->len = (size_t)((newline ? newline : t->end) - t->at);
	t->at = newline ? newline + 1 : t->end;
	t->line++;
	*line = topo_trim(*line);
	return true;
}

bool topo_word(struct topo_slice *rest, struct topo_slice *word)
{
	struct topo_slice s = topo_trim(*rest);
	size_t n = 0;

	while (n < s.len && !is_blank(s.at[n]))
		n++;
	*word = (struct topo_slice){.at = s.at, .len = n};
	*rest = (struct topo_slice){.at = s.at + n, .len = s.len - n};
	return n > 0;
}

bool topo_slice_is(struct topo_slice s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.at, text, s.len);
}

bool topo_slice_begins(struct topo_slice s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= n && !memcmp(s.at, text, n);
}

bool topo_slice_skip(struct topo_slice *s, const char *text)
{
	size_t n = strlen(text);

	if (!topo_slice_begins(*s, text))
		return false;
	s->at += n;
	s->len -= n;
	return true;
}

int topo_slice_u64(struct topo_slice s, uint64_t limit, uint64_t *out)
{
	char text[24];
	int64_t value;
	int err;

	if (!s.len)
		return -EINVAL;
	for (size_t i = s.at[0] == '-' && s.len > 1; i < s.len; i++)
		if (!isdigit((unsigned char)s.at[i]))
			return -EINVAL;
	if (s.len >= sizeof(text))
		return -ERANGE;
	memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	err = nb_parse_i64(text, &value);
	if (err)
		return err;
	if (value < 0 || (uint64_t)value > limit)
		return -ERANGE;
	*out = (uint64_t)value;
	return 0;
}

int topo_slice_uint(struct topo_slice s, unsigned int limit, unsigned int *out)
{
	uint64_t value;
	int err = topo_slice_u64(s, limit, &value);

	if (!err)
		*out = (unsigned int)value;
	return err;
}
