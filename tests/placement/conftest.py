# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The systems that placements are named after, for real, on the loopback of a network namespace of this process.

    client 127.x.y.z --- nginx or haproxy 127.0.0.1:8000 --- servers 127.0.0.1:9001, :9002 ...
"""
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = TOP / os.environ.get("BUILD", "build") / "ringlb"
CLONE_NEWNET = 0x40000000


def pytest_configure():
    if os.geteuid() != 0:
        pytest.exit("tests/placement needs root: it makes a network namespace", returncode=2)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        pytest.exit(f"unshare: {os.strerror(ctypes.get_errno())}", returncode=2)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@pytest.fixture(name="rng")
def rng_fixture():
    seed = int(os.environ.get("RINGLB_SEED", random.randrange(1 << 32)))
    print(f"RINGLB_SEED={seed}")  # shown where a test fails; give it again to repeat that
    return random.Random(seed)


def fresh_keys(rng, count):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-"
    return ["".join(rng.choices(letters, k=rng.randrange(1, 40))) for _ in range(count)]


def fresh_sources(rng, count):
    """Of 127.0.0.0/8, all of which is the loopback's, and different ones."""
    return [str(socket.inet_ntoa(n.to_bytes(4, "big"))) for n in rng.sample(range(0x7F010000, 0x7FFFFF00), count)]


class Pool:
    """A pool of a configuration file, and what `ringlb lookup` says of it."""

    def __init__(self, directory, backends, **keys):
        placement = keys.get("placement")
        service = {"name": "www", "address": "192.0.2.10", "port": 80, "protocol": "tcp", "pool": "web",
                   "forward": "ipip", **({"affinity": "source"} if placement else {})}
        backends = [{"name": f"b{i}", "address": f"10.9.{i >> 8}.{i & 255}", **b} for i, b in enumerate(backends, 1)]
        self.file = directory / "ringlb.yaml"
        self.file.write_text(json.dumps({
            "interfaces": ["eth0"], "hash_key": "00112233445566778899aabbccddeeff", "tunnel_source": {"ipv4": "10.0.0.1"},
            "pools": [{"name": "web", "backends": backends, **keys}], "services": [service]}))

    def ask(self, lines, *argv):
        done = subprocess.run([PROGRAM, "--json", "lookup", *argv, "--file", self.file, "--from", "-"], text=True,
                              input="".join(f"{line}\n" for line in lines), capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(lines)
        return answers

    def by_key(self, keys, placement):
        return self.ask(keys, "--pool", "web", "--placement", placement)

    def by_source(self, sources):
        return [a["backend"] for a in self.ask([f"{s}:1024" for s in sources], "www")]


def wait_for_port(port, process):
    deadline = time.monotonic() + 10
    while True:
        assert process.poll() is None, f"{process.args[0]} ended with status {process.returncode}"
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        assert time.monotonic() < deadline, f"nothing listens on port {port}"
        time.sleep(0.01)


@contextlib.contextmanager
def running(argv, *ports):
    """A server in the foreground, until the block ends."""
    with subprocess.Popen(list(map(str, argv)), stdin=subprocess.DEVNULL) as process:
        try:
            for port in ports:
                wait_for_port(port, process)
            yield process
        finally:
            process.terminate()
            process.wait(20)


def get(path, port=8000, source=None, connection=None):
    """What a GET answers, from a source address of its own if one is given."""
    c = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=10,
                                                 source_address=(source, 0) if source else None)
    c.request("GET", path)
    answer = c.getresponse()
    assert answer.status == 200
    text = answer.read().decode()
    if not connection:
        c.close()
    return text
