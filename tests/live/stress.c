/* SPDX-License-Identifier: MIT */
/*
 * stress: threads that do everything to their own large area, at random, and keep a model of what
 * must be in it. usage: stress [SECONDS] [THREADS] [SEED] [forks]
 *
 * Each page holds one number all over, or zeroes; the model says which. Reads by the program and by
 * the kernel are checked against it, and so are children of forks. Ends with status 1 when anything
 * was wrong, and with SIGALRM when a thread did nothing for 60 s.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "progress.h"

enum {
	PAGE = 4096,
	WORDS = PAGE / 8,
	PAGES = 4096, /* of an area: 16 MiB */
	MAX_THREADS = 64,
};

struct worker {
	pthread_t thread;
	int number;
	uint64_t random;
	char *area;
	uint64_t model[PAGES]; /* what each word of the page is */
	uint64_t next;
	uint64_t done;
	int pipes[2];
	const char *wrong; /* the operation that found it */
	int error;	   /* errno then */
	bool forks;
};

static atomic_int stop;

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static uint64_t *page_at(struct worker *w, unsigned int i)
{
	return (uint64_t *)(void *)(w->area + (size_t)i * PAGE);
}

static void fail(struct worker *w, const char *what)
{
	if (w->wrong != NULL)
		return;
	w->error = errno;
	w->wrong = what;
}

static void check(struct worker *w, unsigned int i, const char *what)
{
	const volatile uint64_t *p = page_at(w, i);

	for (int k = 0; k < WORDS; k += 37)
		if (p[k] != w->model[i])
			fail(w, what);
}

static void write_page(struct worker *w, unsigned int i)
{
	uint64_t *p = page_at(w, i);

	w->model[i] = ++w->next;
	for (int k = 0; k < WORDS; k++)
		p[k] = w->model[i];
}

/* A range of pages. */
struct range {
	unsigned int start, count;
};

static struct range any_range(struct worker *w, unsigned int most)
{
	struct range r = {(unsigned int)(next_random(w) % PAGES), 0};

	r.count = 1 + (unsigned int)(next_random(w) % most);
	if (r.start + r.count > PAGES)
		r.count = PAGES - r.start;
	return r;
}

static void zero_model(struct worker *w, struct range r)
{
	memset(&w->model[r.start], 0, r.count * sizeof(w->model[0]));
}

/* ---- operations ---- */

static void op_write(struct worker *w)
{
	const struct range r = any_range(w, 64);

	for (unsigned int i = 0; i < r.count; i++)
		write_page(w, r.start + i);
}

static void op_read(struct worker *w)
{
	const struct range r = any_range(w, 256);

	for (unsigned int i = 0; i < r.count; i++)
		check(w, r.start + i, "read");
}

static void op_discard(struct worker *w)
{
	const struct range r = any_range(w, 600);

	if (madvise(page_at(w, r.start), (size_t)r.count * PAGE, MADV_DONTNEED) != 0) {
		fail(w, "madvise");
		return;
	}
	zero_model(w, r);
	check(w, r.start, "discarded");
}

static void op_remap(struct worker *w)
{
	const struct range r = any_range(w, 600);
	char *at = (char *)page_at(w, r.start);

	if (munmap(at, (size_t)r.count * PAGE) != 0 ||
		mmap(at, (size_t)r.count * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) {
		fail(w, "remap");
		return;
	}
	zero_model(w, r);
}

static void op_protect(struct worker *w)
{
	const struct range r = any_range(w, 100);

	if (mprotect(page_at(w, r.start), (size_t)r.count * PAGE, PROT_READ) != 0)
		fail(w, "mprotect");
	check(w, r.start, "protected");
	if (mprotect(page_at(w, r.start), (size_t)r.count * PAGE, PROT_READ | PROT_WRITE) != 0)
		fail(w, "mprotect back");
	write_page(w, r.start);
}

static void op_kernel(struct worker *w)
{
	const struct range from = any_range(w, 1), to = any_range(w, 1);

	if (write(w->pipes[1], page_at(w, from.start), PAGE) != PAGE ||
		read(w->pipes[0], page_at(w, to.start), PAGE) != PAGE) {
		fail(w, "pipe");
		return;
	}
	w->model[to.start] = w->model[from.start];
	check(w, to.start, "piped");
}

/* The whole area anew. */
static void op_new(struct worker *w)
{
	munmap(w->area, (size_t)PAGES * PAGE);
	w->area = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(w->model, 0, sizeof(w->model));
	for (unsigned int i = 0; i < PAGES; i += 2)
		write_page(w, i);
}

static void op_move(struct worker *w)
{
	char *old = w->area;
	char *to = mremap(old, (size_t)PAGES * PAGE, (size_t)PAGES * PAGE * 2, MREMAP_MAYMOVE);

	if (to == MAP_FAILED) {
		/* As the kernel has it where the area is more than one mapping. */
		if (errno != EFAULT)
			fail(w, "mremap");
		return;
	}
	w->area = to;
	munmap(to + (size_t)PAGES * PAGE, (size_t)PAGES * PAGE);
}

static void op_fork(struct worker *w)
{
	int status = 0;
	pid_t pid;

	if (!w->forks)
		return;
	pid = fork();
	if (pid == 0) {
		for (unsigned int i = 0; i < PAGES; i++)
			check(w, i, "child");
		for (unsigned int i = 0; i < PAGES; i += 16)
			write_page(w, i);
		_exit(w->wrong != NULL);
	}
	for (int i = 0; i < 20; i++)
		write_page(w, (unsigned int)(next_random(w) % PAGES));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail(w, "fork");
}

struct operation {
	void (*run)(struct worker *w);
	unsigned int weight;
};

static const struct operation operations[] = {
	{op_write, 60},
	{op_read, 60},
	{op_discard, 10},
	{op_remap, 3},
	{op_protect, 4},
	{op_kernel, 20},
	{op_new, 2},
	{op_move, 1},
	{op_fork, 1},
};

enum { NR_OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static const struct operation *any_operation(struct worker *w)
{
	unsigned int all = 0, at;

	for (int i = 0; i < NR_OPERATIONS; i++)
		all += operations[i].weight;
	at = (unsigned int)(next_random(w) % all);
	for (int i = 0; i < NR_OPERATIONS; i++) {
		if (at < operations[i].weight)
			return &operations[i];
		at -= operations[i].weight;
	}
	return &operations[0];
}

static void *work(void *p)
{
	struct worker *w = p;

	op_new(w);
	while (!atomic_load(&stop) && w->wrong == NULL) {
		any_operation(w)->run(w);
		w->done++;
		progress_step(w->number);
	}
	for (unsigned int i = 0; i < PAGES; i++)
		check(w, i, "in the end");
	progress_end(w->number);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker w[MAX_THREADS];
	const long seconds = argc > 1 ? atol(argv[1]) : 5;
	const int threads = argc > 2 ? atoi(argv[2]) : 4;
	const unsigned long seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	unsigned long done = 0;
	int bad = 0;

	progress_watch(threads);
	for (int i = 0; i < threads && i < MAX_THREADS; i++) {
		w[i].number = i;
		w[i].random = seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i + 1;
		w[i].forks = argc > 4;
		if (pipe(w[i].pipes) != 0)
			return 2;
		w[i].area = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	sleep((unsigned int)seconds);
	atomic_store(&stop, 1);
	for (int i = 0; i < threads && i < MAX_THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		done += w[i].done;
		if (w[i].wrong != NULL)
			printf("thread %d: wrong in: %s (errno %d, seed %lu)\n", i, w[i].wrong,
				w[i].error, seed);
		bad += w[i].wrong != NULL;
	}
	printf("%lu operations, %d threads wrong\n", done, bad);
	return bad ? 1 : 0;
}
