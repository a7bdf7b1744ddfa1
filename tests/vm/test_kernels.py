# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Other kernels: suites of ours under the oldest one that is supported and under a newer one, as Debian builds them, in an
emulated machine. Among them is what the kernel of this machine may lack.
"""
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")
KERNELS = ("6.1", "6.12")
SUITES = ("xdp", "devices")
PATIENCE = 3000  # seconds; an emulated processor is some fifty times slower


@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_suite(kernel, suite, capsys):
    directory = BUILD / "vm" / kernel
    assert (directory / "vmlinuz").exists(), f"make {directory.relative_to(TOP)}/vmlinuz"
    done = subprocess.run([TOP / "tests/vm/boot.sh", directory, f"RINGLB_TIMEOUT={PATIENCE} tests/run {suite}"], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    with capsys.disabled():
        print("", *[line for line in done.stdout.splitlines() if line.startswith("note: ")], sep="\n")
    assert done.returncode == 0, done.stdout
