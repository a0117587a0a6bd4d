/* SPDX-License-Identifier: MIT */
/*
 * top_page: what `numabal top` shows, as lines of text: the same for a terminal and for --batch.
 * Plain ASCII, no line longer than the width.
 */
#ifndef NB_CLI_TOP_PAGE_H
#define NB_CLI_TOP_PAGE_H

#include "top_data.h"

enum {
	TOP_MAX_WIDTH = 500,
	TOP_MAX_LINES = 2200, /* 1,024 nodes and their regions fit */
	TOP_BATCH_WIDTH = 100,
};

enum top_look_of {
	TOP_PLAIN,
	TOP_TITLE,
	TOP_HEADER,   /* of a table */
	TOP_SELECTED, /* line of it */
};

/* X(NAME, text): by what a list is sorted; the first is what it begins with */
#define TOP_PROCESS_SORTS(X)                                                                       \
	X(MANAGED, "managed")                                                                      \
	X(FAULTS, "faults/s")                                                                      \
	X(MOVED, "moved/s")                                                                        \
	X(LOCAL, "local, least first")                                                             \
	X(PID, "pid")
#define TOP_REGION_SORTS(X)                                                                        \
	X(SIZE, "size")                                                                            \
	X(SPREAD, "spread over nodes")                                                             \
	X(ADDRESS, "address")

enum top_process_sort {
#define X(NAME, text) TOP_BY_##NAME,
	TOP_PROCESS_SORTS(X)
#undef X
		TOP_NR_PROCESS_SORTS
};

enum top_region_sort {
#define X(NAME, text) TOP_REGION_BY_##NAME,
	TOP_REGION_SORTS(X)
#undef X
		TOP_NR_REGION_SORTS
};

/* What is to be shown. */
struct top_view {
	uint32_t pid;	     /* of the process that is shown; 0 = the list of processes */
	int width, height;   /* height 0: as many lines as it takes, and nothing is selected */
	size_t selected;     /* line of the list; made smaller where there are not so many */
	size_t first;	     /* the first line of the list that is shown; kept by top_page */
	size_t page;	     /* set: lines of the list that fit */
	uint32_t chosen_pid; /* set: of the selected process */
	unsigned int process_sort, region_sort;
};

struct top_page {
	int nr;
	char line[TOP_MAX_LINES][TOP_MAX_WIDTH + 1];
	unsigned char look[TOP_MAX_LINES]; /* enum top_look_of */
};

void top_page(struct top_page *page, const struct top_data *d, struct top_view *view);
/* What the keys do. */
void top_page_help(struct top_page *page, const struct top_view *view);

#endif
