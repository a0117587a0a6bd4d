/* SPDX-License-Identifier: MIT */
/*
 * hwloc_filter: from an XML document of any version that hwloc writes to one that libhwloc may be
 * given.
 *
 * Two reasons: libhwloc 2 refuses documents of version 3, though the parts that say where memory is
 * have not changed; and it trusts its input more than a stranger's file deserves. So the document
 * is read strictly here, and written anew from known elements with known attributes and values that
 * were checked.
 */
#ifndef NB_TOPO_HWLOC_FILTER_H
#define NB_TOPO_HWLOC_FILTER_H

#include <stddef.h>

/*
 * 0 and a terminated document of *out_len bytes (without the terminator), to be freed by the
 * caller; -EINVAL with one line in `why`, -ENOMEM.
 */
int topo_hwloc_filter(char **out, size_t *out_len, const char *text, size_t len, const char *name,
	char *why, size_t why_len);

#endif
