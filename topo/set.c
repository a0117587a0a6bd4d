/* SPDX-License-Identifier: MIT */
#include "set.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SET_WORDS = TOPO_SET_BITS / 64 };

/* One item of a list: ids from first to last, of which the first `used` of each `group` count. */
struct range {
	unsigned int first, last, used, group;
};

unsigned int topo_set_count(const struct topo_set *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SET_WORDS; i++)
		n += (unsigned int)__builtin_popcountll(s->word[i]);
	return n;
}

bool topo_set_within(const struct topo_set *a, const struct topo_set *b)
{
	for (unsigned int i = 0; i < SET_WORDS; i++)
		if (a->word[i] & ~b->word[i])
			return false;
	return true;
}

struct topo_set topo_set_minus(const struct topo_set *a, const struct topo_set *b)
{
	struct topo_set out;

	for (unsigned int i = 0; i < SET_WORDS; i++)
		out.word[i] = a->word[i] & ~b->word[i];
	return out;
}

int topo_set_next(const struct topo_set *s, int from)
{
	unsigned int i = (unsigned int)from / 64;
	uint64_t word;

	if (from >= TOPO_SET_BITS)
		return -1;
	word = s->word[i] & (~UINT64_C(0) << (from % 64));
	while (!word && ++i < SET_WORDS)
		word = s->word[i];
	return word ? (int)(i * 64) + __builtin_ctzll(word) : -1;
}

/* Split at the first `c`: what stands before it is returned, what follows stays in `rest`. */
static struct topo_slice split(struct topo_slice *rest, char c, bool *found)
{
	const char *at = memchr(rest->at, c, rest->len);
	struct topo_slice head = *rest;

	*found = at != NULL;
	if (!at)
		return head;
	head.len = (size_t)(at - rest->at);
	rest->at = at + 1;
	rest->len -= head.len + 1;
	return head;
}

/* "used/group", after the colon. */
static int parse_stride(struct range *r, struct topo_slice text)
{
	bool slash;
	struct topo_slice used = split(&text, '/', &slash);
	int err;

	if (!slash)
		return -EINVAL;
	err = topo_slice_uint(used, TOPO_SET_BITS, &r->used);
	if (!err)
		err = topo_slice_uint(text, TOPO_SET_BITS, &r->group);
	if (err)
		return err;
	return r->used && r->used <= r->group ? 0 : -ERANGE;
}

static int parse_range(struct range *r, struct topo_slice text, unsigned int limit)
{
	bool colon, dash;
	struct topo_slice stride = text;
	struct topo_slice last = split(&stride, ':', &colon);
	struct topo_slice first = split(&last, '-', &dash);
	int err = topo_slice_uint(first, limit - 1, &r->first);

	r->last = r->first;
	r->used = r->group = 1;
	if (!err && dash)
		err = topo_slice_uint(last, limit - 1, &r->last);
	if (!err && colon)
		err = dash ? parse_stride(r, stride) : -EINVAL;
	if (err)
		return err;
	return r->first <= r->last ? 0 : -ERANGE;
}

static int add_item(struct topo_set *out, struct topo_slice item, unsigned int limit)
{
	struct range r;
	int err = parse_range(&r, item, limit);

	if (err)
		return err;
	for (unsigned int id = r.first; id <= r.last; id++)
		if ((id - r.first) % r.group < r.used)
			topo_set_add(out, id);
	return 0;
}

/* One blank-separated word: items between commas. A comma at the end is how a wrapped list breaks.
 */
static int add_word(struct topo_set *out, struct topo_slice word, unsigned int limit)
{
	bool comma = true;

	while (comma && word.len) {
		struct topo_slice item = split(&word, ',', &comma);
		int err = add_item(out, item, limit);

		if (err)
			return err;
	}
	return 0;
}

int topo_set_parse(struct topo_set *out, struct topo_slice list, unsigned int limit)
{
	struct topo_slice word;

	assert(limit > 0 && limit <= TOPO_SET_BITS);
	memset(out, 0, sizeof(*out));
	while (topo_word(&list, &word)) {
		int err = add_word(out, word, limit);

		if (err)
			return err;
	}
	return 0;
}

/* The last id of the run that starts at `first`. */
static int run_end(const struct topo_set *s, int first)
{
	while (topo_set_has(s, (unsigned int)first + 1))
		first++;
	return first;
}

static void format_item(char item[32], bool more, int first, int last)
{
	const char *comma = more ? "," : "";

	if (first == last)
		snprintf(item, 32, "%s%d", comma, first);
	else
		snprintf(item, 32, "%s%d-%d", comma, first, last);
}

size_t topo_set_format(const struct topo_set *s, char *text, size_t size)
{
	static const char cut[] = "...";
	size_t used = 0;

	assert(size >= sizeof(cut));
	text[0] = '\0';
	for (int first = topo_set_next(s, 0), last; first >= 0;
		first = topo_set_next(s, last + 1)) {
		char item[32];
		size_t n;

		last = run_end(s, first);
		format_item(item, used > 0, first, last);
		n = strlen(item);
		/* Keep room for the dots, unless this item ends the list. */
		if (used + n + (topo_set_next(s, last + 1) < 0 ? 1 : sizeof(cut)) > size) {
			memcpy(text + used, cut, sizeof(cut));
			return used + sizeof(cut) - 1;
		}
		memcpy(text + used, item, n + 1);
		used += n;
	}
	return used;
}
