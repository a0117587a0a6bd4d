/* SPDX-License-Identifier: MIT */
/*
 * find: presets by name. They lie as DIR/machines/NAME.ini and DIR/jobs/NAME.ini, where DIR is, in
 * this order, each directory of the environment's NUMABAL_DATA (separated by colons), share/ of the
 * source tree, and the installed data directory; the first that has the name wins.
 */
#ifndef NB_SIM_FIND_H
#define NB_SIM_FIND_H

#include "model.h"

/*
 * The path of preset `name` of `kind` ("machines" or "jobs"), owned by the caller (free). 0,
 * -ENOENT, -ENOMEM; -ENOENT fills `why` with a line that names the nearest preset; `noun`
 * ("machine", "job") is for that line.
 */
int sim_find_preset(char **path, const char *kind, const char *noun, const char *name, char *why,
	size_t why_len);

/*
 * All presets of a kind, ascending by name, with the `description` key of the given section. One
 * that can't be read has what is wrong with it as its description. 0 or -ENOMEM.
 */
int sim_list_presets(struct sim_listing **list, size_t *nr, const char *kind, const char *section);

/* True when the text could be a preset's name: letters, digits, '.', '_', '-', '+'. */
int sim_is_preset_name(const char *text);

#endif
