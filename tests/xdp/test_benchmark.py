# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The benchmark's own checks: they hold, and they notice a wrong backend, a re-fed frame, forgotten flows and a wrong
search. Its comparison with former figures. And the size of the program, which does not vary with the machine.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / os.environ.get("BUILD", "build") / "tests/bench/bench"
SIZE = ROOT / "tests/bench/size.json"
VERIFIED_AT_MOST = 200000
ROOM = 1.25  # of what is recorded; a program that grows past it is to be recorded anew, on purpose

sys.path.append(str(ROOT / "tests/bench"))
import figures  # noqa: E402


def bench(*options):
    done = subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_notices_planted_faults():
    assert bench("--self-test", "packets", "lookup", "builds") == (
        "every check holds, and every planted fault was noticed\n")


@pytest.mark.full
def test_notices_planted_faults_at_every_scale():
    assert bench("--self-test") == "every check holds, and every planted fault was noticed\n"


def size():
    return json.loads(bench("--sizes"))


def test_program_has_its_size():
    """What it is now is printed; tests/bench/size.json has what it was."""
    now, was = size(), json.loads(SIZE.read_text(encoding="utf-8"))
    print(now)
    assert now.keys() == was.keys()
    assert 0 < now["verified"] < VERIFIED_AT_MOST
    for key, value in was.items():
        assert now[key] <= value * ROOM, f"{key}: {now[key]} instead of {value}: record it in {SIZE.name} if it must be"


@pytest.mark.full
def test_writes_figures():
    found = json.loads(bench("--rounds", "1", "packets", "lookup", "builds"))
    assert all(figure.keys() >= {"name", "value", "unit", "min", "max", "x_empty"} for figure in found)
    by_name = {figure["name"]: figure for figure in found}
    assert len(by_name) == len(found)
    assert by_name["floor: empty program"]["x_empty"] == 1
    assert by_name["IPv4 ipip, 100,000 flows"]["x_empty"] > 1
    assert by_name["program, loaded"]["value"] > 100
    assert {name for name, _, _ in figures.TARGETS} - by_name.keys() == {
        "commit, 100 x 400: command to new ring", "daemon, 1,000 backends, idle"}


def times(name, multiple, spread=0.02, unit="ns"):
    return {"name": name, "value": 30 * multiple, "unit": unit, "min": 30 * multiple * (1 - spread),
            "max": 30 * multiple * (1 + spread), "x_empty": multiple}


def test_tells_what_got_slower():
    old = [times("a", 3), times("b", 3, spread=0.5), times("c", 3), times("floor: d", 1), times("gone", 1)]
    new = [times("a", 3.5), times("b", 3.5), times("c", 3.1), times("floor: d", 2), times("came", 9)]
    assert [(name, was, now) for name, _, was, now in figures.compare(old, new)] == [("a", 3, 3.5)]


def test_another_load_is_not_slower():
    """All took twice as long, the empty program too."""
    new = {**times("a", 3), "value": 180, "min": 175, "max": 185}
    assert not figures.compare([times("a", 3)], [new])


def test_a_lower_rate_is_slower():
    rate = {"name": "r", "value": 2.0, "unit": "Mpps", "min": 1.9, "max": 2.1, "x_empty": None}
    assert [s[0] for s in figures.compare([rate], [{**rate, "value": 1.5}])] == ["r"]
    assert not figures.compare([rate], [{**rate, "value": 2.5}])


def test_targets_are_held_against():
    name = "IPv4 l2, 1 flow"
    assert figures.target_of(times(name, 3.9)) == ("x_empty", 4, True)
    assert figures.target_of(times(name, 4.1)) == ("x_empty", 4, False)
    assert figures.target_of(times("no target", 4.1)) is None


def test_documents_say_what_was_measured(tmp_path):
    subprocess.run([ROOT / "scripts/speed.py", "--into", tmp_path], check=True)
    for name in ("README.md", "docs/speed.md", "docs/speed-path.svg", "docs/speed-scale.svg", "docs/speed-network.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8"), name
