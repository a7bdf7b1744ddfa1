/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>

#include "config_parse.h"

const char *const config_xdp_names[] = {
	[CONFIG_XDP_AUTO] = "auto", [CONFIG_XDP_NATIVE] = "native", [CONFIG_XDP_GENERIC] = "generic", NULL
};
const char *const config_placement_names[] = {
	[CONFIG_RING] = "ring",   [CONFIG_MAGLEV] = "maglev",   [CONFIG_RENDEZVOUS] = "rendezvous",
	[CONFIG_NGINX] = "nginx", [CONFIG_HAPROXY] = "haproxy", NULL
};
const char *const config_state_names[] = {
	[CONFIG_UP] = "up", [CONFIG_DRAIN] = "drain", [CONFIG_MAINT] = "maint", NULL
};
const char *const config_forward_names[] = {
	[RINGLB_FORWARD_L2] = "l2", [RINGLB_FORWARD_IPIP] = "ipip", [RINGLB_FORWARD_GUE] = "gue", NULL
};
const char *const config_affinity_names[] = {
	[RINGLB_AFFINITY_FLOW] = "flow", [RINGLB_AFFINITY_SOURCE] = "source", [RINGLB_AFFINITY_QUIC] = "quic", NULL
};
const char *const config_track_names[] = {
	[RINGLB_TRACK_NONE] = "none", [RINGLB_TRACK_MOVED] = "moved", [RINGLB_TRACK_ALWAYS] = "always", NULL
};
const char *const config_fragments_names[] = {
	[RINGLB_FRAGMENTS_TRACK] = "track", [RINGLB_FRAGMENTS_SOURCE] = "source", [RINGLB_FRAGMENTS_DROP] = "drop", NULL
};
const char *const config_check_type_names[] = { [CHECK_TCP] = "tcp",
						[CHECK_HTTP] = "http",
						[CHECK_HTTPS] = "https",
						[CHECK_DNS] = "dns",
						[CHECK_UDP] = "udp",
						[CHECK_ICMP] = "icmp",
						NULL };

const char *config_placement_name(enum config_placement p)
{
	return config_placement_names[p];
}

const char *config_forward_name(enum ringlb_forward f)
{
	return config_forward_names[f];
}

const char *config_affinity_name(enum ringlb_affinity a)
{
	return config_affinity_names[a];
}

const char *config_track_name(enum ringlb_track t)
{
	return config_track_names[t];
}

const char *config_fragments_name(enum ringlb_fragments f)
{
	return config_fragments_names[f];
}

const char *config_state_name(enum config_state s)
{
	return config_state_names[s];
}

const char *config_check_type_name(enum config_check_type t)
{
	return config_check_type_names[t];
}

const char *config_protocol_name(uint8_t protocol)
{
	return protocol == IPPROTO_TCP ? "tcp" : protocol == IPPROTO_UDP ? "udp" : "any";
}

enum ringlb_track config_default_track(uint8_t protocol, enum ringlb_affinity affinity)
{
	return protocol == IPPROTO_TCP || affinity == RINGLB_AFFINITY_QUIC ? RINGLB_TRACK_MOVED : RINGLB_TRACK_NONE;
}
