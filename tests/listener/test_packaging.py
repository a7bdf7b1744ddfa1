# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The dashboard and the alert rules ask for metrics that there are, in expressions that Prometheus understands."""
import json
import re
import subprocess

import pytest

from conftest import ROOT, Listener
from sample import snapshot

DASHBOARD = ROOT / "packaging/grafana/ringlb.json"
ALERTS = ROOT / "packaging/alerts.yml"
METRIC = re.compile(r"\bringlb_[a-z_]+")


def promtool(*arguments, **more):
    result = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **more)
    return result.returncode, result.stdout + result.stderr


def dashboard_expressions():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


@pytest.fixture(scope="module")
def names():
    """Of all metrics of an instance about which everything is known."""
    it = Listener()
    assert it.feed({**snapshot(), "reload": {"ok": True}})
    found = set(METRIC.findall("\n".join(line for line in it.get("/metrics")[2].decode().splitlines()
                                         if not line.startswith("#"))))
    assert it.close() == 0
    return found


def test_alerts():
    status, output = promtool("check", "rules", ALERTS)
    assert status == 0 and "17 rules found" in output, output
    status, output = promtool("test", "rules", "alerts.test.yml", cwd=ROOT / "tests/listener")
    assert status == 0, output


def test_alerts_ask_for_what_there_is(names):
    asked = set(METRIC.findall(re.sub(r"#.*", "", ALERTS.read_text(encoding="utf-8"))))
    assert asked and asked <= names


def test_dashboard_asks_for_what_there_is(names):
    asked = {name for _, expression in dashboard_expressions() for name in METRIC.findall(expression)}
    assert asked <= names
    # What is not shown is left to whoever wants it.
    assert len(asked) > 20


def test_dashboard_expressions(tmp_path):
    rules = [{"record": f"e:{i}", "expr": text.replace("$__rate_interval", "1m")}
             for i, (_, text) in enumerate(dashboard_expressions())]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    status, output = promtool("check", "rules", path)
    assert status == 0 and f"{len(rules)} rules found" in output, output


def test_dashboard_panels_do_not_overlap():
    taken = set()
    ids = set()
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24 and panel["id"] not in ids
        taken |= cells
        ids.add(panel["id"])


def test_documentation_names_every_metric(names):
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(ringlb_[a-z_]+)`", text, re.M))
    assert listed == {re.sub("_(bucket|sum|count)$", "", name) if "duration_seconds_" in name else name
                      for name in names}
