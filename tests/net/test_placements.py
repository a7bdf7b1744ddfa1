# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that nginx or HAProxy sent to a server comes to the same one through ringlb: real connections, steered."""
import json
import os
import pathlib
import random

import pytest
from conftest import TOP, VIP4, configuration, pool, service, source

CLIENTS = 12  # addresses of the client's
PLACEMENTS = ("ring", "maglev", "rendezvous", "nginx", "haproxy")


@pytest.fixture
def clients(lab):
    """Addresses beside the client's own, in the same network."""
    addresses = [f"10.77.0.{n}" for n in range(200, 200 + CLIENTS)]
    for a in addresses:
        lab.run("client", "ip", "address", "add", f"{a}/32", "dev", "eth0")
    yield addresses
    for a in addresses:
        lab.run("client", "ip", "address", "delete", f"{a}/32", "dev", "eth0")


def answers(lab, clients):
    return {a: next(iter(lab.connect(VIP4, 80, "30000-30000", "--source", a).values())) for a in clients}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_client_where_lookup_says(lab, clients, placement):
    web = pool(lab, placement=placement)
    lab.attach(configuration([web], [service(VIP4, affinity="source")]))
    got = answers(lab, clients)
    said = lab.owners(f"{VIP4}:80/tcp", [source(a, 30000) for a in clients], "--file", lab.config_file)
    assert got == {a: said[source(a, 30000)] for a in clients}
    assert len(set(got.values())) == 3


@pytest.mark.parametrize("placement, file, hashed", [
    ("nginx", "nginx.json", "identity"), ("haproxy", "haproxy_source.json", "id")])
def test_observed_pairs(lab, placement, file, hashed):
    """The clients of the vectors, by the pinned program: addresses of 127.0.0.0/8, which no wire carries."""
    vectors = pathlib.Path(os.environ.get("RINGLB_VECTORS", TOP / "tests/vectors"))
    observed = [s for s in json.loads((vectors / file).read_text())["sets"].values() if "source_to_server" in s]
    assert observed
    for number, s in enumerate(observed):
        web = pool(lab, weights=[b["weight"] for b in s["servers"]], placement=placement)
        for b, server in zip(web["backends"], s["servers"]):
            b[hashed] = server[hashed]
        names = [server.get("identity", server.get("name")) for server in s["servers"]]
        config = configuration([web], [service(VIP4, affinity="source")])
        if number:
            lab.ringlb("apply", lab.write(config))
        else:
            lab.attach(config)
        owners = lab.owners(f"{VIP4}:80/tcp", [source(a, 1024) for a, _ in s["source_to_server"]])
        assert [names[int(owners[source(a, 1024)][1:]) - 1] for a, _ in s["source_to_server"]] == \
            [server for _, server in s["source_to_server"]]


def test_placement_changes_under_way(lab, clients):
    """One after the other, live: each time clients are where the new file says."""
    rng = random.Random(4)
    web = pool(lab, placement="ring")
    config = configuration([web], [service(VIP4, affinity="source", track="none")])
    lab.attach(config)
    for placement in rng.sample(PLACEMENTS[1:], 4) + ["ring"]:
        web["placement"] = placement
        lab.ringlb("apply", lab.write(config))
        assert lab.json("show")["pools"][0]["placement"] == placement
        few = clients[:4]
        said = lab.owners(f"{VIP4}:80/tcp", [source(a, 30000) for a in few], "--file", lab.config_file)
        assert answers(lab, few) == {a: said[source(a, 30000)] for a in few}
