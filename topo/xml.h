/* SPDX-License-Identifier: MIT */
/*
 * xml: the small part of XML that machines write for machines, read strictly and in one pass.
 *
 * Tags, attributes and text, nothing that a document could use against its reader: entities are
 * neither defined nor expanded, no other document is looked at, depth and numbers are bounded.
 * Slices point into the text; nothing is allocated.
 */
#ifndef NB_TOPO_XML_H
#define NB_TOPO_XML_H

#include "text.h"

enum { TOPO_XML_DEPTH = 64, TOPO_XML_ATTRS = 48 };

struct topo_xml_attr {
	struct topo_slice name, value;
};

/* What topo_xml_next found. */
enum topo_xml_event {
	TOPO_XML_OPEN,	/* <name attr="value">; tag */
	TOPO_XML_CLOSE, /* </name>, or after the OPEN of <name/>; tag.name */
	TOPO_XML_TEXT,	/* what stands between tags, when it is not blank; text */
	TOPO_XML_END,	/* the document is complete */
	TOPO_XML_BAD,	/* it cannot be read: `problem` says why */
};

struct topo_xml {
	const char *at, *end;
	unsigned int line;  /* of `at`, from 1 */
	unsigned int depth; /* open elements */
	struct topo_slice open[TOPO_XML_DEPTH];
	bool begun, empty_pending;
	const char *problem;

	struct topo_slice name; /* of the tag */
	unsigned int nr_attrs;
	struct topo_xml_attr attr[TOPO_XML_ATTRS];
	struct topo_slice text;
};

void topo_xml_begin(struct topo_xml *x, const char *text, size_t len);
enum topo_xml_event topo_xml_next(struct topo_xml *x);

/* The value of an attribute of the tag found last; .at is NULL when it has none of that name. */
struct topo_slice topo_xml_value(const struct topo_xml *x, const char *name);

#endif
