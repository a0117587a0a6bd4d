/* SPDX-License-Identifier: MIT */
/*
 * inject: makes system calls of the live part fail, by its table of them. Linked into a shim for
 * tests alone.
 *
 * NUMABAL_INJECT is a list of CALL:N:WHAT, separated by commas: the Nth call (from 1) of that name
 * fails with errno WHAT (a number), or hangs for ever (WHAT = hang: of the helpers' calls the Nth);
 * N+ means that one and all later ones, and N% each Nth one. CALL:0:fake for move_pages makes up
 * two nodes: pages are where they were moved to last, and on node 0 before that; the session's
 * nodes then count as real. With fakeN a page takes N us to be moved. CALL:0:real: they count as
 * real, and the kernel is asked.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "../../live/lock.h"
#include "../../live/os.h"
#include "../../live/shim.h"

enum {
	MAX_RULES = 16,
	PAGES = 1 << 20,
};

struct rule {
	enum nb_os_call call;
	unsigned long nth;
	char kind; /* 0, '+', '%' */
	long what; /* errno; -1 = hang */
};

static struct rule rules[MAX_RULES];
static int nr_rules;
static atomic_ulong calls[NB_NR_OS_CALLS];
static atomic_ulong helpers_calls[NB_NR_OS_CALLS];
static bool faked, real;
static long fake_us;
static _Atomic signed char node_of[PAGES];

static _Noreturn void hang(void)
{
	static _Atomic uint32_t never;

	for (;;)
		nb_futex_wait(&never, 0, 0);
}

static bool hits(const struct rule *r, unsigned long n)
{
	if (r->kind == '+')
		return n >= r->nth;
	if (r->kind == '%')
		return n % r->nth == 0;
	return n == r->nth;
}

/* move_pages(pid, count, pages, nodes, status, flags) on two nodes. */
static long fake_move(const struct nb_os_args *args)
{
	void **page = (void **)args->a[2];
	const int *node = (const int *)args->a[3];
	int *status = (int *)args->a[4];

	for (long i = 0; i < args->a[1]; i++) {
		const size_t slot = ((uint64_t)page[i] >> 12) % PAGES;

		if (node != NULL)
			node_of[slot] = (signed char)node[i];
		status[i] = node_of[slot];
	}
	if (node != NULL && fake_us > 0) {
		static _Atomic uint32_t never;

		nb_futex_wait(&never, 0, (uint64_t)args->a[1] * (uint64_t)fake_us * 1000);
	}
	return 0;
}

static bool in_helper(void)
{
	return nb_guest_is_helper(
		nb_shim_guest(), (uint32_t)nb_arch_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
}

/* Memory calls of the program's own threads go through the table too; those must not fail for no
 * reason. */
static bool is_memory_call(enum nb_os_call call)
{
	return call == NB_OS_mmap || call == NB_OS_munmap || call == NB_OS_mremap ||
	       call == NB_OS_mprotect || call == NB_OS_madvise;
}

static unsigned long count(atomic_ulong *counter)
{
	return atomic_fetch_add(counter, 1) + 1;
}

static long injected(enum nb_os_call call, const struct nb_os_args *args)
{
	const bool helper = in_helper();
	const unsigned long n = helper || !is_memory_call(call) ? count(&calls[call]) : 0;
	const unsigned long helpers = helper ? count(&helpers_calls[call]) : 0;

	for (int i = 0; i < nr_rules; i++) {
		const unsigned long nth = rules[i].what < 0 ? helpers : n;

		if (rules[i].call != call || nth == 0 || !hits(&rules[i], nth))
			continue;
		if (rules[i].what < 0)
			hang();
		return -rules[i].what;
	}
	if (call == NB_OS_move_pages && faked)
		return fake_move(args);
	return nb_os_kernel(call, args);
}

static enum nb_os_call call_named(const char *name, size_t len)
{
	for (int i = 0; i < NB_NR_OS_CALLS; i++)
		if (strlen(nb_os_table[i].name) == len &&
			memcmp(nb_os_table[i].name, name, len) == 0)
			return (enum nb_os_call)i;
	return NB_NR_OS_CALLS;
}

/* CALL:N:WHAT, up to a comma or the end. */
static void read_rule(const char *text)
{
	struct rule r = {0};
	const char *colon = strchr(text, ':');
	char *end;

	if (colon == NULL || nr_rules == MAX_RULES)
		return;
	r.call = call_named(text, (size_t)(colon - text));
	r.nth = strtoul(colon + 1, &end, 10);
	r.kind = *end == '+' || *end == '%' ? *end++ : '\0';
	if (r.call == NB_NR_OS_CALLS || *end != ':')
		return;
	nb_os_table[r.call].current = injected;
	if (strncmp(end + 1, "fake", 4) == 0) {
		faked = true;
		fake_us = atol(end + 5);
		return;
	}
	if (strncmp(end + 1, "real", 4) == 0) {
		real = true;
		return;
	}
	r.what = strncmp(end + 1, "hang", 4) == 0 ? -1 : atol(end + 1);
	rules[nr_rules++] = r;
}

/* After the shim's own, which maps the session. */
__attribute__((constructor(65535))) static void begin(void)
{
	const char *text = getenv("NUMABAL_INJECT");

	for (; text != NULL && *text; text += strcspn(text, ",")) {
		text += *text == ',';
		read_rule(text);
	}
	if ((faked || real) && nb_shim_guest()->session != NULL)
		nb_shim_guest()->session->flags &= ~(uint32_t)NB_SESSION_VIRTUAL;
}
