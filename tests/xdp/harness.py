# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A balancer for test runs: the data plane's object file alone, with tables from tables.py, in a namespace of three links.

    lan0 10.0.0.1/24 fd00::1/64 -- 10.0.0.11, fd00::11    slot 0 of the outputs; packets come in here
    lan1 10.1.0.1/24 fd01::1/64 -- 10.1.0.11, fd01::11    slot 1
    lan2 10.2.0.1/24 fd02::1/64 -- 10.2.0.11, fd02::11    in no slot: an interface that is not the balancer's
"""
import ipaddress
import os
import socket
import struct
import subprocess
from pathlib import Path

import bpf
from tables import TCP, VERDICTS, Tables

BUILD = Path(__file__).parents[2] / os.environ.get("BUILD", "build")
KEY = bytes.fromhex("00112233445566778899aabbccddeeff")
TUNNEL4, TUNNEL6 = "10.0.0.1", "fd00::1"
LINKS = ("lan0", "lan1", "lan2")
SLOTS = 2
BACKENDS, SERVICES = 64, 16
BACKEND_SIZE = 64
SIZE = 1 << 22
HZ_NEVER = 1 << 31  # so long a second that nothing known is looked up again
POISON = 64
LOOKUP = struct.Struct("<IIHHHHBBHIQ")  # struct ringlb_lookup


def mac_of(link):
    return f"02:00:00:00:0{link[-1]}:01"


def neighbour_mac(link):
    return f"02:00:00:00:0{link[-1]}:11"


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdin=subprocess.DEVNULL)


def set_sysctl(name, value):
    Path("/proc/sys/net", name).write_text(value, encoding="ascii")


def make_links():
    """Neighbours are permanent, so that their link-layer addresses are known."""
    set_sysctl("ipv6/conf/default/accept_dad", "0")
    for i, link in enumerate(LINKS):
        ip("link", "add", link, "address", mac_of(link), "type", "veth", "peer", "name", link + "p")
        ip("link", "set", link, "up")
        ip("link", "set", link + "p", "up")
        for address, neighbour in ((f"10.{i}.0.1/24", f"10.{i}.0.11"), (f"fd0{i}::1/64", f"fd0{i}::11")):
            ip("address", "add", address, "dev", link)
            ip("neighbour", "add", neighbour, "lladdr", neighbour_mac(link), "dev", link, "nud", "permanent")
    set_sysctl("ipv4/ip_forward", "1")
    set_sysctl("ipv6/conf/all/forwarding", "1")


def plain_frame(client, service, client_port, service_port, protocol):
    """The least that counts as TCP or UDP, without checksums; quicker than scapy where thousands are needed."""
    client, service = ipaddress.ip_address(client), ipaddress.ip_address(service)
    ports = struct.pack(">HH", client_port, service_port)
    transport = ports + (bytes(8) + b"\x50" + bytes(7) if protocol == TCP else struct.pack(">HH", 8, 0))
    if client.version == 4:
        header = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(transport), 0, 64, protocol, 0)
        return bytes(12) + b"\x08\x00" + header + client.packed + service.packed + transport
    header = struct.pack(">IHBB", 6 << 28, len(transport), protocol, 64)
    return bytes(12) + b"\x86\xdd" + header + client.packed + service.packed + transport


class Balancer:
    def __init__(self, buckets=1):
        self.ifindex = {link: socket.if_nametoindex(link) for link in LINKS}
        self.object = bpf.Object(
            BUILD / "bpf" / "ringlb.bpf.o", value_sizes={"tables": SIZE}, rodata=struct.pack("<II", SIZE - 64, buckets),
            max_entries={"flows": buckets, "backends": BACKENDS, "backend_stats": BACKENDS, "service_stats": SERVICES})
        self.memory = self.object.mapped("tables", SIZE)
        self.backends = self.object.mapped("backends", BACKENDS * BACKEND_SIZE)
        for slot, link in enumerate(LINKS[:SLOTS]):
            bpf.map_update(self.object.map("outputs"), struct.pack("<I", slot), struct.pack("<I", self.ifindex[link]))

    def close(self):
        self.object.close()

    def publish(self, tables, state=2, hz=HZ_NEVER):
        tables.header(state, hz, [(self.ifindex[link], mac_bytes(mac_of(link))) for link in LINKS[:SLOTS]])
        self.memory[:tables.end] = bytes(tables.bytes[:tables.end])

    def configure(self, services, backends, key=KEY, **options):
        """Services on side 0, current; backends by index. Returns the tables, to be changed and published again."""
        tables = Tables(SIZE)
        tables.root(0, key, services, **{"tunnel4": TUNNEL4, "tunnel6": TUNNEL6} | options)
        self.publish(tables)
        self.backends[:] = b"".join(b.encode() for b in backends).ljust(len(self.backends), b"\0")
        bpf.map_update(self.object.map("answer_rate"), struct.pack("<I", 0), bytes(16 * bpf.possible_cpus()))
        return tables

    def run(self, frame, link="lan0", poison=POISON):
        return bpf.test_run(self.object.program("prog"), bytes(frame), self.ifindex[link], poison)

    def lookup(self, frame):
        """struct ringlb_lookup as a dictionary."""
        action, out = bpf.test_run(self.object.program("lookup"), bytes(frame), self.ifindex["lan0"])
        assert action == bpf.XDP_PASS
        names = ("verdict", "position", "service", "backend", "owner", "previous", "moved", "tracked", "reserved",
                 "revision", "jiffies")
        answer = dict(zip(names, LOOKUP.unpack_from(out)))
        return answer | {"verdict": VERDICTS[answer["verdict"]]}

    def jiffies(self):
        return self.lookup(bytes(64))["jiffies"] & 0xffffffff

    def verdicts(self):
        return dict(zip(VERDICTS, bpf.map_lookup_percpu(self.object.map("verdicts"), 0, len(VERDICTS))))

    def counter(self, name, index):
        """(packets, bytes) of service_stats or backend_stats."""
        return tuple(bpf.map_lookup_percpu(self.object.map(name), index, 2))

    def verdict_of(self, frame, **options):
        """Runs a frame; (verdict, action, frame afterwards), after seeing that exactly one verdict rose, by one."""
        before = self.verdicts()
        action, out = self.run(frame, **options)
        risen = {name: count - before[name] for name, count in self.verdicts().items() if count != before[name]}
        assert list(risen.values()) == [1], risen
        return next(iter(risen)), action, out

    def next_hop(self, index):
        """(MAC, slot, stamp) in a backend's entry."""
        hop, stamp = struct.unpack_from("<QI", self.backends, index * BACKEND_SIZE)
        return ":".join(f"{b:02x}" for b in hop.to_bytes(8, "big")[:6]), hop & 0xffff, stamp
