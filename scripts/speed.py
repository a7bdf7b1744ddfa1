#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Draws what documents say about speed anew. FILE, as scripts/bench.sh --json writes it with all parts, becomes
docs/speed.json; without FILE that is drawn. Between the marks <!-- figures: NAME --> and <!-- end --> in docs/speed.md
and README.md everything comes from it, and the pictures docs/speed-*.svg, too. The program must be built.
With --into DIR everything is drawn there, from the documents as they are, and these stay so.
"""
import argparse
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/bench"))
import draw  # noqa: E402
import figures  # noqa: E402
import placements as ring_compare  # noqa: E402

JSON = ROOT / "docs/speed.json"
DOCUMENTS = ("docs/speed.md", "README.md")
MARKS = re.compile(r"(<!-- figures: ([a-z-]+) -->\n).*?(<!-- end -->)", re.S)
FAMILIES = ("IPv4", "IPv6")
KINDS = ["for no service", "l2, 1 flow", "l2, 100,000 flows", "l2, 1,000,000 flows", "ipip, 1 flow",
         "ipip, 100,000 flows", "ipip, 1,000,000 flows", "gue, 1 flow", "gue, 100,000 flows", "gue, 1,000,000 flows",
         "ipip, 16,400 points, 1,000,000 flows", "ipip, 65,500 points, 1,000,000 flows",
         "ipip, 1,000,000 points, 1,000,000 flows", "ipip, UDP, every packet a new flow",
         "ipip, SYNs in settled arcs", "ipip, SYNs in moved arcs, most remembered",
         "ipip, SYNs in moved arcs, none remembered", "ipip, 1 % moved, 100,000 flows",
         "ipip, 1 % moved, 1,000,000 flows", "ipip, 25 % moved, 100,000 flows", "ipip, 25 % moved, 1,000,000 flows",
         "ipip, track: always, 100,000 flows", "ipip, track: always, 1,000,000 flows"]
FLOORS = ["floor: empty program behind the driver", "floor: parse, swap MACs", "floor: parse, constant outer header"]
WAYS = ["direct", "Linux forwarding", "ringlb, l2", "ringlb, ipip", "nginx stream", "HAProxy, tcp"]
SIZES = ["100 x 400", "100 x 10,000", "4,096 x 160", "1,000 pools of 3 x 160"]
STEPS = ["read what runs", "build", "push", "swap", "change in all", "command to new ring"]
PLACEMENTS = ["max_over_mean", "min_over_mean", "moved_on_add", "excess_on_add", "moved_on_remove", "excess_on_remove"]


class Figures:
    def __init__(self, path):
        self.all = {f["name"]: f for f in figures.load(path)}

    def __getitem__(self, name):
        return self.all[name]

    def get(self, name):
        return self.all.get(name)

    def named(self, start):
        return [f for name, f in self.all.items() if name.startswith(start)]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(f):
    return short(f["value"]) if f["min"] == f["max"] else f"{short(f['value'])} ({short(f['min'])}–{short(f['max'])})"


def verdict(f):
    target = figures.target_of(f) if f else None
    return f"≤ {target[1]:g}: {'met' if target[2] else '**missed**'}" if target else ""


def machine(all_):
    m = all_["machine"]
    return (f"{m['date']}; {m['value']:g} CPUs, {m['model']}; Linux {m['kernel']}; {m['rounds']} rounds; load when it "
            f"began: {m['load']}.\n\n"
            f"    {m['command']}\n")


def path(all_):
    rows = []
    for kind in [*FLOORS, *KINDS]:
        cells = [kind]
        for family in FAMILIES:
            f = all_[f"{family} {kind}"]
            cells += [spread(f), f"{f['x_empty']:.2f}"]
        rows.append([*cells, "; ".join(f"{family} {verdict(all_[f'{family} {kind}'])}" for family in FAMILIES
                                       if verdict(all_[f"{family} {kind}"]))])
    empty = all_["floor: empty program"]
    rows.insert(0, ["floor: empty program", spread(empty), "1", spread(empty), "1", ""])
    return table(["", "IPv4, ns", "× empty", "IPv6, ns", "× empty", "target"], rows)


def sizes(all_):
    return table(["", ""], [[f["name"].removeprefix("program, "), f"{f['value']:,.0f} {f['unit']}"]
                            for f in all_.named("program, ")])


def lookup(all_):
    rows = []
    for f in all_.named("look-up, "):
        if ", dependent" in f["name"]:
            other = all_[f["name"].replace(", dependent", ", independent")]
            rows.append([f["name"][9:].replace(", dependent", ""), spread(f), f"{f['x_flat']:.2f}", spread(other),
                         f"{other['x_flat']:.2f}", verdict(f)])
    return table(["table", "one after the other, ns", "× flat", "overlapping, ns", "× flat", "target"], rows)


def builds(all_):
    return table(["", ""], [[f["name"].removeprefix("a million points: "), f"{spread(f)} {f['unit']}"]
                            for f in all_.named("a million points: ")])


def live(all_):
    return table(["what the other end does", "Mpps", "lost at it, of a million"],
                 [[f["name"].removeprefix("live frames: "), spread(f),
                   spread(lost) if (lost := all_.get(f["name"] + ": lost at the balancer")) else ""]
                  for f in all_.named("live frames: ") if f["unit"] == "Mpps"])


def commits(all_):
    rows = [[step, *(spread(all_[f"commit, {size}: {step}"]) for size in SIZES)] for step in STEPS]
    rows += [[f"memory of the {what}, MB", *(spread(all_[f"commit, {size}: memory of the {what}"]) for size in SIZES)]
             for what in ("command", "maps")]
    command = all_["commit, 100 x 400: command to new ring"]
    return table(["milliseconds", *(size.replace(" x ", " × ") for size in SIZES)], rows) + (
        f"\nTarget for the command at 100 × 400, in milliseconds: {verdict(command)}.\n")


def daemon(all_):
    return table(["", "", "target"], [[f["name"].removeprefix("daemon, "), f"{spread(f)} {f['unit']}", verdict(f)]
                                      for f in all_.named("daemon, ")])


def network(all_):
    names = dict.fromkeys(f["name"].split(": " + way)[0] for way in WAYS for f in all_.all.values()
                          if "x_direct" in f and f["name"].endswith(": " + way))
    rows = []
    for name in names:
        found = [all_.get(f"{name}: {way}") for way in WAYS]
        unit = found[0]["unit"].replace("us", "µs")
        rows.append([f"{name}, {unit}" if unit != "1/s" else name, *(spread(f) if f else "" for f in found)])
    return table(["", *WAYS], rows)


def placements(all_):
    names = dict.fromkeys(f["name"].split(":")[0].removeprefix("placement ") for f in all_.named("placement "))
    rows = []
    for name in names:
        cells = [all_.get(f"placement {name}: {key}") for key in PLACEMENTS]
        rows.append([f"`{name}`", *(("" if not f else f"{f['value']:.3f}" if "mean" in key else
                                     f"{100 * f['value']:.2f} %") for key, f in zip(PLACEMENTS, cells))])
    return table(["placement", "max/mean", "min/mean", "a backend added: moves", "more than the minimum",
                  "one removed: moves", "more than the minimum"], rows)


def readme(all_):
    m = all_["machine"]

    def x(family, kind):
        return f"{all_[f'{family} {kind}']['x_empty']:.1f}"

    def row(name, *kinds):
        return [name, *(" / ".join(x(family, kind) for kind in kinds) for family in FAMILIES)]

    counts = ("1 flow", "100,000 flows", "1,000,000 flows")
    rows = [row("for no service of ours", "for no service"),
            row("`l2`, 1 / 100,000 / 1,000,000 flows", *(f"l2, {count}" for count in counts)),
            row("`ipip`, likewise", *(f"ipip, {count}" for count in counts)),
            row("`gue`, likewise", *(f"gue, {count}" for count in counts)),
            row("`ipip`, UDP, every packet of a new flow", "ipip, UDP, every packet a new flow"),
            row("`ipip`, TCP SYNs", "ipip, SYNs in settled arcs"),
            row("`ipip`, 1,000,000 flows, a quarter of the ring just moved", "ipip, 25 % moved, 1,000,000 flows"),
            row("`ipip`, 1,000,000 flows, `track: always`", "ipip, track: always, 1,000,000 flows")]
    ns = all_["IPv4 ipip, 100,000 flows"]["value"]
    return (f"{m['date'].split()[0]}, Linux {m['kernel'].split('-')[0]}, {m['value']:g} × {m['model']} (a virtual "
            "machine), 100 backends with 40,000 points, in multiples\nof an empty XDP program that only sends the packet "
            "back:\n\n" + table(["traffic", "IPv4", "IPv6"], rows) +
            f"\nThat is about {ns:.0f} ns a packet, {all_['live frames: ringlb, ipip']['value']:.1f} million packets a "
            "second of real frames on one CPU that makes and counts them, too. A change\nof one backend of 100 is in "
            f"effect {all_['commit, 100 x 400: command to new ring']['value']:.0f} ms after its command began.\n")


BLOCKS = {"machine": machine, "path": path, "sizes": sizes, "lookup": lookup, "builds": builds, "live": live,
          "commits": commits, "daemon": daemon, "network": network, "placements": placements, "readme": readme}


def draw_all(all_, docs):
    rows = []
    for kind in [*FLOORS[1:], *KINDS]:
        f = all_[f"IPv4 {kind}"]
        scale = f["x_empty"] / f["value"]
        target = figures.target_of(f)
        rows.append((kind, f["x_empty"], (f["min"] * scale, f["max"] * scale), target and target[1],
                     draw.GREY if kind in FLOORS else draw.BLUE))
    ring_compare.picture(docs / "speed-placements.svg")
    draw.bars(docs / "speed-path.svg", "A packet's cost, IPv4 (red: at most)", "× an empty program", rows)
    panels = []
    for name in ("services", "backends", "points"):
        found = [(int(f["name"].split(": ")[1]), f["value"], f["min"], f["max"]) for f in all_.named(f"by {name}: ")]
        panels.append((name, sorted(found)))
    if found := all_.named("by CPUs: "):
        panels.append(("CPUs; millions of packets a second", [(int(f["name"].split(": ")[1]), f["value"], f["min"],
                                                             f["max"]) for f in found]))
    draw.curves(docs / "speed-scale.svg", "A packet's cost by scale, nanoseconds (the last: packets a second)", "",
                panels)
    rates = [(way, f["value"], (f["min"], f["max"]), None, draw.ORANGE if way.startswith("ringlb") else draw.BLUE)
             for way in WAYS if (f := all_.get(f"answers a second, 16 connections: {way}"))]
    draw.bars(docs / "speed-network.svg", "Questions and answers over TCP, 16 connections", "thousands a second",
              [(way, value / 1e3, (least / 1e3, most / 1e3), target, colour)
               for way, value, (least, most), target, colour in rates])


def fill(path_, all_):
    text = path_.read_text(encoding="utf-8")
    path_.write_text(MARKS.sub(lambda mark: mark[1] + BLOCKS[mark[2]](all_) + mark[3], text), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip(), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", metavar="DIR", type=pathlib.Path, default=ROOT)
    parser.add_argument("file", nargs="?", metavar="FILE", type=pathlib.Path)
    options = parser.parse_args()
    docs = options.into / "docs"
    docs.mkdir(parents=True, exist_ok=True)
    if options.into != ROOT:
        for name in DOCUMENTS:
            shutil.copyfile(ROOT / name, options.into / name)
    if (options.file or JSON) != docs / "speed.json":
        shutil.copyfile(options.file or JSON, docs / "speed.json")
    all_ = Figures(docs / "speed.json")
    draw_all(all_, docs)
    for name in DOCUMENTS:
        fill(options.into / name, all_)


if __name__ == "__main__":
    main()
