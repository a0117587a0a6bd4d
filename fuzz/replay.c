/* SPDX-License-Identifier: MIT */
/*
 * replay: a main for a fuzzer where libFuzzer is not there: every file of a corpus directory, then
 * mutations of it that are the same in each run. A finding is a crash, as in libFuzzer; a missing
 * corpus is an empty input.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_BYTES = 1 << 16, NR_MUTATIONS = 200 };

static uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* An exact copy on the heap, so that a sanitizer sees a read past its end. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = calloc(1, size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void mutate(const uint8_t *data, size_t size, uint64_t *state)
{
	uint8_t buf[INPUT_BYTES];

	for (int n = 0; n < NR_MUTATIONS; n++) {
		const size_t kept = n % 4 ? size : (size_t)(random_u64(state) % (size + 1));

		memcpy(buf, data, kept);
		for (int change = n % 8; kept && change > 0; change--)
			buf[random_u64(state) % kept] = (uint8_t)random_u64(state);
		feed(buf, kept);
	}
}

static size_t replay_file(const char *path, uint64_t *state)
{
	static uint8_t data[INPUT_BYTES];
	FILE *f = fopen(path, "rb");
	size_t size;

	if (!f)
		return 0;
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	feed(data, size);
	mutate(data, size, state);
	return 1;
}

static int not_hidden(const struct dirent *file)
{
	return file->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	uint64_t state = 1;
	struct dirent **files = NULL;
	size_t replayed = 0;
	int nr = argc > 1 ? scandir(argv[1], &files, not_hidden, alphasort) : 0;

	feed((const uint8_t *)"", 0);
	for (int i = 0; i < nr; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", argv[1], files[i]->d_name);
		replayed += replay_file(path, &state);
		free(files[i]);
	}
	free(files);
	printf("%zu files replayed, %d mutations of each\n", replayed, NR_MUTATIONS);
	return 0;
}
