# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Connections of QUIC over random changes of their arc's owner, with strays and forged packets between theirs: none ever
meets another backend than the one that its first Initial went to, however small the flow table; and where it has room,
not even when their addresses change.
"""
import os
import random
import struct
from dataclasses import dataclass

import harness
import pytest
from tables import OUTPUT, OUTPUTS
from test_quic import Quic, handshake, initial, long, short

OWNERS = range(1, 8)
SETTLE_AFTER = 60
REFUSED, REFUSED_BYTES = OUTPUTS + 64 * OUTPUT + 16, 2 * 512  # struct ringlb_tables.quic_refused
FULL = bool(os.environ.get("RINGLB_FULL"))
ROUNDS = 3000 if FULL else 300
SEEDS = range(8 if FULL else 2)
STEPS = (initial, initial, handshake, handshake, short)


@dataclass
class Connection:
    port: int
    made_up: bytes
    cid: bytes
    backend: int
    begun: int
    step: int = 0
    sent: int = 0


class World:
    def __init__(self, balancer, seed, buckets, cid_length, rebinds):
        self.rng = random.Random(seed)
        self.flows = Quic(balancer, buckets=buckets, cid_length=cid_length, settle_after=SETTLE_AFTER)
        self.owner, self.previous = 1, None
        self.connections = {}
        self.used = set()
        self.rebinds = rebinds
        self.rebound = self.refused = self.settled = 0

    def commit(self, owner, previous):
        """As user space does: what packets wrote goes on."""
        refused = self.flows.balancer.memory[REFUSED:REFUSED + REFUSED_BYTES]
        stamp = self.flows.now if owner != self.owner else self.flows.stamp()
        self.owner, self.previous = owner, previous
        self.flows.ring(owner, previous)
        self.flows.balancer.memory[REFUSED:REFUSED + REFUSED_BYTES] = refused
        for i in range(1 << self.flows.service.bits):
            struct.pack_into("<I", self.flows.balancer.memory, self.flows.service.cold + 8 * i + 4, stamp)

    def change(self):
        owner = self.rng.choice([o for o in OWNERS if o != self.owner])
        self.commit(owner, self.owner if self.previous is None else self.previous)

    def settle(self):
        """Where nothing came for the previous owner for so long."""
        if self.previous is not None and self.flows.now - self.flows.stamp() > SETTLE_AFTER:
            self.settled += 1
            self.commit(self.owner, None)

    def id(self):
        return self.rng.randbytes(8)

    def port(self, fresh=False):
        port = self.rng.choice([p for p in range(1000, 65000, 7) if p not in (self.used if fresh else self.connections)])
        self.used.add(port)
        return port

    def open(self):
        port, made_up = self.port(), self.id()
        before = self.flows.counters()
        backend = self.flows.packet(port, initial(made_up))
        self.refused += self.flows.risen(before).get("refused_quota", 0)
        self.connections[port] = Connection(port, made_up, self.id(), backend, self.flows.now, sent=self.flows.now)

    def go_on(self, connection):
        """Its next packet: the last kind of STEPS again and again."""
        kind = STEPS[connection.step]
        connection.step = min(connection.step + 1, len(STEPS) - 1)
        cid = connection.made_up if connection.step == 1 else connection.cid
        if connection.step == 2 and self.rng.random() < 0.3:
            kind, cid = (lambda cid: long("0-rtt", cid)), connection.made_up
        connection.sent = self.flows.now
        assert self.flows.packet(connection.port, kind(cid)) == connection.backend, connection

    def rebind(self, connection):
        """To where nobody was: a 4-tuple that is remembered of another connection wins."""
        if connection.step < len(STEPS) - 1:
            return
        del self.connections[connection.port]
        connection.port = self.port(fresh=True)
        self.connections[connection.port] = connection
        self.rebound += 1
        self.go_on(connection)

    def renew(self, connection):
        """Another id, from where the last packet came from."""
        if connection.step == len(STEPS) - 1:
            connection.cid = self.id()
            self.go_on(connection)
            self.go_on(connection)

    def disturb(self):
        """What anybody may send, as if from a client or from nowhere."""
        port = self.rng.choice([*self.connections, self.port()])
        packet = self.rng.choice([initial, short, lambda cid: long("0-rtt", cid), lambda cid: long("handshake", cid, version=9)])
        if port in self.connections and packet is short and self.connections[port].step < len(STEPS) - 1:
            return
        self.flows.packet(port, packet(self.id()))

    def time(self):
        """Ten seconds are enough for a handshake; nobody is silent for as long as settle_after."""
        self.flows.clock(self.rng.choice((1, 3)))
        for connection in list(self.connections.values()):
            late = self.flows.now - connection.begun > 5 and connection.step < len(STEPS) - 1
            while late and connection.step < len(STEPS) - 1:
                self.go_on(connection)
            if self.flows.now - connection.sent > SETTLE_AFTER // 2:
                self.go_on(connection)
        self.settle()

    def play(self):
        for _ in range(ROUNDS):
            what = self.rng.random()
            living = list(self.connections.values())
            if what < 0.25 and len(living) < 60:
                self.open()
            elif what < 0.3:
                self.change()
            elif what < 0.4:
                self.time()
            elif what < 0.5:
                self.disturb()
            elif living and what < 0.55 and self.rebinds:
                self.rebind(self.rng.choice(living))
            elif living and what < 0.6 and self.rebinds:
                self.renew(self.rng.choice(living))
            elif living and what < 0.65:
                self.connections.pop(self.rng.choice(living).port)
            elif living:
                self.go_on(self.rng.choice(living))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("buckets", [1, 8, 64])
@pytest.mark.parametrize("cid_length", [0, 8])
def test_addresses_that_stay(namespace, seed, buckets, cid_length):
    balancer = harness.Balancer(buckets)
    try:
        world = World(balancer, seed, buckets, cid_length, False)
        world.play()
    finally:
        balancer.close()
    assert world.refused or buckets == 64


@pytest.mark.parametrize("seed", SEEDS)
def test_addresses_that_change(namespace, seed):
    balancer = harness.Balancer(4096)
    try:
        world = World(balancer, seed, 4096, 8, True)
        world.play()
    finally:
        balancer.close()
    assert world.rebound > 5
