# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands that change what runs: backend, apply with its guards, history, rollback, settle; and what show says then."""
import contextlib
import json
import pathlib
import re
import subprocess
import time

import pytest
from conftest import CLIENT4, VIP4, configuration, pool, service, source
from oracle import Ring

SERVICE = "192.0.2.10:80/tcp"
PORTS = range(20000, 20200)
SOURCES = [source(CLIENT4, p) for p in PORTS]


def config_of(lab, weights=(1, 2, 1), pools=(), **keys):
    keys = {"settle_after": "15m", **keys}
    top = {k: keys.pop(k) for k in ("max_move", "flows") if k in keys}
    return configuration([pool(lab, weights=weights, **keys), *pools], [service(VIP4, name="www")], **top)


def state(lab, name="web"):
    """{backend: state}"""
    shown, = [p for p in lab.json("show")["pools"] if p["name"] == name]
    return {b["name"]: b["state"] for b in shown["backends"]}


def of_pool(lab, name="web"):
    return next(p for p in lab.json("show")["pools"] if p["name"] == name)


def of_backend(lab, name):
    return next(b for b in of_pool(lab)["backends"] if b["name"] == name)


def what_runs(lab):
    """All that a refused command must leave as it is."""
    shown = lab.json("show")
    return shown["generation"], shown["revision"], shown["digest"], shown["drift"], lab.ringlb("history").stdout


def refused(lab, *argv, check=3):
    """Refused, with nothing changed; what was said."""
    before = what_runs(lab)
    done = lab.ringlb(*argv, check=check)
    assert what_runs(lab) == before and done.stderr.startswith("ringlb: ")
    return done.stderr


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)
    return value


def test_one_backend_at_a_time(lab):
    config = config_of(lab)
    lab.attach(config)
    first = lab.owners(SERVICE, SOURCES)

    done = lab.json("backend", "add", "web", "b4", lab.address(4), "--weight", "2", "--zone", "z", "--identity", "four")
    assert done["generation"] == {"from": 1, "to": 2} and done["file_says"] == "has no backend b4 in pool web"
    assert {m["to"] for m in done["pools"][0]["moves"]} == {"b4"}
    assert done["pools"][0]["moved"] == pytest.approx(done["pools"][0]["minimum"], abs=1e-9)
    config["pools"][0]["backends"].append({"name": "b4", "identity": "four", "weight": 2})
    ring = Ring(config["pools"][0])
    assert all(a["new_flow"] == ring.owner(int(a["hash"], 16)) for a in lab.lookups(SERVICE, SOURCES))
    added = of_backend(lab, "b4")
    assert (added["address"], added["weight"], added["zone"]) == (lab.address(4), 2, "z")

    done = lab.ringlb("backend", "set", "web", "b2", "--weight", "3").stdout
    assert f"{lab.config_file} still says weight 2 for backend b2 of pool web" in done
    assert of_backend(lab, "b2")["weight"] == 3
    lab.ringlb("backend", "set", "web", "b2", "--weight", "2")  # as the file says: no live edit any more
    done = lab.json("backend", "del", "web", "b4")
    assert done["file_says"] is None and lab.json("show")["drift"] == []
    assert lab.owners(SERVICE, SOURCES) == first
    lab.ringlb("plan", lab.config_file, "--exit-code")
    assert [h["generation"] for h in lab.json("history") if h["active"]] == [5]
    until(lambda: lab.ringlb("settle") and "b4" not in state(lab))  # it had no flow
    before = what_runs(lab)
    for same in (["set", "web", "b2", "--weight", "2"], ["set", "web", "b2", "--state", "up"]):
        assert "no change" in lab.ringlb("backend", *same).stdout
        assert what_runs(lab) == before


def test_points_are_scaled_with_the_weight(lab):
    config = config_of(lab)
    config["pools"][0]["backends"][1]["points"] = 150
    lab.attach(config)
    lab.ringlb("backend", "set", "web", "b2", "--weight", "3", "--save")
    assert of_backend(lab, "b2")["points"] == 225
    lab.ringlb("plan", lab.config_file, "--exit-code")
    lab.ringlb("backend", "set", "web", "b2", "--weight", "2")
    assert of_backend(lab, "b2")["points"] == 150


@pytest.mark.parametrize("argv, says", [
    (["set", "nosuch", "b1", "--weight", "2"], 'no pool "nosuch"'), (["set", "web", "b9", "--weight", "2"], 'no backend "b9"'),
    (["del", "web", "b9"], 'no backend "b9"'), (["add", "web", "b1", "10.77.0.14"], "has a backend b1 already"),
    (["add", "web", "b4", "10.77.0.14", "--identity", "b1"], "identity"), (["add", "web", "", "10.77.0.14"], "name"),
    (["add", "web", "b4", "fd77::1:1"], "tunnel_source"), (["add", "web", "b4", "224.0.0.1"], "address"),
    (["set", "web", "b1", "--weight", "60000"], "points")])
def test_what_the_file_could_not_say(lab, argv, says):
    """The rules of the configuration hold, and the error is not about lines of a file that nobody wrote."""
    config = config_of(lab, vnodes=400)
    config["services"][0]["forward"] = "ipip"
    config["tunnel_source"] = {"ipv4": "10.77.0.1"}
    lab.attach(config)
    said = refused(lab, "backend", *argv, check=2)
    assert says in said and not re.search(r":\d+:\d+:", said)


def test_warnings_come_once_and_name_no_lines(lab):
    """Where they are caused, and without places in a text that nobody wrote."""
    lab.attach(config_of(lab))
    said = lab.ringlb("backend", "add", "web", "b9", lab.address(1)).stderr
    assert f"pool web: backend b9: address: {lab.address(1)} is already b1's address: one host" in said
    assert "line" not in said and "[" not in said
    for argv in (["settle"], ["backend", "set", "web", "b1", "--weight", "3"], ["rollback"]):
        assert "already b1's" not in lab.ringlb(*argv).stderr


def test_live_edits_are_not_undone_in_silence(lab):
    config = config_of(lab)
    lab.attach(config)
    lab.ringlb("backend", "set", "web", "b3", "--state", "drain")
    lab.ringlb("backend", "add", "web", "b4", lab.address(4))
    drift = lab.json("show")["drift"]
    assert [d for d in drift if d.startswith("live: ")] == ["live: pool web: backend b3: state drain",
                                                           f"live: pool web: backend b4 added ({lab.address(4)})"]
    assert len([d for d in drift if d.startswith("file: ")]) == 2
    said = refused(lab, "apply", lab.config_file)
    assert "b3: state drain" in said and "b4 added" in said and "--discard-live" in said
    errors = lab.json("apply", lab.config_file, check=3)["errors"]
    assert [e["code"] for e in errors] == ["live-edit", "live-edit"]
    assert "apply would refuse" in lab.ringlb("plan", lab.config_file).stderr

    # A file that says the same is applied, and ends it.
    config["pools"][0]["backends"][2]["state"] = "drain"
    config["pools"][0]["backends"].append({"name": "b4", "address": lab.address(4)})
    lab.write(config)
    assert [d for d in lab.json("show")["drift"] if d.startswith("file: ")] == []
    generation = lab.json("show")["generation"]
    lab.ringlb("apply", lab.config_file)
    assert (lab.json("show")["drift"], lab.json("show")["generation"]) == ([], generation)

    lab.ringlb("backend", "del", "web", "b4")
    assert "b4 deleted" in refused(lab, "apply", lab.config_file)
    lab.ringlb("apply", lab.config_file, "--discard-live")
    assert lab.json("show")["drift"] == [] and "b4" in state(lab)


YAML = """# Written by hand.
interfaces: [eth0]        # the only one
hash_key: 00112233445566778899aabbccddeeff
pools:
- name: web
  backends:
  - name: b1              # the first
    address: 10.77.0.11
  - {name: b2, address: 10.77.0.12, weight: 2}   # the second
services: [{address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: l2}]
"""


def test_save_keeps_the_rest_of_the_file(lab):
    lab.config_file.write_text(YAML)
    lab.ringlb("attach", lab.config_file)
    done = lab.json("backend", "set", "web", "b2", "--weight", "5", "--state", "drain", "--save")
    assert done["saved"] and lab.config_file.read_text() == YAML.replace("weight: 2", "weight: 5, state: drain")
    lab.ringlb("backend", "set", "web", "b2", "--weight", "2", "--state", "up", "--save")
    assert lab.config_file.read_text() == YAML
    lab.ringlb("backend", "add", "web", "b3", lab.address(3), "--save")
    assert "# the first\n" in lab.config_file.read_text() and lab.address(3) in lab.config_file.read_text()
    lab.ringlb("backend", "del", "web", "b3", "--save")
    assert lab.config_file.read_text() == YAML
    assert lab.json("show")["drift"] == []
    # What was saved is no live edit: the file may say something else later.
    lab.config_file.write_text(YAML.replace("weight: 2", "weight: 3"))
    lab.ringlb("apply", lab.config_file)

    # An edit that was not saved at first.
    lab.ringlb("backend", "set", "web", "b1", "--weight", "2")
    assert lab.json("show")["drift"]
    lab.ringlb("backend", "set", "web", "b1", "--weight", "2", "--save")
    assert lab.json("show")["drift"] == []
    lab.ringlb("plan", lab.config_file, "--exit-code")


def test_save_that_cannot_be(lab):
    """Nothing is changed, neither what runs nor the file."""
    lab.config_file.write_text(YAML.replace("{name: b2", "&x {name: b2"))
    lab.ringlb("attach", "-", input=YAML)
    assert "standard input" in refused(lab, "backend", "set", "web", "b1", "--weight", "2", "--save", check=2)
    assert "standard input" in refused(lab, "rollback", "1", "--save", check=2)
    lab.ringlb("detach")

    lab.config_file.write_text(YAML)
    lab.ringlb("attach", lab.config_file)
    other = YAML.replace("name: b2", "name: b7")
    lab.config_file.write_text(other)
    said = refused(lab, "backend", "set", "web", "b2", "--weight", "3", "--save", check=2)
    assert "b2" in said and "nothing was changed: " in said
    assert lab.config_file.read_text() == other
    lab.config_file.unlink()
    assert "not there" in refused(lab, "backend", "set", "web", "b2", "--weight", "3", "--save", check=1)
    assert lab.json("backend", "set", "web", "b2", "--weight", "3")["file_says"] == "can't be read: No such file or directory"
    assert any("No such file" in d for d in lab.json("show")["drift"])


def test_states(lab):
    """drain keeps what runs, maint ends it, up returns exactly the arcs there were."""
    lab.attach(config_of(lab))
    owners = lab.owners(SERVICE, SOURCES)
    mine = [str(p) for p, s in zip(PORTS, SOURCES) if owners[s] == "b2"][:20]
    with lab.traffic(VIP4, 80, ",".join(mine), "--keep", "--pause", "0.01") as kept:
        done = lab.ringlb("backend", "set", "web", "b2", "--state", "drain").stdout
        assert "established flows stay where they are" in done
        assert "b2" not in lab.owners(SERVICE, SOURCES).values()
        assert set(lab.owners(SERVICE, SOURCES, "--established").values()) == {"b1", "b2", "b3"}
        assert "b2" not in lab.connect(VIP4, 80, "21000-21099").values()
        until(lambda: of_backend(lab, "b2")["last_old_packet"] is not None)
        shown = of_backend(lab, "b2")
        assert shown["last_old_packet"] <= 2 and 890 <= shown["safe_to_remove_in"] <= 901
        said = lab.ringlb("show", "web").stdout
        share = 100 * of_pool(lab)["moved"]
        assert re.search(rf"  {share:.2f} % of web still moving; b2: last old packet [0-2] s ago, safe to remove in 1[56] m\n", said)
        lab.ringlb("backend", "set", "web", "b2", "--state", "up")
    assert kept["failed"] == 0 and kept["names"].keys() == {"b2"}
    assert lab.owners(SERVICE, SOURCES) == owners

    done = lab.ringlb("backend", "set", "web", "b2", "--state", "maint").stdout
    assert "its flows are cut" in done and "all stay" not in done
    assert "b2" not in {**lab.owners(SERVICE, SOURCES), **lab.owners(SERVICE, SOURCES, "--established")}.values()
    assert of_backend(lab, "b2")["safe_to_remove_in"] == 0
    assert "b2: safe to remove now" in lab.ringlb("show").stdout
    lab.ringlb("backend", "set", "web", "b2", "--state", "up")
    assert lab.owners(SERVICE, SOURCES) == owners


@pytest.mark.parametrize("how", ["backend", "apply"])
def test_cut(lab, how):
    """What leaves with --cut gets nothing any more; without, it is leaving and keeps its flows."""
    config = config_of(lab)
    lab.attach(config)
    del config["pools"][0]["backends"][2]
    left = lab.write(config, lab.dir / "left.yaml")
    leave = ["backend", "del", "web", "b3"] if how == "backend" else ["apply", left]
    lab.ringlb(*leave)
    assert state(lab)["b3"] == "leaving"
    assert "b3" in lab.owners(SERVICE, SOURCES, "--established").values()
    lab.ringlb("apply", lab.write(config_of(lab)), "--discard-live")
    assert state(lab)["b3"] == "up"
    assert "its flows are cut" in lab.ringlb(*leave, "--cut").stdout
    assert "b3" not in state(lab)
    assert "b3" not in lab.owners(SERVICE, SOURCES, "--established").values()


def test_cut_of_what_drains_or_leaves_already(lab):
    lab.attach(config_of(lab))
    lab.ringlb("backend", "set", "web", "b3", "--state", "drain")
    lab.ringlb("backend", "del", "web", "b2")
    kept = lab.owners(SERVICE, SOURCES, "--established").values()
    assert {"b2", "b3"} < set(kept)
    for again in (["del", "web", "b2"], ["set", "web", "b2", "--state", "maint"]):
        assert "leaving already" in refused(lab, "backend", *again, check=2)
    assert "its flows are cut" in lab.ringlb("backend", "set", "web", "b3", "--state", "drain", "--cut").stdout
    assert set(lab.owners(SERVICE, SOURCES, "--established").values()) == {"b1", "b2"}
    assert "its flows are cut" in lab.ringlb("backend", "del", "web", "b2", "--cut").stdout
    assert set(lab.owners(SERVICE, SOURCES, "--established").values()) == {"b1"} and "b2" not in state(lab)


def test_cut_of_what_a_service_left_behind(lab):
    """A backend that a service's own table still has as leaving, because its pool dropped it."""
    config = config_of(lab, pools=[pool(lab, "new", weights=(1,))])
    config["services"].append(service(VIP4, 81, to="new"))
    lab.attach(config)
    lab.ringlb("backend", "del", "web", "b2")
    config["services"][0]["pool"] = "new"
    config["services"][1]["pool"] = "web"
    lab.ringlb("apply", lab.write(config), "--discard-live")
    lab.ringlb("backend", "del", "web", "b2")
    assert "b2" in lab.owners(SERVICE, SOURCES, "--established").values()
    lab.ringlb("backend", "del", "web", "b2", "--cut")
    assert "b2" not in lab.owners(SERVICE, SOURCES, "--established").values()


@pytest.mark.parametrize("change", [{"port": 8080}, {"address": "192.0.2.99"}, None])
def test_service_that_goes_is_told(lab, change):
    """Its flows break, which a limit on what moves counts."""
    config = config_of(lab, max_move="50%")
    config["services"].append(service(VIP4, 81, name="other"))
    lab.attach(config)
    if change:
        config["services"][0].update(change)
    else:
        del config["services"][0]
    file = lab.write(config)
    assert [(s["name"], s["moved"], s["removed"]) for s in lab.json("plan", file)["services"]] == [("www", 1.0, True)]
    said = lab.ringlb("plan", file)
    assert "its established flows break" in said.stdout and "192.0.2.10:80/tcp is the host's" in said.stdout
    said = refused(lab, "apply", file)
    assert "removed service www" in said and said.endswith("ringlb: refused: nothing was changed\n")
    lab.ringlb("apply", file, "--max-move", "100")


def test_service_that_another_one_takes_over(lab):
    config = config_of(lab)
    config["services"].append(service(VIP4, "any", name="rest"))
    lab.attach(config)
    del config["services"][0]
    assert "is for service rest from then on" in lab.ringlb("plan", lab.write(config)).stdout


def test_drain_from_the_start(lab):
    """A backend that is attached as draining has no flows, and is not overdue at once."""
    config = config_of(lab)
    config["pools"][0]["backends"][2]["state"] = "drain"
    lab.attach(config)
    assert (state(lab)["b3"], of_backend(lab, "b3")["safe_to_remove_in"]) == ("drain", 0)
    lab.ringlb("plan", lab.config_file, "--exit-code")
    assert "no change" in lab.ringlb("apply", lab.config_file).stdout


def test_max_move(lab):
    config = config_of(lab, max_move="20%")
    lab.attach(config)
    config["pools"][0] = pool(lab, weights=(1, 2, 3), settle_after="15m")
    file = lab.write(config)
    moved = lab.json("plan", file)["pools"][0]["moved"]
    assert 0.2 < moved < 0.9
    assert "apply would refuse" in lab.ringlb("plan", file).stderr
    for argv in (["apply", file], ["backend", "set", "web", "b3", "--weight", "3"]):
        said = refused(lab, *argv)
        allowed, = re.findall(r"--max-move ([\d.]+%)", said)
        assert f"{100 * moved:.2f} %" in said
        assert lab.json(*argv, check=3)["errors"][0]["code"] == "max-move"
    refused(lab, "apply", file, "--max-move", "1%")
    lab.ringlb("backend", "set", "web", "b3", "--weight", "3", "--max-move", allowed)
    refused(lab, "rollback")
    lab.ringlb("rollback", "--max-move", "100")
    # Neither a file nor a generation without the limit lifts it.
    del config["max_move"]
    assert "max_move is 20 %" in refused(lab, "apply", lab.write(config), "--discard-live")
    lab.ringlb("apply", file, "--discard-live", "--max-move", "100")
    config["max_move"] = "1%"
    lab.ringlb("apply", lab.write(config))
    assert "max_move is 1 %" in refused(lab, "rollback", "1")


def test_if_generation(lab):
    lab.attach(config_of(lab))
    for argv in (["apply", lab.config_file], ["backend", "del", "web", "b1"], ["rollback", "1"]):
        assert "generation 1 runs, not 7" in refused(lab, *argv, "--if-generation", "7")
    lab.ringlb("backend", "del", "web", "b1", "--if-generation", "1")
    refused(lab, "backend", "del", "web", "b2", "--if-generation", "1")


def test_empty_pool(lab):
    config = config_of(lab, weights=(1,))
    lab.attach(config)
    empty = lab.write(config_of(lab, weights=()), lab.dir / "empty.yaml")
    for argv in (["apply", empty], ["backend", "del", "web", "b1"], ["backend", "set", "web", "b1", "--state", "drain"],
                 ["backend", "set", "web", "b1", "--state", "maint"]):
        assert "--allow-empty" in refused(lab, *argv)
    said = lab.ringlb("backend", "set", "web", "b1", "--state", "drain", "--allow-empty").stdout
    assert "new flows are dropped" in said
    lab.connect(VIP4, 80, "20000", "--timeout", "0.3", check=1)
    assert lab.lookups(SERVICE, SOURCES[:1])[0]["verdict"] == "dropped_no_backend"
    assert lab.lookups(SERVICE, SOURCES[:1], "--established")[0]["backend"] == "b1"
    lab.ringlb("backend", "set", "web", "b1", "--state", "up")
    lab.connect(VIP4, 80, "20000")


def test_history_and_rollback(lab):
    config = config_of(lab)
    lab.attach(config)
    digests = [lab.json("show")["digest"]]
    for weight in (2, 3, 4):
        config["pools"][0]["backends"][0]["weight"] = weight
        lab.ringlb("apply", lab.write(config))
        digests.append(lab.json("show")["digest"])
    listed = lab.json("history")
    assert [(h["generation"], h["digest"], h["active"], h["recorded"]) for h in listed] == [
        (n + 1, d, n == 3, True) for n, d in enumerate(digests)]
    assert "weight 2 -> 3" in listed[2]["summary"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", h["time"]) for h in listed)
    assert re.search(r"^  \*\s+4 ", lab.ringlb("history").stdout, re.MULTILINE)

    assert lab.json("rollback")["generation"] == {"from": 4, "to": 5}
    assert lab.json("show")["digest"] == digests[2]
    lab.ringlb("rollback", "1")
    assert lab.json("show")["digest"] == digests[0]
    assert [h["summary"] for h in lab.json("history")][-2:] == ["rollback to 3", "rollback to 1"]
    assert lab.json("show")["drift"][0] == "live: rollback to generation 1"
    assert "rollback to generation 1" in refused(lab, "apply", lab.config_file)
    assert "no change" in lab.ringlb("rollback", "6").stdout
    said = refused(lab, "rollback", "17", check=1)
    assert "generation 17 is not kept" in said and "1-6" in said
    lab.ringlb("apply", lab.config_file, "--discard-live")
    assert lab.json("show")["digest"] == digests[3]


def test_rollback_save_writes_the_file_anew(lab):
    lab.config_file.write_text(YAML)
    lab.config_file.chmod(0o640)
    lab.ringlb("attach", lab.config_file)
    changed = YAML.replace("weight: 2", "weight: 7")
    lab.config_file.write_text(changed)
    lab.ringlb("apply", lab.config_file)
    done = lab.json("rollback", "--save")
    backup = pathlib.Path(f"{lab.config_file}.before-rollback")
    assert done["saved"] and done["backup"] == str(backup) and backup.read_text() == changed
    assert lab.config_file.stat().st_mode & 0o777 == 0o640
    assert lab.json("show")["drift"] == []
    lab.ringlb("plan", lab.config_file, "--exit-code")

    # What says the same is left alone; what was kept stays.
    written = lab.config_file.read_text()
    said = lab.ringlb("rollback", "3", "--save").stdout
    assert "stays as it is" in said and lab.config_file.read_text() == written and backup.read_text() == changed
    done = lab.json("rollback", "2", "--save")
    assert done["backup"] == f"{backup}.2" and pathlib.Path(done["backup"]).read_text() == written
    assert backup.read_text() == changed
    pathlib.Path(done["backup"]).unlink()
    backup.unlink()


def test_history_survives_detach_and_its_loss_loses_nothing_else(lab):
    config = config_of(lab)
    lab.attach(config)
    lab.ringlb("backend", "set", "web", "b1", "--weight", "2")
    lab.ringlb("detach")
    assert [(h["generation"], h["active"]) for h in lab.json("history")] == [(1, False), (2, False)]
    lab.attach(config)
    assert lab.json("show")["generation"] == 3
    lab.ringlb("rollback", "2")
    assert of_backend(lab, "b1")["weight"] == 2

    history = lab.dir / "lb/state/default"
    assert history.stat().st_mode & 0o777 == 0o700 and {f.stat().st_mode & 0o777 for f in history.iterdir()} == {0o600}
    for file in history.iterdir():
        file.unlink()
    history.rmdir()
    before = lab.json("show")
    listed = lab.json("history")
    assert [(h["generation"], h["active"], h["recorded"]) for h in listed] == [(4, True, False)]
    assert "none is" in lab.ringlb("rollback", check=1).stderr
    lab.connect(VIP4, 80, "20000-20009")
    assert [lab.json("show")[k] for k in ("generation", "revision", "digest")] == [before[k] for k in ("generation", "revision", "digest")]
    lab.ringlb("backend", "set", "web", "b1", "--weight", "3")
    assert [(h["generation"], h["active"]) for h in lab.json("history")] == [(5, True)]


@contextlib.contextmanager
def full_disk(lab):
    directory = lab.dir / "full"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "full", directory], check=True)
    try:
        with contextlib.suppress(OSError), open(directory / "fill", "wb", buffering=0) as fill:
            while True:
                fill.write(bytes(4096))
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)
        directory.rmdir()


def test_full_disk(lab):
    lab.attach(config_of(lab))
    with full_disk(lab) as directory:
        before = lab.json("show")
        argv = ["--state-dir", directory, "backend", "set", "web", "b1", "--weight", "2"]
        said = lab.ringlb(*argv, check=1).stderr
        assert "No space left" in said and "--no-record" in said and str(directory) in said
        assert lab.json("show") == before
        assert [p for p in directory.rglob("*") if p.is_file()] == [directory / "fill"]
        lab.ringlb(*argv, "--no-record")
        assert of_backend(lab, "b1")["weight"] == 2
        lab.ringlb("detach")
        said = lab.ringlb("--state-dir", directory, "attach", lab.config_file, check=1).stderr
        assert "--no-record" in said
        lab.ringlb("show", check=1)
        lab.ringlb("--state-dir", directory, "attach", lab.config_file, "--no-record")
    lab.connect(VIP4, 80, "20000-20009")


def test_settle(lab):
    lab.attach(config_of(lab, settle_after="2s"))
    lab.ringlb("backend", "set", "web", "b1", "--weight", "2")
    lab.ringlb("backend", "del", "web", "b3")
    moved = of_pool(lab)["moved"]
    assert moved > 0.1
    said = lab.ringlb("settle").stdout
    assert f"{100 * moved:.2f} % still moves, until" in said
    assert lab.ringlb("settle", "nosuch", check=2).stderr
    generation = lab.json("show")["generation"]
    until(lambda: lab.json("settle", "web")["pools"][0]["settling"] == 0)
    assert of_pool(lab)["moved"] == 0 and list(state(lab)) == ["b1", "b2"]
    assert "nothing moves" in lab.ringlb("settle").stdout
    assert lab.json("show")["generation"] == generation  # no configuration has changed
    assert [a["reason"] for a in lab.lookups(SERVICE, SOURCES)] == ["ring"] * len(SOURCES)


def test_settle_by_force(lab):
    lab.attach(config_of(lab, pools=[pool(lab, "other")]))
    for name in ("web", "other"):
        lab.ringlb("backend", "set", name, "b1", "--weight", "2")
    assert "and break" in lab.ringlb("settle", "web", "--force").stdout
    assert of_pool(lab)["moved"] == 0
    lab.ringlb("settle", "--force")
    assert of_pool(lab, "other")["moved"] == 0


def test_settled_arcs_are_no_change(lab):
    lab.attach(config_of(lab, settle_after="4s"))
    lab.ringlb("backend", "set", "web", "b1", "--weight", "2", "--save")
    until(lambda: lab.json("plan", lab.config_file)["pools"][0]["settled"] > 0)
    lab.ringlb("plan", lab.config_file, "--exit-code")
    assert "has settled" in lab.ringlb("apply", lab.config_file).stdout
    assert "no change" in lab.ringlb("apply", lab.config_file).stdout


def test_a_service_moves_to_another_pool(lab):
    other = {"name": "new", "vnodes": 100, "backends": [{"name": "b4", "address": lab.address(4)}]}
    config = config_of(lab, pools=[other])
    lab.attach(config)
    owners = lab.owners(SERVICE, SOURCES)
    config["services"][0]["pool"] = "new"
    with lab.traffic(VIP4, 80, "20000-20019", "--keep", "--pause", "0.01") as kept:
        done = lab.json("apply", lab.write(config))
        assert done["services"] == [{"name": "www", "moved": 1.0, "rehashed": False, "removed": False, "takes": False,
                                     "dropped": False, "track": "moved"}]
        assert set(lab.owners(SERVICE, SOURCES).values()) == {"b4"}
        assert lab.owners(SERVICE, SOURCES, "--established") == owners
        shown = lab.json("show")["services"][0]
        assert shown["moved"] == 1.0 and {b["name"] for b in shown["moving_from"]} == {"b1", "b2", "b3"}
        assert "100.00 %, from the pool it had" in lab.ringlb("show").stdout
        assert set(lab.connect(VIP4, 80, "21000-21019").values()) == {"b4"}
        answer = lab.ringlb("lookup", "www", SOURCES[0]).stdout
        assert f"an established flow goes to {owners[SOURCES[0]]}" in answer
        stats = {(b["pool"], b["name"]): b for b in lab.json("stats")["backends"]}
        assert stats["new", "b4"]["packets"] > 0
    assert kept["failed"] == 0 and "b4" not in kept["names"]
    lab.ringlb("settle", "--force")
    assert lab.json("show")["services"][0]["moving_from"] == []


def test_what_the_plan_says_of_established_flows(lab):
    config = config_of(lab)
    lab.attach(config)
    config["services"][0]["track"] = "none"
    lab.ringlb("apply", lab.write(config))
    config["pools"][0]["backends"][0]["weight"] = 3
    plan = lab.json("plan", lab.write(config))
    assert plan["pools"][0]["services_by_track"] == {"none": 1, "moved": 0, "always": 0}
    said = lab.ringlb("plan", lab.config_file).stdout
    assert f"those in the {100 * plan['pools'][0]['moved']:.2f} % that move go to their new backend at once, and break" in said
    config["services"][0]["track"] = "always"
    assert "stay where they are until they end" in lab.ringlb("plan", lab.write(config)).stdout
    config["hash_key"] = "ff" * 16
    plan = lab.json("plan", lab.write(config))
    assert plan["services"] == [{"name": "www", "moved": 1.0, "rehashed": True, "removed": False, "takes": False,
                                 "dropped": False, "track": "always"}]
    assert "every flow is hashed anew" in lab.ringlb("plan", lab.config_file).stdout


def test_a_plan_does_not_say_that_all_stay_where_a_service_is_tracked_no_longer(lab):
    config = config_of(lab)
    lab.attach(config)
    lab.ringlb("backend", "set", "web", "b2", "--state", "drain")
    config["pools"][0]["backends"][1]["state"] = "drain"
    config["services"][0]["track"] = "none"
    moving = of_pool(lab)["moved"]
    plan = lab.json("plan", lab.write(config))
    assert [(s["dropped"], s["moved"]) for s in plan["services"]] == [(True, pytest.approx(moving))]
    said = lab.ringlb("plan", lab.config_file).stdout
    assert "all stay" not in said
    assert f"in the {100 * moving:.2f} % that is still moving go to their new backend at once, and break" in said
    assert "service www: " in refused(lab, "apply", lab.config_file, "--max-move", "10%")


def test_a_plan_does_not_say_that_all_stay_where_a_narrower_service_takes_over(lab):
    config = config_of(lab, pools=[{**pool(lab), "name": "alt"}])
    config["services"][0]["address"] = "192.0.2.0/24"
    lab.attach(config)
    config["services"].append(service(VIP4, name="narrow", to="alt"))
    plan = lab.json("plan", lab.write(config))
    assert [(s["name"], s["takes"], s["moved"]) for s in plan["services"]] == [("narrow", True, 1.0)]
    said = lab.ringlb("plan", lab.config_file).stdout
    assert "all stay" not in said
    assert "what is sent to 192.0.2.10:80/tcp was for service www until now: established flows break where" in said
    assert "service narrow: " in refused(lab, "apply", lab.config_file, "--max-move", "10%")
    config["services"][1]["address"] = "198.51.100.1"
    assert "all stay" in lab.ringlb("plan", lab.write(config)).stdout


def test_flow_table_is_told(lab):
    config = config_of(lab, flows={"established": 300, "opening": 100})
    config["services"][0]["track"] = "always"
    lab.attach(config)
    with lab.traffic(VIP4, 80, "20000-20009", "--keep", "--pause", "0.01") as kept:
        stats = lab.json("stats")
        table = stats["flow_table"]
        assert table["capacity"] == 4 * table["opening_capacity"] == 400
        assert table["used"] == 10 and table["openings"] == 0
        assert sum(b["flows"] for b in stats["backends"]) == 10
        assert stats["flow_events"]["established"] == stats["flow_events"]["opened"] == 10
        assert all(a["reason"] == "tracked" for a in lab.lookups(SERVICE, SOURCES[:10], "--established"))
    assert kept["failed"] == 0
    assert "refused_full" in lab.ringlb("stats").stdout


def test_expired_flows_are_none(lab):
    """A leaving backend goes when its flows have expired, though nothing else has reused their entries."""
    config = config_of(lab, settle_after="2s")
    config["services"][0]["track"] = "always"
    lab.attach(config)
    lab.connect(VIP4, 80, "20000-20049")
    assert sum(b["flows"] for b in lab.json("stats")["backends"]) == 50
    lab.ringlb("backend", "del", "web", "b3")
    until(lambda: lab.json("stats")["flow_table"]["used"] == 0)
    until(lambda: lab.ringlb("settle") and "b3" not in state(lab))


def test_commands_at_once_serialise(lab):
    lab.attach(config_of(lab, weights=(1, 1, 1, 1)))
    with contextlib.ExitStack() as stack:
        commands = [stack.enter_context(lab.process("lb", "ringlb", "backend", "set", "web", f"b{i}", "--weight", w,
                                                    "--wait", "30", stderr=subprocess.PIPE))
                    for w in (2, 3) for i in (1, 2, 3, 4)]
        assert [p.wait(60) for p in commands] == [0] * 8
    shown = lab.json("show")
    assert shown["generation"] == 9 and {b["weight"] for b in of_pool(lab)["backends"]} <= {2, 3}
    assert [h["generation"] for h in lab.json("history")] == list(range(1, 10))

    lock = lab.dir / "lb/run/default.lock"
    with subprocess.Popen(["flock", lock, "-c", "echo held; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        assert "locked" in refused(lab, "--wait", "0.2", "backend", "set", "web", "b1", "--weight", "9", check=1)
        lab.ringlb("plan", lab.config_file)  # takes no lock
        holder.communicate("\n")


def test_detach_of_what_is_not_there(lab):
    assert "not attached" in lab.ringlb("detach", check=1).stderr
    assert "mount" in lab.ringlb("--bpffs", lab.dir / "lb/run", "detach", check=1).stderr
    assert "mount" in lab.ringlb("--bpffs", lab.dir / "lb/run", "show", check=1).stderr
    unfinished = lab.dir / "bpf/lb/default~new"
    unfinished.mkdir()
    lab.ringlb("detach")
    assert not unfinished.exists()


def test_relative_file_name(lab):
    """What runs knows its file wherever the next command is given."""
    lab.write(config_of(lab))
    lab.ringlb("attach", lab.config_file.name, cwd=lab.dir)
    shown = lab.json("show")
    assert (shown["file"], shown["drift"]) == (str(lab.config_file), [])
    other = lab.write(config_of(lab), lab.dir / "other.yaml")
    assert f"name of the file: {other}" in lab.ringlb("apply", other).stdout
    assert lab.json("show")["file"] == str(other) and lab.json("show")["generation"] == 1
    assert "no change" in lab.ringlb("apply", other).stdout
    lab.ringlb("apply", lab.config_file)
    broken = json.loads(lab.config_file.read_text())
    del broken["hash_key"]
    lab.write(broken)
    assert ["hash_key" in d for d in lab.json("show")["drift"]] == [True]


def test_plan_tells_what_apply_would_fail_at(lab):
    lab.attach(config_of(lab))
    missing = lab.write(config_of(lab) | {"interfaces": ["eth0", "eth9"]}, lab.dir / "missing.yaml")
    assert "apply would fail: interface eth9: there is none" in lab.ringlb("plan", missing).stderr
    said = lab.ringlb("-i", "second", "plan", lab.config_file).stderr
    assert "apply would fail: interface eth0 already has an XDP program" in said
    said = lab.ringlb("-i", "second", "attach", lab.config_file, check=1).stderr
    assert 'instance default of ringlb is attached there: "ringlb -i default detach"' in said


def test_plan_speaks_of_times_as_files_do(lab):
    lab.attach(config_of(lab, settle_after="8s"))
    file = lab.write(config_of(lab, settle_after="15m", drain_max="0s"))
    changes = lab.json("plan", file)["changes"]
    assert changes == ["pool web: settle_after: 8 s -> 15 m", "pool web: drain_max: 24 h -> never"]


def test_show_tells_what_could_settle(lab):
    """No command has settled it yet: it does not move any more all the same."""
    lab.attach(config_of(lab, settle_after="1s"))
    lab.ringlb("backend", "set", "web", "b3", "--weight", "3")
    until(lambda: of_pool(lab)["moved"] == 0)
    assert of_pool(lab)["can_settle"] > 0 and '"ringlb settle", ends that' in lab.ringlb("show").stdout
    assert "still moving" not in lab.ringlb("show").stdout
    lab.ringlb("settle")
    assert of_pool(lab)["can_settle"] == 0


def test_lookup_tells_of_a_backend_that_cannot_be_reached(lab):
    config = config_of(lab, weights=(1,))
    config["pools"][0]["backends"][0]["address"] = "10.77.0.250"
    lab.attach(config)
    assert lab.lookups(SERVICE, SOURCES[:1])[0]["verdict"] == "dropped_no_neighbour"
    said = lab.ringlb("lookup", SERVICE, SOURCES[0]).stdout
    assert "reason   ring" in said and "verdict  dropped_no_neighbour" in said


def test_another_placement_is_no_change_of_backends(lab):
    """Its backends have no points: that goes without saying."""
    lab.attach(config_of(lab))
    changes = lab.json("plan", lab.write(config_of(lab, placement="maglev")))["changes"]
    assert changes == ["pool web: placement: ring -> maglev"]
