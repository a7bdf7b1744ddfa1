# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packets for a service: each frame that leaves is compared whole with one that scapy builds."""
import ipaddress
import itertools

import bpf
import pytest
from harness import HZ_NEVER, KEY, TUNNEL4, TUNNEL6, mac_bytes, mac_of, neighbour_mac
from scapy.layers.inet import IP, TCP, UDP, IPOption_Router_Alert, IPOption_Timestamp
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from tables import GUE, GUE_PORT, IPIP, L2, LOCAL, SOURCE, Backend, Service, position, source_position
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP

WHOLE = [(0xffffffff, 0)]
CLIENT = {4: "198.51.100.7", 6: "2001:db8:1::7"}
VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
LAN = {4: "10.{}.0.11", 6: "fd0{}::11"}
ROUTER, HOST = "02:ff:00:00:00:01", mac_of("lan0")
TAGS = {
    "untagged": [],
    "802.1Q": [Dot1Q(vlan=7, prio=3)],
    "802.1ad": [Dot1AD(vlan=100), Dot1Q(vlan=7)],
}


def link_layer(source, destination, tags):
    frame = Ether(src=source, dst=destination)
    for tag in tags:
        frame /= tag.copy()
    return frame


def network(family, tos=0, ttl=17, **fields):
    if family == 4:
        return IP(src=CLIENT[4], dst=VIP[4], tos=tos, ttl=ttl, id=4711, **fields)
    return IPv6(src=CLIENT[6], dst=VIP[6], tc=tos, hlim=ttl, fl=0x12345, **fields)


def aged(packet):
    """As it goes on: one hop less."""
    packet = type(packet)(bytes(packet))
    if packet.version == 4:
        packet.ttl -= 1
        del packet.chksum
    else:
        packet.hlim -= 1
    return packet


def transport(protocol, sport=40001, dport=443):
    if protocol == PROTO_TCP:
        return TCP(sport=sport, dport=dport, flags="PA", seq=99, window=512)
    return UDP(sport=sport, dport=dport)


def in_tunnel(inner, outer_family, backend, label, gue=False, source=None):
    """The packet as it leaves behind an outer header: RFC 2003, 2473, 4213; draft-ietf-intarea-gue, variant 1."""
    inner = aged(inner)
    number = PROTO_UDP if gue else 4 if inner.version == 4 else 41
    tos = inner.tos if inner.version == 4 else inner.tc
    raw = Raw(bytes(inner))
    if gue:  # no checksum: RFC 768, RFC 6935
        raw = UDP(sport=0xc000 | label & 0x3fff, dport=GUE_PORT, chksum=0) / raw
    if outer_family == 4:
        return IP(src=source or TUNNEL4, dst=backend, ttl=64, id=0, flags="DF", tos=tos, proto=number) / raw
    return IPv6(src=source or TUNNEL6, dst=backend, hlim=64, tc=tos, fl=label & 0xfffff, nh=number) / raw


MODES = {"l2": L2, "ipip-4": IPIP, "ipip-6": IPIP, "gue-4": GUE, "gue-6": GUE}
CASES = itertools.product((4, 6), (PROTO_TCP, PROTO_UDP), MODES, TAGS, ("lan0", "lan1"))


@pytest.mark.parametrize("family,protocol,mode,tags,out", CASES, ids=str)
def test_forward(balancer, family, protocol, mode, tags, out):
    outer = family if mode == "l2" else int(mode[-1])
    backend = LAN[outer].format(out[-1])
    service = Service(VIP[family], 443, protocol, WHOLE, owners=[5], forward=MODES[mode], index=3)
    balancer.configure([service], [Backend("10.0.0.99")] * 5 + [Backend(backend)])
    packet = network(family, tos=0xb9) / transport(protocol) / b"payload"
    frame = bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet)
    counters = balancer.counter("service_stats", 3), balancer.counter("backend_stats", 5)

    verdict, action, got = balancer.verdict_of(frame)

    label = position(KEY, CLIENT[family], VIP[family], 40001, 443, protocol)
    sent = aged(packet) if mode == "l2" else in_tunnel(packet, outer, backend, label, gue=MODES[mode] == GUE)
    expected = bytes(link_layer(mac_of(out), neighbour_mac(out), TAGS[tags] if out == "lan0" else []) / sent)
    assert verdict == "forwarded"
    assert action == (bpf.XDP_TX if out == "lan0" else bpf.XDP_REDIRECT)
    assert got.hex() == expected.hex()
    for before, now in zip(counters, (balancer.counter("service_stats", 3), balancer.counter("backend_stats", 5))):
        assert (now[0] - before[0], now[1] - before[1]) == (1, len(frame))


def leaves(mode, packet, dport=443, protocol=PROTO_TCP):
    """The packet as it leaves towards serve()'s backend."""
    family = packet.version
    if mode == "l2":
        return aged(packet)
    outer = int(mode[-1])
    label = position(KEY, CLIENT[family], VIP[family], 40001, dport, protocol)
    return in_tunnel(packet, outer, LAN[outer].format(0), label, gue=MODES[mode] == GUE)


def serve(balancer, family, mode, port, protocol):
    backend = LAN[family if mode == "l2" else int(mode[-1])].format(0)
    balancer.configure([Service(VIP[family], port, protocol, WHOLE, forward=MODES[mode])], [Backend(backend)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("options", ([IPOption_Router_Alert()], [IPOption_Timestamp(flg=0, timestamp=1)] * 3),
                         ids=("one", "many"))
def test_ipv4_options(balancer, mode, tags, options):
    serve(balancer, 4, mode, 443, PROTO_TCP)
    packet = network(4, options=options) / transport(PROTO_TCP)
    verdict, _, got = balancer.verdict_of(bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet))
    assert verdict == "forwarded"
    expected = link_layer(HOST, neighbour_mac("lan0"), TAGS[tags]) / leaves(mode, packet)
    assert got.hex() == bytes(expected).hex()


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tags", TAGS)
def test_padding_stays_outside(balancer, family, mode, tags):
    """The IP length counts, not the frame's: what Ethernet padded is in neither header's length."""
    serve(balancer, family, mode, 53, PROTO_UDP)
    packet = network(family) / transport(PROTO_UDP, dport=53)
    padding = b"\xee" * 18
    _, _, got = balancer.verdict_of(bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet) + padding)
    expected = link_layer(HOST, neighbour_mac("lan0"), TAGS[tags]) / leaves(mode, packet, 53, PROTO_UDP)
    assert got.hex() == (bytes(expected) + padding).hex()


def test_checksum_of_every_length(balancer):
    """The outer checksum is summed from a constant part: try many lengths, carries included."""
    balancer.configure([Service(VIP[4], 53, PROTO_UDP, WHOLE, forward=IPIP)], [Backend("10.0.0.11")])
    for length in range(0, 1400, 7):
        packet = network(4, tos=length & 0xff) / transport(PROTO_UDP, dport=53) / (b"x" * length)
        _, _, got = balancer.verdict_of(bytes(Ether(src=ROUTER, dst=HOST) / packet))
        assert got[14:34].hex() == bytes(in_tunnel(packet, 4, "10.0.0.11", 0))[:20].hex()


def halves(family, affinity, prefix=0):
    """A service whose flows go to backend 0 below the middle of the ring and to backend 1 from there on."""
    return Service(VIP[family], 443, PROTO_TCP, [(0x7fffffff, 0), (0xffffffff, 1)], owners=[0, 1], affinity=affinity,
                   prefix=prefix)


PREFIXES = [(4, n) for n in (0, 1, 8, 24, 31, 32)] + [(6, n) for n in (0, 1, 56, 63, 64, 65, 127, 128)]


@pytest.mark.parametrize("family,prefix", PREFIXES)
def test_affinity_source(balancer, family, prefix):
    service = halves(family, SOURCE, prefix)
    balancer.configure([service], [Backend(LAN[family].format(0)), Backend(LAN[family].format(1))])
    for last in range(1, 30):
        client = CLIENT[family][:-1] + f"{last:x}" if family == 6 else f"{last * 7}.51.100.{last}"
        at = source_position(KEY, client, prefix)
        header = IP(src=client, dst=VIP[4]) if family == 4 else IPv6(src=client, dst=VIP[6])
        for port in (1024, 65535):
            frame = bytes(Ether() / header / transport(PROTO_TCP, sport=port))
            assert balancer.lookup(frame)["position"] == at
            assert balancer.run(frame)[0] == (bpf.XDP_TX if service.owner(at) == 0 else bpf.XDP_REDIRECT)


@pytest.mark.parametrize("mode", ("ipip", "gue"))
@pytest.mark.parametrize("outer,prefix", ((4, 16), (4, 24), (4, 31), (6, 64), (6, 96), (6, 120)))
def test_tunnel_source_of_each_flow(balancer, mode, outer, prefix):
    """With a prefix as source, what is behind it is the flow's; the outer checksum holds."""
    network = ipaddress.ip_network(f"172.16.0.0/{prefix}" if outer == 4 else f"fd00:5::/{prefix}")
    free = min(32, network.max_prefixlen - prefix)
    mask, backend = (1 << free) - 1, LAN[outer].format(0)
    balancer.configure([Service(VIP[4], 443, PROTO_TCP, WHOLE, forward=GUE if mode == "gue" else IPIP)],
                       [Backend(backend)], **{f"tunnel{outer}": str(network[0]), f"entropy{outer}": mask})
    sources = set()
    for port in range(1, 40):
        packet = IP(src=CLIENT[4], dst=VIP[4], tos=port) / transport(PROTO_TCP, sport=port)
        at = position(KEY, CLIENT[4], VIP[4], port, 443, PROTO_TCP)
        source = str(network[at & mask])
        sources.add(source)
        sent = in_tunnel(packet, outer, backend, at, gue=mode == "gue", source=source)
        _, _, got = balancer.verdict_of(bytes(Ether(src=ROUTER, dst=HOST) / packet))
        assert got.hex() == bytes(Ether(src=HOST, dst=neighbour_mac("lan0")) / sent).hex()
    assert len(sources) > min(mask, 30)


@pytest.mark.parametrize("mode", (L2, IPIP, GUE), ids=("l2", "ipip", "gue"))
@pytest.mark.parametrize("family", (4, 6))
def test_backend_on_this_host(balancer, family, mode):
    """Goes up the host's own stack as it is, and counts as forwarded."""
    balancer.configure([Service(VIP[family], 443, PROTO_TCP, WHOLE, forward=mode, index=1)], [Backend("10.0.0.1", LOCAL)])
    frame = bytes(Ether() / network(family) / transport(PROTO_TCP))
    before = balancer.counter("service_stats", 1)[0]
    assert balancer.verdict_of(frame) == ("forwarded", bpf.XDP_PASS, frame)
    assert balancer.counter("service_stats", 1)[0] == before + 1


@pytest.mark.parametrize("mode", ("l2", "gue-6"))
@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("below", ("lan0", "lan1"))
@pytest.mark.parametrize("kind", (Dot1Q, Dot1AD))
def test_route_through_a_vlan(balancer, mode, tags, below, kind):
    """Frames leave through the interface below with the VLAN's tag in the place of those that they came with."""
    outer = 4 if mode == "l2" else 6
    backend = LAN[outer].format(0)
    hop = int.from_bytes(mac_bytes(neighbour_mac(below)), "big") << 16 | 1
    tables = balancer.configure([Service(VIP[4], 443, PROTO_TCP, WHOLE, forward=MODES[mode])],
                                [Backend(backend, hop, balancer.jiffies())])
    tables.header(2, HZ_NEVER, [(balancer.ifindex["lan2"], bytes(6)),
                                (9999, mac_bytes("02:00:00:00:99:01"), balancer.ifindex[below],
                                 0x8100 if kind == Dot1Q else 0x88a8, 1234)])
    balancer.memory[:tables.end] = bytes(tables.bytes[:tables.end])
    packet = network(4) / transport(PROTO_TCP)
    label = position(KEY, CLIENT[4], VIP[4], 40001, 443, PROTO_TCP)
    sent = aged(packet) if mode == "l2" else in_tunnel(packet, outer, backend, label, gue=True)
    verdict, action, got = balancer.verdict_of(bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet))
    assert (verdict, action) == ("forwarded", bpf.XDP_TX if below == "lan0" else bpf.XDP_REDIRECT)
    expected = link_layer("02:00:00:00:99:01", neighbour_mac(below), [kind(vlan=1234)]) / sent
    assert got.hex() == bytes(expected).hex()


def test_no_backend(balancer):
    balancer.configure([Service(VIP[4], 443, PROTO_TCP, [])], [])
    frame = bytes(Ether() / network(4) / transport(PROTO_TCP))
    assert balancer.verdict_of(frame) == ("dropped_no_backend", bpf.XDP_DROP, frame)


def test_no_headroom(balancer):
    """XDP metadata of the largest size leaves too little room for a header. (Linux 6.3 and later let it be so.)"""
    balancer.configure([Service(VIP[4], 443, PROTO_TCP, WHOLE, forward=IPIP)], [Backend("10.0.0.11")])
    frame = bytes(Ether() / network(4) / transport(PROTO_TCP))
    assert balancer.verdict_of(frame, poison=216)[:2] == ("dropped_no_headroom", bpf.XDP_DROP)
