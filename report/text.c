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

size_t report_utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	const size_t len = s[0] < 0x80			 ? 1
			   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
			   : (s[0] & 0xf0) == 0xe0	 ? 3
			   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
							 : 0;

	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
		return 0;
	if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}
