# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import bpf  # noqa: E402
import harness  # noqa: E402


@pytest.fixture(scope="module")
def namespace():
    with bpf.network_namespace():
        harness.make_links()
        yield


@pytest.fixture(scope="module")
def loaded(namespace):
    balancer = harness.Balancer()
    yield balancer
    balancer.close()


@pytest.fixture
def balancer(loaded):
    """Without services until the test configures it."""
    loaded.configure([], [])
    return loaded
