# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The systemd units: sound, and the daemon's as narrow as it can be."""
import os
import re
import shutil
import subprocess

import pytest
from test_tree import ROOT

UNITS = sorted((ROOT / "packaging").glob("*.service"))
pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


# As root it leaves files in /run: it gets one of its own.
PRIVATE_RUN = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs run /run && exec "$@"', "-"] if os.geteuid() == 0 else []


def analyze(*argv):
    return subprocess.run([*PRIVATE_RUN, "systemd-analyze", *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_sound(unit, tmp_path):
    """With a program that is there, wherever the real one is to be; manual pages may not be installed here."""
    copy = tmp_path / unit.name
    text = unit.read_text(encoding="utf-8").replace("/usr/sbin/ringlb", "/bin/true")
    copy.write_text(re.sub(r"(?m)^Documentation=.*\n", "", text), encoding="utf-8")
    done = analyze("verify", copy)
    assert done.returncode == 0 and unit.name not in done.stderr, done.stderr


def test_exposure():
    done = analyze("security", "--offline=true", "--threshold=30", ROOT / "packaging/ringlb.service")
    assert done.returncode == 0, done.stdout[-300:]
