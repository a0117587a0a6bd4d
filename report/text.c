/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdlib.h>

const char *report_shortest(char text[REPORT_NUMBER_LEN], double value)
{
	/* 15 digits survive a double on their way through text, 17 bring any double through text */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, REPORT_NUMBER_LEN, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	return text;
}

void report_put_ascii(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
}
