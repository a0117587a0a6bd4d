/* SPDX-License-Identifier: MIT */
/*
 * inih is driven line by line through its reader callback: the reader counts lines and sees section
 * headers, the handler sees keys. Both write into struct parser; the first complaint stays.
 */
#include "inifile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../engine/why.h"
#include "nearest.h"

_Static_assert(!INI_HANDLER_LINENO, "on_key has inih's default signature");

struct parser {
	struct sim_ini *ini;
	const char *at, *end; /* what is left of the text */
	uint32_t line;	      /* of the line read last */
	bool indented;	      /* that line began with a blank */
	int err;
	char *why;
	size_t why_len;
};

static bool is_blank(char c)
{
	return isspace((unsigned char)c);
}

__attribute__((format(printf, 3, 4))) static void refuse(
	struct parser *p, int err, const char *format, ...)
{
	char text[256];
	va_list args;

	if (p->err)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	p->err = nb_why(p->why, p->why_len, err, "%s:%u: %s", p->ini->file, p->line, text);
}

/* realloc for one more element each time the count reaches a power of two. */
static void *grow(void *array, uint32_t nr, size_t size)
{
	if (nr && (nr & (nr - 1)))
		return array;
	return realloc(array, (nr ? (size_t)nr * 2 : 1) * size);
}

static void add_section(struct parser *p, const char *name, size_t len)
{
	struct sim_ini *ini = p->ini;
	struct sim_ini_section *sections;
	char *copy;

	if (ini->nr_sections >= SIM_INI_MAX_SECTIONS) {
		refuse(p, -E2BIG, "more than %d sections", SIM_INI_MAX_SECTIONS);
		return;
	}
	sections = grow(ini->sections, ini->nr_sections, sizeof(*sections));
	if (sections)
		ini->sections = sections;
	copy = strndup(name, len);
	if (!sections || !copy) {
		free(copy);
		refuse(p, -ENOMEM, "out of memory");
		return;
	}
	ini->sections[ini->nr_sections++] = (struct sim_ini_section){.name = copy, .line = p->line};
}

static void on_section(struct parser *p, const char *line, size_t len)
{
	const char *end = memchr(line, ']', len);
	const size_t name_len = end ? (size_t)(end - line - 1) : 0;
	char name[SIM_INI_MAX_SECTION_NAME + 1];
	const struct sim_ini_section *other;

	if (!end || end != line + len - 1) {
		refuse(p, -EINVAL, "expected [section] and nothing after it");
		return;
	}
	if (!name_len || name_len > SIM_INI_MAX_SECTION_NAME) {
		refuse(p, -EINVAL, "section name of %zu bytes, expected 1 to %d", name_len,
			SIM_INI_MAX_SECTION_NAME);
		return;
	}
	memcpy(name, line + 1, name_len);
	name[name_len] = '\0';
	other = sim_ini_section(p->ini, name);
	if (other) {
		refuse(p, -EINVAL, "section [%s] again, it began at line %u", name, other->line);
		return;
	}
	add_section(p, name, name_len);
}

/* Length of the line without its comment and trailing blanks. */
static size_t content_length(const char *line, size_t len)
{
	size_t n = 0;

	while (n < len && is_blank(line[n]))
		n++;
	if (n < len && (line[n] == '#' || line[n] == ';'))
		return 0;
	for (n = 1; n < len; n++)
		if (line[n] == ';' && is_blank(line[n - 1]))
			break;
	n = n < len ? n : len;
	while (n && is_blank(line[n - 1]))
		n--;
	return n;
}

static void look_at_line(struct parser *p, const char *line, size_t len, size_t room)
{
	size_t indent = 0;

	if (len > room)
		refuse(p, -EINVAL,
			"%zu bytes before the comment, expected at most %zu; a line that begins "
			"with a blank "
			"goes on with the value",
			len, room);
	while (indent < len && is_blank(line[indent]))
		indent++;
	p->indented = indent > 0;
	if (indent == len || line[indent] != '[')
		return;
	if (indent)
		refuse(p, -EINVAL, "expected [section] at the beginning of the line");
	else
		on_section(p, line, len);
}

/* inih's reader: one line into str[num], like fgets. */
static char *read_line(char *str, int num, void *stream)
{
	struct parser *p = stream;
	const char *line = p->at, *newline;
	size_t len;

	if (p->err || p->at >= p->end || num < 3)
		return NULL;
	newline = memchr(line, '\n', (size_t)(p->end - line));
	p->at = newline ? newline + 1 : p->end;
	p->line++;
	len = content_length(line, (size_t)((newline ? newline : p->end) - line));
	look_at_line(p, line, len, (size_t)num - 2);
	if (p->err)
		return NULL;
	memcpy(str, line, len);
	str[len] = '\n';
	str[len + 1] = '\0';
	return str;
}

static bool append_value(struct parser *p, struct sim_ini_entry *e, const char *more)
{
	const size_t old = strlen(e->value), add = strlen(more);
	char *value;

	if (old + add + 1 > SIM_INI_MAX_VALUE) {
		refuse(p, -E2BIG, "a value of more than %d bytes", SIM_INI_MAX_VALUE);
		return false;
	}
	value = realloc(e->value, old + add + 2);
	if (!value)
		return false;
	value[old] = ' ';
	memcpy(value + old + 1, more, add + 1);
	e->value = value;
	return true;
}

static bool add_entry(struct sim_ini_section *s, const char *key, const char *value, uint32_t line)
{
	struct sim_ini_entry *entries = grow(s->entries, s->nr_entries, sizeof(*entries));
	struct sim_ini_entry e = {.line = line};

	if (!entries)
		return false;
	s->entries = entries;
	e.key = strdup(key);
	e.value = strdup(value);
	if (!e.key || !e.value) {
		free(e.key);
		free(e.value);
		return false;
	}
	s->entries[s->nr_entries++] = e;
	return true;
}

/* inih's handler. */
static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct parser *p = user;
	struct sim_ini_section *s;
	bool ok;

	(void)section; /* read_line knows it, uncut */
	if (!p->ini->nr_sections) {
		refuse(p, -EINVAL, "'%s' comes before any [section]", key);
		return 0;
	}
	s = &p->ini->sections[p->ini->nr_sections - 1];
	if (p->indented && s->nr_entries)
		ok = append_value(p, &s->entries[s->nr_entries - 1], value);
	else
		ok = add_entry(s, key, value, p->line);
	if (!ok)
		refuse(p, -ENOMEM, "out of memory");
	return ok;
}

static void check_bytes(struct parser *p, const char *text, size_t len)
{
	const char *nul;

	if (len > SIM_INI_MAX_BYTES) {
		refuse(p, -E2BIG, "more than %d bytes", SIM_INI_MAX_BYTES);
		return;
	}
	nul = memchr(text, '\0', len);
	if (!nul)
		return;
	for (const char *c = text; c < nul; c++)
		p->line += *c == '\n';
	p->line++;
	refuse(p, -EINVAL, "a NUL byte, expected text");
}

static void skip_byte_order_mark(struct parser *p)
{
	if (p->end - p->at >= 3 && !memcmp(p->at, "\xef\xbb\xbf", 3))
		p->at += 3;
}

int sim_ini_parse(struct sim_ini *ini, const char *file, const char *text, size_t len, char *why,
	size_t why_len)
{
	struct parser p = {
		.ini = ini, .at = text, .end = text + len, .why = why, .why_len = why_len};
	int line;

	*ini = (struct sim_ini){.file = strdup(file)};
	if (!ini->file)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", file);
	check_bytes(&p, text, len);
	skip_byte_order_mark(&p);
	line = p.err ? 0 : ini_parse_stream(read_line, &p, on_key, &p);
	if (line > 0 && !p.err) {
		p.line = (uint32_t)line;
		refuse(&p, -EINVAL, "expected [section] or key = value");
	} else if (line < 0) {
		refuse(&p, -ENOMEM, "out of memory");
	}
	if (p.err)
		sim_ini_free(ini);
	return p.err;
}

static void section_free(struct sim_ini_section *s)
{
	for (uint32_t i = 0; i < s->nr_entries; i++) {
		free(s->entries[i].key);
		free(s->entries[i].value);
	}
	free(s->entries);
	free(s->name);
}

void sim_ini_free(struct sim_ini *ini)
{
	for (uint32_t i = 0; i < ini->nr_sections; i++)
		section_free(&ini->sections[i]);
	free(ini->sections);
	free(ini->file);
	*ini = (struct sim_ini){0};
}

const struct sim_ini_section *sim_ini_section(const struct sim_ini *ini, const char *name)
{
	for (uint32_t i = 0; i < ini->nr_sections; i++)
		if (!strcmp(ini->sections[i].name, name))
			return &ini->sections[i];
	return NULL;
}

const struct sim_ini_entry *sim_ini_entry(const struct sim_ini_section *s, const char *key)
{
	for (uint32_t i = 0; i < s->nr_entries; i++)
		if (!strcmp(s->entries[i].key, key))
			return &s->entries[i];
	return NULL;
}

static bool key_is(const struct sim_ini_key *k, const char *key)
{
	const size_t n = strlen(k->name);

	if (!k->prefix)
		return !strcmp(k->name, key);
	return !strncmp(k->name, key, n) && is_blank(key[n]);
}

static size_t key_index(const struct sim_ini_key *keys, size_t nr, const char *key)
{
	size_t i = 0;

	while (i < nr && !key_is(&keys[i], key))
		i++;
	return i;
}

static int unknown_key(const struct sim_ini *ini, const struct sim_ini_section *s,
	const struct sim_ini_entry *e, const struct sim_ini_key *keys, size_t nr, char *why,
	size_t why_len)
{
	struct sim_nearest near = {.name = e->key};
	char hint[SIM_HINT_LEN];

	for (size_t i = 0; i < nr; i++)
		sim_nearest_try(&near, keys[i].name);
	return nb_why(why, why_len, -EINVAL, "%s:%u: [%s] has no key '%s'%s", ini->file, e->line,
		s->name, e->key, sim_nearest_hint(&near, hint));
}

int sim_ini_check_keys(const struct sim_ini *ini, const struct sim_ini_section *s,
	const struct sim_ini_key *keys, size_t nr, char *why, size_t why_len)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < s->nr_entries; i++) {
		const struct sim_ini_entry *e = &s->entries[i];
		const size_t k = key_index(keys, nr, e->key);

		if (k == nr)
			return unknown_key(ini, s, e, keys, nr, why, why_len);
		if ((seen >> k & 1) && !keys[k].repeats)
			return nb_why(why, why_len, -EINVAL, "%s:%u: '%s' again in [%s]", ini->file,
				e->line, e->key, s->name);
		seen |= UINT64_C(1) << k;
	}
	return 0;
}

static int read_all(int fd, char *text, size_t room, size_t *len)
{
	*len = 0;
	while (*len < room) {
		const ssize_t n = read(fd, text + *len, room - *len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		*len += (size_t)n;
	}
	return 0;
}

/* What is wrong with the open file, or 0. */
static int check_kind(int fd, const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (fstat(fd, &st))
		return nb_why(why, why_len, -errno, "%s: %s", nb_quote(path).text, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return nb_why(why, why_len, -EISDIR, "%s: a directory, expected a file",
			nb_quote(path).text);
	if (!S_ISREG(st.st_mode))
		return nb_why(why, why_len, -EINVAL, "%s: not a regular file", nb_quote(path).text);
	return 0;
}

static int read_fd(
	char **text, size_t *len, int fd, const char *path, size_t max, char *why, size_t why_len)
{
	int err = check_kind(fd, path, why, why_len);
	char *buffer;

	if (err)
		return err;
	buffer =
		malloc(max + 2); /* one byte more than allowed tells "too large" from "just fits" */
	if (!buffer)
		return nb_why(why, why_len, -ENOMEM, "%s: out of memory", nb_quote(path).text);
	err = read_all(fd, buffer, max + 1, len);
	if (err)
		nb_why(why, why_len, err, "%s: %s", nb_quote(path).text, strerror(-err));
	else if (*len > max)
		err = nb_why(
			why, why_len, -E2BIG, "%s: more than %zu bytes", nb_quote(path).text, max);
	if (err) {
		free(buffer);
		return err;
	}
	buffer[*len] = '\0';
	*text = buffer;
	return 0;
}

int sim_file_read(char **text, size_t *len, const char *path, size_t max, char *why, size_t why_len)
{
	/* O_NONBLOCK: opening a FIFO that nobody writes must not hang. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return nb_why(why, why_len, -errno, "%s: %s", nb_quote(path).text, strerror(errno));
	err = read_fd(text, len, fd, path, max, why, why_len);
	close(fd);
	return err;
}
