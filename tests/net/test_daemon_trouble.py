# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What happens to a daemon: killed parts, a full disk, a flood of clients, a storm of events, backends that flap."""
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import CLIENT4, VIP4
from daemon_case import PORT, children, daemon, servers, until
from test_daemon import BOUND, CHECK, SLACK, config, get, health, kept, owners

LISTEN = "10.77.0.1:9391"
# On the client: many that ask as fast as they can, that say a byte now and then, that say nothing, and nonsense.
FLOOD = """
import os, socket, sys, threading, time
def connect():
    return socket.create_connection(("10.77.0.1", 9391), timeout=5)
def ask():
    with connect() as s:
        for _ in range(20):
            s.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            s.recv(65536)
def drip():
    with connect() as s:
        s.sendall(b"GET / HTTP/1.1\\r\\nX: ")
        for _ in range(20):
            s.sendall(b"x")
            time.sleep(0.1)
def rave():
    with connect() as s:
        s.sendall(os.urandom(20000))
        s.recv(1000)
def forever(what):
    while True:
        try:
            what()
        except OSError:
            pass
for what in [ask] * 4 + [drip] * 40 + [rave] * 2:
    threading.Thread(target=forever, args=(what,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def nginx(lab_one):
    with servers(lab_one, 3) as running:
        yield running


def test_flooded_listener(lab, nginx):
    """Packets don't notice, and neither do the checks."""
    with daemon(lab, config(lab, {**CHECK, "interval": "500ms"}, status_listen=LISTEN)) as d:
        with lab.process("client", "/usr/bin/python3", "-c", FLOOD, stdin=subprocess.PIPE) as flood, kept(lab) as summary:
            before = owners(lab)
            assert flood.stdout.readline() == "ready\n"
            time.sleep(2)
            assert "is down" not in d.log()
            nginx["b2"].bad()
            start = time.monotonic()
            d.wait_log("b2 .* is down")
            assert time.monotonic() - start < 2 * 0.5 + 0.25 + 2 * SLACK
            nginx["b2"].well()
            d.wait_log("b2 .* is up")
            # Who asks from elsewhere, with patience, is answered.
            until(lambda: lab.run("b1", "curl", "-sf", "-m", "5", f"http://{LISTEN}/ready/www", check=None).returncode == 0,
                  30, "an answer")
        assert "the worker ended" not in d.log()
    assert {before[f.split(": ")[0]] for f in summary["failures"]} <= {"b2"}, summary


def test_the_process_that_makes_workers_is_killed(lab, nginx):
    """The daemon ends with a failure, so that it is started anew; nothing of it is left, and packets flow."""
    with daemon(lab, config(lab, CHECK)) as d, kept(lab) as summary:
        until(d.worker, 5, "a worker")
        worker, [spawner] = d.worker(), children(d.process.pid)
        os.kill(spawner, signal.SIGKILL)
        assert d.process.wait(10) == 1
        assert "makes workers is gone" in d.log()
        until(lambda: not os.path.exists(f"/proc/{worker}/exe"), 5, "its worker ends, too")
        d.start()
        until(lambda: not lab.json("show")["pools"][0]["backends"][0]["stale"], 5, "watched again")
    assert summary["ok"] and not summary["failed"], summary


@pytest.mark.full
def test_the_worker_hangs(lab, nginx):
    """Checks that nobody makes any more must not look like backends that are well."""
    with daemon(lab, config(lab, CHECK)) as d:
        worker = until(d.worker, 5, "a worker")
        d.wait_log("runs")
        os.kill(worker, signal.SIGSTOP)
        nginx["b2"].bad()
        d.wait_log("the worker hangs", 20)
        d.wait_log("b2 .* is down", 5)
        assert d.worker() not in (None, worker) and not os.path.exists(f"/proc/{worker}/exe")
        nginx["b2"].well()
        d.wait_log("b2 .* is up")


def metrics(lab):
    """Counters by name and labels, and the text."""
    text = get(lab, "/metrics")
    return dict(re.findall(r"^(\S+?_(?:total|count|bucket|sum)(?:\{.*\})?) (\S+)$", text, re.M)), text


def test_counters_survive_a_kill(lab, nginx):
    """What Prometheus sees never goes back: packets, transitions of health, commits."""
    with daemon(lab, config(lab, CHECK, status_listen="127.0.0.1:9391")) as d:
        until(lambda: get(lab, "/ready/www"), 5, "it serves")
        nginx["b2"].bad()
        d.wait_log("b2 .* is down")
        nginx["b2"].well()
        d.wait_log("b2 .* is up")
        lab.ringlb("backend", "set", "web", "b1", "--weight", "2")
        lab.connect(VIP4, PORT, "32000-32099")
        transitions = 'ringlb_backend_health_transitions_total{pool="web",backend="b2",address="10.77.0.12",to="down"}'
        until(lambda: metrics(lab)[0].get(transitions) == "1", 5, "the transition is counted")
        before, text = metrics(lab)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        d.stop(signal.SIGKILL)
        d.start()
        until(lambda: get(lab, "/ready/www"), 5, "it serves")
        after, _ = metrics(lab)
        lab.ringlb("upgrade")
        lab.lab("recreate", "lb")
        until(lambda: lab.json("show")["interfaces"][0]["mode"] == "native", 5, "attached again")
        last, _ = metrics(lab)
        assert len(before) > 30 and set(before) <= set(after) <= set(last)
        for name, value in before.items():
            assert float(value) <= float(after[name]) <= float(last[name]), name


def test_full_disk(lab, nginx):
    """The history can't be written: a reload changes nothing and says why; health needs no disk."""
    state = lab.dir / "lb/state"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "full", state], check=True)
    try:
        with daemon(lab, config(lab, CHECK)) as d:
            with open(state / "filler", "wb", buffering=0) as f, pytest.raises(OSError):
                while True:
                    f.write(b"x" * 4096)
            lab.write(config(lab, CHECK, weights=(1, 5, 1)))
            d.send(signal.SIGHUP)
            d.wait_log("No space left on device")
            d.wait_log("reload failed: nothing was changed")
            assert lab.json("show")["generation"] == 1
            nginx["b2"].bad()
            d.wait_log("b2 .* is down")
            until(lambda: health(lab)["b2"] == "down", 2, "told to the kernel")
            nginx["b2"].well()
            d.wait_log("b2 .* is up")
            (state / "filler").unlink()
            d.send(signal.SIGHUP)
            until(lambda: lab.json("show")["generation"] == 2, 5, "and then it works")
    finally:
        subprocess.run(["umount", "-l", state], check=True)


def test_starts_with_a_full_disk(lab):
    """After a reboot services matter more than the record of them: it attaches, and says what is missing."""
    state = lab.dir / "lb/state"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "full", state], check=True)
    try:
        with daemon(lab, config(lab, CHECK)) as d:
            d.wait_log("attaching WITHOUT A RECORD.*read-only.*--no-record")
            shown = lab.json("show")
            assert shown["generation"] == 1 and shown["services"][0]["ready"]
            assert [g["recorded"] for g in lab.json("history")] == [False]
    finally:
        subprocess.run(["umount", "-l", state], check=True)


def test_storm_of_events(lab, nginx):
    """Tens of thousands of events of routes and neighbours: the daemon keeps up, and notices what concerns it."""
    with daemon(lab, config(lab, CHECK)) as d, kept(lab) as summary:
        before = owners(lab)
        batch = "".join(f"route add 172.16.{i // 250}.{i % 250 + 1}/32 via 10.77.0.11\n"
                        f"neighbour replace 10.77.0.{i % 50 + 200} lladdr 02:00:00:00:{i // 250:02x}:{i % 250:02x} dev eth0\n"
                        for i in range(5000)) + "".join(
                            f"route del 172.16.{i // 250}.{i % 250 + 1}/32\n" for i in range(5000))
        for _ in range(3):
            lab.run("lb", "ip", "-batch", "-", input=batch)
        nginx["b2"].bad()
        start = time.monotonic()
        d.wait_log("b2 .* is down")
        assert time.monotonic() - start < BOUND + 2 * SLACK
        nginx["b2"].well()
        d.wait_log("b2 .* is up")
    assert {before[f.split(": ")[0]] for f in summary["failures"]} <= {"b2"}, summary


def test_panic(lab, nginx):
    with daemon(lab, config(lab, {**CHECK, "panic": "70%"}, status_listen="127.0.0.1:9391")) as d:
        before = owners(lab)
        nginx["b2"].bad()
        d.wait_log("2 of 3 backends healthy, less than 70%: flows go to all")
        until(lambda: health(lab)["b2"] == "down", 3, "told")
        assert owners(lab) == before
        assert lab.json("show")["services"][0]["ready"]  # two are healthy, quorum is 1
        until(lambda: 'ringlb_pool_panic{pool="web"} 1' in (get(lab, "/metrics") or ""), 5, "panic in the metrics")
        nginx["b2"].well()
        d.wait_log("b2 .* is up")


@pytest.mark.full
def test_old_health_without_a_next_hop(lab, nginx):
    made = config(lab, CHECK)
    made["pools"][0]["backends"][2]["address"] = "10.77.0.99"  # nobody's
    with daemon(lab, made) as d:
        until(lambda: health(lab)["b3"] == "down", 10, "down")
        d.stop(signal.SIGKILL)
        until(lambda: re.search(r"b3 .* down \d+ s ago, no next hop", lab.ringlb("show").stdout), 10,
              lambda: lab.ringlb("show").stdout)


def test_host_that_cannot_check(lab, nginx):
    """What keeps this host from asking takes nobody down, and is said; once, however often it is tried."""
    check = {"type": "https", "port": PORT, "ca": "/nonexistent.pem", "interval": "100ms", "timeout": "100ms"}
    with daemon(lab, config(lab, check)) as d:
        d.wait_log(r"<4>pool web: backend b1 \(10.77.0.11\): this host can't check it: .*nonexistent.pem; its")
        d.wait_log("backend b3 .*can't check it")
        time.sleep(0.5)  # some more rounds
        assert d.log().count("backend b1 (10.77.0.11): this host") == 1
        assert set(health(lab).values()) == {"up"}


def test_address_of_the_listener_is_in_use(lab, nginx):
    """The daemon does its work meanwhile, says so once, and serves when the address is free."""
    with lab.process("lb", "nc", "-l", "127.0.0.1", "9391"):
        until(lambda: "9391" in lab.run("lb", "ss", "-Hltn").stdout, 5, "taken")
        with daemon(lab, config(lab, status_listen="127.0.0.1:9391")) as d:
            d.wait_log("<3>status_listen: can't listen at 127.0.0.1:9391: Address already in use; it is tried again")
            lab.run("lb", "nc", "-z", "127.0.0.1", "9391")  # which ends that one
            d.wait_log("serving metrics", 10)
            assert d.log().count("can't listen") == 1


def test_flapping_is_damped(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        def round_of():
            nginx["b2"].bad()
            d.wait_log("b2 .* is down")
            d.clear()
            nginx["b2"].well()
            start = time.monotonic()
            d.wait_log("b2 .* is up", 30)
            d.clear()
            return time.monotonic() - start
        assert round_of() < 4
        assert 5 <= round_of() < 9
        assert 10 <= round_of() < 14


def test_interface_recreated_under_traffic(lab, nginx):
    """Packets in between are lost with the interface; connections are not."""
    with daemon(lab, config(lab, CHECK)) as d:
        with lab.traffic(VIP4, PORT, "20000-20099", "--keep", "--pause", "0.1", "--timeout", "20") as summary:
            lab.lab("recreate", "lb")
            until(lambda: lab.json("show")["interfaces"][0]["mode"] == "native", 5, "attached again")
            until(lambda: lab.connect(VIP4, PORT, "31000-31009", check=None), 10, "answers")
            d.wait_log("attach again")
    assert summary["ok"] and not summary["failed"], summary


def test_mac_changes_under_traffic(lab, nginx):
    """Of a backend, announced: connections go on."""
    with daemon(lab, config(lab)) as d:
        with lab.traffic(VIP4, PORT, "20000-20099", "--keep", "--pause", "0.1", "--timeout", "20") as summary:
            lab.run("lb", "sysctl", "-qw", "net.ipv4.ip_forward=0")
            try:
                lab.run("b2", "ip", "link", "set", "eth0", "address", "02:00:00:00:22:33")
                lab.run("b2", "ip", "route", "replace", f"{CLIENT4}/32", "dev", "eth0", "mtu", "1500")
                lab.run("b2", "ping", "-c1", "-W1", "10.77.0.1", check=None)
                d.wait_log("b2 .* 02:00:00:00:22:33", 3)
                lab.connect(VIP4, PORT, "31000-31099")
            finally:
                lab.run("lb", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    assert summary["ok"] and not summary["failed"], summary
