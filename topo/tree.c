/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int full_path(const struct topo_tree *t, const char *path, char out[TOPO_PATH_LEN])
{
	int n = snprintf(out, TOPO_PATH_LEN, "%s%s", t->prefix ? t->prefix : "", path);

	return n < TOPO_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Open the component at the front of *path below `dir` and take it off. */
static int open_component(int dir, const char **path)
{
	char name[TOPO_PATH_LEN];
	size_t n = strcspn(*path, "/");
	int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

	if (!n || n >= sizeof(name))
		return -ENOENT;
	memcpy(name, *path, n);
	name[n] = '\0';
	*path += n + ((*path)[n] == '/');
	if (**path)
		flags |= O_DIRECTORY;
	dir = openat(dir, name, flags);
	return dir >= 0 ? dir : -errno;
}

/* Down one component after the other, so that a link anywhere on the way is refused. */
static int open_below(int rootfd, const char *path)
{
	int dir = rootfd;

	while (*path) {
		int next = open_component(dir, &path);

		if (dir != rootfd)
			close(dir);
		if (next < 0)
			return next;
		dir = next;
	}
	return dir;
}

static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n;

	while (used < size) {
		n = read(fd, text + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

static ssize_t read_disk(const struct topo_tree *t, const char *path, char *text, size_t size)
{
	int fd = open_below(t->rootfd, path);
	struct stat st;
	ssize_t n;

	if (fd == -ELOOP || fd == -ENOTDIR)
		return -ENOENT;
	if (fd < 0)
		return fd;
	n = !fstat(fd, &st) && S_ISREG(st.st_mode) ? read_all(fd, text, size) : -ENOENT;
	close(fd);
	return n;
}

static int compare_path(const void *key, const void *file)
{
	return strcmp(key, ((const struct topo_file *)file)->path);
}

static const struct topo_file *find(const struct topo_tree *t, const char *path)
{
	if (!t->nr_files)
		return NULL;
	return bsearch(path, t->files, t->nr_files, sizeof(*t->files), compare_path);
}

static ssize_t read_memory(const struct topo_tree *t, const char *path, char *text, size_t size)
{
	const struct topo_file *f = find(t, path);

	if (!f)
		return -ENOENT;
	memcpy(text, f->data, f->len < size ? f->len : size);
	return (ssize_t)(f->len < size ? f->len : size);
}

static int finish_text(char *text, size_t size, size_t n)
{
	if (n == size)
		return -EFBIG;
	while (n && !text[n - 1])
		n--;
	if (memchr(text, '\0', n))
		return -EINVAL;
	text[n] = '\0';
	return (int)n;
}

int topo_tree_read(const struct topo_tree *t, const char *path, char *text, size_t size)
{
	char full[TOPO_PATH_LEN];
	ssize_t n = full_path(t, path, full);

	assert(size > 0);
	if (!n)
		n = t->rootfd >= 0 ? read_disk(t, full, text, size)
				   : read_memory(t, full, text, size);
	if (n >= 0)
		n = finish_text(text, size, (size_t)n);
	if (n < 0)
		text[0] = '\0';
	return (int)n;
}

/* The first file whose path does not sort before `path`, or nr_files. */
static unsigned int lower_bound(const struct topo_tree *t, const char *path)
{
	unsigned int low = 0, high = t->nr_files;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (strcmp(t->files[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool memory_has(const struct topo_tree *t, const char *path)
{
	char dir[TOPO_PATH_LEN + 1];
	unsigned int i;

	if (find(t, path))
		return true;
	snprintf(dir, sizeof(dir), "%s/", path);
	i = lower_bound(t, dir);
	return i < t->nr_files && !strncmp(t->files[i].path, dir, strlen(dir));
}

bool topo_tree_has(const struct topo_tree *t, const char *path)
{
	char full[TOPO_PATH_LEN];
	int fd;

	if (full_path(t, path, full))
		return false;
	if (t->rootfd < 0)
		return memory_has(t, full);
	fd = open_below(t->rootfd, full);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int grow(struct topo_tree *t)
{
	unsigned int cap = t->cap ? 2 * t->cap : 64;
	struct topo_file *files = realloc(t->files, cap * sizeof(*files));

	if (!files)
		return -ENOMEM;
	t->files = files;
	t->cap = cap;
	return 0;
}

int topo_tree_add(struct topo_tree *t, const char *path, const char *data, size_t len)
{
	struct topo_file f = {.len = len, .order = t->nr_files};

	if (t->nr_files == TOPO_TREE_MAX_FILES)
		return -E2BIG;
	if (t->nr_files == t->cap && grow(t))
		return -ENOMEM;
	f.path = strdup(path);
	f.data = malloc(len ? len : 1);
	if (!f.path || !f.data) {
		free(f.path);
		free(f.data);
		return -ENOMEM;
	}
	memcpy(f.data, data, len);
	t->files[t->nr_files++] = f;
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	const struct topo_file *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void free_file(struct topo_file *f)
{
	free(f->path);
	free(f->data);
}

void topo_tree_sort(struct topo_tree *t)
{
	unsigned int kept = 0;

	if (!t->nr_files)
		return;
	qsort(t->files, t->nr_files, sizeof(*t->files), compare_files);
	for (unsigned int i = 0; i < t->nr_files; i++) {
		if (kept && !strcmp(t->files[kept - 1].path, t->files[i].path))
			free_file(&t->files[--kept]);
		t->files[kept++] = t->files[i];
	}
	t->nr_files = kept;
}

void topo_tree_free(struct topo_tree *t)
{
	for (unsigned int i = 0; i < t->nr_files; i++)
		free_file(&t->files[i]);
	free(t->files);
	*t = (struct topo_tree){.rootfd = -1};
}
