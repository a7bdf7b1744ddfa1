# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packets that can't go on, and what their sender is told; what routers tell of the balancer's own packets."""
import itertools
import struct

import bpf
import pytest
from harness import HZ_NEVER, TUNNEL4, TUNNEL6, mac_bytes, mac_of, neighbour_mac
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Timestamp
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt,
                                IPv6ExtHdrFragment)
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import ANY, IPIP, L2, LOCAL, Backend, Service
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from test_forward import HOST, LAN, MODES, ROUTER, TAGS, in_tunnel, link_layer
from test_icmp import CLIENT, HOP, VIP, answer_of, error, frame_of, ip, ping

WHOLE = [(0xffffffff, 0)]
OUTER = {"l2": 0, "ipip-4": 20, "ipip-6": 40, "gue-4": 28, "gue-6": 48}
LIMIT = 1000
SECONDS = 600


def request(family, length, protocol=PROTO_TCP, **fields):
    """A packet of so many bytes in all."""
    packet = ip(family, CLIENT[family], VIP[family], **fields) / (
        TCP(sport=40001, dport=443, flags="PA") if protocol == PROTO_TCP else UDP(sport=40001, dport=443))
    missing = length - len(packet)
    return packet / Raw(bytes(i & 0xff for i in range(missing)))


def told(family, about, mtu=None):
    """What the service's address says of a packet: that it is too big, or, without an MTU, that its last hop is gone."""
    if family == 4:
        what = ICMP(type=11) if mtu is None else ICMP(type=3, code=4, nexthopmtu=mtu)
        return IP(src=VIP[4], dst=CLIENT[4], tos=0xc0, ttl=64, id=0, flags="DF") / what / Raw(bytes(about)[:576 - 28])
    what = ICMPv6TimeExceeded() if mtu is None else ICMPv6PacketTooBig(mtu=mtu)
    return IPv6(src=VIP[6], dst=CLIENT[6], tc=0xc0, hlim=64) / what / Raw(bytes(about)[:1280 - 48])


def serve(balancer, family, mode="l2", mtu=0, protocol=PROTO_TCP):
    outer = family if mode == "l2" else int(mode[-1])
    backend = LAN[outer].format(0)
    return balancer.configure([Service(VIP[family], 0 if protocol == ANY else 443, protocol, WHOLE, forward=MODES[mode])],
                              [Backend(backend, int.from_bytes(mac_bytes(neighbour_mac("lan0")), "big") << 16,
                                       balancer.jiffies(), mtu)])


@pytest.mark.parametrize("family,protocol,mode,tags", itertools.product((4, 6), (PROTO_TCP, PROTO_UDP), MODES, TAGS))
def test_too_big(balancer, family, protocol, mode, tags):
    """Up to the way's MTU less the outer header it goes; one byte more and the sender hears of that number."""
    serve(balancer, family, mode, 1400, protocol)
    fits = 1400 - OUTER[mode]
    packet = request(family, fits, protocol)
    verdict, _, got = balancer.verdict_of(frame_of(packet, tags))
    assert verdict == "forwarded" and len(got) == 14 + 4 * len(TAGS[tags]) + 1400
    packet = request(family, fits + 1, protocol)
    frame = frame_of(packet, tags)
    assert balancer.lookup(frame)["verdict"] == "answered_too_big"
    verdict, action, got = balancer.verdict_of(frame)
    assert (verdict, action) == ("answered_too_big", bpf.XDP_TX)
    assert got.hex() == bytes(link_layer(HOST, ROUTER, TAGS[tags]) / told(family, packet, fits)).hex()


@pytest.mark.parametrize("flags", ("", "DF", "MF"))
def test_without_df_too(balancer, flags):
    """No fragment is made here. (A first fragment names no flow: only a service of any protocol takes it.)"""
    serve(balancer, 4, "ipip-4", 1400, ANY if flags == "MF" else PROTO_TCP)
    packet = request(4, 1400, flags=flags)
    assert balancer.verdict_of(frame_of(packet)) == (
        "answered_too_big", bpf.XDP_TX, bytes(link_layer(HOST, ROUTER, []) / told(4, packet, 1380)))


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("length", (577, 700, 1281, 1399, 1400))
def test_every_length_and_checksum(balancer, family, length):
    """Padding behind the packet is not quoted; what is shorter than a quote may be is quoted whole, an odd byte too."""
    serve(balancer, family, "l2", length - 1)
    packet = request(family, length)
    verdict, _, got = balancer.verdict_of(frame_of(packet) + b"\xee" * 9)
    if family == 6 and length <= 1280:
        assert verdict == "dropped_too_big"
    else:
        assert verdict == "answered_too_big"
        assert got.hex() == bytes(link_layer(HOST, ROUTER, []) / told(family, packet, length - 1)).hex()


def test_mtu_of_the_interface_counts_too(balancer):
    """Of the route's and the interface's the smaller one."""
    tables = serve(balancer, 4, "ipip-4", 1450)
    tables.header(2, HZ_NEVER, [(balancer.ifindex["lan0"], mac_bytes(mac_of("lan0")))])
    struct.pack_into("<H", tables.bytes, 64 + 2 * 128 + 4, 1300)
    balancer.memory[:tables.end] = bytes(tables.bytes[:tables.end])
    packet = request(4, 1281)
    assert balancer.verdict_of(frame_of(packet)) == (
        "answered_too_big", bpf.XDP_TX, bytes(link_layer(HOST, ROUTER, []) / told(4, packet, 1280)))
    assert balancer.verdict_of(frame_of(request(4, 1280)))[0] == "forwarded"


@pytest.mark.parametrize("family", (4, 6))
def test_unknown_mtu_limits_nothing(balancer, family):
    tables = serve(balancer, family, "ipip-4", 0)
    tables.header(2, HZ_NEVER, [(balancer.ifindex["lan0"], mac_bytes(mac_of("lan0")))])
    struct.pack_into("<H", tables.bytes, 64 + 2 * 128 + 4, 0)
    balancer.memory[:tables.end] = bytes(tables.bytes[:tables.end])
    assert balancer.verdict_of(frame_of(request(family, 1500)))[0] == "forwarded"


@pytest.mark.parametrize("family", (4, 6))
def test_longer_than_the_link_allows(balancer, family):
    """What the host put together from several packets is none that was too big: 1500 is lan0's MTU."""
    serve(balancer, family, "ipip-4", 1400)
    assert balancer.verdict_of(frame_of(request(family, 1500)))[0] == "answered_too_big"
    assert balancer.verdict_of(frame_of(request(family, 1501)))[0] == "forwarded"


def test_ipv6_hosts_need_send_nothing_smaller(balancer):
    """1280 is the least that is told (RFC 8200), and then what has that and does not fit is lost."""
    serve(balancer, 6, "ipip-6", 1300)
    packet = request(6, 1281)
    assert balancer.verdict_of(frame_of(packet)) == (
        "answered_too_big", bpf.XDP_TX, bytes(link_layer(HOST, ROUTER, []) / told(6, packet, 1280)))
    frame = frame_of(request(6, 1280))
    assert balancer.verdict_of(frame) == ("dropped_too_big", bpf.XDP_DROP, frame)
    assert balancer.verdict_of(frame_of(request(6, 1260)))[0] == "forwarded"


@pytest.mark.parametrize("family,mode,tags,length", itertools.product((4, 6), MODES, TAGS, (60, 61, 576, 1400)))
def test_last_hop(balancer, family, mode, tags, length):
    for hops in (0, 1):
        serve(balancer, family, mode)
        packet = request(family, length, **({"ttl": hops} if family == 4 else {"hlim": hops}))
        frame = frame_of(packet, tags)
        assert balancer.lookup(frame)["verdict"] == "answered_ttl"
        verdict, action, got = balancer.verdict_of(frame)
        assert (verdict, action) == ("answered_ttl", bpf.XDP_TX)
        assert got.hex() == bytes(link_layer(HOST, ROUTER, TAGS[tags]) / told(family, packet)).hex()


def test_ipv4_options_are_quoted(balancer):
    serve(balancer, 4)
    packet = request(4, 1000, ttl=1, options=[IPOption_Timestamp(flg=0, timestamp=1)] * 3)
    assert balancer.verdict_of(frame_of(packet)) == (
        "answered_ttl", bpf.XDP_TX, bytes(link_layer(HOST, ROUTER, []) / told(4, packet)))


def test_last_hop_before_too_big(balancer):
    serve(balancer, 4, "ipip-4", 1400)
    assert balancer.verdict_of(frame_of(request(4, 1400, ttl=1)))[0] == "answered_ttl"


@pytest.mark.parametrize("family", (4, 6))
def test_backend_on_this_host_takes_the_last_hop(balancer, family):
    """It is where the packet was going, and no larger than the host's own link brings."""
    balancer.configure([Service(VIP[family], 443, PROTO_TCP, WHOLE)], [Backend("10.0.0.1", LOCAL, 0, 100)])
    frame = frame_of(request(family, 1400, **({"ttl": 1} if family == 4 else {"hlim": 1})))
    assert balancer.verdict_of(frame) == ("forwarded", bpf.XDP_PASS, frame)


def silent():
    """Whom nothing is told: RFC 1122, 3.2.2; RFC 4443, 2.4 (e)."""
    for family in (4, 6):
        yield "an error", error(family, "unreachable", answer_of(family) / Raw(bytes(1300)))
    for source in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"):
        yield f"from {source}", IP(src=source, dst=VIP[4]) / TCP(dport=443) / Raw(bytes(1300))
    for source in ("::", "::1", "ff02::1"):
        yield f"from {source}", IPv6(src=source, dst=VIP[6]) / TCP(dport=443) / Raw(bytes(1300))


SILENT = list(silent())


@pytest.mark.parametrize("packet", [p for _, p in SILENT], ids=[f"IPv{p.version}: {name}" for name, p in SILENT])
def test_who_is_told_nothing(balancer, packet):
    family = packet.version
    serve(balancer, family, "ipip-4", 1300)
    frame = frame_of(packet)
    assert balancer.verdict_of(frame) == ("dropped_too_big", bpf.XDP_DROP, frame)
    setattr(packet, "ttl" if family == 4 else "hlim", 1)
    frame = frame_of(packet)
    assert balancer.verdict_of(frame) == ("dropped_ttl", bpf.XDP_DROP, frame)


def of_any_protocol():
    yield IP(src=CLIENT[4], dst=VIP[4], frag=9, proto=17) / Raw(bytes(1300)), "dropped_too_big"
    yield IP(src=CLIENT[4], dst=VIP[4], flags="MF") / UDP(dport=53) / Raw(bytes(1300)), "answered_too_big"
    yield IP(src=HOP[4], dst=VIP[4]) / ICMP(type=3) / Raw(bytes(1300)), "dropped_too_big"
    yield IP(src=HOP[4], dst=VIP[4]) / ICMP(type=13) / Raw(bytes(1300)), "dropped_too_big"
    yield ping(4, data=bytes(1300)), "answered_too_big"
    yield IP(src=CLIENT[4], dst=VIP[4], proto=50) / Raw(bytes(1300)), "answered_too_big"
    yield IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(offset=9) / Raw(bytes(1300)), "dropped_too_big"
    yield IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(offset=9) / Raw(
        bytes(1300)), "dropped_too_big"
    yield IPv6(src=CLIENT[6], dst=VIP[6]) / IPv6ExtHdrFragment(m=1) / UDP() / Raw(bytes(1300)), "answered_too_big"
    yield IPv6(src=HOP[6], dst=VIP[6]) / ICMPv6DestUnreach() / Raw(bytes(1300)), "dropped_too_big"
    yield ping(6, data=bytes(1300)), "answered_too_big"


@pytest.mark.parametrize("packet,verdict", of_any_protocol(), ids=itertools.count())
def test_what_a_service_of_any_protocol_is_told_of(balancer, packet, verdict):
    serve(balancer, packet.version, "ipip-4", 1300, ANY)
    assert balancer.verdict_of(frame_of(packet))[0] == verdict


@pytest.mark.parametrize("destination", ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"))
def test_frames_for_everybody_are_not_answered(balancer, destination):
    serve(balancer, 4, "ipip-4", 1300)
    frame = bytes(Ether(src=ROUTER, dst=destination) / request(4, 1400))
    assert balancer.verdict_of(frame)[0] == "dropped_too_big"


def test_limit(balancer):
    """So many a second on each CPU, of both kinds together. (Test runs stay on one; here a second does not end.)"""
    serve(balancer, 4, "ipip-4", 1400)
    frames = [frame_of(request(4, 1400)), frame_of(request(4, 60, ttl=1))]
    before = balancer.verdicts()
    with bpf.one_cpu():
        for i in range(LIMIT):
            assert balancer.run(frames[i % 2])[0] == bpf.XDP_TX
        for frame in frames:
            assert balancer.verdict_of(frame) == ("dropped_answer_limit", bpf.XDP_DROP, frame)
        assert balancer.verdict_of(frame_of(ping(4)))[0] == "answered_echo"
        assert balancer.lookup(frames[0])["verdict"] == "answered_too_big"
    after = balancer.verdicts()
    for name in ("answered_too_big", "answered_ttl"):
        assert after[name] - before[name] == LIMIT // 2


def test_no_headroom(balancer):
    serve(balancer, 6, "ipip-4", 1400)
    assert balancer.verdict_of(frame_of(request(6, 1400)), poison=216)[:2] == ("dropped_no_headroom", bpf.XDP_DROP)


# What is learnt

def now(balancer):
    """As a stamp."""
    return balancer.lookup(bytes(64))["jiffies"] // struct.unpack_from("<I", balancer.memory, 12)[0]


def learnt(balancer, backend):
    """(MTU, seconds for which it counts) by a backend's address, or None."""
    try:
        mtu, until = struct.unpack("<II", bpf.map_lookup(balancer.object.map("path_mtus"), Backend(backend).key(), 8))
        return mtu, until - now(balancer)
    except OSError:
        return None


@pytest.fixture
def path(balancer):
    """Nothing learnt yet of two backends."""
    for backend in (LAN[4].format(0), LAN[6].format(0)):
        try:
            bpf.map_delete(balancer.object.map("path_mtus"), Backend(backend).key())
        except OSError:
            pass
    serve(balancer, 4, "ipip-4")
    return balancer


def complaint(outer, mtu, mode="ipip", source=None, backend=None, inner=None, **fields):
    """A router says that a packet of the balancer's is too big. The quote is as long as routers make it."""
    source = source or (TUNNEL4 if outer == 4 else TUNNEL6)
    backend = backend or LAN[outer].format(0)
    quoted = in_tunnel(inner or request(4, 1400), outer, backend, 5, gue=mode == "gue", source=source)
    what = ICMP(type=3, code=4, nexthopmtu=mtu) if outer == 4 else ICMPv6PacketTooBig(mtu=mtu)
    return ip(outer, HOP[outer], source, **fields) / what / Raw(bytes(quoted)[:548 if outer == 4 else 1232])


@pytest.mark.parametrize("outer,mode,family", itertools.product((4, 6), ("ipip", "gue"), (4, 6)))
def test_path_mtu_is_learnt(path, outer, mode, family):
    frame = frame_of(complaint(outer, 1350, mode, inner=request(family, 1400)))
    backend = LAN[outer].format(0)
    assert path.lookup(frame)["verdict"] == "passed_no_service" and learnt(path, backend) is None
    assert path.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)
    assert learnt(path, backend) == (1350, SECONDS)


@pytest.mark.parametrize("family", (4, 6))
def test_learnt_mtu_counts(path, family):
    """From the next look-up of the next hop on: here at once, for it is not known yet. lan0's own is 1500."""
    path.run(frame_of(complaint(family, 1350)))
    path.configure([Service(VIP[family], 443, PROTO_TCP, WHOLE, forward=IPIP)], [Backend(LAN[family].format(0))])
    packet = request(family, 1400)
    fits = 1350 - (20 if family == 4 else 40)
    assert path.verdict_of(frame_of(packet)) == (
        "answered_too_big", bpf.XDP_TX, bytes(link_layer(HOST, ROUTER, []) / told(family, packet, fits)))
    assert struct.unpack_from("<H", path.backends, 34)[0] == 1350  # in use
    assert struct.unpack_from("<HH", path.backends, 40) == (1500, 1350)  # the route's, the one learnt


@pytest.mark.parametrize("family", (4, 6))
def test_learnt_mtu_is_of_tunnels(path, family):
    """A packet without an outer header goes to a host on the link, by way of no router that could have told."""
    path.run(frame_of(complaint(family, 1350)))
    path.configure([Service(VIP[family], 443, PROTO_TCP, WHOLE, forward=L2)], [Backend(LAN[family].format(0))])
    packet = request(family, 1500)
    for _ in range(2):
        assert path.verdict_of(frame_of(packet))[0] == "forwarded"
    assert struct.unpack_from("<HH", path.backends, 40) == (1500, 1350)


def test_it_is_never_raised_and_is_forgotten(path):
    backend = LAN[4].format(0)

    def clock(stamp):
        """A second of a length that makes it so late."""
        jiffies = path.lookup(bytes(64))["jiffies"]
        struct.pack_into("<I", path.memory, 12, jiffies * 2 // (2 * stamp + 1))
        assert now(path) == stamp

    def hear(mtu):
        path.run(frame_of(complaint(4, mtu)))
        return learnt(path, backend)

    clock(5000)
    assert hear(1400) == (1400, SECONDS)
    assert hear(1450) == (1400, SECONDS)
    assert hear(1390) == (1390, SECONDS)
    clock(5300)
    assert hear(1450) == (1390, SECONDS - 300)
    assert hear(1390) == (1390, SECONDS)
    clock(5900)
    assert hear(1450) == (1450, SECONDS)
    for stamp, verdict, known in ((6499, "answered_too_big", 1450), (6500, "forwarded", 0)):
        clock(stamp)
        path.backends[:12] = bytes(12)  # so that the next hop is looked up again
        assert path.verdict_of(frame_of(request(4, 1470)))[0] == verdict
        assert struct.unpack_from("<HH", path.backends, 40) == (1500, known)


@pytest.mark.parametrize("outer,mtu,believed", (
    (4, 0, None), (4, 1, 576), (4, 68, 576), (4, 575, 576), (4, 577, 577), (4, 65535, 65535),
    (6, 0, None), (6, 1279, None), (6, 1280, 1280), (6, 65535, 65535), (6, 65536, None), (6, 0xffffffff, None)))
def test_bounds(path, outer, mtu, believed):
    path.run(frame_of(complaint(outer, mtu)))
    assert learnt(path, LAN[outer].format(0)) == (believed and (believed, SECONDS))


@pytest.mark.parametrize("outer", (4, 6))
def test_source_of_each_flow(path, outer):
    """Where the tunnel's source is a prefix, each address of it is the balancer's."""
    base, inside, outside = (("172.16.0.0", "172.16.255.9", "172.17.0.9") if outer == 4 else
                             ("fd00:5::", "fd00:5::ffff:9", "fd00:5::1:0:9"))
    path.configure([Service(VIP[4], 443, PROTO_TCP, WHOLE, forward=IPIP)], [Backend(LAN[outer].format(0))],
                   **{f"tunnel{outer}": base, f"entropy{outer}": 0xffff if outer == 4 else 0xffffffff})
    path.run(frame_of(complaint(outer, 1350, source=outside)))
    assert learnt(path, LAN[outer].format(0)) is None
    path.run(frame_of(complaint(outer, 1350, source=inside)))
    assert learnt(path, LAN[outer].format(0))[0] == 1350


def not_believed():
    for outer in (4, 6):
        tunnel = TUNNEL4 if outer == 4 else TUNNEL6
        yield "to another address", complaint(outer, 1350, source=HOP[outer])
        yield "about another's packet", ip(outer, HOP[outer], tunnel) / Raw(
            bytes((complaint(outer, 1350, source=HOP[outer])).payload))
        yield "about a packet of another kind", ip(outer, HOP[outer], tunnel) / (
            ICMP(type=3, code=4, nexthopmtu=1350) if outer == 4 else ICMPv6PacketTooBig(mtu=1350)) / Raw(
                bytes(ip(outer, tunnel, LAN[outer].format(0)) / TCP() / Raw(bytes(100))))
    yield "of another type", IP(src=HOP[4], dst=TUNNEL4) / ICMP(type=3, code=1, nexthopmtu=1350) / Raw(
        bytes(complaint(4, 1350))[28:])
    yield "of another type", IPv6(src=HOP[6], dst=TUNNEL6) / ICMPv6TimeExceeded() / Raw(bytes(complaint(6, 1350))[48:])


UNBELIEVED = list(not_believed())


@pytest.mark.parametrize("packet", [p for _, p in UNBELIEVED], ids=[f"IPv{p.version}: {name}" for name, p in UNBELIEVED])
def test_nothing_is_learnt_from(path, packet):
    frame = frame_of(packet)
    assert path.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)
    assert learnt(path, LAN[packet.version].format(0)) is None


def test_where_a_service_has_the_tunnels_address(path):
    path.configure([Service(TUNNEL4, 443, PROTO_TCP, WHOLE, forward=IPIP)], [Backend(LAN[4].format(0))])
    assert path.verdict_of(frame_of(complaint(4, 1350)))[0] == "passed_icmp"
    assert learnt(path, LAN[4].format(0))[0] == 1350
