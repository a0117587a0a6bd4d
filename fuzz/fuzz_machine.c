/* SPDX-License-Identifier: MIT */
/* Any text as a machine file; what it accepts must be a sound machine. */
#include "../sim/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_model m;
	char why[256];

	if (sim_model_parse(&m, "fuzz.ini", (const char *)data, size, why, sizeof(why))) {
		if (!why[0] || strchr(why, '\n'))
			abort(); /* a refusal is one line */
		return 0;
	}
	if (sim_model_check(&m))
		abort();
	sim_model_free(&m);
	return 0;
}
