# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Fragments in every order: each goes on as it came, and all of a packet to one backend. Backend i has the MAC address
02:00:00:00:00:0i; each test's fragments have ids of their own, since the map outlives the test.
"""
import itertools
import struct

import bpf
import pytest
from harness import KEY, mac_of
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import (ABI, ANY, FRAGMENTS_DROP, FRAGMENTS_SOURCE, SOURCE, TCP, UDP, Backend, Service, position,
                    source_position)
from test_flows import Flows
from test_forward import CLIENT, ROUTER, VIP, aged

BACKENDS = 8
EIGHTHS = [((i + 1 << 29) - 1, i) for i in range(BACKENDS)]
PORT = 40001
SECONDS = int(ABI.split("RINGLB_FRAGMENT_SECONDS ", 1)[1].split("u")[0])
ROOM = int(ABI.split("RINGLB_MAX_FRAGMENTED ", 1)[1].split("u")[0])
ORDERS = list(itertools.permutations(range(3)))
ids = itertools.count(1)


def backends(balancer):
    stamp = balancer.jiffies()
    return [Backend(f"10.0.0.{i}", (0x020000000000 | i) << 16, stamp) for i in range(BACKENDS)]


def service(family, protocol=UDP, port=443, **fields):
    return Service(VIP[family], port, protocol, EIGHTHS, owners=list(range(BACKENDS)), **fields)


def header_of(protocol, sport=PORT, dport=443, length=0, flags=0x18, sequence=99):
    if protocol == TCP:
        return struct.pack(">HHIIBBHHH", sport, dport, sequence, 0, 0x50, flags, 512, 0, 0)
    return struct.pack(">HHHH", sport, dport, 8 + length, 0) if protocol == UDP else b""


def fragment(family, protocol, ident, at, more, data, before=()):
    """One of a packet: the bytes from `at` on of what stands behind its headers."""
    if family == 4:
        return IP(src=CLIENT[4], dst=VIP[4], ttl=17, id=ident, flags="MF" if more else 0, frag=at // 8,
                  proto=protocol) / Raw(data)
    packet = IPv6(src=CLIENT[6], dst=VIP[6], hlim=17)
    for header in before:
        packet /= header
    return packet / IPv6ExtHdrFragment(id=ident, offset=at // 8, m=more, nh=protocol) / Raw(data)


def fragments(family, protocol, ident=None, size=64, length=160, before=(), **ports):
    """Those of one packet, in order."""
    ident = next(ids) if ident is None else ident
    data = header_of(protocol, length=length, **ports) + bytes(range(length))
    return [fragment(family, protocol, ident, at, at + size < len(data), data[at:at + size], before)
            for at in range(0, len(data), size)]


def send(balancer, packet):
    """The backend that it goes to, as `lookup` has foretold, or the verdict; forwarded it is as it was."""
    frame = bytes(Ether(src=ROUTER, dst=mac_of("lan0")) / packet)
    foretold = balancer.lookup(frame)
    verdict, action, out = balancer.verdict_of(frame)
    assert foretold["verdict"] == verdict
    if verdict != "forwarded":
        assert out == frame
        return verdict
    assert action == bpf.XDP_TX and foretold["backend"] == out[5]
    assert out.hex() == bytes(Ether(src=mac_of("lan0"), dst=f"02:00:00:00:00:{out[5]:02x}") / aged(packet)).hex()
    return out[5]


def owner(family, protocol, sport=PORT, dport=443):
    return position(KEY, CLIENT[family], VIP[family], sport, dport, protocol) >> 29


@pytest.mark.parametrize("family,protocol,order", itertools.product((4, 6), (TCP, UDP), ORDERS), ids=str)
def test_order(balancer, family, protocol, order):
    """In the order of most senders all follow the flow. What comes before the first: a datagram whole, TCP not at all."""
    balancer.configure([service(family, protocol)], backends(balancer))
    parts = fragments(family, protocol)
    went = [send(balancer, parts[i]) for i in order]
    first = order.index(0)
    if protocol == TCP:
        assert went == ["dropped_fragment"] * first + [owner(family, TCP)] * (3 - first)
    elif first == 0:
        assert went == [owner(family, UDP)] * 3
    else:
        assert isinstance(went[0], int) and went == [went[0]] * 3


@pytest.mark.parametrize("family", (4, 6))
def test_early_datagrams_spread(balancer, family):
    balancer.configure([service(family)], backends(balancer))
    assert len({send(balancer, fragments(family, UDP)[1]) for _ in range(100)}) == BACKENDS


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("port", ((400, 500), 0))
@pytest.mark.parametrize("prefix", (False, True))
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_wide_services(balancer, family, port, prefix, order):
    wide = service(family, port=port)
    if prefix:
        wide.address = "192.0.2.0/24" if family == 4 else "2001:db8::/64"
    balancer.configure([wide], backends(balancer))
    parts = fragments(family, UDP)
    went = {send(balancer, parts[i]) for i in order}
    assert len(went) == 1 and isinstance(went.pop(), int)


@pytest.mark.parametrize("family,protocol,order", itertools.product((4, 6), (TCP, UDP), ORDERS), ids=str)
def test_source(balancer, family, protocol, order):
    """By the client's address, whatever comes first, and whatever came before."""
    its = {"affinity": SOURCE, "prefix": 24, "fragments": FRAGMENTS_SOURCE}
    balancer.configure([service(family, protocol, **its), service(family, protocol, 53, **its)], backends(balancer))
    to = source_position(KEY, CLIENT[family], 24) >> 29
    parts = fragments(family, protocol)
    assert [send(balancer, parts[i]) for i in order] == [to] * 3
    assert send(balancer, fragments(family, protocol)[2]) == to


@pytest.mark.parametrize("family,protocol,order", itertools.product((4, 6), (TCP, UDP, 47), ORDERS), ids=str)
def test_any_protocol(balancer, family, protocol, order):
    """Fragments are packets like others there."""
    balancer.configure([service(family, ANY, 0)], backends(balancer))
    to = position(KEY, CLIENT[family], VIP[family], 0, 0, 0) >> 29
    parts = fragments(family, protocol)
    assert [send(balancer, parts[i]) for i in order] == [to] * 3


def set_clock(balancer, now):
    """A second of a length that makes it so late."""
    jiffies = balancer.lookup(bytes(64))["jiffies"]
    hz = jiffies * 2 // (2 * now + 1)
    struct.pack_into("<I", balancer.memory, 12, hz)
    assert balancer.lookup(bytes(64))["jiffies"] // hz == now


@pytest.mark.parametrize("family", (4, 6))
def test_expiry(balancer, family):
    balancer.configure([service(family, TCP)], backends(balancer))
    parts = fragments(family, TCP)
    set_clock(balancer, 5000)
    assert send(balancer, parts[0]) == owner(family, TCP)
    set_clock(balancer, 5000 + SECONDS)
    assert send(balancer, parts[1]) == owner(family, TCP)
    set_clock(balancer, 5000 + SECONDS + 1)
    assert send(balancer, parts[2]) == "dropped_fragment"


@pytest.mark.parametrize("family", (4, 6))
def test_no_room(balancer, family):
    """The oldest make room: a flood shuts nobody out."""
    balancer.configure([service(family, TCP)], backends(balancer))
    value = struct.pack("<IIHHBB2x", 1 << 16, 1 << 30, 0, 0, TCP, 0)
    for i in range(2 * ROOM):
        bpf.map_update(balancer.object.map("fragments"), struct.pack("<Q", i * 0x9e3779b97f4a7c15 % 2**64), value)
    assert [send(balancer, packet) for packet in fragments(family, TCP)] == [owner(family, TCP)] * 3


@pytest.mark.parametrize("family", (4, 6))
def test_a_backend_that_went_down(balancer, family):
    """Its number may be another's by now: the ring has the rest."""
    there = backends(balancer)
    balancer.configure([service(family, TCP)], there)
    parts, to = fragments(family, TCP), owner(family, TCP)
    assert send(balancer, parts[0]) == to
    ring = service(family, TCP)
    ring.owners[to] = (to + 1) % BACKENDS
    balancer.configure([ring], there)
    assert send(balancer, parts[1]) == to
    struct.pack_into("<H", balancer.backends, to * 64 + 12, 2)
    assert send(balancer, parts[1]) == (to + 1) % BACKENDS


@pytest.mark.parametrize("protocol", (TCP, UDP))
def test_behind_extension_headers(balancer, protocol):
    """Headers before the fragment's, and behind it in the first one."""
    balancer.configure([service(6, protocol)], backends(balancer))
    before = (IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt())
    assert [send(balancer, p) for p in fragments(6, protocol, before=before)] == [owner(6, protocol)] * 3
    ident, data = next(ids), bytes([protocol, 0]) + bytes(6) + header_of(protocol, length=168) + bytes(168)
    parts = [fragment(6, 60, ident, at, at + 64 < len(data), data[at:at + 64]) for at in range(0, len(data), 64)]
    assert {send(balancer, packet) for packet in parts} == {owner(6, protocol)}


@pytest.mark.parametrize("protocol", (TCP, UDP))
def test_atomic(balancer, protocol):
    """A fragment header around a whole packet (RFC 6946): nothing is to follow it, nor does it take part in others."""
    balancer.configure([service(6, protocol, fragments=FRAGMENTS_DROP)], backends(balancer))
    ident = next(ids)
    whole = fragment(6, protocol, ident, 0, 0, header_of(protocol, length=9) + bytes(9))
    assert send(balancer, whole) == owner(6, protocol)
    balancer.configure([service(6, TCP)], backends(balancer))
    assert send(balancer, fragments(6, TCP, ident)[1]) == "dropped_fragment"


@pytest.mark.parametrize("family,protocol,size", [(4, TCP, 8), (4, TCP, 16), (6, TCP, 8), (6, TCP, 16)])
def test_tiny(balancer, family, protocol, size):
    """A first one without the whole header is made to hide something (RFC 1858, RFC 7112)."""
    balancer.configure([service(family, protocol)], backends(balancer))
    parts = fragments(family, protocol, size=size)
    assert send(balancer, parts[0]) == "dropped_malformed"
    assert send(balancer, parts[1]) == "dropped_fragment"


@pytest.mark.parametrize("family", (4, 6))
def test_smallest_datagram(balancer, family):
    balancer.configure([service(family)], backends(balancer))
    assert {send(balancer, packet) for packet in fragments(family, UDP, size=8)} == {owner(family, UDP)}


OWNER, PREVIOUS = 1, 2


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("track", (1, 2), ids=("moved", "always"))
def test_moved_arc(balancer, family, track):
    """Where its flow goes; fragments open none, not even with SYN, and keep no arc from settling."""
    flows = Flows(balancer, family=family, track=track)
    flows.establish()

    def fragment_to(sport, flags, sequence, part=0):
        parts = fragments(family, TCP, ident, sport=sport, flags=flags, sequence=sequence)
        before = bytes(flows.memory[:128]), flows.counters(), flows.stamp(), flows.last_old(PREVIOUS)
        to = balancer.verdict_of(bytes(Ether() / parts[part]))[2][5]
        assert before == (bytes(flows.memory[:128]), flows.counters(), flows.stamp(), flows.last_old(PREVIOUS))
        return to

    for sport, flags, sequence, to in ((1000, 0x10, 101, OWNER), (1001, 0x10, 101, PREVIOUS), (1002, 0x02, 5, PREVIOUS)):
        ident = next(ids)
        assert [fragment_to(sport, flags, sequence, part) for part in range(3)] == [to] * 3
