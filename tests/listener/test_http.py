# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the listener answers."""
import html.parser
import json
import re
import subprocess

import pytest

from conftest import Listener
from sample import snapshot

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def promtool(*arguments, **more):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **more)


def test_before_the_first_snapshot(listener):
    for path in ("/", "/metrics", "/api/v1/status", "/ready/www"):
        status, _, body = listener.get(path)
        assert status == 503 and body == b"Not yet: ringlb has just been started.\n"
    assert listener.get("/nowhere")[0] == 404


def test_bad_snapshots_change_nothing(listener):
    assert listener.feed(snapshot())
    for bad in (b"", b"[]", b'{"show": ', b"\xff\xfe", b"null"):
        assert not listener.feed(bad)
    assert listener.get("/api/v1/show")[0] == 200


@pytest.mark.parametrize("troubles", [False, True])
def test_promtool_approves(listener, troubles):
    assert listener.feed(snapshot(0, troubles)) and listener.feed(snapshot(1, troubles))
    status, headers, body = listener.get("/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    result = promtool("check", "metrics", input=body.decode())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def samples(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_both_formats_say_the_same(listener):
    assert listener.feed(snapshot())
    _, headers, openmetrics = listener.get("/metrics", Accept=OPENMETRICS)
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert openmetrics.endswith(b"\n# EOF\n")
    assert samples(openmetrics.decode()) == samples(listener.get("/metrics")[2].decode())


def test_openmetrics_grammar(listener):
    """As the specification has it: families stand together, counters end in _total, units are in names."""
    assert listener.feed(snapshot())
    family, kind, seen = None, None, set()
    for line in listener.get("/metrics", Accept=OPENMETRICS)[2].decode().splitlines()[:-1]:
        if match := re.fullmatch(r"# (TYPE|UNIT|HELP) (ringlb_[a-z_]+) (.+)", line):
            word, name, value = match.groups()
            if word == "TYPE":
                assert name not in seen, name
                seen.add(name)
                family, kind = name, value
            assert name == family
            assert word != "UNIT" or name.endswith("_" + value)
            continue
        match = re.fullmatch(r'(ringlb_[a-z_]+)(\{[a-z]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+', line)
        assert match, line
        suffixes = {"counter": ("_total",), "info": ("_info",), "histogram": ("_bucket", "_sum", "_count")}
        assert match[1] in [family + suffix for suffix in suffixes.get(kind, ("",))], line


@pytest.mark.parametrize("name", ["show", "stats", "history"])
def test_api_is_what_the_commands_print(listener, name):
    whole = snapshot()
    assert listener.feed(whole)
    status, headers, body = listener.get("/api/v1/" + name)
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert json.loads(body) == whole[name]
    assert body.startswith((b"{\n  ", b"[\n  ")) and body.endswith(b"\n")


def test_status_has_rates(listener):
    assert listener.feed(snapshot(0))
    assert "rates" not in json.loads(listener.get("/api/v1/status")[2])
    first, last = snapshot(0), snapshot(4)
    assert listener.feed(last)
    status = json.loads(listener.get("/api/v1/status")[2])
    rates = status.pop("rates")
    assert status == last
    assert rates["seconds"] == 4
    for was, now, rate in zip(first["stats"]["backends"], last["stats"]["backends"], rates["backends"]):
        assert rate["packets"] == (now["packets"] - was["packets"]) / 4
    # One that comes right after a change says what the one before it said.
    assert listener.feed({**last, "clock_ms": last["clock_ms"] + 20})
    assert json.loads(listener.get("/api/v1/status")[2])["rates"] == rates


def test_ready(listener):
    whole = snapshot()
    whole["ready"]["api"] = {"ready": False, "reason": "0 of 3 backends of api are healthy, quorum 1"}
    whole["ready"]["192.0.2.10:53/udp"] = {"ready": True, "reason": "all is well"}
    assert listener.feed(whole)
    assert listener.get("/ready/www")[::2] == (200, b"ready: 5 of 5 backends of web are healthy, quorum 1\n")
    assert listener.get("/ready/api")[::2] == (503, b"not ready: 0 of 3 backends of api are healthy, quorum 1\n")
    assert listener.get("/ready/192.0.2.10:53/udp")[0] == 200
    assert listener.get("/ready/192.0.2.10%3A53%2Fudp")[0] == 200
    assert listener.get("/ready/nothing")[0] == 404
    assert listener.get("/ready/")[0] == 404


def test_nothing_attached(listener):
    whole = snapshot()
    for key in ("show", "stats", "ready", "memory", "unresolved", "rings", "health"):
        del whole[key]
    assert listener.feed({**whole, "attached": False})
    assert listener.get("/")[0] == 200
    assert listener.get("/api/v1/history")[0] == 200
    assert listener.get("/api/v1/show")[0] == 503
    assert listener.get("/ready/www")[::2] == (503, b"not ready: nothing is attached\n")
    metrics = listener.get("/metrics")[2].decode()
    assert "ringlb_attached 0\n" in metrics
    assert promtool("check", "metrics", input=metrics).returncode == 0


def test_other_methods_and_places(listener):
    assert listener.feed(snapshot())
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
        status, headers, body = listener.get("/api/v1/show", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD" and b"Only GET" in body
    status, headers, body = listener.get("/", "HEAD")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) > 20000
    for path in ("/metrics/", "/api", "/api/v1/", "//", "/../etc/passwd", "/%00", "/favicon.ico"):
        status, headers, body = listener.get(path)
        assert status == 404 and b"/metrics" in body and headers["Content-Type"] == "text/plain; charset=utf-8"


def test_keeps_a_connection(listener):
    assert listener.feed(snapshot())
    with listener.connect() as s:
        for _ in range(3):
            s.sendall(b"GET /ready/www HTTP/1.1\r\nHost: x\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_ipv6():
    it = Listener("::1")
    assert it.feed(snapshot()) and it.get("/metrics")[0] == 200
    assert it.close() == 0


class Page(html.parser.HTMLParser):
    """Tags and attributes that could load something or run code."""
    VOID = {"meta", "link", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.urls, self.handlers, self.captions, self.cells = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.urls += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.captions.append(data)
        if {"td", "th"} & set(self.open[-1:]):
            self.cells.append(data)


def test_page_is_self_contained(listener):
    assert listener.feed(snapshot())
    _, headers, body = listener.get("/")
    page = Page(body.decode())
    assert page.open == [] and page.handlers == []
    assert all(url.startswith(("#", "data:image/svg+xml,")) for url in page.urls)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"


def test_page_without_script(listener):
    """Plain tables say it all."""
    assert listener.feed(snapshot(0)) and listener.feed(snapshot(2))
    page = Page(listener.get("/")[2].decode())
    assert page.captions == ["Interfaces", "Services", "Pool web: ring, 2000 points, 3.12 % still moving",
                             "Pool api: ring, 1200 points, 0.00 % still moving", "Packets by verdict",
                             "Flow table", "Flow table: what happened", "Generations"]
    for text in ("web-5", "drain", "down", "658 s", "timeout after 1 s: connected, no answer", "20.00 %", "runs",
                 "add a backend, or bring one back up"):
        assert (text in page.cells) == (text != "add a backend, or bring one back up"), text
    assert "check the route to the backend, and that its next hop answers ARP" in page.cells


def test_page_escapes(listener):
    whole = snapshot()
    name = "<script>alert('&\"')</script>"
    whole["show"]["services"][0]["name"] = whole["show"]["pools"][0]["backends"][0]["name"] = name
    whole["show"]["drift"] = [name]
    whole["instance"] = "</title>" + name
    assert listener.feed(whole)
    body = listener.get("/")[2].decode()
    assert body.count("<script>") == 1 and "</title><script>" not in body
    assert name in Page(body).cells
