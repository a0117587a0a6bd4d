/* SPDX-License-Identifier: MIT */
#include "hwloc_filter.h"

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

/* Where the elements of one row of attrs[] may stand, by bit. */
#define IN(element) (1u << (element))

enum value { NUMBER, SIGNED, REAL, BITMAP, WORD };

static const struct {
	const char *name;
	unsigned int in;
	enum value value;
} attrs[] = {
	{"type", IN(OBJECT) | IN(DISTANCES2), WORD},
	{"subtype", IN(OBJECT), WORD},
	{"os_index", IN(OBJECT), NUMBER},
	{"gp_index", IN(OBJECT), NUMBER},
	{"cpuset", IN(OBJECT), BITMAP},
	{"complete_cpuset", IN(OBJECT), BITMAP},
	{"online_cpuset", IN(OBJECT), BITMAP},
	{"allowed_cpuset", IN(OBJECT), BITMAP},
	{"nodeset", IN(OBJECT), BITMAP},
	{"complete_nodeset", IN(OBJECT), BITMAP},
	{"allowed_nodeset", IN(OBJECT), BITMAP},
	{"local_memory", IN(OBJECT), NUMBER},
	{"cache_size", IN(OBJECT), NUMBER},
	{"depth", IN(OBJECT), NUMBER},
	{"cache_linesize", IN(OBJECT), NUMBER},
	{"cache_associativity", IN(OBJECT), SIGNED},
	{"cache_type", IN(OBJECT), NUMBER},
	{"kind", IN(OBJECT) | IN(DISTANCES2), NUMBER},
	{"subkind", IN(OBJECT), NUMBER},
	{"dont_merge", IN(OBJECT), NUMBER},
	{"nbobjs", IN(DISTANCES2) | IN(DISTANCES), NUMBER},
	{"name", IN(DISTANCES2) | IN(MEMATTR), WORD},
	{"indexing", IN(DISTANCES2), WORD},
	{"flags", IN(MEMATTR), NUMBER},
	{"target_obj_type", IN(MEMATTR_VALUE), WORD},
	{"target_obj_gp_index", IN(MEMATTR_VALUE), NUMBER},
	{"initiator_cpuset", IN(MEMATTR_VALUE), BITMAP},
	{"initiator_obj_type", IN(MEMATTR_VALUE), WORD},
	{"initiator_obj_gp_index", IN(MEMATTR_VALUE), NUMBER},
	{"value", IN(MEMATTR_VALUE), NUMBER},
	{"value", IN(LATENCY), REAL},
	{"relative_depth", IN(DISTANCES), NUMBER},
	{"latency_base", IN(DISTANCES), REAL},
};

/* What may contain memory or CPUs. The rest (devices, Misc, what is not known yet) is left out. */
static const char *const object_types[] = {
	"Machine",
	"Group",
	"NUMANode",
	"Node",
	"Package",
	"Socket",
	"Die",
	"Core",
	"PU",
	"MemCache",
	"Cache",
	"L1Cache",
	"L2Cache",
	"L3Cache",
	"L4Cache",
	"L5Cache",
	"L1iCache",
	"L2iCache",
	"L3iCache",
};

struct filter {
	struct topo_xml xml;
	FILE *out;
	enum element level[TOPO_XML_DEPTH +
			   1]; /* what each open element is; [0] is outside of the root */
	bool tag_open; /* the tag written last may still end in "/>": libhwloc wants it so where
			  nothing follows */
	unsigned int machines;
	const char *name;
	char *why;
	size_t why_len;
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

/* Words of 32 bits between commas, up to the largest CPU id; "0xf...f" before them: all bits above.
 */
static bool is_bitmap(struct topo_slice s)
{
	unsigned int words = 1;
	size_t start = 0;

	if (topo_slice_is(s, "0xf...f"))
		return true;
	topo_slice_skip(&s, "0xf...f,");
	for (size_t i = 0; i <= s.len; i++) {
		if (i < s.len && s.at[i] != ',')
			continue;
		if (!is_bitmap_word(s.at + start, i - start) || words++ > NB_MAX_CPUS / 32)
			return false;
		start = i + 1;
	}
	return s.len > 0;
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

	switch (value) {
	case NUMBER:
		return !topo_slice_u64(s, INT64_MAX, &number);
	case SIGNED:
		topo_slice_skip(&s, "-");
		return !topo_slice_u64(s, INT32_MAX, &number);
	case REAL:
		return is_real(s);
	case BITMAP:
		return is_bitmap(s);
	case WORD:
		return is_word(s);
	}
	return false;
}

static int write_attr(struct filter *f, enum element element, const struct topo_xml_attr *a)
{
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		if (!(attrs[i].in & IN(element)) || !topo_slice_is(a->name, attrs[i].name))
			continue;
		if (is_value(a->value, attrs[i].value)) {
			fprintf(f->out, " %s=\"%.*s\"", attrs[i].name, (int)a->value.len,
				a->value.at);
			return 0;
		}
		/* Words are names and may be anything to anybody; numbers and sets that cannot be
		 * read are errors. */
		if (attrs[i].value == WORD)
			return 0;
		return refuse(f, "%s=\"%.*s\"; expected a %s", attrs[i].name, TOPO_SHOW(a->value),
			attrs[i].value == BITMAP ? "bitmap up to 8192 bits" : "number");
	}
	return 0;
}

static bool type_known(struct topo_slice type)
{
	for (size_t i = 0; i < sizeof(object_types) / sizeof(object_types[0]); i++)
		if (topo_slice_is(type, object_types[i]))
			return true;
	return false;
}

/* A machine is one Machine at the root. */
static int check_object(struct filter *f, enum element parent, bool *kept)
{
	struct topo_slice type = topo_xml_value(&f->xml, "type");
	bool root = parent == TOPOLOGY;

	*kept = type_known(type);
	if (topo_slice_is(type, "System"))
		return refuse(f, "a System of several machines; expected one Machine");
	if (topo_slice_is(type, "Machine") && f->machines++)
		return refuse(f, "more than one Machine; expected one");
	if (root != topo_slice_is(type, "Machine"))
		return root ? refuse(f, "root object \"%.*s\"; expected a Machine", TOPO_SHOW(type))
			    : refuse(f, "a Machine inside of another object; expected it at the "
					"root");
	return 0;
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

	fprintf(f->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology");
	if (version.at && !topo_slice_begins(version, "1."))
		fprintf(f->out, " version=\"2.0\"");
	fprintf(f->out, ">\n");
	if (!version.at || topo_slice_begins(version, "1.") || topo_slice_begins(version, "2.") ||
		topo_slice_begins(version, "3."))
		return 0;
	return refuse(f, "hwloc XML of version \"%.*s\"; expected 1, 2 or 3", TOPO_SHOW(version));
}

static void end_tag(struct filter *f)
{
	if (f->tag_open)
		fprintf(f->out, ">\n");
	f->tag_open = false;
}

static int write_open(struct filter *f, enum element element)
{
	int err = 0;

	end_tag(f);
	/* Their length is known when the text is. */
	if (element == INDEXES || element == U64VALUES)
		return 0;
	fprintf(f->out, "<%.*s", (int)f->xml.name.len, f->xml.name.at);
	for (unsigned int i = 0; !err && i < f->xml.nr_attrs; i++)
		err = write_attr(f, element, &f->xml.attr[i]);
	f->tag_open = true;
	return err;
}

/* Distances of other things than nodes are none of our business. */
static bool is_other_matrix(const struct filter *f)
{
	return !topo_slice_is(topo_xml_value(&f->xml, "type"), "NUMANode");
}

static int open_element(struct filter *f)
{
	unsigned int depth = f->xml.depth;
	enum element parent = f->level[depth - 1];
	enum element element = find_element(f->xml.name, parent, depth == 1);
	bool kept = true;
	int err = 0;

	if (depth == 1 && element != TOPOLOGY)
		return refuse(f, "root element \"%.*s\"; expected hwloc's \"topology\"",
			TOPO_SHOW(f->xml.name));
	if (element == OBJECT)
		err = check_object(f, parent, &kept);
	if (element == DISTANCES2 && is_other_matrix(f))
		kept = false;
	f->level[depth] = kept ? element : LEFT_OUT;
	if (err || f->level[depth] == LEFT_OUT)
		return err;
	return element == TOPOLOGY ? write_root(f) : write_open(f, element);
}

static void close_element(struct filter *f)
{
	enum element element = f->level[f->xml.depth + 1];

	if (element == LEFT_OUT || element == INDEXES || element == U64VALUES)
		return;
	if (f->tag_open)
		fprintf(f->out, "/>\n");
	else
		fprintf(f->out, "</%.*s>\n", (int)f->xml.name.len, f->xml.name.at);
	f->tag_open = false;
}

/* Numbers between blanks, written with one blank behind each and the length that libhwloc wants to
 * be told. */
static int write_numbers(struct filter *f)
{
	const char *name = f->level[f->xml.depth] == INDEXES ? "indexes" : "u64values";
	struct topo_slice rest = f->xml.text, word;
	size_t length = 0;
	uint64_t number;

	while (topo_word(&rest, &word)) {
		if (topo_slice_u64(word, INT64_MAX, &number))
			return refuse(f, "\"%.*s\" in %s; expected numbers", TOPO_SHOW(word), name);
		length += word.len + 1;
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
	enum element element = f->level[f->xml.depth];

	return element == INDEXES || element == U64VALUES ? write_numbers(f) : 0;
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
			close_element(f);
			break;
		case TOPO_XML_TEXT:
			err = take_text(f);
			break;
		case TOPO_XML_END:
			return f->machines
				       ? 0
				       : refuse(f,
						 "no Machine; expected hwloc's description of one");
		case TOPO_XML_BAD:
			return refuse(f, "not XML that hwloc writes: %s", f->xml.problem);
		}
	}
	return err;
}

int topo_hwloc_filter(char **out, size_t *out_len, const char *text, size_t len, const char *name,
	char *why, size_t why_len)
{
	struct filter f = {.name = name, .why = why, .why_len = why_len};
	int err;

	*out = NULL;
	*out_len = 0;
	f.out = open_memstream(out, out_len);
	if (!f.out)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	topo_xml_begin(&f.xml, text, len);
	err = filter(&f);
	if (fclose(f.out) && !err)
		err = nb_why(why, why_len, -ENOMEM, "%s: out of memory", name);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
