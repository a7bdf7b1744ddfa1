# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The daemon: adopting, reloading, following what changes around it, and never being in a packet's way."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from conftest import CLIENT4, TOP, VIP4, configuration, pool, service, source
from daemon_case import PORT, Daemon, daemon, servers, until

SOURCES = [source(CLIENT4, p) for p in range(20000, 20200)]
PORTS = "20000-20199"


def config(lab, check=None, weights=(1, 1, 1), forward="l2", **keys):
    made = configuration([pool(lab, weights=weights, settle_after="1s", **({"check": check} if check else {}))],
                         [service(VIP4, PORT, name="www", forward=forward)], **keys)
    return made


def health(lab):
    return {b["name"]: b["health"] for b in lab.json("show")["pools"][0]["backends"]}


def owners(lab):
    return lab.owners(f"{VIP4}:{PORT}/tcp", SOURCES)


@pytest.fixture(scope="module")
def nginx(lab_one):
    with servers(lab_one, 4) as running:
        yield running


def kept(lab):
    """Connections that stay open and ask ten times a second."""
    return lab.traffic(VIP4, PORT, PORTS, "--keep", "--pause", "0.1", "--timeout", "3")


def test_attaches_adopts_and_leaves(lab, nginx):
    with daemon(lab, config(lab)) as d:
        d.wait_log("attached: generation 1")
        with kept(lab) as summary:
            lab.ringlb("backend", "set", "web", "b1", "--weight", "3")
            d.wait_log("changed by another command: generation 2")
            before = lab.json("show"), owners(lab)
            assert d.stop() == 0
            assert lab.json("show")["digest"] == before[0]["digest"]
            d.start()
            d.wait_log("is attached already")
            after = lab.json("show"), owners(lab)
            assert after[0]["generation"] == 2 and after[1] == before[1]
            assert after[0]["drift"]  # the live edit stays one
    assert summary["ok"] and not summary["failed"], summary


def test_one_daemon_an_instance(lab, nginx):
    with daemon(lab, config(lab)) as d:
        second = lab.ringlb("run", d.file, check=1)
        assert f"PID {d.process.pid}" in second.stderr
    with daemon(lab, d.file) as d:  # a killed one's lock does no harm
        d.wait_log("is attached already")


def test_privileges(lab, nginx):
    with daemon(lab, config(lab, {"type": "tcp", "port": PORT})) as d:
        def status(pid):
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        assert int(status(d.process.pid)["CapEff"], 16) == 1 << 12 | 1 << 38 | 1 << 39

        def assert_harmless(worker):
            mine = status(worker)
            assert [int(mine[c], 16) for c in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")] == [0] * 5
            assert mine["NoNewPrivs"] == "1" and set(mine["Uid"].split()) == {"65534"}
        worker = until(d.worker, 10, "a worker")
        assert_harmless(worker)
        for fd in os.listdir(f"/proc/{worker}/fd"):
            with contextlib.suppress(FileNotFoundError):  # a check's, over by now
                assert "bpf" not in os.readlink(f"/proc/{worker}/fd/{fd}")
        with open(f"/proc/{worker}/maps", encoding="utf-8") as maps:
            assert "bpf-map" not in maps.read()
        # It may die: another one comes.
        os.kill(worker, signal.SIGKILL)
        d.wait_log("the worker ended")
        until(lambda: d.worker() not in (None, worker), 5, "another worker")
        assert_harmless(d.worker())
        nginx["b1"].stop()
        d.wait_log("b1 .* is down")
        nginx["b1"].start()
        d.wait_log("b1 .* is up")


CHECK = {"type": "http", "port": PORT, "path": "/healthz", "interval": "300ms", "timeout": "250ms", "rise": 2, "fall": 2}
BOUND = 2 * 0.3 + 0.25
SLACK = 0.6  # for a machine that does other things too
ILLNESSES = {
    "stopped": ("stop", "start", "connection refused"),
    "refusing": ("quit", "restart", "connection refused"),
    "frozen": ("freeze", "melt", "timeout"),
    "500": ("bad", "well", "status 500"),
    "slow": ("slow", "well", "timeout"),
}


def fall_ill(lab, d, server, illness, reason, get_well):
    """One backend becomes ill and well again; what its flows, and those of others, see of it."""
    before = owners(lab)
    d.clear()
    with kept(lab) as summary:
        start = time.monotonic()
        illness()
        d.wait_log(f"backend {server.host} .* is down: .*{reason}")
        took = time.monotonic() - start
        until(lambda: server.host not in set(owners(lab).values()), 2, "no new flow goes there")
        assert health(lab)[server.host] == "down"
        told = {b["name"]: b["reason"] for b in lab.json("show")["pools"][0]["backends"]}
        assert re.search(reason, told.pop(server.host)) and set(told.values()) == {None}
        assert re.search(f"  {server.host} .* down .*{reason}", lab.ringlb("show").stdout)
        # Who asks now gets an answer, whatever the port.
        answers = lab.connect(VIP4, PORT, "30000-30099")
        assert server.host not in answers.values()
        get_well()
        d.wait_log(f"backend {server.host} .* is up")
        until(lambda: owners(lab) == before, 2, "the same arcs again")
    lost = {f.split(": ")[0] for f in summary["failures"]}
    assert all(before[s] == server.host for s in lost), summary
    assert set(before.values()) - {server.host} <= set(summary["names"])
    assert took < BOUND + SLACK, took
    return took


@pytest.mark.parametrize("name", ILLNESSES)
def test_illness(lab, nginx, name):
    illness, cure, reason = ILLNESSES[name]
    with daemon(lab, config(lab, CHECK)) as d:
        server = nginx["b2"]
        took = fall_ill(lab, d, server, getattr(server, illness), reason, getattr(server, cure))
        print(f"{name}: {took:.2f} s")
        shown = lab.json("show")
        assert shown["generation"] == 1 and shown["digest"] == shown["effective_digest"]


@pytest.mark.parametrize("forward", ["l2", "ipip", "gue"])
def test_through_the_data_plane(lab, nginx, forward):
    """A backend that has lost the service address is found out, though its own address answers."""
    if forward == "gue":
        forward = {"mode": "gue", "port": 6080}
    if forward != "l2":
        lab.decapsulate()
    with daemon(lab, config(lab, {**CHECK, "via": "service"}, forward=forward)) as d:
        server = nginx["b2"]
        time.sleep(1)  # several rounds of checks
        assert "down" not in d.new(), d.new()
        fall_ill(lab, d, server, server.lose_address, "", server.find_address)
        d.stop()
        assert "fwmark" not in lab.run("lb", "ip", "rule").stdout
        assert "ringlb0" not in lab.run("lb", "ip", "link").stdout


def test_without_a_daemon_health_is_old(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        nginx["b2"].stop()
        d.wait_log("b2 .* is down")
        until(lambda: health(lab)["b2"] == "down", 2, "shown")
        d.stop(signal.SIGKILL)
        # What others change leaves it down; and a reader sees how old that is.
        lab.ringlb("backend", "set", "web", "b1", "--weight", "2")
        assert health(lab)["b2"] == "down" and "b2" not in owners(lab).values()
        until(lambda: lab.json("show")["pools"][0]["backends"][1]["stale"], 10, "stale")
        b2 = lab.json("show")["pools"][0]["backends"][1]
        assert b2["health_age"] >= 5
        nginx["b2"].start()
        d.start()
        d.wait_log("b2 .* is up")
        until(lambda: "b2" in owners(lab).values(), 2, "back")


def test_all_down(lab, nginx):
    """Forward to all, be not ready, say so."""
    with daemon(lab, config(lab, CHECK, status_listen="127.0.0.1:9391")) as d:
        for host in ("b1", "b2", "b3"):
            nginx[host].bad()
        d.wait_log("pool web: no backend is healthy; not ready")
        until(lambda: set(health(lab).values()) == {"down"}, 3, "all are shown down")
        assert set(owners(lab).values()) == {"b1", "b2", "b3"}
        assert not lab.json("show")["services"][0]["ready"]
        assert lab.run("lb", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                       "http://127.0.0.1:9391/ready/www").stdout == "503"
        for host in ("b1", "b2", "b3"):
            nginx[host].well()
        until(lambda: lab.json("show")["services"][0]["ready"], 5, "ready again")
        until(lambda: lab.run("lb", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                              "http://127.0.0.1:9391/ready/www").stdout == "200", 3, "and served")


def test_new_backend_waits(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        nginx["b4"].bad()
        lab.ringlb("backend", "add", "web", "b4", lab.address(4))
        for _ in range(5):
            assert "b4" not in owners(lab).values()
        d.wait_log("b4 .* is new and stays out")
        nginx["b4"].well()
        d.wait_log("b4 .* is up|b4 .* takes flows")
        until(lambda: "b4" in owners(lab).values(), 2, "it takes flows")


def test_killed_under_traffic(lab, nginx):
    """SIGKILL and restart: no packet lost, no connection broken, counters monotone."""
    with daemon(lab, config(lab, CHECK, status_listen="127.0.0.1:9391")) as d:
        counters = []

        def packets():
            s = lab.json("stats")
            counters.append(s["services"][0]["packets"])
            assert counters == sorted(counters)
            return s["verdicts"]
        with kept(lab) as summary:
            for _ in range(5):
                before = packets()
                d.stop(signal.SIGKILL)
                packets()
                d.start()
                after = packets()
                dropped = {k: after[k] - before[k] for k in after if k.startswith("dropped") and after[k] != before[k]}
                assert not dropped
        assert summary["ok"] and not summary["failed"], summary


def test_reloads(lab, nginx):
    """100 SIGHUPs in 10 s with files that change, bad ones among them."""
    rng = random.Random(6)
    with daemon(lab, config(lab, CHECK)) as d, kept(lab) as summary:
        generations = 1
        for i in range(100):
            start = time.monotonic()
            if i % 10 == 7:
                d.file.write_text("interfaces: [eth0\n")
            else:
                lab.write(config(lab, CHECK, weights=[rng.randint(1, 3) for _ in range(3)]))
            d.send(signal.SIGHUP)
            time.sleep(max(0, 0.1 - (time.monotonic() - start)))
        lab.write(config(lab, CHECK, weights=(3, 2, 1)))
        d.send(signal.SIGHUP)
        until(lambda: [b["weight"] for b in lab.json("show")["pools"][0]["backends"]] == [3, 2, 1], 10, "the last one")
        generations = lab.json("show")["generation"]
        assert generations > 20
        assert "reload failed: nothing was changed" in d.log()
        assert "ringlb.yaml:" in d.log()
    assert summary["ok"] and not summary["failed"], summary


def test_bad_reload(lab, nginx):
    with daemon(lab, config(lab, max_move="10%")) as d:
        lab.write(config(lab, weights=(1, 5, 1), max_move="10%"))
        d.send(signal.SIGHUP)
        d.wait_log("max_move")
        d.wait_log("reload failed")
        lab.ringlb("backend", "set", "web", "b1", "--state", "maint", "--max-move", "100%")
        d.wait_log("changed by another")
        lab.write(config(lab, max_move="100%"))
        d.clear()
        d.send(signal.SIGHUP)
        d.wait_log("would undo a change made live")
        assert lab.json("show")["generation"] == 2


def test_bad_file_at_boot(lab, nginx):
    """The last generation of the history, loudly; without one an error."""
    file = lab.write(config(lab, weights=(1, 4, 1)))
    lab.ringlb("attach", file)
    lab.ringlb("detach")
    file.write_text("interfaces: [eth0]\nhash_key: nonsense\n")
    with daemon(lab, file) as d:
        d.wait_log("CANNOT BE USED: falling back to the last generation of the history, 1")
        assert [b["weight"] for b in lab.json("show")["pools"][0]["backends"]] == [1, 4, 1]
        assert lab.connect(VIP4, PORT, "31000-31009")
        d.stop()
    lab.reset()
    d = Daemon(lab, file).start(ready=False)
    assert d.process.wait(10) == 2


def test_detached_and_attached(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        lab.ringlb("detach")
        d.wait_log("was detached")
        lab.ringlb("attach", d.file)
        d.wait_log("attached by another command")
        nginx["b1"].bad()
        d.wait_log("b1 .* is down")
        nginx["b1"].well()
        d.wait_log("b1 .* is up")


def test_upgrade_under_the_daemon(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        with kept(lab) as summary:
            lab.ringlb("upgrade")
            d.wait_log("changed by another command")
        assert summary["ok"] and not summary["failed"], summary
        nginx["b2"].bad()
        d.wait_log("b2 .* is down")
        until(lambda: "b2" not in owners(lab).values(), 2, "in the new tables")
        nginx["b2"].well()
        d.wait_log("b2 .* is up")


def test_settles_and_ends_drains(lab, nginx):
    made = config(lab, CHECK)
    made["pools"][0]["drain_max"] = "2s"
    with daemon(lab, made) as d, kept(lab):
        lab.ringlb("backend", "set", "web", "b3", "--state", "drain")
        until(lambda: lab.json("show")["pools"][0]["backends"][2]["cut"], 8, "drain_max")
        until(lambda: lab.json("show")["pools"][0]["moved"] == 0, 10, "everything settles by itself")
        assert "has settled" in d.log()


def test_what_the_page_tells_is_as_old_as_it_says(lab, nginx):
    """The daemon keeps what runs open: how long ago old flows sent must be read anew all the same."""
    made = config(lab, status_listen="127.0.0.1:9391")
    made["pools"][0]["settle_after"] = "20s"

    def page():
        said = lab.run("lb", "curl", "-s", "http://127.0.0.1:9391/api/v1/show").stdout
        return json.loads(said)["pools"][0]["backends"][2] if said.startswith("{") else None
    with daemon(lab, made), kept(lab):
        lab.ringlb("backend", "set", "web", "b3", "--state", "drain")
        until(lambda: (b := page()) and b["state"] == "drain", 5, "it drains")
        start = time.monotonic()
        while time.monotonic() - start < 6:
            assert page()["last_old_packet"] <= 2 and page()["safe_to_remove_in"] >= 18
            assert lab.json("show")["pools"][0]["backends"][2]["safe_to_remove_in"] >= 18
            time.sleep(0.2)


def get(lab, path):
    """What the daemon serves there; None: nothing."""
    done = lab.run("lb", "curl", "-sf", "-m", "5", f"http://127.0.0.1:9391{path}", check=None)
    return None if done.returncode else done.stdout


def test_serves_what_is(lab, nginx):
    """Who asks after a silence gets what is true now, and who asks while the daemon hangs what was true."""
    with daemon(lab, config(lab, status_listen="127.0.0.1:9391")) as d:
        until(lambda: get(lab, "/ready/www"), 5, "it serves")
        with lab.process("lb", "nc", "127.0.0.1", "9391", stdin=subprocess.PIPE):  # says nothing
            before = d.cpu()
            time.sleep(2)  # nobody asks
            assert d.cpu() - before < 0.5
        lab.connect(VIP4, PORT, "32000-32099")
        counted = lab.json("stats")["services"][0]["packets"]
        time.sleep(1)  # so old it may be
        assert json.loads(get(lab, "/api/v1/stats"))["services"][0]["packets"] == counted
        assert abs(json.loads(get(lab, "/api/v1/status"))["timestamp"] - time.time()) < 2
        d.send(signal.SIGSTOP)
        try:
            time.sleep(1)
            assert json.loads(get(lab, "/api/v1/stats"))["services"][0]["packets"] == counted
            assert "ringlb_attached 1" in get(lab, "/metrics")
        finally:
            d.send(signal.SIGCONT)


def set_mac(lab, host, mac):
    lab.run(host, "ip", "link", "set", "eth0", "address", mac)
    lab.run(host, "ip", "route", "replace", f"{CLIENT4}/32", "dev", "eth0", "mtu", "1500")


def test_mac_changes(lab, nginx):
    """A backend's new link-layer address is followed within a second of being announced."""
    with daemon(lab, config(lab)) as d:
        until(lambda: lab.connect(VIP4, PORT, "32000-32099", check=None), 5, "answers")
        lab.run("lb", "sysctl", "-qw", "net.ipv4.ip_forward=0")  # next hops are the daemon's alone
        try:
            set_mac(lab, "b2", "02:00:00:00:22:22")
            lab.run("b2", "ping", "-c1", "-W1", "10.77.0.1", check=None)  # asks for it, with the new address
            start = time.monotonic()
            d.wait_log("b2 .* 02:00:00:00:22:22", 3)
            assert time.monotonic() - start < 1
            answers = lab.connect(VIP4, PORT, "32000-32099")
            assert "b2" in answers.values()
        finally:
            lab.run("lb", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def test_interface_recreated(lab, nginx):
    with daemon(lab, config(lab, CHECK)) as d:
        lab.lab("recreate", "lb")
        d.wait_log("attach again, it was recreated|interface eth0: attach")
        until(lambda: lab.json("show")["interfaces"][0]["mode"] == "native", 5, "attached again")
        until(lambda: lab.connect(VIP4, PORT, "33000-33019", check=None), 10, "answers")
        lab.connect(VIP4, PORT, "33100-33199")


def test_interface_gone(lab_two, tmp_path):
    """While an interface is gone everything else goes on."""
    lab_two.reset()
    made = configuration([pool(lab_two, check={"type": "tcp", "port": 80, "interval": "300ms", "timeout": "250ms"})],
                         [service(VIP4, 80, name="www")], interfaces=["eth0", "eth1"])
    made["interfaces"] = ["eth0", "eth1"]
    with daemon(lab_two, made) as d:
        lab_two.lab("recreate", "lb", "eth1")
        d.wait_log("eth1")
        until(lambda: {i["mode"] for i in lab_two.json("show")["interfaces"]} == {"native"}, 5, "both again")
        until(lambda: set(health(lab_two).values()) == {"up"}, 10, "healthy again")
    lab_two.reset()


def test_thousand_backends(lab, nginx):
    """1,000 checked backends in one daemon: addresses of b1 to b4."""
    for i in range(1, 5):
        script = "".join(f"address add 10.77.{i}.{j}/32 dev eth0\n" for j in range(1, 251))
        lab.run(f"b{i}", "ip", "-batch", "-", input=script)
        lab.run("lb", "ip", "route", "replace", f"10.77.{i}.0/24", "via", lab.address(i))
    made = config(lab, {**CHECK, "interval": "1s", "timeout": "900ms"})
    made["pools"][0]["backends"] = [{"name": f"s{i}-{j}", "address": f"10.77.{i}.{j}"}
                                    for i in range(1, 5) for j in range(1, 251)]
    try:
        with daemon(lab, made) as d:
            until(d.worker, 5, "a worker")
            before = d.cpu()
            time.sleep(3)
            assert d.cpu() - before < 2  # 0.5 here; nothing runs in circles
            assert "is down" not in d.log()
            assert len(os.listdir(f"/proc/{d.worker()}/fd")) < 700
            d.clear()
            start = time.monotonic()
            nginx["b3"].bad()
            until(lambda: sum(h == "down" for h in health(lab).values()) == 250, 10, "a quarter is down")
            took = time.monotonic() - start
            assert took < 2 * 1 + 0.9 + 2.5, took
            lines = [line for line in d.new().splitlines() if "is down" in line]
            assert len(lines) < 100 and "more transitions" in d.new()  # and not one for each
            shown = lab.json("show")
            assert shown["revision"] < 30
            nginx["b3"].well()
            until(lambda: set(health(lab).values()) == {"up"}, 10, "all are up")
    finally:
        nginx["b3"].well()
        for i in range(1, 5):
            script = "".join(f"address del 10.77.{i}.{j}/32 dev eth0\n" for j in range(1, 251))
            lab.run(f"b{i}", "ip", "-batch", "-", input=script)
            lab.run("lb", "ip", "route", "del", f"10.77.{i}.0/24")


def test_ipv6_through_the_data_plane(lab, nginx):
    lab.decapsulate()
    made = configuration([pool(lab, family=6, weights=(1, 1), check={**CHECK, "via": "service"})],
                         [service("2001:db8::10", PORT, name="www", forward="ipip")])
    with daemon(lab, made) as d:
        time.sleep(1)
        assert "down" not in d.new(), d.new()
        nginx["b2"].lose_address("2001:db8::10/128")
        d.wait_log("b2 .* is down")
        nginx["b2"].find_address("2001:db8::10/128")
        d.wait_log("b2 .* is up")


@pytest.mark.parametrize("check", [{"type": "icmp"}, {"type": "udp", "port": 5353, "send": "hello"}])
@pytest.mark.parametrize("family", [4, 6])
def test_kinds(lab, nginx, check, family):
    """Kinds that need a socket of the daemon's, and one that goes through no stream."""
    made = configuration([pool(lab, family=family, weights=(1, 1), check={"interval": "300ms", "timeout": "250ms",
                                                                          "fall": 2, **check})],
                         [service(VIP4 if family == 4 else "2001:db8::10", PORT, name="www")])
    with daemon(lab, made) as d:
        until(lambda: set(health(lab).values()) == {"up"}, 5, "up")
        lab.run("b2", "ip", "link", "set", "eth0", "down")
        d.wait_log("b2 .* is down")
        lab.run("b2", "ip", "link", "set", "eth0", "up")
        lab.run("b2", "ip", "route", "replace", f"{CLIENT4}/32", "dev", "eth0", "mtu", "1500")
        lab.run("b2", "ip", "address", "replace", f"{lab.address(2, 6)}/64", "dev", "eth0", "nodad")
        lab.run("b2", "ip", "route", "replace", "fd77::100/128", "dev", "eth0", "mtu", "1500")
        d.wait_log("b2 .* is up", 20)


def test_slow_start(lab, nginx):
    """From one point up, in steps, to all of them."""
    made = config(lab, {**CHECK, "slow_start": "5s"})
    with daemon(lab, made) as d:
        nginx["b2"].bad()
        d.wait_log("b2 .* is down")
        nginx["b2"].well()
        d.wait_log("b2 .* is up")
        seen = []

        def points():
            seen.append(lab.json("show")["pools"][0]["backends"][1]["points"])
            return seen[-1] == 100
        until(points, 10, "all points")
        rising = sorted(set(seen) - {0})
        assert rising[0] <= 20 and len(rising) >= 4  # the first step may come at once, as they are at whole seconds
        assert [p for p in seen if p] == sorted(p for p in seen if p)


def test_other_version(lab, nginx):
    """Pins of a ringlb with other maps end the daemon, with a failure, so that the new one's takes over."""
    other = TOP / "build/abi2/ringlb"
    with daemon(lab, config(lab)) as d, kept(lab) as summary:
        lab.run("lb", other, "upgrade")
        assert d.process.wait(10) == 1
        assert "another version" in d.log()
    assert summary["ok"] and not summary["failed"], summary


def test_commands_meanwhile(lab, nginx):
    """Many commands at once, and health too: each sees what the others did, and none is lost."""
    with daemon(lab, config(lab, CHECK)) as d, kept(lab):
        nginx["b3"].bad()
        for weight in range(2, 12):
            lab.ringlb("backend", "set", "web", "b1", "--weight", weight)
        shown = lab.json("show")
        assert shown["generation"] == 11
        assert shown["pools"][0]["backends"][0]["weight"] == 11
        d.wait_log("b3 .* is down")
        until(lambda: health(lab)["b3"] == "down", 2, "and health, too")
        assert lab.json("show")["pools"][0]["backends"][0]["weight"] == 11


def test_only_backend_down(lab, nginx):
    """It is used all the same; that it is down is told, and the service is not ready."""
    with daemon(lab, config(lab, CHECK, weights=(1,))) as d:
        nginx["b1"].bad()
        d.wait_log("no backend is healthy")
        until(lambda: health(lab) == {"b1": "down"}, 2, "told")
        assert not lab.json("show")["services"][0]["ready"]
        assert set(lab.connect(VIP4, PORT, "30000-30009").values()) == {"b1"}
        nginx["b1"].well()
        until(lambda: lab.json("show")["services"][0]["ready"], 5, "ready again")
