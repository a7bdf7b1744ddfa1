# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Larger maps and other programs take over while connections run, on one interface and on two."""
import contextlib
import json
import os
import re
import subprocess
import threading

import pytest
from conftest import CLIENT4, TOP, VIP4, VIP6, configuration, pool, service, source

BUILD = TOP / os.environ.get("BUILD", "build")
OLD, NEW = BUILD / "ringlb", BUILD / "abi2/ringlb"  # the latter: another layout of the maps
SERVICE = "192.0.2.10:80/tcp"
# As connections that are kept, and those that come and go. None may fail.
KEPT, SHORT = "20000-20019", "21000-21999"


def config_of(lab, weights=(1, 2, 1), others=0, flows=None, **keys):
    """others: further backends, which nobody can reach, and as many services of theirs."""
    pools, services = [pool(lab, weights=weights, **keys)], [service(VIP4)]
    if others:
        pools.append({"name": "others", "vnodes": 100,
                      "backends": [{"name": f"o{i}", "address": f"10.77.9.{i}"} for i in range(1, others + 1)]})
        services += [service("192.0.2.11", port, to="others") for port in range(1000, 1000 + others)]
    return configuration(pools, services, **({"flows": flows} if flows else {}))


def program(lab, interface="eth0"):
    return json.loads(lab.run("lb", "ip", "-json", "link", "show", interface).stdout)[0]["xdp"]["prog"]["id"]


@contextlib.contextmanager
def monotone(lab, programs=(OLD,)):
    """Asks again and again for every counter, with whichever program may ask: none ever falls."""
    done, sums, faults = threading.Event(), {}, []

    def watch():
        while not done.is_set():
            for p in programs:
                stats = lab.run("lb", p, "--json", "stats", check=None)
                if stats.returncode:
                    if len(programs) == 1:
                        faults.append(stats.stderr)
                    continue
                stats = json.loads(stats.stdout)
                now = {("verdict", k): v for k, v in stats["verdicts"].items()}
                now.update({("service", s["name"]): s["packets"] for s in stats["services"]})
                now.update({("backend", b["name"]): b["packets"] for b in stats["backends"]})
                faults.extend(f"{k}: {sums[k]} -> {v}" for k, v in now.items() if v < sums.get(k, 0))
                sums.update(now)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert sums and not faults, faults


@contextlib.contextmanager
def unharmed(lab, vip=VIP4, programs=(OLD,)):
    with monotone(lab, programs), \
            lab.traffic(vip, 80, KEPT, "--keep", "--pause", "0.002") as kept, \
            lab.traffic(vip, 80, SHORT, "--parallel", "4") as short:
        yield
    assert kept["failed"] == short["failed"] == 0, (kept["failures"], short["failures"])
    assert kept["ok"] > 200 and short["ok"] > 200


def test_growing(lab):
    """Points, backends, services and the flow table, past what the maps were made for, and back but for the last."""
    small = config_of(lab, flows={"established": 3000, "opening": 1000})
    large = config_of(lab, (1, 2, 1, 2), others=200, vnodes=20000, flows={"established": 6000, "opening": 2000})
    lab.attach(small)
    before = program(lab)
    with unharmed(lab):
        for config in (config_of(lab, (1, 2, 1, 2), flows=small["flows"]), large, small | {"flows": large["flows"]}):
            lab.ringlb("apply", lab.write(config))
        sources = [source(CLIENT4, p) for p in range(22000, 22100)]
        assert lab.connect(VIP4, 80, "22000-22099") == lab.owners(SERVICE, sources)
    assert program(lab) != before
    show = lab.json("show")
    assert show["generation"] == 4 and [p["name"] for p in show["pools"]][0] == "web"


def test_growing_between_two_networks(two):
    small = config_of(two, (1, 2)) | {"interfaces": ["eth0", "eth1"]}
    two.attach(small)
    with unharmed(two):
        two.ringlb("apply", two.write(config_of(two, (1, 2, 1), vnodes=20000) | {"interfaces": ["eth0", "eth1"]}))
        two.ringlb("apply", two.write(small))
    assert program(two, "eth0") == program(two, "eth1")


def test_a_flow_table_without_room_is_refused(lab):
    lab.attach(config_of(lab, flows={"established": 3000, "opening": 1000}))
    lab.ringlb("apply", lab.write(config_of(lab, (1, 2, 1, 2), flows={"established": 3000, "opening": 1000})))
    before = program(lab), lab.json("show")
    with lab.traffic(VIP4, 80, "20000-20399", "--keep", "--pause", "0.1") as kept:
        lab.connect(VIP4, 80, "21000-21099")
        tiny = config_of(lab, (1, 2, 1, 2), flows={"established": 4, "opening": 4})
        refused = lab.ringlb("apply", lab.write(tiny), check=1)
        assert "twice as large" in refused.stderr
        assert (program(lab), lab.json("show")["generation"]) == (before[0], before[1]["generation"])
    assert kept["failed"] == 0, kept["failures"]


def test_upgrade_with_the_same_layout(lab):
    config = config_of(lab)
    lab.attach(config)
    lab.ringlb("apply", lab.write(config_of(lab, (1, 2, 1, 2))))
    before, was = program(lab), lab.json("show")
    with unharmed(lab):
        for _ in range(5):
            done = lab.json("upgrade")["upgrade"]
            assert done["layout"]["from"] == done["layout"]["to"] and done["generation"] == 2
        assert program(lab) != before
    now = lab.json("show")
    for key in ("generation", "revision", "digest", "services"):
        assert now[key] == was[key], key
    lab.ringlb("plan", lab.config_file, "--exit-code")


def test_upgrade_with_another_layout(lab):
    """To a newer ringlb and on from there; each refuses what the other one made, and says what to do."""
    lab.attach(config_of(lab))
    lab.ringlb("apply", lab.write(config_of(lab, (1, 2, 1, 2))))
    was = lab.json("show")
    file = lab.write(config_of(lab, (1, 2, 1, 1)))
    for command in (["show"], ["stats"], ["apply", file], ["plan", file]):
        assert "ringlb upgrade" in lab.run("lb", NEW, *command, check=1).stderr
    with unharmed(lab, programs=(OLD, NEW)):
        done = json.loads(lab.run("lb", NEW, "--json", "upgrade").stdout)["upgrade"]
        assert done["layout"] == {"from": 1, "to": 2}
        for command in (["show"], ["stats"], ["apply", file], ["plan", file], ["upgrade"], ["settle"]):
            refused = lab.run("lb", OLD, *command, check=1).stderr
            assert re.search(rf"install package ringlb {re.escape(done['version']['to'])} or newer", refused), refused
        now = json.loads(lab.run("lb", NEW, "--json", "show").stdout)
        for key in ("generation", "revision", "digest", "services"):
            assert now[key] == was[key], key
        lab.run("lb", NEW, "apply", file)
    lab.run("lb", OLD, "detach")


def test_upgrade_applies_a_file_in_the_same_go(lab):
    lab.attach(config_of(lab))
    before = program(lab), lab.json("show")["revision"]
    file = lab.write(config_of(lab, (5, 2, 1, 2)))
    refused = lab.ringlb("upgrade", file, "--max-move", "1%", check=3)
    assert "web" in refused.stderr
    lab.ringlb("upgrade", file, "--if-generation", "7", check=3)
    lab.ringlb("backend", "set", "web", "b3", "--weight", "7")
    assert "--discard-live" in lab.ringlb("upgrade", file, check=3).stderr
    lab.ringlb("upgrade", file, "--discard-live", "--if-generation", "7", check=3)
    lab.ringlb("rollback", "1", "--no-record")
    lab.ringlb("apply", lab.write(config_of(lab)), "--discard-live", "--no-record")
    lab.write(config_of(lab, (5, 2, 1, 2)))
    before = program(lab), lab.json("show")["revision"]
    generation = lab.json("show")["generation"]
    bad = lab.write(config_of(lab) | {"xdp": "fast"}, lab.dir / "bad.yaml")
    lab.ringlb("upgrade", bad, check=2)
    assert (program(lab), lab.json("show")["revision"]) == before
    done = json.loads(lab.run("lb", NEW, "--json", "upgrade", file).stdout)
    assert done["upgrade"]["generation"] == generation
    assert done["generation"] == {"from": generation, "to": generation + 1}
    assert [g["generation"] for g in json.loads(lab.run("lb", NEW, "--json", "history").stdout) if g["active"]] == [generation + 1]
    lab.run("lb", NEW, "plan", file, "--exit-code")


def test_upgrade_of_nothing(lab):
    assert "attach" in lab.ringlb("upgrade", check=1).stderr


@pytest.mark.parametrize("rounds", [12, pytest.param(60, marks=pytest.mark.full)])
def test_killed_upgrades(lab, rounds):
    """Killed at any time: the former program or the new one, and the next command makes it whole."""
    lab.attach(config_of(lab))
    lab.ringlb("apply", lab.write(config_of(lab, (1, 2, 1, 2))))
    with unharmed(lab):
        for i in range(rounds):
            with lab.process("lb", "ringlb", "upgrade", stderr=subprocess.DEVNULL) as p:
                try:
                    p.wait(0.3 + 0.8 * i / rounds)
                except subprocess.TimeoutExpired:
                    p.kill()
            assert lab.json("show")["generation"] == 2
        lab.ringlb("apply", lab.config_file)
    assert not [p.name for p in (lab.dir / "bpf/lb").glob("*~new")]


def test_ipv6_too(lab):
    config = configuration([pool(lab, family=6)], [service(VIP6)])
    lab.attach(config)
    with unharmed(lab, VIP6):
        lab.ringlb("upgrade")
        lab.ringlb("apply", lab.write(configuration([pool(lab, family=6, vnodes=20000)], [service(VIP6)])))
