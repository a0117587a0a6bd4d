/* SPDX-License-Identifier: MIT */
/*
 * line: a machine in one line, "2 nodes x 24 cpus x 64G + 1 node x 256G at 40".
 *
 *   line  := group { "+" group }
 *   group := COUNT ("node" | "nodes") { "x" part } { "at" DISTANCE | "tier" TIER }
 *   part  := CPUS ("cpu" | "cpus") | SIZE
 *
 * CPUS and SIZE are those of each node; each may be given once, in any order, and what is not given
 * is none. SIZE is a number with a unit (K, M, G, T, P; powers of 1024; "iB" or "B" may follow).
 * Ids count from 0 in the order of writing. DISTANCE holds among the nodes of the group and between
 * them and every node written before; 20 where it is not given. TIER is 0 for nodes with CPUs and 1
 * for those without where it is not given. Blanks are free; "*" may stand for "x". Letters may be
 * capital.
 */
#include "build.h"

#include "../engine/why.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TIER = NB_MAX_NODES - 1 };

struct token {
	struct topo_slice text;
	unsigned int column; /* from 1 */
};

struct parser {
	struct topo_build *b;
	const char *start, *at, *end;
	struct token token; /* the one to be taken next; empty at the end */
	unsigned int cpus;  /* handed out so far */
};

struct group {
	unsigned int nodes, cpus, distance, tier;
	uint64_t bytes;
	bool has_cpus, has_bytes, has_distance, has_tier;
};

static bool is_part_of_number(char c)
{
	return isdigit((unsigned char)c) || c == '.' || c == '-';
}

/* "x" stands for itself: no word of the grammar has one, so blanks around it are free. */
static bool is_part_of_word(char c)
{
	return isalpha((unsigned char)c) && c != 'x' && c != 'X';
}

/* A token is a number, a word, or any other single character. */
static size_t token_length(const struct parser *p)
{
	const char *c = p->at;

	if (is_part_of_number(*c))
		while (c < p->end && is_part_of_number(*c))
			c++;
	else if (is_part_of_word(*c))
		while (c < p->end && is_part_of_word(*c))
			c++;
	else
		c++;
	return (size_t)(c - p->at);
}

static void advance(struct parser *p)
{
	while (p->at < p->end && isspace((unsigned char)*p->at))
		p->at++;
	p->token.column = (unsigned int)(p->at - p->start) + 1;
	p->token.text = (struct topo_slice){.at = p->at, .len = 0};
	if (p->at == p->end)
		return;
	p->token.text.len = token_length(p);
	p->at += p->token.text.len;
}

static bool token_is(const struct parser *p, const char *word)
{
	return p->token.text.len == strlen(word) &&
	       !strncasecmp(p->token.text.at, word, p->token.text.len);
}

static bool take(struct parser *p, const char *word)
{
	if (!token_is(p, word))
		return false;
	advance(p);
	return true;
}

static int expected(const struct parser *p, const char *what)
{
	const struct token *t = &p->token;

	if (!t->text.len)
		return topo_refuse(
			p->b, 0, "column %u: the line ends; expected %s", t->column, what);
	return topo_refuse(
		p->b, 0, "column %u: \"%.*s\"; expected %s", t->column, TOPO_SHOW(t->text), what);
}

static int take_number(
	struct parser *p, unsigned int min, unsigned int max, const char *what, unsigned int *out)
{
	char bounds[80];
	unsigned int value;
	int err = topo_slice_uint(p->token.text, max, &value);

	if (err || value < min) {
		snprintf(bounds, sizeof(bounds), "%s, %u to %u", what, min, max);
		return expected(p, bounds);
	}
	*out = value;
	advance(p);
	return 0;
}

/* The number is in `number`, its unit is the token. */
static int take_size(struct parser *p, struct group *g, const struct token *number)
{
	char text[64];
	size_t n = number->text.len, unit = p->token.text.len;

	if (g->has_bytes)
		return expected(p, "one size for each group");
	if (n + unit >= sizeof(text))
		return expected(p, "a size such as 64G");
	memcpy(text, number->text.at, n);
	memcpy(text + n, p->token.text.at, unit);
	text[n + unit] = '\0';
	if (!strchr("KMGTPkmgtp", text[n]) || nb_parse_bytes(text, &g->bytes) ||
		g->bytes > TOPO_MAX_NODE_BYTES)
		return topo_refuse(p->b, 0,
			"column %u: \"%s\"; expected a size with a unit K, M, G or T, such as 64G",
			number->column, text);
	g->has_bytes = true;
	advance(p);
	return 0;
}

static int take_cpus(struct parser *p, struct group *g, const struct token *number)
{
	if (g->has_cpus)
		return expected(p, "one number of cpus for each group");
	if (topo_slice_uint(number->text, NB_MAX_CPUS, &g->cpus))
		return topo_refuse(p->b, 0,
			"column %u: \"%.*s\"; expected a number of cpus, 0 to %u", number->column,
			TOPO_SHOW(number->text), NB_MAX_CPUS);
	g->has_cpus = true;
	advance(p);
	return 0;
}

/* After "x": a number and what it counts. */
static int take_part(struct parser *p, struct group *g)
{
	struct token number = p->token;

	if (!number.text.len || !is_part_of_number(number.text.at[0]))
		return expected(p, "a number of cpus or a size, such as 24 cpus or 64G");
	advance(p);
	if (!p->token.text.len || !isalpha((unsigned char)p->token.text.at[0]))
		return expected(p, "\"cpus\" or a unit such as G");
	if (token_is(p, "cpu") || token_is(p, "cpus"))
		return take_cpus(p, g, &number);
	return take_size(p, g, &number);
}

static int take_distance(struct parser *p, struct group *g)
{
	if (g->has_distance)
		return expected(p, "one distance for each group");
	g->has_distance = true;
	return take_number(
		p, NB_DISTANCE_LOCAL, NB_DISTANCE_UNREACHABLE, "a distance", &g->distance);
}

static int take_tier(struct parser *p, struct group *g)
{
	if (g->has_tier)
		return expected(p, "one tier for each group");
	g->has_tier = true;
	return take_number(p, 0, MAX_TIER, "a tier", &g->tier);
}

static int take_group(struct parser *p, struct group *g)
{
	int err;

	*g = (struct group){.distance = NB_DISTANCE_REMOTE};
	err = take_number(p, 1, NB_MAX_NODES, "a number of nodes", &g->nodes);
	if (!err && !take(p, "nodes") && !take(p, "node"))
		err = expected(p, "\"nodes\"");
	while (!err && (take(p, "x") || take(p, "*")))
		err = take_part(p, g);
	while (!err && (token_is(p, "at") || token_is(p, "tier")))
		err = take(p, "at") ? take_distance(p, g) : take(p, "tier") ? take_tier(p, g) : 0;
	if (!err && !g->has_cpus && !g->has_bytes)
		err = expected(p, "\"x\" and the cpus or the size of each node");
	if (!g->has_tier)
		g->tier = g->cpus ? 0 : 1;
	return err;
}

static int add_node(struct parser *p, const struct group *g)
{
	struct topo_set cpus = {0};
	unsigned int slot = p->b->nr_slots;
	int err = topo_build_node(p->b, slot, 0);

	if (err < 0)
		return err;
	for (unsigned int i = 0; i < g->cpus; i++)
		topo_set_add(&cpus, p->cpus++);
	topo_build_cpus(p->b, slot, &cpus, NULL, 0);
	p->b->slot[slot].node.tier = (int)g->tier;
	p->b->slot[slot].has_tier = true;
	return topo_build_memory(p->b, slot, g->bytes, 0);
}

static int add_group(struct parser *p, const struct group *g, uint8_t *distance)
{
	int err = 0;

	if (p->b->nr_slots + g->nodes > NB_MAX_NODES)
		return topo_refuse(p->b, 0, "more than %u nodes in all", NB_MAX_NODES);
	if (p->cpus + (uint64_t)g->nodes * g->cpus > NB_MAX_CPUS)
		return topo_refuse(p->b, 0, "more than %u cpus in all", NB_MAX_CPUS);
	for (unsigned int i = 0; !err && i < g->nodes; i++) {
		distance[p->b->nr_slots] = (uint8_t)g->distance;
		err = add_node(p, g);
	}
	return err;
}

/* Between two nodes the distance of the one written later holds. */
static int add_distances(struct topo_build *b, const uint8_t *distance)
{
	int err = topo_build_matrix(b);

	for (unsigned int i = 0; !err && i < b->nr_slots; i++)
		for (unsigned int j = 0; !err && j < b->nr_slots; j++)
			err = topo_build_distance(
				b, i, j, i == j ? NB_DISTANCE_LOCAL : distance[i > j ? i : j], 0);
	return err;
}

static int parse(struct parser *p)
{
	uint8_t distance[NB_MAX_NODES];
	struct group g;
	bool said = false;
	int err;

	advance(p);
	do {
		err = take_group(p, &g);
		if (!err)
			err = add_group(p, &g, distance);
		said |= g.has_distance;
	} while (!err && take(p, "+"));
	if (!err && p->token.text.len)
		err = expected(p, "\"x\", \"at\", \"tier\" or \"+\"");
	if (!err && said)
		err = add_distances(p->b, distance);
	return err ? err : topo_build_finish(p->b);
}

int topo_parse_line(struct topo_info *out, const char *text, size_t len, char *why, size_t why_len)
{
	struct parser p = {.start = text, .at = text, .end = text + len};
	int err = topo_build_begin(&p.b, out, "topology line", why, why_len);

	if (err)
		return err;
	out->kind = TOPO_LINE;
	err = parse(&p);
	topo_build_end(p.b);
	return err;
}
