// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include "netlink_private.h"

#define RULES_AT_ONCE 64

static const unsigned char families[] = { AF_INET, AF_INET6 };

struct rule {
	unsigned char family;
	uint32_t table, mark, mask;
};

static int change_rule(struct netlink *nl, uint16_t type, uint16_t flags, const struct rule *rule)
{
	struct netlink_request r;
	struct fib_rule_hdr *h = netlink_request(&r, type, flags, sizeof(*h));

	h->family = rule->family;
	h->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(&r.header, FRA_TABLE, rule->table);
	mnl_attr_put_u32(&r.header, FRA_FWMARK, rule->mark);
	mnl_attr_put_u32(&r.header, FRA_FWMASK, rule->mask);
	return netlink_talk(nl, &r, NULL, NULL);
}

static int add_route(struct netlink *nl, unsigned char family, unsigned int ifindex, uint32_t mtu)
{
	struct netlink_request r;
	struct rtmsg *m = netlink_request(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	struct nlattr *metrics;

	m->rtm_family = family;
	m->rtm_table = RT_TABLE_UNSPEC;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_scope = RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(&r.header, RTA_TABLE, POLICY_TABLE(ifindex));
	mnl_attr_put_u32(&r.header, RTA_OIF, ifindex);
	metrics = mnl_attr_nest_start(&r.header, RTA_METRICS);
	mnl_attr_put_u32(&r.header, RTAX_MTU, mtu);
	mnl_attr_nest_end(&r.header, metrics);
	return netlink_talk(nl, &r, NULL, NULL);
}

static int take_up(struct netlink *nl, unsigned int ifindex)
{
	struct netlink_request r;
	struct ifinfomsg *m = netlink_request(&r, RTM_NEWLINK, 0, sizeof(*m));

	m->ifi_index = (int)ifindex;
	m->ifi_flags = m->ifi_change = IFF_UP;
	return netlink_talk(nl, &r, NULL, NULL);
}

int policy_add(struct netlink *nl, unsigned int ifindex, uint32_t mark, uint32_t mask, uint32_t mtu)
{
	int err = take_up(nl, ifindex);

	for (size_t i = 0; i < sizeof(families) && !err; i++) {
		const struct rule rule = { families[i], POLICY_TABLE(ifindex), mark, mask };

		err = add_route(nl, families[i], ifindex, mtu);
		if (!err)
			err = change_rule(nl, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule);
		if (err == -EEXIST || families[i] == AF_INET6)
			err = 0;
	}
	return err;
}

void policy_remove(struct netlink *nl, unsigned int ifindex, uint32_t mark, uint32_t mask)
{
	for (size_t i = 0; i < sizeof(families); i++) {
		const struct rule rule = { families[i], POLICY_TABLE(ifindex), mark, mask };

		change_rule(nl, RTM_DELRULE, 0, &rule);
	}
}

struct rules {
	struct rule rule[RULES_AT_ONCE];
	size_t count;
};

static void read_rule(const struct nlmsghdr *h, void *data)
{
	const struct fib_rule_hdr *m = mnl_nlmsg_get_payload(h);
	struct rule rule = { .family = m->family };
	struct rules *out = data;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWRULE || out->count == RULES_AT_ONCE)
		return;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		switch (mnl_attr_get_type(a)) {
		case FRA_TABLE:
			rule.table = mnl_attr_get_u32(a);
			break;
		case FRA_FWMARK:
			rule.mark = mnl_attr_get_u32(a);
			break;
		case FRA_FWMASK:
			rule.mask = mnl_attr_get_u32(a);
			break;
		}
	}
	if ((rule.table & POLICY_TABLES_MASK) == POLICY_TABLES)
		out->rule[out->count++] = rule;
}

void policy_clean(struct netlink *nl)
{
	for (size_t i = 0; i < sizeof(families); i++) {
		struct rules found = { .count = 0 };
		struct netlink_request r;
		struct fib_rule_hdr *h = netlink_request(&r, RTM_GETRULE, NLM_F_DUMP, sizeof(*h));
		struct link_info link;

		h->family = families[i];
		if (netlink_talk(nl, &r, read_rule, &found))
			continue;
		for (size_t j = 0; j < found.count; j++)
			if (link_by_index(nl, found.rule[j].table & ~POLICY_TABLES_MASK, &link) == -ENODEV)
				change_rule(nl, RTM_DELRULE, 0, &found.rule[j]);
	}
}
