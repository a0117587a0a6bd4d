/* SPDX-License-Identifier: MIT */
#include "xml.h"

#include <string.h>

void topo_xml_begin(struct topo_xml *x, const char *text, size_t len)
{
	memset(x, 0, sizeof(*x));
	x->at = text;
	x->end = text + len;
	x->line = 1;
}

static enum topo_xml_event bad(struct topo_xml *x, const char *problem)
{
	x->problem = problem;
	return TOPO_XML_BAD;
}

static size_t left(const struct topo_xml *x)
{
	return (size_t)(x->end - x->at);
}

/* Move on, counting lines. */
static void skip(struct topo_xml *x, size_t n)
{
	for (; n; n--, x->at++)
		x->line += *x->at == '\n';
}

static bool starts(const struct topo_xml *x, const char *text)
{
	size_t n = strlen(text);

	return left(x) >= n && !memcmp(x->at, text, n);
}

/* To behind the next `text`; false when there is none. */
static bool skip_past(struct topo_xml *x, const char *text)
{
	const char *at = memmem(x->at, left(x), text, strlen(text));

	if (!at)
		return false;
	skip(x, (size_t)(at - x->at) + strlen(text));
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct topo_xml *x)
{
	while (x->at < x->end && is_space(*x->at))
		skip(x, 1);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == ':';
}

static struct topo_slice take_name(struct topo_xml *x)
{
	struct topo_slice name = {.at = x->at};

	while (x->at < x->end && is_name(*x->at))
		x->at++;
	name.len = (size_t)(x->at - name.at);
	return name;
}

/* "<!-- -->", "<? ?>" and "<!DOCTYPE >" without declarations of its own. */
static const char *skip_markup(struct topo_xml *x)
{
	const char *start = x->at;

	if (starts(x, "<!--"))
		return skip_past(x, "-->") ? NULL : "a comment without end";
	if (starts(x, "<?"))
		return skip_past(x, "?>") ? NULL : "a processing instruction without end";
	if (!starts(x, "<!DOCTYPE"))
		return "a declaration or a CDATA section; expected elements";
	if (!skip_past(x, ">"))
		return "a DOCTYPE without end";
	if (memchr(start, '[', (size_t)(x->at - start)))
		return "a DOCTYPE with declarations; expected none";
	return NULL;
}

/* name="value", which may be empty but holds no tag. */
static const char *take_attr(struct topo_xml *x)
{
	struct topo_xml_attr *a = &x->attr[x->nr_attrs];
	const char *close;
	char quote;

	if (x->nr_attrs == TOPO_XML_ATTRS)
		return "too many attributes";
	a->name = take_name(x);
	skip_space(x);
	if (!a->name.len || !starts(x, "="))
		return "a tag that is neither closed nor goes on with an attribute";
	skip(x, 1);
	skip_space(x);
	if (!starts(x, "\"") && !starts(x, "'"))
		return "an attribute without quotes";
	quote = *x->at;
	skip(x, 1);
	close = memchr(x->at, quote, left(x));
	if (!close)
		return "an attribute without end";
	a->value = (struct topo_slice){.at = x->at, .len = (size_t)(close - x->at)};
	if (memchr(a->value.at, '<', a->value.len))
		return "a '<' in an attribute";
	skip(x, a->value.len + 1);
	x->nr_attrs++;
	return NULL;
}

static enum topo_xml_event take_open(struct topo_xml *x)
{
	skip(x, 1);
	x->name = take_name(x);
	x->nr_attrs = 0;
	if (!x->name.len)
		return bad(x, "a '<' that begins no tag");
	if (x->depth == TOPO_XML_DEPTH)
		return bad(x, "elements nested too deeply");
	if (!x->depth && x->begun)
		return bad(x, "a second root element");
	for (;;) {
		const char *problem;

		skip_space(x);
		if (starts(x, ">") || starts(x, "/>"))
			break;
		problem = take_attr(x);
		if (problem)
			return bad(x, problem);
	}
	x->empty_pending = starts(x, "/>");
	skip(x, x->empty_pending ? 2 : 1);
	x->open[x->depth++] = x->name;
	x->begun = true;
	return TOPO_XML_OPEN;
}

static enum topo_xml_event take_close(struct topo_xml *x)
{
	const struct topo_slice *open = x->depth ? &x->open[x->depth - 1] : NULL;

	skip(x, 2);
	x->name = take_name(x);
	skip_space(x);
	if (!starts(x, ">"))
		return bad(x, "a closing tag without end");
	skip(x, 1);
	if (!open || open->len != x->name.len || memcmp(open->at, x->name.at, open->len))
		return bad(x, "a closing tag that does not match");
	x->depth--;
	return TOPO_XML_CLOSE;
}

static enum topo_xml_event take_text(struct topo_xml *x)
{
	const char *tag = memchr(x->at, '<', left(x));
	size_t n = tag ? (size_t)(tag - x->at) : left(x);

	x->text = topo_trim((struct topo_slice){.at = x->at, .len = n});
	skip(x, n);
	if (x->text.len && !x->depth)
		return bad(x, "text outside of the root element");
	return TOPO_XML_TEXT;
}

static enum topo_xml_event at_end(struct topo_xml *x)
{
	if (!x->begun)
		return bad(x, "no element");
	return x->depth ? bad(x, "truncated: elements left open") : TOPO_XML_END;
}

enum topo_xml_event topo_xml_next(struct topo_xml *x)
{
	if (x->empty_pending) {
		x->empty_pending = false;
		x->name = x->open[--x->depth];
		return TOPO_XML_CLOSE;
	}
	while (x->at < x->end) {
		const char *problem;

		if (starts(x, "</"))
			return take_close(x);
		if (starts(x, "<!") || starts(x, "<?")) {
			problem = skip_markup(x);
			if (problem)
				return bad(x, problem);
			continue;
		}
		if (*x->at == '<')
			return take_open(x);
		if (take_text(x) == TOPO_XML_BAD)
			return TOPO_XML_BAD;
		if (x->text.len)
			return TOPO_XML_TEXT;
	}
	return at_end(x);
}

struct topo_slice topo_xml_value(const struct topo_xml *x, const char *name)
{
	for (unsigned int i = 0; i < x->nr_attrs; i++)
		if (topo_slice_is(x->attr[i].name, name))
			return x->attr[i].value;
	return (struct topo_slice){0};
}
