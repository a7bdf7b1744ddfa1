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
TCP, UDP = 6, 17
L2, IPIP = 0, 1
FLOW, SOURCE = 0, 1
ANY_PORT = 1
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

    def encode(self):
        a = ipaddress.ip_address(self.address)
        outer = struct.pack("<BBHHHBBH4s", 0x45, 0, 0, 0, 0x40, 64, 0, 0, a.packed) if a.version == 4 else b""
        return struct.pack("<QIHBB16sHH28x", self.next_hop, self.stamp, 1, 1 | (a.version == 6) << 1, 0,
                           mapped(self.address), ones_sum(outer), 0)


@dataclass
class Service:
    address: str
    port: int
    protocol: int
    arcs: list  # (last position, index in owners), sorted, up to 0xffffffff
    owners: list = field(default_factory=lambda: [0])  # indices of backends
    bits: int = 4
    forward: int = L2
    affinity: int = FLOW
    prefix: int = 0
    index: int = 0

    def owner(self, at):
        return self.owners[self.arcs[bisect_left([last for last, _ in self.arcs], at)][1]]

    def encode_table(self):
        """Index, points and owners, as lists."""
        low_bits = 32 - self.bits
        index, points, arc = [], [], 0
        for bucket in range(1 << self.bits):
            end = (bucket + 1 << low_bits) - 1
            index.append(len(points))
            while self.arcs[arc][0] < end:
                last, owner = self.arcs[arc]
                points.append((last << self.bits | owner) & 0xffffffff)
                arc += 1
            points.append((end << self.bits | self.arcs[arc][1]) & 0xffffffff)
            arc += self.arcs[arc][0] == end
        return index + [len(points)], points, self.owners


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
        struct.pack_into("<QII", self.bytes, 0, state, 1, hz)
        for slot, (ifindex, mac) in enumerate(outputs):
            struct.pack_into("<IH6sI", self.bytes, 192 + slot * 16, ifindex, 1500, mac, 0)

    def _service(self, s, address_entry=False):
        if address_entry:
            return mapped(s.address) + b"\0" * 48
        index, points, owners = s.encode_table() if s.arcs else ([0], [0], [0])
        offsets = [self.put(struct.pack(f"<{len(part)}{code}", *part))
                   for part, code in ((index, "I"), (points, "I"), (owners, "H"))]
        return mapped(s.address) + struct.pack(
            ">H", s.port) + struct.pack("<BBBBBBHH7I8x", s.protocol, s.forward, s.affinity, 0, s.bits if s.arcs else 0,
                                        s.prefix, s.index, 0, offsets[0], offsets[1], 0, offsets[2], len(points),
                                        len(owners), 0)

    def root(self, side, key, services, tunnel4="0.0.0.0", tunnel6="::", flags=None):
        """Writes a side with these services, and an entry for each of their addresses."""
        entries = {(mapped(s.address), s.port, s.protocol): self._service(s) for s in services}
        entries.update({(mapped(s.address), 0, 0): self._service(s, True) for s in services})
        bits = 0
        while True:
            buckets = [[] for _ in range(1 << bits)]
            for number, entry in enumerate(entries, 1):
                h = service_hash(*entry)
                buckets[h >> (32 - bits)].append((h & 0xffff) << 16 | number)
            if max(map(len, buckets)) <= 4:
                break
            bits += 1
        slots = self.put(b"".join(struct.pack("<4I", *b, *[0] * (4 - len(b))) for b in buckets))
        array = self.put(b"".join(entries.values()))
        if flags is None:
            flags = ANY_PORT if any(s.port == 0 for s in services) else 0
        struct.pack_into("<16s16s4s7I", self.bytes, 64 + 64 * side, key, mapped(tunnel6),
                         ipaddress.ip_address(tunnel4).packed, slots, array, bits, flags, 0, 0, 1)
