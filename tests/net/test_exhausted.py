# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Without memory, or without room in the tables, what runs stays as it is."""
import contextlib
import json

import pytest
from breaktest_traffic import PORT, Traffic
from conftest import CLIENT4, VIP4, configuration, pool, service, source

SOURCES = [source(CLIENT4, p) for p in range(40000, 40100)]


def config_of(lab, weights=(1, 2, 1), **keys):
    return configuration([pool(lab, weights=weights, settle_after="5s", **keys)], [service(VIP4, PORT, name="www")])


def answers(lab):
    shown = lab.json("show")
    return shown["generation"], shown["revision"], shown["digest"], lab.owners("www", SOURCES)


@contextlib.contextmanager
def connections(lab):
    """None of them may break while what is tried fails."""
    with contextlib.ExitStack() as stack:
        traffic = Traffic(lab, stack, interval_ms=20)
        opened, failed = traffic.open("www", traffic.next_ports("www", 30))
        assert len(opened) == 30, failed
        yield
        assert not traffic.beat()


def test_no_memory(lab):
    """Less address space from one try to the next: a command fails, early or late, or it succeeds."""
    lab.attach(config_of(lab))
    file = lab.write(config_of(lab, (1, 2, 3, 1), vnodes=4000), lab.dir / "more.yaml")
    seen = set()
    with connections(lab):
        for megabytes in [*range(6, 30, 2), *range(30, 200, 10)]:
            before = answers(lab)
            done = lab.run("lb", "prlimit", f"--as={megabytes << 20}", "ringlb", "apply", file, "--discard-live",
                           check=None)
            seen.add(done.returncode)
            if done.returncode:
                assert answers(lab) == before
                assert done.stderr
                # What it left behind is no obstacle; the history says what runs.
                assert lab.ringlb("backend", "set", "web", "b1", "--weight", "1").returncode == 0
                assert [g["generation"] for g in lab.json("history")] == [before[0]]
            else:
                assert answers(lab)[0] == before[0] + 1
                break
    assert 0 in seen and len(seen) > 1


@pytest.mark.full
def test_no_room_in_the_tables(lab):
    """Pools of a million points until the largest tables there can be are full."""
    config = config_of(lab)
    lab.attach(config)
    for i in range(70):
        name = f"p{i}"
        config["pools"].append({"name": name, "vnodes": 500_000, "backends": [
            {"name": f"{name}-{j}", "address": lab.address(j), "weight": 1} for j in (1, 2)]})
        config["services"].append(service(VIP4, 10000 + i, to=name))
    file = lab.write(config, lab.dir / "many.yaml")
    with connections(lab):
        before = answers(lab)
        told = json.loads(lab.ringlb("--json", "apply", file, check=1).stdout)
        assert [e["code"] for e in told["errors"]] == ["no-room"]
        assert answers(lab) == before
        lab.ringlb("apply", lab.write(config_of(lab, (1, 1, 1))))
        assert answers(lab)[0] == before[0] + 1
