# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""stats --watch: in one place on a terminal, one block after the other elsewhere, a JSON value a line for programs."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from conftest import TOP, VIP4, configuration, pool, service

ENTER, LEAVE = "\033[?1049h\033[?25l", "\033[0m\033[?25h\033[?1049l"


def attach(lab, **keys):
    lab.attach(configuration([pool(lab, **keys)], [service(VIP4, 80, name="www")]))


class Terminal:
    """A command on a terminal of its own, as a shell starts it."""

    def __init__(self, lab, *argv, rows=24, columns=80):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        env = {**lab.env, "TERM": "xterm"}
        env.pop("NO_COLOR", None)
        self.process = subprocess.Popen(lab.argv("lb", ["ringlb", *argv]), env=env, stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.said = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, what, seconds=10):
        """Until it has said something that matches; what was said up to then is gone."""
        end = time.monotonic() + seconds
        while not (found := re.search(what, self.said, re.S)):
            assert time.monotonic() < end, f"{what!r} not in {self.said!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.said += os.read(self.master, 65536).decode()
        self.said = self.said[found.end():]
        return found

    def frame(self, what=""):
        """Lines of the next screen that has it."""
        for _ in range(100):
            text = re.sub("\033\\[(K|[0-9]*m)|\r", "", self.wait("\033\\[H(.*?)\033\\[J")[1])
            if re.search(what, text):
                return text.split("\n")
        raise AssertionError(f"{what!r} not in {text!r}")

    def type(self, key):
        os.write(self.master, key)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@contextlib.contextmanager
def terminal(lab, *argv, **size):
    it = Terminal(lab, *argv, **size)
    try:
        yield it
    finally:
        it.close()


def lines(process):
    for line in process.stdout:
        yield json.loads(line)


def counters(stats):
    yield from ((("services", s["name"]), s) for s in stats["services"])
    yield from ((("backends", b["name"]), b) for b in stats["backends"])


def test_rates_are_what_the_counters_grew_by(lab):
    attach(lab)
    with lab.process("lb", "ringlb", "-j", "stats", "--watch", "0.2", "--count", "8") as p:
        seen = lines(p)
        before, grew = next(seen), 0
        assert before["attached"] and "rates" not in before
        for step in range(7):
            if step % 2:
                lab.connect(VIP4, 80, "20000-20019")
            now = next(seen)
            rates = now["rates"]
            were = dict(counters(before))
            for key, rate in counters({**rates, "verdicts": {}}):
                [counter] = [c for k, c in counters(now) if k == key]
                for what in ("packets", "bytes"):
                    assert abs(rate[what] * rates["seconds"] - (counter[what] - were[key][what])) < 1e-3
            assert len(list(counters(rates))) == 4
            for verdict, rate in rates["verdicts"].items():
                assert abs(rate * rates["seconds"] - (now["verdicts"][verdict] - before["verdicts"][verdict])) < 1e-3
            assert set(rates["verdicts"]) == set(now["verdicts"])
            grew += rates["verdicts"]["forwarded"] > 0
            before = now
        assert grew
        assert next(seen, None) is None and p.wait(5) == 0


def test_survives_what_happens_to_the_instance(lab):
    """Detached, attached again, upgraded, rolled back: it goes on, and never counts backwards."""
    attach(lab)
    file = lab.config_file
    with lab.process("lb", "ringlb", "-j", "stats", "--watch", "0.1") as p:
        seen = lines(p)

        def until(condition):
            for _ in range(200):
                now = next(seen)
                rates = now.get("rates", {"services": [], "backends": []})
                assert all(r["packets"] >= 0 and r["bytes"] >= 0 for _, r in counters(rates))
                if condition(now):
                    return now
            raise AssertionError(now)

        lab.connect(VIP4, 80, "20000-20019")
        packets = until(lambda s: s["services"][0]["packets"])["services"][0]["packets"]
        lab.ringlb("upgrade")
        lab.connect(VIP4, 80, "20000-20019")
        assert until(lambda s: s["services"][0]["packets"] > packets)
        lab.ringlb("detach")
        gone = until(lambda s: not s["attached"])
        assert gone["reason"] == "not attached" and set(gone) == {"time", "instance", "attached", "reason"}
        lab.ringlb("attach", file)
        assert "rates" not in until(lambda s: s["attached"])  # counters began anew
        assert "rates" in next(seen)
        lab.run("lb", TOP / "build/abi2/ringlb", "upgrade")
        assert "newer ringlb" in until(lambda s: not s["attached"])["reason"]
        p.send_signal(signal.SIGTERM)
        assert p.wait(5) == 0


def test_blocks(lab):
    """Not a terminal: whole blocks, without control characters."""
    attach(lab)
    lab.connect(VIP4, 80, "20000-20019")
    said = lab.ringlb("stats", "--watch", "0.1", "--count", "3").stdout
    assert "\033" not in said and "\r" not in said
    blocks = re.split(r"^\d\d:\d\d:\d\d  instance default: generation 1, revision 1; every 0.1 s\n", said, flags=re.M)
    assert len(blocks) == 4 and blocks[0] == ""
    assert re.search(r"^  www +- +- +\d+ +0$", blocks[1], re.M)
    for block in blocks[2:]:
        assert re.search(r"^  www +[\d.]+( k)? +[\d.]+( [kM])? +\d+ +0$", block, re.M)
        assert re.search(r"^  web +b2 +", block, re.M) and "forwarded" in block and "flow table: " in block
    assert "not attached" in lab.ringlb("-i", "other", "stats", "--watch", "1", check=1).stderr


def test_on_a_terminal(lab):
    attach(lab)
    with terminal(lab, "stats", "--watch", "0.1") as t:
        t.wait(re.escape(ENTER))
        assert any("www" in line for line in t.frame())
        lab.connect(VIP4, 80, "20000-20019")
        t.frame("forwarded")
        # Too small: every line is cut, none is lost by scrolling, and what is left out is said.
        t.resize(16, 30)
        t.frame()
        small = t.frame()
        assert len(small) <= 16 and max(map(len, small)) <= 30
        t.type(b"\x1a")  # Ctrl-Z: the shell has its screen
        t.wait(re.escape(LEAVE))
        while open(f"/proc/{t.process.pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.01)
        t.process.send_signal(signal.SIGCONT)
        t.wait(re.escape(ENTER))
        t.resize(24, 80)
        t.frame("instance default")
        lab.ringlb("detach")
        t.frame("not attached")
        t.type(b"\x03")  # Ctrl-C
        t.wait(re.escape(LEAVE))
        assert t.process.wait(5) == 0


def test_more_backends_than_lines(lab):
    made = configuration([pool(lab)], [service(VIP4, 80, name="www")])
    made["pools"][0]["backends"] += [{"name": f"x{i}", "address": f"10.77.0.{100 + i}", "state": "maint"} for i in range(1, 60)]
    lab.attach(made)
    with terminal(lab, "stats", "--watch", "0.2", rows=20) as t, lab.traffic(VIP4, 80, "20000-20009", "--pause", "0.01"):
        busy = t.frame(r"b2 +[1-9]")
        assert len(busy) <= 20 and "flow table" in busy[-1]
        assert [line.split()[1] for line in busy if line.startswith("  web")][:3] != ["x1", "x2", "x3"]
        assert any(re.search(r"and \d+ more backends", line) for line in busy)
        shown = sum(line.startswith("  web") for line in busy)
        [more] = [int(m[1]) for line in busy if (m := re.search(r"and (\d+) more backends", line))]
        assert shown + more == 62
