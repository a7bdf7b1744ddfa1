# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the programs cost the kernel's verifier, which refuses them at a million instructions."""
import os

import bpf
import pytest

LIMIT = 200_000
LIMIT_OLDER = 400_000  # before 6.12 the verifier sees less often that it has been somewhere before


@pytest.mark.parametrize("name", ["prog", "lookup"])
def test_verified_instructions(balancer, name, capsys):
    count = bpf.verified_instructions(balancer.object.program(name))
    with capsys.disabled():
        print(f"\nnote: {name}: {count} instructions verified by Linux {os.uname().release}")
    newer = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12)
    assert 1000 < count < (LIMIT if newer else LIMIT_OLDER)
