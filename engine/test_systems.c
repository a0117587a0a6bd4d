/* SPDX-License-Identifier: MIT */
/* The table of systems, and how a configuration is set. */
#include "test_world.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "events.h"
#include "why.h"

static struct nb_config config_of(const char *name)
{
	struct nb_config c;

	assert_non_null(nb_system_find(name));
	nb_config_from_system(&c, nb_system_find(name));
	return c;
}

static bool has(const char *system, enum nb_mechanism m)
{
	const struct nb_config c = config_of(system);

	return nb_has(&c, m);
}

static int64_t tune(const char *system, enum nb_tunable t)
{
	const struct nb_config c = config_of(system);

	return nb_tune(&c, t);
}

static void rows_are_there_in_order(void **state)
{
	static const char *const names[] = {"none", "moron", "thpmigrate-v5", "adaptscan-v5",
		"delaystart-v5", "balancenuma-v8", "linux-3.13", "linux-6.4", "linux-6.7",
		"linux-6.8", "linux-6.12", "numabal"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct nb_system *s = nb_system_at(i);

		assert_non_null(s);
		assert_string_equal(nb_system_name(s), names[i]);
		assert_ptr_equal(nb_system_find(names[i]), s);
		assert_true(strlen(nb_system_from(s)) > 0 && strlen(nb_system_summary(s)) > 0);
	}
	assert_null(nb_system_at(1000));
	assert_null(nb_system_find(""));
	assert_null(nb_system_find("balancenuma"));
}

static void every_row_is_a_sound_configuration(void **state)
{
	(void)state;
	for (size_t i = 0; nb_system_at(i) != NULL; i++) {
		const struct nb_config c = config_of(nb_system_name(nb_system_at(i)));

		assert_int_equal(c.hz, 250);
		for (int m = NB_NR_MECHANISMS; m < 64 * NB_MECHANISM_WORDS; m++)
			assert_false(nb_has(&c, (enum nb_mechanism)m));
		for (int t = 0; t < NB_NR_TUNABLES; t++) {
			assert_true(c.tunables[t] >= nb_tunable_table[t].min);
			assert_true(c.tunables[t] <= nb_tunable_table[t].max);
		}
	}
}

/* The history of the series, from its patches. */
static void rows_have_what_their_patches_bring(void **state)
{
	(void)state;
	assert_false(has("none", NB_MECH_BALANCING));
	assert_false(has("none", NB_MECH_MIGRATE_ON_FAULT));
	assert_true(has("none", NB_MECH_MIGRATE_STATS));
	assert_true(has("moron", NB_MECH_SCAN_HALF_RATE));
	assert_false(has("moron", NB_MECH_TWO_STAGE_FILTER));
	assert_false(has("moron", NB_MECH_MIGRATE_RATELIMIT));
	assert_false(has("moron", NB_MECH_THP_MIGRATION));
	assert_false(has("moron", NB_MECH_PMD_BATCH));
	assert_false(has("thpmigrate-v5", NB_MECH_SCAN_HALF_RATE));
	assert_true(has("thpmigrate-v5", NB_MECH_THP_MIGRATION));
	assert_true(has("thpmigrate-v5", NB_MECH_SCAN_GROW));
	assert_false(has("adaptscan-v5", NB_MECH_SCAN_GROW));
	assert_true(has("adaptscan-v5", NB_MECH_SCAN_GROW_SETTLED));
	assert_false(has("adaptscan-v5", NB_MECH_SECOND_NODE));
	assert_true(has("delaystart-v5", NB_MECH_SECOND_NODE));
	assert_false(has("delaystart-v5", NB_MECH_THP_STATS));
	assert_true(has("balancenuma-v8", NB_MECH_THP_RATELIMIT));
	assert_true(has("balancenuma-v8", NB_MECH_TLB_LOCAL_FLUSH));
	assert_false(has("balancenuma-v8", NB_MECH_FORCE));
}

/* The history of mainline, from its releases. */
static void mainline_rows_have_what_their_releases_bring(void **state)
{
	(void)state;
	assert_true(has("linux-3.13", NB_MECH_CPUPID) && has("linux-3.13", NB_MECH_NUMA_GROUP));
	assert_true(has("linux-3.13", NB_MECH_MIGRATE_RATELIMIT));
	assert_false(has("linux-3.13", NB_MECH_SECOND_NODE));
	assert_false(has("linux-3.13", NB_MECH_PMD_BATCH));
	assert_false(has("linux-3.13", NB_MECH_VMA_PIDS));
	assert_true(has("linux-6.4", NB_MECH_VMA_PIDS) && has("linux-6.4", NB_MECH_GROUP_SPREAD));
	/* The window of 2012 left in October 2018. */
	assert_false(has("linux-6.4", NB_MECH_MIGRATE_RATELIMIT));
	assert_false(has("linux-6.4", NB_MECH_VMA_PREV_SEQ));
	assert_true(has("linux-6.7", NB_MECH_VMA_PREV_SEQ) && has("linux-6.7", NB_MECH_VMA_FORCE));
	assert_false(has("linux-6.7", NB_MECH_VMA_START_SEQ));
	assert_true(has("linux-6.8", NB_MECH_VMA_START_SEQ));
	assert_false(has("linux-6.8", NB_MECH_VMA_STARVING));
	assert_true(has("linux-6.12", NB_MECH_VMA_STARVING));
	assert_int_equal(tune("linux-6.8", NB_TUNE_SCAN_PERIOD_MIN_MS), 1000);
	assert_int_equal(tune("linux-6.8", NB_TUNE_SCAN_PERIOD_MAX_MS), 60000);
	assert_int_equal(tune("linux-6.8", NB_TUNE_SCAN_DELAY_MS), 1000);
	assert_int_equal(tune("linux-6.8", NB_TUNE_SCAN_SIZE_MB), 256);
	assert_int_equal(tune("linux-6.8", NB_TUNE_MAX_SCAN_WINDOW_MB_S), 2560);
}

/* What docs/systems.md says of it. */
static void our_row_has_homes_instead_of_groups(void **state)
{
	(void)state;
	assert_true(has("numabal", NB_MECH_HOME_NODE) && has("numabal", NB_MECH_SCAN_NEW_VMA));
	assert_true(has("numabal", NB_MECH_SCAN_DOUBLE) && has("numabal", NB_MECH_SCAN_ADAPT));
	assert_true(
		has("numabal", NB_MECH_SCAN_SINGLE_LOCAL) && has("numabal", NB_MECH_SINGLE_MAPPED));
	assert_false(has("numabal", NB_MECH_NUMA_GROUP) || has("numabal", NB_MECH_PREFERRED_NODE));
	assert_false(has("numabal", NB_MECH_VMA_PIDS) || has("numabal", NB_MECH_VMA_SCAN_DELAY));
	assert_false(has("linux-6.12", NB_MECH_HOME_NODE));
	assert_int_equal(tune("numabal", NB_TUNE_HOME_PATIENCE_MS), 10000);
}

static void rows_have_their_tunables(void **state)
{
	(void)state;
	assert_int_equal(tune("moron", NB_TUNE_SCAN_PERIOD_MAX_MS), 1600);
	assert_int_equal(tune("thpmigrate-v5", NB_TUNE_SCAN_PERIOD_MAX_MS), 1600);
	assert_int_equal(tune("thpmigrate-v5", NB_TUNE_SCAN_GROW_JIFFIES), 2);
	assert_int_equal(tune("adaptscan-v5", NB_TUNE_SCAN_PERIOD_MAX_MS), 5000);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_PERIOD_MAX_MS), 5000);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_GROW_JIFFIES), 10);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_PERIOD_MIN_MS), 100);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_PERIOD_RESET_MS), 60000);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_DELAY_MS), 1000);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_SCAN_SIZE_MB), 256);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_RATELIMIT_MB), 128);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_MIGRATE_INTERVAL_MS), 100);
	assert_int_equal(tune("balancenuma-v8", NB_TUNE_PTEUPDATE_INTERVAL_MS), 1000);
}

static void names_are_complete_and_unlike(void **state)
{
	(void)state;
	for (int m = 0; m < NB_NR_MECHANISMS; m++) {
		assert_true(strlen(nb_mechanism_table[m].text) > 10);
		for (int other = 0; other < m; other++)
			assert_string_not_equal(
				nb_mechanism_table[m].name, nb_mechanism_table[other].name);
		for (int t = 0; t < NB_NR_TUNABLES; t++)
			assert_string_not_equal(
				nb_mechanism_table[m].name, nb_tunable_table[t].name);
	}
	for (int i = 0; i < NB_NR_EVENTS; i++)
		assert_true(nb_event_names[i].name != NULL && nb_event_names[i].text != NULL);
	for (int i = 0; i < NB_NR_SKIPS; i++)
		assert_non_null(nb_skip_names[i].name);
	for (int i = 0; i < NB_NR_WHYS; i++)
		assert_non_null(nb_why_names[i].name);
	for (int i = 0; i < NB_NR_MOVE_STATUSES; i++)
		assert_non_null(nb_move_status_names[i].name);
	assert_string_equal(nb_skip_names[NB_SKIP_PID_INACTIVE].name, "pid_inactive");
}

static void mechanisms_are_switched_by_name(void **state)
{
	static const char *const on[] = {"on", "1", "true", "yes"};
	static const char *const off[] = {"off", "0", "false", "no"};
	struct nb_config c = config_of("balancenuma-v8");
	char text[64];

	(void)state;
	for (int m = 0; m < NB_NR_MECHANISMS; m++)
		for (int i = 0; i < 4; i++) {
			snprintf(text, sizeof(text), "%s=%s", nb_mechanism_table[m].name, off[i]);
			assert_int_equal(nb_config_set(&c, text, NULL, 0), 0);
			assert_false(nb_has(&c, m));
			snprintf(text, sizeof(text), "%s=%s", nb_mechanism_table[m].name, on[i]);
			assert_int_equal(nb_config_set(&c, text, NULL, 0), 0);
			assert_true(nb_has(&c, m));
		}
}

static void tunables_take_their_range(void **state)
{
	struct nb_config c = config_of("balancenuma-v8");
	char text[96];

	(void)state;
	for (int t = 0; t < NB_NR_TUNABLES; t++) {
		const struct nb_tunable_info *info = &nb_tunable_table[t];
		const int64_t good[] = {info->min, info->max};
		const int64_t bad[] = {info->min - 1, info->max + 1};

		for (int i = 0; i < 2; i++) {
			snprintf(text, sizeof(text), "%s=%lld", info->name, (long long)good[i]);
			assert_int_equal(nb_config_set(&c, text, NULL, 0), 0);
			assert_int_equal(nb_tune(&c, t), good[i]);
			snprintf(text, sizeof(text), "%s=%lld", info->name, (long long)bad[i]);
			assert_int_equal(nb_config_set(&c, text, NULL, 0), -ERANGE);
			assert_int_equal(nb_tune(&c, t), good[i]);
		}
	}
}

struct bad_setting {
	const char *text;
	int err;
	const char *named; /* what the sentence must name */
};

static void bad_settings_are_refused_by_one_line(void **state)
{
	static const struct bad_setting bad[] = {
		{"", -EINVAL, "name=value"},
		{"two_stage_filter", -EINVAL, "name=value"},
		{"=on", -ENOENT, "no mechanism"},
		{"two_stage_filte=on", -ENOENT, "two_stage_filte"},
		{"two_stage_filter2=on", -ENOENT, "two_stage_filter2"},
		{"TWO_STAGE_FILTER=on", -ENOENT, "TWO_STAGE_FILTER"},
		{"two_stage_filter=", -EINVAL, "on or off"},
		{"two_stage_filter=ON", -EINVAL, "on or off"},
		{"two_stage_filter=2", -EINVAL, "on or off"},
		{"scan_size_mb=", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb=on", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb=1.5", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb=0x10", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb= 1", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb=1 ", -EINVAL, "1 to 1048576 MiB"},
		{"scan_size_mb=0", -ERANGE, "1 to 1048576 MiB"},
		{"scan_size_mb=-5", -ERANGE, "1 to 1048576 MiB"},
		{"scan_size_mb=99999999999999999999999", -ERANGE, "1 to 1048576 MiB"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa="
		 "1",
			-ENOENT, "no mechanism"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nb_config c = config_of("balancenuma-v8");
		const struct nb_config before = c;
		char why[200] = "";

		assert_int_equal(nb_config_set(&c, bad[i].text, why, sizeof(why)), bad[i].err);
		assert_memory_equal(&c, &before, sizeof(c));
		if (strstr(why, bad[i].named) == NULL)
			fail_msg("'%s' said '%s'", bad[i].text, why);
		assert_null(strchr(why, '\n'));
	}
}

static void a_running_engine_takes_settings(void **state)
{
	struct world w = w_begin("balancenuma-v8", 2);
	char why[200] = "";

	(void)state;
	assert_int_equal(nb_engine_set(w.m->e, "scan_size_mb=7", why, sizeof(why)), 0);
	assert_int_equal(nb_tune(nb_engine_config(w.m->e), NB_TUNE_SCAN_SIZE_MB), 7);
	assert_int_equal(nb_engine_set(w.m->e, "scan_size_mb=no", why, sizeof(why)), -EINVAL);
	assert_int_equal(nb_tune(nb_engine_config(w.m->e), NB_TUNE_SCAN_SIZE_MB), 7);
	assert_true(strlen(why) > 0);
	w_end(&w);
}

static void engines_refuse_what_they_cannot_use(void **state)
{
	struct world w = w_new("balancenuma-v8", 2);

	(void)state;
	w.m->config.hz = 0;
	assert_false(tm_start(w.m));
	w.m->config.hz = 2000000;
	assert_false(tm_start(w.m));
	w.m->config.hz = 1000;
	w.m->distance[1] = 0;
	assert_false(tm_start(w.m));
	w.m->distance[1] = 20;
	w.m->nodes[0].mem_bytes = w.m->nodes[1].mem_bytes = 0;
	assert_false(tm_start(w.m));
	w.m->nodes[0].mem_bytes = 1;
	w.m->machine.move = NULL;
	assert_false(tm_start(w.m));
	w_end(&w);
}

static void engines_need_memory(void **state)
{
	(void)state;
	for (int64_t allocs = 0; allocs < 5; allocs++) {
		struct world w = w_new("balancenuma-v8", 2);

		w.m->allocs_left = allocs;
		assert_false(tm_start(w.m));
		w_end(&w);
	}
}

/* What errors quote of others' texts: all of it, or as much from both ends as fits. */
static void quotes_are_short(void **state)
{
	char text[1000];

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		struct nb_quote q;

		for (size_t i = 0; i < len; i++)
			text[i] = (char)('a' + i % 26);
		text[len] = '\0';
		q = nb_quote(text);
		if (len <= NB_QUOTE_LEN) {
			assert_string_equal(q.text, text);
			continue;
		}
		assert_in_range(strlen(q.text), NB_QUOTE_LEN - 1, NB_QUOTE_LEN);
		assert_memory_equal(q.text, text, 78);
		assert_memory_equal(q.text + 78, "...", 3);
		assert_string_equal(q.text + 81, text + len - 78);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_there_in_order),
		cmocka_unit_test(every_row_is_a_sound_configuration),
		cmocka_unit_test(rows_have_what_their_patches_bring),
		cmocka_unit_test(rows_have_their_tunables),
		cmocka_unit_test(mainline_rows_have_what_their_releases_bring),
		cmocka_unit_test(our_row_has_homes_instead_of_groups),
		cmocka_unit_test(names_are_complete_and_unlike),
		cmocka_unit_test(mechanisms_are_switched_by_name),
		cmocka_unit_test(tunables_take_their_range),
		cmocka_unit_test(bad_settings_are_refused_by_one_line),
		cmocka_unit_test(a_running_engine_takes_settings),
		cmocka_unit_test(engines_refuse_what_they_cannot_use),
		cmocka_unit_test(engines_need_memory),
		cmocka_unit_test(quotes_are_short),
	};

	return cmocka_run_group_tests_name("systems", tests, NULL, NULL);
}
