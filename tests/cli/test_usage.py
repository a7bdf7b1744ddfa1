# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Options, help, exit codes, and how errors are told."""
import json
import os
import re
import subprocess

import pytest

from conftest import PROGRAM, TOP

COMMANDS = ["check", "attach", "detach", "plan", "apply", "backend", "history", "rollback", "settle", "show", "lookup", "ring", "tune", "stats",
            "trace", "upgrade", "decap", "run"]


def test_help_lists_every_command(ringlb):
    listed = re.findall(r"^  ([a-z]+)  ", ringlb("help").stdout, re.MULTILINE)
    assert listed == [*COMMANDS, "help"]
    assert ringlb("--help").stdout == ringlb("-h").stdout == ringlb("help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(ringlb, command):
    shown = ringlb("help", command)
    assert shown.stdout.startswith(f"Usage: ringlb {command}") and " \n" not in shown.stdout and "Exit status:" in shown.stdout
    assert not shown.stderr
    for argv in ((command, "--help"), ("-h", command), (command, "--no-such-option", "-h")):
        assert ringlb(*argv).stdout == shown.stdout


def test_the_manual_has_every_command_option_and_verdict(ringlb):
    manual = (TOP / "man/ringlb.8.scd").read_text(encoding="utf-8").replace("\\", "")
    for command in COMMANDS:
        assert f"\n*{command}*" in manual
        for option in re.findall(r"--[a-z-]+", ringlb("help", command).stdout):
            assert option in manual, f"{command} {option}"
    header = (TOP / "include/ringlb_abi.h").read_text(encoding="utf-8")
    verdicts = re.findall(r'\tX\([A-Z_]+, "([a-z_]+)"', header)
    assert len(verdicts) > 5
    for verdict in verdicts:
        assert f"*{verdict}*" in manual


def test_version(ringlb):
    text = ringlb("-V").stdout
    assert re.fullmatch(r"ringlb \d+\.\d+\.\d+\n", text)
    assert ringlb.json("--version")["version"] == text.split()[1]


@pytest.mark.parametrize("typed, meant", [("atach", "attach"), ("chekc", "check"), ("stat", "stats"), ("SHOW", None),
                                          ("lookups", "lookup"), ("zzz", None), ("", None)])
def test_unknown_command(ringlb, typed, meant):
    said = ringlb(typed, status=2).stderr
    assert said.startswith("ringlb: unknown command") and len(said.splitlines()) == 1
    assert re.findall(r'did you mean "(.*?)"', said) == ([meant] if meant else [])


BAD = [[], ["nonsense"], ["help", "nonsense"], ["-i", "no spaces", "show"], ["--instance=" + 33 * "x", "show"],
       ["--wait", "soon", "show"], ["--wait", "-1", "show"], ["--wait", "nan", "show"], ["show", "--wait"],
       ["--json=1", "show"], ["show", "-i"], *([c, "--no-such-option"] for c in COMMANDS), *([c, "-x"] for c in COMMANDS),
       ["plan", "--exit-code=1"], *([c, "a", "b"] for c in ("check", "attach", "plan", "apply", "rollback", "settle", "show")),
       ["detach", "a"], ["history", "a"], ["rollback", "0"], ["rollback", "-1"], ["rollback", "x"], ["rollback", "4294967296"],
       *([c, o] for c in ("apply", "backend", "rollback", "upgrade") for o in ("--max-move=101", "--max-move=x", "--max-move=", "--max-move=nan",
                                                                   "--if-generation=x", "--if-generation=-1", "--max-move")),
       ["backend"], ["backend", "nonsense", "web", "a"], ["backend", "add", "web", "a"], ["backend", "del", "web"],
       ["backend", "set", "web", "a"], ["backend", "set", "web"], ["backend", "add", "web", "a", "10.0.0.1:80"],
       ["backend", "add", "web", "a", "10.0.0.1", "--state", "drain"], ["backend", "add", "web", "a", "10.0.0.1", "--cut"],
       ["backend", "del", "web", "a", "--weight", "2"], ["backend", "set", "web", "a", "--zone", "x"],
       *(["backend", "set", "web", "a", "--weight", w] for w in ("0", "65536", "-1", "x", "")),
       ["backend", "set", "web", "a", "--state", "down"], ["attach", "--save"], ["apply", "--save"], ["settle", "--save"],
       ["stats", "a"], *(["stats", "--watch", s] for s in ("0", "-1", "x", "", "nan", "inf", "0.01", "86401", "1s")), ["stats", "--watch"],
       ["stats", "--count", "2"], *(["stats", "--watch", "1", "--count", n] for n in ("0", "-1", "x", "", "1000000000")),
       ["show", "--config", "web"], ["lookup"], ["lookup", "www"], ["lookup", "www", "a", "b"],
       ["lookup", "www", "1.2.3.4:5", "--from", "x"], ["lookup", "--file"], ["decap"], ["decap", "lo"],
       ["decap", "--detach"], ["decap", "--from", "10.0.0.1"], ["decap", "--from", "10.0.0.1/8", "lo"],
       ["decap", "--from", "10.0.0.1", "nosuch0"], ["decap", "--detach", "--from", "10.0.0.1", "lo"],
       ["decap", "--show", "lo"], ["decap", "--show", "--detach"], ["decap", "--show", "--from", "10.0.0.1"],
       *([c, "/no/such/file"] for c in ("check", "attach", "plan", "apply")), ["lookup", "www", "x", "--file", "/no/such"]]


@pytest.mark.parametrize("argv", BAD, ids=" ".join)
def test_bad_usage(ringlb, argv):
    """Exit status 2, one line that says what, and as JSON the same."""
    told = ringlb(*argv, status=2)
    assert not told.stdout and len(told.stderr.splitlines()) == 1 and told.stderr.startswith("ringlb: ")
    told_json = ringlb.json(*argv, status=2)
    assert set(told_json) == {"errors", "warnings"}
    error, = told_json["errors"]
    assert set(error) == {"code", "message", "where"} and error["code"] and error["message"] in told.stderr
    assert ringlb("-q", *argv, status=2).stderr == told.stderr


def test_global_options_stand_anywhere(ringlb, config):
    file = ringlb.write(config)
    argv = ["lookup", "www", "1.2.3.4:5", "--file", str(file)]
    first = ringlb("-j", *argv).stdout
    for i in range(1, len(argv) + 1):
        if argv[i - 1] != "--file":
            assert ringlb(*argv[:i], "--json", *argv[i:]).stdout == first
    assert ringlb("-vj", *argv).stdout == ringlb(*argv, "-jiother").stdout == ringlb("-ji", "other", *argv).stdout == first
    assert ringlb("lookup", "-j", "--file", file, "--", "www", "1.2.3.4:5").stdout == first
    # Behind "--" nothing is an option.
    ringlb("lookup", "--file", file, "--", "www", "-j", status=2)


def test_errors_are_json_whatever_was_typed(ringlb):
    done = subprocess.run([PROGRAM, "-j", b"\xff\xfe"], env=ringlb.env, capture_output=True, check=False)
    assert done.returncode == 2 and json.loads(done.stdout)["errors"][0]["code"] == "unknown-command"


@pytest.mark.parametrize("argv", [["help"], ["-j", "help"], ["-V"]], ids=" ".join)
def test_full_disk(ringlb, argv):
    with open("/dev/full", "w", encoding="ascii") as full:
        assert "No space left" in ringlb(*argv, stdout=full, status=1).stderr


def test_closed_output(ringlb):
    """A reader that is gone has seen enough; a descriptor that never was is told. No signal ends the program."""
    reader, writer = os.pipe()
    os.close(reader)
    assert ringlb("help", stdout=writer, status=1).stderr == ""
    os.close(writer)
    done = subprocess.run(["sh", "-c", '"$0" help >&-', PROGRAM], env=ringlb.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "cannot write" in done.stderr


@pytest.mark.parametrize("argv", [["attach"], ["apply"], ["plan"], ["detach"], ["history"], ["rollback"], ["settle"],
                                  ["backend", "set", "web", "a", "--weight", "2"], ["upgrade"], ["show"], ["show", "--config"], ["stats"],
                                  ["lookup", "www", "1.2.3.4:5"], ["decap", "--from", "10.0.0.1", "lo"]], ids=" ".join)
def test_without_privileges(ringlb, config, argv):
    """Says what is missing, changes nothing, exit status 1."""
    file = ringlb.write(config)
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    command = [*drop, PROGRAM, *argv, *([file] if argv[0] in ("attach", "apply", "plan") else [])]
    done = subprocess.run(command, env=ringlb.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stdout
    assert "CAP_NET_ADMIN" in done.stderr and "as root" in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(ringlb.dir.iterdir()) == [file]


def test_help_of_one_command(ringlb):
    assert '"extra" is one too many' in ringlb("help", "show", "extra", status=2).stderr
