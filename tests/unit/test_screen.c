// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Text cut to the size of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "out_screen.h"

#define END "\033[K"
#define RED "\033[31m"
#define PLAIN "\033[0m"

static void test_fit(void **state)
{
	static const struct {
		const char *text;
		size_t rows, columns;
		const char *fitted;
	} cases[] = {
		{ "", 5, 5, "" },
		{ "one", 5, 5, "one" END },
		{ "one\n", 5, 5, "one" END },
		{ "one\n\ntwo\n", 5, 5, "one" END "\r\n" END "\r\ntwo" END },
		{ "one\ntwo\n", 1, 5, "one" END }, /* no line more, and no end of line that scrolls */
		{ "one\ntwo\n", 0, 5, "" },
		{ "123456\n7", 5, 5, "12345" END "\r\n7" END },
		{ "12345", 5, 5, "12345" END },
		{ "12345", 5, 0, END },
		{ "\xc3\xa4\xc3\xb6\xc3\xbc", 5, 2, "\xc3\xa4\xc3\xb6" END }, /* characters, not bytes */
		/* What switches colours takes no place, and is kept behind the cut. */
		{ RED "12" PLAIN "345", 5, 3, RED "12" PLAIN "3" PLAIN END },
		{ RED "12345" PLAIN "6\n7", 5, 3, RED "123" PLAIN PLAIN END "\r\n7" END },
		{ "12\033[", 5, 5, "12\033[" PLAIN END },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *fitted = screen_fit(cases[i].text, cases[i].rows, cases[i].columns);

		assert_string_equal(fitted, cases[i].fitted);
		free(fitted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
