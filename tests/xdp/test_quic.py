# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Packets of QUIC as data, and where each must go. One arc is the whole ring; while a test runs it gets other owners, so
that a packet shows what it is chosen by. Ids are of 8 bytes, as the service says, where nothing else stands.
"""
import ipaddress
import random
import struct
from dataclasses import dataclass, field

import harness
import pytest
from scapy.packet import Raw
from tables import QUIC, UDP, Backend, Service, mapped, siphash13
from test_flows import ALWAYS, CLIENT, MOVED, NOBODY, OPENING, PORT, SETTLE_AFTER, TRACK_NONE, VIP, Flows, frame_of
from test_icmp import answer_of, error
from test_icmp import frame_of as error_frame

KEY = harness.KEY
ONE, TWO, THREE = 1, 2, 3
BUCKETS = 1024
REBOUND = 2
V1, V2 = 1, 0x6b3343cf
A, B, C, D = 1000, 1001, 1002, 1003  # the client's ports: each a 4-tuple of its own
X, W = b"made up by client", b"made up elsewhere"  # ids
Y, Z, OTHER = b"servers1", b"servers2", b"servers3"


def long(kind, dcid, version=V1, scid=b"client"):
    """The start of a packet with a long header, and some of its rest."""
    types = {"initial": 0, "0-rtt": 1, "handshake": 2, "retry": 3}
    kind = (types[kind] + (version == V2)) % 4
    return struct.pack(">BIB", 0xc0 | kind << 4, version, len(dcid)) + dcid + bytes([len(scid)]) + scid + bytes(40)


def initial(dcid, **options):
    return long("initial", dcid, **options)


def handshake(dcid, **options):
    return long("handshake", dcid, **options)


def short(dcid):
    return b"\x40" + dcid + bytes(24)


def negotiation(dcid):
    return long("initial", dcid, version=0)


@dataclass
class Quic(Flows):
    """Flows, but of QUIC, and with a table of so many buckets."""
    protocol: int = UDP
    affinity: int = QUIC
    moved: bool = False
    buckets: int = BUCKETS
    cid_length: int = 8
    server_id: tuple = (0, 0)
    servers: dict = field(default_factory=dict)

    def __post_init__(self):
        size = self.buckets * 128
        self.table = self.balancer.object.mapped("flows", size)
        self.table[:size] = bytes(size)
        self.balancer.memory[:4096] = bytes(4096)
        super().__post_init__()

    def ring(self, owner, previous=None):
        owners = sorted({owner, owner if previous is None else previous})
        arc = (0xffffffff, owners.index(owner)) + (() if previous is None else (owners.index(previous),))
        self.service = Service(VIP[self.family], PORT, UDP, [arc], owners=owners, track=self.track, affinity=QUIC, index=5,
                               settle_after=self.settle_after, cid_length=self.cid_length, server_id=self.server_id,
                               servers=self.servers)
        backends = [Backend(f"10.0.0.{i}", (0x020000000000 | i) << 16, self.jiffies & 0xffffffff) for i in range(8)]
        before = bytes(self.balancer.backends) if self.revision else None
        self.balancer.configure([self.service], backends)
        if before:
            self.balancer.backends[:] = before
        self.revision += 1
        self.clock(0)

    def all(self):
        """Everything that a packet could write."""
        return bytes(self.table[:self.buckets * 128]), self.counters(), bytes(self.balancer.backends), bytes(
            self.balancer.memory[:1 << 16])

    def packet(self, port, payload, client=None):
        """Where it goes, as the program `lookup` said beforehand, which changes nothing."""
        frame = bytearray(frame_of(self.family, UDP, port, "", 0, payload))
        if client:
            at, size = (26, 4) if self.family == 4 else (22, 16)
            frame[at:at + size] = ipaddress.ip_address(client).packed
        before = self.all()
        answer = self.balancer.lookup(bytes(frame).ljust(64, b"\0"))
        assert before == self.all()
        verdict, _, out = self.balancer.verdict_of(frame)
        to = out[5] if verdict == "forwarded" else NOBODY
        assert answer["backend"] == to
        self.tracked = bool(answer["tracked"])
        return to

    def tuple_of(self, port):
        """The fingerprint of a client's 4-tuple."""
        key = ipaddress.ip_address(CLIENT[self.family]).packed + ipaddress.ip_address(VIP[self.family]).packed
        key += struct.pack(">HHB3x", port, PORT, UDP)
        return siphash13(KEY, key)

    def id_of(self, cid):
        return siphash13(KEY, mapped(VIP[self.family]) + cid.ljust(24, b"\0") + struct.pack(">HB5x", PORT, len(cid)))

    def table_of(self):
        """{fingerprint: (deadline less now, established, opening, tag, position, service, flags)}"""
        found = {}
        for at in range(0, self.buckets * 128, 32):
            fingerprint, established, opening, place = struct.unpack_from("<4Q", self.table, at)
            if not fingerprint:
                continue
            assert at // 128 == (fingerprint & 0xffffffff) * self.buckets >> 32
            choice = established & 0xffffffff
            found[fingerprint] = ((established >> 32) - self.now, choice & 0xffff if choice else None,
                                  opening & 0xffff if opening & 0xffffffff else None, opening >> 32, place >> 32,
                                  place >> 16 & 0xffff, place & 0xffff)
        return found

    def play(self, steps):
        """Steps: ("ring", owner[, previous]), ("clock", seconds), ("down", backend), or (port, payload, where to)."""
        for number, (what, *rest) in enumerate(steps):
            if isinstance(what, str):
                getattr(self, what)(*rest)
            else:
                assert self.packet(what, rest[0]) == rest[1], f"step {number}"

    def connect(self, port=A, server=Y, client=X, to=ONE):
        """A whole handshake, as far as the client's packets go."""
        self.play([(port, initial(client), to), (port, initial(server), to), (port, handshake(server), to),
                   (port, short(server), to)])


@pytest.fixture(scope="module")
def large(namespace):
    balancer = harness.Balancer(BUCKETS)
    yield balancer
    balancer.close()


HANDSHAKE = [(A, initial(X), ONE), (A, handshake(Y), ONE), (A, short(Y), ONE)]
# On a ring that is ONE's when it begins, with an empty table.
RULES = {
    "rebinding": [*HANDSHAKE, ("ring", TWO), (A, short(Y), ONE), (B, short(Y), ONE), (B, short(Y), ONE), (C, short(OTHER), TWO)],
    "rebinding in the handshake": [(A, initial(X), ONE), (A, initial(Y), ONE), ("ring", TWO), (B, handshake(Y), ONE),
                                   (C, initial(Y), ONE)],
    "rebinding before any answer": [(A, initial(X), ONE), ("ring", TWO), (B, initial(X), ONE), (B, handshake(Y), ONE)],
    "0-RTT opens": [(A, long("0-rtt", X), ONE), ("ring", TWO), (A, initial(X), ONE), (B, long("0-rtt", X), ONE)],
    "the 4-tuple learns later ids": [*HANDSHAKE, (A, short(Z), ONE), ("ring", TWO), (B, short(Z), ONE), (B, short(OTHER), ONE),
                                     (B, short(OTHER), ONE), ("ring", THREE), (C, short(OTHER), ONE)],
    "the 4-tuple wins over the id": [*HANDSHAKE, ("ring", TWO), (B, initial(W), TWO), (B, handshake(Z), TWO), (B, short(Y), TWO),
                                     (A, short(Z), ONE), ("ring", THREE), (C, short(Y), ONE), (D, short(Z), TWO)],
    "a new connection on a known 4-tuple": [*HANDSHAKE, ("ring", TWO), (A, initial(W), ONE), (A, handshake(Z), ONE)],
    "another client": [*HANDSHAKE, ("ring", TWO), (B, initial(W), TWO), (B, handshake(Z), TWO), ("ring", ONE), (B, short(Z), TWO)],
    "after Retry": [(A, initial(X), ONE), ("ring", TWO), (A, initial(Z), ONE), (A, handshake(Y), ONE), (B, short(Y), ONE)],
    "version 2": [(A, initial(X, version=V2), ONE), (A, handshake(Y, version=V2), ONE), ("ring", TWO), (B, short(Y), ONE),
                  (C, initial(W, version=V2), TWO), (D, initial(X, version=V2), TWO)],
    "compatible version negotiation": [(A, initial(X), ONE), ("ring", TWO), (A, initial(Y, version=V2), ONE),
                                       (A, handshake(Y, version=V2), ONE), (B, short(Y), ONE)],
    "by the 4-tuple: version negotiation": [*HANDSHAKE, ("ring", TWO), (A, negotiation(Y), ONE), (B, negotiation(Y), TWO)],
    "by the 4-tuple: Retry": [*HANDSHAKE, ("ring", TWO), (A, long("retry", Y), ONE), (B, long("retry", Y), TWO)],
    "by the 4-tuple: Retry of version 2": [*HANDSHAKE, ("ring", TWO), (A, long("retry", Y, version=V2), ONE),
                                           (B, long("retry", Y, version=V2), TWO)],
    "by the 4-tuple: other versions": [*HANDSHAKE, ("ring", TWO), (A, handshake(Y, version=0xff00001d), ONE),
                                       (B, handshake(Y, version=0xff00001d), TWO), (B, handshake(Y, version=2), TWO)],
    "by the 4-tuple: ids beyond the datagram": [*HANDSHAKE, ("ring", TWO), (A, handshake(Y)[:13], ONE), (B, handshake(Y)[:13], TWO),
                                                (B, short(Y)[:8], TWO), (B, handshake(Y)[:14], ONE)],
    "by the 4-tuple: hardly a header": [*HANDSHAKE, ("ring", TWO), (A, b"", ONE), (A, b"\x40", ONE), (A, b"\xc0\0\0\0\1", ONE),
                                        (B, b"", TWO), (B, b"\xc0", TWO), (B, b"\xc0\0\0\0\1\0", TWO)],
    "by the 4-tuple: too long an id": [(A, initial(bytes(range(21))), ONE), ("ring", TWO), (A, initial(bytes(range(21))), TWO)],
    "the longest id": [(A, initial(bytes(range(20))), ONE), ("ring", TWO), (B, initial(bytes(range(20))), ONE),
                       (C, initial(bytes(range(1, 20))), TWO)],
    "ids of other lengths are others": [(A, initial(X + b"\0"), ONE), ("ring", TWO), (B, initial(X), TWO), (C, initial(X + b"\0"), ONE)],
    "servers without ids": [(A, initial(X), ONE), (A, handshake(b""), ONE), ("ring", TWO), (A, handshake(b""), ONE),
                            (B, handshake(b""), TWO)],
    "silence": [*HANDSHAKE, ("ring", TWO), ("clock", SETTLE_AFTER), (A, short(Y), ONE), ("clock", SETTLE_AFTER), (B, short(Y), ONE),
                ("clock", SETTLE_AFTER + 1), (A, short(OTHER), TWO), (B, short(Y), TWO)],
    "an opening expires": [(A, initial(X), ONE), ("ring", TWO), ("clock", OPENING), (A, initial(Y), ONE), ("clock", OPENING),
                           (A, initial(Z), ONE), ("clock", OPENING + 1), (A, initial(W), TWO)],
    "a backend that went down gets nothing again": [*HANDSHAKE, ("ring", TWO), ("down", ONE), (A, short(Y), TWO), (B, short(Y), TWO),
                                                    ("ring", ONE), (A, short(Y), TWO), (B, initial(W), TWO), (C, initial(X), ONE)],
    "a moved arc: a backend that went down": [*HANDSHAKE, ("ring", TWO, THREE), ("down", ONE), (A, short(Y), TWO)],
    "servers that take the client's id": [(A, initial(X), ONE), (A, handshake(X), ONE), ("ring", TWO), (B, handshake(X), ONE)],
    "a moved arc: from before": [("ring", TWO, ONE), (A, short(Y), ONE), (B, handshake(Z), ONE), (A, short(Y), ONE)],
    "a moved arc: new": [("ring", TWO, ONE), (A, initial(X), TWO), (A, initial(Y), TWO), (A, handshake(Y), TWO), (A, short(Y), TWO),
                         (B, short(Y), TWO)],
    "a moved arc: begun before": [(A, initial(X), ONE), ("ring", TWO, ONE), (A, initial(Y), ONE), (A, handshake(Y), ONE)],
    "a moved arc: several changes": [*HANDSHAKE, ("ring", TWO, ONE), (B, initial(X + b"2"), TWO), (B, handshake(Z), TWO),
                                     ("ring", THREE, ONE), (A, short(Y), ONE), (B, short(Z), TWO), (C, initial(W), THREE),
                                     (D, short(Z), TWO)],
    "a moved arc: an Initial of a short id opens nothing": [("ring", TWO, ONE), (A, initial(Y[:7]), ONE), (B, initial(Y), TWO)],
    "a moved arc: a forged Initial": [("ring", TWO, ONE), (A, initial(X), TWO), (A, short(OTHER), ONE), (A, short(b""), ONE)],
    "a moved arc: a forged Initial on a remembered flow": [*HANDSHAKE, ("ring", TWO, ONE), (A, initial(W), ONE), (A, short(Y), ONE)],
}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("rule", RULES)
def test_rule(large, rule, family):
    Quic(large, family=family).play(RULES[rule])


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("rule", ["rebinding", "a moved arc: new", "silence"])
def test_rule_with_track_always(large, rule, family):
    Quic(large, family=family, track=ALWAYS).play(RULES[rule])


# The same where the service does not say how long ids are: short headers go by their 4-tuple.
UNKNOWN_LENGTH = {
    "short headers": [*HANDSHAKE, ("ring", TWO), (A, short(Y), ONE), (B, short(Y), TWO)],
    "long headers": [*HANDSHAKE, ("ring", TWO), (B, handshake(Y), ONE), (B, short(Y), ONE)],
    "a moved arc": [("ring", TWO, ONE), (A, initial(X), TWO), (A, short(Y), ONE), (A, handshake(Y), TWO), (A, short(Y), TWO),
                    (B, short(Y), ONE)],
}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("rule", UNKNOWN_LENGTH)
def test_without_cid_length(large, rule, family):
    Quic(large, family=family, cid_length=0).play(UNKNOWN_LENGTH[rule])


def named(server, rest=b"fresh"):
    """An id of 8 bytes that names a server in bytes 1 and 2."""
    return rest[:1] + struct.pack(">H", server) + rest.ljust(6, b"\0")[1:6]


# Servers 7, 300 and 65535 are ONE, TWO and THREE; 9 is nobody.
NAMED = {
    "migration to a fresh id": [*HANDSHAKE, ("ring", TWO), (B, short(named(7)), ONE), (C, short(named(300)), TWO),
                                (D, short(named(65535)), THREE)],
    "in long headers": [("ring", TWO), (A, handshake(named(65535)), THREE), (B, handshake(named(65535) + b"x"), TWO)],
    "the 4-tuple wins": [*HANDSHAKE, (A, short(named(300)), ONE), (B, short(named(300)), TWO)],
    "the client's own ids name nobody": [(A, initial(named(300)), ONE), (B, long("0-rtt", named(65535)), ONE), ("ring", TWO),
                                         (C, initial(named(300)), ONE)],
    "no such server": [(A, short(named(9)), ONE), ("ring", TWO), (A, short(named(9)), ONE), (B, short(named(9)), ONE),
                       (C, short(named(10)), TWO)],
    "a moved arc": [("ring", TWO, ONE), (A, short(named(65535)), THREE), (B, short(named(9)), ONE)],
}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("rule", NAMED)
def test_ids_that_name_servers(large, rule, family):
    Quic(large, family=family, server_id=(1, 2), servers={7: ONE, 300: TWO, 65535: THREE}).play(NAMED[rule])


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_server_of_many_is_found(large, length):
    numbers = sorted(random.Random(length).sample(range(1, min(1 << 8 * length, 1 << 20)), 200))
    flows = Quic(large, cid_length=20, server_id=(20 - length, length), servers={n: i % 8 for i, n in enumerate(numbers)})
    for i, number in enumerate(numbers):
        cid = bytes(range(20 - length)) + number.to_bytes(length, "big")
        assert flows.balancer.lookup(frame_of(4, UDP, 2000, "", 0, short(cid)))["backend"] == i % 8
    missing, = random.Random(0).sample(sorted(set(range(1, 256)) - set(numbers)), 1)
    cid = bytes(20 - length) + missing.to_bytes(length, "big")
    assert flows.balancer.lookup(frame_of(4, UDP, 2000, "", 0, short(cid)))["backend"] == ONE


def test_ids_that_name_their_server_are_not_remembered(large):
    flows = Quic(large, server_id=(1, 2), servers={7: ONE, 300: TWO})
    flows.connect(server=named(7))
    assert set(flows.table_of()) == {flows.tuple_of(A)}


def test_no_tracking(large):
    """Nothing is remembered; ids that name their server still do."""
    flows = Quic(large, track=TRACK_NONE, server_id=(1, 2), servers={300: TWO})
    flows.play([(A, initial(X), ONE), (A, handshake(named(300)), TWO), ("ring", THREE, ONE), (A, handshake(Y), THREE)])
    assert flows.table_of() == {}


@pytest.mark.parametrize("family", [4, 6])
def test_entries(large, family):
    flows = Quic(large, family=family)
    tuple_, made_up, cid = flows.tuple_of(A), flows.id_of(X), flows.id_of(Y)
    before = flows.counters()
    flows.play([(A, initial(X), ONE)])
    of_tuple = (OPENING + 1, None, ONE, made_up & 0xffffffff, tuple_ >> 32, 5, 0)
    assert flows.table_of() == {tuple_: of_tuple, made_up: (OPENING + 1, None, ONE, 0, made_up >> 32, 5, REBOUND)}
    assert not flows.tracked and flows.risen(before) == {"opened": 2}
    flows.clock(2)
    flows.play([(A, initial(X), ONE)])
    assert flows.tracked and flows.table_of()[tuple_] == of_tuple  # held for ten seconds more
    flows.play([(A, handshake(Y), ONE)])
    established = (SETTLE_AFTER + 1, ONE, None, 0, tuple_ >> 32, 5, 0)
    assert flows.table_of() == {tuple_: established, cid: (SETTLE_AFTER + 1, ONE, None, 0, cid >> 32, 5, REBOUND)}
    assert flows.risen(before) == {"opened": 2, "established": 2}
    flows.ring(TWO)
    flows.clock(5)
    flows.play([(B, short(Y), ONE)])
    rebound = flows.tuple_of(B)
    assert flows.table_of()[rebound] == (SETTLE_AFTER + 1, ONE, None, 0, rebound >> 32, 5, REBOUND)
    assert flows.table_of()[tuple_][0] == SETTLE_AFTER + 1 - 5 and flows.table_of()[cid][0] == SETTLE_AFTER + 1


def test_stamps(large):
    """An old flow holds its arc moved and its backend in use; one that came from elsewhere only the latter."""
    flows = Quic(large)
    flows.connect()
    flows.ring(TWO, ONE)
    assert flows.stamp() == 0 and flows.last_old(ONE) == 0
    flows.play([(A, short(Y), ONE)])
    assert flows.stamp() == flows.last_old(ONE) == flows.now
    flows.ring(TWO, THREE)
    flows.clock(1)
    flows.play([(B, short(Y), ONE)])
    assert flows.stamp() == 0 and flows.last_old(ONE) == flows.now
    flows.clock(1)
    flows.play([(B, short(Y), ONE)])
    assert flows.stamp() == 0 and flows.last_old(ONE) == flows.now
    flows.ring(TWO, THREE)
    flows.clock(1)
    flows.play([(C, short(OTHER), THREE)])
    assert flows.stamp() == flows.last_old(THREE) == flows.now


@pytest.fixture
def narrow(balancer):
    """A table of one bucket, which holds one opening, on a moved arc from ONE to TWO."""
    flows = Quic(balancer, buckets=1)
    flows.ring(TWO, ONE)
    return flows


def test_what_was_refused_stays_where_it_was_sent(narrow):
    """B's opening uses up the share; when there is room again A's Initial, which now has the server's id, does not open."""
    before = narrow.counters()
    narrow.play([(B, initial(W), TWO), (A, initial(X), ONE)])
    assert narrow.risen(before)["refused_quota"] >= 1 and narrow.tuple_of(A) not in narrow.table_of()
    ago = narrow.now + OPENING - SETTLE_AFTER
    assert narrow.stamp() == ago & 0xffffffff  # for so long, should nothing come
    narrow.clock(1)
    narrow.play([(B, handshake(b""), TWO), (A, initial(Y), ONE), (A, handshake(Y), ONE), (A, short(Y), ONE)])
    narrow.clock(OPENING + 1)
    narrow.play([(A, short(Y), ONE)])


def test_refusal_goes_on_while_it_is_refused(narrow):
    narrow.play([(B, initial(W), TWO), (A, initial(X), ONE), ("clock", 8), (B, initial(W), TWO), (A, initial(X), ONE),
                 ("clock", 8), (B, handshake(b""), TWO), (A, initial(Y), ONE)])


def test_what_an_id_says_needs_no_room(narrow):
    narrow.play([(A, initial(X), TWO), (A, handshake(Y), TWO), (A, handshake(Y), TWO), ("ring", THREE, ONE),
                 (B, initial(W), THREE), (C, initial(Y), TWO), (D, short(Y), TWO)])
    assert narrow.tuple_of(C) not in narrow.table_of()


def test_refusal_is_over_after_a_while(narrow):
    narrow.play([(B, initial(W), TWO), (A, initial(X), ONE)])
    narrow.clock(OPENING + 1)
    narrow.play([(A, initial(X), TWO)])


def test_frozen(large):
    """Nothing new is remembered while the table is copied, and what was sent back meanwhile does not open afterwards."""
    flows = Quic(large)
    flows.connect()
    flows.ring(TWO, ONE)
    struct.pack_into("<I", flows.balancer.memory, 20, 1)
    before = set(flows.table_of())
    flows.play([(B, initial(W), ONE), (A, short(Y), ONE), (C, short(Y), ONE)])
    assert set(flows.table_of()) == before
    struct.pack_into("<I", flows.balancer.memory, 20, 0)
    flows.play([(B, initial(Z), ONE), (B, handshake(Z), ONE)])


def test_frozen_void_entries(large):
    """An entry whose backend is gone is not given another choice while it is being copied."""
    flows = Quic(large)
    flows.connect()
    flows.down(ONE)
    flows.ring(TWO, THREE)
    struct.pack_into("<I", flows.balancer.memory, 20, 1)
    before = flows.table_of()
    flows.play([(A, initial(W), THREE)])
    assert flows.table_of() == before


def test_the_id_of_another_connection_is_left_alone(large):
    flows = Quic(large)
    flows.connect()
    flows.ring(TWO)
    flows.connect(B, Z, W, TWO)
    before = flows.table_of()[flows.id_of(Y)]
    flows.clock(5)
    flows.play([(B, short(Y), TWO)])
    assert flows.table_of()[flows.id_of(Y)] == (before[0] - 5, *before[1:])


@pytest.mark.parametrize("moved", [False, True])
def test_a_flood_takes_the_openings_share(large, moved):
    """Initials from everywhere with ids of all kinds: no entry is established, and living connections keep theirs."""
    rng = random.Random(1)
    flows = Quic(large)
    living = [(3000 + i, b"client%d" % i, b"serv%04d" % i) for i in range(20)]
    for port, made_up, cid in living:
        flows.connect(port, cid, made_up.ljust(8))
    kept = {f for f, e in flows.table_of().items() if e[1] is not None}
    assert len(kept) > 30
    if moved:
        flows.ring(TWO, ONE)
    for _ in range(3000):
        client = ".".join(str(rng.randrange(1, 224)) for _ in range(4))
        port = rng.randrange(1, 65536) if rng.random() < 0.9 else rng.randrange(1, 4)
        flows.balancer.run(_frame(client, port, initial(rng.randbytes(rng.choice((8, 8, 18, 20))))))
    table = flows.table_of()
    assert {f for f, e in table.items() if e[1] is not None} == kept
    openings = [0] * BUCKETS
    for fingerprint, entry in table.items():
        openings[(fingerprint & 0xffffffff) * BUCKETS >> 32] += entry[1] is None
    assert max(openings) == 1
    for port, _, cid in living:
        assert flows.packet(port, short(cid)) == ONE


def _frame(client, port, payload):
    frame = bytearray(frame_of(4, UDP, port, "", 0, payload))
    frame[26:30] = ipaddress.ip_address(client).packed
    return bytes(frame)


def test_a_full_table_leaves_the_ring(narrow):
    """Nothing can be remembered: an ordinary arc's owner, in a moved arc its previous one."""
    for i in range(4):
        narrow.play([(3000 + i, initial(b"client%d " % i), TWO), (3000 + i, handshake(b""), TWO)])
    before = narrow.table_of()
    assert len(before) == 4
    narrow.play([(A, initial(X), ONE), (A, handshake(Y), ONE), (B, short(Y), ONE), ("ring", THREE), (C, initial(W), THREE),
                 (A, short(Y), THREE), (3000, short(Y), TWO)])
    assert set(narrow.table_of()) == set(before)


def test_other_services_look_at_no_ids(large):
    flows = Quic(large)
    flows.connect()
    flows.ring(TWO)
    flows.service.affinity = 0
    flows.service.track = 0
    flows.balancer.configure([flows.service], [])
    assert flows.balancer.lookup(frame_of(4, UDP, B, "", 0, short(Y)))["backend"] == TWO


@pytest.mark.parametrize("family,name", [(4, "too big"), (4, "unreachable"), (6, "too big"), (6, "unreachable")])
def test_icmp_errors_go_by_the_4_tuple(large, family, name):
    """The quoted packet's id is of the client's making, whatever it looks like. Nothing is learned, or held."""
    flows = Quic(large, family=family)
    flows.connect()
    flows.ring(TWO, THREE)
    flows.connect(B, Z, W, TWO)
    flows.clock(1)
    before = flows.all()[:3], flows.stamp()
    for port, backend in ((A, ONE), (B, TWO), (C, THREE)):
        quoted = answer_of(family, UDP, port)
        quoted[Raw].load = short(Y)
        verdict, _, out = large.verdict_of(error_frame(error(family, name, quoted)))
        assert (verdict, out[5]) == ("forwarded", backend)
    after = flows.all()[:3], flows.stamp()
    assert before[0][:2] == after[0][:2] and before[1] == after[1]
