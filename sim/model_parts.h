/* SPDX-License-Identifier: MIT */
/*
 * model_parts: how a struct sim_model is put together; private to sim/model*.c.
 *
 * Order: the topology is in m->topo; then parameters, nodes, latency, links, cores. Each step takes
 * what the machine file says and fills in the rest. `file` has a NULL ini where there is no machine
 * file.
 */
#ifndef NB_SIM_MODEL_PARTS_H
#define NB_SIM_MODEL_PARTS_H

#include "inifile.h"
#include "model.h"

struct sim_machine_file {
	const struct sim_ini *ini;
	char *why;
	size_t why_len;
};

/* "FILE:LINE: " and the rest into file->why; returns err. */
__attribute__((format(printf, 4, 5))) int sim_refuse(
	const struct sim_machine_file *file, uint32_t line, int err, const char *format, ...);

/* A number in a range, in the unit of the file. 0, or -EINVAL / -ERANGE with a line in why. */
int sim_number(const struct sim_machine_file *file, const struct sim_ini_entry *e, const char *unit,
	double min, double max, double *out);

/* Sections and keys are known ones. */
int sim_model_check_names(const struct sim_machine_file *file);
int sim_model_params(struct sim_model *m, const struct sim_machine_file *file);
int sim_model_nodes(struct sim_model *m, const struct sim_machine_file *file);
int sim_model_latency(struct sim_model *m, const struct sim_machine_file *file);
int sim_model_links(struct sim_model *m, const struct sim_machine_file *file);
int sim_model_cores(struct sim_model *m, const struct sim_machine_file *file);

/* The node of a section "PREFIX ID" or of a key "ID": an index, or -EINVAL with a line in why. */
int sim_node_of(const struct sim_model *m, const struct sim_machine_file *file, uint32_t line,
	const char *id);

/* What follows "prefix " in a section's name, or NULL. */
const char *sim_section_arg(const char *name, const char *prefix);

#endif
