#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Holds what the balancer did against the model. Standard input, a line each; a tuple is a number, and a cell of its own:

    start TUPLES
    settle TUPLE...                 arcs that the next commit makes ordinary first
    commit NAME:STATE,... OWNER...  backends of the service's table; each tuple's owner
    arcs MOVED:PREVIOUS...          what then stands in the table, for each tuple
    entries TUPLE...                what then is in the flow table
    reused TUPLE                    its entry had expired and was given to another
    open TUPLE ISN KEPT BACKEND     a SYN, whether an entry is there afterwards, and where it went
    packet TUPLE SEQ DATA BACKEND   any other packet, whether it had data, and where it went

Where bookkeeping differs by intent the model is told: what the kernel refused or had expired, which arcs settled. An arc
that was ordinary and whose owner is dead has no flow to keep: the tables leave it ordinary. An arc that settles and moves
again in one commit keeps its entries, which are right as they are. A backend that has left the service's table, while the
other pool still has it, keeps the connections that the flow table knows to be with it: "elsewhere".
"""
import sys

import moved_arcs_model as model


class Mismatch(Exception):
    pass


def expect(what, is_, should):
    if is_ != should:
        raise Mismatch(f"{what}: the balancer says {is_}, the model {should}")


class Replay:
    def __init__(self):
        self.lb = None
        self.packets = 0

    def start(self, tuples):
        model.CELLS, self.lb = int(tuples), None

    def settle(self, *tuples):
        for cell in map(int, tuples):
            expect(f"{cell} settles: moved", True, self.lb.moved[cell])
            self.lb.moved[cell], self.lb.previous[cell] = False, self.lb.owner[cell]

    def commit(self, backends, *owners):
        model.owners = lambda _: list(owners)
        wanted = {name: (1, state) for name, state in (b.split(":") for b in backends.split(","))}
        if self.lb is None:
            self.lb = model.Balancer(wanted, 0)
        self.was_moved = list(self.lb.moved)
        self.lb.commit(wanted)

    def arcs(self, *arcs):
        lb = self.lb
        for cell, (moved, previous) in enumerate(a.split(":") for a in arcs):
            if moved == "0" and lb.moved[cell] and not self.was_moved[cell]:
                expect(f"{cell} has no flow to keep: previous", lb.previous[cell], lb.owner[cell])
                lb.moved[cell] = False
            expect(f"{cell}: moved", moved == "1", lb.moved[cell])
            expect(f"{cell}: previous", previous, lb.previous[cell])
        lb.flows = {tup: e for tup, e in lb.flows.items() if lb.moved[tup]}

    def entries(self, *tuples):
        lb, kept = self.lb, set(map(int, tuples))
        for tup in set(lb.flows) - kept:
            if any(map(lb.valid, (lb.flows[tup].established, lb.flows[tup].opening))):
                raise Mismatch(f"{tup}: the balancer has forgotten {lb.flows[tup]}")
            del lb.flows[tup]
        expect("entries", kept, set(lb.flows))

    def reused(self, tup):
        del self.lb.flows[int(tup)]

    def open(self, tup, isn, kept, backend):
        tup = int(tup)
        self.packets += 1
        self.lb.capacity = 10**9 if kept == "1" else 0
        expect(f"SYN of {tup}", backend, self.lb.open(tup, tup, int(isn)))
        expect(f"{tup} has an entry", kept == "1", tup in self.lb.flows)

    def stays_elsewhere(self, tup):
        entry = self.lb.flows.get(tup)
        if not entry or not any(c and c.backend not in self.lb.backends for c in (entry.established, entry.opening)):
            raise Mismatch(f"packet of {tup}: it went to a backend that its service does not have, and {entry} names none")

    def packet(self, tup, seq, data, backend):
        tup = int(tup)
        self.packets += 1
        if backend == "elsewhere":
            self.stays_elsewhere(tup)
            return
        expect(f"packet of {tup}", backend, self.lb.steer(tup, tup, int(seq), data == "1"))


def main():
    replay, sequence = Replay(), 0
    for number, line in enumerate(sys.stdin, 1):
        verb, *words = line.split()
        sequence += verb == "start"
        try:
            getattr(replay, verb)(*words)
        except Mismatch as mismatch:
            sys.exit(f"replay: sequence {sequence}, line {number}: {mismatch}")
    print(f"the model agrees: {sequence} sequences, {replay.packets} packets")


if __name__ == "__main__":
    main()
