# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`tune`: what it finds and says, and that it writes nothing but counts."""
import re
import time

import pytest

from conftest import KEY

TEXT = """# The pool of the shop
interfaces: [eth0]
hash_key: %s

pools:
  - name: web   # first
    vnodes: 160
    backends:
      - {name: web-1, address: 10.0.0.11}
      - {address: 10.0.0.12, name: web-2, weight: 2}   # large
      - name: web-3

        address: 10.0.0.13
        weight: 4
      - { name: web-4 , address: 10.0.0.14 , points: 160 , zone: b }
      - {name: web-5, address: 10.0.0.15, state: drain, points: 150}
  - {name: other, placement: maglev, backends: [{name: web-1, address: 10.0.1.11}, {name: x, address: 10.0.1.12}]}
services:
  - {name: www, address: 192.0.2.10, port: 443, protocol: tcp, pool: web, forward: l2}
  - {name: dns, address: 192.0.2.10, port: 53, protocol: udp, pool: other, forward: l2}
""" % KEY


@pytest.fixture(name="file")
def file_fixture(ringlb):
    file = ringlb.dir / "ringlb.yaml"
    file.write_text(TEXT)
    return file


def test_says_what_it_finds(ringlb, file):
    said = ringlb.json("tune", file)
    assert said["file"] == str(file) and said["written"] is False
    (pool,) = said["pools"]
    assert pool["pool"] == "web" and pool["against"] == "file"
    assert pool["before"]["max_over_mean"] == ringlb.json("ring", "web", "--file", file)["max_over_mean"]
    assert pool["max_over_mean"] < 1.01 < pool["before"]["max_over_mean"]
    assert [b["name"] for b in pool["backends"]] == [f"web-{i}" for i in range(1, 6)]
    assert pool["backends"][4]["points"] == 0, "takes no flows"
    assert sum(m["share"] for m in pool["moves"]) == pytest.approx(pool["moved"])
    assert pool["excess"] == pytest.approx(pool["moved"] - pool["minimum"])
    text = ringlb("tune", file).stdout
    assert f"{pool['before']['max_over_mean']:.4f} -> {pool['max_over_mean']:.4f}" in text
    assert f"against the file as it is {100 * pool['moved']:.2f} % of the hash space moves" in text
    assert "nothing is written" in text and file.read_text() == TEXT


def without_points(text):
    return re.sub(r",?\s*points: \d+ ?", "", text)


def test_writes_counts_alone(ringlb, file):
    said = ringlb.json("tune", file, "--write")
    (pool,) = said["pools"]
    written = file.read_text()
    assert said["written"] is True and written != TEXT
    assert without_points(written) == without_points(TEXT)
    assert "state: drain, points: 150" in written
    # What stands there now gives what was printed.
    now = ringlb.json("ring", "web", "--file", file)
    for key in ("points", "backends", "max_over_mean", "min_over_mean"):
        assert now[key] == pool[key]
    assert not ringlb("check", file).stderr.count("points")
    # And nothing more is to be done.
    again = ringlb.json("tune", file, "--write")
    assert again["written"] is False and again["pools"][0]["moved"] == 0
    assert file.read_text() == written
    assert "has these counts already" in ringlb("tune", file, "--write").stdout
    # Whatever counts stand there, the same are found.
    file.write_text(re.sub(r"points: \d+", "points: 300", written))
    assert ringlb.json("tune", file)["pools"][0]["backends"] == pool["backends"]


def test_a_newcomer_alone(ringlb, file):
    ringlb("tune", file, "--write")
    before = ringlb.json("ring", "web", "--file", file)
    text = file.read_text()
    new = "      - {name: new, address: 10.0.0.16, weight: 3}\n"
    file.write_text(text.replace("  - {name: other", new + "  - {name: other"))
    (pool,) = ringlb.json("tune", file, "--only", "new", "--write")["pools"]
    points = {b["name"]: b["points"] for b in pool["backends"]}
    assert {b["name"]: b["points"] for b in before["backends"]} == {n: p for n, p in points.items() if n != "new"}
    assert {b["name"]: b["ratio"] for b in pool["backends"]}["new"] == pytest.approx(1, abs=0.004)
    assert all("new" in (m["from"], m["to"]) for m in pool["moves"])
    # From the pool without it: it takes, and nobody else gives to anybody else.
    gone = ringlb.json("ring", "web", "--file", file, "--without", "new")
    assert gone["excess"] == 0 and {m["from"] for m in gone["moves"]} == {"new"}
    assert re.sub(r", points: \d+}", "}", re.search(r".*name: new.*\n", file.read_text())[0]) == new
    assert file.read_text().replace(re.search(r".*name: new.*\n", file.read_text())[0], "") == text


@pytest.mark.parametrize("argv", [["--only", "web-1", "web-2", "FILE"], ["FILE", "--only", "web-1", "--only", "web-2"],
                                  ["--only=web-1", "web-2", "--pool", "web", "FILE"],
                                  ["FILE", "--pool", "web", "--only", "web-1", "web-2"]])
def test_ways_to_say_only(ringlb, file, argv):
    (pool,) = ringlb.json("tune", *[file if a == "FILE" else a for a in argv])["pools"]
    points = {b["name"]: b["points"] for b in pool["backends"]}
    assert points["web-3"] == 640 and points["web-4"] == 160 and points["web-1"] != 160


@pytest.mark.parametrize("argv, says", [
    (["--only", "nosuch"], "no such backend"), (["--only", "web-5"], "takes no flows"), (["--only", "x"], "no such backend"),
    (["--pool", "nosuch"], 'no pool "nosuch"'), (["--pool", "other"], "placement maglev"), (["--only"], "needs a value"),
    (["second.yaml"], "one FILE at most"), (["--wrong"], "unknown option")])
def test_what_cannot_be_asked(ringlb, file, argv, says):
    assert says in ringlb("tune", file, *argv, status=2).stderr
    assert file.read_text() == TEXT


def test_standard_input(ringlb):
    assert "web-3" in ringlb("tune", "-", input=TEXT).stdout
    assert "can be written" in ringlb("tune", "-", "--write", input=TEXT, status=2).stderr


def test_names_in_two_pools(ringlb, file):
    file.write_text(TEXT.replace("placement: maglev", "placement: ring"))
    assert "--pool" in ringlb("tune", file, "--only", "web-1", status=2).stderr
    assert "--pool" in ringlb("tune", file, "--only", "x", "web-2", status=2).stderr
    (pool,) = ringlb.json("tune", file, "--only", "web-1", "--pool", "other")["pools"]
    assert pool["pool"] == "other"
    assert [p["pool"] for p in ringlb.json("tune", file)["pools"]] == ["web", "other"]


def test_nothing_to_tune(ringlb, file):
    file.write_text(TEXT.replace("    vnodes: 160\n", "    placement: rendezvous\n"))
    assert "nothing to tune" in ringlb("tune", file, "--write").stdout
    file.write_text(re.sub(r"      - \{address.*?(?=  - \{name: other)", "", TEXT, flags=re.S))
    said = ringlb.json("tune", file)
    assert said["pools"][0]["max_over_mean"] == 1 and said["pools"][0]["backends"][0]["points"] == 160


def test_time(ringlb):
    backends = [{"name": f"web-{i}", "address": f"10.0.0.{i}"} for i in range(100)]
    file = ringlb.write({"interfaces": ["eth0"], "hash_key": KEY, "pools": [{"name": "web", "backends": backends}],
                         "services": [{"name": "www", "address": "192.0.2.10", "port": 80, "protocol": "tcp",
                                       "pool": "web", "forward": "l2"}]})
    start = time.monotonic()
    (pool,) = ringlb.json("tune", file)["pools"]
    assert time.monotonic() - start < 1
    assert pool["before"]["points"] == 40000 and pool["max_over_mean"] <= 1.012


def test_only_makes_nothing_worse(ringlb, file):
    """Of what was tuned together with the others."""
    ringlb("tune", file, "--write")
    for names in (["web-1"], ["web-1", "web-2"], ["web-2", "web-3"]):
        (pool,) = ringlb.json("tune", file, *(a for n in names for a in ("--only", n)))["pools"]
        off = [max(abs(b["ratio"] - 1) for b in p["backends"] if b["name"] in names) for p in (pool["before"], pool)]
        assert off[1] <= off[0]
