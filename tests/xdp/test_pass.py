# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traffic that is not for a service goes on to the host byte for byte; what is for one, but broken, is dropped."""
import struct

import bpf
import pytest
from scapy.layers.inet import GRE, ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.inet6 import IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.l2 import ARP, LLC, SNAP, Dot1AD, Dot1Q, Dot3, Ether
from scapy.packet import Raw
from tables import IPIP, Backend, Service
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP

WHOLE = [(0xffffffff, 0)]
VIP4, VIP6 = "192.0.2.10", "2001:db8::10"
OTHER4, OTHER6 = "192.0.2.11", "2001:db8::11"


@pytest.fixture
def serving(balancer):
    """TCP on 443 and UDP on any port, of one address in each family."""
    services = [Service(address, port, protocol, WHOLE, owners=[backend], forward=IPIP)
                for address, backend in ((VIP4, 0), (VIP6, 1)) for port, protocol in ((443, PROTO_TCP), (0, PROTO_UDP))]
    balancer.configure(services, [Backend("10.0.0.11"), Backend("fd00::11")])
    return balancer


# What passes because of what it is: description -> (packet, verdict).
NOT_OURS = {
    "ARP": (Ether() / ARP(pdst="10.0.0.1"), "passed_not_ip"),
    "LLDP": (Ether(type=0x88cc) / Raw(b"\x02\x07" * 20), "passed_not_ip"),
    "802.3": (Dot3() / LLC() / SNAP() / Raw(b"bpdu" * 10), "passed_not_ip"),
    "MPLS": (Ether(type=0x8847) / Raw(bytes(40)), "passed_not_ip"),
    "three VLAN tags": (Ether() / Dot1AD() / Dot1Q() / Dot1Q() / IP(dst=VIP4) / TCP(dport=443), "passed_not_ip"),
    "a frame that ends within a VLAN tag": (Ether(type=0x8100) / Raw(b"\0\7"), "passed_not_ip"),
    "an Ethernet header alone": (Ether(type=0x0800), "passed_no_service"),
    "TCP": (Ether() / IP(dst=OTHER4) / TCP(dport=443), "passed_no_service"),
    "UDP": (Ether() / IP(dst=OTHER4) / UDP(dport=443), "passed_no_service"),
    "ICMP": (Ether() / IP(dst=OTHER4) / ICMP(), "passed_no_service"),
    "OSPF": (Ether() / IP(dst="224.0.0.5", proto=89, ttl=1) / Raw(bytes(24)), "passed_no_service"),
    "IGMP with a router alert": (Ether() / IP(dst="224.0.0.22", proto=2, options=[IPOption_Router_Alert()]) / Raw("igmp"),
                                 "passed_no_service"),
    "GRE": (Ether() / IP(dst=OTHER4) / GRE() / IP(dst=VIP4) / TCP(dport=443), "passed_no_service"),
    "our service in someone's tunnel": (Ether() / IP(dst=OTHER4) / IP(dst=VIP4) / TCP(dport=443), "passed_no_service"),
    "the first fragment": (Ether() / IP(dst=OTHER4, flags="MF") / UDP() / Raw(bytes(64)), "passed_no_service"),
    "a later fragment": (Ether() / IP(dst=OTHER4, frag=9, proto=17) / Raw(bytes(64)), "passed_no_service"),
    "TCP over IPv6": (Ether() / IPv6(dst=OTHER6) / TCP(dport=443), "passed_no_service"),
    "UDP over IPv6": (Ether() / IPv6(dst=OTHER6) / UDP(dport=443), "passed_no_service"),
    "neighbour discovery": (Ether() / IPv6(dst="ff02::1:ff00:10", hlim=255) / ICMPv6ND_NS(tgt=VIP6),
                            "passed_no_service"),
    "a fragment over IPv6": (Ether() / IPv6(dst=OTHER6) / IPv6ExtHdrFragment(m=1) / UDP() / Raw(bytes(64)),
                             "passed_no_service"),
    "hop-by-hop options": (Ether() / IPv6(dst=OTHER6) / IPv6ExtHdrHopByHop() / TCP(), "passed_no_service"),
    "a service, mapped": (Ether() / IPv6(dst="::ffff:" + VIP4) / TCP(dport=443), "passed_no_service"),
    "the service's address, another port": (Ether() / IP(dst=VIP4) / TCP(dport=22), "passed_no_service"),
    "the service's address over IPv6, another port": (Ether() / IPv6(dst=VIP6) / TCP(dport=22), "passed_no_service"),
    "a service's answer": (Ether() / IP(src=VIP4, dst=OTHER4) / TCP(sport=443), "passed_no_service"),
    "ESP": (Ether() / IP(dst=VIP4, proto=50) / Raw(bytes(32)), "passed_protocol"),
    "destination options": (Ether() / IPv6(dst=VIP6) / IPv6ExtHdrDestOpt() / TCP(dport=9), "passed_no_service"),
    "a routing header": (Ether() / IPv6(dst=VIP6) / IPv6ExtHdrRouting(), "passed_protocol"),
}


@pytest.mark.parametrize("packet,verdict", NOT_OURS.values(), ids=NOT_OURS)
@pytest.mark.parametrize("tags", (0, 1, 2))
def test_passes_untouched(serving, packet, verdict, tags):
    frame = bytes(packet)
    if tags and packet.name == "Ethernet" and not packet.haslayer(Dot1Q) and packet.type != 0x8100:
        frame = frame[:12] + b"\x88\xa8\x00\x64\x81\x00\x00\x07"[-4 * tags:] + frame[12:]
    assert serving.verdict_of(frame) == (verdict, bpf.XDP_PASS, frame)


def patch(offset, code, value):
    """Overwrites a field of the IP packet."""
    def change(packet):
        data = bytearray(packet)
        struct.pack_into(code, data, offset, value)
        return bytes(data)
    return change


def cut(length):
    return lambda packet: packet[:length]


# Description -> what is done to a sound packet: 20 or 40 bytes of IP header, 20 of TCP or 8 of UDP, 32 of payload.
MALFORMED4 = {
    "version 5": patch(0, "B", 0x55),
    "version 6": patch(0, "B", 0x65),
    "header shorter than 20 bytes": patch(0, "B", 0x44),
    "no header at all": patch(0, "B", 0x40),
    "header longer than the packet": patch(0, "B", 0x4f),
    "total length 0": patch(2, ">H", 0),
    "total length less than the header": patch(2, ">H", 19),
    "total length more than the frame": patch(2, ">H", 2000),
    "total length of one byte more than the frame": lambda packet: packet[:-1],
    "nothing behind the IP header": lambda packet: patch(2, ">H", 20)(packet),
    "frame ends with the IP header": cut(20),
}
MALFORMED6 = {
    "version 4": patch(0, "B", 0x40),
    "payload length 0": patch(4, ">H", 0),
    "payload length more than the frame": patch(4, ">H", 2000),
    "one byte less than the payload length": lambda packet: packet[:-1],
    "frame ends with the IP header": cut(40),
}
# The same with the offset of the transport header.
MALFORMED_TCP = {
    "TCP header cut short by the IP length": lambda packet, at: set_length(packet, at, 19),
    "TCP data offset 4": lambda packet, at: patch(at + 12, "B", 0x40)(packet),
    "TCP data offset 0": lambda packet, at: patch(at + 12, "B", 0)(packet),
    "TCP header longer than the packet": lambda packet, at: patch(at + 12, "B", 0xf0)(packet),
}
MALFORMED_UDP = {
    "UDP header cut short by the IP length": lambda packet, at: set_length(packet, at, 7),
    "UDP length less than its header": lambda packet, at: patch(at + 4, ">H", 7)(packet),
    "UDP length 0": lambda packet, at: patch(at + 4, ">H", 0)(packet),
    "UDP length more than the packet": lambda packet, at: patch(at + 4, ">H", 41)(packet),
}


def set_length(packet, at, length):
    return patch(2, ">H", at + length)(packet) if at == 20 else patch(4, ">H", length)(packet)


def malformed():
    for family, header, changes in ((4, 20, MALFORMED4), (6, 40, MALFORMED6)):
        for name, change in changes.items():
            yield pytest.param(family, TCP(dport=443), change, id=f"IPv{family}: {name}")
        for layer, its in ((TCP(dport=443), MALFORMED_TCP), (UDP(dport=443), MALFORMED_UDP)):
            for name, change in its.items():
                def at(packet, change=change, header=header):
                    return change(packet, header)
                yield pytest.param(family, layer, at, id=f"IPv{family}: {name}")


def sound(family, ours, layer):
    network = IP(dst=VIP4 if ours else OTHER4) if family == 4 else IPv6(dst=VIP6 if ours else OTHER6)
    if layer.name == "TCP":
        return bytes(network / layer / Raw(bytes(20)))
    return bytes(network / layer / Raw(bytes(32)))


@pytest.mark.parametrize("family,layer,change", malformed())
def test_malformed(serving, family, layer, change):
    link = bytes(Ether(type=0x0800 if family == 4 else 0x86dd))
    assert serving.verdict_of(link + sound(family, True, layer))[0] == "forwarded"
    frame = link + change(sound(family, True, layer))
    assert serving.verdict_of(frame) == ("dropped_malformed", bpf.XDP_DROP, frame)
    frame = link + change(sound(family, False, layer))
    assert serving.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("family,length", [(4, n) for n in range(20)] + [(6, n) for n in range(40)])
def test_no_destination(serving, family, length):
    """Too short to name a destination."""
    frame = bytes(Ether(type=0x0800 if family == 4 else 0x86dd)) + sound(family, True, TCP(dport=443))[:length]
    assert serving.verdict_of(frame) == ("passed_no_service", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("flags", ("DF", "evil"))
def test_other_flags_make_no_fragment(serving, flags):
    assert serving.verdict_of(bytes(Ether() / IP(dst=VIP4, flags=flags) / TCP(dport=443)))[0] == "forwarded"
