# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packets to begin with: one of every kind of header, most of them for a service of scene.c. `seeds.py FILE` writes them."""
import struct
import sys

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, IPOption_Router_Alert, IPOption_Timestamp
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6PacketTooBig, ICMPv6TimeExceeded,
                                IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

CLIENT = {4: "198.51.100.7", 6: "2001:db8:ffff::7"}
LINK = Ether(src="02:00:00:00:00:99", dst="02:77:00:00:00:01")
TAGS = ([], [Dot1Q(vlan=7)], [Dot1AD(vlan=100), Dot1Q(vlan=7)], [Dot1Q(vlan=1), Dot1Q(vlan=2), Dot1Q(vlan=3)])
SERVICES4 = ((TCP, "192.0.2.1", 443), (UDP, "192.0.2.1", 53), (UDP, "192.0.2.1", 54), (TCP, "192.0.2.2", 443),
             (TCP, "192.0.2.2", 8080), (TCP, "192.0.2.3", 22), (TCP, "192.0.2.4", 25), (UDP, "192.0.2.4", 69),
             (TCP, "192.0.2.5", 80), (UDP, "192.0.2.6", 443), (TCP, "192.0.2.200", 80), (UDP, "192.0.2.130", 150))
SERVICES6 = ((TCP, "2001:db8::1", 443), (UDP, "2001:db8::1", 53), (TCP, "2001:db8::2", 443), (UDP, "2001:db8::3", 5),
             (UDP, "2001:db8::4", 443), (TCP, "2001:db8::5", 80), (UDP, "2001:db8:1:2::3", 9))
OTHERS4 = ((TCP, "10.77.0.1", 22), (UDP, "192.0.2.1", 443), (TCP, "203.0.113.1", 443))


def ip(family, **fields):
    return (IP if family == 4 else IPv6)(src=CLIENT[family], **fields)


def quic():
    """Long and short headers: RFC 9000, 17. Not encrypted: nobody on the way could tell."""
    dcid, scid = bytes(range(8)), bytes(range(0x10, 0x18))
    yield b"\xc0\0\0\0\1" + bytes([8]) + dcid + bytes([8]) + scid + b"\0\x44\xb0" + bytes(1200)  # Initial, version 1
    yield b"\xd0\x6b\x33\x43\xcf" + bytes([8]) + dcid + bytes([0]) + b"\0\x40\x20" + bytes(32)  # Initial, version 2
    yield b"\xe0\0\0\0\1" + bytes([20]) + bytes(20) + bytes([8]) + scid + b"\x40\x20" + bytes(32)  # Handshake
    yield b"\xf0\0\0\0\1" + bytes([8]) + dcid + bytes([8]) + scid + b"token"  # Retry
    yield b"\x80\0\0\0\0" + bytes([8]) + dcid + bytes([8]) + scid + b"\0\0\0\1"  # version negotiation
    yield b"\x40" + dcid + bytes(40)
    yield b"\xff" * 7


def errors(family, vip, inner_transport, mtu=1400):
    """What routers say about packets that a service sent to a client."""
    quoted = (IP if family == 4 else IPv6)(src=vip, dst=CLIENT[family]) / inner_transport / bytes(64)
    router = "203.0.113.254" if family == 4 else "2001:db8:fffe::1"
    if family == 4:
        for kind, code in ((3, 4), (3, 1), (3, 3), (11, 0), (12, 0), (4, 0), (5, 0)):
            unused = {"nexthopmtu": mtu} if (kind, code) == (3, 4) else {}
            yield IP(src=router, dst=vip) / ICMP(type=kind, code=code, **unused) / Raw(bytes(quoted)[:28 + below(code)])
    else:
        for error in (ICMPv6PacketTooBig(mtu=mtu), ICMPv6DestUnreach(code=4), ICMPv6TimeExceeded()):
            yield IPv6(src=router, dst=vip) / error / Raw(bytes(quoted))


def below(code):
    return 36 - 4 * code


def fragments(family, vip, transport):
    if family == 4:
        for offset, more in ((0, 1), (2, 1), (185, 0)):
            body = Raw(bytes(transport) + bytes(16)) if offset == 0 else Raw(bytes(40))
            yield IP(src=CLIENT[4], dst=vip, id=77, flags="MF" if more else 0, frag=offset, proto=17) / body
    else:
        for offset, more in ((0, 1), (2, 1), (185, 0), (0, 0)):
            body = Raw(bytes(transport) + bytes(16)) if offset == 0 else Raw(bytes(40))
            yield IPv6(src=CLIENT[6], dst=vip) / IPv6ExtHdrFragment(id=77, offset=offset, m=more, nh=17) / body


def plain():
    for family, services in ((4, SERVICES4 + OTHERS4), (6, SERVICES6)):
        for protocol, vip, port in services:
            for size in (0, 100, 1400):
                yield ip(family, dst=vip) / protocol(sport=40001, dport=port) / bytes(size)
        protocol, vip, port = services[3 if family == 4 else 2]
        for flags in ("S", "SA", "A", "PA", "FA", "R", "RA"):
            yield ip(family, dst=vip) / TCP(sport=40002, dport=port, seq=1000, flags=flags, options=[("MSS", 1460)])
        yield ip(family, dst=vip, **({"ttl": 1} if family == 4 else {"hlim": 1})) / TCP(dport=port)
        yield ip(family, dst=services[0][1], **({"flags": "DF"} if family == 4 else {})) / TCP(dport=443) / bytes(1446)
        yield ip(family, dst=services[1][1], **({"flags": "DF"} if family == 4 else {})) / UDP(dport=53) / bytes(1472)


def special4():
    tcp = TCP(sport=40003, dport=443, flags="PA") / b"data"
    for options in ([IPOption_Router_Alert()], [IPOption_Timestamp()], [IPOption(b"\x01" * 40)], [IPOption(b"\x07\x27\x04" + bytes(36))]):
        yield ip(4, dst="192.0.2.1", options=options) / tcp
    for vip in ("192.0.2.1", "192.0.2.2", "192.0.2.4", "192.0.2.200", "10.77.0.1"):
        yield ip(4, dst=vip) / ICMP(id=5, seq=6) / b"ping"
        yield ip(4, dst=vip, options=[IPOption_Router_Alert()]) / ICMP() / bytes(1000)
    for protocol in (2, 47, 50, 132):
        yield ip(4, dst="192.0.2.4", proto=protocol) / bytes(24)
        yield ip(4, dst="192.0.2.1", proto=protocol) / bytes(24)
    for data in quic():
        yield ip(4, dst="192.0.2.6") / UDP(sport=40004, dport=443) / data
    yield from fragments(4, "192.0.2.1", UDP(sport=40001, dport=53))
    yield from fragments(4, "192.0.2.4", UDP(sport=40001, dport=53))
    yield from errors(4, "192.0.2.1", TCP(sport=443, dport=40001))
    yield from errors(4, "192.0.2.2", TCP(sport=8080, dport=40001))
    yield from errors(4, "192.0.2.6", UDP(sport=443, dport=40001))
    yield from errors(4, "192.0.2.4", UDP(sport=69, dport=40001))
    # A router about our own outer packets, of each kind.
    inner = ip(4, dst="192.0.2.1") / UDP(dport=53)
    for outer in (IP(src="10.77.0.1", dst="10.77.1.3", proto=4) / Raw(bytes(inner)),
                  IP(src="10.77.0.1", dst="10.77.1.3") / UDP(sport=0xc001, dport=6080) / Raw(bytes(inner))):
        yield IP(src="203.0.113.254", dst="10.77.0.1") / ICMP(type=3, code=4, nexthopmtu=1280) / Raw(bytes(outer))
        yield IP(src="10.77.0.9", dst="192.0.2.4") / Raw(bytes(outer))


def special6():
    tcp = TCP(sport=40003, dport=443, flags="PA") / b"data"
    for headers in (IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrRouting(addresses=["2001:db8::9"]),
                    IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting() / IPv6ExtHdrDestOpt(),
                    IPv6ExtHdrHopByHop() / IPv6ExtHdrFragment(id=1, m=1)):
        for vip in ("2001:db8::1", "2001:db8::2", "2001:db8::3"):
            yield ip(6, dst=vip) / headers / tcp
        yield ip(6, dst="2001:db8::1") / headers / ICMPv6EchoRequest(data=b"ping")
    for vip in ("2001:db8::1", "2001:db8::3", "2001:db8:1::5", "fd77::1"):
        yield ip(6, dst=vip) / ICMPv6EchoRequest(id=5, seq=6, data=b"ping")
    yield ip(6, dst="ff02::1:ff00:1") / ICMPv6ND_NS(tgt="2001:db8::1")
    yield ip(6, dst="2001:db8::3", nh=59)
    for data in quic():
        yield ip(6, dst="2001:db8::4") / UDP(sport=40004, dport=443) / data
    yield from fragments(6, "2001:db8::1", UDP(sport=40001, dport=53))
    yield from fragments(6, "2001:db8::3", UDP(sport=40001, dport=53))
    for vip, transport in (("2001:db8::1", TCP(sport=443, dport=40001)), ("2001:db8::2", TCP(sport=443, dport=40001)),
                           ("2001:db8::4", UDP(sport=443, dport=40001)), ("2001:db8::3", UDP(sport=5, dport=40001))):
        yield from errors(6, vip, transport)
    inner = ip(6, dst="2001:db8::3") / UDP(dport=53)
    outer = IPv6(src="fd77::1", dst="fd77::1:3", nh=41) / Raw(bytes(inner))
    yield IPv6(src="2001:db8:fffe::1", dst="fd77::1") / ICMPv6PacketTooBig(mtu=1300) / Raw(bytes(outer))


def seeds():
    yield LINK / ARP(pdst="192.0.2.1")
    yield LINK / Raw(struct.pack(">H", 0x88cc) + bytes(60))
    for number, packet in enumerate([*plain(), *special4(), *special6()]):
        for tags in TAGS if number % 8 == 0 else TAGS[:1]:
            frame = LINK.copy()
            for tag in tags:
                frame /= tag.copy()
            yield frame / packet


def main():
    wrpcap(sys.argv[1], [Ether(bytes(frame)) for frame in seeds()], linktype=1)


if __name__ == "__main__":
    main()
