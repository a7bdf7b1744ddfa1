# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Balance and movement of each placement, as `ringlb ring --compare` says them for a pool of 100 equal backends."""
import json
import pathlib
import subprocess

from figures import figure

RINGLB = pathlib.Path(__file__).resolve().parents[2] / "build/ringlb"
BACKENDS = 100


def configuration():
    backends = "".join(f"      - {{name: b{i}, address: 10.0.0.{i + 1}}}\n" for i in range(BACKENDS))
    return ("interfaces: [eth0]\nhash_key: 000102030405060708090a0b0c0d0e0f\npools:\n"
            f"  - name: web\n    backends:\n{backends}services: []\n")


def compare(*options):
    return subprocess.run([RINGLB, *options, "ring", "web", "--compare", "--file", "-"], input=configuration(),
                          capture_output=True, text=True, check=True).stdout


def picture(path):
    """The same as a picture."""
    subprocess.run([RINGLB, "ring", "web", "--compare", "--svg", path, "--file", "-"], input=configuration(),
                   stdout=subprocess.DEVNULL, text=True, check=True)


def measure(_rounds):
    found = []
    for p in json.loads(compare("--json"))["placements"]:
        for key in ("max_over_mean", "min_over_mean", "moved_on_add", "moved_on_remove", "excess_on_add",
                    "excess_on_remove"):
            if p.get(key) is not None:
                found.append({**figure(f"placement {p['placement']}: {key}", "", [p[key]]), "value": p[key]})
    return found, True
