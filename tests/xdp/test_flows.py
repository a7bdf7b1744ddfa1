# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Flows in moved arcs, rule by rule: packets as data, and where each must go. One arc is the whole ring; OWNER owns it and
PREVIOUS did. The flow table is one bucket, of four entries.
"""
import ipaddress
import struct
from dataclasses import dataclass, field

import bpf
import pytest
from harness import KEY
from tables import ABI, FLOW, NONE, SOURCE, TCP, UDP, Backend, Service, siphash13

CLIENT = {4: "198.51.100.7", 6: "2001:db8:1::7"}
VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
PORT = 443
OWNER, PREVIOUS, THIRD, NOBODY = 1, 2, 3, NONE
TRACK_NONE, MOVED, ALWAYS = range(3)
NOW = 5000
SETTLE_AFTER = 900
OPENING, CLOSING = 10, 60  # seconds
WINDOW = 65536
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}
EVENTS = [line.split("(")[1].split(",")[0] for line in ABI.split("RINGLB_FLOW_EVENTS(X)", 1)[1].split("struct")[0]
          .splitlines() if line.lstrip().startswith("X(")]
BUCKET = 4 * 32


def frame_of(family, protocol, port, flags, sequence, data):
    """As flags: "S", "SA", ..."""
    client, service = (ipaddress.ip_address(a[family]).packed for a in (CLIENT, VIP))
    if protocol == TCP:
        bits = sum(FLAGS[f] for f in flags)
        rest = struct.pack(">HHIIBBHHH", port, PORT, sequence & 0xffffffff, 0, 0x50, bits, 65535, 0, 0) + data
    else:
        rest = struct.pack(">HHHH", port, PORT, 8 + len(data), 0) + data
    if family == 4:
        return bytes(12) + b"\x08\x00" + struct.pack(">BBHIBBH", 0x45, 0, 20 + len(rest), 0, 64, protocol,
                                                    0) + client + service + rest
    return bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(rest), protocol, 64) + client + service + rest


@dataclass
class Entry:
    fingerprint: int
    deadline: int
    established: int  # index of the backend, or None
    opening: int
    sequence: int
    position: int
    service: int
    closing: bool


@dataclass
class Flows:
    balancer: object
    track: int = MOVED
    family: int = 4
    protocol: int = TCP
    affinity: int = FLOW
    moved: bool = True
    settle_after: int = SETTLE_AFTER
    now: int = NOW
    service: Service = field(init=False)

    def __post_init__(self):
        self.memory = self.balancer.object.mapped("flows", BUCKET)
        self.memory[:BUCKET] = bytes(BUCKET)
        self.revision = 0
        self.jiffies = self.balancer.lookup(bytes(64))["jiffies"]
        self.ring(OWNER, PREVIOUS if self.moved else None)

    def ring(self, owner, previous=None):
        """Publishes it; the backends stay as they are."""
        owners = sorted({owner, owner if previous is None else previous})
        arc = (0xffffffff, owners.index(owner)) + (() if previous is None else (owners.index(previous),))
        self.service = Service(VIP[self.family], PORT, self.protocol, [arc], owners=owners, track=self.track,
                               affinity=self.affinity, prefix=24, index=5, settle_after=self.settle_after)
        backends = [Backend(f"10.0.0.{i}", (0x020000000000 | i) << 16, self.jiffies & 0xffffffff) for i in range(8)]
        before = bytes(self.balancer.backends) if self.revision else None
        self.balancer.configure([self.service], backends)
        if before:
            self.balancer.backends[:] = before
        self.revision += 1
        self.clock(0)

    def clock(self, seconds):
        """A second of a length that makes it so late."""
        self.now += seconds
        struct.pack_into("<I", self.balancer.memory, 12, self.jiffies * 2 // (2 * self.now + 1))
        got = self.balancer.lookup(bytes(64))["jiffies"] // struct.unpack_from("<I", self.balancer.memory, 12)[0]
        assert got == self.now

    def down(self, backend):
        """What the flow table knows of it is void."""
        at = backend * 64 + 12
        incarnation, = struct.unpack_from("<H", self.balancer.backends, at)
        struct.pack_into("<H", self.balancer.backends, at, incarnation + 1)

    def send(self, flags="A", sequence=0, data=b"", port=1000):
        """Where it goes, as the program `lookup` said beforehand, which changes nothing."""
        frame = frame_of(self.family, self.protocol, port, flags, sequence, data)
        before = bytes(self.memory[:BUCKET]), self.counters(), self.stamp(), bytes(self.balancer.backends)
        answer = self.balancer.lookup(frame)
        assert before == (bytes(self.memory[:BUCKET]), self.counters(), self.stamp(), bytes(self.balancer.backends))
        verdict, _, out = self.balancer.verdict_of(frame)
        to = out[5] if verdict == "forwarded" else NOBODY
        assert answer["backend"] == to
        self.tracked = bool(answer["tracked"])
        return to

    def hear(self, port=1000):
        """Where an ICMP error about a packet of the service goes; nothing is written for it."""
        client, service = (ipaddress.ip_address(a[self.family]).packed for a in (CLIENT, VIP))
        rest = struct.pack(">HHI", PORT, port, 7)
        if self.family == 4:
            quoted = struct.pack(">BBHIBBH", 0x45, 0, 100, 0, 64, self.protocol, 0) + service + client + rest
            packet = bytes(12) + b"\x08\x00" + struct.pack(">BBHIBBH", 0x45, 0, 28 + len(quoted), 0, 64, 1, 0) + bytes(
                [203, 0, 113, 9]) + service + b"\3\4" + bytes(6) + quoted
        else:
            quoted = struct.pack(">IHBB", 6 << 28, 60, self.protocol, 64) + service + client + rest
            packet = bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 8 + len(quoted), 58, 64) + ipaddress.ip_address(
                "2001:db8:9::9").packed + service + b"\2\0" + bytes(6) + quoted
        answer = self.balancer.lookup(packet)
        before = bytes(self.memory[:BUCKET]), self.counters(), self.stamp(), bytes(self.balancer.backends)
        verdict, _, out = self.balancer.verdict_of(packet)
        assert before == (bytes(self.memory[:BUCKET]), self.counters(), self.stamp(), bytes(self.balancer.backends))
        to = out[5] if verdict == "forwarded" else NOBODY
        assert answer["backend"] == to
        return to

    def entries(self):
        found = []
        for at in range(0, BUCKET, 32):
            fingerprint, established, opening, place = struct.unpack_from("<4Q", self.memory, at)
            if fingerprint:
                found.append(Entry(fingerprint, established >> 32, established & 0xffff if established & 0xffffffff else None,
                                   opening & 0xffff if opening & 0xffffffff else None, opening >> 32, place >> 32,
                                   place >> 16 & 0xffff, bool(place & 1)))
        return found

    def entry(self):
        found, = self.entries()
        return found

    def counters(self):
        return dict(zip(EVENTS, bpf.map_lookup_percpu(self.balancer.object.map("flow_stats"), 0, len(EVENTS))))

    def risen(self, before):
        return {name: count - before[name] for name, count in self.counters().items() if count != before[name]}

    def stamp(self):
        """Of the whole ring: the latest of its points'."""
        points = (1 << self.service.bits)
        return max(struct.unpack_from("<4xI", self.balancer.memory, self.service.cold + 8 * i)[0] for i in range(points))

    def last_old(self, backend):
        return struct.unpack_from("<I", self.balancer.backends, backend * 64 + 36)[0]

    def establish(self, port=1000, sequence=100, to=OWNER):
        assert self.send("S", sequence, port=port) == to
        assert self.send("A", sequence + 1, port=port) == to


@pytest.fixture
def flows(balancer):
    return Flows(balancer)


# Steps: (flags, sequence, data, where to). In one arc whose owner is OWNER and was PREVIOUS, from an empty table.
S, A, DATA = "S", "A", b"x"
RULES = {
    "a flow from before": [(A, 5, DATA, PREVIOUS), (A, 6, b"", PREVIOUS)],
    "a new flow": [(S, 100, b"", OWNER), (A, 101, b"", OWNER), (A, 101, DATA, OWNER), (A, 10**6, DATA, OWNER)],
    "the SYN carries data": [(S, 100, DATA, OWNER), (A, 102, DATA, OWNER)],
    "the SYN comes again": [(S, 100, b"", OWNER), (S, 100, b"", OWNER), (A, 101, b"", OWNER)],
    "the first of the window": [(S, 100, b"", OWNER), (A, 101, b"", OWNER)],
    "the last of the window": [(S, 100, b"", OWNER), (A, 100 + WINDOW, b"", OWNER), (A, 5, b"", OWNER)],
    "behind the window": [(S, 100, b"", OWNER), (A, 101 + WINDOW, b"", PREVIOUS), (A, 101, b"", OWNER)],
    "the SYN's own number": [(S, 100, b"", OWNER), (A, 100, b"", PREVIOUS)],
    "the window goes round": [(S, 2**32 - 1, b"", OWNER), (A, 0, b"", OWNER)],
    "a forged SYN on a flow from before": [(S, 10**9, b"", OWNER), (A, 500, b"", PREVIOUS), (A, 501, DATA, PREVIOUS)],
    "a forged SYN is forgotten with the flow's data":
        [(S, 10**9, b"", OWNER), (A, 500, DATA, PREVIOUS), (A, 10**9 + 1, DATA, PREVIOUS)],
    "a forged SYN on a remembered flow":
        [(S, 100, b"", OWNER), (A, 101, b"", OWNER), (S, 10**9, b"", OWNER), (A, 102, b"", OWNER)],
    "the tuple again": [(S, 100, b"", OWNER), (A, 101, DATA, OWNER), (S, 10**9, b"", OWNER), (A, 10**9 + 1, b"", OWNER)],
    "SYN and ACK opens nothing": [("SA", 100, b"", PREVIOUS), (A, 101, b"", PREVIOUS)],
    "SYN and RST opens nothing": [("SR", 100, b"", PREVIOUS), (A, 101, b"", PREVIOUS)],
    "SYN and FIN opens nothing": [("SF", 100, b"", PREVIOUS), (A, 101, b"", PREVIOUS)],
    "RST and FIN of flows from before": [("RA", 5, b"", PREVIOUS), ("FA", 5, b"", PREVIOUS), ("R", 5, b"", PREVIOUS)],
    "RST begins nothing": [(S, 100, b"", OWNER), ("R", 101, b"", OWNER), (A, 10**6, DATA, PREVIOUS)],
}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("rule", RULES)
def test_rule(balancer, rule, family):
    flows = Flows(balancer, family=family)
    for number, (flags, sequence, data, to) in enumerate(RULES[rule]):
        assert flows.send(flags, sequence, data) == to, f"step {number}"


def test_entry(flows):
    before = flows.counters()
    flows.send("S", 100)
    key = ipaddress.ip_address(CLIENT[4]).packed + ipaddress.ip_address(VIP[4]).packed + struct.pack(
        ">HHB3x", 1000, PORT, TCP)
    fingerprint = siphash13(KEY, key)
    assert flows.entry() == Entry(fingerprint, NOW + OPENING + 1, None, OWNER, 100, fingerprint >> 32, 5, False)
    assert not flows.tracked and flows.risen(before) == {"opened": 1}
    flows.clock(3)
    flows.send("A", 101)
    assert flows.entry() == Entry(fingerprint, NOW + 3 + SETTLE_AFTER + 1, OWNER, OWNER, 100, fingerprint >> 32, 5, False)
    assert flows.risen(before) == {"opened": 1, "established": 1}
    flows.send("A", 102)
    assert flows.tracked and flows.risen(before) == {"opened": 1, "established": 1}


def test_nothing_is_kept_of_a_flow_from_before(flows):
    flows.send("A", 5, DATA)
    assert flows.entries() == [] and not flows.tracked


def test_position_is_the_clients_with_affinity_source(balancer):
    flows = Flows(balancer, affinity=SOURCE)
    flows.establish()
    flows.establish(port=1001, sequence=500)
    first, second = flows.entries()
    assert first.position == second.position and first.fingerprint != second.fingerprint
    assert first.fingerprint >> 32 != first.position


def test_a_renewed_syn_holds_its_entry(flows):
    flows.send("S", 100)
    flows.clock(8)
    flows.send("S", 100)
    assert flows.entry().deadline == flows.now + OPENING + 1
    flows.clock(8)
    assert flows.send("A", 101) == OWNER


def test_a_late_copy_of_the_syn_follows_the_connection(flows):
    flows.establish()
    flows.ring(THIRD, PREVIOUS)
    assert flows.send("S", 100) == OWNER and flows.tracked
    assert flows.send("A", 102, DATA) == OWNER


def test_flows_stay_through_several_changes(flows):
    flows.establish()
    flows.ring(THIRD, PREVIOUS)
    flows.establish(port=1001, to=THIRD)
    flows.ring(PREVIOUS, PREVIOUS)
    assert flows.send("A", 200, DATA) == OWNER
    assert flows.send("A", 200, DATA, port=1001) == THIRD
    assert flows.send("A", 200, DATA, port=1002) == PREVIOUS


def test_fin_and_rst_shorten_and_data_lengthens(flows):
    flows.establish()
    for flags in ("FA", "R", "RA"):
        flows.send("A", 102, DATA)
        assert flows.entry().deadline == NOW + SETTLE_AFTER + 1 and not flows.entry().closing
        assert flows.send(flags, 103) == OWNER
        assert flows.entry().deadline == NOW + CLOSING + 1 and flows.entry().closing
        assert flows.send("A", 103) == OWNER
        assert flows.entry().closing  # the last ACK of a connection that ends
    flows.clock(CLOSING)
    assert flows.send("A", 103) == OWNER
    assert flows.entry().deadline == flows.now + CLOSING + 1


def test_a_new_connection_ends_closing(flows):
    flows.establish()
    flows.send("FA", 103)
    flows.send("S", 10**6)
    assert flows.send("A", 10**6 + 1) == OWNER
    assert flows.entry().deadline == NOW + SETTLE_AFTER + 1 and not flows.entry().closing


def test_closing_never_lengthens(balancer):
    flows = Flows(balancer, settle_after=30)
    flows.establish()
    flows.send("FA", 102)
    assert flows.entry().deadline == NOW + 31


def test_openings_have_a_quota(flows):
    before = flows.counters()
    assert flows.send("S", 100, port=1000) == OWNER
    assert flows.send("S", 100, port=1001) == PREVIOUS
    assert flows.send("A", 101, port=1001) == PREVIOUS
    assert flows.risen(before) == {"opened": 1, "refused_quota": 1} and len(flows.entries()) == 1
    flows.send("A", 101, port=1000)  # established: no opening any more
    assert flows.send("S", 300, port=1002) == OWNER


def test_answers_to_forged_syns_do_not_pass_the_quota(flows):
    for port in range(1000, 1010):
        flows.send("S", 100, port=port)
        flows.send("R", 101, port=port)
    assert len(flows.entries()) == 1 and flows.entry().established is None


def test_a_full_bucket_refuses(flows):
    for port in range(1000, 1004):
        flows.establish(port)
    before = flows.counters()
    assert flows.send("S", 100, port=1004) == PREVIOUS and not flows.tracked
    assert flows.send("A", 101, port=1004) == PREVIOUS
    assert flows.risen(before) == {"refused_full": 1}
    for port in range(1000, 1004):
        assert flows.send("A", 105, DATA, port=port) == OWNER
        assert flows.send("S", 10**8, port=port) == OWNER  # each has an entry, where SYNs find room


def test_expired_entries_are_given_away_and_no_others(flows):
    for port in range(1000, 1004):
        flows.establish(port)
    flows.clock(SETTLE_AFTER)
    flows.send("A", 105, port=1002)
    before = flows.counters()
    assert flows.send("S", 100, port=1004) == PREVIOUS  # just not yet
    flows.clock(1)
    assert flows.send("S", 100, port=1004) == OWNER
    assert flows.risen(before) == {"refused_full": 1, "opened": 1, "reused": 1}
    assert flows.send("A", 106, port=1002) == OWNER
    # The others have expired, but are still there.
    assert sorted(flows.send("A", 106, port=port) for port in (1000, 1001, 1003)) == [OWNER, OWNER, PREVIOUS]


def test_free_entries_are_taken_before_expired_ones(flows):
    flows.establish(1000)
    flows.clock(SETTLE_AFTER + 1)
    for port in range(1001, 1004):
        flows.establish(port)
    assert flows.send("A", 106, port=1000) == OWNER


def test_openings_expire_early(flows):
    flows.send("S", 100, port=1000)
    flows.clock(OPENING)
    assert flows.send("S", 100, port=1001) == PREVIOUS
    flows.clock(1)
    before = flows.counters()
    for port in range(1001, 1005):
        flows.establish(port)
    assert flows.risen(before)["reused"] == 1
    assert flows.send("A", 101, port=1000) == PREVIOUS


def test_a_syn_holds_an_expired_entry(flows):
    for port in range(1000, 1004):
        flows.establish(port)
    flows.clock(SETTLE_AFTER + 1)
    for port in range(1001, 1004):
        flows.send("A", 105, port=port)
    assert flows.send("S", 10**6, port=1000) == OWNER
    assert flows.send("S", 100, port=1004) == PREVIOUS
    assert flows.send("A", 10**6 + 1, port=1000) == OWNER


def test_a_backend_that_went_down_gets_nothing_again(flows):
    flows.establish()
    flows.establish(port=1001)
    flows.ring(THIRD, PREVIOUS)
    flows.down(OWNER)
    before = flows.counters()
    assert flows.send("A", 105, DATA) == THIRD
    assert flows.risen(before) == {"lost_backend": 1}
    flows.ring(OWNER, PREVIOUS)  # it is up again
    flows.ring(THIRD, PREVIOUS)
    assert flows.send("A", 105, DATA) == THIRD
    assert flows.send("S", 100) == THIRD  # neither the SYN sent again
    assert flows.send("S", 10**6, port=1001) == THIRD
    assert flows.send("A", 10**6 + 1, port=1001) == THIRD
    assert flows.send("A", 10**6 + 2, port=1001) == THIRD and flows.tracked


def test_an_opening_to_a_backend_that_went_down(flows):
    flows.send("S", 100)
    flows.ring(THIRD, PREVIOUS)
    flows.down(OWNER)
    assert flows.send("A", 101) == PREVIOUS
    assert flows.send("S", 100) == THIRD
    assert flows.send("A", 101) == THIRD


def test_nobody_owns(flows):
    flows.establish()
    flows.ring(NOBODY, PREVIOUS)
    assert flows.send("S", 100, port=1001) == NOBODY
    assert flows.send("S", 10**6) == NOBODY
    assert flows.send("A", 105, DATA) == OWNER
    assert flows.send("A", 105, DATA, port=1002) == PREVIOUS
    flows.down(OWNER)
    assert flows.send("A", 105, DATA) == NOBODY
    assert len(flows.entries()) == 1


def test_stamps(flows):
    flows.establish()
    flows.send("A", 105, DATA)
    flows.send("S", 10**6, port=1001)
    assert flows.stamp() == 0 and flows.last_old(OWNER) == 0  # all to the owner
    flows.send("A", 5, port=1002)
    assert flows.stamp() == flows.last_old(PREVIOUS) == NOW
    flows.clock(7)
    flows.ring(THIRD, PREVIOUS)  # its stamps begin anew
    flows.send("A", 106, DATA)
    assert flows.stamp() == flows.last_old(OWNER) == NOW + 7 and flows.last_old(PREVIOUS) == NOW


def test_a_refused_opening_holds_the_arc_while_it_lasts(flows):
    flows.send("S", 100)
    flows.send("S", 100, port=1001)
    assert flows.stamp() == NOW - SETTLE_AFTER + OPENING and flows.last_old(PREVIOUS) == 0
    flows.send("A", 101, port=1001)
    flows.send("S", 100, port=1002)
    assert flows.stamp() == NOW


@pytest.mark.parametrize("protocol", [TCP, UDP])
@pytest.mark.parametrize("moved", [False, True])
def test_track_none(balancer, protocol, moved):
    flows = Flows(balancer, track=TRACK_NONE, protocol=protocol, moved=moved)
    for flags in ("S", "A", "FA"):
        assert flows.send(flags, 100) == OWNER
    assert flows.entries() == [] and flows.stamp() == 0 and flows.last_old(OWNER) == 0


def test_an_ordinary_arc_keeps_nothing(balancer):
    flows = Flows(balancer, moved=False)
    for flags in ("S", "A", "FA"):
        assert flows.send(flags, 100) == OWNER
    assert flows.entries() == []


@pytest.mark.parametrize("family", [4, 6])
def test_udp_in_a_moved_arc_stays(balancer, family):
    flows = Flows(balancer, protocol=UDP, family=family)
    assert flows.send(data=DATA) == PREVIOUS
    assert flows.entries() == [] and flows.stamp() == NOW


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("protocol", [TCP, UDP])
def test_track_always(balancer, protocol, family):
    flows = Flows(balancer, track=ALWAYS, protocol=protocol, moved=False, family=family)
    before = flows.counters()
    assert flows.send("A", 100, DATA) == OWNER
    assert flows.entry().established == OWNER and flows.entry().deadline == NOW + SETTLE_AFTER + 1
    assert flows.risen(before) == {"established": 1}
    flows.ring(THIRD)  # not even moved
    assert flows.send("A", 101, DATA) == OWNER and flows.tracked
    assert flows.last_old(OWNER) == NOW and flows.stamp() == 0
    assert flows.send("A", 5, DATA, port=1001) == THIRD


def test_track_always_in_a_moved_arc(balancer):
    tcp = Flows(balancer, track=ALWAYS)
    assert tcp.send("A", 100, DATA) == PREVIOUS and tcp.entry().established == PREVIOUS
    tcp.establish(port=1001)
    udp = Flows(balancer, track=ALWAYS, protocol=UDP)
    assert udp.send(data=DATA) == OWNER and udp.entry().established == OWNER


def test_track_always_remembers_no_end(balancer):
    flows = Flows(balancer, track=ALWAYS, moved=False)
    for flags in ("R", "RA", "FA"):
        assert flows.send(flags, 100) == OWNER
    assert flows.entries() == []


@pytest.mark.parametrize("moved", [False, True])
def test_track_always_full(balancer, moved):
    flows = Flows(balancer, track=ALWAYS, protocol=UDP, moved=moved)
    for port in range(1000, 1004):
        assert flows.send(data=DATA, port=port) == OWNER
    before = flows.counters()
    assert flows.send(data=DATA, port=1004) == (PREVIOUS if moved else OWNER)
    assert flows.risen(before) == {"refused_full": 1}


def test_an_exchange_that_was_silent_is_another(balancer):
    flows = Flows(balancer, track=ALWAYS, protocol=UDP, moved=False)
    flows.send(data=DATA)
    flows.ring(THIRD)
    flows.clock(SETTLE_AFTER)
    assert flows.send(data=DATA) == OWNER
    flows.clock(SETTLE_AFTER + 1)
    for _ in range(5):
        assert flows.send(data=DATA) == THIRD
    assert flows.entry().established == THIRD  # in its place, and not one for each packet


def test_an_exchange_goes_on_with_another_backend(balancer):
    flows = Flows(balancer, track=ALWAYS, protocol=UDP, moved=False)
    flows.send(data=DATA)
    flows.ring(THIRD)
    flows.down(OWNER)
    assert flows.send(data=DATA) == THIRD
    flows.ring(PREVIOUS)
    assert flows.send(data=DATA) == THIRD


@pytest.mark.parametrize("affinity", [FLOW, SOURCE])
@pytest.mark.parametrize("family", [4, 6])
def test_errors_follow_the_flow(balancer, family, affinity):
    """What is only about a flow opens nothing, refreshes nothing and stamps nothing."""
    flows = Flows(balancer, family=family, affinity=affinity)
    assert flows.hear() == PREVIOUS  # nothing is known of it: a flow from before
    flows.send("S", 100)
    assert flows.hear() == OWNER  # its opening's
    flows.send("A", 101)
    flows.ring(THIRD, PREVIOUS)
    assert flows.hear() == OWNER  # its established choice
    flows.send("S", 10**9)
    assert flows.hear() == OWNER  # and not that of a SYN since
    assert flows.hear(port=1001) == PREVIOUS
    flows.down(OWNER)
    assert flows.hear() == THIRD  # the SYN's, which counts


def test_errors_about_a_lost_flow_go_where_its_packets_go(flows):
    flows.establish()
    flows.ring(THIRD, PREVIOUS)
    flows.down(OWNER)
    assert flows.hear() == THIRD == flows.send("A", 102, DATA)


@pytest.mark.parametrize("family", [4, 6])
def test_errors_follow_exchanges(balancer, family):
    flows = Flows(balancer, track=ALWAYS, protocol=UDP, family=family, moved=False)
    assert flows.hear() == OWNER
    flows.send(data=DATA)
    flows.ring(THIRD)
    assert flows.hear() == OWNER and flows.hear(port=1001) == THIRD
    flows.clock(SETTLE_AFTER + 1)
    assert flows.hear() == THIRD  # that was silent, and begins anew


def test_errors_where_nothing_is_kept(balancer):
    assert Flows(balancer, track=TRACK_NONE).hear() == OWNER
    assert Flows(balancer, moved=False).hear() == OWNER
