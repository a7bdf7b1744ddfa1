/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_parse.h"

static void pool_free(struct config_pool *pool)
{
	for (size_t i = 0; i < pool->backends; i++) {
		free(pool->backend[i].name);
		free(pool->backend[i].identity);
		free(pool->backend[i].zone);
	}
	config_check_free(pool->check);
	free(pool->backend);
	free(pool->name);
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->interfaces; i++)
		free(c->interface[i]);
	for (size_t i = 0; i < c->pools; i++)
		pool_free(&c->pool[i]);
	for (size_t i = 0; i < c->services; i++)
		free(c->service[i].name);
	free(c->interface);
	free(c->pool);
	free(c->service);
	free(c->hash_key_file);
	free(c->status_listen);
	free(c->file);
	explicit_bzero(c->hash_key, sizeof(c->hash_key));
	free(c);
}

struct config *config_parse(const char *file, const char *text, size_t length, struct diag *d)
{
	struct parse p = { .file = file };
	struct node *root = NULL;
	bool good;

	p.c = xcalloc(1, sizeof(*p.c));
	p.c->file = xstrdup(file);
	p.c->max_move = -1;
	p.c->flows_established = CONFIG_DEFAULT_FLOWS_ESTABLISHED;
	p.c->flows_opening = CONFIG_DEFAULT_FLOWS_OPENING;
	if (length > TREE_MAX_BYTES)
		fault_at(&p.f, DIAG_ERROR, "too-large", 0, 0,
			 "the file is larger than %u MiB; no configuration within the limits "
			 "is",
			 TREE_MAX_BYTES >> 20);
	else
		root = tree_parse(text, length, &p.f);
	if (root)
		parse_root(&p, root);
	good = !p.f.errors;
	faults_give(&p.f, file, d);
	tree_free(root);
	if (good)
		return p.c;
	config_free(p.c);
	return NULL;
}

char *config_slurp(const char *file, size_t limit, size_t *length)
{
	size_t size = 0, room = 0;
	char *text = NULL;
	int fd, error = 0;
	ssize_t got;

	fd = strcmp(file, "-") ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY) : dup(STDIN_FILENO);
	if (fd < 0)
		return NULL;
	do {
		if (size + 1 >= room) {
			room = room ? 2 * room : 1 << 16;
			text = xreallocarray(text, room, 1);
		}
		got = read(fd, text + size, room - size - 1);
		if (got > 0)
			size += (size_t)got;
		else if (got < 0 && errno != EINTR)
			error = errno;
		if (size > limit)
			error = EFBIG;
	} while (!error && got);
	close(fd);
	if (error) {
		free(text);
		errno = error;
		return NULL;
	}
	text[size] = '\0';
	*length = size;
	return text;
}

struct config *config_load(const char *file, struct diag *d)
{
	const char *shown = strcmp(file, "-") ? file : "standard input";
	struct config *c;
	size_t length;
	char *text;

	text = config_slurp(file, TREE_MAX_BYTES, &length);
	if (!text) {
		if (errno == EFBIG)
			diag_error(d, "too-large", shown,
				   "the file is larger than %u MiB; no configuration within the limits is",
				   TREE_MAX_BYTES >> 20);
		else
			diag_error(d, "unreadable", shown, "the configuration can't be read: %s%s", strerror(errno),
				   errno == ENOENT ? "; write it, or name another file" : "");
		return NULL;
	}
	c = config_parse(shown, text, length, d);
	explicit_bzero(text, length);
	free(text);
	return c;
}

bool address_given(const struct address *a)
{
	static const struct address none;

	return !address_equal(a, &none);
}

uint64_t config_ring_points(const struct config_pool *p, const struct config_backend *b)
{
	return b->points ? b->points : (uint64_t)p->vnodes * b->weight;
}

uint64_t config_backend_points(const struct config_pool *p, const struct config_backend *b)
{
	switch (p->placement) {
	case CONFIG_RING:
		return config_ring_points(p, b);
	case CONFIG_NGINX:
		return (uint64_t)PLACEMENT_NGINX_POINTS * b->weight;
	case CONFIG_HAPROXY:
		return (uint64_t)PLACEMENT_HAPROXY_POINTS * b->weight;
	default:
		return 0;
	}
}

const struct config_pool *config_find_pool(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->pools; i++) {
		if (!strcmp(c->pool[i].name, name))
			return &c->pool[i];
	}
	return NULL;
}
