# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Linux takes the outer headers off: the devices of README and ringlb.yaml(5), and real connections through them."""
import pytest
from laboratory import VIP4, VIP4B, VIP6, VIP6B, configuration, pool, service

PORTS = "20000-20029"
TUNNELS = """
ip link add ringlb0 type ipip external && ip link set ringlb0 up
ip link add ringlb1 type ip6tnl external && ip link set ringlb1 up
ip link set sit0 up
for device in all default eth0 ringlb0 ringlb1 sit0; do sysctl -qw net.ipv4.conf.$device.rp_filter=0; done
"""
GUE = """
ip fou add port 6080 gue
ip -6 fou add port 6080 gue
"""


def through_every_way(lab, forward):
    """Services of both families, on backends of both."""
    pools = [pool(lab, "four", 4, weights=(1, 1)), pool(lab, "six", 6, weights=(1, 1))]
    vips = {VIP4: "four", VIP6: "six", VIP4B: "six", VIP6B: "four"}
    lab.attach(configuration(pools, [service(vip, 80, "tcp", to, forward) for vip, to in vips.items()]))
    for vip in vips:
        answers = lab.connect(vip, 80, PORTS, "--timeout", 20)
        assert set(answers.values()) == {"b1", "b2"}, vip
        lab.connect(vip, 80, "21000-21003", "--post", "200000", "--parallel", "2", "--timeout", 20)
    dropped = {name: n for name, n in lab.verdicts().items() if name.startswith("dropped") and n}
    assert not dropped


@pytest.mark.parametrize("forward", ["ipip", "gue"])
def test_tunnel_devices(lab, forward):
    for backend in ("b1", "b2"):
        lab.run(backend, "sh", "-ec", TUNNELS + (GUE if forward == "gue" else ""))
    through_every_way(lab, forward)
