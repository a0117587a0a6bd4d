/* SPDX-License-Identifier: MIT */
/* Offsets from type information made here by hand, whole and cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "btf.h"

/* struct task { int pid; struct { int period; int locality; }; } with a gap: the unnamed one begins
 * at byte 16. */
static const char strings[] = "\0int\0task\0pid\0period\0locality\0other";
enum { S_INT = 1, S_TASK = 5, S_PID = 10, S_PERIOD = 14, S_LOCALITY = 21, S_OTHER = 30 };

struct image {
	struct btf_header head;
	struct btf_type integer; /* 1 */
	uint32_t integer_bits;
	struct btf_type unnamed; /* 2 */
	struct btf_member inner[2];
	struct btf_type other; /* 3: same member name, another structure */
	struct btf_member others[1];
	struct btf_type task; /* 4 */
	struct btf_member members[2];
	char strings[sizeof(strings)];
};

static uint32_t info(uint32_t kind, uint32_t nr)
{
	return kind << 24 | nr;
}

static struct image make(void)
{
	struct image m = {
		.integer = {.name_off = S_INT, .info = info(BTF_KIND_INT, 0), .size = 4},
		.integer_bits = 32,
		.unnamed = {.info = info(BTF_KIND_STRUCT, 2), .size = 8},
		.inner = {{.name_off = S_PERIOD, .type = 1},
			{.name_off = S_LOCALITY, .type = 1, .offset = 32}},
		.other = {.name_off = S_OTHER, .info = info(BTF_KIND_STRUCT, 1), .size = 4},
		.others = {{.name_off = S_PID, .type = 1, .offset = 96}},
		.task = {.name_off = S_TASK, .info = info(BTF_KIND_STRUCT, 2), .size = 24},
		.members = {{.name_off = S_PID, .type = 1, .offset = 64},
			{.type = 2, .offset = 128}},
	};

	memcpy(m.strings, strings, sizeof(strings));
	m.head = (struct btf_header){.magic = BTF_MAGIC,
		.version = 1,
		.hdr_len = sizeof(m.head),
		.type_len = offsetof(struct image, strings) - sizeof(m.head),
		.str_off = offsetof(struct image, strings) - sizeof(m.head),
		.str_len = sizeof(strings)};
	return m;
}

static void offsets(void **state)
{
	const struct image m = make();

	(void)state;
	assert_int_equal(btf_offset(&m, sizeof(m), "task", "pid"), 8);
	assert_int_equal(btf_offset(&m, sizeof(m), "task", "period"), 16);
	assert_int_equal(btf_offset(&m, sizeof(m), "task", "locality"), 20);
	assert_int_equal(btf_offset(&m, sizeof(m), "other", "pid"), 12);
	assert_int_equal(btf_offset(&m, sizeof(m), "task", "nosuch"), -ENOENT);
	assert_int_equal(btf_offset(&m, sizeof(m), "nosuch", "pid"), -ENOENT);
}

/* Never reads past its end (the sanitizers' build sees it), never answers from a cut file as from a
 * whole one. */
static void cut_files_are_refused(void **state)
{
	const struct image m = make();

	(void)state;
	for (size_t len = 0; len < sizeof(m); len++) {
		void *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, &m, len);
		assert_int_equal(btf_offset(copy, len, "task", "pid"), -EINVAL);
		free(copy);
	}
}

/* Any one byte wrong: an answer or an error, no crash. */
static void broken_files_do_no_harm(void **state)
{
	static const unsigned char bad[] = {0, 1, 0x7f, 0x80, 0xff};

	(void)state;
	for (size_t at = 0; at < sizeof(struct image); at++) {
		for (size_t b = 0; b < sizeof(bad); b++) {
			struct image *m = malloc(sizeof(*m));
			long offset;

			assert_non_null(m);
			*m = make();
			((unsigned char *)m)[at] = bad[b];
			offset = btf_offset(m, sizeof(*m), "task", "locality");
			assert_true(offset >= 0 || offset == -ENOENT || offset == -EINVAL);
			free(m);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets),
		cmocka_unit_test(cut_files_are_refused),
		cmocka_unit_test(broken_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
