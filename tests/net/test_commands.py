# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What attach, detach, show and apply leave on a real host: all or nothing, and nothing at the end."""
import json
import subprocess

from conftest import CLIENT4, TOP, VIP4, VIP6, configuration, pool, service, source

PORTS = "20000-20049"


def simple(lab, **keys):
    return configuration([pool(lab), pool(lab, "six", 6)], [service(VIP4), service(VIP6, to="six")], **keys)


def footprint(lab):
    """What an instance can leave on the host lb: pins, programs on interfaces, neighbours that the kernel keeps."""
    links = json.loads(lab.run("lb", "ip", "-json", "link").stdout)
    neighbours = lab.run("lb", "ip", "neighbour").stdout
    return {"pins": sorted(p.name for p in (lab.dir / "bpf/lb").rglob("*")),
            "xdp": sorted(link["ifname"] for link in links if "xdp" in link),
            "managed": sorted(line.split()[0] for line in neighbours.splitlines() if "managed" in line)}


def what_runs(lab):
    """What show says, without how that differs from the file."""
    return {key: value for key, value in lab.json("show").items() if key != "drift"}


NOTHING = {"pins": [], "xdp": [], "managed": []}


def test_second_attach_is_refused(lab):
    lab.attach(simple(lab))
    before = footprint(lab), lab.json("show")
    refused = lab.ringlb("attach", lab.config_file, check=1)
    assert refused.stderr and not refused.stdout
    assert (footprint(lab), lab.json("show")) == before
    lab.connect(VIP4, 80, PORTS)


def test_two_attaches_at_once(lab):
    file = lab.write(simple(lab))
    with lab.process("lb", "ringlb", "attach", file, stderr=subprocess.PIPE) as a, \
            lab.process("lb", "ringlb", "attach", file, stderr=subprocess.PIPE) as b:
        assert sorted((a.wait(20), b.wait(20))) == [0, 1]
    lab.connect(VIP4, 80, PORTS)


def test_another_instance_on_the_same_interface_is_refused(lab):
    lab.attach(simple(lab))
    before = footprint(lab)
    refused = lab.ringlb("-i", "other", "attach", lab.config_file, check=1)
    assert "eth0" in refused.stderr
    assert footprint(lab) == before
    lab.connect(VIP4, 80, PORTS)


def test_detach_leaves_nothing(lab):
    lab.attach(simple(lab))
    lab.connect(VIP4, 80, PORTS)
    full = footprint(lab)
    assert full["xdp"] == ["eth0"] and "prog" in full["pins"] and full["managed"]
    lab.ringlb("detach")
    assert footprint(lab) == NOTHING
    assert lab.ringlb("show", check=1).stderr
    lab.ringlb("detach", check=1)
    lab.connect("10.77.0.1", 22, PORTS)
    lab.attach(simple(lab))
    lab.connect(VIP4, 80, PORTS)


def test_detach_of_incomplete_pins_leaves_nothing(lab):
    lab.attach(simple(lab))
    (lab.dir / "bpf/lb/default/lookup").unlink()
    assert "lookup is missing" in lab.ringlb("show", check=1).stderr
    lab.ringlb("detach")
    assert footprint(lab) == NOTHING
    lab.attach(simple(lab))
    (lab.dir / "bpf/lb/default/tables").unlink()
    assert "neighbours that the kernel keeps fresh for it may be left" in lab.ringlb("detach").stderr
    assert not footprint(lab)["pins"] and not footprint(lab)["xdp"]


def test_detach_leaves_what_others_have_pinned(lab):
    """In a directory that happens to have the instance's name, and in the instance's own."""
    place = lab.dir / "bpf/lb/default"
    place.mkdir()
    lab.run("lb", "bpftool", "map", "create", place / "theirs", "type", "array", "key", "4", "value", "4", "entries", "1",
            "name", "theirs")
    assert "theirs is not a pin of ringlb's" in lab.ringlb("detach", check=1).stderr
    assert footprint(lab)["pins"] == ["default", "theirs"]
    (place / "theirs").rename(place / "link-7x")
    lab.ringlb("detach", check=1)
    (place / "link-7x").unlink()
    place.rmdir()
    lab.attach(simple(lab))
    full = footprint(lab)
    lab.run("lb", "bpftool", "map", "create", place / "theirs", "type", "array", "key", "4", "value", "4", "entries", "1",
            "name", "theirs")
    assert "theirs is not a pin of ringlb's" in lab.ringlb("detach", check=1).stderr
    lab.connect(VIP4, 80, PORTS)
    (place / "theirs").unlink()
    assert footprint(lab) == full
    lab.ringlb("detach")
    assert footprint(lab) == NOTHING


def test_rollback_of_the_first_generation(lab):
    lab.attach(simple(lab))
    said = lab.ringlb("rollback", check=1).stderr
    assert "generation 1 runs, the first one" in said and "generation 0" not in said


def test_attach_is_all_or_nothing(lab):
    failed = lab.ringlb("attach", lab.write(simple(lab, interfaces=["eth0", "nosuch0"])), check=None)
    assert failed.returncode in (1, 2) and "nosuch0" in failed.stderr
    assert footprint(lab) == NOTHING


def test_bad_configuration_changes_nothing(lab):
    bad = simple(lab)
    bad["services"][0]["pool"] = "nosuch"
    bad["pools"][0]["backends"][0]["weight"] = 0
    for command in ("attach", "check"):
        failed = lab.ringlb(command, lab.write(bad), check=2)
        assert "nosuch" in failed.stderr and "use state: drain" in failed.stderr  # both faults at once
    assert footprint(lab) == NOTHING
    lab.attach(simple(lab))
    before = what_runs(lab)
    lab.ringlb("apply", lab.write(bad), check=2)
    assert what_runs(lab) == before


def test_missing_bpffs_says_what_to_do(lab):
    failed = lab.ringlb("--bpffs", lab.dir / "lb/run", "attach", lab.write(simple(lab)), check=1)
    assert "bpf" in failed.stderr and "mount" in failed.stderr
    assert footprint(lab) == NOTHING


def test_recreated_interface_is_noticed_and_attached_again(lab):
    lab.attach(simple(lab))
    subprocess.run([TOP / "scripts/lab.sh", "recreate", "lb", "eth0"], env=lab.env, check=True)
    assert [i["mode"] for i in lab.json("show")["interfaces"]] == ["missing"]
    assert "missing" in lab.ringlb("show").stdout
    lab.ringlb("apply", lab.config_file)
    assert [i["mode"] for i in lab.json("show")["interfaces"]] == ["native"]
    sources = [source(CLIENT4, p) for p in range(20000, 20050)]
    assert lab.connect(VIP4, 80, PORTS) == lab.owners("192.0.2.10:80/tcp", sources)
    lab.connect(VIP6, 80, PORTS)
    lab.ringlb("detach")
    assert footprint(lab)["pins"] == [] and footprint(lab)["xdp"] == []


def test_renamed_interface_stays_attached(lab):
    """Its program is the interface's, not the name's: packets go on, and a file with the new name is no other interface."""
    made = simple(lab)
    lab.attach(made)
    links = footprint(lab)
    with lab.traffic(VIP4, 80, PORTS, "--keep", "--pause", "0.05") as summary:
        lab.run("lb", "ip", "link", "set", "eth0", "name", "wan0")
        try:
            shown, = lab.json("show")["interfaces"]
            assert shown == {"name": "eth0", "mode": "native", "now": "wan0"}
            assert "called wan0 now" in lab.ringlb("show").stdout and lab.json("show")["services"][0]["ready"]
            assert "is called wan0 now" in lab.ringlb("plan", lab.config_file).stderr
            assert "is called wan0 now" in lab.ringlb("backend", "set", "web", "b1", "--weight", "3", "--save").stderr
            made["interfaces"] = ["wan0"]
            made["pools"][0]["backends"][0]["weight"] = 3
            lab.write(made)
            assert "interface eth0 is called wan0 now: it stays attached" in lab.ringlb("plan", lab.config_file).stdout
            assert not lab.ringlb("apply", lab.config_file).stderr
            assert lab.json("show")["interfaces"] == [{"name": "wan0", "mode": "native"}]
            # Another mode, at once with another name.
            lab.run("lb", "ip", "link", "set", "wan0", "name", "eth0")
            lab.ringlb("apply", lab.write({**made, "interfaces": ["eth0"], "xdp": "generic"}))
            assert lab.json("show")["interfaces"] == [{"name": "eth0", "mode": "generic"}]
            lab.ringlb("apply", lab.write({**made, "interfaces": ["eth0"]}))
        finally:
            lab.run("lb", "ip", "link", "set", "wan0", "name", "eth0", check=None)
    assert footprint(lab)["xdp"] == links["xdp"]
    assert not summary["failed"], summary


def test_shown_configuration_is_taken_back_unchanged(lab):
    lab.attach(simple(lab))
    shown = lab.dir / "shown.yaml"
    shown.write_text(lab.ringlb("show", "--config").stdout)
    lab.ringlb("check", shown)
    lab.ringlb("plan", shown, "--exit-code")
    before = lab.json("show")
    lab.ringlb("apply", shown)
    after = lab.json("show")
    assert (after["generation"], after["digest"]) == (before["generation"], before["digest"])


def test_plan_changes_nothing_and_says_what_apply_does(lab):
    config = simple(lab)
    lab.attach(config)
    before = what_runs(lab)
    config["pools"][0] = pool(lab, weights=(1, 2, 1, 2))
    plan = lab.json("plan", lab.write(config))
    lab.ringlb("plan", lab.config_file, "--exit-code", check=4)
    assert what_runs(lab) == before
    done = lab.json("apply", lab.config_file)
    assert done["pools"] == plan["pools"] and done["generation"] == plan["generation"]
    lab.ringlb("plan", lab.config_file, "--exit-code")
    assert {m["to"] for m in plan["pools"][0]["moves"]} == {"b4"}
