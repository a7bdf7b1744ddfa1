# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ring`: shares against a ring written once more here, what a change moves, comparison, pictures."""
import math
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from conftest import KEY, TOP

sys.path.insert(0, str(TOP / "tests/net"))
from oracle import Ring  # noqa: E402  pylint: disable=wrong-import-position,import-error

CIRCLE = 1 << 32
SVG = "{http://www.w3.org/2000/svg}"


def pool(*backends, vnodes=40, **more):
    return {"name": "web", "vnodes": vnodes, "backends": [
        {"address": f"10.0.{i >> 8}.{i & 255}", **b} for i, b in enumerate(backends, 1)], **more}


def named(count, weights=(1,)):
    return [{"name": f"web-{i + 1}", "weight": weights[i % len(weights)]} for i in range(count)]


def write(ringlb, *pools):
    service = {"address": "192.0.2.10", "protocol": "tcp", "forward": "l2", "affinity": "source"}
    return ringlb.write({"interfaces": ["eth0"], "hash_key": KEY, "pools": list(pools), "services": [
        {**service, "name": p["name"], "port": i, "pool": p["name"]} for i, p in enumerate(pools, 1)]})


def shares(p):
    ring, found = Ring(p), {b["name"]: 0 for b in p["backends"]}
    before = ring.positions[-1] - CIRCLE
    for position, owner in zip(ring.positions, ring.names):
        found[owner] += position - before
        before = position
    return found


def test_shares_are_exact(ringlb):
    p = pool(*named(7, (1, 2, 5)), {"name": "odd", "identity": "10.0.0.99:80", "points": 33},
             {"name": "gone", "state": "drain"})
    file = write(ringlb, p)
    said = ringlb.json("ring", "web", "--file", file)
    wanted = shares({**p, "backends": p["backends"][:-1]})
    weights = sum(b.get("weight", 1) for b in p["backends"][:-1])
    assert (said["pool"], said["placement"], said["points"]) == ("web", "ring", 40 * (1 + 2 + 5 + 1 + 2 + 5 + 1) + 33)
    assert [b["name"] for b in said["backends"]] == [b["name"] for b in p["backends"]]
    for b, given in zip(said["backends"][:-1], p["backends"]):
        assert b["share"] * CIRCLE == pytest.approx(wanted[b["name"]], abs=1e-3)
        assert b["expected"] == pytest.approx(given.get("weight", 1) / weights)
        assert b["ratio"] == pytest.approx(b["share"] / b["expected"])
    last = said["backends"][-1]
    assert (last["points"], last["share"], last["expected"], last["ratio"]) == (0, 0, 0, None)
    ratios = [b["ratio"] for b in said["backends"][:-1]]
    assert (said["max_over_mean"], said["min_over_mean"]) == (max(ratios), min(ratios))
    text = ringlb("ring", "web", "--file", file).stdout
    assert f"max/mean {max(ratios):.4f}, min/mean {min(ratios):.4f}" in text


@pytest.mark.parametrize("options, change, excess_free", [
    (["--with", "new=2"], lambda b: b + [{"name": "new", "address": "10.9.9.9", "weight": 2}], True),
    (["--without", "web-2"], lambda b: [x for x in b if x["name"] != "web-2"], True),
    (["--with", "web-3=5"], lambda b: [{**x, "weight": 5} if x["name"] == "web-3" else x for x in b], True),
    (["--with", "tuned=4"], lambda b: [{**x, "weight": 4, "points": 126} if x["name"] == "tuned" else x for x in b], True),
    (["--with", "back=1"], lambda b: [{**x, "state": "up"} if x["name"] == "back" else x for x in b], True),
    (["--with", "new=1", "--without", "web-1", "--with", "other=3", "--without", "web-4"],
     lambda b: [x for x in b if x["name"] not in ("web-1", "web-4")]
     + [{"name": "new", "address": "10.9.9.9"}, {"name": "other", "address": "10.9.9.8", "weight": 3}], False)])
def test_what_if(ringlb, options, change, excess_free):
    backends = named(5, (1, 2)) + [{"name": "tuned", "weight": 2, "points": 63}, {"name": "back", "state": "drain"}]
    p = pool(*backends)
    up = {**p, "backends": [b for b in p["backends"] if b.get("state") != "drain"]}
    q = {**p, "backends": [b for b in change(p["backends"]) if b.get("state") != "drain"]}
    said = ringlb.json("ring", "web", "--file", write(ringlb, p), *options)
    wanted, was, becomes = Ring(up).moved(Ring(q)), shares(up), shares(q)
    assert {(m["from"], m["to"]): pytest.approx(m["share"]) for m in said["moves"]} == wanted
    assert [m["share"] for m in said["moves"]] == sorted((m["share"] for m in said["moves"]), reverse=True)
    assert said["moved"] == pytest.approx(sum(wanted.values()))
    minimum = sum(abs(becomes.get(n, 0) - was.get(n, 0)) for n in {*was, *becomes}) / 2
    assert said["minimum"] * CIRCLE == pytest.approx(minimum)
    assert said["excess"] == pytest.approx(said["moved"] - said["minimum"], abs=1e-12)
    assert (said["excess"] == 0) == excess_free
    after = {b["name"]: round(b["share"] * CIRCLE) for b in said["after"]["backends"] if b["share"]}
    assert after == becomes
    assert [b["name"] for b in said["backends"]] == [b["name"] for b in p["backends"]]
    text = ringlb("ring", "web", "--file", write(ringlb, p), *options).stdout
    assert f"{100 * said['moved']:.2f} % of the hash space moves" in text


def test_long_lists_are_cut(ringlb):
    ask = ("ring", "web", "--file", write(ringlb, pool(*named(20))), "--with", "new=1")
    moves = ringlb.json(*ask)["moves"]
    text, verbose = ringlb(*ask).stdout, ringlb("-v", *ask).stdout
    assert f"and {len(moves) - 10} smaller ones (-v shows them)" in text and "smaller" not in verbose
    assert len(verbose.splitlines()) == len(text.splitlines()) + len(moves) - 11


@pytest.mark.parametrize("options, status, says", [
    ([], 2, "one POOL is wanted"), (["nosuch"], 2, "there are web, by-source"), (["web", "web"], 2, "one POOL"),
    (["web", "--with", "a"], 2, "NAME=WEIGHT"), (["web", "--with", "=1"], 2, "NAME=WEIGHT"),
    (["web", "--with", "a=65536"], 2, "1 to 65535"), (["web", "--with", "a=0"], 2, "--without a"),
    (["web", "--with", "a=-1"], 2, "NAME=WEIGHT"), (["web", "--with", "a=1x"], 2, "NAME=WEIGHT"),
    (["web", "--without", "nosuch"], 2, "no such backend"), (["web", "--without", "web-1", "--with", "web-1=2"], 2, "twice"),
    (["web", "--compare", "--with", "a=1"], 2, "--compare"), (["-j", "web", "--svg", "-"], 2, "standard output"),
    (["web", "--with", "big=30000"], 2, "1048576"), (["web", "--svg", "/nonexistent/file.svg"], 1, "No such file")])
def test_what_cannot_be_asked(ringlb, options, status, says):
    file = write(ringlb, pool(*named(3)), {**pool(*named(2)), "name": "by-source"})
    done = ringlb("ring", *options, "--file", file, status=status)
    assert says in done.stderr + done.stdout


def test_no_backend(ringlb):
    file = write(ringlb, pool())
    said = ringlb.json("ring", "web", "--file", file, "--with", "first=1")
    assert (said["points"], said["backends"], said["moved"], said["moves"]) == (0, [], 0, [])
    assert said["after"]["backends"][0]["share"] == 1
    ringlb("ring", "web", "--file", file, "--svg", ringlb.dir / "empty.svg")
    Picture(ringlb.dir / "empty.svg")
    assert all(p["points"] == 0 for p in ringlb.json("ring", "web", "--file", file, "--compare")["placements"])


def test_compare(ringlb):
    file = write(ringlb, pool(*named(12, (1, 2, 4)), vnodes=160))
    said = ringlb.json("ring", "web", "--file", file, "--compare")
    of = {p["placement"]: p for p in said["placements"]}
    assert list(of) == ["ring", "maglev", "rendezvous", "nginx", "haproxy", "ketama", "slots", "modulo"]
    plain = ringlb.json("ring", "web", "--file", file)
    assert all(of["ring"][key] == plain[key] for key in ("points", "backends", "max_over_mean", "min_over_mean"))
    # An addition, a removal and a weight as `ring` itself tells them.
    more = ringlb.json("ring", "web", "--file", file, "--with", "newcomer=2")
    assert of["ring"]["moved_on_add"] == pytest.approx(more["moved"])
    assert of["ring"]["moved_on_remove"] == pytest.approx(1 / 12)
    for kind in ("add", "remove", "remove_worst", "weight"):
        assert of["ring"][f"excess_on_{kind}"] == 0
        assert of["modulo"][f"excess_on_{kind}"] > 0.5
        assert 0 < of["maglev"][f"excess_on_{kind}"] < of["maglev"][f"moved_on_{kind}"] < 0.2
    for p in said["placements"]:
        assert p["build_seconds"] > 0 and p["table_bytes"] > 0 and p["removals"] == 12
        assert p["moved_on_remove"] <= p["moved_on_remove_worst"]
        assert sum(b["share"] for b in p["backends"]) == pytest.approx(1)
    file = write(ringlb, pool(*named(2)))
    text = ringlb("ring", "web", "--file", file, "--compare").stdout
    assert [line.split()[0] for line in text.splitlines()[2:10]] == list(of) and "ring *" in text


# ---- pictures ----

def glyphs(text):
    """A width that no usual font passes, in parts of the size: DejaVu Sans, the widest of them."""
    return sum(0.33 if c in "ijlI.,:;|'" else 0.95 if c in "mwMW@%…" else 0.72 if c.isupper() else 0.6 for c in text)


class Picture:
    """A picture, held against what every one promises."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        assert len(self.bytes) < 500_000
        self.root = ET.fromstring(self.bytes)
        self.text = ["".join(t.itertext()) for t in self.root.iter(SVG + "text")]
        assert self.root.get("role") == "img"
        for name in self.root.get("aria-labelledby").split():
            assert [e.text for e in self.root.iter() if e.get("id") == name][0]
        ids = {e.get("id") for e in self.root.iter()}
        for e in self.root.iter():
            if (e.get("fill") or "").startswith("url("):
                assert e.get("fill")[5:-1] in ids
        self.check_places()

    def boxes(self):
        turned = {t for g in self.root.iter(SVG + "g") if g.get("transform") for t in g.iter(SVG + "text")}
        for t in self.root.iter(SVG + "text"):
            if t in turned:
                continue
            size, x, y = float(t.get("font-size")), float(t.get("x")), float(t.get("y"))
            width = size * glyphs("".join(t.itertext()))
            x -= width * {"start": 0, "middle": 0.5, "end": 1}[t.get("text-anchor")]
            yield x, y - 0.75 * size, x + width, y + 0.2 * size, "".join(t.itertext())

    def check_places(self):
        """No text over another, none outside."""
        _, _, width, height = map(float, self.root.get("viewBox").split())
        boxes = sorted(self.boxes(), key=lambda b: b[1])
        for i, a in enumerate(boxes):
            assert a[0] >= 0 and a[1] >= 0 and a[2] <= width and a[3] <= height, a
            for b in boxes[i + 1:]:
                if b[1] >= a[3]:
                    break
                assert b[0] >= a[2] or b[2] <= a[0] or not a[4] or not b[4], (a, b)


HARD_NAMES = [{"name": "W" * 60}, {"name": "i" * 63}, {"name": "a.b-c_d"}, {"name": "x"}]


@pytest.mark.parametrize("count, vnodes, options", [
    (1, 1, []), (2, 1, ["--with", "web-3=1"]), (3, 400, ["--with", "web-4=1", "--without", "web-1"]),
    (39, 100, ["--with", "new=3"]), (41, 100, ["--without", "web-7"]), (100, 400, ["--with", "new=1"]),
    (4096, 200, ["--with", "new=1"]), (12, 80000, ["--with", "web-1=2"])])
def test_pictures(ringlb, count, vnodes, options):
    file = write(ringlb, pool(*named(count), vnodes=vnodes))
    out = ringlb.dir / "ring.svg"
    said = ringlb.json("ring", "web", "--file", file, *options, "--svg", out)
    picture = Picture(out)
    if options:
        assert f"{100 * said['moved']:.2f} %" in picture.text
        assert any("minimum" in t for t in picture.text)
    else:
        assert f"{said['max_over_mean']:.3f}" in picture.text
    if count < 40:
        assert {b["name"] for b in said["backends"]} <= set(picture.text)
    else:
        ratios = sorted((b["ratio"] for b in (said.get("after") or said)["backends"] if b["ratio"]))
        assert f"{ratios[0]:.3f}" in picture.text and f"{ratios[-1]:.3f}" in picture.text


def test_picture_of_hard_names(ringlb):
    out = ringlb.dir / "ring.svg"
    ringlb("ring", "web", "--file", write(ringlb, pool(*HARD_NAMES)), "--with", "<&\">=2", "--with", "\x01\xc2=1", "--svg", out)
    picture = Picture(out)
    assert "<&\">" in picture.text and any(t.endswith("…") for t in picture.text)


@pytest.mark.parametrize("backends, vnodes", [(named(30, (1, 2, 9)), 300), (named(2, (1, 9)), 20000), (named(3), 1)])
def test_drawn_in_proportion(ringlb, backends, vnodes):
    """The sectors of each backend make up its share, to a cell for each."""
    out = ringlb.dir / "ring.svg"
    said = ringlb.json("ring", "web", "--file", write(ringlb, pool(*backends, vnodes=vnodes)), "--svg", out)
    drawn = {}
    for path in ET.parse(out).iter(SVG + "path"):
        hint = path.find(SVG + "title")
        if hint is not None:
            length = 0
            for x1, y1, x2, y2 in re.findall(r"M([\d.]+) ([\d.]+)A225 225 0 0 1 ([\d.]+) ([\d.]+)", path.get("d")):
                chord = ((float(x1) - float(x2)) ** 2 + (float(y1) - float(y2)) ** 2) ** .5
                length += 2 * 225 * math.asin(min(1, chord / 2 / 225))
            drawn[hint.text.split(":")[0]] = length / (2 * math.pi * 225)
    for b in said["backends"]:
        assert drawn[b["name"]] == pytest.approx(b["share"], abs=0.004)


def test_compare_says_why_not(ringlb):
    out = ringlb.dir / "compare.svg"
    file = write(ringlb, pool(*named(101), vnodes=4))
    of = {p["placement"]: p for p in ringlb.json("ring", "web", "--file", file, "--compare", "--svg", out)["placements"]}
    assert "100 at most" in of["ketama"]["not_possible"] and "max_over_mean" not in of["ketama"]
    assert of["ring"]["removals"] == 100
    assert of["ketama"]["not_possible"] in Picture(out).text


@pytest.mark.parametrize("backends", [named(1), named(3), named(12, (1, 2, 4)), HARD_NAMES])
def test_pictures_of_a_comparison(ringlb, backends):
    out = ringlb.dir / "compare.svg"
    ringlb("ring", "web", "--file", write(ringlb, pool(*backends)), "--compare", "--svg", out)
    picture = Picture(out)
    assert {"ring", "maglev", "rendezvous", "nginx", "haproxy", "ketama", "slots", "modulo"} <= set(picture.text)


def test_picture_to_standard_output(ringlb):
    file = write(ringlb, pool(*named(3)))
    out = ringlb.dir / "ring.svg"
    ringlb("ring", "web", "--file", file, "--svg", out)
    assert ringlb("ring", "web", "--file", file, "--svg", "-").stdout == out.read_text()
