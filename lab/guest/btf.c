/* SPDX-License-Identifier: MIT */
/* See btf.h. The format is described in the kernel's Documentation/bpf/btf.rst. */
#include "btf.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct btf {
	const char *types, *strings;
	size_t types_len, strings_len;
	const struct btf_type **by_id; /* [nr + 1], id 0 is void */
	uint32_t nr;
};

/* Bytes after the type itself, by kind. */
static size_t extra_len(const struct btf_type *t)
{
	const size_t nr = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return nr * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return nr * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return nr * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return nr * sizeof(struct btf_var_secinfo);
	case BTF_KIND_ENUM64:
		return nr * sizeof(struct btf_enum64);
	default:
		return 0;
	}
}

/* The type at this offset and, in *next, the offset of the one after it; NULL at the end or where
 * it is cut. */
static const struct btf_type *type_at(const struct btf *b, size_t offset, size_t *next)
{
	const struct btf_type *t = (const struct btf_type *)(const void *)(b->types + offset);

	if (b->types_len - offset < sizeof(*t))
		return NULL;
	*next = offset + sizeof(*t) + extra_len(t);
	return *next <= b->types_len ? t : NULL;
}

static int index_types(struct btf *b)
{
	const struct btf_type *t;
	size_t next;

	for (size_t at = 0; (t = type_at(b, at, &next)); at = next)
		b->nr++;
	b->by_id = calloc((size_t)b->nr + 1, sizeof(*b->by_id));
	if (!b->by_id)
		return -ENOMEM;
	b->nr = 0;
	for (size_t at = 0; (t = type_at(b, at, &next)); at = next)
		b->by_id[++b->nr] = t;
	return 0;
}

static int open_btf(struct btf *b, const void *file, size_t len)
{
	const struct btf_header *h = file;

	if (len < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len > len)
		return -EINVAL;
	if ((uint64_t)h->hdr_len + h->type_off + h->type_len > len ||
		(uint64_t)h->hdr_len + h->str_off + h->str_len > len)
		return -EINVAL;
	if (((uint64_t)h->hdr_len + h->type_off) % sizeof(uint32_t))
		return -EINVAL;
	*b = (struct btf){.types = (const char *)file + h->hdr_len + h->type_off,
		.types_len = h->type_len,
		.strings = (const char *)file + h->hdr_len + h->str_off,
		.strings_len = h->str_len};
	if (!b->strings_len || b->strings[b->strings_len - 1])
		return -EINVAL;
	return index_types(b);
}

static bool is_named(const struct btf *b, uint32_t name_off, const char *name)
{
	return name_off < b->strings_len && !strcmp(b->strings + name_off, name);
}

static bool has_members(const struct btf_type *t)
{
	const unsigned int kind = BTF_INFO_KIND(t->info);

	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

static long member_offset(
	const struct btf *b, const struct btf_type *t, const char *name, int depth)
{
	const struct btf_member *m = (const struct btf_member *)(const void *)(t + 1);

	for (unsigned int i = 0; i < BTF_INFO_VLEN(t->info); i++, m++) {
		const uint32_t bits =
			BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(m->offset) : m->offset;
		const struct btf_type *inner = m->type <= b->nr ? b->by_id[m->type] : NULL;
		long offset;

		if (is_named(b, m->name_off, name))
			return (long)(bits / 8);
		if (m->name_off && *(b->strings + (m->name_off < b->strings_len ? m->name_off : 0)))
			continue;
		if (!inner || !has_members(inner) || depth == 0)
			continue;
		offset = member_offset(b, inner, name, depth - 1);
		if (offset >= 0)
			return (long)(bits / 8) + offset;
	}
	return -ENOENT;
}

long btf_offset(const void *file, size_t len, const char *structure, const char *member)
{
	struct btf b;
	long offset = open_btf(&b, file, len);

	if (offset)
		return offset;
	offset = -ENOENT;
	for (uint32_t id = 1; id <= b.nr && offset < 0; id++)
		if (BTF_INFO_KIND(b.by_id[id]->info) == BTF_KIND_STRUCT &&
			is_named(&b, b.by_id[id]->name_off, structure))
			offset = member_offset(&b, b.by_id[id], member, 8);
	free(b.by_id);
	return offset;
}
