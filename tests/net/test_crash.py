# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Commands killed at chosen moments (crash.c), under traffic. After each: packets flow as before, what runs is exactly the
old or the new configuration, the next command completes or takes back what was left undone and says so.
"""
import contextlib
import json
import os
import random
import struct
import sys
import time

import pytest
from breaktest_traffic import PORT, PROGRAMS, Traffic
from conftest import CLIENT4, TOP, VIP4, VIP4B, configuration, pool, service, source

sys.path.append(str(TOP / "tests"))
import bpf  # noqa: E402

SOURCES = [source("198.18.0.1", p) for p in range(20000, 20100)]
WAIT = 2.1  # seconds: longer than settle_after
PENDING_AT = 16  # struct ringlb_tables.pending


def config_a(lab):
    return configuration([pool(lab, weights=(1, 2, 1), settle_after="1s"),
                          pool(lab, "alt", weights=(1, 1), settle_after="1s")],
                         [service(VIP4, PORT, name="www"), service(VIP4B, PORT, name="mover", to="web"),
                          service(VIP4, 9001, name="rest", to="alt")])


def config_b(lab):
    """Other than a in everything that a mixture could be told by."""
    config = config_a(lab)
    config["pools"][0] = pool(lab, weights=(1, 3, 1, 1), settle_after="1s", vnodes=80)
    config["services"][1]["pool"] = "alt"
    config["services"].append(service("192.0.2.11", 9001, name="more", to="alt"))
    return config


def config_large(lab):
    config = config_a(lab)
    config["pools"][0]["vnodes"] = 40000
    return config


def live_edit(lab):
    config = config_a(lab)
    config["pools"][0]["backends"][1]["weight"] = 5
    return config


class Crashes:
    def __init__(self, lab):
        self.lab = lab
        self.files = {name: lab.write(make(lab), lab.dir / f"{name}.yaml") for name, make in
                      {"a": config_a, "b": config_b, "large": config_large, "edit": live_edit}.items()}
        self.says = {}     # what `show --config` and lookups say where a configuration runs
        lab.ringlb("attach", self.files["a"])
        self.pins = self.pinned()
        for name in ("b", "edit", "a"):
            self.to(name)
            self.says[name] = self.answers()

    # What runs

    def to(self, name):
        """Makes a configuration run, whatever runs; the warnings."""
        done = self.lab.json("apply", self.files[name], "--discard-live")
        return [w["code"] for w in done.get("warnings", [])]

    def answers(self):
        """What runs, in every way in which it can be asked for but for its number."""
        shown = self.lab.json("show")
        owners = [a["backend"] for vip in (VIP4, VIP4B) for a in self.lab.lookups(f"{vip}:{PORT}/tcp", SOURCES)]
        return shown["digest"], self.lab.ringlb("show", "--config").stdout, owners

    def numbers(self):
        """Generation and revision."""
        shown = self.lab.json("show")
        return shown["generation"], shown["revision"]

    def pinned(self):
        top = self.lab.dir / "bpf/lb"
        return sorted(str(p.relative_to(top)) for p in top.rglob("*"))

    def records(self):
        top = self.lab.dir / "lb/state"
        return sorted(p.name for p in top.glob("*/*")) + sorted(p.name for p in top.glob("*/.*"))

    def cared_for(self):
        shown = json.loads(self.lab.run("lb", "ip", "-j", "neighbour").stdout)
        return sorted(n["dst"] for n in shown if "managed" in n)

    def pending(self):
        fd = bpf.obj_get(self.lab.dir / "bpf/lb/default/tables")
        try:
            with bpf.mmap.mmap(fd, bpf.mmap.PAGESIZE) as memory:
                return struct.unpack_from("<I", memory, PENDING_AT)[0]
        finally:
            os.close(fd)

    # Killing

    def kill(self, stop, steps, *argv):
        """Runs a command and kills it; the last line of crash."""
        done = self.lab.run("lb", PROGRAMS / "crash", stop, steps, "ringlb", *argv, check=None)
        return done.stderr.strip().splitlines()[-1].split()

    def stops(self, *argv):
        word, status, count = self.kill(0, 0, *argv)
        assert (word, status) == ("ended", "0")
        return int(count)

    def assert_one(self, before, old, new):
        """Exactly what ran before or what was to run does. True for the latter."""
        now, (generation, revision) = self.answers(), self.numbers()
        if revision == before[1]:
            assert (now, generation) == (self.says[old], before[0])
            return False
        assert revision == before[1] + 1
        assert (now, generation) == (self.says[new], before[0] + (new != old))
        return True

    def forget_history(self):
        """But for the last few, so that commands do not become longer with each."""
        for record in sorted((self.lab.dir / "lb/state").glob("*/*.yaml"))[:-4]:
            record.unlink()

    def undone(self):
        """What a killed command left, by the codes of the warnings that the next one owes."""
        shown = f"{self.numbers()[0]:06}.yaml"
        later = [r for r in self.records() if r > shown and r[0] != "."]
        return {*(["repaired"] if self.pending() else []), *(["never-published"] if later else [])}

    def assert_repaired(self, name):
        """Everything is as if nothing had happened, and `name` runs."""
        history = self.lab.json("history")
        assert self.answers() == self.says[name]
        assert [g["generation"] for g in history if g["active"]] == [self.numbers()[0]]
        assert max(g["generation"] for g in history) == self.numbers()[0]
        assert not [r for r in self.records() if r[0] == "."]
        assert self.pinned() == self.pins
        assert self.pending() == 0
        assert set(self.cared_for()) >= {self.lab.address(i) for i in (1, 2, 3)}

    def round(self, stop, steps, argv, old, new):
        """One kill and what follows: "old" or "new", what then ran."""
        before = self.numbers()
        end = self.kill(stop, steps, *argv)
        published = self.assert_one(before, old, new)
        owed = self.undone()
        told = set(self.to("a"))
        print(f"  {' '.join(end)}: {'new' if published else 'old'}, told {sorted(told)}")
        assert owed <= told, f"{owed} to be told, {told} was"
        self.assert_repaired("a")
        assert end[0] == "killed" or not owed
        return "new" if published else "old"


@pytest.fixture
def crashes(lab):
    return Crashes(lab)


@pytest.fixture
def traffic(lab, crashes):
    with contextlib.ExitStack() as stack:
        traffic = Traffic(lab, stack, interval_ms=20)
        for name in ("www", "mover"):
            opened, failed = traffic.open(name, traffic.next_ports(name, 30))
            assert len(opened) == 30, failed
        yield traffic
        broken = traffic.beat()
        assert not broken


def seeded():
    seed = int(os.environ.get("RINGLB_SEED", random.randrange(1 << 32)))
    print(f"RINGLB_SEED={seed}")
    return random.Random(seed)


def moments(rng, count, last):
    """Stops over the whole run, more of them late, where something happens; some with instructions after them."""
    out = []
    for i in range(count):
        first = 1 if i % 4 == 0 else last // 3
        out.append((rng.randint(first, last), int(10 ** rng.uniform(0, 3.7)) if i % 3 == 0 else 0))
    return out


WAYS = {
    # what runs then; the command
    "apply": ("b", lambda c: ["apply", c.files["b"]]),
    "backend": ("edit", lambda c: ["backend", "set", "web", "b2", "--weight", "5"]),
    "rollback": ("b", lambda c: ["rollback"]),
    "settle": ("a", lambda c: ["settle"]),
    "upgrade": ("a", lambda c: ["upgrade"]),
}


def prepare(crashes, name):
    crashes.forget_history()
    if name in ("rollback", "settle"):
        crashes.to("b")
        crashes.to("a")
    if name == "settle":
        time.sleep(WAIT)  # so that there is something to settle: nothing but time makes it so


def run(crashes, traffic, name, count, rng):
    """Kills one kind of command count times; which states followed."""
    new, argv = WAYS[name]
    prepare(crashes, name)
    last = crashes.stops(*argv(crashes))
    crashes.to("a")
    seen = []
    for stop, steps in moments(rng, count, last):
        prepare(crashes, name)
        print(f"{name} {stop} {steps}")
        seen.append(crashes.round(stop, steps, argv(crashes), "a", new))
        broken = traffic.beat()
        assert not broken, f"{name} killed at {stop} {steps}: {broken}"
    return seen


def test_commands_killed(crashes, traffic):
    rng = seeded()
    seen = [s for name, count in (("apply", 12), ("backend", 6), ("rollback", 4), ("settle", 2), ("upgrade", 3))
            for s in run(crashes, traffic, name, count, rng)]
    assert {"old", "new"} <= set(seen)


@pytest.mark.full
@pytest.mark.parametrize("name, count", [("apply", 70), ("backend", 30), ("rollback", 30), ("settle", 20),
                                         ("upgrade", 30)])
def test_commands_killed_often(crashes, traffic, name, count):
    seen = run(crashes, traffic, name, count, seeded())
    assert "old" in seen
    assert "new" in seen or name == "upgrade"  # which changes nothing that can be asked for


def steps_to_publish(crashes, argv):
    """Instructions from the mark that something is pending to the one that publishes."""
    low, high = 0, 1 << 12
    while high - low > 1:
        middle = (low + high) // 2
        if crashes.round("pending", middle, argv, "a", "b") == "old":
            low = middle
        else:
            high = middle
    assert 0 < high < 1 << 12
    return high


@pytest.mark.full
def test_killed_about_the_moment(crashes, traffic):
    """The instructions before and behind the one that publishes, one by one."""
    argv = ["apply", crashes.files["b"]]
    moment = steps_to_publish(crashes, argv)
    seen = [crashes.round("pending", steps, argv, "a", "b") for steps in range(max(0, moment - 12), moment + 12)]
    assert seen == ["old"] * min(12, moment) + ["new"] * 12
    assert not traffic.beat()


@contextlib.contextmanager
def attached_for(crashes):
    """Connections through what is attached now, none of which may break."""
    with contextlib.ExitStack() as stack:
        traffic = Traffic(crashes.lab, stack, interval_ms=20)
        ports = traffic.next_ports("www", 20)
        opened, failed = traffic.open("www", ports)
        assert len(opened) == 20, failed
        yield traffic
        assert not traffic.beat()
        traffic.close(ports, "reset")


def grow(crashes, rng, last):
    """Kills an apply that needs larger tables, and so puts other maps in the place of those that are there."""
    crashes.lab.ringlb("detach")
    crashes.lab.ringlb("attach", crashes.files["a"])
    crashes.forget_history()
    with attached_for(crashes) as traffic:
        stop = rng.randint(last // 3, last)
        print(f"grow {stop}")
        state = crashes.round(stop, 0, ["apply", crashes.files["large"]], "a", "large")
        assert not traffic.beat()
    return state


def learn_large(crashes):
    """What is said where the large configuration runs; the stops of an apply that grows."""
    last = crashes.stops("apply", crashes.files["large"])
    crashes.says["large"] = crashes.answers()
    return last


def test_growth_killed(crashes):
    rng = seeded()
    last = learn_large(crashes)
    for _ in range(3):
        grow(crashes, rng, last)


@pytest.mark.full
def test_growth_killed_often(crashes):
    rng = seeded()
    last = learn_large(crashes)
    seen = [grow(crashes, rng, last) for _ in range(30)]
    assert {"old", "new"} == set(seen)


def attach_again(crashes):
    """After a killed attach or detach: whatever is there, it can be made whole. What the next attach found."""
    done = crashes.lab.ringlb("--json", "attach", crashes.files["a"], check=None)
    told = json.loads(done.stdout)
    codes = [e["code"] for e in told.get("errors", [])]
    if done.returncode:
        assert codes in (["attached"], ["incomplete"]), told
    if codes == ["attached"]:
        crashes.to("a")
    elif codes:
        crashes.lab.ringlb("detach")
        crashes.lab.ringlb("attach", crashes.files["a"])
    crashes.assert_repaired("a")
    return codes[0] if codes else "not attached"


def attach_and_detach(crashes, rng, count):
    """Kills both in turns; what the next attach found."""
    found = []
    last = {"detach": crashes.stops("detach"), "attach": crashes.stops("attach", crashes.files["a"])}
    for i in range(count):
        command = ("attach", "detach")[i % 2]
        stop = rng.randint(last[command] // 3, last[command])
        print(f"{command} {stop}")
        crashes.forget_history()
        if command == "attach":
            crashes.lab.ringlb("detach")
        crashes.kill(stop, 0, *([command, crashes.files["a"]] if command == "attach" else [command]))
        found.append(attach_again(crashes))
    return found


def test_attach_and_detach_killed(crashes):
    attach_and_detach(crashes, seeded(), 8)


@pytest.mark.full
def test_attach_and_detach_killed_often(crashes):
    assert set(attach_and_detach(crashes, seeded(), 40)) >= {"attached", "not attached"}
