# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the daemon needs while nothing happens: with 1,000 backends, unchecked, and checked by TCP every 2 seconds."""
import json
import pathlib
import time

from figures import figure
from lab import PORT, lab

BACKENDS = 1000
SECONDS = 2  # of each sample
CHECK = f"    check: {{type: tcp, port: {PORT}, interval: 2s}}\n"


def configuration(check):
    backends = "".join(f"      - {{name: b{i}, address: 10.78.{i // 250}.{i % 250 + 1}}}\n" for i in range(BACKENDS))
    return ("interfaces: [eth0]\nxdp: native\nhash_key: 000102030405060708090a0b0c0d0e0f\n"
            "tunnel_source: {ipv4: 10.77.0.1}\npools:\n"
            f"  - name: web\n    vnodes: 40\n{check}    backends:\n{backends}"
            "services:\n  - {address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: ipip}\n")


def family(pid):
    """The process and what descends from it."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            found += family(int(child))
    return found


def used(pid):
    """(seconds of CPU, megabytes of memory of its own) of all of them so far."""
    cpu = memory = 0
    for one in family(pid):
        cpu += sum(int(path.read_text(encoding="ascii").split()[0])
                   for path in pathlib.Path(f"/proc/{one}/task").glob("*/schedstat")) / 1e9
        for line in pathlib.Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Private_Dirty:"):
                memory += int(line.split()[1]) / 1e3
    return cpu, memory


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within a minute: {what}")
        time.sleep(0.2)


def backends(place):
    return json.loads(place.run("lb", "ringlb", "--json", "show"))["pools"][0]["backends"]


def run_one(place, check, rounds):
    file = place.directory / "daemon.yaml"
    file.write_text(configuration(check), encoding="utf-8")
    process = place.start("lb", "ringlb", "run", file)
    wait_until(lambda: place.run("lb", "sh", "-c", f"ringlb --quiet show >{place.directory}/shown && echo yes || true"),
               "the daemon has attached")
    wait_until(lambda: not check or all(b["health"] == "up" for b in backends(place)), "every backend is up")
    cpu, memory = [], []
    for _ in range(rounds):
        before, start = used(process.pid)[0], time.monotonic()
        time.sleep(SECONDS)
        after, kept = used(process.pid)
        cpu.append((after - before) / (time.monotonic() - start) * 100)
        memory.append(kept)
    held = all(b["health"] == ("up" if check else "unchecked") for b in backends(place))
    place.stop(process)
    place.run("lb", "ringlb", "--quiet", "detach")
    return cpu, memory, held


def measure(rounds):
    """Figures, and whether each backend was healthy, or unchecked, as it should be."""
    rounds = max(1, rounds * 5 // 21)
    found, held = [], True
    with lab() as place:
        place.serve("b1")
        place.run("lb", "ip", "route", "add", "10.78.0.0/16", "via", "10.77.0.11")
        place.run("b1", "ip", "route", "add", "local", "10.78.0.0/16", "dev", "lo")
        for check, name in (("", "idle"), (CHECK, "each checked every 2 s")):
            cpu, memory, good = run_one(place, check, rounds)
            found.append(figure(f"daemon, 1,000 backends, {name}", "% of a CPU", cpu))
            found.append(figure(f"daemon, 1,000 backends, {name}: memory", "MB", memory))
            held = held and good
    return found, held
