# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the programs cost the kernel's verifier, which refuses them at a million instructions."""
import os

import bpf
import pytest

LIMIT = 200_000


@pytest.mark.parametrize("name", ["prog", "lookup"])
def test_verified_instructions(balancer, name, capsys):
    count = bpf.verified_instructions(balancer.object.program(name))
    with capsys.disabled():
        print(f"\nnote: {name}: {count} instructions verified by Linux {os.uname().release}")
    assert 1000 < count < LIMIT
