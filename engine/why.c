/* SPDX-License-Identifier: MIT */
#include "why.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int nb_why(char *why, size_t why_len, int err, const char *format, ...)
{
	va_list args;

	if (!why || !why_len)
		return err;
	va_start(args, format);
	vsnprintf(why, why_len, format, args);
	va_end(args);
	for (char *c = why; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return err;
}

struct nb_quote nb_quote(const char *text)
{
	static const char dots[] = "...";
	const size_t len = strlen(text), side = (NB_QUOTE_LEN - strlen(dots)) / 2;
	struct nb_quote q;

	if (len <= NB_QUOTE_LEN)
		memcpy(q.text, text, len + 1);
	else
		snprintf(q.text, sizeof(q.text), "%.*s%s%s", (int)side, text, dots,
			text + len - side);
	return q;
}

int nb_parse_i64(const char *text, int64_t *out)
{
	char *end;
	long long value;

	if (!isdigit((unsigned char)text[0]) &&
		!(text[0] == '-' && isdigit((unsigned char)text[1])))
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE)
		return -ERANGE;
	*out = value;
	return 0;
}

/* A decimal number at the start of text: digits, one point, an exponent; neither hex nor "inf" nor
 * "nan". */
static int parse_decimal(const char *text, char **end, double *out)
{
	const char *first = text[0] == '-' ? text + 1 : text;

	if (!isdigit((unsigned char)first[0]) &&
		!(first[0] == '.' && isdigit((unsigned char)first[1])))
		return -EINVAL;
	if (first[0] == '0' && (first[1] == 'x' || first[1] == 'X'))
		return -EINVAL;
	*out = strtod(text, end);
	return isfinite(*out) ? 0 : -ERANGE;
}

int nb_parse_double(const char *text, double *out)
{
	char *end;
	double value;
	int err = parse_decimal(text, &end, &value);

	if (err)
		return err;
	if (*end)
		return -EINVAL;
	*out = value;
	return 0;
}

int nb_parse_bytes(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMGTP";
	char *end;
	double value;
	const char *suffix;
	int err = parse_decimal(text, &end, &value);

	if (err)
		return err;
	if (value < 0)
		return -EINVAL;
	suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
	if (suffix) {
		value = ldexp(value, 10 * (int)(suffix - suffixes + 1));
		end++;
		if (*end == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end)
		return -EINVAL;
	if (value >= 0x1p63)
		return -ERANGE;
	*out = (uint64_t)value;
	return 0;
}
