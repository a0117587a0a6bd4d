/* SPDX-License-Identifier: MIT */
/*
 * numactl: the text of `numactl -H`, as printed, mailed or pasted.
 *
 *   available: 4 nodes (0-3)
 *   node 0 cpus: 0 1 2 3          (may go on in the next lines; may be empty or missing)
 *   node 0 size: 64167 MB         (or "<not available>")
 *   node 0 free: 62245 MB         (may be missing)
 *   node distances:               (or "No distance information available.")
 *   node   0   1   2   3          (ids, then a row for each; where a line breaks does not matter)
 *     0:  10  21  14  24
 *
 * The matrix alone is read too, with or without its header. Lines that begin with '#' or '$' are
 * the command somebody pasted along. A text that ends early is refused, never filled up.
 */
#include "build.h"

#include "../engine/why.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a line without a name of its own goes on with. */
enum going_on { NOTHING, CPUS, MATRIX };

/* Which lines of a node were seen. */
enum { SEEN_CPUS = 1, SEEN_SIZE = 2, SEEN_FREE = 4 };

struct matrix {
	bool begun;
	bool header_done; /* the ids over the columns are complete */
	bool bare;	  /* values only: neither ids over the columns nor before the rows */
	bool unavailable; /* the text says that there is none */
	unsigned int nr_cols;
	int16_t col[NB_MAX_NODES]; /* slots of the columns, in order */
	unsigned int rows;	   /* rows begun */
	unsigned int row;	   /* slot of the row being read */
	unsigned int filled;	   /* values of it */
	struct topo_set rows_seen; /* by slot */
};

struct numactl {
	struct topo_build *b;
	struct topo_text text;
	enum going_on going_on;
	bool has_announced, has_ids;
	unsigned int announced;	    /* nodes, by the first line */
	struct topo_set ids;	    /* likewise, when it names them */
	unsigned int cpus_slot;	    /* the node whose CPUs are being listed */
	uint8_t seen[NB_MAX_NODES]; /* by slot */
	struct matrix m;
};

static int truncated(struct numactl *n)
{
	return topo_refuse(n->b, n->text.line, "truncated: %u announced, %u seen, line %u",
		n->announced, n->b->nr_slots, n->text.line);
}

/* Whether nothing but blank lines follows. */
static bool at_end(const struct numactl *n)
{
	struct topo_text rest = n->text;
	struct topo_slice line;

	while (topo_text_line(&rest, &line))
		if (line.len)
			return false;
	return true;
}

/* A line that cannot be read: where the text stops too early that is the reason, else the line
 * itself. */
static int bad_line(struct numactl *n, struct topo_slice line, const char *expected)
{
	if (at_end(n) && n->has_announced && n->b->nr_slots < n->announced)
		return truncated(n);
	return topo_refuse(n->b, n->text.line, "\"%.*s\"%s; expected %s", TOPO_SHOW(line),
		at_end(n) ? " is the last line" : "", expected);
}

/* "(0,8,252-255)" */
static int parse_ids(struct numactl *n, struct topo_slice list)
{
	struct topo_slice inner = list;

	if (!topo_slice_skip(&inner, "(") || !inner.len || inner.at[inner.len - 1] != ')')
		return bad_line(n, list, "node ids such as (0-3) after the number of nodes");
	inner.len--;
	if (topo_set_parse(&n->ids, inner, NB_MAX_NODES))
		return topo_refuse(n->b, n->text.line,
			"\"%.*s\"; expected a list of node ids below %u", TOPO_SHOW(list),
			NB_MAX_NODES);
	n->has_ids = true;
	if (topo_set_count(&n->ids) == n->announced)
		return 0;
	return topo_refuse(n->b, n->text.line, "%u nodes but %u ids in %.*s; expected as many",
		n->announced, topo_set_count(&n->ids), TOPO_SHOW(list));
}

/* "available: 4 nodes (0-3)" */
static int parse_available(struct numactl *n, struct topo_slice line)
{
	struct topo_slice rest = line, count, word;

	if (n->has_announced || n->b->nr_slots)
		return topo_refuse(
			n->b, n->text.line, "\"available:\" again; expected one machine");
	topo_slice_skip(&rest, "available:");
	if (!topo_word(&rest, &count) || !topo_word(&rest, &word) ||
		!topo_slice_begins(word, "node"))
		return bad_line(n, line, "\"available: N nodes (LIST)\"");
	if (topo_slice_uint(count, NB_MAX_NODES, &n->announced))
		return topo_refuse(n->b, n->text.line, "\"%.*s\" nodes; expected 1 to %u",
			TOPO_SHOW(count), NB_MAX_NODES);
	if (!n->announced)
		return topo_refuse(n->b, n->text.line,
			"0 nodes; expected at least one (this system has no NUMA)");
	n->has_announced = true;
	rest = topo_trim(rest);
	return rest.len ? parse_ids(n, rest) : 0;
}

/* The slot of a node that a line is about, named now if it was not before. */
static int node_slot(struct numactl *n, unsigned int id)
{
	int slot = topo_build_slot(n->b, id);

	if (slot >= 0)
		return slot;
	if (n->has_ids && !topo_set_has(&n->ids, id))
		return topo_refuse(
			n->b, n->text.line, "node %u was not announced in the first line", id);
	if (n->has_announced && n->b->nr_slots == n->announced)
		return topo_refuse(n->b, n->text.line, "node %u is one more than the %u announced",
			id, n->announced);
	return topo_build_node(n->b, id, n->text.line);
}

static int add_cpus(struct numactl *n, struct topo_slice line)
{
	struct topo_set cpus;
	int err = topo_set_parse(&cpus, line, NB_MAX_CPUS);

	if (err)
		return bad_line(n, topo_trim(line), "CPU ids below 8192 between blanks");
	for (int cpu = topo_set_next(&cpus, 0); cpu >= 0; cpu = topo_set_next(&cpus, cpu + 1))
		if (n->b->slot_of_cpu[cpu] == (int16_t)n->cpus_slot)
			return topo_refuse(n->b, n->text.line,
				"cpu %d is on node %d twice; expected once", cpu,
				n->b->slot[n->cpus_slot].node.id);
	topo_build_cpus(n->b, n->cpus_slot, &cpus, NULL, n->text.line);
	return 0;
}

/* "64167 MB" or "<not available>" (then *said stays false). numactl's MB are MiB. */
static int parse_mb(struct numactl *n, struct topo_slice line, bool *said, uint64_t *bytes)
{
	struct topo_slice rest = line, number, unit;
	uint64_t mb;
	int err;

	*said = false;
	if (topo_slice_is(topo_trim(line), "<not available>"))
		return 0;
	if (!topo_word(&rest, &number) || !topo_word(&rest, &unit) || topo_trim(rest).len ||
		!topo_slice_is(unit, "MB"))
		return bad_line(n, line, "\"NUMBER MB\"");
	err = topo_slice_u64(number, TOPO_MAX_NODE_BYTES >> 20, &mb);
	if (err == -ERANGE)
		return topo_refuse(n->b, n->text.line, "%.*s MB; expected 0 to %llu",
			TOPO_SHOW(number), (unsigned long long)(TOPO_MAX_NODE_BYTES >> 20));
	if (err)
		return bad_line(n, line, "\"NUMBER MB\"");
	*said = true;
	*bytes = mb << 20;
	return 0;
}

static int parse_size(struct numactl *n, unsigned int slot, struct topo_slice line)
{
	bool said;
	uint64_t bytes;
	int err = parse_mb(n, line, &said, &bytes);

	return err || !said ? err : topo_build_memory(n->b, slot, bytes, n->text.line);
}

static int parse_free(struct numactl *n, unsigned int slot, struct topo_slice line)
{
	bool said;
	uint64_t bytes;
	int err = parse_mb(n, line, &said, &bytes);

	return err || !said ? err : topo_build_free(n->b, slot, bytes, n->text.line);
}

static int parse_cpus(struct numactl *n, unsigned int slot, struct topo_slice line)
{
	n->b->cpus_said = true;
	n->cpus_slot = slot;
	n->going_on = CPUS;
	return add_cpus(n, line);
}

static const struct {
	const char *name;
	uint8_t seen;
	int (*parse)(struct numactl *n, unsigned int slot, struct topo_slice rest);
} fields[] = {
	{"cpus:", SEEN_CPUS, parse_cpus},
	{"size:", SEEN_SIZE, parse_size},
	{"free:", SEEN_FREE, parse_free},
};

static int parse_field(
	struct numactl *n, struct topo_slice line, struct topo_slice rest, unsigned int id)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		int slot;

		if (!topo_slice_skip(&rest, fields[i].name))
			continue;
		slot = node_slot(n, id);
		if (slot < 0)
			return slot;
		if (n->seen[slot] & fields[i].seen)
			return topo_refuse(n->b, n->text.line,
				"node %u %s again; expected each node once", id, fields[i].name);
		n->seen[slot] |= fields[i].seen;
		return fields[i].parse(n, (unsigned int)slot, rest);
	}
	return bad_line(n, line, "\"cpus:\", \"size:\" or \"free:\" after the node's id");
}

/* "node 3 cpus: ..."; `rest` is what follows "node". */
static int parse_node(struct numactl *n, struct topo_slice line, struct topo_slice rest)
{
	struct topo_slice word;
	unsigned int id;

	if (!topo_word(&rest, &word) || topo_slice_uint(word, NB_MAX_NODES - 1, &id))
		return bad_line(
			n, line, "\"node ID cpus:\", \"size:\" or \"free:\", ID below 1024");
	return parse_field(n, line, topo_trim(rest), id);
}

/* One id over the columns. In a matrix that stands alone this is where the nodes are named. */
static int add_column(struct numactl *n, struct topo_slice word)
{
	unsigned int id;
	int slot;

	if (topo_slice_uint(word, NB_MAX_NODES - 1, &id))
		return bad_line(n, word, "a node id below 1024 over each column");
	slot = n->has_announced ? topo_build_slot(n->b, id) : node_slot(n, id);
	if (slot < 0)
		return topo_refuse(n->b, n->text.line,
			"column %u of the distances; expected nodes described above, once", id);
	if (n->m.nr_cols == NB_MAX_NODES)
		return topo_refuse(n->b, n->text.line, "more than %u columns", NB_MAX_NODES);
	n->m.col[n->m.nr_cols++] = (int16_t)slot;
	return 0;
}

static int end_header(struct numactl *n)
{
	struct topo_set slots = {0};

	n->m.header_done = true;
	for (unsigned int i = 0; i < n->m.nr_cols; i++)
		topo_set_add(&slots, (unsigned int)n->m.col[i]);
	if (topo_set_count(&slots) != n->m.nr_cols || n->m.nr_cols != n->b->nr_slots ||
		!n->m.nr_cols)
		return topo_refuse(n->b, n->text.line,
			"%u columns of distances for %u nodes; expected each node once",
			n->m.nr_cols, n->b->nr_slots);
	return topo_build_matrix(n->b);
}

static int short_matrix(struct numactl *n)
{
	if (n->m.rows && n->m.filled < n->m.nr_cols)
		return topo_refuse(n->b, n->text.line,
			"%u distances in the row of node %d; expected %u", n->m.filled,
			n->b->slot[n->m.row].node.id, n->m.nr_cols);
	return topo_refuse(n->b, n->text.line,
		"truncated: %u rows of distances announced, %u seen, line %u", n->m.nr_cols,
		n->m.rows, n->text.line);
}

static int begin_row(struct numactl *n, unsigned int slot)
{
	struct matrix *m = &n->m;

	if (m->rows && m->filled < m->nr_cols)
		return short_matrix(n);
	if (topo_set_has(&m->rows_seen, slot))
		return topo_refuse(n->b, n->text.line, "row of node %d again; expected each once",
			n->b->slot[slot].node.id);
	topo_set_add(&m->rows_seen, slot);
	m->row = slot;
	m->filled = 0;
	m->rows++;
	return 0;
}

/* "252:" */
static int parse_row_id(struct numactl *n, struct topo_slice word)
{
	struct topo_slice number = {.at = word.at, .len = word.len - 1};
	unsigned int id;
	int slot, err = 0;

	if (!n->m.header_done)
		err = end_header(n);
	if (err)
		return err;
	slot = topo_slice_uint(number, NB_MAX_NODES - 1, &id) ? -1 : topo_build_slot(n->b, id);
	if (slot < 0)
		return bad_line(n, word, "the id of one of the nodes and a colon");
	return begin_row(n, (unsigned int)slot);
}

static int add_value(struct numactl *n, struct topo_slice word)
{
	struct matrix *m = &n->m;
	unsigned int value;
	int err = 0;

	if (topo_slice_uint(word, UINT16_MAX, &value))
		return topo_refuse(n->b, n->text.line, "\"%.*s\"; expected a distance, 10..255",
			TOPO_SHOW(word));
	if (m->bare && (!m->rows || (m->filled == m->nr_cols && m->rows < m->nr_cols)))
		err = begin_row(n, m->rows);
	if (!err && (!m->rows || m->filled == m->nr_cols))
		err = topo_refuse(n->b, n->text.line,
			"\"%.*s\" is one distance too many; expected %u in each row of %u",
			TOPO_SHOW(word), m->nr_cols, m->nr_cols);
	if (err)
		return err;
	return topo_build_distance(
		n->b, m->row, (unsigned int)m->col[m->filled++], value, n->text.line);
}

static int parse_matrix(struct numactl *n, struct topo_slice rest)
{
	struct topo_slice word;
	int err = 0;

	while (!err && topo_word(&rest, &word)) {
		if (word.at[word.len - 1] == ':' && !n->m.bare)
			err = parse_row_id(n, word);
		else
			err = n->m.header_done ? add_value(n, word) : add_column(n, word);
	}
	return err;
}

/* The line over the columns, "node   0   1"; `rest` is what follows "node". */
static int begin_matrix(struct numactl *n, struct topo_slice rest)
{
	if (n->m.nr_cols)
		return topo_refuse(n->b, n->text.line, "a second matrix; expected one");
	if (n->has_announced && n->b->nr_slots < n->announced)
		return truncated(n);
	n->m.begun = true;
	n->going_on = MATRIX;
	return parse_matrix(n, rest);
}

/* Rows of values and nothing else: as many nodes as the first row has values. */
static int begin_bare(struct numactl *n, struct topo_slice line)
{
	struct topo_slice rest = line, word;
	int err = 0;

	n->m.begun = n->m.bare = true;
	n->going_on = MATRIX;
	for (unsigned int id = 0; topo_word(&rest, &word); id++) {
		if (id == NB_MAX_NODES)
			return topo_refuse(
				n->b, n->text.line, "more than %u columns", NB_MAX_NODES);
		n->m.col[n->m.nr_cols++] = (int16_t)topo_build_node(n->b, id, n->text.line);
	}
	topo_note(n->b->out, "a matrix without node ids: rows and columns taken as nodes 0 to %u",
		n->m.nr_cols - 1);
	err = end_header(n);
	return err ? err : parse_matrix(n, line);
}

static bool all_digits(struct topo_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isdigit((unsigned char)s.at[i]) && s.at[i] != ' ' && s.at[i] != '\t')
			return false;
	return s.len > 0;
}

static int parse_going_on(struct numactl *n, struct topo_slice line)
{
	if (n->going_on == CPUS && isdigit((unsigned char)line.at[0]))
		return add_cpus(n, line);
	if (n->going_on == MATRIX && isdigit((unsigned char)line.at[0]))
		return parse_matrix(n, line);
	if (!n->b->nr_slots && !n->has_announced && all_digits(line))
		return begin_bare(n, line);
	if (n->has_announced || n->b->nr_slots)
		return bad_line(n, line, "the next line of `numactl -H`");
	return topo_refuse(n->b, n->text.line,
		"\"%.*s\"; expected the text of `numactl -H`, \"available: N nodes\"",
		TOPO_SHOW(line));
}

/* "0 1 2" and not "0 cpus:": what follows "node" are the columns of the matrix. */
static bool is_header(struct topo_slice rest)
{
	struct topo_slice word;

	while (topo_word(&rest, &word))
		if (!isdigit((unsigned char)word.at[0]))
			return false;
	return true;
}

static int parse_line(struct numactl *n, struct topo_slice line)
{
	struct topo_slice rest = line, word;

	if (!line.len || line.at[0] == '#' || line.at[0] == '$')
		return 0;
	topo_word(&rest, &word);
	if (topo_slice_is(word, "available:"))
		return parse_available(n, line);
	if (topo_slice_is(line, "No distance information available.")) {
		n->m.unavailable = true;
		n->going_on = NOTHING;
		return 0;
	}
	if (!topo_slice_is(word, "node"))
		return parse_going_on(n, line);
	n->going_on = NOTHING;
	if (topo_slice_is(topo_trim(rest), "distances:"))
		return 0;
	return is_header(rest) ? begin_matrix(n, rest) : parse_node(n, line, rest);
}

static int check_sizes(struct numactl *n)
{
	for (unsigned int i = 0; n->has_announced && i < n->b->nr_slots; i++)
		if (!(n->seen[i] & SEEN_SIZE))
			return topo_refuse(n->b, n->text.line,
				"truncated: no \"size:\" of node %d, line %u",
				n->b->slot[i].node.id, n->text.line);
	return 0;
}

static int check_matrix(struct numactl *n)
{
	if (n->m.begun && !n->m.header_done)
		return topo_refuse(n->b, n->text.line,
			"truncated: no distances below the node ids, line %u", n->text.line);
	if (n->m.begun && (n->m.rows < n->m.nr_cols || n->m.filled < n->m.nr_cols))
		return short_matrix(n);
	if (!n->m.begun && !n->m.unavailable && n->b->nr_slots > 1)
		return topo_refuse(n->b, n->text.line,
			"truncated: no distances; expected the matrix or \"No distance information "
			"available.\"");
	return 0;
}

static int check_complete(struct numactl *n)
{
	int err;

	if (n->has_announced && n->b->nr_slots < n->announced)
		return truncated(n);
	if (!n->b->nr_slots)
		return topo_refuse(n->b, 0, "empty; expected the text of `numactl -H`");
	err = check_sizes(n);
	return err ? err : check_matrix(n);
}

static void note_free(struct numactl *n)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < n->b->nr_slots; i++)
		missing += n->b->slot[i].has_memory && !n->b->slot[i].has_free;
	if (missing)
		topo_note(n->b->out, "free memory of %u node%s not said: all of it taken as free",
			missing, missing == 1 ? "" : "s");
}

static int parse(struct numactl *n)
{
	struct topo_slice line;
	int err = 0;

	if (memchr(n->text.at, '\0', (size_t)(n->text.end - n->text.at)))
		return topo_refuse(n->b, 0, "a NUL byte; expected the text of `numactl -H`");
	while (!err && topo_text_line(&n->text, &line))
		err = parse_line(n, line);
	if (!err)
		err = check_complete(n);
	if (err)
		return err;
	note_free(n);
	return topo_build_finish(n->b);
}

int topo_parse_numactl(struct topo_info *out, const char *text, size_t len, const char *name,
	char *why, size_t why_len)
{
	struct numactl *n = calloc(1, sizeof(*n));
	int err;

	memset(out, 0, sizeof(*out));
	if (!n)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	n->text = (struct topo_text){.at = text, .end = text + len};
	err = topo_build_begin(&n->b, out, name, why, why_len);
	if (!err) {
		out->kind = TOPO_NUMACTL;
		err = parse(n);
	}
	topo_build_end(n->b);
	free(n);
	return err;
}
