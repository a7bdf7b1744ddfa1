# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ICMP to a service's address: errors go where the flow goes that they are about, pings are answered, the rest passes."""
import ipaddress
import itertools

import bpf
import pytest
from harness import KEY, neighbour_mac
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert, IPOption_Timestamp
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6MLReport2, ICMPv6ND_NA,
                                ICMPv6ND_NS, ICMPv6ND_Redirect, ICMPv6PacketTooBig, ICMPv6ParamProblem,
                                ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import ANY, GUE, L2, SOURCE, Backend, Service, position, source_position
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from test_forward import HOST, LAN, MODES, ROUTER, TAGS, aged, halves, in_tunnel, link_layer

WHOLE = [(0xffffffff, 0)]
CLIENT = {4: "198.51.100.7", 6: "2001:db8:1::7"}
VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
OTHER = {4: "192.0.2.11", 6: "2001:db8::11"}
HOP = {4: "203.0.113.9", 6: "2001:db8:9::9"}  # the router that complains
ERRORS = {
    4: {"unreachable": ICMP(type=3, code=1), "too big": ICMP(type=3, code=4, nexthopmtu=1400),
        "quench": ICMP(type=4), "time exceeded": ICMP(type=11), "parameter": ICMP(type=12)},
    6: {"unreachable": ICMPv6DestUnreach(), "too big": ICMPv6PacketTooBig(mtu=1400),
        "time exceeded": ICMPv6TimeExceeded(), "parameter": ICMPv6ParamProblem()},
}
EVERY_ERROR = [(family, name) for family in ERRORS for name in ERRORS[family]]


def ip(family, source, destination, **fields):
    return (IP if family == 4 else IPv6)(src=source, dst=destination, **fields)


def answer_of(family, protocol=PROTO_TCP, client_port=40001, port=443, **fields):
    """A packet of the service to its client, as routers quote it."""
    transport = TCP(sport=port, dport=client_port, flags="A", seq=7) if protocol == PROTO_TCP else UDP(
        sport=port, dport=client_port)
    return ip(family, VIP[family], CLIENT[family], **fields) / transport / Raw(bytes(40))


def error(family, name, quoted, source=None, destination=None, **fields):
    return ip(family, source or HOP[family], destination or VIP[family], **fields) / ERRORS[family][name].copy() / Raw(
        bytes(quoted))


def frame_of(packet, tags="untagged"):
    return bytes(link_layer(ROUTER, HOST, TAGS[tags]) / packet)


@pytest.mark.parametrize("protocol", (PROTO_TCP, PROTO_UDP))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("family,name", EVERY_ERROR)
def test_error_goes_to_the_backend(balancer, family, name, tags, mode, protocol):
    outer = family if mode == "l2" else int(mode[-1])
    backend = LAN[outer].format(0)
    balancer.configure([Service(VIP[family], 443, protocol, WHOLE, owners=[5], forward=MODES[mode], index=3)],
                       [Backend("10.0.0.99")] * 5 + [Backend(backend)])
    packet = error(family, name, answer_of(family, protocol))
    counted = balancer.counter("service_stats", 3)[0]
    verdict, action, got = balancer.verdict_of(frame_of(packet, tags))
    label = position(KEY, CLIENT[family], VIP[family], 40001, 443, protocol)
    sent = aged(packet) if mode == "l2" else in_tunnel(packet, outer, backend, label, gue=MODES[mode] == GUE)
    assert (verdict, action) == ("forwarded", bpf.XDP_TX)
    assert got.hex() == bytes(link_layer(HOST, neighbour_mac("lan0"), TAGS[tags]) / sent).hex()
    assert balancer.counter("service_stats", 3)[0] == counted + 1


@pytest.mark.parametrize("affinity", ("flow", "source"))
@pytest.mark.parametrize("family", (4, 6))
def test_error_goes_where_the_clients_packets_go(balancer, family, affinity):
    prefix = 24 if family == 4 else 112
    service = halves(family, *((SOURCE, prefix) if affinity == "source" else (0,)))
    balancer.configure([service], [Backend(LAN[family].format(0)), Backend(LAN[family].format(1))])
    actions = set()
    for i in range(1, 40):
        client = str(ipaddress.ip_address(CLIENT[family]) + 65536 * i)
        quoted = ip(family, VIP[family], client) / TCP(sport=443, dport=1000 + i)
        frame = frame_of(error(family, "too big", quoted))
        request = frame_of(ip(family, client, VIP[family]) / TCP(sport=1000 + i, dport=443))
        at = source_position(KEY, client, prefix) if affinity == "source" else position(
            KEY, client, VIP[family], 1000 + i, 443, PROTO_TCP)
        told, asked = balancer.lookup(frame), balancer.lookup(request)
        assert (told["position"], told["backend"], told["verdict"]) == (at, asked["backend"], "forwarded")
        action = balancer.run(frame)[0]
        assert action == balancer.run(request)[0] == (bpf.XDP_TX if service.owner(at) == 0 else bpf.XDP_REDIRECT)
        actions.add(action)
    assert len(actions) == 2


SERVICES = {
    "any port": (dict(port=0), PROTO_TCP),
    "range": (dict(port=(400, 500)), PROTO_UDP),
    "prefix": (dict(port=443, prefix=True), PROTO_TCP),
    "any port of a prefix": (dict(port=0, prefix=True), PROTO_UDP),
    "any protocol": (dict(port=0, protocol=ANY), PROTO_TCP),
    "any protocol of a prefix": (dict(port=0, protocol=ANY, prefix=True), PROTO_UDP),
}


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("keys,protocol", SERVICES.values(), ids=SERVICES)
def test_services_are_found_as_for_clients(balancer, family, keys, protocol):
    address = str(ipaddress.ip_network(f"{VIP[family]}/{24 if family == 4 else 64}", strict=False)) if keys.get(
        "prefix") else VIP[family]
    service = Service(address, keys["port"], keys.get("protocol", protocol), WHOLE, owners=[1], index=7)
    balancer.configure([service], [Backend("10.0.0.99"), Backend(LAN[family].format(0))])
    request = balancer.lookup(frame_of(ip(family, CLIENT[family], VIP[family]) / (
        TCP(sport=40001, dport=443) if protocol == PROTO_TCP else UDP(sport=40001, dport=443))))
    told = balancer.lookup(frame_of(error(family, "unreachable", answer_of(family, protocol))))
    assert told["verdict"] == "forwarded" and told["service"] == 7
    assert {k: told[k] for k in ("position", "backend")} == {k: request[k] for k in ("position", "backend")}


def test_quoted_protocol_without_ports(balancer):
    """Of a service of any protocol."""
    balancer.configure([Service(VIP[4], 0, ANY, WHOLE)], [Backend("10.0.0.11")])
    quoted = IP(src=VIP[4], dst=CLIENT[4], proto=50) / Raw(bytes(30))
    told = balancer.lookup(frame_of(error(4, "unreachable", quoted)))
    assert told["verdict"] == "forwarded"
    assert told["position"] == balancer.lookup(frame_of(IP(src=CLIENT[4], dst=VIP[4], proto=50) / Raw(bytes(30))))["position"]


OPTIONS = {
    "an option": (4, IP(src=VIP[4], dst=CLIENT[4], options=[IPOption_Router_Alert()])),
    "many options": (4, IP(src=VIP[4], dst=CLIENT[4], options=[IPOption_Timestamp(flg=0, timestamp=1)] * 3)),
    "a first fragment": (4, IP(src=VIP[4], dst=CLIENT[4], flags="MF")),
    "hop-by-hop": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrHopByHop()),
    "routing": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrRouting(addresses=["2001:db8::9"])),
    "destination": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrDestOpt()),
    "authentication": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / AH(nh=6, payloadlen=4, spi=1, icv=bytes(12))),
    "first fragment": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrFragment(m=1)),
    "five of them": (6, IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting()
                     / IPv6ExtHdrFragment(m=1) / IPv6ExtHdrDestOpt()),
}


def serving(balancer, forward=L2):
    services = [Service(VIP[family], port, protocol, WHOLE, owners=[backend], forward=forward)
                for family, backend in ((4, 0), (6, 1)) for port, protocol in ((443, PROTO_TCP), (53, PROTO_UDP))]
    balancer.configure(services, [Backend("10.0.0.11"), Backend("fd00::11")])
    return balancer


@pytest.mark.parametrize("family,header", OPTIONS.values(), ids=OPTIONS)
def test_quoted_headers_in_front_of_the_ports(balancer, family, header):
    quoted = header.copy() / TCP(sport=443, dport=40001)
    told = serving(balancer).lookup(frame_of(error(family, "too big", quoted)))
    assert (told["verdict"], told["position"]) == (
        "forwarded", position(KEY, CLIENT[family], VIP[family], 40001, 443, PROTO_TCP))


NOT_OURS = {
    "about another address": lambda f: error(f, "unreachable", ip(f, OTHER[f], CLIENT[f]) / TCP(sport=443)),
    "about the client's packet": lambda f: error(f, "unreachable", ip(f, CLIENT[f], VIP[f]) / TCP(dport=443)),
    "about a port without service": lambda f: error(f, "unreachable", answer_of(f, port=80)),
    "about UDP on TCP's port": lambda f: error(f, "unreachable", answer_of(f, PROTO_UDP)),
    "about another protocol": lambda f: error(f, "unreachable", ip(f, VIP[f], CLIENT[f]) / Raw(bytes(30))),
    "a quote without ports": lambda f: error(f, "unreachable", bytes(answer_of(f))[:23 if f == 4 else 43]),
    "a quote within its header": lambda f: error(f, "unreachable", bytes(answer_of(f))[:19 if f == 4 else 39]),
    "no quote": lambda f: error(f, "unreachable", b""),
    "a quote of the other version": lambda f: error(f, "unreachable", answer_of(10 - f)),
}
OF_IPV4 = {
    "a redirect": ICMP(type=5) / Raw(bytes(answer_of(4))),
    "an echo reply": ICMP(type=0) / Raw(b"data"),
    "a timestamp request": ICMP(type=13),
    "a quote of a later fragment": ICMP(type=3) / Raw(bytes(answer_of(4, frag=5))),
    "a quote with a short header": ICMP(type=3) / Raw(b"\x44" + bytes(answer_of(4))[1:]),
}
OF_IPV6 = {
    "an echo reply": ICMPv6EchoReply(),
    "a neighbour solicitation": ICMPv6ND_NS(tgt=VIP[6]),
    "a neighbour advertisement": ICMPv6ND_NA(tgt=HOP[6]),
    "a redirect": ICMPv6ND_Redirect(tgt=HOP[6], dst=VIP[6]) / Raw(bytes(answer_of(6))),
    "a listener report": ICMPv6MLReport2(),
    "a private error": ICMPv6DestUnreach(type=100) / Raw(bytes(answer_of(6))),
    "a quote of a later fragment": ICMPv6DestUnreach() / IPv6(src=VIP[6], dst=CLIENT[6]) / IPv6ExtHdrFragment(
        offset=5, nh=6) / Raw(bytes(answer_of(6))[40:]),
    "a quote with seven extension headers": ICMPv6DestUnreach() / Raw(bytes(
        IPv6(src=VIP[6], dst=CLIENT[6], nh=60) / Raw((b"\x3c\0" + bytes(6)) * 6 + b"\x06\0" + bytes(6)) / TCP(sport=443))),
    "a quote with its ports behind what is looked at": ICMPv6DestUnreach() / Raw(bytes(
        IPv6(src=VIP[6], dst=CLIENT[6], nh=60) / Raw(b"\x06\x80" + bytes(6) + bytes(TCP(sport=443))[:4] + bytes(1020))
        / TCP(sport=443))),
    "a quote that ends in extension headers": ICMPv6DestUnreach() / Raw(bytes(
        IPv6(src=VIP[6], dst=CLIENT[6], nh=60) / Raw(b"\x06\1" + bytes(6)))),
}
PASSING = [*[(name, make(family)) for family in (4, 6) for name, make in NOT_OURS.items()],
           *[(name, IP(src=HOP[4], dst=VIP[4]) / packet) for name, packet in OF_IPV4.items()],
           *[(name, IPv6(src=HOP[6], dst=VIP[6], hlim=255) / packet) for name, packet in OF_IPV6.items()]]


@pytest.mark.parametrize("packet", [p for _, p in PASSING], ids=[f"IPv{p.version}: {name}" for name, p in PASSING])
def test_what_is_about_nothing_of_ours_passes(balancer, packet):
    frame = frame_of(packet)
    assert serving(balancer).verdict_of(frame) == ("passed_icmp", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("family", (4, 6))
def test_truncated(balancer, family):
    whole = bytes(error(family, "unreachable", b"", **{"proto": 1} if family == 4 else {"nh": 58}))
    header = 20 if family == 4 else 40
    for length in range(8):
        packet = bytearray(whole[:header + length])
        if family == 4:
            packet[2:4] = (header + length).to_bytes(2, "big")
        else:
            packet[4:6] = length.to_bytes(2, "big")
        frame = bytes(Ether(type=0x0800 if family == 4 else 0x86dd)) + packet
        assert serving(balancer).verdict_of(frame) == ("dropped_malformed", bpf.XDP_DROP, frame)


# Echo

def ping(family, tos=0, hops=9, source=None, destination=None, data=b"data", **fields):
    if family == 4:
        return IP(src=source or CLIENT[4], dst=destination or VIP[4], tos=tos, ttl=hops, id=4711, **fields) / ICMP(
            type=8, id=5, seq=6) / Raw(data)
    return IPv6(src=source or CLIENT[6], dst=destination or VIP[6], tc=tos, hlim=hops, fl=0x12345, **fields) / (
        ICMPv6EchoRequest(id=5, seq=6, data=data))


def pong(request):
    """DSCP stays, what routers marked in ECN does not."""
    if request.version == 4:
        return IP(src=request.dst, dst=request.src, tos=request.tos & ~3, ttl=64, id=4711, flags=request.flags) / ICMP(
            type=0, id=5, seq=6) / request[Raw]
    return IPv6(src=request.dst, dst=request.src, tc=request.tc & ~3, hlim=64, fl=0x12345) / ICMPv6EchoReply(
        id=5, seq=6, data=request[ICMPv6EchoRequest].data)


@pytest.mark.parametrize("family,tags,tos,length,hops", itertools.product(
    (4, 6), TAGS, (0, 0xb8, 0xbb), (0, 1, 56, 1400), (1, 64, 255)))
def test_echo(balancer, family, tags, tos, length, hops):
    request = ping(family, tos, hops, data=bytes(i & 0xff for i in range(length)))
    frame = frame_of(request, tags)
    assert serving(balancer).lookup(frame)["verdict"] == "answered_echo"
    verdict, action, got = balancer.verdict_of(frame)
    assert (verdict, action) == ("answered_echo", bpf.XDP_TX)
    assert got.hex() == bytes(link_layer(HOST, ROUTER, TAGS[tags]) / pong(request)).hex()


def test_echo_of_every_checksum(balancer):
    """It is updated and not summed anew: try many, carries included."""
    serving(balancer)
    for n in range(600):
        for family in (4, 6):
            request = ping(family, data=(n * 109).to_bytes(3, "big"))
            assert balancer.run(frame_of(request))[1].hex() == bytes(link_layer(HOST, ROUTER, []) / pong(request)).hex()


@pytest.mark.parametrize("family", (4, 6))
def test_wrong_checksum_stays_wrong(balancer, family):
    request = ping(family)
    frame = bytearray(frame_of(request))
    frame[-1] ^= 1
    expected = bytearray(bytes(link_layer(HOST, ROUTER, []) / pong(request)))
    expected[-1] ^= 1
    assert serving(balancer).verdict_of(bytes(frame)) == ("answered_echo", bpf.XDP_TX, bytes(expected))


@pytest.mark.parametrize("family", (4, 6))
def test_echo_to_an_address_of_a_prefix(balancer, family):
    network = ipaddress.ip_network(f"{VIP[family]}/{24 if family == 4 else 64}", strict=False)
    balancer.configure([Service(str(network), 443, PROTO_TCP, WHOLE)], [Backend("10.0.0.11")])
    for address, verdict in ((network[77], "answered_echo"), (network[-1] + 1, "passed_no_service")):
        assert balancer.verdict_of(frame_of(ping(family, destination=str(address))))[0] == verdict


SILENT = {
    "an option": ping(4, options=[IPOption_Router_Alert()]),
    "no source": ping(4, source="0.0.0.0"),
    "from loopback": ping(4, source="127.0.0.1"),
    "from a group": ping(4, source="224.0.0.1"),
    "from broadcast": ping(4, source="255.255.255.255"),
    "IPv6, no source": ping(6, source="::"),
    "IPv6, from loopback": ping(6, source="::1"),
    "IPv6, from a group": ping(6, source="ff02::1"),
}


@pytest.mark.parametrize("packet", SILENT.values(), ids=SILENT)
def test_echo_that_is_left_to_the_host(balancer, packet):
    frame = frame_of(packet)
    assert serving(balancer).verdict_of(frame) == ("passed_icmp", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("family", (4, 6))
def test_any_protocol_takes_pings_but_no_neighbour_discovery(balancer, family):
    balancer.configure([Service(VIP[family], 0, ANY, WHOLE)], [Backend(LAN[family].format(0))])
    assert balancer.verdict_of(frame_of(ping(family)))[0] == "forwarded"
    assert balancer.verdict_of(frame_of(error(family, "unreachable", b"x")))[0] == "forwarded"
    if family == 6:
        frame = frame_of(IPv6(src=HOP[6], dst=VIP[6], hlim=255) / ICMPv6ND_NS(tgt=VIP[6]))
        assert balancer.verdict_of(frame) == ("passed_icmp", bpf.XDP_PASS, frame)


def test_echo_to_others_passes(balancer):
    for family in (4, 6):
        frame = frame_of(ping(family, destination=OTHER[family]))
        assert serving(balancer).verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)
