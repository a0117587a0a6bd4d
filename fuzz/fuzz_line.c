/* SPDX-License-Identifier: MIT */
/* Any text as a machine in one line; what it accepts must be a sound topology. */
#include "../topo/topo.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topo_info info;
	char why[256];

	if (!topo_parse_line(&info, (const char *)data, size, why, sizeof(why)) &&
		nb_topology_check(&info.topo))
		abort();
	topo_info_free(&info);
	return 0;
}
