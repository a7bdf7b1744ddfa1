# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
VLANs, on the wire of the laboratory: the switch passes tags on as they are.

    lb eth0.7 10.79.0.1/24 -- b1 eth0.7 10.79.0.11    where packets go out with a tag
    client eth0.9 10.78.0.100/24 -- lb eth0.9 .1      where they come in with one
"""
import pytest
from laboratory import VIP4, configuration, service

PORTS = "20000-20029"


def add_vlan(lab, host, number, address):
    lab.run(host, "sh", "-ec", f"ip link add link eth0 name eth0.{number} type vlan id {number}; "
            f"ip address add {address}/24 dev eth0.{number}; ip link set eth0.{number} up; "
            f"sysctl -qw net.ipv4.conf.eth0/{number}.rp_filter=0")


@pytest.mark.parametrize("forward", ["l2", "ipip"])
def test_backend_in_a_vlan(lab, forward):
    add_vlan(lab, "lb", 7, "10.79.0.1")
    add_vlan(lab, "b1", 7, "10.79.0.11")
    if forward == "ipip":
        lab.run("b1", "sh", "-ec", "ip link add ringlb0 type ipip external; ip link set ringlb0 up")
    backends = [{"name": "b1", "address": "10.79.0.11"}]
    lab.attach(configuration([{"name": "web", "backends": backends}], [service(VIP4, forward=forward)]))
    assert set(lab.connect(VIP4, 80, PORTS, "--timeout", 20).values()) == {"b1"}
    lab.connect(VIP4, 80, "21000-21003", "--post", "200000", "--parallel", "2", "--timeout", 20)


def test_client_in_a_vlan(lab):
    """Its frames keep their tag on the way to the backend, whose interface for it takes them."""
    for host, address in (("lb", "10.78.0.1"), ("client", "10.78.0.100"), ("b1", "10.78.0.11")):
        add_vlan(lab, host, 9, address)
    # The program reads tags where they are in the frame, not where the sender's offload puts them.
    lab.run("client", "ethtool", "-K", "eth0", "txvlan", "off", "tx", "off")
    lab.run("client", "ip", "route", "replace", "192.0.2.0/24", "via", "10.78.0.1")
    lab.run("client", "ip", "link", "set", "eth0.9", "mtu", "1400")
    lab.attach(configuration([{"name": "web", "backends": [{"name": "b1", "address": lab.address(1)}]}],
                             [service(VIP4)]))
    try:
        assert set(lab.connect(VIP4, 80, PORTS, "--timeout", 20).values()) == {"b1"}
        lab.connect(VIP4, 80, "21000-21003", "--post", "200000", "--parallel", "2", "--timeout", 20)
    finally:
        lab.run("client", "ip", "route", "replace", "192.0.2.0/24", "via", "10.77.0.1")
