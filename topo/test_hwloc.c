/* SPDX-License-Identifier: MIT */
/* hwloc XML of versions 1 to 3, and documents that are nearly that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* The text of a file of tests/data/topo with the first `from` replaced, or every one. Freed by the
 * caller. */
static char *edited(const char *name, const char *from, const char *to, int all)
{
	FILE *in = fopen(data_file(name), "r"), *out;
	char text[32 << 10], *result, *at = text, *next;
	size_t len;

	assert_non_null(in);
	text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
	fclose(in);
	out = open_memstream(&result, &len);
	while ((next = strstr(at, from))) {
		fprintf(out, "%.*s%s", (int)(next - at), at, to);
		at = next + strlen(from);
		if (!all)
			break;
	}
	if (at == text)
		fail_msg("no \"%s\" in %s", from, name);
	fputs(at, out);
	fclose(out);
	return result;
}

static void edited_refused(const char *name, const char *from, const char *to, const char *why)
{
	char *text = edited(name, from, to, 0);

	hwloc_refused(text, why);
	free(text);
}

static void version1(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, data_file("hwloc-v1.xml"));
	assert_int_equal(t.kind, TOPO_HWLOC_XML);
	ASSERT_IDS(&t, 0, 1);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(node_of_cpu(&t, 2), 1);
	assert_int_equal(node_of(&t, 0)->mem_bytes, UINT64_C(4) << 30);
	assert_int_equal(node_of(&t, 1)->mem_bytes, UINT64_C(2) << 30);
	/* Distances are relative to latency_base there: 2.1 x 10. */
	assert_int_equal(distance_of(&t, 0, 1), 21);
	assert_int_equal(distance_of(&t, 0, 0), 10);
	topo_info_free(&t);
}

static void version2(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, data_file("hwloc-v2-cxl.xml"));
	ASSERT_IDS(&t, 0, 1, 2);
	assert_int_equal(node_of(&t, 0)->nr_cpus, 4);
	assert_int_equal(node_of(&t, 2)->nr_cpus, 0);
	/* Rows and columns of the matrix are nodes 1, 0, 2. */
	assert_int_equal(distance_of(&t, 1, 0), 21);
	assert_int_equal(distance_of(&t, 0, 1), 22);
	assert_int_equal(distance_of(&t, 1, 2), 24);
	assert_int_equal(distance_of(&t, 0, 2), 14);
	assert_int_equal(node_of(&t, 2)->tier, 1);
	assert_note(&t, "1 asymmetric pair");
	topo_info_free(&t);
}

static void version3(void **state)
{
	struct topo_info t;

	(void)state;
	read_ok(&t, data_file("hwloc-v3-hbm.xml"));
	ASSERT_IDS(&t, 0, 1, 2, 3);
	assert_int_equal(node_of(&t, 0)->bandwidth_mib_s, 30000);
	assert_int_equal(node_of(&t, 3)->latency_ns, 95);
	assert_int_equal(node_of(&t, 2)->tier, 0);
	assert_int_equal(node_of(&t, 0)->tier, 1);
	assert_int_equal(node_of_cpu(&t, 4), 1);
	assert_int_equal(demotion_of(&t, 3), 1);
	assert_int_equal(distance_of(&t, 1, 3), 10);
	assert_int_equal(distance_of(&t, 0, 3), 20);
	topo_info_free(&t);
}

static void kinds_of_memory(void **state)
{
	/* Without figures, what the nodes are called decides; and where one has no name, nothing
	 * does. */
	char *text = edited("hwloc-v3-hbm.xml", "<memattr name", "<ignored name", 1), *closed;
	struct topo_info t;

	(void)state;
	closed = text;
	for (char *at = text; (at = strstr(at, "</memattr>")); at++)
		memcpy(at, "</ignored>", 10);
	hwloc_ok(&t, closed);
	assert_int_equal(node_of(&t, 2)->tier, 0);
	assert_int_equal(node_of(&t, 0)->tier, 1);
	assert_int_equal(node_of(&t, 0)->bandwidth_mib_s, 0);
	assert_note(&t, "kinds of memory");
	topo_info_free(&t);
	free(text);
}

static void allowed(void **state)
{
	char *text = edited("hwloc-v2-cxl.xml",
		"allowed_cpuset=\"0x000000ff\" allowed_nodeset=\"0x00000007\"",
		"allowed_cpuset=\"0x00000003\" allowed_nodeset=\"0x00000001\"", 0);
	struct topo_info t;

	(void)state;
	hwloc_ok(&t, text);
	assert_int_equal(t.topo.nr_nodes, 3);
	assert_int_equal(t.topo.nr_cpus, 2);
	assert_int_equal(node_of(&t, 0)->flags, 0);
	assert_int_equal(node_of(&t, 1)->flags, NB_NODE_DISALLOWED);
	/* Not slower for being forbidden. */
	assert_int_equal(node_of(&t, 1)->tier, 0);
	assert_true(t.balance_refused);
	topo_info_free(&t);
	free(text);
}

static void unknown_parts_are_left_out(void **state)
{
	static const char *const more[] = {
		"<info name=\"x\" value=\"y\"/>",
		"<novelty><object type=\"Machine\"/></novelty>",
		"<object type=\"Bridge\" gp_index=\"77\"><object type=\"PCIDev\"/></object>",
		"<object type=\"Misc\" subtype=\"MemoryModule\"/>",
		"<object type=\"Quantum\" cpuset=\"nonsense\"/>",
		"<!-- nothing -->",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		char with[256], *text;
		struct topo_info t;

		snprintf(with, sizeof(with), "%s <object type=\"Package\"", more[i]);
		text = edited("hwloc-v2-cxl.xml", "<object type=\"Package\"", with, 0);
		hwloc_ok(&t, text);
		assert_int_equal(t.topo.nr_cpus, 8);
		topo_info_free(&t);
		free(text);
	}
}

static void other_distances(void **state)
{
	/* A matrix of something else is none of ours, whatever it holds. */
	char *text = edited("hwloc-v2-cxl.xml", "<distances2 type=\"NUMANode\"",
		"<distances2 type=\"Core\" nbobjs=\"1\" kind=\"5\" indexing=\"gp\"><indexes "
		"length=\"4\">102 </indexes>"
		"<u64values length=\"4\">0 </u64values></distances2><distances2 type=\"NUMANode\"",
		0);
	struct topo_info t;

	(void)state;
	hwloc_ok(&t, text);
	assert_int_equal(distance_of(&t, 0, 2), 14);
	topo_info_free(&t);
	free(text);
}

static void offline_cpus(void **state)
{
	/* CPU 3 is offline: in no set but the complete ones, and without a PU. */
	char *text = edited("hwloc-v1.xml", "cpuset=\"0x0000000c\" complete_cpuset",
		"cpuset=\"0x00000004\" complete_cpuset", 0);
	char *pu = strstr(text, "<object type=\"Core\" os_index=\"3\""), *end;
	struct topo_info t;

	(void)state;
	assert_non_null(pu);
	end = strstr(strstr(pu, "</object>"), "\n");
	memmove(pu, end, strlen(end) + 1);
	pu = strstr(text, " cpuset=\"0x0000000f\"");
	memcpy(pu, " cpuset=\"0x00000007\"", strlen(" cpuset=\"0x00000007\""));
	hwloc_ok(&t, text);
	assert_int_equal(t.topo.nr_cpus, 3);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 1);
	topo_info_free(&t);
	free(text);
}

/* Cut from `from` up to the next `to`. */
static void cut(char *text, const char *from, const char *to)
{
	char *start = strstr(text, from), *end;

	assert_non_null(start);
	end = strstr(start, to);
	assert_non_null(end);
	memmove(start, end, strlen(end) + 1);
}

static void package_offline(void **state)
{
	/* Node 1 has no CPU left, which makes it no slower memory. */
	char *text = edited("hwloc-v2-cxl.xml", " cpuset=\"0x000000f0\"", " cpuset=\"0x0\"", 1),
	     *machine;
	struct topo_info t;

	(void)state;
	cut(strstr(text, "<object type=\"Package\" os_index=\"1\""), "<object type=\"Core\"",
		"</object>\n </object>\n <dist");
	machine = strstr(text, " cpuset=\"0x000000ff\"");
	memcpy(machine, " cpuset=\"0x0000000f\"", strlen(" cpuset=\"0x0000000f\""));
	hwloc_ok(&t, text);
	assert_int_equal(t.topo.nr_cpus, 4);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 0);
	assert_int_equal(node_of(&t, 1)->tier, 0);
	assert_int_equal(node_of(&t, 2)->tier, 1);
	assert_note(&t, "node 1: some CPUs are offline");
	topo_info_free(&t);
	free(text);
}

static void offline_pu(void **state)
{
	/* As version 1 writes them. */
	char *text =
		edited("hwloc-v1.xml", "<object type=\"PU\" os_index=\"3\" cpuset=\"0x00000008\"",
			"<object type=\"PU\" os_index=\"3\" cpuset=\"0x0\"", 0);
	struct topo_info t;

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const char *const from[] = {" cpuset=\"0x0000000f\"",
			" cpuset=\"0x0000000c\"", " cpuset=\"0x00000008\""};
		static const char *const to[] = {" cpuset=\"0x00000007\"", " cpuset=\"0x00000004\"",
			" cpuset=\"0x00000000\""};

		memcpy(strstr(text, from[i]), to[i], strlen(to[i]));
	}
	hwloc_ok(&t, text);
	assert_int_equal(t.topo.nr_cpus, 3);
	assert_int_equal(node_of(&t, 1)->nr_cpus, 1);
	topo_info_free(&t);
	free(text);
}

static void memory_of_no_cpu(void **state)
{
	/* Without distances and figures, nobody says that memory beside the only socket is slower.
	 */
	char *text = edited("hwloc-v2-cxl.xml", "<distances2", "<ignored", 1);
	struct topo_info t;

	(void)state;
	memcpy(strstr(text, "</distances2>"), "</ignored>   ", 13);
	hwloc_ok(&t, text);
	assert_false(t.topo.tiers_known);
	assert_int_equal(node_of(&t, 2)->tier, 0);
	assert_note(&t, "tiers not derivable from distances: there are none");
	topo_info_free(&t);
	free(text);
}

static void inconsistent(void **state)
{
	/* Each would be taken by libhwloc on trust, or crash it. */
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{"version=\"2.0\"", "version=\"4.0\"", "version \"4.0\"; expected 1, 2 or 3"},
		{"version=\"2.0\"", "version=\"\"", "expected 1, 2 or 3"},
		{"<topology", "<topologies", "root element \"topologies\""},
		{"type=\"Machine\"", "type=\"System\"", "several machines"},
		{"type=\"Machine\"", "type=\"Package\"",
			"root object \"Package\"; expected a Machine"},
		{"type=\"Package\"", "type=\"Machine\"", "more than one Machine"},
		{"type=\"Core\"", "type=\"NUMANode\"", "os_index"},
		{"type=\"PU\"", "type=\"NUMANode\"", "os_index"},
		{"type=\"NUMANode\" os_index=\"0\"", "type=\"NUMANode\" os_index=\"5\"",
			"the set of os_index=\"5\" is another"},
		{"type=\"NUMANode\" os_index=\"0\"", "type=\"NUMANode\"", "os_index"},
		{"type=\"NUMANode\" os_index=\"0\"", "type=\"NUMANode\" os_index=\"1024\"",
			"expected a number below 1024"},
		{"type=\"NUMANode\" os_index=\"0\"", "type=\"NUMANode\" os_index=\"-1\"",
			"expected a number below 1024"},
		{"type=\"PU\" os_index=\"0\"", "type=\"PU\" os_index=\"8192\"",
			"expected a number below 8192"},
		{"type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\"",
			"type=\"PU\" os_index=\"0\" cpuset=\"0x00000003\"", ""},
		{"type=\"PU\" os_index=\"1\" cpuset=\"0x00000002\" complete_cpuset=\"0x00000002\"",
			"type=\"PU\" os_index=\"0\" cpuset=\"0x00000001\" "
			"complete_cpuset=\"0x00000001\"",
			"os_index=\"0\" again"},
		{" cpuset=\"0x0000000f\"", "", "an object without cpuset"},
		{" nodeset=\"0x00000005\"", "", "an object without nodeset"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"0x0000001f\"",
			"a cpuset with CPUs that its complete_cpuset has not"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"0x00000007\"",
			"a cpuset with CPUs that the object around it has not"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"15\"", "expected a bitmap"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"0xf...f\"", "expected a bitmap"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"0x0000000f,\"", "a cpuset with CPUs"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"0x123456789\"", "expected a bitmap"},
		{" cpuset=\"0x0000000f\"", " cpuset=\"\"", "expected a bitmap"},
		{" nodeset=\"0x00000005\"", " nodeset=\"0x0000000d\"",
			"a nodeset with nodes that the object around it has not"},
		{"allowed_cpuset=\"0x000000ff\"", "allowed_cpuset=\"0x00000100\"",
			"allows nothing"},
		{"allowed_nodeset=\"0x00000007\"", "allowed_nodeset=\"0x0\"", "allows nothing"},
		{"local_memory=\"4294967296\"", "local_memory=\"-1\"",
			"local_memory=\"-1\"; expected a number"},
		{"local_memory=\"4294967296\"", "local_memory=\"4GB\"", "expected a number"},
		{"local_memory=\"4294967296\"", "local_memory=\"99999999999999999999\"",
			"expected a number"},
		{"local_memory=\"4294967296\"", "local_memory=\"9223372036854775807\"",
			"beyond any machine"},
		{"10 21 24 22", "10 0 24 22", "distance 0 from node 1 to node 0; expected 10..255"},
		{"10 21 24 22", "10 256 24 22", "distance 256"},
		{"10 21 24 22", "10 -21 24 22", "\"-21\" in u64values; expected numbers"},
		{"10 21 24 22", "10 x 24 22", "\"x\" in u64values; expected numbers"},
		{"nbobjs=\"3\"", "nbobjs=\"1025\"",
			"nbobjs=\"1025\"; expected a number up to 1024"},
		{"nbobjs=\"3\"", "nbobjs=\"99999999999\"", "expected a number up to 1024"},
		{"nbobjs=\"3\"", "nbobjs=\"2\"", "9 distances; expected 4 for 2 objects"},
		{"nbobjs=\"3\"", "nbobjs=\"1024\"", "expected 1048576 for 1024 objects"},
		{"nbobjs=\"3\"", "", "expected a number up to 1024"},
		{">1 0 2 <", ">1 0 <", "2 indexes; expected 3"},
		{" 14 10 <", " 14 <", "8 distances; expected 9"},
		{"hwloc2.dtd\"", "hwloc2.dtd\" [<!ENTITY a \"b\">]", "DOCTYPE with declarations"},
		{"</topology>", "", "truncated"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		edited_refused("hwloc-v2-cxl.xml", cases[i].from, cases[i].to, cases[i].why);
}

static void side_by_side(void **state)
{
	/* Cores that share a CPU, or come in another order. */
	(void)state;
	edited_refused("hwloc-v1.xml", "<latency value=\"2.100000\"/>", "",
		"3 distances; expected 4 for 2 objects");
	edited_refused("hwloc-v1.xml",
		"<object type=\"Core\" os_index=\"1\" cpuset=\"0x00000002\" "
		"complete_cpuset=\"0x00000002\"",
		"<object type=\"Core\" os_index=\"1\" cpuset=\"0x00000001\" "
		"complete_cpuset=\"0x00000001\"",
		"cpu 0 is in two objects side by side");
	edited_refused("hwloc-v1.xml",
		"<object type=\"Core\" os_index=\"0\" cpuset=\"0x00000001\" "
		"complete_cpuset=\"0x00000001\"",
		"<object type=\"Core\" os_index=\"9\" cpuset=\"0x00000002\" "
		"complete_cpuset=\"0x00000002\"",
		"");
}

static void other_documents(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"<html><body/></html>",
			"xml:1: root element \"html\"; expected hwloc's \"topology\""},
		{"<topology version=\"2.0\"/>", "no Machine"},
		{"<topology><object type=\"Machine\" os_index=\"0\"/></topology>",
			"without cpuset"},
		{"<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\" "
		 "nodeset=\"0x1\"/></topology>",
			"no PU"},
		{"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "root element"},
		{"<?xml version=\"1.0\"?>", "no element"},
		{"<topology version=\"2.0\">\n<object type=\"Machine\"\n",
			"xml:3: not XML that hwloc writes"},
		{"", "no element"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		hwloc_refused(cases[i].text, cases[i].why);
}

/* A document that is cut is refused wherever that is. */
static void cut_anywhere(void **state)
{
	char *text = edited("hwloc-v3-hbm.xml", "</topology>", "</topology>", 0);
	size_t len = strlen(text);
	struct topo_info t;
	char why[WHY_LEN];

	(void)state;
	for (size_t n = 0; n + 2 < len; n += 7)
		if (!topo_parse_hwloc_xml(&t, text, n, "xml", why, sizeof(why)))
			fail_msg("accepted after %zu bytes", n);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version1),
		cmocka_unit_test(version2),
		cmocka_unit_test(version3),
		cmocka_unit_test(kinds_of_memory),
		cmocka_unit_test(allowed),
		cmocka_unit_test(unknown_parts_are_left_out),
		cmocka_unit_test(other_distances),
		cmocka_unit_test(offline_cpus),
		cmocka_unit_test(package_offline),
		cmocka_unit_test(offline_pu),
		cmocka_unit_test(memory_of_no_cpu),
		cmocka_unit_test(inconsistent),
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(other_documents),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
