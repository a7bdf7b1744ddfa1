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
