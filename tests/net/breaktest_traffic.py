# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the break test measures with: long-lived connections (breaktest_client.c), and packets at the balancer."""
import collections
import contextlib
import json
import select
import subprocess
import time

from conftest import CLIENT4, CLIENT6, TOP, VIP4, VIP4B, VIP6, VIP6B, source

PORT = 9000
SERVICES = {"www": VIP4, "www6": VIP6, "mover": VIP4B, "other": VIP6B}
PROGRAMS = TOP / "build/tests/net"
PATIENCE = 30  # seconds for an answer of the client, which gives up on connections long before


def ranges(ports):
    """As the client takes them."""
    out = []
    for port in sorted(ports):
        if out and out[-1][1] == port - 1:
            out[-1][1] = port
        else:
            out.append([port, port])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in out)


class Traffic:
    """Connections by source port: which service, and which server answers on each."""

    def __init__(self, lab, stack, interval_ms=100, stall_ms=4000):
        self.lab = lab
        for i in range(1, lab.backends + 1):
            server = stack.enter_context(lab.process(f"b{i}", PROGRAMS / "breaktest_server", f"b{i}", PORT))
            assert server.stdout.readline() == "ready\n"
        self.client = stack.enter_context(lab.process("client", PROGRAMS / "breaktest_client", interval_ms, stall_ms,
                                                      stdin=subprocess.PIPE))
        # Each service has ports of its own; those of closed connections come again, oldest first.
        self.free = {name: collections.deque(range(20000 + 5000 * i, 25000 + 5000 * i))
                     for i, name in enumerate(SERVICES)}
        self.server = {}   # by port, of those that live
        self.service = {}  # by port

    def ask(self, command):
        self.client.stdin.write(command + "\n")
        self.client.stdin.flush()
        assert select.select([self.client.stdout], [], [], PATIENCE)[0], f"no answer to {command[:60]}"
        return json.loads(self.client.stdout.readline())

    def next_ports(self, service, count):
        return [self.free[service].popleft() for _ in range(count)]

    @staticmethod
    def source(service, port):
        return source(CLIENT6 if ":" in SERVICES[service] else CLIENT4, port)

    def open(self, service, ports):
        """Opens connections; {port: server}, and {port: why} of those that failed."""
        answer = self.ask(f"open {SERVICES[service]} {PORT} {ranges(ports)}")
        opened = {int(p): name for p, name in answer["opened"].items()}
        self.server.update(opened)
        self.service.update(dict.fromkeys(opened, service))
        failed = {int(p): why for p, why in answer["failed"].items()}
        # Once more later: the ports are not used again too soon, for the old connection may still be sent for.
        self.free[service].extend(failed)
        return opened, failed

    def forget(self, port):
        self.server.pop(port)
        self.free[self.service.pop(port)].append(port)

    def close(self, ports, how):
        """How: reset or finish. One that breaks while it finishes is the next beat's."""
        self.ask(f"{how} {ranges(ports)}")
        if how == "reset":
            for port in ports:
                self.forget(port)

    def beat(self):
        """Every connection has exchanged something since; {port: (server, service, why)} of those that broke."""
        answer = self.ask("beat")
        broken = {}
        for port, name, why in answer["broken"]:
            port = int(port)
            broken[port] = (name, self.service.get(port), why)
            self.forget(port)
        return broken

    @contextlib.contextmanager
    def paused(self):
        self.ask("pause")
        yield
        self.ask("resume")


class Balance:
    """Packets that the balancer's interface received, and those that its verdicts account for. Made while paused."""

    def __init__(self, lab):
        self.lab = lab
        pids = subprocess.run(["ip", "netns", "pids", f"{lab.name}-lb"], capture_output=True, text=True, check=True)
        self.dev = f"/proc/{pids.stdout.split()[0]}/net/dev"
        self.last = (-1,) * 4
        while self.last != (now := self.read()):  # nothing is under way
            self.last = now

    def read(self):
        """(received, sum of verdicts, sum of those that drop, not sent after all)."""
        with open(self.dev, encoding="ascii") as f:
            fields = next(line for line in f if line.strip().startswith("eth0:")).split()
        verdicts = self.lab.verdicts()
        return (int(fields[1 + 1]), sum(verdicts.values()),
                sum(n for name, n in verdicts.items() if name.startswith("dropped")), int(fields[9 + 3]))

    def settled(self):
        """Read when no packet is between the two counters: what is missing is taken for lost after a while."""
        deadline = time.monotonic() + 0.5
        while True:
            now = self.read()
            if now[0] - self.last[0] == now[1] - self.last[1] or time.monotonic() > deadline:
                return now

    def since(self):
        """
        Packets since the last call, while the traffic is paused. lost: received, and under no verdict; unsent:
        forwarded, and refused by the interface, as when more come than it takes.
        """
        now = self.settled()
        received, counted, dropped, unsent = (a - b for a, b in zip(now, self.last))
        self.last = now
        return {"packets": received, "lost": received - counted, "unsent": unsent, "dropped": dropped}
