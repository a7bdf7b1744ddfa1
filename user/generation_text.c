// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A head of comments, the configuration, and a last line with a checksum of everything before it: a file that was cut
 * off, or changed by hand, is never taken for what once ran.
 *
 *	# ringlb generation 8
 *	# time: 2024-05-01T12:00:00Z
 *	# digest: 0123456789abcdef0123456789abcdef
 *	# summary: web-4 added to web
 *	interfaces: [eth0]
 *	...
 *	# end of generation 8, xxh64 0123456789abcdef
 */
#include "generation_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_BYTES (64u << 20) /* more than any configuration with its head */

/* What may stand in a comment of one line: a file's name may hold anything. */
static void put_line(FILE *o, const char *lead, const char *text)
{
	fputs(lead, o);
	for (const char *p = text; *p; p++)
		fputc(*p >= ' ' && *p < 0x7f ? *p : '?', o);
	fputc('\n', o);
}

static uint64_t checksum(const char *text, size_t length)
{
	return XXH64(text, length, 0);
}

char *generation_text(uint32_t number, time_t time, const char *digest, const char *summary, const struct config *c)
{
	char stamp[24] = "", *body = config_emit(c, true), *text;
	struct tm tm;
	size_t length;
	FILE *o = open_memstream(&text, &length);

	if (!o)
		diag_fatal("out of memory");
	if (gmtime_r(&time, &tm))
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(o, "# ringlb generation %u\n", number);
	put_line(o, "# time: ", stamp);
	put_line(o, "# digest: ", digest);
	put_line(o, "# summary: ", summary);
	if (c->hash_key_file)
		put_line(o, GENERATION_KEY_FILE, c->hash_key_file);
	fputs(body, o);
	fflush(o);
	fprintf(o, "# end of generation %u, xxh64 %016" PRIx64 "\n", number, checksum(text, length));
	if (fclose(o))
		diag_fatal("out of memory");
	generation_text_free(body);
	return text;
}

void generation_text_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text)); /* the hash key is in it */
	free(text);
}

/* The file as it is, NUL-terminated, or NULL and errno. */
static char *slurp(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err = 0;
	char *text = NULL;
	struct stat st;
	ssize_t got;

	*length = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES) {
		close(fd);
		errno = EBADMSG;
		return NULL;
	}
	text = xcalloc((size_t)st.st_size + 1, 1);
	while (*length < (size_t)st.st_size && !err) {
		got = read(fd, text + *length, (size_t)st.st_size - *length);
		if (got > 0)
			*length += (size_t)got;
		else if (!got || errno != EINTR)
			err = got ? errno : EBADMSG;
	}
	close(fd);
	if (!err)
		return text;
	free(text);
	errno = err;
	return NULL;
}

/* Takes one line of the head: what follows lead. Moves *p behind it, to the next line. */
static char *take_line(const char **p, const char *lead)
{
	size_t length = strlen(lead), rest;
	char *text;

	if (strncmp(*p, lead, length) != 0)
		return NULL;
	*p += length;
	rest = strcspn(*p, "\n");
	text = xasprintf("%.*s", (int)rest, *p);
	*p += rest + ((*p)[rest] == '\n');
	return text;
}

/* Whether the text ends as it was written. */
static bool is_whole(const char *text, size_t length, uint32_t number)
{
	char last[80];
	size_t end = length;

	if (strlen(text) != length || !length || text[length - 1] != '\n')
		return false;
	for (end--; end && text[end - 1] != '\n';)
		end--;
	snprintf(last, sizeof(last), "# end of generation %u, xxh64 %016" PRIx64 "\n", number, checksum(text, end));
	return !strcmp(text + end, last);
}

static bool read_head(const char *text, uint32_t number, struct generation *out)
{
	char *own = take_line(&text, "# ringlb generation "), *stamp = take_line(&text, "# time: ");
	char *digest = take_line(&text, "# digest: "), *summary = take_line(&text, "# summary: ");
	bool good = own && stamp && digest && summary && strtoul(own, NULL, 10) == number &&
		    strlen(stamp) < sizeof(out->time) && strlen(digest) < sizeof(out->digest);

	if (good) {
		strcpy(out->time, stamp);
		strcpy(out->digest, digest);
		free(out->summary);
		out->summary = summary;
		summary = NULL;
	}
	free(own);
	free(stamp);
	free(digest);
	free(summary);
	return good;
}

char *generation_read(const char *path, uint32_t number, struct generation *out)
{
	struct stat st;
	size_t length;
	char *text;

	memset(out, 0, sizeof(*out));
	out->number = number;
	out->summary = xstrdup("");
	out->damaged = true;
	if (!lstat(path, &st))
		out->bytes = (uint64_t)st.st_size;
	text = slurp(path, &length);
	if (!text)
		return NULL;
	out->bytes = length;
	if (is_whole(text, length, number) && read_head(text, number, out)) {
		out->damaged = false;
		return text;
	}
	generation_text_free(text);
	errno = EBADMSG;
	return NULL;
}
