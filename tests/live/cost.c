/* SPDX-License-Identifier: MIT */
/*
 * cost: what tests/live/bench runs with numabal and without, to tell what numabal costs. Each way
 * prints lines of "name value". Times are CLOCK_BOOTTIME's, as in /proc/uptime, so that two
 * processes can begin together.
 *
 * cost speed MIB THREADS sweep|random FROM UNTIL [CPU...]
 *     threads that write their own slices of one area, each on its CPU where these are given; what
 *     they wrote between FROM and UNTIL
 * cost gaps MIB SPIN_CPU SWEEP_CPU FROM SECONDS TURNS
 *     a thread that reads the clock and nothing else, beside one that sweeps: what it did not see
 *     of each turn. Turn n begins at FROM + 2 n SECONDS; meanwhile the process is to be stopped
 * cost touch mapped|dropped MIB, cost touch swept MIB SECONDS CPU CPU
 *     how long single touches took: of mapped pages; of pages of a shared memfd whose entries were
 *     dropped; by two threads that sweep, those that were minor faults
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

enum {
	MAX_THREADS = 64,
	PAGE = 4096,
	WORDS = PAGE / 8,
	CHUNK = 64 << 10,	/* of memory that is touched once: more than a fault maps around */
	RANDOM_WRITES = WORDS,	/* between two looks at the clock */
	MAX_SAMPLES = 1 << 20,	/* of one thread */
	SUSPECT_NS = 700,	/* a touch that took so long may have been a fault */
	LONG_NS = 100000,	/* gaps that count */
	VERY_LONG_NS = 1000000, /* those that must not be */
	TURN_BEGINS_NS =
		50000000, /* of a turn this is left out: it takes a while to be continued */
};

struct worker {
	pthread_t thread;
	uint64_t *from, *to;
	_Atomic uint64_t pages; /* written, or as many words as a page has */
	uint64_t wrong, random;
	bool jumps;
	int cpu; /* -1 = anywhere */
	_Atomic pid_t tid;
	uint64_t *ns;
	size_t nr;
};

static atomic_int stop;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Dearer clocks would hide touches of mapped pages. */
static uint64_t fast_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t ns_of(const char *seconds)
{
	return (uint64_t)(atof(seconds) * 1e9);
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("cost: mmap");
		exit(1);
	}
	memset(at, 0, bytes);
	return at;
}

/* ---- threads that write ---- */

/* Every word of a sweep holds the same count, so lost and doubled pages show. */
static void sweep_page(struct worker *w, uint64_t *page, uint64_t count)
{
	for (uint64_t *word = page; word < page + WORDS; word++) {
		w->wrong += *word != count;
		*word = count + 1;
	}
}

static void add_page(struct worker *w)
{
	atomic_store_explicit(&w->pages, atomic_load_explicit(&w->pages, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static bool stopped(void)
{
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

static void sweep(struct worker *w)
{
	for (uint64_t count = 0;; count++)
		for (uint64_t *page = w->from; page < w->to; page += WORDS) {
			if (stopped())
				return;
			sweep_page(w, page, count);
			add_page(w);
		}
}

/* Words here and there: each is likely to need an entry of the TLB of its own. */
static void jump(struct worker *w)
{
	const uint64_t words = (uint64_t)(w->to - w->from);

	while (!stopped()) {
		for (int i = 0; i < RANDOM_WRITES; i++) {
			w->random = w->random * 6364136223846793005 + 1442695040888963407;
			w->from[(w->random >> 32) * words >> 32]++;
		}
		add_page(w);
	}
}

static void *work(void *p)
{
	struct worker *w = p;

	w->tid = gettid();
	pin_to(w->cpu);
	if (w->jumps)
		jump(w);
	else
		sweep(w);
	return NULL;
}

static void cut(struct worker *w, int threads, char *area, size_t bytes)
{
	const size_t words = bytes / 8 / (size_t)threads / WORDS * WORDS;

	for (int i = 0; i < threads; i++) {
		w[i].from = (uint64_t *)(void *)area + (size_t)i * words;
		w[i].to = w[i].from + words;
		w[i].random = (uint64_t)i + 1;
		w[i].cpu = -1;
	}
}

static void start(struct worker *w, int threads, void *(*how)(void *))
{
	for (int i = 0; i < threads; i++)
		if (pthread_create(&w[i].thread, NULL, how, &w[i]) != 0) {
			fputs("cost: no thread\n", stderr);
			exit(1);
		}
}

static uint64_t finish(struct worker *w, int threads)
{
	uint64_t wrong = 0;

	atomic_store(&stop, 1);
	for (int i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		wrong += w[i].wrong;
	}
	return wrong;
}

/* ---- speed ---- */

/* KiB of this process in huge pages, of anonymous and of shared memory. */
static unsigned long huge_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long sum = 0, kib;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1 ||
			sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
			sum += kib;
	if (f)
		fclose(f);
	return sum;
}

/* `helpers`: CPU time of threads that are not ours. */
struct state {
	uint64_t ns, pages, cpu_ns, helpers_ns;
};

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool is_ours(const struct worker *w, int threads, pid_t tid)
{
	bool ours = tid == getpid();

	for (int i = 0; i < threads; i++)
		ours |= w[i].tid == tid;
	return ours;
}

/* The process's own clock is behind by what threads on other CPUs ran since their last tick. */
static uint64_t helpers_ns(const struct worker *w, int threads)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t sum = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		const pid_t tid = atoi(entry->d_name);

		/* The kernel's number of the CPU clock of a thread. */
		if (tid > 0 && !is_ours(w, threads, tid))
			sum += cpu_ns((clockid_t)(~(unsigned int)tid << 3 | 6));
	}
	if (dir)
		closedir(dir);
	return sum;
}

static struct state look(struct worker *w, int threads)
{
	struct state s = {.ns = now_ns()};

	for (int i = 0; i < threads; i++)
		s.pages += atomic_load_explicit(&w[i].pages, memory_order_relaxed);
	s.cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	s.helpers_ns = helpers_ns(w, threads);
	return s;
}

static void print_speed(const struct state *a, const struct state *b)
{
	const double ns = (double)(b->ns - a->ns);

	printf("mib_s %.1f\n", (double)(b->pages - a->pages) * PAGE / 1048576 / (ns * 1e-9));
	printf("cpu %.4f\n", (double)(b->cpu_ns - a->cpu_ns) / ns);
	printf("helpers %.6f\n", ((double)b->helpers_ns - (double)a->helpers_ns) / ns);
	printf("helpers_before_s %.6f\n", (double)a->helpers_ns * 1e-9);
}

static int speed(int argc, char **argv)
{
	const size_t bytes = (size_t)atol(argv[0]) << 20;
	const int threads = atoi(argv[1]);
	struct worker w[MAX_THREADS] = {0};
	struct state a, b;
	unsigned long huge;
	uint64_t wrong;

	cut(w, threads, map(bytes), bytes);
	for (int i = 0; i < threads; i++) {
		w[i].jumps = strcmp(argv[2], "random") == 0;
		w[i].cpu = argc > 5 + i ? atoi(argv[5 + i]) : -1;
	}
	start(w, threads, work);
	sleep_until(ns_of(argv[3]));
	huge = huge_kib();
	a = look(w, threads);
	sleep_until(ns_of(argv[4]));
	b = look(w, threads);
	printf("late_ms %.0f\n", (double)(a.ns - ns_of(argv[3])) / 1e6);
	print_speed(&a, &b);
	printf("huge_before %.1f\n", 100.0 * (double)huge * 1024 / (double)bytes);
	printf("huge_after %.1f\n", 100.0 * (double)huge_kib() * 1024 / (double)bytes);
	wrong = finish(w, threads);
	printf("wrong %lu\n", (unsigned long)wrong);
	return wrong ? 1 : 0;
}

/* ---- gaps ---- */

struct gaps {
	uint64_t over_100us, over_1ms, switched; /* the last: those over 1 ms in which it was */
	uint64_t longest_ns, seen_ns;
	long involuntary;
};

static long involuntary(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_nivcsw;
}

/* Gaps that begin in a turn. What is between turns, stopped, is none. */
static void watch(uint64_t from, uint64_t until, struct gaps *g)
{
	uint64_t t = now_ns();
	long switches;

	*g = (struct gaps){0};
	while (t < from)
		t = now_ns();
	switches = involuntary();
	g->involuntary = -switches;
	from = t = now_ns();
	while (t < until) {
		const uint64_t before = t;

		t = now_ns();
		if (t - before < LONG_NS)
			continue;
		g->over_100us++;
		if (t - before > g->longest_ns)
			g->longest_ns = t - before;
		if (t - before >= VERY_LONG_NS) {
			g->over_1ms++;
			g->switched += involuntary() != switches;
		}
		switches = involuntary();
		t = now_ns();
	}
	g->involuntary += involuntary();
	g->seen_ns = t - from;
}

struct spinner {
	pthread_t thread;
	int cpu, turns;
	uint64_t from, ns;
};

static void *spin(void *p)
{
	const struct spinner *s = p;
	struct gaps g;

	pin_to(s->cpu);
	for (int i = 0; i < s->turns; i++) {
		const uint64_t from = s->from + 2 * (uint64_t)i * s->ns;

		if (i > 0)
			sleep_until(from - s->ns / 2); /* stopped */
		watch(from + TURN_BEGINS_NS, from + s->ns - TURN_BEGINS_NS, &g);
		printf("turn %d %.4f %lu %lu %lu %.0f %ld\n", i, (double)g.seen_ns * 1e-9,
			(unsigned long)g.over_100us, (unsigned long)g.over_1ms,
			(unsigned long)g.switched, (double)g.longest_ns / 1e3, g.involuntary);
	}
	return NULL;
}

static int gaps(char **argv)
{
	const size_t bytes = (size_t)atol(argv[0]) << 20;
	struct spinner s = {.cpu = atoi(argv[1]),
		.from = ns_of(argv[3]),
		.ns = ns_of(argv[4]),
		.turns = atoi(argv[5])};
	struct worker w = {0};
	uint64_t wrong;

	cut(&w, 1, map(bytes), bytes);
	w.cpu = atoi(argv[2]);
	start(&w, 1, work);
	if (pthread_create(&s.thread, NULL, spin, &s) != 0)
		return 1;
	pthread_join(s.thread, NULL);
	wrong = finish(&w, 1);
	printf("wrong %lu\n", (unsigned long)wrong);
	return wrong ? 1 : 0;
}

/* ---- single touches ---- */

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How many took less than a power of two, and not than the one before. */
static void print_samples(uint64_t *ns, size_t nr)
{
	size_t i = 0;

	qsort(ns, nr, sizeof(*ns), by_size);
	printf("n %zu\n", nr);
	if (nr == 0)
		return;
	printf("p50_ns %lu\np99_ns %lu\nmax_ns %lu\n", (unsigned long)ns[nr / 2],
		(unsigned long)ns[nr - 1 - nr / 100], (unsigned long)ns[nr - 1]);
	for (uint64_t below = 1; i < nr; below *= 2) {
		const size_t first = i;

		while (i < nr && ns[i] < below)
			i++;
		if (i > first)
			printf("below_ns %lu %zu\n", (unsigned long)below, i - first);
	}
}

static uint64_t timed_touch(volatile char *at)
{
	const uint64_t began = fast_ns();

	++*at;
	return fast_ns() - began;
}

/* One page of each chunk, chunks in an order that no prefetcher knows. */
static int touch(char *area, size_t bytes)
{
	static uint64_t ns[MAX_SAMPLES];
	const size_t chunks = bytes / CHUNK;
	uint64_t at = 1;
	size_t nr = 0;

	for (; nr < chunks && nr < MAX_SAMPLES; nr++) {
		at = (at * 5 + 3) % chunks; /* each once where chunks are a power of two */
		ns[nr] = timed_touch(area + at * CHUNK);
	}
	print_samples(ns, nr);
	return 0;
}

static char *dropped(size_t bytes)
{
	const int fd = memfd_create("dropped", MFD_CLOEXEC);
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	memset(at, 0, bytes);
	return madvise(at, bytes, MADV_DONTNEED) == 0 ? at : NULL;
}

static long minor_faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_minflt;
}

/* The first touch of each page in each sweep is timed. */
static void *time_sweep(void *p)
{
	struct worker *w = p;
	long faults;

	pin_to(w->cpu);
	faults = minor_faults();

	while (!stopped())
		for (uint64_t *page = w->from; page < w->to && !stopped(); page += WORDS) {
			const uint64_t took = timed_touch((char *)page);
			long before = faults;

			if (took < SUSPECT_NS)
				continue;
			faults = minor_faults();
			if (faults > before && w->nr < MAX_SAMPLES)
				w->ns[w->nr++] = took;
		}
	return NULL;
}

static int swept(size_t bytes, char **argv)
{
	struct worker w[2] = {0};

	cut(w, 2, map(bytes), bytes);
	for (int i = 0; i < 2; i++) {
		w[i].cpu = atoi(argv[1 + i]);
		w[i].ns = calloc(2 * (size_t)MAX_SAMPLES, sizeof(*w[i].ns));
	}
	if (!w[0].ns || !w[1].ns)
		return 1;
	start(w, 2, time_sweep);
	sleep_until(now_ns() + ns_of(argv[0]));
	finish(w, 2);
	memcpy(w[0].ns + w[0].nr, w[1].ns, w[1].nr * sizeof(*w[0].ns));
	print_samples(w[0].ns, w[0].nr + w[1].nr);
	return 0;
}

static int touches(int argc, char **argv)
{
	const size_t bytes = (size_t)atol(argv[1]) << 20;
	char *area;

	if (strcmp(argv[0], "mapped") == 0)
		return touch(map(bytes), bytes);
	if (strcmp(argv[0], "swept") == 0)
		return argc > 4 ? swept(bytes, argv + 2) : 2;
	area = dropped(bytes);
	if (area)
		return touch(area, bytes);
	perror("cost: memfd");
	return 1;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 7 && strcmp(argv[1], "speed") == 0 && atoi(argv[3]) <= MAX_THREADS)
		return speed(argc - 2, argv + 2);
	if (argc == 8 && strcmp(argv[1], "gaps") == 0)
		return gaps(argv + 2);
	if (argc >= 4 && strcmp(argv[1], "touch") == 0)
		return touches(argc - 2, argv + 2);
	fputs("usage: cost speed|gaps|touch ...: see cost.c\n", stderr);
	return 2;
}
