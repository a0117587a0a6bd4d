/* SPDX-License-Identifier: MIT */
#include "hwloc_filter.h"

#include "set.h"
#include "xml.h"

#include "../engine/topology.h"
#include "../engine/why.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are kept; all others are left out with all that is in them. */
enum element {
	LEFT_OUT,
	TOPOLOGY,
	OBJECT,
	DISTANCES2,
	INDEXES,
	U64VALUES,
	MEMATTR,
	MEMATTR_VALUE,
	DISTANCES,
	LATENCY
};

static const struct {
	const char *name;
	enum element parent; /* LEFT_OUT: the root */
	enum element element;
} elements[] = {
	{"topology", LEFT_OUT, TOPOLOGY},
	{"object", TOPOLOGY, OBJECT},
	{"object", OBJECT, OBJECT},
	{"distances2", TOPOLOGY, DISTANCES2},
	{"indexes", DISTANCES2, INDEXES},
	{"u64values", DISTANCES2, U64VALUES},
	{"memattr", TOPOLOGY, MEMATTR},
	{"memattr_value", MEMATTR, MEMATTR_VALUE},
	{"distances", OBJECT, DISTANCES}, /* version 1 */
	{"latency", DISTANCES, LATENCY},
};

/* What an object is, as far as its place among others goes. */
enum place { NOWHERE, MACHINE, NORMAL, NODE, MEMORY_CACHE, CPU };

/*
 * What may contain memory or CPUs. The rest (devices, Misc, what is not known yet) is left out.
 * What is between the machine and its CPUs only keeps them together: it is written as a Group,
 * which has the fewest rules.
 */
static const struct {
	const char *type;
	enum place place;
	const char *written;
} types[] = {
	{"Machine", MACHINE, "Machine"},
	{"NUMANode", NODE, "NUMANode"},
	{"Node", NODE, "NUMANode"},
	{"PU", CPU, "PU"},
	{"MemCache", MEMORY_CACHE, "MemCache"},
	{"Group", NORMAL, "Group"},
	{"Package", NORMAL, "Group"},
	{"Socket", NORMAL, "Group"},
	{"Die", NORMAL, "Group"},
	{"Core", NORMAL, "Group"},
	{"Cache", NORMAL, "Group"},
	{"L1Cache", NORMAL, "Group"},
	{"L2Cache", NORMAL, "Group"},
	{"L3Cache", NORMAL, "Group"},
	{"L4Cache", NORMAL, "Group"},
	{"L5Cache", NORMAL, "Group"},
	{"L1iCache", NORMAL, "Group"},
	{"L2iCache", NORMAL, "Group"},
	{"L3iCache", NORMAL, "Group"},
};

/* Where an attribute may stand, by bit: in an element, or in an object at a place. */
#define IN(element) (1u << (element))
#define AT(place)   (1u << (16 + (place)))

enum value { NUMBER, SIGNED, REAL, BITMAP, WORD };

/* The sets of objects are not here: they are judged together. */
static const struct {
	const char *name;
	unsigned int in;
	enum value value;
} attrs[] = {
	{"subtype", AT(NODE), WORD},
	{"os_index", AT(NODE) | AT(CPU), NUMBER},
	{"gp_index", AT(NODE), NUMBER},
	{"local_memory", AT(NODE) | AT(MACHINE), NUMBER},
	{"cache_size", AT(MEMORY_CACHE), NUMBER},
	{"depth", AT(MEMORY_CACHE), NUMBER},
	{"cache_linesize", AT(MEMORY_CACHE), NUMBER},
	{"cache_associativity", AT(MEMORY_CACHE), SIGNED},
	{"cache_type", AT(MEMORY_CACHE), NUMBER},
	{"type", IN(DISTANCES2), WORD},
	{"kind", IN(DISTANCES2), NUMBER},
	{"nbobjs", IN(DISTANCES2) | IN(DISTANCES), NUMBER},
	{"name", IN(DISTANCES2) | IN(MEMATTR), WORD},
	{"indexing", IN(DISTANCES2), WORD},
	{"flags", IN(MEMATTR), NUMBER},
	{"target_obj_type", IN(MEMATTR_VALUE), WORD},
	{"target_obj_gp_index", IN(MEMATTR_VALUE), NUMBER},
	{"initiator_cpuset", IN(MEMATTR_VALUE), BITMAP},
	{"value", IN(MEMATTR_VALUE), NUMBER},
	{"value", IN(LATENCY), REAL},
	{"relative_depth", IN(DISTANCES), NUMBER},
	{"latency_base", IN(DISTANCES), REAL},
};

/* The attributes of memory that are read. */
static const char *const memattrs[] = {
	"Bandwidth",
	"Latency",
	"ReadBandwidth",
	"ReadLatency",
};

/* An open element. */
struct level {
	enum element element;
	enum place place;
	const char *written;	     /* its name in the document written */
	struct topo_set cpus, nodes; /* of an object */
	/* With the CPUs that are offline: objects side by side are in the order of these. */
	struct topo_set complete, child_complete;
	int last_first; /* the first CPU of its child that came last */
};

struct filter {
	struct topo_xml xml;
	FILE *out;
	bool tag_open; /* the tag written last may still end in "/>": libhwloc wants it so where
			  nothing follows */
	bool version1;
	unsigned int machines;
	uint64_t objects, indexes, values; /* of the matrix at hand: said, and met so far */
	struct topo_set cpus, nodes;	   /* PUs and NUMANodes met so far */
	struct topo_set machine_cpus, machine_nodes; /* that the Machine says it has */
	const char *name;
	char *why;
	size_t why_len;
	struct level level[TOPO_XML_DEPTH + 1]; /* [0] is outside of the root */
};

__attribute__((format(printf, 2, 3))) static int refuse(
	const struct filter *f, const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return nb_why(f->why, f->why_len, -EINVAL, "%s:%u: %s", f->name, f->xml.line, text);
}

static bool all_of(struct topo_slice s, size_t from, int (*is)(int))
{
	for (size_t i = from; i < s.len; i++)
		if (!is((unsigned char)s.at[i]))
			return false;
	return s.len > from;
}

/* "0x0000000f", or nothing for a word of zeroes. */
static bool is_bitmap_word(const char *word, size_t len)
{
	struct topo_slice digits = {.at = word, .len = len};

	if (!len)
		return true;
	return topo_slice_skip(&digits, "0x") && digits.len <= 8 && all_of(digits, 0, isxdigit);
}

/*
 * Words of 32 bits between commas, the last one first, up to the largest CPU id. False for anything
 * else, so for the sets without end that some versions write ("0xf...f").
 */
static bool parse_bitmap(struct topo_slice s, struct topo_set *set)
{
	size_t end = s.len;

	memset(set, 0, sizeof(*set));
	for (unsigned int word = 0; s.len && word < TOPO_SET_BITS / 32; word++) {
		size_t start = end;
		char text[16] = "0";

		while (start && s.at[start - 1] != ',')
			start--;
		if (!is_bitmap_word(s.at + start, end - start))
			return false;
		memcpy(text, s.at + start, end - start);
		set->word[word / 2] |= (uint64_t)strtoul(text, NULL, 16) << (word % 2 * 32);
		if (!start)
			return true;
		end = start - 1;
	}
	return false;
}

static void write_bitmap(struct filter *f, const char *name, const struct topo_set *set)
{
	int word = TOPO_SET_BITS / 32 - 1;

	while (word > 0 && !(uint32_t)(set->word[word / 2] >> (word % 2 * 32)))
		word--;
	fprintf(f->out, " %s=\"", name);
	for (; word >= 0; word--)
		fprintf(f->out, "0x%08x%s", (uint32_t)(set->word[word / 2] >> (word % 2 * 32)),
			word ? "," : "\"");
}

static bool is_real(struct topo_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isdigit((unsigned char)s.at[i]) && s.at[i] != '.')
			return false;
	return s.len > 0 && s.len < 24;
}

static bool is_word(struct topo_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.at[i]) && !strchr(" -_.()", s.at[i]))
			return false;
	return s.len < 64 && !memchr(s.at, '\0', s.len);
}

static bool is_value(struct topo_slice s, enum value value)
{
	uint64_t number;
	struct topo_set set;

	switch (value) {
	case NUMBER:
		return !topo_slice_u64(s, INT64_MAX, &number);
	case SIGNED:
		topo_slice_skip(&s, "-");
		return !topo_slice_u64(s, INT32_MAX, &number);
	case REAL:
		return is_real(s);
	case BITMAP:
		return parse_bitmap(s, &set);
	case WORD:
		return is_word(s);
	}
	return false;
}

static const char *const expected[] = {
	[NUMBER] = "a number",
	[SIGNED] = "a number",
	[REAL] = "a number",
	[BITMAP] = "a bitmap of up to 8192 bits",
	[WORD] = "a name",
};

static int write_attr(struct filter *f, unsigned int in, const struct topo_xml_attr *a)
{
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		if (!(attrs[i].in & in) || !topo_slice_is(a->name, attrs[i].name))
			continue;
		if (is_value(a->value, attrs[i].value)) {
			fprintf(f->out, " %s=\"%.*s\"", attrs[i].name, (int)a->value.len,
				a->value.at);
			return 0;
		}
		/* Words are names and may be anything to anybody; numbers that cannot be read are
		 * errors. */
		if (attrs[i].value == WORD)
			return 0;
		return refuse(f, "%s=\"%.*s\"; expected %s", attrs[i].name, TOPO_SHOW(a->value),
			expected[attrs[i].value]);
	}
	return 0;
}

static void find_place(struct level *l, struct topo_slice type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!topo_slice_is(type, types[i].type))
			continue;
		l->place = types[i].place;
		l->written = types[i].written;
	}
}

/* A machine is one Machine at the root. */
static int check_machine(struct filter *f, enum element parent)
{
	struct topo_slice type = topo_xml_value(&f->xml, "type");
	bool root = parent == TOPOLOGY, machine = topo_slice_is(type, "Machine");

	if (topo_slice_is(type, "System"))
		return refuse(f, "a System of several machines; expected one Machine");
	if (machine && f->machines++)
		return refuse(f, "more than one Machine; expected one");
	if (root && !machine)
		return refuse(f, "root object \"%.*s\"; expected a Machine", TOPO_SHOW(type));
	if (!root && machine)
		return refuse(f, "a Machine inside of another object; expected it at the root");
	return 0;
}

/* What may be inside of what. In version 1 nodes contain the CPUs, since then they are leaves
 * beside them. */
static bool may_contain(const struct filter *f, enum place parent, enum place child)
{
	bool memory = child == NODE || child == MEMORY_CACHE;

	switch (parent) {
	case NOWHERE:
		return child == MACHINE;
	case MACHINE:
	case NORMAL:
		return child != MACHINE;
	case MEMORY_CACHE:
		return memory;
	case NODE:
		return f->version1 && !memory;
	case CPU:
		return false;
	}
	return false;
}

static int read_set(struct filter *f, const char *name, struct topo_set *set, bool *there)
{
	struct topo_slice value = topo_xml_value(&f->xml, name);

	*there = value.at != NULL;
	memset(set, 0, sizeof(*set));
	if (!*there || parse_bitmap(value, set))
		return 0;
	/* Without nodes, version 1 says that everything is near to all that there may be. */
	*there = false;
	if (f->version1 && topo_slice_begins(value, "0xf...f"))
		return 0;
	return refuse(f, "%s=\"%.*s\"; expected a bitmap of up to %u bits", name, TOPO_SHOW(value),
		TOPO_SET_BITS);
}

/* PUs and NUMANodes are what they are numbered, once. */
static int check_identity(
	struct filter *f, const struct topo_set *set, struct topo_set *met, unsigned int limit)
{
	struct topo_slice value = topo_xml_value(&f->xml, "os_index");
	unsigned int id;

	if (topo_slice_uint(value, limit - 1, &id))
		return refuse(f, "os_index=\"%.*s\"; expected a number below %u", TOPO_SHOW(value),
			limit);
	if (topo_set_count(set) != 1 || !topo_set_has(set, id))
		return refuse(
			f, "the set of os_index=\"%u\" is another; expected that one bit", id);
	if (topo_set_has(met, id))
		return refuse(f, "os_index=\"%u\" again; expected each once", id);
	topo_set_add(met, id);
	return 0;
}

static struct topo_set both(const struct topo_set *a, const struct topo_set *b)
{
	struct topo_set outside = topo_set_minus(a, b);

	return topo_set_minus(a, &outside);
}

static bool is_empty(const struct topo_set *s)
{
	return topo_set_next(s, 0) < 0;
}

/*
 * The CPUs of objects side by side are different ones, and in ascending order of the first; memory
 * stands beside the CPUs it is near to.
 */
static int check_cpus(struct filter *f, struct level *parent, const struct level *l)
{
	struct topo_set common = both(&l->complete, &parent->child_complete);
	int first = topo_set_next(&l->complete, 0);

	if (l->place != MACHINE && (!topo_set_within(&l->cpus, &parent->cpus) ||
					   !topo_set_within(&l->complete, &parent->complete)))
		return refuse(f, "a cpuset with CPUs that the object around it has not");
	if (!f->version1 && (l->place == NODE || l->place == MEMORY_CACHE))
		return 0;
	if (is_empty(&l->complete) && l->place != NODE)
		return refuse(f, "an empty complete_cpuset; expected some CPU");
	if (!is_empty(&common))
		return refuse(
			f, "cpu %d is in two objects side by side", topo_set_next(&common, 0));
	if (first >= 0 && first < parent->last_first)
		return refuse(f,
			"cpu %d after cpu %d; expected objects in the order of their first CPUs",
			first, parent->last_first);
	parent->last_first = first;
	for (size_t i = 0; i < TOPO_SET_BITS / 64; i++)
		parent->child_complete.word[i] |= l->complete.word[i];
	return 0;
}

static int check_sets(struct filter *f, struct level *parent, const struct level *l, bool has_cpus,
	bool has_nodes)
{
	int err = 0;

	if (!has_cpus || (!has_nodes && (!f->version1 || l->place == NODE)))
		return refuse(f, "an object without %s", has_cpus ? "nodeset" : "cpuset");
	if (has_nodes && l->place != MACHINE && !topo_set_within(&l->nodes, &parent->nodes))
		return refuse(f, "a nodeset with nodes that the object around it has not");
	if (l->place == CPU)
		err = check_identity(f, &l->cpus, &f->cpus, NB_MAX_CPUS);
	if (l->place == NODE)
		err = check_identity(f, &l->nodes, &f->nodes, NB_MAX_NODES);
	return err ? err : check_cpus(f, parent, l);
}

/* What this process may use, of what there is. */
static int write_allowed(struct filter *f, const char *name, const struct topo_set *all)
{
	struct topo_set allowed;
	bool there;
	int err = read_set(f, name, &allowed, &there);

	allowed = both(&allowed, all);
	if (err || !there)
		return err;
	if (is_empty(&allowed))
		return refuse(f, "%s allows nothing of what there is", name);
	write_bitmap(f, name, &allowed);
	return 0;
}

static int write_sets(struct filter *f, const struct level *l, bool has_nodes)
{
	int err = 0;

	write_bitmap(f, "cpuset", &l->cpus);
	write_bitmap(f, "complete_cpuset", &l->complete);
	if (has_nodes) {
		write_bitmap(f, "nodeset", &l->nodes);
		write_bitmap(f, "complete_nodeset", &l->nodes);
	}
	if (l->place != MACHINE)
		return 0;
	f->machine_cpus = l->cpus;
	f->machine_nodes = l->nodes;
	err = write_allowed(f, "allowed_cpuset", &l->cpus);
	if (!err && has_nodes)
		err = write_allowed(f, "allowed_nodeset", &l->nodes);
	return err;
}

/* CPUs that are there, and with those that are offline. */
static int read_cpus(struct filter *f, struct level *l, bool *there)
{
	bool complete;
	int err = read_set(f, "cpuset", &l->cpus, there);

	if (!err)
		err = read_set(f, "complete_cpuset", &l->complete, &complete);
	if (err)
		return err;
	if (!complete)
		l->complete = l->cpus;
	if (!topo_set_within(&l->cpus, &l->complete))
		return refuse(f, "a cpuset with CPUs that its complete_cpuset has not");
	return 0;
}

static int take_object(struct filter *f, struct level *parent, struct level *l)
{
	bool has_cpus, has_nodes;
	int err = read_cpus(f, l, &has_cpus);

	if (!err)
		err = read_set(f, "nodeset", &l->nodes, &has_nodes);
	if (!err && !may_contain(f, parent->place, l->place))
		err = refuse(f, "object \"%.*s\" where it cannot be",
			TOPO_SHOW(topo_xml_value(&f->xml, "type")));
	if (!err)
		err = check_sets(f, parent, l, has_cpus, has_nodes);
	if (err)
		return err;
	fprintf(f->out, " type=\"%s\"", l->written);
	return write_sets(f, l, has_nodes);
}

static enum element find_element(struct topo_slice name, enum element parent, bool root)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (topo_slice_is(name, elements[i].name) && elements[i].parent == parent &&
			root == (elements[i].element == TOPOLOGY))
			return elements[i].element;
	return LEFT_OUT;
}

/* Versions 1 (which does not say so), 2 and 3 are known; 3 says what matters here in the words
 * of 2. */
static int write_root(struct filter *f)
{
	struct topo_slice version = topo_xml_value(&f->xml, "version");

	f->version1 = !version.at || topo_slice_begins(version, "1.");
	fprintf(f->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology");
	if (!f->version1)
		fprintf(f->out, " version=\"2.0\"");
	fprintf(f->out, ">\n");
	if (f->version1 || topo_slice_begins(version, "2.") || topo_slice_begins(version, "3."))
		return 0;
	return refuse(f, "hwloc XML of version \"%.*s\"; expected 1, 2 or 3", TOPO_SHOW(version));
}

static void end_tag(struct filter *f)
{
	if (f->tag_open)
		fprintf(f->out, ">\n");
	f->tag_open = false;
}

/* The matrix that an element begins or goes on with. libhwloc allocates for as many objects as it
 * says. */
static int count_values(struct filter *f, enum element element)
{
	if (element == LATENCY)
		f->values++;
	if (element != DISTANCES && element != DISTANCES2)
		return 0;
	f->indexes = f->values = 0;
	if (topo_slice_u64(topo_xml_value(&f->xml, "nbobjs"), NB_MAX_NODES, &f->objects))
		return refuse(f, "nbobjs=\"%.*s\"; expected a number up to %u",
			TOPO_SHOW(topo_xml_value(&f->xml, "nbobjs")), NB_MAX_NODES);
	return 0;
}

static int write_open(struct filter *f, struct level *parent, struct level *l)
{
	unsigned int in = l->element == OBJECT ? AT(l->place) : IN(l->element);
	int err = count_values(f, l->element);

	end_tag(f);
	/* Their length is known when the text is. */
	if (err || l->element == INDEXES || l->element == U64VALUES)
		return err;
	fprintf(f->out, "<%.*s", (int)f->xml.name.len, f->xml.name.at);
	if (l->element == OBJECT)
		err = take_object(f, parent, l);
	for (unsigned int i = 0; !err && i < f->xml.nr_attrs; i++)
		err = write_attr(f, in, &f->xml.attr[i]);
	f->tag_open = true;
	return err;
}

/* Distances of other things than nodes are none of our business, nor are other attributes of
 * memory. */
static bool is_foreign(const struct filter *f, enum element element)
{
	struct topo_slice name = topo_xml_value(&f->xml, "name");

	if (element == DISTANCES2)
		return !topo_slice_is(topo_xml_value(&f->xml, "type"), "NUMANode");
	if (element == MEMATTR_VALUE)
		return !topo_xml_value(&f->xml, "initiator_cpuset").at;
	for (size_t i = 0; element == MEMATTR && i < sizeof(memattrs) / sizeof(memattrs[0]); i++)
		if (topo_slice_is(name, memattrs[i]))
			return false;
	return element == MEMATTR;
}

/* Version 1 has PUs that are offline. */
static bool is_offline_cpu(const struct filter *f, enum place place)
{
	struct topo_set cpus;

	return place == CPU && parse_bitmap(topo_xml_value(&f->xml, "cpuset"), &cpus) &&
	       is_empty(&cpus);
}

/* Whether an element is kept. */
static int judge(struct filter *f, const struct level *parent, struct level *l)
{
	if (is_foreign(f, l->element))
		l->element = LEFT_OUT;
	if (l->element != OBJECT)
		return 0;
	find_place(l, topo_xml_value(&f->xml, "type"));
	if (l->place == NOWHERE || is_offline_cpu(f, l->place))
		l->element = LEFT_OUT;
	return check_machine(f, parent->element);
}

static int open_element(struct filter *f)
{
	unsigned int depth = f->xml.depth;
	struct level *parent = &f->level[depth - 1], *l = &f->level[depth];
	int err;

	memset(l, 0, sizeof(*l));
	l->element = find_element(f->xml.name, parent->element, depth == 1);
	if (depth == 1 && l->element != TOPOLOGY)
		return refuse(f, "root element \"%.*s\"; expected hwloc's \"topology\"",
			TOPO_SHOW(f->xml.name));
	err = judge(f, parent, l);
	if (err || l->element == LEFT_OUT)
		return err;
	return l->element == TOPOLOGY ? write_root(f) : write_open(f, parent, l);
}

/* libhwloc takes what it needs and overlooks the rest. */
static int check_matrix(struct filter *f, enum element element)
{
	if (f->values != f->objects * f->objects)
		return refuse(f, "%llu distances; expected %llu for %llu objects",
			(unsigned long long)f->values,
			(unsigned long long)(f->objects * f->objects),
			(unsigned long long)f->objects);
	if (element == DISTANCES2 && f->indexes != f->objects)
		return refuse(f, "%llu indexes; expected %llu", (unsigned long long)f->indexes,
			(unsigned long long)f->objects);
	return 0;
}

static int close_element(struct filter *f)
{
	enum element element = f->level[f->xml.depth + 1].element;

	if (element == LEFT_OUT || element == INDEXES || element == U64VALUES)
		return 0;
	if (f->tag_open)
		fprintf(f->out, "/>\n");
	else
		fprintf(f->out, "</%.*s>\n", (int)f->xml.name.len, f->xml.name.at);
	f->tag_open = false;
	return element == DISTANCES || element == DISTANCES2 ? check_matrix(f, element) : 0;
}

/* Numbers between blanks, written with one blank behind each and the length that libhwloc wants to
 * be told. */
static int write_numbers(struct filter *f)
{
	const char *name = f->level[f->xml.depth].element == INDEXES ? "indexes" : "u64values";
	struct topo_slice rest = f->xml.text, word;
	size_t length = 0;
	uint64_t number,
		*count = f->level[f->xml.depth].element == INDEXES ? &f->indexes : &f->values;

	while (topo_word(&rest, &word)) {
		if (topo_slice_u64(word, INT64_MAX, &number))
			return refuse(f, "\"%.*s\" in %s; expected numbers", TOPO_SHOW(word), name);
		length += word.len + 1;
		++*count;
	}
	fprintf(f->out, "<%s length=\"%zu\">", name, length);
	rest = f->xml.text;
	while (topo_word(&rest, &word))
		fprintf(f->out, "%.*s ", (int)word.len, word.at);
	fprintf(f->out, "</%s>\n", name);
	return 0;
}

static int take_text(struct filter *f)
{
	enum element element = f->level[f->xml.depth].element;

	return element == INDEXES || element == U64VALUES ? write_numbers(f) : 0;
}

/* The machine must not promise CPUs and nodes that do not come. */
static int check_whole(struct filter *f)
{
	if (!f->machines)
		return refuse(f, "no Machine; expected hwloc's description of one");
	if (is_empty(&f->cpus) || (is_empty(&f->nodes) && !f->version1))
		return refuse(
			f, "no %s; expected at least one", is_empty(&f->cpus) ? "PU" : "NUMANode");
	if (!topo_set_within(&f->machine_cpus, &f->cpus) ||
		(!f->version1 && !topo_set_within(&f->machine_nodes, &f->nodes)))
		return refuse(f, "the Machine's sets name CPUs or nodes that are not described");
	return 0;
}

static int filter(struct filter *f)
{
	int err = 0;

	while (!err) {
		switch (topo_xml_next(&f->xml)) {
		case TOPO_XML_OPEN:
			err = open_element(f);
			break;
		case TOPO_XML_CLOSE:
			err = close_element(f);
			break;
		case TOPO_XML_TEXT:
			err = take_text(f);
			break;
		case TOPO_XML_END:
			return check_whole(f);
		case TOPO_XML_BAD:
			return refuse(f, "not XML that hwloc writes: %s", f->xml.problem);
		}
	}
	return err;
}

int topo_hwloc_filter(char **out, size_t *out_len, const char *text, size_t len, const char *name,
	char *why, size_t why_len)
{
	struct filter *f = calloc(1, sizeof(*f));
	int err;

	*out = NULL;
	*out_len = 0;
	if (f)
		f->out = open_memstream(out, out_len);
	if (!f || !f->out) {
		free(f);
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	}
	f->name = name;
	f->why = why;
	f->why_len = why_len;
	topo_xml_begin(&f->xml, text, len);
	err = filter(f);
	if (fclose(f->out) && !err)
		err = nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	free(f);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
