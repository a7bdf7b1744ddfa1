// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rules of health.h as scenarios. A step says at what time (ms) what happens, and how things stand after it.
 *   happens  "=abC" the configuration has backends a and b, and c in maint ("a'" drains, "a2" has another address, "a/x"
 *            is identity a under the name x); "%" before it: and no check; "a+" "a-" a check of a succeeds, fails;
 *            "a:cut" "a:wait" "a:used" "a:used50" that runs, and is restored; "failed": the last commit did
 *   stands   "a+" up and used, "a+50" with half of its points, "a-" down and cut, "a?" waits, "a*" down and used all the
 *            same, "au" unchecked; then "all" or "panic"; then "#N": N commits since the step before
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health.h"
#include "random_pool.h"

struct step {
	uint64_t at;
	const char *happens, *stands;
};

#define CHECK                                                                                                          \
	{                                                                                                              \
		.type = CHECK_TCP, .port = 80, .interval_ms = 2000, .timeout_ms = 1000, .rise = 2, .fall = 3           \
	}

static const struct config_check plain = CHECK;

struct run {
	struct health h;
	struct config_check check;
	struct config_backend backend[16];
	char name[16][2], identity[16][2];
	unsigned int commits;
	bool fail;
};

static struct address address_of(char name, unsigned int which)
{
	return (struct address){ .byte = { [10] = 0xff, [11] = 0xff, 10, 0, (uint8_t)which, (uint8_t)name } };
}

/* The backends of "abC". */
static size_t read_backends(struct run *r, const char *p)
{
	size_t count = 0;

	for (; *p && *p != ' '; count++) {
		struct config_backend *b = &r->backend[count];
		bool maint = *p >= 'A' && *p <= 'Z';
		unsigned int which = 1;

		r->identity[count][0] = r->name[count][0] = (char)(*p++ | 0x20);
		*b = (struct config_backend){ .name = r->name[count], .identity = r->identity[count], .weight = 1 };
		b->state = maint ? CONFIG_MAINT : CONFIG_UP;
		for (;; p++) {
			if (*p == '\'')
				b->state = CONFIG_DRAIN;
			else if (*p >= '2' && *p <= '9')
				which = (unsigned int)(*p - '0');
			else if (*p == '/')
				r->name[count][0] = *++p;
			else
				break;
		}
		b->address = address_of(b->identity[0], which);
	}
	return count;
}

static void configure(struct run *r, const char *backends, bool check, uint64_t now)
{
	struct config_pool pool = { .name = "web", .backend = r->backend, .check = check ? &r->check : NULL };
	struct config c = { .pool = &pool, .pools = 1 };

	pool.backends = read_backends(r, backends);
	health_configure(&r->h, &c, now);
}

static struct health_backend *named(const struct health *h, char identity)
{
	for (size_t i = 0; i < h->pool[0].backends; i++) {
		if (h->pool[0].backend[i].identity[0] == identity)
			return &h->pool[0].backend[i];
	}
	fail_msg("no backend %c", identity);
	return NULL;
}

static void happen(struct run *r, const char *what, uint64_t now)
{
	struct health_backend *b;

	if (*what == '=' || *what == '%') {
		configure(r, what + 1 + (*what == '%'), *what == '=', now);
	} else if (!strcmp(what, "failed")) {
		r->fail = true;
	} else if (what[1] == ':') {
		b = named(&r->h, what[0]);
		health_runs(&r->h, b,
			    what[2] == 'c' ? HEALTH_CUT :
			    what[2] == 'w' ? HEALTH_WAITS :
					     HEALTH_USED,
			    what[2] == 'u' && what[6] ? atoi(what + 6) / 100.0 : 1, true, now);
	} else {
		struct health_result result = { .ok = what[1] == '+', .reason = what[1] == '+' ? "fine" : "refused" };

		result.id = named(&r->h, what[0])->id;
		health_result(&r->h, &result, now);
	}
}

/* Time passes up to at. */
static void pass(struct run *r, uint64_t at)
{
	while (health_next(&r->h) <= at) {
		uint64_t now = health_next(&r->h);

		if (!health_tick(&r->h, now))
			continue;
		if (r->fail)
			health_failed(&r->h, now);
		else
			health_committed(&r->h);
		r->fail = false;
		r->commits++;
	}
}

static char sign(const struct health_backend *b)
{
	if (b->status == HEALTH_UNCHECKED)
		return 'u';
	if (b->status == HEALTH_UP)
		return '+';
	return b->use == HEALTH_USED ? '*' : b->use == HEALTH_WAITS ? '?' : '-';
}

static void stand(struct run *r, char out[256])
{
	const struct health_pool *p = &r->h.pool[0];
	size_t length = 0;

	out[0] = '\0';
	for (size_t i = 0; i < p->backends; i++) {
		const struct health_backend *b = &p->backend[i];

		length += (size_t)sprintf(out + length, "%s%c%c", i ? " " : "", b->identity[0], sign(b));
		if (b->factor < 1)
			length += (size_t)sprintf(out + length, "%.0f", 100 * b->factor);
	}
	length += (size_t)sprintf(out + length, "%s%s", p->all_down ? " all" : "", p->panic ? " panic" : "");
	if (r->commits)
		sprintf(out + length, " #%u", r->commits);
	r->commits = 0;
}

static void play(const struct config_check *check, const struct step *step, size_t steps)
{
	struct run r = { .check = *check };

	for (size_t i = 0; i < steps; i++) {
		char text[64], actual[256];
		char *save = NULL;

		if (r.h.started)
			pass(&r, step[i].at);
		snprintf(text, sizeof(text), "%s", step[i].happens);
		for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save))
			happen(&r, p, step[i].at);
		pass(&r, step[i].at);
		stand(&r, actual);
		if (strcmp(actual, step[i].stands)) {
			for (size_t j = 0; j < r.h.events; j++)
				print_error("%s\n", r.h.event[j].text);
			fail_msg("at %llu, after \"%s\": \"%s\", not \"%s\"", (unsigned long long)step[i].at,
				 step[i].happens, actual, step[i].stands);
		}
	}
	health_free(&r.h);
}

#define PLAY(check, ...)                                                                                               \
	do {                                                                                                           \
		static const struct step steps[] = { __VA_ARGS__ };                                                    \
		play(check, steps, sizeof(steps) / sizeof(*steps));                                                    \
	} while (0)

static void test_rise_and_fall(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=ab", "a+ b+" }, { 10, "a- a-", "a+ b+" }, { 20, "a+", "a+ b+" }, { 30, "a- a-", "a+ b+" },
	     { 40, "a-", "a- b+" }, { 139, "", "a- b+" }, { 140, "", "a- b+ #1" }, { 200, "a+", "a- b+" },
	     { 210, "a-", "a- b+" }, { 220, "a+", "a- b+" }, { 230, "a+", "a+ b+" }, { 999, "", "a+ b+ #1" });
}

static void test_one_commit(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=abcd", "a+ b+ c+ d+" }, { 1000, "a- a- a-", "a- b+ c+ d+" },
	     { 1099, "b- b- b-", "a- b- c+ d+" }, { 1100, "", "a- b- c+ d+ #1" }, { 1101, "c- c- c-", "a- b- c- d+" },
	     { 1201, "", "a- b- c- d+ #1" },
	     /* what is undone in time is none */
	     { 70000, "d- d- d-", "a* b* c* d* all" }, { 70050, "d+ d+", "a- b- c- d+" }, { 80000, "", "a- b- c- d+" });
}

static void test_failed_commit(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=ab failed", "a+ b+" }, { 1000, "a- a- a-", "a- b+" }, { 1100, "", "a- b+ #1" },
	     { 2099, "", "a- b+" }, { 2100, "", "a- b+ #1" }, { 9999, "", "a- b+" });
}

static void test_added(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=ab", "a+ b+" }, { 1000, "=abc", "a+ b+ c?" }, { 1100, "", "a+ b+ c? #1" },
	     { 2000, "c-", "a+ b+ c?" }, { 2001, "c+", "a+ b+ c+" }, { 2101, "", "a+ b+ c+ #1" },
	     /* never a success: after `fall` failures it is down as others are, and needs `rise` */
	     { 3000, "=abcd", "a+ b+ c+ d?" }, { 3100, "d- d- d-", "a+ b+ c+ d- #1" }, { 3200, "d+", "a+ b+ c+ d- #1" },
	     { 3300, "d+", "a+ b+ c+ d+" });
}

static void test_all_down(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=ab", "a+ b+" }, { 1000, "a- a- a-", "a- b+" }, { 2000, "b- b- b-", "a* b* all #1" },
	     { 2100, "", "a* b* all #1" }, { 3000, "=abc", "a* b* c* all" }, { 3200, "c+", "a- b- c+" },
	     { 3300, "", "a- b- c+ #1" },
	     /* a whole new set of backends */
	     { 4000, "=de", "d* e* all" }, { 4100, "e+", "d? e+" });
}

static void test_panic(void **state)
{
	struct config_check check = CHECK;

	(void)state;
	check.panic = 0.5;
	PLAY(&check, { 1, "=abcd", "a+ b+ c+ d+" }, { 1000, "a- a- a-", "a- b+ c+ d+" },
	     { 2000, "b- b- b-", "a- b- c+ d+ #1" }, { 3000, "c- c- c-", "a* b* c* d+ panic #1" },
	     { 4000, "a+ a+", "a+ b- c- d+ #1" },
	     /* newcomers neither start it nor are used in it */
	     { 5000, "=abcdefgh", "a+ b- c- d+ e? f? g? h? #1" },
	     { 6000, "d- d- d-", "a+ b* c* d* e? f? g? h? panic #1" },
	     { 7000, "a- a- a-", "a* b* c* d* e* f* g* h* all #1" });
}

static void test_slow_start(void **state)
{
	struct config_check check = CHECK;

	(void)state;
	check.slow_start_ms = 4000;
	PLAY(&check, { 1, "=ab", "a+ b+" }, { 10, "a- a- a-", "a- b+" }, { 10500, "a+ a+", "a+0 b+ #1" },
	     { 10999, "", "a+0 b+ #1" }, { 11100, "", "a+25 b+ #1" }, { 12100, "", "a+50 b+ #1" },
	     { 12200, "=abc", "a+50 b+ c?" }, { 12300, "c+", "a+50 b+ c+0 #1" }, { 13100, "", "a+75 b+ c+25 #2" },
	     { 14100, "", "a+ b+ c+50 #1" }, { 16100, "", "a+ b+ c+ #2" }, { 99999, "", "a+ b+ c+" },
	     /* not where it is one of none, and it goes on where it was */
	     { 100000, "a- a- a- b- b- b-", "a- b- c+" }, { 100010, "a+ a+", "a+0 b- c+" },
	     { 101100, "c- c- c-", "a+25 b- c- #2" }, { 101110, "a- a- a-", "a* b* c* all" });
}

static void test_slow_start_ends_in_panic(void **state)
{
	struct config_check check = CHECK;

	(void)state;
	check.slow_start_ms = 4000;
	check.panic = 0.5;
	PLAY(&check, { 1, "=abc", "a+ b+ c+" }, { 10, "a- a- a-", "a- b+ c+" }, { 10000, "a+ a+", "a+0 b+ c+ #1" },
	     { 10010, "b- b- b- c- c- c-", "a+ b* c* panic" }, { 11500, "b+ b+", "a+25 b+0 c- #1" });
}

static void test_slow_start_is_at_most_20_steps(void **state)
{
	struct config_check check = CHECK;

	(void)state;
	check.slow_start_ms = 3600000;
	PLAY(&check, { 1, "=ab", "a+ b+" }, { 10, "a- a- a-", "a- b+" }, { 180000, "a+ a+", "a+0 b+ #1" },
	     { 359999, "", "a+0 b+ #1" }, { 360100, "", "a+5 b+ #1" }, { 540100, "", "a+10 b+ #1" },
	     { 9999999, "", "a+ b+ #18" });
}

static void test_flapping(void **state)
{
	(void)state;
	PLAY(&plain, { 1, "=ab", "a+ b+" }, { 1000, "a- a- a-", "a- b+" }, { 2000, "a+ a+", "a+ b+ #1" },
	     { 3000, "a- a- a-", "a- b+ #1" }, /* held for 5 s from the first success on */
	     { 4000, "a+ a+", "a- b+ #1" }, { 8999, "a+", "a- b+" }, { 9000, "a+", "a+ b+" },
	     { 10000, "a- a- a-", "a- b+ #1" }, /* 10 s, anew after each failure */
	     { 11000, "a+ a+", "a- b+ #1" }, { 15000, "a-", "a- b+" }, { 16000, "a+ a+", "a- b+" },
	     { 25999, "a+", "a- b+" }, { 26000, "a+", "a+ b+" },
	     /* not yet steady for a minute and what it was held: 20 s */
	     { 95000, "a- a- a-", "a- b+ #1" }, { 95100, "a+ a+", "a- b+ #1" }, { 115100, "a+", "a+ b+" },
	     /* steady: forgotten */
	     { 195100, "a- a- a-", "a- b+ #1" }, { 196000, "a+ a+", "a+ b+ #1" });
}

static void test_hold_is_bounded(void **state)
{
	struct config_check check = CHECK;
	struct run r = { .check = check };
	uint64_t now = 1, longest = 0;

	(void)state;
	configure(&r, "ab", true, now);
	for (unsigned int i = 0; i < 12; i++) {
		uint64_t begin = now += 1000;

		for (unsigned int j = 0; j < 3; j++)
			happen(&r, "a-", now);
		assert_int_equal(named(&r.h, 'a')->status, HEALTH_DOWN);
		do {
			happen(&r, "a+", now += 1000);
		} while (named(&r.h, 'a')->status != HEALTH_UP);
		assert_true(now - begin >= longest);
		longest = now - begin;
	}
	assert_int_equal(longest, HEALTH_HOLD_MAX_MS + 1000);
	assert_int_equal(named(&r.h, 'a')->downs, 12);
	assert_int_equal(named(&r.h, 'a')->ups, 12);
	health_free(&r.h);
}

static void test_configuration(void **state)
{
	(void)state;
	/* the others keep what they are */
	PLAY(&plain, { 1, "=abc", "a+ b+ c+" }, { 10, "a- a- a- b- b-", "a- b+ c+" }, { 500, "=cba", "a- b+ c+ #1" },
	     { 501, "b-", "a- b- c+" }, { 700, "=ac", "a- c+ #1" }, { 710, "=abc", "a- b? c+" },
	     { 810, "", "a- b? c+ #1" },
	     /* a new name is the same backend, a new address another */
	     { 900, "=a/xb/yc/z", "a- b? c+" }, { 1000, "=ab2c2", "a* b* c* all" }, { 1001, "b+", "a- b+ c?" });
	/* maint is not checked, and waits when it returns; draining ones are cut when they are down */
	PLAY(&plain, { 1, "=aBc'", "a+ bu c+" }, { 2, "b- b- b- c- c- c-", "a+ bu c-" },
	     { 1000, "=abc", "a+ b? c- #1" }, { 1001, "b+", "a+ b+ c-" }, { 1500, "=ABC", "au bu cu" });
	PLAY(&plain, { 1, "%=aB", "au bu" }, { 2, "=ab", "a+ b?" });
	/* a check comes, goes, and comes back */
	PLAY(&plain, { 1, "%=ab", "au bu" }, { 2, "a- a- a-", "au bu" }, { 1000, "=abc", "a+ b+ c?" },
	     { 1001, "a- a- a-", "a- b+ c?" }, { 2000, "%=abc", "au bu cu #1" }, { 3000, "=abc", "a+ b+ c+ #1" });
}

static void test_restored(void **state)
{
	struct config_check check = CHECK;

	(void)state;
	PLAY(&plain, { 1, "=abc", "a+ b+ c+" }, { 1, "a:cut b:wait c:used", "a- b? c+" }, { 500, "a+ b+", "a- b+ c+" },
	     { 510, "a+", "a+ b+ c+" }, { 1000, "", "a+ b+ c+ #1" });
	check.slow_start_ms = 10000;
	PLAY(&check, { 1, "=ab", "a+ b+" }, { 1, "a:used50", "a+50 b+" }, { 1100, "", "a+60 b+ #1" },
	     { 9000, "", "a+ b+ #4" });
	/* without anyone healthy it is as all down */
	PLAY(&plain, { 1, "=ab", "a+ b+" }, { 1, "a:cut b:cut", "a* b* all" }, { 101, "", "a* b* all #1" });
}

static void test_age(void **state)
{
	struct run r = { .check = plain };
	const struct health_backend *a;

	(void)state;
	configure(&r, "aB", true, 1000);
	a = named(&r.h, 'a');
	assert_int_equal(health_age(a, 3000), 2000);
	happen(&r, "a-", 5000);
	assert_int_equal(health_age(a, 5500), 500);
	assert_int_equal(a->checked, 5000);
	assert_string_equal(a->reason, "refused");
	assert_false(health_stale(&r.h.pool[0], a, 13000));
	assert_true(health_stale(&r.h.pool[0], a, 13001));
	assert_false(health_stale(&r.h.pool[0], named(&r.h, 'b'), 99999));
	health_free(&r.h);
}

static void test_events(void **state)
{
	static const char *const wanted[] = {
		"pool web: backend a (10.0.1.97) is down: refused; 3 checks in a row failed",
		"pool web: backend c (10.0.1.99) takes flows: fine",
		"pool web: backend a (10.0.1.97) is up: fine; was down for 7s",
		"pool web: backend a (10.0.1.97) is down: refused; 3 checks in a row failed",
		"pool web: backend a (10.0.1.97) flaps: it comes up when its check has succeeded for 5s",
		"pool web: backend b (10.0.1.98) is down: refused; 3 checks in a row failed",
		"pool web: 1 of 3 backends healthy, less than 50%: flows go to all of them",
		"pool web: backend c (10.0.1.99) is down: refused; 3 checks in a row failed",
		"pool web: no backend is healthy; not ready, flows go to all 3",
		"pool web: backend b (10.0.1.98) is up: fine; was down for 0s",
		"pool web: 1 of 3 backends healthy, less than 50%: flows go to all of them",
		"pool web: has no check any more; all its backends are used",
	};
	static const char *const happens[] = { "=ab",      "a- a- a-", "=abc",     "c+",   "a+ a+", "a- a- a-",
					       "a+ a+ a+", "b- b- b-", "c- c- c-", "=abc", "b+ b+", "%=abc" };
	struct run r = { .check = plain };

	(void)state;
	r.check.panic = 0.5;
	for (size_t i = 0; i < sizeof(happens) / sizeof(*happens); i++) {
		char text[32], *save = NULL;

		snprintf(text, sizeof(text), "%s", happens[i]);
		for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save))
			happen(&r, p, i < 4 ? 1 : 7500 + i);
	}
	for (size_t i = 0; i < r.h.events && i < sizeof(wanted) / sizeof(*wanted); i++)
		assert_string_equal(r.h.event[i].text, wanted[i]);
	assert_int_equal(r.h.events, sizeof(wanted) / sizeof(*wanted));
	health_events_clear(&r.h);
	assert_int_equal(r.h.events, 0);
	health_free(&r.h);
}

static void test_unknown(void **state)
{
	struct run r = { .check = plain };
	struct health_result result = { .reason = "late" };
	struct address a = address_of('a', 1);

	(void)state;
	configure(&r, "ab", true, 1);
	result.id = named(&r.h, 'a')->id;
	assert_ptr_equal(health_by_id(&r.h, result.id), named(&r.h, 'a'));
	assert_ptr_equal(health_find(&r.h, "web", "a", &a), named(&r.h, 'a'));
	assert_null(health_find(&r.h, "dns", "a", &a));
	configure(&r, "b", true, 2);
	assert_null(health_find(&r.h, "web", "a", &a));
	configure(&r, "ab", true, 3);
	assert_int_not_equal(named(&r.h, 'a')->id, result.id);
	for (unsigned int i = 0; i < 5; i++)
		health_result(&r.h, &result, 4);
	assert_int_equal(named(&r.h, 'a')->checked, 0);
	for (unsigned int i = 0; i < 3; i++)
		happen(&r, "a-", 5); /* out from the first, and so never went down */
	assert_false(named(&r.h, 'a')->waiting);
	assert_int_equal(named(&r.h, 'a')->downs, 0);
	health_free(&r.h);
}

/* What the test itself knows of a backend. */
struct known {
	bool there, checked;
	unsigned int address, successes, failures;
	uint64_t id;
	enum health_status status;
	enum health_use runs_use;
	double runs_factor;
};

#define NAMES 6u

/* A random configuration of backends a to f, as configure takes it. */
static void random_configuration(struct run *r, struct known known[NAMES], uint64_t now)
{
	uint32_t rise = 1 + random_below(2), fall = 1 + random_below(2);
	bool check = random_below(5), same = rise == r->check.rise && fall == r->check.fall;
	char text[4 * NAMES + 1] = "";

	for (unsigned int i = 0; i < NAMES; i++) {
		struct known *k = &known[i];
		unsigned int address = random_below(6) ? k->address : 2 + random_below(3);
		bool there = random_below(4) || (i == NAMES - 1 && !*text), maint = !random_below(8);

		if (there && k->there && address != k->address)
			*k = (struct known){ 0 };
		if (!there)
			*k = (struct known){ .address = address };
		k->there = there;
		k->address = address;
		if (!same || !check || maint || !k->checked) /* another check: counted anew */
			k->successes = k->failures = 0;
		k->checked = check && !maint;
		if (there)
			sprintf(text + strlen(text), "%c%u%s", (maint ? 'A' : 'a') + (int)i, address,
				maint || random_below(5) ? "" : "'");
	}
	r->check.rise = rise;
	r->check.fall = fall;
	configure(r, text, check, now);
	for (unsigned int i = 0; i < NAMES; i++) {
		if (known[i].there && known[i].id)
			assert_int_equal(named(&r->h, (char)('a' + i))->id, known[i].id);
	}
}

/* Whatever happened, this is so. */
static void assert_sound(const struct run *r, struct known known[NAMES])
{
	const struct health_pool *p = &r->h.pool[0];
	size_t takers = 0, healthy = 0, used = 0, up = 0;

	for (size_t i = 0; i < p->backends; i++) {
		const struct health_backend *b = &p->backend[i];
		struct known *k = &known[b->identity[0] - 'a'];

		assert_true(k->there);
		assert_int_equal(b->status != HEALTH_UNCHECKED, k->checked);
		assert_true(b->factor >= 0 && b->factor <= 1);
		assert_true(b->use == HEALTH_USED || b->factor == 1);
		assert_true(b->status == HEALTH_DOWN || b->use == HEALTH_USED);
		if (k->checked && k->failures >= p->check->fall)
			assert_int_equal(b->status, HEALTH_DOWN);
		k->id = b->id;
		k->status = b->status;
		if (b->state != CONFIG_UP)
			continue;
		up++;
		used += b->use == HEALTH_USED;
		takers += !b->waiting;
		healthy += b->status != HEALTH_DOWN;
	}
	assert_int_equal(p->takers, takers);
	assert_int_equal(p->healthy, healthy);
	assert_int_equal(!used, !up);
	assert_int_equal(p->all_down, up && !healthy);
	if (p->check && !p->all_down)
		assert_int_equal(p->panic, (double)healthy < p->check->panic * (double)takers);
}

/* Every change of a status must have its cause. */
static void random_result(struct run *r, struct known *k, char name, bool ok, uint64_t now)
{
	const struct health_backend *b = named(&r->h, name);
	struct health_result result = { .id = b->id, .ok = ok, .reason = "random" };
	enum health_status was = b->status;
	bool waited = b->waiting;

	k->successes = ok ? k->successes + 1 : 0;
	k->failures = ok ? 0 : k->failures + 1;
	health_result(&r->h, &result, now);
	if (was == HEALTH_UP && b->status == HEALTH_DOWN)
		assert_true(k->failures >= r->check.fall);
	if (was == HEALTH_DOWN && b->status == HEALTH_UP)
		assert_true(k->successes >= (waited ? 1 : r->check.rise));
	if (waited && ok)
		assert_int_equal(b->status, HEALTH_UP);
	if (b->status != was || b->waiting != waited)
		k->successes = k->failures = 0;
}

/* The kernel, as the commits left it. No difference is older than the batch. */
static void follow(struct run *r, struct known known[NAMES], uint64_t at, uint64_t *differs_since)
{
	const struct health_pool *p = &r->h.pool[0];
	bool differs = false;

	while (health_next(&r->h) <= at) {
		uint64_t now = health_next(&r->h);

		if (!health_tick(&r->h, now))
			continue;
		health_committed(&r->h);
		for (size_t i = 0; i < p->backends; i++) {
			known[p->backend[i].identity[0] - 'a'].runs_use = p->backend[i].use;
			known[p->backend[i].identity[0] - 'a'].runs_factor = p->backend[i].factor;
		}
		*differs_since = 0;
	}
	for (size_t i = 0; i < p->backends; i++) {
		const struct known *k = &known[p->backend[i].identity[0] - 'a'];

		/* one that the kernel knows nothing of runs as used */
		differs |= k->runs_use != p->backend[i].use ||
			   (k->runs_factor ? k->runs_factor : 1) != p->backend[i].factor;
	}
	if (!differs)
		*differs_since = 0;
	else if (!*differs_since)
		*differs_since = at;
	assert_true(!differs || at - *differs_since <= HEALTH_BATCH_MS);
}

static void test_random(void **state)
{
	(void)state;
	random_start();
	for (unsigned int round = 0; round < 200; round++) {
		struct run r = { .check = plain };
		struct known known[NAMES] = { 0 };
		uint64_t now = 1, differs_since = 0;

		for (unsigned int i = 0; i < NAMES; i++)
			known[i].address = 2;
		r.check.panic = random_below(2) ? 0 : 0.5;
		random_configuration(&r, known, now);
		for (unsigned int i = 0; i < 500; i++) {
			unsigned int which = random_below(NAMES);

			now += random_below(3) ? random_below(40) : random_below(20000);
			follow(&r, known, now, &differs_since);
			if (!random_below(40))
				random_configuration(&r, known, now);
			else if (known[which].there)
				random_result(&r, &known[which], (char)('a' + which), random_below(3), now);
			assert_sound(&r, known);
			follow(&r, known, now, &differs_since);
			health_events_clear(&r.h);
		}
		health_free(&r.h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rise_and_fall),
		cmocka_unit_test(test_one_commit),
		cmocka_unit_test(test_failed_commit),
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_all_down),
		cmocka_unit_test(test_panic),
		cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_slow_start_ends_in_panic),
		cmocka_unit_test(test_slow_start_is_at_most_20_steps),
		cmocka_unit_test(test_flapping),
		cmocka_unit_test(test_hold_is_bounded),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_restored),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
