# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The examples that announce a service while it is ready: BIRD by BGP, and keepalived by VRRP."""
import contextlib
import shutil
import signal
import subprocess

import pytest
from conftest import TOP, VIP4, configuration, pool, service
from daemon_case import PORT, daemon, servers, until

EXAMPLES = TOP / "packaging/examples"
CHECK = {"type": "http", "port": PORT, "path": "/healthz", "interval": "300ms", "timeout": "250ms", "rise": 2, "fall": 2}
ROUTER = """
router id 10.77.0.100;
protocol device { }
protocol bgp balancer {
    local 10.77.0.100 as 65000; neighbor 10.77.0.1 as 65001; connect delay time 1;
    ipv4 { import all; export none; };
}
"""


@pytest.fixture(scope="module")
def nginx(lab_one):
    with servers(lab_one, 2) as running:
        yield running


def config(lab):
    return configuration([pool(lab, weights=(1, 1), check=CHECK, quorum=2)], [service(VIP4, PORT, name="www")],
                         status_listen="127.0.0.1:9391")


@contextlib.contextmanager
def program(lab, host, *argv, **env):
    with open(lab.dir / f"{host}.log", "a", encoding="utf-8") as log:
        p = subprocess.Popen(lab.argv(host, argv), env={**lab.env, **env}, stdout=log, stderr=log)
        try:
            yield p
        finally:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


@contextlib.contextmanager
def bird(lab, host, file):
    socket = lab.dir / f"{host}.bird"
    with program(lab, host, "bird", "-f", "-c", file, "-s", socket, "-P", lab.dir / f"{host}.bird.pid"):
        until(socket.exists, 10, "BIRD")
        yield socket


@pytest.mark.skipif(not shutil.which("bird"), reason="bird2 is not installed")
def test_bird(lab, nginx):
    router = lab.dir / "router.conf"
    router.write_text(ROUTER)
    with daemon(lab, config(lab)) as d, bird(lab, "client", router) as theirs, \
            bird(lab, "lb", EXAMPLES / "bird.conf") as ours:
        def announced():
            return VIP4 in lab.run("client", "birdc", "-s", theirs, "show", "route", check=None).stdout
        assert not announced()
        with program(lab, "lb", EXAMPLES / "ringlb-bird", "www", "ringlb_www", BIRDC=f"birdc -s {ours}"):
            until(announced, 30, "announced")
            nginx["b1"].bad()
            until(lambda: not announced(), 5, "withdrawn")
            nginx["b1"].well()
            until(announced, 10, "announced again")
            d.stop(signal.SIGKILL)  # nothing that anyone should notice
            d.start()
            assert announced()


@pytest.mark.skipif(not shutil.which("keepalived"), reason="keepalived is not installed")
def test_keepalived(lab, nginx):
    def has_address():
        return "10.77.0.254" in lab.run("lb", "ip", "-4", "address", "show", "dev", "eth0").stdout
    with daemon(lab, config(lab)) as d:
        with program(lab, "lb", "keepalived", "-n", "-l", "-P", "-f", EXAMPLES / "keepalived.conf",
                     "-p", lab.dir / "keepalived.pid", "-r", lab.dir / "vrrp.pid"):
            until(has_address, 20, "the address is here")
            nginx["b2"].bad()
            until(lambda: not has_address(), 10, "given up")
            nginx["b2"].well()
            until(has_address, 15, "and taken back")
            d.stop(signal.SIGKILL)
            d.start()
            assert has_address()
    assert not has_address()
