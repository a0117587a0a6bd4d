/* SPDX-License-Identifier: MIT */
#include "topo.h"

#include "../engine/why.h"

#include <errno.h>
#include <string.h>

int topo_parse_hwloc_xml(struct topo_info *out, const char *text, size_t len, const char *name,
	char *why, size_t why_len)
{
	(void)text;
	(void)len;
	memset(out, 0, sizeof(*out));
	return nb_why(why, why_len, -ENOSYS, "%s: hwloc XML cannot be read yet", name);
}
