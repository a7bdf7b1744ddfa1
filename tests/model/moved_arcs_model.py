#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Executable model of design.md, "Changing backends without breaking connections".

A ring cut into CELLS equal arcs; connections on 5-tuples that are reused, SYNs retransmitted and spoofed, a flow table
that can be full; random changes. After every change each living connection to a living backend sends a packet, which
must reach the backend where the connection began. Usage: moved_arcs_model.py [RUNS [CAPACITY]]

A SYN is remembered until data comes that is not its own: then it was a stray, and a connection that goes on for 4 GiB
must not come by its window. That of an established connection is remembered too, for copies of it that come late.
"""
import random
import sys
from dataclasses import dataclass

CELLS, TUPLES = 1024, 4000
UP, DRAIN, LEAVING, DOWN = "up", "drain", "leaving", "down"


def owners(backends):
    points = sorted((random.Random(f"{name}#{i}").randrange(CELLS), name)
                    for name, (weight, state) in backends.items() if state == UP for i in range(8 * weight))
    table, k = [], 0
    for cell in range(CELLS):
        while k < len(points) and points[k][0] < cell:
            k += 1
        table.append(points[k % len(points)][1])
    return table


@dataclass(frozen=True)
class Choice:
    backend: str
    incarnation: int


@dataclass
class Entry:
    """One for a 5-tuple: what its established connection uses, and what a SYN seen since would use."""
    cell: int
    established: Choice = None
    opening: Choice = None
    isn: int = 0


class Balancer:
    def __init__(self, backends, capacity):
        self.backends = dict(backends)
        self.incarnation = dict.fromkeys(backends, 0)
        self.owner = owners(backends)
        self.previous = list(self.owner)
        self.moved = [False] * CELLS
        self.capacity, self.flows = capacity, {}

    def alive(self, name):
        return name in self.backends and self.backends[name][1] != DOWN

    def valid(self, choice):
        return choice and self.alive(choice.backend) and self.incarnation[choice.backend] == choice.incarnation

    def commit(self, backends):
        was_alive = {n for n in self.backends if self.alive(n)}
        old, self.backends, self.owner = self.owner, dict(backends), owners(backends)
        for name in {*was_alive, *backends}:  # down and removed lose what the flow table knows of them
            if name not in self.incarnation or (name in was_alive and not self.alive(name)):
                self.incarnation[name] = self.incarnation.get(name, -1) + 1
        for cell, new in enumerate(self.owner):
            if self.moved[cell] or new != old[cell]:
                stays = self.previous[cell] if self.moved[cell] else old[cell]
                self.moved[cell] = True
                self.previous[cell] = stays if self.alive(stays) else new
            else:
                self.previous[cell] = new

    def open(self, tup, cell, isn):
        """A packet with SYN and without ACK."""
        if not self.moved[cell]:
            return self.owner[cell]
        entry = self.flows.get(tup)
        if entry and self.valid(entry.opening) and entry.isn == isn:  # retransmitted
            return entry.opening.backend
        if not entry:
            if len(self.flows) >= self.capacity:
                return self.previous[cell]  # can't be remembered: go where its later packets will go
            entry = self.flows[tup] = Entry(cell)
        owner = self.owner[cell]
        entry.opening, entry.isn = Choice(owner, self.incarnation[owner]), isn
        return owner

    def steer(self, tup, cell, seq, data=False):
        """Any other packet."""
        if not self.moved[cell]:
            return self.owner[cell]
        entry = self.flows.get(tup)
        if not entry:
            return self.previous[cell]
        if entry.opening and 0 < (seq - entry.isn) % 2**32 <= 65536:
            if self.valid(entry.opening):  # its SYN was ours: promoted in place
                entry.established = entry.opening
        elif data:
            entry.opening = None
        if entry.established:
            return entry.established.backend if self.valid(entry.established) else self.owner[cell]
        return self.previous[cell]

    def settle(self, living):
        needed = {cell for cell, backend in living if backend != self.owner[cell]}
        done = {c for c in range(CELLS) if self.moved[c] and c not in needed}
        for tup in [t for t, e in self.flows.items() if e.cell in done]:
            del self.flows[tup]
        for cell in done:
            self.moved[cell], self.previous[cell] = False, self.owner[cell]


def change(rng, lb, conns, history):
    """The wanted backends after one random event; only `down` may lose connections, and only its own."""
    want, kind = dict(lb.backends), rng.choice("add delete gone weight drain undrain rollback down recover none".split())
    at = lambda *states: [n for n, (_, s) in want.items() if s in states]
    if kind == "add":
        want[f"b{rng.randrange(12)}"] = (rng.randint(1, 3), UP)
    elif kind == "weight":
        n = rng.choice(list(want))
        want[n] = (rng.randint(1, 4), want[n][1])
    elif kind in ("drain", "delete", "down") and len(at(UP)) > 2:
        n = rng.choice(at(UP))
        want[n] = (want[n][0], {"drain": DRAIN, "delete": LEAVING, "down": DOWN}[kind])
    elif kind == "gone":
        for n in at(LEAVING, DRAIN):
            if not any(c["backend"] == n for c in conns.values()):
                del want[n]
                break
    elif kind in ("undrain", "recover"):
        for n in at(DRAIN if kind == "undrain" else DOWN)[:1]:
            want[n] = (want[n][0], UP)
    elif kind == "rollback":  # configuration comes back, health does not; what it lacks is leaving
        back = {n: (w, s if s != DOWN else UP) for n, (w, s) in rng.choice(history).items()}
        for n, (w, s) in want.items():
            if s == DOWN or n not in back:
                back[n] = (w, s if s == DOWN else LEAVING)
        want = back
    want = want if any(s == UP for _, s in want.values()) else dict(lb.backends)
    for t in [t for t, c in conns.items() if want.get(c["backend"], (0, DOWN))[1] == DOWN]:
        del conns[t]
    return want


def run(seed, capacity):
    rng = random.Random(seed)
    lb = Balancer({f"b{i}": (1, UP) for i in range(4)}, capacity)
    cell_of = [rng.randrange(CELLS) for _ in range(TUPLES)]
    conns, history, broken = {}, [dict(lb.backends)], 0
    for _ in range(60):
        for _ in range(60):
            tup = rng.randrange(TUPLES)
            if tup in conns:
                if rng.random() < 0.3:  # a spoofed or stray SYN on a living connection's tuple
                    lb.open(tup, cell_of[tup], rng.randrange(10**6, 10**9))
                continue
            isn = rng.randrange(10**9, 2 * 10**9)
            backend = lb.open(tup, cell_of[tup], isn)
            if rng.random() < 0.2 and lb.open(tup, cell_of[tup], isn) != backend:
                broken += 1
            if lb.steer(tup, cell_of[tup], isn + 1) != backend:
                broken += 1
            else:
                conns[tup] = {"backend": backend, "seq": isn + 1}
        lb.commit(change(rng, lb, conns, history))
        history.append(dict(lb.backends))
        for tup, c in list(conns.items()):
            c["seq"] += rng.randrange(100000)
            if lb.steer(tup, cell_of[tup], c["seq"], rng.random() < 0.5) != c["backend"]:
                broken += 1
                del conns[tup]
            elif rng.random() < 0.1:
                del conns[tup]
        if rng.random() < 0.3:
            lb.settle([(cell_of[t], c["backend"]) for t, c in conns.items()])
    return broken


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    capacity = int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
    total = sum(run(seed, capacity) for seed in range(runs))
    print(f"{runs} runs, capacity {capacity}: {total} connections to living backends broken")
    sys.exit(total != 0)
