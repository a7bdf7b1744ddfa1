// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "page.h"

#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "page_private.h"

/* The files of user/page/, into read-only data; paths count from the top directory, where make runs. */
#define FILE_OF(path) ".incbin \"user/page/" path "\"\n"
#define EMBED(name, files)                                                                                             \
	__asm__(".pushsection .rodata." #name ",\"a\"\n" #name ":\n" files ".byte 0\n.popsection\n");                  \
	extern const char name[] __attribute__((visibility("hidden")))

EMBED(page_frame, FILE_OF("page.html"));
EMBED(page_style, FILE_OF("base.css") FILE_OF("page.css"));
EMBED(page_script, FILE_OF("dom.js") FILE_OF("parts.js") FILE_OF("pools.js") FILE_OF("sections.js") FILE_OF("page.js"));

/* Writes the frame up to a mark, which is left out, and goes on behind it. */
static const char *up_to(FILE *to, const char *frame, const char *mark)
{
	const char *end = strstr(frame, mark);

	if (!end) {
		fputs(frame, to);
		return frame + strlen(frame);
	}
	fwrite(frame, 1, (size_t)(end - frame), to);
	return end + strlen(mark);
}

char *page_html(const json_t *snapshot)
{
	const char *rest = page_frame;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	rest = up_to(to, rest, "@TITLE@");
	page_title(to, snapshot);
	rest = up_to(to, rest, "@STYLE@");
	fputs(page_style, to);
	rest = up_to(to, rest, "@TABLES@");
	page_tables(to, snapshot);
	rest = up_to(to, rest, "@SCRIPT@");
	fputs(page_script, to);
	fputs(rest, to);
	if (ferror(to) | fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}

/* "sha256-..." of an inline style or script, as browsers compute it. */
static char *digest(const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t hash[SHA256_DIGEST_LENGTH + 1] = { 0 }; /* and one, to make it threes */
	char base64[45], *out = base64;
	SHA2_CTX c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)text, strlen(text));
	SHA256Final(hash, &c);
	for (size_t i = 0; i < sizeof(hash); i += 3) {
		unsigned int word = (unsigned int)hash[i] << 16 | (unsigned int)hash[i + 1] << 8 | hash[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*out++ = digits[word >> shift & 63];
	}
	base64[43] = '=';
	base64[44] = 0;
	return xasprintf("'sha256-%s'", base64);
}

const char *page_policy(void)
{
	static char *policy;

	if (!policy) {
		char *style = digest(page_style), *script = digest(page_script);

		policy = xasprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; "
				   "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
				   "require-trusted-types-for 'script'",
				   style, script);
		free(style);
		free(script);
	}
	return policy;
}
