# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The same with tables that the program itself writes: `ringlb attach` in the harness's namespace, then test runs of the
pinned programs. What user space encodes and what the data plane reads is one thing.
"""
import itertools
import json
import os
import socket
import subprocess

import bpf
import pytest
from harness import BUILD, KEY, LINKS, POISON, TUNNEL4, TUNNEL6, mac_of, neighbour_mac, plain_frame
from harness import LOOKUP as ANSWER
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from tables import GUE_PORT
from tables import TCP as PROTO_TCP
from tables import UDP as PROTO_UDP
from tables import position, source_position
from test_forward import aged

CLIENT = {4: "198.51.100.7", 6: "2001:db8:1::7"}
VIP = {4: "192.0.2.10", 6: "2001:db8::10"}
# Service port -> (pool, forward); one backend a pool, so that the way is known.
WAYS = {
    (4, 81): ("lan0-4", "l2"), (4, 82): ("lan1-4", "l2"), (4, 83): ("lan0-4", "ipip"), (4, 84): ("lan1-6", "ipip"),
    (4, 85): ("lan0-4", "gue"), (4, 86): ("lan1-6", "gue"), (6, 85): ("lan0-4", "gue"), (6, 86): ("lan1-6", "gue"),
    (6, 81): ("lan0-6", "l2"), (6, 82): ("lan1-6", "l2"), (6, 83): ("lan0-4", "ipip"), (6, 84): ("lan1-6", "ipip"),
}
POOLS = {"lan0-4": "10.0.0.11", "lan1-4": "10.1.0.11", "lan0-6": "fd00::11", "lan1-6": "fd01::11"}
MANY = 7


def configuration():
    pools = [{"name": name, "backends": [{"name": name, "address": address}]} for name, address in POOLS.items()]
    many = [{"name": f"b{i}", "address": f"10.0.1.{i}", "weight": i} for i in range(1, MANY + 1)]
    pools.append({"name": "many", "backends": many})
    services = [{"address": VIP[family], "port": port, "protocol": protocol, "pool": pool,
                 "forward": {"mode": "gue", "port": GUE_PORT} if forward == "gue" else forward}
                for (family, port), (pool, forward) in WAYS.items() for protocol in ("tcp", "udp")]
    services += [{"address": VIP[family], "port": "any", "protocol": "tcp", "pool": "many", "forward": "ipip"}
                 for family in (4, 6)]
    services += [{"address": "192.0.2.11", "port": 53, "protocol": "udp", "pool": "many", "forward": "l2",
                  "affinity": {"source": {"ipv4": 24, "ipv6": 56}}}]
    return json.dumps({"interfaces": list(LINKS[:2]), "hash_key": KEY.hex(), "pools": pools, "services": services,
                       "tunnel_source": {"ipv4": TUNNEL4, "ipv6": TUNNEL6}})


class Attached:
    def __init__(self, directory):
        self.file = directory / "ringlb.yaml"
        self.file.write_text(configuration(), encoding="ascii")
        self.bpffs = directory / "bpf"
        self.bpffs.mkdir()
        self.environment = os.environ | {"RINGLB_BPFFS": str(self.bpffs), "RINGLB_STATE_DIR": str(directory / "state"),
                                         "RINGLB_RUN_DIR": str(directory / "run")}

    def ringlb(self, *arguments, text=None):
        done = subprocess.run([BUILD / "ringlb", *arguments], env=self.environment, input=text, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self):
        subprocess.run(["mount", "-t", "bpf", "bpf", self.bpffs], check=True)
        try:
            self.ringlb("attach", self.file)
        except BaseException:
            subprocess.run(["umount", self.bpffs], check=True)
            raise
        self.prog, self.lookup = (bpf.obj_get(self.bpffs / "default" / name) for name in ("prog", "lookup"))
        self.ifindex = socket.if_nametoindex("lan0")
        return self

    def __exit__(self, *_):
        os.close(self.prog)
        os.close(self.lookup)
        try:
            self.ringlb("detach")
        finally:
            subprocess.run(["umount", self.bpffs], check=True)


@pytest.fixture(scope="module")
def attached(namespace, tmp_path_factory):
    with Attached(tmp_path_factory.mktemp("attached")) as it:
        yield it


@pytest.mark.parametrize("way,protocol", itertools.product(WAYS, (PROTO_TCP, PROTO_UDP)), ids=str)
def test_frame(attached, way, protocol):
    (family, port), (pool, forward) = way, WAYS[way]
    link, outer = pool[:4], int(pool[-1])
    header = IP(src=CLIENT[4], dst=VIP[4], tos=4) if family == 4 else IPv6(src=CLIENT[6], dst=VIP[6], tc=4)
    request = header / (TCP if protocol == PROTO_TCP else UDP)(sport=999, dport=port) / b"payload"
    packet = aged(request)
    sent, number, label = packet, 4 if family == 4 else 41, position(
        KEY, CLIENT[family], VIP[family], 999, port, protocol)
    inner = Raw(bytes(packet))
    if forward == "gue":
        inner, number = UDP(sport=0xc000 | label & 0x3fff, dport=GUE_PORT, chksum=0) / inner, 17
    if forward != "l2" and outer == 4:
        sent = IP(src=TUNNEL4, dst=POOLS[pool], id=0, flags="DF", tos=4, proto=number) / inner
    elif forward != "l2":
        sent = IPv6(src=TUNNEL6, dst=POOLS[pool], tc=4, fl=label & 0xfffff, nh=number, hlim=64) / inner
    action, out = bpf.test_run(attached.prog, bytes(Ether() / request), attached.ifindex, POISON)
    assert action == (bpf.XDP_TX if link == "lan0" else bpf.XDP_REDIRECT)
    assert out.hex() == bytes(Ether(src=mac_of(link), dst=neighbour_mac(link)) / sent).hex()


@pytest.mark.parametrize("family", (4, 6))
def test_choice_is_the_files(attached, family):
    """The kernel's choice and the file's are one, at the position that tests compute on their own."""
    clients = [(f"198.51.{i}.1" if family == 4 else f"2001:db8:{i:x}::1", 1000 + i * i) for i in range(100)]
    sources = "".join((f"{client}:{port}\n" if family == 4 else f"[{client}]:{port}\n") for client, port in clients)
    service = f"{VIP[4]}:8443/tcp" if family == 4 else f"[{VIP[6]}]:8443/tcp"
    question = "--json", "lookup", service, "--from", "-"
    asked = [json.loads(line) for line in attached.ringlb(*question, text=sources).splitlines()]
    read = [json.loads(line) for line in attached.ringlb(*question, "--file", attached.file, text=sources).splitlines()]
    assert [(a["hash"], a["backend"]) for a in asked] == [(a["hash"], a["backend"]) for a in read]
    positions = [position(KEY, client, VIP[family], port, 8443, PROTO_TCP) for client, port in clients]
    assert [int(a["hash"], 16) for a in asked] == positions
    assert len({a["backend"] for a in asked}) == MANY


def test_affinity_source(attached):
    for i in range(20):
        flow = f"198.51.{i}.7", "192.0.2.11", 5 + i, 53, PROTO_UDP
        answer = ANSWER.unpack_from(bpf.test_run(attached.lookup, plain_frame(*flow))[1])
        assert answer[1] == source_position(KEY, flow[0], 24)
