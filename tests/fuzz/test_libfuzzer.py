# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What reads a stranger's bytes under libFuzzer with ASan and UBSan, from the tests' own files on, for a number of runs."""
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from seeds import seeds

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")
RUNS = 300_000
PROGRAM_RUNS = 4_000_000
RARE = {"answer", "identify", "keep_flow_in_table", "learn_from", "quic_insert", "recall_fragment", "skip_extensions",
        "trace_packet"}
IN_A_ROW = 4  # packets: fragments, and what follows the first packet of a flow


def fuzz(target, work, corpus, runs, *options):
    done = subprocess.run([BUILD / "libfuzzer" / target, f"-runs={runs}", "-verbosity=0", f"-artifact_prefix={work}/",
                           *options, corpus],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(name="packets")
def packets_(tmp_path):
    """Every packet of seeds.py alone, whole and in two buffers, and with those behind it: struct header of kernel.h."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    frames = [bytes(frame) for frame in seeds()]
    for number, frame in enumerate(frames):
        (corpus / f"{number}").write_bytes(struct.pack("<HHBB", len(frame), 0, 0, 0) + frame)
        (corpus / f"{number}-split").write_bytes(struct.pack("<HHBB", len(frame), 128, 0, 0) + frame)
        row = frames[number:number + IN_A_ROW]
        (corpus / f"{number}-row").write_bytes(b"".join(struct.pack("<HHBB", len(f), 0, 0, 0) + f for f in row))
    return corpus


@pytest.mark.full
def test_configuration(tmp_path):
    for number, path in enumerate(sorted((TOP / "tests/conf").glob("*/*.yaml"))):
        shutil.copy(path, tmp_path / f"{number}.yaml")
    fuzz("config", tmp_path, tmp_path, RUNS, "-max_len=2000")


def test_program(tmp_path, packets):
    """The seeds as they are, and a few changes, always the same; they get to where a packet rarely does."""
    told = fuzz("program", tmp_path, packets, 200_000, "-max_len=8000", "-seed=1", "-print_coverage=1")
    reached = set(re.findall(r"^COVERED_FUNC: .* (\w+) \S+$", told, re.MULTILINE))
    assert RARE <= reached, told


@pytest.mark.full
def test_program_long(tmp_path, packets):
    fuzz("program", tmp_path, packets, PROGRAM_RUNS, "-max_len=8000")
