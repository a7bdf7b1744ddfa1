# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`lookup --file` against the published rule, written once more here: SipHash-1-3 of the flow, then the ring."""
import ipaddress
import json
import random
import struct
import sys
import time

import pytest

from conftest import KEY, TOP

sys.path.insert(0, str(TOP / "tests/net"))
from oracle import Ring  # noqa: E402  pylint: disable=wrong-import-position,import-error

MASK = (1 << 64) - 1
PROTOCOL = {"tcp": 6, "udp": 17}


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def sipround(v):
    a, b, c, d = v
    a = (a + b) & MASK
    b = rotl(b, 13) ^ a
    a = rotl(a, 32)
    c = (c + d) & MASK
    d = rotl(d, 16) ^ c
    a = (a + d) & MASK
    d = rotl(d, 21) ^ a
    c = (c + b) & MASK
    b = rotl(b, 17) ^ c
    return [a, b, rotl(c, 32), d]


def siphash13(key, data):
    """Of whole words, as the flow key is padded."""
    assert len(data) % 8 == 0
    k0, k1 = struct.unpack("<2Q", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]
    for (word,) in [*struct.iter_unpack("<Q", data), (len(data) << 56 & MASK,)]:
        v[3] ^= word
        v = sipround(v)
        v[0] ^= word
    v[2] ^= 0xff
    for _ in range(3):
        v = sipround(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def padded(data):
    return data + bytes(-len(data) % 8)


def flow_position(client, client_port, service, service_port, protocol):
    data = (ipaddress.ip_address(client).packed + ipaddress.ip_address(service).packed
            + struct.pack(">HHB", client_port, service_port, PROTOCOL[protocol]))
    return siphash13(bytes.fromhex(KEY), padded(data)) >> 32


def source_position(client, prefix):
    net = ipaddress.ip_network(f"{client}/{prefix}", strict=False)
    return siphash13(bytes.fromhex(KEY), padded(net.network_address.packed)) >> 32


def text(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def random_clients(seed, ipv6, count):
    rng = random.Random(seed)
    for _ in range(count):
        number = rng.getrandbits(128) if ipv6 else rng.getrandbits(32)
        address = ipaddress.IPv6Address(number | 1 << 125) if ipv6 else ipaddress.IPv4Address(number)
        yield str(address), rng.randrange(65536)


@pytest.mark.parametrize("said, address, port, protocol, name", [
    ("www", "192.0.2.10", 443, "tcp", "www"), ("192.0.2.10:443/tcp", "192.0.2.10", 443, "tcp", "www"),
    ("192.0.2.10:444/tcp", "192.0.2.10", 444, "tcp", "192.0.2.10:any/tcp"), ("dns", "192.0.2.10", 53, "udp", "dns"),
    ("six", "2001:db8::10", 80, "tcp", "six"), ("[2001:db8::10]:53/udp", "2001:db8::10", 53, "udp", "sixth"),
    ("[2001:DB8:0::10]:80/tcp", "2001:db8::10", 80, "tcp", "six")])
def test_follows_the_rule(ringlb, config, said, address, port, protocol, name):
    file = ringlb.write(config)
    ring = Ring(config["pools"][0])
    where = {b["name"]: b["address"] for b in config["pools"][0]["backends"]}
    clients = list(random_clients(f"{said}", ":" in address, 200))
    done = ringlb("--json", "lookup", said, "--file", file, "--from", "-",
                  input="".join(text(*c) + "\n" for c in clients))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(clients) and not done.stderr
    for client, answer in zip(clients, answers):
        position = flow_position(*client, address, port, protocol)
        owner = ring.owner(position)
        assert answer == {"source": text(*client), "service": name, "pool": "web", "hash": f"0x{position:08x}",
                          "backend": owner, "address": where[owner], "replicas": [owner], "reason": "ring",
                          "previous": None, "new_flow": owner, "established_flow": owner, "verdict": "forwarded"}
    assert {a["backend"] for a in answers} == set(where)
    assert ringlb.json("lookup", said, text(*clients[0]), "--file", file) == answers[0]


@pytest.mark.parametrize("affinity, four, six", [("source", 32, 128), ({"source": {"ipv4": 13, "ipv6": 45}}, 13, 45),
                                                 ({"source": {"ipv4": 24, "ipv6": 56}}, 24, 56)])
def test_affinity_source(ringlb, config, affinity, four, six):
    for service in config["services"]:
        service["affinity"] = affinity
    file = ringlb.write(config)
    for name, ipv6 in (("www", False), ("six", True)):
        for client in random_clients(name, ipv6, 20):
            position = source_position(client[0], six if ipv6 else four)
            assert ringlb.json("lookup", name, text(*client), "--file", file)["hash"] == f"0x{position:08x}"


def test_a_list_with_bad_lines(ringlb, config):
    """Each is named with its line, the others are answered in order, the exit status is 2."""
    file = ringlb.write(config)
    lines = ringlb.dir / "sources"
    lines.write_text("1.2.3.4:1\n\nnonsense\n[::1]:5\n  1.2.3.4:70000\n\t1.2.3.4:2 \r\n1.2.3.4:3")
    done = ringlb("lookup", "www", "--file", file, "--from", lines, status=2)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1.2.3.4:1", "1.2.3.4:2", "1.2.3.4:3"]
    assert [line.split()[1] for line in done.stderr.splitlines()] == [f"{lines}:{n}:" for n in (3, 4, 5)]
    *answers, errors = [json.loads(line) for line in
                        ringlb("-j", "lookup", "www", "--file", file, "--from", lines, status=2).stdout.splitlines()]
    assert [a["source"] for a in answers] == ["1.2.3.4:1", "1.2.3.4:2", "1.2.3.4:3"]
    assert [e["where"] for e in errors["errors"]] == [f"{lines}:{n}" for n in (3, 4, 5)]
    ringlb("lookup", "www", "--file", file, "--from", ringlb.dir / "missing", status=2)
    assert ringlb("-j", "lookup", "www", "--file", file, "--from", "/dev/null").stdout == ""


@pytest.mark.parametrize("service, source, says", [
    ("nosuch", "1.2.3.4:5", "of: www, 192.0.2.10:any/tcp, dns, six, sixth"), ("192.0.2.10:443/sctp", "1.2.3.4:5", "no service"),
    ("192.0.2.11:443/tcp", "1.2.3.4:5", "no service"), ("192.0.2.10:0/tcp", "1.2.3.4:5", "no service"),
    ("192.0.2.10:any/tcp", "1.2.3.4:5", "ADDRESS:PORT/PROTOCOL"), ("www", "[::1]:5", "IPv6"), ("six", "1.2.3.4:5", "IPv4"),
    ("www", "1.2.3.4", "198.51.100.7:40000"), ("six", "::1:5", "[2001:db8::7]:40000"), ("www", "1.2.3.4:65536", "65535"),
    ("www", "example.org:80", "wanted")])
def test_what_cannot_be_asked(ringlb, config, service, source, says):
    said = ringlb("lookup", service, source, "--file", ringlb.write(config), status=2).stderr
    assert says in said and len(said.splitlines()) == 1


def test_no_backend(ringlb, config):
    config["pools"][0]["backends"] = []
    file = ringlb.write(config)
    answer = ringlb.json("lookup", "www", "1.2.3.4:5", "--file", file)
    assert (answer["backend"], answer["address"], answer["reason"], answer["replicas"]) == (None, None, None, [])
    assert answer["verdict"] == "dropped_no_backend"
    assert "add a backend" in ringlb("lookup", "www", "1.2.3.4:5", "--file", file).stdout
    assert ringlb("lookup", "www", "--from", "-", "--file", file, input="1.2.3.4:5\n").stdout == "1.2.3.4:5 - - dropped_no_backend\n"


def test_many_are_fast(ringlb, config):
    lines = "".join(f"10.0.{i >> 8}.{i & 255}:{i}\n" for i in range(10000))
    start = time.monotonic()
    done = ringlb("lookup", "www", "--file", ringlb.write(config), "--from", "-", input=lines)
    assert len(done.stdout.splitlines()) == 10000 and time.monotonic() - start < 1


@pytest.mark.parametrize("source, says", [
    ("fd00::1:400", "stands in brackets"), ("198.51.100.7:99999", "65535 at most"), ("198.51.100.7", "ADDRESS:PORT is wanted")])
def test_what_is_wrong_with_a_source(ringlb, config, source, says):
    assert says in ringlb("lookup", "www", source, "--file", ringlb.write(config), status=2).stderr


def test_options_that_say_nothing(ringlb, config):
    file = ringlb.write(config)
    assert "--replicas" in ringlb("lookup", "www", "198.51.100.7:1", "--distinct-zones", "--file", file, status=2).stderr
    assert "there is web" in ringlb("lookup", "--pool", "nope", "--key", "k", "--file", file, status=2).stderr
    assert "--key k" in ringlb("lookup", "--pool", "web", "k", "--file", file, status=2).stderr


def test_comments_in_a_list(ringlb, config):
    done = ringlb("lookup", "www", "--from", "-", "--file", ringlb.write(config), input="# mine\n\n198.51.100.7:1\n",
                  stdin=None)
    assert len(done.stdout.splitlines()) == 1


def test_prefixes_that_are_none(ringlb):
    assert "did you mean 10.77.0.0/24?" in ringlb("decap", "--from", "10.77.0.1/24", "lo", status=2).stderr
    assert "did you mean fd00::/64?" in ringlb("decap", "--from", "fd00::1/64", "lo", status=2).stderr


def test_a_pool_that_is_empty(ringlb, config):
    config["pools"][0]["backends"] = config["pools"][0]["backends"][:1]
    file = ringlb.write(config)
    said = ringlb("ring", "web", "--file", file, "--without", "a").stdout
    assert "goes to nobody" in said and "no backend takes flows after this change" in said
    config["pools"][0]["backends"] = []
    assert "too large" not in ringlb("ring", "web", "--file", ringlb.write(config), "--compare").stdout
