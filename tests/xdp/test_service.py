# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which service a packet is for; one word that switches everything; tables that contradict themselves."""
import random
import struct

import bpf
import pytest
from harness import KEY, SIZE, TUNNEL4, TUNNEL6, plain_frame
from scapy.layers.inet import IP
from tables import IPIP, NONE, TCP, UDP, Backend, Service, mapped, position, service_hash

WHOLE = [(0xffffffff, 0)]
VIP4, VIP6 = "192.0.2.10", "2001:db8::10"
CLIENT4, CLIENT6 = "198.51.100.7", "2001:db8:1::7"
FRAME = plain_frame(CLIENT4, VIP4, 1024, 443, TCP)


def frame_to(address, port, protocol=TCP):
    return plain_frame(CLIENT6 if ":" in address else CLIENT4, address, 1024, port, protocol)


def test_any_port(balancer):
    """A service of one port comes before the one of any; protocols are kept apart."""
    balancer.configure([Service(VIP4, 0, TCP, WHOLE, index=1), Service(VIP4, 443, TCP, WHOLE, index=2),
                        Service(VIP4, 53, UDP, WHOLE, index=3)], [Backend("10.0.0.11")])
    assert balancer.lookup(frame_to(VIP4, 443))["service"] == 2
    assert balancer.lookup(frame_to(VIP4, 444))["service"] == 1
    assert balancer.lookup(frame_to(VIP4, 53, UDP))["service"] == 3
    assert balancer.lookup(frame_to(VIP4, 443, UDP))["verdict"] == "passed_no_service"


@pytest.mark.parametrize("seed", range(3))
def test_many_services(balancer, seed):
    """Every service is found, and nothing else is."""
    rng = random.Random(seed)
    keys = {(rng.choice((f"192.0.2.{rng.randrange(256)}", f"2001:db8::{rng.randrange(1, 256):x}")),
             rng.choice((rng.randrange(1, 65536), 443)), rng.choice((TCP, UDP))) for _ in range(600)}
    services = [Service(*key, arcs=WHOLE, bits=1, index=i) for i, key in enumerate(sorted(keys))]
    balancer.configure(services, [Backend("10.0.0.11")])
    for s in services:
        assert balancer.lookup(frame_to(s.address, s.port, s.protocol))["service"] == s.index
    for s in services:
        if (s.address, s.port ^ 1, s.protocol) not in keys:
            assert balancer.lookup(frame_to(s.address, s.port ^ 1, s.protocol))["service"] == NONE


def test_slots_alike(balancer):
    """A slot holds 16 bits of the hash: where they agree, the service's key decides."""
    by_slot = {}
    for port in range(1, 4000):
        by_slot.setdefault(service_hash(mapped(VIP4), port, TCP) & 0xffff, []).append(port)
    first, second, third = next(ports for ports in by_slot.values() if len(ports) == 3)
    balancer.configure([Service(VIP4, first, TCP, WHOLE, index=1), Service(VIP4, second, TCP, WHOLE, index=2)], [])
    assert [balancer.lookup(frame_to(VIP4, port))["service"] for port in (first, second, third)] == [1, 2, NONE]


def test_state_word_switches_everything(balancer):
    """Services, key and tunnel source are the side's that the word names."""
    other_key = bytes(range(16))
    tables = balancer.configure([Service(VIP4, 443, TCP, WHOLE, forward=IPIP, index=1)], [Backend("10.0.0.11")] * 2)
    tables.root(1, other_key, [Service(VIP4, 443, TCP, WHOLE, owners=[1], forward=IPIP, index=2)], "10.0.0.2", TUNNEL6)
    for state, key, index, source in ((2, KEY, 1, TUNNEL4), (5, other_key, 2, "10.0.0.2"), (6, KEY, 1, TUNNEL4)):
        balancer.publish(tables, state)
        answer = balancer.lookup(FRAME)
        assert answer["position"] == position(key, "198.51.100.7", VIP4, 1024, 443, TCP)
        assert (answer["service"], answer["owner"], answer["revision"]) == (index, index - 1, state >> 1)
        assert IP(balancer.run(FRAME)[1][14:]).src == source


def test_lookup_has_no_side_effect(balancer):
    balancer.configure([Service(VIP4, 443, TCP, WHOLE, owners=[3], index=7)], [Backend("10.0.0.11")] * 4)
    maps = [(balancer.memory[:], balancer.backends[:], balancer.verdicts(), balancer.counter("service_stats", 7),
             balancer.counter("backend_stats", 3)) for _ in range(2) if balancer.lookup(FRAME) or True]
    assert maps[0] == maps[1]
    answer = balancer.lookup(FRAME)
    assert answer | {"jiffies": 0} == {
        "verdict": "forwarded", "position": position(KEY, "198.51.100.7", VIP4, 1024, 443, TCP), "service": 7,
        "backend": 3, "owner": 3, "previous": 3, "moved": 0, "tracked": 0, "reserved": 0, "revision": 1, "jiffies": 0}
    assert balancer.lookup(FRAME)["jiffies"] >= answer["jiffies"] > 0


# Offsets in struct ringlb_root and struct ringlb_service.
ROOT_SLOTS, ROOT_SERVICES = 64 + 36, 64 + 40
BITS, INDEX_OFF, POINTS_OFF, OWNERS_OFF = 22, 28, 32, 40
BEYOND = (SIZE - 63, 1 << 28, 0xffffffff)


def service_at(tables):
    """Where the service of FRAME is."""
    return tables.bytes.index(mapped(VIP4) + struct.pack(">HB", 443, TCP))


@pytest.mark.parametrize("offset", (INDEX_OFF, POINTS_OFF, OWNERS_OFF))
@pytest.mark.parametrize("value", BEYOND)
def test_offset_beyond_the_table(balancer, offset, value):
    tables = balancer.configure([Service(VIP4, 443, TCP, WHOLE)], [Backend("10.0.0.11")])
    struct.pack_into("<I", tables.bytes, service_at(tables) + offset, value)
    balancer.publish(tables)
    assert balancer.verdict_of(FRAME)[:2] == ("dropped_internal", bpf.XDP_DROP)


@pytest.mark.parametrize("offset", (ROOT_SLOTS, ROOT_SERVICES))
@pytest.mark.parametrize("value", BEYOND)
def test_services_beyond_the_table(balancer, offset, value):
    tables = balancer.configure([Service(VIP4, 443, TCP, WHOLE)], [Backend("10.0.0.11")])
    struct.pack_into("<I", tables.bytes, offset, value)
    balancer.publish(tables)
    assert balancer.verdict_of(FRAME) == ("passed_no_service", bpf.XDP_PASS, FRAME)


@pytest.mark.parametrize("owner", (NONE, 64, 0xfffe))
def test_owner_that_is_no_backend(balancer, owner):
    balancer.configure([Service(VIP4, 443, TCP, WHOLE, owners=[owner])], [Backend("10.0.0.11")])
    verdict = "dropped_no_backend" if owner == 0xffff else "dropped_internal"
    assert balancer.verdict_of(FRAME)[:2] == (verdict, bpf.XDP_DROP)


def jiffies(balancer):
    return balancer.lookup(FRAME)["jiffies"] & 0xffffffff


@pytest.mark.parametrize("slot", (2, 63, 64, 0xffff))
def test_output_that_is_none(balancer, slot):
    balancer.configure([Service(VIP4, 443, TCP, WHOLE)],
                       [Backend("10.0.0.11", 0x020000000011 << 16 | slot, jiffies(balancer))])
    assert balancer.verdict_of(FRAME)[:2] == ("dropped_internal", bpf.XDP_DROP)


@pytest.mark.parametrize("bits", range(23, 256, 29))
def test_bits_out_of_range(balancer, bits):
    """Whatever is found, memory outside is not read and the packet ends in one verdict."""
    tables = balancer.configure([Service(VIP4, 443, TCP, WHOLE)], [Backend("10.0.0.11")])
    tables.bytes[service_at(tables) + BITS] = bits
    balancer.publish(tables)
    assert balancer.verdict_of(FRAME)[0] in ("forwarded", "dropped_internal")
