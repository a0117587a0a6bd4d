/* SPDX-License-Identifier: MIT */
/* btf: where a kernel keeps a member of a structure, from the type information it carries
 * (/sys/kernel/btf/vmlinux). */
#ifndef NB_LAB_BTF_H
#define NB_LAB_BTF_H

#include <stddef.h>

/*
 * Byte offset of a member of a structure (members of unnamed structures and unions inside it count
 * as its own). `btf`, `len`: the file. -ENOENT when there is none, -EINVAL when this is no BTF.
 */
long btf_offset(const void *btf, size_t len, const char *structure, const char *member);

#endif
