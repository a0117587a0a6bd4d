/* SPDX-License-Identifier: MIT */
/* procfs: names that are numbers: of threads and descriptors. */
#include "agent.h"

char *nb_procfs_number(char *p, uint32_t n)
{
	char digits[12];
	int len = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (len > 0)
		*p++ = digits[--len];
	*p = '\0';
	return p;
}

struct entry { /* linux_dirent64 */
	uint64_t inode, offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

static bool number(const char *s, uint32_t *n)
{
	const char *p = s;

	for (*n = 0; *p >= '0' && *p <= '9'; p++)
		*n = *n * 10 + (uint32_t)(*p - '0');
	return p > s && *p == '\0';
}

long nb_procfs_each(long dir, nb_procfs_fn fn, void *ctx)
{
	_Alignas(8) char buffer[4096];
	uint32_t value;
	long n;

	NB_OS_3(lseek, dir, 0, 0);
	while ((n = NB_OS_3(getdents64, dir, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(const void *)(buffer + at);

			if (number(e->name, &value))
				fn(ctx, value);
			at += e->length;
		}
	return n;
}
