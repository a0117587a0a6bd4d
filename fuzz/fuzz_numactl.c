/* SPDX-License-Identifier: MIT */
/* Any text through the reader of `numactl -H`; what it accepts must be a sound topology. */
#include "../topo/topo.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topo_info info;
	char why[256];

	if (!topo_parse_numactl(&info, (const char *)data, size, "fuzz", why, sizeof(why)) &&
		nb_topology_check(&info.topo))
		abort();
	topo_info_free(&info);
	return 0;
}
