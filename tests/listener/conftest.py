# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The listener alone, in a process that serves the snapshots which it is given."""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVE = ROOT / os.environ.get("BUILD", "build") / "asan/tests/listener/serve"


class Listener:
    def __init__(self, address="127.0.0.1"):
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.socket.bind((address, 0))
        self.socket.listen(128)
        self.socket.setblocking(False)
        self.address, self.port = self.socket.getsockname()[:2]
        number = self.socket.fileno()
        self.process = subprocess.Popen([SERVE, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        pass_fds=[number],
                                        # what was freed comes back soon, so that memory tells something
                                        env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})

    def feed(self, snapshot):
        """True where it took it."""
        self.process.stdin.write((snapshot if isinstance(snapshot, bytes) else json.dumps(snapshot).encode()) + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == b"ok\n"

    def get(self, path, method="GET", **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=20)
        try:
            connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def connect(self, source="127.0.0.1"):
        return socket.create_connection((self.address, self.port), timeout=60, source_address=(source, 0))

    def connections(self):
        """Descriptors that it has open; a dozen are not connections."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def cpu(self):
        """Seconds of processor time used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(20)
        self.process.stdout.close()
        self.socket.close()
        return status


@pytest.fixture
def listener():
    it = Listener()
    yield it
    assert it.close() == 0, "the sanitizers found something"
