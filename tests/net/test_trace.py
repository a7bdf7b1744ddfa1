# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ringlb trace: packets with their verdicts, as lines, as JSON, as a file that tcpdump reads."""
import contextlib
import json
import signal
import subprocess
import time

import pytest
from conftest import CLIENT4, CLIENT6, VIP4, VIP6, configuration, pool, service


@pytest.fixture
def traced(lab):
    lab.decapsulate()
    lab.attach(configuration(
        [pool(lab), pool(lab, "six", family=6)],
        [service(VIP4, name="www"), service(VIP4, 443, forward="gue", name="tls"), service(VIP6, to="six", name="www6")]))
    return lab


class Trace:
    def __init__(self, process):
        self.process = process
        self.lines = []

    def end(self):
        """Interrupts it; its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self):
        out, self.err = self.process.communicate(timeout=20)
        self.lines = out.splitlines()
        return self.process.returncode


@contextlib.contextmanager
def trace(lab, *options):
    """From when it says that it traces."""
    with lab.process("lb", "ringlb", "trace", *options, stderr=subprocess.PIPE) as p:
        assert p.stderr.readline().startswith("tracing")
        yield Trace(p)


@contextlib.contextmanager
def trace_json(lab, *options):
    """That says nothing but packets: when it has begun shows in these."""
    with lab.process("lb", "ringlb", "--json", "trace", *options, stderr=subprocess.PIPE) as p:
        yield Trace(p)


def test_lines(traced):
    with trace(traced, "--verdict", "forwarded") as t:
        owner = traced.connect(VIP4, 80, "20000")[f"{CLIENT4}:20000"]
        assert t.end() == 0
    opening = [line for line in t.lines if f" tcp {CLIENT4}:20000 > {VIP4}:80 [S] " in line]
    assert len(opening) == 1, t.lines
    assert opening[0].split()[1] == "eth0"
    assert opening[0].endswith(f": forwarded to web/{owner}, service www")
    assert all(": forwarded to " in line for line in t.lines)
    assert f"{len(t.lines)} packets, 0 more left out" in t.err


def test_encapsulated(traced):
    """The line is the client's packet, whatever stands around it."""
    with trace(traced, "--verdict", "forwarded") as t:
        owner = traced.connect(VIP4, 443, "20001")[f"{CLIENT4}:20001"]
        assert t.end() == 0
    assert any(f" tcp {CLIENT4}:20001 > {VIP4}:443 [S] " in line and
               line.endswith(f": forwarded to web/{owner}, service tls") for line in t.lines), t.lines


def test_verdicts_are_told_apart(traced):
    with trace(traced, "--verdict", "passed_not_ip", "--verdict", "passed_no_service") as t:
        traced.run("client", "ping", "-c", "1", "-W", "5", traced.address(0, 4).rsplit(".", 1)[0] + ".1")
        traced.connect(VIP4, 80, "20002")
        assert t.end() == 0
    assert any(" icmp " in line and line.endswith(": passed_no_service") for line in t.lines), t.lines
    assert all(line.endswith((": passed_no_service", ": passed_not_ip")) for line in t.lines)


def test_json(traced):
    with trace_json(traced, "--verdict", "forwarded", "--count", "3") as t:
        with traced.traffic(VIP6, 80, "20004-20010"):
            assert t.wait() == 0
    records = [json.loads(line) for line in t.lines]
    packets = [r for r in records if "verdict" in r]
    assert len(packets) == 3
    for r in packets:
        assert (r["verdict"], r["service"], r["pool"], r["destination"], r["destination_port"], r["protocol"],
                r["interface"]) == ("forwarded", "www6", "six", VIP6, 80, 6, "eth0")
        answer = traced.lookups("www6", [f"[{r['source']}]:{r['source_port']}"])[0]
        assert (r["backend"], r["hash"]) == (answer["backend"], answer["hash"])
        assert abs(r["time"] - time.time()) < 60


def test_pcap(traced, tmp_path):
    """tcpdump reads it: outer header and all, the interface's name, the frame's true length."""
    file = tmp_path / "trace.pcapng"
    with trace(traced, "--pcap", str(file)) as t:
        traced.connect(VIP4, 443, "20020")
        assert t.end() == 0
    assert not t.lines
    read = subprocess.run(["tcpdump", "-nr", file, "-e"], capture_output=True, text=True, check=True).stdout
    assert f".6080: UDP, length " in read
    inner = subprocess.run(["tcpdump", "-nr", file, "tcp"], capture_output=True, text=True, check=False).stdout
    assert "6080" not in inner
    comments = file.read_bytes()
    assert b"forwarded to web/" in comments and b"eth0" in comments


def test_one_at_a_time(traced):
    with trace(traced) as t:
        done = traced.ringlb("trace", check=1)
        assert "traced already" in done.stderr and "PID" in done.stderr, done.stderr
        assert t.end() == 0


def test_ends_with_its_reader(traced):
    """Killed, it leaves a request that runs out by itself; the next trace shows nothing of before."""
    with trace(traced) as t:
        t.process.kill()
        t.wait()
    traced.connect(VIP4, 80, "20030")
    with trace(traced, "--count", "1") as t:
        traced.connect(VIP4, 80, "20031")
        assert t.wait() == 0
    assert "20030" not in t.lines[0]


def test_names_follow_changes(traced):
    """A backend that comes while a trace runs has its name in it."""
    with trace(traced, "--verdict", "forwarded") as t:
        traced.ringlb("backend", "add", "web", "newcomer", traced.address(4), "--weight", "1000", "--max-move", "100%")
        deadline = time.monotonic() + 15
        port = 21000
        while time.monotonic() < deadline:
            if traced.connect(VIP4, 80, str(port))[f"{CLIENT4}:{port}"] == "b4":
                break
            port += 1
        time.sleep(1.2)  # names are read anew once a second
        traced.connect(VIP4, 80, "22000-22020")
        assert t.end() == 0
    assert any("forwarded to web/newcomer" in line for line in t.lines)


def test_usage(traced):
    assert "no_such" in traced.ringlb("trace", "--verdict", "no_such", check=2).stderr
    assert "count" in traced.ringlb("trace", "--count", "0", check=2).stderr
    assert traced.ringlb("trace", "--pcap", "/nonexistent/file", check=1).stderr


def test_not_attached(lab):
    assert "attach" in lab.ringlb("trace", check=1).stderr


def test_answers_show_as_they_leave(traced):
    with trace(traced, "--verdict", "answered_echo") as t:
        for vip in (VIP4, VIP6):
            traced.run("client", "ping", "-c", "1", "-W", "5", vip)
        assert t.end() == 0
    assert len(t.lines) == 2 and all(line.endswith(": answered_echo") for line in t.lines), t.lines
    assert f" icmp {VIP4} > {CLIENT4} " in t.lines[0] and f" icmp6 {VIP6} > {CLIENT6} " in t.lines[1], t.lines
