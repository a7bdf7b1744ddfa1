/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config_value.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 64u

/* A wrong kind of node; what names the right one, with an article. */
static bool wrong_type(struct faults *f, const struct node *n, const char *what)
{
	if (n->kind == NODE_NULL)
		fault(f, n, "wrong-type", "has no value; give %s", what);
	else if (n->kind != NODE_BAD)
		fault(f, n, "wrong-type", "must be %s; found %s", what, node_kind_text(n));
	return false;
}

bool read_text(struct faults *f, const struct node *n, const char **out)
{
	if (!n)
		return false;
	if (n->kind != NODE_TEXT) {
		wrong_type(f, n, "text");
		return false; /* said here, so that gcc knows when *out is set */
	}
	if (!*n->text) {
		fault(f, n, "bad-value", "is empty text");
		return false;
	}
	*out = n->text;
	return true;
}

bool read_name(struct faults *f, const struct node *n, char **out)
{
	char shown[CLIP_TEXT];
	const char *text;

	if (!read_text(f, n, &text))
		return false;
	for (const char *p = text; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');

		if (letter || strchr("._:@-", *p))
			continue;
		fault(f, n, "bad-value", "\"%s\" can't be a name: characters of %s are allowed", clip(text, shown),
		      NAME_TEXT);
		return false;
	}
	if (strlen(text) > NAME_MAX_LENGTH) {
		fault(f, n, "bad-value", "the name is %zu characters long, at most %u are allowed", strlen(text),
		      NAME_MAX_LENGTH);
		return false;
	}
	*out = xstrdup(text);
	return true;
}

/* Digits at *text as a number, *text moved behind them; UINT64_MAX for more than 18 of them. False where there are none. */
static bool take_digits(const char **text, uint64_t *out)
{
	size_t length = strspn(*text, "0123456789");
	uint64_t value = 0;

	for (size_t i = 0; i < length && length <= 18; i++)
		value = value * 10 + (uint64_t)((*text)[i] - '0');
	*out = length <= 18 ? value : UINT64_MAX;
	*text += length;
	return length;
}

bool read_integer(struct faults *f, const struct node *n, uint64_t min, uint64_t max, uint64_t *out)
{
	char low[COUNT_TEXT], high[COUNT_TEXT], shown[CLIP_TEXT];
	const char *p;
	uint64_t value;
	bool negative;

	if (!n)
		return false;
	count_text(min, low);
	count_text(max, high);
	if (n->kind != NODE_TEXT)
		return wrong_type(f, n, "a whole number");
	negative = n->text[0] == '-';
	p = n->text + negative;
	if (!take_digits(&p, &value) || *p || (n->text[0] == '0' && n->text[1])) {
		fault(f, n, "wrong-type", "must be a whole number from %s to %s, in decimal digits; found \"%s\"", low,
		      high, clip(n->text, shown));
		return false;
	}
	if (n->quoted) {
		fault(f, n, "wrong-type", "must be a number, and is text in quotes; write %s without them",
		      clip(n->text, shown));
		return false;
	}
	if (negative || value < min || value > max) {
		fault(f, n, "out-of-range", "%s is out of range; allowed are %s to %s", clip(n->text, shown), low,
		      high);
		return false;
	}
	*out = value;
	return true;
}

bool read_u32(struct faults *f, const struct node *n, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!read_integer(f, n, min, max, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool choice_fault(struct faults *f, const struct node *n, const char *const *choices)
{
	char *list = xstrdup("one of "), shown[CLIP_TEXT];
	const char *meant;

	for (size_t i = 0; choices[i]; i++) {
		char *longer = xasprintf("%s%s%s", list, !i ? "" : choices[i + 1] ? ", " : " and ", choices[i]);

		free(list);
		list = longer;
	}
	if (n->kind != NODE_TEXT) {
		wrong_type(f, n, list);
	} else {
		meant = near_name(f, n->text, choices);
		fault(f, n, "bad-value", "\"%s\" is not %s%s%s%s", clip(n->text, shown), list,
		      meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
	}
	free(list);
	return false;
}

bool read_choice(struct faults *f, const struct node *n, const char *const *choices, unsigned int *out)
{
	if (!n)
		return false;
	for (unsigned int i = 0; choices[i] && n->kind == NODE_TEXT; i++) {
		if (!strcmp(n->text, choices[i])) {
			*out = i;
			return true;
		}
	}
	return choice_fault(f, n, choices);
}

static const struct {
	const char *name;
	uint64_t ms;
} units[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };

#define UNITS (sizeof(units) / sizeof(*units))

const char *duration_text(uint64_t ms, char buf[DURATION_TEXT])
{
	size_t i = 0;

	while (ms % units[i].ms || (!ms && strcmp(units[i].name, "s")))
		i++;
	snprintf(buf, DURATION_TEXT, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].name);
	return buf;
}

bool read_duration(struct faults *f, const struct node *n, uint64_t min, uint64_t max, uint64_t *out)
{
	char low[DURATION_TEXT], high[DURATION_TEXT], shown[CLIP_TEXT];
	uint64_t value;
	const char *p;
	size_t i;

	if (!n)
		return false;
	if (n->kind != NODE_TEXT)
		return wrong_type(f, n, "a duration such as 15m");
	p = n->text;
	i = UNITS;
	if (take_digits(&p, &value)) {
		for (i = 0; i < UNITS && strcmp(p, units[i].name); i++)
			;
		/* Nothing is nothing in any unit. */
		if (i == UNITS && !*p && !value)
			i = UNITS - 1;
	}
	if (i == UNITS) {
		fault(f, n, "wrong-type",
		      "must be a duration, a whole number with ms, s, m or h behind it; found \"%s\"",
		      clip(n->text, shown));
		return false;
	}
	if (value > max / units[i].ms || value * units[i].ms < min) {
		fault(f, n, "out-of-range", "%s is out of range; allowed are %s to %s", clip(n->text, shown),
		      duration_text(min, low), duration_text(max, high));
		return false;
	}
	*out = value * units[i].ms;
	return true;
}

bool read_percent(struct faults *f, const struct node *n, double *out)
{
	uint64_t whole, part = 0, scale = 1;
	char shown[CLIP_TEXT];
	const char *p, *dot;
	bool good;

	if (!n)
		return false;
	if (n->kind != NODE_TEXT)
		return wrong_type(f, n, "a percentage such as 30%");
	p = n->text;
	good = take_digits(&p, &whole);
	if (good && *p == '.') {
		dot = ++p;
		good = take_digits(&p, &part) && p - dot <= 6;
		for (const char *q = dot; good && q < p; q++)
			scale *= 10;
	}
	if (!good || strcmp(p, "%") || whole > 100 || (whole == 100 && part)) {
		fault(f, n, "wrong-type", "must be a percentage from 0%% to 100%%, such as 30%% or 2.5%%; found \"%s\"",
		      clip(n->text, shown));
		return false;
	}
	*out = ((double)whole + (double)part / (double)scale) / 100;
	return true;
}

bool check_unicast(struct faults *f, const struct node *n, const struct address *a)
{
	static const struct address zero6, zero4 = { .byte = { [10] = 0xff, [11] = 0xff } };
	const uint8_t *b = a->byte;
	const char *what = NULL;

	if (address_equal(a, &zero6) || address_equal(a, &zero4))
		what = "the unspecified address";
	else if (address_is_ipv4(a) ? b[12] == 127 : !memcmp(b, zero6.byte, 15) && b[15] == 1)
		what = "a loopback address";
	else if (address_is_ipv4(a) ? b[12] >= 224 && b[12] < 240 : b[0] == 0xff)
		what = "a multicast address";
	else if (address_is_ipv4(a) && (b[12] >= 240 || !b[12]))
		what = "a reserved address";
	else if (!address_is_ipv4(a) && b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
		what = "a link-local address, which means nothing without an interface";
	if (!what)
		return true;
	fault(f, n, "bad-value", "%s is %s; give the address of one host", n->text, what);
	return false;
}

bool read_address(struct faults *f, const struct node *n, unsigned int family, struct address *out)
{
	const char *kind = family == 4 ? "an IPv4 address" :
			   family == 6 ? "an IPv6 address" :
					 "an IPv4 or IPv6 address";
	char shown[CLIP_TEXT], plain[INET_ADDRSTRLEN];
	uint8_t mapped[16];
	struct address a;
	const char *text;

	if (n && n->kind != NODE_TEXT)
		return wrong_type(f, n, kind);
	if (!read_text(f, n, &text))
		return false;
	if (address_parse(text, &a)) {
		if (inet_pton(AF_INET6, text, mapped) == 1 && inet_ntop(AF_INET, mapped + 12, plain, sizeof(plain)))
			fault(f, n, "bad-value", "%s is an IPv4 address written as IPv6; write %s", text, plain);
		else
			fault(f, n, "bad-value", "\"%s\" is not %s", clip(text, shown), kind);
		return false;
	}
	if (family && address_is_ipv4(&a) != (family == 4)) {
		fault(f, n, "bad-value", "%s is not %s", text, kind);
		return false;
	}
	if (!check_unicast(f, n, &a))
		return false;
	*out = a;
	return true;
}
