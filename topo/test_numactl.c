/* SPDX-License-Identifier: MIT */
/* The text of `numactl -H`: how it is printed, mailed, pasted, cut and broken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define FIRST  "available: 2 nodes (0-1)\n"
#define NODE0  "node 0 cpus: 0 1\nnode 0 size: 1000 MB\nnode 0 free: 900 MB\n"
#define NODE1  "node 1 cpus: 2 3\nnode 1 size: 2000 MB\nnode 1 free: 1800 MB\n"
#define MATRIX "node distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n"
#define WHOLE  FIRST NODE0 NODE1 MATRIX

static void check_whole(const char *text)
{
	struct topo_info t;

	numactl_ok(&t, text);
	ASSERT_IDS(&t, 0, 1);
	assert_int_equal(t.kind, TOPO_NUMACTL);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(node_of_cpu(&t, 1), 0);
	assert_int_equal(node_of_cpu(&t, 2), 1);
	assert_int_equal(node_of(&t, 0)->mem_bytes, UINT64_C(1000) << 20);
	assert_int_equal(node_of(&t, 1)->free_bytes, UINT64_C(1800) << 20);
	assert_int_equal(distance_of(&t, 0, 1), 21);
	assert_int_equal(distance_of(&t, 1, 1), 10);
	assert_true(t.topo.has_distances);
	assert_int_equal(t.nr_notes, 0);
	topo_info_free(&t);
}

static void forms(void **state)
{
	static const char *const same[] = {
		WHOLE,
		/* no end of line at the end; blank lines; tabs; carriage returns; a prompt before
		   and after */
		FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 21\n1: 21 10",
		"\n\n" FIRST "\n" NODE0 "\n\n" NODE1 "\n" MATRIX "\n\n",
		"available:\t2 nodes (0-1)\n\tnode 0 cpus:\t0\t1\nnode\t0 size:\t1000 MB\nnode 0 "
		"free: 900\tMB\n" NODE1 MATRIX,
		"available: 2 nodes (0-1)\r\nnode 0 cpus: 0 1\r\nnode 0 size: 1000 MB\r\nnode 0 "
		"free: 900 MB\r\n" NODE1
		"node distances:\r\nnode   0   1 \r\n  0:  10  21 \r\n  1:  21  10 \r\n",
		"$ numactl -H\n" WHOLE "$ \n",
		"# numactl --hardware\n" WHOLE,
		/* ids not named, in another order, named one by one */
		"available: 2 nodes\n" NODE0 NODE1 MATRIX,
		"available: 2 nodes (0,1)\n" NODE1 NODE0 MATRIX,
		/* columns and rows in another order; rows and header wrapped; CPUs wrapped or as
		   ranges */
		FIRST NODE0 NODE1 "node distances:\nnode 1 0\n1: 10 21\n0: 21 10\n",
		FIRST NODE0 NODE1 "node distances:\nnode 0\n1\n0: 10\n21 1: 21\n  10\n",
		FIRST
		"node 0 cpus: 0\n1\nnode 0 size: 1000 MB\nnode 0 free: 900 MB\nnode 1 cpus: 2-3\n"
		"node 1 size: 2000 MB\nnode 1 free: 1800 MB\n" MATRIX,
		/* no first line, as nodes were cut out of a longer text */
		NODE0 NODE1 MATRIX,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		check_whole(same[i]);
}

static void missing_lines(void **state)
{
	struct topo_info t;

	(void)state;
	/* Old versions print no CPUs; containers hide sizes; "free" may be missing. */
	numactl_ok(&t, FIRST "node 0 size: 1000 MB\nnode 1 size: 2000 MB\n" MATRIX);
	assert_int_equal(t.topo.nr_cpus, 0);
	assert_int_equal(node_of(&t, 1)->free_bytes, UINT64_C(2000) << 20);
	assert_note(&t, "does not say which CPUs");
	assert_note(&t, "free memory of 2 nodes not said");
	topo_info_free(&t);
	numactl_ok(&t, FIRST
		"node 0 cpus: 0\nnode 0 size: <not available>\nnode 0 free: <not available>\n" NODE1
			MATRIX);
	assert_int_equal(node_of(&t, 0)->mem_bytes, 0);
	assert_note(&t, "node 0: memory size not said, taken as 0");
	topo_info_free(&t);
	numactl_ok(&t, FIRST NODE0 NODE1 "No distance information available.\n");
	assert_false(t.topo.has_distances);
	assert_int_equal(distance_of(&t, 0, 1), 20);
	assert_note(&t, "no distances said");
	topo_info_free(&t);
}

static void odd_values(void **state)
{
	struct topo_info t;

	(void)state;
	numactl_ok(&t, FIRST NODE0 "node 1 cpus:\nnode 1 size: 0 MB\nnode 1 free: 0 MB\n"
				   "node distances:\nnode 0 1\n0: 11 20\n1: 20 10\n");
	assert_int_equal(distance_of(&t, 0, 0), 11);
	assert_note(&t, "node 0: distance to itself is not 10");
	assert_note(&t, "node 1: neither CPUs nor memory");
	assert_true(t.balance_refused);
	topo_info_free(&t);
	numactl_ok(&t, FIRST
		"node 0 cpus: 0 1\nnode 0 size: 1000 MB\nnode 0 free: 1001 MB\n" NODE1 MATRIX);
	assert_int_equal(node_of(&t, 0)->free_bytes, UINT64_C(1000) << 20);
	assert_note(&t, "node 0: more memory free than there is");
	topo_info_free(&t);
	numactl_ok(&t, FIRST "node 0 cpus: 0 1 2 3\nnode 0 size: 1000 MB\nnode 1 cpus: 0 1 2 "
			     "3\nnode 1 size: 1000 MB\n" MATRIX);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_note(&t, "each of 2 nodes claims all 4 CPUs");
	assert_true(t.balance_refused);
	topo_info_free(&t);
	/* Page after page of CPUs beyond one word, on an id with three digits. */
	numactl_ok(&t, "available: 1 nodes (700)\nnode 700 cpus: 8191 64 63\nnode 700 size: "
		       "4294967296 MB\n");
	assert_int_equal(t.topo.cpu_ids, 8192);
	assert_int_equal(node_of(&t, 700)->mem_bytes, UINT64_C(1) << 52);
	topo_info_free(&t);
}

static void matrix_alone(void **state)
{
	struct topo_info t;

	(void)state;
	numactl_ok(&t, "node distances:\nnode 0 8 252\n0: 10 40 80\n8: 41 10 80\n252: 80 80 10\n");
	ASSERT_IDS(&t, 0, 8, 252);
	assert_int_equal(distance_of(&t, 8, 0), 41);
	assert_note(&t, "1 asymmetric pair of nodes, first 0 and 8: 40 there, 41 back");
	assert_note(&t, "nodes 0,8,252: memory size not said");
	topo_info_free(&t);
	/* As from cat on the distance files. */
	numactl_ok(&t, "10 15 17\n15 10 16\n17 16 10\n");
	ASSERT_IDS(&t, 0, 1, 2);
	assert_int_equal(distance_of(&t, 2, 1), 16);
	assert_note(&t, "a matrix without node ids");
	topo_info_free(&t);
}

/* Every way to cut the text short is refused, but for the blank or the end of line that it may end
 * with. */
static void cut_anywhere(void **state)
{
	char text[] = WHOLE;
	struct topo_info info;
	char why[WHY_LEN];

	(void)state;
	for (size_t len = 1; len < sizeof(text) - 3; len++) {
		int err = topo_parse_numactl(&info, text, len, "text", why, sizeof(why));

		if (!err)
			fail_msg("accepted after %zu bytes", len);
	}
	assert_int_equal(
		topo_parse_numactl(&info, text, sizeof(text) - 3, "text", why, sizeof(why)), 0);
	topo_info_free(&info);
}

static void truncations(void **state)
{
	(void)state;
	numactl_refused("available: 16 nodes (0-15)\n" NODE0 NODE1,
		"text:7: truncated: 16 announced, 2 seen, line 7");
	numactl_refused(FIRST NODE0 "node 1 cpus: 2 3\nnode 1 si",
		"text:6: \"node 1 si\" is the last line");
	numactl_refused("available: 3 nodes (0-2)\n" NODE0 "node 1 cpu",
		"truncated: 3 announced, 1 seen, line 5");
	numactl_refused(FIRST NODE0 NODE1, "truncated: no distances");
	numactl_refused(FIRST NODE0 NODE1 "node distances:\n", "truncated: no distances");
	numactl_refused(
		FIRST NODE0 NODE1 "node distances:\nnode 0 1\n", "no distances below the node ids");
	numactl_refused(FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 21\n",
		"truncated: 2 rows of distances announced, 1 seen");
	numactl_refused(FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 21\n1: 21",
		"1 distances in the row of node 1; expected 2");
	numactl_refused(
		FIRST "node 0 cpus: 0 1\n" NODE1 MATRIX, "truncated: no \"size:\" of node 0");
}

static const struct {
	const char *text, *why;
} bad[] = {
	{"", "empty"},
	{"\n \n", "empty"},
	{"hello\n", "text:1: \"hello\"; expected the text of `numactl -H`"},
	{"MemTotal: 12 kB\n", "text:1"},
	{"available: 0 nodes ()\nNo distance information available.\n",
		"text:1: 0 nodes; expected at least one"},
	{"available: -1 nodes (0)\n", "\"-1\" nodes; expected 1 to 1024"},
	{"available: 1025 nodes (0-1024)\n", "\"1025\" nodes; expected 1 to 1024"},
	{"available: 99999999999999999999 nodes\n", "expected 1 to 1024"},
	{"available: two nodes (0-1)\n", "expected 1 to 1024"},
	{"available: 2 nodes (0-1\n" NODE0, "expected node ids such as (0-3)"},
	{"available: 2 nodes (0-2)\n" NODE0, "2 nodes but 3 ids in (0-2)"},
	{"available: 2 nodes (1-0)\n" NODE0, "expected a list of node ids"},
	{"available: 2 nodes (0,1024)\n" NODE0, "expected a list of node ids below 1024"},
	{FIRST FIRST NODE0, "text:2: \"available:\" again"},
	{FIRST NODE0 NODE0 NODE1 MATRIX, "text:5: node 0 cpus: again"},
	{FIRST NODE0 "node 1 size: 1 MB\nnode 1 size: 1 MB\n" MATRIX, "text:6: node 1 size: again"},
	{FIRST NODE0 "node 2 cpus: 2\n", "text:5: node 2 was not announced"},
	{"available: 1 nodes\n" NODE0 NODE1, "text:5: node 1 is one more than the 1 announced"},
	{FIRST "node x cpus: 0\n" NODE0, "text:2: \"node x cpus: 0\""},
	{FIRST "node -1 cpus: 0\n" NODE0, "text:2: \"node -1 cpus: 0\""},
	{FIRST "node 1024 cpus: 0\n" NODE0, "ID below 1024"},
	{FIRST "node 0 colour: red\n" NODE0, "expected \"cpus:\", \"size:\" or \"free:\""},
	{FIRST "node 0 cpus: 0 1 a\n" NODE0, "text:2: \"0 1 a\"; expected CPU ids"},
	{FIRST "node 0 cpus: 0 -1\n" NODE0, "expected CPU ids"},
	{FIRST "node 0 cpus: 8192\n" NODE0, "expected CPU ids below 8192"},
	{FIRST "node 0 cpus: 0x10\n" NODE0, "expected CPU ids"},
	{FIRST "node 0 cpus: 0 1\n1 2\n" NODE0, "text:3: cpu 1 is on node 0 twice"},
	{FIRST NODE0 "node 1 cpus: 1 2\nnode 1 size: 1 MB\n" MATRIX,
		"text:5: cpu 1 is on node 0 and on node 1; expected one node"},
	{FIRST "node 0 size: 1000\n" NODE1, "expected \"NUMBER MB\""},
	{FIRST "node 0 size: 1000 GB\n" NODE1, "expected \"NUMBER MB\""},
	{FIRST "node 0 size: 1000 MB extra\n" NODE1, "expected \"NUMBER MB\""},
	{FIRST "node 0 size: 10.5 MB\n" NODE1, "expected \"NUMBER MB\""},
	{FIRST "node 0 size: 0xff MB\n" NODE1, "expected \"NUMBER MB\""},
	{FIRST "node 0 size: -5 MB\n" NODE1, "text:2: -5 MB; expected 0 to 4294967296"},
	{FIRST "node 0 size: 4294967297 MB\n" NODE1, "expected 0 to 4294967296"},
	{FIRST "node 0 size: 99999999999999999999999 MB\n" NODE1, "expected 0 to 4294967296"},
	{FIRST NODE0 "node 1 cpus: 2\nnode 1 size: 1 MB\nnode 1 free: -1 MB\n" MATRIX,
		"text:7: -1 MB"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 0\n1: 20 10\n",
		"text:10: distance 0 from node 0 to node 1; expected 10..255"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 9\n1: 20 10\n", "text:10: distance 9"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 256\n1: 20 10\n",
		"text:10: distance 256"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 -20\n1: 20 10\n",
		"expected a distance, 10..255"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 99999999999999999999\n",
		"expected a distance"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 20 20\n1: 20 10\n",
		"text:10: \"20\" is one distance too many"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10\n1: 20 10\n",
		"text:11: 1 distances in the row of node 0"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 20\n0: 10 20\n",
		"text:11: row of node 0 again"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1\n0: 10 20\n2: 20 10\n",
		"expected the id of one of the nodes"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0\n0: 10\n",
		"1 columns of distances for 2 nodes"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 0\n0: 10 20\n",
		"2 columns of distances for 2 nodes; expected each node once"},
	{FIRST NODE0 NODE1 "node distances:\nnode 0 1 2\n0: 10 20 20\n",
		"column 2 of the distances"},
	{FIRST NODE0 NODE1 MATRIX MATRIX, "a second matrix"},
	{FIRST NODE0 NODE1 MATRIX "and so on\n", "text:12: \"and so on\""},
	{FIRST "node distances:\nnode 0 1\n0: 10 20\n1: 20 10\n", "truncated: 2 announced, 0 seen"},
	{NODE0 "node 0\n0: 10\n" NODE1, "text:6: node 1 after the distances"},
	{"10\n" NODE1, "text:2: node 1 after the distances"},
	{"10 20\n20\n", "1 distances in the row of node 1"},
	{"10 20\n20 10 20\n", "one distance too many"},
	{"10 20\n20 x\n", "text:2: \"x\""},
	{"0\n", "distance 0"},
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		numactl_refused(bad[i].text, bad[i].why);
}

static void no_text(void **state)
{
	static const char nul[] = WHOLE "\0";
	struct topo_info info;
	char why[WHY_LEN];

	(void)state;
	check_refused(topo_parse_numactl(&info, nul, sizeof(nul), "text", why, sizeof(why)), &info,
		why, "a NUL byte");
	/* Nothing of a hostile line reaches the terminal. */
	check_refused(topo_parse_numactl(&info, "\033[31mred", 8, "text", why, sizeof(why)), &info,
		why, "?[31mred");
}

/* 1,024 nodes with every eighth id's CPUs, as numactl would print them. */
static char *print_large(unsigned int nodes)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "available: %u nodes (0-%u)\n", nodes, nodes - 1);
	for (unsigned int i = 0; i < nodes; i++)
		fprintf(f, "node %u cpus: %u %u\nnode %u size: 64 MB\nnode %u free: 32 MB\n", i,
			2 * i, 2 * i + 1, i, i);
	fprintf(f, "node distances:\nnode ");
	for (unsigned int i = 0; i < nodes; i++)
		fprintf(f, "%3u ", i);
	for (unsigned int i = 0; i < nodes; i++) {
		fprintf(f, "\n%3u: ", i);
		for (unsigned int j = 0; j < nodes; j++)
			fprintf(f, "%3u ", i == j ? 10 : 11 + (i + j) % 200);
	}
	fprintf(f, "\n");
	fclose(f);
	return text;
}

static void the_largest(void **state)
{
	char *text = print_large(1024);
	struct topo_info t;

	(void)state;
	numactl_ok(&t, text);
	assert_int_equal(t.topo.nr_nodes, 1024);
	assert_int_equal(t.topo.nr_cpus, 2048);
	assert_int_equal(node_of_cpu(&t, 2047), 1023);
	assert_int_equal(distance_of(&t, 1023, 7), 11 + 1030 % 200);
	topo_info_free(&t);
	free(text);
	text = print_large(1025);
	numactl_refused(text, "expected 1 to 1024");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(missing_lines),
		cmocka_unit_test(odd_values),
		cmocka_unit_test(matrix_alone),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(truncations),
		cmocka_unit_test(refusals),
		cmocka_unit_test(no_text),
		cmocka_unit_test(the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
