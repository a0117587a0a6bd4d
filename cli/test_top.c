/* SPDX-License-Identifier: MIT */
/* numabal top: what is said of a session, and that it fits every screen. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../live/launch.h"
#include "../topo/topo.h"
#include "cmd.h"
#include "top_page.h"

enum { MIB = 1 << 20 };

/* A session of our own, and a process that was started in it and does nothing. */
struct stage {
	struct nb_session *session;
	char path[NB_SESSION_PATH];
	pid_t pid;
	struct top_data *data;
	struct top_page *page;
};

static char why[CLI_WHY_LEN];

static pid_t idle_process(const char *path)
{
	const pid_t pid = fork();

	if (pid == 0) {
		setenv(NB_SESSION_ENV, path, 1);
		execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

/* Until it has become the program, with the session in its environment. */
static void wait_for_exec(uint32_t pid)
{
	const struct timespec pause = {0, 5000000};
	struct nb_session *s;

	for (int i = 0; i < 1000; i++) {
		if (nb_session_of(pid, &s, why, sizeof(why)) == 0)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("%s", why);
}

static void set_stage(struct stage *g, const char *topology)
{
	struct nb_config config;
	struct topo_info info;

	nb_config_from_system(&config, nb_system_find("balancenuma-v8"));
	assert_int_equal(topo_read(&info, topology, why, sizeof(why)), 0);
	assert_int_equal(
		nb_session_create(&info.topo, &config, 0, g->path, &g->session, why, sizeof(why)),
		0);
	topo_info_free(&info);
	strcpy(g->session->system, "balancenuma-v8");
	g->session->flags = NB_SESSION_VIRTUAL;
	g->pid = idle_process(g->path);
	wait_for_exec((uint32_t)g->pid);
	g->page = calloc(1, sizeof(*g->page));
	assert_non_null(g->page);
	g->data = NULL;
}

static struct nb_slot *add_process(struct stage *g, int slot, uint32_t pid, uint64_t managed)
{
	struct nb_slot *s = &g->session->slot[slot];

	atomic_store(&s->pid, pid);
	snprintf(s->comm, sizeof(s->comm), "worker%d", slot);
	atomic_store(&s->stats.managed_bytes, managed);
	return s;
}

static void end_process(struct stage *g)
{
	kill(g->pid, SIGKILL);
	waitpid(g->pid, NULL, 0);
}

static void clear_stage(struct stage *g)
{
	if (g->data != NULL)
		top_close(g->data);
	end_process(g);
	nb_session_destroy(g->session, g->path);
	free(g->page);
}

static void look(struct stage *g)
{
	if (g->data == NULL)
		assert_int_equal(top_open(&g->data, (uint32_t)g->pid, why, sizeof(why)), 0);
	assert_int_equal(top_look(g->data), 0);
}

static const char *find_line(const struct stage *g, const char *text)
{
	for (int i = 0; i < g->page->nr; i++)
		if (strstr(g->page->line[i], text) != NULL)
			return g->page->line[i];
	return NULL;
}

static void show(struct stage *g, struct top_view *view)
{
	top_page(g->page, g->data, view);
}

#define assert_line(g, text)                                                                       \
	do {                                                                                       \
		if (find_line(g, text) == NULL)                                                    \
			fail_msg("no line with '%s'", text);                                       \
	} while (0)

/* Two nodes, 30 MiB on the first and 10 on the second, in two regions. */
static void survey(struct stage *g, struct nb_slot *slot)
{
	struct nb_survey *s = &slot->survey;
	uint64_t *bytes = nb_session_node_bytes(g->session, slot);

	bytes[0] = 30 * MIB;
	bytes[1] = 10 * MIB;
	s->nr_regions = 2;
	s->region[0] = (struct nb_survey_region){.start = 0x7f0000400000,
		.bytes = 30 * MIB,
		.node = {0, 1, -1, -1},
		.permille = {667, 333, 0, 0}};
	s->region[1] = (struct nb_survey_region){.start = 0x7f0000000000,
		.bytes = 10 * MIB,
		.node = {0, -1, -1, -1},
		.permille = {1000, 0, 0, 0}};
	atomic_store(&s->version, 2);
}

static void test_a_process(void **state)
{
	struct top_view view = {.width = 100};
	struct nb_slot *slot;
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	view.pid = (uint32_t)g.pid;
	slot = add_process(&g, 0, (uint32_t)g.pid, 40 * MIB);
	survey(&g, slot);
	atomic_store(&slot->stats.last_samples, 8);
	atomic_store(&slot->stats.last_local, 6);
	look(&g);
	show(&g, &view);
	assert_line(&g, "worker0");
	assert_line(&g, "balancenuma-v8 on 2 virtual nodes");
	assert_line(&g, "managed 40.0 MiB; local 75.0 %; agent - of a CPU");
	assert_line(&g, "hint faults -/s");
	/* 30 of 40 MiB: three quarters of 20. */
	assert_line(&g, "75.0 %  |###############     |");
	assert_line(&g, "25.0 %  |#####               |");
	assert_line(&g, "7f0000400000-7f0002200000    30.0 MiB  N0 66.7 %  N1 33.3 %");
	assert_line(&g, " 100% |");
	clear_stage(&g);
}

static void test_rates_are_of_the_time_between_looks(void **state)
{
	const struct timespec pause = {0, 50000000};
	const struct top_process *p;
	struct nb_slot *slot;
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	slot = add_process(&g, 3, (uint32_t)g.pid, MIB);
	atomic_store(&slot->stats.faults, 1000);
	look(&g);
	p = top_find(g.data, (uint32_t)g.pid);
	assert_true(isnan(p->faults_s) && isnan(p->moved_s) && isnan(p->agent_share));
	assert_true(isnan(p->local));
	nanosleep(&pause, NULL);
	atomic_store(&slot->stats.faults, 1300);
	atomic_store(&slot->stats.moved, 512);
	atomic_store(&slot->stats.agent_ns, 7000000);
	look(&g);
	p = top_find(g.data, (uint32_t)g.pid);
	assert_true(top_interval_s(g.data) >= 0.05);
	assert_true(fabs(p->faults_s * top_interval_s(g.data) - 300) < 1e-6);
	assert_true(fabs(p->moved_s * top_interval_s(g.data) - 512) < 1e-6);
	assert_true(fabs(p->agent_share * top_interval_s(g.data) - 0.007) < 1e-9);
	clear_stage(&g);
}

/* While it is watched, agents know; afterwards they forget. */
static void test_the_session_is_watched(void **state)
{
	struct timespec now;
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	assert_int_equal(atomic_load(&g.session->watched_ns), 0);
	look(&g);
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_true(atomic_load(&g.session->watched_ns) > (uint64_t)now.tv_sec * 1000000000);
	assert_true(atomic_load(&g.session->watched_ns) < (uint64_t)(now.tv_sec + 60) * 1000000000);
	clear_stage(&g);
}

static void test_lists_are_sorted(void **state)
{
	struct top_view view = {.width = 120};
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	/* Two that are surely there. */
	add_process(&g, 0, (uint32_t)getpid(), 10 * MIB);
	add_process(&g, 1, (uint32_t)g.pid, 20 * MIB);
	look(&g);
	assert_int_equal(top_nr(g.data), 2);
	show(&g, &view);
	assert_int_equal(view.chosen_pid, g.pid);
	view.process_sort = TOP_BY_PID;
	show(&g, &view);
	assert_int_equal(view.chosen_pid, g.pid < getpid() ? g.pid : getpid());
	clear_stage(&g);
}

static void test_regions_are_sorted(void **state)
{
	struct top_view view = {.width = 120, .height = 50};
	static const char *const first[] = {"7f0000400000-", "7f0000400000-", "7f0000000000-"};
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	view.pid = (uint32_t)g.pid;
	survey(&g, add_process(&g, 0, (uint32_t)g.pid, 40 * MIB));
	look(&g);
	for (view.region_sort = 0; view.region_sort < TOP_NR_REGION_SORTS; view.region_sort++) {
		show(&g, &view);
		for (int i = 0; i < g.page->nr; i++)
			if (g.page->look[i] == TOP_SELECTED)
				assert_non_null(strstr(g.page->line[i], first[view.region_sort]));
	}
	clear_stage(&g);
}

static void test_an_ended_process(void **state)
{
	struct top_view view = {.width = 120};
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	view.pid = (uint32_t)g.pid;
	add_process(&g, 0, (uint32_t)g.pid, 40 * MIB);
	look(&g);
	assert_false(top_over(g.data));
	end_process(&g);
	look(&g);
	assert_true(top_over(g.data));
	show(&g, &view);
	assert_line(&g, ", ended");
	clear_stage(&g);
}

static void test_names_are_made_printable(void **state)
{
	struct top_view view = {.width = 120};
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	memcpy(add_process(&g, 0, (uint32_t)g.pid, MIB)->comm, "a\033[2J\nb\377------------", 16);
	look(&g);
	show(&g, &view);
	assert_line(&g, "a?[2J?b?--------");
	clear_stage(&g);
}

/* What a program writes into its session must not lead outside of it. */
static void test_nonsense_in_a_survey(void **state)
{
	struct top_view view = {.width = 120};
	struct nb_slot *slot;
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	view.pid = (uint32_t)g.pid;
	slot = add_process(&g, 0, (uint32_t)g.pid, UINT64_MAX);
	survey(&g, slot);
	slot->survey.region[0].node[0] = 30000;
	slot->survey.region[0].permille[0] = 65535;
	atomic_store(&slot->stats.last_samples, 1);
	atomic_store(&slot->stats.last_local, UINT64_MAX);
	nb_session_node_bytes(g.session, slot)[0] = UINT64_MAX;
	look(&g);
	show(&g, &view);
	assert_line(&g, "local 100.0 %");
	slot->survey.nr_regions = UINT32_MAX;
	look(&g);
	show(&g, &view);
	/* A writer that never ends is not waited for. */
	atomic_store(&slot->survey.version, 3);
	look(&g);
	clear_stage(&g);
}

/* ---- sizes ---- */

static void check_size(struct stage *g, struct top_view *view)
{
	int selected = 0;

	show(g, view);
	assert_true(g->page->nr <= view->height);
	for (int i = 0; i < g->page->nr; i++) {
		assert_true(strlen(g->page->line[i]) <= (size_t)view->width);
		selected += g->page->look[i] == TOP_SELECTED;
	}
	assert_true(selected <= 1);
	/* Title, two lines of numbers, a header and one line of the list. */
	if (view->height >= 6)
		assert_int_equal(selected, 1);
	top_page_help(g->page, view);
	assert_true(g->page->nr <= view->height);
}

static void test_every_size(void **state)
{
	struct nb_slot *slot;
	struct stage g;

	(void)state;
	set_stage(&g, "12 nodes x 2 cpus x 1G");
	slot = add_process(&g, 0, (uint32_t)g.pid, 40 * MIB);
	survey(&g, slot);
	atomic_store(&slot->notes, UINT32_MAX);
	for (uint32_t i = 2; i < NB_SURVEY_REGIONS; i++)
		slot->survey.region[i] = slot->survey.region[i % 2];
	slot->survey.nr_regions = NB_SURVEY_REGIONS;
	for (int i = 1; i < 100; i++)
		add_process(&g, i, (uint32_t)g.pid, 40 * MIB);
	look(&g);
	for (int height = 1; height <= 70; height++)
		for (int width = 1; width <= 300; width += width < 130 ? 1 : 23)
			for (int what = 0; what < 6; what++) {
				struct top_view view = {.width = width,
					.height = height,
					.pid = what % 2 ? (uint32_t)g.pid : 0,
					.selected = what < 2   ? 0
						    : what < 4 ? 20
							       : SIZE_MAX / 2};

				check_size(&g, &view);
			}
	clear_stage(&g);
}

/* Moving the choice scrolls no more than it must. */
static void test_scrolling(void **state)
{
	struct top_view view = {.width = 80, .height = 13};
	struct stage g;

	(void)state;
	set_stage(&g, "2 nodes x 2 cpus x 1G");
	for (int i = 0; i < 100; i++)
		add_process(&g, i, (uint32_t)g.pid, 40 * MIB);
	look(&g);
	show(&g, &view);
	/* Title, blank, header, and ten lines. */
	assert_int_equal(view.page, 10);
	view.selected = 9;
	show(&g, &view);
	assert_int_equal(view.first, 0);
	view.selected = 10;
	show(&g, &view);
	assert_int_equal(view.first, 1);
	view.selected = 1;
	show(&g, &view);
	assert_int_equal(view.first, 1);
	view.selected = SIZE_MAX / 2;
	show(&g, &view);
	assert_int_equal(view.selected, 99);
	assert_int_equal(view.first, 90);
	clear_stage(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process),
		cmocka_unit_test(test_rates_are_of_the_time_between_looks),
		cmocka_unit_test(test_the_session_is_watched),
		cmocka_unit_test(test_lists_are_sorted),
		cmocka_unit_test(test_regions_are_sorted),
		cmocka_unit_test(test_an_ended_process),
		cmocka_unit_test(test_names_are_made_printable),
		cmocka_unit_test(test_nonsense_in_a_survey),
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_scrolling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
