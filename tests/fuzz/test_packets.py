# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mutated packets through the attached program, and an oracle of their ends: see fuzz.h. RINGLB_FUZZ_SEED sets the seed."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
TOP = HERE.parents[1]
BUILD = TOP / os.environ.get("BUILD", "build")
MUST_END = ("forwarded", "passed_no_service", "passed_not_ip", "passed_icmp", "dropped_malformed", "dropped_no_backend",
            "answered_echo", "answered_ttl")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    made = tmp_path_factory.mktemp("corpus") / "seeds.pcap"
    subprocess.run([sys.executable, HERE / "seeds.py", made], check=True)
    captured = sorted((TOP / "tests/vectors/tcpdump").glob("*.pcap"))
    assert captured
    return [made, *captured]


def fuzz(corpus, count, seed):
    done = subprocess.run([BUILD / "tests/fuzz/packets", "--count", str(count), "--seed", str(seed), *corpus],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    ends = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines()[1:])
    assert sum(map(int, ends.values())) == count
    assert all(int(ends.get(end, 0)) > count // 200 for end in MUST_END), done.stdout


def seed(otherwise):
    return int(os.environ.get("RINGLB_FUZZ_SEED", otherwise), 0)


def test_mutated_packets(corpus):
    """Always the same, so that who changes something else is not the one whose luck it tries."""
    fuzz(corpus, 100_000, seed("1"))


@pytest.mark.full
def test_many_mutated_packets(corpus, capsys):
    number = seed(str(time.time_ns()))
    with capsys.disabled():
        print(f"\nnote: fuzzing packets with RINGLB_FUZZ_SEED={number}")
    fuzz(corpus, 10_000_000, number)
