# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's choice against that of `lookup --file`, for 10,000 random flows over random configurations."""
import ipaddress
import os
import random

import pytest
from conftest import configuration, service_text, source

CONFIGURATIONS = 20
FLOWS = 10_000


def seeded():
    seed = int(os.environ.get("RINGLB_SEED", random.randrange(1 << 32)))
    print(f"RINGLB_SEED={seed}")  # shown where a test fails; give it again to repeat that
    return random.Random(seed)


def random_address(rng, family):
    if family == 4:
        return str(ipaddress.ip_address(rng.randrange(0x0B000000, 0x7F000000)))
    return str(ipaddress.ip_address(0x2001_0DB8 << 96 | rng.getrandbits(96)))


@pytest.fixture
def routed(lab):
    """Backends' addresses behind one host of the lab: they need not be there, but have a next hop that answers."""
    routes = (("10.88.0.0/16", lab.address(1)), ("fd88::/64", lab.address(1, 6)))
    for prefix, via in routes:
        lab.run("lb", "ip", "route", "add", prefix, "via", via)
    yield lab
    for prefix, _ in routes:
        lab.run("lb", "ip", "route", "delete", prefix)


def random_pool(rng, name, sizes):
    """Backends of both families, with whatever else decides about their points."""
    backends = []
    for i in range(rng.choice(sizes)):
        b = {"name": f"{name}-{i}", "weight": rng.choice((1, 1, 1, 2, 7)),
             "address": f"10.88.{rng.randrange(256)}.{i}" if rng.random() < .5 else f"fd88::{rng.getrandbits(16):x}:{i:x}"}
        if rng.random() < .2:
            b["identity"] = f"{name}!{rng.getrandbits(32):x}"
        if rng.random() < .2:
            b["points"] = rng.randrange(1, 300)
        backends.append(b)
    return {"name": name, "vnodes": rng.choice((1, 3, 40, 160, 400)), "backends": backends,
            "placement": rng.choice(("ring", "ring", "maglev", "rendezvous", "nginx", "haproxy")),
            "maglev_size": rng.choice((251, 4099, 65537))}


def hashed(rng, pool):
    """What a service of the pool may be like, and what it hashes."""
    if pool["placement"] in ("nginx", "haproxy"):
        return 4, "source"
    return rng.choice((4, 6)), rng.choice((
        "flow", "flow", "source", {"source": {"ipv4": rng.randrange(1, 33), "ipv6": rng.randrange(1, 129)}}))


def random_configuration(rng, sizes=(1, 2, 3, 10, 40)):
    pools = [random_pool(rng, f"p{i}", sizes) for i in range(rng.randrange(1, 5))]
    services = {}
    for _ in range(rng.randrange(1, 12)):
        pool = rng.choice(pools)
        family, affinity = hashed(rng, pool)
        address, port, protocol = random_address(rng, family), rng.choice(("any", rng.randrange(1, 65536))), \
            rng.choice(("tcp", "udp"))
        services[address, port, protocol] = {
            "address": address, "port": port, "protocol": protocol, "pool": pool["name"], "forward": "ipip",
            "affinity": affinity}
    used = {s["pool"] for s in services.values()}
    return configuration([p for p in pools if p["name"] in used], list(services.values()),
                         hash_key=f"{rng.getrandbits(128):032x}")


def compare(lab, rng, config):
    per_service = -(-FLOWS // (CONFIGURATIONS * len(config["services"])))
    compared = 0
    for s in config["services"]:
        port = rng.randrange(1, 65536) if s["port"] == "any" else s["port"]
        name = service_text(s["address"], port, s["protocol"])
        family = 6 if ":" in s["address"] else 4
        sources = [source(random_address(rng, family), rng.randrange(1, 65536)) for _ in range(per_service)]
        kernel = [(a["hash"], a["pool"], a["backend"], a["address"]) for a in lab.lookups(name, sources)]
        offline = [(a["hash"], a["pool"], a["backend"], a["address"])
                   for a in lab.lookups(name, sources, "--file", lab.config_file)]
        assert kernel == offline
        compared += len(kernel)
    return compared


def test_kernel_and_file_agree(routed):
    rng = seeded()
    compared = 0
    for i in range(CONFIGURATIONS):
        config = random_configuration(rng)
        routed.reset()
        routed.attach(config)
        compared += compare(routed, rng, config)
    assert compared >= FLOWS


def test_kernel_and_file_agree_after_applies(routed):
    """The same where the configuration came by a series of changes."""
    rng = seeded()
    config = random_configuration(rng, sizes=(3, 10, 40))
    routed.attach(config)
    for _ in range(6):
        for p in config["pools"]:
            for b in p["backends"]:
                b.pop("points", None)
                b["weight"] = rng.randrange(1, 3)
            rng.shuffle(p["backends"])
        routed.ringlb("apply", routed.write(config))
        compare(routed, rng, config)
