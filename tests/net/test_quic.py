# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
QUIC by real clients and servers (those of ngtcp2), whose NAT rebinds while backends come and go; and packets from real
UDP sockets for what those don't do: ids that name servers.
"""
import contextlib
import re
import subprocess
import time

import pytest
from conftest import CLIENT4, CLIENT6, VIP4, VIP6, configuration, pool, service, service_text, source
from test_change import until

PORT = 4433
CID_LENGTH = 18  # of ngtcp2's servers
CLIENTS = 12
ADDRESSES = {4: (CLIENT4, VIP4), 6: (CLIENT6, VIP6)}


@pytest.fixture
def servers(lab, tmp_path):
    """
    Starts a server on each backend, whose document `name` is its name. Options: the servers'. They end with the test.
    """
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", certificate, "-days", "30", "-subj", "/CN=example.org"],
                   check=True, capture_output=True)
    with contextlib.ExitStack() as stack:
        def start(*options):
            for i in range(1, lab.backends + 1):
                root = tmp_path / f"b{i}"
                root.mkdir()
                (root / "name").write_text(f"b{i}\n")
                stack.enter_context(lab.process(f"b{i}", "gtlsserver", "-q", f"--htdocs={root}", *options, "*", PORT, key,
                                                certificate, stderr=subprocess.STDOUT))
            for i in range(1, lab.backends + 1):
                until(lambda host=f"b{i}": f":{PORT} " in lab.run(host, "ss", "-lunH").stdout)
        yield start


class Client:
    """One that completes a handshake at once, rebinds a second later, and asks for the name a second after that."""

    def __init__(self, lab, vip, directory, stack, *options):
        directory.mkdir()
        self.name, self.log = directory / "name", directory / "log"
        log = stack.enter_context(self.log.open("w"))
        argv = ["gtlsclient", "--no-quic-dump", "--exit-on-all-streams-close", "--nat-rebinding", "--change-local-addr=1s",
                "--delay-stream=2s", f"--download={directory}", *options, vip, PORT, "https://example.org/name"]
        self.process = subprocess.Popen(lab.argv("client", argv), env=lab.env, stdout=log, stderr=log)
        stack.callback(self.process.kill)

    def ports(self):
        """The first and the last that it sent from."""
        ports = re.findall(r"Sent packet: local=\[[^]]*\]:(\d+)", self.log.read_text())
        return ports[0], ports[-1]

    def is_connected(self):
        return "handshake has completed" in self.log.read_text()

    def answer(self):
        """Who answered; None: nobody."""
        self.process.wait(60)
        return self.name.exists() and self.name.read_text().strip() or None


def config_of(lab, family, affinity, **keys):
    return configuration([pool(lab, family=family, weights=(1, 1, 1))], [
        service(ADDRESSES[family][1], PORT, "udp", affinity=affinity, **keys)])


def connections(lab, family, directory, stack, *options):
    """Clients whose handshake is over, and the backend of each by the ring that they found."""
    clients = [Client(lab, ADDRESSES[family][1], directory / f"c{i}", stack, *options) for i in range(CLIENTS)]
    for client in clients:
        until(client.is_connected)
    return clients, [owner_of(lab, family, client.ports()[0]) for client in clients]


def owner_of(lab, family, port):
    client, vip = ADDRESSES[family]
    answer = lab.json("lookup", service_text(vip, PORT, "udp"), source(client, int(port)), "--file", lab.config_file)
    return answer["backend"]


@pytest.mark.parametrize("family, options", [(4, []), (6, ["--validate-addr"])])
def test_rebinding_across_changes(lab, servers, tmp_path, family, options):
    """A backend is added and another drained, the NAT gives each client another port: nobody notices."""
    servers(*options)  # with address validation each connection begins with Retry
    lab.attach(config_of(lab, family, "quic", quic={"cid_length": CID_LENGTH}))
    with contextlib.ExitStack() as stack:
        clients, owners = connections(lab, family, tmp_path, stack)
        lab.ringlb("backend", "add", "web", "b4", lab.address(4, family))
        lab.ringlb("backend", "set", "web", owners[0], "--state", "drain")
        assert [client.answer() for client in clients] == owners
        ports = [client.ports() for client in clients]
        assert all(before != after for before, after in ports)
        assert [owner_of(lab, family, after) for _, after in ports] != owners  # by their ring alone they would have moved
    assert lab.json("stats")["flow_events"]["refused_full"] == 0


def test_rebinding_without_ids(lab, servers, tmp_path):
    """The same clients where nothing but addresses and ports counts: what the test above would see."""
    servers()
    lab.attach(config_of(lab, 4, "flow"))
    with contextlib.ExitStack() as stack:
        clients, owners = connections(lab, 4, tmp_path, stack, "--timeout=4s")
        answers = [client.answer() for client in clients]
        after = [owner_of(lab, 4, client.ports()[1]) for client in clients]
        assert any(a != o for a, o in zip(after, owners))
        assert answers == [o if a == o else None for a, o in zip(after, owners)]


# Packets from real sockets, to servers that answer anything with their name

ASK = """
import socket, sys
vip = sys.argv[1]
family = socket.AF_INET6 if ":" in vip else socket.AF_INET
for line in sys.stdin:
    port, data = line.split()
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind(("", int(port)))
        s.settimeout(20)
        s.connect((vip, 53))
        s.send(bytes.fromhex(data))
        print(s.recv(2000).split()[0].decode())
"""


def long_header(kind, cid):
    return bytes([0xc0 | kind << 4, 0, 0, 0, 1, len(cid)]) + cid + bytes(1200)


def ask(lab, vip, packets):
    done = lab.run("client", "/usr/bin/python3", "-c", ASK, vip,
                   input="".join(f"{port} {data.hex()}\n" for port, data in packets))
    return done.stdout.split()


@pytest.mark.parametrize("family", [4, 6])
def test_migration_to_fresh_ids(lab, family):
    """From any address an id leads to the server that it names, across changes; removed, its number is nobody's."""
    vip = ADDRESSES[family][1]
    config = configuration([pool(lab, family=family, weights=(1, 1, 1))], [service(
        vip, 53, "udp", affinity="quic", quic={"cid_length": 8, "server_id": {"offset": 2, "length": 2}})])
    for i, backend in enumerate(config["pools"][0]["backends"], 1):
        backend["id"] = 1000 + i
    lab.attach(config)

    def named(number):
        return b"\x40" + b"ab" + number.to_bytes(2, "big") + b"cdef" + bytes(30)

    packets = [(30000 + i, named(1001 + i % 3)) for i in range(30)]
    assert ask(lab, vip, packets) == ["b1", "b2", "b3"] * 10
    lab.ringlb("backend", "set", "web", "b2", "--state", "drain")
    assert ask(lab, vip, [(port + 100, data) for port, data in packets]) == ["b1", "b2", "b3"] * 10
    lab.ringlb("backend", "set", "web", "b2", "--state", "maint")
    others = ask(lab, vip, [(port + 200, data) for port, data in packets])
    assert others[::3] == ["b1"] * 10 and others[2::3] == ["b3"] * 10 and "b2" not in others


def test_what_the_sweeps_keep(lab):
    """Commits delete entries that they make void: not those of connections that are not with their arc's owner."""
    lab.attach(configuration([pool(lab, weights=(1, 1, 1), settle_after="2s")], [service(
        VIP4, 53, "udp", affinity="quic", quic={"cid_length": 8})]))
    ports = range(31000, 31030)
    ids = [b"%08d" % port for port in ports]
    first = ask(lab, VIP4, [(port, long_header(0, b"made up by " + cid)) for port, cid in zip(ports, ids)])
    assert first == ask(lab, VIP4, [(port, long_header(2, cid)) for port, cid in zip(ports, ids)])
    assert set(first) == {"b1", "b2", "b3"}
    lab.ringlb("backend", "add", "web", "b4", lab.address(4), "--weight", "3")
    for i in range(1, 40):  # nobody comes back to the address that it had: the arcs settle, the connections go on
        ports = range(31000 + 40 * i, 31030 + 40 * i)
        assert ask(lab, VIP4, [(port, b"\x40" + cid + bytes(30)) for port, cid in zip(ports, ids)]) == first
        lab.ringlb("settle")
        if i > 3 and not lab.json("show")["pools"][0]["moved"]:
            break
        time.sleep(0.2)  # by the clock arcs settle; connections must not be silent
    else:
        pytest.fail("it never settled")
    lab.ringlb("backend", "set", "web", "b4", "--weight", "1")
    ports = range(40000, 40030)
    assert ask(lab, VIP4, [(port, b"\x40" + cid + bytes(30)) for port, cid in zip(ports, ids)]) == first
    lab.ringlb("backend", "set", "web", first[0], "--state", "maint")
    assert first[0] not in ask(lab, VIP4, [(port + 100, b"\x40" + cid + bytes(30)) for port, cid in zip(ports, ids)])


def test_ids_outlive_their_table(lab):
    """The flow table is replaced by a larger one: from where nobody was before, ids lead where they led."""
    config = configuration([pool(lab, weights=(1, 1, 1))], [service(VIP4, 53, "udp", affinity="quic", quic={"cid_length": 8})])
    lab.attach(config)
    ids = [b"%08d" % port for port in range(32000, 32030)]
    first = ask(lab, VIP4, [(32000 + i, long_header(2, cid)) for i, cid in enumerate(ids)])
    assert first == ask(lab, VIP4, [(32000 + i, b"\x40" + cid + bytes(30)) for i, cid in enumerate(ids)])
    lab.ringlb("backend", "set", "web", "b1", "--state", "drain", "--save")
    config["pools"][0]["backends"][0]["state"] = "drain"
    config["flows"] = {"established": 1000000}
    lab.ringlb("apply", lab.write(config))
    after = ask(lab, VIP4, [(33000 + i, b"\x40" + cid + bytes(30)) for i, cid in enumerate(ids)])
    assert after == first and "b1" in first
