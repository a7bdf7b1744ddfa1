# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which service a packet is for; one word that switches everything; tables that contradict themselves."""
import ipaddress
import random
import struct

import bpf
import pytest
from harness import KEY, SIZE, TUNNEL4, TUNNEL6, plain_frame
from scapy.layers.inet import IP
from scapy.layers.inet import TCP as IP_TCP
from scapy.layers.inet import UDP as IP_UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import ANY, IPIP, NONE, ROOTS, TCP, UDP, Backend, Service, mapped, position, service_hash

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


def expected(services, address, port, protocol):
    """The index of the most specific service that matches, by a look at each; NONE."""
    def fits(s):
        if ipaddress.ip_address(address) not in s.network() or s.protocol not in (ANY, protocol):
            return False
        return s.port == 0 or (s.port[0] <= port <= s.port[1] if s.is_range() else s.port == port)
    bits = max((s.network().max_prefixlen for s in services), default=0)
    found = [(s.network().prefixlen - s.network().max_prefixlen + bits, isinstance(s.port, int) and s.port > 0,
              s.is_range(), s.protocol != ANY, s.index) for s in services if fits(s)]
    return max(found)[-1] if found else NONE


RANKS = [("192.0.2.0/24", 0, ANY), ("192.0.2.0/24", 0, TCP), ("192.0.2.0/24", (400, 500), TCP),
         ("192.0.2.0/24", 443, TCP), (VIP4, 0, ANY), (VIP4, 0, TCP), (VIP4, (443, 443), TCP), (VIP4, 443, TCP)]


@pytest.mark.parametrize("without", range(len(RANKS)))
@pytest.mark.parametrize("family", (4, 6))
def test_most_specific(balancer, family, without):
    """Each service in turn is the most specific one left."""
    ranks = [(a if family == 4 else "2001:db8::/64" if "/" in a else VIP6, *rest) for a, *rest in RANKS]
    services = [Service(*key, arcs=WHOLE, index=i) for i, key in enumerate(ranks[:len(RANKS) - without])]
    balancer.configure(services, [Backend("10.0.0.11")])
    address = VIP4 if family == 4 else VIP6
    assert balancer.lookup(frame_to(address, 443))["service"] == len(services) - 1
    assert balancer.lookup(frame_to("192.0.3.1" if family == 4 else "2001:db8:0:1::1", 443))["service"] == NONE


def random_service(rng, index):
    bits = rng.choice((8, 16, 23, 24, 25, 28, 30, 32))
    text = f"10.{rng.randrange(2)}.{rng.randrange(3)}.{rng.randrange(256)}"
    if rng.random() < .5:
        bits = rng.choice((32, 48, 63, 64, 65, 96, 120, 128))
        text = f"2001:db8:{rng.randrange(2)}:{rng.randrange(2)}:{rng.randrange(2)}::{rng.randrange(256):x}"
    address = ipaddress.ip_network(f"{text}/{bits}", strict=False)
    protocol, first = rng.choice((TCP, UDP, ANY)), rng.randrange(1, 60)
    port = rng.choice((0, first, (first, first + rng.randrange(5)))) if protocol else 0
    return Service(str(address if rng.random() < .7 else address[0]), port, protocol, WHOLE, bits=1, index=index)


def overlaps(a, b):
    """Two that no rule ranks: the same address and protocol, and ranges with a port in common."""
    if a.network() != b.network() or a.protocol != b.protocol:
        return False
    if a.is_range() and b.is_range():
        return a.port[0] <= b.port[1] and b.port[0] <= a.port[1]
    return a.port == b.port


@pytest.mark.parametrize("seed", range(6))
def test_random_services(balancer, seed):
    rng = random.Random(seed)
    services = []
    for i in range(rng.choice((3, 20, 150))):
        s = random_service(rng, i)
        if not any(overlaps(s, other) for other in services):
            services.append(s)
    balancer.configure(services, [Backend("10.0.0.11")])
    for _ in range(1500):
        network = rng.choice(services).network()
        address = str(network[rng.randrange(min(network.num_addresses, 1 << 20))])
        packet = address, rng.randrange(1, 66), rng.choice((TCP, UDP))
        assert balancer.lookup(frame_to(*packet))["service"] == expected(services, *packet), packet


def test_nested_prefixes(balancer):
    """Each of the most there can be within one another, and what is between them."""
    services = [Service(f"10.0.0.0/{8 + 3 * i}", 0, TCP, WHOLE, index=i) for i in range(8)]
    balancer.configure(services, [Backend("10.0.0.11")])
    for i in range(8):
        last = str(services[i].network()[-1])
        assert balancer.lookup(frame_to(last, 1))["service"] == i
    assert balancer.lookup(frame_to("11.0.0.0", 1))["service"] == NONE
    assert balancer.lookup(frame_to("9.255.255.255", 1))["service"] == NONE


ESP, GRE = 50, 47


@pytest.mark.parametrize("family", (4, 6))
def test_any_protocol(balancer, family):
    """All that two addresses exchange has one position; a fragment too."""
    client, vip = (CLIENT4, VIP4) if family == 4 else (CLIENT6, VIP6)
    balancer.configure([Service(vip, 0, ANY, WHOLE, index=4)], [Backend("10.0.0.11" if family == 4 else "fd00::11")])
    at = position(KEY, client, vip, 0, 0, 0)
    header = IP(src=client, dst=vip) if family == 4 else IPv6(src=client, dst=vip)
    packets = [header / IP_TCP(sport=1, dport=2), header / IP_UDP(sport=3, dport=4), header / Raw(b"data")]
    for number in (ESP, GRE, 132, 253):
        packets.append(header.copy() / Raw(b"data"))
        setattr(packets[-1], "proto" if family == 4 else "nh", number)
    if family == 4:
        packets += [IP(src=client, dst=vip, flags="MF") / IP_UDP(), IP(src=client, dst=vip, frag=7, proto=17) / Raw(b"x")]
    for packet in packets:
        frame = bytes(Ether() / packet)
        answer = balancer.lookup(frame.ljust(64, b"\0"))
        assert (answer["position"], answer["service"], answer["verdict"]) == (at, 4, "forwarded"), packet
        assert balancer.verdict_of(frame)[0] == "forwarded"


def test_any_protocol_beside_others(balancer):
    """What a service has for itself is its own; a protocol that nobody has passes."""
    balancer.configure([Service(VIP4, 443, TCP, WHOLE, index=1), Service("192.0.2.0/28", 0, ANY, WHOLE, index=2),
                        Service("192.0.2.128/28", 0, TCP, WHOLE, index=3)], [Backend("10.0.0.11")])

    def service_of(address, number):
        return balancer.lookup(bytes(Ether() / IP(src=CLIENT4, dst=address, proto=number) / Raw(bytes(60))))

    assert balancer.lookup(frame_to(VIP4, 443))["service"] == 1
    assert balancer.lookup(frame_to(VIP4, 444))["service"] == 2
    assert service_of(VIP4, ESP)["service"] == 2
    assert service_of("192.0.2.1", ESP)["service"] == 2
    assert service_of("192.0.2.129", ESP)["verdict"] == "passed_protocol"
    assert service_of("192.0.2.17", ESP)["verdict"] == "passed_no_service"


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
ROOT_SLOTS, ROOT_SERVICES = ROOTS + 36, ROOTS + 40
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
