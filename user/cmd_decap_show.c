// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where decap has been put. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "cmd.h"
#include "datapath.h"

/* As it was given: an address alone, or with its length. */
static char *prefix_text(const struct datapath_prefix *p)
{
	char text[ADDRESS_TEXT];
	struct address a;
	unsigned int bits, length;

	memcpy(a.byte, p->address, sizeof(a.byte));
	bits = address_is_ipv4(&a) && p->length >= 96 ? 32 : 128;
	length = bits == 32 ? p->length - 96 : p->length;
	address_text(&a, text);
	return length == bits ? xstrdup(text) : xasprintf("%s/%u", text, length);
}

static char *show_prefixes(struct out *o, const struct datapath_decap *at)
{
	char *all = xstrdup("");

	out_array(o, "from");
	for (size_t i = 0; i < at->prefixes; i++) {
		char *one = prefix_text(&at->from[i]), *before = all;

		out_string(o, NULL, one);
		all = xasprintf("%s%s%s", before, *before ? ", " : "", one);
		free(before);
		free(one);
	}
	out_end(o);
	return all;
}

static void show(struct out *o, const struct datapath_decap *at)
{
	const char *mode = !at->alive ? "missing" : at->mode == DATAPATH_NATIVE ? "native" : "generic";
	char name[IF_NAMESIZE], *from;

	if (!if_indextoname(at->ifindex, name))
		snprintf(name, sizeof(name), "%u", at->ifindex);
	out_object(o, NULL);
	out_string(o, "name", name);
	out_string(o, "mode", mode);
	from = show_prefixes(o, at);
	out_integer(o, "gue_port", at->gue_port);
	out_integer(o, "decapsulated", (int64_t)at->decapsulated);
	out_end(o);
	out_cell(o, OUT_PLAIN, "%s", name);
	out_cell(o, !at->alive ? OUT_BAD : at->mode == DATAPATH_NATIVE ? OUT_GOOD : OUT_WARN, "%s", mode);
	out_cell(o, OUT_PLAIN, "%u", at->gue_port);
	out_cell(o, OUT_PLAIN, "%llu", (unsigned long long)at->decapsulated);
	out_cell(o, OUT_PLAIN, "%s", from);
	out_row(o);
	free(from);
}

int cmd_decap_show(struct cmd_context *cx)
{
	static const char *const head[] = { "interface", "mode", "GUE port", "packets", "from" };
	struct datapath_decap *list;
	size_t count;

	if (datapath_decap_list(cx->instance.bpffs, &list, &count, &cx->diag))
		return EXIT_FAILED;
	out_table(cx->out, "llrrl");
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		out_head(cx->out, "%s", head[i]);
	out_array(cx->out, "interfaces");
	for (size_t i = 0; i < count; i++)
		show(cx->out, &list[i]);
	out_end(cx->out);
	out_table_end(cx->out);
	if (!count)
		out_text(cx->out, "decap is attached nowhere\n");
	datapath_decap_free(list, count);
	return EXIT_DONE;
}
