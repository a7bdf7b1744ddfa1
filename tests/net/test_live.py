# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Changes while connections run, and commands that are killed."""
import pathlib
import subprocess
import time

import pytest
from conftest import CLIENT4, VIP4, configuration, pool, service, source
from oracle import Ring

SERVICE = "192.0.2.10:80/tcp"
PORTS = range(20000, 20400)
SOURCES = [source(CLIENT4, p) for p in PORTS]
NEW_PORTS, NEW_SOURCES = "21000-21099", [source(CLIENT4, p) for p in range(21000, 21100)]


def config_of(lab, weights):
    return configuration([pool(lab, weights=weights)], [service(VIP4)])


def unmoved_ports(lab, weight_lists):
    """Ports of the flows that every one of these configurations gives to the same backend."""
    owners = [lab.owners(SERVICE, SOURCES, "--file", lab.write(config_of(lab, w), lab.dir / "step.yaml"))
              for w in weight_lists]
    return [p for p, s in zip(PORTS, SOURCES) if len({o[s] for o in owners}) == 1]


def test_apply_under_traffic(lab):
    """Backends and weights come and go; flows outside the moved arcs notice nothing, new ones follow the new ring."""
    steps = [(1, 2, 1), (1, 2, 1, 2), (2, 2, 1, 2), (2, 2, 1), (1, 2, 1)]
    lab.attach(config_of(lab, steps[0]))
    ports = [str(p) for p in unmoved_ports(lab, steps)]
    with lab.traffic(VIP4, 80, ",".join(ports[20:]), "--parallel", "4") as short, \
            lab.traffic(VIP4, 80, ",".join(ports[:20]), "--keep", "--pause", "0.002") as kept:
        for weights in steps[1:] * 3:
            lab.ringlb("apply", lab.write(config_of(lab, weights)))
            assert lab.connect(VIP4, 80, NEW_PORTS) == lab.owners(SERVICE, NEW_SOURCES)
    assert short["failed"] == kept["failed"] == 0, (short["failures"], kept["failures"])
    assert short["ok"] > 1000 and kept["ok"] > 1000


def test_moved_share_is_the_planned_one(lab):
    """The plan's shares are those of the hash space, exactly; real flows move from and to the same backends."""
    before, after = config_of(lab, (1, 2, 1)), config_of(lab, (1, 3, 1, 2))
    rings = Ring(before["pools"][0]), Ring(after["pools"][0])
    lab.attach(before)
    old = lab.lookups(SERVICE, SOURCES)
    plan = lab.json("plan", lab.write(after))["pools"][0]
    lab.ringlb("apply", lab.config_file)
    new = lab.lookups(SERVICE, SOURCES)

    exact = rings[0].moved(rings[1])
    assert {(m["from"], m["to"]): m["share"] for m in plan["moves"]} == pytest.approx(exact, abs=1e-9)
    assert plan["moved"] == pytest.approx(sum(exact.values()), abs=1e-9)
    for answers, ring in ((old, rings[0]), (new, rings[1])):
        assert [a["backend"] for a in answers] == [ring.owner(int(a["hash"], 16)) for a in answers]
    assert [a["hash"] for a in old] == [a["hash"] for a in new]


def test_packets_flow_while_commands_are_killed(lab):
    """SIGKILL at any time in an apply: the old or the new state, for every flow; the next apply goes through."""
    steps = [(1, 2, 1), (1, 2, 1, 2)]
    configs = [config_of(lab, w) for w in steps]
    rings = [Ring(c["pools"][0]) for c in configs]
    lab.attach(configs[0])
    files = [lab.write(c, lab.dir / f"kill{i}.yaml") for i, c in enumerate(configs)]
    started = time.monotonic()
    lab.ringlb("apply", files[1])
    lab.ringlb("apply", files[0])
    duration = (time.monotonic() - started) / 2
    ports = ",".join(map(str, unmoved_ports(lab, steps)))
    rounds, seen = 24, set()
    with lab.traffic(VIP4, 80, ports, "--parallel", "2", "--pause", "0.001") as summary:
        for i in range(rounds):
            with lab.process("lb", "ringlb", "apply", files[1], stderr=subprocess.DEVNULL) as p:
                try:
                    p.wait(duration * 1.2 * i / rounds)
                except subprocess.TimeoutExpired:
                    p.kill()
            answers = lab.lookups(SERVICE, SOURCES)
            states = {n for n, ring in enumerate(rings)
                      if all(a["backend"] == ring.owner(int(a["hash"], 16)) for a in answers)}
            assert len(states) == 1, f"a mixture after a kill in round {i}"
            seen |= states
            lab.ringlb("apply", files[0])
            assert all(a["backend"] == rings[0].owner(int(a["hash"], 16)) for a in lab.lookups(SERVICE, SOURCES))
    assert seen == {0, 1}
    assert summary["failed"] == 0, summary["failures"]


def test_packets_flow_without_any_process(lab):
    lab.attach(config_of(lab, (1, 2, 1)))
    pids = subprocess.run(["ip", "netns", "pids", f"{lab.name}-lb"], capture_output=True, text=True, check=True).stdout
    assert [pathlib.Path(f"/proc/{p}/cmdline").read_text().split("\0")[2:3] for p in pids.split()] == [["lb"]]
    lab.connect(VIP4, 80, "20000-20099")


def test_emptied_and_removed(lab):
    """What is sent to a pool without backends is dropped, counted; a removed service is the host's own business again."""
    lab.attach(config_of(lab, ()))
    lab.connect(VIP4, 80, "20000", "--timeout", "0.3", check=1)
    assert lab.verdicts()["dropped_no_backend"] > 0
    config = config_of(lab, (1, 2, 1))
    config["services"] = [service("192.0.2.11")]
    lab.ringlb("apply", lab.write(config))
    before = lab.verdicts()["passed_no_service"]
    lab.connect(VIP4, 80, "20000", "--timeout", "0.3", check=1)
    assert lab.verdicts()["passed_no_service"] > before
    lab.connect("192.0.2.11", 80, "20000-20009")
