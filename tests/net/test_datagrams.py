# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Datagrams of several packets, both ways, end to end: those that the kernel cuts, and such as come in another order."""
import itertools

import pytest
from conftest import TOP, VIP4, VIP6, configuration, pool, service

VIP = {4: VIP4, 6: VIP6}
PORTS = range(20000, 20012)


def ask(lab, family, *options, check=True):
    """{source: name} of datagrams from each port, whose bytes the server has sent back."""
    done = lab.run("client", TOP / "tests/lab/datagram.py", VIP[family], "53", "--ports", f"{PORTS[0]}-{PORTS[-1]}",
                   *options, check=check)
    return dict(line.split() for line in done.stdout.splitlines())


def serve(lab, family, forward="l2", **keys):
    web = pool(lab, family=family)
    if keys.get("fragments") == "source":
        keys["affinity"] = "source"
    dns = service(VIP[family], 53, "udp", forward=forward, name="dns", **keys)
    lab.attach(configuration([web], [dns, service(VIP[family], forward=forward)]))
    if forward != "l2":
        lab.decapsulate()


def drops(lab):
    return {name: count for name, count in lab.verdicts().items() if name.startswith("dropped_") and count}


@pytest.mark.parametrize("family,forward", itertools.product((4, 6), ("l2", "ipip", "gue")))
def test_large(lab, family, forward):
    """8,000 bytes in packets of 1,500: all of each datagram where `lookup` says that its flow goes."""
    serve(lab, family, forward)
    went = ask(lab, family)
    assert len(went) == len(PORTS) and went == lab.owners("dns", went)
    assert not drops(lab)
    assert lab.json("stats")["services"][0]["packets"] == 6 * len(PORTS)


@pytest.mark.parametrize("family,order", itertools.product((4, 6), ("0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0")))
def test_in_another_order(lab, family, order):
    serve(lab, family)
    went = ask(lab, family, "--size", "3000", "--order", order)
    assert len(went) == len(PORTS) and not drops(lab)
    if order == "0,2,1":
        assert went == lab.owners("dns", went)


@pytest.mark.parametrize("family", (4, 6))
def test_by_source(lab, family):
    """All of a client's datagrams go to one backend, in any order."""
    serve(lab, family, fragments="source")
    went = ask(lab, family, "--size", "3000", "--order", "2,1,0") | ask(lab, family)
    assert len(set(went.values())) == 1 and not drops(lab)
    assert went == lab.owners("dns", went)


@pytest.mark.parametrize("family", (4, 6))
def test_dropped(lab, family):
    serve(lab, family, fragments="drop")
    assert not ask(lab, family, "--seconds", "0.1", check=1)
    assert drops(lab) == {"dropped_fragment": 6 * len(PORTS)}
    assert len(ask(lab, family, "--size", "1000")) == len(PORTS)
