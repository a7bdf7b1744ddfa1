# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figures: samples become medians; targets; the table that people see; a comparison with former ones."""
import json
import statistics

# What figures are multiples of, and how that is called: the first of these keys that a figure has.
MULTIPLES = {"x_empty": "empty", "x_flat": "flat", "x_sort": "sort", "x_build": "build", "x_direct": "direct"}
# (name, key, at most). Multiples of an empty program in the same run, of a flat table of 65,537 slots, or plain.
TARGETS = [
    ("IPv4 ipip, 1 flow", "x_empty", 4.5),
    ("IPv4 ipip, 100,000 flows", "x_empty", 5.5),
    ("IPv4 ipip, 1,000,000 flows", "x_empty", 6.5),
    ("IPv4 ipip, UDP, every packet a new flow", "x_empty", 6),
    ("IPv4 ipip, SYNs in settled arcs", "x_empty", 6),
    ("IPv4 for no service", "x_empty", 2.3),
    ("IPv6 ipip, 100,000 flows", "x_empty", 7),
    ("IPv4 l2, 1 flow", "x_empty", 4),
    ("IPv4 l2, 100,000 flows", "x_empty", 4),
    ("IPv4 l2, 1,000,000 flows", "x_empty", 4),
    ("IPv4 ipip, track: always, 1,000,000 flows", "x_empty", 9),
    ("look-up, 16,384 points, dependent", "x_flat", 0.6),
    ("look-up, 40,000 points, dependent", "x_flat", 1.0),
    ("look-up, 65,536 points, dependent", "x_flat", 1.2),
    ("look-up, 1,048,576 points, dependent", "x_flat", 4.5),
    ("commit, 100 x 400: command to new ring", "value", 100),
    ("daemon, 1,000 backends, idle", "value", 0.5),
]
NOISE = 0.05  # a difference below this fraction says nothing, whatever the spreads


def figure(name, unit, samples, **more):
    """One figure of samples."""
    return {"name": name, "value": round(statistics.median(samples), 3), "unit": unit,
            "min": round(min(samples), 3), "max": round(max(samples), 3), "x_empty": None, **more}


def target_of(f):
    """(key, at most, met), or None where there is no target."""
    for name, key, most in TARGETS:
        if name == f["name"] and f.get(key) is not None:
            return key, most, f[key] <= most
    return None


def multiple(f):
    return next((f"{f[key]:8.2f} {word}" for key, word in MULTIPLES.items() if f.get(key) is not None), "")


def print_table(figures, out):
    """One line a figure; times of the program itself, without what restores the frame."""
    print(f"{'':62} {'median':>10} {'min':>10} {'max':>10}", file=out)
    for f in figures:
        if f["name"] == "machine":
            continue
        line = f"{f['name']:62} {f['value']:10.6g}"
        line += f" {f['min']:10.6g} {f['max']:10.6g}" if f["min"] != f["max"] else f"{'':22}"
        line += f" {f['unit']:<12} {multiple(f):15}"
        if target := target_of(f):
            line += f" target {target[1]:g}: {'met' if target[2] else 'missed'}"
        print(line.rstrip(), file=out)
    found = [target_of(f) for f in figures if target_of(f)]
    if found:
        print(f"\n{sum(met for _, _, met in found)} of {len(found)} targets met.", file=out)


def measure_of(f):
    """What two runs can be compared by: a multiple of something in the same run bears another load, or machine."""
    key = next((key for key in MULTIPLES if f.get(key) is not None), "value")
    scale = f[key] / f["value"] if f["value"] else 1
    return key, f[key], f["min"] * scale, f["max"] * scale


def is_rate(f):
    return f["unit"] in ("Mpps", "Gbit/s", "1/s")


def compare(old, new):
    """
    What got slower than the noise: [(name, key, was, is)]. Slower: by more than NOISE, and the new median lies outside
    of what the old samples reached. Floors are what others are measured by, and are left out.
    """
    was = {f["name"]: f for f in old}
    slower = []
    for f in new:
        if f["name"] not in was or "floor:" in f["name"] or f["name"] == "machine":
            continue
        key, value, *_ = measure_of(f)
        before_key, before, low, high = measure_of(was[f["name"]])
        if key != before_key or not before:
            continue
        if is_rate(f):
            worse = value < before * (1 - NOISE) and value < low
        else:
            worse = value > before * (1 + NOISE) and (value > high or low == high)
        if worse:
            slower.append((f["name"], key, before, value))
    return slower


def load(path):
    with open(path, encoding="utf-8") as file:
        figures = json.load(file)
    if not isinstance(figures, list) or not all(isinstance(f, dict) and "name" in f for f in figures):
        raise ValueError(f"{path} is not a list of figures")
    return figures
