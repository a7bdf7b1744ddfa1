# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's search against a plain one, over random tables whose arcs end at, before and behind flows' positions."""
import ipaddress
import random

import pytest
from harness import KEY, plain_frame
from tables import TCP, Backend, Service, position

VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
BACKENDS = 30
# Bits of the index, and arcs: from one bucket of a few points to buckets of thousands, and to buckets without a point.
SHAPES = [(6, 1), (6, 10), (6, 200), (6, 600), (6, 6000), (6, 60000), (12, 50), (12, 16000), (12, 60000), (16, 3),
          (16, 30000)]


def flows(rng, count):
    """(frame, position) of random flows of both families."""
    for _ in range(count):
        family, port = rng.choice((4, 6)), rng.randrange(65536)
        client = str(ipaddress.ip_address(rng.randbytes(4 if family == 4 else 16)))
        flow = client, VIP[family], port, 443, TCP
        yield plain_frame(*flow), position(KEY, *flow)


def random_arcs(rng, count, near, bits):
    """Ends at random, around `near`, and around the ends of buckets."""
    ends = {0xffffffff}
    ends.update((p + d) & 0xffffffff for p in near for d in rng.sample((-2, -1, 0, 1), 2) if count > 10)
    starts = [rng.randrange(1 << bits) << (32 - bits) for _ in range(count // 20)]
    ends.update((start + d) & 0xffffffff for start in starts for d in (-2, -1, 0, 1))
    while len(ends) < count:
        ends.add(rng.randrange(1 << 32))
    return [(end, rng.randrange(BACKENDS)) for end in sorted(ends)]


@pytest.mark.parametrize("bits,count", SHAPES)
def test_search(balancer, bits, count):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    packets = list(flows(rng, 250))
    service = Service(VIP[4], 443, TCP, random_arcs(rng, count, [p for _, p in packets], bits),
                      owners=rng.sample(range(64), BACKENDS), bits=bits)
    services = [service, Service(VIP[6], 443, TCP, service.arcs, owners=service.owners, bits=bits)]
    balancer.configure(services, [Backend("10.0.0.11")])
    for frame, at in packets:
        answer = balancer.lookup(frame)
        assert answer["position"] == at
        assert answer["owner"] == service.owner(at), f"position {at:#x}"
