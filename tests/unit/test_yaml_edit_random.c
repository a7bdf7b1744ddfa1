// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random edits of random configurations in random styles. After each: the text means what a model of it means; every
 * comment is there that does not stand in the lines of a backend that went; and no line changed but those that had to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "quick.h"
#include "random_pool.h"
#include "yaml_edit.h"

#define TEXTS 150u
#define EDITS 5u
#define MAX_POOLS 3u
#define MAX_BACKENDS 8u

/* What the text means, as far as edits reach. */
struct backend {
	char name[24], address[24];
	uint32_t weight, points;
	bool zone;
	struct address binary;
};

struct pool {
	char name[16];
	struct backend backend[MAX_BACKENDS + EDITS];
	size_t backends;
};

struct model {
	struct pool pool[MAX_POOLS];
	size_t pools;
	unsigned int serial; /* of names and comments */
};

struct writer {
	FILE *o;
	struct model *m;
	const char *ending;
	bool quoted;
};

static bool chance(uint32_t of)
{
	return !random_below(of);
}

/* Every comment is its own, so that it can be found again: "keep" stays whatever is edited, "own" may go with NAME. */
static void comment(struct writer *w, const char *owner)
{
	static const char *const odd[] = { "",    " {", " ]", " - {name: x}", " weight: 3", " \xc3\xa9\xf0\x9f\x90\xa7",
					   " \"", " ," };
	unsigned int serial = w->m->serial++;

	if (owner)
		fprintf(w->o, "# own <%s> %u;%s", owner, serial, odd[random_below(8)]);
	else
		fprintf(w->o, "# keep %u;%s", serial, odd[random_below(8)]);
}

/* The end of a line, with a comment now and then. */
static void end_line(struct writer *w, const char *owner)
{
	if (chance(4)) {
		fputs(chance(2) ? " " : "   \t", w->o);
		comment(w, owner);
	} else if (chance(8)) {
		fputs("  ", w->o);
	}
	fputs(w->ending, w->o);
}

/* Lines with nothing but comments, or nothing. */
static void idle_lines(struct writer *w, int indent, const char *owner)
{
	while (chance(5)) {
		if (chance(3)) {
			fputs(w->ending, w->o);
			continue;
		}
		fprintf(w->o, "%*s", indent, "");
		comment(w, owner);
		fputs(w->ending, w->o);
	}
}

/* One key; which: 0 to 4. */
static void pair(struct writer *w, const struct backend *b, int which)
{
	static const char *const keys[] = { "name", "address", "weight", "points", "zone" };
	const char *key_quote = w->quoted ? "\"" : "", *quote = w->quoted ? "\"" : chance(4) ? "'" : "";

	fprintf(w->o, "%s%s%s:%s", key_quote, keys[which], key_quote, chance(6) ? "   " : " ");
	if (which == 0)
		fprintf(w->o, "%s%s%s", quote, b->name, quote);
	else if (which == 1)
		fprintf(w->o, "%s%s%s", quote, b->address, quote);
	else if (which == 2)
		fprintf(w->o, "%u", b->weight);
	else if (which == 3)
		fprintf(w->o, "%u", b->points);
	else
		fprintf(w->o, "%sz1%s", quote, quote);
}

/* The keys that are written, in any order. */
static int keys_of(const struct backend *b, int out[5])
{
	int n = 0;

	out[n++] = 0;
	out[n++] = 1;
	if (b->weight != 1 || chance(3))
		out[n++] = 2;
	if (b->points)
		out[n++] = 3;
	if (b->zone)
		out[n++] = 4;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)random_below((uint32_t)i + 1), t = out[i];

		out[i] = out[j];
		out[j] = t;
	}
	return n;
}

static void flow_backend(struct writer *w, const struct backend *b, int indent, bool lines)
{
	int key[5], n = keys_of(b, key);
	const char *pad = chance(3) ? " " : "";

	fprintf(w->o, "{%s", pad);
	for (int i = 0; i < n; i++) {
		pair(w, b, key[i]);
		if (i + 1 == n && !chance(6))
			break;
		if (lines && chance(4)) {
			fputs(chance(3) ? " ," : ",", w->o);
			end_line(w, b->name);
			fprintf(w->o, "%*s", indent + 2, "");
		} else if (lines && chance(8)) {
			end_line(w, b->name);
			fprintf(w->o, "%*s, ", indent + 2, "");
		} else {
			fputs(chance(6) ? " , " : ", ", w->o);
		}
	}
	fprintf(w->o, "%s}", pad);
}

static void block_backend(struct writer *w, const struct backend *b, int indent)
{
	int key[5], n = keys_of(b, key), gap = chance(4) ? 3 : 1;

	fprintf(w->o, "%*s-", indent, "");
	if (chance(8)) {
		fputs(w->ending, w->o);
		idle_lines(w, indent + 1, b->name);
		fprintf(w->o, "%*s", indent + 1 + gap, "");
	} else {
		fprintf(w->o, "%*s", gap, "");
	}
	for (int i = 0; i < n; i++) {
		if (i) {
			idle_lines(w, indent + 1 + gap, b->name);
			fprintf(w->o, "%*s", indent + 1 + gap, "");
		}
		pair(w, b, key[i]);
		end_line(w, b->name);
	}
}

static void block_list(struct writer *w, const struct pool *p, int indent)
{
	int style = (int)random_below(3);

	end_line(w, NULL);
	for (size_t i = 0; i < p->backends; i++) {
		/* Not as deep as keys: these are nobody's. */
		idle_lines(w, indent, NULL);
		if (style == 0 || (style == 2 && chance(2))) {
			block_backend(w, &p->backend[i], indent);
			continue;
		}
		fprintf(w->o, "%*s- ", indent, "");
		flow_backend(w, &p->backend[i], indent + 2, chance(3));
		end_line(w, p->backend[i].name);
	}
}

static void flow_list(struct writer *w, const struct pool *p, int indent)
{
	bool lines = chance(2), leading = chance(4);

	fputs(chance(2) ? "[" : "[ ", w->o);
	for (size_t i = 0; i < p->backends; i++) {
		if (lines && (i || chance(2))) {
			if (i && leading)
				end_line(w, p->backend[i - 1].name);
			else
				end_line(w, i ? p->backend[i - 1].name : NULL);
			idle_lines(w, indent, NULL);
			fprintf(w->o, "%*s%s", indent, "", i && leading ? ", " : "");
		}
		flow_backend(w, &p->backend[i], indent, lines);
		if ((i + 1 < p->backends && !(lines && leading)) || (i + 1 == p->backends && chance(6)))
			fputs(lines ? "," : ", ", w->o);
	}
	if (lines) {
		end_line(w, p->backends ? p->backend[p->backends - 1].name : NULL);
		idle_lines(w, indent, NULL);
		fprintf(w->o, "%*s", indent, "");
	}
	fputs("]", w->o);
}

static void key(struct writer *w, const char *name)
{
	fprintf(w->o, w->quoted ? "\"%s\": " : "%s: ", name);
}

static void write_pool(struct writer *w, const struct pool *p)
{
	bool flow = chance(4), name_first = chance(2);
	int gap = chance(4) ? 3 : 1, indent = 2 + 1 + gap, deeper = chance(3) ? 0 : 2;

	idle_lines(w, 2, NULL);
	fprintf(w->o, "  -%*s", gap, "");
	if (flow)
		fputs("{ ", w->o);
	if (name_first) {
		key(w, "name");
		fprintf(w->o, "\"%s\"%s", p->name, flow ? ", " : "");
		if (!flow) {
			end_line(w, NULL);
			fprintf(w->o, "%*s", indent, "");
		}
	}
	key(w, "backends");
	if (flow || !p->backends || chance(4)) {
		flow_list(w, p, indent + 2);
		if (!flow)
			end_line(w, NULL);
	} else {
		fseek(w->o, -1, SEEK_CUR); /* no blank where nothing follows */
		block_list(w, p, indent + deeper);
	}
	if (!name_first) {
		fprintf(w->o, flow ? ", " : "%*s", indent, "");
		key(w, "name");
		fprintf(w->o, "\"%s\"", p->name);
	}
	if (flow)
		fputs(" }", w->o);
	if (flow || !name_first)
		end_line(w, NULL);
}

static void random_model(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->pools = 1 + random_below(MAX_POOLS);
	for (size_t i = 0; i < m->pools; i++) {
		struct pool *p = &m->pool[i];

		sprintf(p->name, "pool-%zu", i);
		p->backends = random_below(MAX_BACKENDS);
		for (size_t j = 0; j < p->backends; j++) {
			struct backend *b = &p->backend[j];

			sprintf(b->name, "b%u.", m->serial++);
			sprintf(b->address, chance(2) ? "10.%zu.0.%zu" : "fd00::%zu:%zu", i, j + 1);
			b->weight = chance(2) ? 1 : 1 + random_below(20);
			b->points = chance(3) ? 1 + random_below(500) : 0;
			b->zone = chance(3);
			assert_int_equal(address_parse(b->address, &b->binary), 0);
		}
	}
}

static char *random_text(struct model *m)
{
	struct writer w = { .m = m, .ending = chance(3) ? "\r\n" : "\n", .quoted = chance(6) };
	char *text;
	size_t length;

	w.o = open_memstream(&text, &length);
	assert_non_null(w.o);
	if (chance(5))
		fputs("\xef\xbb\xbf", w.o);
	idle_lines(&w, 0, NULL);
	if (chance(5))
		fprintf(w.o, "---%s", w.ending);
	fprintf(w.o, "interfaces: [eth0]%shash_key: \"00112233445566778899aabbccddeeff\"%s", w.ending, w.ending);
	if (chance(2))
		fprintf(w.o, "services: []%s", w.ending);
	else
		m->serial |= 1u << 31;
	fputs("pools:", w.o);
	end_line(&w, NULL);
	for (size_t i = 0; i < m->pools; i++)
		write_pool(&w, &m->pool[i]);
	idle_lines(&w, 0, NULL);
	if (m->serial & 1u << 31)
		fprintf(w.o, "services: []%s", w.ending);
	m->serial &= ~(1u << 31);
	fclose(w.o);
	if (chance(2) && length && text[length - 1] == '\n') {
		length -= strlen(w.ending);
		text[length] = '\0';
	}
	return text;
}

/* An edit that makes sense, made to the model, too. Names in it are copies in store. */
static struct yaml_edit random_edit(struct model *m, struct config_backend *add, char store[2][24])
{
	struct pool *p = &m->pool[random_below((uint32_t)m->pools)];
	struct yaml_edit e = { .kind = (enum yaml_edit_kind)random_below(4), .pool = p->name };
	struct backend *b;

	if (!p->backends)
		e.kind = YAML_EDIT_ADD;
	if (e.kind == YAML_EDIT_ADD) {
		b = &p->backend[p->backends++];
		*b = (struct backend){ .weight = chance(2) ? 1 : 7, .points = chance(2) ? 0 : 9, .zone = chance(2) };
		sprintf(b->name, "b%u.", m->serial++);
		sprintf(b->address, chance(2) ? "10.9.0.%u" : "fd00::9:%u", m->serial % 250);
		assert_int_equal(address_parse(b->address, &b->binary), 0);
		strcpy(store[0], b->name);
		*add = (struct config_backend){ .name = store[0],
						.identity = store[0],
						.zone = b->zone ? "z1" : NULL,
						.address = b->binary,
						.weight = b->weight,
						.points = b->points };
		e.add = add;
		e.backend = store[0];
		return e;
	}
	b = &p->backend[random_below((uint32_t)p->backends)];
	e.backend = strcpy(store[0], b->name);
	e.key = chance(2) ? YAML_EDIT_WEIGHT : YAML_EDIT_POINTS;
	e.value = 1 + random_below(e.key == YAML_EDIT_WEIGHT ? 20 : 500);
	if (e.kind == YAML_EDIT_DELETE) {
		memmove(b, b + 1, (size_t)(&p->backend[--p->backends] - b) * sizeof(*b));
		return e;
	}
	if (e.kind == YAML_EDIT_UNSET)
		*(e.key == YAML_EDIT_WEIGHT ? &b->weight : &b->points) = e.key == YAML_EDIT_WEIGHT;
	else
		*(e.key == YAML_EDIT_WEIGHT ? &b->weight : &b->points) = e.value;
	return e;
}

static bool means(const char *text, const struct model *m)
{
	struct diag d = { 0 };
	struct config *c = config_parse("r.yaml", text, strlen(text), &d);
	bool same = c && c->pools == m->pools;

	for (size_t i = 0; same && i < m->pools; i++) {
		const struct pool *p = &m->pool[i];

		same = c->pool[i].backends == p->backends;
		for (size_t j = 0; same && j < p->backends; j++) {
			const struct config_backend *x = &c->pool[i].backend[j];
			const struct backend *y = &p->backend[j];

			same = !strcmp(x->name, y->name) && address_equal(&x->address, &y->binary) &&
			       x->weight == y->weight && x->points == y->points && !x->zone == !y->zone;
		}
	}
	for (size_t i = 0; !c && i < d.count; i++)
		print_error("%s: %s\n", d.entry[i].where, d.entry[i].message);
	diag_free(&d);
	config_free(c);
	return same;
}

/* Comments of before that are no longer there, but for those that may go with a backend. */
static bool keeps_comments(const char *before, const char *after, const struct yaml_edit *e)
{
	char *own = xasprintf("# own <%s>", e->backend);
	bool may_go = e->kind == YAML_EDIT_DELETE || e->kind == YAML_EDIT_UNSET, kept = true;

	for (const char *p = before; (p = strchr(p, '#')); p++) {
		const char *end = strchr(p, ';');
		char *whole;

		if (strncmp(p, "# keep ", 7) != 0 && strncmp(p, "# own <", 7) != 0)
			continue;
		whole = xasprintf("%.*s", (int)(end + 1 - p), p);
		if (!strstr(after, whole) && !(may_go && !strncmp(whole, own, strlen(own)))) {
			print_error("lost: %s\n", whole);
			kept = false;
		}
		free(whole);
	}
	free(own);
	return kept;
}

/* Lines that are not blank, without their ends, in text that is cut up for it. */
static size_t split(char *text, char **line, size_t room)
{
	size_t n = 0;

	for (char *p; (p = strsep(&text, "\n"));) {
		assert_true(n < room);
		if (p[strspn(p, " \t\r")])
			line[n++] = p;
	}
	return n;
}

#define MAX_LINES 512u

/* How many lines of before are not in after, both in order. */
static size_t lines_gone(const char *before, const char *after)
{
	static uint16_t common[MAX_LINES + 1][MAX_LINES + 1];
	char *old = xstrdup(before), *new = xstrdup(after), *x[MAX_LINES], *y[MAX_LINES];
	size_t n = split(old, x, MAX_LINES), m = split(new, y, MAX_LINES);

	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			uint16_t longest = common[i - 1][j] > common[i][j - 1] ? common[i - 1][j] : common[i][j - 1];

			common[i][j] = strcmp(x[i - 1], y[j - 1]) ? longest : (uint16_t)(common[i - 1][j - 1] + 1);
		}
	}
	free(old);
	free(new);
	return n - common[n][m];
}

static const char *kind_text(enum yaml_edit_kind k)
{
	static const char *const text[] = { "set", "unset", "add", "delete" };

	return text[k];
}

static void complain(const char *before, const char *after, const struct yaml_edit *e, const struct diag *d)
{
	/* print_error cuts long texts off. */
	fprintf(stderr, "%zu lines gone: %s %s %s, key %d = %u, of\n%s\n--- gave ---\n%s\n---\n",
		after ? lines_gone(before, after) : 0, kind_text(e->kind), e->pool, e->backend, (int)e->key, e->value,
		before, after ? after : "nothing");
	for (size_t i = 0; i < d->count; i++)
		print_error("%s: %s\n", d->entry[i].where, d->entry[i].message);
	fail();
}

static void test_random(void **state)
{
	LEAVE_IF_QUICK();
	/* A set changes one line, or none but adds; a last line without an end gets one. */
	static const size_t may_go[] = {
		[YAML_EDIT_SET] = 1, [YAML_EDIT_UNSET] = 2, [YAML_EDIT_ADD] = 2, [YAML_EDIT_DELETE] = 30
	};

	(void)state;
	for (unsigned int i = 0; i < TEXTS; i++) {
		struct model m;
		char *text;

		random_model(&m);
		text = random_text(&m);
		assert_true(means(text, &m));
		for (unsigned int j = 0; j < EDITS; j++) {
			struct config_backend add;
			char store[2][24], *after;
			struct yaml_edit e = random_edit(&m, &add, store);
			struct diag d = { 0 };
			size_t length;

			after = yaml_edit_text("r.yaml", text, strlen(text), &e, 1, &length, &d);
			if (!after || d.count || length != strlen(after) || !means(after, &m) ||
			    !keeps_comments(text, after, &e) || lines_gone(text, after) > may_go[e.kind])
				complain(text, after, &e, &d);
			diag_free(&d);
			free(text);
			text = after;
		}
		free(text);
	}
}

/* Many sets at once give the same text as one by one. */
static void test_batch(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < TEXTS / 3; i++) {
		struct yaml_edit edit[2 * MAX_POOLS * MAX_BACKENDS];
		char *text, *single, *all;
		struct diag d = { 0 };
		struct model m;
		size_t n = 0, length;

		random_model(&m);
		text = random_text(&m);
		assert_true(means(text, &m));
		for (size_t p = 0; p < m.pools; p++) {
			for (size_t b = 0; b < 2 * m.pool[p].backends; b++) {
				edit[n++] = (struct yaml_edit){ .kind = YAML_EDIT_SET,
								.pool = m.pool[p].name,
								.backend = m.pool[p].backend[b / 2].name,
								.key = b % 2 ? YAML_EDIT_POINTS : YAML_EDIT_WEIGHT,
								.value = 1 + random_below(500) };
			}
		}
		all = yaml_edit_text("r.yaml", text, strlen(text), edit, n, &length, &d);
		single = xstrdup(text);
		for (size_t k = 0; k < n && single; k++) {
			char *next = yaml_edit_text("r.yaml", single, strlen(single), &edit[k], 1, &length, &d);

			free(single);
			single = next;
		}
		assert_int_equal(d.count, 0);
		assert_string_equal(all, single);
		free(single);
		free(all);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_batch),
	};

	random_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
