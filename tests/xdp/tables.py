# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What user space writes for the data plane, written once more from include/ringlb_abi.h alone, small and slow, so that
tests can make tables that the program itself never would.
"""
import ipaddress
import re
import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

ABI = (Path(__file__).parents[2] / "include" / "ringlb_abi.h").read_text(encoding="ascii")
VERDICTS = re.findall(r'\tX\([A-Z_]+, "([a-z_]+)"', ABI)
HEADER = 4096
SLACK = 64
NONE = 0xffff
L2, IPIP, GUE = 0, 1, 2
FLOW, SOURCE, QUIC = 0, 1, 2
FRAGMENTS_TRACK, FRAGMENTS_SOURCE, FRAGMENTS_DROP = 0, 1, 2
ANY, TCP, UDP = 0, 6, 17
ANY_PORT, RANGES, ANY_PROTOCOL, PREFIXES = 1, 2, 4, 8
KEY_PREFIX, KEY_RANGES = 0x40, 0x80
ROOTS, ROOT = 64, 128  # where they begin, and how large one is
OUTPUTS, OUTPUT = ROOTS + 2 * ROOT, 32
LOCAL = 0xfffe
GUE_PORT = 6081  # not the default
MASK = (1 << 64) - 1


def mapped(address):
    a = ipaddress.ip_address(address)
    return b"\0" * 10 + b"\xff\xff" + a.packed if a.version == 4 else a.packed


def ones_sum(data):
    total = sum(struct.unpack(f"<{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def siphash13(key, data):
    def rotl(x, b):
        return (x << b | x >> (64 - b)) & MASK

    def sip_round():
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotl(v[1], 13) ^ v[0]
        v[0] = rotl(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotl(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotl(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)

    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]
    assert len(data) % 8 == 0
    for word in [*struct.unpack(f"<{len(data) // 8}Q", data), len(data) << 56 & MASK]:
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xff
    for _ in range(3):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def position(key, client, service, client_port, service_port, protocol):
    data = ipaddress.ip_address(client).packed + ipaddress.ip_address(service).packed
    data += struct.pack(">HHB", client_port, service_port, protocol)
    return siphash13(key, data + b"\0" * (-len(data) % 8)) >> 32


def source_position(key, client, prefix):
    network = ipaddress.ip_network(f"{client}/{prefix}", strict=False).network_address.packed
    return siphash13(key, network + b"\0" * (-len(network) % 8)) >> 32


def service_hash(address, port, protocol):
    hi, lo = struct.unpack("<QQ", address)
    h = (hi ^ (int.from_bytes(struct.pack(">H", port), "little") << 8 | protocol)) * 0x9e3779b97f4a7c15 & MASK
    h = (h ^ h >> 32 ^ lo) * 0xd6e8feb86659fd93 & MASK
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93 & MASK
    return h >> 32


@dataclass
class Backend:
    address: str
    next_hop: int = 0
    stamp: int = 0
    mtu: int = 0

    def key(self):
        """Of the map path_mtus."""
        return mapped(self.address)

    def encode(self):
        a = ipaddress.ip_address(self.address)
        outer = struct.pack("<BBHHHBBH4s", 0x45, 0, 0, 0, 0x40, 64, 0, 0, a.packed) if a.version == 4 else b""
        return struct.pack("<QIHBB16sHHIHH20x", self.next_hop, self.stamp, 1, 1 | (a.version == 6) << 1, 0,
                           mapped(self.address), ones_sum(outer), self.mtu, 0, self.mtu, 0)


@dataclass
class Service:
    address: str  # or a prefix
    port: int  # 0: any; or (from, to)
    protocol: int
    arcs: list  # (last position, index in owners), sorted, up to 0xffffffff; a moved one has a third: the previous owner
    owners: list = field(default_factory=lambda: [0])  # indices of backends
    bits: int = 4
    forward: int = L2
    affinity: int = FLOW
    prefix: int = 0  # of the client's address
    index: int = 0
    track: int = 0
    settle_after: int = 900
    cid_length: int = 0
    server_id: tuple = (0, 0)  # offset and length in connection ids
    fragments: int = FRAGMENTS_TRACK
    servers: dict = field(default_factory=dict)  # backends by the ids that are there
    cold: int = 0  # offset of the cold part, once it is in tables

    def network(self):
        return ipaddress.ip_network(self.address)

    def is_prefix(self):
        return self.network().num_addresses > 1

    def is_range(self):
        return isinstance(self.port, tuple)

    def owner(self, at):
        return self.owners[self.arcs[bisect_left([arc[0] for arc in self.arcs], at)][1]]

    def _point(self, last, owner, *previous):
        """A point, and its cold part."""
        moved = bool(previous) << self.bits - 1
        return (last << self.bits | moved | owner) & 0xffffffff, struct.pack("<HHI", *previous or [owner], 0, 0)

    def encode_table(self):
        """Index, points and owners, as lists; the cold part as bytes."""
        low_bits = 32 - self.bits
        index, points, arc = [], [], 0
        for bucket in range(1 << self.bits):
            end = (bucket + 1 << low_bits) - 1
            index.append(len(points))
            while self.arcs[arc][0] < end:
                points.append(self._point(*self.arcs[arc]))
                arc += 1
            points.append(self._point(end, *self.arcs[arc][1:]))
            arc += self.arcs[arc][0] == end
        return index + [len(points)], [p for p, _ in points], self.owners, b"".join(cold for _, cold in points)


class Tables:
    """The bytes of the map `tables`. Parts are put one behind another; each service has a table of its own."""

    def __init__(self, size):
        self.bytes = bytearray(size)
        self.end = HEADER

    def put(self, data):
        at = self.end
        self.bytes[at:at + len(data)] = data
        self.end = -(-(at + len(data) + SLACK) // 64) * 64
        assert self.end <= len(self.bytes), "tables too small"
        return at

    def header(self, state, hz, outputs):
        """outputs: (interface, MAC), or with the interface below and its tag (interface, MAC, link, protocol, tag)"""
        struct.pack_into("<QII", self.bytes, 0, state, 1, hz)
        for slot, (ifindex, mac, *vlan) in enumerate(outputs):
            link, protocol, tag = vlan or (ifindex, 0, 0)
            struct.pack_into("<IH6sI", self.bytes, OUTPUTS + slot * OUTPUT, ifindex, 1500, mac, link)
            struct.pack_into(">HH", self.bytes, OUTPUTS + slot * OUTPUT + 16, protocol, tag)

    def _entry(self, key, s):
        """struct ringlb_service"""
        index, points, owners, cold = s.encode_table() if s.arcs else ([0], [0], [0], b"")
        offsets = [self.put(struct.pack(f"<{len(part)}{code}", *part))
                   for part, code in ((index, "I"), (points, "I"), (owners, "H"))]
        s.cold = self.put(cold)
        servers = self.put(struct.pack("<II", len(s.servers), 0) + b"".join(
            struct.pack("<II", *item) for item in sorted(s.servers.items()))) if s.servers else 0
        return key[0] + struct.pack(">H", key[1]) + struct.pack(
            "<BBBBBBH", key[2], s.forward, s.affinity, s.track, s.bits if s.arcs else 0, s.prefix, s.index) + struct.pack(
                ">H", GUE_PORT) + struct.pack("<8IBBBB", offsets[0], offsets[1], s.cold, offsets[2], len(points),
                                              len(owners), s.settle_after, servers, s.cid_length, *s.server_id, s.fragments)

    @staticmethod
    def _mark(key, offset=0, count=0):
        """An entry that is no service; of ranges, where they are and how many."""
        entry = bytearray(key[0].ljust(64, b"\0"))
        struct.pack_into(">HB", entry, 16, key[1], key[2])
        struct.pack_into("<HHI12xI", entry, 24, NONE, 0, offset, count)
        return bytes(entry)

    def _prefixes(self, services):
        """The prefixes, numbered, and where their blocks and the wider ones of each are."""
        networks = sorted({s.network() for s in services if s.is_prefix()}, key=lambda n: (n.version, n))
        ends = set()
        for n in networks:
            first, last = (int.from_bytes(mapped(a), "big") for a in (n[0], n[-1]))
            ends |= {first - 1, last} - {-1}

        def holders(a):
            return sorted((n.prefixlen, i) for i, n in enumerate(networks) if mapped(n[0]) <= a <= mapped(n[-1]))

        blocks = b""
        for end in sorted(ends):
            inside = holders(end.to_bytes(16, "big"))
            blocks += struct.pack("<QQII", end >> 64, end & MASK, inside[-1][1] + 1 if inside else 0, 0)
        wider = [[i + 1 for length, i in holders(mapped(n[0])) if length < n.prefixlen] for n in networks]
        return networks, self.put(blocks), len(ends), self.put(struct.pack(
            f"<{len(wider)}I", *[w[-1] if w else 0 for w in wider]))

    @staticmethod
    def _early(key, services, protocol):
        """The service at the mark's place that a fragment of the protocol is for whose ports are not known."""
        there = [s for k, s in services if k == key and s.protocol == protocol]
        by_source = [s for s in there if s.fragments == FRAGMENTS_SOURCE]
        only = there if protocol == UDP and len(there) == 1 and there[0].fragments == FRAGMENTS_TRACK else []
        return (by_source or only or [None])[0]

    def root(self, side, key, services, tunnel4="0.0.0.0", tunnel6="::", flags=None, entropy4=0, entropy6=0):
        """Writes a side with these services, and an entry for each of their addresses."""
        networks, blocks, count, wider = self._prefixes(services)
        entries, ranges, placed = {}, {}, []
        for s in services:
            where = struct.pack("<QQ", 0, networks.index(s.network())) if s.is_prefix() else mapped(s.network()[0])
            kind = KEY_PREFIX if s.is_prefix() else 0
            placed.append(((where, kind), s))
            if s.is_range():
                ranges.setdefault((where, 0, s.protocol | kind | KEY_RANGES), []).append(s)
            else:
                entries[where, s.port, s.protocol | kind] = s
            entries.setdefault((where, 0, kind), None)
        array = {k: self._mark(k) if s is None else self._entry(k, s) for k, s in entries.items()}
        behind = []
        for at, those in ranges.items():
            those.sort(key=lambda s: s.port)
            first = len(array) + len(ranges) + len(behind)
            offset = self.put(b"".join(struct.pack("<HHI", *s.port, first + i + 1) for i, s in enumerate(those)))
            behind += [self._entry((at[0], s.port[0], s.protocol), s) for s in those]
            entries[at] = (offset, len(those))
        array.update({at: self._mark(at, *entries[at]) for at in ranges})
        numbers = {id(s): n for n, s in enumerate(entries.values(), 1) if s is not None}
        numbers |= {id(s): len(array) + n for n, s in enumerate((s for those in ranges.values() for s in those), 1)}
        for at in [at for at, s in entries.items() if s is None]:
            early = [numbers.get(id(self._early(at[::2], placed, protocol)), 0) for protocol in (TCP, UDP)]
            array[at] = array[at][:44] + struct.pack("<II", *early) + array[at][52:]
        self._write_root(side, key, array, behind, tunnel4, tunnel6, {
            "flags": self._flags(services) if flags is None else flags, "entropy4": entropy4, "entropy6": entropy6,
            "blocks": (blocks, count, wider, len(networks))})

    @staticmethod
    def _flags(services):
        return (ANY_PORT * any(s.port == 0 and s.protocol for s in services) | RANGES * any(
            s.is_range() for s in services) | ANY_PROTOCOL * any(not s.protocol for s in services)
                | PREFIXES * any(s.is_prefix() for s in services))

    def _write_root(self, side, key, array, behind, tunnel4, tunnel6, rest):
        bits = 0
        while True:
            buckets = [[] for _ in range(1 << bits)]
            for number, entry in enumerate(array, 1):
                h = service_hash(*entry)
                buckets[h >> (32 - bits)].append((h & 0xffff) << 16 | number)
            if max(map(len, buckets)) <= 4:
                break
            bits += 1
        slots = self.put(b"".join(struct.pack("<4I", *b, *[0] * (4 - len(b))) for b in buckets))
        services = self.put(b"".join([*array.values(), *behind]))
        struct.pack_into("<16s16s4s4I", self.bytes, ROOTS + ROOT * side, key, mapped(tunnel6),
                         ipaddress.ip_address(tunnel4).packed, slots, services, bits, rest["flags"])
        struct.pack_into(">II", self.bytes, ROOTS + ROOT * side + 52, rest["entropy4"], rest["entropy6"])
        struct.pack_into("<7I", self.bytes, ROOTS + ROOT * side + 60, *rest["blocks"], 0, 0, 1)
