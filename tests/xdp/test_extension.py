# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packets for a service behind IPv6 extension headers: they go as they would without, up to six headers (RFC 8200)."""
import struct

import bpf
import pytest
from harness import KEY, mac_of, neighbour_mac
from scapy.layers.inet import TCP
from scapy.layers.inet6 import (IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting,
                                PadN)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import ANY, GUE, Backend, Service, position
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from test_flows import DATA, FLAGS, OWNER, PREVIOUS, Flows
from test_forward import CLIENT, HOST, LAN, MODES, ROUTER, TAGS, VIP, WHOLE, aged, in_tunnel, link_layer, transport

MOST = 6
FARTHEST = 0x1ff  # where in the frame the header of TCP may begin


def stack(*headers):
    """The headers one behind the other, behind IPv6's."""
    packet = IPv6(src=CLIENT[6], dst=VIP[6], tc=0xb9, hlim=17, fl=0x12345)
    for header in headers:
        packet /= header.copy()
    return packet


HEADERS = {
    "hop-by-hop": [IPv6ExtHdrHopByHop()],
    "destination": [IPv6ExtHdrDestOpt()],
    "long destination": [IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(200))])],
    "routing": [IPv6ExtHdrRouting(type=4, segleft=0)],
    "authentication": [AH(nh=60, payloadlen=4, icv=bytes(12)), IPv6ExtHdrDestOpt()],
    "an atomic fragment": [IPv6ExtHdrFragment(id=7)],
    "each": [IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(type=4, segleft=0), IPv6ExtHdrFragment(id=7),
             IPv6ExtHdrDestOpt()],
    "as many as are looked through": [IPv6ExtHdrDestOpt()] * MOST,
}


def serve(balancer, mode, protocol):
    backend = LAN[6 if mode == "l2" else int(mode[-1])].format(0)
    balancer.configure([Service(VIP[6], 443, protocol, WHOLE, forward=MODES[mode])], [Backend(backend)])


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("protocol", (PROTO_TCP, PROTO_UDP))
def test_forward(balancer, headers, mode, protocol):
    """To the position of the same flow without extension headers, which stay."""
    serve(balancer, mode, protocol)
    packet = stack(*headers) / transport(protocol) / Raw(b"payload")
    label = position(KEY, CLIENT[6], VIP[6], 40001, 443, protocol)
    for tags in TAGS.values():
        frame = bytes(link_layer(ROUTER, HOST, tags) / packet)
        assert balancer.lookup(frame)["position"] == label
        verdict, action, got = balancer.verdict_of(frame)
        outer = int(mode[-1]) if mode != "l2" else 6
        sent = aged(packet) if mode == "l2" else in_tunnel(packet, outer, LAN[outer].format(0), label,
                                                           gue=MODES[mode] == GUE)
        assert (verdict, action) == ("forwarded", bpf.XDP_TX)
        assert got.hex() == bytes(link_layer(mac_of("lan0"), neighbour_mac("lan0"), tags) / sent).hex()


def ended(packet, length):
    """The packet's first bytes, as a packet of that length."""
    data = bytearray(bytes(packet)[:length])
    data[4:6] = (length - 40).to_bytes(2, "big")
    return bytes(data)


REFUSED = {
    "one too many": (bytes(stack(*[IPv6ExtHdrDestOpt()] * (MOST + 1)) / transport(PROTO_TCP)), "dropped_extensions"),
    "too many bytes": (bytes(stack(*[IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(250))])] * 3) / transport(PROTO_TCP)),
                       "dropped_extensions"),
    "ends in a header": (ended(stack(IPv6ExtHdrDestOpt(), IPv6ExtHdrDestOpt()), 52), "dropped_malformed"),
    "says that one is longer than all": (ended(stack(IPv6ExtHdrDestOpt(len=9), IPv6ExtHdrDestOpt()), 56),
                                         "dropped_malformed"),
    "says that one is far longer than all": (ended(stack(IPv6ExtHdrDestOpt(len=255), IPv6ExtHdrDestOpt()), 56),
                                             "dropped_malformed"),
    "a later fragment that ends in its header": (ended(stack(IPv6ExtHdrFragment(offset=9, nh=17)), 44),
                                                 "dropped_malformed"),
    "a later fragment beyond its length": (ended(stack(IPv6ExtHdrFragment(offset=9, nh=17)), 44) + bytes(8),
                                           "dropped_malformed"),
    "a later fragment too far behind": (
        bytes(stack(IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(250))]),
                    IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(210))]), IPv6ExtHdrFragment(offset=9, nh=17)) /
              Raw(bytes(64))), "dropped_extensions"),
    "ends before the ports": (ended(stack(IPv6ExtHdrDestOpt()) / transport(PROTO_TCP), 50), "dropped_malformed"),
    "another port": (bytes(stack(IPv6ExtHdrDestOpt()) / transport(PROTO_TCP, dport=444)), "passed_no_service"),
    "no next header": (bytes(stack(IPv6ExtHdrDestOpt(nh=59))), "passed_protocol"),
    "ESP behind one": (bytes(stack(IPv6ExtHdrDestOpt(nh=50)) / Raw(bytes(32))), "passed_protocol"),
}


@pytest.mark.parametrize("packet,verdict", REFUSED.values(), ids=REFUSED)
def test_refused(balancer, packet, verdict):
    serve(balancer, "l2", PROTO_TCP)
    frame = bytes(Ether(src=ROUTER, dst=HOST, type=0x86dd)) + packet
    action = bpf.XDP_PASS if verdict.startswith("passed") else bpf.XDP_DROP
    assert balancer.verdict_of(frame) == (verdict, action, frame)
    balancer.configure([], [])
    assert balancer.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)


def test_farthest(balancer):
    serve(balancer, "l2", PROTO_TCP)
    for beyond, verdict in ((0, "forwarded"), (8, "dropped_extensions")):
        octets = FARTHEST - 54 - (FARTHEST - 54) % 8 + beyond
        options = bytes([PROTO_TCP, octets // 8 - 1]) + bytes(octets - 2)
        packet = IPv6(src=CLIENT[6], dst=VIP[6], nh=60) / Raw(options + bytes(transport(PROTO_TCP)))
        assert balancer.verdict_of(bytes(Ether() / packet))[0] == verdict


def test_cut_short(balancer):
    """At every length, with the length that belongs to it in the header or not."""
    serve(balancer, "l2", PROTO_TCP)
    whole = bytes(Ether() / stack(*HEADERS["each"]) / transport(PROTO_TCP))
    for length in range(54, len(whole)):
        frame = whole[:length]
        assert balancer.verdict_of(frame) == ("dropped_malformed", bpf.XDP_DROP, frame)
        frame = whole[:18] + struct.pack(">H", length - 54) + whole[20:length]
        assert balancer.verdict_of(frame) == ("dropped_malformed", bpf.XDP_DROP, frame)


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_any_protocol(balancer, headers):
    balancer.configure([Service(VIP[6], 0, ANY, WHOLE)], [Backend("fd00::11")])
    for layer in (transport(PROTO_TCP), transport(PROTO_UDP)):
        got = balancer.lookup(bytes(Ether() / stack(*headers) / layer))
        assert (got["verdict"], got["position"]) == ("forwarded", position(KEY, CLIENT[6], VIP[6], 0, 0, 0))


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_moved_arc(balancer, headers):
    """Flags and sequence numbers are read behind them: a flow opens, and goes on, with headers or without."""
    flows = Flows(balancer, family=6)

    def send(flags, sequence, dressed, sport=1000, data=b""):
        layer = TCP(sport=sport, dport=443, flags=sum(FLAGS[f] for f in flags), seq=sequence) / Raw(data)
        verdict, _, out = balancer.verdict_of(bytes(Ether() / stack(*headers if dressed else []) / layer))
        assert verdict == "forwarded"
        return out[5]

    assert send("S", 100, True) == OWNER and flows.entry().opening == OWNER and flows.entry().sequence == 100
    assert send("A", 101, False) == OWNER and flows.entry().established == OWNER
    assert send("A", 101, True, data=DATA) == OWNER
    assert send("A", 5, True, sport=1001) == PREVIOUS
    assert send("S", 100, False, sport=1002) == OWNER and send("A", 101, True, sport=1002) == OWNER
