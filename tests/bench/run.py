# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""scripts/bench.sh: runs the parts that are asked for, shows their figures, writes and compares them."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import daemon
import figures
import network
import placements

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "build/tests/bench/bench"
NATIVE = ("packets", "lookup", "builds", "scale", "live", "commits")  # of build/tests/bench/bench
OTHERS = {"daemon": daemon.measure, "network": network.measure, "placements": placements.measure}
PARTS = {
    "packets": "the packet path, in test runs of the attached program",
    "lookup": "the ring's search alone",
    "builds": "building a pool of a million points",
    "scale": "the packet path by numbers of services, backends, points and CPUs",
    "live": "frames that really travel: packets a second, and losses",
    "commits": "changing one backend: build, push, swap; command to new ring; memory",
    "daemon": "what the daemon needs with 1,000 backends",
    "network": "TCP through it, beside direct, forwarding, nginx and HAProxy",
    "placements": "balance and movement of each placement",
}
EPILOG = """parts:
""" + "".join(f"  {name:11} {text}\n" for name, text in PARTS.items()) + """
Exit status: 0 done; 1 a check failed, so that the figures are of something that does not work; 2 bad usage;
3 something got slower than the noise (--against)."""


def command_line():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="What a packet, a change and the daemon cost. Root.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="without any: all")
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="of every figure (21)")
    parser.add_argument("--quick", action="store_const", dest="rounds", const=5, help="5 rounds")
    parser.add_argument("--json", metavar="FILE", help="writes the figures there, too")
    parser.add_argument("--against", metavar="FILE", help="prints what got slower than in that file, beyond the noise")
    parser.add_argument("--ringlb", metavar="PROGRAM", help="packets, scale, live and commits of another build")
    parser.add_argument("--only", metavar="TEXT", help="packets and scale: only what has this in its name, and floors")
    parser.add_argument("--document", action="store_true",
                        help="all parts; then draws docs/speed.md, its pictures and the README's table anew")
    options = parser.parse_args()
    if options.document and (options.parts or options.only or options.ringlb):
        parser.error("--document: of everything, or the documents would have holes")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if os.geteuid():
        parser.error("root is needed: it loads BPF programs and makes network namespaces")
    return options


def machine(options):
    """The figure that says where and how the others were made."""
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)$", info, re.M)
    return {**figures.figure("machine", "CPUs", [os.cpu_count()]), "model": model[1] if model else platform.machine(),
            "kernel": platform.release(),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "command": " ".join(["scripts/bench.sh", *options.parts]),
            "rounds": options.rounds, "load": round(os.getloadavg()[0], 2)}


def run_native(parts, options):
    """Figures of the C part, each part in a process of its own, and whether its checks held."""
    found, held = [], True
    for part in parts:
        command = [BENCH, "--rounds", str(options.rounds), part]
        for name in ("ringlb", "only"):
            if value := getattr(options, name):
                command[1:1] = [f"--{name}", value]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        held = held and done.returncode == 0
        if done.stdout:
            found += json.loads(done.stdout)
    return found, held


def run_parts(options):
    wanted = [part for part in PARTS if part in options.parts or not options.parts]
    found, held = run_native([part for part in wanted if part in NATIVE], options)
    for part in wanted:
        if part in OTHERS:
            more, good = OTHERS[part](options.rounds)
            found += more
            held = held and good
    return found, held


def print_slower(slower, path):
    print(f"\nAgainst {path}: " + ("nothing got slower than the noise." if not slower else "slower than the noise:"))
    for name, key, was, now in slower:
        print(f"  {name:62} {was:10.3f} -> {now:10.3f} ({now / was - 1:+.0%}) {figures.MULTIPLES.get(key, '')}")


def main():
    options = command_line()
    try:
        old = figures.load(options.against) if options.against else None
    except (OSError, ValueError) as error:
        sys.exit(f"scripts/bench.sh: --against: {error}")
    where = machine(options)
    print(f"{where['date']}, {where['value']:g} x {where['model']}, Linux {where['kernel']}\n"
          f"command: {where['command']}\n", flush=True)
    found, held = run_parts(options)
    figures.print_table(found, sys.stdout)
    for path in filter(None, (options.json, held and options.document and ROOT / "docs/speed.json")):
        with open(path, "w", encoding="utf-8") as file:
            json.dump([where, *found], file, indent=1)
            file.write("\n")
    if not held:
        sys.exit("scripts/bench.sh: checks failed: these are figures of something that does not work")
    if options.document:
        subprocess.run([ROOT / "scripts/speed.py"], check=True)
    if old is not None:
        slower = figures.compare(old, found)
        print_slower(slower, options.against)
        return 3 if slower else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
