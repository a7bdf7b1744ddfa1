# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What needs devices that not every kernel has: tunnels, VLANs. The tests of other kernels run these (tests/vm), and on a
machine that has the modules `tests/run devices` does.
"""
import importlib.util
import pathlib
import sys

import pytest

_spec = importlib.util.spec_from_file_location("laboratory", pathlib.Path(__file__).parents[1] / "net/conftest.py")
laboratory = importlib.util.module_from_spec(_spec)
sys.modules["laboratory"] = laboratory
_spec.loader.exec_module(laboratory)
pytest_configure = laboratory.pytest_configure


@pytest.fixture(scope="session")
def lab_one():
    with laboratory.laboratory("dev", backends=2) as lab:
        yield lab


@pytest.fixture
def lab(lab_one):
    """Nothing attached; the devices that a test adds are gone after it."""
    yield lab_one
    lab_one.reset()
    for host in ("lb", "client", "b1", "b2"):
        names = lab_one.run(host, "sh", "-c", "ip -o link | cut -d' ' -f2 | cut -d: -f1").stdout.split()
        for name in (name.split("@")[0] for name in names):
            if name.startswith(("eth0.", "ringlb")):
                lab_one.run(host, "ip", "link", "delete", name)
