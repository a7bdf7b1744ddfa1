/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The hash key: in the configuration, or in a file of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_parse.h"

#define KEY_DIGITS 32u
#define KEY_ALLOWED "32 hexadecimal digits, the same on every balancer of a fleet"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int config_parse_hex(const char *text, size_t length, uint8_t key[16])
{
	uint8_t out[16];

	if (length != KEY_DIGITS)
		return -EINVAL;
	for (size_t i = 0; i < 16; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		out[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(key, out, sizeof(out));
	return 0;
}

static void key_missing(struct parse *p, const struct node *root)
{
	char text[KEY_DIGITS + 1] = "";
	uint8_t key[16];

	if (getrandom(key, sizeof(key), 0) != sizeof(key)) {
		fault_missing(&p->f, root, "hash_key", "missing-key", "is missing; give " KEY_ALLOWED);
		return;
	}
	for (size_t i = 0; i < 16; i++) {
		text[2 * i] = "0123456789abcdef"[key[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[key[i] & 15];
	}
	fault_missing(&p->f, root, "hash_key", "missing-key",
		      "is missing; give " KEY_ALLOWED ". A fresh one to paste: hash_key: %s", text);
}

char *config_resolve(const char *file, const char *path)
{
	const char *slash = strrchr(file, '/');
	char *directory, *absolute, *whole;

	if (*path == '/')
		return xstrdup(path);
	directory = slash ? xstrdup(file) : xstrdup(".");
	if (slash)
		directory[slash == file ? 1 : slash - file] = '\0';
	absolute = realpath(directory, NULL);
	whole = xasprintf("%s/%s", absolute && strcmp(absolute, "/") ? absolute : absolute ? "" : directory, path);
	free(absolute);
	free(directory);
	return whole;
}

/* The first bytes of a regular file. Not blocking: the name could be that of a pipe. Length, or -errno. */
static ssize_t read_start(const char *path, char *buf, size_t size, mode_t *mode)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t length;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		length = -EINVAL;
	} else {
		length = read(fd, buf, size);
		if (length < 0)
			length = -errno;
		*mode = st.st_mode;
	}
	close(fd);
	return length;
}

static void key_from_file(struct parse *p, const struct node *n, const char *name)
{
	char *path = config_resolve(p->file, name), text[KEY_DIGITS + 3];
	mode_t mode = 0;
	ssize_t length = read_start(path, text, sizeof(text), &mode);

	if (length < 0) {
		fault(&p->f, n, "unreadable", "%s: %s; the file must hold " KEY_ALLOWED, path,
		      length == -EINVAL ? "Not a regular file" : strerror((int)-length));
	} else {
		if (length && text[length - 1] == '\n')
			length--;
		if (config_parse_hex(text, (size_t)length, p->c->hash_key))
			fault(&p->f, n, "bad-value", "%s:1:1: the file must hold " KEY_ALLOWED ", and nothing else",
			      path);
		if (mode & S_IROTH)
			fault_warning(
				&p->f, n, "readable-key",
				"%s can be read by everyone, who can then choose flows that all meet one backend; "
				"chmod o-r it",
				path);
	}
	explicit_bzero(text, sizeof(text));
	p->c->hash_key_file = path;
}

void parse_key(struct parse *p, const struct node *root, const struct node *n)
{
	static const struct key keys[] = { { "file", "the path of a file that holds the key" } };
	struct node *file;
	const char *text;

	if (!n) {
		key_missing(p, root);
	} else if (n->kind == NODE_MAP) {
		if (map_keys(&p->f, n, keys, 1, &file) && read_text(&p->f, file, &text))
			key_from_file(p, file, text);
	} else if (n->kind == NODE_LIST || n->kind == NODE_NULL) {
		fault(&p->f, n, "wrong-type", "must be " KEY_ALLOWED ", or {file: PATH}; found %s", node_kind_text(n));
	} else if (read_text(&p->f, n, &text) && config_parse_hex(text, strlen(text), p->c->hash_key)) {
		/* The text stays out of the message: it may be a key but for a slip. */
		fault(&p->f, n, "bad-value", "is not a key (%zu characters); give " KEY_ALLOWED ", or {file: PATH}",
		      strlen(text));
	}
}
