# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The backend's side: outer headers come off packets of the given prefixes, and nothing else changes."""
import itertools
import struct

import bpf
import pytest
from harness import BUILD, POISON
from scapy.layers.inet import GRE, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from tables import GUE_PORT, mapped

BALANCERS = (("10.0.0.0", 96 + 24), ("fd00::", 64))
INNER = {4: IP(src="198.51.100.7", dst="192.0.2.10", tos=0xb8) / TCP(sport=1, dport=443) / b"payload",
         6: IPv6(src="2001:db8:1::7", dst="2001:db8::10", tc=0xb8, fl=0x12345) / UDP(sport=1, dport=53) / b"payload"}
OUTER = {4: IP(src="10.0.0.1", dst="10.0.0.11", flags="DF"), 6: IPv6(src="fd00::1", dst="fd00::11", fl=0xabcde)}
NUMBER = {4: 4, 6: 41}
TAGS = {"untagged": [], "802.1Q": [Dot1Q(vlan=7)], "802.1ad": [Dot1AD(vlan=100), Dot1Q(vlan=7)]}
COUNTERS = ("decapsulated", "passed", "dropped_ecn")


@pytest.fixture(scope="module")
def decap():
    loaded = bpf.Object(BUILD / "bpf" / "decap.bpf.o", rodata=struct.pack(">H", GUE_PORT))
    for address, length in BALANCERS:
        bpf.map_update(loaded.map("decap_from"), struct.pack("<I16s", length, mapped(address)), bytes(4))
    yield loaded
    loaded.close()


def run(decap, frame):
    """(counter that rose, action, frame afterwards)"""
    before = bpf.map_lookup_percpu(decap.map("decap_stats"), 0, len(COUNTERS))
    action, out = bpf.test_run(decap.program("decap"), bytes(frame), poison=POISON)
    after = bpf.map_lookup_percpu(decap.map("decap_stats"), 0, len(COUNTERS))
    risen = [name for name, a, b in zip(COUNTERS, before, after) for _ in range(b - a)]
    assert len(risen) == 1
    return risen[0], action, out


def link_layer(tags):
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:11")
    for tag in tags:
        frame /= tag.copy()
    return frame


def wrap(outer, inner, udp=None, **fields):
    """Inner behind outer, as bytes behind a header that scapy completes."""
    header = outer.copy()
    for name, value in fields.items():
        setattr(header, name, value)
    setattr(header, "proto" if header.version == 4 else "nh", 17 if udp else NUMBER[inner.version])
    return header / udp.copy() / Raw(bytes(inner)) if udp else header / Raw(bytes(inner))


GUE = UDP(sport=0xc001, dport=GUE_PORT, chksum=0)


@pytest.mark.parametrize("outer,inner,tags,udp", itertools.product((4, 6), (4, 6), TAGS, (None, GUE)),
                         ids=lambda value: "gue" if isinstance(value, UDP) else None)
def test_decapsulated(decap, outer, inner, tags, udp):
    frame = bytes(link_layer(TAGS[tags]) / wrap(OUTER[outer], INNER[inner], udp))
    expected = bytes(link_layer(TAGS[tags]) / INNER[inner])
    verdict, action, out = run(decap, frame)
    assert (verdict, action, out.hex()) == ("decapsulated", bpf.XDP_PASS, expected.hex())


PASSED = {
    "IPv4, not of a balancer": wrap(OUTER[4], INNER[4], src="10.0.1.1"),
    "IPv6, not of a balancer": wrap(OUTER[6], INNER[4], src="fd00:0:0:1::1"),
    "no tunnel": INNER[4],
    "no tunnel, IPv6": INNER[6],
    "TCP of a balancer": IP(src="10.0.0.1") / TCP(),
    "GRE of a balancer": IP(src="10.0.0.1") / GRE() / INNER[4],
    "IPv4 options": wrap(OUTER[4], INNER[4], options=[IPOption_Router_Alert()]),
    "the first fragment": wrap(OUTER[4], INNER[4], flags="MF"),
    "a later fragment": wrap(OUTER[4], INNER[4], frag=3),
    "IPv6 destination options": IPv6(src="fd00::1", dst="fd00::11") / IPv6ExtHdrDestOpt(nh=4) / Raw(bytes(INNER[4])),
    "IPv6 said, IPv4 inside": IP(src="10.0.0.1", proto=41) / Raw(bytes(INNER[4]) + bytes(40)),
    "IPv4 said, IPv6 inside": IP(src="10.0.0.1", proto=4) / Raw(bytes(INNER[6])),
    "an inner header cut short": IP(src="10.0.0.1", proto=4) / Raw(bytes(INNER[4])[:19]),
    "an inner IPv6 header cut short": IPv6(src="fd00::1", nh=41) / Raw(bytes(INNER[6])[:39]),
    "nothing inside": IP(src="10.0.0.1", proto=4),
    "GUE, not of a balancer": wrap(OUTER[4], INNER[4], GUE, src="10.0.1.1"),
    "GUE to another port": wrap(OUTER[4], INNER[4], UDP(sport=0xc001, dport=GUE_PORT + 1, chksum=0)),
    "GUE with a checksum": wrap(OUTER[4], INNER[4], UDP(sport=0xc001, dport=GUE_PORT)),
    "GUE, variant 0": OUTER[4] / GUE / Raw(b"\0\x04\0\0" + bytes(INNER[4])),
    "GUE with nothing inside": OUTER[4] / GUE,
    "GUE, UDP cut short": OUTER[4] / UDP(sport=1, dport=GUE_PORT, chksum=0, len=27) / Raw(bytes(INNER[4])),
    "GUE, an inner header cut short": OUTER[4] / GUE / Raw(bytes(INNER[4])[:19]),
    "GUE, a fragment": wrap(OUTER[4], INNER[4], GUE, flags="MF"),
    "longer than the frame": wrap(OUTER[4], INNER[4], len=500),
    "IPv6, longer than the frame": wrap(OUTER[6], INNER[4], plen=500),
}


@pytest.mark.parametrize("packet", PASSED.values(), ids=PASSED)
@pytest.mark.parametrize("tags", TAGS)
def test_passes_untouched(decap, packet, tags):
    frame = bytes(link_layer(TAGS[tags]) / packet)
    assert run(decap, frame) == ("passed", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("length", range(14, 34))
def test_short_frames_pass(decap, length):
    frame = bytes(link_layer([]) / wrap(OUTER[4], INNER[4]))[:length]
    assert run(decap, frame) == ("passed", bpf.XDP_PASS, frame)


@pytest.mark.parametrize("outer,inner", itertools.product((4, 6), (4, 6)))
@pytest.mark.parametrize("ecn", (1, 2, 3))
@pytest.mark.parametrize("udp", (None, GUE), ids=("ip", "gue"))
def test_congestion_mark_is_carried_in(decap, outer, inner, ecn, udp):
    """RFC 6040: a mark on the outer header becomes the inner packet's; other outer values change nothing."""
    tos = "tos" if inner == 4 else "tc"
    for dscp in range(0, 64, 3):
        packet, marked = INNER[inner].copy(), INNER[inner].copy()
        setattr(packet, tos, dscp << 2 | ecn)
        setattr(marked, tos, dscp << 2 | 3)
        for outer_ecn, expected in ((0, packet), (1, packet), (2, packet), (3, marked)):
            frame = link_layer([]) / wrap(OUTER[outer], packet, udp, **{"tos" if outer == 4 else "tc": outer_ecn})
            assert run(decap, frame)[2].hex() == bytes(link_layer([]) / expected).hex()


@pytest.mark.parametrize("outer,inner", itertools.product((4, 6), (4, 6)))
def test_congestion_mark_that_would_be_lost(decap, outer, inner):
    frame = link_layer([]) / wrap(OUTER[outer], INNER[inner], **{"tos" if outer == 4 else "tc": 3})
    assert run(decap, frame)[:2] == ("dropped_ecn", bpf.XDP_DROP)
