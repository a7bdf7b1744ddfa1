# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fragments: they follow the first one in any order, or the client's address, or are dropped; none opens a flow."""
import ipaddress
import struct

import bpf
import pytest
from harness import KEY, neighbour_mac
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, fragment6
from scapy.packet import Raw
from tables import (ANY, FRAGMENTS_DROP, FRAGMENTS_SOURCE, GUE, IPIP, SOURCE, Backend, Service,
                    position, siphash13, source_position)
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from test_forward import HOST, LAN, ROUTER, aged, in_tunnel, link_layer

CLIENT = {4: "198.51.100.7", 6: "2001:db8:1::7"}
VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
TRANSPORT = {"udp": PROTO_UDP, "tcp": PROTO_TCP}
BACKENDS = 16
ids = iter(range(1, 60000))


def datagram(family, protocol="udp", client_port=40001, port=443, size=1200, source=None):
    """Fragments of one packet, the first one first, each a packet of its own."""
    upper = (UDP if protocol == "udp" else TCP)(sport=client_port, dport=port) / Raw(bytes(i & 255 for i in range(size)))
    source = source or CLIENT[family]
    if family == 4:
        return fragment(IP(bytes(IP(src=source, dst=VIP[4], id=next(ids)) / upper)), 400)
    whole = IPv6(bytes(IPv6(src=source, dst=VIP[6]) / upper))
    whole = IPv6(src=source, dst=VIP[6]) / IPv6ExtHdrFragment(id=next(ids)) / whole.payload
    return fragment6(whole, 500)


def frame_of(packet):
    return bytes(link_layer(ROUTER, HOST, ()) / packet)


def spread(family, **options):
    """A service whose positions go to one of many backends by their upper bits."""
    arcs = [((i + 1) * (1 << 32) // BACKENDS - 1, i) for i in range(BACKENDS)]
    return Service(VIP[family], **{"port": 443, "protocol": PROTO_UDP, "arcs": arcs, "owners": list(range(BACKENDS)),
                                   "bits": 6, "index": 1} | options)


def configure(balancer, family, *services):
    """Backend i is told by the slot's MAC, which is its number."""
    now = balancer.jiffies()  # far from 0 in the first minutes of a machine
    balancer.configure(services, [Backend(LAN[family].format(0), next_hop=(0x020000000000 + i) << 16, stamp=now)
                                  for i in range(BACKENDS)])


def went_to(balancer, packet):
    """The backend's number, or the verdict where there is none."""
    verdict, action, got = balancer.verdict_of(frame_of(packet))
    if verdict != "forwarded":
        return verdict
    assert action == bpf.XDP_TX and got[14:] == bytes(aged(packet))
    return got[5]


def flow_backend(family, protocol, client_port=40001, port=443):
    return position(KEY, CLIENT[family], VIP[family], client_port, port, protocol) * BACKENDS >> 32


BOTH = pytest.mark.parametrize("family", (4, 6))


@BOTH
@pytest.mark.parametrize("protocol", TRANSPORT)
def test_follow_the_first(balancer, family, protocol):
    configure(balancer, family, spread(family, protocol=TRANSPORT[protocol]))
    seen = set()
    for port in range(40001, 40017):
        first, *rest = datagram(family, protocol, port)
        assert len(rest) > 1
        expected = flow_backend(family, TRANSPORT[protocol], port)
        for packet in (first, *reversed(rest), first):
            assert went_to(balancer, packet) == expected
        seen.add(expected)
    assert len(seen) > 4


@BOTH
def test_datagrams_in_turn(balancer, family):
    """Those of several flows mixed: each goes by its own."""
    configure(balancer, family, spread(family))
    parts = [datagram(family, client_port=41000 + i) for i in range(20)]
    for turn in zip(*parts):
        for i, packet in enumerate(turn):
            assert went_to(balancer, packet) == flow_backend(family, PROTO_UDP, 41000 + i)


@BOTH
def test_same_id_of_another(balancer, family):
    """The id is one client's, and, in IPv4, one protocol's."""
    configure(balancer, family, spread(family, protocol=PROTO_TCP), spread(family, port=53), spread(family, port=54))
    first, later, *_ = datagram(family, "tcp")
    assert went_to(balancer, first) == flow_backend(family, PROTO_TCP)
    other = later.copy()
    other.src = "198.51.100.8" if family == 4 else "2001:db8:1::8"
    assert went_to(balancer, other) == "dropped_fragment"
    if family == 4:
        other = later.copy()
        other.proto = PROTO_UDP
        assert went_to(balancer, other) == "dropped_fragment"


def early_backend(family, packet):
    """By addresses and id, which is all that such a fragment has."""
    if family == 4:
        tail = struct.pack(">HHB", packet.id, 0, PROTO_UDP)
    else:
        tail = struct.pack(">IB", packet[IPv6ExtHdrFragment].id, 44)
    key = ipaddress.ip_address(packet.src).packed + ipaddress.ip_address(packet.dst).packed + tail
    return (siphash13(KEY, key + b"\0" * (-len(key) % 8)) >> 32) * BACKENDS >> 32


@BOTH
def test_udp_before_the_first(balancer, family):
    """Its address has one service of UDP: the datagram arrives whole, where the early one went."""
    configure(balancer, family, spread(family), spread(family, protocol=PROTO_TCP))
    elsewhere = 0
    for port in range(40001, 40021):
        first, *rest = datagram(family, client_port=port)
        expected = early_backend(family, rest[-1])
        for packet in (rest[-1], first, *rest, first):
            assert went_to(balancer, packet) == expected
        elsewhere += expected != flow_backend(family, PROTO_UDP, port)
    assert elsewhere > 5


@BOTH
@pytest.mark.parametrize("others", ({"port": 53}, {"port": (1000, 2000)}, {"port": 0}))
def test_udp_before_the_first_of_several_services(balancer, family, others):
    configure(balancer, family, spread(family), spread(family, **others))
    first, later, *_ = datagram(family)
    assert went_to(balancer, later) == "dropped_fragment"
    assert went_to(balancer, first) == flow_backend(family, PROTO_UDP)
    assert went_to(balancer, later) == flow_backend(family, PROTO_UDP)


@BOTH
@pytest.mark.parametrize("keys", ({"port": (400, 500)}, {"port": 0}))
def test_udp_before_the_first_of_many_ports(balancer, family, keys):
    configure(balancer, family, spread(family, **keys))
    first, later, *_ = datagram(family)
    assert went_to(balancer, later) == went_to(balancer, first) == early_backend(family, later)


@BOTH
def test_tcp_before_the_first(balancer, family):
    """It would not be with its connection: it is sent again."""
    configure(balancer, family, spread(family, protocol=PROTO_TCP))
    first, later, *_ = datagram(family, "tcp")
    assert went_to(balancer, later) == "dropped_fragment"
    assert went_to(balancer, first) == went_to(balancer, later) == flow_backend(family, PROTO_TCP)


@BOTH
@pytest.mark.parametrize("protocol", TRANSPORT)
def test_by_source(balancer, family, protocol):
    """In any order, with several services: they agree."""
    prefix = 24 if family == 4 else 64
    by_source = {"affinity": SOURCE, "prefix": prefix, "fragments": FRAGMENTS_SOURCE, "protocol": TRANSPORT[protocol]}
    configure(balancer, family, spread(family, **by_source), spread(family, port=444, **by_source))
    for i in range(20):
        client = f"198.51.{i}.7" if family == 4 else f"2001:db8:1:{i}::7"
        first, *rest = datagram(family, protocol, source=client)
        for packet in (*reversed(rest), first, rest[0]):
            assert went_to(balancer, packet) == source_position(KEY, client, prefix) * BACKENDS >> 32


@BOTH
@pytest.mark.parametrize("protocol", TRANSPORT)
def test_drop(balancer, family, protocol):
    configure(balancer, family, spread(family, fragments=FRAGMENTS_DROP, protocol=TRANSPORT[protocol]))
    for packet in datagram(family, protocol):
        assert went_to(balancer, packet) == "dropped_fragment"


@BOTH
@pytest.mark.parametrize("protocol", TRANSPORT)
def test_drop_beside_any_protocol(balancer, family, protocol):
    """What is for a service is not another's, whatever becomes of it; of the others nobody knows more than the address."""
    configure(balancer, family, spread(family, fragments=FRAGMENTS_DROP, protocol=TRANSPORT[protocol]),
              spread(family, port=0, protocol=ANY))
    first, *rest = datagram(family, protocol)
    assert went_to(balancer, first) == "dropped_fragment"
    at = position(KEY, CLIENT[family], VIP[family], 0, 0, 0) * BACKENDS >> 32
    for packet in rest:
        assert went_to(balancer, packet) == at


@BOTH
@pytest.mark.parametrize("protocol", TRANSPORT)
def test_early_beside_any_protocol(balancer, family, protocol):
    """What comes before the first one is taken for the service of any protocol's, what comes behind it is not."""
    configure(balancer, family, spread(family, protocol=TRANSPORT[protocol]), spread(family, port=0, protocol=ANY))
    at = position(KEY, CLIENT[family], VIP[family], 0, 0, 0) * BACKENDS >> 32
    for port in range(40001, 40009):
        first, *rest = datagram(family, protocol, port)
        assert went_to(balancer, rest[-1]) == at
        for packet in (first, *rest):
            assert went_to(balancer, packet) == flow_backend(family, TRANSPORT[protocol], port)


@BOTH
def test_any_protocol(balancer, family):
    """By the addresses alone, as all that such a service gets."""
    configure(balancer, family, spread(family, port=0, protocol=ANY, fragments=FRAGMENTS_DROP))
    at = position(KEY, CLIENT[family], VIP[family], 0, 0, 0) * BACKENDS >> 32
    for packet in reversed(datagram(family)):
        assert went_to(balancer, packet) == at


@BOTH
@pytest.mark.parametrize("mode", (IPIP, GUE))
def test_in_a_tunnel(balancer, family, mode):
    balancer.configure([Service(VIP[family], 443, PROTO_UDP, [(0xffffffff, 0)], forward=mode)],
                       [Backend(LAN[family].format(0))])
    label = position(KEY, CLIENT[family], VIP[family], 40001, 443, PROTO_UDP)
    for packet in datagram(family):
        verdict, action, got = balancer.verdict_of(frame_of(packet))
        assert (verdict, action) == ("forwarded", bpf.XDP_TX)
        sent = in_tunnel(packet, family, LAN[family].format(0), label, gue=mode == GUE)
        assert got.hex() == bytes(link_layer(HOST, neighbour_mac("lan0"), ()) / sent).hex()


@BOTH
def test_to_no_service(balancer, family):
    """To another address they pass; of those to a service's address only the first one says that it is for none."""
    configure(balancer, family, spread(family))
    first, later, *_ = datagram(family, port=9)
    assert went_to(balancer, first) == "passed_no_service"
    for packet in (first, later):
        packet = packet.copy()
        packet.dst = "192.0.2.99" if family == 4 else "2001:db8::99"
        assert went_to(balancer, packet) == "passed_no_service"


@BOTH
def test_of_icmp(balancer, family):
    configure(balancer, family, spread(family))
    if family == 4:
        parts = fragment(IP(bytes(IP(src=CLIENT[4], dst=VIP[4], id=next(ids)) / ICMP() / Raw(bytes(900)))), 400)
        for packet in parts:
            assert went_to(balancer, packet) == "dropped_fragment"
    else:
        packet = IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(id=7, m=1, nh=58) / Raw(b"\x80" + bytes(63))
        assert went_to(balancer, packet) == "dropped_fragment"


def test_atomic(balancer):
    """A fragment that is the whole (RFC 6946) is a packet like others, and nothing is remembered of it."""
    configure(balancer, 6, spread(6, protocol=PROTO_TCP))
    header = IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(id=77)
    assert went_to(balancer, header / TCP(sport=40001, dport=443)) == flow_backend(6, PROTO_TCP)
    later = IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(id=77, offset=9, nh=6) / Raw(bytes(64))
    assert went_to(balancer, later) == "dropped_fragment"


@pytest.mark.parametrize("fragments", (0, FRAGMENTS_DROP))
def test_atomic_in_a_fragment(balancer, fragments):
    """Another fragment header, of a whole, behind that of a first fragment does not make a whole of it."""
    configure(balancer, 6, spread(6, protocol=PROTO_TCP, fragments=fragments))
    header = IPv6(src=CLIENT[6], dst=VIP[6])
    first = header / IPv6ExtHdrFragment(id=78, m=1) / IPv6ExtHdrFragment(id=79) / TCP(sport=40001, dport=443)
    later = header / IPv6ExtHdrFragment(id=78, offset=4, nh=44) / Raw(bytes(64))
    backend = "dropped_fragment" if fragments else flow_backend(6, PROTO_TCP)
    assert went_to(balancer, first) == went_to(balancer, later) == backend


@pytest.mark.parametrize("length", range(9))
@BOTH
def test_first_without_header(balancer, family, length):
    """Ports alone will not do: who makes such ones means to get past somebody."""
    configure(balancer, family, spread(family))
    ports = bytes(UDP(sport=40001, dport=443))[:length]
    packet = IP(src=CLIENT[4], dst=VIP[4], flags="MF", proto=17) if family == 4 else IPv6(
        src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(m=1, nh=17)
    packet = packet / Raw(ports)
    assert went_to(balancer, packet) == ("dropped_malformed" if length < 8 else flow_backend(family, PROTO_UDP))


def test_behind_other_headers(balancer):
    """The fragment header has options before it, and the first fragment options behind it: RFC 8200."""
    configure(balancer, 6, spread(6))
    front = IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrHopByHop()
    first = front / IPv6ExtHdrFragment(id=5, m=1) / IPv6ExtHdrDestOpt() / UDP(sport=40001, dport=443, len=99) / Raw(bytes(40))
    later = front / IPv6ExtHdrFragment(id=5, offset=7, nh=60) / Raw(bytes(43))
    assert went_to(balancer, later) == "dropped_fragment"  # of UDP or not: nobody knows
    assert went_to(balancer, first) == went_to(balancer, later) == flow_backend(6, PROTO_UDP)


@BOTH
def test_forgotten_in_time(balancer, family):
    """A second of one tick: what is remembered counts for five whole ones."""
    tables = balancer.configure([spread(family, protocol=PROTO_TCP)], [Backend(LAN[family].format(0))] * BACKENDS)
    first, later, *_ = datagram(family, "tcp")
    balancer.publish(tables, hz=1)
    assert balancer.verdict_of(frame_of(first))[0] == "forwarded"
    start = balancer.jiffies()
    assert balancer.verdict_of(frame_of(later))[0] == "forwarded"
    while balancer.jiffies() - start <= 6:
        pass
    assert balancer.verdict_of(frame_of(later))[0] == "dropped_fragment"


@BOTH
def test_opens_nothing(balancer, family):
    """In a moved arc, and where all flows are kept: a first fragment goes where its flow would, and leaves no entry."""
    arcs = [(0xffffffff, 0, 1)]
    tables = balancer.configure(
        [Service(VIP[family], 443, PROTO_TCP, arcs, owners=[0, 1], track=2, index=1)],
        [Backend(LAN[family].format(0), next_hop=(0x020000000000 + i) << 16, stamp=balancer.jiffies()) for i in range(2)])
    tables_start, before = 4096, bytes(balancer.object.mapped("flows", 64))
    kept = bytes(balancer.memory[tables_start:tables.end])
    upper = TCP(sport=40001, dport=443, flags="S") / Raw(bytes(800))
    if family == 4:
        parts = fragment(IP(bytes(IP(src=CLIENT[4], dst=VIP[4], id=next(ids)) / upper)), 400)
    else:
        whole = IPv6(bytes(IPv6(src=CLIENT[6], dst=VIP[6]) / upper))
        parts = fragment6(IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(id=next(ids)) / whole.payload, 500)
    for packet in parts:
        assert went_to(balancer, packet) == 1  # the former owner
    assert bytes(balancer.object.mapped("flows", 64)) == before
    assert bytes(balancer.memory[tables_start:tables.end]) == kept


@BOTH
@pytest.mark.parametrize("keys", ({}, {"affinity": SOURCE, "prefix": 24, "fragments": FRAGMENTS_SOURCE}), ids=("track", "source"))
@pytest.mark.parametrize("around", (PROTO_UDP, ANY), ids=("udp", "any"))
def test_early_for_another_service(balancer, family, keys, around):
    """What came early was taken for the address's only service; the first says that it is for one around it."""
    network = "192.0.2.0/28" if family == 4 else "2001:db8::/120"
    configure(balancer, family, spread(family, arcs=[(0xffffffff, 0)], owners=[1], **keys),
              Service(network, 53 if around else 0, around, [(0xffffffff, 0)], owners=[2], index=2))
    for _ in range(3):
        first, later, last, *_ = datagram(family, port=53)
        assert went_to(balancer, last) == (1 if around else 2)
        for packet in (first, later, last):
            assert went_to(balancer, packet) == 2
