# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ring` and `tune` beside what runs: they tell what show, plan and apply tell, and change nothing."""
import pytest
from conftest import VIP4, configuration, pool, service


@pytest.fixture(name="config")
def config_fixture(lab):
    return configuration([pool(lab, weights=[1, 2, 3])], [service(VIP4)])


def by_name(backends, key):
    return {b["name"]: b[key] for b in backends}


def test_of_what_runs(lab, config):
    lab.attach(config)
    # The file says something else by now.
    config["pools"][0]["backends"][0]["weight"] = 9
    lab.write(config)
    shown, said = lab.json("show")["pools"][0], lab.json("ring", "web")
    assert by_name(said["backends"], "share") == by_name(shown["backends"], "share")
    assert by_name(said["backends"], "points") == by_name(shown["backends"], "points")
    assert said["source"] == "what runs, generation 1"
    text = lab.ringlb("ring", "web").stdout
    assert "what runs, generation 1" in text
    of_file = lab.json("ring", "web", "--file", lab.config_file)
    assert by_name(of_file["backends"], "weight")["b1"] == 9
    # A live edit is part of what runs; who drains has no share.
    lab.ringlb("backend", "set", "web", "b2", "--state", "drain")
    said = lab.json("ring", "web")
    assert by_name(said["backends"], "share")["b2"] == 0 and by_name(said["backends"], "expected")["b3"] == 0.75


def test_foretells_an_apply(lab, config):
    lab.attach(config)
    said = lab.json("ring", "web", "--with", "b1=4")
    config["pools"][0]["backends"][0]["weight"] = 4
    plan = lab.json("plan", lab.write(config))["pools"][0]
    assert (said["moved"], said["minimum"], said["moves"]) == (plan["moved"], plan["minimum"], plan["moves"])
    lab.ringlb("apply", lab.config_file)
    assert lab.json("ring", "web")["backends"] == said["after"]["backends"]


def test_tune_against_what_runs(lab, config):
    lab.attach(config)
    tuned = lab.json("tune", lab.config_file, "--write")["pools"][0]
    assert tuned["against"] == "running"
    plan = lab.json("plan", lab.config_file)["pools"][0]
    assert (tuned["moved"], tuned["minimum"], tuned["moves"]) == (plan["moved"], plan["minimum"], plan["moves"])
    assert tuned["moved"] > 0 and lab.json("show")["generation"] == 1
    lab.ringlb("apply", lab.config_file)
    shown = lab.json("show")["pools"][0]
    assert by_name(shown["backends"], "share") == by_name(tuned["backends"], "share")
    assert lab.json("tune", lab.config_file)["pools"][0]["moved"] == 0


def test_nothing_attached(lab, config):
    assert "/etc/ringlb/ringlb.yaml" in lab.ringlb("ring", "web", check=2).stderr
    assert lab.json("tune", lab.write(config))["pools"][0]["against"] == "file"
