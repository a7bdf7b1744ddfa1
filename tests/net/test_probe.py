# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Probes against real servers, from a process without privileges:

    lb  probe_driver  ------  b1  nginx :18080 (good), :18081 (500), :18443 (TLS); openssl s_server :18444 (expired)
"""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import TOP

DRIVER = TOP / os.environ.get("BUILD", "build") / "tests/net/probe_driver"
INTERVAL, TIMEOUT = 0.3, 0.2
TIMES = f"interval: {int(INTERVAL * 1000)}ms, timeout: {int(TIMEOUT * 1000)}ms"

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_body_temp_path {dir}/1; proxy_temp_path {dir}/2; fastcgi_temp_path {dir}/3;
    uwsgi_temp_path {dir}/4; scgi_temp_path {dir}/5;
    server {{ listen 18080; location / {{ return 200 "healthy\\n"; }} }}
    server {{ listen 18081; location / {{ return 500; }} }}
    server {{ listen 18443 ssl; ssl_certificate {dir}/good.pem; ssl_certificate_key {dir}/key.pem;
              location / {{ return 200 "$ssl_server_name\\n"; }} }}
}}
"""


def openssl(directory, *argv):
    subprocess.run(["openssl", *argv], cwd=directory, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(lab_one):
    """good.pem and old.pem for www.example.org by ca.pem, where any user may read them."""
    d = lab_one.dir / "tls"
    d.mkdir(mode=0o755)
    openssl(d, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
            "-out", "ca.pem", "-days", "30", "-subj", "/CN=test CA")
    openssl(d, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out",
            "request.pem", "-subj", "/CN=www.example.org", "-addext", "subjectAltName=DNS:www.example.org")
    (d / "index").touch()
    (d / "serial").write_text("01\n")
    (d / "ca.cnf").write_text("[ca]\ndefault_ca=a\n[a]\ndatabase=index\nserial=serial\nnew_certs_dir=.\n"
                              "default_md=sha256\npolicy=p\nunique_subject=no\ncopy_extensions=copy\n"
                              "[p]\ncommonName=supplied\n")
    for name, end in ("good", "20990101000000Z"), ("old", "20210101000000Z"):
        openssl(d, "ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", "request.pem",
                "-out", f"{name}.pem", "-startdate", "20200101000000Z", "-enddate", end, "-notext")
    return d


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def listening(lab, host, port):
    return f":{port} " in lab.run(host, "ss", "-Hltn").stdout


@pytest.fixture(scope="module")
def servers(lab_one, certificates):
    lab = lab_one
    (certificates / "nginx.conf").write_text(NGINX.format(dir=certificates))
    with contextlib.ExitStack() as stack:
        nginx = stack.enter_context(lab.process("b1", "nginx", "-c", certificates / "nginx.conf"))
        for port, certificate in ("18444", "old.pem"), ("18445", "good.pem"):
            stack.enter_context(lab.process("b1", "openssl", "s_server", "-accept", port, "-cert",
                                            certificates / certificate, "-key", certificates / "key.pem", "-www",
                                            stderr=subprocess.DEVNULL))
        until(lambda: all(listening(lab, "b1", port) for port in (18080, 18443, 18444, 18445)))
        try:
            yield lab
        finally:
            nginx.terminate()  # its workers with it
            nginx.wait()


def workers(master):
    return [int(pid) for pid in
            subprocess.run(["pgrep", "-P", str(master)], capture_output=True, text=True).stdout.split()]


class Prober:
    def __init__(self, process):
        self.process = process
        self.results = []

    def next(self, key=1):
        """The next result of a target."""
        while True:
            result = json.loads(self.process.stdout.readline())
            if "key" in result:
                self.results.append(result)
                if result["key"] == key:
                    return result["outcome"], result["reason"]

    def until(self, outcome, key=1, results=100):
        for _ in range(results):
            got = self.next(key)
            if got[0] == outcome:
                return got
        raise AssertionError(self.results[-10:])

    def end(self):
        out, _ = self.process.communicate(timeout=20)
        return [json.loads(line) for line in out.splitlines()]


@contextlib.contextmanager
def probe(lab, *targets, sockets=64):
    """targets: (key, address, check). Of no user, and without any capability."""
    argv = [str(word) for target in targets for word in target]
    with lab.process("lb", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all",
                     "--bounding-set=-all", "--no-new-privs", DRIVER, sockets, *argv, stdin=subprocess.PIPE) as p:
        yield Prober(p)


def check(text):
    return f"{{{text}, {TIMES}}}"


@pytest.mark.parametrize("port,more,outcome,reason", [
    (18080, "", "good", "status 200"),
    (18080, ", body: healthy", "good", "status 200"),
    (18080, ", body: ill", "bad", 'status 200, and no "ill" in 8 bytes of body'),
    (18081, "", "bad", "status 500, want 200-399"),
    (18082, "", "bad", "connection refused"),
])
def test_http(servers, port, more, outcome, reason):
    with probe(servers, (1, servers.address(1), check(f"type: http, port: {port}{more}"))) as p:
        assert p.next() == (outcome, reason)


def test_http_ipv6(servers):
    with probe(servers, (1, servers.address(1, 6), check("type: http, port: 18445"))) as p:
        assert p.next()[0] == "bad"  # TLS is no HTTP
    with probe(servers, (1, servers.address(1, 6), check("type: https, port: 18445, verify: false"))) as p:
        assert p.next() == ("good", "status 200")


@pytest.mark.parametrize("port,more,outcome,reason", [
    (18443, "host: www.example.org, ca: {ca}, body: www.example.org", "good", "status 200"),
    (18443, "host: www.example.com, ca: {ca}", "bad", "no alternative certificate subject name matches"),
    (18443, "host: www.example.org", "bad", "unable to get local issuer certificate"),
    (18443, "host: www.example.org, verify: false, body: www.example.org", "good", "status 200"),
    (18444, "host: www.example.org, ca: {ca}", "bad", "certificate has expired"),
    (18444, "host: www.example.org, verify: false", "good", "status 200"),
    (18080, "host: www.example.org, ca: {ca}", "bad", "wrong version number"),
    (18443, "host: www.example.org, ca: /no/such/file", "unknown", "error setting certificate file"),
])
def test_https(servers, certificates, port, more, outcome, reason):
    text = f"type: https, port: {port}, " + more.format(ca=certificates / "ca.pem")
    with probe(servers, (1, servers.address(1), check(text))) as p:
        got = p.next()
        assert got[0] == outcome and reason in got[1]
        assert p.next() == got


def test_frozen(servers, certificates):
    """Stopped, the kernel still takes its connections: only an answer tells that it lives."""
    master = int((certificates / "nginx.pid").read_text())
    ca = certificates / "ca.pem"
    with probe(servers, (1, servers.address(1), check("type: http, port: 18080")),
               (2, servers.address(1), check(f"type: https, port: 18443, host: www.example.org, ca: {ca}")),
               (3, servers.address(1), check("type: tcp, port: 18080"))) as p:
        for key in 1, 2, 3:
            assert p.until("good", key)
        pids = workers(master)
        assert pids
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            stopped = time.monotonic()
            assert p.until("bad", 1) == ("bad", "timeout after 200ms waiting for the answer")
            assert p.results[-1]["time"] - stopped < INTERVAL + TIMEOUT + 0.1
            assert p.until("bad", 2) == ("bad", "timeout after 200ms in the TLS handshake")
            assert p.next(3) == ("good", "connected")
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        assert p.until("good", 1) and p.until("good", 2)


def test_address_that_nobody_has(servers):
    servers.run("lb", "sysctl", "-qw", "net.ipv4.ping_group_range=0 65535")  # else nobody may ask, but root
    with probe(servers, (1, "10.77.0.99", check("type: tcp, port: 80")), (2, "10.99.0.1", check("type: tcp, port: 80")),
               (3, "10.77.0.99", check("type: icmp")), (4, servers.address(1), check("type: icmp"))) as p:
        for key in 1, 2:
            assert p.next(key)[0] == "bad"
        assert p.next(3)[0] == "bad"
        assert p.next(4) == ("good", "echo reply")


def test_a_thousand_https(servers, certificates):
    """A thousand handshakes every few seconds, with ten sockets, and no target left out or late."""
    ca = certificates / "ca.pem"
    text = f"{{type: https, port: 18443, host: www.example.org, ca: {ca}, interval: 4s, timeout: 4s}}"
    with probe(servers, *((key, servers.address(1), text) for key in range(1000)), sockets=10) as p:
        for key in range(1000):
            while sum(r["key"] == key for r in p.results) < 2:
                p.next(key)
        assert {(r["outcome"], r["reason"]) for r in p.results} == {("good", "status 200")}
        assert max(b["time"] - a["time"] for a, b in pairs(p.results)) < 5
        assert p.end()[-1]["most_sockets"] <= 10


def pairs(results):
    """Each target's result and the one after it."""
    last = {}
    for r in results:
        if r["key"] in last:
            yield last[r["key"]], r
        last[r["key"]] = r
