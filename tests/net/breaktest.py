#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The break test: long-lived TCP connections with checked traffic both ways, through a balancer whose configuration is
changed under them, to real servers; in network namespaces of its own (lab.sh draws them). For each event it tells which
connections broke, which new ones did not follow the new ring, the packets lost at the balancer, and the share that
moved against the plan. Root. Exit status 1 when a connection broke that was not to, or the rest is not as it has to be.

Events are those of --script (breaktest_events.py says which there are), or random ones from a seed that is printed.
"""
import argparse
import contextlib
import datetime
import json
import math
import operator
import os
import platform
import random
import subprocess
import sys
import time

import breaktest_events as events
from breaktest_traffic import PORT, PROGRAMS, SERVICES, Balance, Traffic
from conftest import CLIENT4, laboratory, source
from oracle import Ring

FLOOD_RATE = 60000  # a second
SAMPLE = 1000  # look-ups that measure a moved share
SHARES = {"www": .5, "www6": .2, "mover": .2, "other": .1}  # of the connections


class Test:
    def __init__(self, lab, stack, options):
        self.lab, self.options = lab, options
        self.rng = random.Random(options.seed)
        flows = {"established": options.flows, "opening": options.flows} if options.flows else {}
        config = events.first_configuration(lab, options.track, flows)
        if not flows:
            del config["flows"]
        self.world = events.World(lab, config)
        lab.attach(config)
        lab.decapsulate()
        self.world.generations[1] = config
        self.traffic = Traffic(lab, stack, stall_ms=options.stall * 1000)
        self.sample = {name: [source(f"2001:db8:5::{i:x}" if ":" in vip else f"198.18.{i // 250}.{i % 250}", 1024 + i)
                              for i in range(SAMPLE)] for name, vip in SERVICES.items()}
        self.rows = []
        for name, share in SHARES.items():
            self.fill(name, int(options.connections * share))
        with self.traffic.paused():
            self.balance = Balance(lab)
        self.flood = None
        if options.flood:
            self.flood = stack.enter_context(lab.process(
                "client", PROGRAMS / "breaktest_flood", SERVICES["www"], PORT, CLIENT4, 20000, 24999, FLOOD_RATE,
                options.flood, stdin=subprocess.PIPE))

    # Connections

    def expected(self, service, ports):
        """{port: server} by the new ring, from the file alone."""
        sources = [self.traffic.source(service, p) for p in ports]
        answers = self.lab.lookups(service, sources, "--file", self.file())
        return {p: self.world.server_of.get(a["address"]) for p, a in zip(ports, answers)}

    def file(self):
        """The configuration as it is meant to be now."""
        return self.lab.write(self.world.config, self.lab.dir / "now.yaml")

    def fill(self, service, count):
        """Opens new connections: (opened, those elsewhere than the ring says, {port: why} of those that failed)."""
        ports = self.traffic.next_ports(service, count)
        opened, failed = self.traffic.open(service, ports)
        wanted = self.expected(service, ports)
        return len(opened), [p for p, server in opened.items() if server != wanted[p]], failed

    def renew(self):
        """New connections right after an event; more where some broke. As many of the old are closed later."""
        new, astray, failed = 0, 0, {}
        for name, share in SHARES.items():
            missing = int(self.options.connections * share) - sum(s == name for s in self.traffic.service.values())
            opened, elsewhere, not_opened = self.fill(name, max(1, int(self.options.new * share), missing))
            new += opened
            astray += len(elsewhere)
            failed.update(not_opened)
        return new, astray, failed

    def close_some(self):
        surplus = len(self.traffic.server) - self.options.connections
        ports = self.rng.sample(sorted(self.traffic.server), max(0, surplus))
        self.traffic.close(ports[::2], "reset")
        self.traffic.close(ports[1::2], "finish")
        for port in ports[1::2]:
            self.traffic.forget(port)

    # Events

    def offline(self, config):
        """Owners of a sample of flows by the file alone, for each service."""
        file = self.lab.write(config, self.lab.dir / "sample.yaml")
        return {name: [a["address"] for a in self.lab.lookups(name, self.sample[name], "--file", file)]
                for name in SERVICES}

    def run_one(self, words):
        """One change: what was told of it, and what it does by the files."""
        before = self.world.config
        started = time.monotonic()
        told = self.world.execute(words)
        took = time.monotonic() - started
        after = self.world.config
        owners = self.offline(before), self.offline(after)
        measured = {name: sum(map(operator.ne, owners[0][name], owners[1][name])) / SAMPLE for name in SERVICES}
        planned = {p["name"]: p["moved"] for p in told.get("pools", [])}
        services = {s["name"]: s["moved"] for s in told.get("services", [])}
        return {"event": " ".join(words), "seconds": round(took, 3), "measured": measured,
                "planned": {name: services.get(name, planned.get(pool_of(after, name), 0)) for name in SERVICES},
                "pools": planned, "exact": {p["name"]: exactly_moved(before, after, p["name"]) for p in after["pools"]}}

    def newly_cut(self, before, after):
        """Servers whose connections a change takes, by intention: of backends that are in maint, and were not."""
        cut = [{(b["name"], b["address"]) for p in c["pools"] for b in p["backends"] if b.get("state") == "maint"}
               for c in (before, after)]
        return {self.world.server_of[address] for _, address in cut[1] - cut[0]}

    def count(self):
        """Packets at the balancer since the last event; unknown while a flood is under way."""
        if self.flood:
            return {"packets": 0, "lost": 0, "unsent": 0, "dropped": 0}
        with self.traffic.paused():
            return self.balance.since()

    def end_of_flood(self):
        """What is left of it hits a balancer that is not changed; then everything was counted, and nothing broke."""
        sent = int(self.flood.stdout.readline())
        self.flood = None
        broken = self.traffic.beat()
        self.rows[-1]["broken"] += len(broken)
        self.rows[-1].update(self.count())
        return sent

    def event(self, group):
        """Events without a pause between them, then what became of the connections: a row."""
        alive = len(self.traffic.server)
        hit, rows = set(), []
        for words in group:
            before = self.world.config
            rows.append(self.run_one(words))
            hit |= self.newly_cut(before, self.world.config)
        on_hit = sum(s in hit for s in self.traffic.server.values())
        new, astray, failed = self.renew()
        broken = self.traffic.beat()
        counted = self.count()
        row = {"number": len(self.rows) + 1, "event": "; ".join(r["event"] for r in rows),
               "seconds": sum(r["seconds"] for r in rows), "steps": rows, "alive": alive,
               "hit": on_hit, "hit_broken": sum(b[0] in hit for b in broken.values()),
               "broken": sum(b[0] not in hit for b in broken.values()),
               "new": new, "unopened": len(failed), "astray": astray, **counted,
               "details": [f"{p}: {b}" for p, b in {**broken, **failed}.items()][:10]}
        self.rows.append(row)
        self.close_some()
        return row

    def groups(self):
        """Groups of events, each made when those before it have happened."""
        if self.options.script:
            with open(self.options.script, encoding="ascii") as f:
                lines = [line.split("#")[0].strip() for line in f]
            yield from ([part.split() for part in line.split(";")] for line in lines if line)
            return
        done = 0
        while done < self.options.events:
            size = min(self.rng.choice((1, 1, 1, 1, 3, 4)), self.options.events - done)
            done += size
            yield self.burst(size)

    def burst(self, size):
        """The events of one group: a later one may need an earlier one, so they are made up as they happen."""
        for _ in range(size):
            yield self.world.random_event(self.rng, self.options.kinds)


def pool_of(config, service):
    return next(s["pool"] for s in config["services"] if s["name"] == service)


def exactly_moved(before, after, name):
    """The share of a pool that moves, by the public rule; None where that rule is not this one's."""
    pools = [p for c in (before, after) for p in c["pools"] if p["name"] == name]
    if len(pools) < 2 or any(p.get("placement", "ring") != "ring" for p in pools):
        return None
    # A new address is another backend, though its points stay.
    rings = [Ring({**p, "backends": [{**b, "identity": b["name"], "name": b["address"]} for b in p["backends"]]})
             for p in pools]
    return sum(rings[0].moved(rings[1]).values())


def faults(row, options):
    """What is wrong with a row."""
    out = []
    if row["broken"] and options.track != "none":
        out.append(f"{row['broken']} connections broke that were not to")
    if row["unopened"] and not options.flood:
        out.append(f"{row['unopened']} new connections failed")
    if row["lost"] or row["dropped"] or (row["unsent"] and not options.flood):
        out.append(f"{row['lost']} packets lost, {row['unsent']} not sent, {row['dropped']} dropped")
    if row["astray"] and options.track != "none" and not options.flows and not options.flood:
        out.append(f"{row['astray']} new connections don't follow the new ring")
    for step in row["steps"]:
        for name, planned in step["planned"].items():
            measured = step["measured"][name]
            if abs(planned - measured) > 4.5 * math.sqrt(planned * (1 - planned) / SAMPLE) + 0.002:
                out.append(f"{step['event']}: {name}: {planned:.4f} planned, {measured:.4f} measured")
        for pool, exact in step["exact"].items():
            if exact is not None and abs(step["pools"].get(pool, 0) - exact) > 1e-9:
                out.append(f"{step['event']}: {pool}: {step['pools'].get(pool, 0):.9f} planned, {exact:.9f} moves")
    return out


def of_all(shares):
    """Of all connections, from each service's share."""
    return sum(SHARES[name] * share for name, share in shares.items())


def line(row):
    planned = "+".join(f"{100 * of_all(s['planned']):.1f}" for s in row["steps"])
    measured = "+".join(f"{100 * of_all(s['measured']):.1f}" for s in row["steps"])
    return (f"{row['number']:3} {row['alive']:5} {row['broken']:6} {row['hit_broken']:4}/{row['hit']:<4} "
            f"{row['new']:4} {row['astray']:6} {row['packets']:7} {row['lost']:4} {row['dropped']:4} "
            f"{row['seconds'] * 1000:6.0f}  {planned} / {measured}  {row['event']}")


HEAD = ("  # alive broken  own/cut   new astray packets lost drop     ms  moved % planned / measured  event")


def summary(test, seconds, flooded):
    rows = test.rows
    return {"date": datetime.date.today().isoformat(), "kernel": platform.release(), "cpus": os.cpu_count(),
            "seed": test.options.seed, "flood": flooded, "track": test.options.track, "flows": test.options.flows,
            "connections": test.options.connections, "events": sum(len(r["steps"]) for r in rows),
            "seconds": round(seconds, 1),
            **{key: sum(r[key] for r in rows) for key in
               ("broken", "hit", "hit_broken", "new", "unopened", "astray", "packets", "lost", "unsent", "dropped")},
            "expected_broken": round(sum(expected_broken(r) for r in rows), 1),
            "faults": [f"event {r['number']}: {text}" for r in rows for text in faults(r, test.options)]}


def expected_broken(row):
    """Connections that would break if none were kept: those in what moves."""
    stays = dict.fromkeys(SERVICES, 1.0)
    for step in row["steps"]:
        stays = {name: share * (1 - step["measured"][name]) for name, share in stays.items()}
    return row["alive"] * of_all({name: 1 - share for name, share in stays.items()})


def run(options, show=lambda text: None):
    """The whole test; {"summary", "rows"}."""
    started = time.monotonic()
    with laboratory("break", backends=8) as lab, contextlib.ExitStack() as stack:
        test = Test(lab, stack, options)
        show(HEAD)
        for group in test.groups():
            row = test.event(group)
            show(line(row))
            for text in faults(row, options) + row["details"][:3 * bool(row["broken"])]:
                show(f"    {text}")
        flooded = test.end_of_flood() if test.flood else 0
        return {"summary": summary(test, time.monotonic() - started, flooded), "rows": test.rows}


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--connections", type=int, default=500)
    p.add_argument("--new", type=int, help="new connections after each event (default: a tenth)")
    p.add_argument("--events", type=int, default=50)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    p.add_argument("--script", metavar="FILE", help="a line an event, or several with ; between them")
    p.add_argument("--kinds", type=lambda text: text.split(","), default=list(events.KINDS), help="of random events")
    p.add_argument("--track", choices=("moved", "always", "none"), default="moved")
    p.add_argument("--flows", type=int, metavar="ENTRIES", help="size of the flow table (default: the program's)")
    p.add_argument("--flood", type=int, metavar="SYNS", help="forged ones meanwhile, some on living tuples")
    p.add_argument("--stall", type=float, default=4, help="seconds after which an unanswered connection is broken")
    p.add_argument("--json", metavar="FILE", help="write everything there")
    return p


def options_of(*arguments):
    options = parser().parse_args(list(map(str, arguments)))
    options.new = options.new or options.connections // 10
    return options


def main():
    options = options_of(*sys.argv[1:])
    print(f"seed {options.seed}, {options.connections} connections, track {options.track}, "
          f"flow table {options.flows or 'as usual'}")
    result = run(options, lambda text: print(text, flush=True))
    if options.json:
        with open(options.json, "w", encoding="ascii") as f:
            json.dump(result, f, indent=1)
    print(json.dumps(result["summary"]))
    sys.exit(1 if result["summary"]["faults"] else 0)


if __name__ == "__main__":
    main()
