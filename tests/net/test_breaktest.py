# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The break test (breaktest.py): how many connections changes break, by tracking mode and size of the flow table."""
import json
import os
import random

import breaktest
import pytest
from conftest import TOP

SCRIPT = TOP / "tests/net/breaktest.script"
EVERYTHING = ["--connections", 500, "--events", 50]


def run(*arguments):
    """The summary. The seed and the rows are shown where a test fails; RINGLB_SEED repeats one."""
    seed = os.environ.get("RINGLB_SEED", random.randrange(1 << 32))
    options = breaktest.options_of("--seed", seed, *arguments)
    print(f"RINGLB_SEED={options.seed}")
    summary = breaktest.run(options, print)["summary"]
    print(json.dumps(summary, indent=1))
    return summary


def assert_nothing_broke(summary):
    assert summary["faults"] == []
    assert summary["broken"] == summary["lost"] == summary["dropped"] == 0
    # Without moved arcs many would have broken, so there was something to keep.
    assert summary["expected_broken"] > summary["connections"] / 2


def test_planned_changes_break_nothing():
    summary = run("--connections", 100, "--events", 12)
    assert_nothing_broke(summary)
    assert summary["astray"] == 0


def test_untracked_connections_break(tmp_path):
    """The test can fail: where nothing is kept, about what moves breaks."""
    script = tmp_path / "script"
    script.write_text("drain w4\nadd w5 b5 2\nmove mover alt\n")
    summary = run("--connections", 200, "--script", script, "--track", "none")
    assert summary["faults"] == []
    assert summary["broken"] == pytest.approx(summary["expected_broken"], rel=.35)


@pytest.mark.full
@pytest.mark.parametrize("track", ["moved", "always"])
def test_many_changes_of_many_connections(track):
    summary = run(*EVERYTHING, "--track", track)
    assert_nothing_broke(summary)
    # Two that open at once and share a bucket of the flow table: the second has no place there.
    assert summary["astray"] <= summary["new"] / 100


@pytest.mark.full
@pytest.mark.parametrize("track", ["moved", "always"])
def test_full_flow_table(track):
    """New connections that can't be remembered follow the ring of before; nothing breaks."""
    summary = run(*EVERYTHING, "--track", track, "--flows", 4)
    assert_nothing_broke(summary)
    assert summary["astray"] > 0


@pytest.mark.full
@pytest.mark.parametrize("track", ["moved", "always", "none"])
def test_every_kind_of_change(track):
    summary = run("--connections", 500, "--script", SCRIPT, "--track", track)
    if track != "none":
        assert_nothing_broke(summary)
    else:
        assert summary["broken"] == pytest.approx(summary["expected_broken"], rel=.5)


@pytest.mark.full
def test_maint_breaks_its_own():
    """A backend that goes down takes its connections and no others."""
    summary = run("--connections", 300, "--events", 40, "--kinds",
                  "add,remove,weight,drain,undrain,maint,maint,recover,move,rollback,settle")
    assert summary["faults"] == []
    assert summary["broken"] == 0
    assert summary["hit_broken"] == summary["hit"] > 0


@pytest.mark.full
@pytest.mark.parametrize("track", ["moved", "always"])
def test_forged_openings(track):
    """
    A million SYNs from everywhere, many on the tuples of living connections, while everything changes. New
    connections may fail, as at any server: a SYN that was forged for the same tuple came first.
    """
    summary = run("--connections", 300, "--events", 30, "--flood", 1_000_000, "--track", track)
    assert_nothing_broke(summary)
    assert summary["flood"] == 1_000_000
