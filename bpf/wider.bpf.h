/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The service of a packet that no service has by its very address, port and protocol: ranges of ports, any port, any
 * protocol, prefixes of addresses. Only where the configuration has such (ringlb_root.flags) does a packet come here.
 *
 * Global functions, without pointers into maps: the verifier looks at each once, and not for every way that leads to it.
 */
#ifndef RINGLB_WIDER_BPF_H
#define RINGLB_WIDER_BPF_H

#define BLOCK_ROUNDS 17 /* RINGLB_MAX_SERVICES prefixes cut the addresses into less than 2^17 blocks */
#define RANGE_ROUNDS 16
#define IS_MARK 0x10000u /* beside the number: the entry is none but for its address */

static __always_inline const struct ringlb_tables *tables_again(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tables, &zero);
}

/* The number of the entry with this key (port and protocol << 16), beside it IS_MARK; 0: there is none. */
__noinline int service_probe(__u64 high, __u64 low, __u32 key, __u32 side)
{
	const struct ringlb_tables *t = tables_again();
	const struct ringlb_service *s;
	__u32 number;

	if (!t)
		return 0;
	number = service_find(t, &t->roots[side & 1], high, low, key & 0xffff, key >> 16 & 0xff);
	s = number ? service_at(t, &t->roots[side & 1], number) : NULL;
	return s && is_mark(s) ? (int)(number | IS_MARK) : (int)number;
}

/* The number of the range that has the port, of those that entry `list` has; 0: none has. */
__noinline int service_in_range(__u32 list, __be16 be_port, __u32 side)
{
	const struct ringlb_tables *t = tables_again();
	__u32 from = 0, to, port = bpf_ntohs(be_port);
	const struct ringlb_service *s;
	const struct ringlb_range *r;

	if (!t || !list)
		return 0;
	s = service_at(t, &t->roots[side & 1], list);
	if (!s)
		return 0;
	to = s->points;
	for (int i = 0; i < RANGE_ROUNDS && from < to; i++) {
		__u32 middle = from + (to - from) / 2, behind;

		r = table_at(t, s->index_off + (__u64)middle * sizeof(*r));
		if (!r)
			return 0;
		behind = -is_below(r->to, port); /* all ones where the port is behind the range */
		from ^= (from ^ (middle + 1)) & behind;
		to ^= (to ^ middle) & ~behind;
	}
	r = table_at(t, s->index_off + (__u64)from * sizeof(*r));
	return r && from < s->points && port >= r->from && port <= r->to ? (int)(r->number & 0xffff) : 0;
}

/* The number + 1 of the longest prefix that has the address. */
__noinline int prefix_find(__u64 high, __u64 low, __u32 side)
{
	const struct ringlb_tables *t = tables_again();
	const struct ringlb_root *root;
	__u32 from = 0, to;
	const struct ringlb_block *b;

	if (!t)
		return 0;
	root = &t->roots[side & 1];
	to = root->blocks;
	high = bpf_be64_to_cpu(high);
	low = bpf_be64_to_cpu(low);
	for (int i = 0; i < BLOCK_ROUNDS && from < to; i++) {
		__u32 middle = from + (to - from) / 2;

		b = table_at(t, root->blocks_off + (__u64)middle * sizeof(*b));
		if (!b)
			return 0;
		if (b->last[0] < high || (b->last[0] == high && b->last[1] < low))
			from = middle + 1;
		else
			to = middle;
	}
	b = table_at(t, root->blocks_off + (__u64)from * sizeof(*b));
	return b && from < root->blocks ? (int)b->prefix : 0;
}

/* The number + 1 of the next wider one. */
__noinline int prefix_wider(__u32 prefix, __u32 side)
{
	const struct ringlb_tables *t = tables_again();
	const __u32 *wider;

	if (!t || !prefix || prefix > t->roots[side & 1].prefixes)
		return 0;
	wider = table_at(t, t->roots[side & 1].prefixes_off + (prefix - 1ull) * sizeof(*wider));
	return wider ? (int)*wider : 0;
}

#define KEY_FLAGS 24 /* RINGLB_ROOT_* from this bit of a key on: one value less to keep */

/*
 * Looks through what there is for one address or prefix, the narrowest first; of key, the protocol's bits say which of
 * the two. For a packet without a port a mark, too.
 */
static __always_inline __u32 service_among(__u64 high, __u64 low, __u32 key, __u32 side)
{
	__u32 found = service_probe(high, low, key, side), mark = found & IS_MARK ? found : 0;

	if (found && !mark)
		return found;
	if (!(key >> 16 & RINGLB_KEY_PROTOCOL))
		return mark;
	if (key >> KEY_FLAGS & RINGLB_ROOT_RANGES) {
		found = service_probe(high, low, (key & 0xff0000) | RINGLB_KEY_RANGES << 16, side);
		found = service_in_range(found & 0xffff, key & 0xffff, side);
		if (found)
			return found;
	}
	if (key >> KEY_FLAGS & RINGLB_ROOT_ANY_PORT) {
		found = service_probe(high, low, key & 0xff0000, side);
		if (found)
			return found;
	}
	if (!(key >> KEY_FLAGS & RINGLB_ROOT_ANY_PROTOCOL))
		return 0;
	found = service_probe(high, low, key & RINGLB_KEY_PREFIX << 16, side);
	return found & IS_MARK ? 0 : found;
}

/*
 * The number of the service of a packet to an address (its halves as loaded), key being port and protocol << 16 - or of
 * the entry that says that the address is a service's. 0: neither.
 */
__noinline int service_wider(__u64 high, __u64 low, __u32 key, __u32 side)
{
	const struct ringlb_tables *t = tables_again();
	__u32 mark = 0, found, prefix = 0;

	if (!t)
		return 0;
	key = (key & 0xffffff) | t->roots[side & 1].flags << KEY_FLAGS;
	for (__u32 i = 0; i <= RINGLB_MAX_NESTED; i++) {
		found = service_among(high, low, key, side);
		if (found && !(found & IS_MARK))
			return found;
		if (found && !mark)
			mark = found & 0xffff;
		if (!(key >> KEY_FLAGS & RINGLB_ROOT_PREFIXES))
			break;
		prefix = i ? prefix_wider(prefix, side) : prefix_find(high, low, side);
		if (!prefix)
			break;
		high = 0;
		low = prefix - 1;
		key |= RINGLB_KEY_PREFIX << 16;
	}
	return mark;
}

#endif
