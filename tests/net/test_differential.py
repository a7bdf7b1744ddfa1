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


def random_prefix(rng, near, family):
    """A prefix, or one address, that may contain others or be contained in them."""
    bits = 32 if family == 4 else 128
    length = rng.choice((bits, bits, bits - rng.randrange(8), rng.choice((16, 20, 24)) if family == 4 else 64))
    address = int(ipaddress.ip_address(near[family])) ^ rng.getrandbits(5)
    network = ipaddress.ip_network((address, length), strict=False)
    return str(network if length < bits else network[0])


def random_ports(rng):
    first = rng.randrange(1, 60000)
    return rng.choice(("any", first, f"{first}-{first + 1 + rng.randrange(5000)}"))


def overlap(a, b):
    """Whether two services are of one kind, so that no rule says which of them a packet is for."""
    if any(a[key] != b[key] for key in ("address", "protocol")):
        return False
    if "-" in str(a["port"]) and "-" in str(b["port"]):
        return max(ports_of(a)[0], ports_of(b)[0]) <= min(ports_of(a)[1], ports_of(b)[1])
    return a["port"] == b["port"]


def random_configuration(rng, sizes=(1, 2, 3, 10, 40)):
    pools = [random_pool(rng, f"p{i}", sizes) for i in range(rng.randrange(1, 5))]
    near = {family: random_address(rng, family) for family in (4, 6)}
    services = []
    for _ in range(rng.randrange(1, 16)):
        pool = rng.choice(pools)
        family, affinity = hashed(rng, pool)
        s = {"address": rng.choice((random_address(rng, family), random_prefix(rng, near, family))),
             "port": random_ports(rng), "protocol": rng.choice(("tcp", "udp", "any")), "pool": pool["name"],
             "forward": rng.choice(("ipip", "gue", {"mode": "gue", "port": 7000})), "affinity": affinity}
        if s["protocol"] == "any":
            s["port"] = "any"
        if not any(overlap(s, other) for other in services):
            services.append(s)
    used = {s["pool"] for s in services}
    return configuration([p for p in pools if p["name"] in used], services, hash_key=f"{rng.getrandbits(128):032x}")


def ports_of(service):
    """The first and the last."""
    if service["port"] == "any":
        return 1, 65535
    first, _, last = str(service["port"]).partition("-")
    return int(first), int(last or first)


def random_target(rng, service):
    """(name, family) of what a packet of the service is sent to, though a narrower one may have it."""
    network = ipaddress.ip_network(service["address"])
    address = str(network[rng.randrange(min(network.num_addresses, 1 << 30))])
    if service["protocol"] == "any" and rng.random() < .5:
        return (f"[{address}]" if network.version == 6 else address) + ":any/any", network.version
    protocol = rng.choice(("tcp", "udp")) if service["protocol"] == "any" else service["protocol"]
    return service_text(address, rng.randint(*ports_of(service)), protocol), network.version


def compare(lab, rng, config):
    per_service = -(-FLOWS // (CONFIGURATIONS * len(config["services"])))
    compared = 0
    for s in config["services"]:
        name, family = random_target(rng, s)
        sources = [source(random_address(rng, family), rng.randrange(1, 65536)) for _ in range(per_service)]
        kernel = [(a["hash"], a["service"], a["pool"], a["backend"], a["address"]) for a in lab.lookups(name, sources)]
        offline = [(a["hash"], a["service"], a["pool"], a["backend"], a["address"])
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
