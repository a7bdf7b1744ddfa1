# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Frames that lie in several buffers, as those of more than a page do: the data plane sees the first buffer, and the whole
goes where it would in one. Lengths around the ends of pages, and the largest that IP has.
"""
import itertools

import bpf
import pytest
from harness import KEY, mac_of, neighbour_mac
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import GUE, IPIP, L2, Backend, Service, position
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from test_decap import GUE as GUE_HEADER
from test_decap import OUTER, decap, run, wrap  # noqa: F401
from test_forward import CLIENT, HOST, LAN, ROUTER, TAGS, VIP, WHOLE, aged, in_tunnel, link_layer, network, transport

LENGTHS = (3000, 3500, 4000, 4096, 4200, 9000, 17000, 65000)  # of IP packets
MODES = {"l2": L2, "ipip-4": IPIP, "ipip-6": IPIP, "gue-4": GUE, "gue-6": GUE}


def packet_of(length, family, protocol=PROTO_UDP, **fields):
    header = network(family, **fields) / transport(protocol)
    return header / Raw((bytes(range(251)) * 262)[:length - len(header)])


def serve(balancer, family, mode, protocol=PROTO_UDP):
    backend = LAN[family if mode == "l2" else int(mode[-1])].format(0)
    balancer.configure([Service(VIP[family], 443, protocol, WHOLE, forward=MODES[mode], index=3)], [Backend(backend)])


def as_sent(packet, family, mode, protocol):
    if mode == "l2":
        return aged(packet)
    outer = int(mode[-1])
    label = position(KEY, CLIENT[family], VIP[family], 40001, 443, protocol)
    return in_tunnel(packet, outer, LAN[outer].format(0), label, gue=MODES[mode] == GUE)


@pytest.mark.parametrize("family,mode,tags", itertools.product((4, 6), MODES, TAGS))
def test_forward(balancer, family, mode, tags):
    for length, protocol in itertools.product(LENGTHS, (PROTO_TCP, PROTO_UDP)):
        serve(balancer, family, mode, protocol)
        packet = packet_of(length, family, protocol)
        frame = bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet)
        before = balancer.counter("service_stats", 3)
        verdict, action, got = balancer.verdict_of(frame)
        now = balancer.counter("service_stats", 3)
        sent = as_sent(packet, family, mode, protocol)
        assert (verdict, action) == ("forwarded", bpf.XDP_TX)
        assert got == bytes(link_layer(HOST, neighbour_mac("lan0"), TAGS[tags]) / sent)
        assert (now[0] - before[0], now[1] - before[1]) == (1, len(frame))


@pytest.mark.parametrize("family,mode", itertools.product((4, 6), MODES))
@pytest.mark.parametrize("length", (3000, 9000))
def test_padding_stays_outside(balancer, family, mode, length):
    """Behind the packet's end, which may be in the first buffer or behind it."""
    serve(balancer, family, mode)
    packet, padding = packet_of(length, family), b"\xee" * 5000
    _, _, got = balancer.verdict_of(bytes(Ether(src=ROUTER, dst=HOST) / packet) + padding)
    sent = as_sent(packet, family, mode, PROTO_UDP)
    assert got == bytes(Ether(src=mac_of("lan0"), dst=neighbour_mac("lan0")) / sent) + padding


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("length", LENGTHS)
def test_cut_short(balancer, family, length):
    """A byte less than the IP header says: of a service it is dropped, of others passed on."""
    serve(balancer, family, "l2")
    frame = bytes(Ether(src=ROUTER, dst=HOST) / packet_of(length, family))[:-1]
    assert balancer.verdict_of(frame) == ("dropped_malformed", bpf.XDP_DROP, frame)
    balancer.configure([], [])
    assert balancer.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("outer,inner,tags", itertools.product((4, 6), (4, 6), TAGS))
@pytest.mark.parametrize("udp", (None, GUE_HEADER), ids=("ip", "gue"))
def test_decap(decap, outer, inner, tags, udp):  # noqa: F811
    for length in LENGTHS:
        packet = packet_of(length, inner)
        wrapped = wrap(OUTER[outer], packet, udp)
        frame = bytes(link_layer(ROUTER, HOST, TAGS[tags]) / wrapped)
        expected = bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet)
        assert run(decap, frame) == ("decapsulated", bpf.XDP_PASS, expected)
        assert run(decap, frame[:-1]) == ("passed", bpf.XDP_PASS, frame[:-1])
