# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
TCP from a client through a balancer to one server, in network namespaces: straight, forwarded by Linux, by ringlb, and
through proxies. The ways take turns. The hosts' offloads that join packets are off, so that what passes a balancer has
the size that it has on a wire: else virtual interfaces would hand on 64 KB at once, which no wire carries.
"""
import json
import pathlib

from figures import figure
from lab import PORT, TRAFFIC, lab

SERVER, BALANCER = "10.77.0.11", "10.77.0.1"
ROUTED = "198.51.100.1"  # an address of the server that the client reaches through the balancer
L2, IPIP = "192.0.2.10", "192.0.2.11"
NGINX_PORT, HAPROXY_PORT = 9001, 9002
STREAM = pathlib.Path("/usr/lib/nginx/modules/ngx_stream_module.so")
MS = 400  # of each measurement
LINKS = 16

RINGLB = f"""
interfaces: [eth0]
xdp: native
hash_key: 000102030405060708090a0b0c0d0e0f
tunnel_source: {{ipv4: {BALANCER}}}
pools:
  - name: web
    backends: [{{name: b1, address: {SERVER}}}]
services:
  - {{address: {L2}, port: {PORT}, protocol: tcp, pool: web, forward: l2}}
  - {{address: {IPIP}, port: {PORT}, protocol: tcp, pool: web, forward: ipip}}
"""
NGINX = f"""
load_module {STREAM};
daemon off;
pid DIR/nginx.pid;
error_log DIR/nginx.log;
worker_processes 1;
events {{ worker_connections 4096; }}
stream {{
    server {{
        listen {BALANCER}:{NGINX_PORT};
        tcp_nodelay on;
        proxy_pass {SERVER}:{PORT};
    }}
}}
"""
HAPROXY = f"""
global
    nbthread 1
    maxconn 4096
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen web
    bind {BALANCER}:{HAPROXY_PORT}
    server b1 {SERVER}:{PORT}
"""
# (mode, connections, [(figure, key, scale, unit)])
MODES = [
    ("ask", 1, [("latency, median", "p50", 1, "us"), ("latency, 99 %", "p99", 1, "us"),
                ("latency, 99.9 %", "p999", 1, "us")]),
    ("ask", LINKS, [("answers a second, 16 connections", "rate", 1, "1/s")]),
    ("connect", 1, [("connect, ask, answer: median", "p50", 1, "us"), ("connect, ask, answer: 99 %", "p99", 1, "us")]),
    ("upload", 4, [("upload, 4 connections", "bits", 1e-9, "Gbit/s")]),
    ("download", 4, [("download, 4 connections", "bits", 1e-9, "Gbit/s")]),
]


def prepare(place):
    for host in ("client", "lb", "b1"):
        place.run(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off")
    place.run("b1", "ip", "address", "add", f"{ROUTED}/32", "dev", "lo")
    place.run("lb", "ip", "route", "add", f"{ROUTED}/32", "via", SERVER)
    place.run("client", "ip", "route", "add", f"{ROUTED}/32", "via", BALANCER)
    place.serve("b1")
    place.run("b1", "ringlb", "decap", "--from", f"{BALANCER}/32", "eth0")
    for name, text in (("ringlb.yaml", RINGLB), ("nginx.conf", NGINX), ("haproxy.cfg", HAPROXY)):
        (place.directory / name).write_text(text.replace("DIR", str(place.directory)), encoding="utf-8")


def start_proxies(place):
    """The ways through proxies that are installed."""
    ways = {}
    if STREAM.exists():
        place.start("lb", "/usr/sbin/nginx", "-c", place.directory / "nginx.conf")
        ways["nginx stream"] = BALANCER, NGINX_PORT
    place.start("lb", "/usr/sbin/haproxy", "-db", "-q", "-f", place.directory / "haproxy.cfg")
    ways["HAProxy, tcp"] = BALANCER, HAPROXY_PORT
    for address, port in ways.values():
        wait_for(place, address, port)
    return ways


def wait_for(place, address, port):
    place.run("client", "/usr/bin/python3", "-c", f"""
import socket, time
end = time.monotonic() + 20
while True:
    try:
        socket.create_connection(("{address}", {port}), 1).close()
        break
    except OSError:
        if time.monotonic() > end:
            raise
        time.sleep(0.02)
""")


def switch(place, steered):
    """With ringlb attached, and the switch's port as XDP_TX needs it there; or all as if there were no XDP."""
    if steered:
        place.interface("ethtool", "-K", "lb-eth0", "tx", "off")
        place.interface("ip", "link", "set", "dev", "lb-eth0", "xdpdrv", "obj",
                        str(pathlib.Path(__file__).parents[2] / "build/tests/net/pass.bpf.o"), "sec", "xdp.frags")
        place.run("lb", "ringlb", "--quiet", "attach", place.directory / "ringlb.yaml")
    else:
        place.run("lb", "ringlb", "--quiet", "detach")
        place.interface("ip", "link", "set", "dev", "lb-eth0", "xdpdrv", "off")
        place.interface("ethtool", "-K", "lb-eth0", "tx", "on")


def forwarded(place):
    return json.loads(place.run("lb", "ringlb", "--json", "stats"))["verdicts"]["forwarded"]


def sample(place, way, at, samples):
    for mode, links, wanted in MODES:
        got = json.loads(place.run("client", TRAFFIC, mode, *at, links, MS))
        for name, key, scale, unit in wanted:
            samples.setdefault((name, unit, way), []).append(got[key] * scale)


def take_rounds(place, rounds):
    plain = {"direct": (SERVER, PORT), "Linux forwarding": (ROUTED, PORT), **start_proxies(place)}
    steered = {"ringlb, l2": (L2, PORT), "ringlb, ipip": (IPIP, PORT)}
    samples, held = {}, True
    place.interface("ip", "link", "set", "dev", "lb-eth0", "xdpdrv", "off")
    place.interface("ethtool", "-K", "lb-eth0", "tx", "on")
    for _ in range(rounds):
        for way, at in plain.items():
            sample(place, way, at, samples)
        switch(place, True)
        for way, at in steered.items():
            before = forwarded(place)
            sample(place, way, at, samples)
            held = held and forwarded(place) > before
        switch(place, False)
    return samples, held


def measure(rounds):
    """Figures, and whether what went by ringlb's ways was counted by it."""
    with lab() as place:
        prepare(place)
        samples, held = take_rounds(place, max(1, rounds * 5 // 21))
    direct = {(name, unit): figure("", unit, values)["value"] for (name, unit, way), values in samples.items()
              if way == "direct"}
    found = []
    for (name, unit, way), values in sorted(samples.items(), key=lambda item: list(direct).index(item[0][:2])):
        f = figure(f"{name}: {way}", unit, values)
        found.append({**f, "x_direct": round(f["value"] / direct[name, unit], 3)})
    return found, held
