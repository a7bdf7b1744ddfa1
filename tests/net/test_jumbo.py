# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames of 9000 bytes, which lie in several buffers: native XDP takes them, and they arrive whole."""
import pytest
from conftest import laboratory
from test_path_mtu import MODES, VIP, attach, decapsulate, download, drops, upload

MTU = 9000


@pytest.fixture(scope="module")
def lab_jumbo():
    with laboratory("jumbo", backends=2, mtu=MTU) as it:
        yield it


@pytest.fixture
def jumbo(lab_jumbo):
    yield lab_jumbo
    lab_jumbo.reset()


def frames(lab):
    """(packets, bytes) of the only service."""
    counted = lab.json("stats")["services"][0]
    return counted["packets"], counted["bytes"]


@pytest.mark.parametrize("forward", MODES)
@pytest.mark.parametrize("family", (4, 6))
def test_transfers(jumbo, family, forward, tmp_path):
    """Up through the balancer in frames of that size, and down beside it; nobody has to be told of a smaller one."""
    attach(jumbo, family, forward)
    decapsulate(jumbo, forward, ["b1"])
    assert upload(jumbo, "client", family, 5000000, tmp_path) == "b1"
    download(jumbo, "client", family, 5000000)
    verdicts = jumbo.verdicts()
    assert not drops(verdicts) and not verdicts["answered_too_big"]
    packets, octets = frames(jumbo)
    assert octets > 5000000
    assert octets / packets > 1500  # acknowledgements of the download among them
    assert jumbo.json("show")["interfaces"][0]["mode"] == "native"


@pytest.mark.parametrize("family", (4, 6))
def test_pings_as_large(jumbo, family):
    attach(jumbo, family, "l2")
    jumbo.run("client", "ping", "-c", "3", "-i", "0.05", "-W", "2", "-M", "do", "-s", "8900", VIP[family])
    assert jumbo.verdicts()["answered_echo"] == 3
