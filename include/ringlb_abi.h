/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between the BPF programs and user space: every struct, limit, map name and verdict that both sides see.
 * Compiles as BPF and as user code. Numbers are in host byte order unless typed __be16/__be32; offsets into `tables`
 * are in bytes from its start; an address is 16 bytes, IPv4 mapped (::ffff:a.b.c.d).
 *
 * The map `tables` is one value, memory-mapped by user space. Its first page is struct ringlb_tables; behind it lie
 * regions that user space allocates: for each table of a pool its index, points, cold part and owners, for each side
 * the service table and the manifest. What the current side refers to is immutable, but for the cold parts' stamps.
 */
#ifndef RINGLB_ABI_H
#define RINGLB_ABI_H

#include <linux/types.h>

#ifndef RINGLB_ABI_VERSION /* the tests build with another, for upgrades to and fro */
#define RINGLB_ABI_VERSION 1
#endif
#define RINGLB_ABI_OLDEST 1 /* that an upgrade knows how to read */

#define RINGLB_MAX_BACKENDS 65535u   /* indices are 16 bits; 65535 is "none" */
#define RINGLB_MAX_SERVICES 32767u   /* each with an address of its own gives 65534 entries, numbered in 16 bits */
#define RINGLB_MAX_POINTS (1u << 20) /* ring points in one pool, as configured */
#define RINGLB_MAX_OUTPUTS 64u
#define RINGLB_MAX_TABLES_BYTES (1u << 28) /* the verifier takes offsets below 2^29 */
#define RINGLB_REGION_ALIGN 64u
#define RINGLB_TABLES_SLACK 64u /* unused bytes at the end of `tables`: a cache line may be read past an offset */
#define RINGLB_NO_BACKEND 0xffffu
#define RINGLB_OUTPUT_LOCAL 0xfffeu /* in a next hop's slot: the backend is this host */

/*
 * Every way a packet can leave, once: X(ENUM, "name", "what it means", "what to do about it"). A packet is counted
 * under exactly one. Names are part of the interface. Those that answer, that is go back to the sender as another
 * packet, come before those that pass, and these before those that drop.
 */
#define RINGLB_VERDICTS(X)                                                                                             \
	X(FORWARDED, "forwarded", "sent to a backend", "")                                                             \
	X(ANSWERED_ECHO, "answered_echo", "a ping of a service address: answered", "")                                 \
	X(ANSWERED_TOO_BIG, "answered_too_big",                                                                        \
	  "did not fit the way to the backend, with its outer header: the sender was told what does", "")              \
	X(ANSWERED_TTL, "answered_ttl", "came with its last hop (traceroute does so): the sender was told", "")        \
	X(PASSED_NO_SERVICE, "passed_no_service", "for no service, at no address or port of one: left to the host",    \
	  "")                                                                                                          \
	X(PASSED_NOT_IP, "passed_not_ip", "neither IPv4 nor IPv6 (ARP and the like): left to the host", "")            \
	X(PASSED_PROTOCOL, "passed_protocol",                                                                          \
	  "for a service address, but of a protocol that no service is for: left to the host", "")                     \
	X(PASSED_ICMP, "passed_icmp",                                                                                  \
	  "ICMP to a service address, neither an error about a flow of a service nor a ping: left to the host", "")    \
	X(DROPPED_MALFORMED, "dropped_malformed", "for a service address, but truncated or self-contradictory",        \
	  "look at the sender or at a faulty link")                                                                    \
	X(DROPPED_FRAGMENT, "dropped_fragment",                                                                        \
	  "an IP fragment for a service with fragments: drop, or without the first one before it",                     \
	  "make the sender's path MTU discovery work, or its packets smaller; see fragments in ringlb.yaml(5)")        \
	X(DROPPED_EXTENSIONS, "dropped_extensions",                                                                    \
	  "for a service address, behind more IPv6 extension headers than are looked through",                         \
	  "look at the sender: no program that means well sends that many")                                            \
	X(DROPPED_NO_BACKEND, "dropped_no_backend", "the service's pool has no backend to give flows to",              \
	  "add a backend, or bring one back up")                                                                       \
	X(DROPPED_NO_NEIGHBOUR, "dropped_no_neighbour", "the next hop of the backend has no link-layer address yet",   \
	  "check the route to the backend, and that its next hop answers ARP or neighbour discovery")                  \
	X(DROPPED_NO_HEADROOM, "dropped_no_headroom",                                                                  \
	  "the driver left no room in front of the packet for outer headers",                                          \
	  "use forward: l2, or xdp: generic on this interface")                                                        \
	X(DROPPED_TOO_BIG, "dropped_too_big",                                                                          \
	  "did not fit the way to the backend, and is of a kind whose sender can't be told",                           \
	  "raise the MTU of the links between balancer and backends; see PATH MTU in ringlb(8)")                       \
	X(DROPPED_TTL, "dropped_ttl", "came with its last hop, and is of a kind whose sender can't be told",           \
	  "look for a routing loop")                                                                                   \
	X(DROPPED_ANSWER_LIMIT, "dropped_answer_limit",                                                                \
	  "too big, or with its last hop; the sender was not told, for more than 1000 a second were on this CPU",      \
	  "many answered_too_big: give the clients' route to the service the smaller MTU; answered_ttl: a loop")       \
	X(DROPPED_INTERNAL, "dropped_internal", "tables that contradict themselves; never seen in a sound instance",   \
	  "report this as a bug, with the output of show and stats")

enum ringlb_verdict {
#define X(id, name, meaning, remedy) RINGLB_VERDICT_##id,
	RINGLB_VERDICTS(X)
#undef X
		RINGLB_VERDICT_COUNT
};
#define RINGLB_VERDICT_IS_ANSWER(verdict)                                                                              \
	((verdict) > RINGLB_VERDICT_FORWARDED && (verdict) < RINGLB_VERDICT_PASSED_NO_SERVICE)
#define RINGLB_VERDICT_IS_DROP(verdict) ((verdict) >= RINGLB_VERDICT_DROPPED_MALFORMED)

enum ringlb_forward { RINGLB_FORWARD_L2, RINGLB_FORWARD_IPIP, RINGLB_FORWARD_GUE };
/* CRC32 and AVALANCHE: of an IPv4 client's address, source_hash.h, for the placements `nginx` and `haproxy`. */
enum ringlb_affinity {
	RINGLB_AFFINITY_FLOW,
	RINGLB_AFFINITY_SOURCE,
	RINGLB_AFFINITY_QUIC,
	RINGLB_AFFINITY_CRC32,
	RINGLB_AFFINITY_AVALANCHE,
};
/*
 * TRACK: fragments follow the first one. SOURCE: and one that comes before it the client's address. For TCP and UDP; to a
 * service of any protocol fragments are packets like others.
 */
enum ringlb_fragments { RINGLB_FRAGMENTS_TRACK, RINGLB_FRAGMENTS_SOURCE, RINGLB_FRAGMENTS_DROP };
enum ringlb_track { RINGLB_TRACK_NONE, RINGLB_TRACK_MOVED, RINGLB_TRACK_ALWAYS };

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic error "-Wpadded"
#endif

/* struct ringlb_root.flags: the look-ups that this configuration needs besides the exact one */
#define RINGLB_ROOT_ANY_PORT 1u     /* some service is for any port */
#define RINGLB_ROOT_RANGES 2u       /* some service is for a range of ports */
#define RINGLB_ROOT_ANY_PROTOCOL 4u /* some service is for any protocol */
#define RINGLB_ROOT_PREFIXES 8u     /* some service is for a prefix of addresses */

/*
 * What one side publishes. Services are found through a hash of buckets of four __u32, 16 bytes, at services_slots:
 * bucket b = ringlb_service_hash(...) >> (32 - services_bits) (0 when services_bits is 0); a slot is
 * (hash & 0xffff) << 16 | number, where entry number - 1 of the array of struct ringlb_service at services_off is to be
 * compared; 0 is empty. User space chooses services_bits so that no bucket overflows.
 *
 * Of the services that match a packet the one with the longest prefix has it, an address alone being the longest; then
 * one port before a range before any port, and TCP or UDP before any protocol.
 */
struct ringlb_root {
	__u64 hash_key[2]; /* SipHash key, little-endian words of the 16 bytes as written */
	__u8 tunnel6[16];  /* source addresses of outer headers; zero where none is configured */
	__be32 tunnel4;
	__u32 services_slots;
	__u32 services_off;
	__u32 services_bits;
	__u32 flags;
	__be32 entropy4; /* bits of tunnel4, and of tunnel6's last word, that are each flow's own */
	__be32 entropy6;
	__u32 blocks_off; /* struct ringlb_block, sorted: see there */
	__u32 blocks;
	__u32 prefixes_off; /* __u32 for each prefix: the number of the next wider one + 1; 0: none */
	__u32 prefixes;
	__u32 manifest_off;
	__u32 manifest_len;
	__u32 generation;
	__u32 reserved[10];
};
_Static_assert(sizeof(struct ringlb_root) == 128, "ringlb_root");

/*
 * Addresses up to `last`, from the one after the block before on, that have the same longest prefix. The address space
 * is cut into these, so that a search finds the prefix; wider ones follow from it.
 */
struct ringlb_block {
	__u64 last[2]; /* upper and lower half of the address, as numbers */
	__u32 prefix;  /* its number + 1; 0: the addresses are in none */
	__u32 reserved;
};
_Static_assert(sizeof(struct ringlb_block) == 24, "ringlb_block");
#define RINGLB_MAX_NESTED 8u /* prefixes that contain each other */

/* What the programs know of their maps before the load, read-only. */
struct ringlb_sizes {
	__u32 tables_bound; /* the largest offset into `tables` that may be read at: its size less RINGLB_TABLES_SLACK */
	__u32 flow_buckets; /* elements of `flows` */
};
_Static_assert(sizeof(struct ringlb_sizes) == 8, "ringlb_sizes");

/*
 * An interface that packets leave through; the slot is its key in the map `outputs` too. Of a VLAN's interface, which
 * takes no redirected frames, the map has the one below it, and frames get the tag.
 */
struct ringlb_output {
	__u32 ifindex; /* as routes name it; 0: free */
	__u16 mtu;
	__u8 mac[6];
	__u32 link;           /* the interface that the map has */
	__be16 vlan_protocol; /* 0: no tag */
	__be16 vlan_tag;
	__u32 reserved[3];
};
_Static_assert(sizeof(struct ringlb_output) == 32, "ringlb_output");

/* struct ringlb_tables.pending: what an interrupted command left undone */
#define RINGLB_PENDING_AFTERMATH 1u /* from before a switch until what follows it is done: see aftermath.h */
#define RINGLB_PENDING_REPLACED                                                                                        \
	2u /* the pins beside these, NAME~new, ran until now, and may still run: see replace.h */

#define RINGLB_VERSION_TEXT 32u
#define RINGLB_QUIC_REFUSED 512u

/*
 * The start of the map `tables`. `state` is revision << 1 | side: one word, read once for each packet, that publishes
 * everything at once. Up to `version` it is the same in every ABI, so that any ringlb can tell which one made it.
 */
struct ringlb_tables {
	__u64 state;
	__u32 abi;
	__u32 hz;                          /* jiffies in a second, for the stamps */
	__u32 pending;                     /* RINGLB_PENDING_* */
	__u32 frozen;                      /* 1: nothing new is remembered in the flow table, which is being copied */
	char version[RINGLB_VERSION_TEXT]; /* of the ringlb whose program this is, ended by a zero */
	__u64 trace;                       /* packets with verdict v are traced where bit v is set; 0: nobody traces */
	struct ringlb_root roots[2];
	struct ringlb_output outputs[RINGLB_MAX_OUTPUTS];
	__u32 trace_until;  /* the stamp from which on nobody reads the traces any more */
	__u32 daemon_stamp; /* of the last round of a daemon, which looks after health; 0: there was none */
	__u32 daemon;       /* 1: one runs, or was killed */
	__u32 reserved;
	/* By the top bits of positions: the stamp (low 16 bits) at which a QUIC flow in a moved arc could not be remembered. */
	__u16 quic_refused[RINGLB_QUIC_REFUSED];
};
#define RINGLB_TABLES_HEADER 4096u /* the first region starts here */
_Static_assert(sizeof(struct ringlb_tables) <= RINGLB_TABLES_HEADER, "ringlb_tables");

/*
 * A service, and what a packet needs of its pool: one cache line. An entry whose index is RINGLB_NO_BACKEND is none: with
 * port 0 and protocol 0 it says only "this is a service address", for packets without a port, and which entry fragments are
 * for that come before the first one: its number is in `points` for TCP, in `owners` for UDP; 0: none. With
 * RINGLB_KEY_RANGES it lists the ranges of ports: `points` struct ringlb_range at index_off, sorted.
 *
 * The pool's table: bucket = position >> (32 - bits). index[bucket] and index[bucket + 1] bound its points. A point is
 * low bits of the position << bits | moved << (bits - 1) | owner; the first point >= low bits of the key << bits has
 * the owner. A bucket's last point is a sentinel, low bits all ones, that stands for the next bucket's first point.
 * Of points at equal positions only the first is kept. owners[owner] is the backend's index.
 */
struct ringlb_service {
	__u8 address[16];   /* of a prefix: its number, see RINGLB_KEY_PREFIX */
	__be16 port;        /* 0: any; of a range: its first */
	__u8 protocol;      /* IPPROTO_TCP, IPPROTO_UDP or 0, any; and RINGLB_KEY_* */
	__u8 forward;       /* enum ringlb_forward */
	__u8 affinity;      /* enum ringlb_affinity */
	__u8 track;         /* enum ringlb_track */
	__u8 bits;          /* K, 1 to 22; 0: the pool has no backend */
	__u8 source_prefix; /* AFFINITY_SOURCE: leading bits of the client's address that count, of 32 or 128 */
	__u16 index;        /* in service_stats */
	__be16 gue_port;    /* destination of the outer UDP header */
	__u32 index_off;
	__u32 points_off;
	__u32 cold_off; /* struct ringlb_cold, one for each point, sentinels too */
	__u32 owners_off;
	__u32 points;       /* entries in points and cold */
	__u32 owners;       /* entries in owners */
	__u32 settle_after; /* seconds of silence after which an established flow's entry may be given to another */
	__u32 servers_off;  /* AFFINITY_QUIC: struct ringlb_servers, by the ids in connection ids; 0: these name none */
	__u8 cid_length;    /* AFFINITY_QUIC: bytes in the servers' connection ids; 0: not known */
	__u8 server_offset; /* where in them the server's id is, a number of server_length bytes, the highest first */
	__u8 server_length;
	__u8 fragments; /* enum ringlb_fragments */
};
_Static_assert(sizeof(struct ringlb_service) == 64, "ringlb_service");
/*
 * In the protocol of a key. Prefix: the address is eight bytes 0, then the prefix's number as a __u64. Ranges: a list of
 * ranges, of which a service found by its number need not be in the hash.
 */
#define RINGLB_KEY_PREFIX 0x40u
#define RINGLB_KEY_RANGES 0x80u
#define RINGLB_KEY_PROTOCOL 0x3fu

struct ringlb_range {
	__u16 from, to; /* ports, host order */
	__u32 number;   /* entry number - 1 of the services has it */
};
_Static_assert(sizeof(struct ringlb_range) == 8, "ringlb_range");

struct ringlb_server {
	__u32 id;
	__u32 backend; /* index */
};
struct ringlb_servers {
	__u32 count;
	__u32 reserved;
	struct ringlb_server server[]; /* sorted by id */
};
_Static_assert(sizeof(struct ringlb_servers) == 8, "ringlb_servers");
_Static_assert(sizeof(struct ringlb_server) == 8, "ringlb_server");

/*
 * A stamp is jiffies / hz, as 32 bits; differences are taken modulo 2^32. It is written only where it changes.
 *
 * The cold part of a point, read in moved arcs only.
 */
struct ringlb_cold {
	__u16 previous; /* as `owner`: local to the table */
	__u16 reserved;
	__u32 stamp; /* of the last packet that did not go to the owner; for those that open a flow see refuse() in bpf/ */
};
_Static_assert(sizeof(struct ringlb_cold) == 8, "ringlb_cold");

#define RINGLB_BACKEND_USED 1u
#define RINGLB_BACKEND_IPV6 2u

/* One element of the map `backends`: what forwarding needs, within one cache line. address, incarnation and family never change while an index is in use. */
struct ringlb_backend {
	__u64 next_hop;       /* destination MAC << 16 | output slot (MAC's first byte on top); 0: unresolved; atomic */
	__u32 next_hop_stamp; /* jiffies (low 32 bits) of the last look-up */
	__u16 incarnation;
	__u8 flags;
	__u8 reserved;
	__u8 address[16]; /* destination of the outer header, or what the next hop is looked up for */
	__u16 outer_sum;  /* IPv4: ringlb_outer_sum(), outer_header.h; IPv6: 0 */
	__u16 mtu;        /* of packets on the way, outer header included: the smaller of the two below; 0: not known */
	__u32 last_old;   /* stamp of the last packet that came here though another backend owned its arc; 0: none */
	__u16 route_mtu;  /* of the route, as the kernel tells it; 0: not known */
	__u16 path_mtu;   /* that a router on the way told of, while that counts; 0: none did */
	__u32 reserved2[5];
};
_Static_assert(sizeof(struct ringlb_backend) == 64, "ringlb_backend");

/* What the fragments of a packet share: a value of the map `fragments`. */
struct ringlb_fragment {
	__u32 choice; /* as in struct ringlb_flow */
	__u32 until;  /* stamp from which on it does not count any more */
	__be16 client_port;
	__be16 service_port;
	__u8 protocol;
	__u8 early; /* 1: the first fragment has not come yet; there are no ports */
	__u16 reserved;
};
_Static_assert(sizeof(struct ringlb_fragment) == 16, "ringlb_fragment");
#define RINGLB_MAX_FRAGMENTED 8192u
#define RINGLB_FRAGMENT_SECONDS 5u /* from one fragment to another; IPv4 ids are used again soon */

/*
 * What routers on the way have told of outer packets that were too big (RFC 1191, RFC 8201): a value of the map
 * path_mtus, by the backend's address. Written whole.
 */
struct ringlb_path_mtu {
	__u32 mtu;
	__u32 until; /* stamp from which on it does not count any more */
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct ringlb_path_mtu) == 8, "ringlb_path_mtu");
#define RINGLB_MAX_PATH_MTUS 4096u
#define RINGLB_PATH_MTU_SECONDS 600u
#define RINGLB_PATH_MTU_MIN4 576u  /* less is not believed: RFC 1191 allows 68, which would serve an attacker alone */
#define RINGLB_PATH_MTU_MIN6 1280u /* RFC 8200 */

/* Answers about packets that can't go on, at most so many a second on each CPU: the only value of the map answer_rate. */
#define RINGLB_ANSWERS_A_SECOND 1000u
struct ringlb_answer_rate {
	__u64 second; /* jiffies / hz */
	__u64 given;  /* in it */
};

/*
 * An entry of the flow table, one for a 5-tuple: what its established connection uses, and what a SYN seen since would
 * use. Each word is read and written whole. A bucket is four entries, two cache lines: bucket (__u32)fingerprint *
 * buckets >> 32. At most RINGLB_OPENINGS_PER_BUCKET of them may be mere openings.
 *
 * The fingerprint is the whole SipHash of the 5-tuple as `affinity: flow` hashes it (0 is made 2), whatever the service's
 * affinity. An entry is claimed by setting a free or expired one's fingerprint to RINGLB_FLOW_BUSY by compare-and-swap,
 * filled in, and then given its own; an expired one's `established` is swapped before, so that a packet of its flow at
 * the same moment loses or wins. What packets change in an entry they swap, too. User space frees one by writing 0.
 *
 * For a service of QUIC there are entries of 4-tuples, everywhere and not in moved arcs alone, and of connection ids, whose
 * fingerprint is flow_fingerprint_id(). They begin as openings, where nothing established vouches for them; `opening` is
 * then the choice and, of a 4-tuple that an Initial has opened, the low 32 bits of that Initial's id's fingerprint (0 is
 * made 1); it is 0 once established.
 *
 * A choice (incarnation << 16 | backend, backend an index in the map backends) counts only while the backend has that
 * incarnation. Incarnations start at 1, so a choice is never 0.
 */
struct ringlb_flow {
	__u64 fingerprint; /* 0: free */
	__u64 established; /* deadline << 32 | choice; choice 0: none yet. From the deadline, a stamp, on it is expired */
	__u64 opening;     /* the last SYN's sequence number << 32 | choice; choice 0: none, or known to be a stray */
	__u64 place;       /* position << 32 | service index << 16 | RINGLB_FLOW_* flags */
};
_Static_assert(sizeof(struct ringlb_flow) == 32, "ringlb_flow");
#define RINGLB_FLOW_BUSY 1ull
#define RINGLB_FLOW_CLOSING 1u /* FIN or RST seen, and no data since: silent for RINGLB_CLOSING_SECONDS it expires */
#define RINGLB_FLOW_REBOUND 2u /* of a QUIC connection id, or of a 4-tuple that one has moved to: no arc's */
#define RINGLB_CLOSING_SECONDS 60u
#define RINGLB_OPENING_SECONDS 10u   /* a mere opening expires after */
#define RINGLB_OPENING_WINDOW 65536u /* a packet belongs to the SYN whose sequence number lies at most so far behind */
#define RINGLB_FLOWS_PER_BUCKET 4u
#define RINGLB_OPENINGS_PER_BUCKET 1u
struct ringlb_flow_bucket {
	struct ringlb_flow flow[RINGLB_FLOWS_PER_BUCKET];
};

/* What happened in the flow table: X(member, "name", "what it means"). The only value of the per-CPU map `flow_stats`. */
#define RINGLB_FLOW_EVENTS(X)                                                                                          \
	X(opened, "opened", "openings remembered")                                                                     \
	X(established, "established", "openings that became established, and flows remembered on the way")             \
	X(refused_full, "refused_full", "flows not remembered: no free entry")                                         \
	X(refused_quota, "refused_quota", "openings not remembered: others use up the openings' share")                \
	X(reused, "reused", "expired entries given to another flow")                                                   \
	X(lost_backend, "lost_backend", "packets of flows whose backend went down: sent to the arc's owner")

struct ringlb_flow_counters {
#define X(member, name, meaning) __u64 member;
	RINGLB_FLOW_EVENTS(X)
#undef X
};

/* Per-CPU counters: service_stats by service index, backend_stats by backend index. */
struct ringlb_counter {
	__u64 packets;
	__u64 bytes; /* of frames as they came in, Ethernet header included */
};

/* The only value of the per-CPU map `verdicts`. */
struct ringlb_verdict_counters {
	__u64 packets[RINGLB_VERDICT_COUNT];
};

/*
 * The map `carried`, which no program uses: what former programs of the instance counted in maps that are gone. Its
 * value is this, then a struct ringlb_counter for each element of service_stats, then of backend_stats.
 */
struct ringlb_carried {
	struct ringlb_verdict_counters verdicts;
	struct ringlb_flow_counters flows;
};

/*
 * What the program `lookup` writes over the start of the packet it was run on; it changes nothing else, and returns
 * XDP_PASS. The packet it is given must have room for it.
 */
struct ringlb_lookup {
	__u32 verdict;  /* enum ringlb_verdict: what `prog` would count, given a next hop and headroom */
	__u32 position; /* on the ring: the flow's hash */
	__u16 service;  /* index, RINGLB_NO_BACKEND where there is none */
	__u16 backend;  /* index of the backend that the packet goes to */
	__u16 owner;    /* index of the arc's owner */
	__u16 previous; /* index of the arc's previous owner; equal to owner in a settled arc */
	__u8 moved;
	__u8 tracked; /* the flow table decided */
	__u16 reserved;
	__u32 revision; /* low 32 bits */
	__u64 jiffies;
};
_Static_assert(sizeof(struct ringlb_lookup) == 32, "ringlb_lookup");

/*
 * A record of the ring buffer `traces`: a packet as it was when its verdict was spoken. One that is forwarded has its new
 * link-layer header then, and its outer header.
 */
#define RINGLB_TRACE_BYTES 256u
#define RINGLB_TRACES_BYTES (1u << 16) /* of the ring buffer */
#define RINGLB_TRACES_A_SECOND 1000u   /* at most, on each CPU */
struct ringlb_trace {
	__u64 time;     /* monotonic clock, ns */
	__u32 ifindex;  /* that it came in through */
	__u32 position; /* of its flow, where it was for a service */
	__u32 verdict;
	__u32 frame;    /* bytes of it */
	__u16 service;  /* index, RINGLB_NO_BACKEND where there is none */
	__u16 backend;  /* likewise */
	__u16 network;  /* where in the frame the IP header is that the packet came with; 0: it has none */
	__u16 captured; /* bytes of it below */
	__u8 data[RINGLB_TRACE_BYTES];
};
_Static_assert(sizeof(struct ringlb_trace) == 32 + RINGLB_TRACE_BYTES, "ringlb_trace");

/* The only value of the per-CPU map `trace_rate`. */
struct ringlb_trace_rate {
	__u64 second; /* jiffies / hz */
	__u64 taken;  /* in it */
	__u64 left_out;
};

/*
 * The program `probe` (probe.bpf.c) sends what a socket with this mark sends to one backend. A mark is fixed bits, bits of
 * the daemon's device, so that daemons of several instances don't meet, and the backend's index, the key of probe_ways.
 */
#define RINGLB_PROBE_MARK 0x52000000u
#define RINGLB_PROBE_FIXED 0xff000000u
#define RINGLB_PROBE_DEVICE(ifindex) (((ifindex)&0xffu) << 16)
#define RINGLB_PROBE_DEVICE_MASK 0x00ff0000u
#define RINGLB_PROBE_BACKEND 0xffffu

struct ringlb_probe_way {
	__u8 forward; /* enum ringlb_forward */
	__u8 reserved;
	__be16 gue_port;
};
_Static_assert(sizeof(struct ringlb_probe_way) == 4, "ringlb_probe_way");

/*
 * The program `decap` stands alone. Key of its map `decap_from`, a longest-prefix-match trie whose values (__u32) are
 * not looked at: the outer sources whose packets are taken out of their outer header. `length` counts in the mapped
 * address: an IPv4 prefix has 96 more.
 */
struct ringlb_decap_prefix {
	__u32 length;
	__u8 address[16];
};
_Static_assert(sizeof(struct ringlb_decap_prefix) == 20, "ringlb_decap_prefix");

#define RINGLB_DECAP_MAX_PREFIXES 1024u

/* The only value of its per-CPU map `decap_stats`, packets. */
struct ringlb_decap_counters {
	__u64 decapsulated;
	__u64 passed;      /* left as they were */
	__u64 dropped_ecn; /* congestion was marked on the way, in a packet whose sender would not understand it: RFC 6040 */
};

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif
