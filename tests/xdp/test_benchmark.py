# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The benchmark's own checks: they hold, and they notice a wrong backend, a re-fed frame and a wrong search."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / os.environ.get("BUILD", "build") / "tests/bench/bench"


def test_notices_planted_faults():
    done = subprocess.run([BENCH, "--self-test"], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "every check holds, and every planted fault was noticed\n"


@pytest.mark.full
def test_writes_figures(tmp_path):
    file = tmp_path / "figures.json"
    done = subprocess.run([BENCH, "--rounds", "1", "--json", file], capture_output=True, text=True, timeout=120,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(file.read_text())
    assert all(figure.keys() >= {"name", "value", "unit", "min", "max", "x_empty"} for figure in figures)
    by_name = {figure["name"]: figure for figure in figures}
    assert len(by_name) == len(figures)
    assert by_name["floor: empty program"]["x_empty"] == 1
    assert by_name["IPv4 ipip, 100,000 flows"]["x_empty"] > 1
    assert by_name["program, loaded"]["value"] > 100
