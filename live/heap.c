/* SPDX-License-Identifier: MIT */
#include "heap.h"
#include <string.h>
#include "os.h"

enum {
	SMALLEST = 16,
	LARGEST = SMALLEST << (NB_HEAP_CLASSES - 1),
	CHUNK = 1 << 20,
	PAGE = 4096,
};

static unsigned int class_of(size_t bytes)
{
	unsigned int c = 0;

	while (((size_t)SMALLEST << c) < bytes)
		c++;
	return c;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void *from_kernel(struct nb_heap *h, size_t bytes)
{
	void *p = nb_os_pages(bytes);

	h->bytes += p != NULL ? bytes : 0;
	return p;
}

static void *carve(struct nb_heap *h, size_t bytes)
{
	void *p;

	if (h->left < bytes) {
		char *chunk = from_kernel(h, CHUNK);

		if (chunk == NULL)
			return NULL;
		h->chunk = chunk;
		h->left = CHUNK;
	}
	p = h->chunk;
	h->chunk += bytes;
	h->left -= bytes;
	return p;
}

void *nb_heap_alloc(struct nb_heap *h, size_t bytes)
{
	unsigned int c;
	void *p;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	if (bytes > LARGEST)
		return from_kernel(h, whole_pages(bytes));
	c = class_of(bytes);
	p = h->free[c];
	if (p == NULL)
		return carve(h, (size_t)SMALLEST << c);
	h->free[c] = *(void **)p;
	memset(p, 0, (size_t)SMALLEST << c);
	return p;
}

void nb_heap_free(struct nb_heap *h, void *p, size_t bytes)
{
	unsigned int c;

	if (p == NULL)
		return;
	if (bytes > LARGEST) {
		h->bytes -= whole_pages(bytes);
		nb_os_pages_free(p, whole_pages(bytes));
		return;
	}
	c = class_of(bytes);
	*(void **)p = h->free[c];
	h->free[c] = p;
}
