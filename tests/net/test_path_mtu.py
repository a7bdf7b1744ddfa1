# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ICMP end to end: path MTUs found through the balancer, both ways and behind it; ping; traceroute."""
import hashlib
import re

import pytest
from conftest import TUNNEL_SOURCE, VIP4, VIP6, configuration, laboratory, pool, service
from daemon_case import until

VIP = {4: VIP4, 6: VIP6}
FAR = {4: "10.88.0.100", 6: "fd88::100"}
OUTER = {("ipip", 4): 20, ("ipip", 6): 40, ("gue", 4): 28, ("gue", 6): 48}
MODES = ("l2", "ipip", "gue")
GUE_PORT = 6080


@pytest.fixture(scope="module")
def lab_far():
    with laboratory("far", backends=2, far=True) as it:
        yield it


@pytest.fixture
def far(lab_far):
    """With a router to a link with less room; nothing attached, no path MTU known to anybody."""
    forget(lab_far)
    yield lab_far
    lab_far.reset()


@pytest.fixture
def narrow(far):
    """1500 bytes everywhere: no room for outer headers."""
    hosts = ("lb", "b1", "b2")
    for host in hosts:
        far.run(host, "ip", "link", "set", "eth0", "mtu", "1500")
    yield far
    for host in hosts:
        far.run(host, "ip", "link", "set", "eth0", "mtu", "1600")


def forget(lab):
    for host in ("client", "far", "lb", "b1", "b2"):
        for family in ("-4", "-6"):
            lab.run(host, "ip", family, "route", "flush", "cache")


def attach(lab, family, forward, xdp="native", backends=None):
    """One backend of the client's family."""
    web = pool(lab, weights=(1,), family=family)
    if backends:
        web["backends"] = backends
    lab.attach(configuration([web], [service(VIP[family], forward=forward)], xdp))


def decapsulate(lab, forward, hosts):
    for host in hosts if forward != "l2" else ():
        options = ["--gue-port", GUE_PORT] if forward == "gue" else []
        lab.ringlb("decap", "--from", *TUNNEL_SOURCE.values(), *options, "eth0", host=host)


def url(family, path=""):
    return f"http://[{VIP6}]/{path}" if family == 6 else f"http://{VIP4}/{path}"


def curl(lab, host, *arguments, seconds=50):
    return lab.run(host, "curl", "-sS", "--fail", "--max-time", seconds, *arguments).stdout


def upload(lab, host, family, length, tmp_path, **options):
    body = tmp_path / "body"
    content = bytes(range(251)) * (length // 251 + 1)
    body.write_bytes(content[:length])
    name, received, digest = curl(lab, host, "--data-binary", f"@{body}", "-H", "Expect:", url(family), **options).split()
    assert (int(received), digest) == (length, hashlib.sha256(content[:length]).hexdigest())
    return name


def download(lab, host, family, length, **options):
    shown = curl(lab, host, "-o", "/dev/null", "-w", "%{size_download}", url(family, f"bytes/{length}"), **options)
    assert int(shown) == length


def drops(verdicts):
    return {name: n for name, n in verdicts.items() if name.startswith("dropped") and n}


def transfer(lab, family, forward, length, tmp_path, xdp):
    attach(lab, family, forward, xdp)
    decapsulate(lab, forward, ["b1"])
    assert upload(lab, "client", family, length, tmp_path) == "b1"
    download(lab, "client", family, length)
    verdicts = lab.verdicts()
    assert not drops(verdicts)
    assert bool(verdicts["answered_too_big"]) == (forward != "l2")
    known = lab.run("client", "ip", "route", "get", VIP[family]).stdout
    if forward == "l2":
        assert "mtu" not in known
    else:
        assert f"mtu {1500 - OUTER[forward, family]} " in known


@pytest.mark.parametrize("forward", MODES)
@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("xdp", ("native", pytest.param("generic", marks=pytest.mark.full)))
def test_transfers_where_there_is_no_room(narrow, family, forward, xdp, tmp_path):
    """The client is told once how large its packets may be, and everything arrives."""
    transfer(narrow, family, forward, 2000000, tmp_path, xdp)


@pytest.mark.full
@pytest.mark.parametrize("forward", MODES)
@pytest.mark.parametrize("family", (4, 6))
def test_a_hundred_megabytes_where_there_is_no_room(narrow, family, forward, tmp_path):
    transfer(narrow, family, forward, 100000000, tmp_path, "native")


def test_without_df(narrow):
    """A sender that sets no DF hears of it all the same, and makes fragments from then on."""
    narrow.attach(configuration([pool(narrow, weights=(1,))], [service(VIP4, 53, "udp", forward="ipip")]))
    narrow.run("client", "ping", "-c", "1", "-W", "2", VIP4)  # so that nothing has to be resolved any more
    send = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 10, 0); "
            f"s.sendto(bytes(1472), ('{VIP4}', 53))")
    narrow.run("client", "/usr/bin/python3", "-c", send)
    until(lambda: "mtu 1480 " in narrow.run("client", "ip", "route", "get", VIP4).stdout, 20, "the answer")
    assert narrow.verdicts()["answered_too_big"] == 1


@pytest.mark.parametrize("forward", MODES)
@pytest.mark.parametrize("family", (4, 6))
def test_backends_hear_of_the_clients_path(far, family, forward):
    """A router before the client complains to the service's address about the backend's answer."""
    attach(far, family, forward)
    decapsulate(far, forward, ["b1"])
    download(far, "far", family, 1000000)
    assert "mtu 1400 " in far.run("b1", "ip", "route", "get", FAR[family]).stdout
    assert not drops(far.verdicts())


@pytest.mark.parametrize("forward", ("ipip", "gue"))
@pytest.mark.parametrize("family", (4, 6))
def test_the_balancer_hears_of_the_backends_path(far, family, forward, tmp_path):
    """A router before the backend complains to the balancer about an outer packet; then the client is told."""
    backend = {"name": "far", "address": FAR[family]}
    attach(far, family, forward, backends=[backend])
    decapsulate(far, forward, ["far"])
    length = "32" if family == 4 else "128"
    far.run("far", "ip", "address", "add", f"{VIP[family]}/{length}", "dev", "lo")
    try:
        assert upload(far, "client", family, 1000000, tmp_path) == "far"
    finally:
        far.run("far", "ip", "address", "delete", f"{VIP[family]}/{length}", "dev", "lo")
    shown = far.json("show")["pools"][0]["backends"][0]
    assert (shown["mtu"], shown["path_mtu"]) == (1400, 1400)
    assert "a router on the way takes packets of 1400 bytes" in far.ringlb("show").stdout
    assert f"mtu {1400 - OUTER[forward, family]} " in far.run("client", "ip", "route", "get", VIP[family]).stdout
    # Looking the routes up again forgets nothing.
    far.ringlb("backend", "add", "web", "b2", far.address(2, family))
    mtus = {b["name"]: (b["mtu"], b["path_mtu"]) for b in far.json("show")["pools"][0]["backends"]}
    assert mtus == {"far": (1400, 1400), "b2": (1600, None)}


@pytest.mark.parametrize("xdp", ("native", "generic"))
@pytest.mark.parametrize("family", (4, 6))
def test_ping(far, family, xdp):
    """By the balancer, whether it has the address itself or not."""
    attach(far, family, "ipip", xdp)
    for host in ("client", "far"):
        far.run(host, "ping", "-c", "3", "-i", "0.05", "-W", "2", "-s", "1300", VIP[family])
    far.run("lb", "ip", "address", "add", f"{VIP[family]}/{32 if family == 4 else 128}", "dev", "lo")
    try:
        far.run("client", "ping", "-c", "3", "-i", "0.05", "-W", "2", VIP[family])
    finally:
        far.run("lb", "ip", "address", "delete", f"{VIP[family]}/{32 if family == 4 else 128}", "dev", "lo")
    assert far.verdicts()["answered_echo"] == 9


@pytest.mark.parametrize("forward", MODES)
@pytest.mark.parametrize("family", (4, 6))
def test_traceroute(far, family, forward):
    """From far: the router, the balancer as the service's address, and the backend behind it as the same."""
    attach(far, family, forward)
    decapsulate(far, forward, ["b1"])
    shown = far.run("far", "traceroute", "-n", "-q", "1", "-w", "5", "-m", "6", "-T", "-p", "80", VIP[family]).stdout
    hops = re.findall(r"^ *(\d+)  (\S+)", shown, re.M)
    router = "10.88.0.1" if family == 4 else "fd88::1"
    assert hops == [("1", router), ("2", VIP[family]), ("3", VIP[family])], shown
    assert far.verdicts()["answered_ttl"] == 1
