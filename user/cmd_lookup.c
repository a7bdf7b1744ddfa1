// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "cmd.h"

/* False after saying what is wrong. */
static bool read_replicas(struct cmd_context *cx, const char *text, size_t *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out)
		return true;
	cmd_usage(cx, "lookup", "--replicas \"%s\": a number from 1 is wanted", text);
	return false;
}

static bool read_options(struct cmd_context *cx, int argc, char **argv, struct cmd_lookup_options *o)
{
	static const struct option options[] = {
		{ "established", no_argument, NULL, 'e' },
		{ "file", required_argument, NULL, 'f' },
		{ "from", required_argument, NULL, 'l' },
		{ "replicas", required_argument, NULL, 'r' },
		{ "distinct-zones", no_argument, NULL, 'z' },
		{ "pool", required_argument, NULL, 'p' },
		{ "key", required_argument, NULL, 'k' },
		{ "placement", required_argument, NULL, 'P' },
		{ 0 },
	};
	int c;

	while ((c = cmd_getopt(cx, argc, argv, options)) != -1) {
		if (c == '?' || (c == 'r' && !read_replicas(cx, optarg, &o->replicas)))
			return false;
		o->established |= c == 'e';
		o->distinct_zones |= c == 'z';
		if (c == 'f')
			o->file = optarg;
		if (c == 'l')
			o->list = optarg;
		if (c == 'p')
			o->pool = optarg;
		if (c == 'k')
			o->key = optarg;
		if (c == 'P')
			o->placement = optarg;
	}
	return true;
}

static int run(struct cmd_context *cx, int argc, char **argv)
{
	struct cmd_lookup_options o = { 0 };
	int arguments;

	if (!read_options(cx, argc, argv, &o))
		return EXIT_BAD;
	arguments = argc - optind;
	if (o.distinct_zones && !o.replicas)
		return cmd_usage(cx, argv[0], "--distinct-zones says something of --replicas only");
	o.replicas += !o.replicas;
	if (!o.pool && (o.key || o.placement))
		return cmd_usage(cx, argv[0], "%s needs --pool", o.key ? "--key" : "--placement");
	if (o.pool && arguments)
		return cmd_usage(cx, argv[0], "with --pool the key comes with --key: --key %s, if that is it",
				 argv[optind]);
	if (o.pool && o.established)
		return cmd_usage(cx, argv[0], "--established says nothing about a key");
	if (o.pool && !o.key == !o.list)
		return cmd_usage(cx, argv[0], "with --pool, either --key or --from is wanted");
	if (o.pool)
		return cmd_lookup_key(cx, &o);
	if (arguments != (o.list ? 1 : 2))
		return cmd_usage(cx, argv[0],
				 o.list ? "with --from it takes SERVICE alone" : "SERVICE and SOURCE are wanted");
	return cmd_lookup_service(cx, &o, argv[optind], argv[optind + 1]);
}

const struct cmd cmd_lookup = {
	.name = "lookup",
	.usage = "{SERVICE {SOURCE | --from LIST} | --pool POOL {--key KEY | --from LIST}} [--file FILE] ...",
	.summary = "where a packet or a key would go, and why",
	.help = "SERVICE is a name or ADDRESS:PORT/PROTOCOL, SOURCE the client's ADDRESS:PORT; IPv6 addresses\n"
		"stand in brackets. Asks the pinned program, without any effect on flows or counters.\n\n"
		"  --established      a packet of an established connection, instead of one that opens it\n"
		"  --file FILE        from FILE alone: nothing has to be attached, no privileges are needed\n"
		"  --from LIST        many at once: a SOURCE on each line of LIST (-: standard input), # begins a comment; it is\n"
		"                     answered by a line, with --json too: SOURCE BACKEND ADDRESS REASON\n"
		"  --replicas R       the next R distinct backends clockwise from there, or as many as there are\n"
		"  --distinct-zones   of them, each from another zone while zones last, then the rest\n\n"
		"Reasons: ring, the owner of that point; moved, the arc has changed hands lately; tracked, the\n"
		"flow table knows this flow.\n\n"
		"  --pool POOL        where a key would go, by the key hash of the pool's placement\n"
		"  --key KEY          the key; or --from LIST, one on each line, answered by KEY BACKEND IDENTITY\n"
		"                     HASH, and SLOT with placement slots\n"
		"  --placement NAME   as if the pool had another one: ring, maglev, rendezvous, nginx, haproxy (its\n"
		"                     keys are IPv4 addresses), ketama, slots, modulo\n\n"
		"Exit status: 0 answered, also where there is no backend; 1 failed; 2 a bad argument or line.\n",
	.run = run,
};
