# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every flow lands on the backend that `ringlb lookup` names: both families, modes of forwarding and of XDP."""
import pytest
from conftest import (CLIENT4, CLIENT6, VIP4, VIP4B, VIP6, VIP6B, configuration, pool, service, service_text, source)

PORTS = range(20000, 20100)
PORTS_TEXT = "20000-20099"
WAYS = [("l2", "native"), ("l2", "generic"), ("ipip", "native"), ("ipip", "generic"), ("gue", "native")]


def steered(lab, vip, port=80, protocol="tcp"):
    """The flows' answers, after comparing them with what lookup says, asking the kernel and from the file alone."""
    sources = [source(CLIENT6 if ":" in vip else CLIENT4, p) for p in PORTS]
    text = service_text(vip, port, protocol)
    # Where is the question, not how soon: a lost SYN is sent again after 1, 3 and 7 s on a busy machine.
    got = lab.connect(vip, port, PORTS_TEXT, "--timeout", 20, *(["--udp"] if protocol == "udp" else []))
    assert got == lab.owners(text, sources) == lab.owners(text, sources, "--file", lab.config_file)
    return got


@pytest.mark.parametrize("forward, xdp", WAYS)
def test_every_flow_lands_where_lookup_says(lab, xdp, forward):
    """Services of each family on backends of each family, TCP and UDP, and uploads of full packets."""
    pools = [pool(lab, "four", 4), pool(lab, "six", 6)]
    vips = {VIP4: "four", VIP6: "six"}
    if forward != "l2":  # which keeps to one family
        vips |= {VIP4B: "six", VIP6B: "four"}
    services = [service(vip, port, protocol, to, forward)
                for vip, to in vips.items() for port, protocol in ((80, "tcp"), (53, "udp"))]
    lab.attach(configuration(pools, services, xdp))
    assert [(i["name"], i["mode"]) for i in lab.json("show")["interfaces"]] == [("eth0", xdp)]
    if forward != "l2":
        lab.decapsulate()
    for vip in vips:
        assert set(steered(lab, vip).values()) == {"b1", "b2", "b3"}
        steered(lab, vip, 53, "udp")
        lab.connect(vip, 80, "21000-21007", "--post", "200000", "--parallel", "2")
    verdicts = lab.verdicts()
    dropped = {name: n for name, n in verdicts.items() if name.startswith("dropped") and n}
    assert verdicts["forwarded"] > len(vips) * 100 * 4 and not dropped


@pytest.mark.parametrize("forward, xdp", WAYS)
def test_redirect_to_another_interface(two, xdp, forward):
    two.attach(configuration([pool(two, "four", 4), pool(two, "six", 6)],
                             [service(VIP4, to="four", forward=forward), service(VIP6, to="six", forward=forward)],
                             xdp, interfaces=["eth0"]))
    if forward != "l2":
        two.decapsulate()
    for vip in (VIP4, VIP6):
        assert set(steered(two, vip).values()) == {"b1", "b2", "b3"}
        two.connect(vip, 80, "21000-21007", "--post", "200000", "--parallel", "2")


def test_both_interfaces_attached(two):
    """The way back crosses the balancer's second XDP program as traffic for no service."""
    two.attach(configuration([pool(two)], [service(VIP4)], interfaces=["eth0", "eth1"]))
    assert {i["name"] for i in two.json("show")["interfaces"]} == {"eth0", "eth1"}
    steered(two, VIP4)


def test_any_port(lab):
    """One service for all ports of an address; a service with a port of its own at the same address goes first."""
    pools = [pool(lab, "any"), pool(lab, "own", weights=(1,))]
    lab.attach(configuration(pools, [service(VIP4, "any", to="any", name="all"), service(VIP4, 8080, to="own")]))
    for port in (80, 443):
        assert len(set(steered(lab, VIP4, port).values())) == 3
    assert set(steered(lab, VIP4, 8080).values()) == {"b1"}


def test_without_ip_forwarding(lab):
    """The kernel's route look-up refuses where forwarding is off; what user space resolved serves then."""
    off = "for f in /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding; do echo {} >$f; done"
    lab.run("lb", "sh", "-c", off.format(0))
    try:
        lab.attach(configuration([pool(lab, "four", 4), pool(lab, "six", 6)],
                                 [service(VIP4, to="four"), service(VIP6, to="six")]))
        steered(lab, VIP4)
        steered(lab, VIP6)
    finally:
        lab.run("lb", "sh", "-c", off.format(1))


@pytest.mark.parametrize("xdp", ["native", "generic"])
def test_the_balancers_own_traffic(lab, xdp):
    """TCP to the balancer's own addresses, ARP, neighbour discovery and ping go on as without the program."""
    lab.attach(configuration([pool(lab), pool(lab, "six", 6)], [service(VIP4), service(VIP6, to="six")], xdp))
    before = lab.verdicts()
    for own in ("10.77.0.1", "fd77::1"):
        assert set(lab.connect(own, 22, "22000-22019").values()) == {"lb"}
        assert set(lab.connect(own, 80, "22000-22019", "--post", "200000", "--parallel", "2").values()) == {"lb"}
        lab.run("client", "ip", "neighbour", "flush", "dev", "eth0")
        lab.run("client", "ping", "-q", "-c", "3", "-i", "0.05", "-W", "2", own)
        lab.run("lb", "ping", "-q", "-c", "3", "-i", "0.05", "-W", "2", own.replace("::1", "::100").replace(".0.1", ".0.100"))
    after = lab.verdicts()
    assert after["passed_no_service"] > before["passed_no_service"] and after["passed_not_ip"] > before["passed_not_ip"]
    assert after["forwarded"] == before["forwarded"]
    steered(lab, VIP4)


def test_other_ports_of_a_service_address_are_passed(lab):
    lab.attach(configuration([pool(lab)], [service(VIP4)]))
    before = lab.verdicts()
    lab.connect(VIP4, 443, "23000", "--timeout", "0.3", check=1)
    after = lab.verdicts()
    assert after["passed_no_service"] > before["passed_no_service"] and after["forwarded"] == before["forwarded"]


def test_fragments_for_the_balancer_itself(lab):
    """A large echo request to the balancer, in fragments, passes."""
    lab.attach(configuration([pool(lab), pool(lab, "six", 6)], [service(VIP4), service(VIP6, to="six")]))
    for own in ("10.77.0.1", "fd77::1"):
        lab.run("client", "ping", "-q", "-c", "2", "-i", "0.05", "-W", "2", "-s", "4000", own)


def test_decap_is_for_the_balancers_alone(lab):
    """Outer headers from elsewhere stay on, and so nothing is delivered; detached, nothing is left."""
    lab.attach(configuration([pool(lab, weights=(1,))], [service(VIP4, forward="ipip")]))
    lab.ringlb("decap", "--from", "10.77.0.99", "10.78.0.0/16", "eth0", host="b1")
    lab.connect(VIP4, 80, "24000", "--timeout", "0.3", check=1)
    lab.ringlb("decap", "--detach", "eth0", host="b1")
    assert not list((lab.dir / "bpf/b1").rglob("*")) and "xdp" not in lab.run("b1", "ip", "link", "show", "eth0").stdout
    lab.ringlb("decap", "--from", "10.77.0.0/28", "eth0", host="b1")
    assert set(lab.connect(VIP4, 80, "24000-24009").values()) == {"b1"}


def test_decap_show(lab):
    assert lab.ringlb("decap", "--show", host="b1").stdout == "decap is attached nowhere\n"
    assert lab.json("decap", "--show", host="b1") == {"interfaces": []}
    lab.attach(configuration([pool(lab, weights=(1,))], [service(VIP4, forward="ipip")]))
    prefixes = ["10.77.0.1", "10.77.0.0/28", "fd77::/64", "fd77::1"]
    lab.ringlb("decap", "--from", *prefixes, "--gue-port", "7000", "eth0", host="b1")
    lab.connect(VIP4, 80, "24000-24009")
    [at] = lab.json("decap", "--show", host="b1")["interfaces"]
    assert at.pop("decapsulated") >= 40 and sorted(at.pop("from")) == sorted(prefixes)
    assert at == {"name": "eth0", "mode": "native", "gue_port": 7000}
    assert "native" in lab.ringlb("decap", "--show", host="b1").stdout
    # Its interface gone, by the link alone.
    lab.run("b1", "ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1")
    lab.ringlb("decap", "--from", "10.77.0.1", "x0", host="b1")
    lab.run("b1", "ip", "link", "del", "x0")
    modes = [i["mode"] for i in lab.json("decap", "--show", host="b1")["interfaces"]]
    assert sorted(modes) == ["missing", "native"]
