# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parsers under libFuzzer with ASan and UBSan, from the tests' own files on, for a number of runs."""
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")
RUNS = 300_000


@pytest.mark.full
def test_configuration(tmp_path):
    for number, path in enumerate(sorted((TOP / "tests/conf").glob("*/*.yaml"))):
        shutil.copy(path, tmp_path / f"{number}.yaml")
    done = subprocess.run([BUILD / "libfuzzer/config", f"-runs={RUNS}", "-max_len=2000", "-verbosity=0",
                           f"-artifact_prefix={tmp_path}/", tmp_path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
