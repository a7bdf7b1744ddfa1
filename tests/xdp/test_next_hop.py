# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The next hop in a backend's entry: asked of the kernel when older than a second, kept when the kernel has none."""
import bpf
import pytest
from harness import ip, neighbour_mac, set_sysctl
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from tables import IPIP, L2, Backend, Service
from tables import TCP as PROTO_TCP

WHOLE = [(0xffffffff, 0)]
VIP4, VIP6 = "192.0.2.10", "2001:db8::10"
FRAME4 = bytes(Ether() / IP(src="198.51.100.7", dst=VIP4) / TCP(dport=443))
FRAME6 = bytes(Ether() / IPv6(src="2001:db8:1::7", dst=VIP6) / TCP(dport=443))
OLD_MAC = "02:00:00:00:aa:aa"
OLD = int(OLD_MAC.replace(":", ""), 16) << 16
AGES = 1000  # jiffies, the tables' second in these tests


def serve(balancer, backend, forward=IPIP, vip=VIP4):
    """One service, one backend; returns the tables with a second of AGES jiffies."""
    tables = balancer.configure([Service(vip, 443, PROTO_TCP, WHOLE, forward=forward)], [backend])
    balancer.publish(tables, hz=AGES)


def now(balancer):
    return balancer.lookup(FRAME4)["jiffies"] & 0xffffffff


@pytest.mark.parametrize("address,link,slot", [("10.0.0.11", "lan0", 0), ("10.1.0.11", "lan1", 1),
                                               ("fd00::11", "lan0", 0), ("fd01::11", "lan1", 1)])
def test_found(balancer, address, link, slot):
    serve(balancer, Backend(address))
    start = now(balancer)
    assert balancer.verdict_of(FRAME4)[0] == "forwarded"
    mac, at, stamp = balancer.next_hop(0)
    assert (mac, at) == (neighbour_mac(link), slot)
    assert 0 <= stamp - start < 100


def test_gateway(balancer):
    """Behind a router the next hop is the router."""
    ip("route", "add", "203.0.113.0/24", "via", "10.1.0.11")
    serve(balancer, Backend("203.0.113.5"))
    assert balancer.verdict_of(FRAME4)[:2] == ("forwarded", bpf.XDP_REDIRECT)
    assert balancer.next_hop(0)[:2] == (neighbour_mac("lan1"), 1)
    ip("route", "del", "203.0.113.0/24")


def test_young_entry_is_used_as_it_is(balancer):
    serve(balancer, Backend("10.0.0.11", OLD, now(balancer)))
    assert balancer.verdict_of(FRAME4)[0] == "forwarded"
    assert balancer.next_hop(0)[0] == OLD_MAC


def test_old_entry_is_looked_up_again(balancer):
    serve(balancer, Backend("10.0.0.11", OLD, (now(balancer) - AGES) & 0xffffffff))
    verdict, _, out = balancer.verdict_of(FRAME4)
    assert (verdict, out[:6].hex(":")) == ("forwarded", neighbour_mac("lan0"))


@pytest.mark.parametrize("address", ("10.0.0.12", "fd00::12"))
def test_no_neighbour(balancer, address):
    """Nothing is known: dropped. The entry is tried again at the next tick, not for each packet."""
    serve(balancer, Backend(address))
    assert balancer.verdict_of(FRAME4)[:2] == ("dropped_no_neighbour", bpf.XDP_DROP)
    assert balancer.next_hop(0)[:2] == ("00:00:00:00:00:00", 0)
    ip("neighbour", "add", address, "lladdr", OLD_MAC, "dev", "lan0", "nud", "permanent")
    stamp = balancer.next_hop(0)[2]
    while now(balancer) == stamp:
        pass
    verdict, _, out = balancer.verdict_of(FRAME4)
    assert (verdict, out[:6].hex(":")) == ("forwarded", OLD_MAC)
    ip("neighbour", "del", address, "dev", "lan0")


@pytest.mark.parametrize("address", ("10.0.0.13", "203.0.113.5", "10.0.0.1", "10.2.0.11"),
                         ids=("no neighbour", "no route", "this host", "an interface that is no output"))
def test_failed_look_up_keeps_what_is_there(balancer, address):
    serve(balancer, Backend(address, OLD, (now(balancer) - AGES) & 0xffffffff))
    verdict, _, out = balancer.verdict_of(FRAME4)
    assert (verdict, out[:6].hex(":")) == ("forwarded", OLD_MAC)


def test_forwarding_off(balancer):
    """The kernel then refuses to answer: the entry keeps what user space put there."""
    set_sysctl("ipv4/ip_forward", "0")
    try:
        serve(balancer, Backend("10.0.0.11", OLD, (now(balancer) - AGES) & 0xffffffff))
        verdict, _, out = balancer.verdict_of(FRAME4)
        assert (verdict, out[:6].hex(":")) == ("forwarded", OLD_MAC)
    finally:
        set_sysctl("ipv4/ip_forward", "1")
        set_sysctl("ipv6/conf/all/forwarding", "1")


@pytest.mark.parametrize("forward,vip,frame,backend,source", [
    (L2, VIP4, FRAME4, "10.0.0.11", "198.51.100.7"), (IPIP, VIP4, FRAME4, "10.0.0.11", "10.0.0.1"),
    (L2, VIP6, FRAME6, "fd00::11", "2001:db8:1::7"), (IPIP, VIP4, FRAME4, "fd00::11", "fd00::1"),
    (IPIP, VIP6, FRAME6, "10.0.0.11", "10.0.0.1")])
def test_source_of_the_look_up(balancer, forward, vip, frame, backend, source):
    """Rules that look at the source see the one that the packet leaves with."""
    family = "-6" if ":" in backend else "-4"
    gateway = "fd01::11" if family == "-6" else "10.1.0.11"
    ip(family, "rule", "add", "from", source, "lookup", "100", "priority", "100")
    ip(family, "route", "add", "default", "via", gateway, "dev", "lan1", "table", "100")
    try:
        serve(balancer, Backend(backend), forward, vip)
        assert balancer.verdict_of(frame)[:2] == ("forwarded", bpf.XDP_REDIRECT)
        assert balancer.next_hop(0)[:2] == (neighbour_mac("lan1"), 1)
    finally:
        ip(family, "rule", "del", "priority", "100")
        ip(family, "route", "flush", "table", "100")
