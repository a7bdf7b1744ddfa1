# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Eight processes that change one instance at once, and four that only ask: everything that a command says it did is, in
the order of the generations, all that happened; and no connection notices.
"""
import contextlib
import copy
import json
import os
import random
import threading

from breaktest_traffic import PORT, Traffic
from conftest import CLIENT4, VIP4, configuration, pool, service, source

WRITERS, READERS, CHANGES = 8, 4, 12
DONE, REFUSED = 0, 3


def config_of(lab, weights):
    return configuration([pool(lab, weights=weights, vnodes=50, settle_after="5s")], [service(VIP4, PORT, name="www")])


def weights_of(shown):
    """Of a configuration, or of what `show` says."""
    return {b["name"]: b["weight"] for b in shown["pools"][0]["backends"] if b.get("state", "up") == "up"}


class Writer(threading.Thread):
    """Random changes; `told` has what each of them said."""

    def __init__(self, lab, number, seed, files):
        super().__init__()
        self.lab, self.number, self.files = lab, number, files
        self.rng = random.Random(f"{seed}-{number}")
        self.told, self.failure = [], None

    def command(self):
        kind = self.rng.choice(("set", "set", "set", "expect", "apply", "rollback", "settle"))
        weight, name = self.rng.randint(1, 5), f"b{self.rng.randint(1, 4)}"
        edit = ["backend", "set", "web", name, "--weight", str(weight)]
        if kind == "set":
            return kind, (name, weight), edit
        if kind == "expect":
            generation = self.lab.json("show")["generation"]
            return kind, (name, weight, generation), [*edit, "--if-generation", str(generation)]
        if kind == "apply":
            which = self.rng.randrange(len(self.files))
            return kind, (which,), ["apply", self.files[which], "--discard-live"]
        return kind, (), [kind]

    def run(self):
        try:
            for _ in range(CHANGES):
                kind, args, argv = self.command()
                done = self.lab.ringlb("--json", "--wait", "50", *argv, check=None)
                said = json.loads(done.stdout)
                assert done.returncode == DONE or (kind, done.returncode) == ("expect", REFUSED), done
                assert not said.get("warnings"), said  # nobody was killed: there is nothing to be repaired
                if done.returncode == DONE:
                    self.told.append((said["generation"]["from"], said["generation"]["to"], kind, args))
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e


class Reader(threading.Thread):
    """Asks until it is told to stop; every answer is whole."""

    def __init__(self, lab, number):
        super().__init__()
        self.lab, self.number = lab, number
        self.stop, self.failure, self.last = threading.Event(), None, 0

    def ask(self):
        sources = [source(CLIENT4, p) for p in range(40000, 40020)]
        if self.number % 2:
            assert all(a["backend"] for a in self.lab.lookups("www", sources))
            return
        shown = self.lab.json("show")
        assert shown["revision"] >= self.last
        self.last = shown["revision"]
        assert abs(sum(b["share"] for b in shown["pools"][0]["backends"]) - 1) < 1e-6

    def run(self):
        try:
            while not self.stop.is_set():
                self.ask()
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e


def replay(told, files):
    """{generation: weights} when every change does just what it said, in the order of the generations."""
    weights = {1: files[0], 2: files[1]}
    for before, after, kind, args in sorted(told, key=lambda t: (t[1], t[0] == t[1])):
        assert before in (after, after - 1)
        now = copy.deepcopy(weights[before])
        if kind in ("set", "expect"):
            now[args[0]] = args[1]
        elif kind == "apply":
            now = copy.deepcopy(files[args[0]])
        elif kind == "rollback":
            now = copy.deepcopy(weights[before - 1])
        if kind == "expect":
            assert args[2] == before
        if before == after:
            assert now == weights[before] or kind == "rollback"
        else:
            assert after not in weights, f"two changes made generation {after}"
            weights[after] = now
    assert sorted(weights) == list(range(1, max(weights) + 1))
    return weights


def run_all(lab, seed, files):
    writers = [Writer(lab, i, seed, files) for i in range(WRITERS)]
    readers = [Reader(lab, i) for i in range(READERS)]
    for t in readers + writers:
        t.start()
    for t in writers:
        t.join()
    for t in readers:
        t.stop.set()
        t.join()
    failures = [t.failure for t in writers + readers if t.failure]
    assert not failures, failures
    return [t for w in writers for t in w.told]


def test_eight_at_once(lab):
    seed = int(os.environ.get("RINGLB_SEED", random.randrange(1 << 32)))
    print(f"RINGLB_SEED={seed}")
    lists = [(1, 2, 1, 1), (2, 1, 1, 3), (1, 1, 4, 1)]
    files = [lab.write(config_of(lab, w), lab.dir / f"at-once-{i}.yaml") for i, w in enumerate(lists)]
    lab.ringlb("attach", files[0])
    lab.ringlb("apply", files[1])  # so that there is something to roll back to
    with contextlib.ExitStack() as stack:
        traffic = Traffic(lab, stack, interval_ms=50)
        opened, failed = traffic.open("www", traffic.next_ports("www", 60))
        assert len(opened) == 60, failed
        told = run_all(lab, seed, files)
        assert not traffic.beat()

    weights = replay(told, [weights_of(config_of(lab, w)) for w in lists])
    shown, history = lab.json("show"), lab.json("history")
    assert shown["generation"] == max(weights) == max(g["generation"] for g in history)
    assert weights_of(shown) == weights[max(weights)]
    assert [g["generation"] for g in history] == sorted(weights)[-50:]
    # The same table as an attach of this configuration makes: no update was lost on the way.
    digest = shown["digest"]
    lab.ringlb("detach")
    lab.ringlb("attach", lab.write(config_of(lab, [weights[max(weights)][f"b{i}"] for i in range(1, 5)])))
    assert lab.json("show")["digest"] == digest
