/* SPDX-License-Identifier: MIT */
#include "top_screen.h"

/* Its macros for names of ours (erase, move ...) are not wanted. */
#define NCURSES_NOMACROS
#include <curses.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ESCAPE = 27, ESCAPE_MS = 50 };

struct shown {
	struct top_data *data;
	struct top_view view;
	struct top_page *page;
	bool help, from_list, quit;
	size_t list_selected; /* while a process is shown */
};

static volatile sig_atomic_t caught;

static void note_signal(int sig)
{
	caught = sig;
}

/* Without SA_RESTART: waiting for a key ends. */
static void catch_signals(void)
{
	const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = note_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* ---- drawing ---- */

static chtype attribute(unsigned char look)
{
	switch (look) {
	case TOP_TITLE:
		return A_BOLD;
	case TOP_HEADER:
		return A_UNDERLINE;
	case TOP_SELECTED:
		return A_REVERSE;
	default:
		return A_NORMAL;
	}
}

static void draw(struct shown *s)
{
	s->view.width = COLS;
	s->view.height = LINES;
	if (s->help)
		top_page_help(s->page, &s->view);
	else
		top_page(s->page, s->data, &s->view);
	erase();
	for (int i = 0; i < s->page->nr && i < LINES; i++) {
		attrset((int)attribute(s->page->look[i]));
		/* The last cell of the last line may scroll the screen: it stays empty. */
		mvaddnstr(i, 0, s->page->line[i], i == LINES - 1 ? COLS - 1 : COLS);
	}
	attrset(A_NORMAL);
	refresh();
}

/* ---- keys ---- */

static void choose(struct shown *s, size_t back, size_t on)
{
	const size_t at = s->view.selected;

	s->view.selected = back > at ? 0 : at - back + on;
}

static void open_process(struct shown *s)
{
	if (s->view.pid != 0 || s->view.chosen_pid == 0)
		return;
	s->list_selected = s->view.selected;
	s->view.pid = s->view.chosen_pid;
	s->view.selected = s->view.first = 0;
}

static void close_process(struct shown *s)
{
	if (s->view.pid == 0)
		return;
	s->view.pid = 0;
	s->view.selected = s->list_selected;
	s->view.first = 0;
}

static void next_sort(struct shown *s)
{
	unsigned int *sort = s->view.pid ? &s->view.region_sort : &s->view.process_sort;
	const unsigned int nr = s->view.pid ? (unsigned int)TOP_NR_REGION_SORTS
					    : (unsigned int)TOP_NR_PROCESS_SORTS;

	*sort = (*sort + 1) % nr;
}

static void handle_key(struct shown *s, int key)
{
	if (key == KEY_RESIZE)
		return;
	if (s->help) {
		s->help = false;
		s->quit = key == 'q';
		return;
	}
	switch (key) {
	case 'q':
		s->quit = true;
		break;
	case '?':
		s->help = true;
		break;
	case 's':
		next_sort(s);
		break;
	case KEY_UP:
		choose(s, 1, 0);
		break;
	case KEY_DOWN:
		choose(s, 0, 1);
		break;
	case KEY_PPAGE:
		choose(s, s->view.page, 0);
		break;
	case KEY_NPAGE:
		choose(s, 0, s->view.page);
		break;
	case KEY_HOME:
		s->view.selected = 0;
		break;
	case KEY_END:
		s->view.selected = SIZE_MAX / 2;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
	case KEY_RIGHT:
		open_process(s);
		break;
	case ESCAPE:
	case KEY_LEFT:
		close_process(s);
		break;
	default:
		break;
	}
}

/* ---- the loop ---- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Keys until it is time to look again. */
static void wait_for_keys(struct shown *s, double until)
{
	double left;

	while (caught == 0 && !s->quit && (left = until - now_s()) > 0) {
		int key;

		timeout((int)ceil(fmin(left, 3600) * 1000));
		key = getch();
		if (key == ERR)
			continue;
		handle_key(s, key);
		draw(s);
	}
}

static int loop(struct shown *s, double delay_s, int64_t iterations)
{
	double next = now_s();
	int err = 0;

	for (int64_t i = 0; err == 0 && caught == 0 && !s->quit; i++) {
		if (iterations > 0 && i == iterations)
			break;
		err = top_look(s->data);
		if (err != 0)
			break;
		draw(s);
		next = fmax(next + delay_s, now_s());
		wait_for_keys(s, next);
	}
	return err;
}

static void set_up(void)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
}

int top_screen(struct top_data *d, uint32_t pid, double delay_s, int64_t iterations)
{
	struct shown s = {.data = d, .view = {.pid = pid}};
	SCREEN *screen;
	int err;

	s.page = calloc(1, sizeof(*s.page));
	if (s.page == NULL)
		return -ENOMEM;
	catch_signals();
	screen = newterm(NULL, stdout, stdin);
	if (screen == NULL) {
		free(s.page);
		return -ENOTTY;
	}
	set_up();
	err = loop(&s, delay_s, iterations);
	endwin();
	delscreen(screen);
	free(s.page);
	return err != 0 ? err : caught;
}
