/* SPDX-License-Identifier: MIT */
/*
 * inifile: machine and job files as sections, keys and values with line numbers. The syntax is
 * inih's:
 *
 *   [section]
 *   key = value	; a comment starts with a semicolon after a blank
 *   # or a line of its own
 *   key = a value that goes on
 *         on lines that begin with a blank
 *
 * What inih lacks is added here: line numbers, sections without keys, refusal of what it would cut
 * (long lines, long section names), of NUL bytes and of repeated sections. Everything refused is
 * one line in `why`: "FILE:LINE: ...".
 */
#ifndef NB_SIM_INIFILE_H
#define NB_SIM_INIFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIM_INI_MAX_BYTES = 1 << 20, /* of a file */
	SIM_INI_MAX_SECTIONS = 4096,
	SIM_INI_MAX_VALUE = 4096,      /* bytes, continuation lines joined */
	SIM_INI_MAX_SECTION_NAME = 48, /* bytes; inih cuts at 49 */
};

struct sim_ini_entry {
	char *key;
	char *value;   /* continuation lines joined by one blank */
	uint32_t line; /* where the key is */
};

struct sim_ini_section {
	char *name;
	uint32_t line;
	uint32_t nr_entries;
	struct sim_ini_entry *entries; /* in file order; keys may repeat */
};

struct sim_ini {
	char *file; /* for messages */
	uint32_t nr_sections;
	struct sim_ini_section *sections; /* in file order, names unique */
};

/* One key a section may have. */
struct sim_ini_key {
	const char *name;
	bool repeats;
	bool prefix; /* stands for every key that is this name, a blank and something more */
};

/*
 * Parse text in memory (`file` is used in messages alone). 0; -EINVAL malformed; -E2BIG too large;
 * -ENOMEM. On error nothing is left to free.
 */
int sim_ini_parse(struct sim_ini *ini, const char *file, const char *text, size_t len, char *why,
	size_t why_len);
void sim_ini_free(struct sim_ini *ini);

/* NULL when there is none. */
const struct sim_ini_section *sim_ini_section(const struct sim_ini *ini, const char *name);
/* The first value of the key, or NULL. */
const struct sim_ini_entry *sim_ini_entry(const struct sim_ini_section *s, const char *key);

/*
 * Every key of the section is one of keys[nr], and only those marked `repeats` come more than once.
 * Else -EINVAL and a line that names the nearest known key. nr <= 64.
 */
int sim_ini_check_keys(const struct sim_ini *ini, const struct sim_ini_section *s,
	const struct sim_ini_key *keys, size_t nr, char *why, size_t why_len);

/*
 * The text of a regular file of at most `max` bytes, NUL-terminated, owned by the caller (free). 0;
 * -ENOENT and other errors of open(2); -EISDIR; -EINVAL not a regular file; -E2BIG; -ENOMEM.
 */
int sim_file_read(
	char **text, size_t *len, const char *path, size_t max, char *why, size_t why_len);

#endif
